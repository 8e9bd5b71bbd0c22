"""Whatever is in a file that should be a table: rows come out, or a `TableError`, and never anything else."""

import bz2
import gzip
import io
import lzma
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest

from polytrain.columns.forms import DEFAULT_MISSING, Form
from polytrain.tables import TableError
from polytrain.tables.cells import FileCells
from polytrain.tables.open_file import open_table_file

ROWS = np.random.default_rng(0).normal(size=(30, 3))
WORDS = np.array([["red", "blüe"], ["green", "x" * 9], ["", "漢字"]])


def saved(write, *arguments, **named):
    stream = io.BytesIO()
    write(stream, *arguments, **named)
    return stream.getvalue()


def parquet():
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"n": [1, None, 3] * 5, "t": ["a", None, "bé"] * 5, "b": [True, False, None] * 5}
    table = pyarrow.table({**columns, "d": pyarrow.array(["u", "v", "u"] * 5).dictionary_encode()})
    stream = pyarrow.BufferOutputStream()
    parquet.write_table(table, stream)
    return stream.getvalue().to_pybytes()


def feather():
    pyarrow = pytest.importorskip("pyarrow")
    stream = pyarrow.BufferOutputStream()
    rows = pyarrow.table({"n": [1, None, 3] * 5, "t": ["a", None, "bé"] * 5, "b": [True, False, None] * 5})
    with pyarrow.ipc.new_file(stream, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=4)
    return stream.getvalue().to_pybytes()


def zstandard():
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.compress(b"size,kind,y\n" + b"1,b,2\n" * 50, codec="zstd", asbytes=True)


def zipped():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", "size,kind,y\n" + "1,b,2\n" * 50)
    return stream.getvalue()


FILES = {
    "numbers.npy": lambda: saved(np.save, ROWS),
    "integers.npy": lambda: saved(np.save, np.arange(12, dtype=">i2").reshape(4, 3)),
    "columns.npy": lambda: saved(np.save, np.asfortranarray(ROWS.astype(np.float16))),
    "text.npy": lambda: saved(np.save, WORDS),
    "bytes.npy": lambda: saved(np.save, np.array([b"a", b"bc"])),
    "plain.npz": lambda: saved(np.savez, X=ROWS, y=np.array(["p", "q", "p"] * 10)),
    "packed.npz": lambda: saved(np.savez_compressed, X=ROWS, y=np.array(["p", "q", "p"] * 10)),
    "one.npz": lambda: saved(np.savez, ROWS),
    "text.csv": lambda: 'size,kind,y\n1,"u, v",a\n2.5,é,b\n?,"x\ny",a\n'.encode() * 3,
    "long.csv": lambda: b"size,kind,y\n" + 'a,"b ""c""",1.5\n"d\ne",é,-2\n'.encode() * 30,
    "wide.csv": lambda: ("size;kind;y\n" + "1,5;ä;a\n" * 20).encode("utf-16"),
    "text.csv.gz": lambda: gzip.compress(b"size,kind,y\n" + b"1,b,2\n" * 50),
    "text.csv.bz2": lambda: bz2.compress(b"size,kind,y\n" + b"1,b,2\n" * 50),
    "text.csv.xz": lambda: lzma.compress(b"size,kind,y\n" + b"1,b,2\n" * 50),
    "text.csv.zst": zstandard,
    "text.zip": zipped,
    "rows.jsonl": lambda: '{"a": 1, "b": "é", "c": true}\n{"a": 2.5, "c": null}\n'.encode() * 20,
    "rows.json": lambda: b'[{"a": 1, "b": "x"},\n' + b'{"a": 2.5, "c": null},' * 20 + b'{"a": 3}]',
    "rows.parquet": parquet,
    "rows.feather": feather,
}


def read(path):
    """Read all rows, and make values of them; what a user would see is that this works, or a `TableError`."""
    missing = frozenset(DEFAULT_MISSING)
    n_rows = 0
    try:
        with open_table_file(path) as table:
            for frame in table.blocks(7):
                assert list(frame) == table.names
                for k in range(len(table.names)):
                    column = FileCells(frame.iloc[:, k], table, missing)
                    codes, _ = column.coded
                    assert len(codes) == len(column.series) == len(frame)
                    form = column.find_form() or Form("text")
                    if form.kind != "text":
                        assert column.values(form)[1] is None or column.is_typed
                n_rows += len(frame)
    except TableError:
        return None
    return n_rows


