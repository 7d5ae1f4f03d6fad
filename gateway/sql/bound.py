"""The bound tree: expressions and relations with types, nullability and integer columns; no name is looked up in it again.

Two levels share the nodes. The *Spark level* (`Call`, `Cast`, `Agg`, …) is what binding makes: its names, types and
nullability are the ones that a client sees. The *engine level* (`Fn`, `Op`, `EngineCast`, `Udf`, `AggFn`) is what lowering
makes of it: every node there has exactly DataFusion's meaning. `Col`, `Lit`, `Case`, subqueries and windows serve both.

Columns carry ids that are unique in a statement and become the engine's column names (``"c17"``), so scopes need no
qualifiers. Nodes compare by identity; `key` gives a structural key for GROUP BY matching and for sharing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any

from gateway.errors import Span
from gateway.sqltypes import BOOLEAN, DataType

# -------------------------------------------------------------------------------------------------------- expressions


@dataclass(slots=True, eq=False)
class Expr:
    """Root of all expressions: a typed value per row."""

    type: DataType
    nullable: bool


@dataclass(slots=True, eq=False)
class Col(Expr):
    """A column of a relation, `name` as the user wrote it (for display); identity is `id`.

    `outer` marks a reference to a column of an enclosing query.
    """

    id: int
    name: str
    outer: bool = False


@dataclass(slots=True, eq=False)
class Lit(Expr):
    """A constant.

    Values: int, float, Decimal, str, bytes, bool, None; DATE days since 1970; TIMESTAMP and TIMESTAMP_NTZ microseconds
    since 1970 (UTC / wall clock); year-month intervals months; day-time intervals microseconds. Nested constants are
    Calls of array / map / named_struct. `text` is what Spark shows as its name where that isn't derivable (``1.50``).
    """

    value: Any
    text: str | None = None


@dataclass(slots=True, eq=False)
class Call(Expr):
    """A Spark function or operator: `fn` is its key in the catalogue, `shown` the name as the user wrote it.

    `data` holds constants fixed at binding (an extract field, a field index); never expressions.
    """

    fn: str
    args: tuple[Expr, ...]
    shown: str | None = None
    data: tuple[Any, ...] = ()
    span: Span | None = None


@dataclass(slots=True, eq=False)
class Cast(Expr):
    """A cast with Spark's ANSI meaning to `type`; implicit ones do not show in names."""

    arg: Expr
    implicit: bool = False
    is_try: bool = False
    span: Span | None = None


@dataclass(slots=True, eq=False)
class Case(Expr):
    """CASE WHEN condition THEN value … ELSE otherwise END; `otherwise` None is NULL."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@dataclass(slots=True, eq=False)
class LambdaVar(Expr):
    """A parameter of a lambda."""

    id: int
    name: str


@dataclass(slots=True, eq=False)
class Lambda(Expr):
    """A lambda argument; `type` and `nullable` are those of its body."""

    params: tuple[LambdaVar, ...]
    body: Expr


@dataclass(slots=True, eq=False)
class SortKey:
    """One ORDER BY item."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(slots=True, eq=False)
