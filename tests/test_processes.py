"""The helper of the tests that stop processes."""

import signal
import subprocess
import sys

import pytest

from processes import running

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
SLEEPER = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(100)"]


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler])
def test_ctrl_c_reaches_the_process_wherever_the_tests_run(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with running(SLEEPER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert signal.getsignal(signal.SIGINT) is handler
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == -signal.SIGINT
    finally:
        signal.signal(signal.SIGINT, before)


def test_nothing_is_left_of_a_process_whose_test_fails():
    with pytest.raises(ZeroDivisionError), running(SLEEPER, stdout=subprocess.PIPE) as process:
        raise ZeroDivisionError
    assert process.returncode == -signal.SIGKILL
    assert process.stdout.closed
