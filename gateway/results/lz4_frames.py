"""LZ4 frames for clients that read them: packed, or, for those on this machine, with the bytes as they are.

Memory is faster than LZ4, so that frames between two processes of one machine hold stored blocks, which the format has for what
cannot be packed (LZ4 Frame Format, "Data Blocks": the highest bit of a block's size).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import Enum

from lz4.frame import BLOCKSIZE_MAX4MB, LZ4FrameCompressor, compress

Piece = bytes | memoryview
# databricks-jdbc refuses linked blocks ("BLOCK_INDEPENDENCE must be set").
_BLOCKS = {"block_size": BLOCKSIZE_MAX4MB, "block_linked": False}
_BLOCK_BYTES = 4 << 20
_SIZE = struct.Struct("<I")
_STORED = 1 << 31
_END = _SIZE.pack(0)


class Framing(Enum):
    """What a client is sent: the bytes alone, in packed frames, or in frames that hold them as they are."""

    NONE = "none"
    PACKED = "packed"
    STORED = "stored"


def framed(piece: Piece, framing: Framing) -> Piece:
    """A piece in a frame of its own."""
    if framing is Framing.PACKED:
        return compress(piece, **_BLOCKS)  # type: ignore[no-any-return]
    return piece if framing is Framing.NONE else b"".join(_stored([piece]))


def framed_together(pieces: Sequence[Piece], framing: Framing) -> list[Piece]:
    """Pieces in one frame, which is theirs put behind one another."""
    if framing is Framing.NONE:
        return list(pieces)
    if framing is Framing.STORED:
        return list(_stored(pieces))
    with _compressor() as frame:
        return [frame.begin(_bytes(pieces)), *(frame.compress(piece) for piece in pieces), frame.flush()]


def _bytes(pieces: Sequence[Piece]) -> int:
    return sum(map(len, pieces))


def _compressor() -> LZ4FrameCompressor:
    return LZ4FrameCompressor(**_BLOCKS)


def _stored(pieces: Sequence[Piece]) -> Iterator[Piece]:
    with _compressor() as frame:
        yield frame.begin(_bytes(pieces))
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), _BLOCK_BYTES):
            block = view[start : start + _BLOCK_BYTES]
            yield _SIZE.pack(len(block) | _STORED)
            yield block
    yield _END
