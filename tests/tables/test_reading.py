"""Opening tables: the same rows come out of every kind of file, and what is no table is refused."""

import gzip
import io
import os
import pickle
import sys
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest

from polytrain import TensorTrainRegressor
from polytrain.cli import main
from polytrain.tables import ReadOptions, TableError, open_table_file
from polytrain.tables.cells import FileCells
from polytrain.tables.options import option, reading, spell_options


def read(path, n_rows=2, **options):
    """Return names and all columns."""
    with open_table_file(path, ReadOptions(**options)) as table:
        columns = [[] for _ in table.names]
        for frame in table.blocks(n_rows):
            assert 0 < len(frame) <= n_rows
            for k, whole in enumerate(columns):
                whole.extend(FileCells(frame.iloc[:, k], table))
        return table.names if table.named else None, columns


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "x,y\n1,red\n2,blue\n3,red\n"),
        ("a.csv", '\ufeff"x","y"\r\n1, red \r\n\r\n2,"blue"\r\n3,red'),
        ("a.csv", "x;y\n1;red\n2;blue\n3;red\n"),
        ("a.tsv", "x\ty\n1\tred\n2\tblue\n3\tred\n"),
        ("a.txt", "x|y\n1|red\n2|blue\n3|red\n\n\n"),
        ("noending", "x,y\n1,red\n2,blue\n3,red\n"),
        ("a.jsonl", '{"x": 1, "y": "red"}\n\n{"x": 2, "y": " blue"}\n{"x": 3, "y": "red"}'),
        ("a.json", '[{"x": 1, "y": "red"},\n{"x": 2, "y": "blue"}, {"x": 3, "y": "red"}]\n'),
    ],
)
def test_text(tmp_path, name, text):
    assert read(write(tmp_path / name, text)) == (["x", "y"], [["1", "2", "3"], ["red", "blue", "red"]])


def test_places_are_lines_of_the_file(tmp_path):
    path = write(tmp_path / "a.csv", '# note\n\nx,y\n\n1,"two\nlines"\n2,b\n')
    with open_table_file(path) as table:
        (frame,) = table.blocks()
    assert [table.place(k) for k in frame.index] == ["line 6", "line 7"]
    assert frame["y"].tolist() == ["two\nlines", "b"]
    with open_table_file(write(tmp_path / "a.json", '[{"x": 1}, {"x": 2}]')) as table:
        assert table.place(1) == "row 1"


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("1,5;2,5\n2,5;3,5\n", ";"),
        ('"a,b,c";d\n1;2\n', ";"),
        ("a\tb c\n1\t2 3\n", "\t"),
        ("a|b\n1|2;3\n", "|"),
        ("a b\n1 2\n", " "),
        ('"a" "b"\n"r1" 1 2\n"r2" 3 4\n', " "),
        ("name\nJohn Smith\nMary Jones\n", ","),
        ("x;y,z\n1;2\n", ";"),
    ],
)
def test_delimiters_are_found_out(tmp_path, text, delimiter):
    path = write(tmp_path / "a.csv", text)
    for given, expected in ((None, delimiter), ("^", "^")):
        with open_table_file(path, ReadOptions(delimiter=given)) as table:
            assert table.delimiter == expected


def test_a_delimiter_can_be_named(tmp_path):
    assert read(write(tmp_path / "b.csv", "a,b\n1,2\n"), delimiter=";", header="no")[1] == [["a,b", "1,2"]]
    for wrong in ("", ";;", '"', "\n"):
        with pytest.raises(TableError, match="must be one character"):
            ReadOptions(delimiter=wrong)
    with pytest.raises(ValueError, match="header must be"):
        ReadOptions(header="maybe")


@pytest.mark.parametrize("n_rows", [1, 100, 257, 1000])
def test_long_tables_are_the_same_in_any_blocks(tmp_path, monkeypatch, n_rows):
    monkeypatch.setattr("polytrain.tables.open_file._SNIFF_BYTES", 300)
    expected = [[str(k) for k in range(257)], [str(k % 3) for k in range(257)]]
    assert read(write(tmp_path / "a.csv", "".join(f"{k},{k % 3}\n" for k in range(257))), n_rows)[1] == expected
    lines = "".join(f'{{"a": {k}, "b": {k % 3}}}\n' for k in range(257))
    assert read(write(tmp_path / "a.jsonl", lines), n_rows)[1] == expected


