"""Names of columns: found out, cleaned, and never two alike."""

import io

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytrain.tables.table_file import clean_names
from polytrain.tables.text_file import looks_like_header


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4", False),
        ("a,b\n3,4", True),
        ("a,b\nc,d\ne,d", True),
        ("a,b\nc,b", False),  # b is a value
        ("a,b", False),
        ("a,?\n1,2", False),
        ("a,a\n1,2", True),
        ("a,a\nb,c", False),
        (",a\n0,1", True),
        (",a\n0,x\n1,y", True),
        ("a,,c\n1,2,3", True),
        ("red,,c\nblue,2,d", False),
        ("country,2019,2020\nDE,1.5,2\nFR,3,4", True),
        ("country,2019,2020\nDE,2018,2017\nFR,2019,2020", False),
        ("male,22,1\nfemale,38,0", False),
        ("5,-,3\n4,2,1", False),
        ("date,text\n2024-03-01,a\n2024-03-02,b", True),
        ("price,text\n$5,a\n$6,b", True),
        ("prix,nom\n1,a\n?,b", True),
        ("größe,名前\n1,a", True),
        ("p1,p2,3\n1,2,3", True),
        ("0,1,2,label\n5.5,6,7,x\n8,9,1,x", True),
        ("1,2,3,setosa\n4,5,6,setosa\n7,8,9,virginica", False),
        ("0,1,2,y\n5.5,6,7,1\n8,9,1,0", True),
    ],
)
def test_header_is_found_out(text, expected):
    assert looks_like_header([line.split(",") for line in text.split("\n")]) == expected


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


def test_a_first_row_with_more_digits_than_python_converts():
    digits = "0" * 5000 + "1"
    assert looks_like_header([["a", digits], ["1", "2"], ["3", "4"]])
    assert not looks_like_header([[digits, "1"], ["1", "2"]])
