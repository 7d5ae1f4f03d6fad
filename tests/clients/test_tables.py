"""A day's work on tables by a real driver, without Spark: made, filled, changed, looked at, altered, mended and dropped."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.gateway import Connect

_ONE, _TWO, _THREE = (dt.date(2024, 1, day) for day in (1, 2, 3))
_MADE = (
    "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, k INT NOT NULL COMMENT 'key', v STRING DEFAULT 'none', "
    "y INT GENERATED ALWAYS AS (k % 2), d DATE, s STRUCT<a: INT NOT NULL, b: STRING>, CONSTRAINT few CHECK (k < 1000), "
    "PRIMARY KEY (k)) PARTITIONED BY (d) COMMENT 'of a day' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
    "'delta.columnMapping.mode' = 'name', 'delta.feature.allowColumnDefaults' = 'supported')"
)
_MERGED = (
    "MERGE INTO t USING (SELECT * FROM VALUES (1, 'one'), (9, 'nine') AS q(k, v)) q ON t.k = q.k "
    "WHEN MATCHED AND t.id > 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = q.v "
    "WHEN NOT MATCHED THEN INSERT (k, v, d, s) VALUES (q.k, q.v, DATE'2024-01-03', named_struct('a', 9, 'b', NULL)) "
    "WHEN NOT MATCHED BY SOURCE AND t.k = 2 THEN UPDATE SET v = 'left'"
)
_EVOLVED = (
    "MERGE WITH SCHEMA EVOLUTION INTO p USING (SELECT 1 AS k, 5L AS w, 'n' AS fresh) q ON p.k = q.k "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
_FEED = "SELECT _change_type, k, v FROM table_changes('t', 4) ORDER BY _commit_version, k, _change_type"
_COLUMNS = [
    ("id", "bigint", None),
    ("k", "int", "key"),
    ("v", "string", None),
    ("y", "int", None),
    ("d", "date", None),
    ("s", "struct<a:int,b:string>", None),
    ("# Partition Information", "", ""),
    ("# col_name", "data_type", "comment"),
    ("d", "date", None),
]
# Statement, and what is due: rows, the condition that it is refused with, or None for whatever it tells.
Due = list[tuple[Any, ...]] | str | None
DAY: list[tuple[str, Due]] = [
    (_MADE, []),
    ("INSERT INTO t (k, d, s) VALUES (1, DATE'2024-01-01', named_struct('a', 1, 'b', 'x')), "
     "(2, DATE'2024-01-02', named_struct('a', 2, 'b', NULL))", [(2, 2)]),
    ("INSERT INTO t (k, v, d, s) SELECT 3, 'three', DATE'2024-01-01', named_struct('a', 3, 'b', 'z')", [(1, 1)]),
    ("INSERT INTO t BY NAME SELECT named_struct('a', 4, 'b', 'w') AS s, DATE'2024-01-02' AS d, 4 AS k", [(1, 1)]),
    ("SELECT id, k, v, y, d, s.a FROM t ORDER BY k",
     [(1, 1, "none", 1, _ONE, 1), (2, 2, "none", 0, _TWO, 2), (3, 3, "three", 1, _ONE, 3), (4, 4, "none", 0, _TWO, 4)]),
    ("UPDATE t SET v = upper(v), s.b = 'u' WHERE y = 1", [(2,)]),
    ("DELETE FROM t WHERE k = (SELECT max(k) FROM t)", [(1,)]),
    (_MERGED, [(3, 2, 0, 1)]),
    ("SELECT id, k, v, y, d, s.a, s.b FROM t ORDER BY k",
     [(1, 1, "one", 1, _ONE, 1, "u"), (2, 2, "left", 0, _TWO, 2, None), (3, 3, "THREE", 1, _ONE, 3, "u"),
      (5, 9, "nine", 1, _THREE, 9, None)]),
    # what is no row of it
    ("INSERT INTO t (k, d, s) VALUES (1000, NULL, named_struct('a', 1, 'b', ''))", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
    ("INSERT INTO t (k, d, s) VALUES (5, NULL, NULL)", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
    ("INSERT INTO t (id, k, d) VALUES (5, 5, NULL)", "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"),
    ("INSERT INTO t (k, y) VALUES (5, 5)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
    ("INSERT INTO t (k, d) VALUES ('x', NULL)", "CAST_INVALID_INPUT"),
    ("INSERT INTO t (k, d) VALUES (3000000000, NULL)", "CAST_OVERFLOW_IN_TABLE_INSERT"),
    ("INSERT INTO t (k, nope) VALUES (1, 1)", "UNRESOLVED_COLUMN"),
    ("MERGE INTO t USING (SELECT explode(array(1, 1)) AS k) q ON t.k = q.k WHEN MATCHED THEN UPDATE SET v = 'twice'",
     "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"),
    # what is told of it
    (_FEED, [("update_postimage", 1, "NONE"), ("update_preimage", 1, "none"), ("update_postimage", 3, "THREE"),
             ("update_preimage", 3, "three"), ("delete", 4, "none"), ("update_postimage", 1, "one"),
             ("update_preimage", 1, "NONE"), ("update_postimage", 2, "left"), ("update_preimage", 2, "none"),
             ("insert", 9, "nine")]),
    ("SHOW PARTITIONS t", [(_ONE,), (_TWO,), (_THREE,)]),
    ("DESCRIBE t", _COLUMNS),
    ("SHOW TBLPROPERTIES t ('delta.enableChangeDataFeed')", [("delta.enableChangeDataFeed", "true")]),
    ("DESCRIBE DETAIL t", None),
    ("DESCRIBE HISTORY t", None),
    ("INSERT INTO t REPLACE WHERE d = DATE'2024-01-03' (k, v, d, s) "
     "SELECT 8, 'eight', DATE'2024-01-03', named_struct('a', 8, 'b', '')", [(1, 1)]),
    ("INSERT INTO t REPLACE WHERE d = DATE'2024-01-03' (k, d, s) SELECT 8, NULL, named_struct('a', 8, 'b', '')",
     "DELTA_REPLACE_WHERE_MISMATCH"),
    ("OPTIMIZE t WHERE d = DATE'2024-01-01'", None),
    ("OPTIMIZE t WHERE k = 1", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
    ("OPTIMIZE t ZORDER BY (k)", None),
    ("VACUUM t DRY RUN", None),
    ("VACUUM t RETAIN 0 HOURS", "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
    # altered
    ("ALTER TABLE t ADD COLUMNS (n DECIMAL(5, 2) COMMENT 'more' AFTER k, s.c ARRAY<INT>)", []),
    ("ALTER TABLE t ADD COLUMNS (n INT NOT NULL)", "DELTA_OPERATION_NOT_ALLOWED"),
    ("ALTER TABLE t RENAME COLUMN n TO m", []),
    ("ALTER TABLE t ALTER COLUMN m COMMENT 'renamed'", []),
    ("ALTER TABLE t DROP COLUMN m", []),
    ("ALTER TABLE t ALTER COLUMN k AFTER v", []),
    ("ALTER TABLE t ALTER COLUMN v SET DEFAULT 'new'", []),
    ("ALTER TABLE t ALTER COLUMN s.a DROP NOT NULL", []),
    ("ALTER TABLE t DROP CONSTRAINT few", []),
    ("ALTER TABLE t ADD CONSTRAINT more CHECK (k < 5)", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"),
    ("ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'own' = '1')", []),
    ("ALTER TABLE t UNSET TBLPROPERTIES ('own')", []),
    ("ALTER TABLE t ALTER COLUMN s.a TYPE BIGINT", []),
    ("ALTER TABLE t ALTER COLUMN k TYPE STRING", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
    ("ALTER TABLE t SET OWNER TO somebody", "UNSUPPORTED_FEATURE"),
    ("COMMENT ON TABLE t IS 'changed'", []),
    ("INSERT INTO t (k, d, s) VALUES (1001, NULL, NULL)", [(1, 1)]),
    ("SELECT k, v, s FROM t WHERE k > 8", [(1001, "new", None)]),
    # earlier versions, copies
    ("SELECT count(*) FROM t VERSION AS OF 3", [(4,)]),
    ("RESTORE TABLE t TO VERSION AS OF 1", None),
    ("RESTORE TABLE t TO VERSION AS OF 99", "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
    ("SELECT k, v FROM t ORDER BY k", [(1, "none"), (2, "none")]),
    ("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS k, v", []),
    ("ALTER TABLE t RENAME TO u", []),
    ("CREATE TABLE c SHALLOW CLONE u", None),
    ("INSERT OVERWRITE c (k, d) VALUES (1, NULL)", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
    ("INSERT OVERWRITE c (k, s) VALUES (7, named_struct('a', 1, 'b', ''))", [(1, 1)]),
    ("SELECT k, d FROM c", [(7, None)]),
    ("SELECT count(*) FROM u", [(2,)]),
    # partitions
    ("CREATE TABLE p (k INT, p INT) PARTITIONED BY (p)", []),
    ("CREATE TABLE p (k INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ("INSERT INTO p VALUES (1, 1), (2, 2)", [(2, 2)]),
    ("SET spark.sql.sources.partitionOverwriteMode = dynamic", None),
    ("INSERT OVERWRITE p VALUES (9, 2)", [(1, 1)]),
    ("INSERT OVERWRITE p PARTITION (p = 1) SELECT 7", [(1, 1)]),
    ("SELECT * FROM p ORDER BY p", [(7, 1), (9, 2)]),
    ("INSERT INTO p REPLACE USING (p) SELECT 5 AS k, 1 AS p", [(1, 1)]),
    ("WITH q AS (SELECT 2 AS p) DELETE FROM p WHERE p IN (SELECT p FROM q)", [(1,)]),
    ("SELECT *, _metadata.file_name IS NOT NULL FROM p", [(5, 1, True)]),
    ("TRUNCATE TABLE p", []),
    ("SELECT count(*) FROM p", [(0,)]),
    # made anew, of a query
    ("CREATE OR REPLACE TABLE p CLUSTER BY (k) AS SELECT CAST(id AS INT) AS k, id * 2 AS w FROM range(100)", []),
    ("OPTIMIZE p", None),
    (_EVOLVED, [(1, 1, 0, 0)]),
    ("SELECT * FROM p WHERE k < 3 ORDER BY k", [(0, 0, None), (1, 5, "n"), (2, 4, None)]),
    ("ALTER TABLE p SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", []),
    ("SELECT count(DISTINCT _metadata.row_id) FROM p", [(100,)]),
    ("CREATE TABLE l LIKE p", []),
    ("DESCRIBE l", [("k", "int", None), ("w", "bigint", None), ("fresh", "string", None)]),
    ("ALTER TABLE p SET TBLPROPERTIES ('delta.appendOnly' = 'true')", []),
    ("DELETE FROM p", "DELTA_CANNOT_MODIFY_APPEND_ONLY"),
    ("COPY INTO l FROM '/nowhere' FILEFORMAT = PARQUET", "PATH_NOT_ALLOWED"),
    ("SHOW CREATE TABLE u", None),
    ("DROP TABLE u", []),
    ("SELECT * FROM u", "TABLE_OR_VIEW_NOT_FOUND"),
]  # fmt: skip


@pytest.fixture
def day(connect: Connect) -> Iterator[Any]:
    """A cursor in a schema of its own."""
    schema = f"day_{uuid.uuid4().hex[:8]}"
    with connect().cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA main.{schema}")
        cursor.execute(f"USE main.{schema}")
        yield cursor
        cursor.execute(f"DROP SCHEMA main.{schema} CASCADE")


def test_a_day_of_work(day: Any) -> None:
    for statement, due in DAY:
        if isinstance(due, str):
            with pytest.raises(Exception, match=rf"\[{due}\b"):
                day.execute(statement)
                pytest.fail(f"answered: {statement}")
            continue
        day.execute(statement)
        found = [tuple(row) for row in day.fetchall()]
        assert due is None or found == due, statement
