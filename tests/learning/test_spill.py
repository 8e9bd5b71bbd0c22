"""Results that wait on disk, and disks that refuse them."""

import errno
import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from polytrain.learning.engines import spill
from polytrain.learning.problem import Facts
from polytrain.rows.summary import RawRows, summarise
from polytrain.rows.targets import PlacedBlock
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
    with spill.SpillRunner(max_bytes=1) as runner:
        handles = [runner.keep(result) for result in results]
        runner.keep(big)  # pushes the last one out
        assert not any(isinstance(handle, tuple | np.ndarray) for handle in handles)
        for result, again in zip(results, runner.collect(handles), strict=True):
            assert _same(result, again)
        summary = summarise(RawRows(np.ones((2, 9000)), np.array([0, 1]), np.ones(2)), classify=True)
        handle = runner.keep(summary)
        runner.keep(big)
        [again] = runner.collect([handle])
        assert (again.sizes, again.n_rows) == ((2,), 2)
        np.testing.assert_array_equal(again.low, summary.low)


@pytest.fixture
def spill_folder(tmp_path, monkeypatch):
    """Where rows wait, which they do early."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(spill, "_SMALL", 1000)
    return tmp_path


class Source:
    """Some rows."""

    def __iter__(self):
        X = np.random.default_rng(0).normal(size=(3000, 5))
        yield X, np.sign(X[:, 0] * X[:, 1] + X[:, 2])


def _spilling_fit():
    return power_classifier(rank=4, random_state=0, max_memory=200_000).fit(Source())


REMEDY = r"Rows that do not fit in memory wait there.* TMPDIR, or raise max_memory"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_is_named_with_the_remedy(spill_folder, monkeypatch):
    monkeypatch.setattr(spill.SpillRunner, "_path", lambda self, number: Path("/dev/full"))
    with pytest.raises(OSError, match=f"cannot write /dev/full: {os.strerror(errno.ENOSPC)}.*{REMEDY}"):
        _spilling_fit()
    assert list(spill_folder.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fails_in_the_middle_leaves_nothing_behind(spill_folder, monkeypatch, code):
    class Failing(io.BufferedWriter):
        def write(self, data):
            super().write(bytes(data)[:100])
            self.flush()
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "open", lambda path, mode: Failing(io.FileIO(path, mode)))
    with pytest.raises(OSError, match=rf"cannot write {spill_folder}/polytrain-.*\.rows: .*{REMEDY}") as caught:
        _spilling_fit()
    assert os.strerror(code) in str(caught.value)
    assert caught.value.__cause__.errno == code
    assert list(spill_folder.iterdir()) == []


@pytest.mark.parametrize("after", [1, 40])
def test_a_temporary_folder_that_vanishes_is_named_with_the_remedy(spill_folder, monkeypatch, after):
    original = spill.SpillRunner._write
    written = []

    def write(self, number, arrays):
        original(self, number, arrays)
        written.append(number)
        if len(written) == after:
            shutil.rmtree(self._folder.name)

    monkeypatch.setattr(spill.SpillRunner, "_write", write)
    with pytest.raises(OSError, match=rf"cannot (read|write) {spill_folder}/polytrain-.*\.rows: No such.*{REMEDY}"):
        _spilling_fit()
    assert list(spill_folder.iterdir()) == []


@pytest.mark.parametrize("size", [0, 100])
def test_a_file_that_was_cut_is_named_with_the_remedy(spill_folder, size):
    big = np.arange(20_000.0)
    with spill.SpillRunner(max_bytes=1) as runner:
        handles = [runner.keep(big), runner.keep(big)]
        [file] = spill_folder.glob("*/*.rows")
        os.truncate(file, size)
        with pytest.raises(OSError, match=f"cannot read {file}: .*{REMEDY}"):
            list(runner.collect(handles))


def test_no_room_for_a_temporary_folder_is_named_with_the_remedy(monkeypatch):
    def refuse(*arguments, **settings):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(OSError, match=f"cannot make a temporary folder: .*{REMEDY}"):
        _spilling_fit()
