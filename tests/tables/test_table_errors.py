"""Messages name options, and whoever shows them spells these."""

import pickle

import pytest

from polytrain.tables.errors import Option, TableError, reading


def test_messages_are_spelled_by_who_shows_them():
    error = TableError("bad cells. Try ", Option("delimiter", ";"), " or ", Option("keep_index", "True"), ".")
    assert str(error) == "bad cells. Try delimiter=';' or keep_index=True."
    assert error.spelled(lambda option: f"--{option.name}") == "bad cells. Try --delimiter or --keep_index."
    assert str(TableError("plain")) == "plain"
    assert str(Option("names")) == "names=..."
    assert isinstance(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_parsers_raise_becomes_an_error_with_a_remedy():
    with (
        pytest.raises(TableError, match=r"a.csv cannot be read: 'x'. Write it anew."),
        reading("a.csv", "Write it anew"),
    ):
        raise KeyError("x")
    with pytest.raises(TableError, match="mine"), reading("a.csv", "Write it anew"):
        raise TableError("mine")
