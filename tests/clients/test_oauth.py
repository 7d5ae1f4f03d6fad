"""OAuth for machines, as drivers go about it: discovery, a token for id and secret, calls with that token."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import token_line
from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import send
from tests.live.doors import tcp_client
from tests.live.gateway import Server, connect_to, start_server
from tests.live.processes import eventually


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway with one token."""
    folder = tmp_path_factory.mktemp("oauth")
    (folder / "tokens").write_text(token_line("robot", "dapi-secret") + "\n")
    running = start_server(folder, "--auth", "token", "--token-file", str(folder / "tokens"))
    yield running
    assert running.stop() == 0


def ask(url: str, fields: dict[str, str] | None = None, **headers: str) -> tuple[int, dict[str, Any]]:
    """Status and body of a GET, or of a POST of a form."""
    data = urllib.parse.urlencode(fields).encode() if fields is not None else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


GRANT = {"grant_type": "client_credentials", "scope": "all-apis"}


def test_from_discovery_to_a_query(guarded: Server) -> None:
    status, found = ask(guarded.url + "/oidc/.well-known/oauth-authorization-server")
    assert status == 200
    assert found["token_endpoint"] == guarded.url + "/oidc/v1/token"
    assert found["issuer"] == guarded.url + "/oidc"
    credentials = base64.b64encode(b"robot:dapi-secret").decode()
    for fields, headers in (
        (GRANT, {"Authorization": f"Basic {credentials}"}),
        ({**GRANT, "client_id": "robot", "client_secret": "dapi-secret"}, {}),
    ):
        for place in (
            guarded.url + "/oidc/oauth2/v2.0/token",
            found["token_endpoint"],
        ):  # the first is Databricks JDBC 2's
            status, given = ask(place, fields, **headers)
            assert (status, given["token_type"], given["expires_in"]) == (200, "Bearer", 3600)
        with Client(guarded.thrift_url, user="token", password=given["access_token"]).open() as client:
            assert client.execute("SELECT current_user() AS u").table().to_pylist() == [{"u": "robot"}]


def test_databricks_sdk_finds_the_endpoints_by_what_the_host_tells(guarded: Server) -> None:
    """It asks there first, and without an `oidc_endpoint` nowhere else."""
    told = ask(guarded.url + "/.well-known/databricks-config")[1]
    status, found = ask(told["oidc_endpoint"] + "/.well-known/oauth-authorization-server")
    assert (status, found["issuer"]) == (200, told["oidc_endpoint"])
    assert ask(told["oidc_endpoint"] + "/.well-known/openid-configuration") == (200, found)  # databricks-sql-go


@pytest.mark.slow
def test_databricks_sdk_signs_in_with_a_client_id(guarded: Server) -> None:
    python = os.environ.get("GATEWAY_TEST_CLIENTS", "")
    if not python:
        pytest.skip("GATEWAY_TEST_CLIENTS names no interpreter")
    program = (  # its metadata, its OAuth, its statements
        "import sys; from databricks.sdk import WorkspaceClient\n"
        "w = WorkspaceClient(host=sys.argv[1], client_id='robot', client_secret='dapi-secret')\n"
        "found = w.statement_execution.execute_statement('SELECT current_user()', 'x')\n"
        "print(found.result.data_array, w.current_user.me().user_name)"
    )
    done = subprocess.run([python, "-c", program, guarded.url], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[['robot']] robot\n", done.stderr


@pytest.mark.heavy
def test_the_connector_takes_the_token(guarded: Server) -> None:
    """It sees a JSON web token and asks port 443 of the host to exchange it, half a minute long, before it takes it."""
    fields = {**GRANT, "client_id": "robot", "client_secret": "dapi-secret"}
    given = ask(guarded.url + "/oidc/v1/token", fields)[1]
    with connect_to(guarded, access_token=given["access_token"]) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT current_user()")
        assert cursor.fetchall()[0][0] == "robot"


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({**GRANT, "client_id": "robot", "client_secret": "wrong"}, 401, "invalid_client"),
        ({**GRANT, "client_id": "other", "client_secret": "dapi-secret"}, 401, "invalid_client"),
        (GRANT, 401, "invalid_client"),
        ({"client_id": "robot", "client_secret": "dapi-secret"}, 400, "unsupported_grant_type"),
        ({"grant_type": "authorization_code", "code": "x"}, 400, "unsupported_grant_type"),
        ({f"f{i}": "" for i in range(100)}, 400, "invalid_request"),
    ],
)
def test_refusals_are_in_oauths_words(guarded: Server, fields: dict[str, str], status: int, error: str) -> None:
    assert [
        ask(guarded.url + "/oidc/v1/token", fields)[0],
        ask(guarded.url + "/oidc/v1/token", fields)[1]["error"],
    ] == [
        status,
        error,
    ]
    assert "dapi-secret" not in guarded.log.read_text()


def test_large_forms_are_not_read(guarded: Server) -> None:
    head = b"POST /oidc/v1/token HTTP/1.1\r\nHost: x\r\nContent-Length: 30000000\r\n\r\n"
    assert send(guarded, head + b"x" * 100_000)[9:12] in (b"413", b"")
    assert ask(guarded.url + "/oidc/v1/token", GRANT)[0] == 401
    assert ask(guarded.url + "/oidc/v1/token")[0] == 405


