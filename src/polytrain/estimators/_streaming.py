"""Learn from one block of rows after another without keeping past rows.

The past is kept as the model itself, its weight, and a memory of some rows without their targets'
noise: on these rows the present scores are the target, with the curvature that the loss has there. So the past enters
every core problem as a quadratic around the last model, with the Gram matrix of real rows: whatever the
gauge of the train, and with all correlations between columns.

With f the last model, n_new the weight of a block and n_past that of the past, a block's objective is

    n_new / (n_new + n_past) (mean loss of the block + alpha / 2 |A|^2) + n_past / (n_new + n_past) distance from f.

Regularisation is scaled by the block's share, as the last model already includes that of the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from polytrain.learning.distinct import row_keys
from polytrain.learning.losses import get_loss
from polytrain.learning.problem import ProblemRows
from polytrain.learning.settings import Settings, Start
from polytrain.learning.targets import ClassTarget, JointTarget, PlacedBlock, Target
from polytrain.learning.trainer import TrainResult, learn_train
from polytrain.models import FittedModel
from polytrain.rows.rows import Arrays

# Rows of the memory, and rows whose scores are remembered for the calibration of probabilities.
_MEMORY_ROWS, _SCORED_ROWS = 4096, 2048
# One sweep there and one back.
_SWEEPS = 2
_NO_ROWS = np.zeros(0)


@dataclass
class Stream:
    """The state of `partial_fit` besides the model.

    Attributes
    ----------
    seen : float
        Weight of all rows so far that is not forgotten.
    first : float
        Weight of the rows that the settings were chosen on.
    n_blocks : int
    X, y, weights : ndarray
        The memory: rows that represent all rows, with targets or indices of labels.
    labels : ndarray of shape (k, n_classes)
        Share of each label in every row of the memory, for the calibration of probabilities. Rows may also stand for
        those of an earlier fit; then the shares are probabilities under the model.
    scores, scored : ndarray of shape (q, n_trains) and (q, n_classes)
        Scores of the last rows before they were learned from, and the weights of these rows at their labels.
    """

    seen: float
    first: float
    n_blocks: int = 0
    X: NDArray = field(default_factory=lambda: _NO_ROWS)
    y: NDArray = field(default_factory=lambda: _NO_ROWS)
    weights: NDArray = field(default_factory=lambda: _NO_ROWS)
    labels: NDArray = field(default_factory=lambda: _NO_ROWS)
    scores: NDArray = field(default_factory=lambda: _NO_ROWS)
    scored: NDArray = field(default_factory=lambda: _NO_ROWS)

    def forget(self, part: float) -> None:
        """Reduce the weight of all rows so far by a fraction."""
        left = 1.0 - part
        self.seen, self.weights, self.scored = left * self.seen, left * self.weights, left * self.scored

    def remember(self, rows: Arrays, rng: np.random.Generator, labels: NDArray = _NO_ROWS) -> None:
        """Add the rows of a block to the memory, with the shares of their labels."""
        X, y, weights = rows
        if len(self.X):
            X, y, weights = (np.concatenate(pair) for pair in zip((self.X, self.y, self.weights), rows, strict=True))
            labels = np.concatenate([self.labels, labels])
        if len(X) > _MEMORY_ROWS:
            chosen, weights = _resampled(weights, _MEMORY_ROWS, rng)
            X, y, labels = X[chosen], y[chosen], labels[chosen] if len(labels) else labels
        self.seen += float(rows[2].sum())
        self.X, self.y, self.weights = X, y, weights * (self.seen / float(weights.sum()))
        self.labels = labels
        self.n_blocks += 1

    def remember_scores(self, scores: NDArray, labels: NDArray) -> None:
        """Keep scores (n_trains, N) of rows that are not learned from yet, and their weights at their labels (N, m).

        Scores of a single class do not determine the spread between classes: they are not kept.
        """
        if np.count_nonzero(labels.sum(axis=0)) < 2:
            return
        if len(self.scores):
            scores, labels = np.hstack([self.scores.T, scores]), np.vstack([self.scored, labels])
        self.scores, self.scored = scores.T[-_SCORED_ROWS:], labels[-_SCORED_ROWS:]


def _resampled(weights: NDArray, count: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Choose about ``count`` rows, with a preference for heavy ones, and weights with which they represent all rows."""
    # Rows that would be chosen more than once keep their own weight, and the others share what is left of the places.
    chance = np.minimum(weights * (count / weights.sum()), 1.0)
    for _ in range(10):
        light = chance < 1.0
        places = count - np.sum(~light)
        if not light.any() or places <= 0:
            break
        chance[light] = np.minimum(weights[light] * (places / weights[light].sum()), 1.0)
    ends = np.cumsum(chance)
    chosen = np.flatnonzero(np.floor(ends + (start := rng.random())) > np.floor(ends - chance + start))
    return chosen, weights[chosen] / chance[chosen]


def go_on(
    model: FittedModel, plan: Settings, targets: Sequence[Target], rows: Arrays, stream: Stream, seeds: Sequence[int]
) -> list[TrainResult]:
    """Learn from a block, given the past, which does not change; the plan has the alpha for all rows so far."""
    loss, maps = get_loss(plan.loss), model.maps
    new = _placed(model, *rows)
    past = _placed(model, stream.X, stream.y, stream.weights)
    n_new = float(new.weights.sum())
    alpha = plan.alpha * n_new / (n_new + stream.seen)
    own_plan = replace(plan, alpha=alpha, init="given", max_sweeps=_SWEEPS, patience=0, tol=0.0)
    trains: list[Sequence[NDArray]] = list(model.cores)
    before = model.values(stream.X)
    results = []
    for index, (own, seed) in enumerate(zip(targets, seeds, strict=True)):
        target: Target | JointTarget = own
        score = before[index] + own.offset
        if isinstance(own, ClassTarget) and plan.joint and len(targets) > 1:
            target = JointTarget(own, index, maps, list(trains))
            score = before[index] - logsumexp(np.delete(before, index, axis=0), axis=0)
        memory = target.problem(past)
        # Targets that cost least at the scores of the past, for the rows of classes that the problem is about; where
        # there are none, the memory's own.
        stand_ins = loss.stand_ins(score[own.wanted(past.y)[1] > 0]) or [(memory.target, np.ones(memory.n_rows))]
        pieces = [memory._replace(target=wanted, weights=memory.weights * share) for wanted, share in stand_ins]
        problem = ProblemRows.join([target.problem(new), *pieces])
        used = np.flatnonzero(problem.weights > 0)
        if len(used):
            problem = problem.take(used, problem.weights[used]).normalised()
            result = learn_train(own_plan, maps, problem, Start(seed, trains[index]))
        else:  # no row belongs to either of the two classes
            result = TrainResult(tuple(trains[index]), [], "max_sweeps")
        trains[index] = result.cores
        results.append(result)
    return results


def _placed(model: FittedModel, X: NDArray, y: NDArray, weights: NDArray) -> PlacedBlock:
    columns = model.maps.place(X)
    return PlacedBlock(columns, y, weights, row_keys(columns))
