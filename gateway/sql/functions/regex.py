"""Rows of regular-expression functions; patterns are Java's and are translated when a row is computed."""

from __future__ import annotations

from gateway.errors import UserError
from gateway.sql.functions.constants import constant
from gateway.sql.functions.lowerings import integer, kernel
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, coerce_args, make, param
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import BOOLEAN, INT, STRING, array

_META = frozenset("\\^$.|?*+()[]{}")
_TEXT = (param("string"), param("string"))


def plain_text(pattern: Expr) -> str | None:
    """The text that a constant pattern stands for if it has no meta characters (an escaped one counts as text)."""
    if not isinstance(pattern, Lit) or not pattern.value:
        return None
    value, out, at = str(pattern.value), "", 0
    while at < len(value):
        char = value[at]
        if char == "\\":
            following = value[at + 1 : at + 2]
            if not following or following.isalnum() or not following.isascii():
                return None
            out, at = out + following, at + 2
            continue
        if char in _META:
            return None
        out, at = out + char, at + 1
    return out


def _is_valid(pattern: Expr) -> bool:
    """Whether a constant pattern is so simple that no text makes it fail: text, dots and classes, each at most repeated."""
    if not isinstance(pattern, Lit) or not pattern.value:
        return False
    left = str(pattern.value).removeprefix("^").removesuffix("$")
    while left:
        size = 2 if left[0] == "\\" else 1
        atom, left = left[:size], left[size:]
        if size == 2 and not (atom[1:] in tuple("dDsSwW") or (atom[1:].isascii() and atom[1:] in _META)):
            return False
        if size == 1 and atom in _META and atom != ".":
            return False
        left = left[1:] if left[:1] in tuple("*+?") else left
    return True


def _rlike(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    literal = plain_text(args[1])
    if literal is not None:
        return bound.fn("contains", BOOLEAN, args[0], bound.lit(literal, STRING), nullable=call.nullable)
    return bound.udf("rlike", BOOLEAN, *args, nullable=call.nullable, raises=not _is_valid(args[1]))


def _split(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    literal, limit = plain_text(args[1]), args[2]
    if literal is not None and isinstance(limit, Lit) and limit.value is not None:
        return bound.udf("split_literal", call.type, args[0], params=(literal, limit.value), nullable=call.nullable)
    return bound.udf("split", call.type, *args, nullable=call.nullable, raises=True)


def _bind_replace(function: Function, site: Site) -> Expr:
    row = Function("regexp_replace", (*_TEXT, param("string"), param(INT)), optional=1, defaults=(integer(1),))
    args = coerce_args(row, site)
    position = 1 if len(site.args) == 3 else constant(site, 3, args[3])
    if position is not None and position <= 0:
        raise UserError(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the position must be between (0, 2147483647] '
            f"(current value = {position}).",
            span=site.span_of(3),
        )
    return make(function, site, args, STRING, any(a.nullable for a in args))


def _shown_like(call: Call, names: list[str]) -> str:
    return f"{(call.shown or 'rlike').upper() if call.shown != 'regexp_like' else 'REGEXP_LIKE'}({', '.join(names)})"


ROWS: tuple[Function, ...] = (
    Function("rlike", _TEXT, returns=BOOLEAN, lower=_rlike, aliases=("regexp", "regexp_like"), shown=_shown_like),
    Function(
        "regexp_extract",
        (*_TEXT, param(INT)),
        optional=1,
        defaults=(integer(1),),
        returns=STRING,
        lower=kernel("regexp_extract", raises=True),
    ),
    Function(
        "regexp_extract_all",
        (*_TEXT, param(INT)),
        optional=1,
        defaults=(integer(1),),
        returns=array(STRING),
        lower=kernel("regexp_extract_all", raises=True),
    ),
    Function("regexp_count", _TEXT, returns=INT, lower=kernel("regexp_count", raises=True)),
    Function("regexp_substr", _TEXT, returns=STRING, nullable="always", lower=kernel("regexp_substr", raises=True)),
    Function(
        "regexp_instr",
        (*_TEXT, param(INT)),
        optional=1,
        defaults=(integer(0),),
        returns=INT,
        lower=kernel("regexp_instr", raises=True),
    ),
    Function("regexp_replace", bind=_bind_replace, lower=kernel("regexp_replace", raises=True)),
    Function(
        "split",
        (*_TEXT, param(INT)),
        optional=1,
        defaults=(integer(-1),),
        returns=array(STRING, False),
        lower=_split,
    ),
)
