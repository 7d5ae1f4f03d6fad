"""Every SQL type through the connector: value, NULL, and the type that the description names."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

UTC = dt.UTC

# SQL expression, Python value, type in the cursor's description
VALUES: tuple[tuple[str, Any, str], ...] = (
    ("true", True, "boolean"),
    ("false", False, "boolean"),
    ("CAST(-128 AS TINYINT)", -128, "tinyint"),
    ("CAST(32767 AS SMALLINT)", 32767, "smallint"),
    ("2147483647", 2147483647, "int"),
    ("-2147483648", -2147483648, "int"),
    ("9223372036854775807", 9223372036854775807, "bigint"),
    ("CAST(1.5 AS FLOAT)", 1.5, "float"),
    ("CAST(0.1 AS DOUBLE)", 0.1, "double"),
    ("CAST('-Infinity' AS DOUBLE)", -math.inf, "double"),
    ("1.10", Decimal("1.10"), "decimal"),
    ("CAST('-99999999999999999999999999999999999999' AS DECIMAL(38, 0))", Decimal("-" + "9" * 38), "decimal"),
    ("CAST('0.00000000000000000000000000000000000001' AS DECIMAL(38, 38))", Decimal("1E-38"), "decimal"),
    ("'text'", "text", "string"),
    ("''", "", "string"),
    ("'数据砖 🧱'", "数据砖 🧱", "string"),
    ("X'00FF7F'", b"\x00\xff\x7f", "binary"),
    ("DATE'2024-02-29'", dt.date(2024, 2, 29), "date"),
    ("DATE'0001-01-01'", dt.date(1, 1, 1), "date"),
    ("DATE'9999-12-31'", dt.date(9999, 12, 31), "date"),
    ("TIMESTAMP'2024-02-29 12:34:56.789012'", dt.datetime(2024, 2, 29, 12, 34, 56, 789012, UTC), "timestamp"),
    ("TIMESTAMP'1969-12-31 23:59:59.999999'", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "timestamp"),
    ("TIMESTAMP_NTZ'2024-02-29 12:34:56.789012'", dt.datetime(2024, 2, 29, 12, 34, 56, 789012), "timestamp"),
    ("INTERVAL '1-2' YEAR TO MONTH", "1-2", "string"),
    ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "1 02:03:04.500000000", "string"),
    ("array(1, 2, 3)", [1, 2, 3], "array"),
    ("array('a', NULL)", ["a", None], "array"),
    ("map('k', 1)", [("k", 1)], "map"),
    ("named_struct('a', 1, 'b', 'x')", {"a": 1, "b": "x"}, "struct"),
    ("array(named_struct('m', map('k', array(1.5))))", [{"m": [("k", [Decimal("1.5")])]}], "array"),
    ("parse_json('{\"a\": 1}')", '{"a":1}', "variant"),
    ("array(parse_json('\"a\"'), NULL)", ['"a"', None], "array"),
    ("map('k', named_struct('v', parse_json('[1]')))", [("k", {"v": "[1]"})], "map"),
)

NULL_TYPES = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10,2)",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "ARRAY<INT>",
    "MAP<STRING,INT>",
    "STRUCT<a:INT>",
)


def plain(value: Any) -> Any:
    """Values of numpy as Python's."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


@pytest.mark.parametrize(("expression", "wanted", "type_name"), VALUES, ids=[v[0] for v in VALUES])
def test_value(cursor: Any, expression: str, wanted: Any, type_name: str) -> None:
    cursor.execute(f"SELECT {expression} AS v")
    assert [d[:2] for d in cursor.description] == [("v", type_name)]
    got = plain(cursor.fetchone()[0])
    assert got == wanted
    assert type(got) is type(wanted)
    assert cursor.fetchone() is None


@pytest.mark.parametrize(("expression", "wanted", "type_name"), VALUES, ids=[v[0] for v in VALUES])
def test_value_beside_nulls(cursor: Any, expression: str, wanted: Any, type_name: str) -> None:
    cursor.execute(f"SELECT id, CASE WHEN id = 1 THEN {expression} END AS v FROM range(3) ORDER BY id")
    assert [plain(cursor.fetchone()[1]) for _ in range(3)] == [None, wanted, None]
    assert cursor.description[1][:2] == ("v", type_name)


