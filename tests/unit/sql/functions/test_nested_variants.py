"""VARIANT inside of arrays, maps and structs: what Spark 4.2 says to each statement, with types, names and conditions.

tests/data/variant-nested.jsonl holds them with Spark's answers, in the notation of `probe_runner.canonical`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sql.functions.probe_runner import Outcome, Probes

_DATA = Path(__file__).parents[3] / "data" / "variant-nested.jsonl"
_RECORDED: list[dict[str, Any]] = [json.loads(line) for line in _DATA.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Probes:
    return Probes(tmp_path_factory.mktemp("nested"))


def _told(outcome: Outcome) -> dict[str, Any]:
    """An outcome in the notation of the recorded answers."""
    if outcome.error is not None:
        return {"condition": outcome.error.condition, "sqlstate": outcome.error.sqlstate}
    assert outcome.schema is not None
    columns = [[f.name, f.type.simple, f.nullable] for f in outcome.schema.fields]
    told: dict[str, Any] = json.loads(json.dumps({"columns": columns, "rows": outcome.rows}))
    return told


def _rows(told: dict[str, Any]) -> dict[str, Any]:
    """The same with its rows in one order."""
    return {**told, "rows": sorted(json.dumps(row) for row in told["rows"])} if "rows" in told else told


@pytest.mark.parametrize("at", range(0, len(_RECORDED), 20))
def test_statements_answer_as_in_spark(probes: Probes, at: int) -> None:
    for recorded in _RECORDED[at : at + 20]:
        expected = {key: value for key, value in recorded.items() if key != "sql"}
        assert _rows(_told(probes.run(recorded["sql"]))) == _rows(expected), recorded["sql"]


def test_times_are_told_in_the_zone_of_the_session(probes: Probes) -> None:
    made = "array(CAST(TIMESTAMP'2024-01-01 10:00:00' AS VARIANT))"
    shown, text, printed = probes.run(f"SELECT {made}, to_json({made}), string({made})", "America/Los_Angeles").rows[0]
    assert shown == [{"v": '"2024-01-01 10:00:00-08:00"'}]
    assert text == '["2024-01-01 10:00:00-08:00"]'
    assert printed == '["2024-01-01 18:00:00+00:00"]'  # as Spark does, whose text of a VARIANT knows no zone


@pytest.mark.parametrize(
    "query",
    [
        "SELECT collect_set(v) FROM VALUES (parse_json('1')) t(v)",
        "SELECT collect_list(DISTINCT v) FROM VALUES (parse_json('1')) t(v)",
        "SELECT count(DISTINCT array(v)) FROM VALUES (parse_json('1')) t(v)",
        "SELECT mode(array(v)) FROM VALUES (parse_json('1')) t(v)",
        "SELECT aggregate(array(parse_json('1')), 0, (a, x) -> a + x::int)",
        "SELECT map_zip_with(map('k', parse_json('1')), map('k', 1), (k, a, b) -> a)",
        "SELECT array_sort(array(parse_json('1')), (a, b) -> 0)",
        "SELECT format_string('%s', array(parse_json('1')))",
        "SELECT CAST(array(parse_json('{}')) AS ARRAY<STRUCT<a: INT NOT NULL>>)",
        "SELECT CAST(array(v) AS ARRAY<STRUCT<a: INT, a: INT>>) FROM VALUES (parse_json('{}')) t(v)",
        f"SELECT from_json('{'[' * 300}{']' * 300}', 'VARIANT')",
        f"SELECT from_json('[{'9' * 2000}]', 'VARIANT')",
    ],
)
def test_what_is_left_is_refused_by_name(probes: Probes, query: str) -> None:
    error = probes.run(query).error
    assert error is not None and error.sqlstate == "0A000", error
