"""Which expressions Spark takes for constants while it analyses a statement: what its errors and nullability go by.

It is narrower than having no columns (but for types, which no row has to be asked for): what Spark replaces by another
expression later has no value for it before.
"""

from __future__ import annotations

from gateway.sql.typed.nodes import Call, Case, Cast, Expr, Lit
from gateway.sql.typed.walk import children

# fmt: off
_NEVER = frozenset((
    # another expression takes its place (RuntimeReplaceable)
    "array_append", "array_compact", "array_prepend", "array_size", "array_sort", "arrays_zip", "between", "btrim", "date_part",
    "datepart", "decode", "encode", "equal_null", "extract", "ilike", "is_valid_utf8", "left", "luhn_check", "make_valid_utf8",
    "map_contains_key", "nullif", "nullifzero", "nvl", "nvl2", "parse_url", "regexp_count", "regexp_substr", "right",
    "split_part", "to_binary", "to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_add", "try_divide",
    "try_element_at", "try_make_timestamp", "try_mod", "try_multiply", "try_parse_url", "try_subtract", "try_to_binary",
    "try_to_date", "try_to_timestamp", "try_url_decode", "try_validate_utf8", "url_decode", "url_encode", "validate_utf8",
    "zeroifnull",
    # nothing says that it is a constant
    "assert_true", "elt", "map_concat", "raise_error",
    # known once the statement is optimized
    "current_catalog", "current_database", "current_schema", "current_timezone", "current_user", "session_user", "user",
    "version",
    # another value each time
    "input_file_name", "monotonically_increasing_id", "rand", "randn", "randstr", "shuffle", "spark_partition_id",
    "uniform", "uuid",
))
_NOT_OF_BYTES = frozenset(("contains", "endswith", "lpad", "rpad", "startswith"))
# fmt: on

#: NULL in the place of an operand of no type that asks other rows: what was asked stands below it.
UNASKED = "_unasked"


def is_foldable(expr: Expr) -> bool:
    """Whether Spark's analysis takes `expr` for a constant."""
    if isinstance(expr, Lit) or (isinstance(expr, Call) and expr.fn in (UNASKED, "typeof")):  # of any column
        return True
    if not isinstance(expr, (Call, Cast, Case)) or (isinstance(expr, Call) and _is_replaced(expr)):
        return False
    return all(map(is_foldable, children(expr)))


def _is_replaced(call: Call) -> bool:
    if call.fn in _NEVER or call.shown == "equal_null":
        return True
    if call.fn in _NOT_OF_BYTES:
        return call.args[0].type.name == "BINARY"
    if call.fn == "make_timestamp":
        return len(call.args) == 1
    return call.fn == "convert_timezone" and len(call.args) == 2
