"""What classifier and regressor share: from checked rows to a fitted model, and from that to scores."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial, update_wrapper
from numbers import Integral
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from polytrain.checks import check_columns, check_mass
from polytrain.choice import Choice, Chosen, MapMaker, Settings, Task, calibrate, choose
from polytrain.decisions import Softmax, TwoClasses
from polytrain.estimators._callbacks import CallbackSupportMixin, FitCallbacks
from polytrain.estimators._constraints import allowed_groups, check_no_conflict
from polytrain.estimators._learning import Goal, fit_trains
from polytrain.estimators._parameters import (
    SharedParameters,
    check_parameters,
    given_starts,
    is_sequence,
    make_settings,
)
from polytrain.estimators._probabilities import expected_labels, recalibrated
from polytrain.estimators._streaming import Stream, go_on
from polytrain.estimators._uncertainty import fit_uncertainty
from polytrain.explain import feature_importances
from polytrain.learning.losses import get_loss
from polytrain.learning.settings import Start
from polytrain.learning.sweep import STOP_REASONS
from polytrain.learning.targets import Target
from polytrain.learning.trainer import TrainResult
from polytrain.maps import CategoryMap, MapList, basis_names, map_kind
from polytrain.maps.category import MOST_LEVELS
from polytrain.models import FittedModel
from polytrain.progress import show
from polytrain.rows import Rows, is_dask, is_dask_frame, lazy_blocks, open_fit
from polytrain.rows.checking import check_more
from polytrain.rows.opening import given_validation, hold_out
from polytrain.rows.rows import positive_rows
from polytrain.sources import is_source
from polytrain.tensor import TensorTrain

# Entries of a record that are losses.
_LOSSES = ("loss", "objective", "decrease", "validation_loss")


def _rescaled(record: dict, target_size: float, degree: int) -> dict:
    """Bring the losses of a record from divided targets back to the original units."""
    if target_size == 1.0:
        return record
    unit = target_size**degree
    return {**record, **{key: record[key] * unit for key in _LOSSES if key in record}}


def _check_missing(rows: Rows, bases: Sequence[str]) -> None:
    """Refuse missing values in columns whose functions do not know them."""
    for k in np.flatnonzero(rows.summary.has_missing).tolist():
        if bases[k] != "auto" and not map_kind(bases[k]).takes_missing:
            name = k if rows.feature_names is None else repr(rows.feature_names[k])
            raise ValueError(
                f"X contains NaN in feature {name}, which the basis {bases[k]!r} cannot take. Use basis='auto' or "
                "one of the bases that know missing values, such as 'spline', or impute."
            )


def _warn_of_levels(rows: Rows, maps: MapList) -> None:
    """Warn of columns with more levels than are told apart."""
    full = [k for k, m in enumerate(maps) if isinstance(m, CategoryMap) and len(m.points) == MOST_LEVELS]
    if not full:
        return
    summaries, columns = rows.columns(True), rows.columns_of_any_type
    levels = [None] * len(maps) if columns is None else columns.levels
    for k in full:
        count = max(len(levels[k] or ()), len(summaries[k].values))  # values may be those of a sample
        if count > MOST_LEVELS:
            name = k if rows.feature_names is None else repr(rows.feature_names[k])
            warnings.warn(
                f"column {name} has {count} levels, of which only the {MOST_LEVELS} most frequent are told apart; the "
                "others count as never seen. Join rare levels, or convert the column if it holds numbers or dates.",
                UserWarning,
                stacklevel=2,
            )


def _divided(trains: Sequence[Sequence[NDArray]], sizes: NDArray) -> list[list[NDArray]]:
    """Trains for targets that were divided by these sizes."""
    return [[cores[0] / size, *cores[1:]] for cores, size in zip(trains, sizes.tolist(), strict=True)]


@contextmanager
def _remedy_for_overflow(n_features: int) -> Iterator[None]:
    """Say what helps where numbers become too large."""
    try:
        yield
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise ValueError(
            f"{error}: products of {n_features} features that are not of size one overflow. "
            "Scale the features to [-1, 1], for example with scale='minmax'."
        ) from error


class Conditional:
    """A method that a model does not always have: ``obstacle(model)`` says why not, or is None.

    scikit-learn's ``available_if`` would keep the reason in the cause of the AttributeError, where few look.
    """

    def __init__(self, obstacle: Callable[[Any], str | None], function: Callable) -> None:
        self._obstacle, self._function = obstacle, function
        update_wrapper(self, function)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self._function
        obstacle = self._obstacle(model)
        if obstacle is not None:
            raise AttributeError(f"{type(model).__name__} has no {self._function.__name__} with {obstacle}")
        return MethodType(self._function, model)


def _no_blocks(model: Any) -> str | None:
    if model.interaction_cst is not None:
        return "interaction_cst: sweeps over one more block of rows would let any columns interact. Or use fit."
    if isinstance(getattr(model, "class_weight", None), str):
        return f"class_weight={model.class_weight!r}, which needs all rows at once; give a dict of weights. Or use fit."
    return None


learns_in_blocks = partial(Conditional, _no_blocks)


class TrainModel(SharedParameters, CallbackSupportMixin, BaseEstimator, ABC):
    """Base of the estimators. Subclasses define their parameters and turn targets into problems."""

    # Where scikit-learn's HTML of an estimator leads to.
    _doc_link_module = "polytrain"
    _doc_link_template = "https://polytrain.readthedocs.io/en/stable/generated/polytrain.{estimator_name}.html"

    model_: FittedModel

    @property
    def trains_(self) -> list[TensorTrain]:
        """The learned polynomials; a list of your own, the model does not change with it."""
        return list(self.model_.trains)

    @property
    def maps_(self) -> MapList:
        """The map of every column."""
        return self.model_.maps

    @property
    def relevances_(self) -> NDArray:
        """Factor of the bandwidth of every feature: how much it may matter."""
        check_is_fitted(self, "choice_")
        factors = self.choice_.relevances
        return np.ones(len(self.maps_)) if factors is None else np.array(factors)

    @property
    def n_parameters_(self) -> int:
        """Stored coefficients."""
        return self.model_.n_parameters

    @property
    def feature_importances_(self) -> NDArray:
        """Importance of every column, which sum to 1; see `polytrain.explain.feature_importances`."""
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
        """Check targets and say what is to be learned."""

    @abstractmethod
    def _block_targets(self) -> Sequence[Target]:
        """Say what is to be learned from one more block of rows, one entry per train."""

    def _fit_rows(
        self, rows: Rows, loss: str, validation: Rows | None = None, maps: MapList | None = None, is_block: bool = False
    ) -> None:
        """Learn from rows, wherever they are; once all is done, store what came of it."""
        rows, apart = self._set_apart(rows)
        summary, goal = rows.summary, self._goal(rows, loss)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=len(goal.targets)).tolist()
        parameters, stops_early = self.get_params(deep=False), validation is not None
        settings = make_settings(parameters, summary.n_features, loss, rows.is_category, stops_early, goal.joint)
        settings = replace(settings, groups=self._groups(rows, stops_early))
        if is_block and isinstance(settings.relevance, str):  # other columns may matter in later blocks
            settings = replace(settings, relevance=None)
        if maps is None:
            _check_missing(rows, settings.bases)
        else:
            settings = replace(settings, maps=_checked_maps(maps, summary.n_features))
        with _remedy_for_overflow(summary.n_features):
            if self._is_warm:
                choice = self._last_choice(settings, rows, goal, seeds)
            else:
                choice = choose(self._task(settings, rows, goal, seeds, goal.calibrates, is_block))
                self._show_choice(choice)
            _warn_of_levels(rows, choice.maps.whole)
            ends = {"feature_names": rows.feature_names, "columns": rows.columns_of_any_type, **goal.ends}
            held_out, loss = choice.held_out, choice.plan.loss
            if held_out is not None and goal.decision is not None:
                scored = held_out.scores, held_out.label_weights, held_out.n_distinct
                size, shift = calibrate(*scored, goal.targets, isinstance(goal.decision, Softmax))
                ends |= {"size": size, "shift": shift, "calibrated": True}

            def make(*trains: Sequence[NDArray]) -> FittedModel:
                return FittedModel(loss, choice.maps, trains, **ends)

            callbacks = FitCallbacks(
                self, lambda cores: {"model_": make(cores).widened()} if len(goal.targets) == 1 else None
            )
            sizes, degree = goal.sizes, get_loss(loss).degree

            def watch(train: int, record: dict, cores: Sequence[NDArray]) -> bool:
                record = {**record, "ranks": choice.maps.widened_ranks(record["ranks"])}
                return callbacks.sweep_done(train, _rescaled(record, float(sizes[train]), degree), cores)

            measure = self._measures(choice)
            starts = [*map(Start, seeds, self._starts(choice, goal), self._checkpoints(len(seeds)))]
            options = {"n_jobs": self.n_jobs, "verbose": int(self.verbose), "watch": watch, "measure": measure}
            results, plan = fit_trains(rows, validation, choice, goal, starts, **options)
        model = replace(make(*(result.cores for result in results)), loss=plan.loss)
        if measure:
            before, moments = self.model_ if self._is_warm else None, [result.moments for result in results]
            model = fit_uncertainty(model, choice, moments, rows, apart, before)
        plan = replace(plan, rank=choice.maps.widened_ranks(plan.ranks))
        self.model_, self.plan_, self.choice_ = model.widened(), plan, Chosen.of(choice)
        self._remember_sweeps(results, goal.sizes)
        for record in self.history_:
            record["ranks"] = choice.maps.widened_ranks(record["ranks"])
        self.stream_ = Stream(float(summary.n_rows), float(summary.n_rows))
        self.n_features_in_ = self.model_.n_columns
        if rows.column_names is not None:
            self.feature_names_in_ = np.asarray(rows.column_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        callbacks.end(lambda: {"model_": self.model_})

    def _remember_sweeps(self, results: Sequence[TrainResult], sizes: NDArray) -> None:
        """Store what is to be known about the sweeps."""
        degree = get_loss(self.plan_.loss).degree
        self.history_ = [
            {"train": index, **_rescaled(record, float(size), degree)}
            for index, (result, size) in enumerate(zip(results, sizes, strict=True))
            for record in result.history
        ]
        self.n_iter_ = max(len(result.history) for result in results)
        self.stop_reason_ = max((result.stop_reason for result in results), key=STOP_REASONS.index)

    def _open(self, X: Any, y: Any, sample_weight: Any, loss: str) -> AbstractContextManager[Rows]:
        """Check parameters, and open what is given to a fit."""
        check_parameters(self.get_params(deep=False))
        return open_fit(self, X, y, sample_weight, self._number_loss(loss))

    def _number_loss(self, loss: str) -> str | None:
        """The loss, which limits the targets, of a regression; None for classification."""
        return loss if is_regressor(self) else None

    def _split(
        self, rows: Rows, loss: str, X_val: Any, y_val: Any, sample_weight_val: Any
    ) -> tuple[Rows, str, Rows | None]:
        """Rows to learn from, the loss, and rows that say when to stop, if there are to be any."""
        if X_val is not None:
            return rows, loss, given_validation(rows, X_val, y_val, sample_weight_val, self._number_loss(loss))
        if not self.early_stopping:
            return rows, loss, None
        learned, held_out = hold_out(rows, float(self.validation_fraction))
        return learned, loss, held_out

    def _groups(self, rows: Rows, stops_early: bool) -> tuple[tuple[int, ...], ...] | None:
        """Which features may act together; None for all."""
        columns = rows.columns_of_any_type
        n_columns, sources = rows.summary.n_features, None
        if columns is not None:
            n_columns, sources = columns.n_columns, columns.sources.tolist()
        groups = allowed_groups(self.interaction_cst, n_columns, rows.column_names, sources)
        if groups is not None:
            check_no_conflict(self.get_params(deep=False), self._is_warm, stops_early)
        return groups

    def _learn_block(
        self, X: Any, y: Any, sample_weight: Any, maps: MapList | None, prepare: Callable[[Rows], Rows] | None = None
    ) -> None:
        """Learn from one more block of rows, see `polytrain.estimators._streaming`; fit to the first, once prepared."""
        if is_source(X):
            raise ValueError(
                f"partial_fit takes one block of rows, got X of type {type(X).__name__}, which yields many. Pass its "
                "blocks one by one, or call fit."
            )
        is_first, loss = not hasattr(self, "model_"), self._learning_loss()
        if is_first:
            with self._open(X, y, sample_weight, loss) as first:
                self._fit_rows(first if prepare is None else prepare(first), loss, maps=maps, is_block=True)
        check_parameters(self.get_params(deep=False))
        check_columns(self, X)
        model, classes, targets = self.model_, self.model_.classes, self._block_targets()
        known = model.n_trains if classes is None else classes
        X, y, weights = check_more(X, y, sample_weight, self._number_loss(loss), model.columns, model.n_features, known)
        mass = check_mass(sample_weight, len(X))
        codes = y if classes is None else np.searchsorted(classes, y)
        rows = X, y, weights = positive_rows(X, codes, weights * (mass / weights.sum()))
        stream = Stream(0.0, mass) if is_first else deepcopy(self.stream_)
        entropy = [int(self.random_state)] if isinstance(self.random_state, Integral) else []
        rng = np.random.default_rng([stream.n_blocks, *entropy])
        labels = np.eye(len(classes))[y] if model.calibrated and classes is not None else None
        if is_first:
            stream.remember(rows, self.forgetting, rng, labels)
            self.stream_ = stream
            return
        plan = self.plan_
        if isinstance(self.alpha, str):  # it was chosen for the first rows; noise does not shrink with more of them
            plan = replace(plan, alpha=self.choice_.alpha * stream.first / (stream.seen + mass))
        if labels is not None:
            stream.remember_scores(model.values(X), labels * weights[:, None])
            if stream.X is None:  # these rows stand for those of the past, too, with labels that the model expects
                past = stream.seen / (stream.seen + mass)
                labels = past * expected_labels(model, X, targets) + (1.0 - past) * labels
        seeds = rng.integers(np.iinfo(np.int32).max, size=len(targets)).tolist()
        with _remedy_for_overflow(model.n_features):
            results = go_on(model, plan, targets, rows, stream, seeds)
        model = model.with_trains([result.cores for result in results]).with_targets(y)
        stream.remember(rows, self.forgetting, rng, labels)
        if model.calibrated:
            model = recalibrated(model, stream, targets)
        self.model_, self.plan_, self.stream_ = model, plan, stream
        self._remember_sweeps(results, model.size if classes is None else np.ones(len(results)))

    def _set_apart(self, rows: Rows) -> tuple[Rows, Rows | None]:
        """Rows to learn from, and rows that are kept for calibration, if any are."""
        return rows, None

    def _measures(self, choice: Choice) -> bool:
        """Whether second moments are wanted of every train, for the uncertainty of predictions."""
        return False

    def _task(
        self,
        settings: Settings,
        rows: Rows,
        goal: Goal,
        seeds: Sequence[int],
        calibrate: bool,
        is_block: bool = False,
    ) -> Task:
        return Task(
            settings=settings,
            rows=rows,
            targets=goal.targets,
            guides=goal.guides,
            seeds=seeds,
            n_jobs=self.n_jobs,
            calibrate=calibrate,
            is_joint=isinstance(goal.decision, Softmax),
            may_finish=calibrate and not is_block and isinstance(goal.decision, Softmax | TwoClasses),
        )

    def _last_choice(self, settings: Settings, rows: Rows, goal: Goal, seeds: Sequence[int]) -> Choice:
        """A warm start keeps what the last fit has chosen, and the maps that its cores were learned in.

        Where scores become log-odds, it takes alpha and scores of left-out rows from a choice in these maps that knows
        nothing of the last cores: these may have learned from the very rows.
        """
        kept, before = self.model_.maps, self.plan_
        calibrates = goal.calibrates
        if self.model_.calibrated and settings.joint:  # the last fit has chosen to start with squares
            settings, calibrates = replace(settings, loss="squared", joint=False), True
        if rows.columns_of_any_type != self.model_.columns:
            raise ValueError(
                "warm_start=True, but the columns of these rows have other types or levels than those of the last fit. "
                "Keep them, or set warm_start=False."
            )
        open_now = replace(settings, alpha=before.alpha if settings.alpha == "auto" else settings.alpha)
        if settings.rank == "auto":
            open_now = replace(open_now, rank=list(before.ranks[1:-1]) or 1)
        bases = [m.basis if basis == "auto" else basis for m, basis in zip(kept, settings.bases, strict=False)]
        bases += list(settings.bases[len(bases) :])
        maker = MapMaker(bases, settings.degrees, settings.scale, rows.columns, self.choice_.relevances)
        maps = maker(None, None if settings.bandwidth == "auto" else settings.bandwidth).whole
        if _looks(kept) != _looks(maps):
            raise ValueError(
                f"warm_start=True, but the last fit has {len(kept)} columns with the maps {_named(kept)} and this one "
                f"asks for {len(maps)} with {_named(maps)}. Keep features, degree, basis and scale, or set "
                "warm_start=False."
            )
        known = {name: getattr(self.choice_, name) for name in ("basis", "bandwidth", "relevances")}
        last = Choice(kept, open_now.settled(kept.dims), **known)
        if not calibrates:
            return last
        afresh = replace(open_now, alpha=settings.alpha, max_sweeps="auto", maps=kept)
        anew = choose(self._task(afresh, rows, goal, seeds, calibrates))
        self._show_choice(anew)
        plan = replace(last.plan, alpha=anew.plan.alpha, loss=anew.plan.loss, joint=anew.plan.joint)
        return replace(last, plan=plan, reasons=anew.reasons, tried=anew.tried, held_out=anew.held_out)

    def _show_choice(self, choice: Choice) -> None:
        """Log what was chosen, and with ``verbose`` of 2 or more what was tried."""
        if int(self.verbose) and choice.reasons:
            tried = [f"tried:\n{Chosen.of(choice).table()}"] if int(self.verbose) > 1 else []
            show(*tried, f"chosen: {'; '.join(choice.reasons)}")

    @property
    def _is_warm(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "model_")

    def _starts(self, choice: Choice, goal: Goal) -> Sequence[Any]:
        """Cores to start from, one entry per train; None where the plan's start is to be used."""
        n_trains = len(goal.targets)
        if self._is_warm:
            if self.model_.n_trains != n_trains:
                raise ValueError(
                    f"warm_start=True, but the last fit has {self.model_.n_trains} trains and this one needs "
                    f"{n_trains}. Keep the number of outputs, or set warm_start=False."
                )
            if self.model_.classes is not None:  # what the scores became afterwards is not the trains' business
                return self.model_.cores
            return _divided([train.cores for train in self.model_.trains], goal.sizes)
        if choice.starts is not None:
            return choice.starts
        if choice.plan.init == "given":
            return _divided(given_starts(self.init, n_trains, choice.maps.dims), goal.sizes)
        return [None] * n_trains

    def _checkpoints(self, n_trains: int) -> list[Path | None]:
        """One file per train, in a folder that is made if need be."""
        if self.checkpoint is None:
            return [None] * n_trains
        if self.early_stopping:
            raise ValueError(
                "checkpoint and early_stopping=True exclude each other: the file keeps the last state of a train, and "
                "not its best one. Set one of them to its default."
            )
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                f"checkpoint needs an integer random_state, got {self.random_state!r}: "
                "a fit that starts from other random numbers cannot be resumed."
            )
        folder = Path(self.checkpoint)
        folder.mkdir(parents=True, exist_ok=True)
        return [folder / f"train-{index:03d}.safetensors" for index in range(n_trains)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that is safe to open, also by others.

        The file holds numbers and text only; :func:`polytrain.load` reads it back to the last bit. Parameters that
        belong to one fit (``checkpoint``, trains as ``init``, a RandomState) are not stored. The file is written under
        another name first and then moved into place, so that a crash leaves either the old file or the new one.

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
        >>> bool((same.predict_proba(X) == model.predict_proba(X)).all())
        True
        """
        from polytrain.estimators.saving import save

        check_is_fitted(self, "model_")
        save(self, path)

    def _ask(self, question: Callable[[FittedModel, NDArray, int], NDArray], X: Any) -> NDArray:
        """Check rows and ask the fitted model about them; of a Dask collection, once it is computed."""
        check_is_fitted(self, "model_")
        if is_dask(X):
            # What can be known of rows that are not there yet: numbers and names of columns.
            check_columns(self, X._meta if is_dask_frame(X) else X)
            like = question(self.model_, np.zeros((1, self.model_.n_features)), 1)
            return _map_blocks(partial(self._ask, question), X, like)
        return question(self.model_, self.model_.encode(X, self), effective_n_jobs(self.n_jobs))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        taking = ["auto", *(basis for basis in basis_names() if map_kind(basis).takes_missing)]
        bases = self.basis if is_sequence(self.basis) else [self.basis]
        tags.input_tags.allow_nan = all(isinstance(basis, str) and basis in taking for basis in bases)
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def _map_blocks(function: Callable[[Any], NDArray], X: Any, like: NDArray) -> Any:
    """Apply a function to every block of a Dask collection, lazily; ``like`` has the type and width of its results."""
    import dask.array as da
    from dask import delayed

    blocks = lazy_blocks(X, "X", sizes_needed=False)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    lazy = delayed(partial(_of_block, function, like[:0]), pure=True)
    results = [
        da.from_delayed(lazy(block), shape=(size, *like.shape[1:]), dtype=like.dtype)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(results)


def _of_block(function: Callable[[Any], NDArray], nothing: NDArray, rows: Any) -> NDArray:
    return function(rows) if len(rows) else nothing


def _checked_maps(maps: Any, n_features: int) -> MapList:
    if not isinstance(maps, MapList):
        raise TypeError(f"maps must be those of a fitted model, such as model.maps_, got {type(maps).__name__}.")
    if len(maps) != n_features:
        raise ValueError(f"maps are about {len(maps)} features, but X has {n_features}.")
    return maps


def _looks(maps: MapList) -> list[tuple[str, str, int, bool]]:
    """What the parameters decide about maps: all but what was fitted to values, as the number of functions may be."""
    return [(m.kind, m.basis, 0 if m.needs_values else m.n, m.range is not None) for m in maps]


def _named(maps: MapList) -> str:
    """Different looks of maps as text, such as "power with 3 functions, scaled"."""
    looks = dict.fromkeys(
        f"{basis} with {n} functions, {'scaled' if scaled else 'not scaled'}" if n else basis
        for _, basis, n, scaled in _looks(maps)
    )
    shown = list(looks)
    return "; ".join(shown if len(shown) <= 3 else [*shown[:3], "..."])
