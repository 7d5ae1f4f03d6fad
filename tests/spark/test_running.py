"""Statements side by side on one Spark: cancel, timeout, fairness, progress, metrics."""

from __future__ import annotations

import threading
import time
import urllib.request
from typing import Any

import pytest
from databricks.sql.exc import ServerOperationError

from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import Server
from tests.live.processes import cpu_seconds, eventually
from tests.live.spark import Background, Sql, jvm_of, scratch

pytestmark = pytest.mark.spark

# Endless, in short tasks: a thread of Spark's is free for others only between two tasks.
SCAN = "SELECT count(*) AS n FROM range(0, 4000000000, 1, 20000) WHERE sha2(CAST(id AS STRING), 512) LIKE 'abcdef%'"
ONE_TASK = "SELECT count(*) AS n FROM range(0, 40000000000, 1, 1) WHERE sha2(CAST(id AS STRING), 512) LIKE 'abcdef%'"
JOIN = "SELECT count(*) FROM range(3000000) a JOIN range(3000000) b ON a.id % 7 = b.id % 7 AND hash(a.id, b.id) = 1"
COUNTED = "SELECT sum(id) FROM range(100)"
SPARK = {"gateway.engine": "spark"}


def running(server: Server, statement: Background) -> None:
    """Wait until Spark works on it."""
    jvm = jvm_of(server)
    assert jvm is not None
    before = cpu_seconds(jvm)
    eventually(lambda: cpu_seconds(jvm) - before > 1.0 or not statement.is_alive(), 60)
    assert statement.is_alive(), statement.error


def quiet(server: Server) -> bool:
    jvm = jvm_of(server)
    assert jvm is not None
    before = cpu_seconds(jvm)
    time.sleep(1.0)
    return cpu_seconds(jvm) - before < 0.4


@pytest.mark.parametrize(
    "text", [ONE_TASK, JOIN, f"CREATE OR REPLACE TABLE never AS {SCAN}"], ids=["scan", "join", "ctas"]
)
def test_cancel_stops_sparks_jobs_and_no_other_statement(spark_server: Server, sql: Sql, text: str) -> None:
    assert sql.spark(COUNTED) == [(4950,)]
    jvm = jvm_of(spark_server)
    statement = Background(spark_server, text)
    running(spark_server, statement)
    asked = statement.cancel()
    statement.close()
    assert statement.ended is not None and statement.ended - asked < 3
    assert statement.error is not None and "cancel" in str(statement.error).lower()
    assert sql.spark(COUNTED) == [(4950,)]
    eventually(lambda: quiet(spark_server), 4)  # a look takes a second
    assert jvm_of(spark_server) == jvm, "the JVM was ended"
    assert scratch(spark_server) == []


def test_a_timeout_stops_sparks_jobs(spark_server: Server, sql: Sql) -> None:
    sql.spark(COUNTED)
    jvm = jvm_of(spark_server)
    sql.auto("SET STATEMENT_TIMEOUT = 3")
    start = time.monotonic()
    with pytest.raises(Exception, match="did not end within 3 seconds"):
        sql.spark(SCAN)
    assert time.monotonic() - start < 10
    eventually(lambda: quiet(spark_server), 10)
    assert jvm_of(spark_server) == jvm


def test_a_short_statement_ends_while_a_long_one_runs_and_survives_its_cancel(spark_server: Server, sql: Sql) -> None:
    sql.spark(COUNTED)
    long = Background(spark_server, SCAN)
    running(spark_server, long)
    assert sql.spark("SELECT sum(id) FROM range(0, 1000000, 1, 8)") == [(499999500000,)]
    assert long.is_alive()
    other = Background(
        spark_server, "SELECT count(*) FROM range(4000000) WHERE sha2(CAST(id AS STRING), 512) LIKE 'f%'"
    )
    long.cancel()
    long.close()
    other.close()
    assert other.error is None and len(other.rows) == 1


def test_long_statements_on_spark_do_not_hold_up_the_embedded_engine(spark_server: Server, sql: Sql) -> None:
    """More of them than the gateway has slots."""
    sql.spark(COUNTED)
    long = [Background(spark_server, SCAN) for _ in range(4)]
    running(spark_server, long[0])
    for _ in range(3):
        start = time.monotonic()
        assert sql.embedded("SELECT 1") == [(1,)]
        assert time.monotonic() - start < 5
    for statement in long:
        statement.cancel()
    for statement in long:
        statement.close()
        assert statement.error is not None


def test_statements_of_one_session_do_not_wait_for_each_other(spark_server: Server) -> None:
    with Client(spark_server.thrift_url) as client, Client(spark_server.thrift_url) as other:
        client.open()
        other._session = client._session
        stop = threading.Event()
        errors: list[Exception] = []

        def write() -> None:
            try:
                with_progress(other, f"CREATE OR REPLACE TABLE one_session AS {SCAN}", stop)
            except Exception as error:  # noqa: BLE001 - looked at below
                errors.append(error)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        time.sleep(3)
        try:
            assert client.execute(COUNTED, configuration=SPARK).table().to_pydict() == {"sum(id)": [4950]}
            assert thread.is_alive()
        finally:
            stop.set()
            thread.join(60)
            other._session = None
    assert errors and "stopped by the test" in str(errors[0])


def with_progress(client: Client, text: str, stop: threading.Event) -> list[Any]:
    """Run a statement until `stop`; all that its polls told."""
    told: list[Any] = []

    def look(status: Any) -> None:
        told.append(status)
        if stop.is_set():
            raise RuntimeError("stopped by the test")

    client.execute(text, configuration=SPARK, progress=look, direct=False)
    return told


def test_progress_is_told(spark_server: Server) -> None:
    with Client(spark_server.thrift_url) as client:
        client.open()
        told = with_progress(
            client,
            "SELECT count(*) FROM range(0, 6000000, 1, 24) WHERE sha2(CAST(id AS STRING), 512) LIKE 'abcdef%'",
            threading.Event(),
        )
    progress = [s.progressUpdateResponse for s in told if s.operationState == ttypes.TOperationState.RUNNING_STATE]
    fractions = [p.progressedPercentage for p in progress if "tasks" in p.footerSummary]
    assert fractions and fractions == sorted(fractions) and 0 < max(fractions) <= 1


def test_metrics_tell_that_spark_is_up(spark_server: Server, sql: Sql) -> None:
    sql.spark(COUNTED)
    with pytest.raises(ServerOperationError, match="UNRESOLVED_COLUMN"):
        sql.spark("SELECT transform(array(1), x -> x + nowhere)")
    with urllib.request.urlopen(spark_server.url + "/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    assert any('engine_up{engine="spark"} 1.0' in line for line in lines)
    counted = [line for line in lines if "statements_total{" in line and 'state="ERROR"' in line]
    assert any('engine="spark"' in line for line in counted)
