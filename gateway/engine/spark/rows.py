"""Results of Spark as Arrow record batches in the layout of our types, in bounded memory.

What is known to be small is collected by the driver; everything else is written by the tasks as Parquet files into a folder
of its own and read back in partition order: the driver never holds it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.errors import ServerError
from gateway.sqltypes import (
    INT,
    INTERVAL,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    IntervalType,
    MapType,
    StructType,
)

SMALL_ROWS = 10_000
SMALL_BYTES = 16 << 20  # as Spark estimates a plan's result
BATCH_ROWS = 65_536
_ROW_GROUP_BYTES = 16 << 20


def is_small(frame: Any) -> bool:
    """Whether the plan bounds its result so that the driver can hold it (classic sessions only)."""
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 (pyspark has no public name)
    rows = plan.maxRows()
    return bool(rows.isDefined() and rows.get() <= SMALL_ROWS and int(plan.stats().sizeInBytes()) <= SMALL_BYTES)


def collected(frame: Any, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a small result."""
    table = _positional(frame, schema).toArrow()
    for batch in table.to_batches(BATCH_ROWS):
        yield _as_ours(batch, schema)


def written(frame: Any, schema: StructType, folder: Path) -> Iterator[pa.RecordBatch]:
    """The rows of any result, by way of files below `folder`, which must not exist; they are removed as they are read."""
    writer = _positional(frame, schema).write.option("compression", "lz4_raw")
    try:
        writer.option("parquet.block.size", str(_ROW_GROUP_BYTES)).parquet(f"file:{folder}")
        for path in sorted(folder.glob("part-*.parquet"), key=_order):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH_ROWS):
                    yield _as_ours(batch, schema)
            path.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def streamed(frame: Any, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of any result of a Connect session, partition by partition as the server sends them."""
    session = frame.sparkSession
    plan = _positional(frame, schema)._plan.to_proto(session.client)  # noqa: SLF001
    for item in session.client.to_table_as_iterator(plan, {}):  # the schema, then tables
        if isinstance(item, pa.Table):
            for batch in item.to_batches(BATCH_ROWS):
                yield _as_ours(batch, schema)


def needs_writing(schema: StructType) -> bool:
    """Whether a column has no form in Arrow as Spark makes it: months inside of a nested value."""
    return any(_holds(c, _is_months) for f in schema.fields for c in f.type.children())


def _positional(frame: Any, schema: StructType) -> Any:
    """Columns named c0, c1 …, in types that Arrow and Parquet have: names may repeat, or be none that Parquet takes."""
    renamed = frame.toDF(*(f"c{i}" for i in range(len(schema.fields))))
    if all(_carried(f.type) == f.type for f in schema.fields):
        return renamed
    return renamed.selectExpr(*(_carrying(f"c{i}", f.type) for i, f in enumerate(schema.fields)))


def _carrying(column: str, type_: DataType) -> str:
    carried = _carried(type_)
    if carried == type_:
        return column
    if _is_months(type_):
        return f"cast(cast({column} as interval month) as int) as {column}"
    if type_ == VARIANT:
        return f"to_json({column}) as {column}"
    return f"cast({column} as {carried.sql}) as {column}"


def _carried(type_: DataType) -> DataType:
    """The type in which values travel.

    Months as INT, since Arrow in Python has no interval of months; VOID as STRING, which Parquet needs; VARIANT and
    INTERVAL of no family as their text; fields that may be NULL, since pyarrow takes none that may not inside of a NULL.
    """
    if _is_months(type_):
        return INT
    return STRING if type_ in (VARIANT, INTERVAL) else _nullable(type_)


def _nullable(type_: DataType) -> DataType:
    if type_ == VOID:
        return STRING
    if isinstance(type_, ArrayType):
        return replace(type_, element=_nullable(type_.element))
    if isinstance(type_, MapType):
        return replace(type_, key=_nullable(type_.key), value=_nullable(type_.value))
    if isinstance(type_, StructType):
        return replace(type_, fields=tuple(replace(f, type=_nullable(f.type), nullable=True) for f in type_.fields))
    return type_


def _is_months(type_: DataType) -> bool:
    return isinstance(type_, IntervalType) and type_.is_year_month


def _holds(type_: DataType, test: Any) -> bool:
    return bool(test(type_)) or any(_holds(child, test) for child in type_.children())


def _order(path: Path) -> tuple[int, str]:
    """``part-00012-<uuid>-c000.lz4raw.parquet``: the partition, then the number of the file in it."""
    pieces = path.name.split("-")
    return int(pieces[1]), path.name


def _as_ours(batch: pa.RecordBatch, schema: StructType) -> pa.RecordBatch:
    arrays = [_array(column, field.type) for column, field in zip(batch.columns, schema.fields, strict=True)]
    fields = [pa.field(f"c{i}", a.type, f.nullable) for i, (a, f) in enumerate(zip(arrays, schema.fields, strict=True))]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _array(array: pa.Array, type_: DataType) -> pa.Array:
    wanted = type_.arrow()
    if array.type.equals(wanted):
        return array
    try:
        return _cast(array, wanted)
    except pa.ArrowException as error:
        raise ServerError("INTERNAL_ERROR", f"Spark delivered {array.type} where {wanted} was planned.") from error


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Nested types piece by piece: fields are matched by position, since names in them may repeat."""
    found = array.type
    if pa.types.is_null(wanted):
        return pa.nulls(len(array))
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        children = [_cast(array.field(i), wanted.field(i).type) for i in range(wanted.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null()) if children else array
    if pa.types.is_list(wanted) and (pa.types.is_list(found) or pa.types.is_large_list(found)):
        values = _cast(array.values, wanted.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=wanted, mask=_mask(array))
    if pa.types.is_map(wanted) and pa.types.is_map(found):
        keys, items = _cast(array.keys, wanted.key_type), _cast(array.items, wanted.item_type)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=wanted, mask=_mask(array))
    if pa.types.is_duration(found):
        return array.cast(pa.duration("us")).cast(wanted)
    return array.cast(wanted)


def _offsets(array: pa.Array) -> pa.Array:
    """Offsets that are no slice of others: pyarrow takes no mask beside such."""
    offsets = array.offsets.cast(pa.int32())
    return pa.array(offsets.to_numpy()) if offsets.offset else offsets


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
