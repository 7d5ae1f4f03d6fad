"""Java's datetime patterns (as Spark admits them), compiled once per pattern to a vectorised writer or a strict reader.

Source: java.time.format.DateTimeFormatterBuilder.appendPattern, strict resolver, English names; Spark's DateTimeFormatterHelper
for the letters that it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.functions import RowError
from gateway.engine.functions.plain_texts import Layout, layout
from gateway.instants import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    UTC,
    Ints,
    Zone,
    days_of,
    fields_of,
    instant_of,
    month_starts,
    months_of,
    zone_of,
)

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_MOST = {"F": 1, "y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "E": 4, "a": 1, "h": 2, "H": 2, "k": 2, "K": 2, "m": 2, "s": 2, "S": 9,
         "q": 4, "Q": 4, "G": 4, "V": 2, "O": 4, "X": 5, "x": 5, "Z": 5, "z": 4, "v": 4}  # fmt: skip
_SIMPLE = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")  # SimpleDateFormat's letters
_WEEK_BASED = "YWwuec"
_ILLEGAL, _ILLEGAL_IN_TEXTS = "ABnNp", "EFqQ"  # the latter where texts are read
_CONFIG = "spark.sql.legacy.timeParserPolicy"

Token = tuple[str, int]  # a letter and how often it stands there; ("", 0) never occurs
Part = Token | str


def _refused(letter: str) -> RowError:
    return RowError(_UNSUPPORTED, f"The datetime pattern letter '{letter}' is not supported.")


_UNSUPPORTED = "UNSUPPORTED_FEATURE"
OLD_PATTERNS = "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_"
_GUIDE = (
    "You can form a valid datetime pattern with the guide from "
    "'https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html'."
)


def _invalid(pattern: str, sub: str, text: str) -> RowError:
    return RowError(f"INVALID_DATETIME_PATTERN.{sub}", f"Unrecognized datetime pattern: {pattern}. {text}")


def unknown(pattern: str) -> RowError:
    """The error of a pattern of TIMESTAMP_NTZ, of which Spark never says that it was one before Spark 3."""
    return _invalid(pattern, "WITH_SUGGESTION", _GUIDE)


def _unrecognized(pattern: str) -> RowError:
    return RowError(
        "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION",
        f"You may get a different result due to the upgrading to Spark >= 3.0: Fail to recognize '{pattern}' pattern in the "
        f'DateTimeFormatter. 1) You can set "{_CONFIG}" to "LEGACY" to restore the behavior before Spark 3.0. 2) You can '
        "form a valid datetime pattern with the guide from "
        "'https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html'.",
    )


@lru_cache(maxsize=256)
def parts_of(pattern: str, reads: bool = False) -> tuple[Part, ...]:
    """The pattern as literals and (letter, count) pairs; letters that Spark refuses, where it `reads` too, raise its errors."""
    try:
        return _parts(pattern, reads)
    except RowError as error:
        if error.condition != _UNSUPPORTED and _meant_something(pattern):
            raise _unrecognized(pattern) from None
        raise


def _meant_something(pattern: str) -> bool:
    """Whether Java's SimpleDateFormat takes the pattern, so that Spark's error is that its meaning has changed."""
    pieces = pattern.split("'")
    letters = {c for piece in pieces[::2] for c in piece if c.isascii() and c.isalpha()}
    return len(pieces) % 2 == 1 and letters <= _SIMPLE and "XXXX" not in pattern


def _parts(pattern: str, reads: bool) -> tuple[Part, ...]:
    _check_letters(pattern, _ILLEGAL + _ILLEGAL_IN_TEXTS * reads)
    parts: list[Part] = []
    at = 0
    while at < len(pattern):
        c = pattern[at]
        if c == "'":
            end, text = at + 1, ""
            while True:
                if end >= len(pattern):
                    raise unknown(pattern)
                if pattern[end] == "'":
                    if pattern[end + 1 : end + 2] != "'":
                        break
                    end += 1
                text += pattern[end]
                end += 1
            parts.append(text or "'")
            at = end + 1
        elif c.isascii() and c.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == c:
                end += 1
            parts.append(_checked(c, end - at, pattern))
            at = end
        elif c in "[]":
            raise RowError(_UNSUPPORTED, "Optional sections in datetime patterns are not supported.")
        elif c in "{}#":
            raise unknown(pattern)
        else:
            parts.append(c)
            at += 1
    return tuple(parts)


def _check_letters(pattern: str, illegal: str) -> None:
    """The letters that Spark looks for between quotes before it reads the pattern."""
    parts = pattern.split("'")[::2]
    if "[" in "".join(parts):  # Spark tells of these otherwise; they are refused
        return
    for part in parts:
        for letter in part:
            if letter in _WEEK_BASED:
                raise RowError(
                    "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_WEEK_BASED_PATTERN",
                    "You may get a different result due to the upgrading to Spark >= 3.0: All week-based patterns are "
                    f"unsupported since Spark 3.0, detected week-based character: {letter}. Please use the SQL function "
                    "EXTRACT instead.",
                )
        for letter in part:
            if letter in illegal:
                raise _invalid(
                    pattern,
                    "ILLEGAL_CHARACTER",
                    f"Illegal pattern character found in datetime pattern: {letter}. Please provide legal character.",
                )


def _checked(letter: str, count: int, pattern: str) -> Token:
    most = _MOST.get(letter)
    if letter == "F" and count > 1:
        raise unknown(pattern)
    if most is None or (letter == "V" and count != 2) or (letter in "Ov" and count not in (1, 4)):
        raise unknown(pattern)
    if count > most:
        if letter in "GMLEQq" and count == 5:
            raise _invalid(
                pattern, "LENGTH", f"Too many letters in datetime pattern: {pattern}. Please reduce pattern length."
            )
        raise unknown(pattern)
    return letter, count


_PADDED = pa.array([f"{i:02d}" for i in range(100)])
_YEARS = pa.array([f"{i:04d}" for i in range(10000)])


def write(local: Ints, offsets: Ints, zone: Zone, pattern: str) -> pa.Array:
    """Wall clock times as text by `pattern`; `offsets` are microseconds east of UTC per row.

    Raises RowError for a pattern that Spark refuses, or that needs names of zones.
    """
    parts = parts_of(pattern)
    era = any(p[0] == "G" for p in parts if isinstance(p, tuple))
    clock = _Clock(local, offsets, zone, era)
    columns = [p if isinstance(p, str) else clock.column(*p) for p in parts]
    if not any(isinstance(c, pa.Array) for c in columns):
        return pa.array(["".join(columns)] * len(local), pa.string())
    return pc.binary_join_element_wise(*columns, "")


def _pick(words: tuple[str, ...], index: Ints) -> pa.Array:
    return pa.array(words).take(pa.array(index))


def _number(values: Ints, width: int) -> pa.Array:
    if width == 2 and len(values) and values.min() >= 0 and values.max() < 100:
        return _PADDED.take(pa.array(values))
    texts = pa.array(values).cast(pa.string())
    return pc.utf8_lpad(texts, width, "0") if width > 1 else texts


class _Clock:
    """The fields of wall clock times, computed when a letter asks for them."""

    def __init__(self, local: Ints, offsets: Ints, zone: Zone, era: bool) -> None:
        self.days = local // MICROS_PER_DAY
        self.rest = local % MICROS_PER_DAY
        self.year, self.month, self.day = fields_of(self.days)
        self.hour = self.rest // (3600 * MICROS_PER_SECOND)
        self.offsets, self.zone, self.era = offsets, zone, era

    def column(self, letter: str, count: int) -> pa.Array:
        simple: dict[str, Callable[[], Ints]] = {
            "d": lambda: self.day,
            "F": lambda: (self.day - 1) % 7 + 1,
            "D": lambda: self.days - month_starts(months_of(self.days) - self.month + 1) + 1,
            "H": lambda: self.hour,
            "k": lambda: np.where(self.hour == 0, 24, self.hour),
            "K": lambda: self.hour % 12,
            "h": lambda: np.where(self.hour % 12 == 0, 12, self.hour % 12),
            "m": lambda: self.rest // (60 * MICROS_PER_SECOND) % 60,
            "s": lambda: self.rest // MICROS_PER_SECOND % 60,
        }
        if letter in simple:
            return _number(simple[letter](), count)
        if letter == "y":
            return self._year(count)
        if letter in "ML":
            if count <= 2:
                return _number(self.month, count)
            return _pick(MONTHS if count == 4 else tuple(m[:3] for m in MONTHS), self.month - 1)
        if letter == "E":
            return _pick(DAYS if count == 4 else tuple(d[:3] for d in DAYS), (self.days + 3) % 7)
        if letter == "a":
            return _pick(("AM", "PM"), self.hour // 12)
        if letter == "S":
            micros = self.rest % MICROS_PER_SECOND
            texts = pc.utf8_lpad(pa.array(micros).cast(pa.string()), 6, "0")
            return pc.utf8_slice_codeunits(texts, 0, count) if count <= 6 else pc.utf8_rpad(texts, count, "0")
        if letter in "qQ":
            quarter = (self.month - 1) // 3
            if count <= 2:
                return _number(quarter + 1, count)
            return _pick(("Q1", "Q2", "Q3", "Q4") if count == 3 else _QUARTERS, quarter)
        if letter == "G":
            return _pick(
                ("BC", "AD") if count < 4 else ("Before Christ", "Anno Domini"), (self.year > 0).astype(np.int64)
            )
        if letter == "V":
            return pa.array([zone_text(self.zone)] * len(self.days), pa.string())
        if letter in "zv":
            if self.zone != UTC or self.zone.id not in ("UTC", "Etc/UTC"):
                raise _refused(letter)
            return pa.array(["UTC" if count < 4 else "Coordinated Universal Time"] * len(self.days), pa.string())
        return self._offset(letter, count)

    def _year(self, count: int) -> pa.Array:
        year = np.where(self.year > 0, self.year, 1 - self.year) if self.era else self.year
        if count == 2:
            return _PADDED.take(pa.array(abs(year) % 100))
        if count == 4 and len(year) and year.min() >= 0 and year.max() < 10000:
            return _YEARS.take(pa.array(year))

        def shown(value: int) -> str:
            digits = str(abs(value)).rjust(count, "0")
            return f"-{digits}" if value < 0 else f"+{digits}" if count >= 4 and len(digits) > count else digits

        return pa.array([shown(int(v)) for v in year], pa.string())

    def _offset(self, letter: str, count: int) -> pa.Array:
        distinct, inverse = np.unique(self.offsets, return_inverse=True)
        texts = pa.array([offset_text(int(o) // MICROS_PER_SECOND, letter, count) for o in distinct], pa.string())
        return texts.take(pa.array(inverse.reshape(-1)))


def zone_text(zone: Zone) -> str:
    """The zone's id as Java prints it."""
    return zone.region if zone.region is not None else zone.id


