"""What every client is to do, and what it must have seen then.

A client's program does the cases in its own way and tells what it has seen as JSON; here that is judged. Texts of values are
those of `programs/say.py`, which programs in other languages repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SLOW = (
    "SELECT count(*) FROM samples.tpch.lineitem a CROSS JOIN samples.tpch.lineitem b CROSS JOIN samples.tpch.lineitem c "
    "WHERE a.l_tax + b.l_tax <> c.l_discount"
)
PAGED_ROWS, LARGE_ROWS = 20_000, 250_000

# Name of a column, its SQL, and the texts that a client may make of it: the second is Hive's, where all nested values are text.
TYPES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("c_boolean", "true", ("true",)),
    ("c_tinyint", "CAST(-128 AS TINYINT)", ("-128",)),
    ("c_smallint", "CAST(32767 AS SMALLINT)", ("32767",)),
    ("c_int", "2147483647", ("2147483647",)),
    ("c_bigint", "-9007199254740991", ("-9007199254740991",)),
    ("c_float", "CAST(1.5 AS FLOAT)", ("1.5",)),
    ("c_double", "CAST(-0.25 AS DOUBLE)", ("-0.25",)),
    ("c_decimal", "CAST(12345.678 AS DECIMAL(20, 3))", ("12345.678",)),
    ("c_string", "'Zoë \"数据\"'", ('Zoë "数据"',)),
    ("c_binary", "X'00FF10'", ("00ff10", "00FF10")),
    ("c_date", "DATE '2024-02-29'", ("2024-02-29", "2024-02-29 00:00:00")),
    ("c_timestamp", "TIMESTAMP '2024-02-29 12:34:56.789'", ("2024-02-29 12:34:56.789",)),
    ("c_timestamp_ntz", "TIMESTAMP_NTZ '1969-12-31 23:59:59.5'", ("1969-12-31 23:59:59.5",)),
    (
        "c_interval",
        "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        ("1 02:03:04.500000000", "1 days 02:03:04.500000", "1 day, 2:03:04.500000"),
    ),
    ("c_array", "array(1, 2)", ("[1,2]",)),
    ("c_map", "map('a', 1)", ('{"a":1}', '[["a",1]]', '[{"key":"a","value":1}]')),
    ("c_struct", "named_struct('n', 1, 's', 'x')", ('{"n":1,"s":"x"}',)),
    ("c_null", "NULL", ("NULL",)),
)
_SQL_TYPES = {"c_interval": "INTERVAL DAY TO SECOND", "c_array": "ARRAY<INT>", "c_map": "MAP<STRING, INT>"}
_SQL_TYPES |= {"c_struct": "STRUCT<n: INT, s: STRING>", "c_decimal": "DECIMAL(20, 3)", "c_null": "STRING"}
_NULLS = ", ".join(f"CAST(NULL AS {_SQL_TYPES.get(n, n.removeprefix('c_').upper())}) AS {n}" for n, _, _ in TYPES)

Judge = Callable[[Any], str]  # "" if what was seen is right, else what is wrong


def _is(wanted: Any) -> Judge:
    return lambda seen: "" if seen == wanted else f"{seen} is not {wanted}"


def _types(seen: Any) -> str:
    wrong = [
        f"{name}: {text}"
        for (name, _, allowed), text in zip(TYPES, seen, strict=True)
        if text.replace(" ", "") not in [a.replace(" ", "") for a in allowed]
    ]
    return "; ".join(wrong)


def _error(seen: Any) -> str:
    text = seen["text"]
    if "no error details" in text:
        return f"the client shows no reason: {text}"
    right = "TABLE_OR_VIEW_NOT_FOUND" in text and "42P01" in (seen.get("state") or text)
    return "" if right else f"the error is {seen}"


def _cancel(seen: Any) -> str:
    if seen["ended"] != "error":
        return f"the cancelled statement ended with {seen['ended']}"
    return "" if seen["seconds"] < 30 and seen["after"] == "1" else f"after the cancelling: {seen}"


def _metadata(seen: Any) -> str:
    if "shapes" not in [name.rpartition(".")[2] for name in seen["tables"]]:
        return f"tables: {seen['tables']}"
    return "" if seen["columns"] == ["id", "name"] else f"columns: {seen['columns']}"


@dataclass(frozen=True)
class Case:
    """Something that a client does: a name, the statements that it needs, and the judge of what it has seen."""

    name: str
    statements: tuple[str, ...]
    judge: Judge


CASES: tuple[Case, ...] = (
    Case("connect", ("SELECT 1 AS one",), _is([["1"]])),
    Case("types", (f"SELECT {', '.join(f'{sql} AS {name}' for name, sql, _ in TYPES)}",), _types),
    Case("nulls", (f"SELECT {_NULLS}",), _is(["NULL"] * len(TYPES))),
    Case(
        "page",
        (f"SELECT id FROM range({PAGED_ROWS}) ORDER BY id",),
        _is({"rows": PAGED_ROWS, "sum": PAGED_ROWS * (PAGED_ROWS - 1) // 2}),
    ),
    Case(
        "large",
        (f"SELECT id, concat(repeat('x', 40), id) AS s FROM range({LARGE_ROWS})",),
        _is({"rows": LARGE_ROWS, "sum": LARGE_ROWS * (LARGE_ROWS - 1) // 2}),
    ),
    Case("cancel", (SLOW,), _cancel),
    Case("error", ("SELECT * FROM main.matrix.not_there",), _error),
    Case("metadata", (), _metadata),
    Case("parameters", ("SELECT {} + 1 AS n, upper({}) AS s",), _is([["42", "O'B"]])),
    Case(
        "write",
        (
            "CREATE OR REPLACE TABLE main.matrix.{} (id INT, name STRING)",
            "INSERT INTO main.matrix.{} VALUES (1, 'one'), (2, 'two')",
            "UPDATE main.matrix.{} SET name = 'zwei' WHERE id = 2",
            "SELECT id, name FROM main.matrix.{} ORDER BY id",
            "DROP TABLE main.matrix.{}",
        ),
        _is([["1", "one"], ["2", "zwei"]]),
    ),
)

# What the gateway holds before: the names that `metadata` looks for.
PREPARED: Sequence[str] = (
    "CREATE SCHEMA IF NOT EXISTS main.matrix",
    "CREATE TABLE IF NOT EXISTS main.matrix.shapes (id BIGINT, name STRING)",
)


def order(table: str, door: dict[str, str], without: Sequence[str]) -> dict[str, Any]:
    """What a client's program is told: where the server is, and the statements of each case but those `without`."""
    cases = {}
    for case in CASES:
        if case.name not in without:
            cases[case.name] = [s.format(table) if case.name == "write" else s for s in case.statements]
    return {**door, "cases": cases}
