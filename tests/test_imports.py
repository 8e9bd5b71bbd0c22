"""The parts of the package import each other in one direction only, by their public names."""

import ast
from collections import defaultdict
from xml.etree import ElementTree

import pytest

from scripts_as_modules import load_script


@pytest.fixture(scope="module")
def imports():
    return load_script("draw_imports")


@pytest.fixture
def make_package(imports, tmp_path):
    """Write the files of a package named ``fake`` and read it."""

    def make(**files: str):
        directory = tmp_path / "src" / "fake"
        for name, text in {"__init__": "", **files}.items():
            path = directory / (name.replace("__in__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for folder in [path for path in directory.iterdir() if path.is_dir()]:
            (folder / "__init__.py").touch()
        return imports.read_package(directory)

    return make


CLEAN = {
    "__init__": 'from fake.upper import Tower\n_LAZY = {"load": "fake.store"}\n__version__ = "1"\n',
    "upper": '"""Builds <towers> & more. Slowly."""\nfrom .lower.stones import Stone\n\nclass Tower: ...\n',
    "lower__in__stones": "from fake.lower._dust import _grain\nStone = 1\n",
    "lower__in___dust": "_grain = 0\n",
    "store": "def load():\n    from fake import Tower\n",
}


def test_clean_tree_has_no_fault(imports, make_package):
    package = make_package(**CLEAN)
    assert imports.find_faults(package) == []
    assert list(package.edges) == [("fake", "store"), ("fake", "upper"), ("store", "upper"), ("upper", "lower")]
    assert [edge for edge in package.edges if package.is_deferred(edge)] == [("fake", "store"), ("store", "upper")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f():\n    from fake.upper import Tower\n", 2),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fake import Tower\n", 3),
        ("import typing as t\nif t.TYPE_CHECKING:\n    import fake.upper\n", 3),
        ("async def f():\n    from ..upper import Tower\n", 2),
        ("from .. import upper\n", 1),
        ("import importlib\nf = lambda: importlib.import_module('fake.upper')\n", 2),
        ("from importlib import import_module\nimport_module('..upper', __package__)\n", 2),
        ("TABLE = {\n    'Tower': 'fake.upper',\n}\n", 2),
    ],
    ids=["function", "types", "types_of_alias", "relative", "relative_part", "lambda", "by_text", "table"],
)
def test_cycle_is_found(imports, make_package, text, line):
    (fault,) = imports.find_faults(make_package(**CLEAN, lower__in__back=text))
    assert fault.startswith("cycle: ")
    assert fault.splitlines()[0] in ("cycle: lower -> upper -> lower", "cycle: upper -> lower -> upper")
    assert f"src/fake/lower/back.py:{line}" in fault
    assert "src/fake/upper.py:2" in fault


@pytest.mark.parametrize("text", ["from fake import __version__\n", "import fake\n"])
def test_import_of_the_root_closes_a_cycle(imports, make_package, text):
    (fault,) = imports.find_faults(make_package(**CLEAN, lower__in__back=text))
    assert fault.startswith("cycle: lower -> fake -> upper -> lower")
    assert "src/fake/lower/back.py:1" in fault


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("from fake.lower._dust import Grain, Speck\n", "fake.lower._dust"),
        ("from fake.lower import _dust\n", "fake.lower._dust"),
        ("def f():\n    import fake.lower._dust\n", "fake.lower._dust"),
        ("from fake.lower.stones import _polish\n", "fake.lower.stones._polish"),
    ],
    ids=["module", "module_as_name", "module_in_function", "name"],
)
def test_private_import_is_found(imports, make_package, text, thing):
    (fault,) = imports.find_faults(make_package(**CLEAN, other=text))
    line = text.count("\n")
    assert fault == f"private: src/fake/other.py:{line} imports {thing} into other; it is private to lower"


