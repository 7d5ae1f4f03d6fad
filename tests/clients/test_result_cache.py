"""The same statement asked again is answered from what was kept, and anew as soon as anything that it reads has changed."""

from __future__ import annotations

import os
import re
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.live.gateway import Server, connections, start_server

Ask = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("cache")
    (folder / "files").mkdir()
    started = start_server(folder, "--slots", "1", "--allow-path", str(folder / "files"))
    yield started
    started.stop()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., Any]]:
    yield from connections(server)


@pytest.fixture
def ask(connect: Callable[..., Any]) -> Ask:
    connection = connect()

    def ask(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(text, list(parameters) or None)
            return [tuple(row) for row in cursor.fetchall()]

    for text in (
        "CREATE SCHEMA IF NOT EXISTS kept",
        "USE kept",
        "DROP TABLE IF EXISTS t",
        "CREATE TABLE t AS SELECT 1 AS a",
    ):
        ask(text)
    return ask


def hits(server: Server) -> float:
    """Statements that were answered from what was kept."""
    with urllib.request.urlopen(server.url + "/metrics", timeout=20) as page:
        found = re.search(r'^cache_hits_total\{cache="results"\} (\S+)$', page.read().decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def until_kept(server: Server, ask: Ask, text: str) -> list[tuple[Any, ...]]:
    """The answer, the same each time, until it is not computed any more: those of new tables are not kept at once."""
    before, first = hits(server), ask(text)
    for _ in range(10):
        if hits(server) > before:
            return first
        assert ask(text) == first
    raise AssertionError("it is not kept")


def test_the_same_statement_needs_no_engine(server: Server, ask: Ask) -> None:
    nations = "SELECT * FROM samples.tpch.nation WHERE n_name LIKE 'A%' ORDER BY 1"
    for text in ("SELECT a, count(*) AS n FROM t GROUP BY a", nations, "SELECT 1", "SELECT id FROM range(3)"):
        first = until_kept(server, ask, text)
        before = hits(server)
        assert [ask(text) for _ in range(3)] == [first] * 3
        assert hits(server) == before + 3


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET a = a + 1",
        "DELETE FROM t WHERE a = 1",
        "TRUNCATE TABLE t",
        "INSERT OVERWRITE t VALUES (7), (8)",
    ],
)
def test_a_change_is_seen(server: Server, ask: Ask, connect: Callable[..., Any], change: str) -> None:
    text = "SELECT sum(a), count(*) FROM t"
    assert until_kept(server, ask, text) == [(1, 1)]
    with connect() as other, other.cursor() as cursor:
        cursor.execute("USE kept")
        cursor.execute(change)
    before, now = hits(server), ask(text)
    assert hits(server) == before and now != [(1, 1)]
    assert until_kept(server, ask, text) == now


def test_a_table_made_anew_is_another(server: Server, ask: Ask) -> None:
    for a in range(1, 6):
        ask("DROP TABLE t")
        ask(f"CREATE TABLE t AS SELECT {a} AS a")
        assert until_kept(server, ask, "SELECT a FROM t") == [(a,)]


@pytest.mark.parametrize("kept", ["true", "false"])  # results, or how they are had
def test_a_name_that_leads_elsewhere_is_another(server: Server, ask: Ask, kept: str) -> None:
    ask(f"SET use_cached_result = {kept}")
    files = server.warehouse.parent / "files" / kept
    files.mkdir()
    for a in (1, 2):
        ask(f"CREATE TABLE placed LOCATION '{files}/{a}' AS SELECT {a} AS a")
        assert [ask("SELECT a FROM placed") for _ in range(4)] == [[(a,)]] * 4
        ask("DROP TABLE placed")
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            ask("SELECT a FROM placed")
    link = files / "current"
    for a in (1, 2):
        link.unlink(missing_ok=True)
        link.symlink_to(files / str(a))
        assert [ask(f"SELECT a FROM delta.`{link}`") for _ in range(4)] == [[(a,)]] * 4


def test_others_may_write(server: Server, ask: Ask) -> None:
    folder = server.warehouse / "kept" / "t"
    assert until_kept(server, ask, "SELECT * FROM t ORDER BY a") == [(1,)]
    for a in range(2, 6):
        write_deltalake(str(folder), pa.table({"a": pa.array([a], pa.int32())}), mode="append")
        assert until_kept(server, ask, "SELECT * FROM t ORDER BY a") == [(i,) for i in range(1, a + 1)]
    aside = folder.with_name("aside")
    os.rename(folder, aside)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        ask("SELECT * FROM t ORDER BY a")
    os.rename(aside, folder)
    assert len(ask("SELECT * FROM t ORDER BY a")) == 5
    shutil.rmtree(folder)
    write_deltalake(str(folder), pa.table({"a": pa.array([9], pa.int32())}))
    assert ask("SELECT * FROM t ORDER BY a") == [(9,)]


