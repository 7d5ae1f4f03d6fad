"""Dates, timestamps, casts and collections in a zone with summer time: values, types and nullability as Spark gave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gateway.config.session import TIMEZONE
from gateway.engine.base import Planned, SessionState, Statement
from gateway.engine.functions.casts import caster
from gateway.errors import GatewayError
from gateway.instants import known_zone
from gateway.runner import Runner, make_runner
from gateway.sqltypes import STRING, StructType
from tests.unit.sql.functions.probe_runner import Probes

ZONE = "America/Los_Angeles"
LINES = (Path(__file__).parents[3] / "data" / "los-angeles-probes.jsonl").read_text().splitlines()
PROBES = [json.loads(line) for line in LINES[1:]]


class Answer:
    """Collects what a runner emits."""

    cancelled = has_enough = False

    def __init__(self) -> None:
        self.schema: StructType | None = None
        self.batches: list[pa.RecordBatch] = []

    def __call__(self, event: Any) -> None:
        if isinstance(event, Planned):
            self.schema = event.schema

    def rows(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("zones")
    (folder / "warehouse").mkdir()
    made = make_runner(
        warehouse=str(folder / "warehouse"),
        samples=str(folder / "samples"),
        spill=str(folder / "spill"),
        memory_limit=1 << 28,
    )
    made.warm_up()
    return made


def answer(runner: Runner, sql: str) -> tuple[list[list[Any]], list[list[str]]]:
    """(name, type, nullable) of the columns, and the rows with every value as text."""
    emit = Answer()
    runner.run(Statement("probe", sql, SessionState("main", "default", "root", {TIMEZONE: ZONE})), emit)
    assert emit.schema is not None
    zone = known_zone(ZONE)
    rows: list[list[str]] = []
    for batch in emit.batches:
        texts = [
            caster(f.type, STRING, zone)(c).to_pylist() for f, c in zip(emit.schema.fields, batch.columns, strict=True)
        ]
        rows += [[str(v) for v in row] for row in zip(*texts, strict=True)]
    return [[f.name, f.type.simple, f.nullable] for f in emit.schema.fields], rows


@pytest.mark.parametrize("probe", PROBES, ids=[p["sql"][:60] for p in PROBES])
def test_values_types_and_nullability_are_sparks(runner: Runner, probe: dict[str, Any]) -> None:
    if "error" in probe:
        with pytest.raises(GatewayError) as caught:
            answer(runner, probe["sql"])
        assert caught.value.condition == probe["error"]
        return
    types, rows = answer(runner, probe["sql"])
    assert types == probe["types"]
    assert rows == probe["rows"]


def test_zones_of_one_offset_keep_their_names_in_one_process(tmp_path: Path) -> None:
    runner = Probes(tmp_path)
    for zone in ("Etc/UTC", "UTC", "GMT", "Etc/UTC", "UTC"):
        assert runner.run("SELECT date_format(TIMESTAMP'2024-02-09 03:04:05', 'VV') AS z", zone).rows == [[zone]]
