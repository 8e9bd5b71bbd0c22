"""The model class of the page about TabArena fits and predicts: in AutoGluon, or with a stand-in for its base class."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

PAGE = Path(__file__).parents[2] / "docs" / "tabarena.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the pages are not part of this copy")


class StandIn:
    """What ``_fit`` and its predictions use of AutoGluon's ``AbstractModel``."""

    def __init__(self, problem_type, hyperparameters=None):
        self.problem_type, self.params = problem_type, dict(hyperparameters or {})
        self._set_default_params()

    def _set_default_param_value(self, name, value):
        self.params.setdefault(name, value)

    def _get_model_params(self):
        return dict(self.params)

    def _get_default_auxiliary_params(self):
        return {"valid_raw_types": None, "ignored_type_group_raw": None}

    def preprocess(self, X, **kwargs):
        return X

    def predict_proba(self, X):
        X = self.preprocess(X)
        if self.problem_type == "regression":
            return self.model.predict(X)
        probabilities = self.model.predict_proba(X)
        return probabilities[:, 1] if self.problem_type == "binary" else probabilities


# Choosing these would take seconds.
GIVEN = {"basis": "smooth", "bandwidth": 1.0, "relevance": None, "alpha": 1e-4, "rank": 4}


def mixed_frame():
    """Numbers, a category and a gap, with a target that depends on both columns."""
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"size": generator.uniform(-1, 1, 150), "kind": generator.choice(["a", "b"], 150)})
    score = frame["size"] * np.where(frame["kind"] == "a", 1.0, -1.0)
    frame["kind"] = frame["kind"].astype("category")
    frame.loc[3, "size"] = np.nan
    return frame, score.fillna(0.0)


@pytest.fixture
def import_page(tmp_path, monkeypatch):
    """Import the first block of the page as the module that the page says to save."""

    def load():
        code = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        (tmp_path / "polytrain_model.py").write_text(code[1], encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "polytrain_model", raising=False)
        return importlib.import_module("polytrain_model").PolytrainModel

    yield load
    sys.modules.pop("polytrain_model", None)


@pytest.fixture
def model_class(import_page, monkeypatch):
    """The class of the page with the stand-in as its base."""
    for name in ("autogluon", "autogluon.core", "autogluon.core.models"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["autogluon.core.models"], "AbstractModel", StandIn, raising=False)
    return import_page()


def test_numbers(model_class):
    frame, score = mixed_frame()
    model = model_class("regression", GIVEN)
    model._fit(X=frame, y=score, num_cpus=1, time_limit=60.0)
    assert model.model.get_params()["rank"] == 4
    assert np.mean((model.predict_proba(frame) - score) ** 2) < 0.1 * score.var()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(model_class, n_classes):
    frame, score = mixed_frame()
    labels = pd.Series(np.searchsorted([-0.3, 0.3][: n_classes - 1], score))
    model = model_class("binary" if n_classes == 2 else "multiclass", GIVEN)
    model._fit(X=frame, y=labels, num_cpus=1)
    chances = model.predict_proba(frame)
    assert chances.shape == ((150,) if n_classes == 2 else (150, 3))
    predicted = chances > 0.5 if n_classes == 2 else chances.argmax(axis=1)
    assert np.mean(predicted == labels) > 0.9


def test_conventions(model_class):
    model = model_class("binary")
    assert model._get_model_params() == {"random_state": 0}
    assert model._get_default_auxiliary_params()["valid_raw_types"] == ["int", "float", "category"]
    assert set(model.supported_problem_types()) == {"binary", "multiclass", "regression"}


@pytest.mark.slow
def test_autogluon(import_page, tmp_path):
    tabular = pytest.importorskip("autogluon.tabular")
    frame, score = mixed_frame()
    frame = frame.assign(target=np.where(score > 0, "yes", "no"))
    predictor = tabular.TabularPredictor(label="target", path=str(tmp_path / "models"), verbosity=0)
    predictor.fit(frame, hyperparameters={import_page(): {}})
    assert np.mean(predictor.predict(frame) == frame["target"]) > 0.9
