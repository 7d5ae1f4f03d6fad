"""Processes that are killed at any point while they write: the table is its old version or its new one, nothing else stays.

The same as in `test_changes.py`, without a gateway around the process: that many more points can be tried.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.runner import Runner, make_runner
from tests.attacks.test_changes import (
    AT_ONCE,
    CARE,
    CHANGES,
    KILLED,
    KILLS,
    MADE,
    OLD,
    PLACED,
    RAISED,
    RESTORED,
    ROWS,
    SWEPT,
    TELLING,
    TOTAL,
    VECTORS,
)
from tests.live.tables import strays
from tests.unit.runner.session import Session

Row = tuple[Any, ...]
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.attacks.test_killed_writers"])


def _runner(folder: Path) -> Runner:
    made = make_runner(
        warehouse=str(folder / "warehouse"),
        samples=str(folder / "samples"),
        allow_paths=(),
        spill=str(folder / f"spill{os.getpid()}"),
        memory_limit=1 << 28,
    )
    made.warm_up()
    return made


def _write(folder: Path, told: Connection) -> None:
    """One statement in a process of its own, which tells when it may begin and when it is done."""
    session = Session(_runner(folder))
    told.send("ready")
    statement = told.recv()
    try:
        session.run(statement)
        told.send("done")
    except GatewayError as error:
        told.send(error.condition)
    told.recv()  # for ever, or until nobody listens any more


class Writer:
    """A process with one statement to run."""

    def __init__(self, folder: Path) -> None:
        self.ours, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_write, args=(folder, theirs), daemon=True)
        self.process.start()
        theirs.close()
        assert self.ours.recv() == "ready"

    def run(self, statement: str, seconds: float | None = None) -> str:
        """What it has told when it ended, or was killed so long after it had begun; "" for nothing."""
        self.ours.send(statement)
        if seconds is not None:
            time.sleep(seconds)
            assert self.process.pid is not None
            os.kill(self.process.pid, signal.SIGKILL)
        try:
            found = str(self.ours.recv())
        except (EOFError, ConnectionResetError):  # the latter before it has read the statement
            found = ""
        self.process.kill()
        self.process.join(60)
        self.ours.close()
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def session(folder: Path) -> Session:
    return Session(_runner(folder))


def total(session: Session) -> Row:
    (row,) = session.rows(TOTAL.format("killed"))
    return row


def _prepared(session: Session, change: str, made: str) -> tuple[Row, Row]:
    """The table as it is before a statement; what is in it then, and after it."""
    session.run("DROP TABLE IF EXISTS killed")
    session.run(made.format("killed", ROWS))
    old: Row = OLD
    new: Row = KILLED.get(change, OLD)
    if change in (RESTORED, SWEPT):
        session.run(RAISED.format("killed"))
        old = CHANGES[RAISED]
    if change == SWEPT:
        session.run(AT_ONCE.format("killed"))
        new = old
    return old, new


@pytest.mark.heavy
@pytest.mark.parametrize("made", [MADE, VECTORS, TELLING], ids=["plain", "vectors", "telling"])
@pytest.mark.parametrize("change", [*KILLED, *CARE, PLACED, RESTORED, SWEPT])
def test_a_writer_that_is_killed_has_done_all_or_nothing(
    folder: Path, session: Session, change: str, made: str
) -> None:
    rng = random.Random(change + made + os.environ.get("GATEWAY_TEST_KILLS", ""))
    _prepared(session, change, made)
    whole, start = Writer(folder), time.monotonic()
    assert whole.run(change.format("killed")) == "done"
    seconds = time.monotonic() - start
    for _ in range(KILLS):
        old, new = _prepared(session, change, made)
        said = Writer(folder).run(change.format("killed"), rng.random() * seconds)
        ended = total(session)
        assert ended in (old, new)
        assert said in ("", "done")
        assert said != "done" or ended == new
        if made is TELLING and change != SWEPT:  # what is told of changes adds up to the rows
            ((told,),) = session.rows(
                "SELECT sum(CASE WHEN _change_type IN ('insert', 'update_postimage') THEN v ELSE -v END) AS v "
                "FROM table_changes('killed', 0)"
            )
            assert (told or 0) == (ended[2] or 0)
        session.run(AT_ONCE.format("killed"))
        session.run(SWEPT.format("killed"))
        assert total(session) == ended
        assert strays(folder / "warehouse" / "default" / "killed") == set()
        if change != RESTORED:  # the files of the other version are gone
            session.run(change.format("killed"))  # what was left behind is in nobody's way
