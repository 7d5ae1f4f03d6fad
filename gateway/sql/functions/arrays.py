"""Functions of arrays; types meet as in Spark, which makes no string a number here."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import UserError
from gateway.sql.functions.collections import array_of, check_count, udf_lower
from gateway.sql.functions.lambdas import closed, list_of, open_lambda
from gateway.sql.functions.lowerings import refused
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Site, coerce_args, make, null_of, param
from gateway.sql.typed.coerce import coerced, implicit_type
from gateway.sql.typed.common_types import least_common_of, plain, shared_type
from gateway.sql.typed.foldable import is_foldable
from gateway.sql.typed.nodes import Call, Col, Expr, Lit
from gateway.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    IntervalType,
    StructField,
    StructType,
    array,
    interval,
    is_datetime,
    is_integral,
    struct,
)


def _diff_types(site: Site, left: DataType, right: DataType) -> UserError:
    return UserError(
        "DATATYPE_MISMATCH.ARRAY_FUNCTION_DIFF_TYPES",
        f'Input to `{site.shown}` should have been "ARRAY" followed by a value with same element type, but it\'s '
        f'["{left.sql}", "{right.sql}"].',
        span=site.span,
    )


def _with_value(site: Site, value_at: int = 1) -> tuple[Expr, ...]:
    """(array, …, value): both brought to the common element type."""
    base = site.args[0]
    value = site.args[value_at]
    t = plain(base.type)
    if t == VOID and site.shown in ("array_insert", "array_remove"):
        raise _diff_types(site, t, value.type)
    seeks = site.shown in ("array_contains", "array_position")
    if not isinstance(t, ArrayType) and not (t == VOID and seeks):
        raise site.mismatch(0, "ARRAY")
    if not isinstance(t, ArrayType) or (value.type == VOID and site.shown == "array_contains"):
        raise UserError(
            "DATATYPE_MISMATCH.NULL_TYPE", f"Null typed values cannot be used as arguments of `{site.shown}`.",
            span=site.span_of(value_at),
        )  # fmt: skip
    common = shared_type(t.element, plain(value.type), wider=site.shown == "array_contains")
    if common is None:
        raise _diff_types(site, t, value.type)
    args = list(site.args)
    args[0] = coerced(base, array(common, t.contains_null))
    args[value_at] = coerced(value, common)
    return tuple(args)


def _bind_contains(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    args = _with_value(site)
    t = array_of(args[0])
    site.check_orderable(t.element)
    return make(function, site, args, BOOLEAN, any(a.nullable for a in args) or t.contains_null)


def _bind_position(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    args = _with_value(site)
    site.check_orderable(array_of(args[0]).element)
    return make(function, site, args, BIGINT, any(a.nullable for a in args))


def _bind_remove(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    args = _with_value(site)
    site.check_orderable(array_of(args[0]).element)
    return make(function, site, args, args[0].type, any(a.nullable for a in args))


def _bind_extend(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    args = _with_value(site)
    return make(function, site, args, array(array_of(args[0]).element), args[0].nullable)


def _bind_insert(function: Function, site: Site) -> Expr:
    check_count(site, 3)
    args = list(_with_value(site, 2))
    if args[1].type not in (TINYINT, SMALLINT, INT):
        raise site.mismatch(1, "INT")
    args[1] = coerced(args[1], INT)
    return make(function, site, tuple(args), array(array_of(args[0]).element), args[0].nullable or args[1].nullable)


#: What Spark has an answer for where it is given NULL without a type.
_OF_NOTHING = frozenset(("array_compact", "array_distinct", "array_join", "array_max", "array_min", "sort_array"))


def _one_array(site: Site, ordered: bool = False) -> ArrayType:
    t = plain(site.args[0].type)
    if t == VOID and site.name.lower() in _OF_NOTHING:
        raise refused(Call(VOID, True, site.shown, (), span=site.span), f"{site.shown} of an untyped NULL")
    if not isinstance(t, ArrayType):
        raise site.mismatch(0, "ARRAY")
    if ordered:
        site.check_orderable(t.element)
    return t


def _bind_same(function: Function, site: Site) -> Expr:
    check_count(site, 1)
    t = _one_array(site, ordered=function.name == "array_distinct")
    if function.name == "array_compact":
        t = array(t.element, False)
    return make(function, site, site.args, t, site.args[0].nullable)


def _bind_array_sort(function: Function, site: Site) -> Expr:
    if len(site.args) == 2:
        return _bind_compared(function, site)
    check_count(site, 1)
    t = _one_array(site, ordered=True)
    return make(function, site, site.args, t, site.args[0].nullable)


def _bind_compared(function: Function, site: Site) -> Expr:
    """array_sort with a comparator, which is asked about two elements."""
    t = list_of(site, 0)
    order = open_lambda(site, 1).close([(t.element, t.contains_null)] * 2)
    if order.type != INT:
        raise UserError(
            "DATATYPE_MISMATCH.UNEXPECTED_RETURN_TYPE",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the lambda must give the type "INT", but it gives '
            f'"{order.type.sql}".',
            span=site.span,
        )
    return make(function, site, (site.args[0], order), t, site.args[0].nullable)


def _lower_array_sort(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if len(args) == 2:
        return bound.fn("compared", call.type, *args, nullable=call.nullable)
    return bound.udf("array_sorted", call.type, args[0], params=(False, False), nullable=call.nullable)


_ORDER = (
    "lambdafunction((IF(((V IS NULL) AND (V IS NULL)), 0, (IF((V IS NULL), 1, (IF((V IS NULL), -1, (IF((V < V), -1, "
    "(IF((V > V), 1, 0)))))))))), V, V)"
).replace("V", "namedlambdavariable()")


def _shown_array_sort(call: Call, args: list[str]) -> str:
    """Spark shows the comparator that it fills in."""
    return f"array_sort({args[0]}, {args[1] if len(args) == 2 else _ORDER})"


def _bind_sort_array(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    t = _one_array(site, ordered=True)
    flag = site.args[1] if len(site.args) == 2 else Lit(BOOLEAN, False, True)
    if flag.type not in (BOOLEAN, VOID):
        raise site.mismatch(1, "BOOLEAN")
    flag = coerced(flag, BOOLEAN)
    if not is_foldable(flag):
        raise UserError(
            "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
            f'Cannot resolve "{site.shown}" due to data type mismatch: the input `ascendingOrder` should be a foldable '
            '"BOOLEAN" expression.',
            span=site.span_of(1),
        )
    return make(function, site, (site.args[0], flag), t, site.args[0].nullable or flag.nullable)


def _lower_sort_array(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    def sorted_by(ascending: bool) -> Expr:
        return bound.udf("array_sorted", call.type, args[0], params=(not ascending, ascending), nullable=call.nullable)

    flag = args[1]
    if isinstance(flag, Lit):
        return bound.null(call.type) if flag.value is None else sorted_by(bool(flag.value))
    return bound.case(call.type, (flag, sorted_by(True)), (bound.not_(flag), sorted_by(False)))


def _bind_extreme(function: Function, site: Site) -> Expr:
    check_count(site, 1)
    return make(function, site, site.args, _one_array(site, ordered=True).element, True)


def _bind_two_arrays(function: Function, site: Site) -> Expr:
    """array_union, array_intersect, array_except, arrays_overlap."""
    check_count(site, 2)
    types = [plain(a.type) for a in site.args]
    for index, t in enumerate(types):
        if not isinstance(t, ArrayType) and t != VOID:
            raise site.mismatch(index, "ARRAY")
    common = None if VOID in types else shared_type(types[0], types[1])
    if not isinstance(common, ArrayType):
        raise UserError(
            "DATATYPE_MISMATCH.BINARY_ARRAY_DIFF_TYPES",
            f'Input to function `{site.shown}` should have been two "ARRAY" with same element type, but it\'s '
            f'["{types[0].sql}", "{types[1].sql}"].',
            span=site.span,
        )
    site.check_orderable(common.element)
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
    if t.element == VARIANT:  # Spark knows the cast, but takes it for none that it does by itself
        raise UserError(
            "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
            f'Cannot resolve "{site.shown}" due to data type mismatch: cannot cast "{t.sql}" to "ARRAY<STRING>".',
            span=site.span_of(0),
        )
    texts = coerced(site.args[0], array(STRING, t.contains_null))
    rest = coerce_args(Function(function.name, tuple(param("text") for _ in site.args[1:])), _tail(site))
    args = (texts, *rest)
    return make(function, site, args, STRING, any(a.nullable for a in args))


def _tail(site: Site) -> Site:
    return Site(site.name, site.args[1:], site.context, site.span, site.spans[1:])


def _bind_slice(function: Function, site: Site) -> Expr:
    check_count(site, 3)
    if site.args[0].type == VOID:
        site = replace(site, args=(coerced(site.args[0], array(VOID)), *site.args[1:]))
    args = coerce_args(Function(function.name, (param("array"), param(INT), param(INT))), site)
    return make(function, site, args, args[0].type, any(a.nullable for a in args))


def _bind_flatten(function: Function, site: Site) -> Expr:
    check_count(site, 1)
    t = _one_array(site)
    if not isinstance(t.element, ArrayType):
        raise site.mismatch(0, "ARRAY of ARRAY")
    return make(function, site, site.args, t.element, site.args[0].nullable or t.contains_null)


def _bind_repeat(function: Function, site: Site) -> Expr:
    check_count(site, 2)
    value, given = site.args
    if given.type not in (INT, VOID):
        raise site.mismatch(1, "INT")
    count = coerced(null_of(given), INT)
    return make(function, site, (value, count), array(value.type, value.nullable), count.nullable)


def _zip_name(arg: Expr, index: int) -> str:
    if isinstance(arg, Col):
        return arg.name
    return arg.shown if isinstance(arg, Call) and arg.fn == "_field" and arg.shown else str(index)


def _bind_zip(function: Function, site: Site) -> Expr:
    fields = []
    for index, arg in enumerate(site.args):
        t = plain(arg.type)
        if t == VOID:
            t = array(VOID)
        if not isinstance(t, ArrayType):
            raise site.mismatch(index, "ARRAY")
        fields.append(StructField(_zip_name(arg, index), t.element))
    nullable = any(a.nullable for a in site.args)
    type_ = array(struct(*fields), False)
    if any(a.type == VOID for a in site.args):
        return Call(type_, True, function.name, tuple(map(null_of, site.args)), site.shown, ("void",), site.span)
    return make(function, site, site.args, type_, nullable)


def _lower_zip(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if not args:
        raise refused(call, "arrays_zip without arguments")
    if call.data:  # one array is NULL
        return bound.null(call.type)
    element = array_of(call).element
    assert isinstance(element, StructType)
    if len({f.name for f in element.fields}) != len(element.fields):
        raise refused(call, "arrays_zip of two columns of one name")
    return bound.udf("arrays_zipped", call.type, *args, nullable=call.nullable)


def _bind_sequence(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    ends = least_common_of(a.type for a in site.args[:2])
    step = site.args[2] if len(site.args) == 3 else None
    if ends == VOID and step is not None and is_integral(step.type):
        ends = step.type
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
    element = array_of(call).element
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


ROWS: tuple[Function, ...] = (
    Function("array_contains", bind=_bind_contains, lower=udf_lower("array_contains")),
    Function("array_position", bind=_bind_position, lower=udf_lower("array_position")),
    Function("array_remove", bind=_bind_remove, lower=udf_lower("array_removed")),
    Function("array_append", bind=_bind_extend, lower=udf_lower("array_extended", "append")),
    Function("array_prepend", bind=_bind_extend, lower=udf_lower("array_extended", "prepend")),
    Function("array_insert", bind=_bind_insert, lower=udf_lower("array_inserted", raises=True)),
    Function("array_distinct", bind=_bind_same, lower=udf_lower("array_deduplicated")),
    Function("array_compact", bind=_bind_same, lower=udf_lower("array_compacted")),
    Function(
        "array_sort",
        bind=closed(_bind_array_sort),
        lower=_lower_array_sort,
        shown=_shown_array_sort,
    ),
    Function("sort_array", bind=_bind_sort_array, lower=_lower_sort_array),
    Function("array_max", bind=_bind_extreme, lower=udf_lower("array_extreme", "max")),
    Function("array_min", bind=_bind_extreme, lower=udf_lower("array_extreme", "min")),
    Function("array_union", bind=_bind_two_arrays, lower=udf_lower("array_set", "union")),
    Function("array_intersect", bind=_bind_two_arrays, lower=udf_lower("array_set", "intersect")),
    Function("array_except", bind=_bind_two_arrays, lower=udf_lower("array_set", "except")),
    Function("arrays_overlap", bind=_bind_two_arrays, lower=udf_lower("arrays_overlap")),
    Function("array_join", bind=_bind_join, lower=udf_lower("array_text")),
    Function("slice", bind=_bind_slice, lower=udf_lower("array_slice", raises=True)),
    Function("flatten", bind=_bind_flatten, lower=udf_lower("array_flattened")),
    Function("array_repeat", bind=_bind_repeat, lower=udf_lower("array_repeated", raises=True)),
    Function("arrays_zip", bind=_bind_zip, lower=_lower_zip),
    Function("sequence", bind=_bind_sequence, lower=_lower_sequence),
)
