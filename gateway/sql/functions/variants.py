"""Rows of the functions of VARIANT."""

from __future__ import annotations

from gateway.errors import UnsupportedError, UserError
from gateway.sql.functions.constants import folded
from gateway.sql.functions.lowerings import kernel
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, make
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import BOOLEAN, STRING, VARIANT, DataType

_MOST_INDEX = 2**31 - 1
_CLOSES = {"'": "']", '"': '"]'}


def steps_of(path: str, name: str) -> tuple[str | int, ...]:
    """The names and places of a path such as ``$.a[0]['b c']``.

    Raises UserError INVALID_VARIANT_GET_PATH; UnsupportedError for blanks, which Spark's parser skips at some places.
    """
    wrong = UserError(
        "INVALID_VARIANT_GET_PATH",
        f"The path `{path}` is not a valid variant extraction path in `{name}`.\nA valid path should start with `$` and is "
        "followed by zero or more segments like `[123]`, `.name`, `['name']`, or `[\"name\"]`.",
    )
    if any(c.isspace() for c in path):
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
    target: DataType = VARIANT
    if len(site.args) == 3:
        kind = folded(site.args[2], site.context)
        word = kind.value if isinstance(kind, Lit) and isinstance(kind.value, str) else ""
        target = {"variant": VARIANT, "string": STRING}.get(word.lower(), BOOLEAN)
    if target not in (VARIANT, STRING):
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"{site.shown} as anything but VARIANT or STRING is not supported.", span=site.span
        )
    steps = steps_of(path.value, site.shown)
    return make(function, site, (value, path), target, True, steps)


def _get(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    params = (call.data, context.time_zone, call.type == STRING)
    return bound.udf("variant_get", call.type, args[0], params=params, raises=True)


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
    Function("is_variant_null", bind=_bind_null, lower=kernel("is_variant_null")),
)
