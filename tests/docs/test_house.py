"""The house keeps its rules as it grows: files stay small, each says what it is, and the tests have the rooms of the code."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gateway.engine import functions

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gateway"
TESTS = ROOT / "tests"
MOST_LINES = 600
_FIRST_LINE = re.compile(r'(#.*\n|\s)*r?"""\s*\S')


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(_text(path))


@cache
def _modules(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "thrift_gen" not in p.parts)


def _names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_no_file_outgrows_its_walls() -> None:
    files = [*_modules(PACKAGE), *_modules(TESTS), *(PACKAGE / "console" / "page").iterdir()]
    large = [path for path in files if len(_text(path).splitlines()) >= MOST_LINES]
    assert not large, f"{MOST_LINES} lines and more: {_names(large)}"


def test_no_module_is_a_drawer_for_what_has_no_name() -> None:
    drawers = {"common", "helper", "helpers", "misc", "util", "utils"}
    assert [str(path) for path in [*_modules(PACKAGE), *_modules(TESTS)] if path.stem in drawers] == []


def test_no_line_is_drawn_between_parts_of_a_file() -> None:
    drawn = re.compile(r"^\s*# ?-{5,}", re.MULTILINE)
    files = [*_modules(PACKAGE), *_modules(TESTS)]
    assert _names([path for path in files if drawn.search(_text(path))]) == []


@pytest.mark.parametrize("folder", [PACKAGE, TESTS], ids=lambda p: p.name)
def test_the_first_line_says_what_a_file_is(folder: Path) -> None:
    silent = [path for path in _modules(folder) if _text(path).strip() and not _FIRST_LINE.match(_text(path))]
    assert not silent, f"no first line: {_names(silent)}"


def test_unit_tests_have_the_rooms_of_the_code() -> None:
    rooms = {path.parent.relative_to(TESTS / "unit") for path in (TESTS / "unit").rglob("test_*.py")}
    strange = sorted(str(room) for room in rooms if not (PACKAGE / room).is_dir())
    assert not strange, f"tests/unit has {strange}, gateway has not"


def test_fixtures_are_where_pytest_looks_for_them() -> None:
    """A fixture of a module that is neither a test nor a conftest would have to be imported by name."""
    elsewhere = [
        path
        for path in _modules(TESTS)
        if "@pytest.fixture" in _text(path) and path.name != "conftest.py" and not path.name.startswith("test_")
    ]
    assert not elsewhere, f"fixtures outside of tests and conftest.py: {_names(elsewhere)}"


def _contracts(kind: str) -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = [c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == kind]
    assert found
    return found


def test_no_rule_of_imports_can_leave_out_a_new_module() -> None:
    """Layers are exhaustive; what is forbidden is so for all of the gateway but what is named, or for one package."""
    assert [c["name"] for c in _contracts("layers") if not c.get("exhaustive")] == []
    assert [c["name"] for c in _contracts("forbidden") if len(c["source_modules"]) != 1] == []


def _words(node: ast.AST) -> set[str]:
    """The names that a piece of code uses, in texts too: entry points are named so."""
    found: set[str] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            found.add(one.id)
        elif isinstance(one, ast.Attribute):
            found.add(one.attr)
        elif isinstance(one, ast.alias):
            found.add(one.name)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            found.update(one.value.replace(":", " ").replace(".", " ").replace("(", " ").split())
    return found


def test_every_function_and_class_is_used_outside_of_the_tests() -> None:
    used: set[str] = set()
    defined: list[tuple[str, str]] = []
    for path in _modules(PACKAGE):
        for node in _tree(path).body:
            own = {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
            documented = [node] if not own else [*ast.iter_child_nodes(node)]
            for part in documented:
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)):
                    used |= _words(part) - own
            if own and not getattr(node, "decorator_list", []):
                defined += [(name, f"{path.relative_to(ROOT)}: {name}") for name in own]
    assert [place for name, place in defined if name not in used] == []


def _names_in(node: ast.AST) -> Iterator[str]:
    """Patterns of the names that a tree may make: any word may stand behind or before a part that is given."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield re.escape(one.value)
        elif isinstance(one, ast.JoinedStr):
            parts = [re.escape(str(p.value)) if isinstance(p, ast.Constant) else r"\w+" for p in one.values]
            if any(part.strip("_").isalpha() for part in parts):
                yield "".join(parts)


def test_every_kernel_is_asked_for_by_the_catalogue() -> None:
    """They are registered by name, so that nobody would miss one that no function is lowered to any more."""
    functions.load()
    trees = (_tree(path) for path in _modules(PACKAGE / "sql"))
    asked = re.compile("|".join({name for tree in trees for name in _names_in(tree)}))
    assert not asked.fullmatch("nobodys_kernel")
    assert [name for name in functions.IMPLEMENTATIONS if not asked.fullmatch(name)] == []
