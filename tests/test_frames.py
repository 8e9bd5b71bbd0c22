"""A fit is few calls deep: from ``fit`` to the sweep, through the choice, and to the compiled kernels."""

import sys
from pathlib import Path

import pytest

from polytrain import native


@pytest.fixture
def stacks(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "scripts"))
    from count_frames import count_frames

    yield count_frames()
    sys.modules.pop("count_frames", None)


def test_a_fit_is_few_calls_deep(stacks):
    assert len(stacks["sweep"]) <= 8, stacks["sweep"]
    assert len(stacks["sweep of the choice"]) <= 11, stacks["sweep of the choice"]
    assert stacks["sweep"][0] == "regressor.fit"
    if native.is_here():
        assert 8 < len(stacks["kernel"]) <= 15, stacks["kernel"]
