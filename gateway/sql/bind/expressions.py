"""Expressions: from the parsed tree to typed, bound expressions; one method per node class, children first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from sqlglot import exp

from gateway.errors import Span, UnsupportedError, UserError, unsupported
from gateway.sql.bind import literals
from gateway.sql.bind.scope import Scope, all_fields, field_of
from gateway.sql.bind.windows import WindowExpressions
from gateway.sql.functions import SPARK_ONLY
from gateway.sql.functions.lambdas import ROWS as LAMBDAS
from gateway.sql.functions.operators import as_boolean, bind_binary, bind_connective, bind_unary, comparison, has_map
from gateway.sql.read.tree import IntervalLiteral, Positive, TypedLiteral, UnsignedRightShift, span_of
from gateway.sql.typed.catalogue import Catalogue, Context, OpenLambda, Site, bind_call
from gateway.sql.typed.coerce import (
    can_cast,
    cast_nullable,
    cast_refusal,
    coerced,
    comparable_of,
    implicit_type,
    least_common_of,
    least_common_type,
    plain,
)
from gateway.sql.typed.nodes import (
    Agg,
    Call,
    Case,
    Cast,
    Col,
    Expr,
    Ids,
    Lambda,
    LambdaVar,
    Lit,
    Rel,
    SortKey,
    Subquery,
    Window,
)
from gateway.sql.typed.walk import children, nodes, outer_in_order
from gateway.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructType,
    decimal,
    is_integral,
)

Node = exp.Expr

_BINARY: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_BITWISE: dict[type, str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    UnsignedRightShift: ">>>",
}
_CAST_FUNCTIONS: dict[str, DataType] = {
    "boolean": BOOLEAN,
    "tinyint": TINYINT,
    "smallint": SMALLINT,
    "int": INT,
    "bigint": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "decimal": decimal(10, 0),
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
_IGNORING_NULLS = frozenset(
    {
        "first",
        "first_value",
        "last",
        "last_value",
        "any_value",
        "nth_value",
        "lag",
        "lead",
        "collect_list",
        "array_agg",
        "collect_set",
    }
)
_WITHIN_GROUP = frozenset({"percentile_cont", "percentile_disc", "mode", "listagg", "string_agg"})
HIGHER_ORDER = frozenset({row.name for row in LAMBDAS} | {"array_sort"})
_BARE = frozenset(
    {
        "current_date",
        "current_timestamp",
        "current_user",
        "user",
        "session_user",
        "current_time",
        "current_path",
    }
)


_NOT_BOOLEAN: dict[str, tuple[str, str]] = {
    "WHERE": ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "The condition of a filter"),
    "JOIN": ("JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "The join condition"),
    "FILTER": ("INVALID_AGGREGATE_FILTER.NOT_BOOLEAN", "The FILTER expression in an aggregate function"),
    "CASE": ("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", "A condition of CASE"),
}


class Queries(Protocol):
    """What binding of expressions needs of the binding of queries."""

    def query(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]: ...

    def retyped(self, plan: Rel, types: Sequence[DataType]) -> Rel: ...


class Expressions(WindowExpressions):
    """Binds expressions of one statement."""

    def __init__(
        self, catalogue: Catalogue, context: Context, ids: Ids, queries: Queries, parameters: dict[int | str, Lit]
    ) -> None:
        self.catalogue = catalogue
        self.context = context
        self.ids = ids
        self.queries = queries
        self.parameters = parameters
        self.windows: dict[str, exp.Window] = {}
        self._random = False
        self._depth = 0  # of the expression that is being bound
        self._clause = ""  # the clause that takes no generators

    def bind(self, node: Node, scope: Scope) -> Expr:
        """The bound form of `node`; raises Spark's analysis errors with their positions."""
        rule = _RULES.get(type(node))
        if rule is None:
            raise unsupported(type(node).__name__, span_of(node))
        self._depth += 1
        try:
            bound = rule(self, node, scope)
            if isinstance(bound, Call) and (self._depth > 1 or self._clause) and _has_generator(bound, self.catalogue):
                raise self._misplaced(node)
            return bound
        except (UserError, UnsupportedError) as error:
            raise error.at(span_of(node)) from None
        finally:
            self._depth -= 1

    def _misplaced(self, node: Node) -> UserError:
        """A generator below another expression, or in a clause that takes none."""
        if self._clause:
            message = f"The generator is not supported: outside the SELECT clause, found: {self._clause}."
            return UserError("UNSUPPORTED_GENERATOR.OUTSIDE_SELECT", message, span=span_of(node))
        message = f"The generator is not supported: nested in the expression {node.name.lower()}."
        return UserError("UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS", message, span=span_of(node))

    def condition(self, node: Node, scope: Scope, clause: str = "WHERE") -> Expr:
        """A bound condition: BOOLEAN without any cast; only HAVING casts what is not (Spark's parser writes that cast)."""
        saved, self._clause = self._clause, clause if clause in ("WHERE", "JOIN", "HAVING") else self._clause
        try:
            bound, span = self.bind(node, scope), span_of(node)
        finally:
            self._clause = saved
        if bound.type == BOOLEAN:
            return bound
        if clause == "HAVING":
            return self.cast_to(bound, BOOLEAN, False, span)
        condition, message = _NOT_BOOLEAN[clause]
        raise UserError(condition, f'{message} must be of type BOOLEAN, but is of type "{bound.type.sql}".', span=span)

    # -------------------------------------------------------------------------------------------------------- literals

    def literal(self, node: exp.Literal, scope: Scope) -> Expr:
        if node.args["is_string"]:
            return Lit(STRING, False, node.this)
        return literals.number(node.this, span_of(node))

    def null(self, node: Node, scope: Scope) -> Expr:
        return Lit(VOID, True, None)

    def boolean(self, node: Node, scope: Scope) -> Expr:
        return Lit(BOOLEAN, False, bool(node.this))

    def typed_literal(self, node: Node, scope: Scope) -> Expr:
        return literals.typed(node.this, node.args["kind"], self.context, span_of(node))

    def interval(self, node: Node, scope: Scope) -> Expr:
        return literals.interval_parts(node.args["parts"], node.args.get("to"), span_of(node))

    def placeholder(self, node: Node, scope: Scope) -> Expr:
        span = span_of(node)
        key: int | str = node.this.lower() if node.this else (span.start if span else -1)
        literal = self.parameters.get(key)
        if literal is None:
            name = node.this or "?"
            raise UserError(
                "UNBOUND_SQL_PARAMETER",
                f"Found the unbound parameter: {name}. Please, fix `args` and provide a mapping of the parameter to "
                "either a SQL literal or collection constructor functions.",
                span=span,
            )
        return literal

    # --------------------------------------------------------------------------------------------------------- columns

    def column(self, node: exp.Column, scope: Scope) -> Expr:
        parts = [node.args[k].name for k in ("catalog", "db", "table", "this") if node.args.get(k) is not None]
        found = scope.resolve(parts, span_of(node))
        if found is not None:
            return found
        if len(parts) == 1 and parts[0].lower() in _BARE and not node.args["this"].args.get("quoted"):
            name = "current_user" if parts[0].lower() in ("user", "session_user") else parts[0]
            return self.call(name, (), scope, span_of(node))
        if len(parts) == 1 and parts[0].lower() == "grouping__id":  # Hive's name for it
            return Call(BIGINT, False, "grouping_id", (), "grouping_id", (), span_of(node))
        raise scope.missing(parts, span_of(node))

    def dot(self, node: exp.Dot, scope: Scope) -> Expr:
        if isinstance(node.expression, exp.Anonymous):
            raise UserError(
                "UNRESOLVED_ROUTINE",
                f"Cannot resolve routine `{node.expression.name}` on search path.",
                span=span_of(node),
            )
        base, name = self.bind(node.this, scope), node.expression.name
        if base.type == VOID:
            return Call(VOID, True, "_null_item", (base, Lit(STRING, False, name)), span=span_of(node))
        return field_of(base, name, span_of(node))

    def bracket(self, node: exp.Bracket, scope: Scope) -> Expr:
        base = self.bind(node.this, scope)
        index = self.bind(node.expressions[0], scope)
        span, t = span_of(node), plain(base.type)
        if isinstance(t, StructType) and isinstance(index, Lit) and index.type == STRING:
            return field_of(base, index.value, span)
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
            return Call(
                t.element, _item_nullable(base, t, index), "_array_item", (base, coerced(index, INT)), span=span
            )
        if isinstance(t, MapType):
            key = implicit_type(index.type, (t.key,))
            if key is None:
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

    def star(self, node: Node, scope: Scope) -> Expr:
        raise UserError("INVALID_USAGE_OF_STAR_OR_REGEX", "Invalid usage of '*' in an expression.", span=span_of(node))

    # ------------------------------------------------------------------------------------------------------- operators

    def binary(self, node: Node, scope: Scope) -> Expr:
        left, right = self.bind(node.this, scope), self.bind(node.expression, scope)
        return bind_binary(_BINARY[type(node)], left, right, span_of(node), self.context.precision_loss)

    def not_equal(self, node: Node, scope: Scope) -> Expr:
        equal = comparison("=", self.bind(node.this, scope), self.bind(node.expression, scope), span_of(node))
        return Call(BOOLEAN, equal.nullable, "not", (equal,), span=span_of(node))

    def bitwise(self, node: Node, scope: Scope) -> Expr:
        args = (self.bind(node.this, scope), self.bind(node.expression, scope))
        return self._site(_BITWISE[type(node)], args, (span_of(node.this), span_of(node.expression)), span_of(node))

    def concat(self, node: Node, scope: Scope) -> Expr:
        args = (self.bind(node.this, scope), self.bind(node.expression, scope))
        return self._site("concat", args, (span_of(node.this), span_of(node.expression)), span_of(node))

    def connective(self, node: Node, scope: Scope) -> Expr:
        word = "and" if isinstance(node, exp.And) else "or"
        args = [self.bind(node.this, scope), self.bind(node.expression, scope)]
        return bind_connective(word, args, [span_of(node.this), span_of(node.expression)])

    def unary(self, node: Node, scope: Scope) -> Expr:
        inner = node.this
        many = isinstance(inner, (exp.Like, exp.ILike)) and isinstance(inner.expression, (exp.Any, exp.All))
        if isinstance(node, exp.Not) and many and _starts_with(node, inner):
            name = "ilike" if isinstance(inner, exp.ILike) else "like"
            return self._like_many(name, inner, inner.expression, scope, True)
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and _starts_with(node, inner):
            return Call(BOOLEAN, False, "is not null", (self.bind(inner.this, scope),), span=span_of(node))
        symbols: dict[type, str] = {exp.Neg: "-", Positive: "+", exp.BitwiseNot: "~", exp.Not: "not"}
        symbol = symbols[type(node)]
        return bind_unary(symbol, self.bind(node.this, scope), span_of(node))

    def is_(self, node: exp.Is, scope: Scope) -> Expr:
        value, what = self.bind(node.this, scope), node.expression
        if isinstance(what, exp.Null):
            return Call(BOOLEAN, False, "is null", (value,), span=span_of(node))
        value = as_boolean(value, span_of(node))
        if isinstance(what, exp.Boolean):
            return comparison("<=>", value, Lit(BOOLEAN, False, bool(what.this)), span_of(node))
        return Call(BOOLEAN, False, "is null", (value,), span=span_of(node))

    def in_(self, node: exp.In, scope: Scope) -> Expr:
        span = span_of(node)
        query = node.args.get("query")
        if query is not None:
            return self._in_query(node, query, scope, span)
        value = self.bind(node.this, scope)
        items = self._expanded(node.expressions, scope)
        common = comparable_of([value.type, *(i.type for i in items)])
        if common is None:
            raise UserError(
                "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
                "Cannot resolve the IN list due to data type mismatch: input to `in` should all be the same type.",
                span=span,
            )
        if has_map(common):
            raise UserError(
                "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
                f'The `in` does not support ordering on type "{common.sql}".',
                span=span,
            )
        args = [coerced(value, common), *(coerced(i, common) for i in items)]
        return Call(BOOLEAN, any(a.nullable for a in args), "in", tuple(args), span=span)

    def _in_query(self, node: exp.In, query: Node, scope: Scope, span: Span | None) -> Expr:
        left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        values = [self.bind(v, scope) for v in left]
        plan, inner = self._subquery(query, scope)
        if len(plan.columns) != len(values):
            raise UserError(
                "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH",
                f"The number of columns in the left hand side of an IN subquery ({len(values)}) does not match the "
                f"number of columns in the output of the subquery ({len(plan.columns)}).",
                span=span,
            )
        casts: list[DataType] = []
        for value, column in zip(values, plan.columns, strict=True):
            common = least_common_type(value.type, column.type)
            if common is None:
                raise UserError(
                    "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH",
                    f'The data type of "{value.type.sql}" does not match the subquery\'s "{column.type.sql}".',
                    span=span,
                )
            casts.append(common)
        plan = self.queries.retyped(plan, casts)
        args = tuple(coerced(v, t) for v, t in zip(values, casts, strict=True))
        nullable = any(a.nullable for a in args) or any(c.nullable for c in plan.columns)
        return Subquery(BOOLEAN, nullable, "in", plan, args, outer_in_order(plan, inner.outer_refs), span)

    def _subquery(self, node: Node, scope: Scope) -> tuple[Rel, Scope]:
        """The query of a subquery as a value, which knows no window of the queries around it."""
        self.ids.subqueries = True
        saved = self.windows, self._depth, self._clause
        self.windows, self._depth, self._clause = {}, 0, ""
        try:
            return self.queries.query(node, scope)
        finally:
            self.windows, self._depth, self._clause = saved

    def exists(self, node: exp.Exists, scope: Scope) -> Expr:
        plan, inner = self._subquery(node.this, scope)
        return Subquery(BOOLEAN, False, "exists", plan, (), outer_in_order(plan, inner.outer_refs), span_of(node))

    def scalar(self, node: exp.Subquery, scope: Scope) -> Expr:
        plan, inner = self._subquery(node.this, scope)
        if len(plan.columns) != 1:
            raise UserError(
                "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN",
                f"Scalar subquery must return only one column, but got {len(plan.columns)}.",
                span=span_of(node),
            )
        return Subquery(
            plan.columns[0].type, True, "scalar", plan, (), outer_in_order(plan, inner.outer_refs), span_of(node)
        )

    def between(self, node: exp.Between, scope: Scope) -> Expr:
        value = self.bind(node.this, scope)
        low, high = self.bind(node.args["low"], scope), self.bind(node.args["high"], scope)
        span = span_of(node)
        args = (comparison(">=", value, low, span), comparison("<=", value, high, span))
        # a literal before BETWEEN is no literal to Spark, which names it first
        parts = [x for a in args for x in (a.args if isinstance(value, Lit) and isinstance(a, Call) else (a,))]
        return Call(BOOLEAN, any(p.nullable for p in parts), "between", args, span=span)

    def like(self, node: Node, scope: Scope) -> Expr:
        name = "ilike" if isinstance(node, exp.ILike) else "like"
        pattern = node.expression
        if isinstance(pattern, (exp.Any, exp.All)):
            return self._like_many(name, node, pattern, scope)
        return self._like(name, node.this, pattern, None, node, scope)

    def _like(self, name: str, value: Node, pattern: Node, escape: str | None, node: Node, scope: Scope) -> Expr:
        args = [self.bind(value, scope), self.bind(pattern, scope)]
        if escape is not None:
            args.append(Lit(STRING, False, escape))
        return self._site(name, tuple(args), (span_of(value), span_of(pattern)), span_of(node))

    def _like_many(self, name: str, node: Node, patterns: Node, scope: Scope, negated: bool = False) -> Expr:
        every = isinstance(patterns, exp.All)
        terms = [self._like(name, node.this, p, None, node, scope) for p in patterns.this.expressions]
        if negated:
            terms = [Call(BOOLEAN, t.nullable, "not", (t,)) for t in terms]
        word = "and" if every else "or"
        shown = ("notlike" if negated else "like") + ("all" if every else "any")
        if len(terms) == 1:
            terms.append(terms[0])
        return Call(BOOLEAN, True, word, tuple(terms), shown if name == "like" else None, span=span_of(node))

    def escape(self, node: exp.Escape, scope: Scope) -> Expr:
        inner = node.this
        name = "ilike" if isinstance(inner, exp.ILike) else "like"
        if isinstance(inner.expression, (exp.Any, exp.All)):
            raise unsupported("LIKE ANY / ALL with ESCAPE", span_of(node))
        character = node.expression.this
        if len(character) != 1:
            raise UserError(
                "INVALID_ESCAPE_CHAR",
                f"`EscapeChar` should be a string literal of length one, but got '{character}'.",
                sqlstate="42604",
                span=span_of(node),
            )
        return self._like(name, inner.this, inner.expression, character, node, scope)

    def rlike(self, node: Node, scope: Scope) -> Expr:
        args = (self.bind(node.this, scope), self.bind(node.expression, scope))
        return self._site("rlike", args, (span_of(node.this), span_of(node.expression)), span_of(node))

    def case(self, node: exp.Case, scope: Scope) -> Expr:
        span = span_of(node)
        operand = self.bind(node.this, scope) if node.args.get("this") is not None else None
        conditions, values = [], []
        for branch in node.args["ifs"]:
            if operand is None:
                conditions.append(self.condition(branch.this, scope, "CASE"))
            else:
                conditions.append(comparison("=", operand, self.bind(branch.this, scope), span_of(branch)))
            values.append(self.bind(branch.args["true"], scope))
        default = node.args.get("default")
        otherwise = self.bind(default, scope) if default is not None else None
        everything = [*values, *([otherwise] if otherwise is not None else [])]
        common = least_common_of(v.type for v in everything)
        if common is None:
            types = " or ".join(f'"{v.type.sql}"' for v in everything)
            raise UserError(
                "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
                "Cannot resolve CASE due to data type mismatch: input to `casewhen` should all be the same type, but "
                f"it has {types}.",
                span=span,
            )
        values = [coerced(v, common) for v in values]
        otherwise = coerced(otherwise, common) if otherwise is not None else None
        nullable = otherwise is None or otherwise.nullable or any(v.nullable for v in values)
        for index, condition in enumerate(conditions):
            if isinstance(condition, Lit) and condition.value is True:  # nothing behind it counts
                nullable = any(v.nullable for v in values[: index + 1])
                break
        return Case(common, nullable, tuple(zip(conditions, values, strict=True)), otherwise)

    def cast(self, node: exp.Cast, scope: Scope) -> Expr:
        return self.cast_to(self.bind(node.this, scope), node.args["to"], isinstance(node, exp.TryCast), span_of(node))

    def cast_to(self, arg: Expr, target: DataType, is_try: bool, span: Span | None, implicit: bool = False) -> Expr:
        """An explicit cast, checked against the allowed pairs."""
        target = plain(target)
        if not can_cast(arg.type, target):
            raise UserError(
                cast_refusal(arg.type, target, is_try),
                f'Cannot resolve the cast due to data type mismatch: cannot cast "{arg.type.sql}" to "{target.sql}".',
                span=span,
            )
        nullable = cast_nullable(arg.type, target, arg.nullable, is_try)
        return Cast(target, nullable, arg, implicit, is_try, span)

    def tuple_(self, node: exp.Tuple, scope: Scope) -> Expr:
        args: list[Expr] = []
        for index, item in enumerate(node.expressions):
            inner = item.this if isinstance(item, exp.Alias) else item
            name = item.alias if isinstance(item, exp.Alias) else _natural_name(item, index)
            args += [Lit(STRING, False, name), self.bind(inner, scope)]
        return self._site("named_struct", tuple(args), (), span_of(node))

    # ----------------------------------------------------------------------------------------------------------- calls

    def anonymous(self, node: exp.Anonymous, scope: Scope) -> Expr:
        return self._call(node, scope)

    def call(self, name: str, args: tuple[Expr, ...], scope: Scope, span: Span | None) -> Expr:
        """A call of a function by name with bound arguments."""
        return self._site(name, args, (), span)

    def _site(
        self, name: str, args: tuple[Expr, ...], spans: tuple[Span | None, ...], span: Span | None, **more: Any
    ) -> Expr:
        row = self.catalogue.get(name.lower())
        if row is None:
            if name.lower() in SPARK_ONLY:
                raise UnsupportedError(
                    "UNSUPPORTED_FUNCTION", f"The function `{name.lower()}` is not supported.", span=span
                )
            raise UserError(
                "UNRESOLVED_ROUTINE",
                f"Cannot resolve routine `{name}` on search path [`system`.`builtin`, `system`.`session`, "
                f"`{self.context.catalog}`.`{self.context.schema}`].",
                span=span,
            )
        site = Site(name, args, self.context, span, spans, **more)
        if more.get("distinct") and row.kind not in ("aggregate",):
            raise _unsupported_syntax(name.lower(), "DISTINCT", span)
        if row.kind == "window" and not site.windowed:
            raise UserError(
                "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE",
                f'Window function "{name.lower()}" requires an OVER clause.',
                span=span,
            )
        if any(isinstance(a, OpenLambda) for a in args) and row.name not in HIGHER_ORDER:
            raise UserError(
                "INVALID_LAMBDA_FUNCTION_CALL.NON_HIGHER_ORDER_FUNCTION",
                f"Invalid lambda function call. A lambda function should only be used in a higher order function. "
                f"However, its class is {name.lower()}, which is not a higher order function.",
                span=span,
            )
        self._random = self._random or not row.deterministic
        bound = bind_call(row, site)
        given = children(replace(bound, where=None)) if isinstance(bound, Agg) else ()
        if self._random and not site.windowed and any(map(self._varies, given)):
            raise UserError(
                "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION",
                f'A non-deterministic expression should not appear in the arguments of the aggregate function "{name}".',
                sqlstate="42845",
                span=span,
            )
        return bound

    def _varies(self, expr: Expr) -> bool:
        """Whether `expr` calls a function that is not deterministic."""
        if isinstance(expr, Call):
            row = self.catalogue.get(expr.fn)
            if row is not None and not row.deterministic:
                return True
        return any(map(self._varies, children(expr)))

    def _call(
        self,
        node: exp.Anonymous,
        scope: Scope,
        *,
        where: Node | None = None,
        order: Sequence[SortKey] = (),
        ignore_nulls: bool = False,
        windowed: bool = False,
    ) -> Expr:
        name, span = node.name, span_of(node)
        lower = name.lower()
        items = list(node.expressions)
        distinct = False
        if items and isinstance(items[0], exp.Distinct):
            distinct = True
            items = list(items[0].expressions)
        if any(map(_is_star, items)):
            return self._star_call(lower, items, distinct, scope, span, where, windowed)
        if lower in _CAST_FUNCTIONS and len(items) == 1 and not distinct:
            arg = self.bind(items[0], scope)
            return self.cast_to(arg, _CAST_FUNCTIONS[lower], False, span, implicit=True)
        if lower == "struct":
            return self._struct(items, scope, span)
        if lower in ("grouping", "grouping_id"):
            args = tuple(self.bind(i, scope) for i in items)
            type_ = TINYINT if lower == "grouping" else BIGINT
            return Call(type_, False, lower, args, lower, (), span)
        if any(isinstance(i, exp.Kwarg) for i in items):
            items = self._named_arguments(lower, items, span)
        outputs = scope.outputs if not windowed else None
        row = self.catalogue.get(lower) if outputs is not None else None
        aggregated = row is not None and row.kind == "aggregate"
        if outputs is not None and aggregated:
            outputs.aggregates, outputs.depth = outputs.aggregates + 1, outputs.depth + 1
        try:
            args = tuple(self._argument(i, scope) for i in items)
            condition = self.condition(where, scope, "FILTER") if where is not None else None
        finally:
            if outputs is not None and aggregated:
                outputs.depth -= 1
        return self._site(
            name,
            args,
            tuple(span_of(i) for i in items),
            span,
            distinct=distinct,
            where=condition,
            order=tuple(order),
            ignore_nulls=ignore_nulls,
            windowed=windowed,
        )

    def _named_arguments(self, name: str, items: list[Node], span: Span | None) -> list[Node]:
        row = self.catalogue.get(name)
        positions = {p.name: i for i, p in enumerate(row.params)} if row is not None else {}
        placed: dict[int, Node] = {}
        for index, item in enumerate(items):
            if not isinstance(item, exp.Kwarg):
                placed[index] = item
                continue
            key = item.this.name.lower()
            if key not in positions:
                raise unsupported(f"the named argument {item.this.name} of {name}", span_of(item))
            placed[positions[key]] = item.expression
        if sorted(placed) != list(range(len(placed))) or len(placed) != len(items):
            raise unsupported(f"these named arguments of {name}", span)
        return [placed[i] for i in range(len(placed))]

    def _argument(self, node: Node, scope: Scope) -> Expr:
        if isinstance(node, exp.Lambda):
            return self._open_lambda(node, scope)
        if isinstance(node, exp.Var):
            return Lit(STRING, False, node.name, node.name)
        return self.bind(node, scope)

    def _open_lambda(self, node: exp.Lambda, scope: Scope) -> OpenLambda:
        names = tuple(i.name for i in node.expressions)

        def close(types: Sequence[tuple[DataType, bool]]) -> Lambda:
            if len(types) != len(names):
                raise UserError(
                    "INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH",
                    f"Invalid lambda function call. A higher order function expects {len(types)} arguments, but got "
                    f"{len(names)}.",
                    span=span_of(node),
                )
            variables = tuple(
                LambdaVar(t, nullable, self.ids.take(), name) for name, (t, nullable) in zip(names, types, strict=True)
            )
            inner = replace(scope, lambdas=scope.lambdas | {v.name.lower(): v for v in variables})
            body = self.bind(node.this, inner)
            return Lambda(body.type, body.nullable, variables, body)

        return OpenLambda(VOID, True, names, close)

    def _star_call(
        self,
        name: str,
        items: list[Node],
        distinct: bool,
        scope: Scope,
        span: Span | None,
        where: Node | None,
        windowed: bool,
    ) -> Expr:
        condition = self.condition(where, scope, "FILTER") if where is not None else None
        if scope.outputs is not None and not windowed:
            scope.outputs.aggregates += 1
        if name == "count" and len(items) == 1 and isinstance(items[0], exp.Star) and not distinct:
            one = Lit(INT, False, 1)
            return self._site("count", (one,), (span,), span, where=condition, star=True, windowed=windowed)
        args = self._expanded(items, scope)
        if name == "count" and len(items) == 1 and isinstance(items[0], exp.Column) and not distinct:
            raise UserError(
                "INVALID_USAGE_OF_STAR_WITH_TABLE_IDENTIFIER_IN_COUNT",
                "Invalid usage of '*' with a table name in count().",
                sqlstate="42000",
                span=span,
            )
        if name == "struct":
            members: list[Expr] = []
            for index, item in enumerate(items):
                for arg in self._expanded([item], scope):
                    label = _label(item, index)
                    own = arg.name if isinstance(arg, Col) else getattr(arg, "shown", None)
                    if _is_star(item) and own:
                        label = Lit(STRING, False, own, own if isinstance(arg, Call) else None)
                    members += [label, arg]
            return self._renamed(self._site("named_struct", tuple(members), (), span), "struct")
        return self._site(name, tuple(args), (), span, distinct=distinct, where=condition, windowed=windowed)

    def _expanded(self, items: Sequence[Node], scope: Scope) -> list[Expr]:
        """Arguments with stars replaced by what they stand for."""
        args: list[Expr] = []
        for item in items:
            if isinstance(item, exp.Star):
                removed = [self.bind(c, scope) for c in item.args.get("except_") or ()]
                gone = {c.id for c in removed if isinstance(c, Col)}
                args += [c for c in scope.columns() if not (isinstance(c, Col) and c.id in gone)]
            elif isinstance(item, exp.Column) and _is_star(item):
                args += self.star_columns(item, scope)
            else:
                args.append(self.bind(item.this if isinstance(item, exp.Alias) else item, scope))
        return args

    def star_columns(self, node: exp.Column, scope: Scope) -> list[Expr]:
        """What ``t.*`` or ``struct_column.*`` stands for."""
        parts = [node.args[k].name for k in ("catalog", "db", "table") if node.args.get(k) is not None]
        columns = scope.qualified(parts)
        if columns is not None:
            return list(columns)
        base = scope.resolve(parts, span_of(node))
        if base is not None and isinstance(base.type, StructType):
            return all_fields(base, span_of(node))
        raise UserError(
            "CANNOT_RESOLVE_STAR_EXPAND",
            f"Cannot resolve {'.'.join(f'`{p}`' for p in parts)}.* given input columns.",
            sqlstate="42704",
            span=span_of(node),
        )

    @staticmethod
    def _renamed(call: Expr, shown: str) -> Expr:
        if isinstance(call, Call):
            call.shown = shown
        return call

    def _struct(self, items: list[Node], scope: Scope, span: Span | None) -> Expr:
        args: list[Expr] = []
        for index, item in enumerate(items):
            value = self.bind(item.this if isinstance(item, exp.Alias) else item, scope)
            args += [_label(item, index), value]
        return self._renamed(self._site("named_struct", tuple(args), (), span), "struct")

    def extract(self, node: exp.Extract, scope: Scope) -> Expr:
        field = Lit(STRING, False, node.this.name, node.this.name)
        value = self.bind(node.expression, scope)
        return self._site("extract", (field, value), (span_of(node.this), span_of(node.expression)), span_of(node))

    def trim(self, node: exp.Trim, scope: Scope) -> Expr:
        name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim", None: "trim"}[node.args.get("position")]
        source = self.bind(node.this, scope)
        pattern = node.expression
        args = (self.bind(pattern, scope), source) if pattern is not None else (source,)
        return self._site(name, args, (), span_of(node))

    def filtered(self, node: exp.Filter, scope: Scope) -> Expr:
        return self._wrapped(node, scope, windowed=False)

    def _wrapped(self, node: Node, scope: Scope, windowed: bool) -> Expr:
        """A call inside FILTER, IGNORE NULLS, WITHIN GROUP."""
        where: Node | None = None
        order: list[SortKey] = []
        ignore = respect = False
        inner = node
        while not isinstance(inner, exp.Anonymous):
            if isinstance(inner, exp.Filter):
                where = inner.expression.this
            elif isinstance(inner, exp.IgnoreNulls):
                ignore = True
            elif isinstance(inner, exp.WithinGroup):
                order = self.sort_keys(inner.expression.expressions, scope)
            elif isinstance(inner, exp.RespectNulls):
                respect = True
            else:
                raise unsupported(f"{type(inner).__name__} around a call", span_of(inner))
            inner = inner.this
        lower, known = inner.name.lower(), self.catalogue.get(inner.name.lower()) is not None
        if known and order and lower not in _WITHIN_GROUP:
            raise _unsupported_syntax(lower, "WITHIN GROUP (ORDER BY ...)", span_of(node))
        if known and ignore and lower not in _IGNORING_NULLS:
            raise _unsupported_syntax(lower, "IGNORE NULLS", span_of(node))
        if respect and lower in ("collect_list", "array_agg", "collect_set"):
            raise unsupported(f"{lower} with RESPECT NULLS", span_of(node))
        bound = self._call(inner, scope, where=where, order=order, ignore_nulls=ignore, windowed=windowed)
        if (ignore or respect) and isinstance(bound, Agg) and bound.fn in ("first", "last"):
            bound.shown = bound.fn  # the clause makes Spark forget the name first_value
        if where is not None and not isinstance(bound, Agg):
            raise _unsupported_syntax(inner.name, "FILTER", span_of(node))
        if where is not None and isinstance(bound, Agg) and bound.where is not None:
            self._check_filter(bound.where, span_of(node))
        return bound

    def _check_filter(self, condition: Expr, span: Span | None) -> None:
        """Refuse in FILTER what Spark refuses there."""
        kinds: dict[type[Expr], tuple[str, str]] = {
            Agg: ("CONTAINS_AGGREGATE", "without an aggregation"),
            Window: ("CONTAINS_WINDOW_FUNCTION", "without a window function"),
        }
        found = next((kinds[type(e)] for e in nodes(condition) if type(e) in kinds), None)
        if found is None and self._varies(condition):
            found = ("NON_DETERMINISTIC", "that is deterministic")
        if found is not None:
            message = (
                f"The FILTER expression in an aggregate function is invalid. Expected a FILTER expression {found[1]}."
            )
            raise UserError(f"INVALID_AGGREGATE_FILTER.{found[0]}", message, span=span)

    def sort_keys(self, items: Sequence[Node], scope: Scope) -> list[SortKey]:
        """ORDER BY items with Spark's defaults: NULLs first ascending, last descending."""
        return [self.sort_key(item, self.bind(item.this, scope)) for item in items]

    def sort_key(self, item: Node, expr: Expr) -> SortKey:
        """The key of one ``Ordered`` node."""
        if has_map(expr.type):
            raise UserError(
                "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
                f'The `sortorder` does not support ordering on type "{expr.type.sql}".',
                span=span_of(item),
            )
        descending = bool(item.args.get("desc"))
        first = item.args.get("nulls_first")
        return SortKey(expr, descending, (not descending) if first is None else bool(first))


