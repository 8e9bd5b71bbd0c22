"""scikit-learn's own checks, with nothing expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from polytrain import TensorTrainClassifier, TensorTrainClassifierCV, TensorTrainRegressor

CLASSIFIERS = [
    TensorTrainClassifier(),
    TensorTrainClassifier(loss="logistic", degree=1, solver="exact"),
    TensorTrainClassifier(loss="logistic", degree=3, solver="cg", rank=4),
    TensorTrainClassifier(loss="squared", degree=1, solver="cg"),
    TensorTrainClassifier(loss="squared", degree=2, solver="exact", rank=4, decision="one-vs-one"),
    TensorTrainClassifier(loss="squared", degree=3, solver="exact", rank=3, basis="legendre"),
    TensorTrainClassifier(loss="logistic", degree=2, decision="one-vs-one", rank=4, solver="cg"),
    TensorTrainClassifier(loss="logistic", degree=2, decision="binary-code", rank=4, solver="exact"),
    TensorTrainClassifier(loss="squared", degree=2, decision="binary-code", rank=4, solver="cg", basis="chebyshev"),
    TensorTrainClassifier(loss="squared", degree=1, init="random", rank=3),
    TensorTrainClassifier(loss="squared", basis="spline", rank=3),
    TensorTrainClassifier(basis="gauss-rank", rank=3, bandwidth=2.0),
    TensorTrainClassifier(loss="squared", rank=4, init="dual", max_sweeps=0),
]
REGRESSORS = [
    TensorTrainRegressor(),
    TensorTrainRegressor(degree=1, solver="exact"),
    TensorTrainRegressor(degree=2, solver="cg", rank=4),
    TensorTrainRegressor(degree=3, solver="exact", basis="chebyshev", rank=4),
    TensorTrainRegressor(basis="spline-rank", rank=3),
    TensorTrainRegressor(basis="spline-distinct", rank=2, bandwidth=0.5),
    TensorTrainRegressor(basis="spline", rank=3, init="dual", max_sweeps=2),
]
CV_CLASSIFIERS = [
    TensorTrainClassifierCV(alphas=(1e-3, 1e-1), cv=3, rank=3, max_sweeps=4),
    TensorTrainClassifierCV(alphas=(1e-2,), cv=2, loss="squared", degree=1, rank=3, solver="cg", max_sweeps=4),
]


@parametrize_with_checks(CLASSIFIERS + REGRESSORS + CV_CLASSIFIERS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
