"""Results that wait on disk, and disks that refuse them."""

import errno
import io
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from polytrain import config_context
from polytrain.learning.engines import runners
from polytrain.learning.problem import Facts
from polytrain.learning.targets import PlacedBlock
from polytrain.rows.summary import summarise
from power_models import power_classifier


def _same(one, other):
    if isinstance(one, tuple):
        return type(one) is type(other) and all(_same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other


def test_results_of_any_form_come_back_from_disk():
    big = np.arange(20_000.0)
    words = np.array(["a", "bb"] * 10_000, dtype=object)
    results = [
        big,
        (big, (1, 2), "text"),
        Facts(0.5, big.reshape(2, -1), None, None, (np.eye(100), 2.0), None),
        PlacedBlock(big.reshape(1, -1), words, big, big),
    ]
    with runners.SpillRunner(max_bytes=1) as runner:
        handles = [runner.keep(result) for result in results]
        runner.keep(big)  # pushes the last one out
        assert not any(isinstance(handle, tuple | np.ndarray) for handle in handles)
        for result, again in zip(results, runner.collect(handles), strict=True):
            assert _same(result, again)
        summary = summarise(np.ones((2, 9000)), np.array([0, 1]), np.ones(2), classify=True)
        handle = runner.keep(summary)
        runner.keep(big)
        [again] = runner.collect([handle])
        assert again.n_rows == 2
        np.testing.assert_array_equal(again.low, summary.low)


@pytest.fixture
def spill_folder(tmp_path, monkeypatch):
    """Where rows wait, which they do early."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(runners, "_SMALL", 1000)
    return tmp_path


class Source:
    """Some rows."""

    def __iter__(self):
        X = np.random.default_rng(0).normal(size=(3000, 5))
        yield X, np.sign(X[:, 0] * X[:, 1] + X[:, 2])


def _spilling_fit():
    with config_context(max_memory=200_000):
        return power_classifier(rank=4, random_state=0).fit(Source())


REMEDY = r"Rows that do not fit in memory wait there.* TMPDIR, or raise max_memory"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_is_named_with_the_remedy(spill_folder, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **options: io.FileIO("/dev/full", "r+"))
    reason = os.strerror(errno.ENOSPC)
    with pytest.raises(OSError, match=f"cannot write waiting rows in {spill_folder}: {reason}.*{REMEDY}"):
        _spilling_fit()


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fails_in_the_middle_leaves_nothing_behind(spill_folder, monkeypatch, code):
    class Failing(io.FileIO):
        n_bytes = 0

        def write(self, data):
            self.n_bytes += 100_000
            if self.n_bytes > 1_000_000:
                raise OSError(code, os.strerror(code))
            return super().write(data[:100_000])  # a system may take less than all

    handle, name = tempfile.mkstemp()
    os.unlink(name)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **options: Failing(handle, "r+"))
    with pytest.raises(OSError, match=f"cannot write waiting rows in {spill_folder}: .*{REMEDY}") as caught:
        _spilling_fit()
    assert os.strerror(code) in str(caught.value)
    assert caught.value.__cause__.errno == code
    assert list(spill_folder.iterdir()) == []


def test_no_room_for_a_temporary_file_is_named_with_the_remedy(monkeypatch):
    def refuse(*arguments, **settings):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(OSError, match=f"cannot make a temporary file in .*: .*{REMEDY}"):
        _spilling_fit()


def test_waiting_rows_have_no_name_and_need_no_folder(spill_folder, monkeypatch):
    folder = spill_folder / "inner"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    big = np.arange(20_000.0)
    with runners.SpillRunner(max_bytes=1) as runner:
        handles = [runner.keep(big), runner.keep(2 * big)]
        assert list(folder.iterdir()) == []
        folder.rmdir()
        handles += [runner.keep(3 * big), runner.keep(4 * big)]
        for factor, again in enumerate(runner.collect(handles), 1):
            np.testing.assert_array_equal(again, factor * big)


def test_places_in_the_file_are_used_again_but_not_while_somebody_looks():
    rng, place = np.random.default_rng(0), runners.Arena("numbers", "")
    kept, viewed, n_written = {}, {}, 0
    for step in range(600):
        arrays = [rng.standard_normal(rng.integers(0, 6000)) for _ in range(rng.integers(1, 4))]
        kept[step] = place.write([memoryview(array).cast("B") if len(array) else b"" for array in arrays]), arrays
        n_written += sum(array.nbytes for array in arrays)
        if rng.random() < 0.3:
            viewed[step] = kept[step][0].read(), arrays
        for forgotten, chance in ((kept, 0.9), (viewed, 0.3)):
            if forgotten and rng.random() < chance:
                del forgotten[rng.choice(list(forgotten))]
    for stretch, arrays in kept.values():
        for one, other in zip(stretch.read(), arrays, strict=True):
            np.testing.assert_array_equal(np.frombuffer(one), other)
    for views, arrays in viewed.values():
        for one, other in zip(views, arrays, strict=True):
            np.testing.assert_array_equal(np.frombuffer(one), other)
    assert place._end < n_written / 2
    place.close()
