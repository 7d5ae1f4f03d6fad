"""The handler of a worker process: one job after another, each with all that it needs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from gateway.catalog.base import Catalog
from gateway.config.session import ENGINE, USE_CACHED_RESULT, honoured_by_spark, keeps_nanoseconds
from gateway.delta import at_work, wanted
from gateway.delta.scan import ScanPlan
from gateway.delta.table import cache_hits
from gateway.engine import spill
from gateway.engine.base import (
    Emit,
    Finished,
    HandedOverError,
    Handler,
    Handover,
    Job,
    MetadataCall,
    NotBriefError,
    Planned,
    SessionState,
    Statement,
    Witness,
)
from gateway.engine.datafusion import DataFusionEngine
from gateway.errors import Span, UnsupportedError, UserError, unsupported
from gateway.history.search import History
from gateway.planner import (
    Plan,
    ScanFacts,
    asked_for,
    confirmed,
    handed_over,
    honoured_there,
    may_be_brief,
    plan,
    too_large,
    uses_definitions,
)
from gateway.runner import commands, metadata
from gateway.runner.answer import Answer
from gateway.runner.catalogs import open_catalogs
from gateway.runner.commands.explain import explained_elsewhere, explained_error
from gateway.runner.commands.targets import only_row, stop_if_cancelled
from gateway.runner.environment import Environment, environment_of
from gateway.runner.kept import Kept, KeptQueries
from gateway.runner.objects import called_function
from gateway.runner.session_definitions import needed
from gateway.sql.bind.parameters import bound_parameters
from gateway.sql.bind.resolve import Binder, BoundQuery
from gateway.sql.compile import Compiled, bind, compile_query, shown
from gateway.sql.read.command_nodes import Explain, Query
from gateway.sql.read.commands import explained, parse_command
from gateway.sql.read.identifiers import identified
from gateway.sql.read.reading import check_reads
from gateway.sql.read.statement import Statement as Read
from gateway.sql.read.statement import read_statement
from gateway.sql.read.tokens import span_of_token
from gateway.sql.spark.allowed import check_allowed
from gateway.sql.typed.catalogue import Context
from gateway.sql.typed.nodes import Ids, Rel
from gateway.sqltypes import StructField, struct

_MOST_WITNESSES = 256  # files that are looked at each time before an answer is given once more
_UNKNOWN_FUNCTION = ("UNRESOLVED_ROUTINE", "UNRESOLVED_TABLE_VALUED_FUNCTION")
#: What Spark has no word for, and an EXPLAIN may not tell by the way.
_FORBIDDEN = frozenset({"PATH_NOT_ALLOWED", "PERMISSION_DENIED"})


class Runner(Handler):
    """Runs jobs on the embedded engine."""

    def __init__(
        self,
        warehouse: str,
        samples: str,
        allow_paths: tuple[str, ...],
        spill: str,
        memory_limit: int,
        spark: bool = False,
        spark_above: int = 0,
        history: History | None = None,
    ) -> None:
        self._warehouse = warehouse
        self._samples = samples
        self._allow = allow_paths
        self._spill = spill
        self._memory = memory_limit
        self.has_spark = spark
        self.spark_above = spark_above
        self._history = history
        self.catalogs: dict[str, Catalog] = {}
        self._kept = KeptQueries()

    def warm_up(self) -> None:
        """Open the catalogs, start the engine and run one statement through all phases."""
        self.catalogs, self.paths = open_catalogs(self._warehouse, self._samples, self._allow)
        spill.sweep(self._spill)
        self.engine = DataFusionEngine(self._memory, spill.claim(self._spill))
        state = SessionState("main", "default", "warm-up", {})
        statement = Statement("warm-up", "SELECT sum(id) AS s FROM range(10) WHERE id > 3 GROUP BY id % 2", state)
        self.run(statement, _Nowhere())

    def run(self, job: Job, emit: Emit) -> None:
        """Run one job; see `engine.base.Handler`."""
        if isinstance(job, MetadataCall):
            self._deliver(metadata.answer(job, self.catalogs), emit)
            return
        self.engine.measured()  # what came before, and has failed, is not this one's
        self.engine.told = emit
        try:
            with identified(job) as named, wanted.asked(partial(stop_if_cancelled, emit)):
                self._statement(named, emit)
        finally:
            at_work.end()

    def environment(self, session: SessionState) -> Environment:
        """What a statement of `session` sees."""
        env = environment_of(session, self.catalogs, self.paths, self._history)
        env.tables.compute = partial(self._computed, env.context)
        return env

    def _computed(self, context: Context, rel: Rel, ids: Ids) -> Any:
        """The value of a query of one row, which stands in a statement where a constant has to be known."""
        schema = struct(*(StructField(c.name, c.type, c.nullable) for c in rel.columns))
        query = BoundQuery(rel, schema, ids if ids.subqueries else None)
        (value,) = only_row(plan(compile_query(query, context)), self, _Nowhere())
        self.engine.measured()  # it is no operator of the statement's
        return value

    def _statement(self, job: Statement, emit: Emit) -> None:
        started = time.perf_counter()
        env = self.environment(job.session)
        kept = self._kept.find(job)
        statement = read_statement(job.text) if kept is None else kept.statement
        if job.read_only:
            check_reads(statement)
        if job.brief and not may_be_brief(statement):
            raise NotBriefError
        wanted: Handover | None = None
        meant = explained(statement) or statement
        try:
            used = [d.key for d in needed(statement, job.session)]
            place = (job.session.catalog, job.session.schema)
            wanted = (
                honoured_there(meant, honoured_by_spark(job.session.settings), env.setting(ENGINE), place)
                or asked_for(meant, env.setting(ENGINE), place)
                or uses_definitions(meant, used)
            )
            if wanted is not None:
                raise unsupported(f"Running this statement on Spark ({wanted.reason})", statement.span)
            if kept is not None:
                self._answer_again(kept, job, env, started, emit)
                return
            with self.functions_told(statement, env):
                self._answer(statement, job, env, started, emit)
        except UnsupportedError as error:
            error.at(span_of_token(statement.tokens[0]))  # the engine's and a table's refusals know no place
            inner = explained(statement)
            handover = wanted or handed_over(inner or statement, error, env.setting(ENGINE))
            if env.tables.reads_information:
                handover = None
            if inner is not None:
                self._deliver(self._route(inner, job, error, handover), emit)
                return
            if handover is None:
                raise
            if self.has_spark:
                check_allowed(statement, keeps_nanoseconds(job.session.settings))
            self.hand_over(error, handover)
        except UserError as error:
            self._confirm(statement, job, env, error, time.perf_counter() - started)
            raise

    def _confirm(self, statement: Read, job: Statement, env: Environment, error: UserError, seconds: float) -> None:
        """Raise what asks Spark whether the error is right, if it may run the statement."""
        handover = confirmed(statement, error, env.setting(ENGINE), env.read_bytes, seconds)
        if handover is None or not self.has_spark or env.tables.reads_information:
            return
        with contextlib.suppress(UnsupportedError):
            check_allowed(statement, keeps_nanoseconds(job.session.settings))
            raise HandedOverError(error, handover)

    @contextlib.contextmanager
    def functions_told(self, statement: Read, env: Environment) -> Iterator[None]:
        """What fails in the block because of a function that only Spark knows is refused as such."""
        try:
            yield
        except UserError as error:
            unknown = error.condition in _UNKNOWN_FUNCTION
            used = called_function(statement, env.tables, env.session.views) if unknown else None
            if used is None:
                raise
            raise unsupported(f"The function `{used}`, which only Spark runs,", error.span) from None

    def _route(self, inner: Read, job: Statement, error: UnsupportedError, handover: Handover | None) -> Answer:
        """EXPLAIN of a statement that the embedded engine refuses."""
        if handover is None or not self.has_spark:
            return explained_elsewhere("none", str(error))
        try:
            check_allowed(inner, keeps_nanoseconds(job.session.settings))
        except UnsupportedError as refusal:
            return explained_elsewhere("none", str(refusal))
        return explained_elsewhere(handover.engine, handover.reason)

    def _answer(self, statement: Read, job: Statement, env: Environment, started: float, emit: Emit) -> None:
        command = parse_command(statement)
        parsed = time.perf_counter()
        hits = cache_hits()
        env.parameters = bound_parameters(statement.markers, job.parameters, env.context)
        if not isinstance(command, Query):
            answer = self._commanded(command, statement, job, env, started, emit)
            self._deliver(replace(answer, facts={**answer.facts, **self._touched(command, env)}), emit)
            return
        compiled = compile_query(shown(*self.bind(command.tree, env)), env.context, answers=True)
        decision = plan(compiled)
        if job.brief and not decision.is_brief:
            raise NotBriefError
        facts = {
            "parse_ms": _milliseconds(parsed - started),
            "catalog_ms": _milliseconds(env.tables.seconds),
            "compile_ms": _milliseconds(time.perf_counter() - started),
            "snapshot_hits": cache_hits() - hits,
        }
        self.check_size(decision, env, statement.span)
        names = None if env.context.clock.asked else env.tables.witnesses()
        found = Kept(statement, decision, names, env.tables.touched())
        self._answer_query(found, job, env, facts, emit)
        self._kept.keep(job, found)

    def _commanded(
        self, command: Any, statement: Read, job: Statement, env: Environment, started: float, emit: Emit
    ) -> Answer:
        """What a command answers; EXPLAIN tells what is wrong with its statement, where Spark's analysis would."""
        try:
            return commands.run(command, job, env, self, emit)
        except UserError as error:
            if not isinstance(command, Explain) or command.mode == "analyze" or error.condition in _FORBIDDEN:
                raise
            self._confirm(statement, job, env, error, time.perf_counter() - started)
            return self._explained_error(error, statement, job, env)

    def _explained_error(self, error: UserError, statement: Read, job: Statement, env: Environment) -> Answer:
        try:
            with self.functions_told(statement, env):
                raise error
        except UserError:
            return explained_error(error.text(job.text))

    def _answer_again(self, kept: Kept, job: Statement, env: Environment, started: float, emit: Emit) -> None:
        """The answer to a query that was answered before."""
        if job.brief and not kept.decision.is_brief:
            raise NotBriefError
        facts = {
            **dict.fromkeys(("parse_ms", "catalog_ms"), 0.0),
            "compile_ms": _milliseconds(time.perf_counter() - started),
            "snapshot_hits": len(kept.decision.scans),
        }
        self._answer_query(kept, job, env, facts, emit)

    def _answer_query(self, query: Kept, job: Statement, env: Environment, facts: dict[str, Any], emit: Emit) -> None:
        decision = query.decision
        env.read_bytes = sum(scan.bytes for scan in decision.scans)
        facts |= {"read": query.read, "scans": [_told(scan) for scan in decision.scans]}
        self._query(decision, job.row_limit, facts, emit, _witnesses(env, query))

    def _touched(self, command: Any, env: Environment) -> dict[str, Any]:
        """What a command has read and changed, and by which plan if that took long."""
        read, name = env.tables.touched(), commands.written(command)
        changed = [] if name is None else [env.tables.qualified(name.parts)]
        spelled = {tuple(part.lower() for part in each) for each in changed}
        return {
            "read": [each for each in read if tuple(part.lower() for part in each) not in spelled],
            "written": changed,
            "operators": [operator.told() for operator in self.engine.measured()],
        }

    def hand_over(self, error: UnsupportedError, handover: Handover) -> NoReturn:
        """Raise what gives the statement to Spark, or, without Spark, the refusal."""
        if self.has_spark:
            raise HandedOverError(error, handover)
        error.message = f"{error.message.rstrip('.')}. Spark may run it: start the gateway with --spark."
        raise error

    def check_size(self, decision: Plan, env: Environment, span: Span | None = None) -> None:
        """Raise HandedOverError for what would read more than the embedded engine shall."""
        large = too_large(decision, self.spark_above, env.setting(ENGINE))
        if large is not None and self.has_spark:
            raise HandedOverError(unsupported(large.reason, span), large)

    def bind(self, tree: Any, env: Environment) -> tuple[BoundQuery, Binder]:
        """Bind a parsed query in `env`."""
        return bind(tree, env.context, env.tables, env.session.views, env.parameters)

    def prepared(self, tree: Any, env: Environment) -> tuple[Compiled, Plan]:
        """Compile and plan a parsed query. Raises HandedOverError for one that is too large."""
        query, _ = self.bind(tree, env)
        compiled = compile_query(query, env.context)
        decision = plan(compiled)
        self.check_size(decision, env)
        return compiled, decision

    def _query(
        self,
        decision: Plan,
        row_limit: int | None,
        facts: dict[str, Any],
        emit: Emit,
        witnesses: tuple[Witness, ...] | None,
    ) -> None:
        execution = self.engine.run(decision.query)
        execution.start()
        batches = execution.batches()
        rows = 0
        try:
            shape = decision.query.schema
            streams = not decision.may_raise
            told = decision.engine, decision.reason, shape
            emit(Planned("SELECT", *told, streams=streams, witnesses=witnesses, soon=decision.is_soon))
            for batch in batches:
                if row_limit is not None and rows + batch.num_rows >= row_limit:
                    batch = batch.slice(0, row_limit - rows)
                    if batch.num_rows:
                        emit.rows(batch)
                        rows += batch.num_rows
                    break
                emit.rows(batch)
                rows += batch.num_rows
                if emit.has_enough:
                    break
        finally:
            batches.close()
            execution.close()
        facts |= {
            "spilled_bytes": execution.spilled_bytes,
            "files_kept": sum(s.files_kept for s in decision.scans),
            "files_total": sum(s.files_total for s in decision.scans),
            "bytes_planned": sum(s.bytes for s in decision.scans),
            "operators": [operator.told() for operator in self.engine.measured()],
        }
        emit(Finished(rows, facts=facts))

    def _deliver(self, answer: Answer, emit: Emit) -> None:
        if not answer.announced:
            emit(
                Planned(
                    answer.statement_type,
                    "gateway",
                    "answered without an engine",
                    answer.schema,
                    is_query=answer.is_query,
                    soon=True,
                )
            )
        rows = 0
        if answer.table is not None:
            for batch in answer.table.to_batches():
                emit.rows(batch)
                rows += batch.num_rows
        emit(Finished(rows, answer.modified_rows, answer.changes, answer.facts))


def _witnesses(env: Environment, query: Kept) -> tuple[Witness, ...] | None:
    """What an answer may be kept by: its tables and views, and the files that it is made of.

    None for what depends on when it is asked, and for what reads what cannot be looked at, or too many files to look at each.
    """
    named, decision = query.names, query.decision
    if named is None or env.setting(USE_CACHED_RESULT) != "true":
        return None
    if sum(scan.files_kept for scan in decision.scans) > _MOST_WITNESSES:
        return None
    scans = (source for source in decision.query.sources.values() if isinstance(source, ScanPlan))
    found = (*named, *(seen for scan in scans for seen in scan.witnesses()))
    return found if all(seen.marker for seen in found) else None


def _told(scan: ScanFacts) -> tuple[Any, ...]:
    return (
        scan.table,
        scan.version,
        scan.reader,
        scan.reason,
        scan.files_kept,
        scan.files_total,
        scan.bytes,
        len(scan.columns),
    )


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


class _Nowhere:
    """An `Emit` that keeps nothing."""

    cancelled = has_enough = False

    def __call__(self, event: Any) -> None:
        return None

    def rows(self, batch: pa.RecordBatch) -> None:
        return None
