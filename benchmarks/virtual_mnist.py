"""MNIST without a network, with virtual examples: test error against rank, beside the same without them.

    python -m benchmarks.virtual_mnist [--quick] [--ranks R ...] [--jobs N]
    python -m benchmarks.virtual_mnist --choose [STEP ...] [--quick] [--images N] [--ranks R] [--jobs N]

Trains learn principal components of deskewed images, and of distorted copies of them. ``--choose`` compares settings on
training images only: models learn from some of the shuffled training images and are judged on 10,000 others, of which
no copies are learned from. What won there is ``CHOSEN``, with which the curves are made; the test set is looked at once
per curve.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from benchmarks.digits_data import deskewed_mnist, run_with_data
from benchmarks.plots import have_matplotlib, plot_error_rank
from benchmarks.report import Report, make_parser
from benchmarks.settings import POWERS
from benchmarks.timing import seconds
from polytrain import TensorTrainClassifier
from polytrain_paper.features import Distort, VirtualExamples

#: Least and largest test error (%) that was published without a network.
PUBLISHED = {
    "SVM of degree 4, deskewed": (1.1, 1.1),
    "MPS, two-site updates": (0.97, 0.97),
    "virtual SVM of degree 9": (0.56, 0.68),
    "MPS, softmax, tuned augmentation": (0.50, 0.50),
}
HELD_OUT = 10_000


@dataclass(frozen=True)
class Settings:
    """A model and what it learns from; sizes of distortions, 0 for none."""

    shift: float = 0.0
    rotation: float = 0.0
    thickness: float = 0.0
    scale: float = 0.0
    shear: float = 0.0
    n_components: int = 40
    alpha: float = 1e-4
    degree: int = 2
    loss: str = "squared"

    def distortions(self) -> list[Distort]:
        """Both ways of everything that is not 0."""
        found = []
        if self.shift:
            found += [Distort(shift=(down * self.shift, right * self.shift)) for down, right in _DIRECTIONS]
        for sign in (1, -1):
            for name in ("rotation", "thickness", "shear"):
                if getattr(self, name):
                    found.append(Distort(**{name: sign * getattr(self, name)}))
            if self.scale:
                found.append(Distort(scale=(1 + self.scale) ** sign))
        return found

    def model(self, rank: int, n_jobs: int) -> TensorTrainClassifier:
        return TensorTrainClassifier(
            **{**POWERS, "degree": self.degree},
            loss=self.loss,
            rank=rank,
            alpha=self.alpha,
            max_sweeps=4,
            tol=0.0,
            random_state=0,
            n_jobs=n_jobs,
        )


_DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))
PLAIN = Settings()
CHOSEN = Settings(shift=1.0, rotation=8.0, thickness=0.5, n_components=50, alpha=3e-6)
#: What is tried, one after the other; every step goes on with the best so far.
STEPS: dict[str, list[dict]] = {
    "distortions": [
        {},
        {"shift": 1.0},
        {"shift": 1.0, "rotation": 8.0},
        {"shift": 1.0, "rotation": 8.0, "thickness": 0.5},
        {"shift": 1.0, "rotation": 8.0, "thickness": 0.5, "scale": 0.1},
        {"shift": 1.0, "rotation": 8.0, "thickness": 0.5, "shear": 0.15},
        {"shift": 1.0, "rotation": 12.0, "thickness": 0.5},
        {"shift": 0.7, "rotation": 8.0, "thickness": 0.5},
    ],
    "alpha": [{"alpha": alpha} for alpha in (1e-6, 3e-6, 1e-5, 3e-5)],
    "components": [{"n_components": 40}, {"n_components": 60}],
    "degree": [{"degree": 3}],
    "loss": [{"loss": "logistic"}],
}


class Features:
    """Images with labels, deskewed, and the components of those that are learned from."""

    def __init__(self, images: NDArray, labels: NDArray, n_components: int) -> None:
        self._images, self._labels = images, labels
        self._pca = PCA(n_components, svd_solver="covariance_eigh").fit(images)

    def rows(self, settings: Settings) -> tuple[NDArray, NDArray]:
        """Features and labels of the images and of their distorted copies."""
        return VirtualExamples(self._images, self._labels, self._pca, settings.distortions()).to_arrays()

    def transform(self, images: NDArray) -> NDArray:
        return self._pca.transform(images).astype(np.float32)


def measure(
    settings: Settings, rank: int, learned: tuple[NDArray, NDArray], judged: tuple[NDArray, NDArray], n_jobs: int
) -> dict:
    """Fit once, and count the errors on other images."""
    features = Features(*learned, settings.n_components)
    X, y = features.rows(settings)
    model = settings.model(rank, n_jobs)
    fit = seconds(lambda: model.fit(X, y))
    scores, wanted = model.decision_function(features.transform(judged[0])), judged[1][:, np.newaxis] == model.classes_
    return {
        "rank": rank,
        "rows": len(X),
        "error %": 100 * float(np.mean(model.classes_[scores.argmax(axis=1)] != judged[1])),
        # For trains with squared loss: it says more than the few images that are read wrongly.
        "squared error": float(np.mean(np.square(scores - np.where(wanted, 1, -1))))
        if settings.loss == "squared"
        else None,
        "fit s": fit,
    }


def choose(images: NDArray, labels: NDArray, steps: Sequence[str], rank: int, n_jobs: int, report: Report) -> None:
    """Try one thing after the other on training images, the last of which are judged and not learned from."""
    learned, judged = (
        (images[:-HELD_OUT], labels[:-HELD_OUT]),
        (images[-HELD_OUT:], labels[-HELD_OUT:]),
    )
    best, least = CHOSEN, np.inf
    if "distortions" in steps:
        best = replace(PLAIN, n_components=CHOSEN.n_components, alpha=CHOSEN.alpha)
    for step in steps:
        candidates = [replace(best, **changes) for changes in STEPS[step]]
        rows = [measure(settings, rank, learned, judged, n_jobs) for settings in candidates]
        names = [", ".join(f"{name} {value}" for name, value in changes.items()) or "none" for changes in STEPS[step]]
        table = [{step: name, **row} for name, row in zip(names, rows, strict=True)]
        report.table(f"{step}: {len(learned[0])} images, judged on {HELD_OUT} others", table)
        errors = [row["error %"] for row in rows]
        if min(errors) < least:
            best, least = candidates[int(np.argmin(errors))], min(errors)
    report.note(f"best: {best}, {least:.2f} %")


def compare(
    learned: tuple[NDArray, NDArray], judged: tuple[NDArray, NDArray], ranks: Sequence[int], n_jobs: int, report: Report
) -> None:
    """The curves with and without virtual examples."""
    n_images, curves = len(learned[0]), {}
    for name, settings in (("images alone", PLAIN), ("with virtual examples", CHOSEN)):
        curves[name] = [measure(settings, rank, learned, judged, n_jobs) for rank in ranks]
        report.table(f"{name}, {n_images} images, {n_jobs} processes, test set", curves[name])
    published = [{"model": name, "least error %": low, "largest": high} for name, (low, high) in PUBLISHED.items()]
    report.table("published", published)
    plain, virtual = curves.values()
    report.figure("least test error with virtual examples", min(row["error %"] for row in virtual), "%", at_most=0.80)
    # Virtual examples may cost as many times a fit as there are rows per image; the components differ, too.
    more = CHOSEN.n_components / PLAIN.n_components
    for few, many in zip(plain, virtual, strict=True):
        ratio = many["fit s"] / few["fit s"] / (more * many["rows"] / few["rows"])
        report.figure(f"fit time per row and component, rank {few['rank']}", ratio, "x", at_most=1.0)
    if have_matplotlib():
        plot_error_rank(report.plot_path(), curves, PUBLISHED, f"MNIST, deskewed, {n_images} images")


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--choose", nargs="*", choices=list(STEPS), help="compare settings on training images; no test image is seen"
    )
    parser.add_argument("--images", type=int, help="images to learn from")
    parser.add_argument("--ranks", nargs="+", type=int, help="ranks of the curves, or the one to choose at")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args(argv)
    images, labels, *test = deskewed_mnist()
    choosing = arguments.choose is not None
    report = Report("virtual_mnist" + ("_choice" if choosing else ""), arguments.quick)
    n_images = arguments.images or (2_000 if arguments.quick else 10_000 if choosing else len(images))
    if choosing:
        order = np.random.default_rng(0).permutation(len(images))
        some = np.concatenate([order[:n_images], order[-HELD_OUT:]])
        rank = arguments.ranks[0] if arguments.ranks else 8 if arguments.quick else 24
        choose(images[some], labels[some], arguments.choose or list(STEPS), rank, arguments.jobs, report)
    else:
        ranks = arguments.ranks or ((4, 8) if arguments.quick else (8, 12, 16, 24, 32))
        compare((images[:n_images], labels[:n_images]), (test[0], test[1]), ranks, arguments.jobs, report)
    report.finish()


if __name__ == "__main__":
    run_with_data(main)
