"""Thrift over TCP with the clients that speak it: PyHive, impyla and our own, with each way to log in."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from gateway.protocol.client import RemoteError
from gateway.protocol.versions import HIVE_V10
from tests.clients.test_server import ENDLESS
from tests.live.doors import Certificates, tcp_client
from tests.live.gateway import Server, start_server


def pyhive(server: Server, **how: Any) -> Any:
    hive = pytest.importorskip("pyhive.hive")
    host, port = server.tcp_address
    return hive.connect(host, port, **how)


def impyla(server: Server, **how: Any) -> Any:
    dbapi = pytest.importorskip("impala.dbapi")
    host, port = server.tcp_address
    return dbapi.connect(host, port, **how)


@pytest.mark.parametrize(
    ("how", "user"),
    [
        ({"auth": "NOSASL"}, "anonymous"),
        ({"auth": "NONE", "username": "me"}, "me"),
        ({"auth": "LDAP", "username": "me", "password": "x"}, "me"),
        ({"auth": "CUSTOM", "username": "me", "password": "x"}, "me"),
    ],
)
def test_pyhive(tcp_server: Server, how: dict[str, str], user: str) -> None:
    connection = pyhive(tcp_server, database="default", **how)
    cursor = connection.cursor()
    cursor.execute("SELECT current_user(), id, CAST(id AS STRING) s FROM range(25000) ORDER BY id")
    rows = cursor.fetchall()
    assert [(row[0], row[1], row[2]) for row in (rows[0], rows[-1])] == [(user, 0, "0"), (user, 24999, "24999")]
    assert len(rows) == 25000
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        cursor.execute("SELECT nothing")
    cursor.execute("SELECT 'é' AS t, NULL AS n")
    assert cursor.fetchall() == [("é", None)]
    connection.close()


def test_the_dialect_of_pyhive_knows_a_missing_table(tcp_server: Server) -> None:
    """Its has_table looks for these words; without them a DataFrame's to_sql raises where the table is new."""
    connection = pyhive(tcp_server, username="me")
    for name, shown in (("not_there", "not_there"), ("default.`not there`", "default.not there")):
        with pytest.raises(Exception, match="42P01") as raised:
            connection.cursor().execute(f"DESCRIBE {name}")
        assert re.search(
            rf"TExecuteStatementResp.*SemanticException.*Table not found {re.escape(shown)}", str(raised.value)
        )
    connection.close()


def test_executemany_of_impyla(tcp_server: Server) -> None:
    connection = impyla(tcp_server, auth_mechanism="NOSASL")
    cursor = connection.cursor()
    cursor.execute("CREATE OR REPLACE TABLE many_of_impyla (id INT, name STRING)")
    cursor.executemany("INSERT INTO many_of_impyla VALUES (%s, %s)", [(1, "one"), (2, "o'two")])
    cursor.execute("SELECT id, name FROM many_of_impyla ORDER BY id")
    assert cursor.fetchall() == [(1, "one"), (2, "o'two")]
    cursor.execute("DROP TABLE many_of_impyla")
    connection.close()


@pytest.mark.parametrize(
    ("how", "user"),
    [
        ({"auth_mechanism": "NOSASL"}, "anonymous"),
        ({"auth_mechanism": "PLAIN", "user": "me", "password": "x"}, "me"),
        ({"auth_mechanism": "LDAP", "user": "me", "password": "x"}, "me"),
    ],
)
def test_impyla(tcp_server: Server, how: dict[str, str], user: str) -> None:
    connection = impyla(tcp_server, **how)
    cursor = connection.cursor()
    cursor.execute("SELECT current_user(), count(*) FROM samples.tpch.region")
    assert cursor.fetchall() == [(user, 5)]
    cursor.get_databases()
    assert ("tpch", "samples") in cursor.fetchall()
    cursor.execute_async(ENDLESS)
    cursor.cancel_operation()
    connection.close()


@pytest.mark.parametrize("user", [None, "me"])
def test_our_own_client(tcp_server: Server, user: str | None) -> None:
    with tcp_client(tcp_server, user).open(protocol=HIVE_V10) as client:
        for _ in range(3):
            assert client.execute("SELECT 1", arrow=False).columns == ["1"]
        with pytest.raises(RemoteError, match="UNRESOLVED_COLUMN"):
            client.execute("SELECT x", arrow=False)


def test_the_log_of_an_operation(tcp_server: Server) -> None:
    """What beeline prints while it waits: the queue, the engine with its reason, the end."""
    connection = pyhive(tcp_server, auth="NONE", username="me")
    cursor = connection.cursor()
    cursor.execute("SELECT * FROM samples.tpch.region", async_=True)
    lines: list[str] = []
    end = time.monotonic() + 20
    while not any("5 rows in" in line for line in lines) and time.monotonic() < end:
        lines += cursor.fetch_logs()
    assert [line for line in lines if "s in the queue" in line]
    assert [line for line in lines if line.startswith("INFO  : SELECT on datafusion: ")]
    assert lines[-1].startswith("INFO  : 5 rows in ")
    assert len(set(lines)) == len(lines), "no line twice"
    cursor.execute("SELECT assert_true(false)", async_=True)
    while cursor.poll().operationState != 5 and time.monotonic() < end:  # ERROR_STATE
        time.sleep(0.05)
    assert [line for line in cursor.fetch_logs() if line.startswith("ERROR : [USER_RAISED_EXCEPTION]")]
    connection.close()


