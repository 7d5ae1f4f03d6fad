"""Statements that run in the background, are cancelled, time out, or run side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from databricks.sql import exc

from tests.attacks.attacker import cpu_seconds, workers
from tests.live.gateway import Server, connect_to, start_server

ENDLESS = "SELECT count(*) FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id % 7 = 1"


def test_async(connect: Any) -> None:
    with connect().cursor() as cursor:
        cursor.execute_async("SELECT id FROM range(100001) ORDER BY id")
        while cursor.is_query_pending():
            time.sleep(0.02)
        cursor.get_async_execution_result()
        assert [r[0] for r in cursor.fetchmany(3)] == [0, 1, 2]
        assert len(cursor.fetchall()) == 99_998


def test_async_error(connect: Any) -> None:
    with connect().cursor() as cursor:
        cursor.execute_async("SELECT 1 / (id - 5) FROM range(10)")
        with pytest.raises(exc.Error, match="DIVIDE_BY_ZERO"):
            cursor.get_async_execution_result()


def test_cancel(connect: Any) -> None:
    connection = connect()
    with connection.cursor() as cursor:
        failure: list[BaseException] = []

        def run() -> None:
            try:
                cursor.execute(ENDLESS).fetchall()
            except exc.Error as error:
                failure.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        deadline = time.monotonic() + 30
        while cursor.active_command_id is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        cursor.cancel()
        thread.join(30)
        assert not thread.is_alive()
        assert len(failure) == 1
    with connection.cursor() as after:
        assert after.execute("SELECT 1").fetchone()[0] == 1


def test_cancel_stops_the_work(tmp_path: Path) -> None:
    server = start_server(tmp_path, "--slots", "1")
    try:
        with connect_to(server) as connection, connection.cursor() as cursor:
            cursor.execute_async(ENDLESS)
            idle = used(server)
            wait_until(lambda: used(server) - idle > 4.0, 60, "the statement does not run")
            cursor.cancel()
            with pytest.raises(exc.Error, match="CANCEL"):
                cursor.get_async_execution_result()
            wait_until(lambda: growth(server, 1.0) < 0.05, 20, "the engine still computes")
            assert cursor.execute("SELECT 1").fetchone()[0] == 1
    finally:
        assert server.stop() == 0


def used(server: Server) -> float:
    """CPU seconds of the engine's processes that are alive."""
    return sum(cpu_seconds(pid) or 0.0 for pid in workers(server))


def growth(server: Server, seconds: float) -> float:
    """CPU seconds that the engine's processes use, the new ones among them, within so much time."""
    before = {pid: cpu_seconds(pid) or 0.0 for pid in workers(server)}
    time.sleep(seconds)
    return sum(max(0.0, (cpu_seconds(pid) or 0.0) - before.get(pid, 0.0)) for pid in workers(server))


def wait_until(holds: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Until it holds; fails with `otherwise` after `seconds`."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)


def test_timeout(connect: Any) -> None:
    connection = connect(session_configuration={"STATEMENT_TIMEOUT": "1"})
    with connection.cursor() as cursor, pytest.raises(exc.Error, match=r"QUERY_EXECUTION_TIMEOUT_EXCEEDED.*57KD0"):
        cursor.execute(ENDLESS).fetchall()
    with connect().cursor() as other:
        assert other.execute("SELECT 2").fetchone()[0] == 2


def test_two_statements_at_once(connect: Any) -> None:
    results: dict[int, int] = {}

    def run(which: int) -> None:
        with connect().cursor() as cursor:
            results[which] = cursor.execute(f"SELECT sum(id) + {which} FROM range(1000000)").fetchone()[0]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {i: 499999500000 + i for i in range(6)}


def test_two_cursors_read_alternately(connect: Any) -> None:
    connection = connect()
    with connection.cursor() as a, connection.cursor() as b:
        a.execute("SELECT id FROM range(30000) ORDER BY id")
        b.execute("SELECT -id FROM range(30000) ORDER BY id")
        for i in range(5):
            assert a.fetchone()[0] == i
            assert b.fetchone()[0] == -i


def test_an_error_leaves_other_sessions_alone(connect: Any) -> None:
    with connect().cursor() as good, connect().cursor() as bad:
        good.execute("SELECT id FROM range(50000) ORDER BY id")
        with pytest.raises(exc.Error):
            bad.execute("SELECT nonsense")
        assert len(good.fetchall()) == 50_000


# Two million rows, the last but a few of which fails: some thirty megabytes come before it.
FAILS_LATE = "SELECT id, concat('row ', CAST(id AS STRING)) AS s, 1 div (id - 1999000) AS x FROM range(2000000)"


@pytest.mark.parametrize("in_background", [False, True])
def test_a_row_that_fails_late_is_an_error_of_the_statement(connect: Any, in_background: bool) -> None:
    with connect().cursor(arraysize=1000) as cursor:
        with pytest.raises(exc.ServerOperationError if not in_background else exc.Error, match="DIVIDE_BY_ZERO"):
            if in_background:
                cursor.execute_async(FAILS_LATE)
                cursor.get_async_execution_result()
            else:
                cursor.execute(FAILS_LATE)
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_cancelling_what_has_ended_does_no_harm(connect: Any) -> None:
    with connect().cursor(arraysize=10) as cursor:
        cursor.execute("SELECT id FROM range(5) ORDER BY id")  # closed with its direct results
        cursor.cancel()
        cursor.cancel()
        assert [r[0] for r in cursor.fetchall()] == [0, 1, 2, 3, 4]
        cursor.execute("SELECT id FROM range(50) ORDER BY id")  # ended, but open
        assert cursor.fetchone()[0] == 0
        cursor.cancel()
        assert [r[0] for r in cursor.fetchall()] == list(range(1, 50))
        cursor.cancel()
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]
