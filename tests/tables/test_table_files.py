"""Reading tables: the same rows come out of every kind of file, and what is no table is refused."""

import io
import sys

import numpy as np
import pytest
from polytrain.tables.cells import DEFAULT_MISSING, as_numbers, as_text, is_number

from polytrain import TensorTrainRegressor
from polytrain.tables import TableError, open_table


def read(path, n_rows=2, **options):
    """Return names and all columns."""
    with open_table(path, **options) as table:
        columns = [[] for _ in range(table.n_columns)]
        for block in table.blocks(n_rows):
            assert 0 < len(block) <= n_rows
            for whole, part in zip(columns, block.columns, strict=True):
                whole.extend(part.tolist() if isinstance(part, np.ndarray) else part)
        return table.names, columns


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
    ],
)
def test_text(tmp_path, name, text):
    assert read(write(tmp_path / name, text)) == (["x", "y"], [["1", "2", "3"], ["red", "blue", "red"]])


def test_places_are_lines_of_the_file(tmp_path):
    path = write(tmp_path / "a.csv", 'x,y\n\n1,"two\nlines"\n2,b\n')
    with open_table(path) as table:
        (block,) = table.blocks()
    assert [block.place(k) for k in range(2)] == ["line 4", "line 5"]
    assert block.columns[1] == ["two\nlines", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", None),
        ("a,b\n3,4\n", ["a", "b"]),
        ("a,2\n3,4\n", None),
        ("a,b\nc,d\ne,d\n", ["a", "b"]),
        ("a,b\nc,b\n", None),  # b is a value
        ("a,a\n1,2\n", None),
        ("a,?\n1,2\n", None),
        ("a,\n1,2\n", None),
        ("a,b\n", None),
    ],
)
def test_header_is_found_out(tmp_path, text, expected):
    path = write(tmp_path / "a.csv", text)
    assert read(path)[0] == expected
    assert read(path, header="no")[0] is None


def test_delimiter_within_quotes_does_not_count(tmp_path):
    assert read(write(tmp_path / "a.csv", '"a,b,c";d\n1;2\n'))[0] == ["a,b,c", "d"]
    assert read(write(tmp_path / "b.csv", "a,b\n1,2\n"), delimiter=";", header="no")[1] == [["a,b", "1,2"]]


def test_long_tables_are_the_same_in_any_blocks(tmp_path):
    path = write(tmp_path / "a.csv", "".join(f"{k},{k % 3}\n" for k in range(257)))
    for n_rows in (1, 100, 257, 1000):
        assert read(path, n_rows)[1] == [[str(k) for k in range(257)], [str(k % 3) for k in range(257)]]


def test_arrays(tmp_path):
    rows = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "a.npy", rows.astype(np.int16))
    assert read(tmp_path / "a.npy") == (None, rows.T.tolist())
    np.save(tmp_path / "b.npy", np.array([["a", " b"], ["c", "d"]]))
    assert read(tmp_path / "b.npy") == (None, [["a", "c"], ["b", "d"]])
    np.savez(tmp_path / "c.npz", X=rows, y=np.array(["p", "q", "p"]))
    assert read(tmp_path / "c.npz") == (["X0", "X1", "y"], [*rows.T.tolist(), ["p", "q", "p"]])
    np.savez(tmp_path / "d.npz", rows)
    assert read(tmp_path / "d.npz")[0] is None


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table(
        {
            "n": pyarrow.array([1, None, 3]),
            "t": ["a", None, " b"],
            "b": [True, False, None],
            "d": pyarrow.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    names, columns = read(tmp_path / "a.parquet")
    assert names == ["n", "t", "b", "d"]
    assert np.isnan(columns[0][1])
    assert columns[0][::2] == [1.0, 3.0]
    assert columns[1:] == [["a", "", "b"], ["True", "False", ""], ["u", "v", "u"]]


def test_standard_input(monkeypatch):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a,b\n1,2\n")))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read("-") == (["a", "b"], [["1"], ["2"]])
    assert not stdin.buffer.closed


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n", "holds no rows"),
        ("a.csv", b"a,b\n1,2\n3\n", r"line 3: 1 cells, but 2 in the first row"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0", "is a binary file"),
        ("a.csv", b"a,b\n1,caf\xe9\n", "not UTF-8 text: byte 0xe9"),
        ("a.csv", b'a,b\n"' + b"x" * 200_000 + b'",1\n', "line 2: field larger than"),
        ("a.npy", b"a,b\n1,2\n", "is no npy file, as its name says: its content is text"),
        ("a.parquet", b"\0\1", "content is binary"),
        ("a.npy", b"\x93NUMPY\x01\x00", "cannot be read"),
        ("a.npz", b"PK\x03\x04 and nothing else", "cannot be read"),
        ("a.parquet", b"PAR1 and nothing else", r"cannot be read: .*Write the Parquet file anew"),
    ],
)
def test_what_is_no_table(tmp_path, name, content, message):
    with pytest.raises(TableError, match=message):
        read(write(tmp_path / name, content))


def test_arrays_that_are_no_table(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object))
    np.save(tmp_path / "b.npy", np.zeros((2, 2, 2)))
    np.save(tmp_path / "c.npy", np.zeros((0, 2)))
    np.savez(tmp_path / "d.npz", X=np.zeros((3, 2)), y=np.zeros(4))
    for name, message in (("a.npy", "has dtype object"), ("b.npy", "3 dimensions"), ("c.npy", "no rows"),
                          ("d.npz", "same number of rows")):  # fmt: skip
        with pytest.raises(TableError, match=message):
            read(tmp_path / name)


def test_a_model_file_is_no_table(tmp_path):
    rows = np.linspace(-1, 1, 10)[:, None]
    TensorTrainRegressor(max_sweeps=0).fit(rows, rows[:, 0]).save(tmp_path / "a.csv")
    with pytest.raises(TableError, match="is a polytrain model file, not a table"):
        read(tmp_path / "a.csv")


def test_folders_and_nothing(tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_table(tmp_path / "nothing.csv")


@pytest.mark.parametrize(
    ("header", "message"), [("a,a\n1,2\n", "has the column 'a' twice"), ("a,\n1,2\n", "column 1 has no name")]
)
def test_bad_headers(tmp_path, header, message):
    with pytest.raises(TableError, match=message):
        read(write(tmp_path / "a.csv", header), header="yes")


def test_numbers_as_python_reads_them_one_by_one():
    cells = ["1", "-2.5", "1e3", "", "?", "NA", " 7".strip(), ".5", "+4"]
    expected = [float(cell) if is_number(cell) else np.nan for cell in cells]
    numbers, wrong = as_numbers(cells, DEFAULT_MISSING)
    assert wrong is None
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("cell", ["a", "1_000", "inf", "-Infinity", "1,5", "0x10", "1e999", "nan"])
def test_what_is_no_number(cell):
    assert not is_number(cell)
    assert as_numbers(["1", cell, "b"], ())[1] == 1


def test_text_of_numbers():
    assert as_text(np.array([1.0, 2.5, np.nan, -3.0]), ()) == ["1", "2.5", None, "-3"]
    assert as_text(["a", "", "?"], ("?",)) == ["a", None, None]
