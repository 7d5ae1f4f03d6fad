"""Rows of the functions of VARIANT."""

from __future__ import annotations

from gateway.errors import Span, UnsupportedError, UserError
from gateway.sql.functions.casts import becomes_scalar, cast_scalar
from gateway.sql.functions.constants import folded
from gateway.sql.functions.lowerings import kernel
from gateway.sql.read.datatypes import parse_type
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, make
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import BOOLEAN, STRING, VARIANT, CharType, DataType

_MOST_INDEX = 2**31 - 1
_CLOSES = {"'": "']", '"': '"]'}


def steps_of(path: str, name: str, blanks: bool = False) -> tuple[str | int, ...]:
    """The names and places of a path such as ``$.a[0]['b c']``.

    Raises UserError INVALID_VARIANT_GET_PATH; UnsupportedError for blanks, which Spark's parser skips at some places, unless
    all `blanks` are within names.
    """
    wrong = UserError(
        "INVALID_VARIANT_GET_PATH",
        f"The path `{path}` is not a valid variant extraction path in `{name}`.\nA valid path should start with `$` and is "
        "followed by zero or more segments like `[123]`, `.name`, `['name']`, or `[\"name\"]`.",
    )
    if not blanks and any(c.isspace() for c in path):
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"A path with blanks ({path}) is not supported.")
    if not path.startswith("$"):
        raise wrong
    found: list[str | int] = []
    at = 1
    while at < len(path):
        end = _CLOSES.get(path[at + 1 : at + 2], "]") if path[at] == "[" else ""
        if path[at] == ".":
            stop = min((i for i in (path.find(".", at + 1), path.find("[", at + 1)) if i >= 0), default=len(path))
            step: str | int = path[at + 1 : stop]
        elif path[at] == "[" and (stop := path.find(end, at + len(end))) >= 0:
            step, stop = path[at + len(end) : stop], stop + len(end)
            if end == "]":
                if not (step.isascii() and step.isdigit()) or int(step) > _MOST_INDEX:
                    raise wrong
                step = int(step)
            elif "?" in step or end[0] in step:
                raise wrong
        else:
            raise wrong
        if step == "":
            raise wrong
        found.append(step)
        at = stop
    return tuple(found)


def _bind_get(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    value, path = site.args[0], folded(site.args[1], site.context)
    if value.type != VARIANT or not isinstance(path, Lit) or not isinstance(path.value, str):
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"{site.shown} but of a VARIANT by a constant path is not supported.", span=site.span
        )
    target = _wanted(site) if len(site.args) == 3 else VARIANT
    steps = steps_of(path.value, site.shown)
    return make(function, site, (value, path), target, True, steps)


def _wanted(site: Site) -> DataType:
    """The type that a third argument names."""
    kind = folded(site.args[2], site.context)
    if not isinstance(kind, Lit) or not isinstance(kind.value, str):
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"{site.shown} as a type that is no constant is not supported.", span=site.span
        )
    if not kind.value.strip():
        raise UserError("PARSE_EMPTY_STATEMENT", "Syntax error, unexpected empty statement.", span=site.span_of(2))
    try:
        target = parse_type(kind.value)
    except UserError as error:  # Spark's parser of types may name another condition
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"{site.shown} as {kind.value[:80]!r} is not supported.", span=site.span_of(2)
        ) from error
    if isinstance(target, CharType) or (target != VARIANT and not becomes_scalar(target)):
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"{site.shown} as {target.sql} is not supported.", span=site.span)
    return target


def _get(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    found = bound.udf("variant_get", VARIANT, args[0], params=(call.data,), raises=True)
    return found if call.type == VARIANT else cast_scalar(found, call.type, context, call.fn == "try_variant_get")


def extraction(value: Expr, path: str, span: Span | None) -> Expr:
    """``value:path``, for which Spark calls variant_get under the name of the path's last field."""
    if value.type != VARIANT:
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"':' of a value of type {value.type.sql} is not supported.", span=span
        )
    steps = steps_of(path, "variant_get", blanks=True)
    return Call(VARIANT, True, "_variant_path", (value, Lit(STRING, False, path)), None, steps, span)


def name_of(extracted: Call) -> str | None:
    """The name that ``value:path`` gives itself; None for a path without fields."""
    return next((step for step in reversed(extracted.data) if isinstance(step, str)), None)


def _shown_path(call: Call, args: list[str]) -> str:
    name = name_of(call)
    return f"variant_get({', '.join(args)})" + ("" if name is None else f" AS {name}")


def _bind_null(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    if site.args[0].type != VARIANT:
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"{site.shown} but of a VARIANT is not supported.", span=site.span
        )
    return make(function, site, site.args, BOOLEAN, False)


ROWS: tuple[Function, ...] = (
    Function("variant_get", bind=_bind_get, lower=_get),
    Function("try_variant_get", bind=_bind_get, lower=_get),
    Function("_variant_path", lower=_get, shown=_shown_path),
    Function("is_variant_null", bind=_bind_null, lower=kernel("is_variant_null")),
)
