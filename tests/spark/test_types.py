"""Every type through Spark, by both ways that results take, equals the same value through the embedded engine."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from gateway.sql.spark.literals import spark_literal
from gateway.sql.typed.nodes import Lit
from gateway.sqltypes import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, IntervalType
from tests.live.gateway import Connect
from tests.live.spark import Sql
from tests.unit.sql.spark.test_literals import LITERALS

pytestmark = pytest.mark.spark

# id is 0, 10000, …
VALUES = {
    "boolean": "CAST(id AS BOOLEAN)",
    "tinyint": "CAST(id % 100 AS TINYINT)",
    "smallint": "CAST(id AS SMALLINT)",
    "int": "CAST(id AS INT)",
    "bigint": "id * 900000000000000",
    "float": "CAST(id AS FLOAT) / CAST(3 AS FLOAT)",
    "double": "id / 3",
    "infinity": "CAST('-Infinity' AS DOUBLE)",
    "negative_zero": "CAST('-0.0' AS DOUBLE)",
    "decimal_38_18": "CAST(id AS DECIMAL(38,18))",
    "decimal_38_0": "CAST('-12345678901234567890123456789012345678' AS DECIMAL(38,0))",
    "decimal_2_1": "CAST(1.5 AS DECIMAL(2,1))",
    "string": "concat('é😀\\n', CAST(id AS STRING))",
    "empty_string": "''",
    "char": "CAST('ab' AS CHAR(5))",
    "varchar": "CAST('ab' AS VARCHAR(5))",
    "binary": "X'00FF'",
    "first_date": "DATE'0001-01-01'",
    "julian_date": "DATE'1582-10-10'",
    "last_date": "DATE'9999-12-31'",
    "first_timestamp": "TIMESTAMP'0001-01-01 00:00:00'",
    "timestamp": "TIMESTAMP'2024-07-01 12:00:00.123456'",
    "last_timestamp": "TIMESTAMP'9999-12-31 23:59:59.999999'",
    "timestamp_ntz": "TIMESTAMP_NTZ'1582-10-10 00:00:00.000001'",
    "void": "NULL",
    "null": "CAST(NULL AS INT)",
    "null_struct": "CAST(NULL AS STRUCT<a: INT, b: STRING>)",
    "year_to_month": "INTERVAL '-1-2' YEAR TO MONTH",
    "year": "INTERVAL '3' YEAR",
    "month": "INTERVAL '3' MONTH",
    "day_to_second": "INTERVAL '-1 02:03:04.000005' DAY TO SECOND",
    "hour": "INTERVAL '5' HOUR",
    "second": "INTERVAL '5.25' SECOND",
    "array": "array(1, NULL, CAST(id AS INT))",
    "empty_array": "array()",
    "null_array": "IF(id = 0, NULL, array('a', NULL))",
    "array_of_arrays": "array(array(1), NULL, array())",
    "array_of_structs": "array(named_struct('a', 1), NULL)",
    "array_of_void": "array(NULL)",
    "array_of_decimals": "array(1.50)",
    "array_of_binary": "array(X'00')",
    "array_of_months": "array(INTERVAL '1-2' YEAR TO MONTH)",
    "array_of_days": "array(INTERVAL '1' DAY)",
    "array_of_timestamps": "array(TIMESTAMP'2024-01-01 00:00:00', NULL)",
    "array_of_variants": "array(parse_json('{\"a\":[1]}'), NULL)",
    "array_of_timestamps_ntz": "array(TIMESTAMP_NTZ'2024-01-01 00:00:00')",
    "map": "map('a', 1, 'b', NULL)",
    "map_of_void": "map('a', NULL)",
    "map_of_structs": "map(1, named_struct('k', array(1.5, NULL)))",
    "null_map": "CAST(NULL AS MAP<STRING, INT>)",
    "struct": "named_struct('a', 1, 'b', named_struct('c', array(NULL, 'x')))",
    "struct_of_void": "named_struct('a', NULL)",
    "map_of_variants": "map('a', parse_json('\"x\"'), 'b', NULL)",
    "struct_of_variants": "named_struct('a `b', array(named_struct('v', parse_json('null'))), 'n', NULL)",
    "null_struct_of_variants": "CAST(NULL AS STRUCT<v: VARIANT>)",
    "struct_of_odd_names": "named_struct('a b', 1, 'c.d', 2, '`', 3)",
}
ZONED = ("timestamp", "timestamp_ntz", "first_date", "array_of_timestamps")
COLLECTED, WRITTEN, EMPTY = (f" FROM range(20000) WHERE id % 10000 = 0{s}" for s in (" LIMIT 5", "", " AND id < 0"))


def answers(sql: Sql, text: str) -> tuple[Any, Any]:
    """Arrow table and description by the embedded engine and by Spark."""
    found = []
    for engine in ("datafusion", "spark"):
        with sql.connection.cursor() as cursor:
            cursor.execute(f"SET gateway.engine = {engine}")
            cursor.execute(text)
            found.append((cursor.fetchall_arrow(), cursor.description))
    return found[0], found[1]


def same(sql: Sql, text: str, rows: int) -> None:
    (ours, our_columns), (sparks, sparks_columns) = answers(sql, text)
    assert ours.num_rows == rows
    assert sparks.schema.types == ours.schema.types
    assert sparks.to_pylist() == ours.to_pylist()
    assert [c[:6] for c in sparks_columns] == [c[:6] for c in our_columns]


@pytest.mark.parametrize(
    ("source", "rows"), [(COLLECTED, 2), (WRITTEN, 2), (EMPTY, 0)], ids=["collected", "written", "empty"]
)
def test_all_types_at_once(sql: Sql, source: str, rows: int) -> None:
    same(sql, f"SELECT {', '.join(f'{v} AS {k}' for k, v in VALUES.items())}{source}", rows)


@pytest.mark.parametrize("zone", ["America/New_York", "+05:45"])
def test_times_in_the_zone_of_the_session(sql: Sql, zone: str) -> None:
    sql.auto(f"SET TIME ZONE '{zone}'")
    for source in (COLLECTED, WRITTEN):
        same(sql, f"SELECT {', '.join(f'{VALUES[k]} AS {k}' for k in ZONED)}{source}", 2)


def test_nan_of_both_widths(sql: Sql) -> None:
    for source in (COLLECTED, WRITTEN):
        _, (found, _) = answers(sql, f"SELECT CAST('NaN' AS FLOAT) AS f, CAST('NaN' AS DOUBLE) AS d{source}")
        assert [math.isnan(value) for column in found.columns for value in column.to_pylist()] == [True] * 4


def test_names_of_columns_may_repeat_and_be_odd(sql: Sql) -> None:
    names = "id, id, id AS `a b`, id AS ``, id AS `x,;{}()=\t`, id AS `é😀`, id AS C0, id + 1, 'it''s'"
    for source in (COLLECTED, WRITTEN):
        same(sql, f"SELECT {names}{source}", 2)


def test_a_hundred_thousand_nested_rows_with_nulls(sql: Sql) -> None:
    """More than a batch, so that offsets do not begin at 0."""
    nested = "IF(id % 3 = 0, NULL, array(named_struct('a', id), IF(id % 5 = 0, NULL, named_struct('a', 1L))))"
    text = f"SELECT id, {nested} AS x, map(id, IF(id % 7 = 0, NULL, array(id))) AS m FROM range(100000) ORDER BY id"
    (ours, _), (sparks, _) = answers(sql, text)
    assert sparks.num_rows == 100_000 and pa.compute.sum(sparks["id"]).as_py() == 4999950000
    assert sparks.slice(70_000, 1000).to_pylist() == ours.slice(70_000, 1000).to_pylist()
    assert sparks.slice(99_000).to_pylist() == ours.slice(99_000).to_pylist()


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("TIME'12:00:00'", "TIME"),
        ("named_struct('a', TIME'12:00:00')", "STRUCT<a: TIME(6)"),
    ],
)
def test_types_that_no_client_reads_are_refused_by_name(sql: Sql, expression: str, type_: str) -> None:
    for source in ("", WRITTEN):
        with pytest.raises(Exception, match="UNSUPPORTED_RESULT_TYPE") as raised:
            sql.spark(f"SELECT {expression} AS x{source}")
        assert type_ in str(raised.value) and "`x`" in str(raised.value)


def test_statements_without_columns_and_without_rows(sql: Sql, spark_connect: Connect) -> None:
    assert sql.spark("SELECT * FROM range(5) WHERE id > 7") == []
    sql.spark("CREATE OR REPLACE TABLE types_nothing (a INT)")
    assert sql.spark("SELECT * FROM types_nothing") == []
    assert sql.embedded("SELECT count(*) FROM types_nothing") == [(0,)]


def shown(type_: DataType) -> str:
    """A type as Spark's typeof tells it."""
    return type_.sql.lower().replace(", ", ",")


