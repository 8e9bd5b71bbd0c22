"""Reports from Python, about estimators and the rows that they are judged on."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from polytrain.atomic_file import write_atomically
from polytrain.explain.view import ModelView, read_model
from polytrain.models import FittedModel, fitted_model
from polytrain.reporting.build import build_report
from polytrain.reporting.evidence import ScoredRows
from polytrain.reporting.subject import Subject
from polytrain.tables.evaluation import make_errors
from polytrain.texts import page_text

__all__ = ["Report", "report"]

# Rows of which curves, comparisons and explanations are made.
MOST_ROWS = 20_000


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a model, which a notebook shows in a frame.

    Attributes
    ----------
    html : str
        The page.
    title : str
        Its heading.
    """

    html: str
    title: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        write_atomically(path, [self.html.encode("utf-8", "replace")])

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.html) / 1024:.0f} KiB)"

    def _repr_html_(self) -> str:
        # In a frame, so that the styles of page and notebook do not meet; nothing in it may run.
        style = "width:100%;height:40rem;border:0"
        return (
            f'<iframe sandbox="" title="{page_text(self.title)}" style="{style}" srcdoc="{escape(self.html)}"></iframe>'
        )


def report(
    model: Any,
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str] | None = None,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    title: str | None = None,
) -> Report:
    """Make a page about a fitted estimator and its errors on given rows, to be shown to others.

    First the answer: the error, with an interval, beside a linear model and the best constant, and curves; then whether
    the model knows how sure it is, what matters in it, three rows explained, what the fit has tried, and the settings.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainRegressor, or Pipeline that ends with one
        A fitted estimator. Of a pipeline, the columns that the last step sees are explained.
    X : array-like or frame of shape (N, d)
        Rows, best those that the model has not learned from.
    y : array-like of shape (N,)
        Their targets.
    path : path-like, optional
        HTML file to write.
    X_train, y_train : optional
        Training rows and their targets, for a linear model to learn from, which the page then compares with.
    title : str, optional
        Heading of the page.

    Returns
    -------
    Report
        The page, which needs nothing else: no network, no script. It is a few hundred KiB large.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import polytrain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = polytrain.TensorTrainClassifier(rank=2, alpha=1e-3, max_sweeps=2, random_state=0).fit(X[::2], y[::2])
    >>> page = polytrain.report(model, X[1::2], y[1::2], title="Iris")
    >>> "petal width (cm)" in page.html, "<script" in page.html
    (True, False)
    """
    before, estimator = (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)
    fitted = fitted_model(estimator, "a report")
    if not fitted.one_output:
        raise ValueError(
            f"the model predicts {fitted.n_trains} numbers per row, and a report is about one. Fit a model per target."
        )
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train belong together; pass both, or none.")
    view = read_model(estimator, _names_after(before, estimator, fitted))
    name = getattr(y, "name", None)
    subject = Subject.of(view, None if name is None else str(name))
    started = time.perf_counter()
    rows, targets = _rows(view, before, X, y)
    counted = make_errors(fitted)
    for start in range(0, len(rows), MOST_ROWS):
        counted.add(rows[start : start + MOST_ROWS], targets[start : start + MOST_ROWS])
    seconds = time.perf_counter() - started
    train = None if X_train is None or y_train is None else _rows(view, before, X_train, y_train)
    step = -(-len(rows) // MOST_ROWS)
    scored = ScoredRows(subject, rows[::step], targets[::step], np.arange(len(rows))[::step])
    title = type(estimator).__name__ if title is None else str(title)
    page = Report(
        build_report(counted, scored, title=title, data_name="rows from Python", train=train, seconds=seconds), title
    )
    if path is not None:
        page.save(path)
    return page


def _names_after(before: Any, estimator: Any, fitted: FittedModel) -> list[str] | None:
    """Names of the columns that steps of a pipeline hand over, where these say them and the last step does not."""
    if before is None or fitted.columns is not None or hasattr(estimator, "feature_names_in_"):
        return None
    try:
        names = [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError):
        return None
    return names if len(set(names)) == len(names) == fitted.n_features else None


def _rows(view: ModelView, before: Any, X: Any, y: ArrayLike) -> tuple[NDArray, NDArray]:
    """Features (N, d) and targets (N,), for classifiers as indexes of classes."""
    rows = view.rows(X if before is None else before.transform(X))
    classes = view.model.model_.classes
    if classes is None:
        targets = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
    else:
        known = {label: k for k, label in enumerate(classes.tolist())}
        labels = column_or_1d(np.asarray(y)).tolist()
        unknown = next((label for label in labels if label not in known), None)
        if unknown is not None:
            raise ValueError(
                f"y holds {unknown!r:.60}, which is none of the model's classes {list(known)!s:.100}. Leave such "
                "rows out."
            )
        targets = np.array([known[label] for label in labels], dtype=np.intp)
    check_consistent_length(rows, targets)
    return rows, targets
