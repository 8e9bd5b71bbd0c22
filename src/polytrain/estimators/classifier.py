"""Tensor-train polynomial classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import is_multilabel

from polytrain.checks import check_weight_range
from polytrain.decisions import Decision, EachLabel, OneVsRest, Softmax, decision_names, get_decision
from polytrain.estimators._base import TrainModel, learns_in_blocks
from polytrain.estimators._callbacks import with_callbacks
from polytrain.estimators._learning import Goal
from polytrain.estimators._parameters import check_between, check_choice
from polytrain.learning.losses import get_loss, loss_names
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.rows import ClassTarget, NumberTarget, Rows
from polytrain.tensor import TensorTrain
from polytrain.texts import short_list, shown

__all__ = ["TensorTrainClassifier"]

# The loss whose trains are learned together.
_JOINT = "multinomial"


def _has_log_odds(model: Any) -> bool:
    if hasattr(model, "model_"):
        has_log_odds = model.model_.has_probabilities
    else:
        has_log_odds = model.loss not in loss_names("classification") or get_loss(model.loss).link == "logit"
    if not has_log_odds:
        raise AttributeError(
            f"loss={model.loss!r}: its scores are not log-odds. Use loss='auto', 'logistic' or 'multinomial', or wrap "
            "the model in sklearn.calibration.CalibratedClassifierCV."
        )
    return True


def _class_weights(given: Any, classes: NDArray, totals: NDArray) -> NDArray:
    """Return the weight of every class, (m,), given the total weight of its rows."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        return totals.sum() / (len(classes) * totals)
    if not isinstance(given, Mapping):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {shown(given)}.")
    known = dict.fromkeys(classes.tolist())
    missing = [label for label in given if label not in known]
    if missing:
        raise ValueError(f"class_weight names classes that y lacks: {short_list(missing)}; y has {short_list(known)}.")
    for label, weight in given.items():
        check_between(f"class_weight[{label!r}]", weight, 0.0, np.inf)
    weights = np.array([float(given.get(label, 1.0)) for label in known])
    check_weight_range("class_weight", weights.min(), weights.max())
    return weights / weights.max()  # only ratios matter, and sums of huge weights must not overflow


