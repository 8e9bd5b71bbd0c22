import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from polytrain_paper.experiments.digit_rows import DigitRows, Split
from polytrain_paper.experiments.paper_tables import ModelSize
from polytrain_paper.experiments.results import COLUMNS, JobStore
from polytrain_paper.experiments.runs import Reproduction
from polytrain_paper.experiments.settings import RowSpec, Settings
from power_models import power_classifier

SIZE = ModelSize(6, 1, 2)
ROWS = [RowSpec("squared", SIZE, "linear"), RowSpec("squared", SIZE._replace(d=7), "random")]
SETTINGS = Settings.default("digits", "pca", folds=2, alphas=(1e-1, 1e-4), cv_rows=300, cv_per="degree")


class Given:
    """Rows that are there already."""

    def __init__(self, change=None):
        self._rows, self._change = DigitRows("digits", "pca"), change

    def split(self, d):
        rows = self._rows.split(d)
        return self._change(rows) if self._change else rows


class Untouchable:
    def split(self, d):
        raise AssertionError("a finished job needs no rows")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    store = JobStore(tmp_path_factory.mktemp("finished"))
    reproduction = Reproduction(SETTINGS, Given(), store)
    return store, list(reproduction.rows(ROWS)), reproduction.convergence(ROWS)


def test_rows_are_what_the_estimators_say(finished):
    _, rows, _ = finished
    digits = DigitRows("digits", "pca")
    X, y, _, _ = digits.split(6)
    drawn = np.sort(np.random.default_rng(0).permutation(len(X))[:300])
    model = power_classifier(loss="squared", degree=1, rank=2, max_sweeps=2, tol=1e-2, random_state=0)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(model, {"alpha": [1e-1, 1e-4]}, cv=folds).fit(X[drawn], y[drawn])
    for row, d, init in zip(rows, (6, 7), ("linear", "random"), strict=True):
        assert tuple(row) == COLUMNS
        assert (row["d"], row["degree"], row["rank"], row["init"]) == (d, 1, 2, init)
        X_train, y_train, X_test, y_test = digits.split(d)
        model = power_classifier(
            loss="squared", degree=1, rank=2, alpha=row["alpha"], init=init, max_sweeps=4, tol=1e-2, random_state=0
        ).fit(X_train, y_train)
        assert row["train_error"] == pytest.approx(1 - model.score(X_train, y_train))
        assert row["test_error"] == pytest.approx(1 - model.score(X_test, y_test))
        assert row["paper_test_error"] is None
        assert row["n_rows"] == len(X_train)
    assert rows[0]["alpha"] == search.best_params_["alpha"]
    assert rows[0]["cv_error"] == pytest.approx(1 - search.best_score_)


def test_finished_jobs_need_no_rows(finished):
    store, rows, curves = finished
    again = Reproduction(SETTINGS, Untouchable(), store)
    assert all(map(again.is_finished, ROWS))
    assert list(again.rows(ROWS)) == rows
    assert again.convergence(ROWS) == curves


def test_a_changed_setting_does_not_reuse_a_row(finished):
    store, _, _ = finished
    changed = Settings.default("digits", "pca", folds=3, alphas=(1e-1, 1e-4), cv_rows=300, cv_per="degree")
    again = Reproduction(changed, Untouchable(), store)
    assert not any(map(again.is_finished, ROWS))
    with pytest.raises(AssertionError, match="needs no rows"):
        next(again.rows(ROWS))


def test_other_code_does_not_reuse_a_row(finished, monkeypatch):
    store, _, _ = finished
    monkeypatch.setattr("polytrain_paper.experiments.settings.code_digest", lambda: "other")
    again = Reproduction(SETTINGS, Untouchable(), store)
    assert not any(map(again.is_finished, ROWS))
    for work in (
        lambda: next(again.rows(ROWS)),
        lambda: again.choice("squared", SIZE),
        lambda: again.convergence(ROWS),
    ):
        with pytest.raises(AssertionError, match="needs no rows"):
            work()


def test_the_test_set_decides_nothing_but_its_own_error(finished, tmp_path):
    def spoil(rows: Split) -> Split:
        return rows._replace(X_test=rows.X_test[::-1] * 0, y_test=np.roll(rows.y_test, 3))

    _, rows, _ = finished
    spoiled = list(Reproduction(SETTINGS, Given(spoil), JobStore(tmp_path)).rows(ROWS))
    for row, other in zip(rows, spoiled, strict=True):
        free = set(COLUMNS) - {"test_error", "fit_seconds"}
        assert {name: row[name] for name in free} == {name: other[name] for name in free}
        assert other["test_error"] > 0.5


def test_convergence_follows_both_starts_downwards(finished):
    _, _, curves = finished
    assert [(curve["loss"], curve["init"]) for curve in curves] == [("squared", "linear"), ("squared", "random")]
    for curve in curves:
        objectives = np.array(curve["objectives"])
        assert np.all(np.diff(objectives) <= 1e-12 * objectives[:-1])


def test_published_figures_belong_to_the_papers_features():
    class Tiny:
        def split(self, d):
            rng = np.random.default_rng(0)
            X, y = rng.uniform(-1, 1, (60, 20)), np.arange(60) % 2
            return Split(X, y, X, y)

    row = RowSpec("squared", ModelSize(20, 1, 8), "linear")
    for features, expected in (("cnn", 0.0433), ("pca", None)):
        settings = Settings.default("usps", features, folds=2, alphas=(0.1,))
        (result,) = Reproduction(settings, Tiny(), MemoryStore()).rows([row])
        assert result["paper_test_error"] == expected


class MemoryStore(dict):
    def get(self, key):
        return super().get(str(key))

    def put(self, key, result):
        self[str(key)] = result
