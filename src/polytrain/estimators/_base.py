"""What classifier and regressor share: from checked rows to a fitted model, and from that to scores."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polytrain.checks import validate_rows
from polytrain.estimators._parameters import given_starts, make_maps, make_plan
from polytrain.learning.sweep import STOP_REASONS
from polytrain.learning.trainer import TrainJob, TrainPlan, TrainResult
from polytrain.maps import MapList
from polytrain.models import FittedModel
from polytrain.progress import SweepProgress
from polytrain.rows import Rows, Summary
from polytrain.rows.targets import Target
from polytrain.tensor import TensorTrain

__all__ = ["Goal", "TrainModel"]


@dataclass(frozen=True)
class Goal:
    """What a fit is to learn.

    Attributes
    ----------
    targets : sequence of Target
        One per train.
    ends : dict
        What becomes of the scores: arguments of ``FittedModel.make``.
    """

    targets: Sequence[Target]
    ends: dict[str, Any] = field(default_factory=dict)

    @property
    def sizes(self) -> NDArray:
        """What the targets of each train were divided by."""
        return np.broadcast_to(self.ends.get("size", 1.0), len(self.targets))


def _rescaled(record: dict, target_size: float) -> dict:
    """Bring the squared losses of a record from divided targets back to the original units."""
    if target_size == 1.0:
        return record
    losses = {key: record[key] * target_size * target_size for key in ("loss", "objective", "decrease")}
    return {**record, **losses}


class TrainModel(BaseEstimator, ABC):
    """Base of the estimators. Subclasses define their parameters and turn targets into problems."""

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
    def n_parameters_(self) -> int:
        """Stored coefficients."""
        return self.model_.n_parameters

    @abstractmethod
    def _goal(self, summary: Summary, loss: str) -> Goal:
        """Check targets and say what is to be learned."""

    def _fit_rows(self, rows: Rows, loss: str, alpha: Any) -> None:
        """Learn from rows, wherever they are; once all is done, store what came of it."""
        summary = rows.summary
        maps = self._choose_maps(rows)
        plan = make_plan(self.get_params(deep=False), maps.dims, loss, alpha)
        goal = self._goal(summary, loss)
        jobs = self._jobs(plan, goal)
        results = self._learn(rows, plan, maps, goal, jobs)
        trains = [result.cores for result in results]
        self.model_ = FittedModel.make(loss, maps, trains, feature_names=rows.feature_names, **goal.ends)
        self.plan_ = plan
        self.history_ = [
            {"train": index, **_rescaled(record, float(size))}
            for index, (result, size) in enumerate(zip(results, goal.sizes, strict=True))
            for record in result.history
        ]
        self.n_iter_ = max(len(result.history) for result in results)
        self.stop_reason_ = max((result.stop_reason for result in results), key=STOP_REASONS.index)
        self.n_features_in_ = summary.n_features
        if rows.feature_names is not None:
            self.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _choose_maps(self, rows: Rows) -> MapList:
        """Fit the maps; a warm start keeps those that its cores were learned in."""
        maps = make_maps(self.get_params(deep=False), rows)
        if not self._is_warm:
            return maps
        kept = self.model_.maps
        if _looks(kept) != _looks(maps):
            raise ValueError(
                f"warm_start=True, but the last fit has {len(kept)} columns with the maps {_named(kept)} and this one "
                f"asks for {len(maps)} with {_named(maps)}. Keep features, degree, basis and scale, or set "
                "warm_start=False."
            )
        return kept

    @property
    def _is_warm(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "model_")

    def _jobs(self, plan: TrainPlan, goal: Goal) -> list[TrainJob]:
        """Seed, start and checkpoint of every train."""
        n_trains = len(goal.targets)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=n_trains)
        starts = [
            None if cores is None else [cores[0] / size, *cores[1:]]
            for cores, size in zip(self._starts(plan, n_trains), goal.sizes.tolist(), strict=True)
        ]
        checkpoints = self._checkpoints(n_trains)
        return [TrainJob(*job) for job in zip(seeds.tolist(), starts, checkpoints, strict=True)]

    def _learn(
        self, rows: Rows, plan: TrainPlan, maps: MapList, goal: Goal, jobs: Sequence[TrainJob]
    ) -> list[TrainResult]:
        results: list[TrainResult] = []
        with SweepProgress(len(jobs), plan.max_sweeps, int(self.verbose)) as progress:
            try:
                for result in rows.place(maps).learn(plan, goal.targets, jobs, self.n_jobs, progress.sweep_done):
                    results.append(result)
                    progress.train_done(len(results) - 1)
            except (FloatingPointError, np.linalg.LinAlgError) as error:
                raise ValueError(
                    f"{error}: products of {len(plan.dims)} features that are not of size one overflow. "
                    "Scale the features to [-1, 1], for example with scale='minmax'."
                ) from error
        return results

    def _starts(self, plan: TrainPlan, n_trains: int) -> Sequence[Any]:
        """Cores to start from, one entry per train; None where the plan's start is to be used."""
        if self._is_warm:
            if self.model_.n_trains != n_trains:
                raise ValueError(
                    f"warm_start=True, but the last fit has {self.model_.n_trains} trains and this one needs "
                    f"{n_trains}. Keep the number of outputs, or set warm_start=False."
                )
            return [train.cores for train in self.model_.trains]
        if plan.init == "given":
            return given_starts(self.init, n_trains, plan.dims)
        return [None] * n_trains

    def _checkpoints(self, n_trains: int) -> list[Path | None]:
        """One file per train, in a folder that is made if need be."""
        folder = getattr(self, "checkpoint", None)
        if folder is None:
            return [None] * n_trains
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                f"checkpoint needs an integer random_state, got {self.random_state!r}: "
                "a fit that starts from other random numbers cannot be resumed."
            )
        Path(folder).mkdir(parents=True, exist_ok=True)
        return [Path(folder) / f"train-{index:03d}.safetensors" for index in range(n_trains)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that is safe to open, also by others.

        The file holds numbers and text only; :func:`polytrain.load` reads it back to the last bit. It is written
        under another name first and then moved into place, so that a crash leaves either the old file or the new one.

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
        """Check rows and ask the fitted model about them."""
        check_is_fitted(self, "model_")
        return question(self.model_, validate_rows(self, X, reset=False), effective_n_jobs(self.n_jobs))


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