def test_objects_have_types(tmp_path):
    lines = '{"n": 1, "f": 0.5, "t": true, "m": "a", "g": null}\n{"n": null, "f": 2, "m": 3, "g": null, "late": "x"}\n'
    with open_table_file(write(tmp_path / "a.jsonl", lines)) as table:
        (frame,) = table.blocks()
    assert table.names == ["n", "f", "t", "m", "g", "late"]
    columns = [FileCells(frame[name], table) for name in table.names]
    assert [column.is_typed for column in columns] == [True, True, True, False, False, False]
    assert [list(column) for column in columns] == [
        *(["1", ""], ["0.5", "2"], ["True", ""]),
        *(["a", "3"], ["", ""], ["", "x"]),
    ]


def test_arrays(tmp_path):
    rows = np.arange(6.0).reshape(3, 2)
    texts = [["0", "2", "4"], ["1", "3", "5"]]
    np.save(tmp_path / "a.npy", rows.astype(np.int16))
    assert read(tmp_path / "a.npy") == (None, texts)
    np.save(tmp_path / "b.npy", np.array([["a", " b"], ["c", "d"]]))
    assert read(tmp_path / "b.npy") == (None, [["a", "c"], ["b", "d"]])
    np.savez(tmp_path / "c.npz", X=rows, y=np.array(["p", "q", "p"]))
    assert read(tmp_path / "c.npz") == (["X0", "X1", "y"], [*texts, ["p", "q", "p"]])
    np.savez(tmp_path / "d.npz", rows)
    assert read(tmp_path / "d.npz")[0] is None
    np.save(tmp_path / "e.npy", rows.astype(">f4"))
    assert read(tmp_path / "e.npy")[1] == texts


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_files_with_types(tmp_path, ending):
    pyarrow = pytest.importorskip("pyarrow")
    from datetime import UTC, date, datetime, time, timedelta
    from decimal import Decimal

    from pyarrow import feather, parquet

    table = pyarrow.table(
        {
            "n": pyarrow.array([1, None, 3]),
            "t": ["a", None, " b\u00a0"],
            "b": [True, False, None],
            "c": pyarrow.array(["u", "v", "u"]).dictionary_encode(),
            "d": [date(2024, 3, 1), None, date(2024, 3, 2)],
            "m": pyarrow.array(
                [datetime(2024, 3, 1, 10, tzinfo=UTC), None, None], pyarrow.timestamp("ms", "Europe/Rome")
            ),
            "e": [Decimal("1.50"), None, Decimal(2)],
            "l": [timedelta(days=1.5), None, timedelta()],
            "h": [time(6, 30), None, time(0)],
            "o": pyarrow.nulls(3),
            "g": pyarrow.array(["p", "q", None], pyarrow.large_string()),
        }
    )
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
    names, columns = read(path)
    assert names == table.column_names
    assert columns == [
        *(["1", "", "3"], ["a", "", "b"], ["True", "False", ""], ["u", "v", "u"]),
        *(["2024-03-01", "", "2024-03-02"], ["2024-03-01 11:00:00", "", ""], ["1.5", "", "2"]),
        *(["1 days 12:00:00", "", "0 days 00:00:00"], ["06:30:00", "", "00:00:00"], ["", "", ""], ["p", "q", ""]),
    ]
    with open_table_file(path) as opened:
        (frame,) = opened.blocks()
    kinds = ["number", "text", "number", "text", "date", "date", *["number"] * 3, None, "text"]
    forms = [FileCells(frame[name], opened).find_form() for name in names]
    assert [form and form.kind for form in forms] == kinds
    assert opened.place(1) == "row 1"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("text", [b"a,b\n1,2\n", b'{"a": 1, "b": 2}\n', "a;b\n1;2\n".encode("utf-16")])
