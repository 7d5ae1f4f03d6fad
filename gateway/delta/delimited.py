"""CSV files as rows, where Spark's reader could take them in one way only; all else is refused by name.

Texts are Spark's (`UnivocityParser` with its defaults): what is empty is NULL, quotes stand around whole fields, blank lines
are none. Types are found as its `inferSchema` finds them, for columns whose values leave no doubt.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from gateway.delta.containment import Within, opened
from gateway.delta.footers import unreadable_file
from gateway.delta.text_files import LARGEST, check_corrupt_record, check_name, check_width
from gateway.errors import UnsupportedError, UserError

_MARK = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"^[\x01-\x09\x0b-\x20]+$", re.MULTILINE)
_WHOLE = r"[+-]?\d{1,18}"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
# What may be a time, a hexadecimal number, one with a letter behind it or none: Spark alone tells.
_DOUBTFUL = r"(?i)^(?:[\s\d.+-]|T\d|NaN|Inf|Infinity).*|.*\s$"
_LEAST, _MOST = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True)
class Layout:
    """What a statement says of files: `null` stands for NULL, `doubled` quotes stand for one."""

    header: bool = False
    delimiter: str = ","
    null: str = ""
    doubled: bool = False
    infer: bool = False


def layout_of(options: Mapping[str, str]) -> Layout:
    """The layout that options (keys in lower case) say. Raises UnsupportedError for those that are not proved here."""
    known = {"header", "delimiter", "sep", "nullvalue", "inferschema"}
    for key, value in options.items():
        if key not in known and value.lower() not in _USUAL.get(key, ()):
            raise _unsupported(f"FORMAT_OPTIONS ('{key}' = '{value}') of CSV files")
    flags = {key: _flag(key, options.get(key, "false")) for key in ("header", "inferschema")}
    delimiter = options.get("sep", options.get("delimiter", ","))
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\\\r\n\0':
        raise _unsupported(f"the delimiter {delimiter!r} of CSV files")
    null = options.get("nullvalue", "")
    if any(c in '"\\\r\n\0' for c in null) or delimiter in null:
        raise _unsupported(f"the nullValue {null!r} of CSV files")
    return Layout(flags["header"], delimiter, null, options.get("escape") == '"', flags["inferschema"])


# Options with what they may say: their defaults, mostly.
_USUAL: Mapping[str, tuple[str, ...]] = {
    "quote": ('"',),
    "escape": ("\\", '"'),
    "encoding": ("utf-8",),
    "charset": ("utf-8",),
    "multiline": ("false",),
    "mode": ("permissive", "failfast"),  # what is malformed is refused
    "mergeschema": ("false", "true"),  # files with different columns are refused
    "ignorecorruptfiles": ("false",),
    "ignoreleadingwhitespace": ("false",),
    "ignoretrailingwhitespace": ("false",),
    "emptyvalue": ("",),
    "comment": ("",),
}


def _flag(key: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _unsupported(f"FORMAT_OPTIONS ('{key}' = '{text}') of CSV files")
    return text.lower() == "true"


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError("UNSUPPORTED_FEATURE", f"{what[:1].upper()}{what[1:]} is not supported.")


def read_delimited(paths: Sequence[str], within: Within, layout: Layout) -> pa.Table:
    """The rows of files, which have to have the same columns. Raises UnsupportedError, FAILED_READ_FILE."""
    read = [(path, table) for path in paths if (table := _texts(path, within, layout)) is not None]
    tables = [table for _, table in read]
    if not tables:
        raise UserError("UNABLE_TO_INFER_SCHEMA", "Unable to infer schema for CSV.")
    for path, table in read:
        if table.column_names != tables[0].column_names:
            raise _unsupported(f"CSV files with different columns ({os.path.basename(path)})")
    found = pa.concat_tables(tables)
    if layout.infer:
        columns = [_typed(name, found.column(name)) for name in found.column_names]
        found = pa.table(columns, names=found.column_names)
    return found


def _texts(path: str, within: Within, layout: Layout) -> pa.Table | None:
    """All columns as texts; None of a file without a line."""
    check_name(path)
    try:
        with os.fdopen(opened(path, within), "rb") as file:
            if os.fstat(file.fileno()).st_size > LARGEST:
                raise _unsupported(f"the file {path}, which has more than {LARGEST} bytes,")
            data = file.read().removeprefix(_MARK)
    except OSError as error:
        raise unreadable_file(path, error) from error
    _check(data, path, layout)
    if not data.strip(b"\r\n"):
        return None
    if not data.endswith(b"\n"):
        data += b"\n"  # without which Arrow sees nothing in a line that is the only one
    refused: list[str] = []

    def odd(row: csv.InvalidRow) -> str:
        refused.append(f"a row of {row.actual_columns} fields instead of {row.expected_columns} in {path}")
        return "error"

    parsing = csv.ParseOptions(
        delimiter=layout.delimiter,
        quote_char='"',
        double_quote=layout.doubled,
        escape_char=False,
        newlines_in_values=False,
        ignore_empty_lines=True,
        invalid_row_handler=odd,
    )
    width = _width(data, layout.delimiter)
    check_width(width, path)
    reading = csv.ReadOptions(autogenerate_column_names=True, use_threads=False, block_size=max(len(data) + 1, 1 << 20))
    converting = csv.ConvertOptions(
        column_types={f"f{i}": pa.string() for i in range(width)},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=layout.null == "",
    )
    try:
        table = csv.read_csv(pa.BufferReader(data), reading, parsing, converting)
    except pa.ArrowInvalid as error:
        if refused:
            raise _unsupported(refused[0]) from error
        raise unreadable_file(path, error) from error
    names = [f"_c{i}" for i in range(table.num_columns)]
    if layout.header:
        first = [column[0].as_py() for column in table.columns]
        folded = {(name or "").lower() for name in first}
        if None in first or "" in folded or len(folded) < len(first):
            raise _unsupported(f"the names of columns in the first line of {path}")
        names, table = [str(name) for name in first], table.slice(1)
        check_corrupt_record(names, path)
    columns = [_without(column, layout.null) if layout.null else column for column in table.columns]
    return pa.table(columns, names=names)


def _width(data: bytes, delimiter: str) -> int:
    """How many fields the first line that is not empty has; quotes stand around whole fields, as was checked."""
    start = next(re.finditer(rb"[^\r\n]", data)).start()
    first = data[start : data.index(b"\n", start)]
    return re.sub(rb'"[^"]*"', b"", first).count(delimiter.encode()) + 1


def _without(column: pa.ChunkedArray, null: str) -> pa.ChunkedArray:
    return pc.if_else(pc.fill_null(pc.equal(column, null), False), pa.scalar(None, pa.string()), column)


def _check(data: bytes, path: str, layout: Layout) -> None:
    """Raise for what different readers of CSV take for different rows."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise _unsupported(f"the file {path}, which is not UTF-8,") from error
    if b"\0" in data or data.replace(b"\r\n", b"\n").find(b"\r") >= 0:
        raise _unsupported(f"the file {path}, which has a NUL or a carriage return within a line,")
    if _BLANK.search(data.replace(b"\r\n", b"\n")):
        raise _unsupported(f"the file {path}, which has a line of blanks,")
    if b'"' not in data:
        return
    of = re.escape(layout.delimiter)
    quoted = r'"(?:[^"\\\n]|"")*"' if layout.doubled else r'"[^"\\\n]*"'
    field = rf'(?:{quoted}|[^"{of}\n]*)'
    line = re.compile(rf"{field}(?:{of}{field})*")
    for at, text in enumerate(data.decode().replace("\r\n", "\n").split("\n"), 1):
        if '"' in text and line.fullmatch(text) is None:
            raise _unsupported(f"line {at} of {path}, which has a quote or an escape within a field,")


