"""Tensor trains and their algebra; polynomials as terms, as dense tensors and as trains."""

from polytrain.tensor.polynomial import Polynomial
from polytrain.tensor.ranks import clip_ranks, rank_bounds
from polytrain.tensor.train import TensorTrain

__all__ = ["Polynomial", "TensorTrain", "clip_ranks", "rank_bounds"]
