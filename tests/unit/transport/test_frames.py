"""Messages are found on a stream however it is cut, with and without lengths before them, and bounds hold before bytes come."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.protocol import codec
from gateway.protocol.reader import Budget, MalformedError
from gateway.thrift_gen.TCLIService import ttypes
from gateway.transport.frames import Bare, Framed
from tests.unit.protocol.replies import encode_reply

CALLS = [
    codec.encode_call(
        "OpenSession", 1, ttypes.TOpenSessionReq(client_protocol=5, configuration={"a": "b", "": "c" * 300})
    ),
    codec.encode_call("GetInfo", 2, ttypes.TGetInfoReq()),
    codec.encode_call(
        "ExecuteStatement",
        3,
        ttypes.TExecuteStatementReq(
            statement="SELECT 'é'" * 50,
            runAsync=True,
            parameters=[ttypes.TSparkParameter(ordinal=i, type="INT") for i in range(5)],
            queryTimeout=2**40,
        ),
    ),
    encode_reply("GetInfo", 4, ttypes.TGetInfoResp(infoValue=ttypes.TGetInfoValue(lenValue=7))),
]
HEAD = b"\x80\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"


@settings(deadline=None)
@given(st.lists(st.sampled_from(range(len(CALLS))), min_size=1, max_size=6), st.data(), st.booleans())
def test_the_same_messages_however_the_stream_is_cut(which: list[int], data: st.DataObject, framed: bool) -> None:
    messages = [CALLS[i] for i in which]
    parser = Framed(Budget()) if framed else Bare(Budget())
    stream = b"".join(parser.head(len(m)) + m for m in messages)
    buffer, found = bytearray(), []
    while stream:
        size = data.draw(st.integers(1, 60))
        buffer += stream[:size]
        stream = stream[size:]
        while (message := parser.take(buffer)) is not None:
            found.append(message)
    assert found == messages
    assert not buffer


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"\x00" * 8, "no strict binary protocol header"),
        (b"\x80\x01\x00\x01\x00\x00\x01\x01", "bad length of the method name"),
        (HEAD + b"\x0b\x00\x01\x00\x00\x10\x00", "exceeds the limit of 1000 bytes"),
        (HEAD + b"\x0b\x00\x01\xff\xff\xff\xff", "a string of -1 bytes"),
        (HEAD + b"\x0f\x00\x01\x0a\x00\x00\x00\x7f", "exceeds the limit of 1000 bytes"),
        (HEAD + b"\x0f\x00\x01\x0a\x00\x01\x00\x00", "too many elements"),
        (HEAD + b"\x0f\x00\x01\x0a\xff\xff\xff\xff", "a container of -1 elements"),
        (HEAD + b"\x0d\x00\x01\x0b\x0b\xff\xff\xff\xff", "a container of -1 elements"),
        (HEAD + b"\x0f\x00\x01\x0c\x00\x00\xff\xff" + b"\x00" * 500, "too many elements"),
        (HEAD + b"\x0c\x00\x01" * 20, "more than 10 levels of nesting"),
        (HEAD + b"\x07\x00\x01", "unknown type 7"),
    ],
)
def test_what_cannot_be_is_told_before_it_is_there(stream: bytes, text: str) -> None:
    with pytest.raises(MalformedError, match=text):
        Bare(Budget(size=1000, depth=10, elements=200)).take(bytearray(stream))


def test_frames_are_bounded_by_their_declared_length() -> None:
    parser = Framed(Budget(size=100))
    assert parser.take(bytearray(b"\x00\x00\x00\x64" + b"x" * 100)) == b"x" * 100
    assert parser.take(bytearray(b"\x00\x00\x00\x64" + b"x" * 99)) is None
    with pytest.raises(MalformedError, match="a frame of 101 bytes"):
        parser.take(bytearray(b"\x00\x00\x00\x65"))
