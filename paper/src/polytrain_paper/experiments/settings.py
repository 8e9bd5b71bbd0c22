"""What a reproduction is to do, checked once: data, features, rows of the table, and how alpha is chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polytrain_paper.experiments.code_digest import code_digest
from polytrain_paper.experiments.paper_tables import LOSS_NAMES, PUBLISHED_FEATURES, ModelSize, table_sizes
from polytrain_paper.features.cnn import PACKAGED_N_FEATURES

__all__ = ["DATASETS", "FEATURES", "INITS", "RowSpec", "Settings", "ablation_rows", "parse_rows"]

DATASETS = ("usps", "mnist", "digits")
FEATURES = ("cnn", "pca", "dft")
INITS = ("linear", "random")

# One row per axis of the table beside the first one: enough to see a trend in d, degree and rank.
QUICK_SIZES = (
    ModelSize(20, 1, 8),
    ModelSize(30, 1, 8),
    ModelSize(40, 1, 8),
    ModelSize(20, 2, 8),
    ModelSize(20, 1, 10),
)
# Features that no net has prepared are not yet nearly a code of the classes: squares and larger ranks pay.
COMPONENT_SIZES = (ModelSize(40, 2, 8), ModelSize(40, 2, 16), ModelSize(40, 2, 24))
ABLATION_SIZES = (
    ModelSize(20, 1, 2),
    ModelSize(20, 1, 4),
    ModelSize(20, 1, 8),
    ModelSize(20, 2, 8),
    ModelSize(20, 3, 8),
)
# Images are brought to 28 x 28 before features are taken.
N_PIXELS = 28 * 28
# Where alpha is chosen for all rows of a degree: the paper's smallest model.
REFERENCE_D, REFERENCE_RANK = 20, 8
# Cross-validation on all 60,000 rows of MNIST would take ten times as long as the fits.
CV_ROWS = {"mnist": 10_000}


class RowSpec(NamedTuple):
    """One fit: a loss, a size and a start."""

    loss: str
    size: ModelSize
    init: str

    def __str__(self) -> str:
        name = f"{LOSS_NAMES[self.loss]} {str(self.size).replace(',', ' ')}"
        return name if self.init == "linear" else f"{name} {self.init} start"


@dataclass(frozen=True)
class Settings:
    """All that the results depend on, apart from the rows and the code.

    Attributes
    ----------
    dataset, features : str
        What to learn from.
    alphas : tuple of float
        Regularisations among which cross-validation chooses. Features are in [-1, 1] and the loss is a mean over rows,
        so 1e-1 shrinks every polynomial visibly and 1e-5 hardly any.
    folds : int
        Number of folds.
    cv_rows : int or None
        Most training rows that cross-validation uses, drawn at random; None is all.
    cv_per : {"degree", "row"}
        Choose alpha once for each loss and degree, at d = 20 and rank 8, or for every row of the table.
    cv_sweeps : int
        One-way sweeps of each fit, from the linear start.
    max_sweeps, tol : int, float
        When the fits stop; the paper's values.
    seed : int
        Seed of starts, folds and the subsample.
    """

    dataset: str
    features: str = "cnn"
    alphas: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    folds: int = 10
    cv_rows: int | None = None
    cv_per: str = "degree"
    cv_sweeps: int = 2
    max_sweeps: int = 4
    tol: float = 1e-2
    seed: int = 0

    @classmethod
    def default(cls, dataset: str, features: str = "cnn", **changes: Any) -> Settings:
        """Return the settings for a data set and its features, apart from what is not None in ``changes``.

        Examples
        --------
        >>> from polytrain_paper.experiments.settings import Settings
        >>> Settings.default("mnist").cv_rows
        10000
        """
        settings: dict[str, Any] = {"cv_rows": CV_ROWS.get(dataset)}
        if features != PUBLISHED_FEATURES:
            settings["cv_per"] = "row"  # ranks are to be compared by their errors in cross-validation
        settings.update({name: value for name, value in changes.items() if value is not None})
        return cls(dataset, features, **settings)

    def cv_size(self, size: ModelSize) -> ModelSize:
        """Return the size at which alpha is chosen for a row."""
        if self.cv_per == "row":
            return size
        return ModelSize(min(size.d, REFERENCE_D), size.degree, min(size.rank, REFERENCE_RANK))

    def alpha_key(self, loss: str, size: ModelSize) -> dict[str, Any]:
        """Everything that the choice of alpha depends on."""
        return {
            "kind": "alpha",
            "code": code_digest(),
            "dataset": self.dataset,
            "features": self.features,
            "loss": loss,
            **self.cv_size(size)._asdict(),
            "alphas": list(self.alphas),
            "folds": self.folds,
            "cv_rows": self.cv_rows,
            "cv_sweeps": self.cv_sweeps,
            "tol": self.tol,
            "seed": self.seed,
        }

    def row_key(self, row: RowSpec) -> dict[str, Any]:
        """Everything that the result of a row depends on."""
        chosen = self.alpha_key(row.loss, row.size)
        return {**chosen, "kind": "row", "init": row.init, "max_sweeps": self.max_sweeps, **row.size._asdict()} | {
            "alpha_at": self.cv_size(row.size)._asdict()
        }

    def convergence_key(self, row: RowSpec) -> dict[str, Any]:
        """Everything that a convergence curve depends on."""
        return {**self.row_key(row), "kind": "convergence"}


def default_row_names(dataset: str, features: str) -> str:
    """Return the rows that are run when none are asked for."""
    if features != PUBLISHED_FEATURES:
        return "components"
    return "quick" if dataset == "digits" else "paper"


def parse_rows(
    texts: Sequence[str] | None, dataset: str, features: str, losses: Sequence[str], init: str
) -> tuple[RowSpec, ...]:
    """Turn the names of row sets, or rows such as ``d=20,degree=1,rank=8``, into what is to be fitted.

    Examples
    --------
    >>> from polytrain_paper.experiments.settings import parse_rows
    >>> [str(row) for row in parse_rows(["d=20,degree=1,rank=8"], "usps", "cnn", ["squared", "logistic"], "linear")]
    ['TTLS d=20 degree=1 rank=8', 'TTLR d=20 degree=1 rank=8']
    """
    named = {"paper": table_sizes(dataset), "quick": QUICK_SIZES, "components": COMPONENT_SIZES}
    sizes: list[ModelSize] = []
    for text in texts or [default_row_names(dataset, features)]:
        sizes += named[text] if text in named else [_parse_size(text)]
    for size in sizes:
        _check_size(size, features)
    return tuple(RowSpec(loss, size, init) for size in dict.fromkeys(sizes) for loss in dict.fromkeys(losses))


def ablation_rows(losses: Sequence[str]) -> tuple[RowSpec, ...]:
    """Return rows that differ in start, loss, degree and rank from the paper's first one."""
    return tuple(RowSpec(loss, size, init) for size in ABLATION_SIZES for loss in losses for init in INITS)


def _parse_size(text: str) -> ModelSize:
    pairs = dict(re.findall(r"(\w+)\s*=\s*(\d+)", text))
    plain = re.sub(r"\w+\s*=\s*\d+|[,\s]", "", text)
    if plain or set(pairs) != set(ModelSize._fields):
        raise ValueError(
            f"rows must be paper, quick, components or a row such as 'd=20,degree=1,rank=8', got {text!r}."
        )
    return ModelSize(**{name: int(value) for name, value in pairs.items()})


def _check_size(size: ModelSize, features: str) -> None:
    if features == "cnn" and size.d not in PACKAGED_N_FEATURES:
        nets = ", ".join(map(str, PACKAGED_N_FEATURES))
        raise ValueError(f"d={size.d}: the nets have {nets} features. Choose one of these, or --features pca or dft.")
    if not 2 <= size.d <= N_PIXELS:
        raise ValueError(f"d must be from 2 to {N_PIXELS}, the number of pixels, got {size.d}.")
    for name in ("degree", "rank"):
        if getattr(size, name) < 1:
            raise ValueError(f"{name} must be a positive integer, got {getattr(size, name)}.")
