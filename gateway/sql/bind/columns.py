"""Names in an expression: columns, fields, items of arrays and maps, and what stars stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from gateway.errors import UserError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.scope import BARE, METADATA, Scope, all_fields, field_of
from gateway.sql.bind.sites import called
from gateway.sql.functions.collections import BRACKETS, STARRED, item_nullable
from gateway.sql.functions.variants import extraction
from gateway.sql.read.tree import span_of
from gateway.sql.typed.coerce import coerced, implicit_type
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Call, Cast, Col, Expr, Lit
from gateway.sqltypes import BIGINT, INT, STRING, VOID, ArrayType, MapType, StructType, is_integral

Node = exp.Expr


def column(binder: Expressions, node: exp.Column, scope: Scope) -> Expr:
    if isinstance(node.this, exp.Star):
        return star(binder, node, scope)
    parts = [node.args[k].name for k in ("catalog", "db", "table", "this") if node.args.get(k) is not None]
    found = scope.resolve(parts, span_of(node))
    if found is not None:
        return found
    if len(parts) == 1 and parts[0].lower() in BARE:
        name = "current_user" if parts[0].lower() in ("user", "session_user") else parts[0]
        return called(binder, name, (), (), span_of(node))
    if len(parts) == 1 and parts[0].lower() == "grouping__id":  # Hive's name for it
        return Call(BIGINT, False, "grouping_id", (), "grouping_id", (), span_of(node))
    if METADATA in [p.lower() for p in parts]:
        raise unsupported(f"{METADATA} of anything but a table of FROM", span_of(node))
    raise scope.missing(parts, span_of(node))


def dot(binder: Expressions, node: exp.Dot, scope: Scope) -> Expr:
    if isinstance(node.expression, exp.Anonymous):
        raise UserError(
            "UNRESOLVED_ROUTINE",
            f"Cannot resolve routine `{node.expression.name}` on search path.",
            span=span_of(node),
        )
    base, name = binder.bind(node.this, scope), node.expression.name
    if base.type == VOID:
        return Call(VOID, True, "_null_item", (base, Lit(STRING, False, name)), span=span_of(node))
    return field_of(base, name, span_of(node))


def bracket(binder: Expressions, node: exp.Bracket, scope: Scope) -> Expr:
    base = binder.bind(node.this, scope)
    index = binder.bind(node.expressions[0], scope)
    span, t = span_of(node), plain(base.type)
    fields = isinstance(t, StructType) or (isinstance(t, ArrayType) and isinstance(t.element, StructType))
    if fields and isinstance(index, Lit) and index.type == STRING and index.value is not None:
        found = field_of(base, index.value, span)
        if isinstance(found, Call) and found.fn == "_array_field":
            return replace(found, data=(*found.data, BRACKETS))
        return found
    if isinstance(t, StructType):
        message = "The name of a field in brackets must be a string literal that is not NULL."
        raise UserError("INVALID_EXTRACT_FIELD_TYPE", message, span=span)
    if t == VOID:
        return Call(VOID, True, "_null_item", (base, index), span=span)
    if isinstance(t, ArrayType):
        if not is_integral(index.type) and index.type != VOID:
            raise UserError(
                "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                f'The index of an array must be of an integral type, but it has the type "{index.type.sql}".',
                span=span,
            )
        if index.type == BIGINT:
            index = Cast(INT, index.nullable, index, implicit=True)
        nullable = item_nullable(base, index, binder.context, raises=True)
        return Call(t.element, nullable, "_array_item", (base, coerced(index, INT)), span=span)
    if isinstance(t, MapType):
        key = implicit_type(index.type, (t.key,))
        if t.key == VOID and index.type == STRING:
            message = 'Cannot resolve the key of the map due to data type mismatch: cannot cast "STRING" to "VOID".'
            raise UserError("DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", message, span=span)
        if key is None or (t.key == VOID and index.type != VOID):
            raise UserError(
                "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                f'The key of the map must be of type "{t.key.sql}", but it has the type "{index.type.sql}".',
                span=span,
            )
        return Call(t.value, True, "_map_item", (base, coerced(index, t.key)), span=span)
    raise UserError(
        "INVALID_EXTRACT_BASE_FIELD_TYPE",
        f'Can\'t extract a value from a value of type "{base.type.sql}". Need a complex type [STRUCT, ARRAY, MAP].',
        span=span,
    )


def path(binder: Expressions, node: exp.JSONExtract, scope: Scope) -> Expr:
    return extraction(binder.bind(node.this, scope), str(node.expression.this), span_of(node))


def star(binder: Expressions, node: Node, scope: Scope) -> Expr:
    raise UserError("INVALID_USAGE_OF_STAR_OR_REGEX", "Invalid usage of '*' in an expression.", span=span_of(node))


def expanded(binder: Expressions, items: Sequence[Node], scope: Scope) -> list[Expr]:
    """Arguments with stars replaced by what they stand for."""
    args: list[Expr] = []
    for item in items:
        if isinstance(item, exp.Star):
            args += left_by_except(scope.columns(), item, scope)
        elif isinstance(item, exp.Column) and is_star(item):
            qualifier = [p.name for p in item.parts[:-1]]
            if item.this.args.get("except_") and scope.qualified(qualifier) is None:
                raise unsupported("EXCEPT of a struct's fields", span_of(item))
            args += left_by_except(list(map(_starred, star_columns(item, scope))), item.this, scope.of(qualifier))
        else:
            args.append(binder.bind(item.this if isinstance(item, exp.Alias) else item, scope))
    return args


def _starred(column: Expr) -> Expr:
    """A field of a struct as what a star among arguments stands for: names of functions show it with an alias."""
    return (
        replace(column, data=(*column.data, STARRED)) if isinstance(column, Call) and column.fn == "_field" else column
    )


def left_by_except(columns: list[Expr], star: Node, scope: Scope) -> list[Expr]:
    """The columns of a star that its EXCEPT leaves."""
    gone: set[int | str] = set()
    shown = set(map(_star_key, columns))  # JOIN … USING hides one of two
    for node in star.args.get("except_") or ():
        parts = [part.name for part in node.parts]
        found = scope.resolve(parts, span_of(node))
        if isinstance(found, Call) and found.fn == "_field":
            raise unsupported("EXCEPT of a struct's field", span_of(node))
        key = None if found is None else _star_key(found)
        if key is None or key not in shown:
            raise scope.missing(parts, span_of(node))
        if key in gone:
            raise _overlapping(node)
        gone.add(key)
        if isinstance(found, Col):
            gone |= scope.same(found)
    return [c for c in columns if _star_key(c) not in gone]


def merged_name(expr: Expr) -> str | None:
    """The name of a column of JOIN … USING; None for other expressions."""
    return expr.shown if isinstance(expr, Call) and expr.data == ("merged",) else None


def _star_key(expr: Expr) -> int | str | None:
    """What tells a column of ``*`` from the others; None for what is none."""
    name = merged_name(expr)
    return expr.id if isinstance(expr, Col) else name and name.lower()


def _overlapping(node: Node) -> UserError:
    """A column that EXCEPT names twice."""
    message = f"Columns in an EXCEPT list must be distinct and non-overlapping, but got `{node.name}` twice."
    return UserError("EXCEPT_OVERLAPPING_COLUMNS", message, span=span_of(node))


def star_columns(node: exp.Column, scope: Scope) -> list[Expr]:
    """What ``t.*`` or ``struct_column.*`` stands for."""
    parts = [node.args[k].name for k in ("catalog", "db", "table") if node.args.get(k) is not None]
    columns: Sequence[Expr] | None = scope.qualified(parts)
    if columns is not None:
        return list(columns)
    hidden = parts[-1].lower() == METADATA and any(s.metadata is not None for s in scope.sources)
    base = None if hidden else scope.resolve(parts, span_of(node), enclosed=True)
    if base is not None and isinstance(base.type, StructType):
        return all_fields(base, span_of(node))
    columns = scope.star_around(parts, span_of(node))
    if columns is not None:
        return list(columns)
    raise UserError(
        "CANNOT_RESOLVE_STAR_EXPAND",
        f"Cannot resolve {'.'.join(f'`{p}`' for p in parts)}.* given input columns.",
        span=span_of(node),
    )


def is_star(item: Node) -> bool:
    """Whether an item is ``*`` or ``t.*``."""
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def has_except(item: Node) -> bool:
    """Whether a star has EXCEPT behind it."""
    star = item.this if isinstance(item, exp.Column) else item
    return isinstance(star, exp.Star) and bool(star.args.get("except_"))


def check_stars(select: Node) -> None:
    """Raise INVALID_USAGE_OF_STAR_OR_REGEX for a star where no columns are put in its place: they are in items and in WHERE."""
    clauses = [select.args.get(name) for name in ("group", "having", "qualify", "order")]
    clauses += [join.args.get("on") for join in select.args.get("joins") or ()]
    for clause in clauses:
        if clause is not None:
            check_no_star(clause)


def check_no_star(node: Node) -> None:
    """Raise INVALID_USAGE_OF_STAR_OR_REGEX for a star in `node`."""
    found = stray_star(node)
    if found is not None:
        raise UserError("INVALID_USAGE_OF_STAR_OR_REGEX", "Invalid usage of '*' in this clause.", span=span_of(found))


def stray_star(node: Node) -> Node | None:
    """A star that is neither that of a query further in nor ``count(*)``."""
    if isinstance(node, exp.Query):
        return None
    if isinstance(node, exp.Star):
        return node
    counts = isinstance(node, exp.Anonymous) and node.name.lower() == "count" and len(node.expressions) == 1
    if counts and isinstance(node.expressions[0], exp.Star):
        return None
    return next((found for child in node.iter_expressions() if (found := stray_star(child)) is not None), None)
