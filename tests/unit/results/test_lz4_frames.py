"""Frames are read by LZ4 itself, whatever they hold."""

from __future__ import annotations

import random

import lz4.frame
import pytest

from gateway.results.lz4_frames import Framing, framed, framed_together

FRAMES = (Framing.PACKED, Framing.STORED)
PIECES = {
    "nothing": [],
    "empty ones": [b"", b""],
    "small ones": [b"a", b"bc", b"", b"d" * 100],
    "a block": [bytes(4 << 20)],
    "more than a block": [random.Random(1).randbytes((4 << 20) + 1), memoryview(bytes(9 << 20))],
}


@pytest.mark.parametrize("framing", FRAMES)
@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_one_frame_holds_all_pieces(pieces: list[bytes | memoryview], framing: Framing) -> None:
    whole = b"".join(framed_together(pieces, framing))
    assert lz4.frame.decompress(whole) == b"".join(pieces)
    told = lz4.frame.get_frame_info(whole)
    assert told["content_size"] == sum(map(len, pieces))
    assert not told["block_linked"]


@pytest.mark.parametrize("framing", FRAMES)
def test_a_piece_in_a_frame_of_its_own(framing: Framing) -> None:
    assert lz4.frame.decompress(framed(b"xyz" * 1000, framing)) == b"xyz" * 1000


def test_stored_frames_hold_the_very_bytes() -> None:
    piece = bytes(1 << 20)
    assert len(framed(piece, Framing.STORED)) - len(piece) < 32
    assert len(framed(piece, Framing.PACKED)) < len(piece) // 10
    assert framed_together([piece], Framing.NONE) == [piece]
