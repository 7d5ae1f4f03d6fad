"""Statements whose meaning engines change in silence: executed, equal to Spark or refused (tests/data/hazards.csv)."""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.errors import GatewayError
from tests.conformance.session import Session, open_runner
from tests.unit.sql.functions.probe_runner import equal, same_rows

DATA = Path(__file__).parents[2] / "data"
ZONE = "America/Los_Angeles"
RECORDED = "2026-11-21"  # the day of Spark's answers, which DATE'now' has in its column's name
VIEWS = {name: DATA / "probe-tables" / f"{name}.parquet" for name in ("n", "s", "ts", "c", "k1", "k2")}

# Probes whose recorded answer is not the statement's only right one, by id, and why.
FREE: dict[str, str] = {
    "h011": "the total fits; Spark's running total overflows on the way, in its order of rows",
    "h559": "as h011",
    "h071": "recorded from Spark 4.3; Spark 4.2 answers as the gateway",
    "h837": "instr with four arguments is new in Spark 4.3",
    "h299": "Spark's reader replaces ${x} in the statement's text by a setting",
    "h521": "first and last over a subquery: the order of its rows is not defined",
    "h647": "the order of ties is not defined",
    "h749": "the catalog's name is the gateway's own",
}

# Conditions that differ from Spark's, by id: (Spark's, ours).
OTHER_CONDITIONS: dict[str, tuple[str, str]] = {
    "h326": ("DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION/22023", "DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION"),
    "h436": ("IllegalArgumentException/", "INVALID_PARAMETER_VALUE.SEQUENCE_BOUNDARIES"),
    "h828": ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION/42703", "PARSE_SYNTAX_ERROR"),
    "h854": ("_LEGACY_ERROR_TEMP_0029/", "INVALID_INTERVAL_FORMAT.MIXED_FIELDS"),
}


def probes() -> list[dict[str, str]]:
    with (DATA / "hazards.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    made = Session(open_runner(tmp_path_factory.mktemp("hazards"), [DATA]), ZONE)
    made.load(VIEWS)
    return made


def judged(session: Session, probe: dict[str, str]) -> tuple[str, str]:
    """Verdict (same | error | refused | condition | wrong | answered | name | type | nullable) and its detail."""
    expected = probe["spark_error"]
    before = session.state
    try:
        result = session.execute(probe["sql"])
    except GatewayError as error:
        if error.sqlstate == "0A000":
            return "refused", str(error)
        if not expected:
            return "error", str(error)
        same = expected.partition("/")[0] == error.condition
        return ("same" if same else "condition"), f"{expected} / {error.condition}"
    finally:
        session.state = before
    if expected:
        return "answered", f"{expected} / {result.rows()[:5]}"
    schema: list[list[Any]] = json.loads(
        probe["spark_schema_json"].replace(RECORDED, str(datetime.now(ZoneInfo(ZONE)).date()))
    )
    rows: list[list[Any]] = json.loads(probe["spark_rows_json"])
    fields = result.schema.fields
    if len(fields) != len(schema):
        return "wrong", f"{len(schema)} columns / {len(fields)}"
    got = result.rows()
    ordered = "order by" in probe["sql"].lower() and equal(rows, got)
    if not ordered and ("order by" in probe["sql"].lower() or not same_rows(rows, got)):
        return "wrong", f"{rows[:6]} / {got[:6]}"
    for what, position in (("type", 1), ("name", 0), ("nullable", 2)):
        mine = [(f.name, f.type.json(), f.nullable)[position] for f in fields]
        if mine != [s[position] for s in schema]:
            return what, f"{[s[position] for s in schema]} / {mine}"
    return "same", ""


def test_hazards(session: Session) -> None:
    verdicts = {p["id"]: (*judged(session, p), p["sql"]) for p in probes() if p["id"] not in FREE}
    counts = Counter(v for v, _, _ in verdicts.values())
    print(dict(counts))
    bad = ("wrong", "answered", "type", "name", "nullable", "error")
    assert not [f"{i} {v}: {sql}: {detail}" for i, (v, detail, sql) in verdicts.items() if v in bad]
    other = {i: tuple(d.split(" / ")) for i, (v, d, _) in verdicts.items() if v == "condition"}
    assert other == OTHER_CONDITIONS
    assert len(verdicts) + len(FREE) == 862
    assert counts["refused"] <= 51
