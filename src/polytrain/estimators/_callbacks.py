"""scikit-learn's callbacks, where the installed version has them: one context per fit, train and sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable) -> Callable:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitCallbacks", "with_callbacks"]


class FitCallbacks:
    """Calls the callbacks of an estimator, if it has any, during a fit that begins on construction.

    ``attributes`` returns the attributes of a fitted estimator, given the cores of a train; None for several trains.
    """

    def __init__(self, estimator: Any, attributes: Callable[[Sequence[NDArray]], dict | None]) -> None:
        self._estimator, self._attributes = estimator, attributes
        self._fit: Any = None
        self._train: Any = None
        self._index = -1
        if getattr(estimator, "_skl_callbacks", None):
            self._fit = estimator._init_callback_context(max_subtasks=None)
            self._fit.call_on_fit_task_begin(estimator=estimator)

    def sweep_done(self, train: int, record: dict, cores: Sequence[NDArray]) -> bool:
        """Report a sweep; return whether a callback asks to stop the sweeps of this train."""
        if self._fit is None:
            return False
        if train != self._index:
            self.train_done()
            self._index = train
            self._train = self._fit.subcontext(task_name=f"train {train}", max_subtasks=None)
            self._train.call_on_fit_task_begin(estimator=self._estimator)
        sweep = self._train.subcontext(task_name="sweep")
        sweep.call_on_fit_task_begin(estimator=self._estimator)
        result = {"metadata": {"record": record}, "reconstruction_attributes": lambda: self._attributes(cores)}
        return bool(sweep.call_on_fit_task_end(estimator=self._estimator, **result))

    def train_done(self) -> None:
        """End the sweeps of a train."""
        if self._train is not None:
            self._train.call_on_fit_task_end(estimator=self._estimator)
            self._train = None

    def end(self, attributes: Callable[[], dict]) -> None:
        """End the fit; ``attributes`` returns those of the fitted estimator."""
        self.train_done()
        if self._fit is not None:
            self._fit.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=attributes)
