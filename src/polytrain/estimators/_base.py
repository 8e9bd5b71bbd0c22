"""What classifier and regressor share: from checked rows to learned trains, and from trains to scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import BACKENDS, get_active_backend
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from polytrain.basis import get_basis
from polytrain.estimators._elsewhere import COMPUTE_DTYPES, RowsElsewhere
from polytrain.estimators._parameters import given_starts
from polytrain.learning.engines.tasks import TaskEngine
from polytrain.learning.losses import get_loss
from polytrain.learning.sweep import STOP_REASONS
from polytrain.learning.threads import one_blas_thread
from polytrain.learning.trainer import TrainPlan, TrainResult, learn_on, learn_train
from polytrain.progress import SweepProgress
from polytrain.scaling import FeatureScale, plain_columns
from polytrain.tensor import TensorTrain
from polytrain.tensor.contract import TrainStack

__all__ = ["BinaryProblem", "TrainModel", "validate_rows"]

#: Rows to use (None for all), target, weights.
BinaryProblem = tuple[NDArray | None, NDArray, NDArray]


def _learn_problem(
    plan: TrainPlan,
    columns: NDArray,
    problem: BinaryProblem,
    seed: int,
    start: Any,
    checkpoint: Path | None,
    n_sharing: int = 1,
    report: Any = None,
) -> TrainResult:
    rows, target, weights = problem
    if rows is not None:
        columns, target, weights = np.ascontiguousarray(columns[:, rows]), target[rows], weights[rows]
    return learn_train(plan, columns, target, weights, seed, start, report, n_sharing, checkpoint)


def _may_share() -> bool:
    """Whether this process may ask others for help: not within a worker, nor where a cluster was asked for."""
    backend, _ = get_active_backend()
    return isinstance(backend, BACKENDS["loky"]) and not backend.nesting_level


def validate_rows(model: BaseEstimator, *data: Any, **checks: Any) -> Any:
    """Run scikit-learn's checks, without a warning where its sums over a finite column overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return validate_data(model, *data, dtype=COMPUTE_DTYPES, **checks)


def _rescaled(record: dict, target_size: float) -> dict:
    """Bring the squared losses of a record from divided targets back to the original units."""
    if target_size == 1.0:
        return record
    losses = {key: record[key] * target_size * target_size for key in ("loss", "objective", "decrease")}
    return {**record, **losses}