# ---- types


def _typed(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in the type that Spark finds for its values."""
    values = column.drop_null()
    if not len(values):
        return column
    if _all(values, rf"^{_WHOLE}$"):
        whole = pc.cast(pc.replace_substring_regex(column, r"^\+", ""), pa.int64())
        bounds = pc.min_max(whole).as_py()
        fits = bounds["min"] >= _LEAST and bounds["max"] <= _MOST
        return pc.cast(whole, pa.int32()) if fits else whole
    if _all(values, rf"^{_NUMBER}$"):
        if pc.any(pc.match_substring_regex(values, r"^[+-]?\d{19,}$")).as_py():
            raise _unsupported(f"inferSchema of the column {name}, which holds whole numbers of more than 18 digits,")
        if all(_is_whole(text) for text in values.to_pylist()):
            raise _unsupported(
                f"inferSchema of the column {name}, whose values like 1. and 1.5e1 Spark takes for DECIMAL,"
            )
        read = [None if text is None else float(text) for text in column.to_pylist()]
        return pa.chunked_array([pa.array(read, pa.float64())])
    if _all(values, r"(?i)^(?:true|false)$"):
        return pc.cast(pc.utf8_lower(column), pa.bool_())
    surely = pc.invert(pc.match_substring_regex(values, _DOUBTFUL))
    if pc.any(pc.and_(surely, pc.invert(pc.match_substring_regex(values, r"(?i)^(?:true|false)$")))).as_py():
        return column
    shown = next(iter(values)).as_py()
    raise _unsupported(f"inferSchema of the column {name} with values like {shown!r}")


def _is_whole(text: str) -> bool:
    """Whether a number is one that Spark's inferSchema takes for a DECIMAL without a fraction, or a whole one."""
    mantissa, _, exponent = text.lower().partition("e")
    digits = exponent.lstrip("+-0")
    moved = int(digits or 0) if len(digits) < 10 else sys.maxsize  # further than a text is long
    return len(mantissa.partition(".")[2]) == (-moved if exponent.startswith("-") else moved)


def _all(values: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())
