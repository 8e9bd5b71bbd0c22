"""Fitted models and their files, see ``docs/model-files.md``."""

from polytrain.models.fitted import FittedModel, fitted_model, prediction_limits

__all__ = ["FittedModel", "fitted_model", "prediction_limits"]
