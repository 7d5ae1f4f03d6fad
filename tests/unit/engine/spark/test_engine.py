"""Sessions of a Connect server that come and go, without a server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.engine.spark import session as sessions
from gateway.engine.spark.engine import SparkEngine, SparkOptions
from gateway.engine.spark.session import SERVER_GONE


class PySparkException(Exception):  # noqa: N818 (pyspark's name: it is not imported here)
    """As pyspark's, with a condition."""

    def getCondition(self) -> str:  # noqa: N802 (pyspark's name)
        return str(self)


class Session:
    """A session of a server that knows it until it is told otherwise."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.closed = False
        self.conf = self.client = self

    def get(self, name: str) -> str:
        if self.failure is not None:
            raise self.failure
        return name

    def close(self) -> None:
        self.closed = True


FORGOTTEN = PySparkException("INVALID_HANDLE.SESSION_CLOSED")
GONE = ConnectionResetError()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SparkEngine:
    """An engine of a server that is there; its end is a SystemExit."""

    def exit_with(code: int) -> None:
        raise SystemExit(code)

    def connect(master: str) -> Session:
        return Session()

    monkeypatch.setattr(os, "_exit", exit_with)
    monkeypatch.setattr(sessions, "connect", connect)
    made = SparkEngine(SparkOptions("sc://127.0.0.1:1", Path("jars"), Path("scratch")))
    made._root = Session()
    return made


def test_a_session_that_the_server_has_dropped_is_replaced_by_an_empty_one(engine: SparkEngine) -> None:
    with engine.slot("key", {}) as first, engine.slot("key", {}) as second:
        first.database = second.database = "there"
    with engine.slot("key", {}) as again:
        assert again is first
    first.spark.failure = second.spark.failure = FORGOTTEN
    with engine.slot("key", {}) as new:
        assert new not in (first, second) and new.database == ""
    assert first.spark.closed and second.spark.closed and not new.spark.closed
    with engine.slot("key", {}) as again:
        assert again is new


@pytest.mark.parametrize("failure", [FORGOTTEN, GONE])
def test_a_server_that_knows_no_session_any_more_is_gone(engine: SparkEngine, failure: Exception) -> None:
    with engine.slot("key", {}) as slot:
        pass
    engine._root.failure = slot.spark.failure = failure
    with pytest.raises(SystemExit) as raised, engine.slot("key", {}):
        pass
    assert raised.value.code == SERVER_GONE
    with pytest.raises(SystemExit):
        engine.end_if_lost(failure)


def test_the_loss_of_one_session_is_no_loss_of_the_server(engine: SparkEngine) -> None:
    engine.end_if_lost(FORGOTTEN)
    engine.end_if_lost(ValueError("Connection reset"))
    with pytest.raises(SystemExit):
        engine.end_if_lost(GONE)


def test_a_sign_of_life_is_the_servers_answer(engine: SparkEngine) -> None:
    engine._alive -= 60
    engine._root.failure = GONE
    before = engine._alive
    with pytest.raises(ConnectionResetError):
        engine._listen()
    assert engine._alive == before
    engine._root.failure = None
    engine._listen()
    assert engine._alive > before + 59
