"""Partition values as text, and the folder and log paths made of them.

Three steps, each with its own encoding: typed value -> text in ``add.partitionValues`` (NULL, empty text and empty binary are
all null) -> folder name (Hive's escapes) -> ``add.path`` (URI-encoded once more). Doubles print as Java prints them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway import sqltypes as t
from gateway.delta.schema import Column
from gateway.errors import ServerError, UnsupportedError
from gateway.floats import float_text
from gateway.instants import BLANKS, UTC, Zone, parse_date, parse_ntz, parse_timestamp

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
# Hive's FileUtils.charToEscape; Spark uses the same list.
_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^\n" + "".join(map(chr, range(1, 32))))
_LAST_DAY = 2_932_896  # 9999-12-31
# What Spark leaves alone in add.path (RFC 2396 without space, <, >, {, }, |).
_PATH_SAFE = "/=!$&'()*+,;:@-._~"
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")


def value_text(value: pa.Scalar, data_type: t.DataType) -> str | None:
    """The text of a partition value in the log; None for NULL. Raises UnsupportedError for what has no text."""
    if not value.is_valid:
        return None
    if isinstance(data_type, t.DecimalType):
        return format(value.as_py(), f".{data_type.scale}f")
    if data_type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return _moment(value, data_type)
    plain = value.as_py()
    if data_type == t.BOOLEAN:
        return "true" if plain else "false"
    if data_type == t.DOUBLE:
        return java_double(plain, np.float64)
    if data_type == t.FLOAT:
        return java_double(plain, np.float32)
    if data_type == t.BINARY:
        try:
            plain = plain.decode()
        except UnicodeDecodeError as error:
            raise UnsupportedError("UNSUPPORTED_FEATURE", "A BINARY partition value that is not UTF-8 text.") from error
    if isinstance(plain, str):
        if "\0" in plain:
            raise UnsupportedError("UNSUPPORTED_FEATURE", "A partition value with a NUL character is not supported.")
        return plain or None
    if data_type in t.INTEGRALS:
        return str(plain)
    raise UnsupportedError("UNSUPPORTED_DATATYPE", f"A partition column of type {data_type.sql} is not supported.")


def _moment(value: pa.Scalar, data_type: t.DataType) -> str:
    if data_type == t.DATE:
        text = iso_text(value.cast(pa.int32()).as_py(), "D")
    else:
        text = iso_text(value.cast(pa.int64()).as_py(), "us")
    if text is None:
        raise UnsupportedError("UNSUPPORTED_FEATURE", "A partition value outside of the years 1 to 9999.")
    if data_type == t.TIMESTAMP:
        return text + "Z"
    return text if data_type == t.DATE else _shown(text)


def _shown(text: str) -> str:
    """A moment as Spark shows it: without zeros at the end of a fraction."""
    whole, _, fraction = text.replace("T", " ").partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def folder_text(text: str | None, data_type: t.DataType) -> str | None:
    """The text of a value in the name of its folder: that of a TIMESTAMP by the clock, here always UTC's."""
    return _shown(text.removesuffix("Z")) if text is not None and data_type == t.TIMESTAMP else text


def iso_text(value: int, unit: Literal["D", "us"]) -> str | None:
    """ISO text of days or microseconds since 1970; None outside of the years 1 to 9999, which have other spellings."""
    text = str(np.datetime64(value, unit))
    return text if text[4:5] == "-" and not text.startswith(("-", "0000")) else None


def java_double(value: float, kind: type[np.floating[Any]]) -> str:
    """`Double.toString` (or `Float.toString`) of Java; -0.0 as 0.0, which is what Spark partitions by."""
    return float_text(0.0 if value == 0 else value, 53 if kind is np.float64 else 24)


def typed_value(text: str | None, data_type: t.DataType, zone: Zone) -> pa.Scalar:
    """The value of a partition from its text in the log; an empty text is NULL for every type.

    Instants without a zone are read by the clock of `zone`. Raises ValueError.
    """
    arrow = data_type.arrow()
    if text is None or text == "":
        return pa.scalar(None, arrow)
    if data_type == t.BINARY:
        return pa.scalar(text.encode(), arrow)
    if data_type == t.TIMESTAMP:
        micros = parse_timestamp(text, zone)
        if micros is None:
            raise ValueError(f"{text!r} is no TIMESTAMP")
        return pa.scalar(micros, pa.int64()).cast(arrow)
    return pa.scalar(text).cast(arrow)


def is_cast(text: str, data_type: t.DataType) -> bool:
    """Whether Spark, which reads partition values by CAST, makes a value of a text: `1.1` of a DECIMAL(10, 3)."""
    plain = text.strip(BLANKS)
    if data_type == t.BOOLEAN:
        return plain.lower() in t.TRUTHS
    if data_type == t.DATE:
        return parse_date(plain) is not None
    if data_type == t.TIMESTAMP_NTZ:
        return parse_ntz(plain) is not None
    if data_type == t.TIMESTAMP:
        return parse_timestamp(plain, UTC) is not None
    if not _NUMBER.fullmatch(plain):
        return False
    if isinstance(data_type, t.DecimalType):
        return bool(abs(Decimal(plain)) < 10 ** (data_type.precision - data_type.scale))
    if data_type in t.INTEGRALS:
        most = 1 << (data_type.arrow().bit_width - 1)
        return bool(_WHOLE.fullmatch(plain) and -most <= int(plain) < most)
    return data_type in (t.DOUBLE, t.FLOAT)


def typed_values(
    values: pa.StructArray | None, columns: tuple[Column, ...], names: tuple[str, ...], count: int
) -> dict[str, pa.Array]:
    """The values of files as deltalake has them, typed as the columns are, by these columns' names.

    Raises ServerError DELTA_LOG_CORRUPT.
    """
    out: dict[str, pa.Array] = {}
    by_name = {c.name: c for c in columns}
    for name in names:
        column = by_name[name]
        column.check_readable()
        if column.type == t.VARIANT:
            raise ServerError("DELTA_LOG_CORRUPT", f"The table is partitioned by the column {name} VARIANT.")
        arrow = column.type.arrow()
        # By their names in the table: that in files may be another column's name, once columns were renamed.
        index = -1 if values is None else values.type.get_field_index(name)
        if values is None or index < 0:
            if count:
                raise ServerError("DELTA_LOG_CORRUPT", f"The log holds no values of the partition column {name}.")
            out[name] = pa.nulls(0, arrow)
            continue
        # `flatten` applies the struct's own validity, `field` would not.
        typed = values.flatten()[index].cast(arrow)
        if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
            # The protocol reads an empty text as NULL for every type.
            typed = pc.if_else(pc.equal(pc.binary_length(typed), 0), pa.scalar(None, arrow), typed)
        if pa.types.is_date(arrow) and (pc.max(typed.cast(pa.int32())).as_py() or 0) > _LAST_DAY:
            raise ServerError("DELTA_LOG_CORRUPT", f"A value of the partition column {name} lies after 9999-12-31.")
        out[name] = typed
    return out


def folder_name(column: str, text: str | None) -> str:
    """``column=value`` as a folder on disk."""
    return f"{_escaped(column)}={NULL_FOLDER if text is None else _escaped(text)}"


def _escaped(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)


def folder(values: Mapping[str, str | None]) -> str:
    """The relative folder of a partition, ending in a slash; empty for an unpartitioned table."""
    return "".join(folder_name(name, text) + "/" for name, text in values.items())


def log_path(relative: str) -> str:
    """A relative path on disk as written in ``add.path``."""
    return quote(relative, safe=_PATH_SAFE)
