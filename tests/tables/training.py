"""What tests of training tables share."""

import numpy as np
import pytest

from polytrain import TensorTrainClassifier
from polytrain.tables import ReadOptions, TableError, TableModel, TableOptions, open_table_file
from polytrain.tables.options import spell_options
from polytrain.tables.training_table import read_training_table

GIVEN = {"rank": 2, "alpha": 1e-3, "max_sweeps": 1, "random_state": 0}


def learn(path, text, **options):
    path.write_text(text)
    header = options.pop("header", "auto")
    with open_table_file(path, ReadOptions(header=header)) as table:
        return read_training_table(table, TableOptions(**{"target": -1, **options}))


def fitted(rows, estimator=None):
    """A model that was fitted on what was read."""
    estimator = TensorTrainClassifier(**GIVEN) if estimator is None else estimator
    return TableModel(estimator.fit(rows.X, rows.y), rows.layout, {})


def features(rows):
    """What an estimator would make of the cells."""
    return np.asarray(fitted(rows, TensorTrainClassifier(rank=1, max_sweeps=0))._features(rows.X, None))


def noted(rows):
    return list(map(spell_options, rows.notes))


def refused(tmp_path, text, message, **options):
    with pytest.raises(TableError, match=message):
        learn(tmp_path / "a.csv", text, **options)
