"""What classifier and regressor share: from checked rows to learned trains, and from trains to scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from polytrain.estimators._parameters import given_starts
from polytrain.learning.threads import one_blas_thread
from polytrain.learning.trainer import TrainPlan, TrainResult, learn_train
from polytrain.progress import SweepProgress
from polytrain.scaling import FeatureScale, plain_columns
from polytrain.tensor import TensorTrain
from polytrain.tensor.contract import TrainStack

__all__ = ["BinaryProblem", "TrainModel", "validate_rows"]

COMPUTE_DTYPES = (np.float64, np.float32)

#: Rows to use (None for all), target, weights.
BinaryProblem = tuple[NDArray | None, NDArray, NDArray]


def _learn_problem(
    plan: TrainPlan,
    columns: NDArray,
    problem: BinaryProblem,
    seed: int,
    start: Any,
    n_sharing: int = 1,
    report: Any = None,
) -> TrainResult:
    rows, target, weights = problem
    if rows is not None:
        columns, target, weights = np.ascontiguousarray(columns[:, rows]), target[rows], weights[rows]
    return learn_train(plan, columns, target, weights, seed, start, report, n_sharing)


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
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=len(problems))
        starts = [
            None if cores is None else [cores[0] / target_size, *cores[1:]]
            for cores in self._starts(plan, len(problems))
        ]
        jobs = list(zip(problems, seeds, starts, strict=True))
        results: list[TrainResult] = []
        with SweepProgress(len(problems), plan.max_sweeps, int(self.verbose)) as progress:
            try:
                for result in self._run(plan, columns, jobs, progress):
                    results.append(result)
                    progress.train_done(len(result.history))
            except (FloatingPointError, np.linalg.LinAlgError) as error:
                raise ValueError(
                    f"{error}: products of {X.shape[1]} features of size up to {np.abs(X).max():.3g} overflow. "
                    "Scale the features to [-1, 1], for example with scale='minmax'."
                ) from error
        self.plan_, self.scale_ = plan, scale
        self.trains_ = [TensorTrain([target_size * result.cores[0], *result.cores[1:]]) for result in results]
        self.history_ = [
            {"train": index, **_rescaled(record, target_size)}
            for index, result in enumerate(results)
            for record in result.history
        ]
        self.n_iter_ = max(len(result.history) for result in results)
        reasons = {result.stop_reason for result in results}
        self.stop_reason_ = reasons.pop() if len(reasons) == 1 else max(reasons - {"tolerance"})
        self.n_parameters_ = sum(train.n_parameters for train in self.trains_)
        # The trains as they were learned: in the original units they might overflow float32.
        self._stack = TrainStack([result.cores for result in results], get_basis(plan.basis), np.float64)
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
        self, plan: TrainPlan, columns: NDArray, jobs: list[tuple[BinaryProblem, int, Any]], progress: SweepProgress
    ) -> Iterator[TrainResult]:
        """Learn the trains, in order; trains, or the rows of one train, are spread over processes."""
        n_jobs = effective_n_jobs(self.n_jobs)
        # With many more cores than trains, the rows of each train are shared by all of them in turn.
        n_sharing = n_jobs if n_jobs >= 2 * len(jobs) and _may_share() else 1
        if n_sharing > 1 or min(n_jobs, len(jobs)) == 1:
            for index, (problem, seed, start) in enumerate(jobs):

                def report(record: dict, index: int = index) -> None:
                    progress.sweep_done(index, record)

                yield _learn_problem(plan, columns, problem, seed, start, n_sharing, report)
            return
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        results = parallel(
            delayed(_learn_problem)(plan, columns, problem, seed, start) for problem, seed, start in jobs
        )
        for index, result in enumerate(results):
            for record in result.history:
                progress.sweep_done(index, record)
            yield result

    def _scores(self, X: Any) -> NDArray:
        """Scores of all trains, shape (n_trains, N), for unchecked rows."""
        check_is_fitted(self, "trains_")
        X = validate_rows(self, X, reset=False)
        columns = plain_columns if self.scale_ is None else self.scale_.columns
        with one_blas_thread():
            scores = self._stack.astype(X.dtype).evaluate(X, columns, effective_n_jobs(self.n_jobs))
        return scores.astype(np.float64, copy=False) * self._target_size
