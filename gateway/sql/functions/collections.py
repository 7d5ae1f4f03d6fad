"""Arrays, maps and structs: constructors, element access, and the functions over them."""

from __future__ import annotations

from gateway.errors import UserError
from gateway.sql import bound
from gateway.sql.bound import Call, Cast, Col, Expr, Lit
from gateway.sql.catalogue import Context, Function, Lower, Site, coerce_args, make, param
from gateway.sql.coerce import coerced, implicit_type, least_common_of, least_common_type, plain
from gateway.sql.functions.lowerings import refused
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructField,
    StructType,
    array,
    interval,
    is_datetime,
    is_fractional,
    is_integral,
    is_numeric,
    map_of,
    struct,
)


def _kernel(impl: str, *params: object, raises: bool = False) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        return bound.udf(impl, call.type, *args, params=params, nullable=call.nullable, raises=raises)

    return lower


def _array_of(expr: Expr) -> ArrayType:
    t = expr.type
    assert isinstance(t, ArrayType)
    return t


def _map_of(expr: Expr) -> MapType:
    t = expr.type
    assert isinstance(t, MapType)
    return t


def _count(site: Site, expected: int) -> None:
    if len(site.args) != expected:
        raise site.wrong_count(str(expected))


def has_map(t: DataType) -> bool:
    """A map, or something with one inside: neither ordered nor comparable."""
    return isinstance(t, MapType) or any(has_map(c) for c in t.children())


# -------------------------------------------------------------------------------------------------------- constructors


def _bind_array(function: Function, site: Site) -> Expr:
    common = least_common_of(a.type for a in site.args) if site.args else VOID
    if common is None:
        raise site.diff_types()
    args = tuple(coerced(a, common) for a in site.args)
    return make(function, site, args, array(common, any(a.nullable for a in args)), False)


