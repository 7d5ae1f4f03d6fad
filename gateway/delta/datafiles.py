"""Data files of a Delta table as we write them: Parquet, one or more per partition, with their ``add`` actions.

Batches are gathered until a row group is worth writing; a file is closed when it is large enough. FLOAT and DOUBLE columns
get no minimum and maximum anywhere, neither in the log nor in Parquet's footer, because such statistics skip NaN. All files
of a failed write are removed again.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway import sqltypes as t
from gateway.delta import at_work, partitions
from gateway.delta.commit import Action, now_ms
from gateway.delta.containment import held_folder, remove_file
from gateway.delta.durable import Syncs
from gateway.delta.file_columns import file_field, relabelled
from gateway.delta.file_statistics import BOUNDED, Told, spelled, statistics_text
from gateway.delta.indexed import indexed
from gateway.delta.schema import Column, required_fields
from gateway.errors import ServerError, UserError, unsupported

_GROUP_BYTES, _GROUP_ROWS = (
    64 << 20,
    1 << 17,
)  # small enough that two cores share a file and statistics leave groups out
FILE_BYTES = 256 << 20
#: The property that says whether rows may be taken out of files.
VECTORS = "delta.enableDeletionVectors"
#: The property that says how large a table's files are to be.
TARGET_SIZE = "delta.targetFileSize"
_MOST_DIGITS = 18
_UNITS = {"": 0, "b": 0, "kb": 10, "k": 10, "mb": 20, "m": 20, "gb": 30, "g": 30, "tb": 40, "t": 40}
_BUFFERED_BYTES = 256 << 20
_OPEN_WRITERS = 100
# A dictionary is for columns of which, in as many rows, no larger part are values that were not there before.
_SAMPLE_ROWS, _FEW_ROWS, _NEW_VALUES = 16_384, 64, 0.6


@dataclass
class _File:
    """A file that is being written, through its descriptor: its name may mean another by now."""

    path: str
    descriptor: int
    sink: pa.NativeFile
    writer: pq.ParquetWriter

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def finished(self, syncs: Syncs) -> tuple[pq.FileMetaData, int]:
        """Its footer and its size; from here on it is for `syncs` to bring it to the disk."""
        try:
            self.writer.close()
            self.sink.close()
            with pa.OSFile(f"/dev/fd/{self.descriptor}") as written:
                found = pq.read_metadata(written), self.size
            given, self.descriptor = self.descriptor, -1
            syncs.start(given)
            return found
        finally:
            self.close()

    def close(self) -> None:
        """Let go of it as it is."""
        try:
            self.writer.close()
            self.sink.close()
        finally:
            if self.descriptor >= 0:
                os.close(self.descriptor)
                self.descriptor = -1


@dataclass
class _Open:
    """The partition that is being written: buffered batches and, after the first row group, a file."""

    values: Mapping[str, str | None]
    buffered: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    file: _File | None = None
    nulls: list[int] = field(default_factory=list)  # of each column that has statistics


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column that has statistics: its name in files as the way to it, its place there and in Parquet, its type."""

    names: tuple[str, ...]
    place: tuple[int, ...]
    parquet: int
    type: t.DataType

    def nulls(self, group: pa.Table) -> int:
        """How many rows have none."""
        values = group.column(self.place[0])
        inner = pc.struct_field(values, list(self.place[1:])) if len(self.place) > 1 else values
        return int(inner.null_count)


