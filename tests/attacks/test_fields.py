"""All that a client may fill in, as lines and labels that it is not asked for: logs and metrics stay ours."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.protocol import codec
from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import outcome, post, send
from tests.live.gateway import HTTP_PATH, Server, start_server

FORGED = '06:00:00.000 info    forged user=root\r\n{"time": "2026-01-01T00:00:00", "level": "info", "event": "forged"}'
EVIL = f'x"\n{FORGED}\n\x1b[31m\u2028{FORGED}\u0085\u202e\x00\x7f end="1 forged_total 1'
TEXT_LINE = re.compile(r"\d\d:\d\d:\d\d\.\d\d\d (?:debug|info|warning|error) ")


@pytest.fixture(scope="module", params=["text", "json"])
def talkative(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that logs all it can, statements too."""
    flags = ("--log-format", request.param, "--log-level", "debug", "--log-sql", "true")
    server = start_server(tmp_path_factory.mktemp("talkative"), *flags, "--memory-limit", "512MiB", "--slots", "2")
    yield server
    assert server.stop() == 0


def calls(client: Client) -> Iterator[Any]:
    """Requests with the text in each of their fields."""
    session = client._session
    value = ttypes.TSparkParameterValue(stringValue=EVIL)
    limits = ttypes.TSparkGetDirectResults(maxRows=10)
    for statement in (
        EVIL, f"SELECT '{EVIL}'", f"SELECT * FROM `{EVIL}`", f"USE `{EVIL}`", f"SET `{EVIL}` = 1", f"SET timezone = '{EVIL}'",
        f"SET {EVIL} = {EVIL}", f"SELECT raise_error('{EVIL}')", f"SELECT CAST('{EVIL}' AS INT)", f"SELECT 1 AS `{EVIL}`",
        f"CREATE TABLE `{EVIL}` AS SELECT 1 AS x", f"SELECT * FROM delta.`/{EVIL}`", f"/* {EVIL} */ SELECT 1", f"-- {EVIL}",
        f"SELECT to_timestamp('1', '{EVIL}')", f"SELECT regexp_replace('a', '({EVIL}', 'b')", f"SELECT `{EVIL}`(1)",
        f"SELECT from_json('{EVIL}', '{EVIL}')", f"CREATE TEMP VIEW `{EVIL}` AS SELECT 1",
    ):  # fmt: skip
        yield "ExecuteStatement", ttypes.TExecuteStatementReq(session, statement, getDirectResults=limits)
    for parameter in (
        ttypes.TSparkParameter(name=EVIL, value=value, type="STRING"),
        ttypes.TSparkParameter(name="p", value=value, type=EVIL),
        ttypes.TSparkParameter(name="p", value=value, type="INT"),
    ):
        request = ttypes.TExecuteStatementReq(session, "SELECT :p", getDirectResults=limits, parameters=[parameter])
        yield "ExecuteStatement", request
    overlay = {EVIL: EVIL, "timezone": EVIL, "query_tags": EVIL, f"spark.sql.adaptive.{EVIL}": EVIL}
    for key, each in overlay.items():
        yield "ExecuteStatement", ttypes.TExecuteStatementReq(session, "SELECT 1", {key: each}, getDirectResults=limits)
    common = {"sessionHandle": session, "getDirectResults": limits}
    yield "GetSchemas", ttypes.TGetSchemasReq(catalogName=EVIL, schemaName=EVIL, **common)
    yield (
        "GetTables",
        ttypes.TGetTablesReq(catalogName="main", schemaName=EVIL, tableName=EVIL, tableTypes=[EVIL], **common),
    )
    yield "GetColumns", ttypes.TGetColumnsReq(schemaName=EVIL, tableName=EVIL, columnName=EVIL, **common)
    yield "GetFunctions", ttypes.TGetFunctionsReq(functionName=EVIL, **common)
    yield "GetPrimaryKeys", ttypes.TGetPrimaryKeysReq(schemaName=EVIL, tableName=EVIL, **common)
    yield "GetDelegationToken", ttypes.TGetDelegationTokenReq(session, EVIL, EVIL)
    for key, each in {**overlay, "use:database": EVIL, "use:catalog": EVIL, f"set:hivevar:{EVIL}": EVIL}.items():
        yield "OpenSession", ttypes.TOpenSessionReq(client_protocol_i64=0xA509, configuration={key: each})
    yield "OpenSession", ttypes.TOpenSessionReq(client_protocol_i64=0xA509, username=EVIL, password=EVIL)
    yield (
        "OpenSession",
        ttypes.TOpenSessionReq(client_protocol_i64=0xA509, initialNamespace=ttypes.TNamespace(EVIL, EVIL)),
    )


