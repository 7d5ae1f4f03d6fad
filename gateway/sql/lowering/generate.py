"""The bound tree as DataFusion SQL (dialect DuckDB): text made of ids, typed literals and quoted names, never of user text.

A `Block` is one SELECT under construction; a relation is merged into its input's block where SQL's clause order allows it,
else the block is closed into a subquery. Column ids become ``"v17"`` and are unique, so nothing needs a qualifier; inside a
block a column is spelled as the block's `env` says (``"t1"."l_tax"``, ``sum("v4")``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from gateway.errors import UnsupportedError, unsupported
from gateway.jobs import UdfSpec
from gateway.sql.lowering.constant_rows import batch_of
from gateway.sql.lowering.engine_text import WINDOW_NAMES, ExpressionText, balanced, quoted, text_literal
from gateway.sql.lowering.expressions import Lowering, is_key
from gateway.sql.lowering.reads import tested_columns
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr, Rel
from gateway.sql.typed.walk import children, conjuncts_of, nodes, rebuilt_engine
from gateway.sqltypes import BIGINT, BOOLEAN, DOUBLE, DataType


@dataclass(frozen=True, slots=True)
class ArraySource:
    """Constant rows as an in-memory table (an `engine.base.Source`)."""

    batch: pa.RecordBatch

    def register(self, ctx: Any, name: str) -> None:
        ctx.register_record_batches(name, [[self.batch]])

    def verify(self) -> bool:
        """Nothing can change."""
        return True

    def one_by_one(self) -> ArraySource:
        """There is no file."""
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
    """Engine text and all that it refers to: `scans` by table name, constant tables, functions."""

    text: str
    scans: dict[str, ScanUse]
    arrays: dict[str, ArraySource]
    udfs: dict[str, UdfSpec]


@dataclass(slots=True)
class Block:
    """One SELECT: what stands in FROM, and the clauses so far. `items` None: every needed column of `env` passes."""

    source: str
    env: dict[int, str]
    where: list[Expr] = field(default_factory=list)
    group: str | None = None
    having: list[str] = field(default_factory=list)
    items: list[tuple[int, str]] | None = None
    order: list[str] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    filtered: bool = False  # a filter is somewhere below: raising predicates above need a barrier
    joinable: bool = True  # source may stand in a FROM clause beside others
    joined: bool = False  # source is a join: on the right of another one it needs parentheses
    aggregates: tuple[str, ...] = ()
    rows_env: dict[int, str] | None = None  # spelling below GROUP BY, where WHERE is evaluated

    @property
    def bare(self) -> bool:
        """Only FROM: nothing else was said yet."""
        return not self.where and self.group is None and self.items is None and not self.order and not self.limited

    @property
    def limited(self) -> bool:
        return self.limit is not None or self.offset > 0


class Generator(ExpressionText):
    """Writes one statement."""

    def __init__(self, lowering: Lowering, needed: set[int]) -> None:
        self.lowering = lowering
        self.scans: dict[str, ScanUse] = {}
        self.arrays: dict[str, ArraySource] = {}
        self.udfs: dict[str, UdfSpec] = {}
        self.ctes: dict[int, str] = {}
        self.cte_texts: list[str] = []
        self.envs: list[dict[int, str]] = []
        self.needed = needed
        self.names: set[str] = set()  # of the columns of sources
        self.aliases = 0
        self.depth = 0
        self.casts = 0
        self.column_casts: dict[int, int] = {}
        self.over: str | None = None
        self.fresh = 0  # ids of columns made here, counting down
        self.tested: set[int] = set()  # columns that conditions read

    # ------------------------------------------------------------------------------------------------------ statements

    def statement(self, rel: Rel) -> Generated:
        """The text for `rel`, output columns named c0..cn in its order."""
        self.tested = tested_columns(rel)
        block = self.block(rel)
        names = [(c.id, f"c{i}") for i, c in enumerate(rel.columns)]
        text = self.select(block, names)
        if self.cte_texts:
            text = "WITH " + ", ".join(self.cte_texts) + " " + text
        return Generated(text, self.scans, self.arrays, self.udfs)

    def alias(self, prefix: str) -> str:
        self.aliases += 1
        return f"{prefix}{self.aliases}"

    def select(self, block: Block, outputs: Sequence[tuple[int, str]]) -> str:
        """The block as text with `outputs` (id, name) as its columns."""
        texts = dict(block.items) if block.items is not None else block.env
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
            parts.append(" ORDER BY " + ", ".join(block.order))
        if block.limit is not None:
            parts.append(f" LIMIT {block.limit}")
        if block.offset:
            parts.append(f" OFFSET {block.offset}")
        return "".join(parts)

    def close(self, block: Block, barrier: bool = False) -> Block:
        """The block as a subquery in FROM."""
        if block.bare and block.joinable and not barrier:
            return block
        ids = [i for i, _ in block.items] if block.items is not None else list(block.env)
        ids = [i for i in ids if i in self.needed]
        if barrier and not block.limited:
            block.limit = 9223372036854775807
        names = [(i, f"v{i}" if i > 0 else f"k{-i}") for i in ids]
        text = self.select(block, names)
        alias = self.alias("s")
        env = {i: f"{alias}.{quoted(n)}" for i, n in names}
        return Block(f"({text}) AS {alias}", env, filtered=bool(block.where) or block.filtered)

    # ------------------------------------------------------------------------------------------------------- relations

    def block(self, rel: Rel) -> Block:
        """The block that computes `rel`."""
        return _RELATIONS[type(rel)](self, rel)

    def one_row(self, rel: b.OneRow) -> Block:
        return Block("", {}, joinable=False)

    def scan(self, rel: b.Scan) -> Block:
        name = self.alias("t")
        read = {c.id: source for c, source in zip(rel.columns, rel.sources, strict=True) if c.id in self.needed}
        self.scans[name] = ScanUse(rel, tuple(read.values()))
        return self.named_apart(name, name, read, like_ours=any(map(_is_generated, read.values())))

    def named_apart(self, source: str, alias: str, names: dict[int, str], like_ours: bool = False) -> Block:
        """A block over `source`, called `alias`, whose columns have `names`; under new ones where another source has one of
        them, or where they could be those of a subquery.

        The engine's filter push-down tells the columns of a join's two sides apart by name: of two columns `ts` it has
        filtered the wrong one (DataFusion 55, FilterExec above an outer join). Remove when it goes by position.
        """
        env = {i: f"{alias}.{quoted(n)}" for i, n in names.items()}
        if not like_ours and self.names.isdisjoint(names.values()):
            self.names.update(names.values())
            return Block(source, env)
        items = ", ".join(f'{text} AS "v{i}"' for i, text in env.items())
        around = self.alias("s")
        return Block(f"(SELECT {items} FROM {source}) AS {around}", {i: f'{around}."v{i}"' for i in env})

    def values(self, rel: b.Values) -> Block:
        alias = self.alias("w")
        batch = batch_of(rel, self.lowering.context)
        if batch is not None:
            self.arrays[alias] = ArraySource(batch)
            return Block(alias, {c.id: f'{alias}."v{c.id}"' for c in rel.columns})
        # VALUES keeps its rows in order, a union of selects would not. Only needed columns: the engine loses count of the
        # variables of lambdas when it drops columns of VALUES itself.
        cells = [[self.lowering.lower(e) for e in row] for row in rel.rows]
        kept = [
            i
            for i, c in enumerate(rel.columns)
            if c.id in self.needed or any(self.lowering.raises(r[i]) for r in cells)
        ] or [0]
        rows = ["(" + ", ".join(self.expr(row[i]) for i in kept) + ")" for row in cells]
        ids = [rel.columns[i].id for i in kept]
        names = ", ".join(f'"v{i}"' for i in ids)
        source = f"(VALUES {', '.join(rows)}) AS {alias}({names})"
        return Block(source, {i: f'{alias}."v{i}"' for i in ids})

    def range(self, rel: b.Range) -> Block:
        alias = self.alias("g")
        if (rel.stop - rel.start) * rel.step <= 0:
            self.arrays[alias] = ArraySource(pa.RecordBatch.from_arrays([pa.array([], pa.int64())], ["value"]))
            return self.named_apart(alias, alias, {rel.columns[0].id: "value"})
        source = f"range({rel.start}, {rel.stop}, {rel.step}) AS {alias}"
        return self.named_apart(source, alias, {rel.columns[0].id: "value"})

    def cte_ref(self, rel: b.CteRef) -> Block:
        name = self.ctes.get(rel.cte.id)
        if name is None:
            name = f"q{rel.cte.id}"
            envs, self.envs = self.envs, []
            block = self.block(rel.cte.plan)
            text = self.select(block, [(c.id, f"v{c.id}") for c in rel.cte.plan.columns])
            self.envs = envs
            self.cte_texts.append(f"{name} AS ({text})")
            self.ctes[rel.cte.id] = name
        alias = self.alias("r")
        names = {}
        for column, source in zip(rel.columns, rel.cte.plan.columns, strict=True):
            names[column.id] = f"v{source.id}"
            self.column_casts[column.id] = self.column_casts.get(source.id, 0)
        block = self.named_apart(f"{name} AS {alias}", alias, names)
        block.filtered = True
        return block

    def project(self, rel: b.Project) -> Block:
        block = self.block(rel.input)
        if block.items is not None or block.distinct:
            block = self.close(block)
        exprs = [self.lowering.lower(e) for e in rel.exprs]
        block, exprs = self._apart(block, exprs)
        if (block.limited and any(self.lowering.raises(e) for e in exprs)) or (
            block.group is not None and any(_correlated(e) for e in exprs)
        ):
            block = self.close(block)
        self.envs.append(block.env)
        block.items = []
        kept = block.where if block.group is None else []
        for column, expr in zip(rel.columns, exprs, strict=True):
            if column.id in self.needed:
                self.casts = 0
                if kept and column.id in self.tested:  # the engine may test it before it filters
                    expr = self.lowering.where(kept, expr)
                block.items.append((column.id, self.expr(expr)))
                self.column_casts[column.id] = self.casts
        self.envs.pop()
        return block

    def filter(self, rel: b.Filter) -> Block:
        block = self.block(rel.input)
        conditions = conjuncts_of(rel.condition)
        for condition in conditions:
            check_in_subqueries(condition)
        joined = block.joined or bool(self.envs)
        conjuncts = [self.lowering.join_condition(c) if joined else self.lowering.lower(c) for c in conditions]
        grouped = block.items is None and block.group is not None and not block.limited and not block.order
        if grouped and all(_has_column(c) and not _correlated(c) for c in conjuncts):
            self.envs.append(block.env)
            block.having += [self.expr(c) for c in self.lowering.filters(conjuncts)]
            self.envs.pop()
            return block
        if block.items is not None or block.limited or block.distinct or block.group is not None or block.order:
            raising = any(self.lowering.raises(c) for c in conjuncts)
            block = self.close(block, barrier=raising and (block.filtered or bool(block.where)))
        block.where += conjuncts
        return block

    def join(self, rel: b.Join) -> Block:
        left = self.close(self.block(rel.left))
        if rel.lateral:
            self.envs.append(left.env)
        right = self.close(self.block(rel.right))
        if rel.lateral:
            self.envs.pop()
        if not left.source:
            left = self.close(Block("", {}, items=[]))
        if not right.source:
            right = self.close(Block("", {}, items=[]))
        env = left.env | right.env
        words = {
            "inner": "JOIN",
            "cross": "CROSS JOIN",
            "left": "LEFT JOIN",
            "right": "RIGHT JOIN",
            "full": "FULL JOIN",
            "semi": "LEFT SEMI JOIN",
            "anti": "LEFT ANTI JOIN",
        }[rel.kind]
        if rel.lateral:
            words += " LATERAL"
        condition = ""
        if rel.condition is not None:
            conjuncts = [(c, self.lowering.join_condition(c)) for c in conjuncts_of(rel.condition)]
            lowered = self.lowering.filters([e if is_key(c) else self.lowering.held(e) for c, e in conjuncts])
            self.envs.append(env)
            condition = " ON " + balanced([self.expr(c) for c in lowered], "AND")
            self.envs.pop()
            if rel.kind == "cross":
                words = words.replace("CROSS JOIN", "JOIN")
        elif rel.kind != "cross":
            if rel.kind == "inner":
                words = words.replace("JOIN", "CROSS JOIN", 1)
            else:
                condition = " ON true"
        right_source = f"({right.source})" if right.joined else right.source
        source = f"{left.source} {words} {right_source}{condition}"
        if rel.kind in ("semi", "anti"):
            env = left.env
        return Block(source, env, filtered=left.filtered or right.filtered, joined=True)

    def aggregate(self, rel: b.Aggregate) -> Block:
        block = self._open(rel.input)
        keys = [
            self.lowering.where(block.where, e) if block.where and c.id in self.tested else e
            for c, e in zip(rel.columns, map(self.lowering.lower, rel.keys), strict=False)
        ]
        columns = rel.columns[len(keys) :]
        aggs = [(c, self.lowering.lower(a)) for c, a in zip(columns, rel.aggs, strict=False) if c.id in self.needed]
        block, found = self._apart(block, [*keys, *(a for _, a in aggs)])
        keys, aggs = found[: len(keys)], [(c, a) for (c, _), a in zip(aggs, found[len(keys) :], strict=True)]
        # Literals as keys would be ordinals, grouping() wants columns, and DataFusion tells expressions apart by names that
        # leave casts out: whatever is not a plain column is computed below.
        below = _Below(self, block)
        keys = [below.column(k, always=rel.sets is not None or isinstance(k, b.Lit)) for k in keys]
        aggs = [(c, _with_agg_inputs(a, below.column)) for c, a in aggs]
        block = below.block()
        self.envs.append(block.env)
        texts = [self.expr(k) for k in keys]
        env: dict[int, str] = {c.id: t for c, t in zip(rel.columns, texts, strict=False)}
        for column, agg in aggs:
            env[column.id] = self.expr(agg)
        self.envs.pop()
        if rel.sets is not None:
            env[rel.columns[-1].id] = _grouping_id(texts, {i for s in rel.sets for i in s}, self.cast_text)
            sets = ", ".join("(" + ", ".join(texts[i] for i in s) + ")" for s in rel.sets)
            block.group = f" GROUP BY GROUPING SETS ({sets})"
            # Hides from the optimizer that a key may be constant below: it is NULL in the rows of other sets.
            used = {i for s in rel.sets for i in s}
            for i, (column, text) in enumerate(zip(rel.columns, texts, strict=False)):
                shown = f"CASE WHEN grouping({text}) = 0 THEN {text} END"
                env[column.id] = shown if i in used else self.expr(b.null(column.type))
            if not all(rel.sets):
                block.having.append("bool_or(true)")
        elif texts:
            block.group = " GROUP BY " + ", ".join(texts)
        else:
            block.group = ""
            block.aggregates = tuple(env[c.id] for c, a in aggs if not isinstance(a, b.Lit))
        block.rows_env, block.env = block.env, env
        return block

    def _apart(self, block: Block, exprs: Sequence[Expr]) -> tuple[Block, list[Expr]]:
        """Lambdas over a table or a subquery that the engine can't merge with the projection that they become.

        It makes one of two projections without counting a lambda's variables anew, but none of what is asked for twice.
        """
        if not any(map(_has_lambda, exprs)) or block.source.isidentifier():
            return block, list(exprs)
        if block.order:  # below: what it is ordered by would be dropped by another projection
            block = self.close(block)
        self.fresh -= 1
        mark = Col(DOUBLE, False, self.fresh, "")
        items = [(i, t) for i, t in (block.items or block.env.items()) if i in self.needed]
        block.items = [*items, (mark.id, "random()")]
        names = [(i, f"v{i}" if i > 0 else f"k{-i}") for i, _ in block.items]
        alias = self.alias("s")
        text = self.select(block, names)
        env = {i: f"{alias}.{quoted(n)}" for i, n in names}
        low, high = (b.op(s, BOOLEAN, mark, b.lit(v, DOUBLE)) for s, v in ((">=", 0.0), ("<", 2.0)))
        guard = b.op("AND", BOOLEAN, low, high)
        made = Block(f"({text}) AS {alias}", env, filtered=block.filtered or bool(block.where))
        return made, [_guarded(e, guard) for e in exprs]

    def _open(self, rel: Rel) -> Block:
        """The block of `rel` with only FROM and WHERE."""
        block = self.block(rel)
        if block.items is not None or block.group is not None or block.limited or block.distinct or block.order:
            block = self.close(block)
        return block

    def window(self, rel: b.WindowRel) -> Block:
        block = self._open(rel.input)
        width = len(rel.columns) - len(rel.windows)
        windows = [
            (c, self.lowering.lower(w))
            for c, w in zip(rel.columns[width:], rel.windows, strict=True)
            if c.id in self.needed
        ]
        block, found = self._apart(block, [w for _, w in windows])
        below = _Below(self, block)
        windows = [(c, _with_window_inputs(w, below.column)) for (c, _), w in zip(windows, found, strict=True)]
        block = below.block()
        self.envs.append(block.env)
        items = [(c.id, block.env[c.id]) for c in rel.columns[:width] if c.id in self.needed]
        items += [(c.id, self.expr(w)) for c, w in windows]
        self.envs.pop()
        block.items = items
        return self.close(block)

    def sort(self, rel: b.Sort) -> Block:
        block = self.block(rel.input)
        if block.items is not None or block.limited or block.distinct or block.order:
            block = self.close(block)
        self.envs.append(block.env)
        block.order = [self.sort_key(k) for k in self.lowering.sort_keys(rel.keys)]
        self.envs.pop()
        return block

    def limit(self, rel: b.Limit) -> Block:
        block = self.block(rel.input)
        if block.limited:
            block = self.close(block)
        block.limit, block.offset = rel.limit, rel.offset
        return block

    def distinct(self, rel: b.Distinct) -> Block:
        block = self.block(rel.input)
        if block.limited or block.order or block.distinct or block.items is None:
            block = self.close(block)
            block.items = [(c.id, block.env[c.id]) for c in rel.columns]
        block.distinct = True
        return self.close(block)

    def set_op(self, rel: b.SetOp) -> Block:
        for side in rel.inputs:
            self.needed.update(c.id for c in side.columns)
        counted = rel.all and rel.kind != "union"
        texts = []
        for side in rel.inputs:
            block = self.block(side)
            names = [(s.id, f"v{c.id}") for s, c in zip(side.columns, rel.columns, strict=True)]
            if counted:
                block = self.close(block)
                columns = [block.env[i] for i, _ in names]
                row = f"row_number() OVER (PARTITION BY {', '.join(columns)} ORDER BY {columns[0]})"
                items = [f"{t} AS {quoted(n)}" for t, (_, n) in zip(columns, names, strict=True)]
                where = " WHERE " + balanced([self.expr(c) for c in block.where], "AND") if block.where else ""
                texts.append(f'SELECT {", ".join(items)}, {row} AS "n" FROM {block.source}{where}')
            else:
                texts.append(
                    f"({self.select(block, names)})" if block.order or block.limited else self.select(block, names)
                )
        word = {"union": "UNION", "intersect": "INTERSECT", "except": "EXCEPT"}[rel.kind]
        if rel.all and not counted:
            word += " ALL"
        alias = self.alias("s")
        text = f" {word} ".join(texts)
        return Block(f"({text}) AS {alias}", {c.id: f'{alias}."v{c.id}"' for c in rel.columns}, filtered=True)

    def generate(self, rel: b.Generate) -> Block:
        block = self._open(rel.input)
        row = self.lowering.catalogue.get(rel.generator.fn)
        if row is None or row.lower is None:
            raise UnsupportedError(
                "UNSUPPORTED_FUNCTION",
                f"The generator `{rel.generator.shown or rel.generator.fn}` is not supported.",
                span=rel.generator.span,
            )
        args = tuple(self.lowering.lower(a) for a in rel.generator.args)
        block, (array,) = self._apart(block, [row.lower(rel.generator, args, self.lowering.context)])
        width = len(rel.input.columns)
        kept = [c.id for c in rel.input.columns if c.id in block.env and c.id in self.needed]
        self.envs.append(block.env)
        lowered = self.expr(array)
        self.envs.pop()
        name = self.alias("u")
        if rel.outer:
            lowered = f"CASE WHEN cardinality({lowered}) > 0 THEN {lowered} ELSE make_array(NULL) END"
        items = [f'{block.env[i]} AS "v{i}"' for i in kept] + [f"unnest({lowered}) AS {quoted(name)}"]
        where = self.lowering.filters(block.where)
        self.envs.append(block.env)
        text = "SELECT " + ", ".join(items) + (f" FROM {block.source}" if block.source else "")
        if where:
            text += " WHERE " + balanced([self.expr(c) for c in where], "AND")
        self.envs.pop()
        alias = self.alias("s")
        env = {i: f'{alias}."v{i}"' for i in kept}
        fields = rel.generator.type.fields  # type: ignore[attr-defined]
        for column, f in zip(rel.columns[width:], fields, strict=True):
            env[column.id] = f"{alias}.{quoted(name)}[{text_literal(f.name)}]"
        return Block(f"({text}) AS {alias}", env, filtered=block.filtered or bool(block.where))


class _Below:
    """Expressions that are computed in a subquery below a clause, as columns of it."""

    def __init__(self, generator: Generator, block: Block) -> None:
        self._generator = generator
        self._source = block
        self._made: dict[str, Col] = {}

    def column(self, expr: Expr, always: bool = False) -> Expr:
        """A plain column for `expr`; itself if it is a column or literal (unless `always`)."""
        if isinstance(expr, Col | b.Lit) and not always:
            return expr
        generator = self._generator
        generator.envs.append(self._source.env)
        text = generator.expr(expr)
        generator.envs.pop()
        key = f"{text} {expr.type!r}"
        found = self._made.get(key)
        if found is None:
            generator.fresh -= 1
            found = Col(expr.type, expr.nullable, generator.fresh, text)
            self._made[key] = found
        return found

    def block(self) -> Block:
        """The source as it was, or a subquery over it with the computed columns."""
        if not self._made:
            return self._source
        source, needed = self._source, self._generator.needed
        items = [(i, t) for i, t in source.env.items() if i in needed]
        items += [(c.id, c.name) for c in self._made.values()]
        source.items = items
        names = [(i, f"v{i}" if i > 0 else f"k{-i}") for i, _ in items]
        text = self._generator.select(source, names)
        alias = self._generator.alias("s")
        env = {i: f"{alias}.{quoted(n)}" for i, n in names}
        return Block(f"({text}) AS {alias}", env, filtered=source.filtered or bool(source.where))


def _with_agg_inputs(expr: Expr, column: Callable[[Expr], Expr]) -> Expr:
    """`expr` with the inputs of its aggregates replaced by columns."""
    if isinstance(expr, b.AggFn):
        return replace(
            expr,
            args=tuple(column(a) for a in expr.args),
            where=column(expr.where) if expr.where is not None else None,
            order=tuple(b.SortKey(column(k.expr), k.descending, k.nulls_first) for k in expr.order),
        )
    return rebuilt_engine(expr, lambda e: _with_agg_inputs(e, column))


def _has_lambda(expr: Expr) -> bool:
    return any(isinstance(e, b.Lambda) for e in nodes(expr))


def _guarded(expr: Expr, guard: Expr) -> Expr:
    """`expr` with its functions that take lambdas under `guard`, which always holds."""
    if isinstance(expr, (b.Fn, b.Udf)) and any(isinstance(a, b.Lambda) for a in expr.args):
        return b.case(expr.type, (guard, expr))
    if isinstance(expr, b.AggFn):
        return _with_agg_inputs(expr, lambda e: _guarded(e, guard))
    if isinstance(expr, b.Window):
        return _with_window_inputs(expr, lambda e: _guarded(e, guard))
    return rebuilt_engine(expr, lambda e: _guarded(e, guard))


def _with_window_inputs(window: Expr, column: Callable[[Expr], Expr]) -> Expr:
    assert isinstance(window, b.Window)

    def inputs(expr: Expr) -> Expr:
        if isinstance(expr, b.Fn) and expr.name in WINDOW_NAMES:
            return replace(expr, args=tuple(column(a) for a in expr.args))
        if isinstance(expr, b.AggFn):
            return _with_agg_inputs(expr, column)
        return rebuilt_engine(expr, inputs)

    return replace(
        window,
        fn=inputs(window.fn),
        partition=tuple(column(p) for p in window.partition),
        order=tuple(b.SortKey(column(k.expr), k.descending, k.nulls_first) for k in window.order),
    )


def _is_generated(name: str) -> bool:
    """Whether a column's name could be one of ours."""
    return name[:1] in ("v", "k") and name[1:].isdecimal()


