"""MERGE: the source is read once and held; its pairs with rows of the target say which files are written anew."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.delta.commit import Action
from gateway.delta.feed import BEFORE, COPIED, DELETE, INSERTED, UPDATED, Places
from gateway.delta.held import HeldTable
from gateway.delta.identity import Numbering
from gateway.delta.marking import mark_rows, marks_rows
from gateway.delta.rewrite import Change, Replaced, replace_files
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import UserError, unsupported
from gateway.planner import Plan, plan
from gateway.runner.answer import Answer, rows_of
from gateway.runner.commands.changes import Changing, Clock, by_file, changing, projection
from gateway.runner.commands.evolution import brought, told, with_columns
from gateway.runner.commands.generated import given_by_all, value_left_out
from gateway.runner.commands.identities import check_updated, numbering
from gateway.runner.commands.targets import computed
from gateway.runner.environment import Environment, Queries
from gateway.runner.written import WRITES
from gateway.sql.bind.changes import ChangeBinder, Held, Place, Target, chosen
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.compile import compile_query, queried
from gateway.sql.read import command_nodes as c
from gateway.sql.typed import nodes as b
from gateway.sqltypes import BIGINT, BOOLEAN, INT, StructField, StructType, struct

_MOST_HELD = 256 << 20  # bytes of a source
Integers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Merging:
    """One MERGE: its clauses by kind, and its source's rows once they are held."""

    command: c.Merge
    change: Changing
    held: HeldTable = field(init=False)
    like: Source = field(init=False)
    reads_target: bool = False
    numbers: Numbering | None = None  # of new rows, once it is known which columns they are given

    def clauses(self, kind: str) -> list[c.MergeClause]:
        return [clause for clause in self.command.clauses if clause.kind == kind]

    @property
    def changes_rows(self) -> bool:
        """Whether rows of the target may change, rather than others come to them."""
        return any(clause.kind != c.NOT_MATCHED for clause in self.command.clauses)

    @property
    def marks(self) -> bool:
        """Whether rows leave their files by deletion vectors."""
        return marks_rows(self.change.snapshot)

    @property
    def may_match_twice(self) -> bool:
        """Whether several rows of the source may match one of the target: where all of them delete it."""
        matched = self.clauses(c.MATCHED)
        return len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None

    def also(self) -> list[Action]:
        """What the commit says beside files."""
        return told(self.change.metadata, self.numbers)

    # ---- the source

    def source_plan(self) -> Plan:
        """How the source is read; from then on its columns are known, and it is held as if it had no rows."""
        env, one = self.change.env, self.change
        binder = one.binder()
        changes = ChangeBinder(binder, "", "MERGE")
        rel, self.like = changes.source(self.command.source)
        columns = tuple(self.like.columns)
        if self.command.evolves:
            self._evolve()
        decision = plan(compile_query(queried(b.Project(columns, rel, columns), binder), env.context))
        # A table that is read as its own source is read as a whole.
        self.reads_target = decision.reads_of(one.table.location)
        self.held = self._holding([])
        return decision

    def _evolve(self) -> None:
        """The columns of the source that the table gets: all of them where a clause says ``*``, else those that are given."""
        clauses = [clause for clause in self.command.clauses if clause.kind != c.NOT_MATCHED_BY_SOURCE]
        names = {x.column.parts[-1].lower() for clause in clauses for x in clause.assignments or ()}
        for clause in clauses:
            if clause.assignments is None:
                names |= {x.name.lower() for x in self.like.columns} - _left_out(clause)
        columns = [StructField(x.name, x.type) for x in self.like.columns if x.name.lower() in names]
        table, span = self.change.table, self.change.span
        self.change.evolve(*with_columns(table, brought(table, columns, span), span))

    def hold(self, decision: Plan, emit: Emit) -> None:
        """Read the source."""
        execution = self.change.runner.engine.run(decision.query)
        execution.start()
        batches, size = [], 0
        for batch in computed(execution, emit):
            batches.append(batch)
            size += batch.nbytes
            if size > _MOST_HELD:
                raise unsupported(f"MERGE from a source of more than {_MOST_HELD >> 20} MiB", self.change.span)
        self.held = self._holding(batches)

    def _holding(self, batches: Sequence[pa.RecordBatch]) -> HeldTable:
        columns = self.like.columns
        fields = [StructField(f"c{i}", column.type, column.nullable) for i, column in enumerate(columns)]
        schema = pa.schema([pa.field(f.name, f.type.arrow()) for f in fields])
        rows = pa.Table.from_batches([pa.record_batch(x.columns, schema=schema) for x in batches], schema)
        there = pa.array(np.ones(rows.num_rows, dtype=bool))
        whole = struct(*fields, StructField("there", BOOLEAN, False))
        return HeldTable("source", whole, rows.append_column(pa.field("there", pa.bool_()), there))

    # ---- queries

    def check(self) -> None:
        """Refuse what a query of the statement would say, and raise what its constants do, before anything is read."""
        if self.changes_rows:
            self.change.check(self.pairs)
            self.change.check(self.rewritten)
        if self.clauses(c.NOT_MATCHED_BY_SOURCE):
            self.change.check(self.lonely)
        if self.clauses(c.NOT_MATCHED):
            self.change.check(self.inserted)
        if any(clause.action != "delete" for clause in self.command.clauses):
            self.change.check(self.constants)

    def pairs(self, changes: ChangeBinder, target: Target) -> b.Rel:
        """Where each row of the target is that has a partner, and which clause takes the two."""
        held = changes.held(self.held, self.like, False)
        on = changes.condition(self.command.condition, _both(target, held), "JOIN")
        joined = b.Join((*target.scan.columns, *held.scan.columns), "inner", target.scan, held.scan, on)
        action = self._action(changes, c.MATCHED, _both(target, held))
        return self._places(changes, target, joined, action)

    def lonely(self, changes: ChangeBinder, target: Target) -> b.Rel:
        """Where each row of the target is that has no partner, and which clause takes it."""
        held = changes.held(self.held, self.like, False)
        on = changes.condition(self.command.condition, _both(target, held), "JOIN")
        alone = b.Join(target.scan.columns, "anti", target.scan, held.scan, on)
        return self._places(changes, target, alone, self._action(changes, c.NOT_MATCHED_BY_SOURCE, target.scope))

    def rewritten(self, changes: ChangeBinder, target: Target) -> b.Rel:
        """What becomes of the target's rows."""
        held = changes.held(self.held, self.like, True)
        both = _both(target, held)
        on = changes.condition(self.command.condition, both, "JOIN")
        joined = b.Join((*target.scan.columns, *held.scan.columns), "left", target.scan, held.scan, on)
        matched = self._action(changes, c.MATCHED, both)
        numbered = list(enumerate(self.command.clauses, 1))
        updates = [(number, clause) for number, clause in numbered if clause.action == "update"]
        gone = [number for number, clause in numbered if clause.action == "delete"]
        rel: b.Rel = joined
        takes: Callable[[int], b.Expr]
        if isinstance(matched, b.Lit) and not gone and not self.clauses(c.NOT_MATCHED_BY_SOURCE):
            # One clause takes all: a step that tells which would take an engine as long as the rest does.
            takes = partial(_if, held.there, matched)
            if self.marks:
                rel = b.Filter(joined.columns, joined, held.there)
        else:
            alone = self._action(changes, c.NOT_MATCHED_BY_SOURCE, target.scope)
            taken = b.Col(INT, False, changes.ids.take(), "action")
            takes = partial(_is, taken)
            columns = (*joined.columns, taken)
            action = b.Case(INT, False, ((held.there, matched),), alone)
            rel = b.Project(columns, joined, (*joined.columns, action))
            if gone:
                stays = chosen(b.lit(True, BOOLEAN), *((takes(one), b.lit(False, BOOLEAN)) for one in gone))
                rel = b.Filter(columns, rel, stays)
            if self.marks:  # rows that stay as they are stay where they are
                rel = b.Filter(columns, rel, b.Call(BOOLEAN, False, ">", (taken, b.lit(0, INT))))
        scopes = {c.MATCHED: both, c.NOT_MATCHED_BY_SOURCE: target.scope}
        values = {n: self._values(changes, clause, target, scopes[clause.kind], held) for n, clause in updates}
        exprs = [
            chosen(column, *((takes(n), values[n][f.name]) for n, _ in updates if f.name in values[n]))
            for column, f in zip(target.columns, self._schema(target).fields, strict=True)
        ]
        for n, clause in updates:
            check_updated(self.change.snapshot, values[n], clause.span)
        given = given_by_all(self.change.snapshot, [values[n] for n, _ in updates], self.change.span)
        became = chosen(b.lit(COPIED, INT), *((takes(n), b.lit(UPDATED, INT)) for n, _ in updates))
        return projection(changes, rel, target, exprs, given, became)

    def inserted(self, changes: ChangeBinder, target: Target) -> b.Rel:
        """The source's rows without a partner, as rows of the target."""
        held = changes.held(self.held, self.like, False)
        on = changes.condition(self.command.condition, _both(target, held), "JOIN")
        rel: b.Rel = b.Join(held.scan.columns, "anti", held.scan, target.scan, on)
        scope = Scope([held.source])
        taken = b.Col(INT, False, changes.ids.take(), "action")
        columns = (*rel.columns, taken)
        rel = b.Project(columns, rel, (*rel.columns, self._action(changes, c.NOT_MATCHED, scope)))
        rel = b.Filter(columns, rel, b.Call(BOOLEAN, False, ">", (taken, b.lit(0, INT))))
        values = [
            (number, self._values(changes, clause, target, scope, held))
            for number, clause in enumerate(self.command.clauses, 1)
            if clause.kind == c.NOT_MATCHED
        ]
        exprs = []
        for f in self._schema(target).fields:
            absent = value_left_out(f, self.change.snapshot, changes.binder)
            given = [(number, of.get(f.name, absent)) for number, of in values]
            *others, (_, last) = given
            exprs.append(chosen(last, *((_is(taken, number), value) for number, value in others)))
        clauses = [of for _, of in values]
        self.numbers = numbering(self.change.snapshot, clauses, self.change.span)
        told = given_by_all(self.change.snapshot, clauses, self.change.span)
        return projection(changes, rel, target, exprs, told, b.lit(INSERTED, INT), True)

    def _schema(self, target: Target) -> StructType:
        return struct(*target.scan.table.schema.fields[: len(target.columns)])

    def _action(self, changes: ChangeBinder, kind: str, scope: Scope) -> b.Expr:
        """The number of the first clause of a kind that takes a row; 0 for none."""
        choices = [
            (changes.condition(clause.condition, scope), b.lit(number, INT))
            for number, clause in enumerate(self.command.clauses, 1)
            if clause.kind == kind
        ]
        return chosen(b.lit(0, INT), *choices)

    @staticmethod
    def _places(changes: ChangeBinder, target: Target, rel: b.Rel, action: b.Expr) -> b.Rel:
        ids = changes.ids
        types = (BIGINT, BIGINT, INT)
        columns = tuple(b.Col(t, False, ids.take(), n) for t, n in zip(types, ("file", "row", "action"), strict=True))
        return b.Project(columns, rel, (target.file, target.position, action))

    def constants(self, changes: ChangeBinder, target: Target) -> b.Rel:
        """Every value that a clause gives, of any row: those that are constant fail although no row takes them."""
        held = changes.held(self.held, self.like, True)
        both = _both(target, held)
        joined = b.Join((*target.scan.columns, *held.scan.columns), "cross", target.scan, held.scan, None)
        scopes = {c.MATCHED: both, c.NOT_MATCHED: Scope([held.source]), c.NOT_MATCHED_BY_SOURCE: target.scope}
        exprs: list[b.Expr] = []
        for clause in self.command.clauses:
            exprs += self._values(changes, clause, target, scopes[clause.kind], held).values()
        columns = tuple(b.Col(e.type, e.nullable, changes.ids.take(), "value") for e in exprs)
        return b.Project(columns, joined, tuple(exprs))

    def _values(
        self, changes: ChangeBinder, clause: c.MergeClause, target: Target, scope: Scope, held: Held
    ) -> dict[str, b.Expr]:
        """The values that an UPDATE or INSERT gives, by the target's columns."""
        schema = self._schema(target)
        changes.evolves = self.command.evolves
        if clause.action == "delete":
            return {}
        if clause.assignments is None:
            named = Scope([held.source])
            there = {column.name.lower() for column in held.source.columns} if self.command.evolves else None
            known = {f.name.lower() for f in schema.fields} | (there or set())
            for name in clause.left_out:
                if name.parts[0].lower() not in known:
                    raise target.scope.missing(name.parts, name.span)
            left_out = _left_out(clause)
            fields = [
                f
                for f in schema.fields
                if (there is None or f.name.lower() in there) and f.name.lower() not in left_out
            ]
            return {f.name: changes.stored(_named(changes, named, f, clause), f, clause.span) for f in fields}
        given = changes.clause(
            partial(changes.assignments, clause.assignments, target.assigned_to, schema, clause.action)
        )
        by_name = {f.name: f for f in schema.fields}
        before = {f.name: column for f, column in zip(schema.fields, target.columns, strict=True)}

        def value(name: str, places: Sequence[Place]) -> b.Expr:
            default = value_left_out(by_name[name], self.change.snapshot, changes.binder)
            return changes.assigned(places, by_name[name], before[name], scope, default)

        return {name: changes.clause(partial(value, name, places)) for name, places in given.items()}


