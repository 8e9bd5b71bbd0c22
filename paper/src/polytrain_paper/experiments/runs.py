"""Run the rows of the paper's tables: choose alpha on training rows, fit, and only then look at the test set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from polytrain.estimators import TensorTrainClassifier  # polytrain itself loads nothing
from polytrain_paper.experiments.convergence import objective_per_update
from polytrain_paper.experiments.digit_rows import DigitRows
from polytrain_paper.experiments.paper_tables import PUBLISHED_FEATURES, ModelSize, published
from polytrain_paper.experiments.settings import INITS, RowSpec, Settings

if TYPE_CHECKING:  # no result depends on how it is kept: the digest of the code must not either
    from polytrain_paper.experiments.results import JobStore

__all__ = ["CONVERGENCE_CHARACTER", "Reproduction"]

#: The character, and the size, of the paper's figure.
CONVERGENCE_CHARACTER = 6
CONVERGENCE_SIZE = ModelSize(20, 1, 8)
# What the paper's models have in common. All is given, so that no default of the estimators is part of a result.
_PAPER: dict[str, Any] = {
    "basis": "power",
    "bandwidth": None,
    "categorical_features": None,
    "decision": "one-vs-rest",
    "solver": "auto",
    "class_weight": None,
}


class Reproduction:
    """Jobs of one set of settings. Finished ones are taken from the store, new ones are added to it at once.

    Parameters
    ----------
    settings : Settings
    digits : DigitRows
        The rows, which are not touched while all that is asked for is in the store.
    store : JobStore
    n_jobs : int
        Number of processes, over folds and then over trains. Results do not depend on it.
    talk : callable
        Told what takes time.
    """

    def __init__(
        self,
        settings: Settings,
        digits: DigitRows,
        store: JobStore,
        n_jobs: int = 1,
        talk: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.settings = settings
        self._digits, self._store, self._n_jobs, self._talk = digits, store, n_jobs, talk

    def rows(self, specs: Sequence[RowSpec]) -> Iterator[dict[str, Any]]:
        """Fit the rows in order and yield each result as soon as it is kept."""
        for spec in specs:
            yield self._once(self.settings.row_key(spec), partial(self._fit, spec))

    def choice(self, loss: str, size: ModelSize) -> dict[str, Any]:
        """Choose alpha for a row by cross-validation on training rows."""
        return self._once(self.settings.alpha_key(loss, size), partial(self._choose, loss, self.settings.cv_size(size)))

    def convergence(self, specs: Sequence[RowSpec]) -> list[dict[str, Any]]:
        """Follow one train of the paper's size (else of the first row) from both starts, for each loss of the rows."""
        sizes = [spec.size for spec in specs]
        size = CONVERGENCE_SIZE if CONVERGENCE_SIZE in sizes else sizes[0]
        curves = []
        for loss in dict.fromkeys(spec.loss for spec in specs):
            for init in INITS:
                spec = RowSpec(loss, size, init)
                curves.append(self._once(self.settings.convergence_key(spec), partial(self._follow, spec)))
        return curves

    def is_finished(self, spec: RowSpec) -> bool:
        """Whether a row's result is kept already."""
        return self._store.get(self.settings.row_key(spec)) is not None

    def _once(self, key: dict[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        kept = self._store.get(key)
        if kept is None:
            kept = work()
            self._store.put(key, kept)
        return kept

    def _choose(self, loss: str, size: ModelSize) -> dict[str, Any]:
        settings = self.settings
        X, y, _, _ = self._digits.split(size.d)
        if settings.cv_rows is not None and settings.cv_rows < len(X):
            drawn = np.sort(np.random.default_rng(settings.seed).permutation(len(X))[: settings.cv_rows])
            X, y = X[drawn], y[drawn]
        self._talk(
            f"{RowSpec(loss, size, 'linear')}: choosing alpha among {len(settings.alphas)}, {settings.folds} folds of "
            f"{len(X)} training rows"
        )
        started = time.perf_counter()
        model = TensorTrainClassifier(
            loss=loss,
            degree=size.degree,
            rank=size.rank,
            init="linear",
            max_sweeps=settings.cv_sweeps,
            tol=settings.tol,
            random_state=settings.seed,
            **_PAPER,
        )
        # The strongest first: it wins where several are equally good.
        alphas = sorted(settings.alphas, reverse=True)
        folds = StratifiedKFold(settings.folds, shuffle=True, random_state=settings.seed)
        search = GridSearchCV(model, {"alpha": alphas}, cv=folds, n_jobs=self._n_jobs, refit=False).fit(X, y)
        alpha = search.best_params_["alpha"]
        seconds = time.perf_counter() - started
        self._talk(f"  alpha={alpha:g}, {seconds:.1f} s")
        return {
            "loss": loss,
            **size._asdict(),
            "n_rows": len(X),
            "alpha": alpha,
            "alphas": alphas,
            "errors": (1.0 - search.cv_results_["mean_test_score"]).tolist(),
            "seconds": seconds,
        }

    def _fit(self, spec: RowSpec) -> dict[str, Any]:
        settings, size = self.settings, spec.size
        chosen = self.choice(spec.loss, size)
        data = self._digits.split(size.d)
        model = TensorTrainClassifier(
            loss=spec.loss,
            degree=size.degree,
            rank=size.rank,
            alpha=chosen["alpha"],
            init=spec.init,
            max_sweeps=settings.max_sweeps,
            tol=settings.tol,
            random_state=settings.seed,
            n_jobs=self._n_jobs,
            **_PAPER,
        )
        started = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - started
        paper = published(settings.dataset, spec.loss, size) if settings.features == PUBLISHED_FEATURES else None
        return {
            "dataset": settings.dataset,
            "features": settings.features,
            "init": spec.init,
            "loss": spec.loss,
            **size._asdict(),
            "alpha": chosen["alpha"],
            "cv_error": min(chosen["errors"]) if settings.cv_size(size) == size else None,
            "train_error": _error(model, data.X_train, data.y_train),
            "test_error": _error(model, data.X_test, data.y_test),
            "fit_seconds": seconds,
            "n_parameters": model.n_parameters_,
            "n_rows": len(data.X_train),
            "paper_train_error": paper.train_error if paper else None,
            "paper_test_error": paper.test_error if paper else None,
            "paper_seconds": paper.seconds if paper else None,
        }

    def _follow(self, spec: RowSpec) -> dict[str, Any]:
        data = self._digits.split(spec.size.d)
        alpha = self.choice(spec.loss, spec.size)["alpha"]
        objectives = objective_per_update(
            data.X_train,
            data.y_train == CONVERGENCE_CHARACTER,
            loss=spec.loss,
            degree=spec.size.degree,
            rank=spec.size.rank,
            alpha=alpha,
            init=spec.init,
            n_sweeps=self.settings.max_sweeps,
            seed=self.settings.seed,
        )
        return {"loss": spec.loss, "init": spec.init, **spec.size._asdict(), "alpha": alpha, "objectives": objectives}


def _error(model: TensorTrainClassifier, X: Any, y: Any) -> float:
    return float(np.mean(model.predict(X) != y))
