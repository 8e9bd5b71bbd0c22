"""Cells become values and codes: the fast columns equal the slow ones, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytrain.columns.date_texts import DATE_PATTERNS
from polytrain.tables.files import DEFAULT_MISSING, Form
from polytrain.tables.files.cells import DateColumn, NumberColumn, TextColumn, TruthColumn, number_text

MARKERS = frozenset(DEFAULT_MISSING)
NUMBER_FORMS = [
    Form("number"),
    Form("number", ","),
    Form("number", ".", ","),
    Form("number", ",", "."),
    Form("number", ",", " "),
    Form("number", ".", "'", prefix="CHF"),
    Form("number", ".", ",", prefix="$", suffix="$"),
    Form("number", suffix="%"),
    Form("number", ",", ".", suffix="€"),
]
DATE_FORMS = [Form("date", pattern=pattern) for pattern in DATE_PATTERNS]
GROUPS = st.lists(
    st.sampled_from(["1", "23", "456", "000", "0", "7890", "99999999999999999999"]), min_size=1, max_size=4
)


@st.composite
def numbers(draw):
    """Text that is a number in some form, or nearly."""
    between, point = draw(st.sampled_from(["", ",", ".", " ", "'", "\u2019", "\u202f"])), draw(st.sampled_from(".,"))
    figure = between.join(draw(GROUPS)) + draw(
        st.sampled_from(["", point, point + "5", point + "250", point + "123456789"])
    )
    figure += draw(st.sampled_from(["", "", "", "e3", "E-05", "e+400", "e-400", "e"]))
    affix = draw(st.sampled_from(["", "", "$", "€", "CHF", "CHF ", "% "]))
    text = draw(
        st.sampled_from(
            ["{a}{f}", "{f}{a}", "-{a}{f}", "{a}-{f}", "({a}{f})", "{a}({f})", "{f}-", "+{f}", "\u2212{f} {a}"]
        )
    )
    return text.format(a=affix, f=figure)


@st.composite
def moments(draw):
    """Text that is a date in some form, or nearly."""
    day, month = (
        draw(st.sampled_from(["1", "09", "12", "28", "30", "31", "32"])),
        draw(st.sampled_from(["1", "02", "12", "13"])),
    )
    name, year = (
        draw(st.sampled_from(["Jan", "feb.", "March", "Sept", "Xyz"])),
        draw(st.sampled_from(["1969", "2024", "24", "99", "0001"])),
    )
    shape = draw(
        st.sampled_from(
            ["{y}-{m}-{d}", "{d}.{m}.{y}", "{d}/{m}/{y}", "{m}/{d}/{y}", "{y}/{m}/{d}", "{d}-{n}-{y}", "{n} {d}, {y}"]
        )
    )
    clock = draw(
        st.sampled_from(
            ["", "", " 00:00", "T23:59:59", " 9:05", " 12:30 am", " 1:15:30 PM", " 13:00 pm", " 10:20:30.5"]
        )
    )
    clock += draw(st.sampled_from(["", "", "Z", "+02:00", "-0330", " UTC", "1234567"])) if clock else ""
    return shape.format(d=day, m=month, n=name, y=year) + clock


JUNK = st.sampled_from(
    ["", "?", "NA", "nan", "inf", "-Infinity", "1_000", "0x1", "\uff11", "True", "false", "1", "0", "x", "-", "."]
)


def check_equal(first, second):
    """Whether values and first misfits are equal, bit by bit where they are numbers."""
    values, wrong = first
    others, other_wrong = second
    assert wrong == other_wrong
    assert values.dtype == others.dtype
    assert len(values) == len(others)
    if wrong is None:
        bits = [
            array.view(np.int64) if array.dtype.kind == "M" else np.where(np.isnan(array), 0.5, array)
            for array in (values, others)
        ]
        np.testing.assert_array_equal(bits[0], bits[1])
        if values.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(values[~np.isnan(values)]), np.signbit(others[~np.isnan(others)]))


def check_both(texts, missing):
    pyarrow = pytest.importorskip("pyarrow")
    from polytrain.tables.files.arrow_cells import ArrowTextColumn

    slow, fast = TextColumn(texts), ArrowTextColumn(pyarrow.array(["front", *texts], pyarrow.string()).slice(1))
    assert len(fast) == len(texts)
    assert list(fast) == list(texts)
    for form in (*NUMBER_FORMS, *DATE_FORMS, Form("truth")):
        check_equal(fast.values(form, missing), slow.values(form, missing))
        for text in texts:  # alone, so that some fit
            one = ArrowTextColumn(pyarrow.array([text], pyarrow.string()))
            check_equal(one.values(form, missing), TextColumn([text]).values(form, missing))
    codes, known = fast.coded(missing)
    expected, names = slow.coded(missing)
    assert codes.dtype == expected.dtype == np.int64
    assert codes.tolist() == expected.tolist()
    assert known == names


COLUMNS_OF_NUMBERS = st.lists(st.one_of(numbers(), JUNK), max_size=6)
SOME_MARKERS = st.sampled_from([MARKERS, frozenset(), frozenset(["1", "x"])])


@settings(max_examples=12, deadline=None)
@given(COLUMNS_OF_NUMBERS, SOME_MARKERS)
def test_numbers_agree(texts, missing):
    check_both([text.strip() for text in texts], missing)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(COLUMNS_OF_NUMBERS, SOME_MARKERS)
def test_many_numbers_agree(texts, missing):
    check_both([text.strip() for text in texts], missing)


COLUMNS_OF_DATES = st.lists(st.one_of(moments(), JUNK), max_size=6)


@settings(max_examples=8, deadline=None)
@given(COLUMNS_OF_DATES, st.sampled_from([MARKERS, frozenset(["31.12.2024"])]))
def test_dates_agree(texts, missing):
    check_both([text.strip() for text in texts], missing)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(COLUMNS_OF_DATES, st.sampled_from([MARKERS, frozenset(["31.12.2024"])]))
def test_many_dates_agree(texts, missing):
    check_both([text.strip() for text in texts], missing)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_floats_come_back_to_the_last_bit(values):
    pyarrow = pytest.importorskip("pyarrow")
    from polytrain.tables.files.arrow_cells import ArrowTextColumn

    for form, point in ((Form("number"), "."), (Form("number", ","), ",")):
        texts = [repr(value).replace(".", point) for value in values]
        for column in (TextColumn(texts), ArrowTextColumn(pyarrow.array(texts))):
            check_equal(column.values(form, MARKERS), (np.array(values), None))


@given(st.lists(st.text(max_size=4)))
def test_trim_is_strip(texts):
    pyarrow = pytest.importorskip("pyarrow")
    from polytrain.tables.files.arrow_cells import trim

    spaced = [*texts, *(f"\u3000{text}\x85 " for text in texts)]
    for start in (0, 1):
        cells = pyarrow.array(["", *spaced], pyarrow.string()).slice(start)
        assert trim(cells).to_pylist() == [text.strip() for text in ["", *spaced][start:]]


def test_typed_numbers():
    column = NumberColumn(np.array([3.0, np.nan, 0.25, -0.0, 1e300]))
    assert list(column) == ["3", "", "0.25", "0", "1e+300"]
    values, wrong = column.values(Form("number", ","), MARKERS)
    assert wrong is None
    np.testing.assert_array_equal(values, [3.0, np.nan, 0.25, 0.0, 1e300])
    codes, texts = column.coded(frozenset(["3"]))
    assert codes.tolist() == [-1, -1, 0, 1, 2]
    assert texts == ["0.25", "0", "1e+300"]
    assert column.values(Form("date"), MARKERS)[1] == 0
    assert column.values(Form("truth"), MARKERS)[1] == 0
    assert NumberColumn(np.array([1.0, np.inf])).values(Form("number"), MARKERS)[1] == 1
    np.testing.assert_array_equal(
        column.values(Form("number"), frozenset(["3"]))[0], [np.nan, np.nan, 0.25, 0.0, 1e300]
    )


def test_large_whole_numbers_stay_apart():
    column = NumberColumn(np.array([2**60, 2**60 + 1, 5]), np.array([False, False, True]))
    assert list(column) == [str(2**60), str(2**60 + 1), ""]
    assert column.coded(MARKERS)[1] == [str(2**60), str(2**60 + 1)]


def test_typed_truth_and_dates():
    truth = TruthColumn(np.array([True, False, True]), np.array([False, False, True]))
    assert list(truth) == ["True", "False", ""]
    for form in (Form("truth"), Form("number")):
        np.testing.assert_array_equal(truth.values(form, MARKERS)[0], [1.0, 0.0, np.nan])
    assert truth.values(Form("date"), MARKERS)[1] == 0
    dates = DateColumn(np.array(["2024-01-05", "NaT", "2024-01-05T10:30:00.25"], dtype="datetime64[ns]"))
    assert list(dates) == ["2024-01-05", "", "2024-01-05T10:30:00.25"]
    values, wrong = dates.values(Form("date", pattern="%d.%m.%Y"), MARKERS)
    assert wrong is None
    assert values.dtype == "datetime64[us]"
    assert np.isnat(values).tolist() == [False, True, False]
    assert dates.values(Form("number"), MARKERS)[1] == 0
    assert dates.coded(MARKERS)[0].tolist() == [0, -1, 1]


def test_text_of_truth_is_understood_where_it_must_be():
    values, wrong = TextColumn(["True", "FALSE", "1", "0", "?"]).values(Form("truth"), MARKERS)
    assert wrong is None
    np.testing.assert_array_equal(values, [1, 0, 1, 0, np.nan])
    assert TextColumn(["True", "2"]).values(Form("truth"), MARKERS)[1] == 1
    with pytest.raises(ValueError, match="text has no values"):
        TextColumn(["a"]).values(Form("text"), MARKERS)


def test_shortest_text():
    assert [number_text(text) for text in ("3.0", "2.50", "1e3", "a", "1_0")] == ["3", "2.5", "1000", "a", "1_0"]
