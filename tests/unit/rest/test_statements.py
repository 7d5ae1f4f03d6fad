"""What is told of a statement: once it has ended, as often as it is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.base import Planned
from gateway.protocol.handler import Caller
from gateway.rest import manifest
from gateway.rest.statements import STATEMENT, StatementApi
from gateway.results.links import LinkSigner
from gateway.service.api import Principal
from gateway.sqltypes import INT, StructField, struct
from tests.unit.at_once import AtOnce
from tests.unit.service.test_service import House


def test_the_shape_of_a_result_is_written_out_for_few_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of columns take long, and no other thread gets on meanwhile: of one caller one is made, of all two."""
    house = House(tmp_path, slots=3)
    api = StatementApi(house.service, LinkSigner(60))
    statements: dict[str, str] = {}
    for name in ("ann", "bob", "eve"):
        asked = {**dict.fromkeys(STATEMENT), "statement": "SELECT 1", "wait_timeout": 0.0}
        statements[name] = api.execute(Caller(Principal(name), ""), {}, asked)["statement_id"]
    schema = struct(*(StructField(f"c{i}", INT) for i in range(1_001)))
    for run in list(house.pool.runs):
        run.sink.event(Planned("SELECT", "datafusion", "", schema))
        run.finish()
    inside, written = AtOnce(0.02), manifest.manifest

    def slowly(outcome: Any) -> dict[str, Any]:
        with inside.counted():
            return written(outcome)

    monkeypatch.setattr(manifest, "manifest", slowly)

    def ask(name: str) -> bytes:
        return manifest.as_json(api.get(Caller(Principal(name), ""), {"statement_id": statements[name]}, {}))

    with ThreadPoolExecutor(24) as executor:
        told = list(executor.map(ask, ("ann", "bob", "eve") * 8))
    assert all(b'"manifest":{"format":"JSON_ARRAY"' in each for each in told)
    assert inside.most["all"] == 2
    inside.most.clear()
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(ask, ["ann"] * 8))
    assert inside.most["all"] == 1
