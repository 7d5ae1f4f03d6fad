"""Who has no link of a running operation gets nothing from where results are downloaded, whatever the address says."""

from __future__ import annotations

import json
import os
import random
import string

from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import send
from tests.clients.test_links import ROWS, all_links, execute
from tests.fuzz.clients.wire import Wire, query
from tests.live.gateway import Server

PLACE = "/sql/1.0/results/"


def ask(server: Server, path: str, *lines: str) -> tuple[int, bytes]:
    """Status and body of a GET on a connection of its own."""
    head = "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", "Connection: close", *lines]) + "\r\n\r\n"
    first, _, body = send(server, head.encode("latin-1")).partition(b"\r\n\r\n")
    return int(first.split(b" ")[1]), body


def test_forged_links_open_nothing(server: Server) -> None:
    with Wire(server.thrift_url) as wire:
        link = all_links(wire, execute(wire, query(ROWS)))[0].fileLink.removeprefix(server.url)
        text = link.removeprefix(PLACE)
        seeded = random.Random(11)
        alphabet = string.ascii_letters + string.digits + "-_"
        forged = [text[:i] + seeded.choice(alphabet.replace(text[i], "")) + text[i + 1 :] for i in range(len(text))]
        forged += [
            "",
            text[:-1],
            text + "A",
            text + "/",
            text + "%00",
            "x/../" + text,
            "A" * 10_000,
            "%ff%fe",
            text.lower(),
        ]
        forged += ["".join(seeded.choices(alphabet, k=len(text))) for _ in range(50)]
        for wrong in forged:
            status, body = ask(server, PLACE + wrong)
            assert status == 403 and json.loads(body)["message"] == "The link is not valid.", wrong[:200]
        for elsewhere in ("/sql/1.0/result/", "/sql/1.0/results", "/"):
            assert ask(server, elsewhere + text)[0] == 404
        assert ask(server, link)[0] == 200


def test_links_of_what_is_closed_open_nothing(server: Server) -> None:
    with Wire(server.thrift_url) as wire:
        answer = execute(wire, query(ROWS))
        links = [link.fileLink.removeprefix(server.url) for link in all_links(wire, answer)]
    assert {ask(server, link)[0] for link in links} == {404}  # the session is closed


def test_a_link_says_nothing_that_calls_would_take(server: Server) -> None:
    with Wire(server.thrift_url) as wire:
        answer = execute(wire, query(ROWS))
        link = all_links(wire, answer)[0].fileLink
        identifier = answer.operationHandle.operationId
        guessed = ttypes.THandleIdentifier(guid=identifier.guid, secret=os.urandom(16))
        handle = ttypes.TOperationHandle(operationId=guessed, operationType=0, hasResultSet=True)
        refused = wire.fetch(handle, orientation=0, maxRows=1)
        assert refused.status.statusCode == ttypes.TStatusCode.INVALID_HANDLE_STATUS
        assert identifier.secret.hex() not in link and ask(server, link.removeprefix(server.url))[0] == 200


def test_a_host_that_is_none_is_not_put_into_links(server: Server) -> None:
    for host in ("evil.example/x?", "a b", "user@host", "[::1", "h:99999999", ""):
        with Wire(server.thrift_url) as wire:
            wire._connection._head = wire._connection._head.replace(
                b"Host: " + server.url.removeprefix("http://").encode(), b"Host: " + host.encode("latin-1")
            )
            direct = execute(wire, query(ROWS)).directResults
            assert direct.resultSet.results.resultLinks is None, host
