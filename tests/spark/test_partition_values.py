"""Partition values of the specification, written by the embedded engine: Spark reads each as what it was.

And those that name no zone: both engines read them by the clock of the session.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.partition_values import PAGE, VALUES, name_of
from tests.live.spark import Sql
from tests.live.zoneless import ZONES, make

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


@pytest.mark.parametrize("checkpoint", [False, True], ids=["commits", "checkpoint"])
def test_both_engines_read_values_without_a_zone_alike(sql: Sql, *, checkpoint: bool) -> None:
    sql.auto("DROP TABLE IF EXISTS z")
    sql.auto("SET TIME ZONE 'UTC'")
    warehouse = Path(str(sql.embedded("DESCRIBE SCHEMA `default`")[3][1]).removeprefix("file:"))
    make(sql.embedded, lambda: warehouse / "z", checkpoint=checkpoint)
    for zone in ZONES:
        sql.auto(f"SET TIME ZONE '{zone}'")
        for ask in (
            "SELECT i, unix_micros(at), string(at) FROM z ORDER BY i",
            "SELECT i FROM z WHERE at = TIMESTAMP'2024-01-01 00:00:00' ORDER BY i",
        ):
            assert sql.embedded(ask) == sql.spark(ask), (zone, ask)
    sql.auto("SET TIME ZONE 'UTC'")
