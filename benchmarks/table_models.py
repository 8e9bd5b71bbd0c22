"""The models that `benchmarks.tables` compares: polytrain with its defaults, and its rivals.

LightGBM, CatBoost and the explainable boosting machine (interpret-core) are not installed with polytrain. The
SVM's settings are searched; the other models have their defaults or fixed settings.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from polytrain import TensorTrainClassifier, TensorTrainRegressor

MODELS = ("polytrain", "linear", "boosting", "lightgbm", "catboost", "ebm", "forest", "svm", "gp")
RIVALS = MODELS[1:]
#: Packages of models that scikit-learn does not have.
PACKAGES = {"lightgbm": "lightgbm", "catboost": "catboost", "ebm": "interpret"}

#: A Gaussian process is fitted up to this many training rows: its time grows with their cube.
MAX_GP_ROWS = 1500


def is_installed(name: str) -> bool:
    """Whether the package of a model is there."""
    return find_spec(PACKAGES.get(name, "sklearn")) is not None


def make_model(name: str, kind: str, X: Any, jobs: int, components: int | None = None) -> Any:
    """An unfitted model for rows like X, or None where it does not apply; kind is "classes" or "numbers".

    With `components`, a PCA to that many columns comes before the model.
    """
    model = _MAKERS[name](kind == "classes", X if components is None else X[:, :components], jobs)
    return make_pipeline(PCA(components, random_state=0), model) if components and model is not None else model


def _polytrain(classes: bool, X: Any, jobs: int) -> Any:
    return (TensorTrainClassifier if classes else TensorTrainRegressor)(random_state=0, n_jobs=jobs)


def _linear(classes: bool, X: Any, jobs: int) -> Any:
    model = LogisticRegression(max_iter=1000) if classes else RidgeCV(np.logspace(-3, 3, 13))
    return make_pipeline(_encoder() if _is_frame(X) else StandardScaler(), model)


def _boosting(classes: bool, X: Any, jobs: int) -> Any:
    family = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model = family(categorical_features="from_dtype", random_state=0)
    return make_pipeline(FunctionTransformer(_strings_to_categories), model) if _is_frame(X) else model


def _lightgbm(classes: bool, X: Any, jobs: int) -> Any:
    import lightgbm

    family = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    model = family(verbose=-1, n_jobs=jobs, random_state=0)
    return make_pipeline(FunctionTransformer(_strings_to_categories), model) if _is_frame(X) else model


def _catboost(classes: bool, X: Any, jobs: int) -> Any:
    import catboost

    family = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
    categories = list(X.select_dtypes(exclude="number")) if _is_frame(X) else None
    model = family(verbose=0, thread_count=jobs, random_seed=0, cat_features=categories, allow_writing_files=False)
    return make_pipeline(FunctionTransformer(_categories_to_text), model) if _is_frame(X) else model


def _ebm(classes: bool, X: Any, jobs: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    return (ExplainableBoostingClassifier if classes else ExplainableBoostingRegressor)(n_jobs=jobs, random_state=0)


def _forest(classes: bool, X: Any, jobs: int) -> Any:
    model = (RandomForestClassifier if classes else RandomForestRegressor)(500, n_jobs=jobs, random_state=0)
    return make_pipeline(_encoder(), model) if _is_frame(X) else model


def _svm(classes: bool, X: Any, jobs: int) -> Any:
    """RBF kernel, C and gamma (numbers: epsilon too, target standardised) searched by three inner folds."""
    if _is_frame(X):
        return None
    # gamma="scale" is 1 / columns for standardised columns
    gammas = np.array([0.1, 0.3, 1, 3]) / X.shape[1]
    if classes:
        grid = {"svc__C": (0.1, 1, 10, 100), "svc__gamma": gammas}
        inner = StratifiedKFold(3, shuffle=True, random_state=0)
        return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=inner, n_jobs=jobs)
    grid = {"svr__C": (1, 10, 100, 1000), "svr__gamma": gammas, "svr__epsilon": (0.01, 0.1)}
    inner = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(make_pipeline(StandardScaler(), SVR()), grid, cv=inner, n_jobs=jobs)
    return TransformedTargetRegressor(search, transformer=StandardScaler())


def _gp(classes: bool, X: Any, jobs: int) -> Any:
    """One length scale per column and white noise, all by marginal likelihood."""
    if classes or _is_frame(X) or len(X) > MAX_GP_ROWS:
        return None
    kernel = ConstantKernel(1.0, (1e-3, 1e5)) * RBF(np.ones(X.shape[1]), (1e-2, 1e4)) + WhiteKernel(0.1, (1e-7, 1e1))
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0)
    return make_pipeline(StandardScaler(), model)


_MAKERS = {
    "polytrain": _polytrain,
    "linear": _linear,
    "boosting": _boosting,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
    "ebm": _ebm,
    "forest": _forest,
    "svm": _svm,
    "gp": _gp,
}


def _is_frame(X: Any) -> bool:
    return isinstance(X, pd.DataFrame)


def _encoder() -> ColumnTransformer:
    """Numbers imputed and standardised, categories one-hot with a column of their own for missing ones."""
    numbers = make_column_selector(dtype_include="number")
    others = make_column_selector(dtype_exclude="number")
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), others),
        ]
    )


def _strings_to_categories(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(frame.select_dtypes(exclude="number").columns, "category"))


def _categories_to_text(frame: pd.DataFrame) -> pd.DataFrame:
    """CatBoost takes no missing categories."""
    others = frame.select_dtypes(exclude="number")
    return frame.assign(**{name: others[name].astype(object).fillna("missing").map(str) for name in others})
