"""The history is written beside all that may happen to its file, and no statement ever waits for it or fails."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway import observability
from gateway.history.files import FileStore
from gateway.history.recorder import Recorder
from gateway.history.records import LONGEST_TEXT, STATEMENTS, Record
from gateway.history.search import History

_WAIT = 20.0


def record(number: int = 0, text: str = "SELECT 1", **more: Any) -> Record:
    """A record as the service makes them."""
    started = more.pop("started_ms", round(time.time() * 1000) + number)
    given = {"message": None, "condition": None, "sqlstate": None, "user": "ann", **more}
    return Record(
        statement_id=f"s{number}",
        session_id="session",
        client="test",
        statement_type="SELECT",
        engine="datafusion",
        reason="proved",
        state="FINISHED",
        text=text,
        started_ms=started,
        ended_ms=started + 5,
        total_ms=5.0,
        queue_ms=1.0,
        parse_ms=1.0,
        compile_ms=2.0,
        execute_ms=2.0,
        rows=1,
        written_rows=None,
        read_bytes=0,
        files_kept=0,
        files_total=0,
        spilled_bytes=0,
        result_bytes=8,
        cached=False,
        **given,
    )


def recorder(path: Path, **more: Any) -> Recorder[Record]:
    return Recorder(FileStore(path, STATEMENTS), **{"age": 86400.0, "size": 64 << 20, **more})


@contextmanager
def running(path: Path, **more: Any) -> Iterator[Recorder[Record]]:
    made = recorder(path, **more)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def kept(path: Path, column: str = "statement_id") -> list[Any]:
    rows = History(str(path), open_to_all=True).rows("", [column, "id"])
    return [row[0] for piece in rows for row in sorted(piece, key=lambda r: r[1])]


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The events that are logged meanwhile."""
    events: list[str] = []

    def log(event: str, level: str = "info", **fields: object) -> None:
        events.append(event)

    for module in ("recorder", "database", "files"):
        monkeypatch.setattr(f"gateway.history.{module}.log", log)
    return events


def test_what_ended_is_written_in_order_and_for_nobody_else_to_read(path: Path) -> None:
    with running(path) as history:
        for number in range(300):
            history.add(record(number))
        assert history.flush(_WAIT)
        assert kept(path) == [f"s{n}" for n in range(300)]
    assert path.stat().st_mode & 0o777 == 0o600
    assert history.lost == 0


def test_what_waits_is_written_before_the_end(path: Path) -> None:
    history = recorder(path)
    history.start()
    history.add(record(7))
    history.stop()
    assert kept(path) == ["s7"]
    history.add(record(8))
    assert history.lost == 1


