"""Columns of NULLs without a type: they are in a table's schema, and in none of its files."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import folder_of


def test_a_column_of_nulls_lives_like_any_other(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS a, NULL AS b, 'x' AS c")
    assert session.rows("DESCRIBE t")[1] == ("b", "void", None)
    session.run("INSERT INTO t VALUES (2, NULL, 'y'), (3, NULL, 'z')")
    session.run("UPDATE t SET a = 9, b = NULL WHERE a = 2")
    session.run("DELETE FROM t WHERE a = 3")
    source = "SELECT 1 AS a, NULL AS b, 'm' AS c UNION ALL SELECT 7, NULL, 'n'"
    clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    session.run(f"MERGE INTO t USING ({source}) s ON t.a = s.a {clauses}")
    session.run("ALTER TABLE t ADD COLUMNS (q VOID)")
    session.run("OPTIMIZE t ZORDER BY (a)")
    wanted = [(1, None, "m", None), (7, None, "n", None), (9, None, "y", None)]
    assert session.rows("SELECT * FROM t WHERE b IS NULL ORDER BY a") == wanted
    assert session.rows("SELECT count(b), count(q), count(*) FROM t") == [(0, 0, 3)]
    files = list(folder_of(session).glob("*.parquet"))
    assert {tuple(pq.read_schema(file).names) for file in files} == {("a", "c")}


def test_a_column_of_nulls_goes_with_its_name(session: Session) -> None:
    kept = "'delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true'"
    session.run(f"CREATE TABLE t PARTITIONED BY (p) TBLPROPERTIES ({kept}) AS SELECT 1 AS a, NULL AS b, 'p' AS p")
    session.run("UPDATE t SET a = 5 WHERE a = 1")
    changes = "SELECT a, b, _change_type FROM table_changes('t', 1) ORDER BY _change_type"
    assert session.rows(changes) == [(5, None, "update_postimage"), (1, None, "update_preimage")]
    session.run("ALTER TABLE t DROP COLUMN b")
    assert session.rows("SELECT * FROM t") == [(5, "p")]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("CREATE TABLE u (a INT, b VOID) PARTITIONED BY (b)", "INVALID_PARTITION_COLUMN_DATA_TYPE"),
        ("CREATE TABLE u (a INT, b VOID) CLUSTER BY (b)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("CREATE TABLE u AS SELECT NULL AS b", "UNSUPPORTED_DATATYPE"),
        ("CREATE TABLE u (a INT, b VOID NOT NULL)", "UNSUPPORTED_DATATYPE"),
        ("CREATE TABLE u AS SELECT 1 AS a, array() AS b", "UNSUPPORTED_DATATYPE"),
        ("CREATE TABLE u AS SELECT 1 AS a, named_struct('x', NULL) AS b", "UNSUPPORTED_DATATYPE"),
        ("INSERT INTO t VALUES (2, 'x')", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
        ("ALTER TABLE t ALTER COLUMN b TYPE INT", "UNSUPPORTED_FEATURE"),
    ],
)
def test_what_no_column_of_nulls_does(session: Session, text: str, condition: str) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS a, NULL AS b")
    assert refused(session, text).condition == condition
