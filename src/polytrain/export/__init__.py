"""Fitted models in other forms."""
