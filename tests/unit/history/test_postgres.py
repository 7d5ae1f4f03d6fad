"""The history in a PostgreSQL database: what is kept and found, and that no trouble of the database is anybody's else."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.catalog import query_history
from gateway.catalog.recorded import Seen
from gateway.config.values import DatabaseUrl, parse_history
from gateway.console.calls import ConsoleCalls, Facts
from gateway.errors import ServerError
from gateway.history import postgres as stores
from gateway.history.postgres import PostgresStore, problem_of
from gateway.history.recorder import Recorder
from gateway.history.records import SIGN_INS, STATEMENTS, Record, SignIn
from gateway.history.search import Condition, History
from gateway.protocol.handler import Caller
from gateway.rest.history import QUERIES, HistoryApi, page
from gateway.rest.statements import StatementApi
from gateway.service.api import Principal
from gateway.worker_jobs import Runtime
from tests.live.disk import Disk
from tests.live.postgres import PASSWORD, Postgres
from tests.unit.history.test_recorder import record, write_at_once

_WAIT = 30.0


@pytest.fixture(autouse=True)
def asked() -> None:
    """No test is told what another has waited for."""
    stores.SILENCE.forget()


@pytest.fixture
def url(postgres: Postgres) -> DatabaseUrl:
    """An empty database."""
    return DatabaseUrl(postgres.make(f"h{uuid.uuid4().hex[:12]}"))


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What is logged meanwhile."""
    events: list[tuple[str, dict[str, Any]]] = []

    def log(event: str, level: str = "info", **fields: object) -> None:
        events.append((event, fields))

    monkeypatch.setattr("gateway.history.recorder.log", log)
    return events


@contextmanager
def running(url: DatabaseUrl, **more: Any) -> Iterator[Recorder[Record]]:
    made = Recorder[Record](PostgresStore(url, STATEMENTS), **{"age": 86400.0, "size": 64 << 20, **more})
    made.start()
    try:
        yield made
    finally:
        made.stop()


def kept(url: DatabaseUrl, column: str = "statement_id") -> list[Any]:
    rows = History(url, open_to_all=True).rows("", [column, "id"])
    return [row[0] for piece in rows for row in sorted(piece, key=lambda r: r[1])]


def name_of(url: DatabaseUrl) -> str:
    return url.text.rpartition("/")[2]


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_is_kept_comes_back_as_it_was(url: DatabaseUrl) -> None:
    given = [
        record(n, "SELECT col")._replace(cached=n % 2 == 0, written_rows=None if n else 2**40) for n in range(2500)
    ]
    with running(url) as history:
        for each in given:
            history.add(each)
        assert history.flush(_WAIT)
    rows = History(url, open_to_all=True).rows("", STATEMENTS.columns, at_once=700)
    assert sorted((Record(*row) for piece in rows for row in piece), key=lambda r: int(r.statement_id[1:])) == given
    assert history.lost == 0


def test_texts_of_all_kinds_are_kept(url: DatabaseUrl) -> None:
    texts = ["a\0b", "x\u202ey", "\ud800", "", "SELECT 'it''s' %s %(a)s", "<script>", "é" * 10, "\\x00", "$1"]
    with running(url, show_sql=True) as history:
        for number, text in enumerate(texts):
            history.add(record(number, text, user=text))
        assert history.flush(_WAIT)
    assert kept(url, "text") == ["a\u2400b", *("?" if text == "\ud800" else text for text in texts[1:])]
    found = History(url, open_to_all=True).rows("", ["statement_id"], [Condition("text", "CONTAINS", "A\0B")])
    assert [row for piece in found for row in piece] == [("s0",)]


