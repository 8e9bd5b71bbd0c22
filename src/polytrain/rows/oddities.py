"""Find odd columns of a fit: those that leak the target, identifiers, constants and near-copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from polytrain.columns import CategoryColumn
from polytrain.columns.column_list import LEAST_ROWS, is_identifier
from polytrain.rows.rows import Rows
from polytrain.texts import listed

__all__ = ["copies", "oddities"]

# Least number of rows, and largest number of values. Fewer rows are inconclusive; more columns take too long.
_MOST_ROWS, _MOST_NUMBERS, _LEAST_ROWS, _MOST_COLUMNS = 2048, 1 << 20, 100, 2000
# A column gives labels away if its errors are this part of those of the most frequent label, of which there must be
# this many; and numbers, if it explains this part of the variance of their ranks.
_LEFT, _LEAST_ERRORS, _EXPLAINED = 0.01, 20, 0.998
# Correlation of the ranks of near-copies, that of categories which are the same, and how many rows must carry it.
_ALIKE, _SAME, _LEAST_CARRIERS = 0.98, 1.0 - 1e-9, 20
# Number of such groups that a warning names.
_MOST_GROUPS = 4
# A column of text is taken for an identifier if more than this part of its values differ.
_DIFFERENT = 0.9


def oddities(rows: Rows) -> Iterator[str]:
    """Return warnings about odd columns; constants and identifiers only if columns have names."""
    summary, names = rows.summary, rows.feature_names
    d = summary.n_features
    columns = rows.columns_of_any_type
    sources = np.arange(d) if columns is None else columns.sources
    if sources[-1] == 0:  # a single column is intended
        return
    labels = [str(k) if names is None else repr(names[k]) for k in range(d)]
    is_category = np.zeros(d, dtype=bool) if rows.is_category is None else rows.is_category
    sketch = rows.sketch.take(
        slice(max(min(_MOST_ROWS, _MOST_NUMBERS // (d + rows.sketch.sums.shape[1])), _LEAST_ROWS))
    )
    odd = np.zeros(d, dtype=bool)
    if rows.column_names is not None:
        odd = ((summary.low == summary.high) & ~summary.has_missing) | np.isnan(summary.low)
        if odd.any():
            named = listed(labels[k] for k in np.flatnonzero(odd))
            yield f"columns with a single value carry no information: {named}. Leave them out."
        for k in np.flatnonzero(~odd).tolist():
            what = _identifies(rows, k, sources[k])
            if what:
                odd[k] = True
                yield (
                    f"column {labels[k]} holds {what}, which looks like an identifier and is learned from like others. "
                    "Leave it out if it cannot predict new rows."
                )
    if sketch.n_rows < _LEAST_ROWS:
        return
    yield from _leaks(sketch.X, sketch.sums, sketch.weights, summary.target is None, is_category, labels)
    groups = copies(np.where(odd, 0.0, sketch.X), is_category, sources)
    if groups:
        texts = [f"{listed(labels[k] for k in group)} ({size:.2f})" for group, size in groups[:_MOST_GROUPS]]
        texts += [f"and {len(groups) - len(texts)} more groups"] if len(groups) > len(texts) else []
        yield (
            f"columns are nearly copies of each other (correlation of ranks): {'; '.join(texts)}. Explanations may "
            "split their effect, or give it opposite signs. Keep one of each group, or explain them together (groups)."
        )


def _identifies(rows: Rows, k: int, source: int) -> str:
    """Describe the values of a feature if they seem to identify rows."""
    columns, names = rows.columns_of_any_type, rows.feature_names or ()
    column = None if columns is None else columns.columns[source]
    if isinstance(column, CategoryColumn):
        count, n_rows = len(column.levels), rows.summary.n_rows
        if n_rows >= LEAST_ROWS and count > _DIFFERENT * n_rows:
            return f"{count} different values in {n_rows} rows"
    elif (column is None or column.kind == "number") and is_identifier(names[k], rows.sketch.X[:, k]):
        return "a different whole number in every row"
    return ""


# --- columns that give the target away --------------------------------------------------------------------------------


def _leaks(
    X: NDArray, sums: NDArray, weights: NDArray, classify: bool, is_category: NDArray, labels: Sequence[str]
) -> Iterator[str]:
    """Name the columns that give the target away: rows (N, d) and sums (N, q) are those of a sketch."""
    if classify:
        wanted = np.eye(sums.shape[1])[sums.argmax(axis=1)]
        guessed = 1.0 - wanted.mean(axis=0).max()
        if guessed * len(X) < _LEAST_ERRORS:
            return
    else:
        ranks = rankdata(sums / weights[:, None], axis=0)
        if not np.ptp(ranks, axis=0).all():
            return
        wanted = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    for k, values in enumerate(X.T):
        missing = np.isnan(values)
        ways = [("with it", values, bool(is_category[k]))]
        if missing.any():
            ways.insert(0, ("knowing whether it is missing", missing.astype(np.float64), True))
        for what, way, as_category in ways:
            estimates = _left_out_means(way, wanted, as_category) if classify or as_category else _lines(way, wanted)
            if classify:
                wrong = float(np.mean(estimates.argmax(axis=1) != wanted.argmax(axis=1)))
                found = wrong <= _LEFT * guessed
                figure = f"{wrong:.2%} of left-out rows are wrong, and {guessed:.0%} without any column"
            else:
                share = float(np.min(1.0 - np.mean(np.square(wanted - estimates), axis=0)))
                found, figure = share >= _EXPLAINED, f"{share:.2%} of the variance of the target's ranks is explained"
            if found:
                yield (
                    f"column {labels[k]} alone gives the target away: {what}, {figure}. Leave it out unless it is "
                    "known before the target is."
                )
                break


def _left_out_means(values: NDArray, wanted: NDArray, is_category: bool) -> NDArray:
    """Mean of ``wanted`` (N, q) over all other rows with the same value; NaN is one value.

    A row with a unique value gets the mean of the neighbouring values, or of all rows if values are categories.
    """
    order = np.argsort(values, kind="stable")
    ordered, targets = values[order], wanted[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]) & ~(np.isnan(ordered[1:]) & np.isnan(ordered[:-1])))
    starts, group = np.flatnonzero(is_new), np.cumsum(is_new) - 1
    counts = np.diff(np.append(starts, len(values)))
    sums = np.add.reduceat(targets, starts, axis=0)
    if is_category or len(starts) < 2:
        spare = np.broadcast_to(wanted.mean(axis=0), wanted.shape)
    else:
        means = sums / counts[:, None]
        inner = np.concatenate([means[1:2], means, means[-2:-1]])
        spare = ((inner[:-2] + inner[2:]) / 2.0)[group]
    others = counts[group, None] - 1
    estimates = np.empty_like(wanted)
    estimates[order] = np.where(others > 0, (sums[group] - targets) / np.maximum(others, 1), spare)
    return estimates


def _lines(values: NDArray, wanted: NDArray) -> NDArray:
    """Return ``wanted`` (N, q) as straight lines in the ranks of the values, and its mean where they are missing."""
    estimates, present = np.empty_like(wanted), ~np.isnan(values)
    for rows in (present, ~present):
        if rows.any():
            ranks = np.column_stack([np.ones(rows.sum()), rankdata(np.nan_to_num(values[rows]))])
            estimates[rows] = ranks @ np.linalg.lstsq(ranks, wanted[rows])[0]
    return estimates


# --- copies -----------------------------------------------------------------------------------------------------------


def copies(X: NDArray, is_category: NDArray, sources: NDArray) -> list[tuple[list[int], float]]:
    """Return groups of columns of rows X (N, d) with nearly the same ranks, and their least correlation.

    Features of one source column are not copies of each other. Categories that differ only in level names are.
    """
    if X.shape[1] > _MOST_COLUMNS:
        return []
    X = X[:: max(-(-len(X) // _MOST_ROWS), 1)].copy()
    missing = np.isnan(X)
    for k in np.flatnonzero(is_category).tolist():  # the row where a level is first seen does not depend on its name
        _, first, level = np.unique(X[:, k], return_index=True, return_inverse=True)
        X[:, k] = first[level]
    ranks = rankdata(np.where(missing, np.inf, X), axis=0)
    ranks -= np.sum(ranks, axis=0, where=~missing) / np.maximum(np.sum(~missing, axis=0), 1)
    ranks[missing] = 0.0
    ranks /= np.maximum(np.linalg.norm(ranks, axis=0), 0.5)  # 0 for constants
    ranks *= np.sum(ranks**4, axis=0) * _LEAST_CARRIERS <= 1.0
    alike = np.abs(ranks.T @ ranks)
    alike[sources[:, None] == sources] = 0.0
    _, number = connected_components(alike >= np.where(is_category | is_category[:, None], _SAME, _ALIKE))
    groups = [np.flatnonzero(number == own).tolist() for own in np.flatnonzero(np.bincount(number) > 1)]
    return [(group, float(alike[np.ix_(group, group)].max(axis=1).min())) for group in groups]
