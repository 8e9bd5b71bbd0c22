"""Run tasks on the workers of a Dask cluster. Nothing else in the package knows Dask's client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["ClusterRunner"]


class ClusterRunner:
    """Tasks on the current Dask client; handles are its futures.

    Tasks are ordinary ones on ordinary futures, without actors: what a lost worker had is computed again elsewhere.
    """

    def __init__(self) -> None:
        from distributed import get_client

        try:
            self._client = get_client()
        except ValueError:
            raise ValueError(
                "X is a Dask collection, which is fitted on the current Dask client, but there is none. Start one "
                "first: from dask.distributed import Client; client = Client()"
            ) from None

    def start(self, delayed: Sequence[Any]) -> list[Any]:
        """Start to compute Dask's own lazy objects; the results stay on the workers."""
        return self._client.compute(list(delayed))

    def map(self, function: Callable, *columns: Sequence[Any]) -> list[Any]:
        return self._client.map(function, *columns, pure=False)

    def collect(self, handles: Sequence[Any]) -> list[Any]:
        return self._client.gather(list(handles))