class DataFileWriter:
    """Writes batches of `columns` (all of a table's, partition columns included) under `root`, or a folder in it.

    `hidden` ones come behind them, and are in files alone.

    `properties` are the table's, which say what files tell of their columns and how large they are.

    Use as a context manager: leaving it through an exception removes every file. `finish` gives the actions.
    """

    def __init__(
        self,
        root: str,
        columns: Sequence[Column],
        partition_by: Sequence[str],
        properties: Mapping[str, str],
        *,
        file_bytes: int = FILE_BYTES,
        folder: str = "",
        prefix: str = "part",
        hidden: Sequence[Column] = (),
    ) -> None:
        self._root = root
        self._folder, self._prefix = folder, prefix
        target = target_bytes(properties)
        self._file_bytes = target or file_bytes
        self._group_bytes = min(_GROUP_BYTES, target or _GROUP_BYTES)
        self._fields = (*columns, *hidden)
        self._partition_by = tuple(partition_by)
        self._arrow = [f.type.arrow() for f in self._fields]
        self._required = [list(required_fields(f)) for f in self._fields]
        # A VOID column has nothing that a file could hold; Spark leaves it out as well.
        held = [i for i, f in enumerate(self._fields) if f.name not in self._partition_by]
        self._stored = [i for i in held if self._fields[i].type != t.VOID]
        if held and not self._stored:
            raise unsupported("A data file of VOID columns alone")
        self._open: dict[tuple[str | None, ...], _Open] = {}
        self._made: list[str] = []
        self._folders: list[str] = []
        self._adds: list[Action] = []
        self._syncs = Syncs()
        self._file_schema = pa.schema([file_field(self._fields[i]) for i in self._stored])
        ways = indexed(columns, partition_by, properties)
        self._leaves = _placed([way for way in ways if way[0].type != t.VOID], self._file_schema)
        self._void = [(way[0].physical,) for way in ways if way[0].type == t.VOID]
        self._tells_tight = takes_vectors(properties)
        self.rows = self.bytes = 0

    def __enter__(self) -> DataFileWriter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self.discard()
        else:
            self.settle()

    @property
    def files(self) -> int:
        return len(self._adds)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take in a batch; columns by position. Raises UserError for NULL in a NOT NULL column and too long texts."""
        if batch.num_columns != len(self._fields):
            raise ServerError("INTERNAL_ERROR", f"A batch of {batch.num_columns} columns for {len(self._fields)}.")
        if not batch.num_rows:
            return
        arrays = [self._checked(i, batch.column(i)) for i in range(batch.num_columns)]
        self.rows += batch.num_rows
        if not self._partition_by:
            self._buffer((), {}, self._batch(arrays))
        else:
            self._spread(arrays)
        if sum(o.bytes for o in self._open.values()) > _BUFFERED_BYTES:
            for key in list(self._open):
                self._write_group(self._open[key])
        while sum(o.file is not None for o in self._open.values()) > _OPEN_WRITERS:
            oldest = next(k for k, o in self._open.items() if o.file is not None)
            self._close(self._open.pop(oldest))

    def _batch(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        """What files hold of rows."""
        stored = [relabelled(arrays[i], f.type) for i, f in zip(self._stored, self._file_schema, strict=True)]
        return pa.RecordBatch.from_arrays(stored, schema=self._file_schema)

    def finish(self, *, settles: bool = True) -> list[Action]:
        """Close all files, so that later rows go to new ones; the ``add`` actions of all so far.

        They are on the disk then, unless the one who asks `settles` that before the actions are made a commit.
        """
        for state in self._open.values():
            self._close(state)
        self._open.clear()
        if settles:
            self.settle()
        return self._adds

    def settle(self) -> None:
        """Wait until all closed files are on the disk. Raises OSError."""
        self._syncs.wait()

    def discard(self) -> None:
        """Remove all files and the folders made for them."""
        with contextlib.suppress(OSError):
            self.settle()
        for state in self._open.values():
            if state.file is not None:
                with contextlib.suppress(OSError):  # of a full disk: closing writes the footer
                    state.file.close()
        self._open.clear()
        with contextlib.suppress(OSError, UserError):  # a table that is gone, or that is elsewhere by now
            for path in self._made:
                remove_file(path, self._root)
            for folder in sorted(self._folders, key=len, reverse=True):
                with contextlib.suppress(OSError), held_folder(os.path.dirname(folder), self._root) as held:
                    os.rmdir(os.path.basename(folder), dir_fd=held)  # unless others have put something there

    def _checked(self, index: int, values: pa.Array) -> pa.Array:
        column, arrow = self._fields[index], self._arrow[index]
        if values.type != arrow:
            if not _same_but_layout(values.type, arrow):
                raise ServerError("INTERNAL_ERROR", f"Column {column.name} came as {values.type}, not {arrow}.")
            values = values.cast(arrow)
        if not column.nullable and values.null_count:
            raise _not_null((column.name,))
        for positions, names in self._required[index]:
            if pc.struct_field(values, positions).null_count:  # of a struct that is NULL the field is, too
                raise _not_null(names)
        return fit(values, column.type) if isinstance(column.type, t.CharType) else values

    def _spread(self, arrays: list[pa.Array]) -> None:
        """Rows to their partitions; the order within each stays."""
        by_name = {f.name: i for i, f in enumerate(self._fields)}
        keys = [arrays[by_name[name]] for name in self._partition_by]
        rows = len(arrays[0])
        codes = np.zeros(rows, dtype=np.int64)
        for key in keys:
            index = (
                key.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)
            )
            codes = np.unique(codes * (int(index.max()) + 1) + index, return_inverse=True)[1].astype(np.int64)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0])
        stored = self._batch(arrays)
        for rows_of in np.split(order, starts[1:]):
            first = int(rows_of[0])
            texts = {
                self._fields[by_name[name]].physical: partitions.value_text(
                    key[first], self._fields[by_name[name]].type
                )
                for name, key in zip(self._partition_by, keys, strict=True)
            }
            self._buffer(tuple(texts.values()), texts, stored.take(pa.array(rows_of)))

    def _buffer(self, key: tuple[str | None, ...], values: Mapping[str, str | None], batch: pa.RecordBatch) -> None:
        state = self._open.get(key)
        if state is None:
            state = self._open[key] = _Open(values)
        step = max(1, batch.num_rows * self._group_bytes // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            state.buffered.append(part)
            state.rows += part.num_rows
            state.bytes += part.nbytes
            if state.bytes >= self._group_bytes or state.rows >= _GROUP_ROWS:
                self._write_group(state)

    def _write_group(self, state: _Open) -> None:
        if not state.buffered:
            return
        group = pa.Table.from_batches(state.buffered, self._file_schema)
        if state.file is None:
            state.file = self._new_file(state, leaves_that_repeat(group))
        counts = [leaf.nulls(group) for leaf in self._leaves]
        state.nulls = [old + new for old, new in zip(state.nulls, counts, strict=True)]
        state.file.writer.write_table(group, row_group_size=max(group.num_rows, 1))
        state.buffered, state.rows, state.bytes = [], 0, 0
        if state.file.size >= self._file_bytes:
            self._close(state)

    def _new_file(self, state: _Open, dictionaries: list[str]) -> _File:
        types = {f.physical: f.type for f in self._fields}
        named = {name: partitions.folder_text(text, types[name]) for name, text in state.values.items()}
        folder = os.path.join(self._root, self._folder, partitions.folder(named)).rstrip("/")
        name = f"{self._prefix}-{len(self._made):05d}-{uuid.uuid4()}-c000.snappy.parquet"
        at_work.begin(self._root)
        # Never the table's own folder is made, which somebody may have moved away.
        with held_folder(folder, self._root, self._folders) as held:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=held)
        path = os.path.join(folder, name)
        self._made.append(path)
        state.nulls = [0] * len(self._leaves)
        sink = pa.OSFile(f"/dev/fd/{descriptor}", "wb")
        writer = pq.ParquetWriter(
            sink,
            self._file_schema,
            compression="snappy",
            store_schema=False,
            use_dictionary=dictionaries,
            write_statistics=_leaves_without_floats(self._file_schema),
            write_page_index=True,
        )
        return _File(path, descriptor, sink, writer)

    def _close(self, state: _Open) -> None:
        self._write_group(state)
        if state.file is None:
            return
        file, state.file = state.file, None
        metadata, size = file.finished(self._syncs)
        self.bytes += size
        self._adds.append(
            {
                "add": {
                    "path": partitions.log_path(os.path.relpath(file.path, self._root)),
                    "partitionValues": dict(state.values),
                    "size": size,
                    "modificationTime": now_ms(),
                    "dataChange": True,
                    "stats": self._statistics(metadata, state.nulls),
                }
            }
        )

    def _statistics(self, metadata: Any, nulls: Sequence[int]) -> str:
        """The ``stats`` text, numbers spelt out exactly (a DECIMAL does not survive a float)."""
        told: list[Told] = [(names, metadata.num_rows, None) for names in self._void]
        told += [
            (leaf.names, missing, _bounds(metadata, leaf.parquet, leaf.type))
            for leaf, missing in zip(self._leaves, nulls, strict=True)
        ]
        return statistics_text(metadata.num_rows, told, True if self._tells_tight else None)


def takes_vectors(properties: Mapping[str, str]) -> bool:
    """Whether rows may be taken out of a table's files by deletion vectors."""
    return properties.get(VECTORS, "").lower() == "true"


