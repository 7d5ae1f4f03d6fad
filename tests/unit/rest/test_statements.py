"""What is told of a statement: once it has ended, as often as it is asked for."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.handler import Caller
from gateway.rest import manifest
from gateway.rest.statements import STATEMENT, StatementApi
from gateway.results.links import LinkSigner
from gateway.service.api import Principal
from tests.unit.service.test_service import House


def test_the_shape_of_a_result_is_written_out_for_few_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of columns take long, and no other thread gets on meanwhile: of one caller one is made, of all two."""
    house = House(tmp_path, slots=3)
    api = StatementApi(house.service, LinkSigner(60))
    statements: dict[str, str] = {}
    for name in ("ann", "bob", "eve"):
        asked = {**dict.fromkeys(STATEMENT), "statement": "SELECT 1", "wait_timeout": 0.0}
        statements[name] = api.execute(Caller(Principal(name), ""), {}, asked)["statement_id"]
    for run in list(house.pool.runs):
        run.plan()
        run.finish()
    busy = [0]
    most = [0]
    lock, written = threading.Lock(), manifest.manifest

    def slowly(outcome: Any) -> dict[str, Any]:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.02)
        with lock:
            busy[0] -= 1
        return written(outcome)

    monkeypatch.setattr(manifest, "manifest", slowly)

    def ask(name: str) -> bytes:
        return manifest.as_json(api.get(Caller(Principal(name), ""), {"statement_id": statements[name]}, {}))

    with ThreadPoolExecutor(24) as executor:
        told = list(executor.map(ask, ("ann", "bob", "eve") * 8))
    assert all(b'"manifest":{"format":"JSON_ARRAY"' in each for each in told)
    assert most == [2]
    most[0] = 0
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(ask, ["ann"] * 8))
    assert most == [1]
