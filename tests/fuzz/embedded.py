"""The embedded engine in a process of its own, a session per case; what takes it too long is ended with the process."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from gateway.errors import GatewayError, UnsupportedError
from gateway.sqltypes import StructType
from gateway.worker_jobs import Parameter
from tests.conformance.session import Session, open_runner
from tests.fuzz.outcome import Column, Outcome
from tests.fuzz.tree import Case

_LONGEST_SECONDS = 20.0
_STARTING_SECONDS = 120.0
_SPAWN = multiprocessing.get_context("spawn")


def columns_of(schema: StructType) -> list[Column]:
    """Name, type and nullability of each column."""
    return [(f.name, f.type.simple, f.nullable) for f in schema.fields]


class Embedded:
    """A process with a runner whose warehouse is below `folder`; `seconds` is what a case may take.

    A case that takes longer is refused as `TOO_SLOW`: nothing is said of its answer, and the next one has a new process.
    """

    def __init__(self, folder: Path, allow_paths: Sequence[Path] = (), seconds: float = _LONGEST_SECONDS) -> None:
        self._made_of = (folder, tuple(allow_paths))
        self._seconds = seconds
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._one_at_a_time = threading.Lock()  # what is made smaller, and what is asked ahead of Spark

    def ask(self, case: Case) -> Outcome:
        """The answer to the case's last statement, or the first failure of one before it."""
        with self._one_at_a_time:
            return self._asked(case)

    def _asked(self, case: Case) -> Outcome:
        pipe = self._pipe or self._started()
        try:
            pipe.send(case)
            if pipe.poll(self._seconds):
                answer: Outcome = pipe.recv()
                return answer
            outcome = Outcome("refused", condition="TOO_SLOW", message=f"too slow: more than {self._seconds:.0f} s")
        except (EOFError, ConnectionError) as error:
            outcome = Outcome("error", condition=f"CRASH {type(error).__name__}", message="the process has ended")
        self._end()
        return outcome

    def close(self) -> None:
        """End the process, if there is one."""
        with self._one_at_a_time:
            self._end()

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._pipe = self._process = None

    def _started(self) -> Connection:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_answer, args=(theirs, *self._made_of), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(_STARTING_SECONDS):
            self._end()
            raise TimeoutError("The embedded engine does not start.")
        self._pipe.recv()
        return self._pipe


def _answer(pipe: Connection, folder: Path, allow_paths: Sequence[Path]) -> None:
    """Answers cases until the other end is closed."""
    runner = open_runner(folder, allow_paths)
    pipe.send(None)
    while True:
        try:
            case: Case = pipe.recv()
        except EOFError:
            return
        session = Session(runner, case.zone)
        *before, last = case.statements
        outcomes = (answered(session, text) for text in before)
        failed = next((o for o in outcomes if o.kind != "answer"), None)
        pipe.send(failed or answered(session, last, case.parameters))


def answered(session: Session, text: str, parameters: Sequence[Parameter] = ()) -> Outcome:
    """What a session says to a statement."""
    try:
        result = session.execute(text, parameters)
        return Outcome("answer", columns_of(result.schema), result.rows())
    except UnsupportedError as error:
        return Outcome("refused", condition=error.condition, message=error.message)
    except GatewayError as error:
        # What is too large here would hang or end Spark's JVM.
        if error.condition == "RESOURCE_EXHAUSTED":
            return Outcome("refused", condition=error.condition, message=error.message)
        return Outcome("error", condition=error.condition, message=error.message)
    except BaseException as error:  # a crash is a finding like any other, and a panic is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return Outcome("error", condition=f"CRASH {type(error).__name__}", message=str(error))
