"""Arrays, maps and structs: constructors, element access, size, and what the functions over them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.errors import UserError
from gateway.sql.functions.constants import constant, folded
from gateway.sql.functions.fold import fold
from gateway.sql.functions.lowerings import literal, one_zero, raise_row, refused
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, bind_call, coerce_args, make, param
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import least_common_of, plain, shared_type
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.nodes import Call, Cast, Expr, Lit
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
    array,
    is_fractional,
    is_integral,
    map_of,
    struct,
)


def udf_lower(impl: str, *params: object, raises: bool = False) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.udf(impl, call.type, *args, params=params, nullable=call.nullable, raises=raises)

    return lower


def array_of(expr: Expr) -> ArrayType:
    t = expr.type
    assert isinstance(t, ArrayType)
    return t


def map_type_of(expr: Expr) -> MapType:
    t = expr.type
    assert isinstance(t, MapType)
    return t


def check_count(site: Site, expected: int) -> None:
    if len(site.args) != expected:
        raise site.wrong_count(str(expected))


def _bind_array(function: Function, site: Site) -> Expr:
    common = least_common_of(a.type for a in site.args) if site.args else VOID
    if common is None:
        raise site.diff_types()
    args = tuple(coerced(a, common) for a in site.args)
    return make(function, site, args, array(common, any(a.nullable for a in args)), False)


def list_made(t: ArrayType, args: Sequence[Expr]) -> Expr:
    """The list of these; of NULLs without a type by an implementation of ours, as the engine makes one list for all rows."""
    if t.element == VOID:
        return bound.udf("void_list", t, Lit(INT, False, len(args)), nullable=False)
    return bound.fn("make_array", t, *args, nullable=False)


def _lower_array(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return list_made(array_of(call), args)


def _bind_map(function: Function, site: Site) -> Expr:
    if len(site.args) % 2:
        raise site.wrong_count("2n (n > 0)")
    keys, values = site.args[::2], site.args[1::2]
    key = least_common_of(a.type for a in keys)
    value = least_common_of(a.type for a in values)
    if key is None or value is None:
        which = "KEY" if key is None else "VALUE"
        types = ", ".join(f'"{a.type.sql}"' for a in (keys if key is None else values))
        raise UserError(
            f"DATATYPE_MISMATCH.CREATE_MAP_{which}_DIFF_TYPES",
            f"The given {which.lower()}s of function `{site.shown}` should all be the same type, but they are [{types}].",
            span=site.span,
        )
    site.check_map_key(key)
    args: list[Expr] = []
    for k, v in zip(keys, values, strict=True):
        args += [coerced(k, key), coerced(v, value)]
    return make(function, site, tuple(args), map_of(key, value, any(v.nullable for v in args[1::2])), False)


def _lower_map(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    t = map_type_of(call)
    if not args:
        if t.key == VOID:  # of which Arrow has none
            raise refused(call, "A map without entries")
        return bound.udf("void_map", t, Lit(INT, False, 0), nullable=False)
    if t.key == VOID:
        of_some = map_of(INT, t.value if t.value != VOID else INT, True)  # which Arrow has
        return raise_row(of_some, "NULL_MAP_KEY", "Cannot use null as map key.")
    keys, values = list_made(array(t.key), args[::2]), list_made(array(t.value), args[1::2])
    return bound.udf("map_from_lists", t, keys, values, nullable=False, raises=True)


def _bind_named_struct(function: Function, site: Site) -> Expr:
    if len(site.args) % 2:
        raise site.wrong_count("2n (n > 0)")
    for index in range(0, len(site.args), 2):
        if site.args[index].type != STRING or not is_foldable(site.args[index]):
            raise UserError(
                "DATATYPE_MISMATCH.CREATE_NAMED_STRUCT_WITHOUT_FOLDABLE_STRING",
                "Only foldable `STRING` expressions are allowed to appear at odd position.",
                span=site.span,
            )
    if any(constant(site, index) is None for index in range(0, len(site.args), 2)):
        raise UserError("DATATYPE_MISMATCH.UNEXPECTED_NULL", "The field name must not be null.", span=site.span)
    fields = []
    for label, value in zip(site.args[::2], site.args[1::2], strict=True):
        name = folded(label, site.context)
        assert isinstance(name, Lit)
        fields.append(StructField(name.value, value.type, value.nullable))
    return make(function, site, site.args, struct(*fields), False)


def _lower_struct(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if not args:
        raise refused(call, "A struct without fields")
    assert isinstance(call.type, StructType)
    names = [f.name for f in call.type.fields]
    if len(set(names)) != len(names) or "" in names:
        raise refused(call, "A struct with two fields of one name, or one without a name,")
    parts = (part for name, value in zip(names, args[1::2], strict=True) for part in (bound.lit(name, STRING), value))
    return bound.fn("named_struct", call.type, *parts, nullable=False)


def _lower_field(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """The engine reads a field without looking at the struct's own NULL."""
    base, t = args[0], plain(call.args[0].type)
    assert isinstance(t, StructType)
    name = t.fields[call.data[0]].name
    if sum(f.name == name for f in t.fields) > 1:
        raise refused(call, f"The field `{name}` of a struct that has it twice")
    guard, inner = _guarded_field(base)
    value = bound.fn("[]", call.type, inner, Lit(STRING, False, name), nullable=call.nullable)
    if not base.nullable:
        return value
    there = bound.not_(bound.is_null(inner))
    return bound.case(
        call.type, (there if guard is None else bound.op("AND", BOOLEAN, guard, there, nullable=False), value)
    )


