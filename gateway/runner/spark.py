"""The handler of the process that owns Spark: statements that the embedded engine handed over, side by side.

The user's own text goes to Spark; only names of tables and parameter markers are respelt (`sql.respell`).
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.catalog.base import Catalog
from gateway.catalog.local import LocalCatalog
from gateway.catalog.objects import StoredFunction, StoredTable, StoredView
from gateway.catalog.paths import AllowedRoots
from gateway.catalog.samples import open_samples
from gateway.config.session import TIMEZONE, honoured_by_spark, is_tuning, keeps_nanoseconds
from gateway.delta import log
from gateway.delta.containment import check_tree, look
from gateway.delta.logged import check_for_others
from gateway.delta.schema import UnreadableType, parse_schema, struct_of
from gateway.engine import spill
from gateway.engine.base import Definition, Emit, Finished, Job, Planned, SessionChange, Statement, TempView, Writing
from gateway.engine.spark import rows
from gateway.engine.spark.engine import SparkEngine, SparkOptions, SparkSessionSlot, cancelled
from gateway.engine.spark.errors import as_gateway_error
from gateway.engine.spark.session import configure
from gateway.errors import GatewayError, UserError, disk_full, free_space, is_disk_full, unsupported
from gateway.runner import definitions, made
from gateway.runner.answer import RESULT
from gateway.runner.context import context_of
from gateway.runner.readable import check_readable
from gateway.runner.registered import SPARK_SETTINGS, Registered, Registrar, text_as_made
from gateway.runner.sent import sent
from gateway.sql.bind.parameters import bound_parameters
from gateway.sql.functions.names import SPARK_NAMES
from gateway.sql.read.identifiers import identified, quote_part
from gateway.sql.read.made_view import MadeView, clauses, function_of, view_of
from gateway.sql.read.statement import Kind, read_statement, verb_of
from gateway.sql.read.statement import Statement as Read
from gateway.sql.spark.made_table import table_format
from gateway.sql.spark.respell import SPARK_CATALOG, Head, Mention, Naming, Respelt, database, names_back, respell
from gateway.sql.typed.nodes import Lit
from gateway.sqltypes import BIGINT, INTERVAL, VARIANT, DataType, StructField, StructType, struct

_AFFECTED = struct(StructField("num_affected_rows", BIGINT))
_MERGED = struct(
    *(
        StructField(name, BIGINT)
        for name in ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    )
)
_INSERTED = struct(StructField("num_affected_rows", BIGINT), StructField("num_inserted_rows", BIGINT))
_GLOB = frozenset("*?[]{}")
_FILES_BY_PATH = "spark.sql.runSQLOnFiles"
_COMMIT_MARK = "spark.databricks.delta.commitInfo.userMetadata"
_NEWEST_COMMITS = 100
# Columns of DESCRIBE in which Spark tells names as it knows them.
_NAMES = {"FUNCTION": "function_desc", "DETAIL": "name"}
_NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_ROUTINE")
# What Databricks answers for statements that write; told before they run, so that a loss of the engine is judged rightly.
_WRITES: dict[str, StructType] = {"DELETE": _AFFECTED, "UPDATE": _AFFECTED, "MERGE": _MERGED, "INSERT": _INSERTED}


# What runs on a session once a statement is respelt.
Work = Callable[[SparkSessionSlot, Emit], None]


class SparkRunner:
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
        self._problems: dict[str, list[GatewayError]] = {}  # by statement: why what it may name is not there

    def warm_up(self) -> None:
        """Open the catalogs and start Spark."""
        main = LocalCatalog("main", self._warehouse, others=(self._samples, *self._allow))
        self.catalogs = {"main": main, "samples": open_samples(self._samples)}
        self.paths = AllowedRoots([self._warehouse, self._samples, *self._allow])
        base = str(self._options.scratch)
        spill.sweep(base)
        self._scratch = Path(spill.claim(base))
        options = self._options
        self.engine = SparkEngine(
            SparkOptions(options.master, options.jars, self._scratch, options.memory, options.extra)
        )
        self.engine.start()
        self.registrar = Registrar(self.catalogs, self.paths.roots, self.engine.mirror, self._kept, self.named)

    def run(self, job: Job, emit: Emit) -> None:
        """Run one statement; see `engine.base.Handler`. Safe from many threads."""
        if not isinstance(job, Statement):
            raise TypeError(f"{type(job).__name__} is not for Spark")
        with identified(job) as named:
            self._statement(named, emit)

    def _statement(self, job: Statement, emit: Emit) -> None:
        statement = read_statement(job.text)
        state = job.session
        views = frozenset(state.views)
        view, function = view_of(statement), function_of(statement)
        begin = 0  # of what Spark is sent, in the user's text
        if view is not None and view.temporary:
            begin = statement.span.stop - len(view.query)
            respelt = self._respelt(read_statement(view.query), state.catalog, state.schema, views=views, pins=False)
            work: Work = partial(self._make_view, job, view, respelt)
        elif view is not None:
            place, head = made.view_head(self, job, view)
            respelt = self._respelt(statement, state.catalog, state.schema, views=views, head=head)
            work = partial(made.make_view, self, job, view, place, head, respelt)
        elif function is not None:
            place, head = made.function_head(self, job, function)
            respelt = self._respelt(statement, state.catalog, state.schema, head=head)
            work = partial(made.make_function, self, job, function, place, respelt)
        else:
            parameters = bound_parameters(statement.markers, job.parameters, context_of(state))
            nanoseconds = keeps_nanoseconds(state.settings)
            respelt = self._respelt(statement, state.catalog, state.schema, parameters, views, nanoseconds=nanoseconds)
            if statement.kind is not Kind.QUERY:
                self._check_targets(respelt)
            work = partial(self._run, job, statement, respelt)
        settings = _settings(job)
        # Off, unless the text was searched for paths and some were found: no way to read files past the allowed roots.
        settings[_FILES_BY_PATH] = str(bool(respelt.paths) or self._views_read_paths(job, respelt)).lower()
        try:
            with (
                self.engine.slot(_session_key(job, settings), settings) as slot,
                self.engine.job(job.statement_id, state.session_id, state.user, emit, slot.spark),
            ):
                work(slot, emit)
        except GatewayError:
            raise
        except Exception as error:
            self.engine.end_if_lost(error)
            failure = cancelled(emit, error)
            origin = respelt.original
            found = as_gateway_error(failure, respelt.text, lambda at: begin + origin(at), self.named)
            if is_disk_full(found):
                self.engine.close_leaked_files()
                found = self._full(respelt)
            raise _cause(found, self._problems.get(job.statement_id, [])) from error
        finally:
            self._problems.pop(job.statement_id, None)

    def _full(self, respelt: Respelt) -> GatewayError:
        """What to tell of a full disk: Java does not say which one it is."""
        target = next((m for m in respelt.mentions if m.is_target), None)
        folders = [] if self.engine.is_connect else [self._scratch]
        if target is not None or self.engine.is_connect:
            folders.insert(0, Path(self._warehouse))
        text = f"There is no space left on a disk that Spark writes to (now {free_space(*folders)})."
        if target is not None and self._folder(target) is not None:
            text += " What was written is no part of the table; VACUUM removes it once its retention is over."
        return disk_full(text)

    # ------------------------------------------------------------------------------------------------- one statement

    def _run(self, job: Statement, statement: Read, respelt: Respelt, slot: SparkSessionSlot, emit: Emit) -> None:
        first = statement.keywords[0] if statement.keywords else "SELECT"
        word = "SELECT" if statement.kind is Kind.QUERY else verb_of(statement)
        if statement.kind is not Kind.QUERY and not made.may_run(statement, respelt, self.catalogs):
            made.finish(job, word, emit, writes=False)
            return
        target = next((m for m in respelt.mentions if m.is_target), None)
        stored = made.stored_table(self.catalogs, target) if target is not None else None
        if stored is not None and statement.keywords[:2] == ("TRUNCATE", "TABLE"):
            self._truncate(job, statement, respelt, stored, slot, emit)
            return
        shape = _WRITES.get(first) if statement.kind is Kind.DML else None
        if shape is not None:
            emit(Planned(first, "spark", job.route, shape, writes=True))
        self.prepare(job, slot, respelt, emit)
        if target is not None:
            emit(Writing())
        with made.making(statement, respelt, self, emit):
            if shape is _INSERTED:
                frame = self._marked(job, slot, sent(slot.spark, respelt))
            elif statement.kind is Kind.QUERY:
                frame = self._analysed(job, slot, respelt, emit)
            else:
                frame = slot.spark.sql(sent(slot.spark, respelt))
            format_ = table_format(statement) or (stored.format if stored and statement.kind is Kind.DDL else None)
            if format_ is not None and target is not None:
                catalog = self.catalogs[target.catalog.lower()]
                made.keep_table(slot.spark, catalog, target, format_, replaces=stored is not None)
        if stored is not None and shape is not None:
            emit(Finished(0))  # nobody counts what goes into files
            return
        if shape is _INSERTED:
            self._finish_insert(job.statement_id, respelt, emit)
            return
        if shape is not None:
            self._finish_write(frame, shape, emit)
            return
        schema = self._schema(frame)
        if not schema.fields:
            changes = definitions.changes(statement, slot.spark, slot.definitions, job.session)
            emit(Planned(word, "spark", job.route, RESULT, writes=not changes, is_query=False))
            emit(Finished(0, changes=changes))
            return
        if job.row_limit is not None:
            frame = frame.limit(job.row_limit)
        is_ddl = statement.kind is Kind.DDL
        # Here all rows are made before the first one comes; a Connect server sends them while others may fail.
        streams = not is_ddl and not self.engine.is_connect
        emit(Planned(word, "spark", job.route, schema, writes=is_ddl, streams=streams))
        count = 0
        described = _NAMES.get(statement.keywords[1]) if first in ("DESCRIBE", "DESC") else None
        named = next((i for i, f in enumerate(schema.fields) if f.name == described), None)
        for batch in self._batches(frame, schema):
            emit.rows(batch if named is None else _renamed(batch, named, self.named))
            count += batch.num_rows
        script = statement.kind is Kind.SCRIPT  # it may have set the session's variables, too
        emit(
            Finished(
                count,
                changes=definitions.changes(statement, slot.spark, slot.definitions, job.session) if script else (),
            )
        )

    def _analysed(self, job: Statement, slot: SparkSessionSlot, respelt: Respelt, emit: Emit) -> Any:
        """The frame of a query, asked for twice if a name is not found: another statement may be replacing a view just now."""
        text = sent(slot.spark, respelt)
        try:
            frame = slot.spark.sql(text)
            frame.schema  # noqa: B018 (a Connect server is asked here)
            return frame
        except Exception as error:
            if getattr(error, "getCondition", lambda: "")() not in _NOT_FOUND:
                raise
            self.prepare(job, slot, respelt, emit)
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
        self.prepare(job, slot, respelt, emit)
        made.truncate(stored, slot.spark)
        made.finish(job, "TRUNCATE_TABLE", emit)

    def _make_view(self, job: Statement, view: MadeView, respelt: Respelt, slot: SparkSessionSlot, emit: Emit) -> None:
        """CREATE TEMPORARY VIEW over a query that only Spark knows: checked here, kept by the session as text."""
        state = job.session
        name = view.name[-1]
        if name.lower() in state.views and not view.replaces:
            raise UserError(
                "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
                f"Cannot create the temporary view `{name}` because it already exists. Choose a different name, drop "
                "or replace the existing view.",
            )
        self.prepare(job, slot, respelt, emit)
        schema = self._schema(slot.spark.sql(sent(slot.spark, respelt)))
        if view.collation:
            slot.spark.sql(f"SELECT '' COLLATE {quote_part(view.collation)}")  # fails for one that does not exist
        kept = definitions.temporary_view(view, state, schema)
        emit(Planned("CREATE_VIEW", "spark", job.route, RESULT, is_query=False))
        emit(Finished(0, changes=(SessionChange("put_view", name.lower(), view=kept),)))

    def _batches(self, frame: Any, schema: StructType) -> Iterator[pa.RecordBatch]:
        if self.engine.is_connect:
            yield from rows.streamed(frame, schema)
            return
        if rows.is_small(frame, schema):
            try:
                yield from rows.collected(frame, schema)
                return
            except rows.TooWideError:
                pass  # nothing went out yet: the query runs once more
        yield from rows.written(frame, schema, self._scratch / f"result-{uuid.uuid4().hex}")

    def _finish_write(self, frame: Any, shape: StructType, emit: Emit) -> None:
        found = frame.toArrow()
        if found.num_rows != 1 or found.num_columns != len(shape.fields):
            emit(Finished(0))
            return
        names = [f"c{i}" for i in range(found.num_columns)]
        table = found.rename_columns(names).cast(pa.schema([(n, pa.int64()) for n in names])).combine_chunks()
        emit.rows(table.to_batches()[0])
        emit(Finished(1, modified_rows=table.column(0)[0].as_py()))

    def _marked(self, job: Statement, slot: SparkSessionSlot, text: str) -> Any:
        """Run a statement whose commit carries the statement's id."""
        slot.spark.conf.set(_COMMIT_MARK, job.statement_id)
        try:
            return slot.spark.sql(text)
        finally:
            slot.spark.conf.unset(_COMMIT_MARK)

    def _finish_insert(self, statement_id: str, respelt: Respelt, emit: Emit) -> None:
        """The counts that Databricks shows; Spark's INSERT answers nothing, so they come from its commit."""
        rows = sum(
            inserted_rows(folder, statement_id)
            for mention in respelt.mentions
            if mention.is_target and (folder := self._folder(mention)) is not None
        )
        emit.rows(pa.record_batch([pa.array([rows]), pa.array([rows])], names=["c0", "c1"]))
        emit(Finished(1, modified_rows=rows))

    def _schema(self, frame: Any) -> StructType:
        columns = parse_schema(frame.schema.jsonValue())
        shown: dict[DataType, DataType] = {UnreadableType("VARIANT"): VARIANT, UnreadableType("INTERVAL"): INTERVAL}
        columns = tuple(replace(c, name=self.column(c.name), type=shown.get(c.type, c.type)) for c in columns)
        for column in columns:
            check_readable(column)
        return struct_of(columns)

    # ------------------------------------------------------------------------------------------------ names and views

    def _respelt(
        self,
        statement: Read,
        catalog: str,
        schema: str,
        parameters: dict[int | str, Lit] | None = None,
        views: frozenset[str] = frozenset(),
        head: Head | None = None,
        pins: bool = True,
        spelt_out: bool = False,
        nanoseconds: bool = False,
    ) -> Respelt:
        out = self._exists if spelt_out else None
        naming = Naming(catalog, schema, self._has_schema, self._path, self._location, self._version, views, pins, out)
        naming = replace(naming, nanoseconds=nanoseconds, tells_user=not self.engine.is_connect)
        return respell(statement, naming, parameters or {}, head)

    def _has_schema(self, catalog: str, schema: str) -> bool:
        known = self.catalogs.get(catalog.lower())
        return known is not None and known.has_schema(schema)

    def _path(self, path: str) -> str:
        """A path that a text names, as Spark may read it: all that is below it is looked at."""
        real = self.paths.resolve(path)
        if not _GLOB.isdisjoint(real):
            raise unsupported(
                f"A path with one of the characters {' '.join(sorted(_GLOB))}, which Spark reads as a pattern,"
            )
        if log.has_log(real):
            check_for_others(real, self.paths.roots, writes=False)
        elif os.path.isdir(real):
            check_tree(real, self.paths.roots)
        else:
            look(real, self.paths.roots)
        return real

    def _location(self, catalog: str, schema: str, table: str) -> str:
        known = self.catalogs.get(catalog.lower())
        if known is None or known.read_only:
            raise UserError("UNSUPPORTED_FEATURE", f"The catalog `{catalog}` is read-only: no table can be made in it.")
        return "file:" + known.table_location(schema, table)

    def _version(self, catalog: str, schema: str, table: str) -> int | None:
        known = self.catalogs.get(catalog.lower())
        folder = known.table_folder(schema, table) if known is not None else None
        versions = log.commit_versions(folder) if folder is not None else []
        return versions[-1] if versions else None

    def _check_targets(self, respelt: Respelt) -> None:
        for mention in respelt.mentions:
            known = self.catalogs.get(mention.catalog.lower())
            if mention.is_target and known is not None and known.read_only:
                raise UserError("UNSUPPORTED_FEATURE", f"The catalog `{known.name}` is read-only.", span=mention.span)

    def prepare(self, job: Statement, slot: SparkSessionSlot, respelt: Respelt, emit: Emit) -> None:
        """The slot sees what the statement names. Failures have no position: they are of other texts."""
        try:
            self._bring(job, slot, respelt, emit)
        except GatewayError:
            raise
        except Exception as error:
            self.engine.end_if_lost(error)
            failure = as_gateway_error(error, "", lambda offset: 0, self.named)
            failure.span = None
            raise failure from error

    def _bring(self, job: Statement, slot: SparkSessionSlot, respelt: Respelt, emit: Emit) -> None:
        state = job.session
        done = Registered(emit=emit)
        for name in [n for n in slot.views if n not in state.views]:
            _drop_view(slot, name)
        definitions.prepare(slot.spark, slot.definitions, state, self._definition_text)
        self.registrar.register(respelt, done)
        named = {m.table.lower() for m in respelt.mentions if not m.is_target}
        for _ in range(2):  # making one may drop another that it must not mean
            for name in sorted(named & state.views.keys()):
                self._view(job, slot, state.views[name], done)
        for name in done.files:  # another session may have written to them
            slot.spark.sql(f"REFRESH TABLE {name}")
        self._problems[job.statement_id] = done.problems
        self._use(slot, state.catalog, state.schema, emit)

    def _definition_text(self, definition: Definition) -> str:
        respelt = self._respelt(read_statement(definition.text), definition.catalog, definition.schema)
        self.registrar.register(respelt)
        return respelt.text

    def _kept(self, statement: Read, catalog: str, schema: str, head: Head | None, spelt_out: bool) -> Respelt:
        return self._respelt(statement, catalog, schema, head=head, pins=False, spelt_out=spelt_out)

    def _exists(self, is_function: bool, catalog: str, schema: str, name: str) -> bool:
        """Whether the catalogs have a function that is none of Spark's own, or a table or view, of that name."""
        known = self.catalogs.get(catalog.lower())
        if known is None:
            return False
        if is_function:
            return name.lower() not in SPARK_NAMES and known.identity(StoredFunction, schema, name) is not None
        folder = known.table_folder(schema, name)
        return folder is not None or any(known.identity(k, schema, name) is not None for k in (StoredTable, StoredView))

    def _view(self, job: Statement, slot: SparkSessionSlot, view: TempView, done: Registered) -> None:
        """Make a view, unless the slot has it, over tables and views as they are now."""
        assert done.emit is not None
        name = view.name.lower()
        respelt = self._view_text(job, view)
        self.registrar.register(respelt, done)
        for inner in _views_in(job, view, respelt):
            self._view(job, slot, inner, done)
        if slot.views.get(name) == (view, respelt.text):
            return
        meant = {inner.name.lower() for inner in _views_in(job, view, respelt)}
        for hidden in {m.table.lower() for m in respelt.mentions} & slot.views.keys() - meant:
            _drop_view(slot, hidden)  # made later than this one, which means a table by that name
        self._use(slot, view.catalog, view.schema, done.emit)
        columns = f"({', '.join(quote_part(c) for c in view.columns)}) " if view.columns else ""
        with _settings_of(slot, job, view):
            said = columns + clauses(view.collation, "")
            text = plain = sent(slot.spark, respelt)
            if view.made is not None:
                frame = slot.spark.sql(text)
                text = text_as_made(view, view.made.fields, text, frame.columns, self._schema(frame))
            slot.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {quote_part(view.name)} {said}AS {text}")
        # Casts hold for the columns of the moment: such a view is made anew for the next statement.
        slot.views[name] = view, respelt.text if text == plain else ""

    def _view_text(self, job: Statement, view: TempView) -> Respelt:
        views = frozenset(job.session.views)
        return self._respelt(read_statement(view.query), view.catalog, view.schema, views=views, pins=False)

    def _views_read_paths(self, job: Statement, respelt: Respelt) -> bool:
        """Whether a view that the text may mean names files by path."""
        seen = set()
        todo = [v for m in respelt.mentions if (v := job.session.views.get(m.table.lower())) is not None]
        while todo:
            view = todo.pop()
            if view.name.lower() not in seen:
                seen.add(view.name.lower())
                inner = self._view_text(job, view)
                if inner.paths:
                    return True
                todo += _views_in(job, view, inner)
        return False

    def _use(self, slot: SparkSessionSlot, catalog: str, schema: str, emit: Emit) -> None:
        name = database(catalog, schema)
        if slot.database != name:
            self.engine.mirror.database(name, emit)
            slot.spark.sql(f"USE {SPARK_CATALOG}.{quote_part(name)}")
            slot.database = name

    def _folder(self, mention: Mention) -> str | None:
        """The real folder of a table, None if there is none."""
        known = self.catalogs.get(mention.catalog.lower())
        folder = known.table_folder(mention.schema, mention.table) if known is not None else None
        return os.path.realpath(folder) if folder is not None else None

    def named(self, text: str) -> str:
        """An error's text with the gateway's names in it."""
        return names_back(text, list(self.catalogs))

    def column(self, name: str) -> str:
        """A column's name: one that nobody named may hold a function's full name."""
        return self.named(name) if f"{SPARK_CATALOG}." in name else name


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


