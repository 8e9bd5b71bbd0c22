"""What a notebook shows of an estimator."""

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
