"""What it takes to add a map, a loss, a decision or a place for rows: one class and one line in a table each.

Each toy is registered here and taken through everything that the package does with its kind.
"""

import ctypes
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

import polytrain
from polytrain import decisions, maps
from polytrain.decisions import OneVsRest
from polytrain.explain import feature_importances, partial_dependence, sobol_indices, top_terms
from polytrain.export import to_c, to_onnx
from polytrain.learning import losses
from polytrain.learning.losses import Loss
from polytrain.maps import FeatureMap, MapList
from polytrain.models import FittedModel
from polytrain.rows import Rows
from power_models import power_classifier, power_regressor

# --- a map: cosines on [0, 1], damped, the k-th by 1/k ----------------------------------------------------------------


@dataclass(frozen=True)
class CosineMap(FeatureMap):
    """1, cos(pi u), cos(2 pi u) / 2, ... with u in [0, 1]: no polynomial, no compact product rule."""

    kind: ClassVar[str] = "cosine"
    bases: ClassVar[tuple[str, ...]] = ("cosine",)

    basis: str
    n: int
    low: float
    width: float

    @classmethod
    def fit(cls, settings, column):
        return cls(settings.basis, settings.degree + 1, column.low, (column.high - column.low) or 1.0)

    def place(self, column):
        return np.clip((column - self.low) / self.width, 0, 1).astype(column.dtype)

    def values(self, x, out=None):
        out = np.empty((self.n, len(x)), dtype=x.dtype) if out is None else out
        out[:] = np.cos(np.pi * np.arange(self.n)[:, None] * x) / np.maximum(np.arange(self.n), 1)[:, None]
        return out

    @property
    def range(self):
        return self.low, self.low + self.width

    def measure(self):
        return (np.arange(200) + 0.5) / 200, np.full(200, 1 / 200)

    @classmethod
    def pack(cls, members, exact):
        return {"n": np.array([m.n for m in members]), "range": np.array([[m.low, m.width] for m in members])}

    @classmethod
    def unpack(cls, bases, arrays):
        n, ranges = arrays.pop("n"), arrays.pop("range")
        if n.shape != (len(bases),) or ranges.shape != (len(bases), 2):
            raise ValueError("the cosine maps are not as they should be.")
        return [cls("cosine", n, *ends) for n, ends in zip(n.tolist(), ranges.tolist(), strict=True)]

    @classmethod
    def add_to_graph(cls, members, graph, columns):
        low, width = (np.array([[getattr(m, name)] for m in members]) for name in ("low", "width"))
        u = graph.add("Div", graph.add("Sub", columns, graph.constant(low)), graph.constant(width))
        u = graph.add("Min", graph.add("Max", u, graph.constant(0.0)), graph.constant(1.0))
        return graph.stack([_graph_cosine(graph, u, k) for k in range(1, max(m.n for m in members))])

    @classmethod
    def c_code(cls, members, writer):
        return f"""#include <math.h>
{writer.table("cosine_low", [m.low for m in members])}
{writer.table("cosine_width", [m.width for m in members])}
{writer.integers("cosine_dims", [m.n for m in members])}
static void cosine_values(REAL value, int k, REAL *phi)
{{
    REAL u = (value - cosine_low[k]) / cosine_width[k];
    if (!(u >= 0)) u = 0;
    if (u > 1) u = 1;
    phi[0] = 1;
    for (int i = 1; i < cosine_dims[k]; i++)
        phi[i] = cos{writer.suffix}({np.pi!r} * (REAL)i * u) / (REAL)i;
}}
"""


def _graph_cosine(graph, u, k):
    """cos(k pi u) / k: ONNX Runtime has no cosine of doubles, so by its series, and Chebyshev polynomials of that."""
    square = graph.add("Mul", graph.add("Mul", u, u), graph.constant(np.pi**2))
    total, term = graph.constant(1.0), graph.constant(1.0)
    for j in range(1, 16):
        term = graph.add("Mul", graph.add("Mul", term, square), graph.constant(-1.0 / ((2 * j - 1) * 2 * j)))
        total = graph.add("Add", total, term)
    before, now = graph.constant(1.0), total
    for _ in range(k - 1):
        twice = graph.add("Mul", graph.add("Mul", total, now), graph.constant(2.0))
        before, now = now, graph.add("Sub", twice, before)
    return graph.add("Mul", now, graph.constant(1.0 / k))


@pytest.fixture
def cosine(monkeypatch):
    monkeypatch.setitem(maps.KINDS, CosineMap.kind, CosineMap)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 3, (400, 3))
    y = np.cos(1.3 * X[:, 0]) * X[:, 1] + 0.5 * np.cos(2 * X[:, 2])
    return X, y


SETTINGS = {"degree": 3, "rank": 4, "alpha": 1e-6, "random_state": 0}


