"""Check which part of the package imports which, and draw it.

A part is a top-level subpackage or module; the package's own ``__init__`` and ``__main__`` are the part on top. The
sources are parsed, never imported, so an import counts wherever it stands: in a function, under ``TYPE_CHECKING``, as
``import_module("polytrain.models")``, or as a value of a table like ``{"load": "polytrain.models"}``.

    python scripts/draw_imports.py           # check, and draw docs/images/imports.svg
    python scripts/draw_imports.py --check   # check, and compare the file with what would be drawn
    python scripts/draw_imports.py --list    # print who imports whom

The checks: no cycle between parts, and no import of a private module or name of another part, neither in polytrain nor
in polytrain_paper (which is not drawn). polytrain does without polytrain_paper, but for the command that it brings.
"""

import argparse
import ast
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from layered_picture import Arrow, draw_layers

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "polytrain"
PAPER = REPOSITORY / "paper" / "src" / "polytrain_paper"
#: The only file of polytrain that may look for polytrain_paper.
DOOR = "cli/main.py"
PICTURE = REPOSITORY / "docs" / "images" / "imports.svg"

Edge = tuple[str, str]  # (importing part, imported part)


@dataclass(frozen=True, order=True)
class Import:
    """One import of one part by another; `deferred` if loading the importing module does not run it."""

    edge: Edge
    file: str
    line: int
    thing: str  # the dotted name of what is imported
    deferred: bool

    @property
    def private_thing(self) -> str:
        """The dotted name up to its first private component, or nothing."""
        match = re.match(r"(\w+\.)*?_(?!_)\w*", self.thing)
        return match.group() if match else ""


@dataclass(frozen=True)
class Package:
    """The parts with the first sentences of their docstrings, and the imports behind each edge between them."""

    root: str
    purposes: dict[str, str]
    edges: dict[Edge, list[Import]]

    def is_deferred(self, edge: Edge) -> bool:
        """Whether loading the importing part leaves the imported one alone."""
        return all(item.deferred for item in self.edges[edge])


# --- reading the sources ----------------------------------------------------------------------------------------------


