"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

    python scripts/minimum_versions.py > oldest.txt           # run-time dependencies only
    python scripts/minimum_versions.py test > oldest.txt      # and those of an extra
    pip install -c oldest.txt -e ".[test]" -e ./paper

A test with these versions is what makes the lower bounds true.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def requirements(project: Mapping, extras: Iterable[str]) -> list[Requirement]:
    """What a project needs at run time and for these extras, extras that an extra names included."""
    lines = list(project["dependencies"])
    waiting, seen = list(extras), set()
    optional = project["optional-dependencies"]
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        if extra not in optional:
            raise SystemExit(f"pyproject.toml has no extra {extra!r}; it has {', '.join(optional)}.")
        seen.add(extra)
        for line in optional[extra]:
            requirement = Requirement(line)
            if requirement.name == project["name"]:
                waiting += requirement.extras
            else:
                lines.append(line)
    return [Requirement(line) for line in lines]


def oldest(requirement: Requirement) -> Version | None:
    """The oldest version that a requirement allows; None without a lower bound."""
    bounds = [Version(one.version) for one in requirement.specifier if one.operator in (">=", "==", "~=")]
    return max(bounds, default=None)


def constraints(project: Mapping, extras: Iterable[str]) -> list[str]:
    """Lines for a constraints file, in the order of the alphabet."""
    found: dict[str, Version] = {}
    for requirement in requirements(project, extras):
        version = oldest(requirement)
        if version is not None:
            found[requirement.name] = max(version, found.get(requirement.name, version))
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def main(arguments: list[str] | None = None) -> int:
    """Print the constraints; returns the exit code."""
    parser = argparse.ArgumentParser(description="Print the oldest versions that pyproject.toml allows.")
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="extras of polytrain, such as test")
    options = parser.parse_args(arguments)
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    print("\n".join(constraints(project, options.extras)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