def _left_out(clause: c.MergeClause) -> set[str]:
    return {name.parts[0].lower() for name in clause.left_out}


def _named(changes: ChangeBinder, scope: Scope, column: StructField, clause: c.MergeClause) -> b.Expr:
    """The source's column that ``*`` means for one of the target's."""

    def found() -> b.Expr:
        one = scope.local((column.name,), clause.span)
        if one is None:
            raise scope.missing((column.name,), clause.span)
        return one

    return changes.clause(found)


def _both(target: Target, held: Held) -> Scope:
    return Scope([*target.scope.sources, held.source])


def _if(there: b.Expr, matched: b.Lit, number: int) -> b.Expr:
    """Whether a clause takes a row, where that with the number `matched` takes all that have a partner."""
    return there if matched.value == number else b.lit(False, BOOLEAN)


def _is(action: b.Expr, number: int) -> b.Expr:
    return b.Call(BOOLEAN, False, "=", (action, b.lit(number, INT)))


@dataclass(slots=True)
class Found:
    """Which rows of the target change: their files, their numbers in them, and the numbers of the clauses."""

    file: Integers
    row: Integers
    action: Integers

    @staticmethod
    def of(batches: Iterator[pa.RecordBatch]) -> Found:
        read = list(batches)

        def column(at: int) -> Integers:
            parts = [np.asarray(x.column(at).to_numpy(zero_copy_only=False), dtype=np.int64) for x in read]
            return np.concatenate(parts) if parts else np.zeros(0, np.int64)

        return Found(column(0), column(1), column(2))

    def distinct(self) -> Found:
        """Each row of the target once."""
        places = np.stack([self.file, self.row], axis=1)
        _, first = np.unique(places, axis=0, return_index=True)
        return Found(self.file[first], self.row[first], self.action[first])

    def count(self, numbers: Sequence[int]) -> int:
        """Rows that some clauses take."""
        return int(np.isin(self.action, np.asarray(numbers, dtype=np.int64)).sum())