@pytest.mark.parametrize("basis", ["cosine", ["cosine", "power", "cosine"]])
@pytest.mark.parametrize("solver", ["exact", "cg", "lbfgs"])
def test_a_map_learns_by_every_solver(cosine, table, basis, solver):
    X, y = table
    model = power_regressor(basis=basis, solver=solver, **SETTINGS).fit(X, y)
    assert model.score(X, y) > 0.98
    objectives = [record["objective"] for record in model.history_]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(objectives))
    kinds = [feature_map.kind for feature_map in model.maps_]
    assert kinds == (["cosine"] * 3 if basis == "cosine" else ["cosine", "polynomial", "cosine"])


def test_the_linear_start_of_a_map_is_the_additive_model(cosine, table):
    X, y = table
    start = power_regressor(basis="cosine", degree=3, rank=2, alpha=1e-8, max_sweeps=0).fit(X, y)
    values = [
        feature_map.values(feature_map.place(column))[1:] for feature_map, column in zip(start.maps_, X.T, strict=True)
    ]
    design = np.vstack([np.ones(len(y)), *values]).T
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(start.predict(X), expected, atol=1e-4)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.parametrize("basis", ["cosine", ["power", "cosine", "legendre"]])
def test_a_map_goes_through_files_explanations_and_exports(cosine, table, tmp_path, basis):
    X, y = table
    far = np.vstack([X, 3 * X])
    model = power_regressor(basis=basis, **SETTINGS).fit(X, y)
    model.save(tmp_path / "model")
    loaded = polytrain.load(tmp_path / "model")
    assert loaded.maps_ == model.maps_
    np.testing.assert_allclose(loaded.predict(far), model.predict(far), rtol=1e-5, atol=1e-5)

    indices = sobol_indices(loaded)
    edges = [feature_map.grid(41) for feature_map in model.maps_]
    middles = [(axis[1:] + axis[:-1]) / 2 for axis in edges]
    cells = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 3)
    assert indices.variance[0] == pytest.approx(np.var(model.predict(cells)), rel=0.01)
    assert feature_importances(model, X).importances.sum() == pytest.approx(1)
    curve = partial_dependence(model, 1, X, grid=[-1.5, 0.0, 2.0]).values[0]
    for value, mean in zip([-1.5, 0.0, 2.0], curve, strict=True):
        rows = X.copy()
        rows[:, 1] = value
        assert mean == pytest.approx(model.predict(rows).mean(), abs=1e-9)
    with pytest.raises(ValueError, match="has a map of the kind 'cosine', which is not a polynomial"):
        top_terms(model)

    onnxruntime = pytest.importorskip("onnxruntime")
    graph = to_onnx(model, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"X": far})[0][:, 0], model.predict(far), atol=1e-9)

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler:
        (tmp_path / "model.c").write_text(to_c(model))
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        command = [compiler, *flags, "-o", tmp_path / "model.so", tmp_path / "model.c", "-lm"]
        subprocess.run(command, check=True)
        predict = ctypes.CDLL(str(tmp_path / "model.so")).model_predict
        predict.restype = ctypes.c_double
        pointer = ctypes.POINTER(ctypes.c_double)
        found = [predict(row.ctypes.data_as(pointer)) for row in np.ascontiguousarray(far)]
        np.testing.assert_allclose(found, model.predict(far), atol=1e-7)


def test_a_map_that_does_not_say_how_is_not_exported(monkeypatch, table):
    class Silent(CosineMap):
        kind: ClassVar[str] = "silent"
        bases: ClassVar[tuple[str, ...]] = ("silent",)
        add_to_graph = FeatureMap.__dict__["add_to_graph"]
        c_code = FeatureMap.__dict__["c_code"]

    monkeypatch.setitem(maps.KINDS, "silent", Silent)
    model = power_regressor(basis="silent", **SETTINGS).fit(*table)
    with pytest.raises(TypeError, match="maps of the kind 'silent' have no ONNX export"):
        to_onnx(model)
    with pytest.raises(TypeError, match="maps of the kind 'silent' have no export to C"):
        to_c(model)


def test_a_file_with_a_map_that_is_not_in_the_table_is_refused(cosine, table, tmp_path, monkeypatch):
    model = power_regressor(basis="cosine", **SETTINGS).fit(*table)
    model.save(tmp_path / "model")
    monkeypatch.delitem(maps.KINDS, "cosine")
    with pytest.raises(polytrain.ModelFileError, match="there are no maps of the kind 'cosine'"):
        polytrain.load(tmp_path / "model")


# --- a loss: log cosh of the residual ---------------------------------------------------------------------------------


class LogCosh(Loss):
    """Nearly the square for small residuals and the absolute value for large ones."""

    name = "log-cosh"
    tasks = frozenset({"regression"})
    link = "identity"
    domain = "numbers below 1e6"

    def evaluate(self, target, score):
        residual = score - target
        slope = np.tanh(residual)
        return np.logaddexp(residual, -residual) - np.log(2), slope, 1 - slope**2

    def accepts(self, target):
        return bool((np.abs(target) < 1e6).all())

    def start(self, target, weights):
        return float(np.average(target, weights=weights))


