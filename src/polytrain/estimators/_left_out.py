"""Left-out rows of a fit, with the predictions of its trains and their errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polytrain.choice import Choice, HeldOut
from polytrain.evaluation import Answers, LeftOut
from polytrain.models import FittedModel
from polytrain.rows import Rows
from polytrain.rows.rows import Scored
from polytrain.rows.summary import target_hashes

#: Raw rows X (N, d) -> facts about them, (q, N).
Facts = Callable[[NDArray], NDArray]


class LeftOutRows(NamedTuple):
    """Different rows that were not learned from, with their weights: equal rows are merged.

    ``y`` (N, n_trains) are numbers, or (N,) indexes of classes; ``values`` (N, n_trains) are those of trains without
    these rows, and ``facts`` (N, q) the answers to the questions asked. ``n_rows`` counts equal rows.
    """

    y: NDArray
    values: NDArray
    facts: NDArray
    weights: NDArray
    n_rows: int
    is_apart: bool = False

    def errors(self, model: FittedModel) -> NDArray:
        """Targets minus values, (N, n_trains), in the units of the trains."""
        errors: NDArray = (self.y - model.shift) / model.size - self.values
        return errors

    def measure(self, model: FittedModel, choice: Choice, rows: Rows) -> LeftOut | None:
        """Measure the trains' predictions of these rows in the units of the target; None where they are not finite."""
        total, how = rows.summary.n_rows, "; they also chose the settings" if choice.tried else ""
        where = f"{self.n_rows:,} of {total:,} rows held out{how}"
        if self.is_apart:
            where = f"{self.n_rows:,} rows that were set apart"
        elif self.n_rows == total:
            where = f"each of the {total:,} rows left out in turn{how}"
        y = self.y[:, 0] if model.classes is None and model.one_output else self.y
        with np.errstate(over="ignore", invalid="ignore"):  # scores may overflow
            answers = Answers.of_scores(model, model.scaled(self.values.T.copy()), y, self.weights)
            return LeftOut.of(answers, where) if answers.n else None


def see_left_out(model: FittedModel, left_out: HeldOut | Rows, rows: Rows, facts: Facts | None = None) -> LeftOutRows:
    """Return the rows that the choice held out, with scores of models without them, or rows that were set apart.

    The targets of the first are among all rows, ``rows``. ``facts`` are asked of the rows, where they are.
    """
    held_out = left_out if isinstance(left_out, HeldOut) else None
    if held_out is not None and model.classes is not None:
        place, labels = np.nonzero(held_out.label_weights)
        values, weights = held_out.scores[place], held_out.label_weights[place, labels]
        are_all = held_out.n_distinct == rows.sketch.n_distinct  # of equal rows, there may be one only
        n_rows = rows.summary.n_rows if are_all else len(held_out.hashes)
        return LeftOutRows(labels, values, np.zeros((len(values), 0)), weights, n_rows)
    question = partial(_see, None if held_out else model, facts)
    seen = Scored.merge(some.scored(question) for some in (held_out.rows if held_out else [left_out]))  # type: ignore[union-attr]
    values, asked = np.split(seen.scores, [0 if held_out else model.n_trains], axis=1)
    kept = np.ones(len(values), dtype=bool)
    if held_out is not None:
        hashes, index = np.unique(held_out.hashes, return_index=True)
        place = np.minimum(np.searchsorted(hashes, seen.hashes), len(hashes) - 1)
        kept = hashes[place] == seen.hashes
        values = held_out.scores[index[place]]
    y = seen.y if seen.y.ndim == 2 or model.classes is not None else seen.y[:, None]
    # Repeated rows add no certainty.
    _, first, place = np.unique(target_hashes(seen.hashes, seen.y)[kept], return_index=True, return_inverse=True)
    weights = np.bincount(place, seen.weights[kept], minlength=len(first))
    y, values, asked = (array[kept][first] for array in (y, values, asked))
    return LeftOutRows(y, values, asked, weights, int(kept.sum()), held_out is None)


def _see(model: FittedModel | None, facts: Facts | None, X: NDArray) -> NDArray:
    """Values of the trains of a model, if one is given, and facts, (n_trains + q, N)."""
    return np.vstack(
        [*([] if model is None else [model.values(X)]), np.zeros((0, len(X))) if facts is None else facts(X)]
    )
