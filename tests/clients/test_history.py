"""What clients did is told to them by SQL and REST, each their own, and never from an answer that was kept."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from tests.clients.test_rest import Api
from tests.live.gateway import Server, clean_environment, connect_to, start_server
from tests.live.postgres import Postgres

_SECONDS = 20.0
PEOPLE = ("ann", "bob", "root", "boss")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    tokens = folder / "tokens"
    tokens.write_text("\n".join(token_line(name, f"{name}-token").strip() for name in PEOPLE) + "\n")
    running = start_server(folder, "--auth", "token", "--token-file", str(tokens), "--admins", "root, boss, nobody")
    yield running
    assert running.stop() == 0


@pytest.fixture
def cursors(guarded: Server) -> Iterator[dict[str, Any]]:
    """A cursor of each person."""
    opened = {name: connect_to(guarded, access_token=f"{name}-token") for name in PEOPLE}
    yield {name: connection.cursor() for name, connection in opened.items()}
    for connection in opened.values():
        connection.close()


def rows(cursor: Any, statement: str) -> list[Any]:
    cursor.execute(statement)
    return list(cursor.fetchall())


def eventually(ask: Callable[[], list[Any]]) -> list[Any]:
    """The answer, once there is one."""
    end = time.monotonic() + _SECONDS
    while not (found := ask()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_what_was_done_is_told_with_its_figures(cursor: Any) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    rows(cursor, f"CREATE TABLE {name} (a INT, s STRING)")
    rows(cursor, f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    rows(cursor, f"SELECT * FROM {name} WHERE a >= 1")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        rows(cursor, f"SELECT a / 0 FROM {name}")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows(cursor, f"SELECT 'secret' FROM {name}_not_there")
    text = f"""SELECT * FROM system.query.history WHERE statement_text LIKE '%{name}%' AND start_time > current_date()
               AND statement_text NOT LIKE '%system%' ORDER BY start_time, statement_id"""
    found = eventually(lambda: f if len(f := rows(cursor, text)) == 5 else [])
    told = [(row.statement_text, row.statement_type, row.execution_status) for row in found]
    assert told == [
        (f"CREATE TABLE {name} (a INT, s STRING)", "CREATE", "FINISHED"),
        (f"INSERT INTO {name} VALUES (?, ?), (?, ?)", "INSERT", "FINISHED"),
        (f"SELECT * FROM {name} WHERE a >= ?", "SELECT", "FINISHED"),
        (f"SELECT a / ? FROM {name}", "SELECT", "FAILED"),
        (f"SELECT ? FROM {name}_not_there", None, "FAILED"),
    ]
    assert [row.produced_rows for row in found][2] == 2
    assert [row.written_rows for row in found] == [None, 2, None, None, None]
    assert found[2].read_files == 1 and found[2].read_bytes > 0 and found[2].pruned_files == 0
    assert found[4].error_message == "[TABLE_OR_VIEW_NOT_FOUND] SQLSTATE: 42P01"
    assert all(row.total_duration_ms >= 0 and row.end_time >= row.start_time for row in found)
    assert found[0].client_driver.startswith("PyDatabricksSqlConnector/")
    assert found[0].compute == {"type": "WAREHOUSE", "cluster_id": None, "warehouse_id": "gateway"}


def test_an_answer_about_the_history_is_not_kept(cursor: Any) -> None:
    text = "SELECT count(*) AS n FROM system.query.history"
    first = rows(cursor, text)[0].n
    assert eventually(lambda: f if (f := rows(cursor, text))[0].n > first else [])
    name = f"v{uuid.uuid4().hex[:8]}"
    rows(cursor, f"CREATE VIEW {name} AS SELECT statement_id FROM system.query.history")
    text = f"SELECT count(*) AS n FROM {name}"
    first = rows(cursor, text)[0].n
    assert eventually(lambda: f if (f := rows(cursor, text))[0].n > first else [])


def test_an_answer_that_was_kept_is_told_as_such(cursor: Any) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    rows(cursor, f"CREATE TABLE {name} AS SELECT id FROM range(10)")
    for _ in range(10):  # those of a new table are not kept at once
        rows(cursor, f"SELECT sum(id) FROM {name}")
    text = f"""SELECT from_result_cache, cache_origin_statement_id, statement_id FROM system.query.history
               WHERE statement_text = 'SELECT sum(id) FROM {name}' ORDER BY start_time"""
    found = eventually(lambda: f if len(f := rows(cursor, text)) == 10 else [])
    kept = [row[0] for row in found]
    assert not kept[0] and kept[-1] and kept == sorted(kept)
    ran = [row[2] for row in found if not row[0]]
    assert [row[1] for row in found] == ran + [ran[-1]] * (
        10 - len(ran)
    )  # the statement itself, or the one whose answer it was


def test_everybody_sees_their_own(cursors: dict[str, Any], guarded: Server) -> None:
    mark = f"m{uuid.uuid4().hex[:8]}"
    for name in ("ann", "bob"):
        rows(cursors[name], f"SELECT 1 AS {mark}_{name}")
    text = f"""SELECT statement_text AS t, executed_by AS u FROM system.query.history
               WHERE statement_text LIKE 'SELECT ? AS {mark}%' ORDER BY u"""
    all_of_them = eventually(lambda: f if len(f := rows(cursors["root"], text)) == 2 else [])
    assert [tuple(row) for row in all_of_them] == [(f"SELECT ? AS {mark}_{name}", name) for name in ("ann", "bob")]
    for name in ("ann", "bob"):
        assert [tuple(row) for row in rows(cursors[name], text)] == [(f"SELECT ? AS {mark}_{name}", name)]
    other = text.replace("ORDER BY u", "AND executed_by = 'bob'")
    assert rows(cursors["ann"], other) == []
    rows(cursors["root"], f"CREATE VIEW {mark} AS SELECT executed_by AS u FROM system.query.history")
    assert {row.u for row in rows(cursors["ann"], f"SELECT u FROM {mark}")} == {"ann"}
    told = {
        name: {q["user_name"] for q in Api(guarded, f"{name}-token").call("GET", "/sql/history/queries")[1]["res"]}
        for name in PEOPLE
    }
    assert (told["ann"], told["bob"]) == ({"ann"}, {"bob"})
    assert told["root"] >= {"ann", "bob"}
    assert Api(guarded, "wrong").call("GET", "/sql/history/queries")[0] == 401


ENDLESS = "SELECT count(*) AS {} FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id % 7 = 1"


def test_what_runs_is_told_to_its_owner_and_to_administrators(cursors: dict[str, Any], guarded: Server) -> None:
    mark = f"m{uuid.uuid4().hex[:8]}"
    text = f"SELECT * FROM system.runtime.operations WHERE statement_text LIKE 'SELECT count(*) AS {mark}%'"
    with connect_to(guarded, access_token="ann-token") as connection, connection.cursor() as busy:
        busy.execute_async(ENDLESS.format(mark))
        for name in ("ann", "root"):
            row = eventually(partial(rows, cursors[name], f"{text} AND state = 'RUNNING'"))[0]
            assert (row.user, row.operation_type) == ("ann", "EXECUTE_STATEMENT")
            assert "range(?)" in row.statement_text
            assert row.duration_ms >= 0 and row.produced_rows == 0
        assert rows(cursors["bob"], text) == []
        query = "/sql/history/queries?filter_by.statuses=RUNNING"
        for name, seen in (("ann", True), ("bob", False), ("root", True)):
            listed = Api(guarded, f"{name}-token").call("GET", query)[1]["res"]
            assert [q["status"] for q in listed if mark in q["query_text"]] == ["RUNNING"] * seen
        page = Api(guarded, "ann-token").call("GET", "/sql/history/queries?max_results=1")[1]
        assert (page["res"][0]["status"], page["res"][0]["is_final"], page["has_next_page"]) == ("RUNNING", False, True)
        token = page["next_page_token"]
        page = Api(guarded, "ann-token").call("GET", f"/sql/history/queries?max_results=1&page_token={token}")[1]
        assert page["res"][0]["is_final"]
        sessions = "SELECT * FROM system.runtime.sessions WHERE operations > 0 ORDER BY user"
        assert {row.user for row in rows(cursors["bob"], sessions)} == {"bob"}
        assert {row.user for row in rows(cursors["root"], sessions)} == {"ann", "root"}
        busy.cancel()
    assert eventually(lambda: [] if rows(cursors["ann"], text) else [True])
    told = (
        f"SELECT state, engine, user, condition FROM system.runtime.statements WHERE statement_text LIKE '% {mark} %'"
    )
    row = eventually(lambda: [r for r in rows(cursors["ann"], told) if r.engine == "datafusion"])[0]
    assert (row.state, row.user, row.condition) == ("CANCELED", "ann", "OPERATION_CANCELED")
    assert rows(cursors["bob"], told) == []


def test_what_runs_is_asked_by_name(cursor: Any) -> None:
    count = "SELECT count(*) AS n FROM"
    first = rows(cursor, f"{count} System.RUNTIME.Sessions")[0].n
    assert first > 0
    view = f"v{uuid.uuid4().hex[:8]}"
    rows(cursor, f"CREATE VIEW {view} AS SELECT * FROM system.runtime.sessions")
    with pytest.raises(Exception, match=r"UNSUPPORTED_FEATURE.*does not spell"):
        rows(cursor, f"SELECT count(*) FROM {view}")
    rows(cursor, "USE system.runtime")
    assert rows(cursor, f"{count} sessions")[0].n > 0
    assert [row.tableName for row in rows(cursor, "SHOW TABLES")] == [
        "operations",
        "sessions",
        "settings",
        "statements",
    ]
    rows(cursor, "USE main.default")


def test_the_rest_api(server: Server, cursor: Any) -> None:
    api = Api(server)
    mark = f"m{uuid.uuid4().hex[:8]}"
    for number in range(5):
        rows(cursor, f"SELECT {number} AS {mark}")
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        rows(cursor, f"SELECT {mark}")

    def newest() -> list[Any]:
        status, page = api.call("GET", "/sql/history/queries?max_results=2&include_metrics=true")
        assert status == 200
        return [page] if page["res"][0]["query_text"] == f"SELECT {mark}" and page["res"][0]["is_final"] else []

    first = eventually(newest)[0]  # a client may be told of an end a moment before the history is
    assert first["has_next_page"] and len(first["res"]) == 2
    assert [q["query_text"] for q in first["res"]] == [f"SELECT {mark}", f"SELECT ? AS {mark}"]
    failed, good = first["res"]
    assert (failed["status"], failed["statement_type"]) == ("FAILED", "OTHER")
    assert failed["error_message"].startswith("[UNRESOLVED_COLUMN")
    assert (good["status"], good["statement_type"], good["rows_produced"]) == ("FINISHED", "SELECT", 1)
    assert good["metrics"]["rows_produced_count"] == 1 and good["query_end_time_ms"] >= good["query_start_time_ms"]
    rest: list[Any] = []
    token = first["next_page_token"]
    while token and len(rest) < 4:
        page = api.call("GET", f"/sql/history/queries?max_results=2&page_token={token}")[1]
        rest += page["res"]
        token = page.get("next_page_token")
    assert [q["query_text"] for q in rest] == [f"SELECT ? AS {mark}"] * 4
    assert len({q["query_id"] for q in (*first["res"], *rest)}) == 6
    found = api.call(
        "GET", f"/sql/history/queries?filter_by.statement_ids={good['query_id']}&filter_by.statement_ids=x"
    )
    assert [q["query_id"] for q in found[1]["res"]] == [good["query_id"]]
    query = f"filter_by.statuses=FAILED&filter_by.query_start_time_range.start_time_ms={failed['query_start_time_ms']}"
    assert failed["query_id"] in [q["query_id"] for q in api.call("GET", f"/sql/history/queries?{query}")[1]["res"]]
    body = {"filter_by": {"statement_ids": [good["query_id"]]}, "max_results": 5}  # as older clients ask
    assert len(api.call("GET", "/sql/history/queries", body)[1]["res"]) == 1
    for wrong in ("max_results=0", "max_results=1001", "max_results=x", "nothing=1", "filter_by=1", "filter_by.x=1",
                  "filter_by.statuses=DONE", "include_metrics=1", "filter_by=1&filter_by.statuses=FAILED",
                  "filter_by.query_start_time_range.start_time_ms=-1", "page_token=x"):  # fmt: skip
        status, answer = api.call("GET", f"/sql/history/queries?{wrong}")
        assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), wrong


def test_the_sdk(server: Server, cursor: Any) -> None:
    sdk = pytest.importorskip("databricks.sdk", reason="databricks-sdk is not installed")
    from databricks.sdk.service import sql

    client = sdk.WorkspaceClient(host=server.url, token="none-needed")
    text = f"SELECT ? AS m{uuid.uuid4().hex[:8]}"
    rows(cursor, text.replace("?", "1"))
    page = eventually(
        lambda: [
            p for p in [client.query_history.list(max_results=1, include_metrics=True)] if p.res[0].query_text == text
        ]
    )[0]
    assert page.res[0].status is sql.QueryStatus.FINISHED
    wanted = sql.QueryFilter(statement_ids=[page.res[0].query_id], statuses=[sql.QueryStatus.FINISHED])
    assert len(client.query_history.list(filter_by=wanted).res) == 1


def test_it_can_be_turned_off_and_kept_whole(tmp_path: Path) -> None:
    for flags, texts in ((("--history", "false"), None), (("--log-sql", "true"), ["SELECT 'whole', 1"])):
        server = start_server(tmp_path, *flags)
        with connect_to(server) as connection, connection.cursor() as cursor:
            rows(cursor, "SELECT 'whole', 1")
            assert rows(cursor, "SELECT count(*) AS n FROM system.query.history")[0].n in (0, 1)
        assert server.stop() == 0
        path = tmp_path / "state" / "history.db"
        assert path.exists() == (texts is not None)
        if texts is not None:
            with closing(sqlite3.connect(path)) as file:
                assert file.execute("SELECT text FROM statements ORDER BY id LIMIT 1").fetchone() == (texts[0],)


@pytest.mark.parametrize("damage", [b"no database" * 1000, None], ids=["damaged", "folder"])
def test_statements_run_whatever_became_of_the_file(tmp_path: Path, damage: bytes | None) -> None:
    path = tmp_path / "state" / "history.db"
    path.parent.mkdir()
    path.mkdir() if damage is None else path.write_bytes(damage)
    server = start_server(tmp_path)
    with connect_to(server) as connection, connection.cursor() as cursor:
        for number in range(50):
            assert rows(cursor, f"SELECT {number} AS n")[0].n == number
        if damage is None:
            with pytest.raises(Exception, match="HISTORY_UNREADABLE"):
                rows(cursor, "SELECT count(*) FROM system.query.history")
        else:
            assert eventually(
                lambda: rows(cursor, "SELECT 1 FROM system.query.history WHERE produced_rows = 1 LIMIT 1")
            )
    assert server.stop() == 0
    assert server.log.read_text().count("history cannot be written") == (damage is None)


AUDIT = """
SELECT user_identity.email, action_name, response.status_code, source_ip_address, user_agent, request_params
FROM system.access.audit WHERE event_time > current_timestamp() - INTERVAL 10 MINUTES"""


def test_who_signed_in_and_who_was_refused(guarded: Server, cursors: dict[str, Any]) -> None:
    assert Api(guarded, "no-such-token").call("GET", "/sql/warehouses")[0] == 401
    found = eventually(lambda: rows(cursors["root"], f"{AUDIT} AND response.status_code = 401"))
    assert [tuple(row)[:4] for row in found] == [(None, "tokenLogin", 401, "127.0.0.1")]
    assert dict(found[0][5])["mechanism"] == "bearer"
    signed = rows(cursors["root"], f"{AUDIT} AND response.status_code = 200")
    assert {row[0] for row in signed} >= set(PEOPLE) and all("token" not in str(row[4:]).lower() for row in signed)
    assert any("PyDatabricksSqlConnector" in row[4] for row in signed)


def test_everybody_sees_their_own_sign_ins(cursors: dict[str, Any]) -> None:
    assert {row[0] for row in eventually(lambda: rows(cursors["ann"], AUDIT))} == {"ann"}


LONG = "SELECT count(*) FROM range(1000000000) a JOIN range(1000000) b ON a.id % 7 = b.id % 11"


def test_a_statement_is_killed_in_sql(cursors: dict[str, Any]) -> None:
    cursors["ann"].execute_async(LONG)
    mine = "SELECT statement_id FROM system.runtime.operations WHERE user = 'ann'"
    ((identifier,),) = eventually(lambda: rows(cursors["root"], mine))
    with pytest.raises(Exception, match="INVALID_OPERATION_HANDLE"):
        cursors["bob"].execute(f"CALL system.kill('{identifier}')")
    assert cursors["ann"].is_query_pending()
    assert rows(cursors["root"], f"CALL system.kill('{identifier}')") == []
    with pytest.raises(Exception, match="CANCELLED"):
        cursors["ann"].get_async_execution_result()
    with pytest.raises(Exception, match="INVALID_OPERATION_HANDLE"):
        cursors["root"].execute("CALL system.kill('no-such-statement')")
    with pytest.raises(Exception, match="CALL"):
        cursors["root"].execute("CALL system.other('x')")


def test_administrators_see_and_end_each_others(cursors: dict[str, Any]) -> None:
    mark = f"m{uuid.uuid4().hex[:8]}"
    for name in ("root", "boss"):
        rows(cursors[name], f"SELECT 1 AS {mark}")
    text = f"SELECT executed_by FROM system.query.history WHERE statement_text = 'SELECT ? AS {mark}' ORDER BY 1"
    for name in ("root", "boss"):
        found = eventually(partial(lambda c: f if len(f := rows(c, text)) == 2 else [], cursors[name]))
        assert [row[0] for row in found] == ["boss", "root"]
    assert rows(cursors["ann"], text) == []
    for one, other in (("root", "boss"), ("boss", "root")):
        cursors[one].execute_async(LONG)
        running = f"SELECT statement_id, client_application FROM system.runtime.operations WHERE user = '{one}'"
        found = eventually(
            partial(
                lambda c, o, asked: [r for r in rows(c, asked) if o.is_query_pending()],
                cursors[other],
                cursors[one],
                running,
            )
        )
        assert "databricks" in found[0][1].lower() or "Py" in found[0][1]
        assert rows(cursors["ann"], running) == []
        assert rows(cursors[other], f"CALL system.kill('{found[0][0]}')") == []
        with pytest.raises(Exception, match="CANCELLED"):
            cursors[one].get_async_execution_result()


def test_settings_are_told_to_administrators(cursors: dict[str, Any]) -> None:
    text = "SELECT name, value, origin FROM system.runtime.settings WHERE name IN ('admins', 'slow-statement') ORDER BY name"
    assert [tuple(row) for row in rows(cursors["root"], text)] == [
        ("admins", "root,boss,nobody", "flag"),
        ("slow-statement", "10s", "default"),
    ]
    assert rows(cursors["ann"], text) == []


def test_a_statement_is_cancelled_by_rest_by_its_owner_and_administrators(
    cursors: dict[str, Any], guarded: Server
) -> None:
    people = {name: Api(guarded, f"{name}-token") for name in PEOPLE}
    cursors["bob"].execute_async(LONG)
    asked = (
        "SELECT statement_id FROM system.runtime.operations WHERE user = 'bob' AND statement_text NOT LIKE '%runtime%'"
    )
    identifier = eventually(lambda: rows(cursors["root"], asked))[0][0]
    path = f"/sql/statements/{identifier}/cancel"
    assert people["ann"].call("POST", path, {})[0] == 404
    assert people["root"].call("POST", path, {})[0] == 200
    assert eventually(lambda: [1] if not rows(cursors["root"], asked) else [])


def test_gateways_on_one_database_tell_each_others_statements(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.make(f"shared{uuid.uuid4().hex[:8]}")
    one = start_server(
        tmp_path / "one", "--log-level", "debug", environment={**clean_environment(), "GATEWAY_HISTORY": url}
    )
    other = start_server(tmp_path / "other", "--history", url)
    with connect_to(one) as first, connect_to(other) as second:
        here, there = first.cursor(), second.cursor()
        rows(here, "SELECT 1 AS told_to_the_other")
        found = "FROM system.query.history WHERE statement_text LIKE '%told_to%' AND statement_text NOT LIKE '%LIKE%'"
        (told,) = eventually(lambda: rows(there, f"SELECT statement_text, executed_by, produced_rows {found}"))
        assert tuple(told) == ("SELECT ? AS told_to_the_other", "anonymous", 1)
        assert eventually(lambda: rows(there, "SELECT 1 FROM system.access.audit WHERE user_agent IS NOT NULL"))
        assert rows(there, "SELECT 1 FROM system.runtime.statements WHERE statement_text LIKE '%told_to%'")
        queries = Api(other, token="x").call("GET", "/sql/history/queries?max_results=50")[1]["res"]
        assert any("told_to_the_other" in query["query_text"] for query in queries)
        assert not (tmp_path / "one" / "state" / "history.db").exists()
        for cursor in (here, there):
            ((value,),) = rows(cursor, "SELECT value FROM system.runtime.settings WHERE name = 'history'")
            assert value.startswith("postgresql://ann@127.0.0.1:") and "s3cret" not in value
        postgres.stop()
        try:
            assert [tuple(row) for row in rows(here, "SELECT 2 AS meanwhile")] == [(2,)]
        finally:
            postgres.start()
        assert eventually(
            lambda: rows(there, "SELECT 1 FROM system.runtime.statements WHERE statement_text LIKE '%AS meanwhile'")
        )
    for server in (one, other):
        assert server.stop() == 0
        assert "s3cret" not in server.log.read_text() and "Traceback" not in server.log.read_text()


def test_a_database_that_is_not_to_be_used_is_said_at_the_start(tmp_path: Path) -> None:
    for url in ("postgresql://ann:s3cret@127.0.0.1:1/x?nonsense=1", "postgresql://ann:s3cret@x@y/z"):
        with pytest.raises(RuntimeError, match=r"history") as caught:
            start_server(tmp_path, "--history", url)
        assert "s3cret" not in str(caught.value)


def test_the_plan_of_what_took_long_is_kept_with_its_figures(cursor: Any) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    rows(cursor, f"CREATE TABLE {name} AS SELECT id, id % 7 AS k FROM range(100000)")
    joined = f"{name} a JOIN {name} b ON a.k = b.k AND b.id < 9999"
    slow = f"SELECT a.k, count(*) AS c, sum(sqrt(a.id * b.id)) FROM {joined} GROUP BY a.k"
    assert len(rows(cursor, slow)) == 7
    rows(cursor, f"SELECT 1 FROM {name} LIMIT 1")
    told = "SELECT details FROM system.runtime.statements WHERE session_id IS NOT NULL AND statement_text LIKE "

    def details(pattern: str) -> dict[str, Any]:
        ((found,),) = eventually(lambda: rows(cursor, f"{told} '{pattern}' AND statement_text NOT LIKE '%LIKE%'"))
        kept: dict[str, Any] = json.loads(found)
        return kept

    found = details(f"SELECT a.k, count(*)%{name}%")
    assert found["read"] == [["main", "default", name]]
    assert [scan[0] for scan in found["scans"]] == [f"main.default.{name}"] * 2
    join = next(each for each in found["operators"] if each["text"].startswith("HashJoinExec"))
    assert join["rows"] > 1_000_000 and join["ms"] > 0 and join["memory"] > 0
    assert "999" not in json.dumps([each["text"] for each in found["operators"]])
    assert "operators" not in details(f"SELECT ? FROM {name}%")
    made = details(f"CREATE TABLE {name}%")
    assert made["written"] == [["main", "default", name]] and made["files_written"] >= 1


def test_fetching_is_measured_and_parameters_are_told_without_values(server: Server, cursor: Any) -> None:
    mark = uuid.uuid4().hex[:8]
    with connect_to(server) as connection, connection.cursor() as one:
        one.execute(f"SELECT id, repeat('x', 100) AS x_{mark}, :v AS v FROM range(300000)", {"v": "a secret"})
        assert len(one.fetchall()) == 300_000
    found = f"FROM system.query.history WHERE statement_text LIKE '%x_{mark}%' AND statement_text NOT LIKE '%LIKE%'"
    (told,) = eventually(
        lambda: rows(
            cursor, f"SELECT result_fetch_duration_ms, query_parameters {found} AND result_fetch_duration_ms > 0"
        )
    )
    assert 10 <= told[0] < 60_000 and told[1] is None
    own = found.replace("system.query.history", "system.runtime.statements")
    ((details,),) = rows(cursor, f"SELECT details {own}")
    assert json.loads(details)["parameters"] == [{"name": "v", "type": "STRING"}]
