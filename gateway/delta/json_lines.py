"""JSON files, an object a line, as rows with the columns and types that Spark finds in them.

Columns stand in the order of their names, whole numbers are BIGINT, times stay texts. What is no JSON, and values of several
types under one name (but for numbers), are refused by name: there Spark makes texts or NULLs of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import pyarrow as pa

from gateway.delta.containment import Within, opened
from gateway.delta.footers import unreadable_file
from gateway.delta.text_files import LARGEST, check_corrupt_record, check_name, check_width
from gateway.errors import ServerError, UnsupportedError, UserError

_LINES = 1 << 15  # at once
_USUAL: Mapping[str, tuple[str, ...]] = {
    "multiline": ("false",),
    "mode": ("permissive", "failfast"),  # what is malformed is refused
    "encoding": ("utf-8",),
    "charset": ("utf-8",),
    "mergeschema": ("false", "true"),  # Spark merges them anyway
    "ignorecorruptfiles": ("false",),
    "inferschema": ("true",),
    "primitivesasstring": ("false",),
    "prefersdecimal": ("false",),
    "infertimestamp": ("false",),
    "dropfieldifallnull": ("false",),
}


def check_options(options: Mapping[str, str]) -> None:
    """Raise UnsupportedError for options (keys in lower case) that are not proved here."""
    for key, value in options.items():
        if value.lower() not in _USUAL.get(key, ()):
            raise _unsupported(f"FORMAT_OPTIONS ('{key}' = '{value}') of JSON files")


def read_json(paths: Sequence[str], within: Within) -> pa.Table:
    """The rows of files, which are read twice. Raises UnsupportedError, FAILED_READ_FILE, UNABLE_TO_INFER_SCHEMA."""
    found: Any = None
    seen = {path: hashlib.blake2b() for path in paths}
    for path in paths:
        for at, row in _rows(path, within, seen[path]):
            if not isinstance(row, dict):
                raise _unsupported(f"line {at} of {path}, which is no object,")
            found = _merged(found, _kind(row, f"line {at} of {path}"), f"line {at} of {path}")
    if not found:
        raise UserError("UNABLE_TO_INFER_SCHEMA", "Unable to infer schema for JSON.")
    check_corrupt_record(found, os.path.dirname(paths[0]))
    shape = _arrow(found)
    schema = pa.schema(list(shape))
    batches: list[pa.RecordBatch] = []
    for path in paths:
        with _unchanged(path, seen[path].digest()) as again:
            batches += _batches(_rows(path, within, again), shape)
    return pa.Table.from_batches(batches, schema)


@contextmanager
def _unchanged(path: str, before: bytes) -> Iterator[hashlib.blake2b]:
    """Raise ServerError FAILED_READ_FILE unless what is read now is what its types were found in."""
    again, failure = hashlib.blake2b(), None
    try:
        yield again
    except (TypeError, ValueError, AttributeError, UnsupportedError, pa.ArrowException) as error:
        failure = error
    if failure is not None or again.digest() != before:
        text = f"The file {path} was changed while it was read. Send the statement again."
        raise ServerError("FAILED_READ_FILE", text, retryable=True) from failure


def _batches(rows: Iterator[tuple[int, Any]], shape: pa.StructType) -> Iterator[pa.RecordBatch]:
    pending: list[Any] = []
    for _, row in rows:
        pending.append(row)
        if len(pending) == _LINES:
            yield _batch(pending, shape)
            pending = []
    if pending:
        yield _batch(pending, shape)


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError("UNSUPPORTED_FEATURE", f"{what[:1].upper()}{what[1:]} is not supported.")


def _batch(rows: list[Any], shape: pa.StructType) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([_value(row, shape) for row in rows], shape))


def _value(value: Any, kind: pa.DataType) -> Any:
    """A value in its column's type: whole numbers among others become doubles."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: _value(value.get(f.name), f.type) for f in kind}
    if pa.types.is_list(kind):
        return [_value(one, kind.value_type) for one in value]
    return float(value) if pa.types.is_float64(kind) else value


def _rows(path: str, within: Within, read: hashlib.blake2b) -> Iterator[tuple[int, Any]]:
    """The lines that are not blank, with their numbers; `read` takes in all that comes."""
    check_name(path)
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
    try:
        with os.fdopen(opened(path, within), encoding="utf-8-sig", newline="") as file:
            if os.fstat(file.fileno()).st_size > LARGEST:
                raise _unsupported(f"the file {path}, which has more than {LARGEST} bytes,")
            for at, line in enumerate(file, 1):
                read.update(line.encode())
                text = line.strip(" \t\r\n")
                if not text:
                    continue
                if "\r" in text or "\0" in text:
                    raise _unsupported(f"line {at} of {path}, which has a carriage return or NUL in it,")
                try:
                    row = decoder.decode(text)
                    text.encode()
                except (ValueError, RecursionError) as error:
                    raise _unsupported(f"line {at} of {path}, which is no JSON or says a name twice,") from error
                yield at, row
    except UnicodeDecodeError as error:
        raise _unsupported(f"the file {path}, which is not UTF-8,") from error
    except OSError as error:
        raise unreadable_file(path, error) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name.lower() for name, _ in pairs}) < len(pairs):
        raise ValueError("a name comes twice")
    return dict(pairs)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


# ---- types: dicts of objects, lists of arrays, "string", "long", "double", "boolean", None of nothing but NULL

_KINDS: Mapping[type, str] = {str: "string", bool: "boolean", float: "double", int: "long"}
_ARROW: Mapping[str | None, pa.DataType] = {
    "string": pa.string(),
    None: pa.string(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "long": pa.int64(),
}


def _kind(value: Any, where: str) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        if not value:
            raise _unsupported(f"{where}, which has an object without fields,")
        check_width(len(value), where)
        if any("\0" in name or not _is_text(name) for name in value):
            raise _unsupported(f"{where}, which has a name with NUL or half a character,")
        return {name: _kind(of, where) for name, of in value.items()}
    if isinstance(value, list):
        inner: Any = None
        for one in value:
            inner = _merged(inner, _kind(one, where), where)
        return [inner]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise _unsupported(f"{where}, which has a number that is no BIGINT,")
    if isinstance(value, str) and not _is_text(value):
        raise _unsupported(f"{where}, which has half a character,")
    return _KINDS[type(value)]


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def _merged(one: Any, other: Any, where: str) -> Any:
    """The type that holds the values of both."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        for name, kind in other.items():
            one[name] = _merged(one.get(name), kind, where)
        check_width(len(one), where)
        return one
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(one[0], other[0], where)]
    if one == other:
        return one
    if isinstance(one, str) and isinstance(other, str) and {one, other} == {"long", "double"}:
        return "double"
    raise _unsupported(f"{where}, where a value has another type than before,")


def _arrow(kind: Any) -> Any:
    if isinstance(kind, dict):
        if len({name.lower() for name in kind}) < len(kind):
            raise _unsupported("a name that is spelt in several ways in JSON files")
        return pa.struct([pa.field(name, _arrow(kind[name])) for name in sorted(kind)])
    return pa.list_(_arrow(kind[0])) if isinstance(kind, list) else _ARROW[kind]
