"""Fits that are interrupted and go on: the same cores, to the last bit."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from reference import make_problem

from polytrain import TensorTrainRegressor, config_context
from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train
from polytrain.tensor import clip_ranks
from power_models import CLASSIFIER_POWERS, power_classifier
from processes import running


class Stopped(Exception):
    """What interrupts a fit here."""


def _plan(loss, dims, **changes):
    settings = {"init": "linear", "solver": "auto", "max_sweeps": 6, "tol": 0.0, **changes}
    return Settings(loss, clip_ranks(dims, 3), 1e-3, **settings)


def _learn(plan, problem, path, stop_after=None, start=None):
    def report(record, cores):
        if record["sweep"] == stop_after:
            raise Stopped

    return learn_train(plan, problem.maps, problem.rows, Start(7, start, path), report=report)


@pytest.mark.parametrize(("loss", "n_rows"), [("squared", 200), ("logistic", 200), ("logistic", 20_000)])
@pytest.mark.parametrize("init", ["linear", "random"])
def test_a_fit_stopped_after_any_sweep_ends_with_the_same_cores(tmp_path, loss, n_rows, init):
    problem = make_problem(0, (2, 3, 2, 3), 3, n_rows, loss)
    plan = _plan(loss, problem.dims, init=init)
    expected = _learn(plan, problem, None)
    for sweep in range(1, 7):
        path = tmp_path / f"{sweep}.safetensors"
        with pytest.raises(Stopped):
            _learn(plan, problem, path, stop_after=sweep)
        resumed = _learn(plan, problem, path)
        assert resumed.stop_reason == expected.stop_reason
        for record, wanted in zip(resumed.history, expected.history, strict=True):
            assert {**record, "seconds": 0} == {**wanted, "seconds": 0}
        for core, wanted in zip(resumed.cores, expected.cores, strict=True):
            np.testing.assert_array_equal(core, wanted)


def test_a_finished_fit_is_not_repeated(tmp_path):
    problem = make_problem(1, (3, 3, 3), 3, 100)
    path = tmp_path / "train.safetensors"
    first = _learn(_plan("squared", problem.dims), problem, path)
    written = path.stat().st_mtime_ns
    again = _learn(_plan("squared", problem.dims), problem, path)
    assert path.stat().st_mtime_ns == written
    for core, wanted in zip(again.cores, first.cores, strict=True):
        np.testing.assert_array_equal(core, wanted)


def test_checkpoints_of_another_fit_and_damaged_ones_are_refused(tmp_path):
    problem = make_problem(2, (3, 3, 3), 3, 100)
    path = tmp_path / "train.safetensors"
    _learn(_plan("squared", problem.dims), problem, path)
    plan = _plan("squared", problem.dims)
    others = [make_problem(3, (3, 3, 3), 3, 100), replace(problem, basis="legendre")]
    for plan, rows in ((_plan("squared", problem.dims, tol=0.1), problem), *((plan, other) for other in others)):
        with pytest.raises(ValueError, match="belongs to a fit with other rows, parameters or random_state"):
            _learn(plan, rows, path)
    content = path.read_bytes()
    for damaged in (content[:-3], b"", content[:-1] + bytes([content[-1] ^ 1]), b"\x00" * 100):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"not a usable checkpoint: .* Delete it to start anew"):
            _learn(_plan("squared", problem.dims), problem, path)


def test_estimators_keep_one_file_per_train(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    with config_context(checkpoint=tmp_path / "new" / "folder"):
        model = power_classifier(rank=2, random_state=0).fit(X, y)
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        f"train-00{k}.safetensors" for k in range(3)
    ]
    expected = power_classifier(rank=2, random_state=0).fit(X, y)
    with config_context(checkpoint=tmp_path / "new" / "folder"):
        again = power_classifier(rank=2, random_state=0, n_jobs=2).fit(X, y)
    for fitted in (model, again):
        np.testing.assert_array_equal(fitted.decision_function(X), expected.decision_function(X))
    wanted = "checkpoint needs an integer random_state, got None"
    with config_context(checkpoint=tmp_path), pytest.raises(ValueError, match=wanted):
        TensorTrainRegressor().fit(X, y)


SETTINGS = {**CLASSIFIER_POWERS, "rank": 4, "max_sweeps": 12, "tol": 0.0, "random_state": 0}
SCRIPT = f"""
import sys
import numpy as np
from polytrain import TensorTrainClassifier, config_context

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 8))
y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
print("ready", flush=True)
with config_context(checkpoint=sys.argv[1]):
    model = TensorTrainClassifier(**{SETTINGS}).fit(X, y)
np.savez(sys.argv[2], *model.trains_[0].cores)
"""


def _run(folder, result):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(folder), str(result)]
    return running(command, stdout=subprocess.PIPE, env=environment, text=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_at_random_moments_end_in_twenty_identical_models(tmp_path):
    with _run(tmp_path / "undisturbed", tmp_path / "expected.npz") as process:
        process.stdout.readline()
        started = time.monotonic()
        assert process.wait() == 0
        duration = time.monotonic() - started
    with np.load(tmp_path / "expected.npz") as stored:
        expected = [stored[name] for name in stored]
    moments = random.Random(0)
    n_killed = 0
    for attempt in range(60):
        folder, result = tmp_path / f"kept{attempt}", tmp_path / f"{attempt}.npz"
        with _run(folder, result) as process:
            process.stdout.readline()
            pause = moments.uniform(0.0, 0.8 * duration)
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
            if process.wait() == -signal.SIGKILL:
                n_killed += 1
            else:  # it was over before: a fit takes less time than it did on a busy machine
                duration = pause
        with _run(folder, result) as process:
            assert process.wait() == 0
        with np.load(result) as stored:
            for name, wanted in zip(stored, expected, strict=True):
                np.testing.assert_array_equal(stored[name], wanted)
        if n_killed == 20:
            break
    assert n_killed == 20
