"""JSON becomes records, and is refused where it has other types."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pytest

from polytrain.records import read_value


class Point(NamedTuple):
    x: float
    y: float | None


@dataclass(frozen=True)
class Path:
    kind: Literal["open", "closed"]
    points: tuple[Point, ...]
    notes: dict[str, str | float]


RIGHT = {"kind": "open", "points": [[0, None], {"x": 1.5, "y": 2}], "notes": {"a": -1.0, "b": "c"}}


def test_right():
    read = read_value("the path", RIGHT, Path)
    assert read == Path("open", (Point(0.0, None), Point(1.5, 2.0)), {"a": -1.0, "b": "c"})
    assert read_value("the pair", [True, 3], tuple[bool, int]) == (True, 3)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"kind": "round"}, "kind of the path"),
        ({"kind": None}, "kind of the path"),
        ({"points": {}}, "points of the path"),
        ({"points": [[1]]}, "points of the path"),
        ({"points": [[-1, 0]]}, "x of points of the path"),
        ({"points": [[True, 0]]}, "x of points of the path"),
        ({"points": [[10**400, 0]]}, "x of points of the path"),
        ({"notes": {"a": 1}}, "a of notes of the path"),
        ({"notes": {"a": float("inf")}}, "a of notes of the path"),
        ({"more": 1}, "the path"),
    ],
)
def test_wrong(changes: dict[str, Any], place: str):
    with pytest.raises(ValueError, match=f"^{place} is .* not plausible"):
        read_value("the path", RIGHT | changes, Path)


def test_entries_that_are_missing():
    with pytest.raises(ValueError, match="it needs the entries"):
        read_value("the path", {"kind": "open"}, Path)
