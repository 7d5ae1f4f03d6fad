"""The core on a Spark Connect server that somebody else runs."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from databricks.sql import exc

from gateway.engine.spark.session import ENDS, SERVER_GONE
from gateway.protocol.client import Client
from tests.live.gateway import Server, clean_environment, connect_to
from tests.live.processes import descendants
from tests.live.spark import Background, Sql, start_with_spark
from tests.spark.test_running import COUNTED, SCAN, SPARK
from tests.spark.test_types import VALUES, WRITTEN, same

pytestmark = pytest.mark.spark

CONNECT_SERVER = """
import sys
from pathlib import Path
from gateway.engine.spark import session, setup
settings = session.settings(
    setup.check(setup.default_folder()),
    Path(sys.argv[1]),
    connect_port=int(sys.argv[2]),
    extra=dict(pair.split("=") for pair in sys.argv[3:]),
)
spark = session.start("local[2]", settings)
print("ready", flush=True)
sys.stdin.read()
spark.stop()
"""


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class ConnectServer(NamedTuple):
    """The address of a Connect server, and the process whose child its JVM is."""

    url: str
    process: subprocess.Popen[bytes]


@contextlib.contextmanager
def connect_server_in(scratch: Path, *settings: str) -> Iterator[ConnectServer]:
    """A Connect server with further settings (``key=value``)."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", CONNECT_SERVER, str(scratch), str(port), *settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        for line in process.stdout:  # the JVM may have something to say first
            if line == b"ready\n":
                break
        else:
            raise RuntimeError("the Connect server did not start")
        yield ConnectServer(f"sc://127.0.0.1:{port}", process)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