def test_conditions_order_and_who_sees_what(url: DatabaseUrl) -> None:
    with running(url, age=1e10) as history:  # what is of 1970 is kept
        for number in range(50):
            history.add(
                record(number, f"SELECT col_{number}", user="ann" if number % 2 else "bob", started_ms=number // 2)
            )
        assert history.flush(_WAIT)
    guarded = History(url, admins=frozenset({"root"}))

    def found(user: str, *conditions: Condition, **more: Any) -> list[str]:
        pieces = guarded.rows(user, ["statement_id", "id", "started_ms"], conditions, **more)
        return [row[0] for piece in pieces for row in piece]

    assert len(found("root")) == 50
    assert len(found("ann")) == 25 and found("eve") == []
    assert found("bob", Condition("statement_id", "IN", ("s1", "s2"))) == ["s2"]
    assert found("root", Condition("text", "CONTAINS", "COL_4"), limit=3) == ["s49", "s48", "s47"]
    assert found("root", Condition("started_ms", ">=", 24)) == ["s48", "s49"]
    (page,) = guarded.rows("root", ["started_ms", "id"], limit=10)
    assert found("root", before=page[-1], limit=2) == ["s39", "s38"]
    assert found("root", Condition("started_ms", "<", 10**30)) == found("root")
    assert found("x' OR 'a' = 'a") == []
    for column in ('user" OR 1=1 --', "weight"):
        with pytest.raises(ValueError, match=r"weight|columns"):
            found("root", Condition(column, "=", 1))


def test_what_takes_too_long_is_said_to(postgres: Postgres, url: DatabaseUrl) -> None:
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
    with postgres.connect(name_of(url)) as other, other.transaction():
        other.execute("LOCK TABLE gateway_statements IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(ServerError, match=r"longer than 0\.5 seconds"):
            list(History(url, open_to_all=True).rows("", ["id"], seconds=0.5))


def test_nothing_has_been_written_yet(url: DatabaseUrl) -> None:
    assert kept(url) == []


def test_gateways_see_each_others_rows(url: DatabaseUrl) -> None:
    with running(url) as one, running(url) as other:
        write_at_once(one, other)
    assert len(set(kept(url))) == len(kept(url)) == 600


def test_rows_whose_answer_was_lost_are_written_once(url: DatabaseUrl) -> None:
    store = PostgresStore(url, STATEMENTS)
    store.write([tuple(record(1))])
    store.write([tuple(record(1)), tuple(record(2))])
    store.close()
    assert kept(url) == ["s1", "s2"]


def test_what_becomes_known_later_is_written_to_its_record(url: DatabaseUrl) -> None:
    with running(url) as history:
        history.add(record(1)._replace(details='{"read":[["a","b","\\u0000"]]}'))
        history.add(record(2))
        history.add_later("s2", 12.5)
        history.add_later("nobody", 1.0)
        eventually(lambda: kept(url, "fetch_ms") == [None, 12.5])
    assert kept(url, "details") == ['{"read":[["a","b","\\u0000"]]}', None]


def test_a_server_that_is_gone_delays_nobody_and_loses_nothing(
    postgres: Postgres, url: DatabaseUrl, lines: list[tuple[str, dict[str, Any]]]
) -> None:
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
        postgres.stop()
        try:
            started = time.monotonic()
            for number in range(2, 1002):
                history.add(record(number))
            assert time.monotonic() - started < 10.0
            eventually(lambda: any(event == "history cannot be written" for event, _ in lines))
            assert not history.is_written
            with pytest.raises(
                ServerError, match=r"The history cannot be read: its database does not answer"
            ) as caught:
                kept(url)
            assert "127.0.0.1" not in str(caught.value)
        finally:
            postgres.start()
        assert history.flush(_WAIT)
        eventually(lambda: history.is_written)
    assert len(kept(url)) == 1001
    assert [event for event, _ in lines] == ["history cannot be written", "history is written again"]
    assert "s3cret" not in str(lines)


def test_a_server_that_answers_nothing_is_not_waited_for(
    postgres: Postgres, url: DatabaseUrl, lines: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_WRITE_SECONDS", 1.0)
    monkeypatch.setattr(stores, "_READ_SECONDS", 1.0)
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
        postgres.hold(on=True)
        try:
            history.add(record(2))
            assert not history.flush(0.2)
            eventually(lambda: any(event == "history cannot be written" for event, _ in lines))
            started = time.monotonic()
            with pytest.raises(ServerError, match="HISTORY_UNREADABLE"):
                kept(url)
            assert time.monotonic() - started < 15.0
            started = time.monotonic()
            for _ in range(20):  # who asks now does not wait for the same again
                with pytest.raises(ServerError, match="its database does not answer"):
                    kept(url)
            assert time.monotonic() - started < 10.0  # twenty times a second, if each waited
        finally:
            postgres.hold(on=False)
            stores.SILENCE.forget()
        assert history.flush(_WAIT)
    assert kept(url) == ["s1", "s2"]


def test_a_locked_table_is_waited_for(
    postgres: Postgres, url: DatabaseUrl, lines: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_LOCK_SECONDS", 0.3)
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
        with postgres.connect(name_of(url)) as other, other.transaction():
            other.execute("LOCK TABLE gateway_statements IN ACCESS EXCLUSIVE MODE")
            history.add(record(2))
            eventually(lambda: any("lock timeout" in str(fields) for _, fields in lines))
            with pytest.raises(ServerError, match="SQLSTATE 55P03"):
                kept(url)
        assert history.flush(_WAIT)
    assert kept(url) == ["s1", "s2"]


def test_a_full_disk_loses_what_finds_no_room(
    postgres: Postgres, small_disk: Disk, lines: list[tuple[str, dict[str, Any]]]
) -> None:
    folder = Path(f"/tmp/pg-disk-{uuid.uuid4().hex[:8]}")
    folder.mkdir()
    small_disk(folder, 24)
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * (8 << 20))
    inner = folder / "space"
    inner.mkdir()
    postgres.own(inner)
    name = f"full{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE TABLESPACE {name} LOCATION '{inner}'")
    url = DatabaseUrl(postgres.make(name))
    with postgres.connect(name) as connection:
        connection.execute(f"ALTER ROLE ann IN DATABASE {name} SET default_tablespace = {name}")
    try:
        with running(url, show_sql=True, waiting_bytes=2 << 20) as history:
            texts = random.Random(7)

            def add(number: int) -> None:
                history.add(record(number, "x" + texts.randbytes(15_000).hex()))

            count = 0
            while not any("No space left" in str(fields) for _, fields in lines):
                assert count < 3000
                add(count)
                count += 1
                if count % 20 == 0:
                    history.flush(0.5)
            for number in range(count, count + 200):
                add(number)
            assert history.lost > 0
            there = len(kept(url))
            assert there > 100
            ballast.unlink()
            assert history.flush(_WAIT)
        assert len(kept(url)) + history.lost == count + 200
        assert len(kept(url)) > there
    finally:
        with postgres.connect() as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
            connection.execute(f"DROP TABLESPACE {name}")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("COMMENT ON TABLE gateway_statements IS 'Delta SQL Gateway, history, version 99'", "is of version 99"),
        ("COMMENT ON TABLE gateway_statements IS NULL", "is not one of ours"),
        ("DROP TABLE gateway_statements; CREATE TABLE gateway_statements (x INT)", "is not one of ours"),
    ],
)
def test_a_table_that_is_newer_or_not_ours_is_left_alone(
    postgres: Postgres, url: DatabaseUrl, lines: list[tuple[str, dict[str, Any]]], change: str, reason: str
) -> None:
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
    with postgres.connect(name_of(url)) as connection:
        connection.execute(change)
    with running(url) as history:
        history.add(record(2))
        eventually(lambda: any(reason in str(fields) for _, fields in lines))
        with pytest.raises(ServerError, match=reason):
            kept(url)
    assert history.lost == 1
    with postgres.connect(name_of(url)) as connection:
        assert connection.execute("SELECT count(*) FROM gateway_statements").fetchone()[0] == ("DROP" not in change)


