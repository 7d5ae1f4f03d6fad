"""Columns that a statement brings along, defaults, overwrites, replaced tables, statistics: both engines do the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_DEFAULTS = (
    "CREATE TABLE {t} (a INT, b STRING DEFAULT 'x', c INT DEFAULT 7) "
    "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    "INSERT INTO {t} VALUES (1, DEFAULT, 1), (2, 'y', DEFAULT)",
)
_PLAIN = (
    "CREATE TABLE {t} (id INT, v STRING, w BIGINT)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 10), (2, 'b', 20)",
)
_PARTED = (
    "CREATE TABLE {t} (id INT, p STRING, q INT) PARTITIONED BY (p, q)",
    "INSERT INTO {t} VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 1), (4, NULL, 1)",
)
_EVOLVE = "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (%s) s ON t.id = s.id "
_BOTH = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
_TWO = "SELECT 1 AS id, 'q' AS v, 5 AS n UNION ALL SELECT 7, 'r', 6"
_CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "defaults in MERGE": (
        _DEFAULTS,
        (
            "MERGE INTO {t} t USING (SELECT 10 AS k) s ON t.a = s.k WHEN NOT MATCHED THEN INSERT (a) VALUES (s.k)",
            "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 20 AS a) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT *",
        ),
    ),
    "defaults in INSERT SELECT": (
        _DEFAULTS,
        (
            "INSERT INTO {t} SELECT a, DEFAULT, 1 FROM {t} WHERE a = 1",
            "INSERT INTO {t} (c, b, a) SELECT DEFAULT, default, a FROM {t} WHERE a = 2",
            "INSERT INTO {t} SELECT a, DEFAULT, 1 FROM {t} ORDER BY a LIMIT 1",
            "INSERT INTO {t} SELECT a, default, 1 FROM (SELECT 77 AS a, 'col' AS default)",
        ),
    ),
    "new columns": (
        _PLAIN,
        (
            _EVOLVE % _TWO + _BOTH,
            _EVOLVE % "SELECT 2 AS id, 8 AS m, 9 AS o" + "WHEN MATCHED THEN UPDATE SET M = s.m",
            _EVOLVE % "SELECT 3 AS id, 8 AS z, 9 AS y" + "WHEN NOT MATCHED THEN INSERT (id, y) VALUES (s.id, s.y + 1)",
            _EVOLVE % "SELECT 3 AS id, named_struct('f', 1) AS st" + _BOTH,
            _EVOLVE % "SELECT 3 AS id, 8 AS gone" + "WHEN MATCHED THEN DELETE",
            _EVOLVE % "SELECT 100 AS id, 8 AS late" + "WHEN MATCHED THEN UPDATE SET *",
            _EVOLVE % "SELECT 1 AS id, 5 AS w" + _BOTH,
            _EVOLVE % "SELECT 1 AS id, 4 AS k" + "AND k = 4 WHEN MATCHED AND k > 3 THEN UPDATE SET k = k + t.id "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE",
        ),
    ),
    "new columns of a table with features": (
        (
            "CREATE TABLE {t} (id INT, v STRING) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
            "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')",
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b')",
        ),
        (_EVOLVE % _TWO + _BOTH, _EVOLVE % "SELECT 2 AS id, 8 AS m" + "WHEN MATCHED THEN UPDATE SET m = s.m"),
    ),
    "inserted columns": (
        _PLAIN,
        (
            "INSERT WITH SCHEMA EVOLUTION INTO {t} SELECT 3, 'c', 30, 5 AS n",
            "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 7 AS k, 4 AS ID",
            "INSERT WITH SCHEMA EVOLUTION INTO TABLE {t} VALUES (5, 'e', 50, 6, 7, 8)",
            "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 6 AS id, map('a', 1) AS m",
            "INSERT WITH SCHEMA EVOLUTION INTO {t} (id, v) VALUES (8, 'h')",
            "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT id, 1.5 AS own FROM {t} WHERE id = 1",
            "INSERT WITH SCHEMA EVOLUTION OVERWRITE {t} BY NAME SELECT 1 AS id, 'w' AS late",
            "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME REPLACE WHERE id = 1 SELECT 1 AS id, 'z' AS later",
        ),
    ),
    "inserted columns of a table with features": (
        (
            "CREATE TABLE {t} (n BIGINT GENERATED ALWAYS AS IDENTITY, id INT, g INT GENERATED ALWAYS AS (id + 1), "
            "v STRING DEFAULT 'd') TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', "
            "'delta.feature.allowColumnDefaults' = 'supported', 'delta.enableRowTracking' = 'true')",
            "INSERT INTO {t} (id) VALUES (1)",
        ),
        (
            "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 2 AS id, 3 AS more",
            "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 3 AS id, 'e' AS v",
        ),
    ),
    "inserted columns of partitions": (
        _PARTED,
        (
            "INSERT WITH SCHEMA EVOLUTION INTO {t} PARTITION (p = 'x', q = 3) SELECT 5, 6 AS n",
            "INSERT WITH SCHEMA EVOLUTION INTO {t} PARTITION (p = 'x', q = 3) BY NAME SELECT 5 AS id, 6 AS m",
            "INSERT WITH SCHEMA EVOLUTION OVERWRITE {t} PARTITION (p = 'x', q = 3) BY NAME SELECT 7 AS id, 8 AS o",
            "SET spark.sql.sources.partitionOverwriteMode = dynamic",
            "INSERT WITH SCHEMA EVOLUTION OVERWRITE {t} BY NAME SELECT 9 AS id, 'y' AS p, 1 AS q, 8 AS r",
            "SET spark.sql.sources.partitionOverwriteMode = static",
        ),
    ),
    "partitions": (
        _PARTED,
        (
            "SET spark.sql.sources.partitionOverwriteMode = dynamic",
            "INSERT OVERWRITE {t} SELECT 11, 'y', 5",
            "INSERT OVERWRITE {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (12, 'x', 1), (13, '', 1), (14, 'y', 1)",
            "INSERT OVERWRITE {t} PARTITION (p = 'x', q) SELECT 15, 2",
            "INSERT OVERWRITE {t} PARTITION (p, q) SELECT 16, 'x', 9",
            "INSERT OVERWRITE {t} PARTITION (p = 'x', q = 2) SELECT 17",
            "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false",
            "SET spark.sql.sources.partitionOverwriteMode = static",
        ),
    ),
    "replaced": (
        _PARTED,
        (
            "REPLACE TABLE {t} (b BIGINT NOT NULL COMMENT 'bb', c STRING) USING delta COMMENT 'd' TBLPROPERTIES ('x' = 'y')",
            "REPLACE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT 1 AS a, 'q' AS p",
            "REPLACE TABLE {t} (a INT, b STRING) PARTITIONED BY (b) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
            "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 2 AS a",
        ),
    ),
    "clustered anew": (
        (
            "CREATE TABLE {t} (id INT, c VARCHAR(5), d CHAR(3)) CLUSTER BY (c)",
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x', 'y'), (2, 'a', 'z')",
            "OPTIMIZE {t}",
        ),
        ("ALTER TABLE {t} CLUSTER BY (d)", "OPTIMIZE {t} FULL"),
    ),
    "numbers that were given": (
        (
            "CREATE TABLE {t} (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 10), v INT)",
            "INSERT INTO {t} VALUES (57, 1)",
        ),
        ("ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY", "INSERT INTO {t} (v) VALUES (2)"),
    ),
    "purged": (
        (
            "CREATE TABLE {t} (id INT, v STRING, gone INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
            "'delta.columnMapping.mode' = 'name')",
            "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2)",
            "INSERT INTO {t} VALUES (3, 'c', 3)",
        ),
        (
            "DELETE FROM {t} WHERE id = 1",
            "REORG TABLE {t} APPLY (PURGE)",
            "ALTER TABLE {t} DROP COLUMN gone",
            "REORG TABLE {t} APPLY (PURGE)",
            "REORG TABLE {t} APPLY (PURGE)",
        ),
    ),
    "fields of structs": (
        (
            "CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: STRUCT<c: STRING, d: INT>>)",
            "INSERT INTO {t} SELECT 1, named_struct('a', 1, 'b', named_struct('c', 'x', 'd', 2)) UNION ALL SELECT 2, NULL",
        ),
        (
            "UPDATE {t} SET s.a = 5 WHERE id = 2",
            "UPDATE {t} SET {t}.S.b.C = 'y', s.a = s.a + 1",
            "MERGE INTO {t} t USING (SELECT 1 AS k, '77' AS v) q ON t.id = q.k WHEN MATCHED THEN UPDATE SET t.s.a = v, "
            "s.b.d = k + 1",
        ),
    ),
    "restored clustering": (
        ("CREATE TABLE {t} (id INT, v STRING) CLUSTER BY (id)", "INSERT INTO {t} VALUES (1, 'a')"),
        (
            "ALTER TABLE {t} CLUSTER BY (v)",
            "RESTORE TABLE {t} TO VERSION AS OF 1",
            "ALTER TABLE {t} CLUSTER BY NONE",
            "RESTORE TABLE {t} TO VERSION AS OF 2",
            "RESTORE TABLE {t} TO VERSION AS OF 4",
        ),
    ),
}
# How clients are given what they would spell in two ways.
_ASKED = {"fields of structs": "SELECT id, s.a, s.b.c, s.b.d, s IS NULL, s.b IS NULL FROM {}"}
_METRICS = (
    *("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted", "numTargetRowsCopied"),
    *("numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted", "numTargetRowsNotMatchedBySourceUpdated"),
    *("numTargetRowsNotMatchedBySourceDeleted", "numSourceRows", "numOutputRows", "numFiles", "numRemovedFiles"),
)
_NESTED = (
    "(a INT, s STRUCT<x: INT, y: STRUCT<z: STRING, l: ARRAY<INT>>>, m MAP<STRING, INT>, b BINARY, o BOOLEAN, "
    "e DECIMAL(12, 3), t TIMESTAMP, n TIMESTAMP_NTZ, c VARCHAR(3), p STRING)"
)
_LONG = "'a text of more than thirty-two characters, cut'"
_NESTED_ROWS = (
    "SELECT /*+ COALESCE(1) */ * FROM VALUES "
    f"(1, named_struct('x', 5, 'y', named_struct('z', {_LONG}, 'l', array(1))), map('a', 1), X'00', true, 1.5, "
    "TIMESTAMP'2024-01-02 03:04:05.678', TIMESTAMP_NTZ'2024-01-02 03:04:05', 'c', 'p'), "
    "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'p'), "
    "(3, named_struct('x', NULL, 'y', NULL), map(), NULL, NULL, -2, NULL, NULL, NULL, 'p')"
)


# Like others, of other tables.
_HEAVY = {
    "new columns of a table with features",
    "inserted columns",
    "inserted columns of a table with features",
    "inserted columns of partitions",
    "partitions",
    "defaults in INSERT SELECT",
    "clustered anew",
    "restored clustering",
    "numbers that were given",
}


def _bag(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(map(_whole, row))) for row in rows)


def _whole(value: Any) -> Any:
    """A value whose fields are integers again, which the client makes floats of beside a NULL struct in the same batch."""
    if isinstance(value, dict):
        return {key: int(v) if isinstance(v, float) and v.is_integer() else v for key, v in value.items()}
    return value


def _newest(ask: Callable[[str], list[tuple[Any, ...]]], name: str) -> list[Any]:
    """What the newest version says of itself."""
    ((version, *row),) = ask(f"DESCRIBE HISTORY {name} LIMIT 1")
    parameters, metrics = dict(row[4] or ()), dict(row[11] or ())
    shown = {k: v for k, v in parameters.items() if "predicate" not in k.lower()}
    if row[3] == "CLUSTER BY" or "clusterBy" in shown:
        shown.pop("properties", None)
    shown.pop("isManaged", None)  # the gateway tells Spark where tables lie
    return [version, row[3], shown, row[8], row[10], {k: metrics.get(k) for k in _METRICS}]


def _folder(sql: Sql, name: str) -> Path:
    (row,) = sql.embedded(f"DESCRIBE DETAIL {name}")
    return Path(str(row[4]).removeprefix("file:"))


def _commit(sql: Sql, name: str) -> list[dict[str, Any]]:
    newest = max((_folder(sql, name) / "_delta_log").glob("*.json"))
    return [json.loads(line) for line in newest.read_text().splitlines()]


@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.heavy) if c in _HEAVY else c for c in _CASES])
def test_both_engines_do_the_same(sql: Sql, case: str) -> None:
    made, done = _CASES[case]
    ask = _ASKED.get(case, "SELECT * FROM {}")
    for name in ("ours", "theirs"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
        for text in made:
            sql.embedded(text.format(t=name))
    for at, text in enumerate(done):
        told = sql.spark if at == len(done) - 1 else sql.embedded  # Spark takes most of the time
        ours, theirs = sql.embedded(text.format(t="ours")), sql.spark(text.format(t="theirs"))
        if text.startswith("SET "):
            continue
        if not text.startswith(("RESTORE", "REORG", "OPTIMIZE")):  # which tell bytes and times
            assert ours == theirs, text
        expected = _bag(sql.spark(ask.format("theirs")))
        for read in (sql.spark, sql.embedded):
            assert _bag(read(ask.format("ours"))) == expected, text
        assert _bag(sql.embedded(ask.format("theirs"))) == expected, text
        for describe in ("DESCRIBE {}", "DESCRIBE DETAIL {}"):
            shown = [told(describe.format(name)) for name in ("ours", "theirs")]
            if "DETAIL" in describe:  # clustering columns, and versions of the protocol
                shown = [[(list(row[8]), *row[12:14]) for row in rows] for rows in shown]
            assert shown[0] == shown[1], (text, describe)
        assert _newest(told, "ours") == _newest(told, "theirs"), text
        kinds = [sorted({kind for action in _commit(sql, name) for kind in action}) for name in ("ours", "theirs")]
        assert kinds[0] == kinds[1], text


@pytest.mark.parametrize(
    "properties",
    [
        "",
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '3')",
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')",
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '-1', 'delta.columnMapping.mode' = 'name')",
        "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'a, s.Y.z, `e`')",
    ],
)
def test_files_tell_of_the_same_columns(sql: Sql, properties: str) -> None:
    names = ("ours", "theirs")
    for name, run in zip(names, (sql.embedded, sql.spark), strict=True):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
        sql.embedded(f"CREATE TABLE {name} {_NESTED} PARTITIONED BY (p) {properties}")
        run(f"INSERT INTO {name} {_NESTED_ROWS}")
    (ours,), (theirs,) = ([a["add"] for a in _commit(sql, name) if "add" in a] for name in names)
    stats, others = (
        _logical(sql, name, json.loads(add["stats"])) for name, add in zip(names, (ours, theirs), strict=True)
    )
    assert stats == others, (stats, others)


def _logical(sql: Sql, name: str, stats: dict[str, Any]) -> dict[str, Any]:
    """Statistics by the places of their columns, those that are empty left out; bounds of times, which Spark cuts, too."""
    (metadata,) = [
        action["metaData"]
        for path in sorted((_folder(sql, name) / "_delta_log").glob("*.json"))
        for action in map(json.loads, path.read_text().splitlines())
        if "metaData" in action
    ]
    schema = json.loads(metadata["schemaString"])

    def of(tree: dict[str, Any], fields: list[dict[str, Any]]) -> dict[str, Any]:
        names = {f["metadata"].get("delta.columnMapping.physicalName", f["name"]): f for f in fields}
        return {
            names[key]["name"]: of(value, names[key]["type"]["fields"]) if isinstance(value, dict) else value
            for key, value in tree.items()
        }

    parts = {key: of(value, schema["fields"]) if isinstance(value, dict) else value for key, value in stats.items()}
    for bounds in (parts.get("minValues", {}), parts.get("maxValues", {})):
        bounds.pop("t", None), bounds.pop("n", None)
    return {key: value for key, value in parts.items() if value != {}}


def test_properties_of_statistics_are_refused_alike(sql: Sql) -> None:
    for at, (columns, partition, value) in enumerate(
        (
            ("a INT, c BOOLEAN", "", "a,c"),
            ("a INT, c INT", "", "a,a"),
            ("a INT, c INT", "", "a,zz"),
            ("a INT, c INT", "PARTITIONED BY (a)", "a"),
        )
    ):
        text = (
            f"CREATE TABLE no{at} ({columns}) {partition} TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{value}')"
        )
        said = []
        for run in (sql.embedded, sql.spark):
            with pytest.raises(Exception, match=r"\[[A-Z_.]+\]") as caught:
                run(text)
            said.append(str(caught.value).split("]")[0].split("[")[-1])
        assert said[0] == said[1], text
