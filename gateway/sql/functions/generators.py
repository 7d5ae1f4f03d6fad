"""Generators: functions that make rows. Each binds to a Call whose STRUCT type holds the output columns under Spark's names.

`lower` gives an engine-level ARRAY<STRUCT<…>>, its elements the rows in order; the text unnests it. The structs are
never NULL, so their fields can be read without a guard.
"""

from __future__ import annotations

from gateway.errors import ResourceError, UserError
from gateway.sql.functions.lowerings import refused
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, make
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import least_common_type, plain
from gateway.sql.typed.nodes import Call, Expr, Lit
from gateway.sqltypes import (
    INT,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    array,
    struct,
)

_MOST_STACKED = 10_000  # values that stand in the plan one by one, NULLs where there are more rows than arguments


def _columns(t: DataType, outer: bool) -> list[StructField] | None:
    if isinstance(t, ArrayType):
        return [StructField("col", t.element, outer or t.contains_null)]
    if isinstance(t, MapType):
        return [StructField("key", t.key, outer), StructField("value", t.value, outer or t.value_contains_null)]
    return None


def _bind_explode(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    outer = function.name.endswith("_outer")
    columns = _columns(plain(site.args[0].type), outer)
    if columns is None:
        raise site.mismatch(0, "ARRAY or MAP")
    if function.name.startswith("pos"):
        columns.insert(0, StructField("pos", INT, outer))
    return make(function, site, site.args, struct(*columns), False)


def _bind_inline(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    t = plain(site.args[0].type)
    if not (isinstance(t, ArrayType) and isinstance(t.element, StructType)):
        raise site.mismatch(0, "ARRAY<STRUCT>")
    loose = function.name.endswith("_outer") or t.contains_null
    columns = (StructField(f.name, f.type, f.nullable or loose) for f in t.element.fields)
    return make(function, site, site.args, struct(*columns), False)


def _rows(kind: str, outer: bool) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        t = call.type
        assert isinstance(t, StructType)
        if len({f.name for f in t.fields}) != len(t.fields):
            raise refused(call, f"{call.shown or call.fn} of a struct that has two fields of one name")
        return bound.udf("generated_rows", array(t, False), args[0], params=(kind, outer), nullable=False)

    return lower


def _bind_stack(function: Function, site: Site) -> Expr:
    if len(site.args) < 2:
        raise site.wrong_count("> 1")
    count = site.args[0]
    if plain(count.type) != INT:
        raise site.mismatch(0, "INT")
    rows = site.constant(0)
    if rows is None or rows < 1:
        raise UserError(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            f"The `n` must be between (0, 2147483647] (current value = {rows}).",
            span=site.span_of(0),
        )
    values = list(site.args[1:])
    width = -(-len(values) // rows)
    if rows * width > _MOST_STACKED:
        text = f"stack() makes {rows * width} values of each row, and may make {_MOST_STACKED}."
        raise ResourceError("STATEMENT_TOO_COMPLEX", text, span=site.span_of(0))
    types = [next((v.type for v in values[i::width] if v.type != VOID), VOID) for i in range(width)]
    for index, value in enumerate(values):
        column = index % width
        common = least_common_type(types[column], value.type)
        typed = types[column] if isinstance(value, Lit) and value.type == VOID else value.type
        if common is None or plain(types[column]) != plain(typed):
            raise UserError(
                "DATATYPE_MISMATCH.STACK_COLUMN_DIFF_TYPES",
                f'The data type of the column ({column}) do not have the same type: "{types[column].sql}" <> '
                f'"{value.type.sql}".',
                span=site.span_of(index + 1),
            )
        types[column] = common
    padded = [*values, *(Lit(VOID, True, None) for _ in range(rows * width - len(values)))]
    args = tuple(coerced(v, types[i % width]) for i, v in enumerate(padded[: rows * width]))
    columns = (StructField(f"col{i}", t, True) for i, t in enumerate(types))
    return make(function, site, (count, *args), struct(*columns), False, (rows,))


def _lower_stack(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    t = call.type
    assert isinstance(t, StructType)
    if any(f.type == VOID for f in t.fields):
        raise refused(call, "A column of untyped NULLs in stack")
    width = len(t.fields)
    rows = []
    for start in range(1, len(args), width):
        members: list[Expr] = []
        for field, value in zip(t.fields, args[start : start + width], strict=True):
            members += [Lit(STRING, False, field.name), value]
        rows.append(bound.fn("named_struct", t, *members, nullable=False))
    return bound.fn("make_array", array(t, False), *rows, nullable=False)


ROWS: tuple[Function, ...] = (
    *(
        Function(name + suffix, kind="generator", bind=_bind_explode, lower=_rows(name, bool(suffix)), nullable="never")
        for name in ("explode", "posexplode")
        for suffix in ("", "_outer")
    ),
    *(
        Function("inline" + suffix, kind="generator", bind=_bind_inline, lower=_rows("inline", bool(suffix)))
        for suffix in ("", "_outer")
    ),
    Function("stack", kind="generator", bind=_bind_stack, lower=_lower_stack),
)
