"""Five shuffled folds of scikit-learn's digits, 30 principal components: polytrain beside its rivals.

python -m benchmarks.digits_folds
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.settings import POWERS
from polytrain import TensorTrainClassifier

TTLR = {**POWERS, "loss": "logistic", "alpha": 1e-4, "max_sweeps": 4, "random_state": 0}
MODELS = {
    "polytrain, defaults": TensorTrainClassifier(random_state=0),
    "polytrain, powers, rank 8": TensorTrainClassifier(rank=8, **TTLR),
    "polytrain, powers, rank 4": TensorTrainClassifier(rank=4, **TTLR),
    "logistic regression": LogisticRegression(max_iter=5000),
    "SVC, cubic kernel": SVC(kernel="poly", degree=3),
    "SVC, RBF kernel": SVC(),
}


def main() -> None:
    X, y = load_digits(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=0)
    for name, model in MODELS.items():
        scores = cross_val_score(make_pipeline(PCA(30, random_state=0), model), X, y, cv=folds)
        print(f"{name:30s} {100 * (1 - scores.mean()):.2f} %", flush=True)


if __name__ == "__main__":
    main()
