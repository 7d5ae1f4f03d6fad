"""Changes of Delta tables and what comes of them, as texts: recorded of Delta with Spark, and asked of the gateway.

The answers lie in ``tests/data/delta-spark-changes.json``; the tests of ``make test-spark-heavy`` ask Spark for them again, and
write them anew where GATEWAY_TEST_RECORD is set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).parent.parent / "data" / "delta-spark-changes.json"
Run = Callable[[str], list[tuple[Any, ...]]]

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
_EVOLUTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
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
COLUMNS = "(id INT, s STRING, d DOUBLE, e DECIMAL(12, 3), t TIMESTAMP, p STRING)"
ROWS = (
    "VALUES (1, 'a', 1.5, 1.25, TIMESTAMP'2024-01-02 03:04:05', 'x'), (2, NULL, double('NaN'), NULL, NULL, 'x'), "
    "(3, 'c', -0.0, -7.5, TIMESTAMP'1969-12-31 23:59:59.5', NULL), (4, 'a text of more than thirty-two characters, cut', "
    "NULL, 0, TIMESTAMP'9999-12-31 00:00:00', 'y z')"
)
SOURCE = "(SELECT * FROM VALUES (1, 'A', 'q'), (4, NULL, 'x'), (9, 'I', NULL) AS v(id, s, p))"
STATEMENTS = (
    "DELETE FROM {t} WHERE id = 2",
    "DELETE FROM {t} WHERE d > 1",
    "DELETE FROM {t} WHERE s LIKE 'a%' AND p = 'x'",
    "DELETE FROM {t} WHERE p IS NULL",
    "DELETE FROM {t} WHERE id > 100",
    "DELETE FROM {t}",
    "UPDATE {t} SET s = concat(s, '!'), e = id / 3, t = t + INTERVAL 1 DAY WHERE id < 4",
    "UPDATE {t} SET p = 'x' WHERE p IS NULL OR p = 'y z'",
    "UPDATE {t} SET d = id",
    "UPDATE {t} SET s = NULL WHERE d = double('NaN')",
    "MERGE INTO {t} AS t USING {q} AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = q.s, p = q.p "
    "WHEN NOT MATCHED THEN INSERT (id, s, p) VALUES (q.id, q.s, q.p)",
    "MERGE INTO {t} AS t USING {q} AS q ON t.id = q.id WHEN MATCHED AND q.s IS NULL THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND t.d > 0 THEN UPDATE SET e = 1 WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO {t} AS t USING {q} AS q ON t.id = q.id WHEN NOT MATCHED AND q.id > 5 THEN INSERT (id) VALUES (q.id + 1)",
    "INSERT OVERWRITE {t} SELECT id + 10, s, d, e, t, p FROM {t} WHERE id < 3",
    "INSERT INTO {t} REPLACE WHERE p = 'x' SELECT 7, 'r', 7.5, 7, NULL, 'x'",
    "TRUNCATE TABLE {t}",
)
_CARE = (
    *("DELETE FROM {t} WHERE id = 2", "UPDATE {t} SET s = 'u' WHERE id IN (1, 4)", "OPTIMIZE {t}"),
    *(
        "INSERT INTO {t} (id, s) VALUES (8, 'n')",
        "DELETE FROM {t} WHERE id = 8",
        "RESTORE TABLE {t} TO VERSION AS OF 2",
    ),
)
_FILE_COUNTS = (
    *("numRemovedFiles", "numAddedFiles", "numDeletionVectorsAdded", "numDeletionVectorsUpdated"),
    *("numDeletionVectorsRemoved", "numRestoredFiles", "numOfFilesAfterRestore", "numDeletedRows", "numUpdatedRows"),
)
# What is counted alike; times and sizes differ.
_COUNTS = (
    *("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted", "numTargetRowsCopied"),
    *("numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted", "numTargetRowsNotMatchedBySourceUpdated"),
    *("numTargetRowsNotMatchedBySourceDeleted", "numSourceRows", "numOutputRows", "numFiles", "numRemovedFiles"),
)
# Into how many files rows that stay are written is up to Spark's tasks, and then how many others are written anew.
_ROW_COUNTS = (
    *("numDeletedRows", "numUpdatedRows", "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    *("numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted", "numTargetRowsNotMatchedBySourceUpdated"),
    *("numTargetRowsNotMatchedBySourceDeleted", "numSourceRows", "numOutputRows"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """How a table is made, what is done to it, and what is looked at after each statement.

    Attributes:
        made: statements of the embedded engine; ``{t}`` is the table, ``{q}`` is `SOURCE`.
        done: the statements whose effects are compared.
        ask: the query of its rows.
        counts: the operation metrics that must agree.
    """

    made: tuple[str, ...]
    done: tuple[str, ...]
    ask: str = "SELECT * FROM {t}"
    counts: tuple[str, ...] = _COUNTS


def _cases() -> Iterator[tuple[str, Case]]:
    for name, (made, done) in _EVOLUTIONS.items():
        # Clients would spell NULL fields of structs in two ways.
        asked = {"fields of structs": "SELECT id, s.a, s.b.c, s.b.d, s IS NULL, s.b IS NULL FROM {t}"}
        yield name, Case(made, done, asked.get(name, "SELECT * FROM {t}"))
    filled = f"INSERT INTO {{t}} {ROWS}"
    for parted in ("", " PARTITIONED BY (p)"):
        for statement in STATEMENTS:
            made = (f"CREATE TABLE {{t}} {COLUMNS}{parted}", filled)
            yield f"{statement.format(t='t', q='q')}{parted}", Case(made, (statement,), counts=_ROW_COUNTS)
    for vectors, mapping in (("true", "name"), ("true", "none"), ("false", "none"), ("false", "name")):
        properties = f"'delta.enableDeletionVectors' = '{vectors}', 'delta.columnMapping.mode' = '{mapping}'"
        made = (f"CREATE TABLE {{t}} {COLUMNS} PARTITIONED BY (p) TBLPROPERTIES ({properties})", filled, filled)
        counts = _FILE_COUNTS if vectors == "true" else ("numDeletedRows", "numUpdatedRows")
        yield f"cared for, vectors {vectors}, mapping {mapping}", Case(made, _CARE, counts=counts)


CASES = dict(_cases())


def made(case: Case, run: Run, table: str) -> None:
    """Make a case's table anew."""
    run(f"DROP TABLE IF EXISTS {table}")
    for text in case.made:
        run(text.format(t=table))


