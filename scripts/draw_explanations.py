"""The pictures of the page on explanations, from data that come with scikit-learn.

``python scripts/draw_explanations.py`` writes them into docs/images; another folder may be given as the argument.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.plotting import (
    ConvergenceDisplay,
    InteractionDisplay,
    PartialDependenceDisplay,
    RankDisplay,
    TermStrengthDisplay,
)
from polytrain_paper.datasets import load_digits_images
from polytrain_paper.misread import MisreadDigitsDisplay

# Terms are products of powers, and convergence takes sweeps.
POWERS = {"basis": "power", "init": "linear", "max_sweeps": 4, "random_state": 0}


def diabetes_pictures() -> dict:
    """Terms, interactions and a surface of numbers."""
    # Ages, pressures and the like as they were measured, not the standardised columns.
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    degree = [1 if name == "sex" else 2 for name in X.columns]  # two values only: its square says nothing new
    model = TensorTrainRegressor(degree=degree, rank=3, alpha=0.1, **POWERS).fit(X, y)
    return {
        "terms": TermStrengthDisplay.from_estimator(model, 10),
        "interactions": InteractionDisplay.from_estimator(model, X),
        "dependence": PartialDependenceDisplay.from_estimator(model, ["bmi", "bp"], X),
    }


def iris_pictures() -> dict:
    """Curves and regions of three classes."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names[y]
    model = TensorTrainClassifier(loss="logistic", degree=2, rank=3, alpha=1e-3, **POWERS).fit(X, names)
    return {
        "dependence_lines": PartialDependenceDisplay.from_estimator(model, "petal length (cm)", X),
    }


def digit_pictures() -> dict:
    """How digits were learned, and which are misread."""
    data = load_digits_images()
    classifier = TensorTrainClassifier(loss="logistic", degree=2, rank=8, alpha=1e-4, **POWERS)
    model = make_pipeline(PCA(30, random_state=0), classifier)
    model.fit(data.train_images.reshape(len(data.train_images), -1), data.train_labels)
    X_test = data.test_images.reshape(len(data.test_images), -1)
    return {
        "convergence": ConvergenceDisplay.from_estimator(model[-1]),
        "ranks": RankDisplay.from_estimator(model[-1], tol=0.1),
        "misread": MisreadDigitsDisplay.from_estimator(model, X_test, data.test_labels),
    }


def main() -> None:
    """Draw all into the folder."""
    matplotlib.use("Agg")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "images")
    folder.mkdir(parents=True, exist_ok=True)
    for name, display in {**diabetes_pictures(), **iris_pictures(), **digit_pictures()}.items():
        path = folder / f"explain_{name}.png"
        display.figure_.savefig(path, dpi=110)
        print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
