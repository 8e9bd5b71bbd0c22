"""Pipelines whose steps keep columns: their last step is explained, in the columns that went in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polytrain.tensor.notation import default_names

__all__ = ["LastStep", "last_step"]


@dataclass(frozen=True)
class LastStep:
    """The estimator at the end, and how rows reach it.

    Attributes
    ----------
    model : estimator
        The last step, or the estimator itself where it is in no pipeline.
    prepare : callable
        Rows as they are given -> rows as the last step takes them.
    columns : tuple of int, or None
        For every column that the last step takes, its number among those that are given; None for all in order.
    names : tuple of str, or None
        Their names; None for those that the last step knows.
    """

    model: Any
    prepare: Callable[[Any], Any]
    columns: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None


def last_step(model: Any) -> LastStep:
    """Look through a pipeline; a ``ValueError`` names a step that makes new columns out of others.

    What counts is which names steps give to their columns: those of a scaler or an imputer are the names that went in,
    some of them where columns are selected, in another order and with a prefix where a column transformer puts them
    together.
    """
    if not isinstance(model, Pipeline):
        return LastStep(model, lambda X: X)
    check_is_fitted(model)
    steps = [(name, step) for name, step in model.steps[:-1] if step is not None and step != "passthrough"]
    if not steps:
        return LastStep(model[-1], lambda X: X)
    for _, step in steps:
        check_is_fitted(step)
    own, count = getattr(steps[0][1], "feature_names_in_", None), steps[0][1].n_features_in_
    # Names for the way: those of arrays are made up, and differ from each other.
    given = [f"x{k}" for k in range(count)] if own is None else list(map(str, own))
    names, origins = list(given), list(given)
    for name, step in steps:
        after = _names_after(name, step, names)
        origins = [origins[names.index(before)] for before in after.values()]
        names = list(after)
    columns = tuple(map(given.index, origins))
    shown = default_names(count) if own is None else given
    return LastStep(model[-1], model[:-1].transform, columns, tuple(shown[k] for k in columns))


def _names_after(name: str, step: Any, names: Sequence[str]) -> dict[str, str]:
    """Names of a step's columns, and those that they had before it: the step may put its own name before them."""
    try:
        after = list(map(str, step.get_feature_names_out(names)))
    except (AttributeError, ValueError) as error:
        raise ValueError(_refusal(name, step, "does not say which columns it makes")) from error
    known = set(names)
    found = [column if column in known else column.partition("__")[2] for column in after]
    new = [column for column, before in zip(after, found, strict=True) if before not in known]
    if new:
        raise ValueError(_refusal(name, step, f"makes new columns, such as {new[0]!r}"))
    if len(set(found)) < len(found):
        raise ValueError(_refusal(name, step, "makes several columns of one"))
    return dict(zip(after, found, strict=True))


def _refusal(name: str, step: Any, what: str) -> str:
    return (
        f"the step {name!r} ({type(step).__name__}) of the pipeline {what}, so that nothing can be said about the "
        "columns that went in. Explain the last step, in its own columns: pass model[-1] and model[:-1].transform(X)."
    )
