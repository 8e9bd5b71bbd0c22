"""A fitted estimator together with the layout of its tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polytrain.columns.scalars import text_of
from polytrain.estimators.saving import load_with_table, save
from polytrain.estimators.summary import Summary
from polytrain.evaluation import Answers, RowSample, categories, linear_answers, loss_metrics
from polytrain.explain import LocalExplanations
from polytrain.explain.local import MISSING, explain_rows
from polytrain.explain.sites import make_measure
from polytrain.explain.view import ModelView, read_model
from polytrain.learning.losses import get_loss
from polytrain.models import FittedModel
from polytrain.models.file import ModelFileError
from polytrain.rows.checking import with_exposure
from polytrain.tables.cells import FileCells, RowReader, match_texts
from polytrain.tables.layout import Fact, Layout, column_names, read_section, write_section
from polytrain.tables.open_file import open_table_file
from polytrain.tables.options import ReadOptions, Say, TableError, option
from polytrain.tables.table_file import TableFile
from polytrain.texts import listed

__all__ = ["PreparedBlock", "TableModel", "load_table_model"]


@dataclass(frozen=True)
class PreparedBlock:
    """Some rows of a table: the ``frame`` as it was read, and features X (N, d) as the fitted model takes them.

    ``y``, (N,) or (N, n_targets), are targets, where they were asked for; for classifiers, indexes of classes. Rows
    without target, or with a weight of zero, are not in X then. ``offset`` and ``weights``, (N,), are there where they
    were asked for and a column holds them.
    """

    frame: Any
    X: NDArray
    y: NDArray | None = None
    offset: NDArray | None = None
    weights: NDArray | None = None


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator that can read its tables from files.

    Attributes
    ----------
    estimator : estimator
        A fitted classifier or regressor, which encodes its columns of any type.
    layout : Layout
        Where the columns are in a file, and how they are written.
    training : dict
        Facts about the training; empty where the model was not fitted from a table.

    See Also
    --------
    fit_table : Makes one from a file.
    load_table_model : Reads one from a model file.
    """

    estimator: Any
    layout: Layout
    training: dict[str, Fact]

    @property
    def is_classifier(self) -> bool:
        """Whether it predicts labels."""
        return self.fitted.classes is not None

    @property
    def fitted(self) -> FittedModel:
        """The model behind the estimator, which takes features."""
        return self.estimator.model_

    @cached_property
    def view(self) -> ModelView:
        """The view of the model for explanations, with names and levels of the columns; its rows are features."""
        # Columns of arrays have no names but those of their positions.
        has_names = self.fitted.columns is not None or hasattr(self.estimator, "feature_names_in_")
        names = None if has_names else list(self.layout.names)
        return read_model(self.estimator, names).on_features()

    def summary(self) -> Summary:
        """Summarise the fit as ``estimator.summary()`` does, with the names of the file."""
        return Summary.of(self.estimator, self.view)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file that holds both estimator and layout."""
        try:
            section = write_section(self.layout, self.training, self.estimator)
        except ValueError as error:
            raise ModelFileError(f"the model cannot be stored: {error}") from error
        save(self.estimator, path, table=section)

    def open(self, path: str | os.PathLike[str], options: ReadOptions | None = None) -> TableFile:
        """Open a table; unless told otherwise, text files have a header if that of the training had one."""
        return open_table_file(path, options or ReadOptions(header=self.header))

    @property
    def header(self) -> str:
        """Whether text files have a header: "yes", "no", or "auto" for models that were not fitted from a file."""
        return "yes" if self.layout.named else "no" if self.layout.targets else "auto"

    def blocks(
        self,
        table: TableFile,
        *,
        with_target: bool = False,
        with_offset: bool = False,
        target: str | int | Sequence[str | int] | None = None,
        offset: str | int | None = None,
        weight: str | int | None = None,
        decimal: str | None = None,
        say: Say | None = None,
    ) -> Iterator[PreparedBlock]:
        """Read a table, which `open` returned, and yield a `PreparedBlock` for each block of rows.

        Parameters
        ----------
        table : TableFile
            The table.
        with_target : bool, default=False
            Whether to return targets too, with weights and offsets. Rows without a target, or with a weight of zero,
            are then left out, so that a block may be empty.
        with_offset : bool, default=False
            Whether to return offsets too.
        target : str, int, or sequence of these, optional
            Names or positions of the targets, if they differ from training.
        offset, weight : str or int, optional
            Columns of offsets and of weights, if they differ from training.
        decimal : {".", ","}, optional
            The decimal mark, if it differs from training.
        say : callable, optional
            Called with notes: detected forms of columns and, after the last block, columns with categories that
            were not in the training data; these are treated as the mean of all rows.
        """
        if with_target and self.is_classifier and not self.fitted.one_output:
            raise TableError(
                f"this model has {self.fitted.n_trains} labels per row, and a table one target. Evaluate it in Python, "
                "with score(X, y)."
            )
        given = [target] if isinstance(target, str | int) else target
        wanted = 1 if self.fitted.one_output else self.fitted.n_trains
        goals = self.layout.find_targets(table, given, wanted) if with_target else None
        offset_at = self._find_offset(table, offset) if with_target or with_offset else None
        weight_at = self.layout.find_other(table, "weight", weight) if with_target else None
        among = [k for k in (*(goals or ()), offset_at, weight_at) if k is not None]
        reader = RowReader(self.layout, self.estimator, table, among, decimal, say or (lambda text: None))
        has_warned = False
        for frame in table.blocks():
            X, offsets = self._features(reader.read(frame), table), reader.others("offset", frame, offset_at)
            has_warned = has_warned or self.fitted.warn_of_range(X)
            if goals is None:
                yield PreparedBlock(frame, X, offset=offsets)
                continue
            y = self._targets([reader.cells(frame, index) for index in goals], reader)
            rows = y >= 0 if self.is_classifier else ~np.isnan(y.reshape(len(y), -1)).any(axis=1)
            weights = reader.others("weight", frame, weight_at)
            rows &= True if weights is None else weights > 0
            kept = [None if values is None else values[rows] for values in (y, offsets, weights)]
            yield PreparedBlock(frame, X[rows], *kept)
        reader.tell_new()

    def _find_offset(self, table: TableFile, given: str | int | None) -> int | None:
        if given is not None and (self.is_classifier or self.fitted.link != "log"):
            raise TableError(
                f"{option('offset', given)}: this model has no offset. Leave it out, or fit a model "
                f"with {option('loss', 'poisson')} or {option('loss', 'gamma')}."
            )
        return self.layout.find_other(table, "offset", given)

    def _features(self, frame: Any, table: TableFile) -> NDArray:
        """Features of rows, (N, d), with missing values only where the model's functions can take them."""
        columns = self.fitted.columns
        X = frame.to_numpy(dtype=np.float64) if columns is None else columns.encode(frame)
        for k in np.flatnonzero(np.isnan(X).any(axis=0)).tolist():
            feature_map = self.fitted.maps[k]
            if not feature_map.takes_missing:
                row = frame.index[int(np.isnan(X[:, k]).argmax())]
                raise TableError(
                    f"{table.label}, {table.place(row)}: the cell of column {self.view.feature_names[k]!r} is missing, "
                    f"which the model's basis {feature_map.basis!r} cannot take. Fill the cell, or fit a model with "
                    f"{option('basis', 'auto')}."
                )
        return X

    def _targets(self, columns: Sequence[FileCells], reader: RowReader) -> NDArray:
        """Return targets, NaN for missing ones, or indexes of classes, -2 for missing ones."""
        classes = self.fitted.classes
        if classes is None:
            names = self.layout.targets or [f"target {k}" for k in range(len(columns))]
            what, pairs = "the target should be a number", zip(columns, names, strict=True)
            y = np.stack([reader.values(cells, name, what=what) for cells, name in pairs], axis=1)
            return y if len(columns) > 1 else y[:, 0]
        cells = columns[0]
        codes, texts = cells.coded
        if set(map(str, classes)) == {"True", "False"}:  # in any case
            texts = [text.capitalize() for text in texts]
        for form in [self.layout.forms[name] for name in self.layout.targets if name in self.layout.forms]:
            texts = [text if (number := form.parse(text)) is None else text_of(number) for text in texts]
        indexes = np.array([*match_texts(texts, classes), -2])[codes]
        if (indexes == -1).any():
            row = int((indexes == -1).argmax())
            raise TableError(
                f"{cells.place(row)}: {cells[row]!r:.60} is not one of the model's classes {listed(classes)}. "
                f"Leave the row out, or name the right column with {option('target')}."
            )
        return indexes

    def predict(
        self,
        path: str | os.PathLike[str],
        *,
        probabilities: bool = False,
        reading: ReadOptions | None = None,
        **options: Any,
    ) -> NDArray:
        """Predict every row of a file.

        Parameters
        ----------
        path : path-like
            The file.
        probabilities : bool, default=False
            Whether to return the probabilities of all classes.
        reading : ReadOptions, optional
            How the file is read; detected by default.
        **options
            "offset" and "decimal", see `blocks`.

        Returns
        -------
        ndarray of shape (N,), (N, n_targets) or (N, n_classes)
        """

        def ask(block: PreparedBlock) -> NDArray:
            return self.fitted.probabilities(block.X) if probabilities else self.predict_block(block)

        with self.open(path, reading) as table:
            parts = [ask(block) for block in self.blocks(table, with_offset=True, **options)]
        return np.concatenate(parts) if parts else ask(PreparedBlock(None, np.zeros((1, self.fitted.n_features))))[:0]

    def predict_block(self, block: PreparedBlock) -> NDArray:
        """Predict the rows of a block, with their offsets if it has them."""
        rates: NDArray = self.fitted.predict(block.X)
        return with_exposure(get_loss(self.fitted.loss), rates, block.offset)

    def evaluate(
        self,
        path: str | os.PathLike[str],
        *,
        train: str | os.PathLike[str] | None = None,
        reading: ReadOptions | None = None,
        say: Say | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Compare predictions with the target in a file.

        Parameters
        ----------
        path : path-like
            The file; rows whose target is missing are left out.
        train : path-like, optional
            Training rows for a linear model, which is then evaluated on the rows of ``path``.
        reading : ReadOptions, optional
            How the files are read; detected by default.
        say : callable, optional
            Called with notes.
        **options
            "target", "offset", "weight" and "decimal", see `blocks`.

        Returns
        -------
        dict
            ``n``, the number of rows, and errors by their names; see `polytrain.evaluation`. The linear model's begin
            with ``linear_``; None where it cannot be learned.
        """
        most_rows = 1 if train is None else sys.maxsize
        answers, rows = self.read_answers(path, reading, say, most_rows=most_rows, **options)
        figures = answers.summary()
        if train is not None:
            learned, sample = self.read_answers(train, reading, say, **options)
            learned, known = learned.only(sample.places), categories(self.fitted)
            linear = linear_answers(sample.rows, learned, rows.rows, answers, known)
            for name, metric in loss_metrics(answers.loss, self.is_classifier).items():
                figures[f"linear_{name}"] = None if linear is None else metric.measure(linear)
        return figures

    def read_answers(
        self,
        path: str | os.PathLike[str],
        reading: ReadOptions | None = None,
        say: Say | None = None,
        *,
        most_rows: int = 20_000,
        **options: Any,
    ) -> tuple[Answers, RowSample]:
        """Return predictions and targets of a file, and an even sample of its features; ``options``: see `blocks`."""
        sample = RowSample(most_rows)
        with self.open(path, reading) as table:
            for note in table.notes:
                (say or (lambda text: None))(f"note: {note}")
            return self.answers(table, sample, say=say, **options), sample

    def answers(self, table: TableFile, sample: RowSample | None = None, **options: Any) -> Answers:
        """Return predictions and targets of a table, and add its features to ``sample``; ``options``: see `blocks`."""
        parts, n_rows = [], 0
        weighs = options.get("weight") is not None or self.layout.weight is not None
        for block in self.blocks(table, with_target=True, **options):
            n_rows += len(block.frame)
            if block.y is not None and len(block.y):
                extra = {"offset": block.offset, "weights": block.weights}
                parts.append(Answers.of(self.fitted, block.X, block.y, **extra))
                if sample is not None:
                    sample.add(block.X)
        if not parts:
            raise TableError(
                f"{table.label} holds no row with a target{' and a weight above 0' if weighs else ''}. Name the right "
                f"column with {option('target')}{' or ' + option('weight') if weighs else ''}."
            )
        answers, say = Answers.join(parts), options.get("say") or (lambda text: None)
        if n_rows > answers.n:
            say(f"note: {n_rows - answers.n} rows without target{' or weight' if weighs else ''} are left out")
        return answers

    def explain_rows(
        self, table: TableFile, numbers: Sequence[int], *, background: str = "training", **options: Any
    ) -> tuple[LocalExplanations, tuple[str, ...]]:
        """Explain some rows of a table, which `open` returned, in terms of its columns.

        Parameters
        ----------
        table : TableFile
            The table.
        numbers : sequence of int
            Numbers of the rows of data, 0 for the first.
        background : {"training", "data"}
            Distribution of a column where a row's own value is left out: as in training (for polynomials, uniform over
            their range), or as in the table.
        **options
            See `blocks`.

        Returns
        -------
        explanations : polytrain.explain.LocalExplanations
            Their ``row_names`` are the numbers.
        places : tuple of str
            Where the rows are, such as "line 19".
        """
        if background == "training" and any(feature_map.measure() is None for feature_map in self.fitted.maps):
            raise TableError(
                "the distribution of the columns in training is not known. Pass "
                f"{option('background', 'data')}, with a table that resembles the training data."
            )
        found: dict[int, tuple[NDArray, tuple[str, ...], str]] = {}
        sample, start, indexes = RowSample(), 0, self.layout.find(table, column_names(self.layout, self.estimator))
        missing, wanted = {"", *self.layout.missing}, set(numbers)
        for block in self.blocks(table, **options):
            for number in wanted.intersection(range(start, start + len(block.X))):
                row = number - start
                texts = [FileCells(block.frame.iloc[:, index], table)[row] for index in indexes]
                cells = tuple(MISSING if text in missing else text for text in texts)
                found[number] = block.X[row], cells, table.place(block.frame.index[row])
            start += len(block.X)
            if background == "data":
                sample.add(block.X)
            elif len(found) == len(wanted):
                break
        for number in numbers:
            if number not in found:
                known = f"rows 0 to {start - 1}" if start else "no rows"
                raise TableError(f"{table.label} has {known} and no row {number}. Rows of data are counted from 0.")
        rows, shown, places = zip(*(found[number] for number in numbers), strict=True)
        measure = make_measure(self.view, sample.rows if background == "data" else None)
        return explain_rows(np.stack(rows), measure, cells=shown, row_names=tuple(numbers)), places


def load_table_model(path: str | os.PathLike[str]) -> TableModel:
    """Read a model file together with the layout of its tables.

    Parameters
    ----------
    path : path-like
        A model file. One that was written by ``model.save`` has no layout: its columns are those of the array or frame
        that it was fitted on, found by name if the model has feature names, else by position.

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
    >>> load_table_model(folder / "model.polytrain").predict(folder / "rows.npy").shape
    (50,)
    """
    estimator, table = load_with_table(path)
    if table is None:
        return TableModel(estimator, Layout.of_estimator(estimator), {})
    try:
        layout, training = read_section(table, estimator)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path!s} is not a valid model file: {error}") from error
    return TableModel(estimator, layout, training)