@pytest.mark.parametrize("text", ["", "from fake import __version__\n"], ids=["clean", "cyclic"])
def test_picture_is_svg_that_names_every_part(imports, make_package, text):
    package = make_package(**CLEAN, lower__in__back=text)
    picture = imports.draw(package)
    shown = [node.text for node in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert set(package.purposes) == {"fake", "lower", "store", "upper"}
    assert set(package.purposes) < set(shown)
    assert "Builds <towers> & more" in shown
    assert ("Red: closes a cycle." in shown) == bool(text)
    assert imports.draw(package) == picture


def test_picture_leaves_out_what_a_chain_implies(imports, make_package):
    short = make_package(**CLEAN)
    picture = imports.draw(short)
    longer = make_package(**{**CLEAN, "store": CLEAN["store"] + "from fake.lower.stones import Stone\n"})
    assert ("store", "lower") in longer.edges
    assert imports.draw(longer).count("<path") == picture.count("<path")


def test_check_wants_the_picture_of_today(imports, make_package, tmp_path, capsys):
    make_package(**CLEAN)
    arguments = ["--package", str(tmp_path / "src" / "fake"), "--output", str(tmp_path / "imports.svg")]
    assert imports.main([*arguments, "--check"]) == 1
    assert "redraw it with: python scripts/draw_imports.py" in capsys.readouterr().err
    assert imports.main(arguments) == 0
    assert imports.main([*arguments, "--check"]) == 0
    (tmp_path / "src" / "fake" / "extra.py").touch()
    assert imports.main([*arguments, "--check"]) == 1


def test_list_prints_the_edges(imports, make_package, tmp_path, capsys):
    make_package(**CLEAN)
    assert imports.main(["--package", str(tmp_path / "src" / "fake"), "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "fake -> store  (1 place, deferred)"


@pytest.mark.parametrize("kind", ["cycle", "private"])
def test_polytrain_has_no_fault(imports, kind):
    faults = [fault for fault in imports.find_faults(imports.read_package(imports.PACKAGE)) if fault.startswith(kind)]
    assert not faults, "\n" + "\n".join(faults)


def test_polytrain_paper_has_no_fault(imports):
    faults = imports.find_faults(imports.read_package(imports.PAPER))
    assert not faults, "\n" + "\n".join(faults)


def test_polytrain_does_without_polytrain_paper(imports):
    faults = imports.find_guests(imports.PACKAGE, "polytrain_paper")
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize("text", ["import guest.data", "def f():\n    from guest import data"], ids=["top", "function"])
def test_guests_are_found(imports, make_package, tmp_path, text):
    make_package(**CLEAN, cli__in__main=text, other=text)
    (fault,) = imports.find_guests(tmp_path / "src" / "fake", "guest")
    assert fault.startswith(f"guest: other.py:{1 + text.count(chr(10))} imports guest")


def test_picture_of_polytrain_is_of_today(imports, capsys):
    code = imports.main(["--check"])
    assert code == 0, "\n" + capsys.readouterr().err


def _private_names(tree):
    """Private names that a module defines: functions, classes, attributes of self or cls, and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node):
            yield node.attr


def _is_own(attribute):
    return isinstance(attribute.value, ast.Name) and attribute.value.id in ("self", "cls")


def _foreign_accesses(root):
    """Accesses to a private attribute that only another part of the package defines."""
    files = sorted(root.rglob("*.py"))
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    part = {file: file.relative_to(root).parts[0] for file in files}
    defined = defaultdict(set)
    for file, tree in trees.items():
        for name in _private_names(tree):
            if name.startswith("_") and not name.startswith("__"):
                defined[name].add(part[file])
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and not _is_own(node)
                and part[file] not in defined.get(node.attr, [part[file]])
            ):
                yield f"{file.relative_to(root)}:{node.lineno} {ast.unparse(node)}"


def test_no_part_reaches_into_private_attributes_of_another(imports):
    assert list(_foreign_accesses(imports.PACKAGE)) == []


def test_foreign_accesses_are_found(tmp_path):
    for name, text in {
        "lower": "class Stone:\n    def __init__(self):\n        self._weight = self._own = 1\n",
        "upper": "def f(stone):\n    stone._other()\n    return stone._weight\nclass T:\n    def f(self): self._own\n",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    assert list(_foreign_accesses(tmp_path)) == ["upper/__init__.py:3 stone._weight"]
