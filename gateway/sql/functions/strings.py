"""Rows of string functions: native where DataFusion means the same, rewrites over them, else functions of ours.

Positions and lengths count code points in both engines (proved by the probes); BINARY forms count bytes and are ours.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import UnsupportedError, UserError, unsupported
from gateway.sql.functions.collections import lower_concat_arrays, lower_reverse_array
from gateway.sql.functions.constants import constant
from gateway.sql.functions.lowerings import (
    at_most,
    both,
    by_type,
    engine_cast,
    equals,
    integer,
    kernel,
    less_than,
    native,
    not_null,
    raise_row,
    raises,
    same_type,
    text,
)
from gateway.sql.typed import nodes as bound
from gateway.sql.typed.catalogue import Context, Function, Lower, Site, coerce_args, make, param
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import least_common_of, least_common_type
from gateway.sql.typed.nodes import Call, Case, Col, Expr, Lit
from gateway.sql.typed.walk import has_columns, nodes
from gateway.sqltypes import BIGINT, BINARY, BOOLEAN, INT, STRING, VOID, ArrayType, DataType, is_nested

_MAX_INT = 2147483647
_STRING_OR_BINARY = param("string", BINARY)


def _not_negative(length: Expr) -> Expr:
    """`length`, 0 where negative."""
    if isinstance(length, Lit) and length.value is not None:
        return integer(max(0, length.value))
    return bound.case(INT, (less_than(length, integer(0)), integer(0)), otherwise=length)


def _substring(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if call.type == BINARY:
        return bound.udf("binary_substring", BINARY, *args)
    source, start, length = args
    if isinstance(start, Lit) and start.value is not None and start.value >= 0:
        begin: Expr = bound.lit(max(1, start.value), BIGINT)
    else:
        wide = bound.cast(start, BIGINT)
        size = bound.cast(bound.fn("character_length", INT, source), BIGINT)
        one = bound.lit(1, BIGINT)
        from_end = bound.op("+", BIGINT, bound.op("+", BIGINT, size, wide), one)
        begin = bound.case(
            BIGINT,
            (less_than(wide, bound.lit(0, BIGINT)), from_end),
            (equals(wide, bound.lit(0, BIGINT)), one),
            otherwise=wide,
        )
    count = bound.cast(_not_negative(length), BIGINT)
    if isinstance(length, Lit) and length.value is not None:
        count = bound.lit(max(0, length.value), BIGINT)
    return bound.fn("substr", STRING, source, begin, count)


def _left(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    source, count = args
    if call.type == BINARY:
        return bound.udf("binary_substring", BINARY, source, integer(1), count)
    taken = bound.fn("left", STRING, source, bound.cast(count, BIGINT))
    return bound.case(
        STRING, (bound.is_null(source), bound.null(STRING)), (at_most(count, integer(0)), text("")), otherwise=taken
    )


def _right(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    source, count = args
    taken = bound.fn("right", STRING, source, bound.cast(count, BIGINT))
    return bound.case(
        STRING, (bound.is_null(source), bound.null(STRING)), (at_most(count, integer(0)), text("")), otherwise=taken
    )


_LONGEST = 1 << 28  # bytes of a text that is made of another, or characters that it is padded to


def _bounded(call: Call, length: Expr, made: Expr) -> Expr:
    """`made`, a text of `length`; an error instead of one that would take gigabytes."""
    too_long = raise_row(
        call.type, "RESOURCE_EXHAUSTED", f"{call.shown} makes a text of more than {_LONGEST} characters."
    )
    if isinstance(length, Lit):
        return too_long if isinstance(length.value, int) and length.value > _LONGEST else made
    return bound.case(call.type, (less_than(bound.lit(_LONGEST, length.type), length), too_long), otherwise=made)


_SURELY_SHORT = 64  # what makes no text of gigabytes of one that fits into a batch


def _bytes(value: Expr) -> Expr:
    return bound.cast(bound.fn("octet_length", INT, value), BIGINT)


def _repeat(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    source, count = args
    times = bound.cast(_not_negative(count), BIGINT)
    made = bound.fn("repeat", STRING, source, times)
    if isinstance(count, Lit) and (count.value is None or count.value <= _SURELY_SHORT):
        return made
    return _bounded(call, bound.op("*", BIGINT, _bytes(source), times), made)


def _space(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    made = bound.fn("repeat", STRING, text(" "), bound.cast(_not_negative(args[0]), BIGINT))
    return _bounded(call, args[0], made)


def _elt(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    index, choices = args[0], args[1:]
    wrong = raise_row(
        call.type,
        "INVALID_ARRAY_INDEX",
        f"The index {{0}} is out of bounds. The array has {len(choices)} elements. Use the SQL function `get()` to "
        "tolerate accessing element at invalid index and return NULL instead.",
        bound.cast(index, STRING),
    )
    whens = tuple((equals(index, integer(i + 1)), choice) for i, choice in enumerate(choices))
    return bound.case(call.type, (bound.is_null(index), bound.null(call.type)), *whens, otherwise=wrong)


def _bind_elt(function: Function, site: Site) -> Expr:
    if len(site.args) < 2:
        raise site.wrong_count("> 1")
    index = param(INT)
    binary = all(a.type == BINARY for a in site.args[1:])
    rest = param(BINARY) if binary else param("string")
    args = coerce_args(Function("elt", (index,), rest), site)
    return make(function, site, args, BINARY if binary else STRING, True)


def _translate(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    replaced = args[2]
    if isinstance(replaced, Lit) and "\0" not in (replaced.value or ""):
        return native("translate")(call, args, context)
    return kernel("translate")(call, args, context)  # the engine's own puts NUL there


def _bind_concat(function: Function, site: Site) -> Expr:
    if not site.args:
        return make(function, site, (), STRING, False)
    types = [a.type for a in site.args]
    for index, t in enumerate(types):
        if is_nested(t) and not isinstance(t, ArrayType):
            raise site.mismatch(index, "STRING or BINARY or ARRAY")
    common: DataType | None
    if any(isinstance(t, ArrayType) for t in types):
        common = least_common_of(types)
        if common is None or VOID in types:
            raise site.diff_types()
        args = tuple(coerced(a, common) for a in site.args)
    else:
        common = BINARY if all(t == BINARY for t in types) else STRING
        args = tuple(coerced(a, common) for a in site.args)
    return make(function, site, args, common, any(a.nullable for a in args))


def _concat(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if isinstance(call.type, ArrayType):
        return lower_concat_arrays(call, args)
    if not args:
        return text("")
    result = args[0]
    for arg in args[1:]:
        result = bound.op("||", call.type, result, arg, nullable=call.nullable)
    if any(isinstance(a, Lit) and a.value is None for a in args) and not has_columns(call):
        failing = [a for a in args if raises(a)]  # the engine sees only the NULL, Spark computes constants first
        return bound.udf("last", call.type, *failing, result, raises=True) if failing else result
    return result


def _bind_reverse(function: Function, site: Site) -> Expr:
    if len(site.args) != 1:
        raise site.wrong_count("1")
    if isinstance(site.args[0].type, ArrayType):
        return make(function, site, site.args, site.args[0].type, site.args[0].nullable)
    if site.args[0].type == BINARY:
        raise unsupported("reverse of a BINARY", site.span)
    args = coerce_args(Function("reverse", (param("string"),)), site)
    return make(function, site, args, STRING, args[0].nullable)


def _reverse(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if isinstance(call.type, ArrayType):
        return lower_reverse_array(call, args)
    return bound.fn("reverse", STRING, args[0])


def _bind_concat_ws(function: Function, site: Site) -> Expr:
    if not site.args:
        raise site.wrong_count("> 0")
    args = list(coerce_args(Function("concat_ws", (param("string"),), param("any")), site))
    for i, arg in enumerate(args[1:], 1):
        if isinstance(arg.type, ArrayType):
            if least_common_type(arg.type.element, STRING) is None:
                raise site.mismatch(i, "STRING or ARRAY<STRING>")
            args[i] = coerced(arg, ArrayType("ARRAY", STRING, arg.type.contains_null))
        elif is_nested(arg.type):
            raise site.mismatch(i, "STRING or ARRAY<STRING>")
        else:
            args[i] = coerced(arg, STRING)
    return make(function, site, tuple(args), STRING, args[0].nullable)


def _concat_ws(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    # The engine leaves out constants that are NULL, and then fails if nothing is left.
    args = (args[0], *(a for a in args[1:] if not (isinstance(a, Lit) and a.value is None)))
    if len(args) == 1:
        return bound.case(STRING, (bound.is_null(args[0]), bound.null(STRING)), otherwise=text(""))
    if any(isinstance(a.type, ArrayType) for a in args):
        return bound.udf("concat_ws", STRING, *args)
    return bound.fn("concat_ws", STRING, *args)


def _pad(name: str) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        source, length, pad = args
        if call.type == BINARY:
            return bound.udf(f"binary_{name}", BINARY, source, length, pad)
        # a negative length makes DataFusion panic
        made = bound.fn(name, STRING, source, bound.cast(_not_negative(length), BIGINT), pad)
        return _bounded(call, length, made)

    return lower


def _bind_pad(function: Function, site: Site) -> Expr:
    if not 2 <= len(site.args) <= 3:
        raise site.wrong_count("[2, 3]")
    binary = site.args[0].type == BINARY and (len(site.args) == 2 or site.args[2].type == BINARY)
    kind: DataType = BINARY if binary else STRING
    shape = Function(function.name, (param(kind), param(INT), param(kind)), optional=1)
    args = coerce_args(shape, site)
    if len(args) == 2:
        args = (*args, bound.lit(b"\x00" if binary else " ", kind))
    return make(function, site, args, kind, any(a.nullable for a in args))


def _position(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    needle, source, start = args
    if isinstance(start, Lit) and start.value == 1:
        return bound.fn("strpos", INT, source, needle)
    wide = bound.cast(start, BIGINT)
    rest = bound.fn("substr", STRING, source, wide)
    found = bound.fn("strpos", INT, rest, needle)
    shifted = bound.op("-", INT, bound.op("+", INT, found, start), integer(1))
    result: Expr = bound.case(
        INT,
        (bound.is_null(needle), bound.null(INT)),
        (bound.is_null(source), bound.null(INT)),
        (less_than(start, integer(1)), integer(0)),
        (equals(needle, text("")), integer(1)),
        (equals(found, integer(0)), integer(0)),
        otherwise=engine_cast(shifted, INT),
    )
    # Spark evaluates the start and the part, in this order, even where the text is NULL.
    seen = [a for a in (start, needle) if not isinstance(a, (Lit, Col))]
    if seen:
        result = bound.udf("last", INT, *seen, result)
    return bound.case(INT, (bound.is_null(start), integer(0)), otherwise=result)


def _instr(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    if len(args) > 2:
        raise unsupported("instr with a position or an occurrence", call.span)
    return bound.fn("strpos", INT, args[0], args[1])


def _contains(name: str, impl: str) -> Lower:
    return by_type(native(name), kernel(impl))


_OVERLAY = Function(
    "overlay", (_STRING_OR_BINARY, _STRING_OR_BINARY, param(INT), param(INT)), optional=1, defaults=(integer(-1),)
)


def _bind_overlay(function: Function, site: Site) -> Expr:
    args = coerce_args(_OVERLAY, site)
    if args[0].type != args[1].type:
        raise site.diff_types()
    return make(function, site, args, args[0].type, any(a.nullable for a in args))


def _bind_contains(function: Function, site: Site) -> Expr:
    if len(site.args) != 2:
        raise site.wrong_count("2")
    binary = all(a.type == BINARY for a in site.args)
    kind = param(BINARY) if binary else param("string")
    args = coerce_args(Function(function.name, (kind, kind)), site)
    return make(function, site, args, BOOLEAN, binary or any(a.nullable for a in args))


def _replace(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    source, _, new = args
    made = bound.fn("replace", STRING, *args)
    if isinstance(new, Lit) and (new.value is None or len(new.value.encode()) <= _SURELY_SHORT):
        return made
    large = bound.udf("replace_large", STRING, *args, nullable=call.nullable, raises=True)
    if any(isinstance(part, Case) for part in nodes(source)):  # one in another: the text would grow by the power
        return large
    most = bound.op("*", BIGINT, _bytes(source), _bytes(new))
    return bound.case(STRING, (less_than(bound.lit(_LONGEST, BIGINT), most), large), otherwise=made)


def _split_part(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("split_part", STRING, *args, raises=True)


def _levenshtein(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    distance = bound.fn("levenshtein", INT, *args[:2])
    if len(args) == 2:
        return distance
    known = both(not_null(distance), not_null(args[2]))
    return bound.case(INT, (at_most(distance, args[2]), distance), (known, integer(-1)))


def _chr(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    code = args[0]
    low = bound.op("%", BIGINT, code, bound.lit(256, BIGINT))
    return bound.case(
        STRING,
        (bound.is_null(code), bound.null(STRING)),
        (less_than(code, bound.lit(0, BIGINT)), text("")),
        otherwise=bound.fn("chr", STRING, low),
    )


def _collation(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return text("SYSTEM.BUILTIN.UTF8_BINARY")


def _bind_trim(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 2:
        raise site.wrong_count("[1, 2]")
    args = coerce_args(Function(function.name, (param("string"),) * 2, optional=1), site)
    return make(function, site, args, STRING, any(a.nullable for a in args))


def _trim(name: str, *, source_last: bool = True) -> Lower:
    def lower(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
        if len(args) == 2 and source_last:
            args = (args[1], args[0])
        return bound.fn(name, STRING, *args)

    return lower


def _shown_trim(side: str) -> Callable[[Call, list[str]], str]:
    def shown(call: Call, names: list[str]) -> str:
        if len(names) == 2:
            return f"TRIM({side} {names[0]} FROM {names[1]})"
        return f"{call.shown}({names[0]})"

    return shown


def _bind_mask(function: Function, site: Site) -> Expr:
    if not 1 <= len(site.args) <= 5:
        raise site.wrong_count("[1, 2, 3, 4, 5]")
    args = list(coerce_args(Function("mask", (param("text"),) * 5, optional=4), site))
    for i, default in list(enumerate(("X", "x", "n", None), 1))[len(args) - 1 :]:
        args.append(bound.lit(default, STRING) if i < 5 else args[0])
    args = [coerced(a, STRING) if a.type == VOID else a for a in args]
    masks: list[str | None] = []
    for i, given in enumerate(args[1:], 1):
        if i < len(site.args):
            masks.append(constant(site, i, given))
        else:
            masks.append(given.value if isinstance(given, Lit) else None)
        mask = masks[-1]
        if mask is not None and len(mask) != 1:
            raise UserError(
                "DATATYPE_MISMATCH.INPUT_SIZE_NOT_ONE",
                f'Cannot resolve "{site.shown}" due to data type mismatch: length of the replacement of parameter '
                f"{i + 1} should be 1.",
                span=site.span_of(i),
            )
    return make(function, site, tuple(args), STRING, True, tuple(masks))


def _mask(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    return bound.udf("mask", STRING, args[0], params=call.data)


def _bind_format(function: Function, site: Site) -> Expr:
    if not site.args:
        raise site.wrong_count("> 0")
    args = coerce_args(Function(function.name, (param("string"),), param("any")), site)
    return make(function, site, args, STRING, args[0].nullable)


def _format_string(call: Call, args: tuple[Expr, ...], context: Context) -> Expr:
    for arg in call.args[1:]:
        if is_nested(arg.type) or arg.type.name not in _FORMATTABLE:
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE", f"{call.shown} of {arg.type.sql} is not supported.", span=call.span
            )
    names = tuple(a.type.name for a in call.args[1:])
    # an untyped NULL column cannot be a UDF argument; it formats as null of any type
    given = tuple(bound.null(STRING) if a.type.name == "VOID" else a for a in args[1:])
    return bound.udf("format_string", STRING, args[0], *given, params=(names,), raises=True)


_FORMATTABLE = frozenset({"VOID", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING"})


ROWS: tuple[Function, ...] = (
    Function("upper", (param("string"),), returns=STRING, lower=native("upper"), aliases=("ucase",)),
    Function("lower", (param("string"),), returns=STRING, lower=native("lower"), aliases=("lcase",)),
    Function(
        "length",
        (_STRING_OR_BINARY,),
        returns=INT,
        lower=by_type(native("character_length"), kernel("binary_length")),
        aliases=("len", "char_length", "character_length"),
    ),
    Function(
        "octet_length",
        (_STRING_OR_BINARY,),
        returns=INT,
        lower=by_type(native("octet_length"), kernel("binary_length")),
    ),
    Function(
        "bit_length",
        (_STRING_OR_BINARY,),
        returns=INT,
        lower=by_type(native("bit_length"), kernel("binary_bit_length")),
    ),
    Function("trim", bind=_bind_trim, lower=_trim("btrim"), shown=_shown_trim("BOTH")),
    Function("ltrim", bind=_bind_trim, lower=_trim("ltrim"), shown=_shown_trim("LEADING")),
    Function("rtrim", bind=_bind_trim, lower=_trim("rtrim"), shown=_shown_trim("TRAILING")),
    Function("btrim", bind=_bind_trim, lower=_trim("btrim", source_last=False)),
    Function(
        "substring",
        (_STRING_OR_BINARY, param(INT), param(INT)),
        optional=1,
        defaults=(integer(_MAX_INT),),
        returns=same_type,
        lower=_substring,
        aliases=("substr",),
    ),
    Function("left", (_STRING_OR_BINARY, param(INT)), returns=same_type, lower=_left),
    Function("right", (param("string"), param(INT)), returns=STRING, nullable="always", lower=_right),
    Function("repeat", (param("string"), param(INT)), returns=STRING, lower=_repeat),
    Function("space", (param(INT),), returns=STRING, lower=_space),
    Function("elt", bind=_bind_elt, lower=_elt),
    Function("concat", bind=_bind_concat, lower=_concat),
    Function("reverse", bind=_bind_reverse, lower=_reverse),
    Function("concat_ws", bind=_bind_concat_ws, lower=_concat_ws),
    Function("lpad", bind=_bind_pad, lower=_pad("lpad")),
    Function("rpad", bind=_bind_pad, lower=_pad("rpad")),
    Function(
        "replace",
        (param("string"), param("string"), param("string")),
        optional=1,
        defaults=(text(""),),
        returns=STRING,
        lower=_replace,
    ),
    Function("translate", (param("string"),) * 3, returns=STRING, lower=_translate),
    Function(
        "instr", (param("string"), param("string"), param(INT), param(INT)), optional=2, returns=INT, lower=_instr
    ),
    Function(
        "locate",
        (param("string"), param("string"), param(INT)),
        optional=1,
        defaults=(integer(1),),
        returns=INT,
        nullable=lambda args: args[0].nullable or args[1].nullable,
        lower=_position,
        aliases=("position",),
    ),
    Function("contains", bind=_bind_contains, lower=_contains("contains", "binary_contains")),
    Function("startswith", bind=_bind_contains, lower=_contains("starts_with", "binary_startswith")),
    Function("endswith", bind=_bind_contains, lower=_contains("ends_with", "binary_endswith")),
    Function("find_in_set", (param("string"), param("string")), returns=INT, lower=native("find_in_set")),
    Function(
        "split_part",
        (param("string"), param("string"), param(INT)),
        returns=STRING,
        nullable="always",
        lower=_split_part,
    ),
    Function(
        "substring_index",
        (param("string"), param("string"), param(INT)),
        returns=STRING,
        lower=kernel("substring_index", raises=True),
    ),
    Function("overlay", bind=_bind_overlay, lower=kernel("overlay")),
    Function(
        "levenshtein",
        (param("string"), param("string"), param(INT)),
        optional=1,
        returns=INT,
        lower=_levenshtein,
    ),
    Function("soundex", (param("text"),), returns=STRING, lower=kernel("soundex")),
    Function("ascii", (param("string"),), returns=INT, lower=native("ascii")),
    Function("chr", (param(BIGINT),), returns=STRING, lower=_chr, aliases=("char",)),
    Function("initcap", (param("string"),), returns=STRING, lower=kernel("initcap")),
    Function("mask", bind=_bind_mask, lower=_mask),
    Function("format_string", bind=_bind_format, lower=_format_string, aliases=("printf",)),
    Function("quote", (param("string"),), returns=STRING, nullable="always", lower=kernel("quote")),
    Function("collation", (param("text"),), returns=STRING, nullable="never", lower=_collation),
    Function("luhn_check", (param("string"),), returns=BOOLEAN, nullable="always", lower=kernel("luhn_check")),
)
