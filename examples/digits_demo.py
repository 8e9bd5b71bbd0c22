"""Handwritten digits: tensor-train polynomials beside logistic regression and a polynomial SVM.

Run it with ``make demo``. The data come with scikit-learn; nothing is downloaded.
"""

from __future__ import annotations

import time

from sklearn.base import ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from polytrain import TensorTrainClassifier

N_FEATURES, DEGREE, RANK = 30, 2, 8


def build_models() -> dict[str, Pipeline]:
    """Every model sees the same 30 principal components."""

    def on_components(classifier: ClassifierMixin) -> Pipeline:
        return make_pipeline(PCA(N_FEATURES, random_state=0), classifier)

    def tensor_train(loss: str) -> TensorTrainClassifier:
        powers = {"basis": "power", "degree": DEGREE, "rank": RANK, "alpha": 1e-4, "init": "linear", "max_sweeps": 4}
        return TensorTrainClassifier(loss=loss, random_state=0, verbose=1, **powers)

    return {
        "TTLS (squared loss)": on_components(tensor_train("squared")),
        "TTLR (logistic loss)": on_components(tensor_train("logistic")),
        "logistic regression": on_components(LogisticRegression(max_iter=5000)),
        "SVC, poly kernel, degree 3": on_components(SVC(kernel="poly", degree=3)),
    }


def count_stored(model: Pipeline) -> int:
    """Numbers that the classifier must keep in order to predict."""
    classifier = model[-1]
    if isinstance(classifier, TensorTrainClassifier):
        return classifier.n_parameters_
    if isinstance(classifier, SVC):
        return classifier.support_vectors_.size + classifier.dual_coef_.size + classifier.intercept_.size
    return classifier.coef_.size + classifier.intercept_.size


def print_table(lines: list[tuple[str, ...]]) -> None:
    """Print the head and the lines under it, names to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "   ".join("-" * width for width in widths)
    print(f"\n{rule}")
    for row, line in enumerate(lines):
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        print("   ".join([line[0].ljust(widths[0]), *cells[1:]]))
        if row == 0:
            print(rule)
    print(rule)


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    n_classes = len(set(y))
    print(f"Digits: {len(X_train)} rows to learn from, {len(X_test)} to test on, {n_classes} classes.")
    print(f"Features: {X.shape[1]} pixels -> {N_FEATURES} principal components.")
    print(f"Polynomials: degree {DEGREE} in each feature, tensor trains of rank {RANK}, one per class.\n")

    lines = []
    for name, model in build_models().items():
        print(f"Training: {name}", flush=True)
        started = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - started
        error = 1 - model.score(X_test, y_test)
        lines.append((name, f"{100 * error:.2f} %", f"{count_stored(model):,}", f"{seconds:.2f} s"))

    print_table([("model", "test error", "numbers stored", "training time"), *lines])

    full = n_classes * (DEGREE + 1) ** N_FEATURES
    stored = lines[0][2]
    print(f"\nThe full polynomials would have {n_classes} x {DEGREE + 1}^{N_FEATURES} = {full:,} coefficients.")
    print(f"Their tensor trains have {stored}.")


if __name__ == "__main__":
    main()
