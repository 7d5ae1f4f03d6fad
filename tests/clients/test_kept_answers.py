"""Tables, views, places and links change at random, by statements and by the file system: what was kept is never told for them.

Answers of one gateway, with kept results and with kept plans alone, are compared with those of an engine that keeps nothing.
GATEWAY_TEST_KEPT: how many histories.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.runner import Runner
from gateway.runner.kept import KeptQueries
from tests.live.gateway import Server, connect_to, start_server
from tests.unit.runner.session import Session

_STEPS, _ASKED = 40, 5
# {n} a number, {p} one of two folders outside of the warehouse with a table each; what fails changes nothing.
_STATEMENTS = (
    ("INSERT INTO t VALUES ({n})",),
    ("INSERT INTO u VALUES ({n}), (1)",),
    ("INSERT INTO e VALUES ({n})",),
    ("DELETE FROM t WHERE a % 2 = 0",),
    ("UPDATE t SET a = a + 1",),
    ("TRUNCATE TABLE t",),
    ("CREATE OR REPLACE TABLE t AS SELECT {n} AS a",),
    ("DROP TABLE t",),
    ("CREATE TABLE t AS SELECT {n} AS a",),
    ("CREATE TABLE IF NOT EXISTS u AS SELECT {n} AS a",),
    ("RESTORE TABLE t TO VERSION AS OF 0",),
    ("OPTIMIZE t",),
    ("ALTER TABLE t ADD COLUMN z{n} INT",),
    ("ALTER TABLE t RENAME TO away",),
    ("ALTER TABLE away RENAME TO t",),
    ("DROP TABLE e",),
    ("CREATE TABLE e LOCATION '{p}'",),
    ("DROP TABLE e", "CREATE TABLE e LOCATION '{p}'"),
    ("DROP TABLE e", "CREATE TABLE e AS SELECT {n} AS a"),
    ("ALTER TABLE e RENAME TO moved",),
    ("ALTER TABLE moved RENAME TO e",),
    ("CREATE OR REPLACE VIEW v AS SELECT a + {n} AS b FROM t",),
    ("CREATE OR REPLACE VIEW w AS SELECT b * {n} AS b FROM v",),
    ("CREATE OR REPLACE VIEW x AS SELECT a AS b FROM e",),
    ("DROP VIEW v",),
    ("DROP VIEW x", "CREATE TABLE x AS SELECT {n} AS b"),
    ("DROP TABLE x",),
    ("DROP SCHEMA IF EXISTS s CASCADE",),
    ("CREATE SCHEMA IF NOT EXISTS s", "CREATE OR REPLACE TABLE s.t AS SELECT {n} AS a"),
    ("CREATE OR REPLACE TABLE c SHALLOW CLONE t",),
)
_QUERIES = (
    *(f"SELECT * FROM {name}" for name in ("t", "u", "e", "v", "w", "x", "c", "s.t", "main.default.T")),
    *(
        "SELECT count(*), max(a) FROM t",
        "SELECT t.a FROM t JOIN u ON t.a = u.a",
        "SELECT a FROM t UNION ALL SELECT a FROM e",
    ),
    *("SELECT * FROM delta.`{files}/1`", "SELECT * FROM delta.`{files}/link`", "SELECT (SELECT max(a) FROM e) AS m"),
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'default'",
)

Change = Callable[[random.Random], None]


class World:
    """A gateway, three connections to it, an engine of its own over the same folders, and what changes them."""

    def __init__(self, server: Server, files: Path, scratch: Path) -> None:
        self.server, self.files, self.home = server, files, server.warehouse / "default"
        self.writer, *self.readers = (connect_to(server) for _ in range(3))
        for reader, kept in zip(self.readers, ("true", "false"), strict=True):
            self.asked(reader, f"SET use_cached_result = {kept}")
        self.runner = Runner(str(server.warehouse), str(scratch), (str(files),), str(scratch), 1 << 30)
        self.runner.warm_up()
        for place in ("1", "2"):
            self.say("CREATE TABLE made LOCATION '{p}' AS SELECT {n} AS a", {"p": files / place, "n": place})
            self.say("DROP TABLE made", {})
        self.moves: tuple[Change, ...] = (self.point, self.swap, self.hide, self.copy, self.swap_places)
        self.point(random.Random(0))

    def asked(self, connection: Any, text: str) -> Any:
        """The rows of a statement in an order of their own, or the condition that it is refused with."""
        with connection.cursor() as cursor:
            try:
                cursor.execute(text)
                return sorted(tuple(map(str, row)) for row in cursor.fetchall())
            except Exception as error:  # noqa: BLE001 - whatever the driver makes of it
                return str(error).partition("]")[0].lstrip("[")

    def anew(self, text: str) -> Any:
        """The same of an engine that keeps nothing."""
        self.runner._kept = KeptQueries()
        try:
            return sorted(tuple(map(str, row)) for row in Session(self.runner).rows(text))
        except GatewayError as error:
            return error.condition

    def say(self, text: str, values: dict[str, Any]) -> None:
        """A statement that may fail."""
        self.asked(self.writer, text.format(**values))

    def point(self, chance: random.Random) -> None:
        """The link leads to one of the places."""
        link = self.files / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(self.files / chance.choice("12"))

    def swap(self, chance: random.Random) -> None:
        """Two tables are each other by now."""
        self._swap(self.home / "t", self.home / "u")

    def swap_places(self, chance: random.Random) -> None:
        """So are those of the places."""
        self._swap(self.files / "1", self.files / "2")

    def hide(self, chance: random.Random) -> None:
        """A table's folder goes away, or comes back."""
        one, hidden = self.home / "t", self.files.with_name("hidden")
        if one.exists() and not hidden.exists():
            one.rename(hidden)
        elif hidden.exists() and not one.exists():
            hidden.rename(one)

    def copy(self, chance: random.Random) -> None:
        """One table is a copy of another."""
        one, other = self.home / "t", self.home / "u"
        if one.exists() and other.exists():
            shutil.rmtree(other)
            shutil.copytree(one, other)

    def _swap(self, one: Path, other: Path) -> None:
        if one.exists() and other.exists():
            aside = self.files.with_name("aside")
            one.rename(aside)
            other.rename(one)
            aside.rename(other)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    files, scratch = tmp_path / "files", tmp_path / "scratch"
    files.mkdir()
    scratch.mkdir()
    server = start_server(tmp_path / "gateway", "--allow-path", str(files), "--slots", "1")
    made = World(server, files, scratch)
    yield made
    for connection in (made.writer, *made.readers):
        connection.close()
    assert server.stop() == 0


@pytest.mark.parametrize("seed", range(int(os.environ.get("GATEWAY_TEST_KEPT", "1"))))
def test_what_was_kept_is_never_told_of_what_has_changed(world: World, seed: int) -> None:
    chance = random.Random(seed)
    done: list[str] = []
    for _ in range(_STEPS):
        changes: list[tuple[str, ...] | Change] = [*_STATEMENTS, *world.moves]
        change = chance.choice(changes)
        if isinstance(change, tuple):
            values = {"n": chance.randint(1, 99), "p": world.files / chance.choice("12")}
            for text in change:
                world.say(text, values)
        else:
            change(chance)
        done.append(str(change))
        for query in chance.sample(_QUERIES, _ASKED):
            text = query.format(files=world.files)
            for _ in range(chance.choice((1, 2, 3))):
                expected = world.anew(text)
                assert [world.asked(reader, text) for reader in world.readers] == [expected] * 2, (text, done[-5:])
