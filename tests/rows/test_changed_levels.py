"""Blocks whose categories are not those that were read first."""

import pandas as pd
import pytest

from polytrain.columns import Columns
from polytrain.rows.checking import check_block


def test_levels_that_come_later_are_refused():
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
    columns = Columns.fit(frame)
    assert check_block((frame, [1.0, 2.0, 3.0]), "squared", columns)[0].shape == (3, 2)
    later = frame.assign(colour=["red", "green", "red"])
    with pytest.raises(ValueError, match="column 'colour' holds 'green', which was missing"):
        check_block((later, [1.0, 2.0, 3.0]), "squared", columns)