def _has_column(expr: Expr) -> bool:
    """Whether `expr` reads a column; DataFusion takes no constant in HAVING."""
    return isinstance(expr, Col) or any(_has_column(c) for c in children(expr))


def _correlated(expr: Expr) -> bool:
    """Whether a subquery in `expr` refers to columns here; over GROUP BY their text may hold aggregates."""
    return (isinstance(expr, b.Subquery) and bool(expr.outer)) or any(_correlated(c) for c in children(expr))


def check_in_subqueries(condition: Expr) -> None:
    """Refuse IN (subquery) where DataFusion loses the difference between NULL and false.

    In a filter it is safe as a conjunct (also negated), and below AND / OR as long as nothing negates it.
    """
    if isinstance(condition, b.Call) and condition.fn == "not" and isinstance(condition.args[0], b.Subquery):
        condition = condition.args[0]
    if isinstance(condition, b.Subquery):
        for arg in condition.args:
            _check_values(arg)
        return
    if isinstance(condition, b.Call) and condition.fn in ("and", "or"):
        for arg in condition.args:
            if not isinstance(arg, b.Subquery):
                _check_under(arg)
    else:
        _check_values(condition)


def _check_under(condition: Expr) -> None:
    """Below AND / OR of a filter."""
    if isinstance(condition, b.Call) and condition.fn in ("and", "or"):
        for arg in condition.args:
            _check_under(arg)
    elif not isinstance(condition, b.Subquery):
        _check_values(condition)


