"""The type table has every cell, and all that is derived from it agrees."""

from typing import Any

import pyarrow as pa
import pytest

from gateway import sqltypes as t
from gateway.results.arrow_types import sql_type_of
from gateway.sqltypes import ROWS, TYPES, DataType, Slot

# java.sql.Types
JDBC = {
    "VOID": 0, "BOOLEAN": 16, "TINYINT": -6, "SMALLINT": 5, "INT": 4, "BIGINT": -5, "FLOAT": 6, "DOUBLE": 8, "DECIMAL": 3,
    "STRING": 12, "VARCHAR": 12, "CHAR": 1, "BINARY": -2, "DATE": 91, "TIMESTAMP": 93, "TIMESTAMP_NTZ": 93,
    "INTERVAL YEAR TO MONTH": 1111, "INTERVAL DAY TO SECOND": 1111, "VARIANT": 1111, "INTERVAL": 1111,
    "ARRAY": 2003, "MAP": 2000, "STRUCT": 2002,
}  # fmt: skip
PARAMETRISED = {"DECIMAL", "ARRAY", "MAP", "STRUCT"}
NUMBERS = {"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"}
SIZED = NUMBERS | {"BOOLEAN", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}
THRIFT_TYPES = {
    "BOOLEAN_TYPE", "TINYINT_TYPE", "SMALLINT_TYPE", "INT_TYPE", "BIGINT_TYPE", "FLOAT_TYPE", "DOUBLE_TYPE", "STRING_TYPE",
    "TIMESTAMP_TYPE", "BINARY_TYPE", "ARRAY_TYPE", "MAP_TYPE", "STRUCT_TYPE", "DECIMAL_TYPE", "DATE_TYPE",
}  # fmt: skip


@pytest.mark.parametrize("row", TYPES, ids=lambda row: row.name)
def test_every_cell_of_the_type_table(row: t.SqlType) -> None:
    assert ROWS[row.name] is row
    assert row.json
    assert row.json == row.json.lower()
    assert (row.arrow is None) == (row.name in PARAMETRISED)
    assert row.view == (pa.string_view() if row.arrow == pa.string() else None)
    assert row.thrift in THRIFT_TYPES
    assert isinstance(row.slot, Slot)
    assert row.jdbc == JDBC[row.name]
    assert (row.size is not None) == (row.name in SIZED)
    assert (row.digits is not None) == (row.name in NUMBERS or row.name.startswith("TIMESTAMP"))
    assert (row.radix == 10) == (row.name in NUMBERS)


def test_names_are_unique_and_every_kind_has_its_row() -> None:
    assert len(ROWS) == len(TYPES)
    assert set(ROWS) == set(JDBC)


@pytest.mark.parametrize("row", [row for row in TYPES if row.arrow is not None], ids=lambda row: row.name)
def test_slots_fit_the_arrow_types(row: t.SqlType) -> None:
    by_arrow = {
        pa.bool_(): Slot.BOOL, pa.int8(): Slot.BYTE, pa.int16(): Slot.I16, pa.int32(): Slot.I32, pa.int64(): Slot.I64,
        pa.float32(): Slot.DOUBLE, pa.float64(): Slot.DOUBLE, pa.binary(): Slot.BINARY,
    }  # fmt: skip
    expected = Slot.STRING if row.name.startswith("INTERVAL") else by_arrow.get(row.arrow, Slot.STRING)
    assert row.slot is expected


def test_metadata_response_encodes_decimal_and_complex_type_ids() -> None:
    """The type ids that result metadata carries: one primitive id per column, qualifiers for decimals only."""
    ids = {
        pa.decimal128(12, 3): "DECIMAL_TYPE",
        pa.decimal256(20, 5): "DECIMAL_TYPE",
        pa.list_(pa.int32()): "ARRAY_TYPE",
        pa.map_(pa.string(), pa.int32()): "MAP_TYPE",
        pa.struct([("a", pa.int32())]): "STRUCT_TYPE",
        pa.binary(): "BINARY_TYPE",
    }
    kinds = {arrow: sql_type_of(arrow) for arrow in ids}
    assert {arrow: kind.row.thrift for arrow, kind in kinds.items()} == ids
    decimals = [(k.precision, k.scale) for k in kinds.values() if isinstance(k, t.DecimalType)]
    assert decimals == [(12, 3), (20, 5)]


NAMES: list[tuple[DataType, str, str, Any]] = [
    (t.INT, "INT", "int", "integer"),
    (t.decimal(10, 2), "DECIMAL(10,2)", "decimal(10,2)", "decimal(10,2)"),
    (t.varchar(5), "VARCHAR(5)", "varchar(5)", "varchar(5)"),
    (t.YEAR_MONTH, "INTERVAL YEAR TO MONTH", "interval year to month", "interval year to month"),
    (t.interval("day"), "INTERVAL DAY", "interval day", "interval day"),
    (t.array(t.INT), "ARRAY<INT>", "array<int>", {"type": "array", "elementType": "integer", "containsNull": True}),
    (
        t.map_of(t.STRING, t.DOUBLE, False), "MAP<STRING, DOUBLE>", "map<string,double>",
        {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": False},
    ),
    (
        t.struct(t.StructField("a b", t.INT, False, "why")), "STRUCT<`a b`: INT NOT NULL>", "struct<a b:int>",
        {"type": "struct", "fields": [
            {"name": "a b", "type": "integer", "nullable": False, "metadata": {"comment": "why"}}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "sql", "simple", "json"), NAMES, ids=lambda v: str(v))
def test_names_of_types(kind: DataType, sql: str, simple: str, json: Any) -> None:
    assert (kind.sql, kind.simple, kind.json()) == (sql, simple, json)
    assert str(kind) == simple


def test_equality_is_structural() -> None:
    assert t.array(t.INT) == t.array(t.INT)
    assert t.array(t.INT) != t.array(t.INT, contains_null=False)
    assert len({t.decimal(10, 2), t.decimal(10, 2), t.decimal(10, 3)}) == 2


def test_arrow_types_of_nested_types_are_made_of_their_children() -> None:
    kind = t.struct(t.StructField("m", t.map_of(t.STRING, t.array(t.decimal(5, 1)))), t.StructField("t", t.TIMESTAMP))
    assert kind.arrow() == pa.struct(
        [("m", pa.map_(pa.string(), pa.list_(pa.decimal128(5, 1)))), ("t", pa.timestamp("us", "UTC"))]
    )
    assert list(kind.children()) == [f.type for f in kind.fields]


@pytest.mark.parametrize(
    ("name", "quoted"), [("a", "a"), ("_a1", "_a1"), ("1a", "`1a`"), ("a b", "`a b`"), ("a`b", "`a``b`"), ("", "``")]
)
def test_quote_if_needed(name: str, quoted: str) -> None:
    assert t.quote_if_needed(name) == quoted


def test_families() -> None:
    kinds = [t.INT, t.decimal(5, 1), t.DOUBLE, t.STRING, t.char(2), t.DATE, t.TIMESTAMP_NTZ, t.DAY_TIME, t.array(t.INT)]
    families = (t.is_integral, t.is_decimal, t.is_fractional, t.is_string, t.is_string, t.is_datetime, t.is_datetime,
                t.is_interval, t.is_nested)  # fmt: skip
    for kind, family in zip(kinds, families, strict=True):
        assert family(kind)
        assert sum(f(kind) for f in dict.fromkeys(families)) == 1
        assert t.is_numeric(kind) == (kind in kinds[:3])
