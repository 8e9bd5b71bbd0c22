"""Names of columns: found out, cleaned, and never two alike."""

import io

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytrain.tables.table_file import clean_names
from polytrain.tables.text_file import looks_like_header


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (["1", "2"], False),
        (["a", "b"], True),
        (["a", "?"], False),
        (["a", "a"], True),
        (["", "a"], True),
        ([""], False),
        (["country", "2019"], False),
        (["5", "-", "3"], False),
        (["2024-03-01", "a"], False),
        (["$5", "a"], False),
        (["größe", "名前", "p1"], True),
        (["a", "0" * 5000 + "1"], False),  # more digits than Python converts
    ],
)
def test_a_header_is_text(first, expected):
    assert looks_like_header(first) == expected


@pytest.mark.parametrize(
    "cells",
    [["a", "b"], ["", "a", "b"], ["", "a", ""], ["a", "a", "a.1", "a"], ["x", "", "", "x"], ["a", "Unnamed: 0"]],
)
def test_names_are_those_of_pandas(cells):
    assert clean_names(cells) == pandas.read_csv(io.StringIO(",".join(cells) + "\n")).columns.tolist()


@given(st.lists(st.sampled_from(["", "a", "a.1", "a.2", "b", "Unnamed: 1", "Unnamed: 0", "__index_level_0__"])))
def test_names_never_collide(cells):
    names = clean_names(cells)
    assert len(set(names)) == len(names) == len(cells)
    assert all(names)


@pytest.mark.timeout(30)
def test_many_equal_names_are_numbered_in_linear_time():
    """What would be 1.8 billion steps if each name tried all numbers anew."""
    names = clean_names(["a"] * 60_000)
    assert names[0] == "a"
    assert names[1:] == [f"a.{k}" for k in range(1, 60_000)]
