"""Engine-level expressions as DataFusion SQL: every literal typed, every name quoted, nesting bounded."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from gateway.errors import ResourceError, UnsupportedError, unsupported
from gateway.sql.functions import NOT_AS_WINDOW
from gateway.sql.lowering.evaluation import is_random
from gateway.sql.lowering.expressions import Lowering
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr, Rel
from gateway.sql.typed.walk import nodes
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
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    VOID,
    CharType,
    DataType,
    DecimalType,
    IntervalType,
    is_nested,
    is_numeric,
)
from gateway.worker_jobs import BodySpec, UdfSpec

MAX_DEPTH = 300  # nesting of generated expressions that DataFusion's recursive planner bears on a worker's stack

# The physical planner's time triples with each cast of a computed number inside another; a function in between ends that,
# and this one gives back its only argument.
_CASTS = 6
_NO_CALLS = {"coalesce", "nvl", "nvl2", "ifnull", "nullif"}  # rewritten by the optimizer

_TYPE_NAMES = {
    BOOLEAN: "BOOLEAN",
    TINYINT: "TINYINT",
    SMALLINT: "SMALLINT",
    INT: "INT",
    BIGINT: "BIGINT",
    FLOAT: "REAL",
    DOUBLE: "DOUBLE",
    STRING: "VARCHAR",
    BINARY: "BYTEA",
    DATE: "DATE",
}
_ARROW_NAMES = {
    TIMESTAMP: 'Timestamp(Microsecond, Some("UTC"))',
    TIMESTAMP_NTZ: "Timestamp(Microsecond, None)",
}
# Columns hold texts as views, or as plain arrays where an operator gives such; nested values, which these functions make,
# and the arguments of functions of ours are always plain, and so are the nodes `_PLAIN`.
_NESTING = {"make_array", "named_struct", "array_agg"}
_CHAINED = 1000  # characters of a lambda that is written once for each of some elements
_FEW_CASES = 3  # within each other, which cost no time to speak of
_PLAIN = (b.Lit, b.Udf, b.EngineCast, b.LambdaVar)
_POSTFIX = {"IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE", "IS UNKNOWN"}
WINDOW_NAMES = {
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
}

#: Functions of ours that are window functions.
WINDOW_IMPLEMENTATIONS = frozenset({"moving"})

#: Functions of ours that are given the bodies of lambdas.
OVER_BODIES = frozenset({"compared", "fold"})


def _holds_cases(e: b.Expr) -> bool:
    return sum(isinstance(part, b.Case) for part in nodes(e)) > _FEW_CASES


class ExpressionText:
    """The part of `blocks.BlockWriter` that writes expressions."""

    lowering: Lowering
    udfs: dict[str, UdfSpec]
    envs: list[dict[int, str]]
    needed: set[int]
    depth: int
    casts: int  # nested casts at the end of the last expression, through the columns of inner blocks
    column_casts: dict[int, int]
    over: str | None
    variables: dict[int, str]  # how lambda variables are spelled that are columns here

    def block(self, rel: Rel) -> Any:
        """The block that computes a subquery; given by the subclass."""
        raise NotImplementedError

    def select(self, block: Any, outputs: Sequence[tuple[int, str]]) -> str:
        """A block as text; given by the subclass."""
        raise NotImplementedError

    def spelled(self, col: Col) -> str:
        """How a column is written here: in this block, or else in an enclosing one."""
        for env in reversed(self.envs):
            text = env.get(col.id)
            if text is not None:
                return text
        raise KeyError(f"column {col.id} ({col.name}) is not in scope")

    def sort_key(self, sort: b.SortKey, *, plain: bool = False) -> str:
        text = self.plain(sort.expr) if plain else self.expr(sort.expr)
        if isinstance(sort.expr, b.Lit):
            text = f"({text} IS NULL)"
        elif sort.expr.type == VOID:  # by NULLs the engine sorts nothing, and asks not for one that raises
            text = f"CASE WHEN random() < 2.0 THEN ({text} IS NULL) END"
        direction = "DESC" if sort.descending else "ASC"
        return f"{text} {direction} NULLS {'FIRST' if sort.nulls_first else 'LAST'}"

    def expr(self, e: Expr) -> str:
        """The engine-level expression as text."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ResourceError(
                "STATEMENT_TOO_COMPLEX", f"An expression is nested deeper than {MAX_DEPTH} levels for the engine."
            )
        outer, self.casts = self.casts, 0
        try:
            return _EXPRESSIONS[type(e)](self, e)
        finally:
            self.depth -= 1
            self.casts = max(outer, self.casts)

    def col(self, e: Col) -> str:
        self.casts = self.column_casts.get(e.id, 0)
        return self.spelled(e)

    def lit(self, e: b.Lit) -> str:
        return self.literal(e)

    def fn(self, e: b.Fn) -> str:
        name = e.name
        if name == "[]":
            return f"{self.expr(e.args[0])}[{self.expr(e.args[1])}]"
        if name in OVER_BODIES:
            return self.over_bodies(e)
        written = self.plain if name in _NESTING else self.expr
        text = f"{name}({', '.join([written(a) for a in e.args])})"
        if name not in _NO_CALLS:
            self.casts = 0
        return text + self.over if self.over is not None and name in WINDOW_NAMES else text

    def plain(self, e: Expr) -> str:
        """The expression as text, cast to a plain array where it may be a view."""
        text = self.expr(e)
        return text if isinstance(e, _PLAIN) else self.without_view(text, e.type)

    def without_view(self, text: str, type_: DataType) -> str:
        """A text of the type, cast to a plain array where it may be a view."""
        return text if type_.row.view is None else self.cast_text(text, STRING)

    def op(self, e: b.Op) -> str:
        args = e.args
        if e.symbol in ("AND", "OR"):
            return balanced([self.expr(a) for a in args], e.symbol)
        if e.symbol in ("IN", "NOT IN"):
            left, *items = [self.expr(a) for a in args]
            if isinstance(args[1], b.Subquery):  # the engine's parser would take it for all that stands behind IN
                same = f"({' OR '.join([f'{left} = {item}' for item in items])})"
                return same if e.symbol == "IN" else f"(NOT {same})"
            return f"({left} {e.symbol} ({', '.join(items)}))"
        if len(args) == 1:
            arg = self.expr(args[0])
            return f"({arg} {e.symbol})" if e.symbol in _POSTFIX else f"({e.symbol} {arg})"
        return "(" + f" {e.symbol} ".join([self.expr(a) for a in args]) + ")"

    def engine_cast(self, e: b.EngineCast) -> str:
        text = self.cast_text(self.expr(e.arg), e.type, e.is_try)
        self.casts += 1
        # Beside a literal the engine would compare what is cast, and never see that it does not fit.
        if e.raises or (self.casts >= _CASTS and is_numeric(e.type)):
            self.casts = 0
            return f"greatest({text})"
        return text

    def cast_text(self, text: str, type_: DataType, is_try: bool = False) -> str:
        name = type_name(type_)
        if name is not None:
            return f"{'TRY_CAST' if is_try else 'CAST'}({text} AS {name})"
        arrow = _ARROW_NAMES.get(type_)
        if arrow is None or is_try:
            raise unsupported(f"A cast to {type_.sql}")
        return f"arrow_cast({text}, '{arrow}')"

    def udf(self, e: b.Udf) -> str:
        if not e.args:
            raise UnsupportedError("UNSUPPORTED_FUNCTION", f"{e.impl} without arguments")
        spec = UdfSpec(e.impl, tuple(a.type for a in e.args), e.type, e.params, e.volatile)
        name = udf_name(spec)
        self.udfs[name] = spec
        text = f"{name}({', '.join([self.plain(a) for a in e.args])})"
        self.casts = 0
        return text + self.over if self.over is not None and e.impl in WINDOW_IMPLEMENTATIONS else text

    def agg(self, e: b.AggFn) -> str:
        over, self.over = self.over, None
        written = self.plain if e.name in _NESTING else self.expr
        args = ", ".join(written(a) for a in e.args)
        if not args and e.name == "count":
            args = "*"
        text = f"{e.name}({'DISTINCT ' if e.distinct else ''}{args}"
        if e.order:
            text += " ORDER BY " + ", ".join(self.sort_key(k) for k in e.order)
        text += ")"
        if e.ignore_nulls:
            text += " IGNORE NULLS"
        if e.where is not None:
            text += f" FILTER (WHERE {self.expr(e.where)})"
        self.over = over
        return text + over if over is not None else text

    def case(self, e: b.Case) -> str:
        parts = [f"WHEN {self.expr(c)} THEN {self.branch(v)}" for c, v in e.whens]
        if e.otherwise is not None:
            parts.append(f"ELSE {self.branch(e.otherwise)}")
        # The engine asks of each WHEN whether NULL comes of it, and so of those within it, each time anew (DataFusion 55); of
        # those that are compared with something it does not.
        operand = "TRUE " if any(_holds_cases(c) for c, _ in e.whens) else ""
        return f"CASE {operand}{' '.join(parts)} END"

    def branch(self, value: Expr) -> str:
        """A value of CASE. Of a call the engine asks for the type and, as often again, whether NULL comes of it, and so of
        those within it (DataFusion 55); what is cast to its own type has that type without being asked."""
        text = self.expr(value)
        plain = isinstance(value, b.Udf) or (isinstance(value, (b.Fn, b.Op)) and is_numeric(value.type))
        name = type_name(value.type) if plain and value.type != BOOLEAN and _holds_cases(value) else None
        return text if name is None else f"CAST({text} AS {name})"

    def lambda_(self, e: b.Lambda) -> str:
        params = ", ".join(f'"x{p.id}"' for p in e.params)
        if len(e.params) > 1:
            params = f"({params})"
        return f"{params} -> {self.plain(e.body)}"

    def lambda_var(self, e: b.LambdaVar) -> str:
        return self.variables.get(e.id) or f'"x{e.id}"'

    def over_bodies(self, e: b.Fn) -> str:
        """A function of ours that is given the bodies of its lambdas, and what they read from outside as arguments."""
        bodies = [body for body in e.args if isinstance(body, b.Lambda)]
        outside = list({part.id: part for body in bodies for part in _read_outside(body)}.values())
        written = tuple(self._body(body, outside) for body in bodies)
        given = (*(arg for arg in e.args if not isinstance(arg, b.Lambda)), *outside)
        parts = [part for body in bodies for part in nodes(body)]
        volatile = any(is_random(part) or (isinstance(part, b.Udf) and part.volatile) for part in parts)
        return self.udf(b.Udf(e.type, e.nullable, e.name, given, written, volatile=volatile))

    def _body(self, body: b.Lambda, outside: Sequence[b.Col | b.LambdaVar]) -> BodySpec:
        """A lambda's body as text of its own, over columns of its parameters and of what is `outside`."""
        read = (*body.params, *outside)
        names = {part.id: f'"c{place}"' for place, part in enumerate(read)}
        kept = self.udfs, self.envs, self.variables, self.over
        self.udfs, self.envs, self.variables, self.over = {}, [names], names, None
        try:
            text = self.plain(body.body)
            types = tuple(part.type for part in read)
            return BodySpec(text, types, body.type, tuple(self.udfs.items()), _is_chained(body, text, names))
        finally:
            self.udfs, self.envs, self.variables, self.over = kept

    def window_fn(self, e: b.Window) -> str:
        if isinstance(e.fn, b.Call | b.Agg) and e.fn.fn in NOT_AS_WINDOW:
            raise unsupported(f"The window function {e.fn.fn}", e.fn.span)
        clauses = []
        if e.partition:
            clauses.append("PARTITION BY " + ", ".join(self.expr(p) for p in e.partition))
        if e.order:
            keys = [self.sort_key(k) for k in e.order]
            first = e.order[0].expr.type
            if e.frame.unit == "RANGE" and (is_nested(first) or first in (BINARY, BOOLEAN)):
                keys.insert(0, "CAST(0 AS INT)")  # the engine looks at the first key only, and knows no ranges of these
            clauses.append("ORDER BY " + ", ".join(keys))
        clauses.append(f"{e.frame.unit} BETWEEN {self.frame_bound(e.frame.start)} AND {self.frame_bound(e.frame.end)}")
        outer, self.over = self.over, f" OVER ({' '.join(clauses)})"
        text = self.expr(e.fn)
        self.over = outer
        return text

    def frame_bound(self, bound: b.Bound) -> str:
        direction = "PRECEDING" if bound.preceding else "FOLLOWING"
        if bound.kind == "unbounded":
            return f"UNBOUNDED {direction}"
        assert bound.kind == "current" or bound.offset is not None
        if (
            bound.offset is None or bound.offset.value == 0
        ):  # the engine takes 0 FOLLOWING for more than the current row
            return "CURRENT ROW"
        return f"{bound.offset.value} {direction}"

    def subquery(self, e: b.Subquery) -> str:
        over, self.over = self.over, None
        self.needed.update(c.id for c in e.plan.columns)
        block = self.block(e.plan)
        text = self.select(block, [(c.id, f"v{c.id}") for c in e.plan.columns])
        self.over = over
        if e.kind == "exists":
            return f"EXISTS ({text})"
        if e.kind == "in":
            if len(e.args) != 1:
                raise unsupported("IN (subquery) with more than one column", e.span)
            return f"({self.expr(e.args[0])} IN ({text}))"
        return f"({text})"

    def literal(self, e: b.Lit) -> str:
        """A typed literal."""
        value, t = e.value, e.type
        if value is None:
            name = type_name(t)
            if name is not None:
                return f"CAST(NULL AS {name})"
            if t in _ARROW_NAMES:
                return f"arrow_cast(NULL, '{_ARROW_NAMES[t]}')"
            if t.name == "VOID":
                return "NULL"
            return self.udf(b.Udf(t, True, "typed_null", (b.Lit(INT, False, 1),)))
        if isinstance(t, IntervalType):
            return f"CAST('{value}' AS {'INT' if t.is_year_month else 'BIGINT'})"
        if t == BOOLEAN:
            return "true" if value else "false"
        if t in (STRING, VARIANT) or isinstance(t, CharType):  # which the table's writer pads and measures
            return text_literal(value)
        if t == BIGINT:
            return f"CAST('{value}' AS BIGINT)" if abs(value) >= 2**62 else f"CAST({value} AS BIGINT)"
        if t in (TINYINT, SMALLINT, INT, DATE):
            return f"CAST(CAST({value} AS INT) AS DATE)" if t == DATE else f"CAST({value} AS {_TYPE_NAMES[t]})"
        if t in (DOUBLE, FLOAT):
            return f"CAST('{value!r}' AS {_TYPE_NAMES[t]})"
        if isinstance(t, DecimalType):
            return f"CAST('{Decimal(value):f}' AS DECIMAL({t.precision},{t.scale}))"
        if t in _ARROW_NAMES:
            return f"arrow_cast(CAST({value} AS BIGINT), '{_ARROW_NAMES[t]}')"
        if t == BINARY:
            return f"X'{value.hex()}'" if value else "CAST('' AS BYTEA)"
        raise unsupported(f"A literal of type {t.sql}")