class Agg(Expr):
    """An aggregate call."""

    fn: str
    args: tuple[Expr, ...]
    distinct: bool = False
    where: Expr | None = None
    order: tuple[SortKey, ...] = ()
    ignore_nulls: bool = False
    shown: str | None = None
    data: tuple[Any, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A window frame bound: `kind` unbounded | current | offset; `offset` a constant, negative for PRECEDING."""

    kind: str
    offset: Lit | None = None
    preceding: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """ROWS or RANGE between two bounds."""

    unit: str
    start: Bound
    end: Bound


@dataclass(slots=True, eq=False)
class Window(Expr):
    """A window function: `fn` is an Agg, or a Call of a ranking / offset function."""

    fn: Expr
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frame: Frame


@dataclass(slots=True, eq=False)
class Subquery(Expr):
    """A subquery in an expression: `kind` scalar | exists | in; `args` are the left side of IN; `outer` what it refers to
    of enclosing queries."""

    kind: str
    plan: Rel
    args: tuple[Expr, ...] = ()
    outer: tuple[Col, ...] = ()
    span: Span | None = None


# ------------------------------------------------------------------------------------------- engine-level expressions


@dataclass(slots=True, eq=False)
class Fn(Expr):
    """A native DataFusion scalar function; `raises` if it can fail for some row."""

    name: str
    args: tuple[Expr, ...]
    raises: bool = False


@dataclass(slots=True, eq=False)
class Op(Expr):
    """A native operator: infix (``+``, ``=``, ``AND``, ``LIKE``), prefix (``NOT``, ``-``) or postfix (``IS NULL``)."""

    symbol: str
    args: tuple[Expr, ...]
    raises: bool = False


@dataclass(slots=True, eq=False)
class EngineCast(Expr):
    """DataFusion's CAST to the internal Arrow type of `type` (TRY_CAST with `is_try`); `raises` if it can fail."""

    arg: Expr
    raises: bool = False
    is_try: bool = False


@dataclass(slots=True, eq=False)
class Udf(Expr):
    """A function of ours (`engine.functions`), made for the concrete types of `args`."""

    impl: str
    args: tuple[Expr, ...]
    params: tuple[Any, ...] = ()
    raises: bool = False
    volatile: bool = False


@dataclass(slots=True, eq=False)
class AggFn(Expr):
    """A native aggregate."""

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    where: Expr | None = None
    order: tuple[SortKey, ...] = ()
    ignore_nulls: bool = False


# ---------------------------------------------------------------------------------------------------------- relations


@dataclass(slots=True, eq=False)
class Rel:
    """Root of all relations: rows with `columns`."""

    columns: tuple[Col, ...]


@dataclass(slots=True, eq=False)
class OneRow(Rel):
    """One row without columns: SELECT without FROM."""


@dataclass(slots=True, eq=False)
class Scan(Rel):
    """A table at one version; `sources[i]` is the table's name of `columns[i]`."""

    table: Any  # catalog.base.BoundTable
    sources: tuple[str, ...]
    alias: str = ""


@dataclass(slots=True, eq=False)
class Values(Rel):
    """Constant rows, already coerced to the columns' types."""

    rows: tuple[tuple[Expr, ...], ...]


@dataclass(slots=True, eq=False)
class Range(Rel):
    """range(start, stop, step): one BIGINT column."""

    start: int
    stop: int
    step: int


@dataclass(slots=True, eq=False)
class Project(Rel):
    """One expression per column of `columns`."""

    input: Rel
    exprs: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Filter(Rel):
    input: Rel
    condition: Expr


@dataclass(slots=True, eq=False)
class Join(Rel):
    """`kind`: inner | left | right | full | cross | semi | anti; `lateral`: the right side sees the left."""

    kind: str
    left: Rel
    right: Rel
    condition: Expr | None
    lateral: bool = False


@dataclass(slots=True, eq=False)
class Aggregate(Rel):
    """GROUP BY: `columns` are the keys', then the aggregates', then (with sets) the grouping id.

    `sets` holds, per grouping set, the positions of the keys in it; None for a plain GROUP BY.
    """

    input: Rel
    keys: tuple[Expr, ...]
    aggs: tuple[Agg, ...]
    sets: tuple[tuple[int, ...], ...] | None = None


@dataclass(slots=True, eq=False)
class WindowRel(Rel):
    """The input's columns followed by one per window expression."""

    input: Rel
    windows: tuple[Window, ...]


@dataclass(slots=True, eq=False)
class Sort(Rel):
    input: Rel
    keys: tuple[SortKey, ...]


@dataclass(slots=True, eq=False)
class Limit(Rel):
    input: Rel
    limit: int | None
    offset: int


@dataclass(slots=True, eq=False)
class Distinct(Rel):
    input: Rel


@dataclass(slots=True, eq=False)
class SetOp(Rel):
    """`kind`: union | intersect | except; both sides have the columns' types."""

    kind: str
    all: bool
    inputs: tuple[Rel, ...]


@dataclass(slots=True, eq=False)
class Generate(Rel):
    """LATERAL VIEW / generator in SELECT: the input's columns, then the generator's."""

    input: Rel
    generator: Call
    outer: bool


@dataclass(slots=True, eq=False)
class Cte:
    """A named query used by `CteRef`s; written once at the top of the engine's text."""

    id: int
    plan: Rel


@dataclass(slots=True, eq=False)
class CteRef(Rel):
    """A use of a CTE under fresh column ids, in the order of the CTE's columns."""

    cte: Cte


#: Operators whose operands have no order, and what a comparison is with its sides changed or under NOT, as in Spark's
#: canonical form: ``a + 1`` and ``1 + a`` are one grouping key.
_UNORDERED = frozenset({"+", "*", "and", "or", "&", "|", "^", "=", "<=>", "greatest", "least"})
_CHAINS = _UNORDERED - {"=", "<=>"}
_MIRRORED = {">": "<", ">=": "<="}
_NEGATED = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
_SYNONYMS = {"ifnull": "coalesce", "nvl": "coalesce"}


def key(expr: Expr) -> tuple[Any, ...]:
    """A hashable structural key: equal for expressions that mean the same by construction (names do not count)."""
    if isinstance(expr, Col):
        return ("col", expr.id)
    if isinstance(expr, Lit):
        return ("lit", expr.type, type(expr.value).__name__, repr(expr.value))
    if isinstance(expr, Call):
        return _call_key(expr)
    if isinstance(expr, Cast):
        return ("cast", expr.type, expr.is_try, key(expr.arg))
    if isinstance(expr, Case):
        other = key(expr.otherwise) if expr.otherwise else None
        return ("case", other, *((key(c), key(v)) for c, v in expr.whens))
    if isinstance(expr, Agg):
        where = key(expr.where) if expr.where else None
        order = tuple((key(k.expr), k.descending, k.nulls_first) for k in expr.order)
        return ("agg", expr.fn, expr.data, expr.distinct, where, order, expr.ignore_nulls, *(key(a) for a in expr.args))
    if isinstance(expr, LambdaVar):
        return ("var", expr.id)
    if isinstance(expr, Lambda):
        return ("lambda", *_renumbered(key(expr.body), [p.id for p in expr.params]))
    if isinstance(expr, Window):
        order = tuple((key(k.expr), k.descending, k.nulls_first) for k in expr.order)
        frame = (expr.frame.unit, _bound_key(expr.frame.start), _bound_key(expr.frame.end))
        return ("window", key(expr.fn), tuple(key(p) for p in expr.partition), order, frame)
    if isinstance(expr, Subquery):
        return ("subquery", _shape(expr, {}))
    return ("id", id(expr))


def _renumbered(body: tuple[Any, ...], params: list[int]) -> tuple[int, tuple[Any, ...]]:
    """The lambdas nested in the key of a lambda's body, and the key with the parameters by their places."""
    depth = max((k[1] for k in _tuples(body) if k[0] == "lambda"), default=0) + 1

    def change(k: Any) -> Any:
        if not isinstance(k, tuple):
            return k
        if len(k) == 2 and k[0] == "var" and k[1] in params:
            return ("parameter", depth, params.index(k[1]))
        return tuple(map(change, k))

    return depth, change(body)


def _tuples(k: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if k:
        yield k
    for part in k:
        if isinstance(part, tuple):
            yield from _tuples(part)


_UNSEEN = frozenset({"name", "span", "shown", "text", "alias"})  # fields that do not change what is computed


def _shape(node: Any, known: dict[int, int]) -> Any:
    """The structure of a subquery: equal where only the ids of the columns that are made inside differ."""
    if isinstance(node, Col):
        return ("col", known.get(node.id, ("outer", node.id)))
    if isinstance(node, Cte):
        return ("cte", node.id)
    if isinstance(node, Lambda):
        known.update((p.id, len(known) + at) for at, p in enumerate(node.params))
        return ("function", len(node.params), _shape(node.body, known))
    if isinstance(node, LambdaVar):
        return ("var", known.get(node.id, ("outer", node.id)))
    if isinstance(node, Rel):
        inner = [_shape(r, known) for r in _relations(node)]
        for column in node.columns:
            known.setdefault(column.id, len(known))
        others = [f.name for f in fields(node) if f.name not in _UNSEEN and f.name not in _INPUTS]
        return (type(node).__name__, *inner, *(_shape(getattr(node, n), known) for n in others))
    if isinstance(node, tuple):
        return tuple(_shape(n, known) for n in node)
    if isinstance(node, Lit):
        return key(node)
    if isinstance(node, Subquery):
        return (node.kind, tuple(_shape(a, known) for a in node.args), _shape(node.plan, known))
    if isinstance(node, (Expr, SortKey, Frame, Bound)):
        return (
            type(node).__name__,
            *(_shape(getattr(node, f.name), known) for f in fields(node) if f.name not in _UNSEEN),
        )
    return node if isinstance(node, _PLAIN) else id(node)  # tables are the same objects in one statement


_PLAIN = (str, int, float, bool, bytes, Decimal, DataType, type(None))
_INPUTS = frozenset({"input", "inputs", "left", "right"})


def _relations(rel: Any) -> tuple[Rel, ...]:
    if isinstance(rel, Join):
        return (rel.left, rel.right)
    if isinstance(rel, SetOp):
        return rel.inputs
    inner = getattr(rel, "input", None)
    return () if inner is None else (inner,)


def _call_key(call: Call) -> tuple[Any, ...]:
    fn, args = _SYNONYMS.get(call.fn, call.fn), call.args
    if fn == "not" and isinstance(args[0], Call) and args[0].fn in _NEGATED:
        fn, args = _NEGATED[args[0].fn], args[0].args
    if fn in _MIRRORED:
        fn, args = _MIRRORED[fn], args[::-1]
    keys = [key(a) for a in (_operands(call) if fn in _CHAINS else args)]
    if fn in _UNORDERED:
        keys.sort(key=repr)
    elif fn == "in":
        keys[1:] = sorted(keys[1:], key=repr)
    return ("call", fn, call.data, call.type, *keys)


def _operands(call: Call) -> list[Expr]:
    """The operands of nested calls of one operator, whose results have one type."""
    found: list[Expr] = []
    stack: list[Expr] = [call]
    while stack:
        e = stack.pop()
        same = isinstance(e, Call) and _SYNONYMS.get(e.fn, e.fn) == _SYNONYMS.get(call.fn, call.fn)
        if isinstance(e, Call) and same and e.type == call.type:
            stack += reversed(e.args)
        else:
            found.append(e)
    return found


def _bound_key(bound: Bound) -> tuple[Any, ...]:
    return (bound.kind, bound.preceding, key(bound.offset) if bound.offset else None)


def children(expr: Expr) -> tuple[Expr, ...]:
    """Direct sub-expressions at either level, subqueries' plans excluded."""
    rule = _CHILDREN.get(type(expr))  # by class: this is the innermost step of every walk
    return rule(expr) if rule is not None else ()


def has_columns(expr: Expr) -> bool:
    """Whether a column, a lambda's variable or a subquery is in `expr`: without, it has one value."""
    return isinstance(expr, (Col, LambdaVar, Subquery)) or any(map(has_columns, children(expr)))


def nodes(expr: Expr) -> list[Expr]:
    """`expr` and everything below it at either level, subqueries' plans excluded; each before what is below it."""
    found = [expr]
    for e in found:  # grows on the way
        rule = _CHILDREN.get(type(e))
        if rule is not None:
            found += rule(e)
    return found


def _args(expr: Any) -> tuple[Expr, ...]:
    args: tuple[Expr, ...] = expr.args
    return args


def _arg(expr: Any) -> tuple[Expr, ...]:
    return (expr.arg,)


def _case_parts(expr: Case) -> tuple[Expr, ...]:
    parts = tuple(part for when in expr.whens for part in when)
    return parts if expr.otherwise is None else (*parts, expr.otherwise)


def _agg_parts(expr: Any) -> tuple[Expr, ...]:
    if expr.where is None and not expr.order:
        return _args(expr)
    where = (expr.where,) if expr.where is not None else ()
    return (*expr.args, *where, *(sort.expr for sort in expr.order))


def _window_parts(expr: Window) -> tuple[Expr, ...]:
    return (expr.fn, *expr.partition, *(sort.expr for sort in expr.order))


def _lambda_parts(expr: Lambda) -> tuple[Expr, ...]:
    return (expr.body,)


_CHILDREN: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    **dict.fromkeys((Call, Fn, Op, Udf, Subquery), _args),
    **dict.fromkeys((Cast, EngineCast), _arg),
    **dict.fromkeys((Agg, AggFn), _agg_parts),
    Case: _case_parts,
    Lambda: _lambda_parts,
    Window: _window_parts,
}


def rebuilt_engine(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An engine-level `expr` with `change` applied to its direct children."""
    if isinstance(expr, (Fn, Op, Udf)):
        return replace(expr, args=tuple(change(a) for a in expr.args)) if expr.args else expr
    if isinstance(expr, EngineCast):
        return replace(expr, arg=change(expr.arg))
    if isinstance(expr, Case):
        whens = tuple((change(c), change(v)) for c, v in expr.whens)
        return replace(expr, whens=whens, otherwise=change(expr.otherwise) if expr.otherwise is not None else None)
    return expr


# ------------------------------------------------------------------------------------------- constructors for lowering


def fn(name: str, type: DataType, *args: Expr, nullable: bool = True, raises: bool = False) -> Fn:
    """A native scalar function call."""
    return Fn(type, nullable, name, args, raises)


def op(symbol: str, type: DataType, *args: Expr, nullable: bool = True, raises: bool = False) -> Op:
    """A native operator."""
    return Op(type, nullable, symbol, args, raises)


def cast(arg: Expr, type: DataType, *, raises: bool = False, is_try: bool = False) -> Expr:
    """DataFusion's CAST, nothing where the type is the same already."""
    return arg if arg.type == type else EngineCast(type, arg.nullable or is_try, arg, raises, is_try)


def udf(
    impl: str,
    type: DataType,
    *args: Expr,
    params: tuple[Any, ...] = (),
    nullable: bool = True,
    raises: bool = False,
    volatile: bool = False,
) -> Udf:
    """A call of one of our own functions."""
    return Udf(type, nullable, impl, args, params, raises, volatile)


def case(type: DataType, *whens: tuple[Expr, Expr], otherwise: Expr | None = None) -> Case:
    """CASE WHEN … END."""
    return Case(type, True, whens, otherwise)


def lit(value: Any, type: DataType) -> Lit:
    """A constant."""
    return Lit(type, value is None, value)


def null(type: DataType) -> Lit:
    """A typed NULL."""
    return Lit(type, True, None)


def is_null(arg: Expr) -> Op:
    return Op(BOOLEAN, False, "IS NULL", (arg,))


def not_(arg: Expr) -> Op:
    return Op(BOOLEAN, arg.nullable, "NOT", (arg,))


def agg_fn(
    name: str,
    type: DataType,
    *args: Expr,
    of: Agg | None = None,
    where: Expr | None = None,
    distinct: bool | None = None,
    order: tuple[SortKey, ...] | None = None,
    ignore_nulls: bool = False,
) -> AggFn:
    """A native aggregate; DISTINCT, FILTER and ORDER BY are taken over from `of` unless given.

    `of` must already be lowered (its `where` and `order` engine-level).
    """
    return AggFn(
        type,
        True,
        name,
        args,
        (of.distinct if of else False) if distinct is None else distinct,
        where if where is not None else (of.where if of else None),
        (of.order if of else ()) if order is None else order,
        ignore_nulls,
    )


@dataclass(slots=True)
class Ids:
    """A counter of column ids, one per statement."""

    next: int = 0
    spans: dict[int, Span] = field(default_factory=dict)
    repeated: dict[int, int] = field(
        default_factory=dict
    )  # columns that are an earlier one of their relation once more
    qualifiers: dict[int, tuple[str, ...]] = field(default_factory=dict)  # of outputs that are columns of FROM
    subqueries: bool = False  # whether an expression of the statement holds one

    def take(self) -> int:
        self.next += 1
        return self.next

    def several(self, count: int) -> range:
        """As many ids."""
        first = self.next + 1
        self.next += count
        return range(first, first + count)