def test_a_secret_comes_once(guarded: Server) -> None:
    """Whose token was wanted nobody has said where two are named."""
    basic = {"Authorization": f"Basic {base64.b64encode(b'robot:dapi-secret').decode()}"}
    form = {**GRANT, "client_id": "other", "client_secret": "dapi-secret"}
    status, found = ask(guarded.url + "/oidc/v1/token", form, **basic)
    assert (status, found["error"]) == (400, "invalid_request")
    assert ask(guarded.url + "/oidc/v1/token", {**GRANT, "client_id": "robot"}, **basic)[0] == 200


@pytest.mark.parametrize("host", ["", "a b", "x@y", "localhost:0", "localhost/../"])
def test_who_names_no_host_is_told_of_no_endpoints(guarded: Server, host: str) -> None:
    for path in ("/oidc/.well-known/oauth-authorization-server", "/.well-known/databricks-config"):
        told = send(guarded, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert told.startswith(b"HTTP/1.1 400"), told


def test_a_field_counts_once(guarded: Server) -> None:
    form = urllib.parse.urlencode({**GRANT, "client_id": "robot", "client_secret": "dapi-secret"}) + "&client_id=other"
    head = f"POST /oidc/v1/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(form)}\r\n\r\n"
    answer = send(guarded, head.encode() + form.encode())
    assert answer.startswith(b"HTTP/1.1 400") and b"names a field twice" in answer


def test_a_token_that_is_taken_away_opens_nothing_more(tmp_path: Path) -> None:
    """Neither itself nor what was given for it, on connections that are open neither; a broken file changes nothing."""
    file = tmp_path / "tokens"
    kept, lost = token_line("ann", "dapi-ann"), token_line("bob", "dapi-bob")
    file.write_text(f"{kept}\n{lost}\n")
    server = start_server(tmp_path, "--auth", "token", "--token-file", str(file), "--tcp-port", "0")
    try:
        form = {**GRANT, "client_id": "bob", "client_secret": "dapi-bob"}
        given = ask(server.url + "/oidc/v1/token", form)[1]["access_token"]
        open_one = tcp_client(server, "bob", password="dapi-bob").open()
        assert open_one.execute("SELECT 1 AS x", arrow=False).columns == ["x"]
        for text, said in (("broken", "cannot be read again"), (kept, "token file read again")):
            file.write_text(text + "\n")
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda said=said: said in server.log.read_text(), 10)  # type: ignore[misc]
            with Client(server.thrift_url, user="ann", password="dapi-ann").open() as client:
                assert client.execute("SELECT 1").table().num_rows == 1
            if text == "broken":
                Client(server.thrift_url, user="token", password=given).open().close()
        for secret in ("dapi-bob", given):
            with pytest.raises(RemoteError, match="401"):
                Client(server.thrift_url, user="token", password=secret).open()
        with pytest.raises((RemoteError, OSError)):
            open_one.execute("SELECT 1", arrow=False)
    finally:
        assert server.stop() == 0


def test_what_was_begun_with_a_token_that_is_taken_away_ends(tmp_path: Path) -> None:
    """Its statements stop, links to its results and to files lead nowhere; those of others stay."""
    file = tmp_path / "tokens"
    kept, lost = token_line("ann", "dapi-ann"), token_line("bob", "dapi-bob")
    file.write_text(f"{kept}\n{lost}\n")
    server = start_server(tmp_path, "--auth", "token", "--token-file", str(file))

    def call(token: str, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{server.url}/api/2.0/sql/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def links(name: str) -> tuple[str, str]:
        """One to rows, and one that puts a file."""
        linked = {
            "statement": "SELECT id FROM range(100000)",
            "disposition": "EXTERNAL_LINKS",
            "format": "ARROW_STREAM",
        }
        rows = call(f"dapi-{name}", "POST", "statements", linked)["result"]["external_links"][0]["external_link"]
        with Client(server.thrift_url, user="token", password=f"dapi-{name}").open() as client:
            put = client.execute(f"PUT 'x' INTO '/Volumes/main/default/v/{name}' OVERWRITE").table()
        return rows, str(put.column("presignedUrl")[0].as_py())

    def begun(name: str) -> str:
        """A statement that runs for ever."""
        endless = "SELECT count(*) FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id % 7 = 1"
        return str(
            call(f"dapi-{name}", "POST", "statements", {"statement": endless, "wait_timeout": "0s"})["statement_id"]
        )

    def followed(method: str, link: str) -> int:
        request = urllib.request.Request(link, b"x" if method == "PUT" else None, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    try:
        call("dapi-ann", "POST", "statements", {"statement": "CREATE VOLUME main.default.v"})
        anns, bobs = links("ann"), links("bob")
        running, lost_one = begun("ann"), begun("bob")
        assert [followed("GET", bobs[0]), followed("PUT", bobs[1])] == [200, 200]
        file.write_text(kept + "\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "token file read again" in server.log.read_text(), 10)
        assert [followed("GET", bobs[0]), followed("PUT", bobs[1])] == [404, 403]
        assert [followed("GET", anns[0]), followed("PUT", anns[1])] == [200, 200]
        eventually(lambda: f"statement_id={lost_one}" in server.log.read_text(), 10)  # it has ended
        assert call("dapi-ann", "GET", f"statements/{running}")["status"]["state"] == "RUNNING"
        call("dapi-ann", "POST", f"statements/{running}/cancel")
    finally:
        assert server.stop() == 0
