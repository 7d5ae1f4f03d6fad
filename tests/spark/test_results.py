"""Large results: in order, in bounded memory, and nothing of them is left behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from databricks.sql.exc import ServerOperationError

from gateway.delta.schema import parse_schema, struct_of
from gateway.engine.spark import arrow_files, rows
from gateway.errors import ServerError
from gateway.protocol.client import Client
from gateway.sqltypes import StructType
from tests.live.gateway import Server
from tests.live.processes import descendants, eventually
from tests.live.spark import Background, Sql, jvm_of, scratch, start_with_spark

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


FIXED = """
    id, CAST(id % 100 AS TINYINT) AS t, CAST(id AS SMALLINT) AS s, CAST(id AS INT) AS i, id % 2 = 0 AS b,
    CAST(id / 7 AS FLOAT) AS f, id / 7 AS d, CAST(id * 1.25 AS DECIMAL(38, 3)) AS n, CAST(id AS DECIMAL(9, 2)) AS m,
    date_add(DATE'1900-01-01', CAST(id AS INT)) AS e, timestamp_seconds(id * 100003) AS ts,
    CAST(timestamp_seconds(id * 100003) AS TIMESTAMP_NTZ) AS ntz, make_dt_interval(0, 0, 0, id) AS dt,
    make_ym_interval(0, CAST(id AS INT)) AS ym, hour(timestamp_seconds(id)) AS h, CAST(NULL AS INT) AS z,
    if(id % 3 = 0, NULL, id) AS o
"""


def test_columns_of_every_fixed_width_by_both_ways(sql: Sql) -> None:
    """Small results are collected, large ones are written by the tasks as Arrow."""
    sql.auto("SET TIME ZONE 'America/New_York'")
    small = sql.spark(f"SELECT {FIXED} FROM range(9000)")
    large = sql.spark(f"SELECT {FIXED} FROM range(0, 30000, 1, 7)")
    assert len(large) == 30_000 and [row[0] for row in large] == list(range(30_000))
    assert large[:9000] == small and small[1][-3] == 19
    assert sql.spark("SELECT id FROM range(30000) WHERE id < 0") == []


def test_settings_of_the_session_hold_in_the_tasks_of_a_large_result(sql: Sql) -> None:
    sql.auto("SET ANSI_MODE = false")
    found = sql.spark(
        "SELECT CAST(concat('x', id) AS INT), element_at(array(1), CAST(id AS INT) + 1) FROM range(20000)"
    )
    assert found[:2] == [(None, 1), (None, None)] and len(found) == 20_000
    sql.auto("SET ANSI_MODE = true")
    with pytest.raises(ServerOperationError, match="INVALID_ARRAY_INDEX_IN_ELEMENT_AT"):
        sql.spark("SELECT element_at(array(1), CAST(id AS INT) + 1) FROM range(20000)")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT repeat('x', 1000000), id FROM range(10000) LIMIT 900",
        pytest.param("SELECT id, repeat('x', 1000000) FROM range(0, 900, 1, 3)", marks=pytest.mark.heavy),
        pytest.param("SELECT id, map(1, repeat('x', 1000000)) FROM range(900)", marks=pytest.mark.heavy),
        pytest.param("SELECT id, array(repeat('x', 10000000)) FROM range(95)", marks=pytest.mark.heavy),
        pytest.param("SELECT id, sequence(0L, 1200000L) AS a FROM range(95)", marks=pytest.mark.heavy),
    ],
)
def test_wide_values_in_bounded_memory(spark_server: Server, text: str) -> None:
    """900 MB of text; ten thousand rows are few only where they are narrow."""
    with Client(spark_server.thrift_url) as client:
        client.open()
        client.execute("SELECT 1", configuration=SPARK).table()
        jvm, worker = jvm_of(spark_server), worker_of(spark_server)
        before = peak_mebibytes(worker)
        sizes = [batch.nbytes for batch in client.execute(text, configuration=SPARK).batches()]
    assert sum(sizes) > 900_000_000 and max(sizes) < 80_000_000
    assert jvm_of(spark_server) == jvm
    assert peak_mebibytes(worker) - before < 250


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


NESTED_FEW = "SELECT id, array(CAST(id AS STRING)) AS a FROM range(0, 9, 1, 3)"


def _schema_of(frame: Any) -> StructType:
    return struct_of(parse_schema(frame.schema.jsonValue()))


@pytest.mark.parametrize("text", ["SELECT id FROM range(0, 9, 1, 3)", NESTED_FEW], ids=["Arrow", "Parquet"])
def test_a_part_that_another_host_keeps_is_missed(
    spark: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else tells that executors have disks of their own: each of them, and the driver, is content."""
    frame = spark.sql(text)
    schema = _schema_of(frame)
    assert sum(b.num_rows for b in rows.written(frame, schema, tmp_path / "all")) == 9
    for module, name in ((arrow_files, "write"), (rows, "_write_parquet")):
        monkeypatch.setattr(module, name, _losing(getattr(module, name)))
    with pytest.raises(ServerError, match="--state must be a folder that all hosts of the cluster share"):
        next(rows.written(frame, schema, tmp_path / "some"))


