"""The handler of a worker process: one job after another, each with all that it needs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
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
    default_settings,
)
from gateway.engine import spill
from gateway.engine.base import Emit, Finished, Job, MetadataCall, Planned, Progress, SessionState, Statement
from gateway.engine.datafusion import DataFusionEngine
from gateway.planner import Plan, plan
from gateway.runner import commands, metadata
from gateway.runner.answer import Answer
from gateway.runner.tables import StatementTables
from gateway.sql.catalogue import Clock, Context
from gateway.sql.command_nodes import Query
from gateway.sql.commands import parse_command
from gateway.sql.compile import Compiled, bind, compile_query
from gateway.sql.parameters import bound_parameters
from gateway.sql.resolve import Binder, BoundQuery
from gateway.sql.statement import read_statement

_FLAGS = (GROUP_BY_ALIASES, GROUP_BY_ORDINAL, ORDER_BY_ORDINAL, PRECISION_LOSS)


@dataclass(slots=True)
class Environment:
    """One statement's view of everything: names, clock, parameters."""

    session: SessionState
    tables: StatementTables
    context: Context
    parameters: dict[int | str, Any]

    def setting(self, key: str) -> str:
        """The session's value of a setting, or its default."""
        return self.session.settings.get(key) or default_settings().get(key, "")


class Runner:
    """Runs jobs on the embedded engine."""

    def __init__(
        self, warehouse: str, samples: str, allow_paths: tuple[str, ...], spill: str, memory_limit: int
    ) -> None:
        self._warehouse = warehouse
        self._samples = samples
        self._allow = allow_paths
        self._spill = spill
        self._memory = memory_limit
        self.catalogs: dict[str, Catalog] = {}

    def warm_up(self) -> None:
        """Open the catalogs, start the engine and run one statement through all phases."""
        main = LocalCatalog("main", self._warehouse)
        self.catalogs = {"main": main, "samples": open_samples(self._samples)}
        self.paths = AllowedRoots([self._warehouse, self._samples, *self._allow])
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
        self._statement(job, emit)

    def environment(self, session: SessionState) -> Environment:
        """What a statement of `session` sees."""
        zone = session.settings.get(TIMEZONE) or "UTC"
        clock = Clock(time.time_ns() // 1000, zone)
        context = Context(
            clock,
            session.catalog,
            session.schema,
            session.user,
            *(session.settings.get(key, "true") == "true" for key in _FLAGS),
        )
        tables = StatementTables(self.catalogs, self.paths, session.catalog, session.schema, time_zone=zone)
        return Environment(session, tables, context, {})

    def _statement(self, job: Statement, emit: Emit) -> None:
        started = time.perf_counter()
        env = self.environment(job.session)
        statement = read_statement(job.text)
        command = parse_command(statement)
        env.parameters = bound_parameters(statement.markers, job.parameters, env.context)
        if isinstance(command, Query):
            query, _ = self.bind(command.tree, env)
            compiled = compile_query(query, env.context)
            decision = plan(compiled)
            compile_ms = (time.perf_counter() - started) * 1000
            self._query(decision, job.row_limit, compile_ms, emit)
            return
        self._deliver(commands.run(command, job, env, self, emit), emit)

    def bind(self, tree: Any, env: Environment) -> tuple[BoundQuery, Binder]:
        """Bind a parsed query in `env`."""
        return bind(tree, env.context, env.tables, env.session.views, env.parameters)

    def prepared(self, tree: Any, env: Environment) -> tuple[Compiled, Plan]:
        """Compile and plan a parsed query."""
        query, _ = self.bind(tree, env)
        compiled = compile_query(query, env.context)
        return compiled, plan(compiled)

    def _query(self, decision: Plan, row_limit: int | None, compile_ms: float, emit: Emit) -> None:
        execution = self.engine.run(decision.query)
        execution.start()
        batches = execution.batches()
        rows = 0
        try:
            emit(Planned("SELECT", decision.engine, decision.reason, decision.query.schema))
            for batch in batches:
                if row_limit is not None and rows + batch.num_rows >= row_limit:
                    batch = batch.slice(0, row_limit - rows)
                    if batch.num_rows:
                        emit.rows(batch)
                        rows += batch.num_rows
                    break
                emit.rows(batch)
                rows += batch.num_rows
        finally:
            batches.close()
            execution.close()
        facts = {
            "compile_ms": round(compile_ms, 3),
            "files_kept": sum(s.files_kept for s in decision.scans),
            "files_total": sum(s.files_total for s in decision.scans),
            "bytes_planned": sum(s.bytes for s in decision.scans),
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
                )
            )
        rows = 0
        if answer.table is not None:
            for batch in answer.table.to_batches():
                emit.rows(batch)
                rows += batch.num_rows
        emit(Finished(rows, answer.modified_rows, answer.changes, answer.facts))


class _Nowhere:
    """An `Emit` that keeps nothing."""

    cancelled = False

    def __call__(self, event: Any) -> None:
        return None

    def rows(self, batch: pa.RecordBatch) -> None:
        return None


__all__ = ["Environment", "Mapping", "Progress", "Runner"]
