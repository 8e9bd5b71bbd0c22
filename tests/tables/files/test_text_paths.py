"""The fast path through pyarrow and the slow one through the csv module see the same table, or the same mistake."""

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polytrain.tables import TableError
from polytrain.tables.files import ReadOptions, arrow_text, streams, text_table
from polytrain.tables.files.chunks import Chunks
from polytrain.tables.files.table import Block

pyarrow = pytest.importorskip("pyarrow")

# Pieces of which awkward texts are made: whole rows are common, so that some of them go through the fast path.
ROWS = ["1,a,x\n", "2.5,b,\n", '3,"c",y\n', '4,"d ""e""",z\n', '5,"f\ng",\n', "6, h ,\u00a0i\n", "7,j,k\r\n", ",,\n"]
ODD = [
    "\n",
    "  \n",
    "\r",
    '"',
    'l "m" n,2,3\n',
    '"o" p,2,3\n',
    ' "q",2,3\n',
    "1,2\n",
    "1,2,3,4\n",
    "\0",
    "é",
    "\ufeff",
    ",",
]
ODD += [
    '""\n',
    '"",2,\n',
    '8,"r\r\ns",t\n',
    '9,"u\rv",w\n',
    "\r\n",
    "\x1c1,2,3\x85\n",
    '10,"""x""",\n',
    "a" * 150 + ",2,3\n",
]
TEXTS = st.lists(st.one_of(st.sampled_from(ROWS * 3), st.sampled_from(ODD)), max_size=25).map("".join)


def read(content, fast, n_rows=3, **options):
    """Return all that can be told about a text, and whether pyarrow parsed some of it."""
    stream = streams.ByteStream(io.BytesIO(content), "a.csv")
    seen = []
    try:
        text = streams.TextStream(stream, "a.csv", "utf-8")
        table = text_table.TextTable(text, "a.csv", "a.csv", ReadOptions(**options), fast=fast)
        with table:
            seen.append((table.names, table.notes, table.n_columns, table.delimiter))
            rows = []
            for block in table.blocks(n_rows):
                assert isinstance(block, Block)
                assert 0 < len(block) <= n_rows
                columns = [list(column) for column in block.columns]
                assert {len(column) for column in columns} == {len(block)}
                rows += zip(block.places, *columns, strict=True)
            seen.append(rows)
    except TableError as error:
        seen.append(str(error))
    return seen


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(text_table, "SNIFF_BYTES", 20)
    monkeypatch.setattr(text_table, "_SNIFF_LINES", 3)
    monkeypatch.setattr(text_table, "CHUNK_BYTES", 60)


def check_paths(text, header, n_bytes):
    content = ("a,b,c\n1,2,3\n4,5,6\n" + text).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_table, "CHUNK_BYTES", n_bytes)
        assert read(content, True, header=header) == read(content, False, header=header)


HEADERS, SIZES = st.sampled_from(["yes", "no"]), st.sampled_from([30, 60, 1000])


@settings(max_examples=100, deadline=None)
@given(TEXTS, HEADERS, SIZES)
@example("a,b,c\n1,2,3\n" + "4,5,6\n" * 30 + '7,"8\n9",10\n' * 5, "yes", 60)
@example("a,b,c\n1,2,3\n" + "4,5,6\n" * 30 + '7,8"9,10\n' + "4,5,6\n" * 30, "yes", 60)
@example("a,b,c\n1,2,3\n" + '7,"8\n9,10\n' + "4,5,6\n" * 30, "yes", 60)
@example("\ufeff1,a,x\n", "yes", 30)
@example('1,a,x\n1,a,x\n6, h ,\u00a0i\n5,"f\ng",\n\0', "yes", 30)
def test_both_paths_agree(text, header, n_bytes):
    check_paths(text, header, n_bytes)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None)
@given(TEXTS, HEADERS, SIZES)
def test_both_paths_agree_on_many_texts(text, header, n_bytes):
    check_paths(text, header, n_bytes)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.text(st.sampled_from('ab",; \n\r\t|é'), max_size=5), min_size=3, max_size=3), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_is_written_is_read(rows, end, quoting):
    """What the csv module wrote comes back, stripped."""
    if quoting == csv.QUOTE_MINIMAL:  # it leaves a CR as it is, which would end the line
        rows = [[cell.replace("\r", "") for cell in row] for row in rows]
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator=end, quoting=quoting).writerows([["p", "q", "r"], ["1", "2", "3"], *rows])
    for fast in (True, False):
        head, cells = read(written.getvalue().encode(), fast, header="yes", delimiter=",")
        assert head[0] == ["p", "q", "r"]
        expected = [tuple(cell.strip() for cell in row) for row in [["1", "2", "3"], *rows]]
        assert [row[1:] for row in cells] == expected


