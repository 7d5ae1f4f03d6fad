"""Casts from and to STRING: Spark's strict readers and Java's printed forms.

Plain forms (digits only, ``yyyy-MM-dd``, ``yyyy-MM-dd HH:mm:ss``) are read and written for a whole array at once; what is left
is done once per distinct value.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
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
    to_decimal,
    with_nulls,
)
from gateway.engine.functions.plain_texts import STAMPS, Bools, read_days, read_layouts
from gateway.floats import float_texts
from gateway.instants import (
    BLANKS,
    MICROS_PER_DAY,
    Ints,
    Zone,
    date_text,
    ints,
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
    TRUTHS,
    DataType,
    DecimalType,
    decimal,
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


def read_integral(array: pa.Array, target: DataType) -> Converted:
    """Sign and digits only; a number out of range is malformed too."""
    limit = LIMITS[target]
    plain = pc.match_substring_regex(array, f"^-?[0-9]{{1,{len(str(limit)) - 1}}}$")

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

    return _in_two(array, plain, lambda a: Converted(a.cast(target.arrow())), read, malformed(STRING, target))


def _in_two(
    array: pa.Array,
    plain: pa.Array,
    together: Callable[[pa.Array], Converted],
    read: Callable[[str], Any],
    error: Callable[[Any], RowError],
) -> Converted:
    """Texts that are `plain` converted `together`, the others once per distinct value by `read`."""
    if pc.all(plain, min_count=0).as_py():
        return replace(together(array), error=error)
    void = nulls(array)
    easy = np.asarray(pc.fill_null(plain, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    done = together(pc.if_else(pa.array(easy), array, None))
    left = ~easy & ~void
    numbers, failed = each(array.filter(pa.array(left)), done.array.type, read)
    bad = np.zeros(len(array), np.bool_) if done.bad is None else done.bad.copy()
    if failed is not None:
        bad[left] = failed
    return Converted(pc.replace_with_mask(done.array, pa.array(left), numbers), bad, error)


def read_fractional(array: pa.Array, target: DataType) -> Converted:
    """Java's Double.parseDouble / Float.parseFloat, and ``inf``, ``infinity``, ``nan`` in any case."""
    plain = pc.match_substring_regex(array, r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$")

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

    return _in_two(array, plain, lambda a: Converted(a.cast(target.arrow())), read, malformed(STRING, target))


_PLAIN_DECIMAL = decimal(38, 18)


def _in_ascii(text: str) -> str:
    """A number with the digits of other scripts, which a BigDecimal takes, as those that they stand for."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() and c <= "\uffff" else c for c in text)


def _is_scale_int(text: str) -> bool:
    """Whether the scale of a number is an INT, as that of a BigDecimal must be."""
    digits, _, exponent = text.lower().partition("e")
    power = exponent.lstrip("+-0")
    if len(power) > 10:
        return False
    scale = len(digits.partition(".")[2]) + int(power or "0") * (1 if exponent.startswith("-") else -1)
    return -(1 << 31) < scale < 1 << 31


def read_decimal(array: pa.Array, target: DecimalType) -> Converted:
    """Java's BigDecimal(String), rounded half up; too many digits raise another condition than bad text."""
    plain = pc.match_substring_regex(array, r"^[+-]?[0-9]{1,18}(\.[0-9]{0,18})?$")

    def parse(text: str) -> Decimal | None:
        text = _in_ascii(text.strip(BLANKS))
        if not _BIG_DECIMAL.fullmatch(text) or not _is_scale_int(text):
            return None
        try:
            return Decimal(text)
        except InvalidOperation:
            return None

    def read(text: str) -> Decimal:
        value = parse(text)
        if value is None:
            raise Bad
        if value.adjusted() > (60 if value else 37):
            raise Bad
        if value and value.adjusted() < -60:
            value = Decimal(0)
        return decimal_of(value, target)

    def error(text: str) -> RowError:
        value = parse(text)
        if value is None:
            return malformed(STRING, target)(text)
        if value.adjusted() >= 38:
            shown = text.strip(BLANKS)
            return RowError(
                "NUMERIC_OUT_OF_SUPPORTED_RANGE",
                f"The value {shown} cannot be interpreted as a numeric since it has more than 38 digits.",
            )
        return out_of_range(target)(value)

    return _in_two(
        array, plain, lambda a: to_decimal(a.cast(_PLAIN_DECIMAL.arrow()), _PLAIN_DECIMAL, target), read, error
    )


def read_boolean(array: pa.Array) -> Converted:
    """t true y yes 1 / f false n no 0 in any case."""
    words = pc.ascii_lower(pc.utf8_trim(array, BLANKS))
    yes = pc.is_in(words, pa.array([word for word, truth in TRUTHS.items() if truth]))
    no = pc.is_in(words, pa.array([word for word, truth in TRUTHS.items() if not truth]))
    void = nulls(array)
    true = np.asarray(yes.to_numpy(zero_copy_only=False), dtype=np.bool_)
    bad = ~true & ~np.asarray(no.to_numpy(zero_copy_only=False), dtype=np.bool_) & ~void
    return Converted(with_nulls(true, void, pa.bool_()), bad, malformed(STRING, BOOLEAN))


def _and_the_rest(
    array: pa.Array, values: Ints, done: Bools, type_: pa.DataType, read: Callable[[str], int]
) -> tuple[pa.Array, Bools | None]:
    """`values` of the rows that are `done`, as `type_`, and what `read` gives for others; which of them it has failed for."""
    void = nulls(array)
    left = np.flatnonzero(~done & ~void)
    failed: Bools | None = None
    if len(left):
        numbers, bad = each(array.take(pa.array(left)), type_, read)
        values[left], void[left] = ints(numbers), nulls(numbers)
        if bad is not None:
            failed = np.zeros(len(array), np.bool_)
            failed[left] = bad
    return with_nulls(values, void, type_), failed


def read_date(array: pa.Array) -> Converted:
    """Spark's date forms (`instants.parse_date`)."""

    def read(text: str) -> int:
        value = parse_date(text)
        if value is None:
            raise Bad
        return value

    numbers, bad = _and_the_rest(array, *read_days(array), pa.int32(), read)
    return Converted(numbers.cast(pa.date32()), bad, malformed(STRING, DATE))


def read_timestamp(array: pa.Array, target: DataType, zone: Zone) -> Converted:
    """Spark's timestamp forms (`instants.parse_stamp`); a time of day alone would mean today and is refused."""
    local, done = read_layouts(array, STAMPS)
    micros = to_instant(local, zone) if target == TIMESTAMP else local

    def read(text: str) -> int:
        value = parse_timestamp(text, zone) if target == TIMESTAMP else parse_ntz(text)
        if value is not None:
            return value
        stamp = parse_stamp(text) if target == TIMESTAMP else None
        if stamp is not None and stamp.days is None:
            raise RowError("UNSUPPORTED_FEATURE", f"A time of day as a timestamp ('{text}') is not supported.")
        raise Bad

    numbers, bad = _and_the_rest(array, micros, done, pa.int64(), read)
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
