"""The change data feed of tables that both engines change: the same changes are told, whoever wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.delta import log
from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_ROWS = "VALUES (1, 'a', 1.5, 'x'), (2, NULL, double('NaN'), 'x'), (3, 'c', -0.0, NULL), (4, 'd', NULL, 'y z')"
_SOURCE = "(SELECT * FROM VALUES (1, 'A', 'q'), (4, NULL, 'x'), (9, 'I', NULL) AS v(id, s, p))"
_STATEMENTS = (
    "UPDATE {t} SET s = concat(s, '!'), p = 'q' WHERE id < 3",
    "DELETE FROM {t} WHERE id = 2",
    "INSERT INTO {t} VALUES (5, 'e', 2, 'x'), (6, 'f', 3, NULL)",
    "MERGE INTO {t} AS t USING {q} AS q ON t.id = q.id WHEN MATCHED AND q.s IS NULL THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET s = q.s, p = q.p WHEN NOT MATCHED THEN INSERT (id, s, p) VALUES (q.id, q.s, q.p) "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN UPDATE SET d = 7 WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN DELETE",
    "INSERT INTO {t} REPLACE WHERE id = 6 SELECT 6, 'r', 7.5, 'x'",
    "DELETE FROM {t} WHERE p IS NULL",
    "RESTORE TABLE {t} TO VERSION AS OF 3",
    "INSERT OVERWRITE {t} SELECT id + 10, s, d, p FROM {t} WHERE id < 4",
    "UPDATE {t} SET s = 'all'",
    "DELETE FROM {t}",
)
_CHANGES = "SELECT * EXCEPT (_commit_timestamp) FROM table_changes('{t}', 0) ORDER BY ALL"


def _made(sql: Sql, name: str, vectors: str, mapping: str) -> None:
    sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded(
        f"CREATE TABLE {name} (id INT, s STRING, d DOUBLE, p STRING) PARTITIONED BY (p) TBLPROPERTIES "
        f"('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = '{vectors}', "
        f"'delta.columnMapping.mode' = '{mapping}')"
    )
    sql.embedded(f"INSERT INTO {name} {_ROWS}")


def _shown(rows: list[tuple[object, ...]]) -> list[str]:
    return [repr(row).replace("-0.0", "0.0") for row in rows]


@pytest.mark.parametrize(
    ("vectors", "mapping"), [("true", "name"), pytest.param("false", "none", marks=pytest.mark.heavy)]
)
def test_both_engines_tell_of_the_same_changes(sql: Sql, vectors: str, mapping: str) -> None:
    for name in ("ours", "theirs", "mixed"):
        _made(sql, name, vectors, mapping)
    for at, statement in enumerate(_STATEMENTS):
        sql.embedded(statement.format(t="ours", q=_SOURCE))
        sql.spark(statement.format(t="theirs", q=_SOURCE))
        (sql.spark if at % 2 else sql.embedded)(statement.format(t="mixed", q=_SOURCE))
    # Spark is asked for no feed through the gateway: it would look for the table that a text names in its own catalog.
    expected = _shown(sql.embedded(_CHANGES.format(t="theirs")))
    assert len(expected) > 30
    for name in ("ours", "mixed"):
        assert _shown(sql.embedded(_CHANGES.format(t=name))) == expected, name


@pytest.mark.parametrize(
    "clause", ["WHEN MATCHED AND t.s = 'z' THEN UPDATE SET s = q.s", "WHEN MATCHED AND t.s = 'z' THEN DELETE"]
)
def test_spark_merges_that_change_no_row_tell_of_none(sql: Sql, clause: str) -> None:
    _made(sql, "unchanged", "false", "none")
    insert = "WHEN NOT MATCHED AND q.s = 'z' THEN INSERT (id, s, p) VALUES (q.id, q.s, q.p)"
    sql.spark(f"MERGE INTO unchanged AS t USING {_SOURCE} AS q ON t.id = q.id {clause} {insert}")
    folder = Path(sql.embedded("DESCRIBE DETAIL unchanged")[0][4].removeprefix("file:"))
    if "UPDATE" in clause:  # its files are others
        assert any("remove" in action and action["remove"]["dataChange"] for action in log.actions(str(folder), 2))
    assert sql.embedded("SELECT * FROM table_changes('unchanged', 2)") == []
