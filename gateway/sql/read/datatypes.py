"""Spark's DDL types from tokens to `gateway.sqltypes`."""

from __future__ import annotations

from gateway.errors import UnsupportedError, UserError
from gateway.sql.read.cursor import DEFAULT_LIMITS, Cursor, Limits
from gateway.sql.read.tokens import END, scan
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_UNITS,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    VOID,
    YEAR_MONTH_UNITS,
    DataType,
    StructField,
    array,
    char,
    decimal,
    interval,
    map_of,
    struct,
    varchar,
)

_SIMPLE: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": TINYINT,
    "BYTE": TINYINT,
    "SMALLINT": SMALLINT,
    "SHORT": SMALLINT,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "FLOAT": FLOAT,
    "REAL": FLOAT,
    "DOUBLE": DOUBLE,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
    "STRING": STRING,
    "BINARY": BINARY,
    "VARIANT": VARIANT,
    "VOID": VOID,
}
_MAX_DEPTH = 100
_UNITS = YEAR_MONTH_UNITS + DAY_TIME_UNITS


def data_type(cursor: Cursor, depth: int = 0) -> DataType:
    """The type at `cursor`; UNSUPPORTED_DATATYPE for a type that is unknown or has no form here."""
    start = cursor.index
    if depth > _MAX_DEPTH:
        cursor.too_complex("nested types", _MAX_DEPTH)
    word = cursor.word
    if not word[:1].isalpha():
        cursor.fail()
    cursor.advance()
    simple = _SIMPLE.get(word)
    if simple is not None and cursor.word != "(":
        return _simple(cursor, word, simple, start)
    if word in ("DECIMAL", "DEC", "NUMERIC"):
        return _decimal(cursor, start)
    if word in ("CHAR", "CHARACTER", "VARCHAR"):
        return _text(cursor, word, start)
    if word == "INTERVAL":
        return _interval(cursor, start)
    if word == "ARRAY" and cursor.word == "<":
        cursor.advance()
        element = data_type(cursor, depth + 1)
        cursor.expect(">")
        return array(element)
    if word == "MAP" and cursor.word == "<":
        cursor.advance()
        key = data_type(cursor, depth + 1)
        cursor.expect(",")
        value = data_type(cursor, depth + 1)
        cursor.expect(">")
        return map_of(key, value)
    if word == "STRUCT" and cursor.match("<>"):
        return struct()
    if word == "STRUCT" and cursor.word == "<":
        return _struct(cursor, depth)
    if word in ("ARRAY", "MAP", "STRUCT"):
        text = cursor.tokens[start].text
        raise UserError("INCOMPLETE_TYPE_DEFINITION." + word, f"Incomplete complex type: {text}.",
                        span=cursor.span(start))  # fmt: skip
    _skip_arguments(cursor)
    source = "".join(t.text for t in cursor.tokens[start : cursor.index])
    raise UnsupportedError(
        "UNSUPPORTED_DATATYPE", f'Unsupported data type "{source.upper()}".', span=cursor.span(start)
    )


def parse_type(text: str, limits: Limits = DEFAULT_LIMITS) -> DataType:
    """The type that `text` spells, such as ``STRUCT<a: INT NOT NULL COMMENT 'x'>``."""
    cursor = _cursor(text, limits)
    found = data_type(cursor)
    if cursor.word != END:
        cursor.fail()
    return found


def parse_columns(text: str, limits: Limits = DEFAULT_LIMITS) -> DataType:
    """The columns that `text` lists as CREATE TABLE does, such as ``a INT NOT NULL COMMENT 'x', b STRING``."""
    cursor = _cursor(text, limits)
    fields = [_field(cursor, 0, colon=False)]
    while cursor.match(","):
        fields.append(_field(cursor, 0, colon=False))
    if cursor.word != END:
        cursor.fail()
    return struct(*fields)


def _cursor(text: str, limits: Limits) -> Cursor:
    tokens, words, error = scan(text)
    if error is not None:
        raise error
    if len(words) > limits.depth * 8:
        raise UnsupportedError("UNSUPPORTED_DATATYPE", "The data type is too long.")
    return Cursor(tokens, words, limits)


def _simple(cursor: Cursor, word: str, simple: DataType, start: int) -> DataType:
    if word == "TIMESTAMP" and cursor.match("WITHOUT", "TIME", "ZONE"):
        return TIMESTAMP_NTZ
    if word == "STRING" and cursor.word == "COLLATE" and cursor.is_name(1):
        cursor.advance()
        collation = cursor.identifier()
        if collation.name.upper() != "UTF8_BINARY":
            message = f'Unsupported data type "STRING COLLATE {collation.name.upper()}".'
            raise UnsupportedError("UNSUPPORTED_DATATYPE", message, span=cursor.span(start))
    return simple


def _decimal(cursor: Cursor, start: int) -> DataType:
    precision, scale = 10, 0
    if cursor.match("("):
        precision = cursor.integer()
        if cursor.match(","):
            negative = cursor.match("-")
            scale = -cursor.integer() if negative else cursor.integer()
        cursor.expect(")")
    if precision > MAX_PRECISION:
        message = f"Decimal precision {precision} exceeds max precision {MAX_PRECISION}."
        raise UserError("DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", message, span=cursor.span(start))
    if precision < 1 or not 0 <= scale <= precision:
        message = f'Unsupported data type "DECIMAL({precision},{scale})".'
        raise UnsupportedError("UNSUPPORTED_DATATYPE", message, span=cursor.span(start))
    return decimal(precision, scale)


def _text(cursor: Cursor, word: str, start: int) -> DataType:
    if not cursor.match("("):
        message = f'DataType "{word}" requires a length parameter, for example "{word}"(10). Please specify the length.'
        raise UserError("DATATYPE_MISSING_SIZE", message, span=cursor.span(start))
    length = cursor.integer()
    cursor.expect(")")
    if length < 1:
        raise UnsupportedError(
            "UNSUPPORTED_DATATYPE", f'Unsupported data type "{word}({length})".', span=cursor.span(start)
        )
    return varchar(length) if word == "VARCHAR" else char(length)


def _interval(cursor: Cursor, start: int) -> DataType:
    first = cursor.word.lower()
    if first not in _UNITS:
        raise UnsupportedError("UNSUPPORTED_DATATYPE", 'Unsupported data type "INTERVAL".', span=cursor.span(start))
    cursor.advance()
    last = first
    if cursor.match("TO"):
        last = cursor.word.lower()
        family = YEAR_MONTH_UNITS if first in YEAR_MONTH_UNITS else DAY_TIME_UNITS
        if last not in family or family.index(last) <= family.index(first):
            cursor.fail()
        cursor.advance()
    return interval(first, last)


def _struct(cursor: Cursor, depth: int) -> DataType:
    cursor.expect("<")
    fields: list[StructField] = []
    while cursor.word != ">":
        if fields:
            cursor.expect(",")
        fields.append(_field(cursor, depth, colon=True))
    cursor.advance()
    return struct(*fields)


def _field(cursor: Cursor, depth: int, *, colon: bool) -> StructField:
    name = cursor.identifier().name
    if colon:
        cursor.match(":")
    kind = data_type(cursor, depth + 1)
    nullable = not cursor.match("NOT", "NULL")
    comment = cursor.string() if cursor.match("COMMENT") else None
    return StructField(name, kind, nullable, comment)


def _skip_arguments(cursor: Cursor) -> None:
    """Step over ``(…)`` of an unknown type, so that its message names all of it."""
    if cursor.word != "(":
        return
    while cursor.word not in (")", END):
        cursor.advance()
    if cursor.word == ")":
        cursor.advance()