def mutate(content, rng):
    """Damage some bytes, more often those of headers, which come first or last."""
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(damaged))
        if rng.random() < 0.6:
            place = min(int(rng.expovariate(1 / 60)), len(damaged) - 1)
            place = rng.choice((place, len(damaged) - 1 - place))
        kind = rng.randrange(7)
        if kind == 0:
            damaged[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[place] = rng.randrange(256)
        elif kind == 2:
            damaged[place : place + 4] = rng.choice((b"\xff" * 4, b"\0" * 4, struct.pack("<i", rng.getrandbits(31))))
        elif kind == 3:
            del damaged[place : place + rng.choice((1, 2, 50))]
        elif kind == 4:
            damaged[place:place] = rng.choice((b"\0", b"9", b"(", b"}", b"'", b"\n", b"\xff\xd8", b"99999999999", b"O"))
        elif kind == 5:
            damaged[place:place] = damaged[place : place + rng.randrange(1, 40)]
        else:
            del damaged[place:]
        if not damaged:
            break
    return bytes(damaged)


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    monkeypatch.setattr("polytrain.tables.open_file._SNIFF_BYTES", 100)


def check_mutations(tmp_path, name, count, seed):
    content, rng = FILES[name](), random.Random(f"{name} {seed}")
    path = tmp_path / name
    path.write_bytes(content)
    assert read(path)
    for number in range(count):
        damaged = mutate(content, rng)
        path.write_bytes(damaged)
        try:
            read(path)
        except Exception as error:
            pytest.fail(f"mutation {number} of {name}: {error!r} of {damaged[:200]!r}")


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(tmp_path, name):
    check_mutations(tmp_path, name, 60, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_many_damaged_files(tmp_path, name):
    check_mutations(tmp_path, name, 2000, 1)


def npy(header, data=b""):
    """An .npy file with this header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3)}", "cannot be read"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -3)}", "cannot be read"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000)}", "and shape"),
        ("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}", "and shape"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "cannot be read"),
        ("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,)}", "has dtype datetime64"),
        ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", "has dtype"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", "and shape"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1)", "cannot be read"),
        ("{'descr': 'nothing', 'fortran_order': False, 'shape': (1,)}", "cannot be read"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1.5,)}", "cannot be read"),
        ("((((" * 200, "cannot be read"),
        ("1" * 9000, "cannot be read"),
    ],
)
def test_headers_that_lie(tmp_path, header, message):
    (tmp_path / "a.npy").write_bytes(npy(header, b"\0" * 16))
    with pytest.raises(TableError, match=message):
        open_table_file(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy(header, b"\0" * 16))
    with pytest.raises(TableError, match=message):
        open_table_file(tmp_path / "a.npz")


class Trap:
    """What a pickle of somebody else might do."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_nothing_is_unpickled(tmp_path):
    pickled = pickle.dumps(Trap())
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"
    (tmp_path / "a.npy").write_bytes(npy(header, pickled))
    (tmp_path / "b.npy").write_bytes(pickled)
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("X.npy", npy(header, pickled))
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        archive.writestr("X", pickled)
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(TableError):
            open_table_file(path)


def test_archives_that_unpack_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("polytrain.tables.open_file._MAX_UNPACKED_BYTES", 1 << 14)
    np.savez_compressed(tmp_path / "trap.npz", X=np.zeros((1 << 13, 2)))
    with pytest.raises(TableError, match=r"unpacks to more than \d+ bytes. Unpack it yourself"):
        open_table_file(tmp_path / "trap.npz")
    np.savez_compressed(tmp_path / "fine.npz", X=np.zeros((1 << 9, 2)))
    assert read(tmp_path / "fine.npz") == 1 << 9


def test_parquet_files_that_unpack_to_too_much(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr("polytrain.tables.open_file._MAX_UNPACKED_BYTES", 1 << 14)
    monkeypatch.setattr("polytrain.tables.open_file._MAX_PACKING", 10)
    path, rows = tmp_path / "trap.parquet", pyarrow.table({"a": np.zeros(1 << 12)})
    parquet.write_table(rows, path, use_dictionary=False, compression="zstd")
    with pytest.raises(TableError, match=r"unpacks to more than \d+ bytes. Write it without compression"):
        open_table_file(path)
    parquet.write_table(rows, path, compression="none", use_dictionary=False)  # as the message says
    assert read(path) == 1 << 12


def test_whole_numbers_beside_nan(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1, "b": true}\n{"a": NaN, "b": NaN}\n{"a": null}\n')
    with open_table_file(tmp_path / "a.jsonl") as table:
        (frame,) = table.blocks()
    assert [list(FileCells(frame[name], table)) for name in "ab"] == [["1", "", ""], ["True", "", ""]]


def test_columns_of_the_same_name(tmp_path):
    np.savez(tmp_path / "a.npz", X=ROWS, X1=ROWS[:, 0])
    with open_table_file(tmp_path / "a.npz") as table:
        assert table.names == ["X0", "X1", "X2", "X1.1"]
        assert "called 'X1.1'" in table.notes[0]
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for names, cleaned in ((["a", "a"], ["a", "a.1"]), (["a", ""], ["a", "Unnamed: 1"])):
        parquet.write_table(pyarrow.table([[1.0], [2.0]], names=names), tmp_path / "a.parquet")
        with open_table_file(tmp_path / "a.parquet") as table:
            assert table.names == cleaned


@pytest.mark.parametrize("name", ["trap.csv.gz", "trap.csv.bz2", "trap.csv.xz"])
def test_packed_text_that_unpacks_to_too_much(tmp_path, monkeypatch, name):
    monkeypatch.setattr("polytrain.tables.open_file._MAX_UNPACKED_BYTES", 1 << 14)
    monkeypatch.setattr("polytrain.tables.open_file._MAX_PACKING", 2)
    path, pack = tmp_path / name, {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[name[8:]]
    path.write_bytes(pack(b"a,b\n" + b"1,2\n" * 50_000))
    message = r"unpacks to more than \d+ bytes. Unpack it yourself"
    with pytest.raises(TableError, match=message), open_table_file(path) as table:
        list(table.blocks())
    path.write_bytes(pack(b"a,b\n" + b"1,2\n" * 50))
    assert read(path) == 50


def test_lines_that_are_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr("polytrain.tables.text_file._MAX_LINE_CHARACTERS", 1 << 18)
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 50 + b"x" * 1_000_000 + b",2\n")
    message = "line 52: the line has more than 262144 characters"
    with pytest.raises(TableError, match=message), open_table_file(path) as table:
        list(table.blocks())
    for end in (b"\n", b"\r"):
        path.write_bytes(end.join([b"a,b", *[b"1,2"] * 80_000]) + end)
        with open_table_file(path) as table:
            assert sum(map(len, table.blocks())) == 80_000
    (tmp_path / "a.json").write_text("[" + ", ".join(['{"a": 1}'] * 30_000) + "]")  # one line, as JSON may be
    with open_table_file(tmp_path / "a.json") as table:
        assert sum(map(len, table.blocks())) == 30_000
