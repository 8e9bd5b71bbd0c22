"""A fitted estimator together with the preparation of its tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.estimators.saving import load_with_table, save
from polytrain.models import ModelFileError
from polytrain.tables.cells import as_numbers, as_text
from polytrain.tables.errors import TableError
from polytrain.tables.preparation import Preparation
from polytrain.tables.reading import Block, Table, open_table
from polytrain.tables.section import Fact, TableSection

__all__ = ["PreparedBlock", "TableModel", "load_table_model"]


@dataclass(frozen=True)
class PreparedBlock:
    """Some rows of a table.

    Attributes
    ----------
    block : Block
        The rows as they were read.
    X : ndarray of shape (N, d)
        Their features.
    y : ndarray of shape (N,) or None
        Targets, where they were asked for; for classifiers, indexes of classes. Rows without target are not in X.
    n_dotted : int
        Labels that are known only without the dot at their end, and were taken so.
    """

    block: Block
    X: NDArray
    y: NDArray | None = None
    n_dotted: int = 0


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator that knows how to read tables.

    Attributes
    ----------
    estimator : TensorTrainClassifier, TensorTrainClassifierCV or TensorTrainRegressor
        Fitted on the features that ``preparation`` makes. It knows no feature names: those are in ``preparation``.
    preparation : Preparation
        How rows of a table become features.
    training : dict
        Facts about the training; empty where the model was not fitted from a table.

    See Also
    --------
    load_table_model : Reads one from a model file.
    """

    estimator: Any
    preparation: Preparation
    training: dict[str, Fact]

    @property
    def is_classifier(self) -> bool:
        """Whether it predicts labels."""
        return hasattr(self.estimator, "classes_")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file that holds both estimator and preparation."""
        section = TableSection(self.preparation, self.training)
        try:
            _check_section(section, self.estimator, self.preparation.feature_names)
        except ValueError as error:
            raise ModelFileError(f"the model cannot be stored: {error}") from error
        save(self.estimator, path, table=section.write(), feature_names=self.preparation.feature_names)

    def open(self, path: str | os.PathLike[str], *, header: str | None = None, delimiter: str | None = None) -> Table:
        """Open a table; unless told otherwise, text files have a header if that of the training had one."""
        return open_table(path, header=header or ("yes" if self.preparation.named else "no"), delimiter=delimiter)

    def blocks(
        self,
        table: Table,
        *,
        with_target: bool = False,
        target: str | None = None,
        new_categories: str = "error",
    ) -> Iterator[PreparedBlock]:
        """Read a table block by block and make features of it.

        Parameters
        ----------
        table : Table
            What `open` returned.
        with_target : bool, default=False
            Whether to return targets too. Rows without one are then left out. A label that is known only without the
            dot at its end, as in some published test files, is taken without it, and counted.
        target : str, optional
            Name or position of the target, if it is another than in training.
        new_categories : {"error", "ignore"}, default="error"
            What to do with a category that the training did not have; ignored, it is like the mean of all rows, or, in
            models of older files, in no category.

        Yields
        ------
        PreparedBlock
        """
        indexes = self.preparation.match(table)
        goal = self.preparation.match_target(table, target) if with_target else None
        for block in table.blocks():
            X = self.preparation.encode(block, indexes, table.label, new_categories)
            self._check_missing(block, X, table.label)
            if goal is None:
                yield PreparedBlock(block, X)
                continue
            y, rows, n_dotted = self._target(block, goal, table.label)
            if rows.any():
                yield PreparedBlock(block, X[rows], y[rows], n_dotted)

    def _check_missing(self, block: Block, X: NDArray, label: str) -> None:
        """Refuse missing cells where the model's functions do not know them."""
        for k in np.flatnonzero(np.isnan(X).any(axis=0)).tolist():
            feature_map = self.estimator.maps_[k]
            if not feature_map.takes_missing:
                row = int(np.isnan(X[:, k]).argmax())
                raise TableError(
                    f"{label}, {block.place(row)}: the cell of column {self.preparation.feature_names[k]!r} is "
                    f"missing, which the model's basis {feature_map.basis!r} cannot take. Fill the cell, or fit a "
                    "model with --basis auto."
                )

    def _target(self, block: Block, index: int, label: str) -> tuple[NDArray, NDArray, int]:
        """Return targets, for classifiers as indexes of classes; which rows have one; how many lost a dot."""
        cells, missing = block.columns[index], self.preparation.missing_texts
        classes = getattr(self.estimator, "classes_", None)
        if classes is not None and classes.dtype.kind in "UO":
            known = {str(name): k for k, name in enumerate(classes)}
            texts = as_text(cells, missing)
            codes = [-1 if text is None else known.get(text, known.get(text.removesuffix("."), -2)) for text in texts]
            n_dotted = sum(code >= 0 and text not in known for code, text in zip(codes, texts, strict=True))
            return *_checked_codes(np.array(codes), block, label, list(known), texts), n_dotted
        values, wrong = as_numbers(cells, missing)
        if wrong is not None:
            raise TableError(
                f"{label}, {block.place(wrong)}: the target should be a number, but here is {cells[wrong]!r:.60}. "
                "Mend the cell, or name the right column with --target."
            )
        rows = ~np.isnan(values)
        if classes is None:
            return values, rows, 0
        numbers = classes.astype(np.float64)
        nearest = np.minimum(np.searchsorted(numbers, np.where(rows, values, numbers[0])), len(numbers) - 1)
        found = np.where(rows, np.where(numbers[nearest] == values, nearest, -2), -1)
        return *_checked_codes(found, block, label, [str(name) for name in classes], cells), 0


