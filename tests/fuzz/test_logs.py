"""Logs that readers might take in two ways.

Once the look before it has let it, Spark reads no file but the table's; it answers as the embedded engine does, unless that
says what is wrong. GATEWAY_TEST_LOGS is how many are tried, GATEWAY_TEST_SEED the first.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.delta.log_paths import check_for_others
from gateway.errors import GatewayError
from tests.conformance.session import open_runner
from tests.fuzz.logs import changed, commits, elsewhere, respelt
from tests.unit.runner.session import Session

SEEDS = range(int(os.environ.get("GATEWAY_TEST_SEED", "1")), 1_000_000)[
    : int(os.environ.get("GATEWAY_TEST_LOGS", "25"))
]
TABLES = {
    "plain": "'delta.enableDeletionVectors' = 'false'",
    "checkpoints": "'delta.checkpointInterval' = '2', 'delta.enableDeletionVectors' = 'false'",
    "sidecars": "'delta.checkpointInterval' = '2', 'delta.checkpointPolicy' = 'v2', 'delta.enableDeletionVectors' = 'false'",
    "mapped": "'delta.columnMapping.mode' = 'name', 'delta.enableInCommitTimestamps' = 'true'",
    "vectors": "'delta.enableDeletionVectors' = 'true'",
}
Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of each kind, of some commits by Spark."""
    folder = tmp_path_factory.mktemp("logs")
    for name, properties in TABLES.items():
        place = f"delta.`{folder / name}`"
        spark.sql(f"CREATE TABLE {place} (id BIGINT) USING delta TBLPROPERTIES ({properties})")
        for first in (0, 10, 20):
            spark.sql(f"INSERT INTO {place} SELECT /*+ COALESCE(1) */ id + {first} FROM range(3)")
        spark.sql(f"DELETE FROM {place} WHERE id IN (1, 21)")
    return {name: folder / name for name in TABLES}


def by_spark(spark: Any, table: Path) -> tuple[Rows, set[str]] | None:
    """Its rows, and the files that they are of; None if it raises."""
    try:
        rows = spark.sql(f"SELECT id, input_file_name() AS f FROM delta.`{table}`").collect()
    except Exception:  # noqa: BLE001 - whatever Spark says of a broken log
        return None
    return sorted(((row.id,) for row in rows), key=repr), {row.f for row in rows}


def refusal(table: Path) -> GatewayError | None:
    """What the look before Spark is given a table says of it."""
    try:
        check_for_others(str(table), (str(table.parent),), writes=False)
    except GatewayError as error:
        return error
    return None


@pytest.mark.spark
def test_two_readers(spark: Any, tables: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(os.path.realpath(tmp_path))
    session, warehouse = Session(open_runner(folder)), folder / "warehouse"
    other = folder / "o" / "other.parquet"
    other.parent.mkdir()
    pq.write_table(pa.table({"id": pa.array([777], pa.int64())}), other)
    compared = 0
    for seed in SEEDS:
        chance = Random(seed)
        kind = chance.choice(sorted(tables))
        table = warehouse / "default" / f"t{seed}"
        shutil.copytree(tables[kind], table)
        told = f"seed {seed}, {kind}, {changed(table, other, chance)}"
        try:
            ours: Rows | GatewayError = sorted(session.rows(f"SELECT id FROM main.default.t{seed}"), key=repr)
        except GatewayError as error:
            assert error.condition != "INTERNAL_ERROR", told
            ours = error
        theirs = by_spark(spark, table)
        if theirs is not None and refusal(table) is None:
            assert {name for name in theirs[1] if f"/t{seed}/" not in name} == set(), told
            if isinstance(ours, list):
                assert ours == theirs[0], told
                compared += 1
        shutil.rmtree(table)
    assert compared > len(SEEDS) / 10


def test_a_seed_makes_the_same_changes(tmp_path: Path) -> None:
    """And other ones than another seed."""
    other = tmp_path / "o.parquet"
    other.touch()
    made = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        log = tmp_path / folder / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text('{"add":{"path":"p"}}\n')
        assert [path.parent for path in commits(log.parent)] == [log]
        made.append(
            [changed(log.parent, other, Random(seed)), {p.name: p.read_bytes() for p in log.iterdir() if p.is_file()}]
        )
    assert made[0] == made[1] != made[2]


def test_spellings_are_other_ones(tmp_path: Path) -> None:
    found = [*respelt("a-b/c.parquet"), *elsewhere(tmp_path / "o")]
    assert "a-b/c.parquet" not in found and len(set(found)) == len(found)
