"""Partition values of the specification, written by the embedded engine: Spark reads each as what it was."""

from __future__ import annotations

import pytest

from tests.live.partition_values import PAGE, VALUES, name_of
from tests.live.spark import Sql

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "STRING (NUL)"])
def test_spark_reads_what_was_written(sql: Sql, kind: str) -> None:
    refused = {int(line.split("|")[1]) for line in PAGE.read_text().splitlines() if "| refused: " in line}
    first, values = VALUES[kind]
    pairs = [(row, value) for row, value in enumerate(values, first) if row not in refused]
    name = name_of(kind)
    sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded("SET TIME ZONE 'UTC'")
    sql.embedded(f"CREATE TABLE {name} (i INT, p {kind}) PARTITIONED BY (p)")
    for row, value in pairs:
        sql.embedded(f"INSERT INTO {name} SELECT {row}, {value}")
    same = f"nullif(v.q, CAST('' AS {kind}))" if kind in ("STRING", "BINARY") else "v.q"
    given = " UNION ALL ".join(f"SELECT {row} AS j, CAST({value} AS {kind}) AS q" for row, value in pairs)
    for read in (sql.spark, sql.embedded):
        assert read(f"SELECT count(*) FROM {name} t JOIN ({given}) v ON t.i = v.j AND t.p <=> {same}") == [
            (len(pairs),)
        ]
