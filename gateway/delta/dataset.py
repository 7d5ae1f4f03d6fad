"""Our own Parquet reader as a pyarrow Dataset, for files that DataFusion would misread.

DataFusion uses of a Dataset only its schema, `scanner(...).projected_schema`, `get_fragments` and each fragment's
`scanner(...).to_batches()`. Files are spread over a few fragments (one partition each, never one per file). Filters never
arrive here: `delta/scan.py` puts a barrier above, because pyarrow evaluates NULL and NaN differently.

Each file is decoded by pyarrow and brought to the table's schema: columns found by field id or (case-blind) by name, nested
fields too; missing ones NULL; narrower types widened; rows of deletion vectors taken out; partition columns constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from gateway import sqltypes as t
from gateway.delta.containment import Within
from gateway.delta.expressions import EXISTS
from gateway.delta.footers import opened_parquet, unreadable_file
from gateway.delta.moments import calendar_of
from gateway.delta.schema import Column, has_older_value, holds_char
from gateway.errors import GatewayError, ResourceError, ServerError, UnsupportedError
from gateway.variants import wrapped

#: The name "in files" of a column that is in none: a row's number in its file, rows of deletion vectors counted.
POSITION = "\0position"
_BATCH_ROWS = 32_768
_FRAGMENTS = 4
_PLACE, _SPARSE = 1 << 17, 4  # rows; of so many places one has some
_MOST_TEXT = 2**31 - 2  # bytes of an array
_FEW_ROWS = 4096  # read by one thread: handing them to others would cost more


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of `size` bytes, the partition values of its rows by column, its mask of live rows if it has one.

    Of a file with a mask it may be known how many `rows` it holds.
    """

    path: str
    size: int
    constants: Mapping[str, pa.Scalar]
    live: npt.NDArray[np.bool_] | None = None
    rows: int | None = None

    @cached_property
    def is_sparse(self) -> bool:
        """Whether the rows that are left stand in few places, so that most of the file may be passed over."""
        if self.live is None or self.rows is None:
            return False
        starts = range(0, len(self.live), _PLACE)
        held = np.count_nonzero(np.logical_or.reduceat(self.live, starts)) if starts else 0
        all_, behind = -(-self.rows // _PLACE), (self.rows - len(self.live)) // _PLACE
        return bool((held + behind) * _SPARSE <= all_)


class _Scanner:
    """The two things that DataFusion asks of a scanner."""

    def __init__(self, dataset: FileDataset, names: Sequence[str], files: Sequence[DataFile]) -> None:
        self._dataset, self._names, self._files = dataset, names, files

    @property
    def projected_schema(self) -> pa.Schema:
        return pa.schema([self._dataset.schema.field(n) for n in self._names])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        columns = [self._dataset.column(n) for n in self._names]
        places = Places(columns)
        for file in self._files:
            yield from read_file(file, columns, self.projected_schema, self._dataset.within, places)


class _Fragment:
    def __init__(self, dataset: FileDataset, files: Sequence[DataFile]) -> None:
        self._dataset, self._files = dataset, files

    def scanner(self, *_: Any, columns: Sequence[str] | None = None, **__: Any) -> _Scanner:
        names = self._dataset.schema.names if columns is None else columns
        return _Scanner(self._dataset, names, self._files)


class FileDataset(pads.Dataset):  # type: ignore[misc]
    """A Dataset over `files`, which lie `within` folders, that yields `columns` as `schema`."""

    def __init__(self, files: Sequence[DataFile], columns: Sequence[Column], schema: pa.Schema, within: Within) -> None:
        self._files, self._schema, self.within = files, schema, within
        self._columns = {c.name: c for c in columns}

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def column(self, name: str) -> Column:
        return self._columns[name]

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> _Scanner:
        _no_filter(filter)
        return _Scanner(self, self._schema.names if columns is None else columns, self._files)

    def get_fragments(self, filter: Any = None) -> Iterator[_Fragment]:
        _no_filter(filter)
        count = min(_FRAGMENTS, len(self._files))
        return iter([_Fragment(self, self._files[i::count]) for i in range(count)])


def _no_filter(expression: Any) -> None:
    if expression is not None:
        raise ServerError("INTERNAL_ERROR", "A filter was pushed into a scan that evaluates none.")


class Places:
    """Where files hold columns; for files in a row that are alike it is looked up once.

    Attributes:
        found: by the columns' names, which of a file's it is; None: it has none.
        indices: of the leaves that are read.
        order: which column of the batches holds which column of the file, as they come in the file's order.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._known: tuple[pa.Schema, set[str]] | None = None

    def look_up(self, stored: pa.Schema, constants: set[str]) -> None:
        """Set the attributes for a file."""
        known = self._known
        if known is not None and known[1] == constants and stored.equals(known[0], check_metadata=True):
            return
        leaves = _leaf_ranges(stored)
        held = [c for c in self._columns if c.name not in constants]
        self.found = {c.name: _find(c, stored) for c in held}
        for column in held:
            if self.found[column.name] is None and column.physical != POSITION:
                _check_found(column, stored)
        there = {at for at in self.found.values() if at is not None}
        self.indices = [i for at in self.found.values() if at is not None for i in leaves[at]]
        self.order = {at: n for n, at in enumerate(sorted(there))}
        self._known = stored, constants


def read_file(
    file: DataFile, columns: Sequence[Column], schema: pa.Schema, within: Within, places: Places | None = None
) -> Iterator[pa.RecordBatch]:
    """Batches of one file as `schema` (one field per column). Raises ServerError FAILED_READ_FILE naming the file."""
    try:
        with opened_parquet(file.path, within, coerce_int96_timestamp_unit="us") as parquet:
            yield from _read_file(file, parquet, columns, schema, places or Places(columns))
    except GatewayError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable_file(file.path, error) from error


def _read_file(
    file: DataFile, parquet: pq.ParquetFile, columns: Sequence[Column], schema: pa.Schema, places: Places
) -> Iterator[pa.RecordBatch]:
    places.look_up(parquet.schema_arrow, set(file.constants))
    found, order = places.found, places.order
    calendar = calendar_of(parquet)
    if file.live is not None and len(file.live) > parquet.metadata.num_rows:
        raise ServerError("FAILED_READ_FILE", f"The deletion vector of {file.path} is longer than the file.")
    for start, count, batch in _batches(parquet, places.indices, file.live):
        live = None if file.live is None else _live(file.live, start, count)
        positions = np.arange(start, start + count, dtype=np.int64)
        rows = count if live is None else int(live.sum())
        arrays = []
        for column, field in zip(columns, schema, strict=True):
            at = found.get(column.name)
            if column.name in file.constants:
                array = _repeated(file.constants[column.name], rows, column)
            elif column.physical == POSITION:
                array = pa.array(positions if live is None else positions[live])
            elif at is None or batch is None:
                array = pa.nulls(rows, field.type)
            else:
                values = batch.column(order[at])
                plain = _plain(values.type)
                if plain != values.type:
                    values = values.cast(plain)
                if _holds_text(values.type):
                    values.validate(full=True)  # the engine trusts texts to be UTF-8, pyarrow's reader does not look
                if live is not None:
                    values = values.filter(pa.array(live))
                if calendar is not None:
                    values = calendar.mended(values, column.name)
                array = convert(values, column, field.type)
            arrays.append(array)
        # from_struct_array keeps the row count of a batch without columns.
        yield _batch(arrays, schema, rows)


def _repeated(value: pa.Scalar, rows: int, column: Column) -> pa.Array:
    """A partition's value for each row; Arrow's own offsets would wrap around."""
    held = value.as_buffer() if isinstance(value, pa.BinaryScalar) else None
    if held is not None and held.size * rows > _MOST_TEXT:
        text = f"A value of the partition column {column.name} has {held.size} bytes, too many for {rows} rows."
        raise ResourceError("RESOURCE_EXHAUSTED", text)
    return pa.repeat(value, rows)


def _holds_text(arrow: pa.DataType) -> bool:
    if isinstance(arrow, pa.DictionaryType):
        return _holds_text(arrow.value_type)
    inner = [arrow.field(i).type for i in range(arrow.num_fields)]
    return pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or any(map(_holds_text, inner))


def _plain(arrow: pa.DataType) -> pa.DataType:
    """The same type without views, which Arrow takes no rows out of, and whose texts it does not look at."""
    types = pa.types
    if types.is_string_view(arrow) or types.is_binary_view(arrow):
        return pa.string() if types.is_string_view(arrow) else pa.binary()
    if types.is_struct(arrow):
        return pa.struct([field.with_type(_plain(field.type)) for field in arrow])
    if types.is_map(arrow):
        parts = (arrow.key_field, arrow.item_field)
        return pa.map_(*(field.with_type(_plain(field.type)) for field in parts))
    if types.is_large_list(arrow):
        return pa.large_list(arrow.value_field.with_type(_plain(arrow.value_type)))
    if types.is_list(arrow) or types.is_fixed_size_list(arrow):
        return pa.list_(arrow.value_field.with_type(_plain(arrow.value_type)))
    return arrow


def _batch(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))


def _batches(
    parquet: pq.ParquetFile, indices: list[int], live: npt.NDArray[np.bool_] | None
) -> Iterator[tuple[int, int, pa.RecordBatch | None]]:
    """Rows in file order, with the number of the first one; without any stored column only how many they are.

    Row groups without a live row are passed over.
    """
    for start, rows, groups in _row_groups(parquet, live):
        if indices:
            many, at = rows > _FEW_ROWS, start
            read = parquet.reader.iter_batches(_BATCH_ROWS, groups, column_indices=sorted(indices), use_threads=many)
            for batch in read:
                yield at, batch.num_rows, batch
                at += batch.num_rows
            if at < start + rows:  # pages of no kind that the reader knows are passed over without a word
                raise pa.ArrowInvalid(f"{at - start} rows instead of {rows}")
            continue
        for at in range(start, start + rows, _BATCH_ROWS):
            yield at, min(_BATCH_ROWS, start + rows - at), None


def _row_groups(parquet: pq.ParquetFile, live: npt.NDArray[np.bool_] | None) -> Iterator[tuple[int, int, list[int]]]:
    """Runs of row groups that are read together: the first row's number, how many rows, which groups."""
    metadata = parquet.metadata
    if live is None:
        yield 0, metadata.num_rows, list(range(metadata.num_row_groups))
        return
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if sum(counts) != metadata.num_rows:
        raise pa.ArrowInvalid(f"{sum(counts)} rows instead of {metadata.num_rows}")
    start, rows, groups = 0, 0, list[int]()
    for group, count in enumerate(counts):
        if _live(live, start + rows, count).any():
            rows += count
            groups.append(group)
            continue
        if groups:
            yield start, rows, groups
        start, rows, groups = start + rows + count, 0, []
    if groups:
        yield start, rows, groups


def _live(mask: npt.NDArray[np.bool_], start: int, count: int) -> npt.NDArray[np.bool_]:
    part = mask[start : start + count]
    return part if len(part) == count else np.r_[part, np.ones(count - len(part), dtype=bool)]


def _leaf_ranges(schema: pa.Schema) -> list[range]:
    out, start = [], 0
    for field in schema:
        stop = start + _leaves(field.type)
        out.append(range(start, stop))
        start = stop
    return out


def _leaves(arrow: pa.DataType) -> int:
    if pa.types.is_struct(arrow):
        return sum(_leaves(f.type) for f in arrow)
    if pa.types.is_map(arrow):
        return _leaves(arrow.key_type) + _leaves(arrow.item_type)
    if any(f(arrow) for f in (*_LISTS, pa.types.is_list_view, pa.types.is_large_list_view)):
        return _leaves(arrow.value_type)
    return 1


def _find(column: Column, fields: Any) -> int | None:
    """Index of the field that holds `column` among a file's fields: by name, case-blind, or by id in that mapping mode."""
    if column.by_id and column.field_id is not None:
        wanted = str(column.field_id).encode()
        same = [i for i, f in enumerate(fields) if _id(f) == wanted]
    else:
        folded = column.physical.casefold()
        same = [i for i, f in enumerate(fields) if f.name.casefold() == folded]
    if len(same) > 1:  # Spark reads none of them, though one be spelt as the table has it
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"A file holds the column {column.name} more than once.")
    return same[0] if same else None


