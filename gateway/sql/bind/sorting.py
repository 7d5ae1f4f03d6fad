"""Sort keys of ORDER BY, wherever it stands."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from gateway.errors import Span, UserError
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.scope import Scope
from gateway.sql.read.tree import Distributed, span_of
from gateway.sql.typed.nodes import Expr, SortKey
from gateway.sqltypes import DataType, has_variant, is_orderable

Node = exp.Expr


def sort_keys(binder: Expressions, items: Sequence[Node], scope: Scope) -> list[SortKey]:
    """ORDER BY items with Spark's defaults: NULLs first ascending, last descending."""
    return [sort_key(item, binder.bind(item.this, scope)) for item in items]


def sort_key(item: Node, expr: Expr) -> SortKey:
    """The key of one ``Ordered`` node, or of one of DISTRIBUTE BY."""
    if isinstance(item, Distributed):
        if has_variant(expr.type):
            message = "The feature is not supported: Cannot use VARIANT producing expressions to partition a DataFrame."
            raise UserError("UNSUPPORTED_FEATURE.PARTITION_BY_VARIANT", message, span=span_of(item))
        return SortKey(expr, False, True)
    if not is_orderable(expr.type):
        raise UserError(
            "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
            f'The `sortorder` does not support ordering on type "{expr.type.sql}".',
            span=span_of(item),
        )
    descending = bool(item.args.get("desc"))
    first = item.args.get("nulls_first")
    return SortKey(expr, descending, (not descending) if first is None else bool(first))


def check_comparable(data_type: DataType, where: str, span: Span | None) -> None:
    """Raise UserError for a type whose rows no set operation, nor DISTINCT, can compare."""
    if is_orderable(data_type):
        return
    kind = "VARIANT" if has_variant(data_type) else "MAP"
    text = f"Cannot have {kind} type columns in DataFrame which calls set operations ({where})."
    raise UserError(f"UNSUPPORTED_FEATURE.SET_OPERATION_ON_{kind}_TYPE", text, span=span)
