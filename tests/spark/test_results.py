"""Large results: in order, in bounded memory, and nothing of them is left behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from databricks.sql.exc import ServerOperationError

from gateway.protocol.client import Client
from tests.fix_server import Server, connect_to
from tests.fix_spark import Background, Sql, descendants, eventually, scratch, start_with_spark

pytestmark = pytest.mark.spark

SPARK = {"gateway.engine": "spark"}


def worker_of(server: Server) -> int:
    """The Python process that owns Spark."""
    for pid in descendants(server.process.pid):
        if any(line.split(" ")[0].endswith("java") for line in descendants(pid).values()):
            return pid
    raise AssertionError("no Spark")


def peak_mebibytes(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024


def test_three_million_rows_in_order_and_in_bounded_memory(spark_server: Server) -> None:
    with Client(spark_server.thrift_url) as client:
        client.open()
        client.execute("SELECT 1", configuration=SPARK).table()
        worker = worker_of(spark_server)
        before = peak_mebibytes(worker)
        result = client.execute(
            "SELECT id, CAST(id AS STRING) AS s, id / 7 AS d FROM range(3000000) ORDER BY id", configuration=SPARK
        )
        count = 0
        for batch in result.batches():
            ids = batch.column(0)
            assert ids[0].as_py() == count
            assert ids.equals(pa.array(range(count, count + len(ids)), pa.int64()))
            count += len(ids)
    assert count == 3_000_000
    assert peak_mebibytes(worker) - before < 250
    eventually(lambda: scratch(spark_server) == [], 5)


def test_a_row_limit_of_the_client(spark_server: Server) -> None:
    with Client(spark_server.thrift_url) as client:
        client.open()
        found = client.execute("SELECT id FROM range(1000000) ORDER BY id", row_limit=12_345, configuration=SPARK)
        assert found.table()["id"].to_pylist() == list(range(12_345))


def test_one_huge_value(sql: Sql) -> None:
    rows = sql.spark("SELECT array_join(collect_list(repeat('x', 1000)), '') FROM range(20000)")
    assert len(rows) == 1 and rows[0][0] == "x" * 20_000_000


def test_nothing_is_left_after_an_error_or_a_cancel(spark_server: Server, sql: Sql) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        sql.spark("SELECT 1 / (id - 1999999) FROM range(2000000)")
    statement = Background(spark_server, "SELECT id, sha2(CAST(id AS STRING), 512) FROM range(200000000)")
    eventually(lambda: scratch(spark_server) or not statement.is_alive(), 60)
    statement.cancel()
    statement.close()
    assert statement.error is not None
    eventually(lambda: scratch(spark_server) == [], 5)


@pytest.mark.heavy
def test_ten_million_rows_through_a_small_heap(spark_here: None, tmp_path: Path) -> None:
    server = start_with_spark(tmp_path, "--spark-memory", "1GiB")
    try:
        with Client(server.thrift_url) as client:
            client.open()
            columns = "id, CAST(id AS STRING) AS s, id / 7 AS d, CAST(id % 1000 AS INT) AS i, DATE'2024-01-01' AS e"
            result = client.execute(f"SELECT {columns} FROM range(10000000)", configuration=SPARK)
            count = total = 0
            for batch in result.batches():
                count += batch.num_rows
                total += pa.compute.sum(batch.column(0)).as_py()
        assert (count, total) == (10_000_000, 49_999_995_000_000)
        assert scratch(server) == []
    finally:
        assert server.stop() == 0


def _counts(sql: Sql) -> bool:
    try:
        return sql.spark("SELECT count(*) FROM range(100000)") == [(100_000,)]
    except ServerOperationError as error:
        assert "RESOURCE_EXHAUSTED" in str(error)
        return False


@pytest.mark.heavy
def test_a_full_disk_is_told_as_such(spark_here: None, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "spark"
    folder.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no small file system can be mounted here")
    try:
        server = start_with_spark(tmp_path)
        try:
            with connect_to(server) as connection:
                sql = Sql(connection)
                with pytest.raises(Exception, match="no space left") as raised:
                    sql.spark("SELECT id, sha2(CAST(id AS STRING), 512) FROM range(3000000)")
                assert "RESOURCE_EXHAUSTED" in str(raised.value) and "SQLSTATE: 53100" in str(raised.value)
                assert scratch(server) == []
                # Writers that failed hold what they wrote until they are garbage.
                eventually(lambda: _counts(sql), 15)
        finally:
            assert server.stop() == 0
    finally:
        subprocess.run(["umount", str(folder)], check=True)
