"""How text is understood: numbers and dates in the forms that people use, and what stays text."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytrain.columns.forms import DATE_PATTERNS, Form, find_form, is_number
from polytrain.records import read_value


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "-2.5", "1e3", ".5", "+4", "5."], [1, -2.5, 1000, 0.5, 4, 5]),
        (["1,5", "2"], [1.5, 2]),
        (["1,5e3", "-0,25"], [1500, -0.25]),
        (["1.234,5", "1.234.567", "7"], [1234.5, 1234567, 7]),
        (["1,234.5", "12,345,678"], [1234.5, 12345678]),
        (["1,23,456", "99"], [123456, 99]),
        (["1 234", "12\u00a0345,5"], [1234, 12345.5]),
        (["1'234.50", "2\u2019000"], [1234.5, 2000]),
        (["0,125", "1,250"], [0.125, 1.25]),
        (["$5", "-$1,200.50", "$-3", "4"], [5, -1200.5, -3, 4]),
        (["5 €", "1.000,00€"], [5, 1000]),
        (["CHF 1'000", "EUR"[:0] + "CHF 2.50"], [1000, 2.5]),
        (["12 %", "3.5%"], [12, 3.5]),
        (["(1,234)", "(5)", "7"], [-1234, -5, 7]),
        (["($1,234.00)", "$ 7"], [-1234, 7]),
        (["12-", "3"], [-12, 3]),
        (["\u22125", "3"], [-5, 3]),
    ],
)
def test_numbers(texts, values):
    form = find_form(texts)
    assert form.kind == "number"
    assert [form.parse(text) for text in texts] == values
    assert read_value("the form", asdict(form), Form) == form


@pytest.mark.parametrize(
    ("texts", "pattern", "days"),
    [
        (["2024-03-01", "2024-12-31"], "iso", ["2024-03-01", "2024-12-31"]),
        (["2024-03-01T10:30:15.25"], "iso", ["2024-03-01T10:30:15.25"]),
        (["2024-03-01 10:30Z", "2024-03-01 10:30:00+02:00"], "iso", ["2024-03-01T10:30", "2024-03-01T10:30"]),
        (["2024/03/01"], "%Y/%m/%d", ["2024-03-01"]),
        (["1.3.2024", "31.12.2024 8:05"], "%d.%m.%Y", ["2024-03-01", "2024-12-31T08:05"]),
        (["01/03/2024", "13/03/2024"], "%d/%m/%Y", ["2024-03-01", "2024-03-13"]),
        (["03/01/2024", "03/13/2024 1:30 PM"], "%m/%d/%Y", ["2024-03-01", "2024-03-13T13:30"]),
        (["1-Mar-2024", "12-December-2024"], "%d-%b-%Y", ["2024-03-01", "2024-12-12"]),
        (["1 Mar 2024"], "%d %b %Y", ["2024-03-01"]),
        (["March 1, 2024", "Sept. 5, 2024"], "%b %d, %Y", ["2024-03-01", "2024-09-05"]),
        (["01.03.24", "31.12.69"], "%d.%m.%y", ["2024-03-01", "1969-12-31"]),
        (["3/1/24 12:00 am", "3/31/24"], "%m/%d/%y", ["2024-03-01", "2024-03-31"]),
    ],
)
def test_dates(texts, pattern, days):
    form = find_form(texts)
    assert form == Form("date", pattern=pattern)
    assert [np.datetime64(form.parse(text), "us") for text in texts] == [np.datetime64(day, "us") for day in days]
    assert read_value("the form", asdict(form), Form) == form


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["a", "1"],
        ["yes", "no"],
        ["True", "False"],
        ["$5", "€5"],
        ["12 %", "0.12"],
        ["1.2.3", "1.10.0"],
        ["10:30"],
        ["2024-02-30"],
        ["31.2.2024"],
        ["1,2,3"],
        ["1,5", "1.5"],
        ["1_000"],
        ["inf"],
        ["1e999"],
        ["2024-13-01"],
        ["--5"],
        ["\uff11"],
    ],
)
def test_text(texts):
    assert find_form(texts) == Form("text")


def test_whole_numbers_are_no_dates():
    assert find_form(["20240301", "20241231"]) == find_form(["1999", "2024"]) == Form("number")


def test_signs_decide_what_is_ambiguous():
    texts = ["1,234", "5,678"]
    assert find_form(texts) == Form("number", ".", ",", guessed=True)
    assert find_form(texts, delimiter=";") == Form("number", ",", ".", guessed=True)
    assert find_form(texts, decimal=",") == Form("number", ",", ".")
    assert find_form(texts, decimal=".") == Form("number", ".", ",")
    assert find_form(["€1,234"], delimiter=";") == Form("number", ".", ",", "€")  # money has no three decimals
    assert find_form(["1.234"]) == find_form(["1.234"], delimiter=";") == Form("number")
    assert find_form(["1.234"], decimal=",") == Form("number", ",", ".")
    assert find_form(["1.5"], decimal=",") == find_form(["12"], decimal=",") == Form("number")
    assert find_form(["3/4/2024"]) == Form("date", pattern="%m/%d/%Y", guessed=True)
    assert find_form(["3/4/2024"], delimiter=";").pattern == find_form(["3/4/2024"], decimal=",").pattern == "%d/%m/%Y"
    assert find_form(["3-4-2024"]) == Form("date", pattern="%d-%m-%Y", guessed=True)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (Form("number"), "numbers"),
        (Form("text"), "text"),
        (Form("truth"), "true and false"),
        (Form("number", ",", "."), "numbers, such as '1.234,5'"),
        (Form("number", ",", " "), "numbers, such as '1 234,5'"),
        (Form("number", ".", ",", "$"), "numbers, such as '1,234.5 $'"),
        (Form("number", ".", "", "EUR"), "numbers, such as '1234.5 EUR'"),
        (Form("number", unit="%"), "numbers, such as '1234.5 %'"),
        (Form("date"), "dates, such as '2024-12-31'"),
        (Form("date", pattern="%d.%m.%Y"), "dates, such as '31.12.2024'"),
        (
            Form("date", pattern="%m/%d/%Y", guessed=True),
            "dates, such as '12/31/2024' (another form would fit, too)",
        ),
        (Form("date", pattern="%b %d, %Y"), "dates, such as 'Dec 31, 2024'"),
    ],
)
def test_descriptions(form, words):
    assert form.describe() == words
    if form.kind in ("number", "date") and not form.guessed:
        example = words.partition("such as ")[2].strip("'\"") or "5"
        assert form.parse(example) is not None


@pytest.mark.parametrize("pattern", DATE_PATTERNS)
def test_every_pattern_has_words_that_it_understands(pattern):
    form = Form("date", pattern=pattern)
    assert form.parse(form.describe().partition("such as ")[2].strip("'")) is not None


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "number",
        {},
        {"kind": "words"},
        {"kind": ["number"]},
        {"kind": "number", "decimal": ";"},
        {"kind": "number", "thousands": "."},
        {"kind": "number", "thousands": "0"},
        {"kind": "number", "decimal": ",", "thousands": ","},
        {"kind": "number", "unit": "(a+)+"},
        {"kind": "number", "unit": 1},
        {"kind": "date", "pattern": "%c"},
        {"kind": "date", "guessed": 1},
        {"kind": "date", "more": "x"},
        {1: 2, "kind": "date"},
    ],
)
def test_what_is_no_form(content):
    if isinstance(content, dict) and content:
        content = asdict(Form("number")) | content
    with pytest.raises(ValueError, match=r"not plausible|is not the form of a column"):
        read_value("the form", content, Form)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_python_agrees_about_plain_numbers(value):
    assert Form("number").parse(repr(value)) == value
    assert is_number(repr(value))
    assert find_form([repr(value)]) == Form("number")


@given(st.text(st.sampled_from("0123456789.,'eE+-() $€%"), max_size=10))
def test_a_form_fits_what_it_was_found_for(text):
    form = find_form([text.strip()])
    if form.kind != "text":
        assert form.parse(text.strip()) is not None
