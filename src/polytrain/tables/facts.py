"""What there is to say about a fitted estimator, and about its columns."""

from __future__ import annotations

from typing import Any

from polytrain.columns import CategoryColumn, DateColumn, NumberColumn
from polytrain.columns.scalars import text_of
from polytrain.tables.model import TableModel

__all__ = ["column_facts", "model_facts"]


def model_facts(estimator: Any) -> dict[str, Any]:
    """Return properties of a fitted estimator by name, in the order in which they are shown."""
    plan = estimator.plan_
    facts: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "loss": plan.loss,
        **_richness(estimator),
        "rank": max(plan.ranks),
        "alpha": plan.alpha,
        **({} if estimator.choice_.bandwidth is None else {"bandwidth": estimator.choice_.bandwidth}),
        "basis": ", ".join(dict.fromkeys(feature_map.basis for feature_map in estimator.maps_)),
        "features": estimator.model_.n_features,
        "parameters": estimator.n_parameters_,
        "sweeps": estimator.n_iter_,
        "stop_reason": estimator.stop_reason_,
    }
    if estimator.model_.classes is not None:
        facts["classes"] = [str(label) for label in estimator.classes_]
        facts["decision"] = estimator.decision_.name
    return facts


def _richness(estimator: Any) -> dict[str, int]:
    """Largest degree of polynomials, or the largest number of functions of a column if not all are polynomials."""
    polynomial = all(feature_map.powers is not None for feature_map in estimator.maps_)
    return {"degree": max(estimator.maps_.dims) - 1} if polynomial else {"functions": max(estimator.maps_.dims)}


def column_facts(model: TableModel) -> list[dict[str, Any]]:
    """Return what each column is: name, kind, categories or parts, and whether missing cells were learned from."""
    found = []
    for k, (name, group) in enumerate(zip(model.view.column_names, model.view.groups, strict=True)):
        column = model.view.column(k)
        is_number = column is None or isinstance(column, NumberColumn)
        kind = "number" if is_number else "category" if isinstance(column, CategoryColumn) else "date"
        facts: dict[str, Any] = {"name": name, "kind": kind}
        if isinstance(column, CategoryColumn):
            facts["categories"] = [text_of(level) for level in column.levels]
        if isinstance(column, DateColumn):
            facts["parts"] = list(column.parts)
        facts["has_missing"] = any(model.fitted.maps[feature].has_missing for feature in group)
        found.append(facts)
    return found
