"""The bound tree: expressions and relations with types, nullability and integer columns; no name is looked up in it again.

Two levels share the nodes. The *Spark level* (`Call`, `Cast`, `Agg`, …) is what binding makes: its names, types and
nullability are the ones that a client sees. The *engine level* (`Fn`, `Op`, `EngineCast`, `Udf`, `AggFn`) is what lowering
makes of it: every node there has exactly DataFusion's meaning. `Col`, `Lit`, `Case`, subqueries and windows serve both.

Columns carry ids that are unique in a statement and become the engine's column names (``"c17"``), so scopes need no
qualifiers. Nodes compare by identity; `key` gives a structural key for GROUP BY matching and for sharing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gateway.errors import Span
from gateway.sqltypes import BOOLEAN, DataType, StructType


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
    of the enclosing query, as often as it does."""

    kind: str
    plan: Rel
    args: tuple[Expr, ...] = ()
    outer: tuple[Col, ...] = ()
    span: Span | None = None


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
    """The rows of `input` for which `condition` is true."""

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
    """The rows of `input` in the order of `keys`."""

    input: Rel
    keys: tuple[SortKey, ...]


@dataclass(slots=True, eq=False)
class Limit(Rel):
    """The rows of `input` after the first `offset`, at most `limit` of them."""

    input: Rel
    limit: int | None
    offset: int


@dataclass(slots=True, eq=False)
class Distinct(Rel):
    """The rows of `input`, each once."""

    input: Rel


@dataclass(slots=True, eq=False)
class SetOp(Rel):
    """`kind`: union | intersect | except; both sides have the columns' types."""

    kind: str
    all: bool
    inputs: tuple[Rel, ...]


@dataclass(slots=True, eq=False)
class Generate(Rel):
    """LATERAL VIEW / generator in SELECT: the input's columns, then the generator's, then `position`, if that is asked for."""

    input: Rel
    generator: Call
    outer: bool
    position: Col | None = None  # which one it is of the rows that the generator makes of a row

    @property
    def made(self) -> tuple[Col, ...]:
        """The generator's columns; found from behind, as a window below may have been given a further column."""
        assert isinstance(self.generator.type, StructType)
        end = len(self.columns) - (self.position is not None)
        return tuple(self.columns[end - len(self.generator.type.fields) : end])


@dataclass(slots=True, eq=False)
class Cte:
    """A named query used by `CteRef`s; written once at the top of the engine's text.

    `outer`: what it refers to of the query around the one that it is defined in.
    """

    id: int
    plan: Rel
    outer: tuple[Col, ...] = ()


@dataclass(slots=True, eq=False)
class CteRef(Rel):
    """A use of a CTE under fresh column ids, in the order of the CTE's columns."""

    cte: Cte


@dataclass(slots=True, eq=False)
class With(Rel):
    """A query with the common table expressions that it defines and of which some refer to an enclosing query; `typed.copies`
    puts these in the place of their names before anything is lowered."""

    input: Rel
    ctes: tuple[Cte, ...]


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
    subqueries: bool = False  # whether an expression of the statement holds one, or FROM a lateral one
    laterals: bool = False  # whether FROM holds a lateral subquery
    domains: bool = False  # whether a subquery is computed for each combination of outer values
    copies: int = 0  # columns of relations that were copied

    def take(self) -> int:
        self.next += 1
        return self.next

    def several(self, count: int) -> range:
        """As many ids."""
        first = self.next + 1
        self.next += count
        return range(first, first + count)
