"""Writes by Spark: the embedded reader answers the same afterwards, conflicts are clear errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.live.gateway import Server, connect_to
from tests.live.spark import Background, Sql, start_with_spark

pytestmark = pytest.mark.spark

NAME = "main.default.written"
# How a table is made and filled, what is done to it, and its rows then (by id).
CASES: dict[str, tuple[Sequence[str], Sequence[str], list[tuple[object, ...]]]] = {
    "deletion_vectors": (
        (
            f"CREATE TABLE {NAME} (id INT, b STRING) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
            f"INSERT INTO {NAME} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'x' FROM range(6)",
        ),
        (f"DELETE FROM {NAME} WHERE id % 2 = 1", f"UPDATE {NAME} SET b = 'y' WHERE id = 2"),
        [(0, "x"), (2, "y"), (4, "x")],
    ),
    "merge": (
        (f"CREATE TABLE {NAME} AS SELECT CAST(id AS INT) AS id, 'old' AS b FROM range(3)",),
        (
            f"MERGE INTO {NAME} t USING (SELECT explode(array(1, 5)) AS id) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET b = 'new' WHEN NOT MATCHED THEN INSERT (id, b) VALUES (s.id, 'ins') "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE",
        ),
        [(0, "old"), (1, "new"), (5, "ins")],
    ),
    "clustered": (
        (f"CREATE TABLE {NAME} (id INT, b STRING) CLUSTER BY (id)", f"INSERT INTO {NAME} VALUES (1, 'a'), (2, 'b')"),
        (f"OPTIMIZE {NAME}", f"INSERT INTO {NAME} VALUES (3, 'c')"),
        [(1, "a"), (2, "b"), (3, "c")],
    ),
    "identity": (
        (
            f"CREATE TABLE {NAME} (id BIGINT GENERATED ALWAYS AS IDENTITY, b STRING)",
            f"INSERT INTO {NAME} (b) SELECT /*+ COALESCE(1) */ x FROM VALUES ('a'), ('b') AS v(x)",
        ),
        (f"DELETE FROM {NAME} WHERE b = 'a'",),
        [(2, "b")],
    ),
    "generated": (
        (f"CREATE TABLE {NAME} (id INT, b STRING GENERATED ALWAYS AS (CAST(id AS STRING)))",),
        (f"INSERT INTO {NAME} (id) VALUES (7)",),
        [(7, "7")],
    ),
    "defaults": (
        (
            f"CREATE TABLE {NAME} (id INT, b STRING DEFAULT 'd') "
            "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        ),
        (f"INSERT INTO {NAME} (id) VALUES (7)",),
        [(7, "d")],
    ),
    "column_mapping": (
        (
            f"CREATE TABLE {NAME} (id INT, b STRING, gone INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
            f"INSERT INTO {NAME} VALUES (1, 'a', 9)",
        ),
        (
            f"ALTER TABLE {NAME} DROP COLUMN gone",
            f"ALTER TABLE {NAME} RENAME COLUMN b TO `b c`",
            f"INSERT INTO {NAME} VALUES (2, 'b')",
        ),
        [(1, "a"), (2, "b")],
    ),
    "check_constraint": (
        (f"CREATE TABLE {NAME} (id INT, b STRING)", f"ALTER TABLE {NAME} ADD CONSTRAINT small CHECK (id < 10)"),
        (f"INSERT INTO {NAME} VALUES (1, 'a')",),
        [(1, "a")],
    ),
    "partitioned": (
        (f"CREATE TABLE {NAME} (id INT, b STRING) PARTITIONED BY (b)", f"INSERT INTO {NAME} VALUES (1, 'a'), (2, 'b')"),
        (f"INSERT OVERWRITE {NAME} PARTITION (b = 'a') SELECT 5", f"UPDATE {NAME} SET id = 6 WHERE b = 'b'"),
        [(5, "a"), (6, "b")],
    ),
    "schema_change": (
        (f"CREATE TABLE {NAME} AS SELECT 1 AS id",),
        (f"ALTER TABLE {NAME} ADD COLUMN b STRING", f"INSERT INTO {NAME} VALUES (2, 'b')"),
        [(1, None), (2, "b")],
    ),
    "row_tracking_and_commit_times": (
        (
            f"CREATE TABLE {NAME} (id INT, b STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
            "'delta.enableInCommitTimestamps' = 'true')",
        ),
        (f"INSERT INTO {NAME} VALUES (1, 'a'), (2, 'b')", f"DELETE FROM {NAME} WHERE id = 1"),
        [(2, "b")],
    ),
    "wider_type": (
        (f"CREATE TABLE {NAME} (id INT, b STRING) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",),
        (
            f"INSERT INTO {NAME} VALUES (1, 'a')",
            f"ALTER TABLE {NAME} ALTER COLUMN id TYPE BIGINT",
            f"INSERT INTO {NAME} VALUES (5000000000, 'b')",
            f"OPTIMIZE {NAME} ZORDER BY (id)",
            f"REORG TABLE {NAME} APPLY (PURGE)",
        ),
        [(1, "a"), (5_000_000_000, "b")],
    ),
    "restore_and_vacuum": (
        (f"CREATE TABLE {NAME} AS SELECT 1 AS id, 'a' AS b",),
        (f"DELETE FROM {NAME}", f"RESTORE TABLE {NAME} TO VERSION AS OF 0", f"VACUUM {NAME}"),
        [(1, "a")],
    ),
    "script": (
        (f"CREATE TABLE {NAME} (id INT, b STRING)",),
        (f"BEGIN DECLARE n INT = 3; INSERT INTO {NAME} VALUES (n, 's'); UPDATE {NAME} SET id = n + 1; END",),
        [(4, "s")],
    ),
    "if_not_exists": (
        (f"CREATE TABLE IF NOT EXISTS {NAME} (id INT, b STRING)",),
        (f"CREATE TABLE IF NOT EXISTS {NAME} (other INT)", f"INSERT INTO {NAME} VALUES (1, 'a')"),
        [(1, "a")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_spark_writes_the_embedded_engine_reads(sql: Sql, case: str) -> None:
    made, done, expected = CASES[case]
    sql.auto(f"DROP TABLE IF EXISTS {NAME}")
    for text in made:
        sql.spark(text)
    for text in done:  # goes where it has to by itself
        sql.auto(text)
    assert sql.spark(f"SELECT * FROM {NAME} ORDER BY 1") == expected
    assert sql.embedded(f"SELECT * FROM {NAME} ORDER BY 1") == expected
    assert sql.auto(f"SELECT count(*) FROM {NAME}") == [(len(expected),)]


def test_counts_of_changed_rows(sql: Sql) -> None:
    sql.spark("CREATE OR REPLACE TABLE counted AS SELECT CAST(id AS INT) AS id FROM range(10)")
    assert sql.spark("DELETE FROM counted WHERE id < 3") == [(3,)]
    assert sql.spark("UPDATE counted SET id = id + 100 WHERE id > 7") == [(2,)]
    assert sql.spark("INSERT INTO counted SELECT 1") == [(1, 1)]
    merged = sql.spark(
        "MERGE INTO counted t USING (SELECT 1 AS id UNION ALL SELECT 2) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert merged == [(2, 0, 1, 1)]
    assert sql.embedded("SELECT count(*) FROM counted") == [(8,)]


@pytest.mark.parametrize(
    ("text", "condition", "sqlstate"),
    [
        ("INSERT INTO faults VALUES (50)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001"),
        ("INSERT INTO faults VALUES (NULL)", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502"),
        ("INSERT INTO faults VALUES ('x')", "CAST_INVALID_INPUT", "22018"),
        ("INSERT INTO faults VALUES (1, 2)", "DELTA_METADATA_MISMATCH", "42KDG"),
        ("UPDATE faults SET nope = 1", "UNRESOLVED_COLUMN", "42703"),
        ("RESTORE TABLE faults TO VERSION AS OF 99", "", "22003"),
        ("CREATE TABLE faults (a INT)", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
        ("ALTER TABLE faults ADD COLUMN id INT", "", "42"),
    ],
)
def test_faults_of_writes_have_conditions(sql: Sql, text: str, condition: str, sqlstate: str) -> None:
    sql.auto("DROP TABLE IF EXISTS faults")
    sql.spark("CREATE TABLE faults (id INT NOT NULL)")
    sql.spark("ALTER TABLE faults ADD CONSTRAINT small CHECK (id < 10 OR id IS NULL)")
    sql.spark("INSERT INTO faults VALUES (1)")
    with pytest.raises(Exception, match=f"SQLSTATE: {sqlstate}") as raised:
        sql.spark(text)
    told = str(raised.value)
    assert f"[{condition}" in told and "\tat " not in told and "spark_catalog" not in told, told
    assert sql.embedded("SELECT * FROM faults") == [(1,)]


def test_concurrent_changes_conflict_clearly(sql: Sql, spark_server: Server) -> None:
    sql.spark("CREATE OR REPLACE TABLE contended AS SELECT id, 0 AS n FROM range(10)")
    writers = [Background(spark_server, "UPDATE contended SET n = n + 1") for _ in range(4)]
    for writer in writers:
        writer.close()
    failed = [str(w.error) for w in writers if w.error is not None]
    done = len(writers) - len(failed)
    assert done >= 1
    assert sql.embedded("SELECT min(n), max(n), count(*) FROM contended") == [(done, done, 10)]
    for text in failed:
        assert "[DELTA_CONCURRENT" in text and "SQLSTATE: 2D521" in text and "\tat " not in text, text
    assert failed, "four updates at once have never met"


@pytest.mark.heavy
def test_writes_of_more_than_one_machine_should_read(spark_here: None, tmp_path: Path) -> None:
    server = start_with_spark(tmp_path, "--spark-above", "4000")
    try:
        with connect_to(server) as connection:
            sql = Sql(connection)
            rows = "SELECT l_orderkey, l_quantity FROM samples.tpch.lineitem"
            (counted,) = sql.auto("SELECT count(*) FROM samples.tpch.lineitem")[0]
            sql.auto(f"CREATE TABLE above AS {rows}")
            assert sql.auto(f"INSERT INTO above {rows}") == [(counted, counted)]
            assert sql.embedded("SELECT count(*) FROM above") == [(2 * counted,)]
        log = server.log.read_text()
        for kind in ("CREATE_TABLE", "INSERT"):
            assert re.search(
                f'statement_type={kind} engine=spark reason="it reads [0-9]+ bytes, more than spark-above', log
            )
    finally:
        assert server.stop() == 0


def test_fields_that_are_not_null_are_kept_by_both(sql: Sql) -> None:
    """Either engine makes the table, both write it, and neither takes a row without the field."""
    for name, (maker, other) in {"ours": (sql.embedded, sql.spark), "theirs": (sql.spark, sql.embedded)}.items():
        maker(f"CREATE TABLE {name} (id INT, s STRUCT<a: INT NOT NULL, b: STRING>)")
        for at, engine in enumerate((other, maker)):
            engine(f"INSERT INTO {name} VALUES ({at}, named_struct('a', {at}, 'b', NULL))")
            engine(f"UPDATE {name} SET s.b = 'x' WHERE id = {at}")
            for row in ("2, NULL", "2, named_struct('a', NULL, 'b', 'x')"):
                with pytest.raises(Exception, match=r"\[DELTA_NOT_NULL_CONSTRAINT_VIOLATED.*column: s\.a\."):
                    engine(f"INSERT INTO {name} VALUES ({row})")
        for engine in (maker, other):
            assert engine(f"SELECT id, s.a, s.b FROM {name} ORDER BY id") == [(0, 0, "x"), (1, 1, "x")]
        assert "s STRUCT<a: INT NOT NULL, b: STRING>" in other(f"SHOW CREATE TABLE {name}")[0][0]