def offset_text(seconds: int, letter: str, count: int) -> str:
    """An offset by the letters X, x, Z, O."""
    sign, size = ("-" if seconds < 0 else "+"), abs(seconds)
    hours, minutes, rest = size // 3600, size // 60 % 60, size % 60
    if letter == "O" or (letter == "Z" and count == 4):
        if not size:
            return "GMT"
        if count == 4:
            return f"GMT{sign}{hours:02d}:{minutes:02d}" + (f":{rest:02d}" if rest else "")
        return f"GMT{sign}{hours}" + (f":{minutes:02d}" if minutes or rest else "") + (f":{rest:02d}" if rest else "")
    if letter == "Z":
        if count == 5:
            return "Z" if not size else f"{sign}{hours:02d}:{minutes:02d}" + (f":{rest:02d}" if rest else "")
        return f"{sign}{hours:02d}{minutes:02d}"
    if letter == "X" and not size:
        return "Z"
    colon = ":" if count in (3, 5) else ""
    text = f"{sign}{hours:02d}"
    if count > 1 or minutes:
        text += f"{colon}{minutes:02d}"
    return text + (f"{colon}{rest:02d}" if count > 3 and rest else "")


_NUMERIC = "yMLdHkKhmsS"


@lru_cache(maxsize=256)
def _reader(pattern: str) -> tuple[re.Pattern[str], tuple[Token, ...]]:
    parts = parts_of(pattern, reads=True)
    expression, tokens = "", []
    for i, part in enumerate(parts):
        if isinstance(part, str):
            expression += re.escape(part)
            continue
        letter, count = part
        if letter in "DGzvO":
            raise _refused(letter)
        next_numeric = i + 1 < len(parts) and _is_numeric(parts[i + 1])
        if _is_numeric(part) and next_numeric and count == 1 and letter != "S":
            raise RowError(
                _UNSUPPORTED,
                f"Parsing with the datetime pattern '{pattern}' (adjacent numbers) is not supported.",
            )
        # Java never gives back what a field has taken
        expression += f"((?>{_field(letter, count, _behind(parts[i + 1 :]) if next_numeric else '')}))"
        tokens.append(part)
    return re.compile(expression, re.IGNORECASE), tuple(tokens)


