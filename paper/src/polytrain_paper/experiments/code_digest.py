"""A digest of the sources that a result depends on: what was computed by other sources is another result.

The sources are found, not listed: those of the runs, and whatever they import from polytrain and from this package,
directly or not, at once or only when a function is called. Imports for type checkers compute nothing and are left out.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import polytrain

__all__ = ["code_digest", "source_files"]

#: The folders of the packages, which are called as these are.
ROOTS = (Path(polytrain.__file__).parent, Path(__file__).parents[1])
START = "polytrain_paper.experiments.runs"
# The nets are as much a part of a result as the code that reads them.
DATA_FILES = "*.safetensors"


@cache
def code_digest(roots: tuple[Path, ...] = ROOTS) -> str:
    """Return a digest of the sources behind a result, the same wherever the packages are installed.

    It is computed once per process: sources that change under a running program are not the ones that run.

    Parameters
    ----------
    roots : tuple of Path
        Folders of the packages.

    Examples
    --------
    >>> from polytrain_paper.experiments.code_digest import code_digest
    >>> len(code_digest())
    64
    """
    sources = {path: path.read_bytes().replace(b"\r\n", b"\n") for path in source_files(roots)}
    contents = sources | {path: path.read_bytes() for root in roots for path in root.rglob(DATA_FILES)}
    lines = sorted(
        f"{path.relative_to(root.parent).as_posix()} {hashlib.sha256(content).hexdigest()}\n"
        for path, content in contents.items()
        for root in roots
        if path.is_relative_to(root)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def source_files(roots: tuple[Path, ...] = ROOTS) -> set[Path]:
    """Return the files of all modules that a run imports from the packages, its own among them."""
    if _file_of(START, roots) is None:  # a digest of nothing would be the same for all sources
        raise FileNotFoundError(
            f"{roots[-1]} does not hold the source of {START}; install polytrain-paper with its sources."
        )
    found: dict[str, Path] = {}
    waiting = [START]
    while waiting:
        name = waiting.pop()
        path = _file_of(name, roots)
        if path is None or name in found:
            continue
        found[name] = path
        waiting += _imported_names(path, name)
        waiting.append(name.rpartition(".")[0])  # importing a module runs the packages around it
    return set(found.values())


def _file_of(name: str, roots: tuple[Path, ...]) -> Path | None:
    """Return the file of a module; None if the name is not one of the packages' modules."""
    package, *parts = name.split(".")
    root = next((root for root in roots if root.name == package), None)
    if root is None:
        return None
    base = root.joinpath(*parts)
    candidates = [base / "__init__.py", *([base.with_suffix(".py")] if parts else [])]
    return next((path for path in candidates if path.is_file()), None)


def _imported_names(path: Path, module: str) -> Iterator[str]:
    """Names that a module imports; what stands behind ``from x import y`` may be a module x.y or something in x."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _imports(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            origin = resolve_name("." * node.level + (node.module or ""), package)
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements at any depth, except below ``if TYPE_CHECKING``."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            waiting += node.orelse
        else:  # expressions hold no imports, and are most of a tree
            kinds = (ast.stmt, ast.excepthandler, ast.match_case)
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]