class TensorTrainClassifier(ClassifierMixin, TrainModel):
    """Classifier whose scores are polynomials, or richer functions, of all features, kept as tensor trains.

    Every class (or pair of classes, or bit of a class code) gets a function of all features, a sum of products of
    functions of single features. Its exponentially many coefficients are never formed: they are the product of small
    cores, learned one at a time by sweeps over closed-form problems, or all at once where there are few rows.

    With the defaults, everything is chosen from the training rows: which functions, how much they may vary, the
    regularisation and the ranks, see the page "Choosing settings". Parameters that you set are kept.

    Parameters
    ----------
    loss : {"auto", "squared", "logistic", "multinomial", "squared_hinge"}, default="auto"
        "auto" learns with the squared loss, and turns scores into log-odds by a logistic regression on left-out rows,
        which gives probabilities. "squared" keeps the scores as they are, "logistic" learns log-odds, and
        "squared_hinge" is the loss of support vector machines, whose scores have no probabilities.

        "multinomial" learns the trains of all classes together, so that a softmax of their scores fits the labels:
        better probabilities of more than two classes, and slower. With few rows and settings left open it takes what
        "auto" learns if that has clearly better probabilities on left-out rows.
    decision : {"one-vs-rest", "one-vs-one", "binary-code"}, default="one-vs-rest"
        Reduction of more than two classes to binary problems: one train per class (largest score), one per pair
        of classes (majority vote), or one per bit of the class index (nearest code word).
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" gives all classes the same total weight.
    <parameters>

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels; for multi-label targets, the numbers of the labels.
    decision_ : Decision
        The rule that turns the trains' scores into classes.
    trains_ : list of TensorTrain
        The learned coefficients, in terms of the functions of the maps.
    <attributes>

    See Also
    --------
    TensorTrainRegressor : The same model for numbers.

    References
    ----------
    Z. Chen, K. Batselier, J. A. K. Suykens and N. Wong, "Parallelized Tensor Train Learning of Polynomial
    Classifiers", IEEE Transactions on Neural Networks and Learning Systems, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorTrainClassifier(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.choice_.basis
    'smooth'

    The classifier TTLS of the paper: powers of unscaled features, a random start, and a given rank and regularisation
    (its gamma is ``alpha``). With ``loss="logistic"`` it is the paper's TTLR.

    >>> paper = TensorTrainClassifier(
    ...     loss="squared", basis="power-unscaled", degree=1, rank=4, alpha=1e-4, init="random", random_state=0
    ... )
    >>> paper.fit(X, y).trains_[0].ranks
    (1, 2, 4, 2, 1)
    """

    def __init__(
        self,
        *,
        loss: str = "auto",
        decision: str = "one-vs-rest",
        class_weight: Mapping | str | None = None,
        basis: str | Sequence[str] = "auto",
        rank: str | int | Sequence[int] = "auto",
        alpha: str | float = "auto",
        bandwidth: str | float | None = "auto",
        relevance: Any = "auto",
        degree: int | Sequence[int] = 2,
        categorical_features: Any = "from_dtype",
        interaction_cst: Any = None,
        init: str | TensorTrain | Sequence[TensorTrain] = "auto",
        solver: str = "auto",
        max_sweeps: str | int = "auto",
        tol: float = 1e-3,
        early_stopping: bool | float = False,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> TensorTrainClassifier:
        """Learn from rows and labels.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features), Dask collection, or source of rows
            Features. Frames may hold numbers, categories, text, truth values and dates; NaN and None are missing
            values. Dask collections are fitted on the current Dask client; for sources see `polytrain.sources`.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels of any type; None with a source. Several columns of 0 and 1 are a multi-label target: each
            label gets its own train, with any ``decision``.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. A weight of zero is the same as leaving the row out.
        X_val, y_val, sample_weight_val : array-like, optional
            Validation rows that decide when to stop, whether ``early_stopping`` is set or not.

        Returns
        -------
        TensorTrainClassifier
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, (X_val, y_val, sample_weight_val))
        return self

    @learns_in_blocks
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        maps: MapList | None = None,
        forgetting: float = 0.0,
    ) -> TensorTrainClassifier:
        """Learn from one more block of rows.

        The first block is learned as by `fit`, which also chooses everything that is left open: maps with their
        ranges, ranks and regularisation. It should be typical; otherwise call `fit` with typical rows first. For every
        later block, the past is a quadratic around the last model. Probabilities are calibrated after every block:
        the spread of the scores on rows that were scored before they were learned from, their shift on all rows of
        the memory, with their weights.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels that can occur. Required in the first call, optional later.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; unlike those of `fit`, all of them count in units of a row.
        maps : MapList, optional
            Maps for the first block, such as ``maps_`` of another model, instead of those that would be chosen.
        forgetting : float, default=0.0
            Fraction of the weight of all earlier rows, at least 0 and below 1, that is forgotten before this block.

        Returns
        -------
        TensorTrainClassifier
            The fitted estimator.
        """
        if is_multilabel(y) or isinstance(getattr(self, "decision_", None), EachLabel):
            raise ValueError("partial_fit learns one label per row. Use fit, or a model for each column of y.")
        is_first, known = not hasattr(self, "model_"), None if classes is None else np.unique(classes)
        if is_first and known is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that can occur.")
        if not is_first and known is not None and not np.array_equal(known, self.classes_):
            raise ValueError(f"classes are {short_list(self.classes_)} since the first call, got {short_list(known)}.")
        self._learn_block(X, y, sample_weight, maps, forgetting, partial(self._with_classes, known=known))
        return self

    def _with_classes(self, rows: Rows, known: Any) -> Rows:
        """Return the first block with all classes, some of which may have no rows."""
        summary, among = rows.summary, set(known.tolist())
        strange = [label for label in summary.labels.tolist() if label not in among]
        if strange:
            raise ValueError(f"y has the labels {short_list(strange)}, but classes are {short_list(known)}.")
        weights = np.zeros(len(known))
        weights[np.searchsorted(known, summary.labels)] = summary.label_weights
        for code in self._check_decision(known).code(len(known)):
            if not weights[code != 0].any():
                raise ValueError(
                    f"the first block has no rows of the classes {known[code != 0].tolist()}, which "
                    f"decision={self.decision!r} compares. Begin with rows of one of them."
                )
        return rows.with_labels(known, weights)

    def _block_targets(self) -> Sequence[ClassTarget]:
        n_classes = len(self.classes_)
        factors = _class_weights(self.class_weight, self.classes_, np.ones(n_classes))
        return [ClassTarget(code, factors) for code in self.decision_.code(n_classes)]

    @property
    def classes_(self) -> NDArray:
        """Labels."""
        return self.model_.classes  # type: ignore[return-value]

    @property
    def decision_(self) -> Decision:
        """The rule that turns the trains' scores into classes."""
        return self.model_.decision  # type: ignore[return-value]

    def _goal(self, rows: Rows, loss: str) -> Goal:
        """Reduce the classes to binary problems."""
        summary, classes = rows.summary, rows.summary.labels
        if summary.target is not None:
            return self._goal_of_labels(len(summary.target.low))
        decision = self._check_decision(classes)
        factors = _class_weights(self.class_weight, classes, summary.label_weights)
        if isinstance(self.class_weight, Mapping):
            least = factors.min() * (summary.least_weight / summary.largest_weight)
            check_weight_range("class_weight times sample_weight", least, 1.0)
        targets = guides = [ClassTarget(code, factors) for code in decision.code(len(classes))]
        if not all(target.keeps_all for target in targets):
            guides = [ClassTarget(code, factors) for code in OneVsRest().code(len(classes))]
        ends = {"decision": decision, "classes": classes}
        return Goal(targets, guides, ends, joint=self.loss == _JOINT, calibrates=self.loss == "auto")

    def _goal_of_labels(self, n_labels: int) -> Goal:
        """Learn each label by itself: 0 and 1 become -1 and 1."""
        check_choice("decision", self.decision, decision_names())
        for name, is_given in (("loss", self.loss == _JOINT), ("class_weight", self.class_weight is not None)):
            if is_given:
                raise ValueError(
                    f"{name}={getattr(self, name)!r:.60} needs one label per row, and y has {n_labels} columns. Leave "
                    f"{name} at its default, or fit a model for each column."
                )
        targets = [NumberTarget(label, mean=0.5, spread=0.5) for label in range(n_labels)]
        classes = np.arange(n_labels)
        ends = {"decision": self._as_before(EachLabel(), classes), "classes": classes, "one_output": False}
        return Goal(targets, targets, ends, calibrates=self.loss == "auto")

    def _learning_loss(self) -> str:
        """Return the loss that trains are learned with.

        "auto" is the squared loss, whose scores become log-odds, and "multinomial" the logistic one, given the others.
        """
        check_choice("loss", self.loss, ["auto", _JOINT, *loss_names("classification")])
        return str({"auto": "squared", _JOINT: "logistic"}.get(self.loss, self.loss))

    def _check_decision(self, classes: NDArray) -> Decision:
        """Return the decision; refuse incompatible classes and parameters."""
        check_choice("decision", self.decision, decision_names())
        if len(classes) < 2:
            raise ValueError(
                f"y holds only one class ({classes.tolist()[0]!r}) in the rows of positive weight; "
                "a classifier needs at least two classes."
            )
        if self.loss == _JOINT and self.decision != OneVsRest.name:
            raise ValueError(f"loss={_JOINT!r} needs decision={OneVsRest.name!r}, got {self.decision!r}.")
        has_softmax = self.loss in (_JOINT, "auto") and self.decision == OneVsRest.name
        return self._as_before(get_decision(Softmax.name if has_softmax else self.decision, len(classes)), classes)

    def _as_before(self, decision: Decision, classes: NDArray) -> Decision:
        """Return the decision, if a warm start has the same one and the same classes as the last fit."""
        if self._is_warm and not (np.array_equal(self.classes_, classes) and self.decision_.name == decision.name):
            raise ValueError(
                f"warm_start=True, but the last fit had classes {short_list(self.classes_)} and decision "
                f"{self.decision_.name!r}, this one has {short_list(classes)} and {decision.name!r}. "
                "Keep classes and decision, or set warm_start=False."
            )
        return decision

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.loss != _JOINT and self.class_weight is None
        return tags

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Return confidence scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; values outside the training range are clipped to it, unless ``basis="power-unscaled"``.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
            For two classes the polynomial's value, positive for ``classes_[1]``. For more, one number per class, the
            largest of which decides: the scores ("one-vs-rest"), or votes or minus Hamming distances with the
            tie-break added as a fraction. For multi-label targets one number per label, positive if it is predicted.
        """
        return self._ask(FittedModel.decide, X)

    def predict(self, X: ArrayLike) -> NDArray:
        """Return the label of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels; for multi-label targets 0 and 1, a column per label.
        """
        return self._ask(FittedModel.predict, X)

    @available_if(_has_log_odds)
    def predict_log_proba(self, X: ArrayLike) -> NDArray:
        """Return the logarithm of the probability of every class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities.
        """
        return self._ask(FittedModel.log_probabilities, X)

    @available_if(_has_log_odds)
    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Return the probability of every class; not available for ``loss="squared"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
            Probabilities; every row sums to 1, except for multi-label targets, where each label has its own. With
            "one-vs-one" and "binary-code", the largest one may not belong to the predicted class where the trains
            contradict each other: `predict` counts votes or bits.
        """
        return self._ask(FittedModel.probabilities, X)