def _id(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(b"PARQUET:field_id")


def _has_ids(fields: Any) -> bool:
    """Whether any field of a file has an id, at any depth."""
    return any(_id(f) is not None or _has_ids(f.type.field(i) for i in range(f.type.num_fields)) for f in fields)


def _check_found(column: Column, stored: pa.Schema) -> None:
    """Raise UnsupportedError for a column that a file lacks, unless all of its rows have NULL there."""
    if column.by_id and not _has_ids(stored):  # the protocol lets readers refuse such a file, and Spark does
        raise UnsupportedError("UNSUPPORTED_FEATURE", "A file has no field ids, by which its table finds columns.")
    if has_older_value(column):
        text = f"A file is older than the column {column.name}, whose {EXISTS} tells the value of its rows."
        raise UnsupportedError("UNSUPPORTED_FEATURE", text)


def convert(values: pa.Array, column: Column, target: pa.DataType) -> pa.Array:
    """`values` as read from a file brought to the logical type of `column`, whose Arrow form is `target`."""
    if values.type == target and not column.renamed and not column.holds_ids and not holds_char(column.type):
        return values
    if column.type == t.VARIANT and pa.types.is_struct(values.type):
        return _variants(values, column).cast(target)
    if isinstance(values.type, pa.DictionaryType):
        return convert(values.dictionary_decode(), column, target)
    if isinstance(column.type, t.StructType) and pa.types.is_struct(values.type):
        children = []
        for child, field in zip(column.children, target, strict=True):
            at = _find(child, values.type)
            if at is None:
                children.append(pa.nulls(len(values), field.type))
            else:
                children.append(convert(values.flatten()[at], child, field.type))
        mask = values.is_null() if values.null_count else None
        if not children:
            raise UnsupportedError("UNSUPPORTED_DATATYPE", f"Column {column.name} is a STRUCT without fields.")
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if isinstance(column.type, t.ArrayType) and any(f(values.type) for f in _LISTS):
        return _list(values, column, target)
    if isinstance(column.type, t.MapType) and pa.types.is_map(values.type):
        return _map(values, column, target)
    return _cast(values, column, target)


def _variants(values: pa.Array, column: Column) -> pa.Array:
    """Values of VARIANT as texts."""
    if sorted(f.name for f in values.type) != ["metadata", "value"]:
        text = f"A file holds the column {column.name} as a shredded VARIANT, which is not supported."
        raise UnsupportedError("UNSUPPORTED_FEATURE", text)
    parts = {f.name: values.field(i).cast(pa.binary()).to_pylist() for i, f in enumerate(values.type)}
    texts: list[str | None] = []
    for metadata, value, valid in zip(parts["metadata"], parts["value"], values.is_valid().to_pylist(), strict=True):
        if valid and (metadata is None or value is None):
            raise ValueError(f"the column {column.name} holds a VARIANT without a value")
        texts.append(wrapped(metadata, value) if valid else None)
    return pa.array(texts, pa.string())


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def _list(values: pa.Array, column: Column, target: pa.DataType) -> pa.Array:
    if not pa.types.is_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    inner = convert(values.values, column.children[0], target.value_type)
    return _from_parts(target, values, [inner])


def _map(values: pa.Array, column: Column, target: pa.DataType) -> pa.Array:
    keys = convert(values.keys, column.children[0], target.key_type)
    items = convert(values.items, column.children[1], target.item_type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    return _from_parts(target, values, [entries])


def _from_parts(target: pa.DataType, values: pa.Array, children: list[pa.Array]) -> pa.Array:
    """The same offsets and validity over other children (children are whole: they ignore the array's offset)."""
    validity, offsets = values.buffers()[:2]
    return pa.Array.from_buffers(target, len(values), [validity, offsets], offset=values.offset, children=children)


def _cast(values: pa.Array, column: Column, target: pa.DataType) -> pa.Array:
    source = values.type
    if not _widens(source, target):
        raise UnsupportedError(
            "UNSUPPORTED_DATATYPE",
            f"A file holds the column {column.name} as {source}, the table as {column.type.sql}.",
        )
    if pa.types.is_timestamp(source) and source.unit == "ns":
        # Spark, too, cuts nanoseconds off, and downwards.
        return pc.cast(pc.floor_temporal(values, unit="microsecond"), target)
    return padded(pc.cast(values, target), column.type)


def padded(values: pa.Array, data_type: t.DataType) -> pa.Array:
    """CHAR(n) as Spark reads it: shorter texts padded with spaces, longer ones as they are."""
    if isinstance(data_type, t.CharType) and data_type.name == "CHAR":
        return pc.utf8_rpad(values, data_type.length, " ")
    return values


def is_read_alike(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether any reader's cast of a file's type gives exactly the values of the table's type."""
    if isinstance(source, pa.DictionaryType):
        source = source.value_type
    return _widens(source, target) and _is_bytes(source) == _is_bytes(target)


def _is_bytes(arrow: pa.DataType) -> bool:
    return any(f(arrow) for f in _TEXTUAL[3:])


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of a file's type has its exact counterpart in the table's type."""
    types = pa.types
    if source == target or types.is_null(source):
        return True
    if types.is_integer(source):
        if types.is_integer(target):
            return bool(
                source.bit_width < target.bit_width
                or (source.bit_width == target.bit_width and types.is_signed_integer(source))
            )
        return bool(types.is_decimal(target) or (target == pa.float64() and source.bit_width <= 32))
    if types.is_floating(source):
        return bool(types.is_floating(target) and source.bit_width <= target.bit_width)
    if types.is_decimal(source) and types.is_decimal(target):
        whole, of = source.precision - source.scale, target.precision - target.scale
        return bool(source.scale <= target.scale and whole <= of)
    if types.is_date(source):
        return bool(target == pa.timestamp("us"))
    if types.is_timestamp(source) and types.is_timestamp(target):
        return bool((source.tz is None) == (target.tz is None)) or target.tz is not None
    return any(f(source) for f in _TEXTUAL) and bool(types.is_string(target) or types.is_binary(target))


_TEXTUAL = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
