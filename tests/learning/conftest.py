"""One BLAS thread, as in training: the arrays are too small to share."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1):
        yield
