"""Classes that are learned together, against the softmax itself."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from polytrain.learning.distinct import row_keys
from polytrain.learning.losses import LogisticLoss
from polytrain.learning.placed import PlacedRows
from polytrain.learning.schedule import train
from polytrain.learning.settings import Settings, Start
from polytrain.learning.targets import ClassTarget, JointTarget, PlacedBlock
from polytrain.maps import MapList, PolynomialMap
from polytrain.tensor import TensorTrain, clip_ranks


def _block(rng, n_rows, n_columns, n_classes):
    columns = rng.uniform(-1, 1, (n_columns, n_rows))
    y = rng.integers(n_classes, size=n_rows)
    y[:n_classes] = np.arange(n_classes)
    return PlacedBlock(columns, y, rng.uniform(0.5, 1.0, n_rows), row_keys(columns))


def log_losses(scores, y):
    """Minus the log-probability of the right class, (N,), for scores (N, m)."""
    return logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]


def _trains(rng, dims, n_classes, rank=2):
    ranks = clip_ranks(dims, rank)
    return [[rng.normal(size=(a, n, b)) for a, n, b in zip(ranks, dims, ranks[1:], strict=False)]
            for _ in range(n_classes)]  # fmt: skip


def _scores(maps, trains, columns):
    """Values of trains, slowly."""
    found = np.zeros((len(trains), columns.shape[1]))
    for index, cores in enumerate(trains):
        for row, x in enumerate(columns.T):
            vector = np.ones(1)
            for feature_map, core, value in zip(maps, cores, x, strict=True):
                vector = vector @ np.einsum("anb,n->ab", core, feature_map.values(np.array([value]))[:, 0])
            found[index, row] = vector[0]
    return found


@pytest.mark.parametrize(("n_rows", "n_columns", "n_classes"), [(7, 2, 3), (20, 3, 4), (11, 1, 5)])
def test_the_loss_of_one_class_given_the_others_is_that_of_the_softmax(n_rows, n_columns, n_classes):
    rng = np.random.default_rng(n_rows)
    maps = MapList([PolynomialMap("power", 3)] * n_columns)
    block, trains = _block(rng, n_rows, n_columns, n_classes), _trains(rng, maps.dims, n_classes)
    scores = _scores(maps, trains, block.columns)
    own = [ClassTarget(code, np.ones(n_classes)) for code in 2 * np.eye(n_classes) - 1]
    whole = -log_softmax(scores, axis=0)[block.y, np.arange(n_rows)]
    np.testing.assert_allclose(log_losses(scores.T, block.y), whole, rtol=1e-12)
    for index in range(n_classes):
        rows = JointTarget(own[index], index, maps, trains).problem(block)
        score = scores[index] + rows.offset
        loss, slope, curvature = LogisticLoss().evaluate(rows.target, score)
        # The rest does not depend on the own score.
        others = np.delete(scores, index, axis=0)
        rest = np.where(block.y == index, 0.0, logsumexp(others, axis=0) - scores[block.y, np.arange(n_rows)])
        np.testing.assert_allclose(loss + rest, whole, rtol=1e-9, atol=1e-12)
        h = 1e-5
        sides = [log_losses((scores + step * np.eye(n_classes)[index][:, None]).T, block.y) for step in (h, -h)]
        np.testing.assert_allclose(slope, (sides[0] - sides[1]) / (2 * h), atol=1e-8)
        chance = np.exp(log_softmax(scores, axis=0))[index]
        np.testing.assert_allclose(curvature, chance * (1 - chance), atol=1e-12)


@pytest.mark.parametrize("init", ["linear", "random"])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_the_whole_objective_never_rises(n_classes, init):
    rng = np.random.default_rng(n_classes)
    maps = MapList([PolynomialMap("power", 3)] * 4)
    block = _block(rng, 120, 4, n_classes)
    plan = Settings("logistic", clip_ranks(maps.dims, 3), 1e-3, init, "auto", 8, 0.0, joint=True)
    own = [ClassTarget(code, np.ones(n_classes)) for code in 2 * np.eye(n_classes) - 1]
    weights = block.weights / block.weights.sum()
    objectives = []
    present = {}

    def objective(trains):
        penalty = sum(np.square(TensorTrain(cores).norm()) for cores in trains)
        return weights @ log_losses(_scores(maps, trains, block.columns).T, block.y) + plan.alpha / 2 * penalty

    def watch(train, record, cores):
        present[train] = cores
        if len(present) == n_classes:
            objectives.append(objective([present[k] for k in range(n_classes)]))

    jobs = [Start(seed) for seed in range(n_classes)]
    results = train(PlacedRows(block), maps, plan, own, jobs, n_jobs=1, report=watch)
    assert np.diff(objectives).max() < 1e-9
    assert len(objectives) > 10
    assert objectives[-1] == pytest.approx(objective([result.cores for result in results]))
    assert [record["sweep"] for record in results[0].history] == list(range(1, len(results[0].history) + 1))


def test_linear_models_are_solved_together():
    rng = np.random.default_rng(0)
    maps = MapList([PolynomialMap("power", 2)] * 3)
    block = _block(rng, 200, 3, 3)
    plan = Settings("logistic", clip_ranks(maps.dims, 2), 1e-2, "linear", "auto", 0, 0.0, joint=True)
    own = [ClassTarget(code, np.ones(3)) for code in 2 * np.eye(3) - 1]
    results = train(PlacedRows(block), maps, plan, own, [Start(0)] * 3)
    weights = block.weights / block.weights.sum()
    values = np.stack([np.ones(200), *block.columns])
    coefficients = np.stack([[TensorTrain(result.cores)[where] for where in
                              [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]] for result in results])  # fmt: skip

    def objective(flat):
        own = flat.reshape(3, 4)
        return weights @ log_losses((own @ values).T, block.y) + plan.alpha / 2 * flat @ flat

    best = minimize(objective, coefficients.ravel(), tol=1e-12).fun
    start = objective(np.zeros(12))
    assert objective(coefficients.ravel()) - best < 0.02 * (start - best)
