"""What a notebook and the help show of an estimator."""

import inspect
import re
from pathlib import Path

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from polytrain import TensorTrainClassifier, TensorTrainRegressor

ESTIMATORS = [TensorTrainClassifier, TensorTrainRegressor]
PAGE = Path(__file__).parents[2] / "docs" / "api.md"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_it_links_to_our_pages(estimator):
    address = f"https://polytrain.readthedocs.io/en/stable/generated/polytrain.{estimator.__name__}.html"
    for shown in (estimator(), make_pipeline(StandardScaler(), estimator())):
        links = re.findall(r'href="([^"#]*)', estimator_html_repr(shown))
        assert address in links
        assert not any("scikit-learn.org" in link and "TensorTrain" in link for link in links)


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not beside these tests")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_these_pages_are_made(estimator):
    listed = PAGE.read_text("utf-8").split(".. currentmodule:: polytrain\n")[1]
    assert f"   {estimator.__name__}\n" in listed


def test_estimators_of_others_link_nowhere():
    class Mine(TensorTrainClassifier):
        pass

    assert "readthedocs" not in estimator_html_repr(Mine())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_all_parameters_are_described(estimator):
    """Those that both estimators have come from one place."""
    parameters, attributes = re.split(r"Parameters\n-+\n|Attributes\n-+\n|See Also\n-+\n", estimator.__doc__)[1:3]
    names = [re.findall(r"^(\w+) : ", section, re.MULTILINE) for section in (parameters, attributes)]
    assert names[0] == list(inspect.signature(estimator).parameters)
    assert {"trains_", "model_", "plan_", "feature_names_in_"} <= set(names[1])
