"""Tokens that are taken away, or replaced, while something is on its way that was begun with them."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.auth.authenticators import token_line
from gateway.protocol.client import Client
from tests.attacks import attacker
from tests.live.gateway import Server, start_server

STATEMENTS, AGENTS = "/api/2.0/sql/statements", "/api/2.0/mcp/sql"
INSERT = "INSERT INTO main.default.t VALUES (1)"


@dataclass
class Guarded:
    """A gateway, and its token file."""

    server: Server
    file: Path
    rereads: int = 0

    def knows(self, **tokens: str) -> None:
        """Have it read other tokens, by the names of their holders."""
        self.file.write_text("".join(token_line(name, token) + "\n" for name, token in tokens.items()))
        self.rereads += 1
        self.server.process.send_signal(signal.SIGHUP)
        log, text = self.server.log, "token file read again"
        attacker.until(lambda: log.read_text().count(text) == self.rereads, "the tokens are read again")

    def client(self, token: str) -> Client:
        return Client(self.server.thrift_url, user="token", password=token).open()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("credentials")
    file = folder / "tokens"
    file.write_text(token_line("ann", "dapi-ann") + "\n")
    server = start_server(folder, "--auth", "token", "--token-file", str(file))
    yield Guarded(server, file)
    assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


@pytest.fixture
def guarded(started: Guarded) -> Guarded:
    """It knows ann and bob."""
    started.knows(ann="dapi-ann", bob="dapi-bob")
    return started


def begun(server: Server, method: str, path: str, body: bytes, *lines: str) -> socket.socket:
    """A connection on which a request is half sent; the server knows who calls, and waits for the rest."""
    host, port = attacker.address(server)
    peer = socket.create_connection((host, port), 20)
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}", "Expect: 100-continue", *lines]
    peer.sendall("\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode())
    assert peer.recv(100).startswith(b"HTTP/1.1 100")
    peer.sendall(body[:3])
    return peer


def ended(peer: socket.socket, body: bytes) -> int:
    """The status once the rest is sent too."""
    with peer:
        peer.sendall(body[3:])
        return int(peer.recv(1000).split(b" ")[1])


@pytest.mark.parametrize("tokens", [{"ann": "dapi-ann"}, {"ann": "dapi-ann", "bob": "dapi-other"}])
def test_a_request_that_is_half_sent_when_its_token_goes(guarded: Guarded, tokens: dict[str, str]) -> None:
    """Its statement is not run, whoever has another token by then."""
    by_rest = json.dumps({"statement": INSERT, "warehouse_id": "x"}).encode()
    call = {"name": "execute_sql", "arguments": {"query": INSERT}}
    by_agent = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
    bearer = "Authorization: Bearer dapi-bob"
    media = ("Content-Type: application/json", "Accept: application/json, text/event-stream")
    with guarded.client("dapi-ann") as ann:
        ann.execute("CREATE TABLE IF NOT EXISTS t (a INT)")
        waiting = [
            (begun(guarded.server, "POST", STATEMENTS, by_rest, bearer), by_rest),
            (begun(guarded.server, "POST", AGENTS, by_agent, bearer, *media), by_agent),
        ]
        guarded.knows(**tokens)
        assert [ended(peer, body) for peer, body in waiting] == [401, 401]
        assert ann.execute("SELECT * FROM t").table().num_rows == 0


def test_a_file_that_is_half_put_when_the_token_goes(guarded: Guarded) -> None:
    """Nobody sees it, and nothing of it stays."""
    with guarded.client("dapi-ann") as ann:
        ann.execute("CREATE VOLUME v")
        links = {}
        for name in ("ann", "bob"):
            with guarded.client(f"dapi-{name}") as client:
                told = client.execute(f"PUT 'x' INTO '/Volumes/main/default/v/{name}'").table()
                links[name] = "/" + str(told.column("presignedUrl")[0].as_py()).split("/", 3)[3]
        waiting = {name: begun(guarded.server, "PUT", link, b"x" * 100) for name, link in links.items()}
        guarded.knows(ann="dapi-ann")
        assert {name: ended(peer, b"x" * 100) for name, peer in waiting.items()} == {"ann": 200, "bob": 403}
        listed = ann.execute("LIST '/Volumes/main/default/v'").table().column("name").to_pylist()
    assert listed == ["ann"]
    left = [path.name for path in guarded.server.warehouse.rglob("*") if path.parent.name == ".drafts"]
    assert left == []
