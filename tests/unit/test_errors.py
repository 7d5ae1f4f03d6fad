"""Conditions and their SQLSTATEs: none that a user meets is an internal one, and all are Spark's."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gateway.errors import sqlstate_of
from gateway.sqlstates import SQLSTATES

ROOT = Path(__file__).resolve().parents[2]
RAISED = frozenset({"UserError", "UnsupportedError", "ResourceError", "ProtocolError", "RowError", "user_error"})
_TABLE = "error/error-conditions.json"
NAMELESS = "_LEGACY_ERROR_TEMP"  # Spark has no SQLSTATE for these


def modules() -> Iterator[Path]:
    return (path for path in (ROOT / "gateway").rglob("*.py") if "thrift_gen" not in path.parts)


@cache
def calls() -> list[tuple[ast.Call, str]]:
    """All calls of the code, and their places."""
    return [
        (node, f"{path.relative_to(ROOT)}:{node.lineno}")
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]


def raised() -> Iterator[tuple[str, str]]:
    """(condition, place) of all errors with a fixed condition."""
    for node, place in calls():
        raises = getattr(node.func, "id", getattr(node.func, "attr", "")) in RAISED
        if raises and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            yield node.args[0].value, place


def test_no_error_of_a_user_has_an_internal_sqlstate() -> None:
    found = list(raised())
    bad = [r for r in found if sqlstate_of(r[0]) == "XX000" and not r[0].startswith(NAMELESS)]
    assert bad == []
    assert len(found) > 300


def test_who_raises_names_the_condition_only() -> None:
    given = [
        place
        for node, place in calls()
        for k in node.keywords
        if k.arg == "sqlstate" and isinstance(k.value, ast.Constant)
    ]
    assert given == [], "SQLSTATEs stand in sqlstates.py"


def test_the_table_holds_what_is_raised() -> None:
    words: set[str] = set()
    for path in modules():
        text = path.read_text()
        if path.name == "sqlstates.py" and path.parent.name == "gateway":
            continue
        words.update(re.findall(r"\w+", text))
    assert [c for c in SQLSTATES if not words.issuperset(c.split("."))] == []


def test_sqlstates_are_sparks() -> None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        pytest.skip("pyspark is not installed")
    theirs: dict[str, str | None] = {}
    for jar in (Path(spec.origin).parent / "jars").glob("spark-common-utils*.jar"):
        with zipfile.ZipFile(jar) as archive:
            if _TABLE in archive.namelist():
                theirs = {name: row.get("sqlState") for name, row in json.loads(archive.read(_TABLE)).items()}
    if not theirs:
        pytest.skip("this pyspark has no jars")
    assert {c: s for c, s in SQLSTATES.items() if c in theirs and theirs[c] not in (s, None)} == {}