def _is_chained(body: b.Lambda, text: str, names: dict[int, str]) -> bool:
    """See `BodySpec.chained`: names in literals are no columns, and what is written twice would grow without end."""
    if len(body.params) < 2 or len(text) > _CHAINED or body.params[0].type != body.type:
        return False
    read = Counter(part.id for part in nodes(body.body) if isinstance(part, b.LambdaVar))
    state, element = (param.id for param in body.params[:2])
    return read[state] == 1 and all(text.count(names[each]) == read[each] for each in (state, element))


def _read_outside(body: b.Lambda) -> Iterator[b.Col | b.LambdaVar]:
    """The columns and variables that the body of a lambda reads from outside of it."""
    inside = nodes(body)
    own = {param.id for part in inside if isinstance(part, b.Lambda) for param in part.params}
    for part in inside:
        if isinstance(part, (b.Col, b.LambdaVar)) and part.id not in own:
            yield part


def quoted(name: str) -> str:
    """The identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """A string literal: the quote doubled is the only escape."""
    return "'" + value.replace("'", "''") + "'"


def type_name(t: DataType) -> str | None:
    """DataFusion's name of the internal type where CAST takes one; None for timestamps and nested types."""
    if isinstance(t, DecimalType):
        return f"DECIMAL({t.precision},{t.scale})"
    if isinstance(t, IntervalType):
        return "INT" if t.is_year_month else "BIGINT"
    if t.name in ("CHAR", "VARCHAR"):
        return "VARCHAR"
    return _TYPE_NAMES.get(t)