@pytest.fixture(scope="module")
def connect_server(spark_here: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Connect server."""
    with connect_server_in(tmp_path_factory.mktemp("connect-server")) as server:
        yield server.url


@pytest.fixture(scope="module")
def server(connect_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway over the Connect server."""
    running = start_with_spark(tmp_path_factory.mktemp("connect"), master=connect_server)
    yield running
    assert running.stop() == 0
    assert "\tat " not in running.log.read_text()


@pytest.fixture
def remote(server: Server) -> Iterator[Sql]:
    """Statements on a new connection."""
    with connect_to(server) as connection:
        yield Sql(connection)


def test_tables_views_parameters_and_names(remote: Sql, server: Server) -> None:
    remote.embedded("CREATE OR REPLACE TABLE t AS SELECT id, id * 2 AS b FROM range(10)")
    assert remote.spark("SELECT sum(b), count(*) FROM main.default.t") == [(90, 10)]
    remote.spark("INSERT INTO t VALUES (100, 200)")
    assert remote.embedded("SELECT max(b) FROM t") == [(200,)]
    remote.auto("CREATE TEMPORARY VIEW v AS SELECT b FROM t WHERE id > 8")
    assert remote.spark("SELECT * FROM v ORDER BY 1") == [(18,), (200,)]
    assert remote.spark("SELECT :a + :b", a=1, b=2) == [(3,)]
    assert remote.spark("SELECT " + ", ".join("?" * 12), *range(12)) == [tuple(range(12))]
    remote.spark("CREATE TABLE made AS SELECT 1 AS n")
    assert remote.embedded("SELECT n FROM made") == [(1,)]


def test_a_table_that_is_made_anew_is_never_stale(remote: Sql) -> None:
    for round_ in range(3):
        remote.embedded(f"CREATE TABLE anew AS SELECT {round_} AS a{round_ % 2} FROM range({round_ + 1})")
        assert remote.spark("SELECT * FROM anew") == [(round_,)] * (round_ + 1)
        remote.embedded("DROP TABLE anew")


def test_a_function_that_another_session_changes(remote: Sql, server: Server) -> None:
    with connect_to(server) as connection:
        other = Sql(connection)
        for step in range(1, 4):
            remote.auto(f"CREATE OR REPLACE FUNCTION shared(n INT) RETURNS INT RETURN n + {step}")
            assert other.auto("SELECT shared(0)") == remote.auto("SELECT shared(0)") == [(step,)]


def test_errors(remote: Sql) -> None:
    remote.embedded("CREATE TABLE IF NOT EXISTS faulty AS SELECT 1 AS id")
    for text in ("SELECT 1 / 0", "SELECT *\nFROM nope", "SELECT '😀', zz FROM main.default.faulty"):
        told = []
        for run in (remote.embedded, remote.spark):
            with pytest.raises(Exception, match="SQLSTATE") as raised:
                run(text)
            told.append(str(raised.value))
        assert "\tat " not in told[1] and "spark_catalog" not in told[1]
        assert told[0].split("]")[0] == told[1].split("]")[0]
        if "== SQL" in told[0]:  # the embedded engine tells no position of what fails while it runs
            assert told[0].split("\n\n== SQL")[1:] == told[1].split("\n\n== SQL")[1:]


def test_the_servers_own_user_is_never_told(remote: Sql) -> None:
    remote.embedded("CREATE OR REPLACE TABLE owned AS SELECT 'alice' AS user")
    assert remote.spark("SELECT owned.user, o.`user` FROM owned JOIN owned o ON true") == [("alice", "alice")]
    for text in ("SELECT user", "SELECT `current_user`", "UPDATE owned SET owned.user = session_user"):
        with pytest.raises(Exception, match=r"(current_|session_)?user\b.*Spark's own"):
            remote.spark(text)


def test_types(remote: Sql) -> None:
    months = {"array_of_months"}
    same(remote, f"SELECT {', '.join(f'{v} AS {k}' for k, v in VALUES.items() if k not in months)}{WRITTEN}", 2)


def test_cancel(remote: Sql, server: Server) -> None:
    remote.spark(COUNTED)
    statement = Background(server, SCAN)
    time.sleep(5)
    asked = statement.cancel()
    statement.close()
    assert statement.error is not None and statement.ended is not None and statement.ended - asked < 3
    assert remote.spark(COUNTED) == [(4950,)]
    time.sleep(4)  # the engine would be replaced by now
    assert "did not stop" not in server.log.read_text()


def test_a_large_result_is_streamed_in_order(server: Server) -> None:
    with Client(server.thrift_url) as client:
        client.open()
        result = client.execute(
            "SELECT id, CAST(id AS STRING) AS s FROM range(1000000) ORDER BY id", configuration=SPARK
        )
        assert result.table()["id"].combine_chunks().equals(pa.array(range(1_000_000), pa.int64()))


def test_a_row_that_fails_late_is_an_error_of_the_statement(server: Server) -> None:
    with connect_to(server) as connection, connection.cursor(arraysize=1000) as cursor:
        cursor.execute("SET gateway.engine = spark")
        with pytest.raises(exc.ServerOperationError, match="DIVIDE_BY_ZERO"):
            cursor.execute("SELECT id, repeat('x', 20) AS s, 1 div (id - 1999000) AS q FROM range(0, 2000000, 1, 8)")


def test_a_server_that_is_gone(spark_here: None, tmp_path: Path) -> None:
    server = start_with_spark(tmp_path, master=f"sc://127.0.0.1:{free_port()}")
    try:
        with connect_to(server) as connection:
            start = time.monotonic()
            with pytest.raises(Exception, match="does not answer"):
                Sql(connection).spark(COUNTED)
            assert time.monotonic() - start < 60
            assert Sql(connection).embedded("SELECT 1") == [(1,)]
    finally:
        assert server.stop() == 0


IMPATIENT = (
    "spark.connect.session.manager.defaultSessionTimeout=5s",
    "spark.connect.session.manager.maintenanceInterval=1s",
)


@pytest.mark.heavy
def test_a_server_that_drops_idle_sessions_and_one_that_hangs(spark_here: None, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with connect_server_in(tmp_path / "server", *IMPATIENT) as spark:
        gateway = start_with_spark(tmp_path, master=spark.url)
        with connect_to(gateway) as connection, connect_to(gateway) as another:
            sql, other = Sql(connection), Sql(another)
            for each in (sql, other):
                each.spark("DECLARE VARIABLE n INT DEFAULT 5")
                each.auto("CREATE TEMPORARY VIEW v AS SELECT id FROM range(7)")
                each.spark("SET VARIABLE n = 6")
                assert each.spark("SELECT count(*), max(n) FROM v") == [(7, 6)]
            time.sleep(10)
            assert sql.spark("SELECT count(*), max(n) FROM v") == [(7, 6)]
            time.sleep(10)
            assert sql.spark("SELECT count(*), max(n) FROM v") == [(7, 6)]
            assert other.spark("SELECT count(*), max(n) FROM v") == [(7, 6)]
            assert "engine lost" not in gateway.log.read_text()

            (jvm,) = (pid for pid, line in descendants(spark.process.pid).items() if "deploy" in line)
            statement = Background(gateway, SCAN)
            time.sleep(3)
            os.kill(jvm, signal.SIGSTOP)
            stopped = time.monotonic()
            try:
                statement.join(60)
                assert statement.ended is not None and statement.ended - stopped < 18
                assert "WORKER_LOST" in str(statement.error) and ENDS[SERVER_GONE] in str(statement.error)
                assert sql.embedded("SELECT 1") == [(1,)]
            finally:
                os.kill(jvm, signal.SIGCONT)
            statement.close()
            assert sql.spark("SELECT count(*), max(n) FROM v") == [(7, 6)]
        assert gateway.stop() == 0