def target_bytes(properties: Mapping[str, str]) -> int | None:
    """How large a table wants its files to be; None where it does not say."""
    text = properties.get(TARGET_SIZE)
    return None if text is None else size_of(text)


def size_of(text: str) -> int | None:
    """The bytes of ``104857600`` or ``100mb``; None for another text."""
    plain = text.strip().lower()
    digits = plain.rstrip("kmgtb")
    power = _UNITS.get(plain[len(digits) :])
    if power is None or not (digits.isascii() and digits.isdecimal()) or len(digits) > _MOST_DIGITS:
        return None
    return int(digits) << power or None


def _placed(ways: Sequence[Sequence[Column]], schema: pa.Schema) -> list[_Leaf]:
    """Columns that have statistics, as files hold them."""
    starts = _flat_positions(schema)
    found = []
    for way in ways:
        place = [schema.get_field_index(way[0].physical)]
        leaf, arrow = starts[place[0]], schema.field(place[0]).type
        for inner in way[1:]:
            at = arrow.get_field_index(inner.physical)
            leaf += sum(len(_leaves(arrow.field(i).type, "")) for i in range(at))
            arrow = arrow.field(at).type
            place.append(at)
        found.append(_Leaf(tuple(column.physical for column in way), tuple(place), leaf, way[-1].type))
    return found