def test_no_field_makes_lines_or_labels(talkative: Server) -> None:
    evil = EVIL.encode()
    with Client(talkative.thrift_url).open() as client:
        for verb, request in calls(client):
            with contextlib.suppress(RemoteError, codec.ApplicationError):
                client.call(verb, request)
    user = base64.b64encode(evil + b":" + evil).decode()
    body = codec.encode_call("OpenSession", 0, ttypes.TOpenSessionReq(client_protocol_i64=0xA509))
    agent = "x forged " + "\x1b[31m".replace("\x1b", "\x9b") + "y" * 60_000
    assert post(talkative, body, Authorization=f"Basic {user}", User_Agent=agent)[0] == 200
    for name in (b"OpenSession\nforged 1", evil, b"\xff\xfe", b"x" * 100_000):
        frame = b"\x80\x01\x00\x01" + len(name).to_bytes(4, "big") + name + b"\0\0\0\0\0"
        post(talkative, frame, User_Agent="x")
    head = f" HTTP/1.1\r\nHost: forged\r\nX-Forwarded-For: {FORGED.splitlines()[0]}\r\nConnection: close\r\n\r\n"
    for start in (
        f"GET /forged_{'y' * 1000}",
        "FORGED /metrics",
        "GET /forged%0aforged",
        f"POST {HTTP_PATH}/%0aforged",
    ):
        send(talkative, (start + head).encode())
    written = talkative.log.read_text(errors="surrogateescape")
    lines = written.split("\n")[:-1]
    assert len(lines) > 40
    for line in lines:
        if line.startswith("{"):
            assert json.loads(line)["event"] != "forged"
        else:
            assert TEXT_LINE.match(line), line[:200]
            assert not line[13:].lstrip().startswith("info    forged")
        assert line.isprintable(), repr(line[:500])
        assert len(line) < 60_000
    with urllib.request.urlopen(f"{talkative.url}/metrics") as page:
        metrics = page.read().decode()
    assert "forged" not in metrics.lower()
    assert len(metrics) < 200_000


def test_metrics_do_not_grow_with_what_is_asked(talkative: Server) -> None:
    def names() -> set[str]:
        with urllib.request.urlopen(f"{talkative.url}/metrics") as page:
            return {line.rpartition(" ")[0] for line in page.read().decode().splitlines()}

    with Client(talkative.thrift_url).open() as client:
        before: set[str] = set()
        for turn in range(40):
            outcome(client, f"SELECT raise_error('CLASS_{turn}', map('a', 'b'))")
            outcome(client, f"FROBNICATE{turn} x")
            outcome(client, f"SELECT f{turn}(1) FROM t{turn}")
            post(talkative, codec.encode_call("OpenSession", 0, None).replace(b"OpenSession", b"O%010d" % turn))
            send(talkative, f"GET /p{turn} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            send(talkative, f"M{turn} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            if turn in (2, 3):  # the first time of looking at them is counted itself
                before = names()
        assert names() == before


def test_errors_name_no_place_of_the_server(talkative: Server) -> None:
    """Beside those that the caller has named, or that hold the tables that it asked for."""
    private = [
        str(talkative.warehouse.parent / "state"),
        str(Path(codec.__file__).parent),
        "site-packages",
        "Traceback",
    ]
    with Client(talkative.thrift_url).open() as client:
        for verb, request in calls(client):
            try:
                told = str(client.call(verb, request))
            except (RemoteError, codec.ApplicationError) as error:
                told = str(error)
            assert not any(word in told for word in private), told
            assert "INTERNAL_ERROR" not in told, told
