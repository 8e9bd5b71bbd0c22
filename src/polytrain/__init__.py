"""Polynomial classifiers and regressors whose coefficients are kept as a tensor train."""

__version__ = "0.1.0"
