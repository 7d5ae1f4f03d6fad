"""What must hold of a gateway over any kind of cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.gateway import Server
from tests.live.spark import Background, Sql
from tests.spark.test_running import COUNTED, SCAN
from tests.spark.test_types import VALUES, WRITTEN, same


def core(server: Server, connection: Any) -> None:
    """Statements, types, results that executors write, both engines on one table, an error, a cancel."""
    sql = Sql(connection)
    assert sql.spark(COUNTED) == [(4950,)]
    same(sql, f"SELECT {', '.join(f'{v} AS {k}' for k, v in VALUES.items())}{WRITTEN}", 2)
    rows = sql.spark("SELECT id FROM range(300000) ORDER BY id")
    assert rows == [(i,) for i in range(300_000)]
    sql.embedded("CREATE TABLE t AS SELECT id FROM range(10)")
    sql.spark("DELETE FROM t WHERE id < 4")
    assert sql.embedded("SELECT count(*) FROM t") == sql.spark("SELECT count(*) FROM t") == [(6,)]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        sql.spark("SELECT 1 / (id - 5) FROM t")
    statement = Background(server, SCAN)
    time.sleep(5)  # it runs by now
    asked = statement.cancel()
    statement.close()
    assert statement.ended is not None and statement.ended - asked < 3
    assert sql.spark(COUNTED) == [(4950,)]
    time.sleep(4)  # the engine would be replaced by now
    assert "did not stop" not in server.log.read_text()


def dies(server: Server, connection: Any, kill: Callable[[], None]) -> None:
    """The cluster is killed in the middle of a statement; Spark itself would wait for another master for ever."""
    sql = Sql(connection)
    assert sql.spark(COUNTED) == [(4950,)]
    statement = Background(server, SCAN)
    time.sleep(5)  # it runs by now
    kill()
    killed = time.monotonic()
    statement.join(60)
    assert statement.ended is not None and statement.ended - killed < 40
    text = str(statement.error)
    assert "WORKER_LOST" in text and "executors are gone and its master does not answer" in text
    assert sql.embedded("SELECT 1") == [(1,)]
    with pytest.raises(Exception, match=r"Spark cannot be started: .* does not answer: Connection refused"):
        sql.spark(COUNTED)
