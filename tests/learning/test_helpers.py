"""Helping processes: many fits at once, forks, signals, and what is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_info, threadpool_limits

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.learning import helpers
from polytrain.learning.helpers import Helper, borrow_helpers, share, spread
from polytrain.learning.threads import one_blas_thread
from processes import running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="helpers need a POSIX system")


def make_rows(seed=0, n_rows=20_000):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 4))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(n_rows)


def small_fit(seed=0, n_jobs=3, **parameters):
    X, y = make_rows(seed)
    settings = {"basis": "power", "rank": 2, "alpha": 1e-3, "max_sweeps": 1, "random_state": 0, **parameters}
    return TensorTrainRegressor(**settings, n_jobs=n_jobs).fit(X, y)


def cores_of(model):
    return [core for train in model.model_.cores for core in train]


def assert_same(one, other):
    for mine, yours in zip(cores_of(one), cores_of(other), strict=True):
        np.testing.assert_array_equal(mine, yours)


def in_threads(functions):
    """Results of functions that run at the same time, each in a thread; whatever hangs fails."""
    results, errors = [None] * len(functions), []

    def run(index, function):
        try:
            results[index] = function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a fit hangs"
    if errors:
        raise errors[0]
    return results


def wait_until(is_true, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_true():
            return True
        time.sleep(0.05)
    return False


def exists(pid):
    """Whether a process runs; one that has ended and was not asked about yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- many fits at once ------------------------------------------------------------------------------------------------


def test_fits_in_threads_with_more_processes_than_cores_end_with_the_results_of_sequential_ones():
    expected = [small_fit(seed, n_jobs=1) for seed in range(4)]
    for _ in range(3):
        found = in_threads([lambda seed=seed: small_fit(seed, n_jobs=3) for seed in range(4)])
        for one, other in zip(expected, found, strict=True):
            assert_same(one, other)


@pytest.mark.slow
def test_trains_in_processes_and_rows_in_processes_at_once():
    X, y = load_digits(return_X_y=True)
    settings = {"basis": "power", "degree": 1, "rank": 3, "alpha": 1e-3, "max_sweeps": 1, "random_state": 0}

    def fit_digits(n_jobs):
        return TensorTrainClassifier(loss="squared", **settings, n_jobs=n_jobs).fit(X[:, :40], y)

    functions = [fit_digits, lambda n_jobs: small_fit(n_jobs=n_jobs)]
    expected = [function(1) for function in functions]
    found = in_threads([lambda function=function, n=n: function(n) for n in (2, 3) for function in functions])
    for one, other in zip(expected * 2, found, strict=True):
        assert_same(one, other)


@pytest.fixture
def two_threads():
    """BLAS on two threads, whatever the environment says."""
    with threadpool_limits(2, "blas"):
        yield


def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_concurrent_fits_leave_blas_as_it_was_and_have_the_results_of_sequential_ones(two_threads):
    X, y = make_rows(n_rows=1200)

    def fit(seed):  # defaults: the choice is made of matrix products and decompositions that BLAS likes to share
        return TensorTrainRegressor(random_state=seed, max_sweeps=2).fit(X[seed::4], y[seed::4])

    before = threads()
    assert set(before) == {2}
    expected = [fit(seed) for seed in range(4)]
    for one, other in zip(expected, in_threads([lambda s=s: fit(s) for s in range(4)]), strict=True):
        assert_same(one, other)
    assert threads() == before


def test_a_limit_that_one_thread_set_is_lifted_by_another(two_threads):
    limit = one_blas_thread()
    in_threads([limit.__enter__])
    assert set(threads()) == {1}
    in_threads([lambda: limit.__exit__(None, None, None)])
    assert set(threads()) == {2}


# --- what helpers do --------------------------------------------------------------------------------------------------


def test_results_come_in_order_and_large_arrays_are_shared_as_they_are():
    table = np.arange(60_000.0).reshape(200, 300)
    turned = np.asfortranarray(table)
    rows = list(spread(_row_sums, (table, turned, table[:, ::2]), [(k,) for k in range(20)], n_jobs=3))
    for k, (first, second, third, writable) in enumerate(rows):
        assert (first, second, third) == (table[k].sum(), table[k].sum(), table[k, ::2].sum())
        assert not writable


def _row_sums(table, turned, gaps, k):
    return table[k].sum(), np.ascontiguousarray(turned[k]).sum(), gaps[k].sum(), table.flags.writeable


