"""Processes that tests start and signal."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def running(command: Sequence[Any], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that Ctrl-C can stop. At the end neither it nor its pipes are left, whatever happened.

    A shell without job control starts its background jobs with SIGINT ignored. The tests inherit that from the shell,
    and the processes that they start would inherit it from them; but what is handled here has its default there.
    Pipes that are left open are closed by the garbage collection, with a warning that fails another test.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, **options)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield process
        finally:
            process.kill()  # does nothing where it has been waited for
