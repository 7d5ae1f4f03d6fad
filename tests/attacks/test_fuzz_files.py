"""Links, pipes, renames, swaps and truncations at random in a warehouse, beside the statements of three users.

Whatever happens: nothing outside of the warehouse is read, written or deleted; no answer is other than a version of a table; no
error is one that nobody thought of; and once it is over, all tables are as their writers left them.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, contents, outcome, put_instead
from tests.live.gateway import Server, start_server

SECRET = 987654321
FIXED = 3
VERSIONS = 3
LONGEST = 10  # seconds of a statement
SLICES = [
    pytest.param(9.0, 1, id="slice"),
    *(pytest.param(60.0, n, id=f"long{n}", marks=pytest.mark.heavy) for n in (2, 3)),
]
# What nobody has thought of, or what a broken process says.
NEVER = ("INTERNAL_ERROR", "WORKER_LOST", str(SECRET), "Traceback", "canary")


def rows(table: int, version: int) -> frozenset[int]:
    """The ids of a fixed table at a version."""
    return frozenset(range(table * 100, table * 100 + 10 * (version + 1)))


POSSIBLE = {rows(table, version) for table in range(FIXED) for version in range(VERSIONS)}


class Vandal:
    """Does one thing to the warehouse after the other, each undone after some milliseconds."""

    def __init__(self, warehouse: Path, outside: Path, seed: int) -> None:
        self._schema = warehouse / "fixed"
        self._scratch = warehouse / "scratch"
        self._outside = outside
        self._random = random.Random(seed)
        self.done = 0

    def one(self) -> None:
        """Something, and back."""
        acts: tuple[Callable[[], Any], ...] = (
            self._away,
            self._instead,
            self._swap,
            self._cut,
            self._linked_name,
            self._mode,
            self._stray,
        )
        with self._random.choice(acts)():
            time.sleep(self._random.random() * 0.02)
        time.sleep(self._random.random() * 0.005)
        self.done += 1

    def _table(self) -> Path:
        return self._schema / f"t{self._random.randrange(FIXED)}"

    def _any(self) -> Path:
        """A folder or file of a fixed table, or of the objects."""
        table = self._table()
        parts = [p for p in table.rglob("*") if not p.is_symlink()]
        return self._random.choice([table, self._schema, table / "_delta_log", self._schema / "_objects", *parts])

    @contextmanager
    def _away(self) -> Iterator[None]:
        path = self._any()
        aside = path.with_name(f".{uuid.uuid4().hex}")
        os.rename(path, aside)
        try:
            yield
        finally:
            os.rename(aside, path)

    @contextmanager
    def _instead(self) -> Iterator[None]:
        """A link to what is outside, a pipe or a device in the place of something."""
        path = self._any()
        aside = path.with_name(f".{uuid.uuid4().hex}")
        kind = self._random.choice(("link", "dangling", "device", "pipe"))
        target = self._outside / "secret"
        if not path.is_dir():
            target = next(target.glob("*.parquet")) if path.suffix == ".parquet" else self._outside / "canary"
        os.rename(path, aside)
        put_instead(path, kind, target)
        try:
            yield
        finally:
            path.unlink()
            os.rename(aside, path)

    @contextmanager
    def _swap(self) -> Iterator[None]:
        one, other = self._random.sample(range(FIXED), 2)
        for _ in range(2):
            first, second, aside = self._schema / f"t{one}", self._schema / f"t{other}", self._schema / ".swap"
            os.rename(first, aside)
            os.rename(second, first)
            os.rename(aside, second)
            if _ == 0:
                yield

    @contextmanager
    def _cut(self) -> Iterator[None]:
        """A file of a table or an object cut in its last line."""
        files = [p for p in self._schema.rglob("*") if p.is_file() and p.stat().st_size > 40]
        path = self._random.choice(files)
        good = path.read_bytes()
        draft = path.with_name(f".{uuid.uuid4().hex}")
        draft.write_bytes(good[: -self._random.randrange(20, 40)])
        aside = path.with_name(f".{uuid.uuid4().hex}")
        os.link(path, aside)
        os.replace(draft, path)
        try:
            yield
        finally:
            os.replace(aside, path)

    @contextmanager
    def _linked_name(self) -> Iterator[None]:
        """A name that users make tables of is a link to what is outside."""
        path = self._scratch / f"n{self._random.randrange(3)}"
        if os.path.lexists(path):
            yield
            return
        with suppress(FileExistsError):
            os.symlink(self._outside / self._random.choice(("secret", "nothing", "")), path)
        yield
        if path.is_symlink():
            path.unlink()

    @contextmanager
    def _mode(self) -> Iterator[None]:
        path = self._any()
        mode = path.stat().st_mode
        path.chmod(0)
        try:
            yield
        finally:
            path.chmod(mode)

    @contextmanager
    def _stray(self) -> Iterator[None]:
        """Files that are none of the catalog's."""
        names = ("x.view.json", "a\nb.view.json", "n0.table.json", ".draft-x", "x.unknown.json")
        path = self._schema / "_objects" / self._random.choice(names)
        put_instead(path, self._random.choice(("file", "pipe", "folder", "link")), self._outside / "canary")
        yield
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


