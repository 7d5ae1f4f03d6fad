"""Tables with keys, which the gateway's catalog keeps: Spark reads and writes them as any others, and the keys stay."""

from __future__ import annotations

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark


def _keys(sql: Sql) -> list[tuple[object, ...]]:
    asked = "SELECT constraint_name, table_name FROM information_schema.table_constraints"
    return sql.auto(f"{asked} WHERE table_name IN ('parent', 'child') ORDER BY ALL")


def test_spark_minds_no_keys(sql: Sql) -> None:
    for name in ("child", "parent"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded("CREATE TABLE parent (a INT, b STRING, CONSTRAINT parent_key PRIMARY KEY (a) RELY)")
    sql.embedded("CREATE TABLE child (c INT, a INT, CONSTRAINT child_key FOREIGN KEY (a) REFERENCES parent)")
    sql.embedded("INSERT INTO parent VALUES (1, 'x'), (1, 'y')")
    sql.spark("INSERT INTO parent VALUES (2, 'z')")
    sql.spark("INSERT INTO child SELECT 7, a FROM parent")
    assert sql.spark("SELECT a, b FROM parent ORDER BY ALL") == [(1, "x"), (1, "y"), (2, "z")]
    assert _keys(sql) == [("child_key", "child"), ("parent_key", "parent")]
    sql.embedded("ALTER TABLE parent DROP PRIMARY KEY CASCADE")
    assert _keys(sql) == []
    assert sql.spark("SELECT count(*) FROM child") == [(3,)]