def _lower_array(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if _array_of(call).element == VOID:
        return bound.udf("void_list", call.type, Lit(INT, False, len(args)), nullable=False)
    return bound.fn("make_array", call.type, *args, nullable=False)


def _bind_map(function: Function, site: Site) -> Expr:
    if len(site.args) % 2:
        raise site.wrong_count("2n (n > 0)")
    keys, values = site.args[::2], site.args[1::2]
    key = least_common_of(a.type for a in keys) if keys else STRING
    value = least_common_of(a.type for a in values) if values else STRING
    if key is None or value is None:
        which = "KEY" if key is None else "VALUE"
        types = ", ".join(f'"{a.type.sql}"' for a in (keys if key is None else values))
        raise UserError(
            f"DATATYPE_MISMATCH.CREATE_MAP_{which}_DIFF_TYPES",
            f"The given {which.lower()}s of function `{site.shown}` should all be the same type, but they are [{types}].",
            span=site.span,
        )
    if has_map(key):
        raise UserError(
            "DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE", f'The key of map cannot be/contain "{key.sql}".', span=site.span
        )
    args: list[Expr] = []
    for k, v in zip(keys, values, strict=True):
        args += [coerced(k, key), coerced(v, value)]
    return make(function, site, tuple(args), map_of(key, value, any(v.nullable for v in args[1::2])), False)


def _lower_map(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    t = _map_of(call)
    if not args:
        raise refused(call, "A map without entries")
    if t.key == VOID:
        raise UserError("NULL_MAP_KEY", "Cannot use null as map key.", span=call.span)
    keys = bound.fn("make_array", array(t.key), *args[::2], nullable=False)
    values = bound.fn("make_array", array(t.value), *args[1::2], nullable=False)
    return bound.udf("map_from_lists", t, keys, values, nullable=False, raises=True)


def _bind_named_struct(function: Function, site: Site) -> Expr:
    if len(site.args) % 2:
        raise site.wrong_count("2n (n > 0)")
    fields = []
    for label, value in zip(site.args[::2], site.args[1::2], strict=True):
        inner = label.arg if isinstance(label, Cast) else label
        if isinstance(inner, Lit) and inner.value is None:
            raise UserError("DATATYPE_MISMATCH.UNEXPECTED_NULL", "The field name must not be null.", span=site.span)
        if not (isinstance(label, Lit) and label.type == STRING):
            raise UserError(
                "DATATYPE_MISMATCH.CREATE_NAMED_STRUCT_WITHOUT_FOLDABLE_STRING",
                "Only foldable `STRING` expressions are allowed to appear at odd position.",
                span=site.span,
            )
        fields.append(StructField(label.value, value.type, value.nullable))
    return make(function, site, site.args, struct(*fields), False)


def _lower_struct(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if not args:
        raise refused(call, "A struct without fields")
    names = [a.value for a in args[::2] if isinstance(a, Lit)]
    if len(set(names)) != len(names) or "" in names:
        raise refused(call, "A struct with two fields of one name, or one without a name,")
    return bound.fn("named_struct", call.type, *args, nullable=False)


# ------------------------------------------------------------------------------------------------------ element access


def _lower_field(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """The engine reads a field without looking at the struct's own NULL."""
    base, t = args[0], plain(call.args[0].type)
    assert isinstance(t, StructType)
    name = t.fields[call.data[0]].name
    if sum(f.name == name for f in t.fields) > 1:
        raise refused(call, f"The field `{name}` of a struct that has it twice")
    value = bound.fn("[]", call.type, base, Lit(STRING, False, name), nullable=call.nullable)
    if not base.nullable:
        return value
    return bound.case(call.type, (bound.not_(bound.is_null(base)), value))


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


def item_nullable(base: Expr, index: Expr, *, raises: bool, first: int = 0) -> bool:
    """Nullability of an element by place (Spark's GetArrayItem): known for a literal place in array(…).

    `raises`: a place outside is an error, not NULL. `first` is the number of the first place; with 1, negative places count
    from the end.
    """
    t = plain(base.type)
    assert isinstance(t, ArrayType)
    inner = index.arg if isinstance(index, Cast) and index.implicit else index
    if isinstance(inner, Lit) and isinstance(inner.value, int):
        place = inner.value - first
        if isinstance(base, Call) and base.fn == "array":
            if first and inner.value < 0:
                place = len(base.args) + inner.value
            if 0 <= place < len(base.args):
                return base.args[place].nullable
        return True
    return base.nullable or index.nullable or t.contains_null if raises else True


def _bind_get(function: Function, site: Site) -> Expr:
    _count(site, 2)
    args = coerce_args(Function(function.name, (param("array"), param(INT))), site)
    return make(function, site, args, _array_of(args[0]).element, item_nullable(args[0], args[1], raises=False))


def _bind_element_at(function: Function, site: Site) -> Expr:
    _count(site, 2)
    base, at = site.args
    t = plain(base.type)
    if isinstance(t, ArrayType):
        if not (is_integral(at.type) and at.type != BIGINT) and at.type != VOID:
            raise site.mismatch(1, "INT")
        raises = function.name == "element_at"
        nullable = item_nullable(base, at, raises=raises, first=1) if raises else True
        return make(function, site, (base, coerced(at, INT)), t.element, nullable)
    if isinstance(t, MapType):
        key = implicit_type(at.type, (t.key,))
        common = least_common_type(at.type, t.key)
        if key is None or common != t.key:
            raise site.mismatch(1, t.key.sql)
        return make(function, site, (base, coerced(at, t.key)), t.value, True)
    raise site.mismatch(0, "ARRAY or MAP")


def _lower_element_at(is_try: bool) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        if isinstance(args[0].type, MapType):
            return bound.udf("map_item", call.type, *args)
        return bound.udf("array_element_at", call.type, *args, params=(is_try,), raises=True)

    return lower


def _bind_size(function: Function, site: Site) -> Expr:
    _count(site, 1)
    if site.args[0].type == VOID:
        return make(function, site, site.args, INT, True)
    if not isinstance(plain(site.args[0].type), (ArrayType, MapType)):
        raise site.mismatch(0, "ARRAY or MAP")
    return make(function, site, site.args, INT, site.args[0].nullable)


def _lower_size(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if args[0].type == VOID:
        return bound.null(INT)
    return bound.udf("list_size", INT, args[0], nullable=call.nullable)


# ------------------------------------------------------------------------------------------ functions of array and value


def _diff_types(site: Site, left: DataType, right: DataType) -> UserError:
    return UserError(
        "DATATYPE_MISMATCH.ARRAY_FUNCTION_DIFF_TYPES",
        f'Input to `{site.shown}` should have been "ARRAY" followed by a value with same element type, but it\'s '
        f'["{left.sql}", "{right.sql}"].',
        span=site.span,
    )


def _shared_type(a: DataType, b: DataType, wider: bool = False) -> DataType | None:
    """Spark's tightest common type (`wider`: a decimal may grow): no string becomes a number, an integer may become FLOAT."""
    if a == b or VOID in (a, b):
        return b if a == VOID else a
    if _has_string(a) != _has_string(b):
        return None
    if is_numeric(a) and is_numeric(b):
        if isinstance(a, DecimalType) or isinstance(b, DecimalType):
            common = least_common_type(a, b)
            return common if wider or (common in (a, b) and not is_fractional(a) and not is_fractional(b)) else None
        return FLOAT if FLOAT in (a, b) and DOUBLE not in (a, b) else least_common_type(a, b)
    return least_common_type(a, b)


def _has_string(t: DataType) -> bool:
    return t == STRING or any(_has_string(c) for c in t.children())


def _with_value(site: Site, value_at: int = 1) -> tuple[Expr, ...]:
    """(array, …, value): both brought to the common element type."""
    base = site.args[0]
    value = site.args[value_at]
    t = plain(base.type)
    if t == VOID:
        t = array(plain(value.type))
    if not isinstance(t, ArrayType):
        raise site.mismatch(0, "ARRAY")
    if value.type == VOID and site.shown not in ("array_append", "array_prepend", "array_insert"):
        raise UserError(
            "DATATYPE_MISMATCH.NULL_TYPE", f"Null typed values cannot be used as arguments of `{site.shown}`.",
            span=site.span_of(value_at),
        )  # fmt: skip
    common = _shared_type(t.element, plain(value.type), wider=site.shown == "array_contains")
    if common is None:
        raise _diff_types(site, t, value.type)
    args = list(site.args)
    args[0] = coerced(base, array(common, t.contains_null))
    args[value_at] = coerced(value, common)
    return tuple(args)


def _not_orderable(site: Site, t: DataType) -> None:
    if has_map(t):
        raise UserError(
            "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
            f'The `{site.shown}` does not support ordering on type "{t.sql}".',
            span=site.span,
        )


def _bind_contains(function: Function, site: Site) -> Expr:
    _count(site, 2)
    args = _with_value(site)
    t = _array_of(args[0])
    _not_orderable(site, t.element)
    return make(function, site, args, BOOLEAN, any(a.nullable for a in args) or t.contains_null)


def _bind_position(function: Function, site: Site) -> Expr:
    _count(site, 2)
    args = _with_value(site)
    _not_orderable(site, _array_of(args[0]).element)
    return make(function, site, args, BIGINT, any(a.nullable for a in args))


def _bind_remove(function: Function, site: Site) -> Expr:
    _count(site, 2)
    args = _with_value(site)
    _not_orderable(site, _array_of(args[0]).element)
    return make(function, site, args, args[0].type, any(a.nullable for a in args))


def _bind_extend(function: Function, site: Site) -> Expr:
    _count(site, 2)
    args = _with_value(site)
    t = _array_of(args[0])
    widened = array(t.element, t.contains_null or args[1].nullable)
    return make(function, site, args, widened, args[0].nullable)


def _bind_insert(function: Function, site: Site) -> Expr:
    _count(site, 3)
    args = list(_with_value(site, 2))
    if plain(args[1].type) == BIGINT or implicit_type(args[1].type, (INT,)) is None:
        raise site.mismatch(1, "INT")
    args[1] = coerced(args[1], INT)
    return make(function, site, tuple(args), array(_array_of(args[0]).element), args[0].nullable or args[1].nullable)


# ------------------------------------------------------------------------------------------------- functions of arrays


def _one_array(site: Site, ordered: bool = False) -> ArrayType:
    t = plain(site.args[0].type)
    if not isinstance(t, ArrayType):
        raise site.mismatch(0, "ARRAY")
    if ordered:
        _not_orderable(site, t.element)
    return t


def _bind_same(function: Function, site: Site) -> Expr:
    _count(site, 1)
    t = _one_array(site, ordered=function.name == "array_distinct")
    if function.name == "array_compact":
        t = array(t.element, False)
    return make(function, site, site.args, t, site.args[0].nullable)


def _bind_array_sort(function: Function, site: Site) -> Expr:
    if len(site.args) == 2:
        raise refused(Call(VOID, True, "array_sort", (), span=site.span), "array_sort with a comparator")
    _count(site, 1)
    t = _one_array(site, ordered=True)
    return make(function, site, site.args, t, site.args[0].nullable)


_ORDER = (
    "lambdafunction((IF(((V IS NULL) AND (V IS NULL)), 0, (IF((V IS NULL), 1, (IF((V IS NULL), -1, (IF((V < V), -1, "
    "(IF((V > V), 1, 0)))))))))), V, V)"
).replace("V", "namedlambdavariable()")


def _shown_array_sort(call: Call, args: list[str]) -> str:
    """Spark shows the comparator that it fills in."""
    return f"array_sort({args[0]}, {_ORDER})"


def _bind_sort_array(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    t = _one_array(site, ordered=True)
    flag = site.args[1] if len(site.args) == 2 else Lit(BOOLEAN, False, True)
    if flag.type != BOOLEAN:
        raise site.mismatch(1, "BOOLEAN")
    return make(function, site, (site.args[0], flag), t, site.args[0].nullable or flag.nullable)


def _lower_sort_array(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    def sorted_by(ascending: bool) -> Expr:
        return bound.udf("array_sorted", call.type, args[0], params=(not ascending, ascending), nullable=call.nullable)

    flag = args[1]
    if isinstance(flag, Lit):
        return bound.null(call.type) if flag.value is None else sorted_by(bool(flag.value))
    return bound.case(call.type, (flag, sorted_by(True)), (bound.not_(flag), sorted_by(False)))


def _bind_extreme(function: Function, site: Site) -> Expr:
    _count(site, 1)
    return make(function, site, site.args, _one_array(site, ordered=True).element, True)


def _bind_two_arrays(function: Function, site: Site) -> Expr:
    """array_union, array_intersect, array_except, arrays_overlap."""
    _count(site, 2)
    types = [plain(a.type) for a in site.args]
    for index, t in enumerate(types):
        if not isinstance(t, ArrayType) and t != VOID:
            raise site.mismatch(index, "ARRAY")
    common = least_common_of(types)
    if VOID not in types and _has_string(types[0]) != _has_string(types[1]):
        common = None
    if not isinstance(common, ArrayType):
        raise UserError(
            "DATATYPE_MISMATCH.BINARY_ARRAY_DIFF_TYPES",
            f'Input to function `{site.shown}` should have been two "ARRAY" with same element type, but it\'s '
            f'["{types[0].sql}", "{types[1].sql}"].',
            span=site.span,
        )
    _not_orderable(site, common.element)
    args = tuple(coerced(a, common) for a in site.args)
    nullable = any(a.nullable for a in args)
    holds = [t.contains_null for t in types if isinstance(t, ArrayType)]
    if function.name == "arrays_overlap":
        return make(function, site, args, BOOLEAN, nullable or any(holds))
    contains = all(holds) if function.name == "array_intersect" else any(holds)
    if function.name == "array_except":
        contains = holds[0]
    return make(function, site, args, array(common.element, contains), nullable)


def _bind_join(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    t = _one_array(site)
    if implicit_type(t.element, (STRING,)) is None:
        raise site.mismatch(0, "ARRAY<STRING>")
    texts = coerced(site.args[0], array(STRING, t.contains_null))
    rest = coerce_args(Function(function.name, tuple(param(STRING) for _ in site.args[1:])), _tail(site))
    args = (texts, *rest)
    return make(function, site, args, STRING, any(a.nullable for a in args))


def _tail(site: Site) -> Site:
    return Site(site.name, site.args[1:], site.context, site.span, site.spans[1:])


def _bind_slice(function: Function, site: Site) -> Expr:
    _count(site, 3)
    args = coerce_args(Function(function.name, (param("array"), param(INT), param(INT))), site)
    return make(function, site, args, args[0].type, any(a.nullable for a in args))


def _bind_flatten(function: Function, site: Site) -> Expr:
    _count(site, 1)
    t = _one_array(site)
    if not isinstance(t.element, ArrayType):
        raise site.mismatch(0, "ARRAY of ARRAY")
    return make(function, site, site.args, t.element, site.args[0].nullable or t.contains_null)


def _bind_repeat(function: Function, site: Site) -> Expr:
    _count(site, 2)
    value = site.args[0]
    (count,) = coerce_args(Function(function.name, (param(INT),)), _tail(site))
    return make(function, site, (value, count), array(value.type, value.nullable), count.nullable)


def _zip_name(arg: Expr, index: int) -> str:
    if isinstance(arg, Col):
        return arg.name
    return arg.shown if isinstance(arg, Call) and arg.fn == "_field" and arg.shown else str(index)


def _bind_zip(function: Function, site: Site) -> Expr:
    fields = []
    for index, arg in enumerate(site.args):
        t = plain(arg.type)
        if not isinstance(t, ArrayType):
            raise site.mismatch(index, "ARRAY")
        fields.append(StructField(_zip_name(arg, index), t.element))
    nullable = any(a.nullable for a in site.args)
    return make(function, site, site.args, array(struct(*fields), False), nullable)


def _lower_zip(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if not args:
        raise refused(call, "arrays_zip without arguments")
    element = _array_of(call).element
    assert isinstance(element, StructType)
    if len({f.name for f in element.fields}) != len(element.fields):
        raise refused(call, "arrays_zip of two columns of one name")
    return bound.udf("arrays_zipped", call.type, *args, nullable=call.nullable)


def _bind_sequence(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    ends = least_common_of(a.type for a in site.args[:2])
    step = site.args[2] if len(site.args) == 3 else None
    if ends in (STRING, VOID):
        ends = None
    if ends is not None and is_integral(ends):
        common = ends if step is None else least_common_of([ends, step.type])
        if common is not None and is_integral(common):
            args = tuple(coerced(a, common) for a in site.args)
            return make(function, site, args, array(common, False), any(a.nullable for a in args))
    elif ends is not None and is_datetime(ends):
        t = plain(step.type) if step is not None else interval("day")
        if isinstance(t, IntervalType):
            args = (*(coerced(a, ends) for a in site.args[:2]), *site.args[2:])
            return make(function, site, args, array(ends, False), any(a.nullable for a in args))
    raise UserError(
        "DATATYPE_MISMATCH.SEQUENCE_WRONG_INPUT_TYPES",
        f"`{site.shown}` uses the wrong parameter type. The parameter type must conform to: 1. The start and stop "
        "expressions must resolve to the same type. 2. If start and stop are dates or timestamps, the step must be an "
        "interval. 3. Otherwise they must be integral, and so must the step.",
        span=site.span,
    )


def _lower_sequence(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    element = _array_of(call).element
    if element not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return bound.udf("sequence_integers", call.type, *args, nullable=call.nullable, raises=True)
    if len(args) == 2:
        day = interval("day")
        down = bound.op("<=", BOOLEAN, args[0], args[1], nullable=call.nullable)
        size = 86_400_000_000
        step = bound.case(day, (down, Lit(day, False, size)), otherwise=Lit(day, False, -size))
        args = (*args, step)
    return bound.udf(
        "sequence_moments", call.type, *args, params=(context.time_zone,), nullable=call.nullable, raises=True
    )


def lower_concat_arrays(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """concat of arrays of one type."""
    return bound.udf("arrays_joined", call.type, *args, nullable=call.nullable)


def lower_reverse_array(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    """reverse of an array."""
    return bound.udf("array_reversed", call.type, *args, nullable=call.nullable)


# ----------------------------------------------------------------------------------------------------- functions of maps


def _one_map(site: Site) -> MapType:
    t = plain(site.args[0].type)
    if t == VOID and site.shown != "map_contains_key":
        raise refused(Call(VOID, True, site.shown, (), span=site.span), f"{site.shown} of an untyped NULL")
    if not isinstance(t, MapType):
        raise site.mismatch(0, "MAP")
    return t


def _bind_map_part(function: Function, site: Site) -> Expr:
    _count(site, 1)
    t = _one_map(site)
    entry = struct(StructField("key", t.key, False), StructField("value", t.value, t.value_contains_null))
    result = {
        "map_keys": array(t.key, False),
        "map_values": array(t.value, t.value_contains_null),
        "map_entries": array(entry, False),
    }[function.name]
    return make(function, site, site.args, result, site.args[0].nullable)


def _bind_contains_key(function: Function, site: Site) -> Expr:
    _count(site, 2)
    t = _one_map(site)
    key = site.args[1]
    common = _shared_type(t.key, plain(key.type), wider=True)
    if key.type == VOID or common is None:
        raise UserError(
            "DATATYPE_MISMATCH.NULL_TYPE" if key.type == VOID else "DATATYPE_MISMATCH.MAP_FUNCTION_DIFF_TYPES",
            f'`{site.shown}` needs a key of the map\'s type "{t.key.sql}", but it has "{key.type.sql}".',
            span=site.span,
        )
    base = coerced(site.args[0], map_of(common, t.value, t.value_contains_null))
    return make(function, site, (base, coerced(key, common)), BOOLEAN, True)


def _bind_map_concat(function: Function, site: Site) -> Expr:
    types = [plain(a.type) for a in site.args]
    if not all(isinstance(t, MapType) for t in types):
        shown = ", ".join(f'"{t.sql}"' for t in types)
        raise UserError(
            "DATATYPE_MISMATCH.MAP_CONCAT_DIFF_TYPES",
            f"The `{site.shown}` should all be of type map, but it's [{shown}].",
            span=site.span,
        )
    common = least_common_of(types) if types else map_of(STRING, STRING, False)
    if common is None or not isinstance(common, MapType):
        raise site.diff_types()
    args = tuple(coerced(a, common) for a in site.args)
    return make(function, site, args, common, any(a.nullable for a in args))


def _lower_map_concat(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if not args:
        raise refused(call, "map_concat without arguments")
    return bound.udf("maps_joined", call.type, *args, nullable=call.nullable, raises=True)


def _bind_from_arrays(function: Function, site: Site) -> Expr:
    _count(site, 2)
    types = [plain(a.type) for a in site.args]
    if VOID in types:
        raise refused(Call(VOID, True, site.shown, (), span=site.span), f"{site.shown} of an untyped NULL")
    for index, t in enumerate(types):
        if not isinstance(t, ArrayType):
            raise site.mismatch(index, "ARRAY")
    keys, values = (_array_of(a) for a in site.args)
    if has_map(keys.element):
        raise UserError(
            "DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE",
            f'The key of map cannot be/contain "{keys.element.sql}".',
            span=site.span,
        )
    result = map_of(keys.element, values.element, values.contains_null)
    return make(function, site, site.args, result, any(a.nullable for a in site.args))


def _bind_from_entries(function: Function, site: Site) -> Expr:
    _count(site, 1)
    t = plain(site.args[0].type)
    if not (isinstance(t, ArrayType) and isinstance(t.element, StructType) and len(t.element.fields) == 2):
        raise site.mismatch(0, "ARRAY of pair STRUCT")
    key, value = t.element.fields
    result = map_of(key.type, value.type, value.nullable)
    return make(function, site, site.args, result, site.args[0].nullable or t.contains_null)


ROWS: tuple[Function, ...] = (
    Function("array", bind=_bind_array, lower=_lower_array),
    Function("map", bind=_bind_map, lower=_lower_map),
    Function("named_struct", bind=_bind_named_struct, lower=_lower_struct),
    Function("_field", kind="operator", lower=_lower_field),
    Function("_array_item", kind="operator", lower=_kernel("array_item", raises=True)),
    Function("_map_item", kind="operator", lower=_kernel("map_item")),
    Function("get", bind=_bind_get, lower=_lower_get),
    Function("element_at", bind=_bind_element_at, lower=_lower_element_at(False)),
    Function("try_element_at", bind=_bind_element_at, lower=_lower_element_at(True)),
    *(Function(name, bind=_bind_size, lower=_lower_size) for name in ("size", "cardinality")),
    Function("array_size", params=(param("array"),), returns=INT, lower=_kernel("list_size")),
    Function("array_contains", bind=_bind_contains, lower=_kernel("array_contains")),
    Function("array_position", bind=_bind_position, lower=_kernel("array_position")),
    Function("array_remove", bind=_bind_remove, lower=_kernel("array_removed")),
    Function("array_append", bind=_bind_extend, lower=_kernel("array_extended", "append")),
    Function("array_prepend", bind=_bind_extend, lower=_kernel("array_extended", "prepend")),
    Function("array_insert", bind=_bind_insert, lower=_kernel("array_inserted", raises=True)),
    Function("array_distinct", bind=_bind_same, lower=_kernel("array_deduplicated")),
    Function("array_compact", bind=_bind_same, lower=_kernel("array_compacted")),
    Function("array_sort", bind=_bind_array_sort, lower=_kernel("array_sorted", False, False), shown=_shown_array_sort),
    Function("sort_array", bind=_bind_sort_array, lower=_lower_sort_array),
    Function("array_max", bind=_bind_extreme, lower=_kernel("array_extreme", "max")),
    Function("array_min", bind=_bind_extreme, lower=_kernel("array_extreme", "min")),
    Function("array_union", bind=_bind_two_arrays, lower=_kernel("array_set", "union")),
    Function("array_intersect", bind=_bind_two_arrays, lower=_kernel("array_set", "intersect")),
    Function("array_except", bind=_bind_two_arrays, lower=_kernel("array_set", "except")),
    Function("arrays_overlap", bind=_bind_two_arrays, lower=_kernel("arrays_overlap")),
    Function("array_join", bind=_bind_join, lower=_kernel("array_text")),
    Function("slice", bind=_bind_slice, lower=_kernel("array_slice", raises=True)),
    Function("flatten", bind=_bind_flatten, lower=_kernel("array_flattened")),
    Function("array_repeat", bind=_bind_repeat, lower=_kernel("array_repeated", raises=True)),
    Function("arrays_zip", bind=_bind_zip, lower=_lower_zip),
    Function("sequence", bind=_bind_sequence, lower=_lower_sequence),
    Function("map_keys", bind=_bind_map_part, lower=_kernel("map_key_list")),
    Function("map_values", bind=_bind_map_part, lower=_kernel("map_value_list")),
    Function("map_entries", bind=_bind_map_part, lower=_kernel("map_entry_list")),
    Function("map_contains_key", bind=_bind_contains_key, lower=_kernel("array_contains")),
    Function(
        "str_to_map",
        params=(param(STRING), param(STRING), param(STRING)),
        optional=2,
        defaults=(Lit(STRING, False, ","), Lit(STRING, False, ":")),
        returns=map_of(STRING, STRING),
        lower=_kernel("text_to_map", raises=True),
    ),
    Function("map_concat", bind=_bind_map_concat, lower=_lower_map_concat),
    Function("map_from_arrays", bind=_bind_from_arrays, lower=_kernel("map_from_lists", raises=True)),
    Function("map_from_entries", bind=_bind_from_entries, lower=_kernel("map_from_entry_list", raises=True)),
)
