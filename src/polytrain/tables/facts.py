"""What there is to say about the estimator of a table's model."""

from __future__ import annotations

from typing import Any

from polytrain.tables.model import TableModel

__all__ = ["model_facts"]


def model_facts(model: TableModel) -> dict[str, Any]:
    """Return properties by name, in the order in which they are shown."""
    estimator = model.estimator
    plan = estimator.plan_
    facts: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "loss": plan.loss,
        **_richness(estimator),
        "rank": max(plan.ranks),
        "alpha": plan.alpha,
        **({} if estimator.choice_.bandwidth is None else {"bandwidth": estimator.choice_.bandwidth}),
        "basis": ", ".join(dict.fromkeys(feature_map.basis for feature_map in estimator.maps_)),
        "features": estimator.n_features_in_,
        "parameters": estimator.n_parameters_,
        "sweeps": estimator.n_iter_,
        "stop_reason": estimator.stop_reason_,
    }
    if model.is_classifier:
        facts["classes"] = [str(label) for label in estimator.classes_]
        facts["decision"] = estimator.decision_.name
    return facts


def _richness(estimator: Any) -> dict[str, int]:
    """Largest degree of polynomials, or the largest number of functions of a column if not all are polynomials."""
    polynomial = all(feature_map.powers is not None for feature_map in estimator.maps_)
    return {"degree": max(estimator.maps_.dims) - 1} if polynomial else {"functions": max(estimator.maps_.dims)}