def _guarded_field(base: Expr) -> tuple[Expr | None, Expr]:
    """What holds where a struct may be looked at, and the struct: each level of fields would double what lies below it.

    Only of what `_lower_field` has made: the value was looked into in its condition.
    """
    if not isinstance(base, bound.Case) or len(base.whens) != 1 or base.otherwise is not None:
        return None, base
    ((guard, value),) = base.whens
    last = guard.args[1] if isinstance(guard, bound.Op) and guard.symbol == "AND" else guard
    looked = last.args[0] if isinstance(last, bound.Op) and last.symbol == "NOT" else None
    if (
        isinstance(value, bound.Fn)
        and value.name == "[]"
        and isinstance(looked, bound.Op)
        and looked.symbol == "IS NULL"
    ):
        return (guard, value) if looked.args[0] is value.args[0] else (None, base)
    return None, base


def _lower_get(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """array_element(a, CASE WHEN i < 0 THEN 0 ELSE i + 1 END), in 64 bits so that the index can't wrap."""
    items, index = args
    if isinstance(index, Lit):
        number = None if index.value is None else max(0, index.value + 1) % 2**31
        place: Expr = Lit(BIGINT, number is None, number)
        return bound.fn("array_element", call.type, items, place)
    wide = bound.cast(index, BIGINT)
    zero, one = Lit(BIGINT, False, 0), Lit(BIGINT, False, 1)
    below = bound.op("<", BOOLEAN, wide, zero, nullable=index.nullable)
    last = bound.op("=", BOOLEAN, wide, Lit(BIGINT, False, 2**31 - 1), nullable=index.nullable)
    # the engine takes no index beyond 32 bits
    place = bound.case(
        BIGINT, (below, zero), (last, zero), otherwise=bound.op("+", BIGINT, wide, one, nullable=index.nullable)
    )
    return bound.fn("array_element", call.type, items, place)


#: In `Call.data` of a field of an array's structs: it is written in brackets, and so no path that its name would be.
BRACKETS = "brackets"
#: In `Call.data` of a field of a struct: a star stands for it. Nothing but names knows.
STARRED = "starred"

#: NULL only where an operand is, whatever Spark says of a cast among them.
_NULL_BY_OPERAND = frozenset(("+", "-", "*", "abs", "negative", "positive"))


def item_nullable(base: Expr, index: Expr, context: Context, *, raises: bool, first: int = 0) -> bool:
    """Nullability of an element by place (Spark's GetArrayItem, ElementAt): known for a constant place in array(…).

    `raises`: a place outside is an error, not NULL. `first` is the number of the first place; with 1, negative places count
    from the end. Of an index that may be NULL Spark says nothing; the element may be NULL then.
    """
    t = plain(base.type)
    assert isinstance(t, ArrayType)
    if not index.nullable and is_foldable(index):
        elements, known = written_elements(base), fold(index, context)
        if elements is None or known is None:
            return elements is None or not raises or any(elements)
        place = len(elements) + known.value if first and known.value < 0 else known.value - first
        return elements[place] if 0 <= place < len(elements) else not raises
    return not raises or base.nullable or t.contains_null or _may_be_null(index)


def _may_be_null(index: Expr) -> bool:
    """Whether some row has a NULL for it: a cast that fails raises."""
    if isinstance(index, Cast) and not index.is_try:
        return _may_be_null(index.arg)
    if isinstance(index, Call) and index.fn in _NULL_BY_OPERAND:
        return any(map(_may_be_null, index.args))
    return index.nullable


def written_elements(base: Expr) -> list[bool] | None:
    """Which elements of array(…), or of a field of its structs, may be NULL; None for what is no such array."""
    if isinstance(base, Call) and base.fn == "array":
        return [a.nullable for a in base.args]
    if isinstance(base, Call) and base.fn == "_array_field":
        inner, t = base.args[0], plain(base.args[0].type)
        if isinstance(inner, Call) and inner.fn == "array" and isinstance(t, ArrayType):
            assert isinstance(t.element, StructType)
            may = t.element.fields[base.data[0]].nullable
            return [a.nullable or may for a in inner.args]
    return None


def _bind_get(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    args = coerce_args(Function(function.name, (param("array"), param(INT))), site)
    return make(
        function, site, args, array_of(args[0]).element, item_nullable(args[0], args[1], site.context, raises=False)
    )


def _lower_item(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    index = args[1]
    if isinstance(index, bound.Udf) and index.impl == "cast" and index.args[0].type == BIGINT and _is_implicit(call):
        # Spark takes the lower 32 bits of a BIGINT that it does not cast
        index = bound.udf("wrapped_int", INT, index.args[0], nullable=index.nullable)
    return bound.udf("array_item", call.type, args[0], index, nullable=call.nullable, raises=True)


def _is_implicit(call: Call) -> bool:
    index = call.args[1]
    return isinstance(index, Cast) and index.implicit


def _bind_element_at(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    base, at = site.args
    t = plain(base.type)
    if isinstance(t, ArrayType):
        if not is_integral(at.type) or at.type == BIGINT:
            raise site.mismatch(1, "INT")
        raises = function.name == "element_at"
        nullable = item_nullable(base, at, site.context, raises=raises, first=1)
        return make(function, site, (base, coerced(at, INT)), t.element, nullable)
    if isinstance(t, MapType):
        common = shared_type(t.key, plain(at.type))
        if common is None:
            raise UserError(
                "DATATYPE_MISMATCH.MAP_FUNCTION_DIFF_TYPES",
                f'Input to `{site.shown}` should have been "MAP" followed by a value with same key type, but it\'s '
                f'["{t.sql}", "{at.type.sql}"].',
                span=site.span,
            )
        base = coerced(base, map_of(common, t.value, t.value_contains_null))
        return make(function, site, (base, coerced(at, common)), t.value, True)
    raise site.mismatch(0, "ARRAY or MAP")


def _lower_element_at(is_try: bool) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        if isinstance(args[0].type, MapType):
            return bound.udf("map_item", call.type, *args)
        return bound.udf("array_element_at", call.type, *args, params=(is_try,), raises=True)

    return lower


def _bind_size(function: Function, site: Site) -> Expr:
    check_count(site, 1)
    if site.args[0].type == VOID:
        return make(function, site, site.args, INT, True)
    if not isinstance(plain(site.args[0].type), (ArrayType, MapType)):
        raise site.mismatch(0, "ARRAY or MAP")
    return make(function, site, site.args, INT, site.args[0].nullable)


def _bind_array_size(function: Function, site: Site) -> Expr:
    if len(site.args) == 1 and site.args[0].type == VOID:
        return make(function, site, site.args, INT, True)
    return bind_call(replace(function, bind=None), site)


def _lower_size(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if args[0].type == VOID:
        return bound.null(INT)
    return bound.udf("list_size", INT, args[0], nullable=call.nullable)


def lower_concat_arrays(call: Call, args: tuple[Expr, ...]) -> Expr:
    """concat of arrays of one type."""
    return bound.udf("arrays_joined", call.type, *args, nullable=call.nullable)


def lower_reverse_array(call: Call, args: tuple[Expr, ...]) -> Expr:
    """reverse of an array."""
    return bound.udf("array_reversed", call.type, *args, nullable=call.nullable)


def _lower_array_field(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("array_field", call.type, *args, params=call.data[:1], nullable=call.nullable)


def _lower_one_zero(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if is_fractional(call.type):  # of what it computes itself the engine knows whether it is NULL
        return one_zero(args[0])
    return bound.udf("one_zero", call.type, *args, nullable=call.nullable)


ROWS: tuple[Function, ...] = (
    Function("array", bind=_bind_array, lower=_lower_array),
    Function("map", bind=_bind_map, lower=_lower_map),
    Function("named_struct", bind=_bind_named_struct, lower=_lower_struct),
    Function("_field", kind="operator", lower=_lower_field),
    Function("_array_item", kind="operator", lower=_lower_item),
    Function("_map_item", kind="operator", lower=udf_lower("map_item")),
    Function("_null_item", kind="operator", lower=literal(None)),
    Function("_array_field", kind="operator", lower=_lower_array_field),
    Function("_one_zero", kind="operator", lower=_lower_one_zero),
    Function("_fields_by_name", kind="operator", lower=udf_lower("fields_by_name")),
    Function("get", bind=_bind_get, lower=_lower_get),
    Function("element_at", bind=_bind_element_at, lower=_lower_element_at(False)),
    Function("try_element_at", bind=_bind_element_at, lower=_lower_element_at(True)),
    *(Function(name, bind=_bind_size, lower=_lower_size) for name in ("size", "cardinality")),
    Function("array_size", params=(param("array"),), returns=INT, bind=_bind_array_size, lower=_lower_size),
)
