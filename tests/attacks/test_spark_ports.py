"""The ports that a Spark of ours listens at: whoever reaches them, on this machine, has no more than a refusal from it."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import pytest

from tests.live.gateway import Server
from tests.live.spark import Sql, jvm_of

pytestmark = [pytest.mark.spark]

LISTENS = "0A"
NO_OBJECT = b"\xac\xed\x00\x05sr\x00\x03no."  # the beginning of one, as Java writes it


def ports(pid: int) -> list[int]:
    """The TCP ports that a process listens at."""
    own = set()
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            own.add(os.readlink(f"/proc/{pid}/fd/{entry}"))
        except FileNotFoundError:
            continue  # closed meanwhile
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and f"socket:[{fields[9]}]" in own:
                found.append(int(fields[1].rpartition(":")[2], 16))
    return found


def text(value: str) -> bytes:
    """A text as Java's DataOutput writes it."""
    return struct.pack(">H", len(value)) + value.encode()


def told(port: int) -> bytes:
    """What a port answers to a call of Spark's own protocol, with an object in it."""
    body = b"\0" + b"\1" + text("127.0.0.1") + struct.pack(">i", port) + text("endpoint-verifier") + NO_OBJECT
    call = struct.pack(">bqi", 3, 7, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), 5) as peer:
        peer.sendall(struct.pack(">q", 8 + len(call)) + call)
        peer.settimeout(5)
        try:
            return peer.recv(65536)
        except TimeoutError:
            return b""


def test_no_object_of_a_stranger_is_read(sql: Sql, spark_server: Server) -> None:
    sql.spark("SELECT hash(1)")
    jvm = jvm_of(spark_server)
    assert jvm is not None
    answers = [told(port) for port in ports(jvm)]
    assert any(b"SaslMessage" in answer for answer in answers), "no port speaks Spark's protocol"
    assert not any(b"ObjectInputStream" in answer or b"StreamCorrupted" in answer for answer in answers)
