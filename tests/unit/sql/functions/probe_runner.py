"""Runs function probes (statements with Spark's answers) through a real runner and judges them.

A probe is one line's statement of tests/data/function-probes.jsonl.gz: `sql` with `types` and `rows`, or `error`. Values are
compared by kind: floats with 1e-9, nested values by structure, row order ignored (the probes order where it matters).
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.config.session import TIMEZONE
from gateway.engine.base import Planned, SessionState, Statement
from gateway.errors import GatewayError
from gateway.runner import make_runner
from gateway.sqltypes import ArrayType, DataType, DecimalType, IntervalType, MapType, StructType

DATA = Path(__file__).parents[3] / "data" / "function-probes.jsonl.gz"


@dataclass
class Outcome:
    """What a statement gave: a schema with canonical rows, or an error."""

    schema: StructType | None = None
    rows: list[list[Any]] = field(default_factory=list)
    error: GatewayError | None = None


class _Collector:
    cancelled = has_enough = False

    def __init__(self) -> None:
        self.schema: StructType | None = None
        self.batches: list[pa.RecordBatch] = []

    def __call__(self, event: Any) -> None:
        if isinstance(event, Planned):
            self.schema = event.schema

    def rows(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)


class Probes:
    """A warmed-up runner over an empty warehouse."""

    def __init__(self, folder: Path) -> None:
        for name in ("warehouse", "spill"):
            os.makedirs(folder / name, exist_ok=True)
        self.runner = make_runner(
            warehouse=str(folder / "warehouse"),
            samples=str(folder / "samples"),
            spill=str(folder / "spill"),
            memory_limit=1 << 30,
        )
        self.runner.warm_up()

    def run(self, sql: str, zone: str = "UTC") -> Outcome:
        """The outcome of one statement."""
        emit = _Collector()
        session = SessionState("main", "default", "root", {TIMEZONE: zone})
        try:
            self.runner.run(Statement("probe", sql, session), emit)
        except GatewayError as error:
            return Outcome(error=error)
        assert emit.schema is not None
        rows: list[list[Any]] = []
        for batch in emit.batches:
            columns = [canonical(c, f.type) for c, f in zip(batch.columns, emit.schema.fields, strict=True)]
            rows += [list(r) for r in zip(*columns, strict=True)] if columns else [[]] * batch.num_rows
        return Outcome(emit.schema, rows)


def probes(*names: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(function, statement) of the named functions; of all without names."""
    wanted = set(names)
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if "meta" in entry or (wanted and entry["file"] not in wanted):
                continue
            for statement in entry["statements"]:
                yield entry["file"], statement


def canonical(array: pa.Array, t: DataType) -> list[Any]:
    """An Arrow array of the internal type of `t` in the probes' notation."""
    if isinstance(t, IntervalType):
        values = array.to_pylist()
        if t.is_year_month:
            return [None if v is None else {"iv": [v, 0, 0]} for v in values]
        return [None if v is None else {"iv": [0, 0, v]} for v in values]
    if isinstance(t, DecimalType):
        return [None if v is None else {"d": f"{v:f}"} for v in array.to_pylist()]
    if t.name == "BINARY":
        return [None if v is None else {"b": v.hex()} for v in array.to_pylist()]
    if t.name == "VARIANT":
        return [None if v is None else {"v": v} for v in array.to_pylist()]
    if t.name == "DATE":
        return [None if v is None else {"dt": v} for v in array.cast(pa.int32()).to_pylist()]
    if t.name in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        mark = "Z" if t.name == "TIMESTAMP" else ""
        return [None if v is None else {"ts": (v, mark)} for v in array.cast(pa.int64()).to_pylist()]
    if isinstance(t, ArrayType):
        return [None if not v.is_valid else canonical(v.values, t.element) for v in array]
    if isinstance(t, MapType):
        return [
            None
            if not v.is_valid
            else {
                "m": list(zip(canonical(v.values.field(0), t.key), canonical(v.values.field(1), t.value), strict=True))
            }
            for v in array
        ]
    if isinstance(t, StructType):
        columns = [canonical(c, f.type) for c, f in zip(array.flatten(), t.fields, strict=True)]
        valid = array.is_valid().to_pylist()
        return [
            {"s": [[f.name, c[i]] for f, c in zip(t.fields, columns, strict=True)]} if valid[i] else None
            for i in range(len(array))
        ]
    return list(array.to_pylist())