def test_damage_to_what_was_read_is_told(server: Server, ask: Ask) -> None:
    text = "SELECT sum(a) FROM t WHERE a > 0"
    assert until_kept(server, ask, text) == [(1,)]
    (path,) = (server.warehouse / "kept" / "t").glob("*.parquet")
    held = path.read_bytes()
    path.write_bytes(held[:-10])
    with pytest.raises(Exception, match=r"FAILED_READ_FILE|DELTA_FILE_NOT_FOUND"):
        ask(text)
    path.unlink()
    with pytest.raises(Exception, match="DELTA_FILE_NOT_FOUND"):
        ask(text)
    path.write_bytes(held)
    assert ask(text) == [(1,)]


def test_views_are_part_of_it(server: Server, ask: Ask) -> None:
    ask("DROP VIEW IF EXISTS v")
    for a in range(3):
        ask(f"CREATE OR REPLACE VIEW v AS SELECT a + {a} AS b FROM t")
        assert until_kept(server, ask, "SELECT b FROM v") == [(1 + a,)]
    ask("INSERT INTO t VALUES (5)")
    assert ask("SELECT max(b) FROM v") == [(7,)]
    ask("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 'other' AS b")
    assert ask("SELECT b FROM v") == [("other",)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT rand(), a FROM t",
        "SELECT uuid(), a FROM t",
        "SELECT current_timestamp(), a FROM t",
        "SELECT a FROM t WHERE CAST('now' AS TIMESTAMP) IS NOT NULL",
        "SELECT (SELECT max(now()) FROM t), a FROM t",
        "SELECT a FROM t WHERE a IN (SELECT a FROM t WHERE rand() >= 0)",
        "SELECT * FROM moment",
        "SELECT a FROM t VERSION AS OF 0",
        "SELECT current_timestamp()",
        "SELECT statement_id FROM system.query.history",
        "SELECT table_name, a FROM t JOIN information_schema.tables ON table_schema = 'kept' AND table_name = 't'",
    ],
)
def test_what_may_change_is_computed_anew(server: Server, ask: Ask, text: str) -> None:
    ask("CREATE OR REPLACE VIEW moment AS SELECT current_date() AS d, a FROM t")
    before = hits(server)
    for _ in range(4):
        ask(text)
    assert hits(server) == before


def test_what_a_session_says_counts(server: Server, ask: Ask, connect: Callable[..., Any]) -> None:
    ask("DROP TABLE IF EXISTS moments")
    ask("CREATE TABLE moments AS SELECT TIMESTAMP'2024-01-01 00:00:00Z' AS m")
    text = "SELECT CAST(m AS STRING) FROM moments"
    found = []
    for zone in ("UTC", "Asia/Tokyo", "UTC"):
        ask(f"SET TIME ZONE '{zone}'")
        found.append(until_kept(server, ask, text)[0][0][11:])
    assert found == ["00:00:00", "09:00:00", "00:00:00"]
    ask("CREATE SCHEMA IF NOT EXISTS other")
    ask("DROP TABLE IF EXISTS other.t")
    ask("CREATE TABLE other.t AS SELECT 'there' AS a")
    assert until_kept(server, ask, "SELECT a FROM t") == [(1,)]
    ask("USE other")
    assert ask("SELECT a FROM t") == [("there",)]
    ask("USE kept")
    assert [ask("SELECT a FROM t WHERE a = ?", n) for n in (1, 2, 1)] == [[(1,)], [], [(1,)]]
    ask("SET use_cached_result = false")
    before = hits(server)
    assert ask("SELECT a FROM t") == ask("SELECT a FROM t") == [(1,)]
    assert hits(server) == before


def test_pages_and_large_results(server: Server, ask: Ask, connect: Callable[..., Any]) -> None:
    ask("DROP TABLE IF EXISTS wide")
    ask("CREATE TABLE wide AS SELECT id FROM range(1000)")
    text = "SELECT id FROM kept.wide ORDER BY id"
    until_kept(server, ask, text)
    connection = connect()
    for _ in range(3):
        with connection.cursor(arraysize=7) as cursor:
            cursor.execute(text)
            rows = []
            while page := cursor.fetchmany(7):
                rows += [r[0] for r in page]
            assert rows == list(range(1000))
    ask("INSERT INTO wide SELECT id FROM range(200000)")
    before = hits(server)
    for _ in range(3):
        assert len(ask("SELECT id FROM wide")) == 201_000
    assert hits(server) == before  # too large to be kept
