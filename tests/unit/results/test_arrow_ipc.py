"""Arrow pages hold the rows that were put in, in the form that the client asked for."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import sqltypes as t
from gateway.errors import GatewayError, UnsupportedError
from gateway.results.arrow_ipc import JSON_TYPE, SQL_NAME, ArrowOptions, delivered_schema, encode, schema_message
from gateway.results.display import wire_text
from gateway.results.lz4_frames import Framing
from gateway.results.spool import Rows
from tests.unit.results.typed_values import ATOMS, UNTIMED, array_of, columns

FLAGS = [f.name for f in fields(ArrowOptions)]
ALL_OPTIONS = [ArrowOptions(*flags) for flags in itertools.product((False, True), repeat=len(FLAGS))]
NATIVE = ArrowOptions(*(True for _ in FLAGS))
ZONE = "America/Los_Angeles"
UTF8 = pa.string()

# SQL type -> (SqlName, JsonType, native Arrow type, flag that asks for it or None).
TABLE: dict[t.DataType, tuple[str, Any, str, str | None]] = {
    t.VOID: ("VOID", "void", "null", "null_as_arrow"),
    t.BOOLEAN: ("BOOLEAN", "boolean", "bool", None),
    t.TINYINT: ("TINYINT", "byte", "int8", None),
    t.SMALLINT: ("SMALLINT", "short", "int16", None),
    t.INT: ("INT", "integer", "int32", None),
    t.BIGINT: ("BIGINT", "long", "int64", None),
    t.FLOAT: ("FLOAT", "float", "float", None),
    t.DOUBLE: ("DOUBLE", "double", "double", None),
    t.decimal(10, 2): ("DECIMAL(10,2)", "decimal(10,2)", "decimal128(10, 2)", "decimal_as_arrow"),
    t.decimal(38, 18): ("DECIMAL(38,18)", "decimal(38,18)", "decimal128(38, 18)", "decimal_as_arrow"),
    t.STRING: ("STRING", "string", "string", None),
    t.varchar(20): ("STRING", "string", "string", None),
    t.char(3): ("STRING", "string", "string", None),
    t.BINARY: ("BINARY", "binary", "binary", None),
    t.DATE: ("DATE", "date", "date32[day]", None),
    t.TIMESTAMP: ("TIMESTAMP", "timestamp", f"timestamp[us, tz={ZONE}]", "timestamp_as_arrow"),
    t.TIMESTAMP_NTZ: ("TIMESTAMP_NTZ", "timestamp_ntz", "timestamp[us]", "timestamp_as_arrow"),
    t.VARIANT: ("VARIANT", "variant", "string", None),
    t.INTERVAL: ("INTERVAL", "interval", "string", None),
    t.YEAR_MONTH: ("INTERVAL YEAR TO MONTH", "interval year to month", "month_interval", "interval_as_arrow"),
    t.interval("month"): ("INTERVAL MONTH", "interval month", "month_interval", "interval_as_arrow"),
    t.DAY_TIME: ("INTERVAL DAY TO SECOND", "interval day to second", "duration[us]", "interval_as_arrow"),
    t.interval("day"): ("INTERVAL DAY", "interval day", "duration[us]", "interval_as_arrow"),
    t.interval("hour", "second"): (
        "INTERVAL HOUR TO SECOND", "interval hour to second", "duration[us]", "interval_as_arrow"
    ),
    t.array(t.INT): (
        "ARRAY<INT>", {"type": "array", "elementType": "integer", "containsNull": True}, "list<element: int32>",
        "complex_as_arrow",
    ),
    t.map_of(t.STRING, t.STRING): (
        "MAP<STRING, STRING>",
        {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
        "map<string, string>", "complex_as_arrow",
    ),
    t.struct(t.StructField("street", t.STRING), t.StructField("zip", t.INT), t.StructField("ts", t.TIMESTAMP)): (
        "STRUCT<street: STRING, zip: INT, ts: TIMESTAMP>",
        {"type": "struct", "fields": [
            {"name": "street", "type": "string", "nullable": True, "metadata": {}},
            {"name": "zip", "type": "integer", "nullable": True, "metadata": {}},
            {"name": "ts", "type": "timestamp", "nullable": True, "metadata": {}},
        ]},
        f"struct<street: string, zip: int32, ts: timestamp[us, tz={ZONE}]>", "complex_as_arrow",
    ),
    t.array(t.varchar(5)): (
        "ARRAY<STRING>", {"type": "array", "elementType": "string", "containsNull": True}, "list<element: string>",
        "complex_as_arrow",
    ),
}  # fmt: skip


def read(message: bytes, batches: Sequence[bytes | memoryview]) -> pa.Table:
    """What a client makes of a page."""
    with pa.ipc.open_stream(pa.BufferReader(message + b"".join(batches))) as reader:
        table = reader.read_all()
    table.validate(full=True)
    return table


def test_the_table_covers_every_type() -> None:
    assert {kind.name for kind in TABLE} == set(t.ROWS)
    assert set(ATOMS) <= set(TABLE)


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_schema_of_every_type_under_every_flag(options: ArrowOptions) -> None:
    schema = t.struct(*(t.StructField(f"c{i}", kind, nullable=False) for i, kind in enumerate(TABLE)))
    delivered = delivered_schema(schema, options, ZONE)
    assert delivered.names == [f"c{i}" for i in range(len(TABLE))]
    for field, (kind, (sql_name, json_type, native, flag)) in zip(delivered, TABLE.items(), strict=True):
        assert field.nullable
        assert field.metadata == {
            SQL_NAME: sql_name.encode(),
            JSON_TYPE: json.dumps(json_type, separators=(",", ":")).encode(),
        }
        assert str(field.type) == (native if flag is None or getattr(options, flag) else "string"), kind
    assert pa.ipc.read_schema(pa.BufferReader(schema_message(schema, options, ZONE))).equals(
        delivered, check_metadata=True
    )


def test_intervals_and_void_inside_nested_columns_follow_their_flags() -> None:
    kind = t.struct(
        t.StructField("i", t.array(t.DAY_TIME)),
        t.StructField("m", t.map_of(t.STRING, t.YEAR_MONTH)),
        t.StructField("v", t.array(t.VOID)),
    )
    schema = t.struct(t.StructField("c", kind))
    value = {"i": [93_784_500_000, None], "m": [("k", 14)], "v": [None]}
    batch = pa.record_batch([pa.array([value, None], kind.arrow())], names=["c"])
    complex_only = ArrowOptions(complex_as_arrow=True)
    table = read(
        schema_message(schema, complex_only, "UTC"),
        [b.data for b in encode([Rows(batch)], schema, complex_only, "UTC", Framing.NONE)],
    )
    inner = "i: list<element: string>, m: map<string, string>, v: list<element: string>"
    assert str(table.schema.field(0).type) == f"struct<{inner}>"
    shown = {
        "i": ["INTERVAL '1 02:03:04.5' DAY TO SECOND", None],
        "m": [("k", "INTERVAL '1-2' YEAR TO MONTH")],
        "v": [None],
    }
    assert table.column(0).to_pylist() == [shown, None]
    native = delivered_schema(schema, NATIVE, "UTC").field(0).type
    assert (
        str(native) == "struct<i: list<element: duration[us]>, m: map<string, month_interval>, v: list<element: null>>"
    )


@UNTIMED
@given(columns(), st.sampled_from(ALL_OPTIONS), st.sampled_from(Framing), st.integers(0, 12), st.booleans())
def test_pages_hold_what_was_put_in(
    column: tuple[t.DataType, list[Any]], options: ArrowOptions, framing: Framing, cut: int, stored: bool
) -> None:
    kind, values = column
    schema = t.struct(t.StructField("n", t.BIGINT), t.StructField("c", kind))
    array = array_of(kind, values)
    batch = pa.record_batch([pa.array(range(len(values)), pa.int64()), array], names=["n", "c"])
    message = batch.slice(0, cut).serialize().to_pybytes() if stored else None
    pages = encode([Rows(batch.slice(0, cut), message), Rows(batch.slice(cut))], schema, options, "UTC", framing)
    assert sum(page.rows for page in pages) == len(values)
    assert all(page.rows for page in pages)
    data = [lz4.frame.decompress(page.data) if framing is not Framing.NONE else page.data for page in pages]
    table = read(schema_message(schema, options, "UTC"), data)
    assert table.column("n").to_pylist() == list(range(len(values)))
    delivered = table.column("c")
    if delivered.type == pa.string():
        assert delivered.to_pylist() == wire_text(array, kind, "UTC").to_pylist()
    elif _comparable(kind):
        assert delivered.combine_chunks().cast(array.type).equals(array)
    else:
        assert len(delivered) == len(values)


def _comparable(kind: t.DataType) -> bool:
    """NaN equals nothing, Arrow casts neither text nor month intervals back."""
    plain = kind.name not in ("FLOAT", "DOUBLE", "VOID") and not isinstance(kind, t.IntervalType)
    return plain and all(_comparable(child) for child in kind.children())


def test_month_intervals_keep_their_values() -> None:
    schema = t.struct(t.StructField("c", t.YEAR_MONTH))
    batch = pa.record_batch([pa.array([14, None, -1], pa.int32())], names=["c"])
    pages = encode([Rows(batch)], schema, NATIVE, "UTC", Framing.NONE)
    assert read(schema_message(schema, NATIVE, "UTC"), [pages[0].data]).num_rows == 3
    months = (
        pa.schema([pa.field("c", pa.int32())]).serialize().to_pybytes()
    )  # pyarrow has no array class for the type itself
    assert read(months, [pages[0].data]).column(0).to_pylist() == [14, None, -1]


@pytest.mark.parametrize("framing", [Framing.PACKED, Framing.STORED])
def test_frames_are_independent_blocks(framing: Framing) -> None:
    """databricks-jdbc refuses linked blocks."""
    schema = t.struct(t.StructField("c", t.BIGINT))
    batch = pa.record_batch([pa.array(range(2_000_000))], names=["c"])
    pages = encode([Rows(batch.slice(0, 1_500_000)), Rows(batch.slice(1_500_000))], schema, NATIVE, "UTC", framing)
    assert [page.rows for page in pages] == [1_500_000, 500_000]
    for page in pages:
        info = lz4.frame.get_frame_info(page.data)
        assert info["block_linked"] is False
        context = lz4.frame.LZ4FrameDecompressor()
        assert len(context.decompress(page.data)) > page.rows * 8
        assert context.eof
        assert not context.unused_data


def test_slices_are_sent_without_the_rest_of_their_buffers() -> None:
    schema = t.struct(t.StructField("c", t.STRING))
    batch = pa.record_batch([pa.array(["x" * 100] * 1000)], names=["c"])
    assert len(encode([Rows(batch.slice(500, 1))], schema, NATIVE, "UTC", Framing.NONE)[0].data) < 1000


def test_stored_messages_are_handed_on_where_they_are_what_the_client_reads() -> None:
    schema = t.struct(t.StructField("c", t.BIGINT), t.StructField("d", t.decimal(5, 2)))
    columns = [pa.array([1, None]), pa.array([None, Decimal("1.50")], pa.decimal128(5, 2))]
    batch = pa.record_batch(columns, names=["x", "y"])
    message = batch.serialize().to_pybytes()
    part = Rows(pa.ipc.read_record_batch(pa.py_buffer(message), batch.schema), message)
    (page,) = encode([part], schema, NATIVE, "UTC", Framing.NONE)
    assert isinstance(page.data, memoryview)
    assert page.data.obj is message
    (page,) = encode([part], schema, ArrowOptions(), "UTC", Framing.NONE)  # the decimal goes as text
    assert read(schema_message(schema, ArrowOptions(), "UTC"), [page.data]).to_pylist() == [
        {"c": 1, "d": None},
        {"c": None, "d": "1.50"},
    ]


def test_messages_have_no_schema_and_no_end_of_stream() -> None:
    schema = t.struct(t.StructField("c", t.BIGINT))
    batch = pa.record_batch([pa.array([1])], names=["c"])
    end_of_stream = b"\xff\xff\xff\xff\0\0\0\0"
    message, data = (
        schema_message(schema, NATIVE, "UTC"),
        encode([Rows(batch)], schema, NATIVE, "UTC", Framing.NONE)[0].data,
    )
    assert pa.ipc.read_message(pa.py_buffer(message)).type == "schema"
    assert pa.ipc.read_message(pa.py_buffer(data)).type == "record batch"
    assert not message.endswith(end_of_stream)
    assert not bytes(data).endswith(end_of_stream)


def test_no_rows_make_no_batches() -> None:
    schema = t.struct(t.StructField("c", t.BIGINT))
    assert encode([], schema, NATIVE, "UTC", Framing.PACKED) == []
    assert (
        encode([Rows(pa.record_batch([pa.array([], pa.int64())], names=["c"]))], schema, NATIVE, "UTC", Framing.PACKED)
        == []
    )
    assert read(schema_message(schema, NATIVE, "UTC"), []).num_rows == 0
    assert read(schema_message(t.struct(), NATIVE, "UTC"), []).num_columns == 0


def test_duplicate_column_names_are_kept() -> None:
    schema = t.struct(t.StructField("a", t.BIGINT), t.StructField("a", t.STRING))
    batch = pa.record_batch([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    table = read(
        schema_message(schema, NATIVE, "UTC"), [encode([Rows(batch)], schema, NATIVE, "UTC", Framing.NONE)[0].data]
    )
    assert table.schema.names == ["a", "a"]
    assert [column.to_pylist() for column in table.columns] == [[1], ["x"]]


def test_what_a_databricks_server_told() -> None:
    """Fields of a recorded GetResultSetMetadata answer with every native flag on."""
    address = [t.StructField("street", t.STRING), t.StructField("city", t.STRING), t.StructField("zip", t.INT)]
    schema = t.struct(
        t.StructField("salary", t.decimal(10, 2)),
        t.StructField("ts", t.TIMESTAMP),
        t.StructField("properties", t.map_of(t.STRING, t.STRING)),
        t.StructField("address", t.struct(*address)),
    )
    told = delivered_schema(schema, NATIVE, "Etc/UTC")
    assert [(str(f.type), f.metadata[SQL_NAME].decode(), f.metadata[JSON_TYPE].decode()) for f in told] == [
        ("decimal128(10, 2)", "DECIMAL(10,2)", '"decimal(10,2)"'),
        ("timestamp[us, tz=Etc/UTC]", "TIMESTAMP", '"timestamp"'),
        (
            "map<string, string>", "MAP<STRING, STRING>",
            '{"type":"map","keyType":"string","valueType":"string","valueContainsNull":true}',
        ),
        (
            "struct<street: string, city: string, zip: int32>", "STRUCT<street: STRING, city: STRING, zip: INT>",
            '{"type":"struct","fields":[{"name":"street","type":"string","nullable":true,"metadata":{}},'
            '{"name":"city","type":"string","nullable":true,"metadata":{}},'
            '{"name":"zip","type":"integer","nullable":true,"metadata":{}}]}',
        ),
    ]  # fmt: skip


def test_refusals_name_column_and_type() -> None:
    schema = t.struct(t.StructField("waited", t.BIGINT))
    batch = pa.record_batch([pa.array([1], pa.duration("us"))], names=["waited"])
    with pytest.raises(UnsupportedError, match=r"`waited`.*duration\[us\]"):
        encode([Rows(batch)], schema, NATIVE, "UTC", Framing.NONE)
    with pytest.raises(GatewayError, match="1 columns, its schema 0"):
        encode([Rows(batch)], t.struct(), NATIVE, "UTC", Framing.NONE)