def _losing(write: Callable[..., int]) -> Callable[..., int]:
    def losing(frame: Any, folder: Path, *others: int) -> int:
        found = write(frame, folder, *others)
        sorted(folder.glob("part-*"))[1].unlink()
        return found

    return losing


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, CAST(id AS STRING) FROM range(9) WHERE id < 0",
        "SELECT CAST(id AS STRING), count(*) FROM range(9) WHERE id > rand() + 9 GROUP BY id ORDER BY id",
        "SELECT * FROM VALUES ('a') AS t(a) WHERE false",
    ],
)
def test_a_result_without_rows_is_whole(spark: Any, text: str, tmp_path: Path) -> None:
    frame = spark.sql(text)
    assert list(rows.written(frame, _schema_of(frame), tmp_path / "none")) == []


NESTED = {
    "CAST(NULL AS ARRAY<STRING>)": None,
    "array(repeat('x', 9000), NULL)": 9008,
    "array(NULL, array(), array('', repeat('x', 9000)))": 9020,
    "map('a', repeat('x', 9000))": 9009,
    "map(repeat('x', 9000), NULL)": 9008,
    "map(1, array(named_struct('a', 1, '`b c', map(2, repeat('x', 9000)))))": 9024,
    "named_struct('a', NULL, 'select', named_struct('b', array(repeat('x', 9000))))": 9004,
    "named_struct('a', 1, 'A', repeat('x', 9000))": 9005,
    "array(encode(repeat('x', 9000), 'UTF-8'))": 9004,
    "array_repeat(1.5D, 9000)": 72000,
    "array_repeat('', 9000)": 36000,
    "array_repeat(INTERVAL '1' DAY, 9000)": 72000,
}


def test_the_bytes_inside_of_nested_values(spark: Any) -> None:
    frame = spark.sql(f"SELECT {', '.join(NESTED)}")
    schema = _schema_of(frame)
    sizes = [rows._bytes(f"c{i}", field.type) for i, field in enumerate(schema.fields)]
    assert list(rows._positional(frame, schema).selectExpr(*sizes).collect()[0]) == list(NESTED.values())


def test_a_value_too_wide_inside_of_a_nested_one_is_not_collected(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_GUARDED_BYTES", 9 * 90)
    for length, wide in ((80, False), (90, True)):
        frame = spark.sql(f"SELECT id, array(repeat('x', {length})) AS a FROM range(9)")
        schema = _schema_of(frame)
        assert rows.is_small(frame, schema)
        with pytest.raises(rows.TooWideError) if wide else contextlib.nullcontext():
            assert sum(batch.num_rows for batch in rows.collected(frame, schema)) == 9


@pytest.mark.heavy
def test_files_of_few_rows_each_are_read_in_order(spark: Any, tmp_path: Path) -> None:
    """The thousand-and-first file of a partition is called c1000, which sorts before c101."""
    limit = "spark.sql.files.maxRecordsPerFile"
    spark.conf.set(limit, "1")
    try:
        frame = spark.sql("SELECT CAST(id AS STRING) AS s FROM range(1005) ORDER BY id")
        batches = list(rows.written(frame, _schema_of(frame), tmp_path / "many"))
    finally:
        spark.conf.unset(limit)
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == [str(i) for i in range(1005)]


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
