"""Results of Spark as Arrow record batches in the layout of our types, in bounded memory.

What is known to be small is collected by the driver; everything else is written by the tasks into a folder of its own and
read back in partition order, so that the driver never holds it: as Arrow batches where every row has the same width, which
is quicker, as Parquet files where only a writer that counts bytes keeps memory bounded.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.engine.spark import arrow_files
from gateway.errors import ServerError
from gateway.sqltypes import (
    BINARY,
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
    has_variant,
    is_string,
    quote_part,
    quoted_text,
)
from gateway.sqltypes import array as array_of

SMALL_ROWS = 10_000
SMALL_BYTES = 16 << 20  # as Spark estimates a plan's result
BATCH_ROWS = 65_536
_NESTED_ROWS = 100  # so few may have nested values, whose bytes cost more to count
_GUARDED_BYTES = 64 << 20
_OFFSET_BYTES = 4  # of each element of an array in Arrow
_BATCH_BYTES = 16 << 20
_ARROW_BATCH_BYTES = 512 << 10  # a task holds ten of them
_ROW_GROUP_BYTES = 16 << 20
Read = Callable[[Path], Iterator[pa.RecordBatch]]
_TOO_WIDE = "a value too wide to be collected"
_NOT_SHARED = (
    "Spark's executors have written a result of which a part is not in the gateway's state folder: --state must be a folder "
    "that all hosts of the cluster share, under the same path."
)


class TooWideError(Exception):
    """A result that seemed small has values that are too wide to be collected."""


def is_small(frame: Any, schema: StructType) -> bool:
    """Whether the plan bounds its result so that the driver can hold it (classic sessions only)."""
    if any(_holds(column, _is_months) for field in schema.fields for column in field.type.children()):
        return False  # has no form in Arrow as Spark makes it
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 (pyspark has no public name)
    rows = plan.maxRows()
    most = SMALL_ROWS if all(_width(f.type) or _is_text(f.type) for f in schema.fields) else _NESTED_ROWS
    return bool(rows.isDefined() and rows.get() <= most and int(plan.stats().sizeInBytes()) <= SMALL_BYTES)


def collected(frame: Any, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a small result. Raises TooWideError before the first: plans bound rows, but not the width of all values."""
    try:
        table = _guarded(_positional(frame, schema), schema).toArrow()
    except Exception as error:
        if _TOO_WIDE in str(error):
            raise TooWideError from error
        raise
    for batch in table.to_batches(BATCH_ROWS):
        yield _as_ours(batch, schema)


def _guarded(frame: Any, schema: StructType) -> Any:
    """`frame`, or an error where a value has more bytes than its part of what may be collected."""
    wide = {f"c{i}": field.type for i, field in enumerate(schema.fields) if not _width(field.type)}
    if not wide:
        return frame
    rows = frame._jdf.queryExecution().optimizedPlan().maxRows().get()  # noqa: SLF001
    most = _GUARDED_BYTES // (max(rows, 1) * len(wide))
    guards = {c: f"if({_bytes(c, t)} > {most}, raise_error('{_TOO_WIDE}'), {c}) as {c}" for c, t in wide.items()}
    return frame.selectExpr(*(guards.get(c, c) for c in frame.columns))


def _bytes(value: str, type_: DataType, depth: int = 0) -> str:
    """An expression for about how many bytes a value has in Arrow; NULL for NULL."""
    if width := _width(type_):
        return f"{width}L"
    if isinstance(type_, ArrayType):
        if width := _width(type_.element):
            return f"{width}L * cardinality({value})"
        total, each = f"t{depth}", f"e{depth}"
        inner = _bytes(each, type_.element, depth + 1)
        return f"aggregate({value}, 0L, ({total}, {each}) -> {total} + {_OFFSET_BYTES}L + coalesce({inner}, 0L))"
    if isinstance(type_, MapType):
        keys, values = array_of(type_.key), array_of(type_.value)
        return f"{_bytes(f'map_keys({value})', keys, depth)} + {_bytes(f'map_values({value})', values, depth)}"
    if isinstance(type_, StructType) and len({f.name.lower() for f in type_.fields}) == len(type_.fields):
        parts = ((f"{value}.`{f.name.replace('`', '``')}`", f.type) for f in type_.fields)
        return " + ".join(["0L", *(f"coalesce({_bytes(part, kind, depth)}, 0L)" for part, kind in parts)])
    text = value if _is_text(type_) else f"cast({value} as string)"
    return f"octet_length({text})"


