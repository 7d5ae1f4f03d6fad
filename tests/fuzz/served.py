"""A process that answers one question after the other, and is ended with one that does not end."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, TypeVar

from gateway.engine.base import Query
from gateway.errors import GatewayError
from gateway.planner import plan
from gateway.sql.compile import compile_query
from gateway.sql.read.command_nodes import Query as QueryCommand
from gateway.sql.read.commands import parse_command
from gateway.sql.read.statement import read_statement
from tests.conformance.session import Session

_STARTING_SECONDS = 300.0
_WORKING = 0.1  # of a second: who waits takes less
_SPAWN = multiprocessing.get_context("spawn")

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Told(Generic[Answer]):
    """What came of a question: an answer, an error, or neither within its time."""

    ended: bool
    works: bool = False  # computes still, once its time is over
    answer: Answer | None = None
    error: str | None = None


class Served(Generic[Asked, Answer]):
    """Asks what `made` makes, in a process of its own.

    Args:
        made: makes, of a folder, what answers; picklable.
        folder: kept between processes.
        seconds: what a question has.
    """

    def __init__(self, made: Callable[[Path], Callable[[Asked], Answer]], folder: Path, seconds: float) -> None:
        self._made, self._folder, self._seconds = made, folder, seconds
        self._process: Any = None
        self._pipe: Connection | None = None

    def ask(self, asked: Asked) -> Told[Answer]:
        """What is told of `asked`; the process is ended with one that does not end."""
        if self._pipe is None:
            self._start()
        assert self._pipe is not None
        self._pipe.send(asked)
        if self._pipe.poll(self._seconds):
            told: Told[Answer] = self._pipe.recv()
            return told
        before = self._cpu_seconds()
        time.sleep(1.0)
        works = self._cpu_seconds() - before > _WORKING
        self.close()
        return Told(ended=False, works=works)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._pipe is not None
            self._pipe.close()
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None

    def _start(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs, self._made, self._folder), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(_STARTING_SECONDS):
            raise TimeoutError("The engine does not start.")
        self._pipe.recv()

    def _cpu_seconds(self) -> float:
        """What the process has computed so far; Linux's (proc(5): utime and stime are the 14th and 15th field)."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def planned(session: Session, text: str) -> Query:
    """A statement for an engine of any kind, as one that is not small."""
    command = parse_command(read_statement(text))
    assert isinstance(command, QueryCommand)
    env = session.runner.environment(session.state)
    query, _ = session.runner.bind(command.tree, env)
    return replace(plan(compile_query(query, env.context)).query, small=False)


def _serve(pipe: Connection, made: Callable[[Path], Callable[[Any], Any]], folder: Path) -> None:
    answer = made(folder)
    pipe.send(None)
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(Told(ended=True, answer=answer(asked)))
        except GatewayError as error:
            pipe.send(Told(ended=True, error=f"{error.condition}: {error.message}"))
