"""The handler of the process that owns Spark: statements that the embedded engine handed over, side by side.

The user's own text goes to Spark; only names of tables and parameter markers are respelt (`sql.spark.respell`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gateway.catalog.base import Catalog
from gateway.catalog.objects import StoredTable
from gateway.config.session import keeps_nanoseconds
from gateway.engine import spill
from gateway.engine.base import (
    Emit,
    Finished,
    Handler,
    Job,
    Planned,
    Statement,
    Writing,
)
from gateway.engine.spark.engine import SparkEngine, SparkOptions, SparkSessionSlot, cancelled
from gateway.engine.spark.errors import as_gateway_error
from gateway.engine.spark.parsed import changes_something
from gateway.errors import GatewayError, UserError, disk_full, free_space, is_disk_full, unsupported
from gateway.runner.answer import RESULT
from gateway.runner.catalogs import open_catalogs
from gateway.runner.context import context_of
from gateway.runner.spark import functions, tables, temporaries, views
from gateway.runner.spark.names import Names
from gateway.runner.spark.prepared import Preparation
from gateway.runner.spark.results import batches, finish, readable_schema, renamed
from gateway.runner.spark.sent import sent
from gateway.runner.spark.settings import session_key, settings_of
from gateway.runner.spark.writes import finish_insert, finish_write, marked
from gateway.runner.written import INSERTED, WRITES
from gateway.sql.bind.parameters import bound_parameters
from gateway.sql.read.identifiers import identified
from gateway.sql.read.made_view import function_of, view_of
from gateway.sql.read.reading import check_reads
from gateway.sql.read.statement import Kind, read_statement, verb_of
from gateway.sql.read.statement import Statement as Read
from gateway.sql.spark.made_table import table_format
from gateway.sql.spark.respell import Respelt

_FILES_BY_PATH = "spark.sql.runSQLOnFiles"
# Columns of DESCRIBE in which Spark tells names as it knows them.
_NAMES = {"FUNCTION": "function_desc", "DETAIL": "name"}
_NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_ROUTINE")

# What runs on a session once a statement is respelt.
Work = Callable[[SparkSessionSlot, Emit], None]


class SparkRunner(Handler):
    """Runs statements on Spark.

    Args:
        warehouse, samples, allow_paths: as for `runner.make_runner`.
        options: how Spark is started; its `scratch` is a folder that is swept and of which this process takes a part.
    """

    def __init__(self, warehouse: str, samples: str, allow_paths: Sequence[str], options: SparkOptions) -> None:
        self._warehouse = warehouse
        self._samples = samples
        self._allow = tuple(allow_paths)
        self._options = options
        self.catalogs: dict[str, Catalog] = {}

    def warm_up(self) -> None:
        """Open the catalogs and start Spark."""
        self.catalogs, self.paths = open_catalogs(self._warehouse, self._samples, self._allow)
        base = str(self._options.scratch)
        spill.sweep(base)
        self._scratch = Path(spill.claim(base))
        options = self._options
        self.engine = SparkEngine(
            SparkOptions(options.master, options.jars, self._scratch, options.memory, options.extra)
        )
        self.engine.start()
        self.names = Names(self.catalogs, self.paths, tells_user=not self.engine.is_connect)
        self.prepared = Preparation(self.engine, self.names)

    def run(self, job: Job, emit: Emit) -> None:
        """Run one statement; see `engine.base.Handler`. Safe from many threads."""
        if not isinstance(job, Statement):
            raise TypeError(f"{type(job).__name__} is not for Spark")
        with identified(job) as named:
            self._statement(named, emit)

    def _statement(self, job: Statement, emit: Emit) -> None:
        statement = read_statement(job.text)
        if job.read_only:
            check_reads(statement)
        state = job.session
        known = frozenset(state.views)
        view, function = view_of(statement), function_of(statement)
        begin = 0  # of what Spark is sent, in the user's text
        if view is not None and view.temporary:
            begin = statement.span.stop - len(view.query)
            respelt = self.names.respelt(
                read_statement(view.query), state.catalog, state.schema, views=known, pins=False
            )
            work: Work = partial(views.make_temporary_view, self.prepared, job, view, respelt)
        elif view is not None:
            place, head = views.view_head(self.prepared, job, view)
            respelt = self.names.respelt(statement, state.catalog, state.schema, views=known, head=head)
            work = partial(views.make_view, self.prepared, job, view, place, head, respelt)
        elif function is not None:
            place, head = functions.function_head(self.prepared, job, function)
            respelt = self.names.respelt(statement, state.catalog, state.schema, head=head)
            work = partial(functions.make_function, self.prepared, job, function, place, respelt)
        else:
            parameters = bound_parameters(statement.markers, job.parameters, context_of(state))
            nanoseconds = keeps_nanoseconds(state.settings)
            respelt = self.names.respelt(
                statement, state.catalog, state.schema, parameters, known, nanoseconds=nanoseconds
            )
            if statement.kind is not Kind.QUERY:
                self.names.check_targets(respelt)
            work = partial(self._run, job, statement, respelt)
        settings = settings_of(job)
        # Off, unless the text was searched for paths and some were found: no way to read files past the allowed roots.
        settings[_FILES_BY_PATH] = str(bool(respelt.paths) or self.prepared.views_read_paths(job, respelt)).lower()
        try:
            with (
                self.engine.slot(session_key(job, settings), settings) as slot,
                self.engine.job(job.statement_id, state.session_id, state.user, emit, slot.spark),
            ):
                work(slot, emit)
        except GatewayError:
            raise
        except Exception as error:
            self.engine.end_if_lost(error)
            failure = cancelled(emit, error)
            origin = respelt.original
            named = partial(self.names.named_in, respelt)
            found = as_gateway_error(failure, respelt.text, lambda at: begin + origin(at), named)
            if is_disk_full(found):
                self.engine.close_leaked_files()
                found = self._full(respelt)
            raise self.prepared.cause(job, found) from error
        finally:
            self.prepared.forget(job)

    def _full(self, respelt: Respelt) -> GatewayError:
        """What to tell of a full disk: Java does not say which one it is."""
        target = next((m for m in respelt.mentions if m.is_target), None)
        folders = [] if self.engine.is_connect else [self._scratch]
        if target is not None or self.engine.is_connect:
            folders.insert(0, Path(self._warehouse))
        text = f"There is no space left on a disk that Spark writes to (now {free_space(*folders)})."
        if target is not None and self.names.folder(target) is not None:
            text += " What was written is no part of the table; VACUUM removes it once its retention is over."
        return disk_full(text)

    def _run(self, job: Statement, statement: Read, respelt: Respelt, slot: SparkSessionSlot, emit: Emit) -> None:
        first = statement.keywords[0] if statement.keywords else "SELECT"
        word = "SELECT" if statement.kind is Kind.QUERY else verb_of(statement)
        if statement.kind is not Kind.QUERY and not tables.may_run(statement, respelt, self.catalogs):
            finish(job, word, emit, writes=False)
            return
        target = next((m for m in respelt.mentions if m.is_target), None)
        stored = tables.stored_table(self.catalogs, target) if target is not None else None
        if stored is not None and statement.keywords[:2] == ("TRUNCATE", "TABLE"):
            self._truncate(job, statement, respelt, stored, slot, emit)
            return
        shape = WRITES.get(first) if statement.kind is Kind.DML else None
        if shape is not None:
            emit(Planned(first, "spark", job.route, shape, writes=True))
        with contextlib.ExitStack() as held:
            self.prepared.prepare(job, slot, respelt, emit, held)
            self.engine.begin(job.statement_id)
            frame = self._ran(job, statement, respelt, slot, emit)
            if stored is not None and shape is not None:
                emit(Finished(0, facts=self._facts(job, respelt)))  # nobody counts what goes into files
                return
            if shape is INSERTED:
                finish_insert(self.names, job.statement_id, respelt, self._facts(job, respelt), emit)
                return
            if shape is not None:
                finish_write(frame, shape, self._facts(job, respelt), emit)
                return
        self._show(job, statement, word, frame, respelt, slot, emit)

    def _ran(self, job: Statement, statement: Read, respelt: Respelt, slot: SparkSessionSlot, emit: Emit) -> Any:
        """The frame that Spark answers; a table that it has made has its name by then."""
        if statement.kind is Kind.QUERY:
            return self._analysed(job, slot, respelt, emit)
        target = next((m for m in respelt.mentions if m.is_target), None)
        if target is None:
            return slot.spark.sql(sent(slot.spark, respelt))
        emit(Writing())
        if statement.kind is Kind.DML and WRITES.get(statement.keywords[0]) is INSERTED:
            return marked(job, slot, sent(slot.spark, respelt))
        mirror, catalog = self.engine.mirror, self.catalogs.get(target.catalog.lower())
        with tables.making(target, mirror) as draft:
            tables.check_as_it_was(self.catalogs, target, statement)
            if draft is not None:
                tables.check_free(self.catalogs, target)
            old = tables.stored_table(self.catalogs, target)
            frame = slot.spark.sql(sent(slot.spark, respelt))
            format_ = table_format(statement) or (old.format if old and statement.kind is Kind.DDL else None)
            told = None
            if format_ is not None and catalog is not None:
                told = tables.described(slot.spark, mirror, catalog, target, format_)
            if draft is not None:
                tables.settle(self.catalogs, target, draft, told, statement)
            elif told is not None and catalog is not None:
                tables.keep_altered(catalog, told, target.span)
            return frame

    def _show(
        self,
        job: Statement,
        statement: Read,
        word: str,
        frame: Any,
        respelt: Respelt,
        slot: SparkSessionSlot,
        emit: Emit,
    ) -> None:
        """The rows of a frame, and what the statement has changed in the session."""
        schema = readable_schema(frame, self.names.column)
        if not schema.fields:
            changes = temporaries.changes(statement, slot.spark, slot.definitions, job.session)
            emit(Planned(word, "spark", job.route, RESULT, writes=not changes, is_query=False))
            emit(Finished(0, changes=changes, facts=self._facts(job, respelt)))
            return
        if job.row_limit is not None:
            frame = frame.limit(job.row_limit)
        is_ddl = statement.kind is Kind.DDL
        # Here all rows are made before the first one comes; a Connect server sends them while others may fail.
        streams = not is_ddl and not self.engine.is_connect
        emit(Planned(word, "spark", job.route, schema, writes=is_ddl, streams=streams))
        count = 0
        described = _NAMES.get(statement.keywords[1]) if statement.keywords[:1] in (("DESCRIBE",), ("DESC",)) else None
        named = next((i for i, f in enumerate(schema.fields) if f.name == described), None)
        for batch in batches(self.engine, self._scratch, frame, schema):
            emit.rows(batch if named is None else renamed(batch, named, self.names.named))
            count += batch.num_rows
        script = statement.kind is Kind.SCRIPT  # it may have set the session's variables, too
        emit(
            Finished(
                count,
                changes=temporaries.changes(statement, slot.spark, slot.definitions, job.session) if script else (),
                facts=self._facts(job, respelt),
            )
        )

    def _facts(self, job: Statement, respelt: Respelt) -> dict[str, Any]:
        """What the history keeps of a statement that has been run: its tables, and the plan of what took long."""
        tables_ = [m for m in respelt.mentions if self.names.folder(m) is not None]
        operators = self.engine.measured(job.statement_id)
        return {
            "read": list(dict.fromkeys(m.name for m in tables_ if m.is_relation and not m.is_target)),
            "written": list(dict.fromkeys(m.name for m in tables_ if m.is_target)),
            "operators": [{**each, "text": self.names.named(each["text"])} for each in operators],
        }

    def _analysed(self, job: Statement, slot: SparkSessionSlot, respelt: Respelt, emit: Emit) -> Any:
        """The frame of a query, asked for twice if a name is not found: another statement may be replacing a view just now."""
        text = sent(slot.spark, respelt)
        if job.read_only and changes_something(slot.spark, text):
            raise UserError("NOT_READ_ONLY", "Spark reads this statement as one that does more than read.")
        try:
            frame = slot.spark.sql(text)
            frame.schema  # noqa: B018 (a Connect server is asked here)
            return frame
        except Exception as error:
            if getattr(error, "getCondition", lambda: "")() not in _NOT_FOUND:
                raise
            self.prepared.prepare(job, slot, respelt, emit)
            return slot.spark.sql(text)

    def _truncate(
        self,
        job: Statement,
        statement: Read,
        respelt: Respelt,
        stored: StoredTable,
        slot: SparkSessionSlot,
        emit: Emit,
    ) -> None:
        if "PARTITION" in statement.words:
            raise unsupported(f"TRUNCATE of partitions of a table of the format {stored.format}", statement.span)
        with contextlib.ExitStack() as held:
            self.prepared.prepare(job, slot, respelt, emit, held)
            tables.truncate(stored, slot.spark)
        finish(job, "TRUNCATE_TABLE", emit)


def make_spark_runner(
    *,
    warehouse: str,
    samples: str,
    allow_paths: Sequence[str],
    master: str,
    jars: str,
    scratch: str,
    memory: int,
    extra: dict[str, str],
) -> SparkRunner:
    """The handler of the Spark process: see `SparkRunner` and `SparkOptions`."""
    options = SparkOptions(master, Path(jars), Path(scratch), memory, extra)
    return SparkRunner(warehouse, samples, allow_paths, options)
