"""Messages of TCLIService over the strict binary protocol: bytes to requests and answers to bytes.

One message is a header (version and type, method name, sequence id) and one struct: ``{1: req}`` of a call, ``{0: success}``
of a reply, ``{1: message, 2: type}`` of an exception. See `reader` for what limits the way in and `writer` for the splice on
the way out. All failures on the way in are `BadCallError`s, which know how to be answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Any

from gateway.protocol.reader import DAMAGE, Budget, MalformedError, Reader
from gateway.protocol.spec import I32, STRING, STRUCT, Field, Plan, plan_of
from gateway.protocol.writer import Buffer, Extras, write_struct
from gateway.thrift_gen.TCLIService import ttypes

METHODS: tuple[str, ...] = (
    "OpenSession",
    "CloseSession",
    "GetInfo",
    "ExecuteStatement",
    "GetTypeInfo",
    "GetCatalogs",
    "GetSchemas",
    "GetTables",
    "GetTableTypes",
    "GetColumns",
    "GetFunctions",
    "GetPrimaryKeys",
    "GetCrossReference",
    "GetOperationStatus",
    "CancelOperation",
    "CloseOperation",
    "GetResultSetMetadata",
    "FetchResults",
    "GetDelegationToken",
    "CancelDelegationToken",
    "RenewDelegationToken",
    "GetQueryId",
    "SetClientInfo",
)

_VERSION = 0x80010000
_CALL, _REPLY, _EXCEPTION = 1, 2, 3
_MAX_NAME = 256
_u32 = Struct(">I").unpack_from
_i32 = Struct(">i").unpack_from
_head = Struct(">Ii").pack
_tail = Struct(">i").pack

UNLIMITED = Budget(size=2**31, depth=64, elements=2**31)


class Fault(IntEnum):
    """Types of TApplicationException that are used here."""

    UNKNOWN_METHOD = 1
    INTERNAL_ERROR = 6
    PROTOCOL_ERROR = 7


class BadCallError(Exception):
    """A call that can only be answered by a TApplicationException: see `answer`."""

    def __init__(self, fault: Fault, text: str, method: str = "", seqid: int = 0) -> None:
        super().__init__(text)
        self.fault = fault
        self.text = text
        self.method = method
        self.seqid = seqid

    def answer(self) -> bytes:
        """The exception message to send."""
        return encode_exception(self.method, self.seqid, self.fault, self.text)


class ApplicationError(Exception):
    """A TApplicationException received from a server."""

    def __init__(self, fault: int, text: str) -> None:
        super().__init__(text)
        self.fault = fault


class Envelope:
    """The struct around a request or an answer; `value` is None where the peer left it out."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value


class _Exception:
    __slots__ = ("message", "type")

    def __init__(self, message: str | None = None, type_: int | None = None) -> None:
        self.message = message
        self.type = type_


@dataclass(frozen=True, slots=True)
class Message:
    """A decoded message; `extras` holds unknown fields if they were asked for (see `Reader`)."""

    method: str
    seqid: int
    value: Any
    extras: Extras | None = None


def _envelope(cls: type[Any], number: int) -> Plan:
    return Plan(Envelope, {number: Field(STRUCT, "value", plan_of(cls))}, (None,), False)


_CALLS: dict[str, Plan] = {name: _envelope(getattr(ttypes, f"T{name}Req"), 1) for name in METHODS}
_REPLIES: dict[str, Plan] = {name: _envelope(getattr(ttypes, f"T{name}Resp"), 0) for name in METHODS}
_EXCEPTIONS = Plan(_Exception, {1: Field(STRING, "message", True), 2: Field(I32, "type", None)}, (None, None), False)


def _header(body: bytes | bytearray) -> tuple[int, str, int, int]:
    """Type, method name (one character per byte), sequence id, and where the struct starts."""
    (word,) = _u32(body, 0)
    if word & 0xFFFF0000 != _VERSION:
        raise MalformedError("no strict binary protocol header")
    (size,) = _i32(body, 4)
    if not 0 <= size <= _MAX_NAME or 12 + size > len(body):
        raise MalformedError("bad length of the method name")
    (seqid,) = _i32(body, 8 + size)
    return word & 0xFF, body[8 : 8 + size].decode("latin-1"), seqid, 12 + size


def method_of(body: bytes) -> str | None:
    """The method that a request calls; None if its first bytes do not tell."""
    try:
        return _header(body)[1]
    except (MalformedError, *DAMAGE):
        return None


