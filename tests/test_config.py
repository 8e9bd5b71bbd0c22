"""Memory and checkpoints of fits, set for a ``with`` statement."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import polytrain
from polytrain import TensorTrainRegressor, config_context
from polytrain.config import current_config
from polytrain.learning.engines.runners import SpillRunner

pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")


def test_what_is_not_given_stays_as_it_is_outside():
    usual = current_config()
    assert usual.max_bytes > 1 << 20
    assert usual.checkpoint is None
    with config_context(max_memory="2 kB"):
        with config_context(checkpoint="there"):
            assert current_config() == (2048, Path("there"))
            with config_context(max_memory=5, checkpoint=Path("elsewhere")):
                assert current_config() == (5, Path("elsewhere"))
            assert current_config() == (2048, Path("there"))
        assert current_config() == (2048, None)
    assert current_config() == usual


def test_an_error_ends_it():
    usual = current_config()
    with pytest.raises(ZeroDivisionError), config_context(max_memory=1):
        _ = 1 / 0
    assert current_config() == usual


def test_threads_have_their_own():
    meet = threading.Barrier(4)

    def seen(max_memory):
        with config_context(max_memory=max_memory):
            meet.wait(60)  # all threads are inside of their context
            return current_config().max_bytes

    with config_context(max_memory=99), ThreadPoolExecutor(4) as pool:
        assert list(pool.map(seen, [1, 2, 3, 4])) == [1, 2, 3, 4]
        assert current_config().max_bytes == 99


def test_a_function_may_be_decorated():
    @config_context(max_memory="1 GB")
    def inside():
        return current_config().max_bytes

    assert inside() == inside() == 1 << 30


@pytest.mark.parametrize(
    ("text", "size"), [("2 GB", 2 << 30), ("1.5kB", 1536), (" 3 MiB ", 3 << 20), ("0 B", 1), (np.int64(7), 7)]
)
def test_sizes(text, size):
    with config_context(max_memory=text):
        assert current_config().max_bytes == size


@pytest.mark.parametrize("value", [0, -5, "much", "3 parsec", True, 2.5, "9" * 400 + " GB", "9" * 307 + " TB", [1]])
def test_sizes_that_are_none_are_refused_at_once(value):
    wanted = r"max_memory must be None, a positive number of bytes or a text such as '2 GB', got .{,63}\.$"
    with pytest.raises(ValueError, match=wanted), config_context(max_memory=value):
        pytest.fail("the block was entered")


@pytest.mark.parametrize("value", ["", 0, False, 1.5, b"folder", ["folder"]])
def test_folders_that_are_none_are_refused_at_once(value):
    wanted = r"checkpoint must be None or the path of a folder, got .{,63}\.$"
    with pytest.raises(ValueError, match=wanted), config_context(checkpoint=value):
        pytest.fail("the block was entered")


def test_fits_obey(tmp_path, monkeypatch):
    budgets, original = [], SpillRunner.__init__
    monkeypatch.setattr(SpillRunner, "__init__", lambda self, size: budgets.append(size) or original(self, size))
    X = np.random.default_rng(0).normal(size=(200, 2))

    class Source:
        def __iter__(self):
            yield X, X[:, 0] * X[:, 1]

    model = TensorTrainRegressor(basis="power", rank=2, alpha=1e-3, random_state=0)
    with config_context(max_memory="1 MB", checkpoint=tmp_path / "kept"):
        model.fit(Source())
        with pytest.raises(ValueError, match="belongs to a fit with other rows"):
            model.fit(X, X[:, 0])
    model.fit(X, X[:, 0])
    assert budgets == [1 << 20]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["train-000.safetensors"]


def test_it_is_public():
    assert "config_context" in polytrain.__all__
    assert polytrain.config_context is config_context
