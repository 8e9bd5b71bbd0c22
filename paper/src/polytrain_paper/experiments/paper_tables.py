"""The published figures: Tables III (USPS) and IV (MNIST) of the paper, as data.

Z. Chen, K. Batselier, J. A. K. Suykens, N. Wong, "Parallelized Tensor Train Learning of Polynomial Classifiers", IEEE
Transactions on Neural Networks and Learning Systems, 2018. Errors are in per cent as printed there; the times, printed
as multiples of ten seconds, are in seconds and belong to all ten trains together (MATLAB, four cores at 3.3 GHz).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LOSS_NAMES", "PUBLISHED_FEATURES", "ModelSize", "Published", "published", "table_sizes"]

#: The paper's names of the two algorithms.
LOSS_NAMES = {"squared": "TTLS", "logistic": "TTLR"}
#: The paper's features; its figures are compared with no others.
PUBLISHED_FEATURES = "cnn"


class ModelSize(NamedTuple):
    """One row of a table: number of features, degree in each of them, largest rank."""

    d: int
    degree: int
    rank: int

    def __str__(self) -> str:
        return f"d={self.d},degree={self.degree},rank={self.rank}"


class Published(NamedTuple):
    """What the paper reports for one row and loss: errors as fractions, time in seconds."""

    train_error: float
    test_error: float
    seconds: float


# d, degree, rank; TTLS: train error %, test error %, seconds; TTLR: the same.
_TABLE_III_USPS = (
    (20, 1, 8, 0.58, 4.33, 11.0, 0.45, 4.33, 48.7),
    (25, 1, 8, 0.47, 4.04, 15.7, 0.27, 3.99, 64.9),
    (30, 1, 8, 0.49, 3.84, 18.3, 0.30, 3.99, 81.8),
    (35, 1, 8, 0.38, 4.04, 22.1, 0.26, 4.24, 97.7),
    (40, 1, 8, 0.34, 3.89, 25.9, 0.14, 3.74, 113.9),
    (20, 2, 8, 0.49, 4.29, 20.4, 0.55, 4.24, 82.9),
    (25, 2, 8, 0.38, 4.29, 26.8, 0.29, 4.14, 108.2),
    (30, 2, 8, 0.51, 4.14, 32.8, 0.47, 3.99, 133.4),
    (35, 2, 8, 0.45, 4.38, 38.7, 0.32, 4.38, 158.8),
    (40, 2, 8, 0.34, 4.09, 44.8, 0.21, 3.74, 183.9),
    (20, 3, 8, 0.59, 4.58, 32.6, 0.64, 4.33, 114.7),
    (25, 3, 8, 0.49, 4.53, 40.7, 0.56, 4.14, 149.8),
    (30, 3, 8, 0.63, 4.43, 49.3, 0.51, 4.09, 183.5),
    (20, 1, 10, 0.56, 4.33, 19.1, 0.44, 4.33, 176.9),
    (25, 1, 10, 0.41, 3.94, 24.8, 0.27, 3.94, 247.2),
    (30, 1, 10, 0.51, 3.84, 30.9, 0.25, 4.04, 311.4),
    (35, 1, 10, 0.34, 3.94, 37.1, 0.22, 4.29, 381.7),
    (40, 1, 10, 0.44, 3.84, 43.6, 0.33, 3.84, 452.4),
)
_TABLE_IV_MNIST = (
    (20, 1, 8, 0.16, 0.96, 71.4, 0.12, 0.99, 175.2),
    (25, 1, 8, 0.15, 0.97, 93.8, 0.09, 0.98, 229.6),
    (30, 1, 8, 0.13, 0.86, 117.3, 0.10, 0.86, 289.6),
    (35, 1, 8, 0.19, 0.81, 139.5, 0.03, 0.82, 345.5),
    (40, 1, 8, 0.21, 0.94, 162.2, 0.07, 0.83, 403.1),
    (20, 2, 8, 0.19, 1.03, 120.8, 0.14, 1.01, 294.5),
    (25, 2, 8, 0.13, 1.00, 157.2, 0.13, 0.98, 383.2),
    (30, 2, 8, 0.19, 0.88, 189.4, 0.10, 0.91, 467.7),
    (35, 2, 8, 0.17, 0.86, 231.1, 0.13, 0.83, 565.4),
    (40, 2, 8, 0.17, 0.90, 256.7, 0.17, 0.88, 646.8),
    (20, 3, 8, 0.20, 1.10, 174.5, 0.19, 1.00, 422.4),
    (30, 3, 8, 0.22, 1.02, 272.1, 0.21, 0.90, 658.9),
    (40, 3, 8, 0.21, 0.97, 364.8, 0.07, 0.89, 903.7),
    (20, 1, 10, 0.20, 0.99, 101.4, 0.19, 0.98, 366.6),
    (30, 1, 10, 0.16, 0.88, 171.5, 0.17, 0.90, 622.4),
    (40, 1, 10, 0.17, 0.88, 240.5, 0.13, 0.89, 836.2),
    (40, 2, 10, 0.13, 0.93, 396.1, 0.14, 0.92, 1441.0),
    (40, 3, 10, 0.18, 0.94, 596.6, 0.10, 0.90, 2077.0),
    (40, 4, 10, 0.24, 1.02, 788.3, 0.14, 0.91, 2642.0),
)
_TABLES = {"usps": _TABLE_III_USPS, "mnist": _TABLE_IV_MNIST}


def table_sizes(dataset: str) -> tuple[ModelSize, ...]:
    """Rows of a data set's table, in the paper's order; data that the paper did not use get those of Table III.

    Examples
    --------
    >>> from polytrain_paper.experiments.paper_tables import table_sizes
    >>> len(table_sizes("usps")), len(table_sizes("mnist"))
    (18, 19)
    """
    return tuple(ModelSize(*row[:3]) for row in _TABLES.get(dataset, _TABLE_III_USPS))


def published(dataset: str, loss: str, size: ModelSize) -> Published | None:
    """Return the paper's figures for one row, or None where it has none.

    Examples
    --------
    >>> from polytrain_paper.experiments.paper_tables import ModelSize, published
    >>> published("usps", "squared", ModelSize(20, 1, 8))
    Published(train_error=0.0058, test_error=0.0433, seconds=11.0)
    """
    first = 3 if loss == "squared" else 6
    for row in _TABLES.get(dataset, ()):
        if ModelSize(*row[:3]) == size:
            train, test, seconds = row[first : first + 3]
            return Published(round(train / 100, 6), round(test / 100, 6), seconds)
    return None
