"""A Spark that cannot start, hangs or is killed costs its own statements, with one clear error each, and nothing else."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from databricks.sql.exc import ServerOperationError

from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import Server, connect_to
from tests.live.processes import descendants, eventually
from tests.live.spark import Background, Sql, jvm_of, start_with_spark
from tests.spark.test_running import COUNTED, SCAN, SPARK, running

pytestmark = pytest.mark.spark


@pytest.fixture
def own(spark_here: None, tmp_path: Path) -> Iterator[Server]:
    """A gateway whose Spark may be harmed."""
    server = start_with_spark(tmp_path / "a place with spaces")
    yield server
    Background.end_all()
    if server.process.poll() is None:
        assert server.stop() == 0


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.append(pid)
    return found


def told_to_try_again(statement: Background) -> bool:
    return statement.error is not None and "WORKER_LOST" in str(statement.error) and "08006" in str(statement.error)


def answers_again(sql: Sql) -> bool:
    """Whether Spark answers; until its end has been noticed, it is lost."""
    try:
        return sql.spark(COUNTED) == [(4950,)]
    except ServerOperationError as error:
        assert "send it again" in str(error)
        return False


@pytest.mark.heavy
def test_a_hung_and_a_killed_jvm_and_a_killed_gateway(own: Server) -> None:
    with connect_to(own) as connection:
        sql = Sql(connection)
        # The first statement waits for the start and says so; embedded ones do not.
        with Client(own.thrift_url) as client:
            client.open()
            told = []
            embedded = []

            def look(status: ttypes.TGetOperationStatusResp) -> None:
                told.append((status.operationState, status.progressUpdateResponse.footerSummary))
                start = time.monotonic()
                assert sql.embedded("SELECT 1") == [(1,)]
                embedded.append(time.monotonic() - start)

            client.execute(COUNTED, configuration=SPARK, progress=look, direct=False).table()
        assert (ttypes.TOperationState.PENDING_STATE, "Waiting for Spark to start") in told
        assert sorted(embedded)[len(embedded) // 2] < 0.5

        for how, seconds in ((signal.SIGSTOP, 15.0), (signal.SIGKILL, 15.0)):
            jvm = jvm_of(own)
            assert jvm is not None
            statement = Background(own, SCAN)
            running(own, statement)
            start = time.monotonic()
            os.kill(jvm, how)
            while statement.is_alive():
                assert sql.embedded("SELECT 1") == [(1,)]
                assert time.monotonic() - start < seconds, how
            statement.close()
            assert told_to_try_again(statement), statement.error
            eventually(lambda jvm=jvm: not alive([jvm]), 10)  # type: ignore[misc]
            assert sql.spark(COUNTED) == [(4950,)]  # by a new JVM

        statement = Background(own, SCAN)
        running(own, statement)
    below = list(descendants(own.process.pid))
    assert len(below) >= 3
    own.process.kill()
    own.process.wait()
    eventually(lambda: not alive(below), 20)


@pytest.mark.heavy
def test_nothing_of_a_killed_jvm_is_left_among_temporary_files(own: Server) -> None:
    """Its libraries and folders lie below the state, where the next one sweeps them."""
    folder = own.warehouse.parent
    with connect_to(own) as connection:
        sql = Sql(connection)
        for name in ("one", "two"):
            sql.spark(f"CREATE TABLE main.default.{name} AS SELECT id FROM range(10)")  # with libraries that compress
            jvm = jvm_of(own)
            assert jvm is not None
            opened = {line.split(maxsplit=5)[-1] for line in Path(f"/proc/{jvm}/maps").read_text().splitlines()}
            libraries = {
                Path(path).name: path for path in opened if re.match(r".*/(snappy|liblz4|libzstd)[^/]*\.so$", path)
            }
            assert libraries
            assert [path for path in libraries.values() if not path.startswith(f"{folder}/")] == []
            os.kill(jvm, signal.SIGKILL)
            eventually(lambda: answers_again(sql), 120)
        assert len(list((folder / "state" / "spark").iterdir())) == 1


@pytest.mark.heavy
def test_tasks_that_nothing_stops_do_not_keep_the_cores(own: Server) -> None:
    """A loop of Java's that asks nobody: its statement ends when it is cancelled, its tasks do not."""
    texts = "repeat(CAST(id AS STRING), 100000), repeat(CAST(id + 1 AS STRING), 100000)"
    compared = f"SELECT max(levenshtein({texts})) FROM range(0, 100, 1, 4)"
    with connect_to(own) as connection:
        sql = Sql(connection)
        assert sql.spark(COUNTED) == [(4950,)]
        statement = Background(own, compared)
        running(own, statement)
        time.sleep(2)
        statement.cancel()
        statement.join(30)
        assert "WORKER_LOST" not in str(statement.error)
        jvm = jvm_of(own)
        assert jvm is not None
        eventually(lambda: not alive([jvm]), 60)
    # On a machine with much to do the statement itself may be too slow to end, which has the same end.
    told = ("tasks of a statement that was over did not end", "a cancelled statement did not stop")
    eventually(lambda: any(text in own.log.read_text() for text in told), 30)
    with connect_to(own) as connection:  # by a new JVM
        assert Sql(connection).spark(COUNTED) == [(4950,)]


def test_a_shortage_of_memory_is_told_as_such(own: Server) -> None:
    lists = "SELECT collect_list(repeat(CAST(id AS STRING), 1000)) AS c FROM range(20000000)"
    with connect_to(own) as connection:
        sql = Sql(connection)
        with pytest.raises(Exception, match="SQLSTATE") as raised:
            sql.spark(f"SELECT size(c) FROM ({lists})")
        told = str(raised.value)
        assert "\tat " not in told
        assert "memory" in told.lower() and ("RESOURCE_EXHAUSTED" in told or "WORKER_LOST" in told), told
        assert sql.spark("SELECT 1") == [(1,)]


@pytest.mark.heavy
def test_a_write_whose_jvm_is_lost_says_that_it_may_have_been_committed(own: Server) -> None:
    with connect_to(own) as connection:
        Sql(connection).spark(COUNTED)
    statement = Background(own, f"CREATE TABLE lost AS {SCAN}")
    running(own, statement)
    time.sleep(2)  # past its analysis
    jvm = jvm_of(own)
    assert jvm is not None
    os.kill(jvm, signal.SIGKILL)
    statement.close()
    assert told_to_try_again(statement) and "may or may not have been committed" in str(statement.error)
    below = list(descendants(own.process.pid))
    assert own.stop() == 0  # SIGTERM
    eventually(lambda: not alive(below), 20)


def test_a_master_that_cannot_be_reached(spark_here: None, tmp_path: Path) -> None:
    server = start_with_spark(tmp_path, master="spark://127.0.0.1:1")
    statement = Background(server, COUNTED)
    with connect_to(server) as connection:
        start = time.monotonic()
        while statement.is_alive() and time.monotonic() - start < 110:
            before = time.monotonic()
            assert Sql(connection).embedded("SELECT 1") == [(1,)]
            assert time.monotonic() - before < 5
            time.sleep(0.5)
    statement.close()
    assert statement.error is not None and "cannot be started" in str(statement.error), statement.error
    assert "127.0.0.1:1 does not answer" in str(statement.error) and "\tat " not in str(statement.error)
    assert server.stop() == 0
