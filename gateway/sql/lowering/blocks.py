"""Blocks: one SELECT under construction each, and the writer that makes text of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gateway.sql.lowering.correlation import ALL_ROWS
from gateway.sql.lowering.doubling import handed_on
from gateway.sql.lowering.engine_text import ExpressionText, balanced, quoted
from gateway.sql.lowering.expressions import Lowering
from gateway.sql.lowering.reads import asked_totals, column_types, tested_columns
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr, Rel, SortKey
from gateway.sqltypes import DataType
from gateway.worker_jobs import UdfSpec


@dataclass(frozen=True, slots=True)
class ArraySource:
    """Constant rows as an in-memory table (an `engine.base.Source`)."""

    batch: pa.RecordBatch

    def register(self, ctx: Any, name: str) -> None:
        ctx.register_record_batches(name, [[self.batch]])

    def verify(self) -> bool:
        """Nothing can change."""
        return True

    @property
    def numbered(self) -> bool:
        """See `engine.base.Source`."""
        return False

    def one_by_one(self) -> ArraySource:
        """There is no file."""
        return self

    def plain(self) -> ArraySource:
        """A few rows take no memory to speak of."""
        return self

    def damaged(self) -> None:
        """There is no file."""


@dataclass(frozen=True, slots=True)
class ScanUse:
    """A scan as the text uses it: only the columns `sources` (names of the table)."""

    scan: b.Scan
    sources: tuple[str, ...]


@dataclass(slots=True)
class Generated:
    """Engine text and all that it refers to: `scans` by table name, constant tables, functions.

    `first` is what is to be computed before, for its errors alone; `counted` are the rows of all ranges; `rows` are the answer
    where it is known, without a text.
    """

    text: str
    scans: dict[str, ScanUse]
    arrays: dict[str, ArraySource]
    udfs: dict[str, UdfSpec]
    first: str = ""
    counted: int = 0
    rows: pa.RecordBatch | None = None


@dataclass(slots=True)
class Block:
    """One SELECT: what stands in FROM, and the clauses so far. `items` None: every needed column of `env` passes."""

    source: str
    env: dict[int, str]
    where: list[Expr] = field(default_factory=list)
    group: str | None = None
    having: list[str] = field(default_factory=list)
    items: list[tuple[int, str]] | None = None
    order: list[SortKey] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    filtered: bool = False  # a filter is somewhere below: raising predicates above need a barrier
    joinable: bool = True  # source may stand in a FROM clause beside others
    joined: bool = False  # source is a join: on the right of another one it needs parentheses
    asked: tuple[frozenset[int], ...] = ()  # columns of sides of a join of which ON asks more than keys
    aggregates: tuple[str, ...] = ()
    rows_env: dict[int, str] | None = None  # spelling below GROUP BY, where WHERE is evaluated

    @property
    def bare(self) -> bool:
        """Only FROM: nothing else was said yet."""
        return not self.where and self.group is None and self.items is None and not self.order and not self.limited

    @property
    def is_filtered(self) -> bool:
        """Whether it has fewer rows than what stands in FROM, or that is filtered already."""
        return self.filtered or bool(self.where) or bool(self.having)

    @property
    def limited(self) -> bool:
        return self.limit is not None or self.offset > 0


#: What each of the raising conditions reads that stand above the relation at hand.
Fences = tuple[frozenset[int], ...]


class BlockWriter(ExpressionText):
    """Writes blocks; `rules` has a function per class of relations (`generate.RULES`)."""

    def __init__(self, rules: Mapping[type, Rule], lowering: Lowering, needed: set[int]) -> None:
        self.rules = rules
        self.lowering = lowering
        self.scans: dict[str, ScanUse] = {}
        self.arrays: dict[str, ArraySource] = {}
        self.counted = 0
        self.udfs: dict[str, UdfSpec] = {}
        self.ctes: dict[int, str] = {}
        self.cte_texts: list[str] = []
        self.filtered_ctes: set[int] = set()
        self.envs: list[dict[int, str]] = []
        self.needed = needed
        self.names: set[str] = set()  # of the columns of sources
        self.fences: Fences = ()
        self.aliases = 0
        self.depth = 0
        self.casts = 0
        self.column_casts: dict[int, int] = {}
        self.weights: dict[int, int] = {}  # parts that columns are made of, by their ids
        self.over: str | None = None
        self.variables: dict[int, str] = {}
        self.fresh = 0  # ids of columns made here, counting down
        self.root: Rel | None = None  # of the statement that is written
        self._types: dict[int, DataType] | None = None  # of columns, once somebody asks
        self._tested: set[int] | None = None  # columns that conditions read, once somebody asks
        self._totals: set[int] | None = None  # aggregates without groups that are filtered, once somebody asks

    def block(self, rel: Rel) -> Block:
        """The block that computes `rel`."""
        block = self.rules[type(rel)](self, rel)
        self.weights |= handed_on(rel, self.weights)
        return block

    def guarded(self, kept: Sequence[Expr], column: Col, expr: Expr) -> Expr:
        """`expr`, which fails only where the conjuncts `kept` hold if a condition above reads its column: the engine may test
        that before it filters.
        """
        if not kept or not self.lowering.raises(expr):
            return expr
        return self.lowering.where(kept, expr) if self.is_tested(column) else expr

    def is_tested(self, column: Col) -> bool:
        """Whether a condition above may read the column."""
        if self._tested is None:
            self._tested = tested_columns(self.root) if self.root is not None else set()
        return column.id in self._tested

    def is_asked(self, rel: b.Aggregate) -> bool:
        """Whether a condition above reads the one row of an aggregate without groups."""
        if self._totals is None:
            self._totals = asked_totals(self.root) if self.root is not None else set()
        return id(rel) in self._totals

    def side(self, rel: Rel, barrier: bool = False) -> Block:
        """What stands beside others, or below a generator, closed: the engine moves raising conditions above that read it
        alone there, and before its own filters if it can.
        """
        with self.fenced(self.fences if isinstance(rel, b.Join) else ()):
            block = self.block(rel)
        passed = block.is_filtered and not (block.bare and block.joined) and self.is_fenced(rel)
        asked = any(f and f <= side for f in self.fences for side in block.asked)
        return self.close(block, barrier or passed or asked)

    @contextmanager
    def fenced(self, fences: Fences) -> Iterator[None]:
        """What is written meanwhile has these fences above."""
        before, self.fences = self.fences, fences
        yield
        self.fences = before

    def is_fenced(self, rel: Rel) -> bool:
        """Whether a raising condition above reads columns of `rel` alone, so that the engine would ask it down there."""
        known = {c.id for c in rel.columns}
        return any(f and f <= known for f in self.fences)

    def alias(self, prefix: str) -> str:
        self.aliases += 1
        return f"{prefix}{self.aliases}"

    def select(self, block: Block, outputs: Sequence[tuple[int, str]], outermost: bool = False) -> str:
        """The block as text with `outputs` (id, name) as its columns."""
        texts = dict(block.items) if block.items is not None else block.env
        sorts_all = bool(block.order) and block.limit is None
        if sorts_all:
            texts = self.without_views(texts)
        self.envs.append(block.env if block.rows_env is None else block.rows_env)
        items = ", ".join(f"{texts[i]} AS {quoted(n)}" for i, n in outputs) or '1 AS "one"'
        parts = ["SELECT DISTINCT " if block.distinct else "SELECT ", items]
        if block.source:
            parts.append(" FROM " + block.source)
        conditions = self.lowering.filters(block.where)
        if conditions:
            parts.append(" WHERE " + balanced([self.expr(c) for c in conditions], "AND"))
        self.envs.pop()
        having = block.having
        if block.group is not None:
            parts.append(block.group)
            if not block.group and not having and not any(a in texts[i] for a in block.aggregates for i, _ in outputs):
                having = ["bool_or(true) IS NOT FALSE"]  # one row, although no aggregate is among the outputs
        if having:
            parts.append(" HAVING " + balanced(having, "AND"))
        if block.order:
            # An expression over a column that the items show cast would have the engine hand on both under one name.
            shown = {i: quoted(n) for i, n in outputs if i in block.env and texts[i] != block.env[i]}
            keys = []
            for key in block.order:
                self.envs.append(block.env if isinstance(key.expr, Col) else block.env | shown)
                keys.append(self.sort_key(key, plain=sorts_all))
                self.envs.pop()
            parts.append(" ORDER BY " + ", ".join(keys))
        # Without a limit the engine (DataFusion 55) takes the order below an inner OFFSET for one that nobody needs.
        # It counts both together where it moves them below joins and unions, in 63 bits.
        limit = ALL_ROWS - block.offset if block.limit is None and block.offset and not outermost else block.limit
        if limit is not None:
            parts.append(f" LIMIT {limit}")
        if block.offset:
            parts.append(f" OFFSET {block.offset}")
        return "".join(parts)

    def without_views(self, texts: Mapping[int, str]) -> dict[int, str]:
        """Columns that a sort of all rows hands on, views as plain arrays: it cannot tell what it holds and spills of views."""
        if self._types is None:
            self._types = column_types(self.root) if self.root is not None else {}
        return {i: self.without_view(t, self._types[i]) if i in self._types else t for i, t in texts.items()}

    def close(self, block: Block, barrier: bool = False) -> Block:
        """The block as a subquery in FROM."""
        if block.bare and block.joinable and not barrier:
            return block
        ids = [i for i, _ in block.items] if block.items is not None else list(block.env)
        ids = [i for i in ids if i in self.needed]
        if barrier and not block.limited:
            block.limit = ALL_ROWS
        names = [(i, f"v{i}" if i > 0 else f"k{-i}") for i in ids]
        text = self.select(block, names)
        alias = self.alias("s")
        env = {i: f"{alias}.{quoted(n)}" for i, n in names}
        return Block(f"({text}) AS {alias}", env, filtered=block.is_filtered)

    def opened(self, rel: Rel) -> Block:
        """The block of `rel` with only FROM and WHERE."""
        block = self.block(rel)
        if block.items is not None or block.group is not None or block.limited or block.distinct or block.order:
            block = self.close(block)
        return block


Rule = Callable[[BlockWriter, Any], Block]
