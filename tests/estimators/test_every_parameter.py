"""Every value of every parameter alone, beside defaults: models fit and survive all that happens to them.

A parameter that an estimator gains must be listed here.
"""

import pickle
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.learning.core_solvers import SOLVERS
from polytrain.learning.losses import loss_names
from polytrain.learning.start import FEW_ROWS
from polytrain.maps import basis_names
from polytrain.tensor import TensorTrain
from polytrain.texts import shown

# A large table of numbers as categories has more levels than are told apart.
pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
TABLES = {"tiny": (6, 2), "repeated": (16, 2), "noise": (40, 3), "small": (40, 3), "large": (FEW_ROWS + 10, 3)}


@dataclass(frozen=True)
class Made:
    """A value that depends on the number of columns and of trains."""

    name: str
    make: Any


@dataclass(frozen=True)
class Beside:
    """A value that matters only beside others that are no defaults."""

    value: Any
    others: dict = field(default_factory=dict)


def _trains(n_columns, n_trains):
    return [TensorTrain([np.full((1, 3, 1), 0.1)] * n_columns)] * n_trains


POWERS, RAW, TRAINS = {"basis": "power"}, {"basis": "power-unscaled"}, Made("trains", _trains)
LIST = Made("list", lambda d, n_trains: [1, 3, *[2] * d][:d])
ARRAY = Made("array", lambda d, n_trains: np.array([1, 3, *[2] * d][:d]))
BONDS = Made("bonds", lambda d, n_trains: [1, 3, *[2] * d][: d - 1])
BASES = Made("bases", lambda d, n_trains: ["auto", "power", *["spline"] * d][:d])
NAMES = Made("names", lambda d, n_trains: np.array(["legendre", *["smooth"] * d][:d]))
MASK = Made("mask", lambda d, n_trains: [True, *[False] * (d - 1)])

#: Values of the parameters that both estimators have.
SHARED = {
    "basis": ["auto", *basis_names(), BASES, NAMES],
    "rank": ["auto", 1, 2, 20, np.int64(3), BONDS],
    "bandwidth": ["auto", None, 1e-6, 0.03, 1, 32.0, 1e5],
    "relevance": ["auto", None, LIST, ARRAY],
    "degree": [1, 2, 9, LIST, *(Beside(value, POWERS) for value in (1, 7, 40, LIST, ARRAY)), Beside(3, RAW)],
    "categorical_features": ["from_dtype", None, [], [0], MASK, np.array([1])],
    "interaction_cst": [None, "no_interactions", "pairwise", [[0, 1]], [{0}, (1,)]],
    "init": ["auto", "linear", "random", "dual", Beside(TRAINS, POWERS)],
    "solver": list(SOLVERS),
    "max_sweeps": ["auto", 0, 1, 30],
    "tol": [0, 1e-12, 0.5, 1e300],
    "warm_start": [False, True],
    "random_state": [None, 0, 2**32 - 1, np.int64(3), np.random.RandomState(0)],
    "n_jobs": [None, 1, 2, -1, -100],
    "verbose": [0, 1, 2, True, 50],
    "alpha": ["auto", 0, 1e-300, 1e-6, np.float32(0.01), 1, 1e6, 1e300],
    "early_stopping": [False, True, np.True_, 0.01, np.float32(0.5), 0.99],
}
OF_CLASSIFIERS = {
    "loss": ["auto", "multinomial", *loss_names("classification")],
    "decision": ["one-vs-rest", "one-vs-one", "binary-code"],
    "class_weight": [None, "balanced", {0: 1, 1: 5.0}, {1: 1e-9}],
}
OF_REGRESSORS = {
    "loss": list(loss_names("regression")),
    "quantile": [0.5, *(Beside(value, {"loss": "quantile"}) for value in (1e-6, 0.1, 0.9))],
    "epsilon": [1, *(Beside(value, {"loss": "huber"}) for value in (1e-6, 1, 1e6))],
}
VALUES = {
    TensorTrainClassifier: SHARED | OF_CLASSIFIERS,
    TensorTrainRegressor: SHARED
    | OF_REGRESSORS
    | {"calibration_fraction": [None, 0.1, 0.5, 0.9], "clip": [True, False, np.False_]},
}
HUGE = 10**400
#: What is no value of nearly any parameter.
NONSENSE = [
    None,
    True,
    -1,
    0,
    1.5,
    np.nan,
    np.inf,
    HUGE,
    1j,
    "nonsense",
    "",
    b"auto",
    [],
    {},
    [None],
    ["nonsense"],
    [[]],
    [-1],
    [np.nan],
    np.array("auto"),
    np.array(["auto", "x"]),
    np.ones((2, 2)),
    pd.NA,
    object,
    len,
]

#: What of it is a value after all.
FINE = {
    "rank": [HUGE],
    "alpha": [0, 1.5],
    "bandwidth": [None, 1.5],
    "relevance": [None],
    "categorical_features": [None, [], {}],
    "interaction_cst": [None],
    "max_sweeps": [0, HUGE],
    "tol": [0, 1.5],
    "epsilon": [1.5],
    "early_stopping": [True],
    "clip": [True, 0],
    "calibration_fraction": [None],
    "class_weight": [None, {}],
    "warm_start": [True, 0],
    "random_state": [None, 0],
    "n_jobs": [None, -1, HUGE],
    "verbose": [True, 0, HUGE],
}