@pytest.mark.parametrize(
    ("rows", "is_fast"),
    [
        ("4,5,6\n", True),
        ('4,"5, 6",7\n', True),
        ('4,"5\n6",7\n', True),
        ('4,"a ""b""",7\r\n', True),
        ("4,5,6\n\n", True),
        ('4, "5",6\n', False),
        ('4,5"6,7\n', False),
        ("4,5,6\r", False),
    ],
)
def test_which_path_is_taken(rows, is_fast, monkeypatch):
    parsed, parse = [], arrow_text.parse
    monkeypatch.setattr(arrow_text, "parse", lambda *arguments: parsed.append(parse(*arguments)) or parsed[-1])
    assert len(read(("a,b,c\n1,2,3\n4,5,6\n" + rows * 40).encode(), True)[1]) == 42
    assert all((chunk is not None) == is_fast for chunk in parsed)
    assert len(parsed) > 1


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("end", "message"),
    [
        (b"1,2\n", "line 43: 2 cells, but 3 in the first row"),
        (b'1,2,"3\n4\n\n', "line 43: a quote is opened here and not closed before the end of the file"),
        (b'1,"2\n3","4\n5\n', "line 44: a quote is opened here and not closed before the end of the file"),
        (b'1,2,"3\n' + b"4,5,6\n" * 30_000, "line 43: a quote is opened here and not closed within 131072 char"),
        (b'1,"2\r\n3","4\r\n' + b"5,6,7\r\n" * 30_000, "line 44: a quote is opened here and not closed within"),
        (b"1,2,caf\xe9\n", "line 43: byte 0xe9 makes no character in UTF-8"),
        (b"1,2,\0\n", "line 43: there is a NUL byte"),
        (b'1,2,"' + b"x" * 200_000 + b'"\n', "line 43: field larger than field limit"),
        (b"1,2," + b"x" * 200_000 + b"\n", "line 43: field larger than field limit"),
    ],
)
def test_mistakes_name_their_line(end, message, fast):
    seen = read(b"a,b,c\n" + b"1,2,3\n" * 41 + end, fast)
    assert message in seen[-1]


@pytest.mark.parametrize("fast", [True, False])
def test_comments_are_skipped_once(fast, monkeypatch):
    """A row that goes on in the second chunk does not let lines be skipped there, too."""
    monkeypatch.setattr(text_table, "_SNIFF_LINES", 6)
    rows = '1,"two\nlines",3\n' * 20
    text = f"# note\n# more\na,b,c\n{rows}"
    head, cells = read(text.encode(), fast)
    assert head[0] == ["a", "b", "c"]
    assert cells == [(5 + 2 * k, "1", "two\nlines", "3") for k in range(20)]


@pytest.mark.parametrize("fast", [True, False])
def test_a_late_value_in_the_column_that_was_left_out(fast):
    text = "a,b,c,\n" + "1,2,3,\n" * 200
    assert read(text.encode(), fast)[0][0] == ["a", "b", "c"]
    seen = read((text + "1,2,3,4\n").encode(), fast)
    assert "line 202: '4' stands in the last column" in seen[-1]


def test_a_line_without_end_is_not_gathered(monkeypatch):
    monkeypatch.setattr("polytrain.tables.files.chunks.MAX_LINE_BYTES", 1000)
    assert "a row of more than 1000 bytes" in read(b"x" * 2000, True)[-1]


def test_an_endless_line_is_read_in_few_pieces():
    """Each piece is joined with all before, which must not be done for every few bytes."""
    sizes = []

    class Endless:
        def read(self, n_bytes):
            sizes.append(n_bytes)
            return bytes(n_bytes)

    with pytest.raises(TableError, match="has a row of more than 8388608 bytes, the most that is read"):
        Chunks(Endless(), "a.csv").next(1 << 16)
    assert len(sizes) < 20
    assert sum(sizes) <= 1 << 24


@pytest.mark.parametrize("fast", [True, False])
def test_an_endless_row_is_not_gathered(fast, monkeypatch):
    """Quoted cells may go over lines, but not for ever."""
    monkeypatch.setattr(text_table, "MAX_LINE_BYTES", 1000)
    seen = read(b"a,b,c\n" + b"1,2,3\n" * 41 + b'1,"2' + b'\n","' * 1000, fast)
    assert "a row of more than" in seen[-1]


def test_too_many_columns_are_refused(monkeypatch):
    monkeypatch.setattr("polytrain.tables.files.table._MAX_COLUMNS", 5)
    assert read(b"a,b,c,d,e\n1,2,3,4,5\n", True)[0][0] == ["a", "b", "c", "d", "e"]
    assert "a.csv has 6 columns, and at most 5 are read" in read(b"a,b,c,d,e,f\n1,2,3,4,5,6\n", True)[-1]


@pytest.mark.parametrize("fast", [True, False])
def test_long_lines_have_names_too(fast):
    names = [f"name{k}" for k in range(100)]
    text = ",".join(names) + "\n" + (",".join("5" * 100) + "\n") * 9
    head, cells = read(text.encode(), fast)
    assert head[0] == names
    assert len(cells) == 9
