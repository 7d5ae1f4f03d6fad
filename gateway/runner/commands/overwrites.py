"""INSERT OVERWRITE, INSERT … REPLACE WHERE and TRUNCATE: rows that take the place of others, in one commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gateway.catalog.bound import DeltaBoundTable
from gateway.config.session import OVERWRITE_MODE
from gateway.delta.commit import Parameters
from gateway.delta.feed import DELETE
from gateway.delta.identity import Numbering
from gateway.delta.rewrite import Change, Replaced, check_changeable, partly_left, replace_files, replace_partitions
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import Span, UserError, unsupported
from gateway.planner import plan
from gateway.runner.answer import RESULT, Answer
from gateway.runner.commands.changes import Changing, Condition, counts_of, kept, matches, shown
from gateway.runner.commands.constraints import checked, guarded_query
from gateway.runner.commands.evolution import told
from gateway.runner.commands.targets import announced_rows, quoted, written_rows, written_table
from gateway.runner.environment import Environment, Queries
from gateway.runner.written import INSERTED
from gateway.sql.bind.changes import ChangeBinder, chosen, equal_to
from gateway.sql.bind.resolve import Binder, BoundQuery
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.compile import binder_of, compile_query, queried
from gateway.sql.functions.fold import fold
from gateway.sql.read import command_nodes as c
from gateway.sql.typed import nodes as b
from gateway.sql.typed.coerce import coerced
from gateway.sql.typed.common_types import plain
from gateway.sqltypes import BINARY, BOOLEAN, FRACTIONALS, INTEGRALS, STRING, DecimalType, StructField

# Types of columns whose constants the engine tells as literals have them.
_COMPUTED = (*INTEGRALS, *FRACTIONALS, BOOLEAN, STRING, BINARY)
_DYNAMIC: Parameters = {"mode": "Overwrite", "partitionBy": "[]", "isDynamicPartitionOverwrite": True}
#: The constants of PARTITION by the table's columns.
Static = Mapping[str, b.Lit]


def static_partition(command: c.Insert, table: DeltaBoundTable, env: Environment) -> Static:
    """The constants of PARTITION. Raises UnsupportedError for columns that the table is not partitioned by."""
    fields = {f.name.lower(): f for f in table.schema.fields if f.name in table.partition_columns}
    found: dict[str, b.Lit] = {}
    seen: set[str] = set()
    for given in command.partition:
        name = given.column.parts[-1].lower()
        if name not in fields or name in seen:
            raise unsupported(f"PARTITION with the column {given.column}", given.column.span)
        seen.add(name)
        if given.value is not None:
            found[fields[name].name] = constant(given, fields[name], table, env)
    return found


def constant(given: c.Assignment, column: StructField, table: DeltaBoundTable, env: Environment) -> b.Lit:
    """A value of PARTITION, as its column takes it: one that is not known here is computed of its text, as Spark does.

    Raises UserError CAST_INVALID_INPUT for a text that means none, UnsupportedError for one that stays unknown.
    """
    binder = binder_of(env.context, env.tables, env.session.views, env.parameters)
    stored = ChangeBinder(binder, quoted(table), "INSERT").value(given, column, Scope())
    value = fold(stored, env.context)
    if value is not None:
        return value
    bare = stored.arg if isinstance(stored, b.Cast) and stored.implicit else stored
    wanted = b.Cast(plain(column.type), True, coerced(bare, STRING))
    rows = b.Project((b.Col(wanted.type, True, binder.ids.take(), "value"),), b.OneRow(()), (wanted,))
    try:
        found = env.tables.computed(rows, binder.ids)
    except UserError as error:
        raise error.at(given.column.span) from None
    if found is not None and plain(column.type) not in _COMPUTED and not isinstance(column.type, DecimalType):
        raise unsupported(f"this value for {given.column} in PARTITION", given.column.span)
    return b.Lit(column.type, found is None, found)


@dataclass(frozen=True, slots=True)
class Overwrite:
    """An INSERT that overwrites: the table as it is, and as it is with the columns that the statement brings along."""

    command: c.Insert
    table: DeltaBoundTable
    grown: DeltaBoundTable
    metadata: dict[str, Any] | None  # which it gets with them
    partition: Static
    numbers: Numbering | None = None

    def change(self, parameters: Parameters, metrics: Callable[[Replaced], dict[str, int]]) -> Change:
        """What the commit says of itself."""
        if not self.command.evolves:
            return Change("WRITE", parameters, metrics, partial(told, None, self.numbers))
        also, columns = partial(told, self.metadata, self.numbers), self.grown.snapshot.columns
        return Change("WRITE", {**parameters, "canMergeSchema": "true"}, metrics, also, columns)


def overwrite(of: Overwrite, rows: BoundQuery, binder: Binder, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """Put the rows of a query in the place of all rows, of those of a partition, or of those that a condition takes."""
    command, table, numbers = of.command, of.table, of.numbers
    one = Changing("INSERT", table, None, command.table.span, env, runner)
    check_changeable(one.snapshot)
    if command.evolves:
        one.evolve(of.grown, of.metadata)
    stored = {name.lower(): value for name, value in of.partition.items()}
    statics = [
        (given, stored[given.column.parts[-1].lower()]) for given in command.partition if given.value is not None
    ]
    condition = command.replaced if command.replaced is not None else equal_to(statics)
    if condition is not None:
        one.check(kept(condition))
    query = guarded_query(rows, one.snapshot, binder)
    if command.replaced is not None:
        query = _judged(query, command.replaced, of.grown, binder)
    decision = plan(compile_query(query, env.context))
    runner.check_size(decision, env, one.span)
    written = announced_rows("INSERT", decision, INSERTED, runner, emit)
    if command.replaced is not None:
        written = _conforming(written, shown(command.replaced, one), one.span)
    written = checked(written, one.snapshot, one.span)
    if numbers is not None:
        written = numbers.filled(written)
    if decision.reads_of(table.location):
        one.reads.append(())
    if _by_partitions(command, table, env):
        change = of.change(_DYNAMIC, Replaced.metrics)
        result = replace_partitions(one.base, one.new(written), change, one.reads)
        return written_rows("INSERT", result, [result.rows])
    found = dict.fromkeys(range(len(one.snapshot.files)), 0)
    partly: list[int] = []
    if condition is None:
        one.reads.append(())
    else:
        found = counts_of(one.rows(matches(condition), emit))
        partly = partly_left(one.snapshot, found)
    copied = Counted(one.written(kept(condition), emit, one.of(partly)) if partly else iter(()))
    parameters = {"mode": "Overwrite", "partitionBy": "[]"}
    if condition is not None:
        parameters["predicate"] = shown(condition, one)
    deleted = sum(found.values()) if condition is not None else None
    change = of.change(parameters, lambda done: _metrics(done, copied.rows, deleted))
    feed = one.feed({DELETE: one.places(condition, emit, found)}) if partly else None
    inserted = Counted(one.new(written))
    result = replace_files(one.base, sorted(found), chain(inserted, copied), change, one.reads, feed)
    count = inserted.rows + copied.rows  # Delta counts as written what is written anew
    return written_rows("INSERT", replace(result, rows=count), [count])


def _by_partitions(command: c.Insert, table: DeltaBoundTable, env: Environment) -> bool:
    """Whether rows take the place of those of their partitions alone, as the session says."""
    is_dynamic = env.session.settings.get(OVERWRITE_MODE) == "dynamic"
    return command.overwrite and is_dynamic and bool(table.partition_columns)


class Counted:
    """Batches on their way into the table, counted."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _judged(rows: BoundQuery, condition: Condition, table: DeltaBoundTable, binder: Binder) -> BoundQuery:
    """The rows with one more column: whether the condition takes them."""
    scope = Scope([Source(table.name.qualifier, rows.rel.columns)])
    found = ChangeBinder(binder, quoted(table), "INSERT").condition(condition, scope)
    judged = chosen(b.lit(False, BOOLEAN), (found, b.lit(True, BOOLEAN)))
    exprs = (*rows.rel.columns, judged)
    columns = tuple(b.Col(x.type, x.nullable, binder.ids.take(), f"c{i}") for i, x in enumerate(exprs))
    return queried(b.Project(columns, rows.rel, exprs), binder)