def _is_numeric(part: Part) -> bool:
    return isinstance(part, tuple) and part[0] in _NUMERIC and not (part[0] in "ML" and part[1] > 2)


def _behind(parts: Sequence[Part]) -> str:
    """What must follow a year: it takes all digits that follow each other but for those of numbers of fixed width behind it.

    Those of a fraction, which has none, are taken, too.
    """
    digits = 0
    for part in parts:
        if not _is_numeric(part) or part[0] == "S" or part[1] != 2:
            break
        digits += 2
    return f"(?=[0-9]{{{digits}}}(?![0-9]))"


def _field(letter: str, count: int, behind: str) -> str:
    if letter == "y":
        if count == 2:
            return "[0-9]{2}"
        if count >= 4:
            return rf"(?:[0-9]{{{count}}}|\+[0-9]{{{count + 1},9}}|-[0-9]{{{count},9}}){behind}"
        return rf"-?[0-9]{{{count},9}}{behind}"
    if letter in "ML" and count > 2:
        names = MONTHS if count == 4 else tuple(m[:3] for m in MONTHS)
        return "|".join(names)
    if letter == "S":
        return f"[0-9]{{1,{count}}}"
    if letter == "a":
        return "AM|PM"
    if letter == "V":
        return r"[A-Za-z0-9_/+:~-]+"
    if letter in "XxZ":
        zero = "Z|" if letter == "X" or (letter == "Z" and count == 5) else ""
        forms = {
            ("X", 1): r"[+-]\d\d(?:\d\d)?", ("X", 2): r"[+-]\d{4}", ("X", 3): r"[+-]\d\d:\d\d",
            ("X", 4): r"[+-]\d{4}(?:\d\d)?", ("X", 5): r"[+-]\d\d:\d\d(?::\d\d)?",
            ("x", 4): r"[+-]\d{4}(?:\d\d)?", ("x", 5): r"[+-]\d\d:\d\d(?::\d\d)?",
            ("x", 1): r"[+-]\d\d(?:\d\d)?", ("x", 2): r"[+-]\d{4}", ("x", 3): r"[+-]\d\d:\d\d",
            ("Z", 1): r"[+-]\d{4}", ("Z", 2): r"[+-]\d{4}", ("Z", 3): r"[+-]\d{4}", ("Z", 5): r"[+-]\d\d:\d\d(?::\d\d)?",
        }  # fmt: skip
        form = forms.get((letter, count))
        if form is None:
            raise _refused(letter)
        return zero + form
    return "[0-9]{2}" if count == 2 else "[0-9]{1,9}"