def planned(command: c.Merge, env: Environment, runner: Queries) -> Plan:
    """How the pairs are found that decide. Raises what the statement would, but for what rows say."""
    one = Merging(command, changing(command, "MERGE", env, runner))
    one.source_plan()
    one.check()
    return one.change.query(one.pairs if one.changes_rows else one.inserted)


def merge(command: c.Merge, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """MERGE INTO."""
    one = Merging(command, changing(command, "MERGE", env, runner))
    started = time.monotonic()
    try:
        source = one.source_plan()
        one.check()
        runner.check_size(source, env, command.table.span)
        one.hold(source, emit)
        return _merged(one, started, emit)
    except UserError as error:
        raise one.change.told(error) from None


def _merged(one: Merging, started: float, emit: Emit) -> Answer:
    change = one.change
    first = change.query(one.pairs if one.changes_rows else one.inserted)
    change.runner.check_size(first, change.env, change.span)
    if one.reads_target:
        change.reads.append(())
    emit(Planned("MERGE", first.engine, first.reason, WRITES["MERGE"], writes=True))
    found = Found.of(iter(()))
    if one.changes_rows:
        found = _changed(one, first, emit)
    touched = np.unique(found.file[found.action > 0]).tolist()
    clock = Clock(started)
    counts = _Counts(one, found)
    rows = [change.written(one.rewritten, emit, change.of(touched))] if touched else []
    if one.clauses(c.NOT_MATCHED):
        new = change.written(one.inserted, emit)
        rows.append(counts.counted(new if one.numbers is None else one.numbers.filled(new)))
    batches = chain.from_iterable(rows)
    head = next(batches, None)
    if head is None and not touched and change.metadata is None:
        return counts.answer({})
    metrics = counts.metrics(clock, one.held.num_rows)
    told = Change("MERGE", _parameters(one), metrics, one.also, change.snapshot.columns)
    new = chain([head] if head is not None else [], batches)
    feed = change.feed(_gone(one, found)) if touched else None
    if one.marks:
        taken = found.action > 0
        gone = by_file(found.file[taken], found.row[taken])
        result = mark_rows(change.base, gone, new, told, change.reads, feed)
    else:
        result = replace_files(change.base, touched, new, told, change.reads, feed)
    return counts.answer({"version": result.version, "files_written": result.files, "bytes_written": result.bytes})


def _changed(one: Merging, pairs: Plan, emit: Emit) -> Found:
    """The rows of the target that have a partner, or a clause for having none. Raises for one with two partners."""
    change = one.change
    found = Found.of(change.started(pairs, emit))
    distinct = found.distinct()
    if len(distinct.file) < len(found.file) and not one.may_match_twice:
        text = (
            "Cannot perform Merge as multiple source rows matched and attempted to modify the same target row in the Delta "
            "table in possibly conflicting ways."
        )
        raise UserError("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", text, span=change.span)
    if not one.clauses(c.NOT_MATCHED_BY_SOURCE):
        return distinct
    alone = Found.of(change.rows(one.lonely, emit))
    both = (
        np.concatenate(x)
        for x in ((distinct.file, alone.file), (distinct.row, alone.row), (distinct.action, alone.action))
    )
    return Found(*both)


def _gone(one: Merging, found: Found) -> dict[str, Places]:
    """The rows that change, by what the feed calls them."""
    gone: dict[str, Places] = {}
    for word, action in ((BEFORE, "update"), (DELETE, "delete")):
        numbers = [n for n, clause in enumerate(one.command.clauses, 1) if clause.action == action]
        taken = np.isin(found.action, np.asarray(numbers, dtype=np.int64))
        gone[word] = by_file(found.file[taken], found.row[taken])
    return gone


class _Counts:
    """How many rows each kind of clause has taken."""

    def __init__(self, one: Merging, found: Found) -> None:
        def of(kind: str, action: str) -> int:
            wanted = [n for n, x in enumerate(one.command.clauses, 1) if (x.kind, x.action) == (kind, action)]
            return found.count(wanted)

        self.updated = of(c.MATCHED, "update")
        self.deleted = of(c.MATCHED, "delete")
        self.lonely_updated = of(c.NOT_MATCHED_BY_SOURCE, "update")
        self.lonely_deleted = of(c.NOT_MATCHED_BY_SOURCE, "delete")
        self.inserted = 0

    def counted(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows on their way into the table."""
        for batch in rows:
            self.inserted += batch.num_rows
            yield batch

    def answer(self, facts: dict[str, int]) -> Answer:
        """What the statement answers."""
        updated, deleted = self.updated + self.lonely_updated, self.deleted + self.lonely_deleted
        affected = updated + deleted + self.inserted
        counts = [[affected], [updated], [deleted], [self.inserted]]
        return rows_of("MERGE", WRITES["MERGE"], counts, modified_rows=affected, announced=True, facts=facts)

    def metrics(self, clock: Clock, source_rows: int) -> Callable[[Replaced], dict[str, int]]:
        """What the commit tells, once it is known what became of the files."""

        def told(done: Replaced) -> dict[str, int]:
            updated, deleted = self.updated + self.lonely_updated, self.deleted + self.lonely_deleted
            return {
                "numSourceRows": source_rows,
                "numTargetRowsInserted": self.inserted,
                "numTargetRowsUpdated": updated,
                "numTargetRowsMatchedUpdated": self.updated,
                "numTargetRowsNotMatchedBySourceUpdated": self.lonely_updated,
                "numTargetRowsDeleted": deleted,
                "numTargetRowsMatchedDeleted": self.deleted,
                "numTargetRowsNotMatchedBySourceDeleted": self.lonely_deleted,
                "numTargetRowsCopied": done.added_rows - updated - self.inserted,
                "numOutputRows": done.added_rows,
                "numTargetFilesAdded": done.added_files,
                "numTargetFilesRemoved": done.removed_files,
                "numTargetBytesAdded": done.added_bytes,
                "numTargetBytesRemoved": done.removed_bytes,
                "numTargetChangeFilesAdded": done.change_files,
                "numTargetDeletionVectorsAdded": done.vectors_added,
                "numTargetDeletionVectorsUpdated": done.vectors_updated,
                "numTargetDeletionVectorsRemoved": done.vectors_removed,
            } | clock.metrics()

        return told


def _parameters(one: Merging) -> dict[str, str]:
    """The condition and the clauses as the history shows them."""
    binder = one.change.binder()
    changes = ChangeBinder(binder, "", "MERGE")
    target = one.change.target(changes, one.change.read_table())
    held = changes.held(one.held, one.like, False)
    both = _both(target, held)
    scopes = {c.MATCHED: both, c.NOT_MATCHED: Scope([held.source]), c.NOT_MATCHED_BY_SOURCE: target.scope}

    def clause(of: c.MergeClause) -> dict[str, str]:
        condition = of.condition
        shown = (
            {} if condition is None else {"predicate": binder.names.text(changes.condition(condition, scopes[of.kind]))}
        )
        return shown | {"actionType": of.action}

    names = {
        "matchedPredicates": c.MATCHED,
        "notMatchedPredicates": c.NOT_MATCHED,
        "notMatchedBySourcePredicates": c.NOT_MATCHED_BY_SOURCE,
    }
    shown = [binder.names.text(changes.condition(one.command.condition, both, "JOIN"))]
    return {"predicate": json.dumps(shown, ensure_ascii=False)} | {
        name: json.dumps([clause(x) for x in one.clauses(kind)], separators=(",", ":"), ensure_ascii=False)
        for name, kind in names.items()
    }