@pytest.mark.parametrize("type_name", NULL_TYPES)
def test_null(cursor: Any, type_name: str) -> None:
    cursor.execute(f"SELECT CAST(NULL AS {type_name}) AS v")
    assert cursor.fetchone()[0] is None


def test_untyped_null_is_a_string(cursor: Any) -> None:
    cursor.execute("SELECT NULL")
    assert cursor.description[0][:2] == ("NULL", "string")
    assert cursor.fetchall()[0][0] is None


def test_nan(cursor: Any) -> None:
    # rows go through pandas, which takes NaN for missing: the client's own doing
    table = cursor.execute("SELECT CAST('NaN' AS DOUBLE), CAST('NaN' AS FLOAT)").fetchall_arrow()
    assert all(math.isnan(v) for v in table.to_pylist()[0].values())


def test_decimal_precision_and_scale_are_described(cursor: Any) -> None:
    cursor.execute("SELECT CAST(1 AS DECIMAL(12, 3)) AS d")
    assert cursor.description[0] == ("d", "decimal", None, None, 12, 3, None)


@pytest.mark.parametrize("type_name", NULL_TYPES)
def test_empty_result(cursor: Any, type_name: str) -> None:
    cursor.execute(f"SELECT CAST(NULL AS {type_name}) AS v WHERE false")
    assert cursor.description[0][0] == "v"
    assert cursor.fetchall() == []
    table = cursor.execute(f"SELECT CAST(NULL AS {type_name}) AS v WHERE false").fetchall_arrow()
    assert (table.num_rows, table.column_names) == (0, ["v"])


def test_column_names(cursor: Any) -> None:
    cursor.execute("SELECT 1, 'a', 1 + 1, count(1), `weird name` FROM (SELECT 1 AS `weird name`) GROUP BY ALL")
    assert [d[0] for d in cursor.description] == ["1", "a", "(1 + 1)", "count(1)", "weird name"]


def test_duplicate_column_names(cursor: Any) -> None:
    cursor.execute("SELECT 1 AS a, 2 AS a, 3 AS A")
    assert [d[0] for d in cursor.description] == ["a", "a", "A"]
    assert tuple(cursor.fetchone()) == (1, 2, 3)


@pytest.mark.parametrize("lz4", [True, False])
def test_without_native_types_values_are_texts(connect: Any, lz4: bool) -> None:
    connection = connect(
        _use_arrow_native_decimals=False,
        _use_arrow_native_timestamps=False,
        _use_arrow_native_complex_types=False,
        enable_query_result_lz4_compression=lz4,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1.10 AS d, array(1, 2) AS a, map('k', DATE'2024-01-01') AS m, named_struct('x', 'y') AS s"
        )
        table = cursor.fetchall_arrow()
        assert [c.to_pylist()[0] for c in table.columns[1:]] == ["[1,2]", '{"k":2024-01-01}', '{"x":"y"}']
        assert str(table.column(0).to_pylist()[0]) == "1.10"


def test_session_time_zone(connect: Any) -> None:
    connection = connect(session_configuration={"timezone": "Europe/Amsterdam"})
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT TIMESTAMP'2024-07-01 12:00:00' AS t, CAST(TIMESTAMP'2024-07-01 12:00:00Z' AS STRING) AS s"
        )
        row = cursor.fetchone()
        assert row.t.astimezone(UTC) == dt.datetime(2024, 7, 1, 10, tzinfo=UTC)
        assert row.s == "2024-07-01 14:00:00"
        cursor.execute("SET TIME ZONE 'UTC'")
        cursor.execute("SELECT current_timezone(), TIMESTAMP'2024-07-01 12:00:00'")
        row = cursor.fetchone()
        assert row[0] == "UTC"
        assert row[1].astimezone(UTC) == dt.datetime(2024, 7, 1, 12, tzinfo=UTC)


def test_the_zone_of_a_session_that_set_none(connect: Any) -> None:
    """Named as Databricks names it, also in the types of Arrow results."""
    with connect().cursor() as cursor:
        cursor.execute(
            "SELECT current_timezone() AS z, TIMESTAMP'2024-07-01 12:00:00' AS t, date_format(t, 'VV z') AS v"
        )
        table = cursor.fetchall_arrow()
        assert table.column("z").to_pylist() == ["Etc/UTC"]
        assert table.column("v").to_pylist() == ["Etc/UTC UTC"]
        assert str(table.schema.field("t").type) == "timestamp[us, tz=Etc/UTC]"
