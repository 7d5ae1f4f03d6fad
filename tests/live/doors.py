"""Servers with a TCP port and with TLS, certificates for them, and Thrift over TCP as our own client speaks it."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from gateway.protocol.client import Client
from gateway.transport.sasl import Status, message
from tests.live.gateway import Server


@dataclass(frozen=True)
class Certificates:
    """Files of `gateway certificate`."""

    folder: Path
    chain: Path
    key: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--tls-cert", str(self.chain), "--tls-key", str(self.key))

    def trust(self) -> ssl.SSLContext:
        """What a client needs."""
        return ssl.create_default_context(cafile=str(self.authority))


def make_certificates(folder: Path) -> Certificates:
    pytest.importorskip("cryptography")
    from gateway.auth import certificates

    certificates.make_folder(folder)
    return Certificates(folder, *certificates.make_server(folder, ["localhost", "127.0.0.1"]))


def sasl_login(user: str = "me", password: str = "x", status: Status = Status.OK) -> bytes:
    """The client's side of SASL PLAIN."""
    return message(Status.START, b"PLAIN") + message(status, f"\0{user}\0{password}".encode())


def receive(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = peer.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError("the server closed the connection")
        data += chunk
    return data


class TcpConnection:
    """In the place of `HttpConnection`: calls over TCP with SASL PLAIN, or without SASL if there is no user."""

    def __init__(self, server: Server, user: str | None = None, password: str = "x", tls: Any = None) -> None:
        self.peer = socket.create_connection(server.tcp_address, 30)
        if tls is not None:
            self.peer = tls.wrap_socket(self.peer, server_hostname="localhost")
        self._framed = user is not None
        if user is not None:
            self.peer.sendall(sasl_login(user, password))
            head = receive(self.peer, 5)
            text = receive(self.peer, int.from_bytes(head[1:], "big"))
            if head[0] != Status.COMPLETE:
                self.peer.close()
                raise PermissionError(f"{Status(head[0]).name}: {text.decode()}")

    def post(self, body: bytes) -> tuple[int, bytes]:
        self.peer.sendall((pack(">I", len(body)) if self._framed else b"") + body)
        if self._framed:
            return 200, receive(self.peer, int.from_bytes(receive(self.peer, 4), "big"))
        return 200, self.peer.recv(1 << 20)  # enough for what tests ask

    def close(self) -> None:
        self.peer.close()


def tcp_client(server: Server, user: str | None = None, password: str = "x", tls: Any = None) -> Client:
    """Our client over TCP, its session not opened yet."""
    client = Client("http://localhost:1")
    client._connection = TcpConnection(server, user, password, tls)  # type: ignore[assignment]
    return client
