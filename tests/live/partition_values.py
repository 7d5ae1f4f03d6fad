"""The values of the specification of partition values, what a log says of each, and the page of the docs that tells it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from gateway.delta import log
from gateway.errors import GatewayError

PAGE = Path(__file__).parents[2] / "docs" / "partition-values.md"
_HEAD = """# Partition values

Written by the gateway into tables that are partitioned by `p`, a table for each type, in a session in UTC; the rows are those
of the specification of partition values of delta-kernel. A folder is decoded once, as it lies on the disk. The last column is
what Spark with Delta reads there, as text. A test writes the values anew and compares this page; another asks Spark.

| row | type | value | folder | `partitionValues.p` | Spark reads |
| --- | --- | --- | --- | --- | --- |
"""
Execute = Callable[[str], object]

#: By type: the number of the specification's first row, and the values in SQL.
VALUES: dict[str, tuple[int, Sequence[str]]] = {
    "INT": (1, ("0", "-1", "2147483647", "-2147483648", "NULL")),
    "BIGINT": (6, ("9223372036854775807L", "(-9223372036854775807L - 1L)", "NULL")),
    "TINYINT": (9, ("127Y", "-128Y", "NULL")),
    "SMALLINT": (12, ("32767S", "-32768S", "NULL")),
    "DOUBLE": (
        15,
        (
            *("0.0D", "-0.0D", "1.7976931348623157E308D", "4.9E-324D", "double('NaN')", "double('Infinity')"),
            *("double('-Infinity')", "NULL"),
        ),
    ),
    "FLOAT": (23, ("0.0F", "float('NaN')", "float('Infinity')", "float('-Infinity')", "NULL")),
    "BOOLEAN": (28, ("true", "false", "NULL")),
    "DECIMAL(38, 18)": (31, ("0", "1.23", "-1.23", "NULL")),
    "DATE": (35, ("DATE'2024-01-01'", "DATE'1970-01-01'", "DATE'0001-01-01'", "DATE'9999-12-31'", "NULL")),
    "TIMESTAMP": (
        40,
        (
            *("TIMESTAMP'2024-06-15 12:30:45'", "TIMESTAMP'1970-01-01 00:00:00'"),
            *("TIMESTAMP'2024-06-15 23:59:59.999999'", "NULL"),
        ),
    ),
    "TIMESTAMP_NTZ": (44, ("TIMESTAMP_NTZ'2024-06-15 12:30:45'", "TIMESTAMP_NTZ'1970-01-01 00:00:00'", "NULL")),
    "STRING (NUL)": (47, ("chr(0)", "concat('before', chr(0), 'after')")),
    "BINARY": (49, ("X''", "X'DEADBEEF'", "X'48454C4C4F'", "X'00FF'", "X'2F3D25'")),
    "STRING": (
        54,
        (
            *("'a{b'", "'a}b'", "'hello world'", "'München'", "'日本語'", "'🎵🎶'", "'a<b>c|d'", "'a@b!c(d)'"),
            *("'a&b+c$d;e,f'", "'Serbia/srb%'", "'100%25'", "''", "NULL", "' '", "'  '"),
        ),
    ),
}


def name_of(kind: str) -> str:
    """The table for the values of a type."""
    return "p_" + "".join(c if c.isalnum() else "_" for c in kind.lower())


def write(execute: Execute, kind: str) -> dict[int, str]:
    """Make the table of a type and put each value in; the conditions of those that are refused, by row."""
    first, values = VALUES[kind]
    execute(f"CREATE TABLE {name_of(kind)} (i INT, p {kind.removesuffix(' (NUL)')}) PARTITIONED BY (p)")
    refused = {}
    for row, value in enumerate(values, first):
        try:
            execute(f"INSERT INTO {name_of(kind)} SELECT {row}, {value}")
        except GatewayError as error:
            refused[row] = error.condition
    return refused


def logged(root: str) -> dict[int, tuple[str, Any]]:
    """The folder and the value of each row as the log tells them."""
    found = {}
    for version in log.commit_versions(root):
        for add in (a["add"] for a in log.actions(root, version) if "add" in a):
            row = json.loads(add["stats"])["minValues"]["i"]
            found[row] = (unquote(add["path"].rpartition("/")[0]), add["partitionValues"]["p"])
    return found


def line(row: int, kind: str, value: str, folder: str, text: Any, read: str) -> str:
    """A line of the page."""

    def cell(shown: str) -> str:
        return "`" + shown.replace("|", "\\|") + "`"

    told = "null" if text is None else json.dumps(text, ensure_ascii=False)
    cells = (str(row), kind.removesuffix(" (NUL)"), cell(value), cell(folder), cell(told), cell(read))
    return f"| {' | '.join(cells)} |"


def page(lines: Sequence[str]) -> str:
    """The page of some lines."""
    return _HEAD + "\n".join(lines) + "\n"


def refusal(row: int, kind: str, value: str, condition: str) -> str:
    """The line of a value that is not written."""
    return f"| {row} | {kind.removesuffix(' (NUL)')} | `{value}` | refused: {condition} | | |"
