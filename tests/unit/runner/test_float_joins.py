"""Floats that two sides of a join have: zeros of both signs are one, also where of one side is read what the other has."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.runner import Runner
from tests.unit.runner.session import Session

QUERIES: dict[str, list[Any]] = {
    "SELECT a.x, b.y FROM a JOIN b ON a.d = b.d": [(1, 1), (2, 2)],
    "SELECT a.x, b.y FROM a LEFT JOIN b ON a.d = b.d": [(1, 1), (2, 2), (3, None)],
    "SELECT a.x, b.y FROM b RIGHT JOIN a ON a.d = b.d": [(1, 1), (2, 2), (3, None)],
    "SELECT a.x, b.y FROM a, b WHERE a.d <=> b.d": [(1, 1), (2, 2)],
    "SELECT x, y FROM a JOIN b USING (d)": [(1, 1), (2, 2)],
    "SELECT a.x, b.y FROM a JOIN b ON a.d IN (b.d) AND b.s <> 'z'": [(1, 1), (2, 2)],
    "SELECT a.x, b.y FROM a JOIN b ON named_struct('d', a.d) = named_struct('d', b.d)": [(1, 1), (2, 2)],
    "SELECT a.x, b.y FROM a JOIN b ON a.x * 0D = b.y * -0D AND b.y = 1": [(1, 1), (2, 1), (3, 1)],
    "SELECT y FROM b WHERE d IN (SELECT d FROM a)": [(1,), (2,)],
    "SELECT y FROM b WHERE EXISTS (SELECT * FROM a WHERE a.d = b.d)": [(1,), (2,)],
    "SELECT x FROM a WHERE d NOT IN (SELECT d FROM b)": [(3,)],
    "SELECT x FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE a.d = b.d)": [(3,)],
    "SELECT CAST(d AS STRING) FROM a INTERSECT SELECT CAST(abs(d) AS STRING) FROM b": [("0.0",), ("NaN",)],
    "SELECT x FROM (SELECT d, x FROM a) JOIN (SELECT d FROM b GROUP BY d) USING (d)": [(1,), (2,)],
}


@pytest.fixture(scope="module")
def tables(runner: Runner) -> Session:
    session = Session(runner)
    for text in (
        "DROP SCHEMA IF EXISTS floats CASCADE",
        "CREATE SCHEMA floats",
        "USE floats",
        "CREATE TABLE a (d DOUBLE, x INT)",
        "INSERT INTO a VALUES (0D, 1), (double('NaN'), 2), (1D, 3)",
        "CREATE TABLE b (d DOUBLE, y INT, s STRING)",
        "INSERT INTO b VALUES (-0D, 1, 'p'), (double('NaN'), 2, 'q'), (2D, 3, 'r')",
        "INSERT INTO b SELECT 5D, 9 + CAST(id AS INT), 'z' FROM range(100000)",
    ):
        session.run(text)
    return session


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("end", ["", " LIMIT 1000"])
def test_zeros_of_both_signs_are_one(tables: Session, text: str, end: str) -> None:
    """With LIMIT the engine puts one side together, and tells scans of the other its keys."""
    assert sorted(tables.rows(f"SELECT * FROM ({text}){end}"), key=repr) == sorted(QUERIES[text], key=repr)
