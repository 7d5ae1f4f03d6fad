"""A session over a `Runner` in this process: statements change it as they do in the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from gateway.engine.base import Finished, MetadataCall, Planned, SessionState, Statement, changed
from gateway.errors import GatewayError
from gateway.runner import Runner
from gateway.worker_jobs import Parameter


class Events:
    """An `Emit` that keeps everything."""

    cancelled = has_enough = False

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.batches: list[pa.RecordBatch] = []

    def __call__(self, event: Any) -> None:
        self.events.append(event)

    def rows(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement answered."""

    planned: Planned
    finished: Finished
    rows: list[tuple[Any, ...]]

    @property
    def columns(self) -> list[tuple[str, str, bool]]:
        """Name, type and nullability of each column."""
        return [(f.name, f.type.simple, f.nullable) for f in self.planned.schema.fields]


class Session:
    """Runs statements one after the other."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.state = SessionState("main", "default", "tester", {})

    def run(self, text: str, *parameters: Parameter) -> Result:
        """One statement. Raises GatewayError."""
        result = self._run(Statement("s", text, self.state, parameters))
        self.state = changed(self.state, result.finished.changes)
        return result

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        return self.run(text).rows

    def ask(self, kind: str, **patterns: Any) -> Result:
        """A metadata call."""
        return self._run(MetadataCall("m", kind, self.state, **patterns))

    def _run(self, job: Any) -> Result:
        events = Events()
        self.runner.run(job, events)
        planned = [e for e in events.events if isinstance(e, Planned)]
        finished = events.events[-1]
        assert len(planned) == 1
        assert isinstance(finished, Finished)
        rows = [
            tuple(row) for batch in events.batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)
        ]
        assert finished.rows == len(rows)
        return Result(planned[0], finished, rows)


def refused(session: Session, text: str) -> GatewayError:
    """The error of a statement, which leaves the session as it was."""
    before = session.state
    with pytest.raises(GatewayError) as caught:
        session.run(text)
    assert session.state == before
    return caught.value
