"""Which columns may act together: the meaning of ``interaction_cst``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Any

from polytrain.columns.column_list import column_number
from polytrain.estimators._parameters import is_sequence
from polytrain.texts import shown

_REMEDY = (
    "Give None, 'no_interactions', 'pairwise', or a list of groups, each a list, tuple or set of numbers or names of "
    "columns."
)
# Every group is learned in turn, round after round.
_MOST_GROUPS = 1000

Groups = tuple[tuple[int, ...], ...]


def allowed_groups(
    interaction_cst: Any, n_columns: int, names: Sequence[str] | None = None, sources: Sequence[int] | None = None
) -> Groups | None:
    """Return the groups of features that may act together; None if all may.

    ``sources`` is the column that each feature comes from: features of one column may always act together.
    """
    if interaction_cst is None:
        return None
    groups = _column_groups(interaction_cst, n_columns, names)
    if rest := set(range(n_columns)).difference(*groups):
        groups.append(rest)
    if any(len(group) == n_columns for group in groups):
        return None
    _check_number(interaction_cst, sum(len(group) > 1 for group in groups), n_columns)
    features: dict[int, list[int]] = {}
    for feature, column in enumerate(range(n_columns) if sources is None else sources):
        features.setdefault(column, []).append(feature)
    return tuple(tuple(feature for column in sorted(group) for feature in features[column]) for group in groups)


def _check_number(interaction_cst: Any, n_groups: int, n_columns: int) -> None:
    if n_groups > _MOST_GROUPS:
        raise ValueError(
            f"interaction_cst={shown(interaction_cst)} makes {n_groups} groups of {n_columns} columns, more than the "
            f"{_MOST_GROUPS} that are learned in a sensible time. Name fewer groups, or leave out columns."
        )


def _column_groups(interaction_cst: Any, n_columns: int, names: Sequence[str] | None) -> list[set[int]]:
    if isinstance(interaction_cst, str) and interaction_cst == "no_interactions":
        return [{k} for k in range(n_columns)]
    if isinstance(interaction_cst, str) and interaction_cst == "pairwise":
        _check_number(interaction_cst, n_columns * (n_columns - 1) // 2, n_columns)
        return [set(pair) for pair in combinations(range(n_columns), min(2, n_columns))]
    if not _is_collection(interaction_cst):
        raise ValueError(f"interaction_cst must not be {shown(interaction_cst)}. {_REMEDY}")
    if not len(interaction_cst):
        raise ValueError(f"interaction_cst has no groups. {_REMEDY}")
    groups = []
    for number, group in enumerate(interaction_cst):
        where = f"interaction_cst[{number}]"
        if not _is_collection(group):
            raise ValueError(f"{where} is {shown(group)}, which is not a group of columns. {_REMEDY}")
        if not len(group):
            raise ValueError(f"{where} is empty. Name at least one column, or leave the group out.")
        groups.append({column_number(where, entry, names, n_columns) for entry in group})
    return groups


def _is_collection(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | dict) and getattr(value, "ndim", 1) > 0


def check_no_conflict(parameters: dict[str, Any], is_warm: bool, stops_early: bool) -> None:
    """Refuse parameters that are about one train, where a fit learns a sum of trains over groups of columns."""
    rank, init, folder = parameters["rank"], parameters["init"], parameters["checkpoint"]
    conflicts = {
        f"rank gives one number per bond, got {shown(rank)}, but with interaction_cst every group of columns has "
        "a train of its own. Give a single integer, the largest rank of all groups, or 'auto'.": is_sequence(rank),
        f"init must be 'auto' or 'linear' with interaction_cst, got {shown(init)}: a given train may have "
        "interactions that are not allowed.": not isinstance(init, str) or init in ("random", "dual"),
        "loss='multinomial' learns the trains of all classes together, which interaction_cst does not know. Use "
        "loss='auto' or 'logistic'.": parameters["loss"] == "multinomial",
        "interaction_cst knows no validation rows: groups are learned in rounds until tol or max_sweeps. Set "
        "early_stopping=False, and leave X_val out.": stops_early,
        "warm_start=True cannot go on from the trains of the last fit with interaction_cst: what the groups have "
        "learned is no longer told apart. Set warm_start=False.": is_warm,
        f"checkpoint={shown(folder)} cannot be combined with interaction_cst: groups are learned in turn, and only "
        "single trains are kept. Set checkpoint=None.": folder is not None,
    }
    for message, is_there in conflicts.items():
        if is_there:
            raise ValueError(message)