def udf_name(spec: UdfSpec) -> str:
    """The engine's name of a function made for `spec`; equal specs share it across statements."""
    digest = hashlib.blake2b(repr(spec).encode(), digest_size=6).hexdigest()
    return f"u_{spec.impl}_{digest}"


def balanced(texts: list[str], word: str) -> str:
    """``a AND b AND …`` as a balanced tree: the engine recurses over it."""
    if len(texts) == 1:
        return texts[0]
    if len(texts) <= 4:
        return "(" + f" {word} ".join(texts) + ")"
    middle = len(texts) // 2
    return f"({balanced(texts[:middle], word)} {word} {balanced(texts[middle:], word)})"


_EXPRESSIONS: dict[type, Callable[[ExpressionText, Any], str]] = {
    b.Col: ExpressionText.col,
    b.Lit: ExpressionText.lit,
    b.Fn: ExpressionText.fn,
    b.Op: ExpressionText.op,
    b.EngineCast: ExpressionText.engine_cast,
    b.Udf: ExpressionText.udf,
    b.AggFn: ExpressionText.agg,
    b.Case: ExpressionText.case,
    b.Lambda: ExpressionText.lambda_,
    b.LambdaVar: ExpressionText.lambda_var,
    b.Window: ExpressionText.window_fn,
    b.Subquery: ExpressionText.subquery,
}