class User(threading.Thread):
    """Sends statements, and notes what should not be."""

    def __init__(self, server: Server, number: int, seed: int, stop: threading.Event) -> None:
        super().__init__()
        self._server, self._number, self._stop_asked = server, number, stop
        self._random = random.Random(f"{seed}-{number}")
        self.wrong: list[tuple[str, str]] = []
        self.answers = self.errors = 0
        self.sent: list[int] = []
        self.kept: set[int] = set()

    def run(self) -> None:
        with Client(self._server.thrift_url).open() as client:
            while not self._stop_asked.is_set():
                self._one(client)

    def _one(self, client: Client) -> None:
        choose = self._random.choice
        table, name = f"fixed.t{self._random.randrange(FIXED)}", f"scratch.n{self._random.randrange(3)}"
        folder = self._server.warehouse / table.replace(".", "/")
        reads = [
            f"SELECT id FROM {table}",
            f"SELECT id FROM {table} WHERE id >= 0",
            f"SELECT id FROM {table} VERSION AS OF {self._random.randrange(VERSIONS)}",
            f"SELECT id FROM delta.`{folder}`",
            f"SELECT a.id FROM {table} a LEFT JOIN {table} b ON a.id = b.id",
            "SELECT id FROM fixed.v",
        ]
        others = [
            f"CREATE OR REPLACE TABLE {name} AS SELECT 1 AS id",
            f"CREATE TABLE {name} (id BIGINT)",
            f"INSERT INTO {name} VALUES (5)",
            f"DROP TABLE {name}",
            f"SELECT * FROM {name}",
            f"CREATE OR REPLACE VIEW scratch.w{self._number} AS SELECT 1 AS a",
            f"SELECT * FROM scratch.w{self._number}",
            f"DROP VIEW scratch.w{self._number}",
            "SHOW TABLES IN fixed",
            "SHOW SCHEMAS",
            f"DESCRIBE TABLE EXTENDED {table}",
            f"SELECT id FROM parquet.`{folder}`",
            "SELECT * FROM fixed.nothing",
        ]
        kind = choose(("read", "read", "other", "insert"))
        if kind == "read":
            text = choose(reads)
            found = self._send(client, text)
            if found is not None and frozenset(ids(found)) not in POSSIBLE | {frozenset(range(200, 230))}:
                self.wrong.append((text, str(sorted(ids(found)))))
            if found is not None and len(ids(found)) != len(set(ids(found))):
                self.wrong.append((text, "rows twice"))
        elif kind == "other":
            self._send(client, choose(others))
        else:
            self.sent.append(len(self.sent) + 1)
            if self._send(client, f"INSERT INTO own.u{self._number} VALUES ({self.sent[-1]})") is not None:
                self.kept.add(self.sent[-1])
            found = self._send(client, f"SELECT id FROM own.u{self._number}")
            if found is not None and not self.kept <= set(ids(found)) <= set(self.sent):
                self.wrong.append(("own", f"{sorted(ids(found))} for {sorted(self.kept)}"))

    def _send(self, client: Client, text: str) -> list[dict[str, Any]] | None:
        # A pipe that comes between a look and an open makes the engine wait: that long, and no longer.
        found = outcome(client, text, timeout_seconds=LONGEST)
        told = str(found)
        if any(word in told for word in NEVER):
            self.wrong.append((text, told[:500]))
        if isinstance(found, RemoteError):
            self.errors += 1
            return None
        self.answers += 1
        return found


def ids(found: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in found]


@pytest.mark.parametrize(("seconds", "seed"), SLICES)
def test_random_files_beside_statements(tmp_path: Path, seconds: float, seed: int) -> None:
    server = start_server(tmp_path / "server", "--memory-limit", "1GiB")
    outside = tmp_path / "outside"
    try:
        with Client(server.thrift_url).open() as client:
            prepare(client, server, outside)
            before = contents(outside)
            stop = threading.Event()
            users = [User(server, n, seed, stop) for n in range(3)]
            vandal = Vandal(server.warehouse, outside, seed)
            for user in users:
                user.start()
            end = time.monotonic() + seconds
            try:
                while time.monotonic() < end:
                    vandal.one()
            finally:
                stop.set()
                for user in users:
                    user.join()
            assert [wrong for user in users for wrong in user.wrong] == []
            assert contents(outside) == before
            assert vandal.done > seconds
            assert all(user.answers for user in users)
            for table in range(FIXED):
                assert set(ids(answer(client, f"SELECT id FROM fixed.t{table}"))) == rows(table, VERSIONS - 1)
            for n, user in enumerate(users):
                assert user.kept <= set(ids(answer(client, f"SELECT id FROM own.u{n}"))) <= set(user.sent) | {0}
        assert not any(word in server.log.read_text() for word in (str(SECRET), "Traceback"))
    finally:
        server.stop()


def prepare(client: Client, server: Server, outside: Path) -> None:
    for schema in ("fixed", "scratch", "own"):
        answer(client, f"CREATE SCHEMA {schema}")
    for table in range(FIXED):
        parts = "USING delta PARTITIONED BY (p) " if table == 1 else ""
        for version in range(VERSIONS):
            new = f"SELECT id + {table * 100 + 10 * version} AS id, id % 2 AS p FROM range(10)"
            make = (
                f"CREATE TABLE fixed.t{table} {parts}AS {new}" if version == 0 else f"INSERT INTO fixed.t{table} {new}"
            )
            answer(client, make)
    answer(client, "CREATE VIEW fixed.v AS SELECT id FROM fixed.t2")
    for n in range(3):
        answer(client, f"CREATE TABLE own.u{n} (id INT)")
    answer(client, f"CREATE TABLE own.secret AS SELECT {SECRET} AS id, 1 AS p")
    outside.mkdir()
    (outside / "canary").write_text(f"canary:{SECRET}\n")
    shutil.move(server.warehouse / "own" / "secret", outside / "secret")