def _unsupported_syntax(name: str, syntax: str, span: Span | None) -> UserError:
    """A clause behind a function that does not take it."""
    message = f"The function `{name}` does not support {syntax}."
    return UserError("INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX", message, sqlstate="42000", span=span)


def _is_star(item: Node) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _label(item: Node, index: int) -> Lit:
    """The name of a field of struct(); `text` is set where it was given."""
    if isinstance(item, exp.Alias):
        return Lit(STRING, False, item.alias, item.alias)
    return Lit(STRING, False, _natural_name(item, index))


def _natural_name(item: Node, index: int) -> str:
    """The name of a field made from an expression without alias: the column's, else by position."""
    if isinstance(item, exp.Column):
        return str(item.this.name)
    return str(item.expression.name) if isinstance(item, exp.Dot) else f"col{index + 1}"


def _item_nullable(base: Expr, t: ArrayType, index: Expr) -> bool:
    """Nullability of ``base[index]``: a constant index counts as possibly NULL unless the array is written out."""
    if not isinstance(index, Lit) or index.value is None:
        return base.nullable or t.contains_null or index.nullable
    if isinstance(base, Call) and base.fn == "array" and 0 <= index.value < len(base.args):
        nullable: bool = base.args[index.value].nullable
        return nullable
    return True