def expected(value: object, type_: DataType) -> pa.Array:
    """The value as a column: dates and times are days and microseconds."""
    if type_ == DATE:
        return pa.array([value], pa.int32()).cast(pa.date32())
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        return pa.array([value], pa.int64()).cast(type_.arrow())
    return pa.array([value], type_.arrow())


def test_spark_reads_each_literal_as_its_value_and_type(sql: Sql) -> None:
    for zone in ("UTC", "America/New_York"):
        sql.auto(f"SET TIME ZONE '{zone}'")
        for type_, value, _ in LITERALS:
            literal = spark_literal(Lit(type_, value is None, value))
            assert sql.spark(f"SELECT typeof({literal})") == [(shown(type_),)], literal
            with sql.connection.cursor() as cursor:
                cursor.execute(f"SELECT {literal} AS x")
                found = cursor.fetchall_arrow()["x"].combine_chunks()
            if value is None:
                assert found.to_pylist() == [None]
            elif isinstance(value, float) and math.isnan(value):
                assert math.isnan(found[0].as_py())
            elif not isinstance(type_, IntervalType):  # whose texts `test_all_types_at_once` compares
                assert found.cast(type_.arrow()).equals(expected(value, type_)), literal


def test_types_that_no_client_reads(sql: Sql) -> None:
    assert sql.spark("SELECT CAST(map() AS MAP<STRING, INT>)") == [([],)]
    for query in ("SELECT array(map())", "SELECT id, map() FROM range(200)"):
        with pytest.raises(Exception, match=r"UNSUPPORTED_RESULT_TYPE.*MAP<VOID, VOID>.*cast it.*0A000"):
            sql.spark(query)
    for rows in (3, 200):
        with pytest.raises(Exception, match=r"UNSUPPORTED_RESULT_TYPE.*two fields of one name.*0A000"):
            sql.spark(f"SELECT id, named_struct('a', id, 'a', id + 1000) AS s FROM range({rows})")