def _checked_codes(codes: NDArray, block: Block, label: str, known: list[str], cells: Any) -> tuple[NDArray, NDArray]:
    if (codes == -2).any():
        row = int((codes == -2).argmax())
        raise TableError(
            f"{label}, {block.place(row)}: {cells[row]!r:.60} is none of the model's classes "
            f"{', '.join(known):.100}. Leave the row out, or name the right column with --target."
        )
    return codes, codes >= 0


def load_table_model(path: str | os.PathLike[str]) -> TableModel:
    """Read a model file together with its preparation.

    Parameters
    ----------
    path : path-like
        A model file. One that was written by ``model.save`` has no preparation: its columns are those of the array or
        frame that it was fitted on, found by name if the model has feature names, else by position.

    Returns
    -------
    TableModel

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from polytrain import TensorTrainRegressor
    >>> from polytrain.tables import load_table_model
    >>> folder = Path(tempfile.mkdtemp())
    >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    >>> TensorTrainRegressor(random_state=0).fit(X, X[:, 0]).save(folder / "model.polytrain")
    >>> np.save(folder / "rows.npy", X)
    >>> model = load_table_model(folder / "model.polytrain")
    >>> with model.open(folder / "rows.npy") as table:
    ...     [len(model.estimator.predict(block.X)) for block in model.blocks(table)]
    [50]
    """
    estimator, table = load_with_table(path)
    if table is None:
        section = TableSection(Preparation.of_estimator(estimator))
    else:
        try:
            section = TableSection.read(table)
            _check_section(section, estimator, estimator.model_.feature_names)
        except (ValueError, TypeError, OverflowError) as error:
            raise ModelFileError(f"{path!s} is no valid model file: {error}") from error
    # Rows come as plain arrays, in the order of the preparation, which knows columns of any type as well.
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    estimator.model_ = replace(estimator.model_, feature_names=None, columns=None)
    estimator.n_features_in_ = estimator.model_.n_features
    return TableModel(estimator, section.preparation, dict(section.training))


def _check_section(section: TableSection, estimator: Any, feature_names: Sequence[str] | None) -> None:
    """Refuse a section that does not belong to the estimator."""
    classes = getattr(estimator, "classes_", None)
    is_text = None if classes is None else classes.dtype.kind in "UO"
    section.check_fits(estimator.n_features_in_, None if feature_names is None else list(feature_names), is_text)
