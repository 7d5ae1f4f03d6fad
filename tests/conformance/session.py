"""A session on a worker's handler in this process: statements one after the other, with the effects that they have on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.config.session import TIMEZONE
from gateway.engine.base import Finished, Planned, SessionChange, SessionState, Statement, changed
from gateway.runner import make_runner
from gateway.runner.handler import Runner
from gateway.sql.compile import Compiled
from gateway.sql.read.command_nodes import Query
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from gateway.sqltypes import StructType
from gateway.worker_jobs import Parameter
from tests.unit.sql.functions.probe_runner import canonical


def open_runner(folder: Path, allow_paths: Sequence[Path] = ()) -> Runner:
    """A warm runner with its warehouse, samples and spill files below `folder`."""
    for name in ("warehouse", "spill"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    runner: Runner = make_runner(
        warehouse=str(folder / "warehouse"),
        samples=str(folder / "samples"),
        allow_paths=tuple(str(p) for p in allow_paths),
        spill=str(folder / "spill"),
        memory_limit=1 << 30,
    )
    runner.warm_up()
    return runner


@dataclass(slots=True)
class Result:
    """Schema, and the rows as Arrow in the gateway's internal types."""

    schema: StructType
    batches: list[pa.RecordBatch]

    def columns(self) -> list[list[Any]]:
        """Canonical values (`probe_runner.canonical`) by column."""
        whole: list[list[Any]] = [[] for _ in self.schema.fields]
        for batch in self.batches:
            for column, values, f in zip(batch.columns, whole, self.schema.fields, strict=True):
                values += canonical(column, f.type)
        return whole

    def rows(self) -> list[list[Any]]:
        """Canonical values by row."""
        if not self.schema.fields:
            return [[] for _ in range(sum(b.num_rows for b in self.batches))]
        return [list(r) for r in zip(*self.columns(), strict=True)]


@dataclass(slots=True)
class _Collector:
    cancelled: bool = False
    has_enough: bool = False
    schema: StructType | None = None
    batches: list[pa.RecordBatch] = field(default_factory=list)
    changes: tuple[SessionChange, ...] = ()

    def __call__(self, event: Any) -> None:
        if isinstance(event, Planned):
            self.schema = event.schema
        elif isinstance(event, Finished):
            self.changes = event.changes

    def rows(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)


class Session:
    """One client's session."""

    def __init__(self, runner: Runner, zone: str = "UTC") -> None:
        self.runner = runner
        self.state = SessionState("main", "default", "tester", {TIMEZONE: zone})

    def execute(self, sql: str, parameters: Sequence[Parameter] = ()) -> Result:
        """The result of one statement; raises the gateway's errors."""
        emit = _Collector()
        self.runner.run(Statement("conformance", sql, self.state, tuple(parameters)), emit)
        self.state = changed(self.state, emit.changes)
        assert emit.schema is not None
        return Result(emit.schema, emit.batches)

    def compiled(self, sql: str) -> Compiled:
        """A query as it is compiled, not run; raises the gateway's errors."""
        command = parse_command(read_statement(sql))
        assert isinstance(command, Query)
        return self.runner.prepared(command.tree, self.runner.environment(self.state))[0]

    def load(self, views: dict[str, Path]) -> None:
        """Parquet files as temporary views."""
        for name, path in views.items():
            self.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM parquet.`{path}`")