@lru_cache(maxsize=256)
def layout_of(pattern: str) -> Layout | None:
    """Where the numbers of the texts of a pattern stand; None where they have no places, or `read` refuses the pattern."""
    try:
        _reader(pattern)
    except RowError:
        return None
    return layout(parts_of(pattern, reads=True))


def read(text: str, pattern: str, zone: Zone | None) -> int | None:
    """Microseconds of `text` read strictly by `pattern`: an instant with `zone`, the wall clock without; None if it fails."""
    expression, tokens = _reader(pattern)
    match = expression.fullmatch(text)
    if match is None:
        return None
    values: dict[str, int] = {}
    own: Zone | None = None
    for (letter, count), found in zip(tokens, match.groups(), strict=True):
        if letter in "ML" and count > 2:
            names = [m.lower() if count == 4 else m[:3].lower() for m in MONTHS]
            value = names.index(found.lower()) + 1
        elif letter == "a":
            value = int(found.lower() == "pm")
        elif letter in "XxZV":
            own = zone_of(found)
            if own is None:
                return None
            continue
        elif letter == "S":
            value = int(found[:6].ljust(6, "0"))
        elif letter == "y" and count == 2:
            value = 2000 + int(found)
        else:
            value = int(found)
        letter = "M" if letter == "L" else letter
        if values.setdefault(letter, value) != value:
            return None
    local = _local(values)
    return local if local is None or zone is None else instant_of(local, own or zone)


def _local(values: dict[str, int]) -> int | None:
    """Microseconds of the wall clock that the letters' values say; None where they contradict each other."""
    limits = {"H": (0, 23), "k": (1, 24), "K": (0, 11), "h": (1, 12), "m": (0, 59), "s": (0, 59)}
    if any(not low <= values.get(k, low) <= high for k, (low, high) in limits.items()):
        return None
    days = days_of(values.get("y", 1970), values.get("M", 1), values.get("d", 1))
    hour = _hour(values)
    if days is None or hour is None:
        return None
    clock = (hour * 3600 + values.get("m", 0) * 60 + values.get("s", 0)) * MICROS_PER_SECOND + values.get("S", 0)
    local = days * MICROS_PER_DAY + clock
    if not -(2**63) + MICROS_PER_DAY < local < 2**63 - MICROS_PER_DAY:
        raise RowError("ARITHMETIC_OVERFLOW", "long overflow.")
    return local


def _hour(values: dict[str, int]) -> int | None:
    """The hour of the day; a half of it alone is its first hour."""
    of_day = {values[k] % 24 for k in "Hk" if k in values}
    of_half = {values[k] % 12 for k in "hK" if k in values}
    half = values.get("a")
    if not of_day:
        of_day = {hour + 12 * (half or 0) for hour in of_half or {0}}
    hour = min(of_day)
    told = len(of_day) == 1 and of_half <= {hour % 12} and half in (None, hour // 12)
    return hour if told else None