def test_beeline(tcp_server: Server) -> None:
    """The one in pyspark's jars: rows, lines of the log, its table of progress, counts of rows, errors."""
    if shutil.which("java") is None or importlib.util.find_spec("pyspark") is None:
        pytest.skip("no Java or no pyspark here")
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.origin is not None
    jars = Path(found.origin).parent / "jars"
    host, port = tcp_server.tcp_address
    line = ["java", "-cp", f"{jars}/*", "org.apache.hive.beeline.BeeLine", "-u", f"jdbc:hive2://{host}:{port}/default"]
    script = [
        "SELECT count(*) AS n FROM samples.tpch.lineitem",
        "CREATE OR REPLACE TABLE of_beeline (id INT)",
        "INSERT INTO of_beeline VALUES (1), (2)",
        "SHOW TABLES LIKE 'of_beeline'",
        "DROP TABLE of_beeline",
        "SELECT nope",
    ]
    done = subprocess.run(
        [*line, "-n", "me", "-p", "x", "-e", "; ".join(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "FormatArgument" not in said
    assert re.search(r"\|\s*n\s*\|", said) and "INFO  : SELECT on datafusion: " in said
    assert re.search(r"\|\s*default\s*\|\s*of_beeline\s*\|\s*false\s*\|", said)
    assert re.search(r"Error: \[UNRESOLVED_COLUMN.*state=42703", said, re.DOTALL)


def test_kerberos_is_refused_in_words_that_the_client_shows(tcp_server: Server) -> None:
    from gateway.transport.sasl import Status, message
    from tests.attacks.test_tcp import send

    answer = send(tcp_server, message(Status.START, b"GSSAPI"))
    assert answer[0] == Status.BAD
    assert b"'GSSAPI' is not supported: use PLAIN" in answer


def test_nobody_acts_for_another_user(tcp_server: Server) -> None:
    from gateway.transport.sasl import Status, message
    from tests.attacks.test_tcp import send

    for acting_for, said in ((b"", Status.COMPLETE), (b"me", Status.COMPLETE), (b"you", Status.BAD)):
        asked = message(Status.START, b"PLAIN") + message(Status.COMPLETE, acting_for + b"\0me\0x")
        answer = send(tcp_server, asked)
        assert answer[0] == said, acting_for


def test_a_session_ends_with_its_connection(tcp_server: Server) -> None:
    """Hive's servers do so; what it runs ends too, and its slots are free again."""
    clients = [tcp_client(tcp_server, "leaver").open() for _ in range(4)]
    for client in clients:
        from gateway.thrift_gen.TCLIService import ttypes

        client.call(
            "ExecuteStatement",
            ttypes.TExecuteStatementReq(sessionHandle=client._session, statement=ENDLESS, runAsync=True),
        )
    for client in clients:
        client._connection.close()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        closed = tcp_server.log.read_text().count("session closed")
        opened = tcp_server.log.read_text().count("session opened")
        if closed == opened:
            break
        time.sleep(0.1)
    assert closed == opened
    with tcp_client(tcp_server, "me").open() as client:
        assert client.execute("SELECT 1", arrow=False).columns == ["1"]


def test_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(token_line("alice", "dapi123") + "\n")
    server = start_server(
        tmp_path, "--tcp-port", "0", "--auth", "token", "--token-file", str(tmp_path / "tokens"), "--host", "127.0.0.1"
    )
    try:
        for user in ("token", "alice"):
            with tcp_client(server, user, "dapi123").open() as client:
                assert client.execute("SELECT 1", arrow=False).columns == ["1"]
        for user, password in (("token", "wrong"), ("bob", "dapi123"), ("alice", ""), ("anonymous", "anonymous")):
            with pytest.raises(PermissionError, match="BAD: The token is not valid"):
                tcp_client(server, user, password)
        with pytest.raises(RemoteError, match="connect with SASL PLAIN"):
            tcp_client(server).open()
        assert "wrong" not in server.log.read_text()
    finally:
        assert server.stop() == 0


def test_tls_on_tcp(tls_server: Server, certificates: Certificates) -> None:
    with tcp_client(tls_server, "me", tls=certificates.trust()).open() as client:
        assert client.execute("SELECT 1", arrow=False).columns == ["1"]
    with tcp_client(tls_server, tls=certificates.trust()).open() as client:
        assert client.execute("SELECT 1", arrow=False).columns == ["1"]


def test_impyla_with_tls(tls_server: Server, certificates: Certificates) -> None:
    connection = impyla(
        tls_server,
        auth_mechanism="PLAIN",
        user="me",
        password="x",
        use_ssl=True,
        ca_cert=os.fspath(certificates.authority),
    )
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM range(30000)")
    assert len(cursor.fetchall()) == 30000
    connection.close()
