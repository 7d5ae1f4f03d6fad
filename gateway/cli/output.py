"""Rows of a result as a table, one value a line, CSV, JSON lines or Parquet.

Texts are those that a text client gets (`results.display`), so a value looks the same here and there. Files appear under their
name only when they are complete.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import datetime as dt
import io
import json
import math
import os
import secrets
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from gateway.config import Config
from gateway.errors import ConfigError, UnsupportedError, free_space
from gateway.observability import printable
from gateway.results.arrow_types import sql_type_of
from gateway.results.display import wire_text
from gateway.sqltypes import DataType

Target = TextIO | io.TextIOBase
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY
_WIDEST = 1000  # characters that cells are padded to; longer ones stand as they are
_MOST_SHOWN = 1 << 26  # bytes of rows that are shown, or made texts at once
_TEXT = 8  # bytes that a value without bytes of its own counts for
FOR_EYES = ("table", "vertical")  # formats that show some of the rows; the others write them all
FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".txt": "table"}


class Shown(io.TextIOBase):
    """A terminal that gets what is hidden in texts as escapes: values must not clear it, colour it or hide lines."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        """Write `text`, with the layout's own line ends and tabs."""
        return self._terminal.write(printable(text, keep="\n\t"))


def full_advice(config: Config) -> str:
    """What to do about a full disk, for the end of an error's line."""
    return f" (now {free_space(config.warehouse, config.state)}; make room and run it again)"


def unencodable(error: UnicodeEncodeError) -> str:
    """What to say of a text that has no bytes: a statement's, which goes out as UTF-8, or rows' on another terminal."""
    if error.encoding == "utf-8":
        return "The statement is not UTF-8."
    return (
        f"The rows hold characters that {error.encoding} has not: set PYTHONIOENCODING=utf-8, or write them to a file."
    )


def choose_format(asked: str | None, output: str | None) -> str:
    """The format asked for, else that of the file's ending, else a table. Raises ConfigError."""
    if asked is None and output is not None:
        ending = Path(output).suffix.lower()
        if ending not in FORMATS:
            raise ConfigError("output", f"the ending of {output} names no format; give --format")
        asked = FORMATS[ending]
    if asked == "parquet" and output is None:
        raise ConfigError("format", "parquet needs a file: -o FILE")
    return asked or "table"


def write_rows(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], format: str, output: str | None, max_rows: int
) -> tuple[int, bool]:
    """Write all rows (at most `max_rows` of a table, 0: all); how many, and whether there were more.

    Raises ConfigError for what cannot be written, and whatever `batches` raises.
    """
    try:
        return _write(schema, _apart(batches), format, output, max_rows)
    except _NotFetchedError as error:
        raise error.why from None


class _NotFetchedError(Exception):
    """Rows did not come, for another reason than that the file cannot take them."""

    def __init__(self, why: OSError) -> None:
        super().__init__(str(why))
        self.why = why


