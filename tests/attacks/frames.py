"""Mutants of remote calls and of HTTP requests: flips, cuts, wrong lengths, counts, types, fields, handles and heads."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gateway.protocol import codec
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import HTTP_PATH
from tests.unit.protocol.recordings import read_recordings

GUID, SECRET = b"G" * 16, b"S" * 16
_COUNTS = (0, 1, -1, 2, 255, 65535, 65536, 100_001, 2**24, 2**30, 2**31 - 1, -(2**31), -(2**31) + 1)
_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 127, 128, 255)
_FIELDS = (0, 1, 2, 3, 1281, 1296, 3328, 3353, 32767, 32768, 65535)
# An unknown field of containers in containers, and known ones as other containers.
_NESTS = (
    b"\x0f\x00\x63" + b"\x0f\x00\x00\x00\x01" * 70,
    b"\x0d\x00\x01" + b"\x0b\x0d\x00\x00\x00\x01\x00\x00\x00\x01k" * 40,
    b"\x0c\x00\x01" * 80,
    b"\x0e\x00\x02\x02\x7f\xff\xff\xff",
    b"\x0f\x00\x03\x0c\x00\x00\xff\xff" + b"\x00" * 70_000,
)


def _handles() -> tuple[Any, Any]:
    identifier = ttypes.THandleIdentifier(guid=GUID, secret=SECRET)
    return ttypes.TSessionHandle(identifier), ttypes.TOperationHandle(identifier, 0, True)


def made_calls() -> list[bytes]:
    """A call of every method, with most of what its request may hold."""
    session, operation = _handles()
    limits = ttypes.TSparkGetDirectResults(maxRows=10, maxBytes=1000)
    parameter = ttypes.TSparkParameter(name="p", value=ttypes.TSparkParameterValue(stringValue="1"), type="INT")
    rich: dict[str, dict[str, Any]] = {
        "OpenSession": {
            "client_protocol_i64": 0xA509,
            "configuration": {"spark.sql.session.timeZone": "UTC", "use:database": "default", "x": "y"},
            "initialNamespace": ttypes.TNamespace("main", "default"),
            "getInfos": [17, 18],
        },
        "ExecuteStatement": {
            "statement": "SELECT 1",
            "confOverlay": {"statement_timeout": "5"},
            "parameters": [parameter],
            "getDirectResults": limits,
            "queryTimeout": 5,
            "resultRowLimit": 5,
        },
        "GetInfo": {"infoType": 17},
        "GetTables": {"catalogName": "main", "schemaName": "%", "tableName": "%", "tableTypes": ["TABLE"]},
        "GetColumns": {"schemaName": "default", "tableName": "%", "columnName": "_"},
        "FetchResults": {"orientation": 0, "maxRows": 10, "maxBytes": 1000, "startRowOffset": 1},
    }
    calls = []
    for method in codec.METHODS:
        cls = getattr(ttypes, f"T{method}Req")
        names = [entry[2] for entry in cls.thrift_spec if entry is not None]
        common = {"sessionHandle": session, "operationHandle": operation, "getDirectResults": limits}
        given = {k: v for k, v in common.items() if k in names} | rich.get(method, {})
        calls.append(codec.encode_call(method, 7, cls(**given)))
    return calls


def recorded_calls(shared: Path | None) -> list[bytes]:
    """Calls of real clients, each once; none without the corpora."""
    if shared is None or not (shared / "wire-recordings.jsonl.gz").exists():
        return []
    return sorted({exchange.request for exchange in read_recordings(shared)})


def _at(rng: random.Random, data: bytearray, width: int) -> int:
    return rng.randrange(max(1, len(data) - width))


def _put(rng: random.Random, data: bytearray, new: bytes) -> None:
    at = _at(rng, data, len(new))
    data[at : at + len(new)] = new


def _flip(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(1, len(data) + 1) :]


def _drop(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randrange(1, 24)]


def _repeat(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    piece = bytes(data[at : at + rng.randrange(1, 64)])
    data[at:at] = piece * rng.choice((1, 2, 3, 300))


def _nest(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.choice(_NESTS)


_CHANGES: Sequence[Callable[[random.Random, bytearray], None]] = (
    _flip,
    _cut,
    _drop,
    _repeat,
    _nest,
    lambda rng, data: _put(rng, data, rng.randbytes(1)),
    lambda rng, data: _put(rng, data, rng.choice(_COUNTS).to_bytes(4, "big", signed=True)),
    lambda rng, data: _put(rng, data, bytes([rng.choice(_TYPES)])),
    lambda rng, data: _put(rng, data, bytes([rng.choice(_TYPES)]) + rng.choice(_FIELDS).to_bytes(2, "big")),
    lambda rng, data: _put(rng, data, rng.randbytes(16)),
    lambda rng, data: _put(rng, data, rng.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\0\0", "٣²".encode()))),
)


def mutant(rng: random.Random, calls: Sequence[bytes]) -> bytes:
    """A call with one to four changes, sometimes with the end of another."""
    data = bytearray(rng.choice(calls))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        rng.choice(_CHANGES)(rng, data)
        data = data or bytearray(b"\x80")
    if not rng.randrange(12):
        other = rng.choice(calls)
        data[rng.randrange(len(data)) :] = other[rng.randrange(len(other)) :]
    return bytes(data)


# Lines that requests get in addition, and what their bodies are sent as: {size} is the right length.
_LENGTHS: tuple[str, ...] = (
    *("{size}", "0", "-1", "+{size}", "{size}, {size}", "{size},1", "0x10", "1e1", "", " {size} ", "\xb2", "9" * 5000),
    *("16777217", "18446744073709551615", "18446744073709551616", "{size}\r\nContent-Length: 0"),
)
_CODINGS: tuple[str, ...] = (
    "chunked",
    "Chunked",
    "chunked, chunked",
    "gzip, chunked",
    "identity",
    "xchunked",
    "chunked\x0b",
    "\tchunked",
    *("chunked\r\n ", ",chunked", "chunked;q=0", "chunked\r\nTransfer-Encoding: identity"),
)
_LINES = (
    *("Expect: 100-continue", "Expect: nothing", "Connection: Upgrade\r\nUpgrade: websocket", "Upgrade: h2c"),
    *("Connection: keep-alive, close, \x7f", "X: y\r\n folded", " X: y", "X : y", ": y", "X", "X: a\0b", "X: a\rb"),
    *("Host: a\r\nHost: b", "Trailer: X", "Content-Encoding: gzip", "Content-Type: \xff", "Range: bytes=0-"),
    *("Authorization: Basic ====", "Authorization: Bearer \xff", "Authorization: Basic", "Authorization:"),
    *("X: " + "y" * 60_000, "User-Agent: a\x1b[31m\tb\u0085".encode().decode("latin-1"), "Origin: null"),
)
_TARGETS = (
    *(HTTP_PATH, HTTP_PATH, HTTP_PATH, HTTP_PATH + "?" + "a" * 50_000, "http://elsewhere" + HTTP_PATH, "*", "/", ""),
    *("/%00", "/%ff%fe", "//" + HTTP_PATH, HTTP_PATH + "/../x", "/healthz", "/metrics", "/readyz", "elsewhere:80"),
    *("/" + "a/" * 30_000, "/sql/1.0/warehouses/" + "%41" * 20_000, "/\xff", "/sql/1.0/endpoints/x#y"),
)
_METHODS = (
    "POST",
    "POST",
    "POST",
    "POST",
    "GET",
    "HEAD",
    "PUT",
    "post",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PRI",
    "",
    "M" * 9000,
)
_VERSIONS = ("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "HTTP/1.1 ", "", "ICY")


def _chunks(rng: random.Random, body: bytes) -> bytes:
    """A body in chunks, some of them wrong."""
    size = rng.choice((b"%x", b"%X", b"000%x", b"%x;a=b", b"-%x", b"0x%x", b" %x", b"%xg", b"%x;" + b"e" * 20_000))
    if rng.randrange(3):
        size = b"%x"
    end = rng.choice(
        (b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0\r\n", b"", b"00000000000000000\r\n\r\n", b"ffffffffffffffffff\r\n")
    )
    parts = [body[i : i + 50] for i in range(0, len(body), 50)]
    return b"".join(size % len(p) + rng.choice((b"\r\n", b"\r\n", b"\r\n", b"\n")) + p + b"\r\n" for p in parts) + end


def http_mutant(rng: random.Random, body: bytes) -> bytes:
    """One to three requests in a row, most of them wrong in their heads or in how their bodies are framed."""
    data = b""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        head = [f"{rng.choice(_METHODS)} {rng.choice(_TARGETS)} {rng.choice(_VERSIONS)}", "Host: x"]
        head += rng.sample(_LINES, rng.randrange(3))
        chunked = not rng.randrange(3)
        if chunked:
            head.append(f"Transfer-Encoding: {rng.choice(_CODINGS)}")
        if not chunked or not rng.randrange(4):
            chosen = rng.choice(_LENGTHS) if rng.randrange(2) else "{size}"
            head.append(f"Content-Length: {chosen.format(size=len(body))}")
        line_end = "\n" if not rng.randrange(10) else "\r\n"
        data += (line_end.join(head) + line_end * 2).encode("latin-1")
        data += _chunks(rng, body) if chunked else body
    if not rng.randrange(6):
        data = data[: rng.randrange(1, len(data))]
    return data