def _starts_with(node: Node, inner: Node) -> bool:
    """Whether NOT stands inside (``x NOT LIKE …``), not in front of the whole predicate."""
    outside, inside = span_of(node), span_of(inner)
    return outside is not None and inside is not None and outside.start == inside.start


def _has_generator(expr: Expr, catalogue: Catalogue) -> bool:
    if not isinstance(expr, Call):
        return False
    row = catalogue.get(expr.fn)
    return row is not None and row.kind == "generator"


_RULES: dict[type, Callable[[Expressions, Any, Scope], Expr]] = {
    exp.Literal: Expressions.literal,
    exp.Null: Expressions.null,
    exp.Boolean: Expressions.boolean,
    TypedLiteral: Expressions.typed_literal,
    IntervalLiteral: Expressions.interval,
    exp.Placeholder: Expressions.placeholder,
    exp.Column: Expressions.column,
    exp.Dot: Expressions.dot,
    exp.Bracket: Expressions.bracket,
    exp.Star: Expressions.star,
    **dict.fromkeys(_BINARY, Expressions.binary),
    **dict.fromkeys(_BITWISE, Expressions.bitwise),
    exp.NEQ: Expressions.not_equal,
    exp.DPipe: Expressions.concat,
    exp.And: Expressions.connective,
    exp.Or: Expressions.connective,
    exp.Not: Expressions.unary,
    exp.Neg: Expressions.unary,
    Positive: Expressions.unary,
    exp.BitwiseNot: Expressions.unary,
    exp.Is: Expressions.is_,
    exp.In: Expressions.in_,
    exp.Exists: Expressions.exists,
    exp.Subquery: Expressions.scalar,
    exp.Between: Expressions.between,
    exp.Like: Expressions.like,
    exp.ILike: Expressions.like,
    exp.Escape: Expressions.escape,
    exp.RegexpLike: Expressions.rlike,
    exp.Case: Expressions.case,
    exp.Cast: Expressions.cast,
    exp.TryCast: Expressions.cast,
    exp.Tuple: Expressions.tuple_,
    exp.Anonymous: Expressions.anonymous,
    exp.Extract: Expressions.extract,
    exp.Trim: Expressions.trim,
    exp.Filter: Expressions.filtered,
    exp.WithinGroup: Expressions.filtered,
    exp.IgnoreNulls: Expressions.filtered,
    exp.RespectNulls: Expressions.filtered,
    exp.Window: Expressions.window,
}
