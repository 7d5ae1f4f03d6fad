"""What a job says of a Spark that is gone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.config import load_config
from gateway.engine.spark import session, setup
from gateway.errors import ServerError
from gateway.pipelines.jobs.session import spark_errors, spark_session

_REFUSED = ConnectionRefusedError(111, "Connection refused")


def test_a_call_to_it_is_told_as_its_loss() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(ServerError, match="ingest: Spark was lost") as caught, spark_errors("ingest"):
        raise _REFUSED
    assert caught.value.condition == "WORKER_LOST"


class _Gone:
    """A session whose JVM has ended."""

    conf = SimpleNamespace(set=lambda *_: None)
    sparkContext = SimpleNamespace(_gateway=SimpleNamespace(proc=SimpleNamespace(poll=lambda: -9, returncode=-9)))  # noqa: N815

    def stop(self) -> None:
        raise _REFUSED


def test_to_stop_it_says_nothing_in_the_place_of_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "check", lambda folder: [])
    monkeypatch.setattr(session, "settings", lambda *_, **__: {})
    monkeypatch.setattr(session, "start", lambda *_: _Gone())
    said: list[str] = []
    config = load_config({"warehouse": str(tmp_path), "state": str(tmp_path)})
    with pytest.raises(ServerError, match="Spark was lost"), spark_session(config, said.append):
        raise ServerError("WORKER_LOST", "Spark was lost")
    assert "exit code -9" in said[-1]
