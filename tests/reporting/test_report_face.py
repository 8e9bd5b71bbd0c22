"""Reports from Python: arrays, frames and pipelines, and names that would like to be more than text."""

import re
import sys
from html import escape

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_report_page import NASTY, Reader

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.texts import percent_text


def parsed(html):
    reader = Reader()
    reader.feed(html)
    assert not reader.open
    return reader


@pytest.fixture(scope="module")
def frame():
    """Numbers, hostile levels, dates, gaps; the target is a hostile label or a number."""
    rng = np.random.default_rng(0)
    n = 120
    table = pd.DataFrame(
        {
            NASTY: rng.normal(size=n),
            "kind": rng.choice([NASTY, "</svg><b>", "plain", None], n),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    number = table[NASTY] + (table["kind"] == "plain") + table["gaps"].fillna(2.0)
    return table, number.rename("</title><i>")


@pytest.fixture(scope="module")
def pages(frame):
    X, number = frame
    labels = np.where(number > number.median(), '"><img src=x onerror=alert(1)>', "no")
    fast = {"rank": 2, "alpha": 1e-3, "max_sweeps": 2, "random_state": 0}
    return {
        "classes": polytrain.report(TensorTrainClassifier(**fast).fit(X, labels), X, labels, title=NASTY),
        "number": polytrain.report(TensorTrainRegressor(**fast).fit(X, number), X, number),
    }


@pytest.mark.parametrize("name", ["classes", "number"])
def test_hostile_names_stay_text(pages, name):
    reader = parsed(pages[name].html)
    assert not {tag for tag, _ in reader.seen} & {"script", "img", "b", "i", "iframe"}
    assert not [key for _, attributes in reader.seen for key in attributes if key.startswith("on")]
    text = "".join(reader.text)
    assert NASTY in text
    assert "</svg><b> (" in text
    assert "when" in text


def test_missing_values_have_marks_of_their_own(pages, frame):
    html, (X, _) = pages["number"].html, frame
    assert f"missing ({X['kind'].isna().sum()})" in html
    assert f"Missing in {X['gaps'].isna().sum()} rows" in html


def test_repr_is_a_frame_that_runs_nothing(pages):
    page = pages["classes"]
    assert re.fullmatch(r"Report\(.*, \d+ KiB\)", repr(page))
    reader = parsed(page._repr_html_())
    ((tag, attributes),) = reader.seen
    assert tag == "iframe"
    assert attributes["sandbox"] == ""
    assert attributes["srcdoc"] == page.html


def test_the_same_call_gives_the_same_page_but_for_times(frame, tmp_path):
    X, number = frame
    model = TensorTrainRegressor(rank=2, alpha=1e-3, max_sweeps=2, random_state=0).fit(X, number)
    pages = [polytrain.report(model, X, number, tmp_path / "page.html").html for _ in range(2)]
    one, two = (re.sub(r"[\d,]+ rows per second", "", page) for page in pages)
    assert one == two
    assert (tmp_path / "page.html").read_text() == pages[1]


def test_pipelines_are_explained_by_the_columns_of_their_last_step():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["left", "right"])
    y = X["left"] ** 2
    model = make_pipeline(StandardScaler(), TensorTrainRegressor(rank=2, alpha=1e-3, random_state=0)).fit(X, y)
    html = polytrain.report(model, X, y, X_train=X, y_train=y).html
    assert "<figcaption>left <span>importance" in html
    assert "fitted on 60 training rows" in html


def test_intervals_are_checked_where_there_are_any():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200)
    model = TensorTrainRegressor(calibration_fraction=0.3, random_state=0).fit(X[:150], y[:150])
    html = polytrain.report(model, X[150:], y[150:]).html
    inside = model.predict_interval(X[150:], coverage=0.9)
    share = ((inside[:, 0] <= y[150:]) & (y[150:] <= inside[:, 1])).mean()
    assert f"coverage 90 %, inside {percent_text(share)}, " in html
    bare = TensorTrainRegressor(basis="power", rank=2, alpha=1e-3, random_state=0).fit(X, y)
    assert "This model has no intervals" in polytrain.report(bare, X, y).html


def test_rows_are_counted_from_zero():
    X = np.linspace(-1, 1, 50)[:, None]
    y = np.zeros(50)
    y[7] = 5.0
    model = TensorTrainRegressor(basis="power", rank=1, alpha=1e-2, random_state=0).fit(X, y)
    html = polytrain.report(model, X, y).html
    assert "Largest error: row 7" in html
    assert re.search(r'The worst rows.*?<tbody>\s*<tr><th scope="row">7</th>', html, re.DOTALL)


def test_pairs_of_classes_are_told_apart():
    X, y = make_classification(120, 4, n_informative=4, n_redundant=0, n_classes=4, random_state=0)
    model = TensorTrainClassifier(rank=2, alpha=1e-3, decision="one-vs-one", max_sweeps=1, random_state=0).fit(X, y)
    html = polytrain.report(model, X, y).html
    assert re.search(r"row \d+: (score|log-odds) of \d vs \d .* = mean", html)