def _apart(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; errors on their way are told apart from those of the file that takes them."""
    try:
        yield from batches
    except OSError as error:
        raise _NotFetchedError(error) from error


def _write(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], format: str, output: str | None, max_rows: int
) -> tuple[int, bool]:
    if format == "parquet":
        assert output is not None
        return _write_parquet(schema, batches, Path(output)), False
    with _text_target(output) as target:
        if format not in FOR_EYES:
            return write_batches(schema, batches, format, target), False
        first, more = first_rows(batches, max_rows)
        target.writelines((records if format == "vertical" else table)(schema, first))
        return sum(batch.num_rows for batch in first), more


def write_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], format: str, target: Target) -> int:
    """Write all rows as csv or json; how many."""
    return (_write_csv if format == "csv" else _write_json)(schema, _pieces(batches), target)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, few enough at once that their values fit into memory as texts."""
    for batch in batches:
        while batch.num_rows:
            part = _fitting(batch, _MOST_SHOWN, least=True)
            yield part
            batch = batch.slice(part.num_rows)


@contextlib.contextmanager
def _draft(output: Path) -> Iterator[Path]:
    draft: Path | None = None
    try:
        old = output.stat().st_mode if output.exists() else None
        if old is not None and not stat.S_ISREG(old):  # the draft would take the place of a device or a pipe
            raise ConfigError("output", f"{output} is no file")
        # Nobody knows its name before, so that no link waits there.
        made = output.with_name(f".{output.name[:200]}.{secrets.token_hex(8)}.part")
        mode = 0o666 if old is None else old & 0o777
        handle = os.open(made, _NEW, mode)
        draft = made
        try:
            if old is not None:
                os.fchmod(handle, mode)  # whoever may not read what is replaced may not read this
        finally:
            os.close(handle)
        yield draft
        draft.replace(output)
    except ValueError as error:
        raise ConfigError("output", f"{output} cannot be written: {error}") from error
    except OSError as error:
        raise ConfigError("output", f"{output} cannot be written: {error.strerror or error}") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _text_target(output: str | None) -> Iterator[Target]:
    if output is None:
        yield Shown(sys.stdout) if sys.stdout.isatty() else sys.stdout
        sys.stdout.flush()
        return
    with _draft(Path(output)) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        yield file


def _write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path) -> int:
    import pyarrow.parquet as pq

    rows = 0
    try:
        with _draft(output) as draft, pq.ParquetWriter(draft, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise ConfigError("format", f"the rows cannot be Parquet: {error}") from error
    return rows


def _write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], target: Target) -> int:
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(schema.names)
    rows = 0
    for batch in batches:
        writer.writerows(zip(*(texts(column) for column in batch.columns), strict=True))
        rows += batch.num_rows
    return rows


def _write_json(schema: pa.Schema, batches: Iterable[pa.RecordBatch], target: Target) -> int:
    twice = sorted(name for name, times in Counter(schema.names).items() if times > 1)
    if twice:
        raise ConfigError("format", f"json has room for one column called {twice[0]}: name them apart, or take csv")
    rows = 0
    for batch in batches:
        columns = [_json_values(column) for column in batch.columns]
        for values in zip(*columns, strict=True):
            row = dict(zip(batch.schema.names, values, strict=True))
            target.write(json.dumps(row, ensure_ascii=False) + "\n")
        rows += batch.num_rows
    return rows


def first_rows(batches: Iterable[pa.RecordBatch], max_rows: int) -> tuple[list[pa.RecordBatch], bool]:
    """At most `max_rows` rows, and no more than are `_MOST_SHOWN` bytes, but one (0: all); and whether there are more."""
    first: list[pa.RecordBatch] = []
    rows, room = 0, _MOST_SHOWN
    for batch in batches:
        if not batch.num_rows:
            continue
        part = _fitting(batch.slice(0, max_rows - rows), room, rows == 0) if max_rows else batch
        if part.num_rows:
            first.append(part)
        rows += part.num_rows
        room -= _size(part)
        if part.num_rows < batch.num_rows:
            return first, True
    return first, False


