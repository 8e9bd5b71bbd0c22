"""The base class of classifier and regressor: fits rows, stores the fitted model and predicts with it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polytrain.checks import check_columns, check_mass, dense, gathered_warnings, is_sparse
from polytrain.choice import Choice, Chosen, Settings, Task, calibrate, choose
from polytrain.config import current_config
from polytrain.decisions import Softmax, TwoClasses
from polytrain.estimators._callbacks import CallbackSupportMixin, FitCallbacks
from polytrain.estimators._data_warnings import warn_of_guessing, warn_of_parameters, warn_of_rows
from polytrain.estimators._learning import Goal, fit_trains
from polytrain.estimators._left_out import see_left_out
from polytrain.estimators._parameters import (
    SharedParameters,
    check_factor,
    check_parameters,
    given_starts,
    held_out_part,
    is_sequence,
    make_settings,
)
from polytrain.estimators._probabilities import expected_labels, recalibrated
from polytrain.estimators._streaming import Stream, go_on
from polytrain.estimators._uncertainty import fit_uncertainty, set_apart
from polytrain.estimators._warm_start import last_choice
from polytrain.estimators.summary import SummaryMixin
from polytrain.evaluation import LeftOut
from polytrain.explain import feature_importances
from polytrain.learning.losses import get_loss
from polytrain.learning.settings import Start
from polytrain.learning.sweep import STOP_REASONS
from polytrain.learning.targets import Target
from polytrain.learning.trainer import TrainResult
from polytrain.maps import MapList, basis_names, map_kind
from polytrain.models import FittedModel
from polytrain.progress import show
from polytrain.rows import Rows, is_dask, is_dask_frame, lazy_blocks, open_fit
from polytrain.rows.checking import check_more
from polytrain.rows.opening import given_validation, hold_out
from polytrain.rows.rows import positive_rows
from polytrain.sources import SparseRows, is_source
from polytrain.tensor import TensorTrain
from polytrain.texts import shown

# Entries of a record that are losses.
_LOSSES = ("loss", "objective", "decrease", "validation_loss")
_LARGEST_SEED = np.iinfo(np.int32).max
_Prepare = Callable[[Rows], Rows] | None


def _reported(record: dict, maps: MapList, size: float, degree: int) -> dict:
    """Return the record of a sweep in the units of the target, with the ranks of all columns."""
    losses = {key: record[key] * size**degree for key in _LOSSES if key in record}
    return {**record, **losses, "ranks": maps.widened_ranks(record["ranks"])}


def _sweeps(results: Sequence[TrainResult], maps: MapList, sizes: NDArray, degree: int) -> dict[str, Any]:
    """Return the fitted attributes about the sweeps of all trains."""
    history = [
        {"train": index, **_reported(record, maps, size, degree)}
        for index, (result, size) in enumerate(zip(results, sizes.tolist(), strict=True))
        for record in result.history
    ]
    return {"history_": history, "stop_reason_": max((r.stop_reason for r in results), key=STOP_REASONS.index)}


def _check_missing(rows: Rows, bases: Sequence[str]) -> None:
    """Refuse missing values in columns whose basis cannot take them."""
    for k in np.flatnonzero(rows.summary.has_missing).tolist():
        basis = bases[k]
        if basis != "auto" and not map_kind(basis).takes_missing:
            name = k if rows.feature_names is None else repr(rows.feature_names[k])
            raise ValueError(
                f"X contains NaN in feature {name}, which the basis {basis!r} cannot take. Use basis='auto' or impute."
            )


@contextmanager
def _remedy_for_overflow(n_features: int) -> Iterator[None]:
    """Add a remedy to errors about numbers that become too large."""
    try:
        yield
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise ValueError(
            f"{error}: products of {n_features} features that are not of size one overflow. "
            "Scale the features to [-1, 1], for example with basis='power'."
        ) from error


def _has_partial_fit(model: Any) -> bool:
    if model.interaction_cst is not None:
        raise AttributeError("with interaction_cst, partial_fit would let any columns interact. Use fit.")
    if isinstance(getattr(model, "class_weight", None), str):
        raise AttributeError(f"class_weight={model.class_weight!r} needs all rows at once. Use fit, or a dict.")
    return True


learns_in_blocks = available_if(_has_partial_fit)


class TrainModel(SharedParameters, SummaryMixin, CallbackSupportMixin, BaseEstimator, ABC):
    """Base of the estimators. Subclasses define their parameters and turn targets into problems."""

    # The target of the link in scikit-learn's HTML of an estimator.
    _doc_link_module = "polytrain"
    _doc_link_template = "https://polytrain.readthedocs.io/en/stable/generated/polytrain.{estimator_name}.html"

    model_: FittedModel
    plan_: Settings
    choice_: Chosen
    left_out_: LeftOut | None
    stream_: Stream
    history_: list[dict[str, Any]]
    stop_reason_: str
    warnings_: tuple[str, ...]

    @property
    def trains_(self) -> list[TensorTrain]:
        """The learned trains, in a new list: changing the list does not change the model."""
        return list(self.model_.trains)

    @property
    def maps_(self) -> MapList:
        """The map of every column."""
        return self.model_.maps

    @property
    def relevances_(self) -> NDArray:
        """Factor of the bandwidth of every feature."""
        check_is_fitted(self, "choice_")
        factors = self.choice_.relevances
        return np.ones(len(self.maps_)) if factors is None else np.array(factors)

    @property
    def n_parameters_(self) -> int:
        """Stored coefficients."""
        return self.model_.n_parameters

    @property
    def feature_importances_(self) -> NDArray:
        """Importances of the columns, which sum to 1; see `polytrain.explain.feature_importances`."""
        check_is_fitted(self, "model_")
        try:
            return feature_importances(self).importances
        except ValueError as error:
            # Without ranges of the columns there is nothing to average over; the attribute does not exist then.
            raise AttributeError(str(error)) from error

    @abstractmethod
    def _learning_loss(self) -> str:
        """Return the loss that trains are learned with, with its settings, as text."""

    @abstractmethod
    def _goal(self, rows: Rows, loss: str) -> Goal:
        """Check targets and return what to learn."""

    @abstractmethod
    def _block_targets(self) -> Sequence[Target]:
        """Return what to learn from one more block of rows, one entry per train."""

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation_rows: tuple[Any, Any, Any] = (None, None, None),
        *,
        is_block: bool = False,
        maps: MapList | None = None,
        prepare: _Prepare = None,
    ) -> None:
        """Learn from rows in memory, on disk or on a cluster, and store the results at the end.

        ``validation_rows`` are features, targets and weights. The first block of a stream may come with maps, and with
        a function that prepares its rows.
        """
        check_parameters(self)
        loss, validation, apart = self._learning_loss(), None, None
        number_loss = loss if is_regressor(self) else None
        with gathered_warnings() as said, open_fit(self, X, y, sample_weight, number_loss) as rows:
            rows = rows if prepare is None else prepare(rows)
            if validation_rows[0] is not None:
                validation = given_validation(rows, *validation_rows, number_loss)
            elif part := held_out_part(self.early_stopping):
                rows, validation = hold_out(rows, part)
            if getattr(self, "calibration_fraction", None) is not None:
                rows, apart = set_apart(rows, float(self.calibration_fraction))
            goal = self._goal(rows, loss)
            n_trains, sizes, degree = len(goal.targets), goal.sizes, get_loss(loss).degree
            seeds = check_random_state(self.random_state).randint(_LARGEST_SEED, size=n_trains).tolist()
            settings = make_settings(self, rows, loss, validation is not None, goal.joint)
            if is_block and isinstance(settings.relevance, str):  # other columns may matter in later blocks
                settings = replace(settings, relevance=None)
            if maps is None:
                _check_missing(rows, settings.bases)
                warn_of_parameters(self, settings)
            else:
                settings = replace(settings, maps=_checked_maps(maps, rows.summary.n_features))
            with _remedy_for_overflow(rows.summary.n_features):
                is_joint = isinstance(goal.decision, Softmax)
                task = Task(
                    settings=settings,
                    rows=rows,
                    targets=goal.targets,
                    guides=goal.guides,
                    seeds=seeds,
                    n_jobs=self.n_jobs,
                    calibrate=goal.calibrates,
                    is_joint=is_joint,
                    may_finish=not is_block and isinstance(goal.decision, Softmax | TwoClasses),
                )
                before = self.model_ if self._is_warm else None
                choice = last_choice(before, self.plan_, self.choice_, task, sizes) if before else choose(task)
                self._show_choice(choice)
                maps, loss = choice.maps, choice.plan.loss
                warn_of_rows(rows, maps.whole)
                if number_loss is None or get_loss(number_loss).has_noise:
                    warn_of_guessing(rows, goal, choice.held_out)
                ends = {"feature_names": rows.feature_names, "columns": rows.columns_of_any_type, **goal.ends}
                scored = choice.held_out
                if scored is not None and goal.decision is not None:
                    labels = scored.label_weights
                    size, shift = calibrate(scored.scores, labels, scored.n_distinct, goal.targets, is_joint)
                    ends |= {"size": size, "shift": shift, "calibrated": True}

                def attributes(cores: Sequence[NDArray]) -> dict | None:
                    return {"model_": FittedModel(loss, maps, [cores], **ends).widened()} if n_trains == 1 else None

                callbacks = FitCallbacks(self, attributes)

                def watch(train: int, record: dict, cores: Sequence[NDArray]) -> bool:
                    return callbacks.sweep_done(train, _reported(record, maps, float(sizes[train]), degree), cores)

                knows_errors = apart or choice.held_out or (before and before.uncertainty)
                measure = bool(number_loss and get_loss(choice.plan.loss).has_noise and knows_errors)
                starts = [*map(Start, seeds, self._starts(choice, goal), self._checkpoints(n_trains, validation))]
                results, plan = fit_trains(self, rows, validation, choice, goal, starts, watch, measure)
            model = FittedModel(plan.loss, maps, [result.cores for result in results], **ends)
            if measure:
                model = fit_uncertainty(model, choice, [result.moments for result in results], rows, apart, before)
            left_out = choice.held_out if apart is None else apart
            seen = None if left_out is None else see_left_out(model, left_out, rows)
            self._keep(
                rows.column_names,
                warnings_=tuple(said),
                model_=model.widened(),
                plan_=replace(plan, rank=maps.widened_ranks(plan.ranks)),
                choice_=Chosen.of(choice),
                left_out_=None if seen is None else seen.measure(model, choice, rows),
                stream_=Stream(float(rows.summary.n_rows), float(rows.summary.n_rows)),
                **_sweeps(results, maps, sizes, degree),
            )
            callbacks.end(lambda: {"model_": self.model_})
        if int(self.verbose) and self.choice_.reasons:
            show(str(self.summary()))

    def _keep(self, column_names: Any, **results: Any) -> Self:
        """Store the results of a fit, by the names of the attributes."""
        self.__dict__.update(results)
        self.n_iter_ = max(Counter(record["train"] for record in self.history_).values(), default=0)
        self.n_features_in_ = self.model_.n_columns
        if column_names is not None:
            self.feature_names_in_ = np.asarray(column_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _learn_block(
        self, X: Any, y: Any, sample_weight: Any, maps: MapList | None, forgetting: float, prepare: _Prepare = None
    ) -> None:
        """Learn from one more block of rows, see `polytrain.estimators._streaming`; the first block is a fit."""
        if is_source(X):
            raise ValueError(
                f"partial_fit takes one block of rows, got X of type {type(X).__name__}. Pass its blocks, or call fit."
            )
        is_first, number_loss = not hasattr(self, "model_"), self._learning_loss() if is_regressor(self) else None
        forgetting = check_factor("forgetting", forgetting, 1.0)
        if is_first:
            self._fit(X, y, sample_weight, is_block=True, maps=maps, prepare=prepare)
        check_parameters(self)
        check_columns(self, X := dense(X))
        model, classes, targets = self.model_, self.model_.classes, self._block_targets()
        known = model.n_trains if classes is None else classes
        X, y, weights = check_more(X, y, sample_weight, number_loss, model.columns, model.n_features, known)
        mass = check_mass(sample_weight, len(X))
        codes = y if classes is None else np.searchsorted(classes, y)
        rows = X, y, weights = positive_rows(X, codes, weights * (mass / weights.sum()))
        stream = Stream(0.0, mass) if is_first else deepcopy(self.stream_)
        entropy = [int(self.random_state)] if isinstance(self.random_state, Integral) else []
        rng = np.random.default_rng([stream.n_blocks, *entropy])
        labels = np.eye(len(classes))[y] if model.calibrated and classes is not None else np.zeros(0)
        stream.forget(forgetting)
        if is_first:
            stream.remember(rows, rng, labels)
            self.stream_ = stream
            return
        plan = self.plan_
        if isinstance(self.alpha, str):  # it was chosen for the first rows; noise does not shrink with more of them
            plan = replace(plan, alpha=self.choice_.alpha * stream.first / (stream.seen + mass))
        if model.calibrated:
            stream.remember_scores(model.values(X), labels * weights[:, None])
        if not len(stream.X):  # from a model file or an average: these rows also represent those of the past
            stream.X, stream.y, stream.weights = X, y, weights * (stream.seen / weights.sum())
            stream.labels = expected_labels(model, X, targets) if model.calibrated else labels
        seeds = rng.integers(_LARGEST_SEED, size=len(targets)).tolist()
        with _remedy_for_overflow(model.n_features):
            results = go_on(model, plan, targets, rows, stream, seeds)
        model = model.with_trains([result.cores for result in results]).with_targets(y)
        stream.remember(rows, rng, labels)
        if model.calibrated:
            model = recalibrated(model, stream, targets)
        sizes, degree = model.size if classes is None else np.ones(len(results)), get_loss(plan.loss).degree
        sweeps = _sweeps(results, model.maps, sizes, degree)
        sweeps["left_out_"] = None  # the figures of the first block are not those of this model
        self._keep(getattr(self, "feature_names_in_", None), model_=model, plan_=plan, stream_=stream, **sweeps)

    def _show_choice(self, choice: Choice) -> None:
        """Log the choice, and with ``verbose`` of 2 or more all trials."""
        if int(self.verbose) and choice.reasons:
            chosen = Chosen.of(choice)
            tried = [f"tried:\n{chosen.table()}"] if int(self.verbose) > 1 else []
            show(*tried, f"chosen: {chosen.settings}")

    @property
    def _is_warm(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "model_")

    def _starts(self, choice: Choice, goal: Goal) -> Sequence[Any]:
        """Return cores to start from, one entry per train; None for the start that the plan names."""
        if choice.starts is not None:
            return choice.starts
        if choice.plan.init == "given":
            trains, sizes = given_starts(self.init, len(goal.targets), choice.maps.dims), goal.sizes.tolist()
            return [[train[0] / size, *train[1:]] for train, size in zip(trains, sizes, strict=True)]
        return [None] * len(goal.targets)

    def _checkpoints(self, n_trains: int, validation: Rows | None) -> list[Path | None]:
        """Return one file per train, in a folder that is created if needed."""
        folder = current_config().checkpoint
        if folder is None:
            return [None] * n_trains
        if validation is not None or self.interaction_cst is not None:
            raise ValueError(
                f"checkpoint={shown(str(folder))} stores the states of single trains, which does not work with "
                "early_stopping, X_val or interaction_cst. Leave these out, or fit outside of config_context."
            )
        if not isinstance(self.random_state, Integral):
            raise ValueError(f"checkpoint needs an integer random_state, got {self.random_state!r:.60}.")
        folder.mkdir(parents=True, exist_ok=True)
        return [folder / f"train-{index:03d}.safetensors" for index in range(n_trains)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that is safe to open, even from an untrusted source.

        The file holds numbers and text only; :func:`polytrain.load` reads it back. Numbers are rounded to float32 where
        predictions stay the same to 1e-6 of their range. Parameters that belong to one fit (trains as ``init``, a
        RandomState) are not stored. The file is written under another name first and then moved into place, so that a
        crash leaves either the old file or the new one.

        Parameters
        ----------
        path : path-like
            Where to write; an existing file is replaced.

        Raises
        ------
        polytrain.ModelFileError
            If the model has a parameter that such a file cannot hold, for example a generator.

        Examples
        --------
        >>> import os, tempfile
        >>> import polytrain
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = polytrain.TensorTrainClassifier(rank=2, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "iris.polytrain"))
        ...     same = polytrain.load(os.path.join(folder, "iris.polytrain"))
        >>> bool(abs(same.predict_proba(X) - model.predict_proba(X)).max() < 1e-5)
        True
        """
        from polytrain.estimators.saving import save

        check_is_fitted(self, "model_")
        save(self, path)

    def _ask(self, question: Callable[[FittedModel, NDArray, int], NDArray], X: Any) -> NDArray:
        """Check rows and return the answers of the fitted model; lazily for a Dask collection."""
        check_is_fitted(self, "model_")
        if is_dask(X):
            # Before rows are computed, only the number and the names of columns can be checked.
            check_columns(self, X._meta if is_dask_frame(X) else X)
            like = question(self.model_, np.zeros((1, self.model_.n_features)), 1)
            return _map_blocks(partial(self._ask, question), X, like)
        if is_sparse(X) and X.ndim == 2:
            return np.concatenate([self._ask(question, block) for (block,) in SparseRows(X)])
        rows = self.model_.encode(X, self)
        self.model_.warn_of_range(rows)
        return question(self.model_, rows, effective_n_jobs(self.n_jobs))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        taking = ["auto", *(basis for basis in basis_names() if map_kind(basis).takes_missing)]
        bases = self.basis if is_sequence(self.basis) else [self.basis]
        tags.input_tags.allow_nan = all(isinstance(basis, str) and basis in taking for basis in bases)
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.sparse = True
        return tags


def _map_blocks(function: Callable[[Any], NDArray], X: Any, like: NDArray) -> Any:
    """Apply a function to every block of a Dask collection, lazily; ``like`` has the type and width of its results."""
    question = partial(_of_block, function, like[:0])
    if is_dask_frame(X):
        return X.map_partitions(question, meta=like[:0])
    lazy_blocks(X, "X", sizes_needed=False)  # refuses chunks of columns
    chunks = (X.chunks[0], *((n,) for n in like.shape[1:]))
    return X.map_blocks(question, chunks=chunks, drop_axis=None if like.ndim == 2 else 1, meta=like[:0])


def _of_block(function: Callable[[Any], NDArray], nothing: NDArray, rows: Any) -> NDArray:
    return function(rows) if len(rows) else nothing


def _checked_maps(maps: Any, n_features: int) -> MapList:
    if not isinstance(maps, MapList):
        raise TypeError(f"maps must be those of a fitted model, such as model.maps_, got {type(maps).__name__}.")
    if len(maps) != n_features:
        raise ValueError(f"maps have {len(maps)} features, but X has {n_features}.")
    return maps
