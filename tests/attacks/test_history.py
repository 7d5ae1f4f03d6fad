"""What strangers may put into the history, and what they may get out of it: their own, as they wrote it."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from gateway.protocol.client import Client
from tests.attacks.attacker import answer, outcome, resident_mib
from tests.clients.test_rest import Api
from tests.live.gateway import Server, start_server

HISTORY = "/sql/history/queries"
EVIL = [
    "SELECT 1 AS `'; DROP TABLE statements; --`",
    "SELECT 1 AS `\"'\\`",
    "SELECT 1 AS `<script>alert(1)</script>`",
    "SELECT 1 AS `a\0b`",
    "SELECT 1 AS `\u202egnp.exe`",
    "SELECT 1 AS `\u2028\r\n\x1b[31m`",
    "SELECT '" + "x" * 1_000_000 + "' AS long",
    "SELECT 1 AS `" + "y" * 1_000_000 + "`",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "\0",
    "'",
    "/*",
    "\ufeffSELECT 1",
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    tokens = folder / "tokens"
    names = ("ann", "bob", "root")
    tokens.write_text("\n".join(token_line(name, f"{name}-token").strip() for name in names) + "\n")
    flags = ("--auth", "token", "--token-file", str(tokens), "--admins", "root", "--memory-limit", "1GiB")
    running = start_server(folder, *flags)
    yield running
    assert running.stop() == 0


def _client(server: Server, name: str) -> Client:
    return Client(server.thrift_url, token=f"{name}-token").open()


def _listed(api: Api, **asked: Any) -> list[Any]:
    """All that a caller is told, over all pages."""
    found: list[Any] = []
    token = ""
    while True:
        query = urllib.parse.urlencode({"max_results": 50, **asked, **({"page_token": token} if token else {})})
        status, page = api.call("GET", f"{HISTORY}?{query}")
        assert status == 200, page
        found += page["res"]
        token = page.get("next_page_token", "")
        if not token:
            return found


def _eventually(ask: Callable[[], list[Any]]) -> list[Any]:
    """The answer, once there is one: a client may be told of an end a moment before the history is."""
    end = time.monotonic() + 20.0
    while not (found := ask()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_statements_of_all_kinds_are_kept_and_told(guarded: Server) -> None:
    with _client(guarded, "ann") as client:
        for text in EVIL:
            outcome(client, text)
        api = Api(guarded, "ann-token")
        found = _eventually(lambda: f if len(f := _listed(api)) == len(EVIL) else [])
        told = [q["query_text"] for q in reversed(found)]
        assert len(told) == len(EVIL)
        assert told[0] == "SELECT ? AS `'; DROP TABLE statements; --`"
        assert told[3:5] == ["SELECT ? AS `a\0b`", "SELECT ? AS `\u202egnp.exe`"]
        assert told[6].startswith("SELECT ?") and "xx" not in told[6]
        assert told[7] == "SELECT ? AS ? …"  # a name that is cut is not closed
        rows = answer(client, "SELECT statement_text AS t FROM system.query.history ORDER BY start_time, statement_id")
        assert {row["t"] for row in rows} >= set(told)


def test_nobody_is_told_of_others(guarded: Server) -> None:
    with _client(guarded, "ann") as client:
        answer(client, "SELECT 1 AS of_ann")
        api = Api(guarded, "ann-token")
        one = _eventually(
            lambda: [q for q in _listed(api) if q["query_text"] == "SELECT ? AS of_ann" and q["is_final"]]
        )[0]
    bob = Api(guarded, "bob-token")
    for asked in (
        {"filter_by.statement_ids": one["query_id"]},
        {"filter_by.user_ids": "ann"},
        {"filter_by.user_ids": "ann' OR '1'='1"},
        {"filter_by.statement_ids": "x') OR ('1'='1"},
        {"filter_by.query_start_time_range.start_time_ms": 0},
    ):
        assert {q["user_name"] for q in _listed(bob, **asked)} <= {"bob"}, asked
    with _client(guarded, "bob") as client:
        for text in (
            "SELECT executed_by AS u FROM system.query.history",
            "SELECT executed_by AS u FROM system.query.history WHERE executed_by = 'ann' OR true",
            f"SELECT executed_by AS u FROM system.query.history WHERE statement_id = '{one['query_id']}'",
            "SELECT executed_by AS u FROM SYSTEM.Query.`HISTORY` h UNION ALL SELECT executed_by FROM system.query.history",
            "SELECT executed_by AS u FROM IDENTIFIER('system.query.history')",
            "WITH h AS (SELECT * FROM system.query.history) SELECT a.executed_by AS u FROM h a LEFT JOIN h b ON true",
        ):
            found = answer(client, text)
            assert {row["u"] for row in found} <= {"bob"}, text
        for text in (
            "DELETE FROM system.query.history",
            "INSERT INTO system.query.history SELECT * FROM system.query.history",
            "TRUNCATE TABLE system.query.history",
            "DROP TABLE system.query.history",
            "DROP VIEW system.query.history",
            "ALTER TABLE system.query.history ADD COLUMN x INT",
            "CREATE TABLE system.query.mine (x INT)",
            "CREATE OR REPLACE VIEW system.query.history AS SELECT 1",
        ):
            assert not isinstance(outcome(client, text), list), text
    with _client(guarded, "root") as client:
        assert answer(
            client, f"SELECT executed_by AS u FROM system.query.history WHERE statement_id = '{one['query_id']}'"
        )


@pytest.mark.parametrize(
    "token",
    [
        "A" * 1_000,
        "-1",
        "MTIzLjQ1Ng==x",
        "%00",
        "MQ",
        "OTk5OTk5OTk5OTk5OTk5OTk5OTkuMQ",
        "4pi6",
        "MS4xIE9SIDE",
        "../../etc",
    ],
)
def test_page_tokens_that_were_not_given_here_are_refused(guarded: Server, token: str) -> None:
    status, told = Api(guarded, "ann-token").call("GET", f"{HISTORY}?page_token={token}")
    assert (status, told["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_large_queries_are_refused_or_answered(guarded: Server) -> None:
    api = Api(guarded, "ann-token")
    for query in (
        "&".join(f"filter_by.statement_ids={n}" for n in range(2000)),
        "&".join("max_results=1" for _ in range(6000)),
        ".".join("a" for _ in range(5000)) + "=1",
        "filter_by." * 1000 + "=1",
    ):
        try:
            status = api.call("GET", f"{HISTORY}?{query}")[0]
        except json.JSONDecodeError as error:  # a head that is too large is refused before it is a request
            assert "Invalid HTTP request" in error.doc
            continue
        assert status == 400
    assert api.call("GET", HISTORY, b"{" * 10_000)[0] == 400
    assert api.call("GET", f"{HISTORY}?max_results=1")[0] == 200


def test_a_page_of_large_statements_ends_early(guarded: Server) -> None:
    """A thousand of the largest would be 64 MiB, for each of as many calls as a caller sends."""
    with _client(guarded, "bob") as client:
        for number in range(100):
            outcome(client, f"SELECT {number} AS `{'z' * 65_000}`")
    api = Api(guarded, "bob-token")
    whole = _eventually(lambda: f if len(f := _listed(api, max_results=1000)) >= 100 else [])
    assert len({q["query_id"] for q in whole}) == len(whole) >= 100
    page = api.call("GET", f"{HISTORY}?max_results=1000")[1]
    assert page["has_next_page"]
    assert 0 < sum(len(q["query_text"]) for q in page["res"]) < 5 << 20
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(api.call("GET", f"{HISTORY}?max_results=1000")[0]))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [200] * 20
    assert resident_mib(guarded.process.pid) < 500


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("started_ms", "x"),
        ("started_ms", 2**63 - 1),
        ("total_ms", "x"),
        ("total_ms", float("inf")),
        ("rows", 1e300),
        ("text", b"x"),
        ("client", "x" * (5 << 20)),
        ("details", '{"parameters":{"a":1}}'),
        ("details", "[" * 100_000),
    ],
)
def test_values_of_other_types_are_told(guarded: Server, column: str, value: Any) -> None:
    """Put into the file by somebody else than the gateway."""
    with _client(guarded, "root") as client:
        answer(client, "SELECT 1 AS of_root")
        api = Api(guarded, "root-token")
        found = _eventually(lambda: [q for q in _listed(api) if q["query_text"] == "SELECT ? AS of_root"])
        path = guarded.warehouse.parent / "state" / "history.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            one = {"value": value, "id": found[0]["query_id"]}
            database.execute(f'UPDATE statements SET "{column}" = :value WHERE statement_id = :id', one)
            try:
                for table in ("query.history", "runtime.statements"):
                    told = outcome(client, f"SELECT * FROM system.{table}")
                    assert isinstance(told, list) or "[HISTORY_UNREADABLE]" in str(told)
                assert api.call("GET", f"{HISTORY}?include_metrics=true")[0] in (200, 503)
                assert "Traceback" not in guarded.log.read_text()
            finally:
                database.execute("DELETE FROM statements WHERE statement_id = :id", one)


def test_the_file_is_its_owners_alone(guarded: Server) -> None:
    path = guarded.warehouse.parent / "state" / "history.db"
    assert path.stat().st_mode & 0o077 == 0
    assert all(p.stat().st_mode & 0o077 == 0 for p in Path(path.parent).glob("history.db*"))
    with _client(guarded, "ann") as client:
        for text in (
            f"SELECT * FROM parquet.`{path}`",
            f"SELECT * FROM delta.`{path}`",
            f"SELECT * FROM text.`{path}`",
        ):
            assert not isinstance(outcome(client, text), list), text