def _day_number(text: str) -> int:
    """Days since 1970 of ``y-m-d`` with any year."""
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text)
    year, month, day = (int(p) for p in body.split("-"))
    year *= sign
    y = year - (month <= 2)
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468


def _micros(text: str) -> tuple[int, str]:
    mark = "Z" if text.endswith("Z") else ""
    date, _, clock = text.rstrip("Z").partition(" ")
    hours, minutes, seconds = clock.split(":")
    whole, _, fraction = seconds.partition(".")
    total = ((_day_number(date) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(whole)
    return total * 1_000_000 + int(fraction.ljust(6, "0")[:6] or 0), mark


def equal(want: Any, got: Any) -> bool:
    """Whether a recorded value and a canonical one are the same."""
    if isinstance(want, dict):
        return _equal_marked(want, got)
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(equal, want, got))
    if isinstance(want, bool) or isinstance(got, bool) or want is None or isinstance(want, str):
        return type(want) is type(got) and bool(want == got)
    if isinstance(want, (int, float)) and isinstance(got, (int, float)):
        if isinstance(want, int) and isinstance(got, int):
            return want == got
        return math.isclose(want, got, rel_tol=1e-9, abs_tol=1e-15)
    return False


def _equal_marked(want: dict[str, Any], got: Any) -> bool:
    if "f" in want:
        number = float(want["f"])
        return isinstance(got, float) and (number == got or (math.isnan(number) and math.isnan(got)))
    if not isinstance(got, dict):
        return False
    if "d" in want:
        return "d" in got and Decimal(want["d"]) == Decimal(got["d"])
    if "dt" in want:
        return got.get("dt") == _day_number(want["dt"])
    if "ts" in want:
        return "ts" in got and tuple(got["ts"]) == _micros(want["ts"])
    if "s" in want:
        pairs = list(zip(want["s"], got.get("s", ()), strict=False))
        return len(want["s"]) == len(got.get("s", ())) and all(w[0] == g[0] and equal(w[1], g[1]) for w, g in pairs)
    if "m" in want:
        rest = list(got.get("m", ()))
        for key, value in want["m"]:
            hit = next((i for i, (k, v) in enumerate(rest) if equal(key, k) and equal(value, v)), None)
            if hit is None:
                return False
            rest.pop(hit)
        return not rest
    return want == got


def same_rows(want: list[list[Any]], got: list[list[Any]], *, unordered_arrays: bool = False) -> bool:
    """Whether the rows agree as a multiset."""
    if unordered_arrays:
        want, got = [_sorted(r) for r in want], [_sorted(r) for r in got]
    if len(want) != len(got):
        return False
    rest = list(got)
    for row in want:
        hit = next((i for i, other in enumerate(rest) if equal(row, other)), None)
        if hit is None:
            return False
        rest.pop(hit)
    return True


def _sorted(value: Any) -> Any:
    if isinstance(value, list):
        return sorted((_sorted(v) for v in value), key=str)
    return value


@dataclass
class Judgement:
    """`kind`: same | wrong | name | refused | condition (another error) | error (Spark answers) | false_ok."""

    kind: str
    detail: str = ""


_UNORDERED = frozenset({"collect_set", "collect_list", "array_agg"})


def judge(function: str, statement: dict[str, Any], outcome: Outcome) -> Judgement:
    """Compares an outcome with the recorded answer: types, then rows, then names; or the error condition."""
    expected = statement.get("error")
    if outcome.error is not None:
        if outcome.error.sqlstate == "0A000":
            return Judgement("refused", str(outcome.error))
        if expected is None:
            return Judgement("error", str(outcome.error))
        if expected.get("condition") in (None, outcome.error.condition):
            return Judgement("same")
        return Judgement("condition", f"{expected['condition']} / {outcome.error}")
    assert outcome.schema is not None
    if expected is not None:
        return Judgement("false_ok", f"{expected.get('condition')} / {outcome.rows}")
    types = [f.type.simple for f in outcome.schema.fields]
    if types != [t for _, t in statement["types"]]:
        return Judgement("wrong", f"types {[t for _, t in statement['types']]} / {types}")
    if not same_rows(statement["rows"], outcome.rows, unordered_arrays=function in _UNORDERED):
        return Judgement("wrong", f"{statement['rows']} / {outcome.rows}")
    names = [f.name for f in outcome.schema.fields]
    if names != [n for n, _ in statement["types"]]:
        return Judgement("name", f"{[n for n, _ in statement['types']]} / {names}")
    return Judgement("same")
