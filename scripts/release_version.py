"""Say which version this is, and check that everything that names one names the same.

python scripts/release_version.py           # print it, or what disagrees
python scripts/release_version.py v0.2.0    # and compare it with the tag of a release
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
#: Files that name the version, and the words before it.
PLACES = {
    "src/polytrain/version.py": r'__version__ = "(.+)"',
    "CITATION.cff": r"^version: (.+)$",
    "conda/recipe.yaml": r'^  version: "(.+)"$',
    "paper/pyproject.toml": r'^version = "(.+)"$',
}


def versions() -> dict[str, str]:
    """Return the version that each file names."""
    projects = {
        name: tomllib.loads((REPOSITORY / name).read_text("utf-8"))["project"]
        for name in ("pyproject.toml", "paper/pyproject.toml")
    }
    found = {"pyproject.toml": projects["pyproject.toml"]["version"]}
    for name, pattern in PLACES.items():
        match = re.search(pattern, (REPOSITORY / name).read_text("utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "none"
    (need,) = (line for line in projects["paper/pyproject.toml"]["dependencies"] if line.startswith("polytrain"))
    found["paper/pyproject.toml, dependencies"] = need.removeprefix("polytrain==")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Compare, and print; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check that all files name the same version.")
    parser.add_argument("tag", nargs="?", help="the tag of a release, such as v0.2.0")
    options = parser.parse_args(arguments)
    found = versions()
    if options.tag:
        found["the tag"] = options.tag.removeprefix("v")
    if len(set(found.values())) > 1:
        for place, version in found.items():
            print(f"{version}  {place}", file=sys.stderr)
        return 1
    print(found["pyproject.toml"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
