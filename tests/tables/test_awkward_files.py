"""Awkward files are read with what was understood, or refused with a remedy that works when it is followed."""

import re

import numpy as np
import pytest

from polytrain.columns.forms import DEFAULT_MISSING, Form, find_form
from polytrain.tables import TableError
from polytrain.tables.cells import FileCells
from polytrain.tables.open_file import open_table_file
from polytrain.tables.options import spell_options
from tables.awkward_contents import N_ROWS
from tables.awkward_files import AWKWARD_FILES

MISSING = frozenset(DEFAULT_MISSING)


def read(path, options, n_rows):
    """Return names, notes, and form and values of each column."""
    with open_table_file(path, options) as table:
        blocks = list(table.blocks(n_rows))
        found = {}
        for name in table.names:
            columns = [FileCells(block[name], table, MISSING) for block in blocks]
            texts = list(dict.fromkeys(text for column in columns for text in column.coded[1]))
            is_typed = columns[0].is_typed
            form = columns[0].find_form() if is_typed else find_form(texts, delimiter=table.delimiter)
            if form.kind == "text":
                found[name] = form, [text for column in columns for text in column]
                continue
            parts = [column.values(form) for column in columns]
            assert [wrong for _, wrong in parts if wrong is not None] == []
            found[name] = form, np.concatenate([values for values, _ in parts])
        return table.names if table.named else None, table.notes, found, sum(map(len, blocks))


def check(case, path, options, block_rows):
    names, notes, found, n_rows = read(path, options, block_rows)
    assert names == (None if case.names is None else list(case.names))
    assert n_rows == case.n_rows
    for word in case.notes:
        assert word in "; ".join(notes)
    if not case.notes and case.refusal is None:
        assert notes == [] or "semicolons" in "".join(notes)
    for name, words in case.kinds.items():
        assert found[name][0].describe().startswith(words)
    for name, value in case.first.items():
        first = found[name][1][0]
        assert first == (np.datetime64(value) if found[name][0].kind == "date" else value)
    if case.names is not None and "target" in case.names:
        assert found["target"][0] == Form("text")
        assert set(found["target"][1]) == {"yes", "no"}


def test_there_are_enough_of_them():
    assert len(AWKWARD_FILES) >= 45
    assert len({case.name for case in AWKWARD_FILES}) == len(AWKWARD_FILES)
    assert N_ROWS >= 40


@pytest.mark.parametrize("block_rows", [None, 7])
@pytest.mark.parametrize("case", AWKWARD_FILES, ids=lambda case: case.name)
def test_awkward_file(case, block_rows, tmp_path):
    if case.needs:
        pytest.importorskip(case.needs)
    path = case.write(tmp_path)
    if case.refusal is None:
        check(case, path, case.options, block_rows)
        return
    with pytest.raises(TableError) as refused:
        read(path, case.options, block_rows)
    assert re.search(case.refusal, str(refused.value))
    assert "--" not in str(refused.value)
    assert "read" in str(refused.value) or str(refused.value).endswith(".")
    if case.remedy.options != case.options:
        named: list[str] = []
        spell_options(refused.value.args[0], lambda name, value: named.append(name) or "")
        assert any(getattr(case.remedy.options, name) is not None for name in named)
    check(case, case.write_remedy(tmp_path), case.remedy.options, block_rows)
