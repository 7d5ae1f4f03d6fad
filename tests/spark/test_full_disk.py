"""Disks that are full: told as such, nothing of before is harmed, and the same again works once there is room."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from gateway.delta.table import open_snapshot
from gateway.engine.spark.errors import tells_full_disk
from gateway.pipelines.history import History
from gateway.pipelines.run import lock_path
from gateway.pipelines.warehouse import Warehouse
from tests.live.disk import Disk
from tests.live.gateway import clean_environment, connect_to
from tests.live.processes import eventually
from tests.live.spark import Sql, scratch, start_with_spark
from tests.spark.jobs import jobs_on
from tests.spark.pipelines import ROOT, SECONDS, flags, on_one_jvm

pytestmark = [
    pytest.mark.spark,
    pytest.mark.heavy,
    # pyspark speaks of pandas, which it only imports
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark.*"),
]

# Some 50 MB, which Parquet cannot make smaller.
WIDE = "SELECT a.id * 1000 + b.id AS id, sha2(CAST(a.id * 1000 + b.id AS STRING), 512) AS x FROM range(1000) a, range(400) b"


def _counts(sql: Sql) -> bool:
    try:
        return sql.spark("SELECT count(*), max(id + 1) FROM range(3000000)") == [(3_000_000, 3_000_000)]
    except Exception as error:  # noqa: BLE001 - any other one fails the test
        assert "RESOURCE_EXHAUSTED" in str(error)
        return False


def test_results_that_do_not_fit_the_scratch_folder(spark_here: None, tmp_path: Path, small_disk: Disk) -> None:
    small_disk(tmp_path / "state" / "spark", 32)
    server = start_with_spark(tmp_path)
    try:
        with connect_to(server) as connection:
            sql = Sql(connection)
            for columns in ("id, sha2(CAST(id AS STRING), 512)", "id, id + 1, id + 2"):
                with pytest.raises(Exception, match="no space left") as raised:
                    sql.spark(f"SELECT {columns} FROM range(3000000)")
                assert "RESOURCE_EXHAUSTED" in str(raised.value) and "SQLSTATE: 53100" in str(raised.value)
                assert str(tmp_path / "state" / "spark") in str(raised.value)
                assert scratch(server) == []
            # Writers that failed hold what they wrote until they are garbage.
            eventually(lambda: _counts(sql), 15)
    finally:
        assert server.stop() == 0


def test_statements_that_write_into_a_full_warehouse(spark_here: None, tmp_path: Path, small_disk: Disk) -> None:
    warehouse = tmp_path / "warehouse"
    disk = small_disk(warehouse, 24)
    server = start_with_spark(tmp_path)
    try:
        with connect_to(server) as connection:
            sql = Sql(connection)
            engines = {"embedded": sql.embedded, "spark": sql.spark}

            def fails(engine: str, text: str) -> None:
                with pytest.raises(Exception, match="no space left") as raised:
                    engines[engine](text)
                told = str(raised.value)
                assert "[RESOURCE_EXHAUSTED]" in told and "SQLSTATE: 53100" in told and str(warehouse) in told

            sql.embedded("CREATE SCHEMA s")
            for engine, run in engines.items():
                run(f"CREATE TABLE s.{engine} AS SELECT id, CAST(id AS STRING) AS x FROM range(1000)")
                fails(engine, f"CREATE TABLE s.new_{engine} AS {WIDE}")
                assert [row[1] for row in run("SHOW TABLES IN s")].count(f"new_{engine}") == 0
                assert not (warehouse / "s" / f"new_{engine}").exists()
                with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
                    run(f"SELECT * FROM s.new_{engine}")
            fails("embedded", f"INSERT INTO s.embedded {WIDE}")
            fails("spark", f"INSERT INTO s.spark {WIDE}")
            disk.fill()
            for engine in engines:
                fails(engine, f"INSERT INTO s.{engine} VALUES (1, 'x')")
                fails(engine, f"CREATE TABLE s.one_{engine} AS SELECT 1 AS a")
                fails(engine, f"CREATE TABLE s.none_{engine} (a INT)")
                fails(engine, f"CREATE VIEW s.view_{engine} AS SELECT 1 AS a")
            changes = (
                "UPDATE s.spark SET x = 'new' WHERE id < 10",
                "MERGE INTO s.spark USING (SELECT 5 AS id) n ON n.id = spark.id WHEN MATCHED THEN UPDATE SET x = 'new'",
                "OPTIMIZE s.spark",
            )
            for text in changes:
                fails("spark", text)
            tables = [("s", "embedded", False), ("s", "spark", False)]
            for engine in engines:
                assert sql.embedded(f"SELECT count(*), sum(id), max(x) FROM s.{engine}") == [(1000, 499_500, "999")]
                assert open_snapshot(str(warehouse / "s" / engine)).version == 0
                assert sorted(engines[engine]("SHOW TABLES IN s")) == tables
            assert not list(warehouse.rglob(".creating-*")) and not list(warehouse.rglob(".draft-*"))

            disk.make_room(400)
            other = {"embedded": sql.spark, "spark": sql.embedded}
            for engine, run in engines.items():
                run(f"CREATE TABLE s.new_{engine} AS {WIDE}")
                run(f"INSERT INTO s.{engine} {WIDE}")
                other[engine](f"CREATE TABLE s.one_{engine} AS SELECT 1 AS a")
                run(f"CREATE TABLE s.none_{engine} (a INT)")
                run(f"CREATE VIEW s.view_{engine} AS SELECT 1 AS a")
                counts = f"SELECT (SELECT count(*) FROM s.new_{engine}), (SELECT count(DISTINCT id) FROM s.{engine})"
                assert run(counts) == [(400_000, 400_600)]
            assert [sql.spark(text)[0][0] for text in changes[:2]] == [20, 2]
            sql.spark(changes[2])
            assert sql.embedded("SELECT count(*), sum(CAST(x = 'new' AS INT)) FROM s.spark") == [(401_000, 20)]
    finally:
        assert server.stop() == 0


def write_csv(path: Path, ids: Iterable[int]) -> None:
    """A file of rows that Parquet cannot make smaller."""
    lines = (f"{i},{hashlib.sha512(str(i).encode()).hexdigest()}\n" for i in ids)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("id,x\n" + "".join(lines))


def rows(folder: Path) -> pa.Table:
    """The rows of a Delta table, read without Spark."""
    return DeltaTable(str(folder)).to_pyarrow_table()


def test_jobs_on_a_full_warehouse(
    spark: Any,
    tmp_path: Path,
    small_disk: Disk,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = jobs_on(spark, tmp_path, monkeypatch, capsys)
    warehouse, inbox = tmp_path / "wh", str(tmp_path / "in")
    disk = small_disk(warehouse, 8)

    def fails(*words: str) -> None:
        code, out, err = run(*words)
        assert (code, out) == (4, None), err
        line = err.splitlines()[-1]
        assert line.startswith(f"gateway job {words[0]}: [RESOURCE_EXHAUSTED]") and "SQLSTATE: 53100" in line
        assert "no space left" in line and f"MiB free in {warehouse}" in line and "run it again" in line

    # A table's first load, its good and its bad records.
    write_csv(tmp_path / "in" / "1.csv", range(100_000))
    with (tmp_path / "in" / "1.csv").open("a") as file:
        file.write("x,bad\n")
    ingest = ("ingest", inbox, "s.t", "--schema", "id INT, x STRING")
    fails(*ingest)
    assert not (warehouse / "s" / "t").exists()
    fails(*ingest)
    disk.make_room(32)
    code, report, err = run(*ingest)
    assert code == 0, err
    assert report["summary"] == [{"table": "s.t", "files": 1, "loaded": 100_000, "quarantined": 1}]

    # The next one: no room for the rows, and none for the plan.
    write_csv(tmp_path / "in" / "2.csv", range(100_000, 400_000))
    fails(*ingest)
    assert rows(warehouse / "s" / "t").num_rows == 100_000
    disk.fill()
    write_csv(tmp_path / "in" / "3.csv", range(400_000, 400_010))
    fails(*ingest)
    fails("ingest", inbox, "s.other")
    fails("generate", "events", "--scale", "0.01")
    assert not [p for p in warehouse.rglob("*") if p.name.startswith((".creating-", ".ledger.json."))]
    disk.make_room(128)
    code, report, err = run(*ingest)
    assert code == 0, err
    assert report["summary"] == [{"table": "s.t", "files": 2, "loaded": 300_010, "quarantined": 0}]
    found = rows(warehouse / "s" / "t")["id"].to_pylist()
    assert len(found) == 400_010 and set(found) == set(range(400_010))
    assert rows(warehouse / "s" / "t_quarantine").num_rows == 1

    version = open_snapshot(str(warehouse / "s" / "t")).version
    disk.fill()
    fails("maintain", "compact", "s.t")
    assert open_snapshot(str(warehouse / "s" / "t")).version == version
    disk.make_room(256)
    code, report, err = run("maintain", "compact", "s.t")
    assert code == 0 and report["summary"][0]["files after"] == 1, err
    assert rows(warehouse / "s" / "t").num_rows == 400_010
    code, report, err = run("generate", "events", "--scale", "0.01")
    assert code == 0 and report["summary"][0]["rows"] == 10_000, err


def shop(folder: Path, storage: Path) -> Path:
    """A copy of examples/shop that tries nothing again."""
    made = folder / "project"
    shutil.copytree(ROOT / "examples" / "shop", made, copy_function=shutil.copyfile)
    spec = made / "spark-pipeline.yml"
    text = spec.read_text().replace("file:///tmp/delta-sql-gateway/shop", f"file://{storage}")
    once = '  spark.sql.pipelines.maxFlowRetryAttempts: "0"'
    spec.write_text(text.replace("configuration:\n", f"configuration:\n{once}\n"))
    return made


def test_a_pipeline_on_a_full_warehouse(spark_here: None, tmp_path: Path, small_disk: Disk) -> None:
    warehouse = tmp_path / "warehouse"
    disk = small_disk(warehouse, 24)
    (tmp_path / "state").mkdir()
    made = shop(tmp_path, warehouse / ".storage")

    def counts() -> dict[str, int | None]:
        names = ("bronze_orders", "bronze_customers", "silver_orders", "quarantine_orders", "gold_daily")
        return {name: open_snapshot(str(warehouse / "shop" / name)).num_rows for name in names}

    with on_one_jvm(tmp_path) as ask:

        def fails(leave: int) -> str:
            disk.fill(leave)
            code, _, errors = ask("run", made)
            assert code == 4, errors
            line = errors.splitlines()[-1]
            assert line.startswith("gateway: the run failed: ") and tells_full_disk(line)
            assert f"MiB free in {warehouse}" in line and "run it again" in line
            assert not lock_path(warehouse, "shop").exists()
            disk.make_room(24)
            return str(errors)

        def completes() -> None:
            code, _, errors = ask("run", made)
            assert code == 0, errors

        assert "the lock of the run" in fails(0)
        assert "STARTING" in fails(700_000)  # there is room for the locks
        completes()
        assert list(counts().values()) == [6, 3, 4, 2, 2]
        for file in (made / "next").rglob("*.*"):
            shutil.copyfile(file, made / "raw" / file.relative_to(made / "next"))
        assert "the lock of the run" not in fails(600_000)
        assert counts()["gold_daily"] == 2  # readers do not see a view emptied for a run that failed
        completes()
        assert list(counts().values()) == [10, 4, 7, 3, 4]
        states = [run["state"] for run in History(Warehouse(warehouse)).runs("shop", 10)]
        assert states == ["COMPLETED", "FAILED", "COMPLETED", "FAILED"]


def test_a_spark_that_has_no_room_to_start(spark_here: None, tmp_path: Path, small_disk: Disk) -> None:
    state = tmp_path / "state"
    small_disk(state, 1).fill()
    made = shop(tmp_path, tmp_path / "storage")
    for words in (["job", "generate", "events"], ["pipeline", "run", str(made)]):
        command = [sys.executable, "-W", "ignore", "-m", "gateway", *words, *flags(tmp_path / "warehouse", state)]
        done = subprocess.run(
            command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 4, done.stderr
        line = done.stderr.splitlines()[-1]
        assert "[RESOURCE_EXHAUSTED] Spark does not start: no space left" in line and f"0 MiB free in {state}" in line
