"""Exact explanations of fitted estimators, read off the cores of their trains."""

from polytrain.explain.dependence import PartialDependence, partial_dependence
from polytrain.explain.effects import Effects, MainEffect, PairEffect, RowEffects, effects
from polytrain.explain.local import LocalExplanations, explain_local
from polytrain.explain.sensitivity import FeatureImportances, SobolIndices, feature_importances, sobol_indices
from polytrain.explain.terms import TopTerms, to_sympy, top_terms

__all__ = [
    "Effects",
    "FeatureImportances",
    "LocalExplanations",
    "MainEffect",
    "PairEffect",
    "PartialDependence",
    "RowEffects",
    "SobolIndices",
    "TopTerms",
    "effects",
    "explain_local",
    "feature_importances",
    "partial_dependence",
    "sobol_indices",
    "to_sympy",
    "top_terms",
]