def walk(node: ast.AST, deferred: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node of a tree, and whether loading the module leaves it aside."""
    yield node, deferred
    children = list(ast.iter_child_nodes(node))
    aside: Sequence[ast.AST] = []
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            aside = children
        case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), body=body):
            aside = body
    for child in children:
        yield from walk(child, deferred or child in aside)


def references(node: ast.AST, home: Sequence[str]) -> Iterator[tuple[int, str, str, str]]:
    """What one node imports: line, module, name taken from it, name given to it. `home` is the package around it."""

    def absolute(module: str, level: int) -> str:
        return ".".join([*home[: len(home) + 1 - level], *filter(None, [module])]) if level else module

    match node:
        case ast.Import(names=aliases, lineno=line):
            yield from ((line, alias.name, "", "") for alias in aliases)
        case ast.ImportFrom(names=aliases, lineno=line):
            module = absolute(node.module or "", node.level)
            yield from ((line, module, alias.name, alias.asname or alias.name) for alias in aliases)
        case ast.Call(func=function, args=[ast.Constant(value=str(module)), *_], lineno=line):
            if ast.unparse(function).split(".")[-1] in ("import_module", "__import__"):
                name = module.lstrip(".")
                yield line, absolute(name, len(module) - len(name)), "", ""
        case ast.Dict(keys=keys, values=values):
            for pair in zip(keys, values, strict=True):
                match pair:
                    case ast.Constant(value=str(name)), ast.Constant(value=str(module), lineno=line) if "." in module:
                        yield line, module, "", name


def part_of(path: Path, directory: Path) -> str:
    """The part of the package in `directory` that a source file belongs to."""
    part = path.relative_to(directory).parts[0].removesuffix(".py")
    return directory.name if part in ("__init__", "__main__") else part


def purpose_of(part: Path) -> str:
    """The first sentence of the docstring of a package or module, without its full stop."""
    path = part / "__init__.py" if part.is_dir() else part.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) if path.exists() else None
    text = " ".join((docstring or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", text)[0].removesuffix(".").replace("`", "")


def read_package(directory: Path) -> Package:
    """Parse every source file below `directory`."""
    root, front = directory.name, directory / "__init__.py"
    paths = sorted(directory.rglob("*.py"), key=lambda path: (path != front, path))
    parts = sorted({part_of(path, directory) for path in paths})
    exports: dict[str, str] = {}  # public name of the package -> the part it comes from; the front is read first
    edges: dict[Edge, list[Import]] = {}
    for path in paths:
        source, file = part_of(path, directory), path.relative_to(directory.parents[1]).as_posix()
        home = path.parent.relative_to(directory.parent).parts
        for node, deferred in walk(ast.parse(path.read_text("utf-8"), file)):
            for line, module, name, given_name in references(node, home):
                top, *rest = module.split(".")
                target = rest[0] if rest else name if name in parts else exports.get(name, root)
                if top != root or target == source or target not in parts:
                    continue
                if path == front and given_name:
                    exports[given_name] = target
                thing = f"{module}.{name}".removesuffix(".")
                item = Import((source, target), file, line, thing, deferred or isinstance(node, ast.Dict))
                edges.setdefault(item.edge, []).append(item)
    purposes = {part: purpose_of(directory if part == root else directory / part) for part in parts}
    return Package(root, purposes, {edge: sorted(edges[edge]) for edge in sorted(edges)})


# --- checking ---------------------------------------------------------------------------------------------------------


def find_path(edges: Collection[Edge], start: str, goal: str) -> list[str]:
    """The parts on a shortest path, the first in the alphabet; empty if there is none."""
    paths = {start: [start]}
    queue = [start]
    for part in queue:
        for source, target in sorted(edges):
            if source == part and target not in paths:
                paths[target] = [*paths[part], target]
                queue.append(target)
    return paths.get(goal, [])


def find_offenders(package: Package) -> list[Edge]:
    """Edges without which there is no cycle, and each of which closes one: the weakest edges of the shortest cycles."""

    def strength(edge: Edge) -> tuple[bool, bool, int, Edge]:
        return edge[1] != package.root, not package.is_deferred(edge), len(package.edges[edge]), edge

    kept = set(package.edges)
    while cycles := [path for source, target in sorted(kept) if (path := find_path(kept, target, source))]:
        cycle = min(cycles, key=len)
        kept.remove(min(pairwise([*cycle, cycle[0]]), key=strength))
    for source, target in sorted(set(package.edges) - kept, key=strength, reverse=True):
        if not find_path(kept, target, source):
            kept.add((source, target))
    return [edge for edge in package.edges if edge not in kept]


def find_faults(package: Package) -> list[str]:
    """Cycles and private imports, each with the places to look at."""
    faults = []
    offenders = find_offenders(package)
    for source, target in offenders:
        cycle = [source, *find_path(set(package.edges) - set(offenders), target, source)]
        lines = [f"cycle: {' -> '.join(cycle)}"]
        for edge in pairwise(cycle):
            lines += [f"  {edge[0]} imports {edge[1]}:"]
            lines += dict.fromkeys(f"    {item.file}:{item.line}" for item in package.edges[edge])
        faults.append("\n".join(lines))
    private = sorted(
        (item.file, item.line, item.private_thing, *item.edge)
        for items in package.edges.values()
        for item in items
        if item.private_thing
    )
    for file, line, thing, source, target in dict.fromkeys(private):
        faults.append(f"private: {file}:{line} imports {thing} into {source}; it is private to {target}")
    return faults


def find_guests(package: Path, guest: str) -> list[str]:
    """Imports of another package, wherever they stand, except in the one file that may have them."""
    faults = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        home = path.parent.relative_to(package.parent).parts
        for node in ast.walk(ast.parse(path.read_text("utf-8"), name)):
            for line, module, *_ in references(node, home):
                if module.split(".")[0] == guest and name != DOOR:
                    faults.append(f"guest: {name}:{line} imports {module}; {package.name} must do without {guest}")
    return faults


# --- drawing ----------------------------------------------------------------------------------------------------------


def draw(package: Package) -> str:
    """The picture, as the text of an SVG file."""
    offenders = find_offenders(package)
    kept = set(package.edges) - set(offenders)
    shown = [edge for edge in package.edges if edge in offenders or not find_path(kept - {edge}, *edge)]
    arrows = [Arrow(*edge, dashed=package.is_deferred(edge), alarming=edge in offenders) for edge in shown]
    caption = [
        "An arrow leads from a part to a part that it imports. Left out: imports between parts that a chain of other "
        "arrows joins already (the transitive reduction)."
    ]
    if any(arrow.dashed for arrow in arrows):
        caption.append("Dashed: imported only inside functions, on first use, or for type checkers.")
    if offenders:
        caption.append("Red: closes a cycle.")
    title = f"The parts of {package.root} and what they import"
    return draw_layers(title, caption, package.purposes, arrows, top=package.root)


def main(arguments: list[str] | None = None) -> int:
    """Check, then draw, compare or list; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check which part of the package imports which, and draw it.")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="the package's folder (default: src/polytrain)")
    parser.add_argument("--output", type=Path, default=PICTURE, help="the picture (default: docs/images/imports.svg)")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="write nothing; fail if the picture is out of date")
    mode.add_argument("--list", action="store_true", help="print the edges and do nothing else")
    options = parser.parse_args(arguments)
    package = read_package(options.package.resolve())

    if options.list:
        for edge, imports in package.edges.items():
            count = len({(item.file, item.line) for item in imports})
            print(
                f"{edge[0]} -> {edge[1]}  ({count} {'place' if count == 1 else 'places'}"
                f"{', deferred' if package.is_deferred(edge) else ''})"
            )
        return 0

    faults = find_faults(package)
    if options.package == PACKAGE:
        faults += find_guests(PACKAGE, PAPER.name) + find_faults(read_package(PAPER))
    picture = draw(package)
    if not options.check:
        options.output.write_text(picture, "utf-8")
    elif not options.output.exists() or options.output.read_text("utf-8") != picture:
        faults.append(f"picture: {options.output} is out of date; redraw it with: python scripts/draw_imports.py")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