def test_standard_input(monkeypatch, pack, text):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(pack(text))))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read("-") == (["a", "b"], [["1"], ["2"]])
    assert not stdin.buffer.closed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_read_once(tmp_path):
    """Nothing goes back to the start of the file."""
    pipe = tmp_path / "a.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a,b\n" + "1,2\n" * 1000,))
    writer.start()
    names, columns = read(pipe, n_rows=10_000)
    writer.join()
    assert names == ["a", "b"]
    assert len(columns[0]) == 1000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04...", "cannot be read from a pipe"),
        (b"PAR1....", "input holds a parquet file"),
        (b"", "standard input is empty"),
        (b"a,b\n" + b"1,2\n" * 200 + b"3\n", "standard input, line 202: 1 cells, but 2 in the first row"),
    ],
)
def test_mistakes_in_standard_input_are_those_of_files(monkeypatch, content, message):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    with pytest.raises(TableError, match=message):
        read("-")


def test_short_rows_of_a_pipe_are_found_while_it_is_still_written(tmp_path):
    """Rows with an empty last cell are looked at once more, in what has been read so far."""
    pipe = tmp_path / "a.csv"
    os.mkfifo(pipe)
    rows = ["a,b\n", *(f"{k},{'x' * 100}\n" for k in range(30_000)), "1,\n", *["2,y\n"] * 30_000, "3\n"]
    writer = threading.Thread(target=pipe.write_text, args=("".join(rows),))
    writer.start()
    seen = []
    with open_table_file(pipe) as table, pytest.raises(TableError, match="line 60003: 1 cells, but 2 in the first"):
        seen.extend(map(len, table.blocks(1000)))
    writer.join()
    assert sum(seen) >= 59_000


def test_objects_that_share_no_key_are_refused(tmp_path):
    """A table of 5000 x 5000 cells of which one in 5000 is there."""
    content = "".join(f'{{"k{k}": {k}}}\n' for k in range(5000)).encode()
    tracemalloc.start()
    try:
        with pytest.raises(TableError, match="its 5000 objects have 5000 different keys"):
            read(write(tmp_path / "a.jsonl", content))
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"a,b\n1,2\n3\n", r"line 3: 1 cells, but 2 in the first row.*\(delimiter=\.\.\.\)"),
        ("a.csv", b"a,b\n" + b"1,2\n" * 200 + b"3\n", "line 202: 1 cells, but 2 in the first row"),
        ("a.csv", b"a,b\n" + b"1,2\n" * 200 + b"3,4,5\n", "line 202: 3 cells, but 2 in the first row"),
        ("a.csv", b"a,b\n" + b"1,2\n" * 200 + b'3,"4\n1,2\n', "line 202: a cell begins here .*end of data. Close"),
        (
            "a.csv",
            b'a,b\n1,"x\ny"\n' + b"1,2\n" * 200 + b'"3,4\n1,2\n',
            "line 204: a cell begins .*end of data",
        ),
        ("a.csv", b"a,b,c\n1,2\n", "line 2: 2 cells, but 3 in the first row"),
        ("a.parquet", b"\0\1", "is a binary file"),
        ("a.npy", b"\x93NUMPY\x01\x00", "cannot be read"),
        ("a.npz", b"PK\x03\x04 and nothing else", "cannot be read"),
        ("a.parquet", b"PAR1 and nothing else", r"cannot be read: .*write it again"),
        ("a.feather", b"ARROW1 and nothing else", r"cannot be read: .*write it again"),
        ("a.tar.gz", gzip.compress(bytes(257) + b"ustar" + bytes(300), mtime=0), "archive .tar.. Unpack it"),
        (
            "a.csv.gz",
            gzip.compress(b"PAR1....", mtime=0),
            "holds a parquet file, which is only read from an uncompressed file",
        ),
        ("a.jsonl", b'{"a": 1}\n{"a": [1]}\n', "row 1: .* not a JSON object of plain values"),
        ("a.jsonl", b'{"a": 1}\n5\n', "row 1: 5 is not a JSON object"),
        ("a.jsonl", b'{"a": 1}\n{"a"\n', "line 2: this is not valid JSON: Expecting"),
        ("a.json", b'[{"a": 1}, 5]', "row 1: 5 is not a JSON object"),
        ("a.json", b'[{"a": 1}, {"a"', "this is not valid JSON"),
        ("a.json", b"[]", "holds no rows"),
        ("a.json", b'[{"a": 1}] [{"a": 2}]', "this is not valid JSON: Extra data"),
        ("a.json", b'\xef\xbb\xbf[{"a": 1}, {"a": "\xff"}]', "cannot be read: 'utf-8' codec can't decode byte 0xff"),
        ("a.json", b'[{"a": ' + b"9" * 5001 + b"}]", r"value has 5001 digits\. Save it"),
        ("a.json", b"{}\n", "holds no rows"),
    ],
)
def test_what_is_no_table(tmp_path, name, content, message):
    if name.endswith(("parquet", "feather")):
        pytest.importorskip("pyarrow")
    with pytest.raises(TableError, match=message):
        read(write(tmp_path / name, content))


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"a,b\n1,2\n", "klingon", "there is no encoding 'klingon'"),
        (b"a,b\n1,2\n", "base64", "there is no encoding 'base64'"),
        (b"a,b\n1,\xff\n", "idna", "there is no encoding 'idna'"),
        (b"a,b\n1,\x81\n", "cp1252", "line 2: byte 0x81 is not a character in the encoding cp1252"),
        (b"a,b\n1,\xe9\n", "utf-8", "line 2: byte 0xe9 is not a character in the encoding utf-8"),
    ],
)
def test_encodings_that_do_not_fit(tmp_path, content, encoding, message):
    with pytest.raises(TableError, match=message):
        read(write(tmp_path / "a.csv", content), encoding=encoding)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp850"]
)
def test_encodings_that_are_named(tmp_path, encoding):
    content = "größe,b\n1,é\n".encode(encoding)
    assert read(write(tmp_path / "a.csv", content), encoding=encoding) == (["größe", "b"], [["1"], ["é"]])


