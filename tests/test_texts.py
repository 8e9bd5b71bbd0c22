"""Names, categories and labels of strangers in whatever the package prints, and the length of messages."""

import numpy as np
import pandas as pd
import pytest

from polytrain import TensorTrainClassifier, report
from polytrain.explain import effects, explain_local, feature_importances, partial_dependence, sobol_indices, top_terms
from polytrain.tables import TableError
from polytrain.tables.options import option
from polytrain.texts import listed, number_format, number_text, percent_text, short_list, tick_texts, unit_of
from power_models import power_classifier

# What obeys in a terminal, turns text in a browser, or hides in both.
EVIL = "\x1b]0;owned\x07\u202e\u2066\u200f\x9b\x7f\ufeff\n"
ROWS = pd.DataFrame({f"size{EVIL}": np.arange(60) % 7, f"kind{EVIL}": [f"{'uvw'[k % 3]}{EVIL}" for k in range(60)]})
Y = np.where(np.arange(60) % 7 + np.arange(60) % 3 > 4, f"yes{EVIL}", f"no{EVIL}")


@pytest.fixture(scope="module")
def model():
    return TensorTrainClassifier(basis="spline", bandwidth=1.0, rank=2, alpha=1e-3, random_state=0).fit(ROWS, Y)


@pytest.fixture(scope="module")
def power_model():
    numbers = ROWS.assign(**{f"kind{EVIL}": np.arange(60.0) % 3})
    return power_classifier(rank=2, random_state=0).fit(numbers, Y)


PRINTED = {
    "effects": lambda model, powers: effects(model),
    "main effect": lambda model, powers: effects(model).main[1],
    "pair effect": lambda model, powers: effects(model).pairs[0],
    "row effects": lambda model, powers: effects(model).of_rows(ROWS),
    "sobol indices": lambda model, powers: sobol_indices(model),
    "importances": lambda model, powers: feature_importances(model),
    "partial dependence": lambda model, powers: partial_dependence(model, [f"kind{EVIL}", f"size{EVIL}"]),
    "local explanations": lambda model, powers: explain_local(model, ROWS.set_index(Y)),
    "terms": lambda model, powers: top_terms(powers),
    "error of tables": lambda model, powers: TableError(f"no column {EVIL}, say {option('target', EVIL)}"),
    "choice": lambda model, powers: model.choice_,
    "summary": lambda model, powers: powers.summary(),
    "summary in a notebook": lambda model, powers: powers.summary()._repr_html_(),
    "fitted model": lambda model, powers: model.model_,
    "columns": lambda model, powers: model.model_.columns,
    "report": lambda model, powers: report(model, ROWS, Y, title=EVIL),
    "page": lambda model, powers: report(model, ROWS, Y, title=EVIL).html,
    "frame in a notebook": lambda model, powers: report(model, ROWS, Y, title=EVIL)._repr_html_(),
}


@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("write", [str, repr])
def test_everything_that_prints_is_harmless(name, write, model, power_model):
    text = write(PRINTED[name](model, power_model))
    letters = {letter for letter in text if not letter.isprintable()}
    assert letters <= {"\n", "\xa0"}, letters  # line breaks of its own, and the space before a per cent sign
    assert "owned\x07" not in text


@pytest.mark.parametrize("name", ["effects", "sobol indices", "partial dependence", "terms", "page"])
def test_a_name_is_one_line(name, model, power_model):
    """Line breaks of names are written out, like everything else in them."""
    assert "\\x1b]0;owned\\x07\\u202e\\u2066\\u200f\\x9b\\x7f\\ufeff\\n" in str(PRINTED[name](model, power_model))


def test_lists_in_messages_are_short():
    assert listed(["a", "b"]) == "a, b"
    assert listed(f"label {k}" * 50 for k in range(200_000)).endswith("..., ... (200000 in all)")
    assert len(listed("x" * 1000 for _ in range(200_000))) < 600
    assert short_list(np.array(["a", "b"])) == "['a', 'b']"
    assert short_list(np.arange(10)) == "[0, 1, 2, 3, 4, 5, 6, 7, ... (10 in all)]"


def test_messages_about_many_labels_are_short():
    many = np.arange(20_000)
    X = np.zeros((2, 2))
    with pytest.raises(ValueError, match=r"y has the labels \[-1\], but classes are \[0, 1, .*20000 in all") as e:
        TensorTrainClassifier().partial_fit(X, [-1, 0], classes=many)
    assert len(str(e.value)) < 300
    with pytest.raises(ValueError, match=r"20000 in all") as e:
        TensorTrainClassifier(class_weight=dict.fromkeys(many.tolist(), 1.0)).fit([[0.0], [1.0]], ["a", "b"])
    assert len(str(e.value)) < 300


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (True, "1"), (1998, "1998"), (9999, "9999"), (10_000, "10,000"), (-184_750, "-184,750"),
        (9999.6, "10,000"), (0.1, "0.1"), (1 / 3, "0.333"), (-0.0, "0"), (0.99997, "1.000"), (99.96, "100.0"),
        (0.0123456, "0.0123"), (1.23456e-5, "1.23e-5"), (-1e-7, "-1e-7"), (1e15, "1e15"), (4.2e17, "4.2e17"),
        (float("nan"), "-"), (None, "-"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(value, text):
    assert number_text(value) == number_text(None if value is None else np.float64(value)) == text


def test_signs_and_digits():
    assert [number_text(value, signed=True) for value in (2.5, -2.5, 0)] == ["+2.5", "-2.5", "0"]
    assert number_text(1234.56789, 6) == "1234.57"
    assert list(map(number_format([12345.6, 0.5]), [12345.6, 0.5])) == ["12,346", "0"]
    assert list(map(number_format([1.5, 0.001]), [1.5, 0.001])) == ["1.50", "0.00"]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"), (1, "100 %"), (0.07, "7 %"), (0.95, "95 %"), (0.1234, "12.3 %"), (0.01234, "1.23 %"),
        (0.0005, "0.05 %"), (0.9566, "95.7 %"), (0.9996, "99.96 %"), (0.99999, "above 99.99 %"), (1e-9, "below 0.01 %"),
        (-0.02345, "-2.35 %"), (float("nan"), "-"), (None, "-"),
    ],
)  # fmt: skip
def test_shares_as_people_write_them(share, text):
    assert percent_text(share) == text


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([0, 0.002, 0.004], ["0.000", "0.002", "0.004"]),
        ([1960, 1980, 2000], ["1960", "1980", "2000"]),
        ([-200_000, 0, 200_000], ["-200,000", "0", "200,000"]),
        ([0, 2.5e7, 5e7], ["0", "25M", "50M"]),
        ([0.1, 0.2, 0.1 + 0.2], ["0.1", "0.2", "0.3"]),
        ([-122.5, -122.25], ["-122.50", "-122.25"]),
        ([1e-6, 2e-6], ["1e-6", "2e-6"]),
        ([0.0], ["0"]),
        ([], []),
    ],
)
def test_numbers_at_an_axis(ticks, texts):
    assert tick_texts(ticks) == texts


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("area (m2)", "m2"), ("speed [km/h]", "km/h"), ("price_usd", ""), ("(x)", ""),
        ("Cement (part 1)(kg in a m^3) ", "kg in a m^3"), ("size (of anything that was ever counted)", ""),
    ],
)  # fmt: skip
def test_units_are_at_the_end_of_names(name, unit):
    assert unit_of(name) == unit