def _check_values(expr: Expr) -> None:
    """Where NULL and false differ."""
    if isinstance(expr, b.Subquery) and expr.kind == "in" and expr.nullable:
        raise unsupported("IN (subquery) with NULLs below another operator", expr.span)
    for child in children(expr):
        _check_values(child)


def _grouping_id(texts: list[str], used: set[int], cast: Callable[[str, DataType], str]) -> str:
    """Spark's grouping_id: one bit per key, the first key highest, 1 where the key is not in the set (or in none)."""
    bits = [
        f"{cast(f'grouping({t})' if i in used else '1', BIGINT)} * {1 << (len(texts) - 1 - i)}"
        for i, t in enumerate(texts)
    ]
    return "(" + (" + ".join(bits) or "CAST(0 AS BIGINT)") + ")"


_RELATIONS: dict[type, Callable[[Generator, Any], Block]] = {
    b.OneRow: Generator.one_row,
    b.Scan: Generator.scan,
    b.Values: Generator.values,
    b.Range: Generator.range,
    b.CteRef: Generator.cte_ref,
    b.Project: Generator.project,
    b.Filter: Generator.filter,
    b.Join: Generator.join,
    b.Aggregate: Generator.aggregate,
    b.WindowRel: Generator.window,
    b.Sort: Generator.sort,
    b.Limit: Generator.limit,
    b.Distinct: Generator.distinct,
    b.SetOp: Generator.set_op,
    b.Generate: Generator.generate,
}
