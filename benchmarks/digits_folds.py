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

from polytrain import TensorTrainClassifier

MODELS = {
    "polytrain, defaults (rank 8)": TensorTrainClassifier(random_state=0),
    "polytrain, rank 4": TensorTrainClassifier(rank=4, random_state=0),
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
