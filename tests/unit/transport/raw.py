"""What the tests of HTTP share: scripted statements, and requests as bytes over a connection of their own."""

from __future__ import annotations

import base64
import socket
from decimal import Decimal

from gateway.errors import UserError
from gateway.protocol import codec
from gateway.sqltypes import BIGINT, INT, STRING, StructField, decimal
from gateway.sqltypes import struct as struct_of
from gateway.thrift_gen.TCLIService import ttypes
from gateway.transport.server import HttpServer
from tests.unit.protocol.fake import Script

PATH = "/sql/1.0/warehouses/test"
NUMBERS = struct_of(StructField("n", BIGINT), StructField("d", decimal(10, 2)), StructField("s", STRING))
ROWS = [(i, Decimal(i) / 4, None if i % 7 == 0 else f"value {i}") for i in range(5_000)]
SCRIPTS = {
    "SELECT 1": Script(struct_of(StructField("1", INT)), [(1,)]),
    "NUMBERS": Script(NUMBERS, ROWS),
    "SLOW": Script(NUMBERS, ROWS[:3], polls=2),
    "FAIL": Script(error=UserError("DIVIDE_BY_ZERO", "Division by zero.")),
    "DDL": Script(is_query=False),
}
OPEN = codec.encode_call("OpenSession", 5, ttypes.TOpenSessionReq(client_protocol_i64=0xA508))
LIMIT = 200_000


class Probe:
    """What the pages beside Thrift are told."""

    reason: str | None = None


class Raw:
    """A connection on which bytes are sent as given."""

    def __init__(self, server: HttpServer) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), 10)

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers, body."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionResetError
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        while len(body) < int(headers.get("content-length", "0")):
            body += self.socket.recv(65536)
        return int(lines[0].split()[1]), headers, body


def post(body: bytes, path: str = PATH, *lines: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def ask(server: HttpServer, data: bytes) -> tuple[int, dict[str, str], bytes]:
    with Raw(server) as raw:
        raw.send(data)
        return raw.answer()


def as_user(name: str) -> str:
    return "Authorization: Basic " + base64.b64encode(f"{name}:x".encode()).decode()