def effects(case: Case, table: str, text: str, run: Run, tell: Run) -> dict[str, Any]:
    """Run one of a case's statements with `run`, and ask `tell` for what came of it; texts in lists, that JSON can hold.

    Beside what both engines say of a table there are the kinds of actions in its newest commit. Of settings nothing is told.
    """
    answer = run(text.format(t=table, q=SOURCE))
    if text.startswith("SET "):
        return {}
    ((detail, *_),) = [tell(f"DESCRIBE DETAIL {table}")]
    newest = max((Path(str(detail[4]).removeprefix("file:")) / "_delta_log").glob("*.json"))
    actions = map(json.loads, newest.read_text().splitlines())
    return {
        # Bytes and times are told by these.
        "told": [] if text.startswith(("RESTORE", "REORG", "OPTIMIZE")) else bag(answer),
        "rows": bag(tell(case.ask.format(t=table))),
        "columns": list(map(repr, tell(f"DESCRIBE {table}"))),
        "clustering and protocol": repr((list(detail[8]), *detail[12:14])),
        "history": _newest(tell, table, case.counts),
        "actions": sorted({kind for action in actions for kind in action}),
    }


def bag(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows as texts whose order says nothing."""
    return sorted(repr(tuple(map(_whole, row))).replace("-0.0", "0.0") for row in rows)


def _whole(value: Any) -> Any:
    """A value whose fields are integers again, which the client makes floats of beside a NULL struct in the same batch."""
    if isinstance(value, dict):
        return {key: int(v) if isinstance(v, float) and v.is_integer() else v for key, v in value.items()}
    return value


def _newest(tell: Run, table: str, counts: tuple[str, ...]) -> list[str]:
    """What the newest version says of itself."""
    ((version, *row),) = tell(f"DESCRIBE HISTORY {table} LIMIT 1")
    parameters, metrics = dict(row[4] or ()), dict(row[11] or ())
    # Predicates have Spark's numbers of columns in them.
    shown = {k: v for k, v in parameters.items() if "predicate" not in k.lower()}
    if row[3] == "CLUSTER BY" or "clusterBy" in shown:
        shown.pop("properties", None)
    shown.pop("isManaged", None)  # the gateway tells Spark where tables lie
    counted = {k: metrics[k] for k in counts if metrics.get(k) is not None}
    kinds = f"read {row[8]}, isolation {row[9]}, blind {row[10]}"
    return [f"{version} {row[3]}", kinds, repr(sorted(shown.items())), repr(counted)]


def recorded() -> dict[str, list[dict[str, Any]]]:
    """Of each case what Delta with Spark did, statement by statement."""
    answers: dict[str, list[dict[str, Any]]] = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return answers


def record(name: str, answers: list[dict[str, Any]]) -> None:
    """Keep what Delta with Spark did in a case."""
    kept = recorded() if ANSWERS.exists() else {}
    kept[name] = answers
    ordered = {each: kept[each] for each in CASES if each in kept}
    ANSWERS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