def test_a_loss_is_one_class(monkeypatch, table, tmp_path):
    monkeypatch.setitem(losses._LOSSES, "log-cosh", LogCosh())
    X, y = table
    wild = np.where(np.arange(400) % 40 == 0, y + 50, y)
    squared, robust = (
        power_regressor(loss=loss, rank=3, degree=3, alpha=1e-4, max_sweeps=8, random_state=0).fit(X, wild)
        for loss in ("squared", "log-cosh")
    )
    assert np.abs(robust.predict(X) - y).mean() < 0.5 * np.abs(squared.predict(X) - y).mean()
    decreases = [record["decrease"] for record in robust.history_]
    assert min(decreases) >= -1e-12
    cost, _, _ = LogCosh().evaluate(wild, robust.predict(X))
    assert robust.history_[-1]["loss"] == pytest.approx(cost.mean(), rel=1e-9)
    robust.save(tmp_path / "model")
    np.testing.assert_allclose(polytrain.load(tmp_path / "model").predict(X), robust.predict(X), rtol=1e-5, atol=1e-5)
    with pytest.raises(
        ValueError, match=r"loss='log-cosh' is defined for targets that are numbers below 1e6, got 10000000"
    ):
        clone(robust).fit(X, np.where(np.arange(400) == 3, 1e7, y))
    with pytest.raises(ValueError, match=r"loss must be one of \['auto', .*\], got 'log-cosh'"):
        power_classifier(loss="log-cosh").fit(X, y > 0)


# --- a decision: one against the rest, with a handicap for the first class --------------------------------------------


class Handicap(OneVsRest):
    """The first class needs a score that is higher by 1."""

    name = "handicap"

    def decide(self, scores, n_classes):
        return scores.T - np.eye(1, n_classes)

    def add_decision(self, graph, scores, n_classes):
        return graph.add("Sub", scores, graph.constant(np.eye(1, n_classes)))

    def c_decision(self, writer, n_classes):
        return """static void decide(const REAL *values, REAL *scores)
{
    for (int t = 0; t < N_TRAINS; t++) scores[t] = values[t] - (t == 0);
}
"""


def test_a_decision_is_one_class(monkeypatch, table, tmp_path):
    monkeypatch.setitem(decisions._DECISIONS, "handicap", Handicap())
    X, y = table
    labels = np.digitize(y, [-0.5, 0.5])
    model = power_classifier(decision="handicap", rank=3, random_state=0).fit(X, labels)
    plain = power_classifier(rank=3, random_state=0).fit(X, labels)
    assert (model.predict(X) == 0).sum() < (plain.predict(X) == 0).sum()
    model.save(tmp_path / "model")
    np.testing.assert_allclose(polytrain.load(tmp_path / "model").predict(X), model.predict(X), rtol=1e-5, atol=1e-5)
    assert "values[t] - (t == 0)" in to_c(model)
    onnxruntime = pytest.importorskip("onnxruntime")
    graph = to_onnx(model, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"X": X})[0], model.predict(X))


# --- a place for rows: partitions that threads work on ----------------------------------------------------------------


class ThreadRunner:
    """Handles are futures of a pool of threads."""

    def __init__(self, pool):
        self._pool = pool

    def map(self, function, *columns):
        return [self._pool.submit(self._run, function, row) for row in zip(*columns, strict=True)]

    def _run(self, function, row):
        return function(*(entry.result() if hasattr(entry, "result") else entry for entry in row))

    def collect(self, handles):
        return [handle.result() for handle in handles]


@pytest.mark.parametrize("n_partitions", [1, 3])
def test_a_place_for_rows_is_a_runner(table, n_partitions, monkeypatch):
    X, y = table
    weights = np.ones(len(X))
    partitions = [tuple(array[k::n_partitions] for array in (X, y, weights)) for k in range(n_partitions)]
    expected = power_regressor(rank=3, random_state=0).fit(X, y)
    model = power_regressor(rank=3, random_state=0)
    with ThreadPoolExecutor(8) as pool:
        runner = ThreadRunner(pool)
        rows = Rows(lambda function: runner.map(function, partitions), tuple, classify=False, runner=runner)
        monkeypatch.setattr("polytrain.estimators._base.open_fit", lambda *data: nullcontext(rows))
        model.fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)


# --- what all of them end in ------------------------------------------------------------------------------------------


def test_the_fitted_model_cannot_be_changed(table):
    X, y = table
    model = power_regressor(rank=3, random_state=0).fit(X, y)
    before = model.predict(X)
    model.trains_.clear()
    model.trains_.append(None)
    for attribute in ("trains_", "maps_", "n_parameters_", "intercept_"):
        with pytest.raises(AttributeError):
            setattr(model, attribute, None)
    for array in (model.trains_[0].cores[0], model.model_.cores[0][0], model.model_.shift):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError):
        model.model_.maps = MapList([])
    np.testing.assert_array_equal(model.predict(X), before)
    assert isinstance(model.model_, FittedModel)
    assert sobol_indices(model).mean[0] == pytest.approx(sobol_indices(clone(model).fit(X, y)).mean[0])