def _table(name, n_classes, loss="squared"):
    """Rows, and classes or numbers that suit a loss."""
    n_rows, n_columns = TABLES[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    if name == "repeated":
        X = np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]]).repeat(4, axis=0)
    target = X[:, 0] + X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n_rows)
    if name in ("repeated", "noise"):
        target = rng.normal(size=n_rows)
    if n_classes:
        ranks = np.argsort(np.argsort(target))
        return X, ranks * n_classes // n_rows
    if loss in ("poisson", "gamma"):
        return X, np.floor(np.exp(np.clip(target, -3, 3))) + (loss == "gamma")
    return X, target


def _settled(value, X, n_classes):
    n_trains = 1 if n_classes < 3 else n_classes
    return value.make(X.shape[1], n_trains) if isinstance(value, Made) else value


def _outputs(model, X):
    yield model.predict(X)
    for method in ("decision_function", "predict_proba"):
        if hasattr(model, method):
            yield getattr(model, method)(X)


def check_value(kind, name, value, table, n_classes, folder):
    """Fit a model, and let it go through all that happens to models."""
    others = {}
    if isinstance(value, Beside):
        value, others = value.value, value.others
    X, y = _table(table, n_classes, value if name == "loss" else others.get("loss"))
    value = _settled(value, X, n_classes)
    model = clone(kind(**{"random_state": 0, **others, name: value}))
    try:
        model.fit(X, y)
    except ValueError as error:  # nothing else may be refused
        if name == "calibration_fraction" and f"{name}={value} leaves no row" in str(error) and table != "large":
            return
        raise
    if name == "warm_start":
        model.fit(X, y)
    outputs = list(_outputs(model, X))
    assert all(np.isfinite(output).all() for output in outputs)
    model.save(folder / "model")
    for output, expected in zip(_outputs(pickle.loads(pickle.dumps(model)), X), outputs, strict=True):
        np.testing.assert_array_equal(output, expected)
    stored = list(zip(_outputs(polytrain.load(folder / "model"), X), outputs, strict=True))
    for output, expected in stored[1:] if hasattr(model, "classes_") else stored:  # files are rounded: labels may tie
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", VALUES)
def test_all_parameters_are_listed(kind):
    assert set(VALUES[kind]) == set(kind().get_params())


def _cases(tables, skip=()):
    """All values of all parameters; the defaults, which make the same model every time, once only."""
    for kind in VALUES:
        defaults = kind().get_params()
        for name in VALUES[kind]:
            if name in skip:
                continue
            for number, value in enumerate(VALUES[kind][name]):
                if name != "loss" and type(value) is type(defaults[name]) and value == defaults[name]:
                    continue
                for table, n_classes in tables if is_classifier(kind()) else [(tables[0][0], 0)]:
                    words = kind.__name__, name, str(number), table, str(n_classes)
                    yield pytest.param(kind, name, value, table, n_classes, id="-".join(words))


@pytest.mark.parametrize(
    ("kind", "name", "value", "table", "n_classes"),
    list(_cases([("repeated", 2)], ["n_jobs"])),
)
def test_every_value_works(kind, name, value, table, n_classes, tmp_path):
    check_value(kind, name, value, table, n_classes, tmp_path)


#: Parameters that do not touch what is learned: one small table shows all there is to see.
OUTSIDE = ["n_jobs", "verbose", "random_state", "warm_start"]
#: Parameters that act in the same way however many rows there are.
OF_COLUMNS = ["categorical_features", "degree", "epsilon"]
OF_STOPPING = ["tol", "max_sweeps"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "value", "table", "n_classes"),
    [
        *_cases([("tiny", 2)]),
        *_cases([("small", 3)], OUTSIDE),
        *_cases([("noise", 2)], OUTSIDE),
        *_cases([("large", 2)], OUTSIDE + OF_COLUMNS + OF_STOPPING),
    ],
)
def test_every_value_works_with_other_tables(kind, name, value, table, n_classes, tmp_path):
    check_value(kind, name, value, table, n_classes, tmp_path)


def _is_fine(name, value):
    return any(type(value) is type(fine) and value == fine for fine in FINE.get(name, ()))


def _parameters():
    for kind in VALUES:
        for name in VALUES[kind]:
            yield pytest.param(kind, name, id=f"{kind.__name__}-{name}")


@pytest.mark.parametrize(("kind", "name"), list(_parameters()))
def test_nonsense_is_refused(kind, name):
    """Messages name the parameter, its value and all that its docstring and its values here have in quotes."""
    described = re.search(rf"^{name} : (.*)$", kind.__doc__, re.M)[1].split(", default")[0]
    words = [value for value in VALUES[kind][name] if isinstance(value, str)] + re.findall(r'"([\w-]+)"', described)
    singles = [word for word in ("None", "True", "False") if word in described.replace("bool", "True False")]
    X, y = _table("tiny", 2 if is_classifier(kind()) else 0)
    for value in NONSENSE:
        if _is_fine(name, value):
            continue
        with pytest.raises((ValueError, TypeError), match=name) as error:
            kind(**{"random_state": 0, name: value}).fit(X, y)
        message = str(error.value)
        assert len(message) < 500
        if not isinstance(value, list | np.ndarray | dict):
            assert all(word in message for word in (*map(repr, words), *singles)), message
            assert shown(value) in message, message
