"""Conditions and their SQLSTATEs: none that a user meets is an internal one, and all are Spark's."""

from __future__ import annotations

import ast
import importlib.util
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.errors import SQLSTATES, sqlstate_of

ROOT = Path(__file__).resolve().parents[2]
RAISED = frozenset({"UserError", "UnsupportedError", "ResourceError", "ProtocolError", "RowError", "user_error"})
_TABLE = "error/error-conditions.json"
NAMELESS = "_LEGACY_ERROR_TEMP"  # Spark has no SQLSTATE for these


def raised() -> Iterator[tuple[str, str | None, str]]:
    """(condition, SQLSTATE that is given with it, place) of all errors with a fixed condition."""
    for path in (ROOT / "gateway").rglob("*.py"):
        if "thrift_gen" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            condition = node.args[0].value
            if getattr(node.func, "id", getattr(node.func, "attr", "")) in RAISED and isinstance(condition, str):
                given = [
                    k.value.value for k in node.keywords if k.arg == "sqlstate" and isinstance(k.value, ast.Constant)
                ]
                yield condition, str(given[0]) if given else None, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_no_error_of_a_user_has_an_internal_sqlstate() -> None:
    found = list(raised())
    bad = [r for r in found if r[1] is None and sqlstate_of(r[0]) == "XX000" and not r[0].startswith(NAMELESS)]
    assert bad == []
    assert len(found) > 300


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
    ours = {**SQLSTATES, **{condition.partition(".")[0]: state for condition, state, _ in raised() if state}}
    assert {c: s for c, s in ours.items() if c in theirs and theirs[c] not in (s, None)} == {}
