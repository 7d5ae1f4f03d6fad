"""A run as it is seen: by the sentences of its event stream, and by the tables' logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gateway.delta.table import open_snapshot
from gateway.pipelines import columns, events, expectations, history, recover
from gateway.pipelines.definitions import MATERIALIZED_VIEW, STREAMING_TABLE
from gateway.pipelines.expectations import Outcome
from gateway.pipelines.history import Run, TableRun
from gateway.pipelines.prepare import Prepared
from gateway.pipelines.recover import Before
from gateway.pipelines.server import PROGRESS_KEPT
from gateway.pipelines.stream import is_sparks
from gateway.pipelines.warehouse import version, written

Tell = Callable[[str], None]
# What Spark says when a table that exists does not fit the definition any more.
_MISFITS = (
    *("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE", "DELTA_FAILED_TO_MERGE_FIELDS", "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
    "CANNOT_UPDATE_PARTITION_COLUMNS",
)


def unmet_text(table: str, outcome: Outcome) -> str:
    """An expectation that is not met, in words."""
    what = outcome.expectation
    if outcome.error is not None:
        return f"{table}: {what.name} ({what.predicate}) could not be counted: {outcome.error}"
    added = f", {outcome.failing_added} of them added by this run" if outcome.failing_added is not None else ""
    return f"{table}: {outcome.failing} of {outcome.checked} rows fail {what.name} ({what.predicate}){added}"


class Watch:
    """Follows a run by its events and by the tables' logs.

    `before` are the tables that the run empties; `note` is told which of them are still to be filled when that changes.
    """

    def __init__(
        self,
        prepared: Prepared,
        run: Run,
        tell: Tell,
        before: Sequence[Before],
        note: Callable[[Sequence[Before]], None],
    ) -> None:
        self._prepared, self._run, self._tell = prepared, run, tell
        self._before, self._note = {b.table: b for b in before}, note
        self._states: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self.unresolved: list[events.UnresolvedEvent] = []
        self._tables: dict[str, TableRun] = {}
        self._error: str | None = None
        self._finished = ""
        for dataset in prepared.definitions.ordered():
            if dataset.is_table:
                table = TableRun(dataset.label, dataset.kind, version_before=version(prepared.folder(dataset)))
                self._tables[dataset.id] = table
                run.tables.append(table)

    def saw(self, message: str) -> None:
        """Take in a sentence of the event stream."""
        match events.parse(message):
            case events.FlowEvent() as event:
                self._flow(event)
            case events.UnresolvedEvent() as event:
                self.unresolved.append(event)
            case events.RunEvent(state=state, error=error):
                self._finished = state
                if state == history.FAILED and error:
                    self._error = self._error or events.reason(error)

    def _flow(self, event: events.FlowEvent) -> None:
        target = self._prepared.definitions.target(event.flow)
        table = None if target is None else self._tables.get(target.id)
        if table is None or target is None:
            self._tell(f"{event.flow} {event.state}")
            return
        self._states[event.flow] = event.state
        flows = [f.name for f in self._prepared.definitions.flows.values() if f.target == target.id] or [event.flow]
        state = max((self._states.get(f, "QUEUED") for f in flows), key=events.STATES.index)
        if event.state == history.FAILED:
            table.error = self._advised(events.reason(event.error or ""), [table.table])
        elif state == history.COMPLETED:
            table.error = None
        table.started = table.started or (history.now() if event.state == "STARTING" else None)
        table.state = state
        table.ended = history.now() if state in events.FINAL else None
        if state == history.COMPLETED and table.kind == MATERIALIZED_VIEW and table.table in self._before:
            del self._before[table.table]
            self._note(list(self._before.values()))  # a view that is filled with no rows leaves no commit that says so
        name = table.table if len(flows) == 1 else f"{table.table} ({event.flow.rpartition('.')[2]})"
        line = f"{name} {event.state}" + (f": {table.error}" if event.state == history.FAILED else "")
        if event.state != "QUEUED" and line != self._told.get(event.flow):  # Spark tells failures twice
            self._told[event.flow] = line
            self._tell(line)

    def failed(self, reason: str) -> None:
        """The run has failed, for `reason` if neither a table nor the run said why before."""
        self._run.state = history.FAILED
        self._run.message = self._failures() or self._advised(self._error or reason, list(self._misfits()))

    def died(self, how: str) -> None:
        """Spark itself has ended."""
        self._run.state, self._run.message = history.FAILED, how

    def _failures(self) -> str:
        return "; ".join(f"{t.table}: {t.error}" for t in self._run.tables if t.state == history.FAILED)

    def _advised(self, reason: str, tables: Sequence[str]) -> str:
        if not any(m in reason for m in _MISFITS):
            return reason
        names = tables or ["TABLE"]  # of what others' servers define, columns are not known
        flags = " ".join(f"--full-refresh {name}" for name in names)
        return f"{reason} {' and '.join(names)} as written before does not fit its definition now: compute it anew with {flags}"

    def _misfits(self) -> Iterator[str]:
        """Tables that have changed in a way that only computing them anew follows."""
        for id_, table in self._tables.items():
            dataset = self._prepared.definitions.datasets[id_]
            if dataset.columns is None or table.version_before is None:
                continue
            if columns.changed(dataset, open_snapshot(str(self._prepared.folder(dataset)), table.version_before)):
                yield table.table

    def count_rows(self) -> None:
        """Rows that streams have read, from Spark's own progress."""
        if self._prepared.graph is None:
            return
        try:
            read = self._prepared.graph.rows_read()
        except Exception as error:
            if not is_sparks(error):
                raise
            self._tell(f"warning: the rows that streams have read are not known: {events.reason(str(error))}")
            return
        unknown: list[TableRun] = []
        for flow, rows in read.items():
            target = self._prepared.definitions.target(flow)
            table = None if target is None else self._tables.get(target.id)
            if table is None:
                continue
            if rows is None:
                self._tell(
                    f"warning: {table.table}: the rows in are not known: too many micro-batches ({PROGRESS_KEPT})"
                )
                unknown.append(table)
            else:
                table.rows_in = (table.rows_in or 0) + rows
        for table in unknown:
            table.rows_in = None

    def check_expectations(self) -> None:
        """Count what the completed tables' new versions do not fulfil."""
        for id_, table in self._tables.items():
            wanted = self._prepared.expectations.get(id_, ())
            dataset = self._prepared.definitions.datasets[id_]
            after = version(self._prepared.folder(dataset))
            if table.state != history.COMPLETED or after is None or not wanted:
                continue
            # Each run replaces a view's rows, also when there were none before.
            replaced = written(self._prepared.folder(dataset), table.version_before, after).removed
            appended = dataset.kind == STREAMING_TABLE and not replaced
            session = self._prepared.server.session
            table.outcomes = expectations.count(session, dataset, wanted, table.version_before, after, appended)

    def end(self) -> None:
        """Spark is gone: give back what was emptied, tell versions and rows, and close the run."""
        completed = {table.table for table in self._tables.values() if table.state == history.COMPLETED}
        for before in self._before.values():
            said = None if before.table in completed else recover.give_back(before)
            recover.forget(before)
            if said is not None:
                self._tell(said)
        for id_, table in self._tables.items():
            folder = self._prepared.folder(self._prepared.definitions.datasets[id_])
            table.version_after = version(folder)
            if table.version_after is not None:
                table.rows_out = written(folder, table.version_before, table.version_after).rows
        if self._run.state == "RUNNING":
            self._close()
        self._run.ended = history.now()

    def _close(self) -> None:
        unmet = [(t, o) for t in self._run.tables for o in t.outcomes if o.fails_run]
        failures = self._failures()
        if failures or self._finished != history.COMPLETED:
            self._run.state = history.FAILED
            self._run.message = failures or f"the run ended as {self._finished or 'nothing known'}"
        elif unmet:
            self._run.state = history.UNMET
            self._run.message = "; ".join(unmet_text(t.table, o) for t, o in unmet)
        else:
            self._run.state = history.COMPLETED
