"""A score as a sum of effects: its mean, a function of each column, functions of pairs, and the rest.

If columns are independent, every score is a unique sum of functions of sets of columns, each with mean 0 over each of
its columns (functional ANOVA). The function of one column is the mean of the score over all others, minus the mean;
that of a pair is the mean over all others, minus the functions of both and the mean. Means of a train are products of
the means of its cores, so all of this is exact. The functions are uncorrelated: the variance is the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from polytrain.explain.sensitivity import INDEPENDENCE, VarianceShares, frame, table_lines, value_text, variance_shares
from polytrain.explain.sites import ColumnMeasure, Sites, column_axis, make_measure
from polytrain.explain.view import read_model
from polytrain.tensor.checks import check_positive_integer
from polytrain.texts import printable

# Pairs with less than this share of the variance are rounding errors.
_LEAST_SHARE = 1e-20
_MOST_LINES = 15  # entries that are printed of every list


@dataclass(frozen=True, eq=False)
class MainEffect:
    """The effect of one column on a score, averaged over all others.

    Attributes
    ----------
    name : str
        The column.
    kind : {"number", "category", "date"}
        What it holds.
    grid : ndarray of shape (Q,)
        Numbers, names of levels (objects) or dates.
    values : ndarray of shape (Q,)
        The effect there, in units of the score; its mean over the column is 0.
    parts : ndarray of shape (Q,)
        Share of the rows nearest to each value.
    missing : float or None
        The effect of a missing value, where the column has any.
    missing_part : float
        Share of the rows whose value is missing.
    share, total : float
        Share of the variance of the score due to the column alone, and including its interactions.
    n_rows : float or None
        Number (or weight) of the rows; None if the distribution is that of the training.
    """

    name: str
    kind: str
    grid: NDArray
    values: NDArray
    parts: NDArray
    missing: float | None
    missing_part: float
    share: float
    total: float
    n_rows: float | None

    @property
    def counts(self) -> NDArray | None:
        """Number (or weight) of the rows nearest to each value; None without rows."""
        return None if self.n_rows is None else np.round(self.parts * self.n_rows, 6)  # whole rows are whole numbers

    @property
    def missing_count(self) -> float | None:
        """Number (or weight) of the rows whose value is missing; None without rows."""
        return None if self.n_rows is None else round(self.missing_part * self.n_rows, 6)

    def to_frame(self) -> Any:
        """Return a frame of pandas, one row per value; a missing value is the last one, of the kind "missing"."""
        lines = list(zip([self.kind] * len(self.grid), self.grid.tolist(), self.values, self.parts, strict=True))
        if self.missing is not None:
            lines.append(("missing", None, self.missing, self.missing_part))
        table = frame(lines, columns=["kind", "value", "effect", "part"])
        table.insert(0, "column", self.name)
        return table if self.n_rows is None else table.assign(count=np.round(table["part"] * self.n_rows, 6))

    def __str__(self) -> str:
        lines = [f"{printable(self.name)} ({self.kind}): {100 * self.share:.2f} % of the variance alone"]
        n_lines = len(self.grid) if self.kind == "category" else min(len(self.grid), _MOST_LINES)
        shown = np.linspace(0, len(self.grid) - 1, n_lines).astype(int).tolist()
        rows = [(value_text(self.grid[k], 5), self.values[k], self.parts[k]) for k in shown]
        if self.missing is not None:
            rows.append(("(missing)", self.missing, self.missing_part))
        return "\n".join(lines + table_lines(("value", "effect", "part"), rows))


@dataclass(frozen=True, eq=False)
class PairEffect:
    """The joint effect of two columns on a score, beyond both main effects.

    Attributes
    ----------
    names, kinds : tuple of two str
        The columns, and their kinds; see `MainEffect`.
    grids : tuple of two ndarray
        Values of both.
    values : ndarray of shape (len(grids[0]), len(grids[1]))
        The effect there; its mean over either column is 0.
    share : float
        Share of the variance of the score.
    """

    names: tuple[str, str]
    kinds: tuple[str, str]
    grids: tuple[NDArray, NDArray]
    values: NDArray
    share: float

    def to_frame(self) -> Any:
        """Return a frame of pandas: values of the first column down, of the second to the right."""
        down, right = self.grids
        return frame(self.values, index=down, columns=right).rename_axis(index=self.names[0], columns=self.names[1])

    def __str__(self) -> str:
        largest = np.unravel_index(np.abs(self.values).argmax(), self.values.shape)
        values = [printable(value_text(grid[k], 5)) for grid, k in zip(self.grids, largest, strict=True)]
        place = ", ".join(f"{printable(name)} = {value}" for name, value in zip(self.names, values, strict=True))
        share = f"{printable(' * '.join(self.names))}: {100 * self.share:.2f} % of the variance"
        return f"{share}, {self.values[largest]:+.4g} at {place}"


@dataclass(frozen=True, eq=False)
class RowEffects:
    """The effects at given rows; ``mean + main + pairs + rest``, summed over the columns, is the score.

    Attributes
    ----------
    mean : float
        Mean of the score.
    main, pairs : ndarray of shape (N, d) and (N, K)
        Main effects of all columns, and effects of the pairs that were found.
    rest, scores : ndarray of shape (N,)
        All other pairs with interactions of three and more columns, and the scores.
    names : tuple of str
        Names of columns, then of pairs.
    """

    mean: float
    main: NDArray
    pairs: NDArray
    rest: NDArray
    scores: NDArray
    names: tuple[str, ...]

    def to_frame(self) -> Any:
        """Return a frame of pandas, one row per row: all terms, the mean first, the rest and the score last."""
        table = frame(np.column_stack([self.main, self.pairs]), columns=list(self.names))
        table.insert(0, "(mean)", self.mean, allow_duplicates=True)
        return table.assign(**{"(rest)": self.rest, "(score)": self.scores})

    def __str__(self) -> str:
        sizes = np.abs(np.column_stack([self.main, self.pairs])).mean(axis=0)
        order = np.argsort(-sizes, kind="stable")[:_MOST_LINES]
        lines = [(self.names[k], sizes[k]) for k in order.tolist()] + [("(rest)", np.abs(self.rest).mean())]
        about = f"effects at {len(self.rest)} rows around the mean {self.mean:.5g}"
        return "\n".join([about, *table_lines(("term", "mean size"), lines)])


@dataclass(frozen=True, eq=False)
class Effects:
    """A score as a sum of effects, under independent columns.

    Attributes
    ----------
    mean, deviation : float
        Mean and standard deviation of the score.
    main : tuple of MainEffect
        One per column, in the order of the table.
    pairs : tuple of PairEffect
        The pairs with the largest shares, largest first.
    main_share, pair_share, rest_share : float
        Shares of the variance: of all main effects, of all pairs (those that are not in ``pairs`` included), and of
        interactions of three and more columns.
    output : str
        Meaning of a high score: a class, or "prediction".
    n_rows : float or None
        Rows that the distributions are taken from, or their weight; None if they are those of the training.
    """

    mean: float
    deviation: float
    main: tuple[MainEffect, ...]
    pairs: tuple[PairEffect, ...]
    main_share: float
    pair_share: float
    rest_share: float
    output: str
    n_rows: float | None
    _sites: Sites = field(repr=False)

    def __getitem__(self, name: str) -> MainEffect:
        """Return the main effect of a column, given by its name."""
        return self.main[self._sites.view.index("column", name)]

    def ranked(self) -> list[MainEffect]:
        """Return the main effects of the columns, that with the largest total share first."""
        return sorted(self.main, key=lambda effect: -effect.total)

    def of_rows(self, X: ArrayLike) -> RowEffects:
        """Split the scores of rows X (N, d) into effects.

        They sum to ``decision_function``, or to ``predict`` where the link is the identity.
        """
        sites, view = self._sites, self._sites.view
        rows = view.rows(X)
        columns = [list(rows[:, group.start : group.stop].T) for group in view.groups]
        main = np.column_stack([sites.main(column, numbers) for column, numbers in enumerate(columns)])
        pairs = np.zeros((len(rows), len(self.pairs)))
        for k, pair in enumerate(self.pairs):
            i, j = map(view.column_names.index, pair.names)
            pairs[:, k] = sites.pair(i, j, columns[i], columns[j], on_grid=False)
        scores = view.fitted.scores(rows)[sites.output]
        rest = scores - (self.mean + main.sum(axis=1) + pairs.sum(axis=1))
        names = (*view.column_names, *(" * ".join(pair.names) for pair in self.pairs))
        return RowEffects(mean=self.mean, main=main, pairs=pairs, rest=rest, scores=scores, names=names)

    def to_frame(self) -> Any:
        """Return a frame of pandas, one row per column and pair: its share of the variance, and the total one."""
        lines = [(effect.name, "main", effect.share, effect.total) for effect in self.ranked()]
        lines += [(" * ".join(pair.names), "pair", pair.share, np.nan) for pair in self.pairs]
        return frame(lines, columns=["term", "order", "share", "total"])

    def __str__(self) -> str:
        whose = "of the training" if self.n_rows is None else f"of {self.n_rows:g} rows"
        lines = [
            f"effects on {self.output!r}: mean {self.mean:.5g}, standard deviation {self.deviation:.5g}",
            f"shares of the variance: single columns {100 * self.main_share:.1f} %, "
            f"pairs {100 * self.pair_share:.1f} %, three and more {100 * self.rest_share:.1f} %",
            f"({INDEPENDENCE}, that {whose})",
        ]
        columns = [(effect.name, effect.share, effect.total) for effect in self.ranked()]
        pairs = [(" * ".join(pair.names), pair.share) for pair in self.pairs]
        for heads, rows in ((("column", "main", "total"), columns), (("pair", "share"), pairs)):
            lines += table_lines(heads, rows[:_MOST_LINES]) if rows else []
        return "\n".join(lines)


def effects(
    model: BaseEstimator,
    X: ArrayLike | None = None,
    *,
    output: int | str = 0,
    top_pairs: int = 10,
    grid_size: int = 100,
    pair_grid_size: int = 30,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> Effects:
    """Split a score into its mean, main effects, interactions of pairs and the rest, exactly.

    Columns are taken as independent, each with its own distribution. A column of categories has one value per level, a
    date one per day, and a missing value is a value of its own.

    Parameters
    ----------
    model : TensorTrainClassifier or TensorTrainRegressor
        A fitted estimator, or a pipeline that ends in one and whose steps before keep columns; values are then those
        that the last step gets.
    X, sample_weight, feature_names
        See `sobol_indices`.
    output : int or str, default=0
        The score to split: its number, or its class.
    top_pairs : int, default=10
        Number of pairs: those with the largest shares of the variance.
    grid_size, pair_grid_size : int, default=100 and 30
        Largest number of values of a column for main effects, and for pairs.

    Returns
    -------
    Effects

    See Also
    --------
    sobol_indices : Shares of all pairs, of all scores.
    partial_dependence : Means over given rows, whose columns are not independent.

    Examples
    --------
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.explain import effects
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
    >>> model = TensorTrainRegressor(basis="power", rank=3, alpha=1e-6, random_state=0)
    >>> found = effects(model.fit(X, X[:, 0] + X[:, 1] * X[:, 2]), top_pairs=1)
    >>> found.pairs[0].names, round(found.pairs[0].share, 2)
    (('x2', 'x3'), 0.25)
    >>> found.of_rows(X[:2]).main.shape
    (2, 3)
    """
    view = read_model(model, feature_names)
    measure = make_measure(view, X, sample_weight)
    return all_effects(measure, [view.index("output", output)], top_pairs, grid_size, pair_grid_size)[0]


def all_effects(
    measure: ColumnMeasure, outputs: Sequence[int], top_pairs: int, grid_size: int, pair_grid_size: int
) -> list[Effects]:
    """Effects on several scores, which share the distributions of the columns; see `effects`."""
    n_pairs = 0 if top_pairs == 0 else check_positive_integer(top_pairs, "top_pairs")
    size = check_positive_integer(grid_size, "grid_size")
    pair_size = check_positive_integer(pair_grid_size, "pair_grid_size")
    view, names, axis_of = measure.view, measure.view.column_names, cache(partial(column_axis, measure))

    def main_effect(sites: Sites, column: int, shares: VarianceShares) -> MainEffect:
        axis, missing = axis_of(column, size), None
        if axis.missing_part is not None:
            missing = float(sites.main(column, [np.array([np.nan])] * len(axis.features))[0])
        return MainEffect(
            name=names[column],
            kind=axis.kind,
            grid=axis.grid,
            values=sites.main(column, axis.features),
            parts=axis.parts,
            missing=missing,
            missing_part=axis.missing_part or 0.0,
            share=float(shares.first[column]),
            total=float(shares.total[column]),
            n_rows=measure.n_rows,
        )

    def pair_effect(sites: Sites, i: int, j: int, shares: VarianceShares) -> PairEffect:
        first, last = axis_of(i, pair_size), axis_of(j, pair_size)
        values, share = sites.pair(i, j, first.features, last.features, on_grid=True), float(shares.second[i, j])
        return PairEffect((names[i], names[j]), (first.kind, last.kind), (first.grid, last.grid), values, share)

    results, upper = [], np.triu_indices(len(names), 1)
    for output in outputs:
        sites, shares = Sites(measure, output), variance_shares(measure, output)
        second = shares.second[upper]
        strongest = [k for k in np.argsort(-second, kind="stable")[:n_pairs] if second[k] > _LEAST_SHARE]
        main_share, pair_share = float(shares.first.sum()), float(second.sum())
        results.append(
            Effects(
                mean=shares.mean + float(view.fitted.shift[output]),
                deviation=shares.deviation,
                main=tuple(main_effect(sites, k, shares) for k in range(len(names))),
                pairs=tuple(pair_effect(sites, i, j, shares) for i, j in np.transpose(upper)[strongest].tolist()),
                main_share=main_share,
                pair_share=pair_share,
                rest_share=max(1.0 - main_share - pair_share, 0.0) if shares.deviation > 0 else 0.0,
                output=view.fitted.train_names[output],
                n_rows=measure.n_rows,
                _sites=sites,
            )
        )
    return results
