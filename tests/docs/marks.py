"""Which tests `make test` and `make test-live` run, by the marks in their files."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

# Marks of tests that both leave out.
LEFT_OUT = ("heavy", "spark", "skip")


@cache
def functions(path: Path) -> dict[str, bool]:
    """The test functions of a file by name; whether these two run them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    whole = [node.value for node in tree.body if isinstance(node, ast.Assign) and names(node) == ["pytestmark"]]
    return {
        node.name: not any(is_left_out(mark) for mark in (*whole, *node.decorator_list))
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def names(node: ast.Assign) -> list[str]:
    """What an assignment sets."""
    return [ast.unparse(target) for target in node.targets]


def is_left_out(mark: ast.expr) -> bool:
    """Whether a mark, a list of them or a decorator is one of `LEFT_OUT`."""
    found = [ast.unparse(node) for node in ast.walk(mark) if isinstance(node, ast.Attribute)]
    return any(f"pytest.mark.{name}" in found for name in LEFT_OUT)
