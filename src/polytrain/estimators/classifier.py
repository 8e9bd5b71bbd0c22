"""Tensor-train polynomial classifier."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from polytrain.checks import check_weight_range
from polytrain.decisions import Decision, OneVsRest, Softmax, decision_names, get_decision
from polytrain.estimators._base import Conditional, TrainModel, learns_in_blocks
from polytrain.estimators._callbacks import with_callbacks
from polytrain.estimators._learning import Goal
from polytrain.estimators._parameters import check_choice
from polytrain.estimators._probabilities import class_weights
from polytrain.learning.losses import get_loss, loss_names
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.rows import ClassTarget, Rows
from polytrain.tensor import TensorTrain
from polytrain.texts import short_list

__all__ = ["TensorTrainClassifier"]

# The loss whose trains are learned together.
_JOINT = "multinomial"


def _no_log_odds(model: Any) -> str | None:
    if hasattr(model, "model_"):
        has_log_odds = model.model_.has_probabilities
    else:
        has_log_odds = model.loss not in loss_names("classification") or get_loss(model.loss).link == "logit"
    if has_log_odds:
        return None
    return (
        f"loss={model.loss!r}: its scores are not log-odds. Use loss='auto', 'logistic' or 'multinomial', or wrap the "
        "model in sklearn.calibration.CalibratedClassifierCV."
    )


_needs_log_odds = partial(Conditional, _no_log_odds)


class TensorTrainClassifier(ClassifierMixin, TrainModel):
    """Classifier whose scores are polynomials, or richer functions, of all features, kept as tensor trains.

    Every class (or pair of classes, or bit of a class code) gets a function of all features, a sum of products of
    functions of single features. Its exponentially many coefficients are never formed: they are the product of small
    cores, learned one at a time by sweeps over closed-form problems, or all at once where there are few rows.

    With the defaults, everything is chosen from the training rows: which functions, how much they may vary, the
    regularisation and the ranks, see the guide "How it chooses". Whatever is given is kept. With
    ``loss="squared", basis="power", degree=1, scale=None, init="random"``, a rank and an alpha it is the paper's TTLS.

    Parameters
    ----------
    loss : {"auto", "squared", "logistic", "multinomial", "squared_hinge"}, default="auto"
        "auto" learns with the squared loss, and turns scores into log-odds by a logistic regression on rows that were
        left out, so that there are probabilities. "squared" is the paper's TTLS, with scores as they are, "logistic"
        its TTLR. "multinomial" learns the trains of all classes together, so that a softmax of their scores fits the
        labels: better probabilities of more than two classes, and slower. With few rows and settings left open it
        takes what "auto" learns where that has clearly better probabilities of rows that were left out.
        "squared_hinge" is that of support vector machines; its scores say nothing about probabilities.
    basis : str or sequence of str, default="auto"
        Functions of each feature; a sequence gives one basis per feature. "auto" chooses among those that suit the
        values: "smooth" (polynomials up to degree 8, damped), "gauss" (very smooth) and "spline" (may bend sharply)
        see a value by its place in the range, "smooth-rank", "gauss-rank" and "spline-rank" by its rank, so that
        outliers do not matter, "spline-distinct" by its place among the different values. "power", "chebyshev" and
        "legendre" are the polynomials of ``degree``. "category" takes numbers as names of categories.
    rank : int, sequence of int or "auto", default="auto"
        Size of the bonds between neighbouring cores, cut to what the dimensions allow: how much of one side of the
        features the other side can know. A sequence gives one rank per bond.
    alpha : float or "auto", default="auto"
        Strength of the Tikhonov regularisation: alpha / 2 times the sum of the squares of all coefficients is added to
        the weighted mean of the loss (the paper's gamma).
    bandwidth : float, "auto" or None, default="auto"
        How much the functions of all columns may vary together, unless they are polynomials of ``degree``: small values
        let few columns act at once, large ones many. None is 1.
    relevance : None, "auto", or array-like of shape (n_features,), default=None
        How much each column may matter, for bases that have a bandwidth: a factor of the bandwidth per column. None
        gives all columns the same. "auto" learns the factors from rows that are left out, and keeps them equal where
        those rows gain nothing; it takes longer, and is worth it where many columns do not matter.
    degree : int or sequence of int, default=2
        Largest power of each feature, for "power", "chebyshev" and "legendre"; a sequence gives one per feature.
    scale : {"minmax"} or None, default="minmax"
        For the same bases: "minmax" maps each feature's range in the training rows onto [-1, 1] and clips to it. None
        leaves features as they are (the paper's behaviour); they should then be of size one at most.
    categorical_features : "from_dtype", None, or array-like of bool, int or str, default="from_dtype"
        Which columns are categories: those of a frame whose type says so, none, or those that are named. Columns of
        text always are, unless all of their values are dates.
    interaction_cst : None, "no_interactions", "pairwise", or sequence of groups of columns, default=None
        Which columns may interact: all, none, any two, or those in a common group of column numbers or names; columns
        in no group are one more. The score is a sum of functions of a group each; ``rank`` is that of a group's train.
    init : {"auto", "linear", "random", "dual"}, TensorTrain, or list of TensorTrain, default="auto"
        Where the sweeps start: where the choice of the other settings has ended ("auto"), at the linear model, at
        random cores (the paper), at the exact solution cut to the ranks, for the squared loss and at most 1300
        different rows ("dual"), or at given trains, one per train to be learned, for the functions of the maps.
    decision : {"one-vs-rest", "one-vs-one", "binary-code"}, default="one-vs-rest"
        How more than two classes become binary problems: one train per class (largest score), one per pair of classes
        (majority vote), or one per bit of the class index (nearest code word).
    solver : {"auto", "exact", "cg", "lbfgs"}, default="auto"
        How a core problem is solved: exactly from moments, by preconditioned conjugate gradients, by L-BFGS, or by the
        cheaper of the first two.
    max_sweeps : int or "auto", default="auto"
        Largest number of one-way sweeps. 0 keeps the start. "auto" is 4, or fewer from a good start.
    tol : float, default=1e-3
        Sweeps stop once the objective changes by at most this part of its value over a sweep.
    early_stopping : bool, default=False
        Hold ``validation_fraction`` of the rows out, stop once sweeps no longer lower their loss, and keep the train
        with the lowest. ``max_sweeps="auto"`` is 20 then.
    validation_fraction : float, default=0.1
        Part of the rows that are held out, one at least; equal rows stay together.
    n_iter_no_change : int, default=2
        How many sweeps must pass without a lower loss of the validation rows.
    sampling : {"auto"} or None, default="auto"
        "auto" lets the first sweeps see samples where there are at least 4096 different rows, unless trains are given
        as ``init``; the last sweep always sees all. None lets every sweep see all rows.
    max_memory : int or str, default=None
        Bytes, or text such as "2 GB", that the rows of a fit may take in memory, with what is computed from them; what
        does not fit waits on disk. For sources of rows and memory maps. None is half of the machine's memory.
    checkpoint : path-like, default=None
        Folder that keeps the state of every train after each sweep. A fit with the same rows, parameters and
        ``random_state`` (an integer) goes on from what is there and ends with the same model.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" makes all classes weigh the same in total.
    warm_start : bool, default=False
        Start from the trains and maps of the last fit, with its ranks, and its alpha unless that is left open with
        ``loss="auto"``; probabilities are calibrated anew.
    forgetting : float, default=0.0
        Part of the weight of all earlier rows that `partial_fit` forgets with every block.
    random_state : int, RandomState instance or None, default=None
        Randomness of the start and of the rows that the first sweeps see.
    n_jobs : int or None, default=None
        Number of processes for the trains, or for the rows of a single train; the result does not depend on it. None
        is 1, -1 all cores.
    verbose : int, default=0
        1 says what was chosen and shows a progress bar (log lines without tqdm), 2 shows log lines and the table of
        what was tried.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    decision_ : Decision
        How the trains' scores become classes.
    trains_ : list of TensorTrain
        The learned coefficients, in terms of the functions of the maps.
    relevances_ : ndarray of shape (n_features,)
        Factor of the bandwidth of every column, see ``relevance``: 0.05 for columns that were not needed, all 1 where
        they are equal.
    choice_ : Chosen
        What was chosen and why, with the table of what was tried.
    history_ : list of dict
        One record per train and sweep: train, sweep, n_rows, loss, objective, decrease, ranks, seconds, and
        validation_loss where there are validation rows. Losses are means over the ``n_rows`` rows that the sweep saw.
    n_iter_ : int
        Sweeps of the train that took most.
    stop_reason_ : str
        "tolerance" if all trains met ``tol``, "validation" if rows that were held out said so, else "max_sweeps",
        "stopped" if a callback did, or "rounding" if a sweep had to be undone.
    n_parameters_ : int
        Stored coefficients.
    stream_ : Stream
        What `partial_fit` knows of the past besides the model: how much it weighs, and a memory of some rows.
    maps_ : MapList
        The map of every feature: its functions, and its range in the training rows.
    model_ : FittedModel
        All that predictions, explanations, exports and model files read; it does not change.
    plan_ : Settings
        What was learned: checked sizes, ranks and settings.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where ``X`` had string column names.

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

    The polynomial classifier of the paper, with the logistic loss:

    >>> paper = TensorTrainClassifier(loss="logistic", basis="power", degree=2, rank=4, alpha=1e-4, random_state=0)
    >>> paper.fit(X, y).trains_[0].ranks
    (1, 3, 4, 3, 1)
    """

    def __init__(
        self,
        *,
        loss: str = "auto",
        basis: str | Sequence[str] = "auto",
        rank: str | int | Sequence[int] = "auto",
        alpha: str | float = "auto",
        bandwidth: str | float | None = "auto",
        relevance: Any = None,
        degree: int | Sequence[int] = 2,
        scale: str | None = "minmax",
        categorical_features: Any = "from_dtype",
        interaction_cst: Any = None,
        init: str | TensorTrain | Sequence[TensorTrain] = "auto",
        decision: str = "one-vs-rest",
        solver: str = "auto",
        max_sweeps: str | int = "auto",
        tol: float = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        sampling: str | None = "auto",
        max_memory: int | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        class_weight: Mapping | str | None = None,
        warm_start: bool = False,
        forgetting: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.basis = basis
        self.rank = rank
        self.alpha = alpha
        self.bandwidth = bandwidth
        self.relevance = relevance
        self.degree = degree
        self.scale = scale
        self.categorical_features = categorical_features
        self.interaction_cst = interaction_cst
        self.init = init
        self.decision = decision
        self.solver = solver
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.sampling = sampling
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.forgetting = forgetting
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        y : array-like of shape (n_samples,)
            Labels of any type; None with a source.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. A weight of zero is the same as leaving the row out.
        X_val, y_val, sample_weight_val : array-like, optional
            Rows that are not learned from and say when to stop, whether ``early_stopping`` is set or not.

        Returns
        -------
        TensorTrainClassifier
            The fitted estimator.
        """
        loss = self._learning_loss()
        with self._open(X, y, sample_weight, None) as rows:
            learned, validation = self._split(rows, loss, X_val, y_val, sample_weight_val)
            self._fit_rows(learned, loss, validation)
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
    ) -> TensorTrainClassifier:
        """Learn from one more block of rows.

        The first block is learned from as by `fit`, which also settles everything that is left open: maps with their
        ranges, ranks and regularisation. Let it be typical, or call `fit` with typical rows first. For every later
        block the past is a quadratic around the last model, see the guide "Streams". Probabilities are calibrated
        anew: how far scores lie apart by rows that were scored before they were learned from, where they lie by all
        rows of the memory, with their weights.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels that will ever come. Needed at the first call; later it may be left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; unlike those of `fit`, all of them count in units of a row.
        maps : MapList, optional
            Maps for the first block, such as ``maps_`` of another model, instead of those that it would settle.

        Returns
        -------
        TensorTrainClassifier
            The fitted estimator.
        """
        loss = self._learning_loss()
        self._check_one_block(X)
        first = not hasattr(self, "model_")
        if first:
            self._fit_first(X, y, classes, sample_weight, loss, maps)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={short_list(np.unique(classes))} is not what the first call of partial_fit, or fit, was "
                f"given: {short_list(self.classes_)}."
            )
        factors = class_weights(self.class_weight, self.classes_, np.ones(len(self.classes_)))
        targets = [ClassTarget(code, factors) for code in self.decision_.code(len(self.classes_))]
        self._learn_block(X, y, sample_weight, None, targets, first)
        return self

    def _fit_first(self, X: Any, y: Any, classes: Any, sample_weight: Any, loss: str, maps: MapList | None) -> None:
        """Fit to the first block, which need not have all classes."""
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that will ever come.")
        known = np.unique(classes)
        with self._open(X, y, sample_weight, None) as rows:
            summary = rows.summary
            among = set(known.tolist())
            strange = [label for label in summary.labels.tolist() if label not in among]
            if strange:
                raise ValueError(
                    f"y has labels that are not in classes: {short_list(strange)}; classes are {short_list(known)}."
                )
            weights = np.zeros(len(known))
            weights[np.searchsorted(known, summary.labels)] = summary.label_weights
            for code in self._check_decision(known).code(len(known)):
                if not weights[code != 0].any():
                    raise ValueError(
                        f"the first block has no rows of the classes {known[code != 0].tolist()}, which "
                        f"decision={self.decision!r} compares. Begin with rows of one of them, or use "
                        f"decision={OneVsRest.name!r}."
                    )
            self._fit_rows(rows.with_labels(known, weights), loss, maps=maps)

    @property
    def classes_(self) -> NDArray:
        """Labels."""
        return self.model_.classes  # type: ignore[return-value]

    @property
    def decision_(self) -> Decision:
        """How the trains' scores become classes."""
        return self.model_.decision  # type: ignore[return-value]

    def _goal(self, rows: Rows, loss: str) -> Goal:
        """Reduce the classes to binary problems."""
        summary, classes = rows.summary, rows.summary.labels
        decision = self._check_decision(classes)
        factors = class_weights(self.class_weight, classes, summary.label_weights)
        if isinstance(self.class_weight, Mapping):
            least = factors.min() * (summary.least_weight / summary.largest_weight)
            check_weight_range("class_weight times sample_weight", least, 1.0)
        targets = [ClassTarget(code, factors) for code in decision.code(len(classes))]
        guides = targets
        if not all(target.keeps_all for target in targets):
            guides = [ClassTarget(code, factors) for code in OneVsRest().code(len(classes))]
        ends = {"decision": decision, "classes": classes}
        return Goal(targets, guides, ends, joint=self.loss == _JOINT, calibrates=self.loss == "auto")

    def _learning_loss(self) -> str:
        """Return the loss that trains are learned with.

        "auto" is the squared loss, whose scores become log-odds, and "multinomial" the logistic one, given the others.
        """
        check_choice("loss", self.loss, ["auto", _JOINT, *loss_names("classification")])
        return {"auto": "squared", _JOINT: "logistic"}.get(self.loss, self.loss)

    def _check_decision(self, classes: NDArray) -> Decision:
        """Return the decision; classes and decision must fit it, and the last fit where there is a warm start."""
        check_choice("decision", self.decision, decision_names())
        if len(classes) < 2:
            raise ValueError(
                f"y holds only one class ({classes.tolist()[0]!r}) in the rows of positive weight; "
                "a classifier needs at least two classes."
            )
        if self.loss == _JOINT and self.decision != OneVsRest.name:
            raise ValueError(
                f"loss={_JOINT!r} learns one train per class, all of them together, so decision must be "
                f"{OneVsRest.name!r}, got {self.decision!r}."
            )
        has_softmax = self.loss in (_JOINT, "auto") and self.decision == OneVsRest.name
        decision = get_decision(Softmax.name if has_softmax else self.decision, len(classes))
        if self._is_warm:
            same = np.array_equal(self.classes_, classes) and self.decision_.name == decision.name
            if not same:
                raise ValueError(
                    f"warm_start=True, but the last fit had classes {short_list(self.classes_)} and decision "
                    f"{self.decision_.name!r}, this one has {short_list(classes)} and {decision.name!r}. "
                    "Keep classes and decision, or set warm_start=False."
                )
        return decision

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Return confidence scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; values outside the training range are clipped to it, unless ``scale=None``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the polynomial's value, positive for ``classes_[1]``. For more, a number per class whose
            largest entry is the decision: the scores ("one-vs-rest"), or votes or minus Hamming distances with the
            tie-break added as a fraction.
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
        ndarray of shape (n_samples,)
            Labels.
        """
        return self._ask(FittedModel.predict, X)

    @_needs_log_odds
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

    @_needs_log_odds
    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Return the probability of every class; not there for ``loss="squared"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; every row sums to 1. With "one-vs-one" and "binary-code" the largest one need not belong to
            the predicted class where the trains contradict each other: `predict` counts votes or bits.
        """
        return self._ask(FittedModel.probabilities, X)