def _conforming(batches: Iterator[pa.RecordBatch], condition: str, span: Span) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not pc.all(batch.column(batch.num_columns - 1)).as_py():
            text = f"Written data does not conform to partial table overwrite condition or constraint '{condition}'."
            raise UserError("DELTA_REPLACE_WHERE_MISMATCH", text, span=span)
        yield batch.select(range(batch.num_columns - 1))


def _metrics(done: Replaced, copied: int, deleted: int | None) -> dict[str, int]:
    if deleted is None:
        return done.metrics()
    return done.metrics() | {
        "numDeletedRows": deleted,
        "numCopiedRows": copied,
        "numAddedChangeFiles": done.change_files,
    }


def truncate(command: c.Truncate, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """TRUNCATE TABLE."""
    table = written_table(command.table, env, "TRUNCATE TABLE", "no rows can be removed")
    snapshot = table.snapshot
    check_changeable(snapshot)
    started = time.monotonic()
    emit(Planned("TRUNCATE_TABLE", "gateway", "a commit to the Delta log", RESULT, writes=True, is_query=False))
    files = range(len(snapshot.files))

    def metrics(done: Replaced) -> dict[str, int]:
        return {"numRemovedFiles": done.removed_files, "executionTimeMs": round((time.monotonic() - started) * 1000)}

    if files:  # else there is nothing to say
        replace_files(snapshot, files, (), Change("TRUNCATE", {}, metrics), [()])
    return Answer("TRUNCATE_TABLE", is_query=False, announced=True)