def _fitting(batch: pa.RecordBatch, room: int, least: bool) -> pa.RecordBatch:
    """As many of the first rows as have about `room` bytes; one at `least`."""
    while batch.num_rows > least and (size := _size(batch)) > room:
        batch = batch.slice(0, max(int(least), batch.num_rows * max(room, 0) // size))
    return batch


def _size(batch: pa.RecordBatch) -> int:
    return sum(map(_size_of, batch.columns))


def _size_of(values: pa.Array) -> int:
    """About how many bytes values take as texts; also of those that have none in Arrow."""
    type_ = values.type
    if isinstance(values, pa.ExtensionArray):
        return _size_of(values.storage)
    if pa.types.is_map(type_):
        values = pa.ListArray.from_arrays(values.offsets, values.values)
    if isinstance(values, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        return _TEXT * len(values) + _size_of(values.flatten())
    if pa.types.is_struct(type_):
        return _TEXT * len(values) + sum(map(_size_of, values.flatten()))
    return max(_TEXT * len(values), int(values.nbytes))


def cell_texts(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> list[list[str]]:
    """The text of each value on one line, by column; NULL is a word."""
    columns: list[list[str]] = [[] for _ in schema]
    for batch in batches:
        for column, values in zip(columns, batch.columns, strict=True):
            column.extend("NULL" if text is None else _one_line(text) for text in texts(values))
    return columns


def table(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Rows as lines of an aligned table."""
    return layout(schema, cell_texts(schema, batches))


def records(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Each row as a block with a line a value: for rows that are wider than a screen. Names are cut to `_WIDEST`."""
    names = [name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…" for name in map(_one_line, schema.names)]
    width = max(map(len, names), default=0)
    for number, row in enumerate(zip(*cell_texts(schema, batches), strict=True), 1):
        yield f"-[ {number} ]".ljust(width + 2, "-") + "\n"
        for name, value in zip(names, row, strict=True):
            yield f"{name.ljust(width)}  {value}".rstrip() + "\n"


def layout(schema: pa.Schema, columns: list[list[str]]) -> Iterator[str]:
    """Texts of all cells as the lines of an aligned table, numbers to the right."""
    names = [_one_line(name) for name in schema.names]
    right = [is_number(field.type) for field in schema]
    widths = [
        min(max(len(name), *map(len, cells)) if cells else len(name), _WIDEST)
        for name, cells in zip(names, columns, strict=True)
    ]

    def line(cells: Iterable[str], align: bool = True) -> str:
        parts = [
            cell.rjust(width) if to_right and align else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return "  ".join(parts).rstrip() + "\n"

    yield line(names)
    yield line("-" * w for w in widths)
    yield from (line(cells) for cells in zip(*columns, strict=True))


def is_number(type_: pa.DataType) -> bool:
    """Whether values of the type are numbers."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _one_line(text: str) -> str:
    shown = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return printable(shown)


def sql_type(type_: pa.DataType) -> DataType:
    """The SQL type of a delivered Arrow type. Raises ConfigError."""
    try:
        return sql_type_of(type_)
    except UnsupportedError:
        raise ConfigError("format", f"a column of type {type_} has no text form here; use parquet") from None


def texts(column: pa.Array) -> list[str | None]:
    """Text of each value, None for NULL."""
    type_ = column.type
    if pa.types.is_binary(type_):
        return [None if v is None else v.hex().upper() for v in column.to_pylist()]
    zone = type_.tz if pa.types.is_timestamp(type_) and type_.tz else "UTC"
    result: list[str | None] = wire_text(column, sql_type(type_), zone).to_pylist()
    return result


def _json_values(column: pa.Array) -> list[Any]:
    """Values as JSON has them; times that Python's calendar does not reach have their text."""
    type_ = column.type
    with contextlib.suppress(OverflowError, ValueError):
        return [plain(v, type_) for v in column.to_pylist()]
    if pa.types.is_map(type_):
        pairs = [
            (_json_values(v.values.field(0)), _json_values(v.values.field(1))) if v.is_valid else None for v in column
        ]
        return [None if pair is None else dict(zip(map(_key, pair[0]), pair[1], strict=True)) for pair in pairs]
    if pa.types.is_list(type_):
        return [_json_values(v.values) if v.is_valid else None for v in column]
    if pa.types.is_struct(type_):
        names = [f.name for f in type_]
        rows = zip(*map(_json_values, column.flatten()), strict=True)
        return [dict(zip(names, row, strict=True)) if v.is_valid else None for v, row in zip(column, rows, strict=True)]
    return [_json_time(value, text) for value, text in zip(column, texts(column), strict=True)]


def _json_time(value: pa.Scalar, text: str | None) -> Any:
    try:
        return plain(value.as_py(), value.type)
    except (OverflowError, ValueError):
        return text


def plain(value: Any, type_: pa.DataType) -> Any:
    """A value as JSON has it: decimals, times and special floats as text, binary as base64."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if pa.types.is_map(type_):
        return {_key(k): plain(v, type_.item_type) for k, v in value}
    if pa.types.is_list(type_):
        return [plain(v, type_.value_type) for v in value]
    if pa.types.is_struct(type_):
        return {f.name: plain(value[f.name], f.type) for f in type_}
    return str(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(plain(key, pa.null()))