def test_an_older_table_is_gone_on_with(postgres: Postgres, url: DatabaseUrl) -> None:
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
    with postgres.connect(name_of(url)) as connection:
        connection.execute("ALTER TABLE gateway_statements DROP COLUMN cached, DROP COLUMN spilled_bytes")
    with pytest.raises(ServerError, match="SQLSTATE 42703"):
        kept(url, "cached")
    with running(url) as history:
        history.add(record(2)._replace(cached=True))
        assert history.flush(_WAIT)
    assert kept(url, "cached") == [None, True]


ODD = {
    "user": "BYTEA USING 'x'::bytea",
    "text": "INT USING 5",
    "client": "JSONB USING '{\"a\": 1}'::jsonb",
    "statement_id": "UUID USING gen_random_uuid()",
    "session_id": "INET USING '1.2.3.4'::inet",
    "state": "TEXT[] USING ARRAY['a']",
    "details": "INT USING 5",
    "started_ms": "TIMESTAMPTZ USING now()",
    "ended_ms": "DATE USING 'infinity'::date",
    "total_ms": "NUMERIC USING 5",
    "queue_ms": "DOUBLE PRECISION USING 'NaN'::float8",
    "cached": "INTERVAL USING '1 day'::interval",
}


def test_columns_of_other_types_are_told_to_all_who_ask(postgres: Postgres, url: DatabaseUrl) -> None:
    history = History(url, open_to_all=True)
    api, ann = HistoryApi(history), Caller(Principal("ann"), "tests")
    service: Any = SimpleNamespace(picture=lambda user: Runtime((), ()))
    calls = ConsoleCalls(service, StatementApi(service, service), history, None, Facts("0", False, dict, ()))
    for column, kind in ODD.items():
        store = PostgresStore(url, STATEMENTS)
        store.write([tuple(record(1))])
        store.close()
        with postgres.connect(name_of(url)) as connection:
            connection.execute(f'ALTER TABLE gateway_statements ALTER COLUMN "{column}" TYPE {kind}')
        with pytest.raises(ServerError, match="HISTORY_UNREADABLE"):
            kept(url, column)
        if column != "details":
            with pytest.raises(ServerError, match="HISTORY_UNREADABLE"):
                api.list_queries(ann, {}, dict.fromkeys(QUERIES))
        with pytest.raises(ServerError, match="HISTORY_UNREADABLE"):
            calls.statement(ann, {"statement_id": "s1"}, {})
        relation = query_history.recorded(Seen(history, "")).view("query", "history")
        assert relation is not None
        with pytest.raises(ServerError, match="HISTORY_UNREADABLE"):
            relation.scan([field.name for field in relation.schema.fields], ())
        with postgres.connect(name_of(url)) as connection:
            connection.execute("DROP TABLE gateway_statements")


