"""INSERT … REPLACE ON and USING: the rows of a query take the place of those paired with any of them, in one commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from gateway.delta.feed import DELETE
from gateway.delta.marking import mark_rows
from gateway.delta.rewrite import Change, Replaced, check_changeable, replace_files
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import UserError, unsupported
from gateway.planner import Plan, plan
from gateway.runner.answer import Answer, rows_of
from gateway.runner.commands.changes import Changing, by_file
from gateway.runner.commands.constraints import checked, guarded_query
from gateway.runner.commands.identities import numbering
from gateway.runner.commands.merges import Found, Merging
from gateway.runner.commands.overwrites import Counted
from gateway.runner.commands.tables import aligned
from gateway.runner.commands.targets import quoted, written_table
from gateway.runner.environment import Environment, Queries
from gateway.runner.written import INSERTED
from gateway.sql.bind.changes import ChangeBinder
from gateway.sql.bind.scope import Scope
from gateway.sql.compile import compile_query, queried
from gateway.sql.read import command_nodes as c
from gateway.sql.typed import nodes as b
from gateway.sql.typed.assignment import Assigned, overflown


@dataclass(slots=True)
class Replacing:
    """One statement: a MERGE that deletes what has a partner, beside which all rows of the source are written."""

    command: c.ReplaceOn
    merging: Merging

    @property
    def change(self) -> Changing:
        return self.merging.change

    def written(self) -> tuple[Plan, list[Assigned]]:
        """How the source's rows become rows of the table. Raises what INSERT raises for columns that do not fit."""
        one, table = self.merging, self.change.table
        binder = self.change.binder()
        held = ChangeBinder(binder, quoted(table), "INSERT").held(one.held, one.like, False)
        columns = held.source.columns
        given = queried(b.Project(columns, held.scan, columns), binder)
        insert = c.Insert(
            self.command.table, c.Query(self.command.source, self.command.span, ""), by_name=self.command.by_name
        )
        found, casts, names = aligned(insert, table, given, binder, {})
        if numbering(table.snapshot, [names], self.command.span) is not None:
            raise unsupported("INSERT … REPLACE ON without the identity column", self.command.span)
        guarded = guarded_query(found, table.snapshot, binder)
        return plan(compile_query(guarded, self.change.env.context)), casts

    def check_using(self) -> None:
        """Refuse columns of USING that the query has in other places: one of name and place would have to be taken."""
        if self.command.by_name:
            return
        given = [column.name.lower() for column in self.merging.like.columns]
        names = [f.name.lower() for f in self.change.table.schema.fields]
        for name in self.command.using:
            wanted = name.parts[-1].lower()
            if wanted in names and wanted in given and given.index(wanted) != names.index(wanted):
                raise unsupported(f"REPLACE USING with the column {name} in another place of the query", name.span)

    def shown(self) -> str:
        """The condition as the history shows it."""
        one, binder = self.merging, self.change.binder()
        changes = ChangeBinder(binder, "", "INSERT")
        target = changes.target(self.change.read_table(), self.command.alias)
        scope = Scope([*target.scope.sources, changes.held(one.held, one.like, False).source])
        return binder.names.text(changes.condition(self.command.condition, scope))


def _replacing(command: c.ReplaceOn, env: Environment, runner: Queries) -> tuple[Replacing, Plan]:
    """The statement and how its source is read. Raises what it would, but for what rows say."""
    table = written_table(command.table, env, "INSERT", "no rows can be inserted")
    check_changeable(table.snapshot)
    change = Changing("INSERT", table, command.alias, command.table.span, env, runner)
    gone = c.MergeClause(c.MATCHED, "delete", None, (), command.span)
    merge = c.Merge(command.table, command.alias, command.source, command.condition, (gone,))
    one = Replacing(command, Merging(merge, change))
    source = one.merging.source_plan()
    one.check_using()
    one.merging.check()
    one.written()
    return one, source


def planned(command: c.ReplaceOn, env: Environment, runner: Queries) -> Plan:
    """How the rows are found that others take the place of."""
    one, _ = _replacing(command, env, runner)
    return one.change.query(one.merging.pairs)


def replace_on(command: c.ReplaceOn, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """INSERT INTO … REPLACE ON."""
    one, source = _replacing(command, env, runner)
    runner.check_size(source, env, command.table.span)
    one.merging.hold(source, emit)
    change = one.change
    pairs = change.query(one.merging.pairs)
    runner.check_size(pairs, env, command.table.span)
    rows, casts = one.written()
    if one.merging.reads_target:
        change.reads.append(())
    emit(Planned("INSERT", pairs.engine, pairs.reason, INSERTED, writes=True))
    try:
        found = Found.of(change.started(pairs, emit)).distinct()
        inserted = Counted(change.new(checked(change.started(rows, emit), change.snapshot, change.span)))
        touched = np.unique(found.file).tolist()
        rewrites = touched and not one.merging.marks  # else rows leave their files by deletion vectors
        kept = Counted(change.written(one.merging.rewritten, emit, change.of(touched)) if rewrites else iter(()))
        return _committed(one, inserted, kept, found)
    except UserError as error:
        raise overflown(error, casts) from None


def _committed(one: Replacing, inserted: Counted, kept: Counted, found: Found) -> Answer:
    deleted, touched = len(found.file), np.unique(found.file).tolist()
    batches: Iterator[pa.RecordBatch] = chain(inserted, kept)
    head = next(batches, None)
    facts: dict[str, int] = {}
    if head is not None or touched:

        def metrics(done: Replaced) -> dict[str, int]:
            return done.metrics() | {"numDeletedRows": deleted, "numCopiedRows": kept.rows}

        told = Change("WRITE", {"mode": "Overwrite", "partitionBy": "[]", "predicate": one.shown()}, metrics)
        snapshot, reads = one.change.snapshot, one.change.reads
        new = chain([] if head is None else [head], batches)
        gone = by_file(found.file, found.row)
        feed = one.change.feed({DELETE: gone}) if touched else None
        if one.merging.marks:
            result = mark_rows(snapshot, gone, new, told, reads, feed)
        else:
            result = replace_files(snapshot, touched, new, told, reads, feed)
        facts = {"version": result.version, "files_written": result.files, "bytes_written": result.bytes}
    count = inserted.rows
    return rows_of("INSERT", INSERTED, [[count], [count]], modified_rows=count, announced=True, facts=facts)