def fit(values: pa.Array, data_type: t.CharType) -> pa.Array:
    """Texts as CHAR(n) or VARCHAR(n) hold them: CHAR padded.

    Raises UserError DELTA_EXCEED_CHAR_VARCHAR_LIMIT for a longer text, even if all of the rest are spaces.
    """
    if (pc.max(pc.utf8_length(values)).as_py() or 0) > data_type.length:
        text = f"A value exceeds the length limitation of {data_type.sql}."
        raise UserError("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", text)
    return pc.utf8_rpad(values, data_type.length, " ") if data_type.name == "CHAR" else values


def _not_null(path: Sequence[str]) -> UserError:
    shown = ".".join(f"`{name}`" if "." in name else name for name in path)
    return UserError("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", f"NOT NULL constraint violated for column: {shown}.")


def _same_but_layout(source: pa.DataType, target: pa.DataType) -> bool:
    """Types with equal values in another layout: views, large offsets, names and nullability of nested fields."""
    types = pa.types
    if types.is_string(target):
        return bool(types.is_string_view(source) or types.is_large_string(source))
    if types.is_binary(target):
        return bool(types.is_binary_view(source) or types.is_large_binary(source))
    if types.is_list(target):
        lists = bool(types.is_list(source) or types.is_large_list(source))
        return lists and (
            source.value_type == target.value_type or _same_but_layout(source.value_type, target.value_type)
        )
    if types.is_map(target):
        pairs = (
            ((source.key_type, target.key_type), (source.item_type, target.item_type)) if types.is_map(source) else ()
        )
        return bool(pairs) and all(a == b or _same_but_layout(a, b) for a, b in pairs)
    if types.is_struct(target):
        if not types.is_struct(source) or [f.name for f in source] != [f.name for f in target]:
            return False
        return all(a.type == b.type or _same_but_layout(a.type, b.type) for a, b in zip(source, target, strict=True))
    return bool(source == target)


def _leaves(arrow: pa.DataType, path: str) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(arrow):
        return [leaf for f in arrow for leaf in _leaves(f.type, f"{path}.{f.name}")]
    if pa.types.is_map(arrow):
        return _leaves(arrow.key_type, f"{path}.key_value.key") + _leaves(arrow.item_type, f"{path}.key_value.value")
    if pa.types.is_list(arrow):
        return _leaves(arrow.value_type, f"{path}.list.element")
    return [(path, arrow)]


def _leaves_without_floats(schema: pa.Schema) -> list[str]:
    leaves = [leaf for f in schema for leaf in _leaves(f.type, f.name)]
    return [path for path, arrow in leaves if not pa.types.is_floating(arrow)]


def leaves_that_repeat(group: pa.Table) -> list[str]:
    """The leaves for which a dictionary pays, judged by the first rows; nested ones, of which they tell little, among them.

    Without one a column of ever new values is written and read faster, and a reader of few rows need not read it.
    """
    found = []
    for column, values in zip(group.schema, group.columns, strict=True):
        sample = values.slice(0, _SAMPLE_ROWS)
        nested = pa.types.is_nested(column.type)
        if nested or (len(sample) >= _FEW_ROWS and len(pc.unique(sample)) <= _NEW_VALUES * len(sample)):
            found += [path for path, _ in _leaves(column.type, column.name)]
    return found


def _flat_positions(schema: pa.Schema) -> list[int]:
    """Index of the first Parquet leaf of each column."""
    out, at = [], 0
    for column in schema:
        out.append(at)
        at += len(_leaves(column.type, ""))
    return out


def _bounds(metadata: Any, leaf: int, data_type: t.DataType) -> tuple[str, str] | None:
    """JSON of a column's minimum and maximum over all row groups; None if unknown or not kept."""
    if data_type.name not in BOUNDED:
        return None
    lows, highs = [], []
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(leaf)
        statistics = chunk.statistics
        if statistics is None:
            return None
        if not statistics.has_min_max:
            if statistics.has_null_count and statistics.null_count == chunk.num_values:
                continue
            return None
        raw = data_type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)  # years outside of Python's range
        lows.append(statistics.min_raw if raw else statistics.min)
        highs.append(statistics.max_raw if raw else statistics.max)
    return spelled(min(lows), max(highs), data_type) if lows else None
