"""Whatever is in a file that should be a table: rows come out, or a `TableError`, and never anything else."""

import bz2
import gzip
import io
import lzma
import pickle
import random
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from polytrain.tables import TableError
from polytrain.tables.files import DEFAULT_MISSING, Form, find_form, open_table, text_table

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
        with open_table(path) as table:
            assert table.names is None or len(table.names) == table.n_columns
            for block in table.blocks(7):
                assert len(block.columns) == table.n_columns
                for column in block.columns:
                    codes, texts = column.coded(missing)
                    assert len(codes) == len(column) == len(block)
                    "".join([*texts, column[0]]).encode()
                    form = column.form or find_form(texts)
                    if form.kind != "text":
                        assert column.values(form, missing)[1] is None or column.form == Form("number")
                n_rows += len(block)
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
def small_chunks(monkeypatch):
    monkeypatch.setattr(text_table, "SNIFF_BYTES", 30)
    monkeypatch.setattr(text_table, "_SNIFF_LINES", 3)
    monkeypatch.setattr(text_table, "CHUNK_BYTES", 100)


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
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3)}", "too short"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -3)}", "too short"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000)}", "no rows"),
        ("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}", "no rows"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "has dtype object"),
        ("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,)}", "has dtype datetime64"),
        ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", "has dtype"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", "0 dimensions"),
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
        open_table(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy(header, b"\0" * 16))
    with pytest.raises(TableError, match=message):
        open_table(tmp_path / "a.npz")


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
            open_table(path)


def test_archives_that_unpack_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("polytrain.tables.files.array_table._MAX_UNPACKED_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "trap.npz", X=np.zeros((1 << 19, 2)))
    with pytest.raises(TableError, match=r"bytes and would unpack to \d+. Save it with numpy.savez"):
        open_table(tmp_path / "trap.npz")
    np.savez_compressed(tmp_path / "fine.npz", X=np.zeros((1 << 14, 2)))
    assert read(tmp_path / "fine.npz") == 1 << 14


def test_parquet_files_that_unpack_to_too_much(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "trap.parquet"
    # A text of 64 KiB that stands once in the file, and in 8192 rows.
    long_text = pyarrow.DictionaryArray.from_arrays(np.zeros(8192, dtype=np.int32), ["x" * (1 << 16)])
    parquet.write_table(pyarrow.table({"a": long_text}), path, store_schema=False)  # text, not categories
    before = pyarrow.total_allocated_bytes()
    with open_table(path) as table:
        with pytest.raises(TableError, match=r"bytes and unpacks to more than .* Write it without compression"):
            next(table.blocks())
        assert pyarrow.total_allocated_bytes() - before < 1 << 24
    monkeypatch.setattr("polytrain.tables.files.typed_tables._MAX_UNPACKED_BYTES", 1 << 16)
    rows = pyarrow.table({"a": np.zeros(20_000), "b": ["u", "v"] * 10_000})
    parquet.write_table(rows, path)
    with open_table(path) as table, pytest.raises(TableError, match="unpacks to more than"):
        list(table.blocks())
    parquet.write_table(rows, path, compression="none", use_dictionary=False)  # as the message says
    with open_table(path) as table:
        assert sum(map(len, table.blocks())) == 20_000


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "string_view"])
def test_arrow_files_that_unpack_to_too_much(tmp_path, monkeypatch, kind):
    """A text of 1 KiB that stands once in the file, and in 8192 rows."""
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setattr("polytrain.tables.files.typed_tables._MAX_UNPACKED_BYTES", 1 << 20)
    if kind == "string_view":  # length, first bytes, buffer and place of each text
        view = struct.pack("<i4sii", 1024, b"xxxx", 0, 0)
        buffers = [None, pyarrow.py_buffer(view * 8192), pyarrow.py_buffer(b"x" * 1024)]
        column = pyarrow.Array.from_buffers(pyarrow.string_view(), 8192, buffers)
    else:
        text = pyarrow.array(["x" * 1024]).cast(getattr(pyarrow, kind)())
        column = pyarrow.DictionaryArray.from_arrays(np.zeros(8192, dtype=np.int8), text)
    rows = pyarrow.table({"a": column})
    with pyarrow.ipc.new_file(str(tmp_path / "trap.arrow"), rows.schema) as writer:
        writer.write_table(rows)
    monkeypatch.setattr("polytrain.tables.files.typed_tables._MAX_PACKING", 10)
    with open_table(tmp_path / "trap.arrow") as table, pytest.raises(TableError, match="unpacks to more than"):
        next(table.blocks())


def test_wide_parquet_files_are_read_in_short_batches(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr("polytrain.tables.files.typed_tables._BATCH_CELLS", 100)
    columns = {f"x{k}": np.arange(25.0) for k in range(9)}
    parquet.write_table(pyarrow.table({**columns, "text": ["a", None, "1", " b", "c"] * 5}), tmp_path / "a.parquet")
    with open_table(tmp_path / "a.parquet") as table:
        blocks = list(table.blocks())
    assert [len(block) for block in blocks] == [10, 10, 5]
    text = blocks[1].columns[9]
    assert [text[row] for row in range(5)] == ["a", "", "1", "b", "c"]
    assert text.form is None  # the text has yet to be understood, as that of a category has not


def test_objects_that_share_no_key(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"k{number}": 1}}\n' for number in range(5000)))
    tracemalloc.start()
    try:
        with pytest.raises(TableError, match=r"its 5000 objects have 5000 different keys.* Give the objects the same"):
            next(open_table(path).blocks())
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()


def test_whole_numbers_beside_nan(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1, "b": true}\n{"a": NaN, "b": NaN}\n{"a": null}\n')
    with open_table(tmp_path / "a.jsonl") as table:
        (block,) = table.blocks()
    assert [[column[row] for row in range(3)] for column in block.columns] == [["1", "", ""], ["True", "", ""]]


def test_text_that_is_none(tmp_path):
    """Cells that Python has no text for, or that could not be written again."""
    for code in (0x110000, 0xD800):
        (tmp_path / "a.npy").write_bytes(
            npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", struct.pack("<I", code))
        )
        with open_table(tmp_path / "a.npy") as table, pytest.raises(TableError, match="cannot be read"):
            list(table.blocks())
    (tmp_path / "a.csv").write_bytes(b"a,b\n" + b"1,2\n" * 20_000 + b"1,\0\n")
    with open_table(tmp_path / "a.csv") as table, pytest.raises(TableError, match="line 20002: there is a NUL byte"):
        list(table.blocks())


def test_columns_of_the_same_name(tmp_path):
    np.savez(tmp_path / "a.npz", X=ROWS, X1=ROWS[:, 0])
    with open_table(tmp_path / "a.npz") as table:
        assert table.names == ["X0", "X1", "X2", "X1_2"]
        assert "numbered: 'X1_2'" in table.notes[0]
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for names, cleaned in ((["a", "a"], ["a", "a_2"]), (["a", ""], ["a", "column 1"])):
        parquet.write_table(pyarrow.table([[1.0], [2.0]], names=names), tmp_path / "a.parquet")
        with open_table(tmp_path / "a.parquet") as table:
            assert table.names == cleaned
