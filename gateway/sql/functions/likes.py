"""LIKE and ILIKE: patterns checked as Spark checks them, with backslash as the engine's escape."""

from __future__ import annotations

from gateway.errors import UserError
from gateway.sql.functions.fold import fold
from gateway.sql.functions.lowerings import not_null
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Context, Function, Site, coerce_args, param
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import BOOLEAN, STRING


def _bind_like(function: Function, site: Site) -> Expr:
    row = Function(function.name, (param("string"), param("string"), param("string")), optional=1)
    args = coerce_args(row, site)
    pattern = fold(args[1], site.context)
    escape = args[2].value if len(args) > 2 and isinstance(args[2], Lit) else "\\"
    if len(args) > 2 and not isinstance(args[2], Lit):
        escape = ""
    if escape is None or len(escape) != 1:
        raise UserError(
            "INVALID_ESCAPE_CHAR",
            f"`EscapeChar` should be a string literal of length one, but got '{escape}'.",
            span=site.span,
        )
    value = fold(args[0], site.context)
    is_null = value is not None and value.value is None
    if pattern is not None and isinstance(pattern.value, str) and not is_null:
        _check_pattern(_as_compared(function.name, pattern.value), escape, site)
    return Call(BOOLEAN, any(a.nullable for a in args), function.name, args, site.shown, span=site.span)


def _is_valid(pattern: str, escape: str) -> bool:
    """Whether each escape stands before a character that has one."""
    left = pattern.replace(escape * 2, "").replace(f"{escape}_", "").replace(f"{escape}%", "")
    return escape not in left


def _check_pattern(pattern: str, escape: str, site: Site) -> None:
    """INVALID_FORMAT.ESC_* for an escape that stands before an ordinary character or at the end."""
    index = 0
    while index < len(pattern):
        if pattern[index] == escape:
            if index + 1 == len(pattern):
                raise UserError(
                    "INVALID_FORMAT.ESC_AT_THE_END",
                    f"The format is invalid: '{pattern}'. The escape character is not allowed to end with.",
                    span=site.span,
                )
            if pattern[index + 1] not in ("_", "%", escape):
                raise UserError(
                    "INVALID_FORMAT.ESC_IN_THE_MIDDLE",
                    f"The format is invalid: '{pattern}'. The escape character is not allowed to precede "
                    f"'{pattern[index + 1]}'.",
                    span=site.span,
                )
            index += 1
        index += 1


def _as_compared(name: str, pattern: str) -> str:
    """The pattern in small letters for ILIKE, which to Spark is LIKE of both sides' small letters."""
    return pattern.lower() if name == "ilike" else pattern


def _lower_like(call: Call, args: tuple[Expr, ...], ctx: Context) -> Expr:
    pattern = fold(call.args[1], ctx)
    escape = args[2].value if len(args) > 2 and isinstance(args[2], Lit) else "\\"
    value, given = args[0], not_null(args[0])
    if call.fn == "ilike":
        value = b.fn("lower", STRING, value, nullable=value.nullable)
    # one that binding has not seen is a column's, which was one of a single row
    if pattern is None or (pattern.value is not None and not _is_valid(_as_compared(call.fn, pattern.value), escape)):
        compared = b.fn("lower", STRING, args[1]) if call.fn == "ilike" else args[1]
        checked = b.udf("like_pattern", STRING, compared, given, params=(escape,), raises=True)
        return b.op("LIKE", BOOLEAN, value, checked, nullable=call.nullable)
    if pattern.value is None or (isinstance(value, Lit) and value.value is None):
        return b.null(BOOLEAN)
    text = _as_compared(call.fn, pattern.value)
    text = _backslashed(text, escape) if escape != "\\" else text
    return b.op("LIKE", BOOLEAN, value, Lit(STRING, False, text), nullable=call.nullable)


def _backslashed(pattern: str, escape: str) -> str:
    """The pattern with backslash as its escape character."""
    out = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == escape:
            index += 1
            out.append("\\" + pattern[index] if pattern[index] in "%_\\" else pattern[index])
        elif char == "\\":
            out.append("\\\\")
        else:
            out.append(char)
        index += 1
    return "".join(out)


ROWS: tuple[Function, ...] = (
    Function("like", bind=_bind_like, lower=_lower_like),
    Function("ilike", bind=_bind_like, lower=_lower_like),
)