def test_errors_in_helpers_are_raised_here_with_the_place_where_they_happened():
    with pytest.raises(ZeroDivisionError) as caught:
        list(spread(_divide, (1,), [(1,), (0,), (2,)], n_jobs=2))
    assert "_divide" in caught.value.__notes__[0]
    assert list(spread(_divide, (1,), [(1,), (2,)], n_jobs=2)) == [1.0, 0.5]


@pytest.mark.slow
def test_an_error_that_cannot_travel_is_told():
    with pytest.raises(RuntimeError, match="_StubbornError: no pickle"):
        list(spread(_complain, (), [(1,), (2,)], n_jobs=2))


def _divide(one, other):
    return one / other


class _StubbornError(Exception):
    def __reduce__(self):
        raise TypeError("I stay")


def _complain(_):
    raise _StubbornError("no pickle")


def test_a_helper_that_was_killed_is_named_and_replaced():
    with pytest.raises(RuntimeError, match=r"ended unexpectedly.*smaller n_jobs"):
        list(spread(_kill_itself, (), [(1,), (2,)], n_jobs=2))
    with borrow_helpers(1) as [helper]:
        pass
    os.kill(helper.pid, signal.SIGKILL)  # one that waits: nobody notices
    assert list(spread(_divide, (1,), [(1,), (2,)], n_jobs=2)) == [1.0, 0.5]
    with borrow_helpers(1) as [helper]:
        os.kill(helper.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="ended unexpectedly"):
            [helper.send(("anything", ())) for _ in range(100_000)]


def _kill_itself(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_helpers_are_kept_for_the_next_fit_and_ended_after_an_error():
    with borrow_helpers(1) as [first]:
        pass
    with pytest.raises(KeyboardInterrupt):
        _interrupted(first)
    assert wait_until(lambda: not exists(first.pid))
    with borrow_helpers(1) as [third]:
        assert third.pid != first.pid


def _interrupted(expected):
    with borrow_helpers(1) as [helper]:
        assert helper is expected
        raise KeyboardInterrupt


def test_a_helper_that_speaks_out_of_turn_is_not_used_again():
    with borrow_helpers(1) as [helper]:
        helper.begin(_speak_twice)
        assert helper.receive() == 1
    with borrow_helpers(1) as [other]:
        assert other is not helper


def _speak_twice(connection):
    connection.send(1)
    connection.send(2)


@pytest.mark.slow
def test_helpers_that_are_forgotten_or_not_needed_end():
    helper = Helper()
    pid = helper.pid
    del helper
    assert wait_until(lambda: not exists(pid))
    with borrow_helpers(6) as many:
        pids = [helper.pid for helper in many]
    del many
    assert len(pids) == 6
    assert wait_until(lambda: sum(map(exists, pids)) <= max(1, os.cpu_count()))


@pytest.mark.slow
def test_a_helper_waits_for_a_while_only(monkeypatch):
    monkeypatch.setattr(
        helpers, "_COMMAND", helpers._COMMAND.replace("helpers._help(", "helpers._IDLE_SECONDS = 0.1; helpers._help(")
    )
    helper = Helper()
    assert wait_until(lambda: not helper.is_running, 60)
    assert not helper.is_free()


@pytest.mark.slow
def test_fits_do_with_fewer_helpers_where_no_process_can_be_started(monkeypatch):
    def refuse(*arguments, **options):
        raise BlockingIOError("no more processes")

    for helper in helpers._pool.idle:
        helper.end()
    monkeypatch.setattr(helpers.subprocess, "Popen", refuse)
    assert_same(small_fit(n_jobs=3), small_fit(n_jobs=1))
    assert list(spread(_divide, (1,), [(1,), (2,)], n_jobs=2)) == [1.0, 0.5]


def test_frozen_programs_have_no_helpers(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not helpers.may_borrow_helpers()
    with borrow_helpers(2) as found:
        assert found == []


def test_a_full_disk_is_named_with_the_remedy(monkeypatch, tmp_path):
    class Full:
        def __init__(self, file):
            self._file = file

        def write(self, content):
            raise OSError(28, "No space left on device")

        def __getattr__(self, name):
            return getattr(self._file, name)

    plain = tempfile.TemporaryFile
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **options: Full(plain(**options)))
    with pytest.raises(OSError, match=r"cannot write 800\d\d\d bytes.*No space left.*TMPDIR.*n_jobs=1"):
        share((np.zeros(100_000),), {})


@pytest.mark.slow
def test_small_memory_sends_shared_arrays_to_a_disk(monkeypatch):
    monkeypatch.setattr(helpers.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 0}))
    big = np.arange(100_000.0)
    with borrow_helpers(1) as [helper]:
        share((np.sum, big), {helper: partial})
        helper.send((True, ()))
        assert helper.answer() == big.sum()
        helper.send(None)