def test_arrays_that_are_no_table(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object))
    np.save(tmp_path / "b.npy", np.zeros((2, 2, 2)))
    np.save(tmp_path / "c.npy", np.zeros((0, 2)))
    np.savez(tmp_path / "d.npz", X=np.zeros((3, 2)), y=np.zeros(4))
    for name, message in (("a.npy", "Save rows and columns"), ("b.npy", "and shape"), ("c.npy", "and shape"),
                          ("d.npz", "same number of rows")):  # fmt: skip
        with pytest.raises(TableError, match=message):
            read(tmp_path / name)


def test_archives(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("folder/", "")
        archive.writestr("folder/table.csv", "a,b\n1,2\n")
        archive.writestr("__MACOSX/folder/._table.csv", "x")
    assert read(tmp_path / "a.zip") == (["a", "b"], [["1"], ["2"]])
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        pass
    with pytest.raises(TableError, match="holds 0 files"):
        read(write(tmp_path / "c.zip", b"PK\x03\x04" + (tmp_path / "b.zip").read_bytes()))


def test_a_model_file_is_no_table(tmp_path):
    rows = np.linspace(-1, 1, 10)[:, None]
    TensorTrainRegressor(max_sweeps=0).fit(rows, rows[:, 0]).save(tmp_path / "a.csv")
    with pytest.raises(TableError, match="is a polytrain model file, not a table"):
        read(tmp_path / "a.csv")


def test_folders_and_nothing(tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        open_table_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_table_file(tmp_path / "nothing.csv")


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_without_pandas_the_remedy_is_told(tmp_path, monkeypatch, capsys, library):
    monkeypatch.setitem(sys.modules, library, None)
    path = write(tmp_path / "a.csv", "a,b\n1,2\n")
    with pytest.raises(ImportError, match=r"pip install 'polytrain\[tables\]'"):
        read(path)
    assert main(["fit", str(path), "--target", "b", "--out", str(tmp_path / "m")]) == 2
    assert "pip install 'polytrain[tables]'" in capsys.readouterr().err


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(TableError, match="standard input is closed"):
        open_table_file("-")


def test_messages_are_spelled_by_who_shows_them():
    error = TableError(f"bad cells. Try {option('delimiter', ';')} or {option('names')}.")
    assert str(error) == "bad cells. Try delimiter=';' or names=...."
    assert spell_options(error.args[0], lambda name, value: f"--{name}") == "bad cells. Try --delimiter or --names."
    assert str(TableError("plain")) == "plain"
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
