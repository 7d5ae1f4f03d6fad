"""DELETE and UPDATE: which files hold rows that the condition takes, and these files written anew."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.catalog.bound import DeltaBoundTable, ReadTable
from gateway.delta.feed import BEFORE, CHANGE, COPIED, DELETE, INSERTED, UPDATED, Feed, Places, keeps_feed
from gateway.delta.marking import mark_rows, marks_rows, with_touched
from gateway.delta.predicates import Predicate
from gateway.delta.rewrite import (
    Change,
    Marked,
    Replaced,
    check_changeable,
    marked,
    only_files,
    only_rows,
    partly_left,
    replace_files,
    trail,
    with_trail,
    without_rows,
)
from gateway.delta.table import Snapshot
from gateway.delta.write import WriteResult
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import Span, UserError
from gateway.planner import Plan, plan
from gateway.runner.answer import Answer, rows_of
from gateway.runner.commands.constraints import checked, guarded
from gateway.runner.commands.generated import recomputed, value_left_out
from gateway.runner.commands.identities import check_updated
from gateway.runner.commands.targets import announced_rows, batches_of, quoted, written_table
from gateway.runner.environment import Environment, Queries
from gateway.runner.written import WRITES
from gateway.sql.bind.changes import ChangeBinder, Target, chosen
from gateway.sql.bind.resolve import Binder
from gateway.sql.compile import binder_of, compile_query, queried
from gateway.sql.read import command_nodes as c
from gateway.sql.typed import nodes as b
from gateway.sql.typed.assignment import Assigned, overflown
from gateway.sqltypes import BIGINT, BOOLEAN, INT

Numbers = npt.NDArray[np.int64]
Condition = Any  # a parsed expression, or None
Build = Callable[[ChangeBinder, Target], b.Rel]
_OVERFLOW = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"


@dataclass(slots=True)
class Changing:
    """One statement that changes rows: the table at the version that it reads, and how its queries are made."""

    word: str
    table: DeltaBoundTable
    alias: str | None
    span: Span
    env: Environment
    runner: Queries
    casts: list[Assigned] = field(default_factory=list)
    reads: list[tuple[Predicate, ...]] = field(default_factory=list)  # what scans of all files left some out by
    base: Snapshot = field(init=False)  # as the table is before it
    marked: Marked = field(init=False)
    metadata: dict[str, Any] | None = None  # which it gets with columns that the statement brings along
    asks: bool = False  # whether a query of it holds a subquery: what that answers may differ when it is asked again

    def __post_init__(self) -> None:
        self.base = self.table.snapshot
        self.marked = marked(self.base)

    def evolve(self, table: DeltaBoundTable, metadata: dict[str, Any] | None) -> None:
        """Go on with the table as it is with the columns that the statement brings along."""
        self.table, self.metadata = table, metadata
        self.marked = marked(table.snapshot)

    @property
    def snapshot(self) -> Snapshot:
        return self.table.snapshot

    def read_table(self, part: Snapshot | None = None) -> ReadTable:
        """The table with its marks, all of it or a part."""
        return ReadTable(self.table.name, self.marked.snapshot if part is None else part)

    def of(self, files: Sequence[int]) -> Snapshot:
        """Some files of the table."""
        return only_files(self.marked.snapshot, files)

    def target(self, changes: ChangeBinder, table: ReadTable) -> Target:
        """The table in one query."""
        return changes.target(table, self.alias, len(self.snapshot.columns) - len(self.base.columns))

    def binder(self) -> Binder:
        """What binds one query."""
        return binder_of(self.env.context, self.env.tables, self.env.session.views, self.env.parameters)

    def query(self, build: Build, part: Snapshot | None = None) -> Plan:
        """The plan of a query over the table, or a part of it."""
        with self.runner.engine.planning():
            table, binder = self.read_table(part), self.binder()
            changes = ChangeBinder(binder, quoted(self.table), self.word)
            rel = build(changes, self.target(changes, table))
            self.casts += [cast for cast in changes.casts if cast not in self.casts]
            self.asks = self.asks or changes.asks
            compiled = compile_query(queried(rel, binder), self.env.context)
            decision = plan(compiled)
        if part is None:
            self.reads += table.read
        scanned = [use.scan.table for use in compiled.generated.scans.values()]
        if any(other is not table and other.location == table.location for other in scanned):
            self.reads.append(())  # what subqueries read of it, they read of all of it
        return decision

    def check(self, build: Build) -> None:
        """Refuse what a query would say, and raise what its constants do, before anything is read."""
        decision = self.query(build, self.of([]))
        if decision.query.first:
            execution = self.runner.engine.run(decision.query)
            execution.start()
            execution.close()

    def announced(self, build: Build, emit: Emit) -> tuple[Plan, Iterator[pa.RecordBatch]]:
        """The rows of a query over all files that may matter, after the statement was announced."""
        decision = self.query(build)
        if not self.asks:  # which Spark refuses here
            self.runner.check_size(decision, self.env, self.span)
        return decision, announced_rows(self.word, decision, WRITES[self.word], self.runner, emit)

    def rows(self, build: Build, emit: Emit, part: Snapshot | None = None) -> Iterator[pa.RecordBatch]:
        """What a query over the table, or a part of it, gives."""
        return self.started(self.query(build, part), emit)

    def written(self, build: Build, emit: Emit, part: Snapshot | None = None) -> Iterator[pa.RecordBatch]:
        """What a query gives whose rows go into the table, as `projection` made them."""
        return checked(self.rows(build, emit, part), self.snapshot, self.span, trail(self.snapshot))

    @property
    def tells(self) -> bool:
        """Whether the table's feed is told of changes."""
        return keeps_feed(self.snapshot)

    def feed(self, gone: Mapping[str, Places]) -> Feed | None:
        """What the table's feed is told of: the rows that are no more by the word for it, and those that come."""
        return Feed(self.snapshot, gone) if self.tells else None

    def new(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows that come into the table beside those that it has."""
        return with_trail(rows, self.snapshot, INSERTED)

    def others(self, gone: Mapping[int, Numbers], emit: Emit) -> Iterator[pa.RecordBatch] | None:
        """The other rows of the files that rows leave; None where there are none."""
        part = without_rows(self.marked.snapshot, gone)
        return self.written(unchanged, emit, part) if len(part.files) else None

    def places(self, condition: Condition, emit: Emit, files: Iterable[int]) -> Places:
        """Which rows of some files a condition takes, where the feed is to be told of them."""
        return numbers_of(self.rows(places(condition), emit, self.of(sorted(files)))) if self.tells else {}

    def started(self, decision: Plan, emit: Emit) -> Iterator[pa.RecordBatch]:
        """What a planned query gives."""
        execution = self.runner.engine.run(decision.query)
        execution.start()
        return batches_of(execution, emit)

    def told(self, error: UserError) -> UserError:
        """An overflow on the way into a column as Spark calls it."""
        return overflown(error, self.casts, _OVERFLOW)


def changing(command: c.Delete | c.Update | c.Merge, word: str, env: Environment, runner: Queries) -> Changing:
    """The table of a change, which may be changed. Raises what keeps it from that."""
    table = written_table(command.table, env, word, "no rows can be changed")
    check_changeable(table.snapshot)
    return Changing(word, table, command.alias, command.table.span, env, runner)


def planned(command: c.Delete | c.Update, env: Environment, runner: Queries) -> Plan:
    """How the rows are found that a statement changes. Raises what the statement would, but for what rows say."""
    one = changing(command, "DELETE" if isinstance(command, c.Delete) else "UPDATE", env, runner)
    one.check(kept(command.condition) if isinstance(command, c.Delete) else _updated(command))
    return one.query(matches(command.condition))


# ---- DELETE


def delete(command: c.Delete, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DELETE FROM."""
    one = changing(command, "DELETE", env, runner)
    started = time.monotonic()
    build = matches(command.condition)
    try:
        one.check(kept(command.condition))
        found, partly = _whole(one, command, emit), list[int]()
        if found is None:
            if one.asks or marks_rows(one.snapshot):
                return _deleted_by_place(one, command, started, emit)
            _, rows = one.announced(build, emit)
            found = counts_of(rows)
            partly = partly_left(one.snapshot, found)
        if not found:
            return _answer("DELETE", 0, None)
        clock = Clock(started)
        change = Change(
            "DELETE", {"predicate": _predicate(command.condition, one, ["true"])}, _deleted(sum(found.values()), clock)
        )
        rows = one.written(kept(command.condition), emit, one.of(partly)) if partly else iter(())
        feed = one.feed({DELETE: one.places(command.condition, emit, found)}) if partly else None
        result = replace_files(one.snapshot, sorted(found), rows, change, one.reads, feed)
    except UserError as error:
        raise one.told(error) from None
    return _answer("DELETE", sum(found.values()), result)


def _deleted_by_place(one: Changing, command: c.Delete, started: float, emit: Emit) -> Answer:
    """DELETE of rows that are looked for once; their files stay where the table has deletion vectors."""
    _, rows = one.announced(places(command.condition), emit)
    gone = numbers_of(rows)
    count = sum(map(len, gone.values()))
    if not gone:
        return _answer("DELETE", 0, None)
    parameters = {"predicate": _predicate(command.condition, one, ["true"])}
    change = Change("DELETE", parameters, _deleted(count, Clock(started)))
    if marks_rows(one.snapshot):
        return _answer("DELETE", count, mark_rows(one.snapshot, gone, (), change, one.reads))
    stay = one.others(gone, emit)
    feed = None if stay is None else one.feed({DELETE: gone})
    return _answer("DELETE", count, replace_files(one.snapshot, sorted(gone), stay or (), change, one.reads, feed))


def _whole(one: Changing, command: c.Delete, emit: Emit) -> dict[int, int] | None:
    """All files with their rows, where everything is deleted and the log knows how much that is."""
    live = one.snapshot.files.live_rows
    if command.condition is not None or (live < 0).any():
        return None
    one.reads = [()]
    emit(Planned("DELETE", "gateway", "all files leave the table unread", WRITES["DELETE"], writes=True))
    return {i: int(count) for i, count in enumerate(live)}


def matches(condition: Condition) -> Build:
    """Files and how many rows of each the condition takes."""

    def build(changes: ChangeBinder, target: Target) -> b.Rel:
        found = changes.condition(condition, target.scope)
        rel = b.Filter(target.scan.columns, target.scan, found)
        ids = changes.ids
        columns = (b.Col(BIGINT, False, ids.take(), "file"), b.Col(BIGINT, False, ids.take(), "rows"))
        count = b.Agg(BIGINT, False, "count", (b.lit(1, INT),))
        return b.Aggregate(columns, rel, (target.file,), (count,))

    return build


def places(condition: Condition) -> Build:
    """The file and the number in it of each row that the condition takes."""

    def build(changes: ChangeBinder, target: Target) -> b.Rel:
        found = changes.condition(condition, target.scope)
        rel = b.Filter(target.scan.columns, target.scan, found)
        ids = changes.ids
        columns = (b.Col(BIGINT, False, ids.take(), "file"), b.Col(BIGINT, False, ids.take(), "row"))
        return b.Project(columns, rel, (target.file, target.position))

    return build


def numbers_of(rows: Iterator[pa.RecordBatch]) -> dict[int, Numbers]:
    """What a query of `places` gives: row numbers by file."""
    read = [[np.asarray(x.column(i).to_numpy(zero_copy_only=False), dtype=np.int64) for i in range(2)] for x in rows]
    if not read:
        return {}
    return by_file(np.concatenate([x[0] for x in read]), np.concatenate([x[1] for x in read]))


def by_file(files: Numbers, rows: Numbers) -> dict[int, Numbers]:
    """Row numbers, ascending, by the files that they are numbers in."""
    if not len(files):
        return {}
    order = np.lexsort((rows, files))
    keys, starts = np.unique(files[order], return_index=True)
    return {int(key): part for key, part in zip(keys, np.split(rows[order], starts[1:]), strict=True)}


def kept(condition: Condition) -> Build:
    """The rows that the condition does not take: for which it is false or NULL."""

    def build(changes: ChangeBinder, target: Target) -> b.Rel:
        found = changes.condition(condition, target.scope)
        stays = chosen(b.lit(True, BOOLEAN), (found, b.lit(False, BOOLEAN)))
        rel = b.Filter(target.scan.columns, target.scan, stays)
        return projection(changes, rel, target, target.columns)

    return build


def unchanged(changes: ChangeBinder, target: Target) -> b.Rel:
    """All rows as they are."""
    return projection(changes, target.scan, target, target.columns)


def projection(
    changes: ChangeBinder,
    rel: b.Rel,
    target: Target,
    exprs: Sequence[b.Expr],
    given: Collection[str] | None = None,
    became: b.Expr | None = None,
    comes: bool = False,
) -> b.Rel:
    """The table's columns with other values, what `became` of the row (`comes`: it was not there), whether constraints hold.

    Generated columns are computed anew unless they are among those `given`; None for rows as they were.
    """
    pairs = zip(target.columns, exprs, strict=True)
    columns = tuple(b.Col(old.type, e.nullable, changes.ids.take(), old.name) for old, e in pairs)
    snapshot = target.scan.table.snapshot
    found = b.lit(COPIED, INT) if became is None else became
    place: tuple[b.Expr, ...] = (target.file, target.position)
    if comes:
        place = (b.lit(-1, BIGINT), b.lit(-1, BIGINT))
    more = (found, *place)[: trail(snapshot)]
    columns = (*columns, *(b.Col(e.type, False, changes.ids.take(), f"{CHANGE} {i}") for i, e in enumerate(more)))
    exprs = (*exprs, *more)
    new = b.Project(columns, rel, tuple(exprs))
    whole = new if given is None else recomputed(new, snapshot, given, changes.binder)
    return guarded(whole, snapshot, changes.binder)


def counts_of(rows: Iterator[pa.RecordBatch]) -> dict[int, int]:
    """What a query of `matches` gives: rows by file."""
    return {
        file: count
        for batch in rows
        for file, count in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
    }


# ---- UPDATE


def update(command: c.Update, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """UPDATE … SET."""
    one = changing(command, "UPDATE", env, runner)
    started = time.monotonic()
    build = _updated(command)
    try:
        one.check(build)
        one.check(_updated(replace(command, condition=None)))  # constants fail although no row takes them
        if one.asks or marks_rows(one.snapshot):
            return _updated_by_place(one, command, started, emit)
        _, rows = one.announced(matches(command.condition), emit)
        found = counts_of(rows)
        if not found:
            return _answer("UPDATE", 0, None)
        files = sorted(found)
        change = Change(
            "UPDATE",
            {"predicate": _predicate(command.condition, one)},
            _updated_metrics(sum(found.values()), Clock(started)),
        )
        feed = one.feed({BEFORE: one.places(command.condition, emit, files)})
        result = replace_files(one.snapshot, files, one.written(build, emit, one.of(files)), change, one.reads, feed)
    except UserError as error:
        raise one.told(error) from None
    return _answer("UPDATE", sum(found.values()), result)


def _updated_by_place(one: Changing, command: c.Update, started: float, emit: Emit) -> Answer:
    """UPDATE of rows that are looked for once; their files stay, without them, where the table has deletion vectors."""
    _, rows = one.announced(places(command.condition), emit)
    gone = numbers_of(rows)
    count = sum(map(len, gone.values()))
    if not gone:
        return _answer("UPDATE", 0, None)
    told = _updated_metrics(count, Clock(started))
    parameters = {"predicate": _predicate(command.condition, one)}
    new = one.written(_updated(replace(command, condition=None)), emit, only_rows(one.marked.snapshot, gone))
    feed = one.feed({BEFORE: gone})
    if marks_rows(one.snapshot):
        change = Change("UPDATE", parameters, lambda done: told(with_touched(done, len(gone))))
        return _answer("UPDATE", count, mark_rows(one.snapshot, gone, new, change, one.reads, feed))
    change = Change("UPDATE", parameters, told)
    rows = chain(one.others(gone, emit) or (), new)
    return _answer("UPDATE", count, replace_files(one.snapshot, sorted(gone), rows, change, one.reads, feed))


def _updated(command: c.Update) -> Build:
    """All rows with the new values of those that change."""

    def build(changes: ChangeBinder, target: Target) -> b.Rel:
        schema = target.scan.table.schema
        snapshot = target.scan.table.snapshot
        given = changes.assignments(command.assignments, target.scope, schema)
        check_updated(snapshot, given, command.table.span)
        condition = changes.condition(command.condition, target.scope)
        became = chosen(b.lit(COPIED, INT), (condition, b.lit(UPDATED, INT)))
        exprs: list[b.Expr] = []
        for column, f in zip(target.columns, schema.fields, strict=False):
            new = given.get(f.name)
            if new is None:
                exprs.append(column)
                continue
            value = changes.assigned(new, f, column, target.scope, value_left_out(f, snapshot, changes.binder))
            exprs.append(chosen(column, (condition, value)))
        return projection(changes, target.scan, target, exprs, given, became)

    return build


# ---- what is told


class Clock:
    """How long a statement has looked for rows, and how long it has taken in all."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._scanned = time.monotonic()

    def metrics(self) -> dict[str, int]:
        now = time.monotonic()
        times = {"executionTimeMs": now - self._started, "scanTimeMs": self._scanned - self._started}
        return {k: round(v * 1000) for k, v in (times | {"rewriteTimeMs": now - self._scanned}).items()}


def _files(done: Replaced) -> dict[str, int]:
    return {
        "numRemovedFiles": done.removed_files,
        "numRemovedBytes": done.removed_bytes,
        "numAddedFiles": done.added_files,
        "numAddedBytes": done.added_bytes,
        "numAddedChangeFiles": done.change_files,
        "numDeletionVectorsAdded": done.vectors_added,
        "numDeletionVectorsUpdated": done.vectors_updated,
        "numDeletionVectorsRemoved": done.vectors_removed,
    }


def _deleted(count: int, clock: Clock) -> Callable[[Replaced], dict[str, int]]:
    return lambda done: _files(done) | clock.metrics() | {"numDeletedRows": count, "numCopiedRows": done.added_rows}


def _updated_metrics(count: int, clock: Clock) -> Callable[[Replaced], dict[str, int]]:
    return lambda done: (
        _files(done) | clock.metrics() | {"numUpdatedRows": count, "numCopiedRows": done.added_rows - count}
    )


def _predicate(condition: Condition, one: Changing, nothing: Sequence[str] = ()) -> str:
    """The condition as the history shows it: a list of one text."""
    return json.dumps([shown(condition, one)] if condition is not None else list(nothing), ensure_ascii=False)


def shown(condition: Condition, one: Changing) -> str:
    """A condition as text, its columns by their names."""
    binder = one.binder()
    changes = ChangeBinder(binder, "", one.word)
    target = one.target(changes, one.read_table())
    return binder.names.text(changes.condition(condition, target.scope))


def _answer(word: str, count: int, result: WriteResult | None) -> Answer:
    facts = {} if result is None else {
        "version": result.version, "files_written": result.files, "bytes_written": result.bytes
    }  # fmt: skip
    return rows_of(word, WRITES[word], [[count]], modified_rows=count, announced=True, facts=facts)
