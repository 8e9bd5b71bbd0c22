"""Pipelines whose last step is a tensor train: what their columns are called when they arrive there."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from polytrain.tensor.notation import default_names

__all__ = ["open_pipeline"]

_REMEDY = (
    "Pass the last step, such as model[-1], whose columns are then what the steps before hand over; or fit it on the "
    "table itself, which may hold categories and missing values."
)


def open_pipeline(pipeline: Pipeline) -> tuple[Any, Pipeline | None, tuple[str, ...] | None]:
    """Last step of a fitted pipeline, the steps before it, and the names of the columns that these hand over.

    A scaler, an imputer or a column transformer made of such keeps columns, perhaps in another order. Where columns are
    mixed, split or dropped, an explanation of the last step would not be one of the table: that is an error.
    """
    steps = [(name, step) for name, step in pipeline.steps[:-1] if step is not None and step != "passthrough"]
    if not steps:
        return pipeline[-1], None, None
    before = Pipeline(steps)
    first = steps[0][1]
    given = getattr(first, "feature_names_in_", None)
    try:
        names = default_names(first.n_features_in_) if given is None else tuple(map(str, given))
        made = tuple(before.get_feature_names_out(None if given is not None else list(names)))
    except AttributeError as error:
        raise TypeError(f"the pipeline cannot say which columns its steps hand over: {error}. {_REMEDY}") from error
    found = _origins(made, names)
    if found is None:
        shown = ", ".join(made[:6]) + (", ..." if len(made) > 6 else "")
        raise TypeError(
            f"the steps of the pipeline before its last make other columns of the {len(names)} that it gets: {shown}. "
            f"{_REMEDY}"
        )
    return pipeline[-1], before, found


def _origins(made: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The column that each feature is, or None unless each is another one of all columns.

    Column transformers put the name of a step before that of the column.
    """
    known = set(names)
    found = tuple(name if name in known else name.partition("__")[2] for name in made)
    return found if len(found) == len(names) and set(found) == known else None