def written(frame: Any, schema: StructType, folder: Path) -> Iterator[pa.RecordBatch]:
    """The rows of any result, by way of files below `folder`, which must not exist; they are removed as they are read."""
    widths = [_width(field.type) for field in schema.fields]
    frame = _positional(frame, schema)
    try:
        if all(widths):
            rows = min(max(_ARROW_BATCH_BYTES // sum(widths), 1), BATCH_ROWS)
            wanted = arrow_files.write(frame, folder, rows)
            paths = sorted(folder.glob("part-*"), key=_order)
            found = len(paths)
            read: Read = functools.partial(arrow_files.read, schema=_made_by_spark(schema))
        else:
            wanted = _write_parquet(frame, folder)
            paths = sorted(folder.glob("part-*"), key=_order)
            found = sum(pq.read_metadata(path).num_rows for path in paths)
            read = _read_parquet
        if found != wanted:  # the tasks of another host may have written to its own disk
            raise ServerError("FAILED_READ_FILE.FILE_NOT_EXIST", _NOT_SHARED)
        for path in paths:
            for batch in read(path):
                yield _as_ours(batch, schema)
            path.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_parquet(frame: Any, folder: Path) -> int:
    """Without dictionaries, so that the size of what is read is known; sizes are looked at from the first row on.

    Returns how many rows the tasks have written: a partition without rows has no file.
    """
    from pyspark.sql import Observation, functions

    counted = Observation()
    options = {
        "compression": "lz4_raw",
        "parquet.block.size": str(_ROW_GROUP_BYTES),
        "parquet.enable.dictionary": "false",
        "parquet.page.size.row.check.min": "1",
    }
    observed = frame.observe(counted, functions.count(functions.lit(1)).alias("rows"))
    observed.write.options(**options).parquet(f"file:{folder}")
    return int(counted.get["rows"])


def _read_parquet(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            facts = file.metadata.row_group(group)
            rows = _BATCH_BYTES * facts.num_rows // max(facts.total_byte_size, 1)
            yield from file.iter_batches(min(max(rows, 1), BATCH_ROWS), row_groups=[group])


def streamed(frame: Any, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of any result of a Connect session, partition by partition as the server sends them."""
    session = frame.sparkSession
    plan = _positional(frame, schema)._plan.to_proto(session.client)  # noqa: SLF001
    for item in session.client.to_table_as_iterator(plan, {}):  # the schema, then tables
        if isinstance(item, pa.Table):
            for batch in item.to_batches(BATCH_ROWS):
                yield _as_ours(batch, schema)


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
    return f"cast({_texted(column, type_)} as {carried.sql}) as {column}"


def _texted(value: str, type_: DataType, depth: int = 0) -> str:
    """An expression for a value with the JSON of each VARIANT in its place."""
    if type_ == VARIANT:
        return f"to_json({value})"
    if not has_variant(type_):
        return value
    each, key = f"e{depth}", f"k{depth}"
    if isinstance(type_, ArrayType):
        return f"transform({value}, {each} -> {_texted(each, type_.element, depth + 1)})"
    if isinstance(type_, MapType):
        return f"transform_values({value}, ({key}, {each}) -> {_texted(each, type_.value, depth + 1)})"
    assert isinstance(type_, StructType)
    named = ((quoted_text(f.name), f"{value}.{quote_part(f.name)}", f.type) for f in type_.fields)
    parts = (f"{name}, {_texted(part, inner, depth)}" for name, part, inner in named)
    return f"if({value} is null, null, named_struct({', '.join(parts)}))"


def _carried(type_: DataType) -> DataType:
    """The type in which values travel.

    Months as INT, since Arrow in Python has no interval of months; VOID as STRING, which Parquet needs; VARIANT and
    INTERVAL of no family as their text; fields that may be NULL, since pyarrow takes none that may not inside of a NULL.
    """
    if _is_months(type_):
        return INT
    return STRING if type_ == INTERVAL else _nullable(type_)


def _width(type_: DataType) -> int:
    """Bytes of a value in Arrow, if all have as many; else 0. A bit counts as a byte."""
    arrow = _carried(type_)
    try:
        return (int(arrow.arrow().bit_width) + 7) // 8
    except ValueError:
        return 0


def _is_text(type_: DataType) -> bool:
    return is_string(_carried(type_)) or type_ == BINARY


def _made_by_spark(schema: StructType) -> pa.Schema:
    """The Arrow types in which Spark hands over columns of fixed width."""
    types = [_carried(field.type) for field in schema.fields]
    arrow = [pa.duration("us") if isinstance(t, IntervalType) else t.arrow() for t in types]
    return pa.schema([pa.field(f"c{i}", a) for i, a in enumerate(arrow)])


def _nullable(type_: DataType) -> DataType:
    if type_ in (VOID, VARIANT):
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


def _order(path: Path) -> tuple[int, int]:
    """``part-00012-<uuid>-c000.lz4raw.parquet`` or ``part-00012``: the partition, then the number of the file in it."""
    pieces = path.name.partition(".")[0].split("-")
    return int(pieces[1]), int(pieces[-1].removeprefix("c")) if len(pieces) > 2 else 0


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