def _renamed(batch: pa.RecordBatch, index: int, named: Callable[[str], str]) -> pa.RecordBatch:
    """A column of texts with the gateway's names in them."""
    texts = [None if text is None else named(text) for text in batch.column(index).to_pylist()]
    return batch.set_column(index, batch.schema.field(index), pa.array(texts, batch.schema.field(index).type))


_UNKNOWN = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_ROUTINE", "ROUTINE_NOT_FOUND", "UNRESOLVABLE_TABLE_VALUED")


def _cause(error: GatewayError, problems: list[GatewayError]) -> GatewayError:
    """For a name that Spark does not find: why it is not there, if that is known."""
    unknown = error.condition.startswith(_UNKNOWN)
    return problems[0].at(error.span) if unknown and problems else error


def inserted_rows(folder: str, statement_id: str) -> int:
    """Rows that the statement's commit says it wrote; it is among the newest, maybe with a compaction by the same statement."""
    for version in reversed(log.commit_versions(folder)[-_NEWEST_COMMITS:]):
        for action in log.actions(folder, version):
            info = action.get("commitInfo", {})
            metrics = info.get("operationMetrics", {})
            if info.get("userMetadata") == statement_id and "numOutputRows" in metrics:
                return int(metrics["numOutputRows"])
    return 0