def test_mistakes():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = TensorTrainClassifier(rank=1, alpha=1e-3, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="y holds 'maybe', which is not one of the model's classes"):
        polytrain.report(model, X, ["maybe"] * 40)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        polytrain.report(model, X, [True] * 39)
    with pytest.raises(ValueError, match="X_train and y_train must be passed together"):
        polytrain.report(model, X, X[:, 0] > 0, X_train=X)
    with pytest.raises(TypeError, match="a report needs a fitted"):
        polytrain.report(StandardScaler(), X, X[:, 0])
    both = TensorTrainRegressor(rank=1, alpha=1e-3, random_state=0).fit(X, X)
    with pytest.raises(ValueError, match="predicts 2 numbers per row"):
        polytrain.report(both, X, X[:, 0])


@pytest.mark.slow
def test_a_wide_table_of_ten_classes_has_a_small_page():
    X, y = make_classification(3000, 200, n_informative=30, n_classes=10, random_state=0)
    model = TensorTrainClassifier(rank=2, alpha=1e-3, max_sweeps=1, random_state=0).fit(X[:1500], y[:1500])
    assert len(polytrain.report(model, X[1500:], y[1500:]).html.encode()) < 1_000_000


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_missing_packages_name_the_extra(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = TensorTrainRegressor(rank=1, alpha=1e-3, random_state=0).fit(X, X[:, 0])
    with pytest.raises(ImportError, match=rf"a report needs {missing}.*polytrain\[report\]"):
        polytrain.report(model, X, X[:, 0])


def test_classes_keep_their_colours():
    """The third class has the third colour in every picture, also where the curves of others are left out."""
    X, y = make_classification(300, 6, n_informative=6, n_redundant=0, n_classes=6, random_state=0)
    labels = np.array([f"class {k}" for k in range(6)])[y]
    model = TensorTrainClassifier(rank=2, alpha=1e-3, max_sweeps=2, random_state=0).fit(X, labels)
    html = polytrain.report(model, X, labels).html
    shown = {}
    for title, svg in re.findall(r"<figcaption>(\S+).*?</figcaption>\s*(<svg.*?</svg>)", html, re.DOTALL):
        marks = re.findall(r"var\(--series(\d+)\)|>class (\d)(?::[^<]*)?</text>", svg)
        # The colour before each name in the legend is that of its line.
        shown.setdefault(title, [(marks[k - 1][0], label) for k, (_, label) in enumerate(marks) if label])
    assert all(colour == label for legend in shown.values() for colour, label in legend)
    assert [len(shown[title]) for title in ("ROC:", "Precision-recall:", "x1", "Convergence")] == [6, 6, 4, 6]


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
def test_rows_are_scored_once(monkeypatch):
    X = np.random.default_rng(0).normal(size=(157, 2))
    model = TensorTrainRegressor(basis="power", rank=1, alpha=1e-3, random_state=0).fit(X, X[:, 0])
    counts, scores = [], type(model.model_).scores
    monkeypatch.setattr(
        type(model.model_), "scores", lambda self, X, *more: (counts.append(len(X)), scores(self, X, *more))[1]
    )
    polytrain.report(model, X, X[:, 0])
    assert counts.count(157) == 1 + 2  # once as they are, and once with each column shuffled


def test_units_of_columns_and_targets():
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 2)), columns=["area (m2)", "price_usd"])
    y = (1e5 * X["area (m2)"] + 1e5).rename("rent [CHF]")
    html = polytrain.report(TensorTrainRegressor(rank=1, alpha=1e-3, random_state=0).fit(X, y), X, y).html
    text = "".join(parsed(html).text)
    assert ">m2</text>" in html
    assert ">true value (CHF)</text>" in html
    assert "The model's root mean squared error (CHF) is " in text
    assert "effect of a column alone on the prediction (CHF)" in text
    assert ">usd<" not in html
    assert re.search(r">1[0-9]0,000</text>", html)
    assert not re.search(r"\de\+?\d", text[text.index("It predicts") :])


@pytest.mark.parametrize("warnings", [(), ("column 'a' is constant", "<b>few rows</b>")])
def test_warnings_of_the_fit_are_near_the_top(warnings):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = TensorTrainRegressor(rank=1, alpha=1e-3, random_state=0).fit(X, X[:, 0])
    model.warnings_ = warnings
    html = polytrain.report(model, X, X[:, 0]).html
    top = html[: html.index("<nav")]
    assert ("Warnings of the fit" in top) == bool(warnings)
    assert all(f"<li>{escape(warning)}</li>".replace("&#x27;", "&#39;") in top for warning in warnings)


def test_several_classes_begin_with_the_confusion_matrix():
    X, y = make_classification(
        390, 6, n_informative=6, n_redundant=0, n_classes=26, n_clusters_per_class=1, random_state=0
    )
    labels = np.array([f"a class with a name of many letters, {chr(65 + k)}" for k in range(26)])[y]
    model = TensorTrainClassifier(rank=1, alpha=1e-2, max_sweeps=1, random_state=0).fit(X, labels)
    html = polytrain.report(model, X, labels).html
    places = [html.index(part) for part in ("<h3>Confusion matrix", "The most common mistakes", "ROC: area")]
    assert places == sorted(places)
    assert 'class="matrix many"' in html
    assert "<details><summary>Recall and precision of each class" in html
    assert "20 other classes" in html
    roc = re.search(r"<figcaption>ROC.*?(<svg.*?</svg>)", html, re.DOTALL)[1]
    marked = re.findall(r"<title>a class with a name of many letters, ([A-Z]): [\d.]+</title>", roc)
    assert set(marked) == {chr(65 + k) for k in range(26)}
    assert "…" not in roc
