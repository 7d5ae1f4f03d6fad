"""From a parsed query to engine text: bind, lower, generate, in one call; what the planner gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.delta.predicates import Predicate
from gateway.errors import UserError
from gateway.sql.bind.parameters import Given
from gateway.sql.bind.relations import Tables
from gateway.sql.bind.resolve import Binder, BoundQuery, Node
from gateway.sql.functions import CATALOGUE
from gateway.sql.lowering.blocks import Generated, ScanUse
from gateway.sql.lowering.bounds import Bounds
from gateway.sql.lowering.constant_rows import known_rows
from gateway.sql.lowering.constants import computed_first
from gateway.sql.lowering.counts import counted, without_passed_rows
from gateway.sql.lowering.existence import rewritten
from gateway.sql.lowering.expressions import Lowering
from gateway.sql.lowering.extent import check_extent
from gateway.sql.lowering.generate import Generator
from gateway.sql.lowering.input_order import is_in_order, with_input_order
from gateway.sql.lowering.late_columns import LateColumns
from gateway.sql.lowering.lateral import decorrelated
from gateway.sql.lowering.matched_keys import with_matched_keys
from gateway.sql.lowering.planned_rows import local_columns
from gateway.sql.lowering.pushdown import Hints
from gateway.sql.lowering.reads import hands_on, needed_columns
from gateway.sql.lowering.regrouped import with_hidden_groups
from gateway.sql.lowering.sets_apart import with_sets_apart
from gateway.sql.lowering.star_order import with_star_order
from gateway.sql.lowering.unmatched import with_unmatched_keys
from gateway.sql.lowering.variants import check_variants, with_texts
from gateway.sql.lowering.zeros import with_one_zero
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.copies import with_inlined
from gateway.sql.typed.nodes import Expr, Project, Rel
from gateway.sqltypes import VOID, MapType, StructField, StructType, has_variant, struct
from gateway.worker_jobs import TempView


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query ready for planning: result schema, relation, engine text, hints for its scans, whether a row can make it fail.

    `hands_on`: it gives the rows of its tables as they are or sorted, so that reading texts as views is not worth its while.
    `repeats`: it computes what it reads once more, for subqueries.
    """

    schema: StructType
    rel: Rel
    generated: Generated
    hints: Hints
    may_raise: bool = True
    hands_on: bool = False
    repeats: bool = False

    @property
    def tells_ahead(self) -> bool:
        """Whether joins may tell the scans of one side what the other has.

        Not where it is computed once more for subqueries; nor by floats: of zeros scans take those of one sign (DataFusion 55).
        """
        return not self.repeats and not self.hints.joins_floats

    @property
    def in_order(self) -> bool:
        """Whether what is computed above a sort has its rows in that order."""
        return is_in_order(self.rel, CATALOGUE)

    @property
    def compares_floats(self) -> bool:
        """Whether Parquet's statistics of float columns, which skip NaN, could change the answer."""
        return self.hints.compares_floats

    def late_columns(self) -> LateColumns:
        """Which scans read columns only of the rows that conditions leave."""
        return LateColumns(self.rel, self.hints)

    def predicates(self, use: ScanUse) -> list[Predicate]:
        """What the scan's files may be chosen by."""
        return self.hints.of(use.scan)


def bind(
    tree: Node,
    context: Context,
    tables: Tables,
    views: Mapping[str, TempView],
    parameters: dict[int | str, Given],
) -> tuple[BoundQuery, Binder]:
    """The bound query; raises Spark's analysis errors."""
    binder = binder_of(context, tables, views, parameters)
    return binder.statement(tree), binder


def binder_of(
    context: Context, tables: Tables, views: Mapping[str, TempView], parameters: dict[int | str, Given]
) -> Binder:
    """What binds the names and expressions of one query."""
    return Binder(CATALOGUE, context, tables, views, parameters)


def compile_query(query: BoundQuery, context: Context, answers: bool = False) -> Compiled:
    """Engine text of a bound query; raises UNSUPPORTED_… for what has no proved form.

    With `answers` rows that are known by now stand in for the text.
    """
    rel = query.rel if query.ids is None else with_inlined(query.rel, query.ids)
    check_extent(rel)
    check_variants(rel)
    _check_keys(rel)
    rel = without_passed_rows(counted(rel))
    rows = known_rows(rel, context) if answers else None
    if rows is not None:
        return Compiled(
            query.schema, rel, Generated("", {}, {}, {}, rows=rows), Hints(rel, context, False), may_raise=False
        )
    constants, local = computed_first(rel, CATALOGUE, context), local_columns(rel)
    rel = without_passed_rows(rel, limited=True)
    if query.ids is not None:
        rel = decorrelated(rel, query.ids, CATALOGUE) if query.ids.laterals else rel
        rel = rewritten(rel, query.ids, CATALOGUE)
    has_subqueries = query.ids is not None
    rel = with_sets_apart(with_one_zero(rel), query.ids)
    rel = with_hidden_groups(with_unmatched_keys(rel), has_subqueries)
    rel = with_input_order(rel, query.ids, CATALOGUE)
    needed = needed_columns(rel)
    lowering = Lowering(CATALOGUE, context, Bounds(rel, needed, has_subqueries), local, rel)
    rel = with_matched_keys(rel, lowering.may_fail)
    hints = Hints(rel, context, has_subqueries)
    rel = with_star_order(rel, lowering, hints)
    generator = Generator(lowering, needed)
    generated = generator.statement(rel)
    generated.first = generator.first(constants, has_subqueries)
    repeats = query.ids is not None and query.ids.domains
    plain = not has_subqueries and hands_on(rel)
    return Compiled(query.schema, rel, generated, hints, lowering.may_raise, plain, repeats)


def _check_keys(rel: Rel) -> None:
    """No column is a map that is made with NULL for a key, of which no type could be told."""
    for e in rel.exprs if isinstance(rel, Project) else ():
        if isinstance(e, b.Call) and e.fn == "map" and isinstance(e.type, MapType) and e.args and e.type.key == VOID:
            raise UserError("NULL_MAP_KEY", "Cannot use null as map key.", span=e.span)


def projected(query: BoundQuery, binder: Binder, exprs: list[Expr], schema: StructType) -> BoundQuery:
    """`query` with other output expressions over its columns (INSERT: casts, order, NULLs for missing columns)."""
    columns = tuple(
        b.Col(e.type, e.nullable, binder.ids.take(), f.name) for e, f in zip(exprs, schema.fields, strict=True)
    )
    return BoundQuery(Project(columns, query.rel, tuple(exprs)), schema, query.ids)


def shown(query: BoundQuery, binder: Binder) -> BoundQuery:
    """`query` as clients are shown its rows: with the JSON of a VARIANT."""
    if not has_variant(query.schema):
        return query
    check_variants(query.rel)
    return BoundQuery(with_texts(query.rel, binder.ids), query.schema, query.ids)


def stored(query: BoundQuery, binder: Binder, schema: StructType) -> BoundQuery:
    """`query` with its columns cast to those of `schema` by position."""
    exprs = [coerced(c, f.type) for c, f in zip(query.rel.columns, schema.fields, strict=True)]
    return projected(query, binder, exprs, schema)


def queried(rel: Rel, binder: Binder) -> BoundQuery:
    """A relation that a command has put together as a query of its own."""
    fields = (StructField(c.name, c.type, c.nullable) for c in rel.columns)
    return BoundQuery(rel, struct(*fields), binder.ids if binder.ids.subqueries else None)
