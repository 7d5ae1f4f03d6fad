"""Casts from and to STRING: Spark's strict readers and Java's printed forms.

Plain forms (digits only, ``yyyy-MM-dd``, ``yyyy-MM-dd HH:mm:ss``) are read and written for a whole array at once; what is left
is done once per distinct value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.functions import RowError
from gateway.engine.functions.cast_numbers import (
    LIMITS,
    Bad,
    Converted,
    decimal_of,
    each,
    malformed,
    nulls,
    out_of_range,
    timestamp_array,
    with_nulls,
)
from gateway.floats import float_texts
from gateway.instants import (
    BLANKS,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    Ints,
    Zone,
    date_text,
    ints,
    month_lengths,
    month_starts,
    parse_date,
    parse_ntz,
    parse_stamp,
    parse_timestamp,
    stamp_text,
    to_instant,
    to_local,
)
from gateway.sqltypes import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    is_fractional,
    is_integral,
)

_JAVA_NUMBER = re.compile(r"[+-]?(NaN|Infinity|((\d+\.?\d*([eE][+-]?\d+)?)|(\.\d+([eE][+-]?\d+)?))[fFdD]?)", re.ASCII)
_HEX_NUMBER = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)
_BIG_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPECIAL = {
    "inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf,
    "-inf": -math.inf, "-infinity": -math.inf, "nan": math.nan,
}  # fmt: skip
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def read_integral(array: pa.Array, target: DataType) -> Converted:
    """Sign and digits only; a number out of range is malformed too."""
    limit = LIMITS[target]
    if pc.all(pc.match_substring_regex(array, r"^-?[0-9]{1,18}$"), min_count=0).as_py():
        try:
            return Converted(array.cast(target.arrow()))
        except pa.ArrowInvalid:
            pass  # out of the range of a narrower type: which one is found below

    def read(text: str) -> int:
        text = text.strip(BLANKS)
        digits = text[1:] if text[:1] in ("+", "-") else text
        if not (digits.isascii() and digits.isdigit()):
            raise Bad
        digits = digits.lstrip("0") or "0"
        value = int(digits) if len(digits) <= 19 else limit + 1
        value = -value if text[0] == "-" else value
        if not -limit <= value < limit:
            raise Bad
        return value

    return Converted(*each(array, target.arrow(), read), malformed(STRING, target))


def read_fractional(array: pa.Array, target: DataType) -> Converted:
    """Java's Double.parseDouble / Float.parseFloat, and ``inf``, ``infinity``, ``nan`` in any case."""
    plain = pc.match_substring_regex(array, r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$")
    if pc.all(plain, min_count=0).as_py():
        return Converted(array.cast(target.arrow()))

    def read(text: str) -> Any:
        text = text.strip("".join(map(chr, range(33))))
        special = _SPECIAL.get(text.lower())
        if special is not None:
            return special
        if _JAVA_NUMBER.fullmatch(text):
            text = text.rstrip("fFdD") if text[-1] in "fFdD" else text
            if text.endswith("NaN"):
                return math.nan
            if target == FLOAT:
                return pa.array([text]).cast(pa.float32())[0].as_py()
            return float(text)
        if _HEX_NUMBER.fullmatch(text):
            value = float.fromhex(text.rstrip("fFdD") if "p" in text.lower()[:-1] else text)
            return float(np.float32(value)) if target == FLOAT else value
        raise Bad

    return Converted(*each(array, target.arrow(), read), malformed(STRING, target))


def read_decimal(array: pa.Array, target: DecimalType) -> Converted:
    """Java's BigDecimal(String), rounded half up; too many digits raise another condition than bad text."""
    plain = pc.match_substring_regex(array, r"^[+-]?[0-9]{1,18}(\.[0-9]{0,18})?$")
    if pc.all(plain, min_count=0).as_py():
        try:
            return Converted(array.cast(target.arrow()))
        except pa.ArrowInvalid:
            pass  # digits to round or too many of them: once per value below

    def parse(text: str) -> Decimal | None:
        text = text.strip(BLANKS)
        if not _BIG_DECIMAL.fullmatch(text):
            return None
        try:
            return Decimal(text)
        except InvalidOperation:
            return None

    def read(text: str) -> Decimal:
        value = parse(text)
        if value is None:
            raise Bad
        if value and value.adjusted() > 60:
            raise Bad
        if value and value.adjusted() < -60:
            value = Decimal(0)
        return decimal_of(value, target)

    def error(text: str) -> RowError:
        value = parse(text)
        if value is None:
            return malformed(STRING, target)(text)
        if value and value.adjusted() >= 38:
            shown = text.strip(BLANKS)
            return RowError(
                "NUMERIC_OUT_OF_SUPPORTED_RANGE",
                f"The value {shown} cannot be interpreted as a numeric since it has more than 38 digits.",
            )
        return out_of_range(target)(value)

    return Converted(*each(array, target.arrow(), read), error)


def read_boolean(array: pa.Array) -> Converted:
    """t true y yes 1 / f false n no 0 in any case."""
    words = pc.ascii_lower(pc.utf8_trim(array, BLANKS))
    yes = pc.is_in(words, pa.array(_TRUE))
    no = pc.is_in(words, pa.array(_FALSE))
    void = nulls(array)
    true = np.asarray(yes.to_numpy(zero_copy_only=False), dtype=np.bool_)
    bad = ~true & ~np.asarray(no.to_numpy(zero_copy_only=False), dtype=np.bool_) & ~void
    return Converted(with_nulls(true, void, pa.bool_()), bad, malformed(STRING, BOOLEAN))


def _plain_columns(array: pa.Array, width: int) -> Any:
    """The bytes of an array without NULLs whose texts are all `width` bytes long, one row each; None otherwise."""
    if array.null_count or not len(array):
        return None
    lengths = pc.min_max(pc.binary_length(array)).as_py()
    if lengths["min"] != width or lengths["max"] != width:
        return None
    _, offsets, data = array.buffers()
    start = int(np.frombuffer(offsets, np.int32, 1, 4 * array.offset)[0])
    return np.frombuffer(data, np.uint8, width * len(array), start).reshape(len(array), width)


def _number(columns: Any, start: int, stop: int) -> tuple[Ints, Any]:
    digits = columns[:, start:stop].astype(np.int64) - 48
    ok = ((digits >= 0) & (digits <= 9)).all(axis=1)
    return digits @ (10 ** np.arange(stop - start - 1, -1, -1, dtype=np.int64)), ok


def _plain_days(columns: Any) -> Ints | None:
    """Days of ``yyyy-MM-dd`` in the first ten bytes; None if any row is anything else."""
    year, a = _number(columns, 0, 4)
    month, b = _number(columns, 5, 7)
    day, c = _number(columns, 8, 10)
    ok = a & b & c & (columns[:, 4] == 45) & (columns[:, 7] == 45) & (month >= 1) & (month <= 12) & (day >= 1)
    if not ok.all():
        return None
    months = (year - 1970) * 12 + month - 1
    if not (day <= month_lengths(months)).all():
        return None
    return month_starts(months) + day - 1


def read_date(array: pa.Array) -> Converted:
    """Spark's date forms (`instants.parse_date`)."""
    columns = _plain_columns(array, 10)
    days = _plain_days(columns) if columns is not None else None
    if days is not None:
        return Converted(pa.array(days.astype(np.int32)).cast(pa.date32()))

    def read(text: str) -> int:
        value = parse_date(text)
        if value is None:
            raise Bad
        return value

    numbers, bad = each(array, pa.int32(), read)
    return Converted(numbers.cast(pa.date32()), bad, malformed(STRING, DATE))


def read_timestamp(array: pa.Array, target: DataType, zone: Zone) -> Converted:
    """Spark's timestamp forms (`instants.parse_stamp`); a time of day alone would mean today and is refused."""
    columns = _plain_columns(array, 19)
    if columns is not None:
        days = _plain_days(columns)
        hour, a = _number(columns, 11, 13)
        minute, b = _number(columns, 14, 16)
        second, c = _number(columns, 17, 19)
        ok = a & b & c & np.isin(columns[:, 10], (32, 84)) & (columns[:, 13] == 58) & (columns[:, 16] == 58)
        if days is not None and (ok & (hour < 24) & (minute < 60) & (second < 60)).all():
            local = days * MICROS_PER_DAY + ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND
            micros = to_instant(local, zone) if target == TIMESTAMP else local
            return Converted(timestamp_array(micros, nulls(array), target))

    def read(text: str) -> int:
        value = parse_timestamp(text, zone) if target == TIMESTAMP else parse_ntz(text)
        if value is not None:
            return value
        stamp = parse_stamp(text) if target == TIMESTAMP else None
        if stamp is not None and stamp.days is None:
            raise RowError("UNSUPPORTED_FEATURE", f"A time of day as a timestamp ('{text}') is not supported.")
        raise Bad

    numbers, bad = each(array, pa.int64(), read)
    return Converted(numbers.cast(target.arrow()), bad, malformed(STRING, target))


def reader(target: DataType, zone: Zone) -> Callable[[pa.Array], Converted] | None:
    """The kernel that reads STRING as `target`; None for types that it does not know."""
    if is_integral(target):
        return lambda a: read_integral(a, target)
    if is_fractional(target):
        return lambda a: read_fractional(a, target)
    if isinstance(target, DecimalType):
        return lambda a: read_decimal(a, target)
    if target == BOOLEAN:
        return read_boolean
    if target == DATE:
        return read_date
    if target in (TIMESTAMP, TIMESTAMP_NTZ):
        return lambda a: read_timestamp(a, target, zone)
    if target == BINARY:
        return lambda a: Converted(a.cast(pa.binary()))
    return None


def print_decimal(array: pa.Array) -> pa.Array:
    """Plain digits with the type's scale, never an exponent."""
    texts = array.cast(pa.string())
    if pc.any(pc.match_substring(texts, "E")).as_py():
        return each(array, pa.string(), lambda v: f"{v:f}")[0]
    return texts


def print_date(array: pa.Array) -> pa.Array:
    """``yyyy-MM-dd``; years beyond four digits with their sign."""
    days = ints(array)
    if ((days >= -719528) & (days < 2932897)).all():
        return array.cast(pa.string())
    return each(array.cast(pa.int32()), pa.string(), date_text)[0]


def print_timestamp(array: pa.Array, source: DataType, zone: Zone) -> pa.Array:
    """``yyyy-MM-dd HH:mm:ss[.f*]`` in the session's zone."""
    micros, void = ints(array), nulls(array)
    local = to_local(micros, zone) if source == TIMESTAMP else micros
    if ((local >= -719528 * MICROS_PER_DAY) & (local < 2932897 * MICROS_PER_DAY)).all():
        texts = timestamp_array(local, void, TIMESTAMP_NTZ).cast(pa.string())
        return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return each(with_nulls(local, void, pa.int64()), pa.string(), stamp_text)[0]


def print_binary(array: pa.Array) -> Converted:
    """The bytes as UTF-8; bytes that are no UTF-8 have no form here and are refused."""
    try:
        return Converted(array.cast(pa.string()))
    except pa.ArrowInvalid:

        def read(value: bytes) -> str:
            try:
                return value.decode()
            except UnicodeDecodeError as e:
                raise RowError(
                    "UNSUPPORTED_FEATURE",
                    f"A STRING of bytes that are not UTF-8 (X'{value.hex().upper()}') is not supported.",
                ) from e

        return Converted(each(array, pa.string(), read)[0])


def printer(source: DataType, zone: Zone) -> Callable[[pa.Array], Converted] | None:
    """The kernel that prints a scalar `source` as STRING; None for types that it does not know."""
    if is_integral(source):
        return lambda a: Converted(a.cast(pa.string()))
    if source == BOOLEAN:
        return lambda a: Converted(pc.if_else(a, "true", "false"))
    if isinstance(source, DecimalType):
        return lambda a: Converted(print_decimal(a))
    if is_fractional(source):
        return lambda a: Converted(float_texts(a))
    if source == DATE:
        return lambda a: Converted(print_date(a))
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        return lambda a: Converted(print_timestamp(a, source, zone))
    if source == BINARY:
        return print_binary
    return None