# --- forks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def run_script():
    """Run a script in a group of its own, as if from a terminal."""
    with ExitStack() as stack:

        def run(text):
            path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
            options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
            command = [sys.executable, "-c", textwrap.dedent(text)]
            return stack.enter_context(running(command, env={**os.environ, "PYTHONPATH": path}, **options))

        yield run


@pytest.mark.slow
def test_a_fork_has_helpers_of_its_own(run_script):
    process = run_script("""
        import os, sys
        from test_helpers import small_fit, assert_same, helpers
        expected = small_fit(n_jobs=3)
        theirs = {helper.pid for helper in helpers._pool.all}
        child = os.fork()
        if child == 0:
            try:
                assert_same(small_fit(n_jobs=3), expected)
                assert theirs.isdisjoint(helper.pid for helper in helpers._pool.all)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            sys.exit(0)  # with all that is done when Python ends
        assert os.waitpid(child, 0)[1] == 0
        assert_same(small_fit(n_jobs=3), expected)
        assert theirs == {helper.pid for helper in helpers._pool.all}
    """)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def test_a_fork_within_a_limit_of_threads_is_not_limited(two_threads):
    before = threads()
    assert set(before) == {2}
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            os._exit(0 if threads() == before else 1)
    assert os.waitpid(child, 0)[1] == 0


# --- signals ----------------------------------------------------------------------------------------------------------

LONG_FITS = {
    "rows": """
        from test_helpers import make_rows
        from polytrain import TensorTrainRegressor
        X, y = make_rows(n_rows=300_000)
        model = TensorTrainRegressor(basis="power", rank=8, degree=3, alpha=1e-6, max_sweeps=10_000, tol=0, n_jobs=3)
    """,
    "trains": """
        from test_helpers import make_rows
        from polytrain import TensorTrainClassifier
        X, y = make_rows(n_rows=100_000)
        y = (4 * y).round() % 5
        model = TensorTrainClassifier(basis="power", rank=8, degree=3, alpha=1e-6, max_sweeps=10_000, tol=0, n_jobs=2)
    """,
}


def children_of(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(line) for line in found.split()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(LONG_FITS))
@pytest.mark.parametrize("number", [signal.SIGTERM, getattr(signal, "SIGKILL", None)])
def test_nothing_is_left_of_a_fit_that_is_killed(number, kind, run_script):
    process = run_script(textwrap.dedent(LONG_FITS[kind]) + "\nprint('ready', flush=True)\nmodel.fit(X, y)\n")
    assert process.stdout.readline() == "ready\n"
    assert wait_until(lambda: children_of(process.pid), 60)
    time.sleep(1.5)  # they have their share and compute
    left = children_of(process.pid)
    process.send_signal(number)
    assert process.wait(10) == -number
    assert wait_until(lambda: not any(map(exists, left)), 2.0)
    assert process.stdout.read() == ""  # nobody holds it open
    for folder in ("/dev/shm", tempfile.gettempdir()):
        assert not list(Path(folder).glob(f"polytrain-{process.pid}-*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(LONG_FITS))
def test_a_fit_after_ctrl_c_works_whenever_it_came(kind, run_script):
    """Ctrl-C goes to all processes of the terminal's group: while helpers start, get their share, and compute."""
    text = textwrap.dedent(LONG_FITS[kind]) + textwrap.dedent("""
        import sys
        from test_helpers import small_fit, assert_same
        expected = small_fit(n_jobs=1)
        for _ in range(6):
            print("ready", flush=True)
            try:
                model.fit(X, y)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        assert_same(small_fit(n_jobs=3), expected)
        print("done", flush=True)
    """)
    process = run_script(text)
    for delay in (0.05, 0.2, 0.5, 1.0, 1.5, 2.5):
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
    output, errors = process.communicate(timeout=120)
    assert output == "done\n", errors
    assert process.returncode == 0
    assert "Traceback" not in errors
