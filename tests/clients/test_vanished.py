"""A client that goes away while its statement runs leaves nothing at work: databricks-sql-go cancels so."""

from __future__ import annotations

import socket
import time
from typing import Any
from urllib.parse import urlsplit

from gateway.protocol import codec
from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import Server

ENDLESS = "SELECT count(*) AS vanished FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id % 7 = 1"
ENDED = "SELECT state FROM system.runtime.statements WHERE statement_text LIKE 'SELECT count(*) AS vanished%'"


def test_what_nobody_knows_the_handle_of_is_ended(server: Server, cursor: Any) -> None:
    with Client(server.thrift_url).open() as client:
        request = ttypes.TExecuteStatementReq(
            sessionHandle=client._session,
            statement=ENDLESS,
            runAsync=True,
            getDirectResults=ttypes.TSparkGetDirectResults(maxRows=10),
        )
        body = codec.encode_call("ExecuteStatement", 0, request)
        place = urlsplit(server.thrift_url)
        head = f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((place.hostname, place.port), 20) as peer:
            peer.sendall(head.encode() + body)
            time.sleep(0.2)
        end = time.monotonic() + 60
        ended: list[Any] = []
        while not ended:
            assert time.monotonic() < end, "the statement is still at work"
            time.sleep(0.5)
            cursor.execute(ENDED)
            ended = cursor.fetchall()
        assert [row.state for row in ended] == ["CLOSED"]
