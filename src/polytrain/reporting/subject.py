"""What a report is about: a fitted estimator, and the names of what is in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from polytrain.columns.scalars import text_of
from polytrain.explain.view import ModelView
from polytrain.models import FittedModel

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """A fitted estimator as reports see it: every feature, also a part of a date, is a column of its own.

    Attributes
    ----------
    view : ModelView
        The model, its columns and their levels; its rows are features.
    target : str or None
        Name of what is predicted.
    training : dict
        Facts about the training, where they are known.
    """

    view: ModelView
    target: str | None = None
    training: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, view: ModelView, target: str | None = None, training: dict[str, Any] | None = None) -> Subject:
        """Take a view of columns of any type."""
        names = view.feature_names
        categories = [view.category(k) for k in range(len(names))]
        levels = tuple(None if some is None else tuple(map(text_of, some.levels)) for some in categories)
        single = tuple(range(k, k + 1) for k in range(len(names)))
        plain = replace(view.on_features(), columns=None, column_names=names, groups=single, level_names=levels)
        return cls(plain, target, training or {})

    @property
    def estimator(self) -> Any:
        """The estimator; it takes features."""
        return self.view.model

    @property
    def fitted(self) -> FittedModel:
        """The model behind it."""
        return self.view.model.model_

    @property
    def is_classifier(self) -> bool:
        """Whether it predicts labels."""
        return self.fitted.classes is not None

    @property
    def places(self) -> dict[str, int]:
        """Number of every column, by its name."""
        return {name: k for k, name in enumerate(self.view.column_names)}

    @property
    def levels(self) -> dict[int, tuple[str, ...]]:
        """Names of the levels of every column that has some."""
        found = ((k, self.view.levels(k)) for k in range(self.view.n_columns))
        return {k: levels for k, levels in found if levels is not None}
