"""Bound parameters as literals and collections of them: the text that a client sent, read as its declared type says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context as Digits
from decimal import Decimal, InvalidOperation

import numpy as np

from gateway.errors import UserError, unsupported
from gateway.sql.bind.literals import interval_parts
from gateway.sql.functions.casts import fold_cast
from gateway.sql.read.datatypes import parse_type
from gateway.sql.read.statement import Marker
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.nodes import Lit
from gateway.sqltypes import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    STRING,
    TRUTHS,
    VARIANT,
    VOID,
    DecimalType,
    IntervalType,
    decimal,
)
from gateway.worker_jobs import Parameter


@dataclass(frozen=True, slots=True)
class Collection:
    """An ARRAY or MAP: a call of the function that makes it, whose items meet in a common type as they do there."""

    function: str
    items: tuple[Lit | Collection, ...]


Given = Lit | Collection
_MAKERS = {"ARRAY": "array", "MAP": "map"}
_EXACT = Digits(prec=38)  # the most digits of a DECIMAL


def bound_parameters(
    markers: Sequence[Marker], parameters: Sequence[Parameter], context: Context
) -> dict[int | str, Given]:
    """Values by marker: named ones under their lower-cased name, ``?`` under its offset in the text.

    Extra parameters are fine; a marker without one is reported where it is used. UserError for two values of one name.
    """
    given: dict[int | str, Given] = {}
    positional = [p for p in parameters if not p.name]
    named: dict[str, Parameter] = {}
    for parameter in parameters:
        if not parameter.name:
            continue
        same = named.setdefault(parameter.name.lower(), parameter)
        if same is not parameter and (same.type, same.value, same.arguments) != (
            parameter.type,
            parameter.value,
            parameter.arguments,
        ):
            raise UserError("INVALID_PARAMETER_VALUE", f"The parameter {parameter.name} has more than one value.")
        given[parameter.name.lower()] = given_by(parameter, context)
    questions = [m for m in markers if m.name is None]
    for marker, parameter in zip(questions, positional, strict=False):
        given[marker.span.start] = given_by(parameter, context)
    return given


def given_by(parameter: Parameter, context: Context) -> Given:
    """What a parameter stands for."""
    maker = _MAKERS.get(parameter.type.strip().upper())
    if maker is None or parameter.arguments is None:
        return literal_of(parameter, context)
    return Collection(maker, tuple(given_by(item, context) for item in parameter.arguments))


def literal_of(parameter: Parameter, context: Context) -> Lit:
    """The constant that a parameter stands for."""
    kind = parameter.type.strip().upper() or "STRING"
    if parameter.arguments is not None or kind in ("ARRAY", "MAP", "STRUCT"):
        raise unsupported(f"a parameter of type {kind}")
    if kind in ("VOID", "NULL"):
        return Lit(VOID, True, None)
    text = parameter.value
    type_ = parse_type(kind)
    if text is None:
        return Lit(type_, True, None)
    if type_ in (VARIANT, BINARY):
        raise unsupported(f"a parameter of type {type_.sql}")
    if isinstance(type_, IntervalType):
        return _interval(text, type_, parameter)
    if isinstance(type_, DecimalType):
        return _decimal(text, type_, parameter)
    if type_ == STRING:
        return Lit(STRING, False, text)
    if type_ == BOOLEAN:
        return Lit(BOOLEAN, False, _boolean(text, parameter))
    if type_ in (DOUBLE, FLOAT):
        return Lit(type_, False, _double(text, type_ == FLOAT, parameter))
    literal = fold_cast(Lit(STRING, False, text), type_, context)
    if literal is None or literal.value is None:
        raise _invalid(parameter)
    return Lit(type_, False, literal.value)


def _interval(text: str, type_: IntervalType, parameter: Parameter) -> Lit:
    """The text that stands in quotes in a literal of the type."""
    end = None if type_.start == type_.end else type_.end.upper()
    try:
        return Lit(type_, False, interval_parts(((text, type_.start.upper()),), end, None).value)
    except UserError:
        raise _invalid(parameter) from None


def _boolean(text: str, parameter: Parameter) -> bool:
    word = text.strip().lower()
    if word not in TRUTHS:
        raise _invalid(parameter)
    return TRUTHS[word]


def _double(text: str, single: bool, parameter: Parameter) -> float:
    try:
        value = float(_number(text, parameter))
    except ValueError:
        raise _invalid(parameter) from None
    return float(np.float32(value)) if single else value


def _number(text: str, parameter: Parameter) -> str:
    """A text without what is a number to Python alone: digits of other scripts, and underscores."""
    if "_" in text or not text.isascii():
        raise _invalid(parameter)
    return text.strip()


def _decimal(text: str, declared: DecimalType, parameter: Parameter) -> Lit:
    """Clients declare precision and scale carelessly: the value's own digits count where they need more."""
    try:
        value = Decimal(_number(text, parameter))
    except InvalidOperation:
        raise _invalid(parameter) from None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise _invalid(parameter)
    scale = max(declared.scale, -exponent, 0)
    digits = max(declared.precision - declared.scale, len(value.as_tuple().digits) + exponent, 0)
    if digits + scale > 38:
        raise _invalid(parameter)
    value = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)  # its text has the type's digits
    return Lit(decimal(max(digits + scale, 1), scale), False, value or abs(value))  # no decimal is -0


def _invalid(parameter: Parameter) -> UserError:
    return UserError(
        "INVALID_PARAMETER_MARKER_VALUE.INVALID_VALUE_TYPE",
        f"An invalid parameter mapping was provided: '{parameter.value}' is not a value of type {parameter.type}"
        + (f" (parameter {parameter.name})." if parameter.name else "."),
    )
