"""What the page about model files promises about time and memory, and how both are measured."""

import time
import tracemalloc

import polytrain
from polytrain import ModelFileError

BYTES_PER_BYTE, FREE_BYTES = 50, 100_000_000
# Processor time. More than is promised: machines differ, and so does what measuring adds.
SECONDS_PER_BYTE, FREE_SECONDS = 5e-6, 5.0


def load_within_bounds(path):
    """Return the model, or None for a file that is refused, once it is sure that this took what it may take."""
    n_bytes, started = path.stat().st_size, time.process_time()
    tracemalloc.start()
    try:
        model = polytrain.load(path)
    except ModelFileError:
        model = None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds = time.process_time() - started
    assert peak < FREE_BYTES + BYTES_PER_BYTE * n_bytes, f"{peak} bytes of memory for {n_bytes} bytes of file"
    assert seconds < FREE_SECONDS + SECONDS_PER_BYTE * n_bytes, f"{seconds:.1f} s for {n_bytes} bytes of file"
    return model