class _Silent(FileStore):
    """A store that takes rows and answers when the test lets it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, STATEMENTS)
        self.asked, self.answers = threading.Event(), threading.Event()

    def write(self, rows: Any, later: Any = ()) -> None:
        self.asked.set()
        self.answers.wait(_WAIT)


def test_the_time_for_the_end_is_one_for_all_that_end(path: Path) -> None:
    """What has been told to stop is not waited for anew when its turn comes."""
    store, now = _Silent(path), [0.0]
    history: Recorder[Record] = Recorder(store, age=86400.0, size=64 << 20, clock=lambda: now[0])
    history.start()
    assert store.asked.wait(_WAIT)
    history.add(record(1))
    history.begin_stop()
    now[0] += 5.0  # others have stopped meanwhile
    started = time.monotonic()
    history.stop()
    assert time.monotonic() - started < 2.0
    assert history.lost == 1
    store.answers.set()


def test_texts_of_all_kinds_come_back(path: Path) -> None:
    texts = ["a\0b", "x\u202ey", "\ud800", "", "SELECT 'it''s'", "<script>", "é" * 10]
    with running(path, show_sql=True) as history:
        for number, text in enumerate(texts):
            history.add(record(number, text, message=text, user=text))
        history.add(record(99, "y" * (4 * LONGEST_TEXT)))
        assert history.flush(_WAIT)
    *found, cut = kept(path, "text")
    assert found == ["?" if text == "\ud800" else text for text in texts]
    assert cut == "y" * LONGEST_TEXT + " …"


def test_literals_and_messages_are_left_out_unless_wanted(path: Path) -> None:
    with running(path) as history:
        history.add(record(1, "SELECT 'secret', 42", condition="X", sqlstate="42000", message="no 'secret'"))
        assert history.flush(_WAIT)
    assert kept(path, "text") == ["SELECT ?, ?"]
    assert kept(path, "message") == [None]
    assert b"secret" not in path.read_bytes()


def test_tokens_are_masked_even_where_texts_are_wanted(path: Path) -> None:
    with running(path, show_sql=True) as history:
        history.add(record(1, "SET x = dapi" + "0" * 32))
        assert history.flush(_WAIT)
    assert kept(path, "text") == ["SET x = ***"]


def test_a_locked_file_delays_nobody_and_loses_nothing(path: Path, lines: list[str]) -> None:
    with running(path) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            for number in range(2, 1002):
                history.add(record(number))
            assert time.monotonic() - started < 10.0
            eventually(lambda: "history cannot be written" in lines)
            other.execute("ROLLBACK")
        assert history.flush(_WAIT)
    assert len(kept(path)) == 1001
    assert lines.count("history cannot be written") == 1
    assert "history is written again" in lines


def test_what_finds_no_room_is_counted(path: Path, lines: list[str]) -> None:
    before = _lost_metric()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with running(path, waiting_bytes=50 * 1024) as history:
            for number in range(500):
                history.add(record(number))
            lost = history.lost
            assert 400 < lost < 500
            other.execute("ROLLBACK")
            assert history.flush(_WAIT)
            eventually(lambda: "history is not complete" in lines)
    assert len(kept(path)) == 500 - lost
    assert _lost_metric() - before == lost


def _lost_metric() -> float:
    line = next(x for x in observability.metrics_text().decode().splitlines() if x.startswith("history_lost_total "))
    return float(line.split()[1])


@pytest.mark.parametrize("damage", ["text", "cut", "pages"])
def test_a_damaged_file_is_set_aside(path: Path, lines: list[str], damage: str) -> None:
    with running(path) as history:
        for number in range(200):
            history.add(record(number))
        assert history.flush(_WAIT)
    whole = path.read_bytes()
    path.write_bytes(
        {"text": b"this is no database" * 500, "cut": whole[:5000], "pages": whole[:100] + b"\xff" * 9000}[damage]
    )
    with running(path) as history:
        history.add(record(1000))
        assert history.flush(_WAIT)
    assert kept(path)[-1] == "s1000"
    aside = [p for p in path.parent.iterdir() if ".corrupt-" in p.name]
    assert aside or damage == "cut"  # a file whose end is missing may be written to for a while
    assert ("history set aside" in lines) == bool(aside)
    assert history.lost == 0


def test_a_file_that_is_damaged_while_it_is_open_keeps_nobody_from_writing(path: Path) -> None:
    with running(path) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
        for each in list(path.parent.iterdir()):
            with each.open("r+b") as file:  # not cut first: SQLite has one of them mapped, and would be ended by SIGBUS
                file.write(b"\xff" * each.stat().st_size)
        for number in range(2, 6):
            history.add(record(number))
            history.flush(_WAIT)
    with running(path) as history:
        history.add(record(6))
        assert history.flush(_WAIT)
    assert kept(path)[-1] == "s6"


def test_a_newer_or_foreign_file_is_set_aside_whole(path: Path) -> None:
    with running(path) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 7")
    with running(path) as history:
        history.add(record(2))
        assert history.flush(_WAIT)
    assert kept(path) == ["s2"]
    aside = next(p for p in path.parent.iterdir() if ".version7-" in p.name)
    assert kept(aside) == ["s1"]
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE statements (x)")
    with running(path) as history:
        history.add(record(3))
        assert history.flush(_WAIT)
    assert kept(path) == ["s3"]
    assert any(".foreign-" in p.name for p in path.parent.iterdir())


def test_files_are_not_set_aside_for_ever(path: Path, lines: list[str]) -> None:
    with running(path) as history:
        for number in range(6):
            history.add(record(number))
            history.flush(2.0)
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            path.write_bytes(b"no database" * 1000)
    assert lines.count("history set aside") == 3
    assert "history cannot be written" in lines


def test_a_file_that_is_gone_is_made_anew(path: Path) -> None:
    with running(path) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
        for each in list(path.parent.iterdir()):
            each.unlink()
        history.add(record(2))
        assert history.flush(_WAIT)
        assert kept(path) == ["s2"]


def test_a_folder_that_is_gone_comes_back(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "state" / "history.db"
    with running(path) as history:
        history.add(record(1))
        eventually(lambda: "history cannot be written" in lines)
        path.parent.mkdir()
        assert history.flush(_WAIT)
    assert kept(path) == ["s1"]


_READ_ONLY = """
import os, sys, time
from pathlib import Path
from tests.unit.history.test_recorder import record, recorder
path = Path(sys.argv[1])
if os.getuid() == 0:
    os.setuid(65534)
history = recorder(path)
history.start()
start = time.monotonic()
for number in range(100):
    history.add(record(number))
assert time.monotonic() - start < 10
assert not history.flush(2.0)
history.stop()
print("lost", history.lost)
"""


def test_a_file_that_may_not_be_written_loses_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history.db"
    path.parent.mkdir()
    with running(path) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
    if os.getuid() == 0:  # who is not root there has to get in
        for folder in (tmp_path, *tmp_path.parents[:2]):
            folder.chmod(folder.stat().st_mode | 0o755)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        done = subprocess.run([sys.executable, "-c", _READ_ONLY, str(path)], capture_output=True, text=True, timeout=60)
    finally:
        path.parent.chmod(0o755)
    assert done.stdout == "lost 100\n", done.stderr
    assert done.stderr.count("history cannot be written") == 1


_FULL = """
import resource, sys
from pathlib import Path
from tests.unit.history.test_recorder import record, recorder
history = recorder(Path(sys.argv[1]), show_sql=True)
history.start()
history.add(record(1))
assert history.flush(20)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
for number in range(2, 100):
    history.add(record(number, "x" * 10_000))