def decode_call(body: bytes, budget: Budget, *, keep_unknown: bool = False) -> Message:
    """A request from its bytes. Raises `BadCallError`."""
    method, seqid = "", 0
    try:
        kind, method, seqid, pos = _header(body)
        if kind != _CALL:
            raise MalformedError(f"message type {kind} where a call belongs")
        reader = Reader(body, budget, pos, keep_unknown=keep_unknown)
        plan = _CALLS.get(method)
        if plan is None:
            reader.skip(STRUCT, 0)
        else:
            envelope = reader.struct(plan)
        if reader.pos != len(body):
            raise MalformedError(f"{len(body) - reader.pos} bytes after the end of the message")
    except MalformedError as error:
        raise BadCallError(Fault.PROTOCOL_ERROR, f"Malformed request: {error}", method, seqid) from error
    except DAMAGE as error:
        text = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "it ends too early"
        raise BadCallError(Fault.PROTOCOL_ERROR, f"Malformed request: {text}", method, seqid) from error
    if plan is None:
        raise BadCallError(Fault.UNKNOWN_METHOD, f"Invalid method name: '{method}'", method, seqid)
    if envelope.value is None:
        raise BadCallError(Fault.PROTOCOL_ERROR, "Malformed request: no argument `req`", method, seqid)
    return Message(method, seqid, envelope.value, reader.extras)


def decode_reply(
    body: bytes | bytearray, budget: Budget = UNLIMITED, *, keep_unknown: bool = False, raw_columns: bool = False
) -> Message:
    """An answer from its bytes, for clients. Raises `ApplicationError` (the server's) or `MalformedError`."""
    try:
        kind, method, seqid, pos = _header(body)
        reader = Reader(body, budget, pos, keep_unknown=keep_unknown, raw_columns=raw_columns)
        if kind == _EXCEPTION:
            exception = reader.struct(_EXCEPTIONS)
            raise ApplicationError(exception.type or 0, exception.message or "")
        if kind != _REPLY or method not in _REPLIES:
            raise MalformedError(f"message type {kind} of {method!r} where a reply belongs")
        envelope = reader.struct(_REPLIES[method])
    except DAMAGE as error:
        raise MalformedError("the answer ends too early or holds bad text") from error
    if envelope.value is None:
        raise MalformedError("an answer without result")
    return Message(method, seqid, envelope.value, reader.extras)


def column_rows(body: bytes | bytearray) -> int:
    """Rows of a columnar FetchResults answer, read from its first column only: for clients that keep the bytes as they are.

    Raises `MalformedError` and `ApplicationError` as `decode_reply`, and ValueError for an answer without columns.
    """
    kind, method, _, pos = _header(body)
    if kind != _REPLY or method != "FetchResults":
        decode_reply(body)
        raise MalformedError(f"{method!r} where FetchResults belongs")
    reader = Reader(body, UNLIMITED, pos)
    # success (0), results (3), columns (3): list header, the TColumn's one arm, its values (1): list header
    for number in (0, 3):
        reader.seek_field(number)
    reader.seek_field(3)
    _, columns = reader.list_header()
    if columns == 0:
        return 0
    reader.enter_union()
    reader.seek_field(1)
    return reader.list_header()[1]


_LARGE, _LARGE_PART = 1 << 20, 1 << 16


def _message(kind: int, plan: Plan, method: str, seqid: int, value: Any, extras: Extras | None) -> list[Buffer]:
    name = method.encode("latin-1")
    out: list[Buffer] = [_head(_VERSION | kind, len(name)), name, _tail(seqid)]
    write_struct(out, plan, value, extras)
    return out


def encode_call(method: str, seqid: int, request: Any, extras: Extras | None = None) -> bytes:
    """The bytes of a request."""
    return b"".join(_message(_CALL, _CALLS[method], method, seqid, Envelope(request), extras))


def encode_reply_parts(method: str, seqid: int, answer: Any) -> bytes | list[Buffer]:
    """The bytes of an answer; those of a large one in parts, its pages uncopied."""
    parts = _message(_REPLY, _REPLIES[method], method, seqid, Envelope(answer), None)
    if sum(map(len, parts)) < _LARGE:
        return b"".join(parts)
    joined: list[Buffer] = []
    small: list[Buffer] = []
    for part in parts:
        if len(part) < _LARGE_PART:
            small.append(part)
            continue
        joined += (b"".join(small), part)
        small = []
    return [*joined, b"".join(small)]


def encode_exception(method: str, seqid: int, fault: Fault, text: str) -> bytes:
    """The bytes of a TApplicationException."""
    return b"".join(_message(_EXCEPTION, _EXCEPTIONS, method, seqid, _Exception(text, int(fault)), None))


def encode_struct(value: Any) -> bytes:
    """One struct without message header."""
    out: list[Buffer] = []
    write_struct(out, plan_of(type(value)), value)
    return b"".join(out)
