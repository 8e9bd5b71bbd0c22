"""Check untrusted JSON and convert it to records."""

from __future__ import annotations

import math
import sys
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from polytrain.texts import shown

__all__ = ["read_entries", "read_value"]


def read_value(what: str, value: Any, kind: Any) -> Any:
    """Return JSON as a value of this type, or raise a ``ValueError`` that names it.

    ``kind`` is text, one of some texts, True or False, a number of at least 0 (None is NaN), one of several types of
    plain values, a tuple (a list in JSON), a dict, a record (dataclass or NamedTuple) of these, or any of them or None.

    >>> read_value("the point", {"at": [1, 0.5], "name": None}, dict[str, tuple[float, ...] | None])
    {'at': (1.0, 0.5), 'name': None}
    """
    origin, kinds = get_origin(kind), get_args(kind)
    if isinstance(kind, UnionType):
        if value is None and NoneType in kinds:
            return None
        if kinds[1:] == (NoneType,):
            return read_value(what, value, kinds[0])
        if type(value) in kinds and (not isinstance(value, float) or math.isfinite(value)):
            return value
    elif origin is Literal and isinstance(value, str) and value in kinds:
        return value
    elif origin is tuple and isinstance(value, list) and (kinds[-1] is ... or len(kinds) == len(value)):
        kinds = (kinds[0],) * len(value) if kinds[-1] is ... else kinds
        return tuple(read_value(what, item, item_kind) for item, item_kind in zip(value, kinds, strict=True))
    elif origin is dict and isinstance(value, dict):
        return {name: read_value(f"{name} of {what}", item, kinds[1]) for name, item in value.items()}
    elif is_dataclass(kind) or hasattr(kind, "_fields"):
        if isinstance(value, list) and hasattr(kind, "_fields") and len(value) == len(kind._fields):
            value = dict(zip(kind._fields, value, strict=True))
        fields = {name: hint for name, hint in get_type_hints(kind).items() if get_origin(hint) is not ClassVar}
        return kind(**read_entries(what, value, fields))
    elif kind is float and (value is None or (type(value) in (int, float) and 0 <= value <= sys.float_info.max)):
        return math.nan if value is None else float(value)
    elif type(value) is kind and (kind in (str, bool) or (kind is int and 0 <= value < 1 << 62)):
        return value
    raise ValueError(f"{what} is {shown(value)}, which is not plausible.")


def read_entries(what: str, value: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    """Check a JSON object with these names and types of values."""
    if not isinstance(value, dict) or value.keys() != kinds.keys():
        raise ValueError(f"{what} is {shown(value)}, which is not plausible: it needs the entries {list(kinds)}.")
    return {name: read_value(f"{name} of {what}", value[name], kinds[name]) for name in kinds}
