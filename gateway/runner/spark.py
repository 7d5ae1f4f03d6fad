"""The handler of the process that owns Spark: statements that the embedded engine handed over, side by side.

The user's own text goes to Spark; only names of tables and parameter markers are respelt (`sql.respell`).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.catalog.base import Catalog
from gateway.catalog.local import LocalCatalog
from gateway.catalog.paths import AllowedRoots
from gateway.catalog.samples import open_samples
from gateway.config.session import (
    GROUP_BY_ALIASES,
    GROUP_BY_ORDINAL,
    ORDER_BY_ORDINAL,
    PRECISION_LOSS,
    TIMEZONE,
    is_tuning,
)
from gateway.delta import log
from gateway.delta.schema import UnreadableType, parse_schema, struct_of
from gateway.engine import spill
from gateway.engine.base import Definition, Emit, Finished, Job, Planned, SessionChange, Statement, TempView
from gateway.engine.spark import rows
from gateway.engine.spark.engine import SparkEngine, SparkOptions, SparkSessionSlot, cancelled
from gateway.engine.spark.errors import as_gateway_error
from gateway.engine.spark.mirror import MirroredTable
from gateway.errors import GatewayError, UnsupportedError, UserError
from gateway.runner import definitions
from gateway.runner.answer import RESULT
from gateway.runner.context import context_of
from gateway.sql.bound import Lit
from gateway.sql.made_view import MadeView, view_of
from gateway.sql.parameters import bound_parameters
from gateway.sql.respell import SPARK_CATALOG, Mention, Naming, Respelt, database, names_back, respell
from gateway.sql.statement import Kind, read_statement
from gateway.sql.statement import Statement as Read
from gateway.sqltypes import BIGINT, INTERVAL, VARIANT, DataType, StructField, StructType, struct

_PASSED_ON = {
    TIMEZONE: "spark.sql.session.timeZone",
    GROUP_BY_ALIASES: GROUP_BY_ALIASES,
    GROUP_BY_ORDINAL: GROUP_BY_ORDINAL,
    ORDER_BY_ORDINAL: ORDER_BY_ORDINAL,
    PRECISION_LOSS: PRECISION_LOSS,
}
_AFFECTED = struct(StructField("num_affected_rows", BIGINT))
_MERGED = struct(
    *(
        StructField(name, BIGINT)
        for name in ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    )
)
_INSERTED = struct(StructField("num_affected_rows", BIGINT), StructField("num_inserted_rows", BIGINT))
# What Databricks answers for statements that write; told before they run, so that a loss of the engine is judged rightly.
_COMMIT_MARK = "spark.databricks.delta.commitInfo.userMetadata"
_NEWEST_COMMITS = 100
_WRITES: dict[str, StructType] = {"DELETE": _AFFECTED, "UPDATE": _AFFECTED, "MERGE": _MERGED, "INSERT": _INSERTED}


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

    def warm_up(self) -> None:
        """Open the catalogs and start Spark."""
        main = LocalCatalog("main", self._warehouse)
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

    def run(self, job: Job, emit: Emit) -> None:
        """Run one statement; see `engine.base.Handler`. Safe from many threads."""
        if not isinstance(job, Statement):
            raise TypeError(f"{type(job).__name__} is not for Spark")
        statement = read_statement(job.text)
        context = context_of(job.session)
        parameters = bound_parameters(statement.markers, job.parameters, context)
        views = frozenset(job.session.views)
        respelt = self._respelt(statement, job.session.catalog, job.session.schema, parameters, views)
        if statement.kind is not Kind.QUERY:
            self._check_targets(respelt)
        slot = self.engine.slot(_session_key(job), _settings(job))
        view = view_of(statement)
        if view is not None:
            respelt = self._respelt(read_statement(view.query), job.session.catalog, job.session.schema, {}, views)
        try:
            with self.engine.job(job.statement_id, job.session.session_id or "default", emit, slot.spark):
                if view is not None:
                    self._make_view(job, view, respelt, slot, emit)
                else:
                    self._run(job, statement, respelt, slot, emit)
        except GatewayError:
            raise
        except Exception as error:
            failure = cancelled(emit, error)
            raise as_gateway_error(failure, respelt.text, _mapped(respelt), self._named) from error

    # ------------------------------------------------------------------------------------------------- one statement

    def _run(self, job: Statement, statement: Read, respelt: Respelt, slot: SparkSessionSlot, emit: Emit) -> None:
        first = statement.keywords[0] if statement.keywords else "SELECT"
        shape = _WRITES.get(first) if statement.kind is Kind.DML else None
        if shape is not None:
            emit(Planned(first, "spark", job.route, shape, writes=True))
        with slot.lock:
            self._prepare(job, slot, respelt)
            frame = self._marked(job, slot, respelt.text) if shape is _INSERTED else slot.spark.sql(respelt.text)
        if shape is _INSERTED:
            self._finish_insert(job.statement_id, respelt, emit)
            return
        if shape is not None:
            self._finish_write(frame, shape, emit)
            return
        schema = self._schema(frame)
        word = "SELECT" if statement.kind is Kind.QUERY else "_".join(statement.keywords[:2])
        if not schema.fields:
            changes = definitions.changes(statement, slot.spark, slot.definitions, job.session)
            emit(Planned(word, "spark", job.route, RESULT, writes=not changes, is_query=False))
            emit(Finished(0, changes=changes))
            return
        if job.row_limit is not None:
            frame = frame.limit(job.row_limit)
        emit(Planned(word, "spark", job.route, schema, writes=statement.kind is Kind.DDL))
        count = 0
        for batch in self._batches(frame, schema):
            emit.rows(batch)
            count += batch.num_rows
        emit(Finished(count))

    def _make_view(self, job: Statement, view: MadeView, respelt: Respelt, slot: SparkSessionSlot, emit: Emit) -> None:
        """CREATE TEMPORARY VIEW over a query that only Spark knows: checked here, kept by the session as text."""
        state = job.session
        if view.name.lower() in state.views and not view.replaces:
            raise UserError(
                "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
                f"Cannot create the temporary view `{view.name}` because it already exists. Choose a different name, drop "
                "or replace the existing view.",
            )
        with slot.lock:
            self._prepare(job, slot, respelt)
            self._schema(slot.spark.sql(respelt.text))
        known = frozenset(v for v in state.views if v != view.name.lower())
        made = TempView(view.name, view.query, view.columns, state.catalog, state.schema, view.comment, views=known)
        emit(Planned("CREATE_VIEW", "spark", job.route, RESULT, is_query=False))
        emit(Finished(0, changes=(SessionChange("put_view", view.name.lower(), view=made),)))

    def _batches(self, frame: Any, schema: StructType) -> Iterator[pa.RecordBatch]:
        if not schema.fields or rows.needs_collecting(schema):
            return rows.collected(frame, schema)
        if self.engine.is_connect:
            return rows.streamed(frame, schema)
        if not rows.needs_writing(schema) and rows.is_small(frame):
            return rows.collected(frame, schema)
        return rows.written(frame, schema, self._scratch / f"result-{uuid.uuid4().hex}")

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
            _inserted_rows(folder, statement_id)
            for mention in respelt.mentions
            if mention.is_target and (folder := self._folder(mention)) is not None
        )
        emit.rows(pa.record_batch([pa.array([rows]), pa.array([rows])], names=["c0", "c1"]))
        emit(Finished(1, modified_rows=rows))

    def _schema(self, frame: Any) -> StructType:
        columns = parse_schema(frame.schema.jsonValue())
        shown: dict[DataType, DataType] = {UnreadableType("VARIANT"): VARIANT, UnreadableType("INTERVAL"): INTERVAL}
        columns = tuple(replace(c, type=shown.get(c.type, c.type)) for c in columns)
        for column in columns:
            if _is_unreadable(column.type):
                raise UnsupportedError(
                    "UNSUPPORTED_RESULT_TYPE",
                    f"The column `{column.name}` has the type {column.type.sql}, which no client reads.",
                )
        return struct_of(columns)

    # ------------------------------------------------------------------------------------------------ names and views

    def _respelt(
        self,
        statement: Read,
        catalog: str,
        schema: str,
        parameters: dict[int | str, Lit],
        views: frozenset[str] = frozenset(),
    ) -> Respelt:
        naming = Naming(catalog, schema, self._has_schema, self._path, self._location, self._version, views)
        return respell(statement, naming, parameters)

    def _has_schema(self, catalog: str, schema: str) -> bool:
        known = self.catalogs.get(catalog.lower())
        return known is not None and known.has_schema(schema)

    def _path(self, path: str) -> str:
        return self.paths.resolve(path)

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

    def _prepare(self, job: Statement, slot: SparkSessionSlot, respelt: Respelt) -> None:
        """With the slot's lock held: the session sees the tables and views that the statement names."""
        state = job.session
        for name in [n for n in slot.views if n not in state.views]:
            slot.spark.sql(f"DROP VIEW IF EXISTS {_quoted(name)}")
            del slot.views[name]
        definitions.prepare(slot.spark, slot.definitions, state, self._definition_text)
        self._mirror(respelt)
        for mention in respelt.mentions:
            view = state.views.get(mention.table.lower())
            if view is not None and not mention.is_target:
                self._view(job, slot, view)
        self._use(slot, state.catalog, state.schema)

    def _definition_text(self, definition: Definition) -> str:
        return self._respelt(read_statement(definition.text), definition.catalog, definition.schema, {}).text

    def _view(self, job: Statement, slot: SparkSessionSlot, view: TempView) -> None:
        name = view.name.lower()
        if slot.views.get(name) == view:
            return
        statement = read_statement(view.query)
        respelt = self._respelt(statement, view.catalog, view.schema, {}, frozenset(job.session.views))
        for mention in respelt.mentions:
            inner = job.session.views.get(mention.table.lower())
            if inner is not None and inner is not view and (view.views is None or mention.table.lower() in view.views):
                self._view(job, slot, inner)
        self._mirror(respelt)
        self._use(slot, view.catalog, view.schema)
        columns = f"({', '.join(_quoted(c) for c in view.columns)}) " if view.columns else ""
        slot.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {_quoted(view.name)} {columns}AS {respelt.text}")
        slot.views[name] = view

    def _use(self, slot: SparkSessionSlot, catalog: str, schema: str) -> None:
        name = database(catalog, schema)
        if slot.database != name:
            self.engine.mirror.database(name)
            slot.spark.sql(f"USE {SPARK_CATALOG}.{_quoted(name)}")
            slot.database = name

    def _mirror(self, respelt: Respelt) -> None:
        tables = []
        for mention in respelt.mentions:
            if self._has_schema(mention.catalog, mention.schema):
                name = database(mention.catalog, mention.schema)
                tables.append(MirroredTable(name, mention.table, self._folder(mention)))
        self.engine.mirror.tables(tables)

    def _folder(self, mention: Mention) -> str | None:
        """The real folder of a table, None if there is none."""
        known = self.catalogs.get(mention.catalog.lower())
        folder = known.table_folder(mention.schema, mention.table) if known is not None else None
        return os.path.realpath(folder) if folder is not None else None

    def _named(self, text: str) -> str:
        return names_back(text, list(self.catalogs))


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


