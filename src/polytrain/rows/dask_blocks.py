"""Dask collections as lists of lazy blocks of rows. Dask is imported only where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

#: Rows of at most this size, that of a usual partition, are brought here and fitted as arrays.
FEW_BYTES = 32 << 20


def is_dask(X: Any) -> bool:
    """Whether this is a Dask array or data frame, without an import of Dask."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def is_dask_frame(X: Any) -> bool:
    """Whether a Dask collection is a data frame or a series, rather than an array."""
    return hasattr(X, "divisions")


def lazy_blocks(collection: Any, name: str, sizes_needed: bool = True) -> list[Any]:
    """Lazy blocks of rows of a Dask array, data frame or series."""
    if not is_dask(collection):
        raise ValueError(
            f"X is a Dask collection but {name} is {type(collection).__name__}; convert it with the same chunks of "
            f"rows, for example dask.array.from_array({name}, chunks=X.chunks[0])."
        )
    if is_dask_frame(collection):
        return list(collection.to_delayed())
    if collection.ndim > 1 and collection.numblocks[1] > 1:
        raise ValueError(
            f"{name} has {collection.numblocks[1]} column chunks; rechunk to one with {name}.rechunk({{1: -1}})."
        )
    if sizes_needed and any(np.isnan(size) for size in collection.chunks[0]):
        raise ValueError(f"the chunk sizes of {name} are unknown; find them with {name}.compute_chunk_sizes().")
    return list(collection.to_delayed().ravel())


def aligned_blocks(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Return lazy tuples of blocks of features, targets and perhaps weights that belong together."""
    from dask import delayed

    pieces = [lazy_blocks(X, "X")]
    for name, other in [("y", y)] + [("sample_weight", sample_weight)] * (sample_weight is not None):
        pieces.append(lazy_blocks(other, name))
        if hasattr(X, "chunks") and hasattr(other, "chunks") and X.chunks[0] != other.chunks[0]:
            raise ValueError(
                f"{name} has row chunks {other.chunks[0]} but X has {X.chunks[0]}; "
                f"match them with {name}.rechunk(X.chunks[0])."
            )
        if len(pieces[-1]) != len(pieces[0]):
            raise ValueError(
                f"{name} has {len(pieces[-1])} partitions of rows but X has {len(pieces[0])}; match them, for example "
                f"with {name}.repartition(npartitions=X.npartitions)."
            )
    return [delayed(tuple)(list(block)) for block in zip(*pieces, strict=True)]


def block_bytes(block: tuple[Any, ...]) -> float:
    """Bytes of a block where it is; infinitely many if it could not be joined with others."""
    from dask.sizeof import sizeof

    can_join = all(isinstance(piece, np.ndarray) or hasattr(piece, "iloc") for piece in block)
    return sum(map(sizeof, block)) if can_join else np.inf


def join_blocks(blocks: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Features, targets and perhaps weights of all blocks, as arrays or frames."""
    for block in blocks:
        check_consistent_length(*block)
    # Frames without rows may have lost their types.
    filled = [block for block in blocks if len(block[0])] or blocks[:1]
    joined = []
    for pieces in zip(*filled, strict=True):
        if hasattr(pieces[0], "iloc"):  # a frame or a series of pandas
            from dask.dataframe.dispatch import concat

            joined.append(concat(list(pieces)))  # unlike that of pandas, it joins categories
        else:
            joined.append(np.concatenate(pieces))
    return joined