assert not history.flush(2.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert history.flush(20)
history.stop()
print("lost", history.lost)
"""


def test_a_disk_that_is_full_for_a_while_loses_nothing(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _FULL, str(path)], capture_output=True, text=True, timeout=90)
    assert done.stdout == "lost 0\n", done.stderr
    assert sorted(kept(path)) == sorted(f"s{n}" for n in range(1, 100))
    assert done.stderr.count("history cannot be written") == 1


def write_at_once(one: Recorder[Record], other: Recorder[Record]) -> None:
    """Give each of two recorders 300 records of its own, from a thread of its own."""

    def work(history: Recorder[Record], first: int) -> None:
        for number in range(first, first + 300):
            history.add(record(number))
            if number % 50 == 0:
                history.flush(_WAIT)

    threads = [threading.Thread(target=work, args=pair) for pair in ((one, 0), (other, 1000))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.flush(_WAIT)
    assert other.flush(_WAIT)


def test_two_gateways_keep_each_others_rows(path: Path) -> None:
    with running(path) as one, running(path) as other:
        write_at_once(one, other)
    assert len(set(kept(path))) == len(kept(path)) == 600


def test_what_is_too_old_goes(path: Path) -> None:
    now = round(time.time() * 1000)
    with running(path, age=3600.0) as history:
        history.add(record(1, started_ms=now - 7200_000))
        history.add(record(2, started_ms=now - 1800_000))
        assert history.flush(_WAIT)
    with running(path, age=3600.0):
        eventually(lambda: kept(path) == ["s2"])


def test_the_oldest_go_where_there_are_too_many(path: Path) -> None:
    size = 1 << 20
    with running(path, size=size, show_sql=True) as history:
        for number in range(2000):
            history.add(record(number, "x" * 2000))
            if number % 200 == 0:
                assert history.flush(_WAIT)
        assert history.flush(_WAIT)
        history.add(record(2000))
        assert history.flush(_WAIT)
        eventually(lambda: len(kept(path)) < 500)
    found = kept(path)
    assert found == [f"s{n}" for n in range(2001 - len(found), 2001)]
    assert len(found) > 200
    assert path.stat().st_size < 1.5 * size


class Clock:
    """A time of day that can be set, and a clock that runs on."""

    def __init__(self) -> None:
        self.wall, self.now = time.time(), 1000.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.now += seconds


def test_a_clock_that_jumps_ahead_removes_nothing_for_an_hour(path: Path, lines: list[str]) -> None:
    clock = Clock()
    history = recorder(path, age=86400.0, wall=lambda: clock.wall, clock=lambda: clock.now)
    history._batch = [record(1)]
    history._weight = history._added = 0
    assert history._attempt()
    clock.wall += 365 * 86400  # set wrongly
    clock.pass_by(61)
    assert history._attempt()
    assert kept(path) == ["s1"]
    assert any("clock has jumped" in line for line in lines)
    clock.pass_by(1800)
    assert history._attempt()
    assert kept(path) == ["s1"]
    clock.pass_by(3700)  # it seems to be right
    assert history._attempt()
    assert kept(path) == []
    clock.wall -= 2 * 365 * 86400  # back: nothing is too old
    history._batch = [record(2, started_ms=round(clock.wall * 1000))]
    clock.pass_by(7300)
    assert history._attempt()
    assert kept(path) == ["s2"]
    history._store.close()


def test_what_becomes_known_later_is_written_to_its_record(path: Path) -> None:
    with running(path) as history:
        history.add(record(1))
        history.add(record(2))
        history.add_later("s2", 12.5)
        history.add_later("nobody", 1.0)
        eventually(lambda: path.exists() and kept(path, "fetch_ms") == [None, 12.5])


def test_an_older_file_gets_the_columns_that_are_missing(path: Path) -> None:
    with running(path) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
    with closing(sqlite3.connect(path)) as other:
        for name in ("fetch_ms", "details", "origin_id", "error_at", "error_to"):
            other.execute(f"ALTER TABLE statements DROP COLUMN {name}")
        other.commit()
    with running(path) as history:
        history.add(record(2)._replace(details='{"read":[]}'))
        assert history.flush(_WAIT)
    assert kept(path, "details") == [None, '{"read":[]}']
    assert len(list(path.parent.glob("*.version*"))) == 0


@pytest.mark.parametrize("show_sql", [False, True])
def test_the_place_of_an_error_is_one_of_the_text_that_is_kept(path: Path, show_sql: bool) -> None:
    text = "SELECT 'a secret', wrong"
    with running(path, show_sql=show_sql) as history:
        history.add(record(1, text=text)._replace(error_at=19, error_to=24))
        history.add(record(2, text="SELECT 1"))
        assert history.flush(_WAIT)
    (first, at, to), (_, *none) = zip(*(kept(path, name) for name in ("text", "error_at", "error_to")), strict=True)
    assert first[at:to] == "wrong" and none == [None, None]
    assert ("secret" in first) == show_sql
