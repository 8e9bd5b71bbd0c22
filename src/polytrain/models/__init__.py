"""Fitted models: the object that everything reads, and its file, which ``docs/model-files.md`` describes."""

from polytrain.models.fitted import FittedModel, fitted_model, prediction_limits

__all__ = ["FittedModel", "fitted_model", "prediction_limits"]