def _inserted_rows(folder: str, statement_id: str) -> int:
    """Rows that the statement's commit says it wrote; it is among the newest."""
    for version in reversed(log.commit_versions(folder)[-_NEWEST_COMMITS:]):
        for action in log.actions(folder, version):
            info = action.get("commitInfo", {})
            if info.get("userMetadata") == statement_id:
                return int(info.get("operationMetrics", {}).get("numOutputRows", 0))
    return 0


def _is_unreadable(type_: DataType) -> bool:
    return isinstance(type_, UnreadableType) or any(_is_unreadable(c) for c in type_.children())


def _session_key(job: Statement) -> tuple[object, ...]:
    """Statements with equal keys may share a Spark session: what it holds then means the same to both."""
    state = job.session
    return (state.session_id, state.catalog, state.schema, tuple(sorted(_settings(job).items())))


def _settings(job: Statement) -> dict[str, str]:
    """Spark's settings for those of the gateway's session that it knows."""
    found = {}
    for key, value in job.session.settings.items():
        if key in _PASSED_ON:
            found[_PASSED_ON[key]] = value
        elif is_tuning(key) and key.startswith("spark.sql.") and not key.startswith("spark.sql.codegen."):
            found[key] = value
    return found


def _mapped(respelt: Respelt) -> Any:
    """Offsets of Spark, in UTF-16 units, to those of the user's text."""
    text = respelt.text
    if text.isascii() or max(text) < "\U00010000":
        return respelt.original

    def original(units: int) -> int:
        count = offset = 0
        while offset < len(text) and count < units:
            count += 2 if text[offset] >= "\U00010000" else 1
            offset += 1
        return respelt.original(offset)

    return original


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


__all__ = ["SessionChange", "SparkRunner", "make_spark_runner"]
