"""Rows of the functions of VARIANT."""

from __future__ import annotations

from gateway.errors import Span, UnsupportedError, UserError
from gateway.sql.functions.aggregates import aggregate, filtered, not_windowed
from gateway.sql.functions.casts import becomes_value, cast_variant
from gateway.sql.functions.constants import folded
from gateway.sql.functions.lowerings import kernel, not_null, refused
from gateway.sql.read.datatypes import parse_type
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, make
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Agg, Call, Expr, Lit
from gateway.sql.typed.variant_casts import becomes_variant
from gateway.sqltypes import (
    BOOLEAN,
    INT,
    STRING,
    VARIANT,
    VOID,
    CharType,
    DataType,
    StructField,
    StructType,
    array,
    is_integral,
    is_nested,
    is_string,
    struct,
)
from gateway.variant_building import MalformedError, OddError, of_json, of_scalar
from gateway.variants import wrapped

_MOST_INDEX = 2**31 - 1
_CLOSES = {"'": "']", '"': '"]'}


def steps_of(path: str, name: str, blanks: bool = False) -> tuple[str | int, ...]:
    """The names and places of a path such as ``$.a[0]['b c']``. Raises as `_steps` does."""
    return tuple(step for step, _ in _steps(path, name, blanks))


def _steps(path: str, name: str, blanks: bool) -> tuple[tuple[str | int, bool], ...]:
    """The same, each with whether it stands in brackets.

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
    found: list[tuple[str | int, bool]] = []
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
        found.append((step, path[at] == "["))
        at = stop
    return tuple(found)


def _bind_get(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    value, path = site.args[0], folded(site.args[1], site.context)
    if value.type == VOID:
        value = coerced(value, VARIANT)
    if value.type != VARIANT or not isinstance(path, Lit) or not isinstance(path.value, str):
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"{site.shown} but of a VARIANT by a constant path is not supported.", span=site.span
        )
    target = _wanted(site) if len(site.args) == 3 else VARIANT
    found: tuple[str | int, ...] | str
    try:
        found = steps_of(path.value, site.shown)
    except UserError as error:  # asked only where there is a value
        found = error.message
    return make(function, site, (value, site.args[1]), target, True, (found,))


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
    if isinstance(target, CharType) or (target != VARIANT and not becomes_value(target)):
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"{site.shown} as {target.sql} is not supported.", span=site.span)
    return target


def _get(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    found = bound.udf("variant_get", VARIANT, args[0], params=call.data, raises=True)
    return found if call.type == VARIANT else cast_variant(found, call.type, context, call.fn == "try_variant_get")


def extraction(value: Expr, path: str, span: Span | None) -> Expr:
    """``value:path``, for which Spark calls variant_get under the name of the path's last field; of JSON in a STRING a STRING.

    Source of the latter: Databricks' "JSON path expression"; Spark knows it of VARIANT alone.
    """
    if is_string(value.type):
        steps = steps_of(path, "get_json_object", blanks=True)
        return Call(STRING, True, "_json_path", (value, Lit(STRING, False, path)), None, (steps,), span)
    if value.type != VARIANT:
        raise UnsupportedError(
            "UNSUPPORTED_FEATURE", f"':' of a value of type {value.type.sql} is not supported.", span=span
        )
    steps = steps_of(path, "variant_get", blanks=True)
    return Call(VARIANT, True, "_variant_path", (value, Lit(STRING, False, path)), None, (steps,), span)


#: What ``value:path`` calls.
EXTRACTIONS = frozenset({"_variant_path", "_json_path"})


def _get_text(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    path = args[1]
    assert isinstance(path, Lit)
    return bound.udf("json_path", STRING, args[0], params=(_steps(path.value, "get_json_object", True),), raises=True)


def name_of(extracted: Call) -> str | None:
    """The name that ``value:path`` gives itself; None for a path without fields."""
    return next((step for step in reversed(extracted.data[0]) if isinstance(step, str)), None)


def _shown_path(call: Call, args: list[str]) -> str:
    name = name_of(call)
    return f"variant_get({', '.join(args)})" + ("" if name is None else f" AS {name}")


def _bind_null(function: Function, site: Site) -> Expr:
    return make(function, site, (_variant(site),), BOOLEAN, False)


def _bind_object(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    source = plain(site.args[0].type)
    if not is_nested(source) or not becomes_variant(source, is_object=True):
        raise UserError(
            "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
            f'Cannot resolve "{site.shown}" due to data type mismatch: cannot cast "{source.sql}" to "VARIANT".',
            span=site.span,
        )
    if _has_twice(source):
        text = f"{site.shown} of a struct that has two fields of one name is not supported."
        raise UnsupportedError("UNSUPPORTED_FEATURE", text, span=site.span)
    return make(function, site, site.args, VARIANT, site.args[0].nullable)


def _has_twice(source: DataType) -> bool:
    names = [f.name for f in source.fields] if isinstance(source, StructType) else []
    return len(set(names)) < len(names) or any(map(_has_twice, source.children()))


def _bind_schema(function: Function, site: Site) -> Expr:
    value = _variant(site)
    if function.kind == "aggregate":
        return make(function, site, (value,), STRING, False)
    return make(function, site, (value,), STRING, value.nullable)


def _variant(site: Site) -> Expr:
    """The only argument, a VARIANT or NULL."""
    if len(site.args) != 1:
        raise site.wrong_count("1")
    value = site.args[0]
    if plain(value.type) not in (VARIANT, VOID):
        raise site.mismatch(0, VARIANT.name)
    return coerced(value, VARIANT)


def _lower_schemas(agg: Agg, args: tuple[Expr, ...], context: Context) -> Expr:
    if agg.distinct:  # an internal error of Spark's
        raise refused(agg, f"{agg.shown} of DISTINCT values")
    schema = bound.udf("variant_schema", STRING, args[0], params=(False,), raises=True)
    found = array(STRING, False)
    lists = bound.agg_fn("array_agg", found, schema, of=agg, where=filtered(agg, not_null(schema)), distinct=True)
    return bound.udf("variant_schemas", STRING, lists, nullable=False, raises=True)


_WRITTEN = frozenset({"BIGINT", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DOUBLE", "DECIMAL"})


def written(value: Expr) -> Expr:
    """The VARIANT that a call makes of a constant, as one; what is malformed is left to the call."""
    made = value.args[0] if isinstance(value, bound.Udf) and len(value.args) == 1 else None
    if not isinstance(value, bound.Udf) or not isinstance(made, Lit) or made.value is None or value.type != VARIANT:
        return value
    try:
        if value.impl == "parse_json":
            return bound.lit(wrapped(*of_json(made.value)), VARIANT)
        source = plain(made.type)
        name = "BIGINT" if is_integral(source) else source.name
        if value.impl == "variant_of" and name in _WRITTEN:
            return bound.lit(wrapped(*of_scalar(name, made.value)), VARIANT)
    except MalformedError:
        return bound.null(VARIANT) if value.impl == "parse_json" and value.params == (True,) else value
    except OddError:
        return value  # the call tells of it, if it is made
    return value


def _bind_rows(function: Function, site: Site) -> Expr:
    outer = function.name.endswith("_outer")
    columns = (StructField("pos", INT, outer), StructField("key", STRING, True), StructField("value", VARIANT, outer))
    return make(function, site, (_variant(site),), struct(*columns), False)


def _lower_rows(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    outer = call.fn.endswith("_outer")
    return bound.udf("variant_rows", array(call.type, False), args[0], params=(outer,), nullable=False, raises=True)


def _lower_shown(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf(
        "variants_shown", call.type, *args, params=(context.time_zone,), nullable=call.nullable, raises=True
    )


ROWS: tuple[Function, ...] = (
    Function("_shown_variants", lower=_lower_shown),
    Function("to_variant_object", bind=_bind_object, lower=kernel("variant_of", raises=True)),
    Function("schema_of_variant", bind=_bind_schema, lower=kernel("variant_schema", True, raises=True)),
    not_windowed(aggregate("schema_of_variant_agg", bind=_bind_schema, lower=_lower_schemas)),
    Function("variant_explode", kind="generator", bind=_bind_rows, lower=_lower_rows, from_only=True),
    Function("variant_explode_outer", kind="generator", bind=_bind_rows, lower=_lower_rows, from_only=True),
    Function("variant_get", bind=_bind_get, lower=_get),
    Function("try_variant_get", bind=_bind_get, lower=_get),
    Function("_variant_path", lower=_get, shown=_shown_path),
    Function("_json_path", lower=_get_text, shown=lambda _, args: f"{args[0]}:{args[1].removeprefix('$.')}"),
    Function("is_variant_null", bind=_bind_null, lower=kernel("is_variant_null")),
)
