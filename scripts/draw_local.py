"""Draw why two rows have their scores: docs/images/local_explanations.png.

python scripts/draw_local.py [FILE]
"""

from __future__ import annotations

from doc_images import panels, save
from sklearn.datasets import load_breast_cancer, load_diabetes

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.plotting import LocalExplanationDisplay


def main() -> None:
    """Draw a patient and a tumour."""
    figure, (left, right) = panels(2, 12.5, 4.4)
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    named = X.assign(sex=X["sex"].map({1.0: "woman", 2.0: "man"}))
    model = TensorTrainRegressor(random_state=0).fit(named, y)
    LocalExplanationDisplay.from_estimator(model, named, row=17, max_columns=8, ax=left)
    left.set_title("How far diabetes has gone after a year: a number", fontsize="medium", pad=18)
    cells, kinds = load_breast_cancer(return_X_y=True, as_frame=True)
    classifier = TensorTrainClassifier(random_state=0).fit(cells, kinds.map({0: "malignant", 1: "benign"}))
    LocalExplanationDisplay.from_estimator(classifier, cells, row=73, max_columns=8, ax=right)
    right.set_title("Is a tumour malignant: log-odds", fontsize="medium", pad=18)
    save(figure, "local_explanations.png")


if __name__ == "__main__":
    main()
