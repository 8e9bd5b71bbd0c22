"""scikit-learn's own checks, with nothing expected to fail but what goes wrong in the checks themselves."""

import pytest
import sklearn
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from power_models import power_classifier, power_regressor

OLD = parse_version(sklearn.__version__) < parse_version("1.8")
# Ten that differ most; those that take longest are slow tests.
MANY_SETTINGS = [
    TensorTrainClassifier(),
    TensorTrainRegressor(),
    power_classifier(),
    power_regressor(),
    power_classifier(loss="multinomial", rank=3, max_sweeps=2),
    power_regressor(loss="huber", rank=3, max_sweeps=2),
]
MORE_SETTINGS = [
    TensorTrainClassifier(interaction_cst="pairwise", decision="one-vs-one"),
    power_classifier(loss="squared_hinge", decision="binary-code", basis="gauss-rank", class_weight="balanced", rank=3),
    TensorTrainRegressor(basis="spline", init="random", early_stopping=True),
    power_regressor(loss="poisson", basis="chebyshev", degree=3, solver="cg", rank=3),
]


def run_check(estimator, check):
    """Run a check, unless this version of it goes wrong by itself."""
    if check.func.__name__ == "check_positive_only_tag_during_fit" and OLD:
        pytest.skip("before 1.8 it makes whole numbers of the rows and subtracts their mean in place")
    check(estimator)


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@parametrize_with_checks(MANY_SETTINGS)
def test_scikit_learn_checks(estimator, check):
    run_check(estimator, check)


def _wrong_checks(estimator):
    """Several targets that this check draws are negative, whatever ``positive_only`` says."""
    return {"check_regressor_multioutput": "negative targets"} if estimator.loss == "poisson" else {}


@pytest.mark.filterwarnings("ignore::polytrain.DataWarning")
@pytest.mark.slow
@parametrize_with_checks(MORE_SETTINGS, expected_failed_checks=_wrong_checks)
def test_scikit_learn_checks_of_more_settings(estimator, check):
    run_check(estimator, check)