DETAILS = {
    '{"parameters":{"a":1}}': False,
    '{"parameters":[{"value":1}]}': False,
    '{"parameters":["value"]}': False,
    '{"bytes_written":"x"}': False,
    "[" * 100_000: True,
    '{"a":' * 100_000: True,
    '{"bytes_written":1e400}': True,
    '{"bytes_written":NaN}': True,
    "5": True,
}


def test_details_that_are_not_ours_are_told_or_nothing(postgres: Postgres, url: DatabaseUrl) -> None:
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
    relation = query_history.recorded(Seen(History(url, open_to_all=True), "")).view("query", "history")
    assert relation is not None
    columns = ["query_parameters", "written_bytes"]
    with postgres.connect(name_of(url)) as connection:
        for details, is_nothing in DETAILS.items():
            connection.execute("UPDATE gateway_statements SET details = %s", (details,))
            if is_nothing:
                assert relation.scan(columns, ()).rows.to_pylist() == [dict.fromkeys(columns)]
            else:
                with pytest.raises(ServerError, match="HISTORY_UNREADABLE"):
                    relation.scan(columns, ())


def test_texts_are_asked_for_as_long_as_they_may_be(postgres: Postgres, url: DatabaseUrl) -> None:
    with running(url) as history:
        for number in range(90):
            history.add(record(number))
        assert history.flush(_WAIT)
    with postgres.connect(name_of(url)) as connection:
        connection.execute("UPDATE gateway_statements SET text = repeat('x', 3000000), message = repeat('é', 9999)")
    rows = History(url, open_to_all=True).rows("", ["text", "message", "id"])
    assert {(len(text), len(message)) for piece in rows for text, message, _ in piece} == {(65_538, 4_096)}
    found, more = page(History(url, open_to_all=True), "", ("text", "message"), (), None, 1000)
    assert more and sum(len(text) for row in found for text in row) < 5 << 20


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_the_encoding_is_ours_whatever_the_address_and_the_environment_say(
    url: DatabaseUrl, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    for asked in (url, DatabaseUrl(f"{url.text}?client_encoding={encoding}")):
        with running(asked, show_sql=True) as history:
            history.add(record(1, "SELECT '\u20ac\u4e2d\U0001f600'"))
            assert history.flush(_WAIT)
        assert history.lost == 0
        assert kept(asked, "text") == ["SELECT '\u20ac\u4e2d\U0001f600'"]


def test_a_locked_table_holds_up_few(postgres: Postgres, url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_LOCK_SECONDS", 0.3)
    monkeypatch.setattr("gateway.history.silence._SHORT_SECONDS", 0.2)
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
    with postgres.connect(name_of(url)) as other, other.transaction():
        other.execute("LOCK TABLE gateway_statements IN ACCESS EXCLUSIVE MODE")
        started = time.monotonic()
        for _ in range(50):
            with pytest.raises(ServerError, match="SQLSTATE 55P03"):
                kept(url)
        assert time.monotonic() - started < 10.0  # 15 s and more, if each waited
    eventually(lambda: _is_readable(url))


def _is_readable(url: DatabaseUrl) -> bool:
    try:
        return kept(url) == ["s1"]
    except ServerError:
        return False


def test_a_table_that_is_dropped_is_made_anew(postgres: Postgres, url: DatabaseUrl) -> None:
    with running(url) as history:
        history.add(record(1))
        assert history.flush(_WAIT)
        with postgres.connect(name_of(url)) as connection:
            connection.execute("DROP TABLE gateway_statements")
        history.add(record(2))
        assert history.flush(_WAIT)
    assert kept(url) == ["s2"]


def test_a_database_without_rights_or_of_another_encoding_loses_what_comes(
    postgres: Postgres, lines: list[tuple[str, dict[str, Any]]]
) -> None:
    name = f"latin{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'pw'")
    for url, reason in (
        (postgres.url(name), "encoding LATIN1"),
        (f"postgresql://{name}:pw@127.0.0.1:{postgres.port}/postgres", "permission denied"),
        (f"postgresql://{name}:wrong@127.0.0.1:{postgres.port}/postgres", "password authentication failed"),
        (f"postgresql://ann:{PASSWORD}@127.0.0.1:{postgres.port}/nowhere", "does not exist"),
    ):
        with running(DatabaseUrl(url)) as history:
            history.add(record(1))
            eventually(lambda reason=reason: any(reason in str(fields) for _, fields in lines))  # type: ignore[misc]
        assert history.lost == 1
    assert "s3cret" not in str(lines) and "wrong" not in str(lines)


def test_what_is_too_old_goes(url: DatabaseUrl) -> None:
    now = round(time.time() * 1000)
    with running(url, age=3600.0) as history:
        for number in range(2500):
            history.add(record(number, started_ms=now - 7200_000))
        history.add(record(3000, started_ms=now - 1800_000))
        assert history.flush(_WAIT)
    with running(url, age=3600.0):
        eventually(lambda: kept(url) == ["s3000"])


def test_the_oldest_go_where_there_are_too_many(url: DatabaseUrl) -> None:
    size = 1 << 20
    with running(url, size=size, show_sql=True) as history:
        for number in range(2000):
            history.add(record(number, "x" * 2000))
            if number % 200 == 0:
                assert history.flush(_WAIT)
        assert history.flush(_WAIT)
        eventually(lambda: len(kept(url)) < 600)
    found = kept(url)
    assert found == [f"s{n}" for n in range(2000 - len(found), 2000)]
    assert len(found) > 300


def test_sign_ins_lie_beside(url: DatabaseUrl) -> None:
    recorder = Recorder[SignIn](PostgresStore(url, SIGN_INS), age=1e10, size=1 << 20)
    recorder.start()
    recorder.add(SignIn("e1", 5, None, "10.0.0.1", "x", "login", "bearer", 401, "no\0", 3))
    assert recorder.flush(_WAIT)
    recorder.stop()
    history = History(url, open_to_all=True).of(SIGN_INS)
    assert list(history.rows("", ["event_id", "user", "message"])) == [[("e1", None, "no\u2400")]]


SHOWN = [
    ("postgresql://ann:pw@db.example:5432/history", "postgresql://ann@db.example:5432/history"),
    ("postgres://ann:p%2Fw@[::1]:5432/h?sslmode=verify-full&sslpassword=x", "postgresql://ann@[::1]:5432/h"),
    ("postgresql:///h?host=/run/pg&password=x", "postgresql:///h"),
    ("postgresql://a,b:1,c/h", "postgresql://a,b:1,c/h"),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_an_address_is_shown_without_its_secrets(text: str, shown: str) -> None:
    found = parse_history(text)
    assert isinstance(found, DatabaseUrl)
    assert (str(found), repr(found)) == (shown, "DatabaseUrl()")


@pytest.mark.parametrize(
    "text",
    ["postgresql://a:p/w@h/d", "postgresql://a:p@w@h/d", "mysql://a:secret@h/d", "postgresql://a:se#cret@h", "secret"],
)
def test_what_is_no_address_is_refused_without_telling_it(text: str) -> None:
    with pytest.raises(ValueError, match="is neither") as caught:
        parse_history(text)
    assert "secret" not in str(caught.value) and "p/w" not in str(caught.value)


def test_what_the_driver_does_not_take_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    assert problem_of(DatabaseUrl("postgresql://a:secret@h/d")) is None
    problem = problem_of(DatabaseUrl("postgresql://a:secret@h/d?nonsense=secret"))
    assert problem is not None and "secret" not in problem
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    problem = problem_of(DatabaseUrl("postgresql://a:secret@h/d"))
    assert problem == "PostgreSQL needs the package psycopg: pip install '.[postgresql]'"