class TrainModel(BaseEstimator):
    """Base of the estimators. Subclasses define their parameters and turn ``y`` into problems."""

    def _learn(self, plan: TrainPlan, X: NDArray, problems: list[BinaryProblem], target_size: float = 1.0) -> None:
        """Learn one train per problem and, once all is done, store what came of it.

        ``target_size`` is what the targets were divided by; trains and losses are stored in the original units.
        """
        scale = FeatureScale.fit(X) if self.scale == "minmax" else None
        columns = plain_columns(X) if scale is None else scale.columns(X)
        self._learn_all(plan, scale, problems, partial(self._run, plan, columns), target_size)

    def _learn_elsewhere(
        self, plan: TrainPlan, scale: FeatureScale | None, rows: RowsElsewhere, problems: list, target_size: float = 1.0
    ) -> None:
        """Do the same for rows elsewhere; problems are functions that return the parts of a problem."""
        loss, basis = get_loss(plan.loss), get_basis(plan.basis)

        def run(jobs: list, progress: SweepProgress) -> Iterator[TrainResult]:
            for index, (parts, seed, start, checkpoint) in enumerate(jobs):
                engine = TaskEngine(rows.runner, parts(), loss, basis, plan.dims)
                yield learn_on(engine, plan, seed, start, partial(progress.sweep_done, index), checkpoint)

        self._learn_all(plan, scale, problems, run, target_size)
        self.n_features_in_ = len(plan.dims)
        if rows.feature_names is not None:
            self.feature_names_in_ = np.asarray(rows.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _learn_all(
        self,
        plan: TrainPlan,
        scale: FeatureScale | None,
        problems: list,
        run: Callable[[list, SweepProgress], Iterator[TrainResult]],
        target_size: float,
    ) -> None:
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=len(problems))
        starts = [
            None if cores is None else [cores[0] / target_size, *cores[1:]]
            for cores in self._starts(plan, len(problems))
        ]
        checkpoints = self._checkpoints(len(problems))
        jobs = list(zip(problems, seeds.tolist(), starts, checkpoints, strict=True))
        results: list[TrainResult] = []
        with SweepProgress(len(problems), plan.max_sweeps, int(self.verbose)) as progress:
            try:
                for result in run(jobs, progress):
                    results.append(result)
                    progress.train_done(len(results) - 1)
            except (FloatingPointError, np.linalg.LinAlgError) as error:
                raise ValueError(
                    f"{error}: products of {len(plan.dims)} features that are not of size one overflow. "
                    "Scale the features to [-1, 1], for example with scale='minmax'."
                ) from error
        self.plan_, self.scale_ = plan, scale
        self._keep_trains([result.cores for result in results], target_size)
        self.history_ = [
            {"train": index, **_rescaled(record, target_size)}
            for index, result in enumerate(results)
            for record in result.history
        ]
        self.n_iter_ = max(len(result.history) for result in results)
        self.stop_reason_ = max((result.stop_reason for result in results), key=STOP_REASONS.index)

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

    def _keep_trains(self, learned: Sequence[Sequence[NDArray]], target_size: float) -> None:
        """Store trains as they were learned, for targets divided by ``target_size``; ``plan_`` must be there."""
        with np.errstate(over="ignore"):
            self.trains_ = [TensorTrain([target_size * cores[0], *cores[1:]]) for cores in learned]
        self.n_parameters_ = sum(train.n_parameters for train in self.trains_)
        # The trains as they were learned: in the original units they might overflow float32.
        self._stack = TrainStack(learned, get_basis(self.plan_.basis), np.float64)
        self._target_size = target_size

    def _starts(self, plan: TrainPlan, n_trains: int) -> Sequence[Any]:
        """Cores to start from, one entry per train; None where the plan's start is to be used."""
        if self.warm_start and hasattr(self, "trains_"):
            dims, fitted = plan.dims, self.trains_
            if len(fitted) != n_trains or fitted[0].dims != dims or self.plan_.basis != plan.basis:
                raise ValueError(
                    f"warm_start=True, but the last fit has {len(fitted)} trains of dimensions {fitted[0].dims} in the "
                    f"{self.plan_.basis} basis and this one needs {n_trains} of dimensions {dims} in the {plan.basis} "
                    "basis. Keep classes, features, degree and basis, or set warm_start=False."
                )
            return [train.cores for train in fitted]
        if plan.init == "given":
            return given_starts(self.init, n_trains, plan.dims)
        return [None] * n_trains

    def _run(
        self,
        plan: TrainPlan,
        columns: NDArray,
        jobs: list[tuple[BinaryProblem, int, Any, Path | None]],
        progress: SweepProgress,
    ) -> Iterator[TrainResult]:
        """Learn the trains, in order; trains, or the rows of one train, are spread over processes."""
        n_jobs = effective_n_jobs(self.n_jobs)
        # With many more cores than trains, the rows of each train are shared by all of them in turn.
        n_sharing = n_jobs if n_jobs >= 2 * len(jobs) and _may_share() else 1
        if n_sharing > 1 or min(n_jobs, len(jobs)) == 1:
            for index, job in enumerate(jobs):
                yield _learn_problem(plan, columns, *job, n_sharing, partial(progress.sweep_done, index))
            return
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        results = parallel(delayed(_learn_problem)(plan, columns, *job) for job in jobs)
        for index, result in enumerate(results):
            for record in result.history:
                progress.sweep_done(index, record)
            yield result

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
        from polytrain.models.file import save

        check_is_fitted(self, "trains_")
        save(self, path)

    def _scores(self, X: Any) -> NDArray:
        """Scores of all trains, shape (n_trains, N), for unchecked rows."""
        check_is_fitted(self, "trains_")
        X = validate_rows(self, X, reset=False)
        columns = plain_columns if self.scale_ is None else self.scale_.columns
        with one_blas_thread():
            scores = self._stack.astype(X.dtype).evaluate(X, columns, effective_n_jobs(self.n_jobs))
        return scores.astype(np.float64, copy=False) * self._target_size