def _views_in(job: Statement, view: TempView, respelt: Respelt) -> list[TempView]:
    """The session's views that the text of a view may mean."""
    names = {mention.table.lower() for mention in respelt.mentions} - {view.name.lower()}
    known = job.session.views
    return [known[n] for n in sorted(names) if n in known and (view.views is None or n in view.views)]


def _drop_view(slot: SparkSessionSlot, name: str) -> None:
    slot.spark.sql(f"DROP VIEW IF EXISTS {quote_part(name)}")
    del slot.views[name]


@contextlib.contextmanager
def _settings_of(slot: SparkSessionSlot, job: Statement, view: TempView) -> Iterator[None]:
    """The settings that a view was made under, which Spark's views keep."""
    zone = _settings(job).get(SPARK_SETTINGS[TIMEZONE], "UTC")
    current, made = honoured_by_spark(job.session.settings), dict(view.settings)
    changed = [key for key in sorted(current.keys() | made.keys()) if current.get(key) != made.get(key)]
    for key in changed:
        configure(slot.spark, key, made.get(key))
    if view.time_zone:
        slot.spark.conf.set(SPARK_SETTINGS[TIMEZONE], view.time_zone)
    try:
        yield
    finally:
        if view.time_zone:
            slot.spark.conf.set(SPARK_SETTINGS[TIMEZONE], zone)
        for key in changed:
            configure(slot.spark, key, current.get(key))


def _session_key(job: Statement, settings: dict[str, str]) -> tuple[object, ...]:
    """Statements with equal keys may share a Spark session: what it holds then means the same to both."""
    state = job.session
    return (state.session_id, state.catalog, state.schema, tuple(sorted(settings.items())))


def _settings(job: Statement) -> dict[str, str]:
    """Spark's settings for those of the gateway's session that it knows."""
    found = honoured_by_spark(job.session.settings)
    for key, value in job.session.settings.items():
        if key in SPARK_SETTINGS:
            found[SPARK_SETTINGS[key]] = value
        elif is_tuning(key) and key.startswith("spark.sql.") and not key.startswith("spark.sql.codegen."):
            found[key] = value
    return found


__all__ = ["SessionChange", "SparkRunner", "make_spark_runner"]
