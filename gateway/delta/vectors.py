"""Deletion vectors: how a log describes them, where their files lie, and how these are read and written."""

from __future__ import annotations

import os
import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from gateway.delta import at_work
from gateway.delta.containment import Within, held_folder, is_within, local_path, not_allowed, opened, real_path
from gateway.errors import ServerError, unsupported

# Z85, in which logs spell the UUIDs of files.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGIT = {character: value for value, character in enumerate(_Z85)}
_MOST_ROWS = 1 << 28  # of a file with a deletion vector: a byte of memory each, more than once
_MOST_BYTES = _MOST_ROWS >> 2
_UUID, _UUID_BYTES = 20, 16  # characters, and what they stand for


def file_of(root: str, vector: Mapping[str, Any]) -> str | None:
    """The file of a deletion vector; None for one that is in the log itself."""
    name = vector["pathOrInlineDv"]
    match vector["storageType"]:
        case "i":
            return None
        case "p":
            return local_path(root, name)
        case "u":
            folder, encoded = name[:-_UUID], name[-_UUID:]
            data = _decoded(encoded)
            if len(data) == _UUID_BYTES:
                return os.path.join(root, folder, f"deletion_vector_{uuid.UUID(bytes=data)}.bin")
    raise ServerError("DELTA_LOG_CORRUPT", f"The log of {root} has a deletion vector of an unknown kind.")


def _decoded(text: str) -> bytes:
    try:
        values = [_DIGIT[character] for character in text]
        numbers = (values[i : i + 5] for i in range(0, len(values), 5))
        return b"".join(_number(digits).to_bytes(4, "big") for digits in numbers)
    except (KeyError, OverflowError) as error:
        raise ServerError("DELTA_LOG_CORRUPT", f"{text!r} names no deletion vector.") from error


def _number(digits: list[int]) -> int:
    found = 0
    for digit in digits:
        found = found * 85 + digit
    return found


def encoded(data: bytes) -> str:
    """Z85 of bytes, a multiple of four."""
    out = []
    for i in range(0, len(data), 4):
        number = int.from_bytes(data[i : i + 4], "big")
        digits = [number // 85**power % 85 for power in (4, 3, 2, 1, 0)]
        out += [_Z85[digit] for digit in digits]
    return "".join(out)


# ---- reading


def deleted_by(root: str, vector: Mapping[str, Any], within: Within) -> npt.NDArray[np.int64]:
    """The row numbers of a deletion vector, ascending. Raises as `check_vector` does, and DELTA_FILE_NOT_FOUND."""
    with _damage_told(root):
        data = _bytes_of(root, vector, within)
        _check_reach(root, data, None)
        rows = deserialized(data)
        if len(rows) != vector["cardinality"]:
            raise ValueError("it has another number of rows")
    return rows


def check_vector(root: str, vector: Mapping[str, Any], within: Within, rows: int | None) -> None:
    """Look at a deletion vector of a file of so many `rows`, if that is known, before somebody makes a mask of it.

    Raises ServerError DELTA_LOG_CORRUPT, UserError PATH_NOT_ALLOWED, UnsupportedError for a row that no mask reaches. Of a file
    that has another vector by now this one may be gone.
    """
    path = file_of(root, vector)
    if path is None or os.path.lexists(path):
        with _damage_told(root):
            _check_reach(root, _bytes_of(root, vector, within), rows)


@contextmanager
def _damage_told(root: str) -> Iterator[None]:
    try:
        yield
    except (struct.error, ValueError, TypeError, KeyError, IndexError) as error:
        raise ServerError("DELTA_LOG_CORRUPT", f"A deletion vector of {root} is damaged: {error}.") from error


def _bytes_of(root: str, vector: Mapping[str, Any], within: Within) -> bytes:
    """What a vector's file, or the log, has of it."""
    path = file_of(root, vector)
    if vector["sizeInBytes"] > _MOST_BYTES:
        raise unsupported(f"a deletion vector of {vector['sizeInBytes']} bytes, of the Delta table {root},")
    if path is None:
        return _decoded(vector["pathOrInlineDv"])[: vector["sizeInBytes"]]
    if not is_within(real_path(path), within):
        raise not_allowed(f"The Delta table {root} lists a deletion vector outside of its folder, which")
    try:
        with os.fdopen(opened(path, within), "rb") as file:
            file.seek(vector.get("offset") or 0)
            (size,) = struct.unpack(">I", file.read(4))
            if size != vector["sizeInBytes"]:
                raise ValueError("its size is another")
            data, (checksum,) = file.read(size), struct.unpack(">I", file.read(4))
    except FileNotFoundError as error:
        raise ServerError("DELTA_FILE_NOT_FOUND", f"The deletion vector {path} of {root} is missing.") from error
    if zlib.crc32(data) != checksum:
        raise ValueError("its checksum is another")
    return data


def _check_reach(root: str, data: bytes, rows: int | None) -> None:
    """Raise for rows behind the file's end, and for such that no mask reaches; blocks are looked at, not rows."""
    magic, count = struct.unpack_from("<IQ", data)
    if magic != _MAGIC:
        raise ValueError("it has an unknown format")
    if not count:
        return
    (high,) = struct.unpack_from("<I", data, 12)
    blocks, *_ = _described(data, 16)
    last = 1 << 32 if high or count > 1 else int(blocks.max(initial=0)) << 16
    if rows is not None and last >= max(rows, 1):
        raise ValueError(f"it has rows from {last} on, its file {rows}")
    if last >= _MOST_ROWS:
        raise unsupported(f"a deletion vector of rows from {last} on, of the Delta table {root},")


def live_mask(deleted: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """The rows up to the last one that a deletion vector has, True for those that it has not."""
    mask = np.ones(int(deleted.max(initial=-1)) + 1, dtype=bool)
    mask[deleted] = False
    return mask


def deserialized(data: bytes) -> npt.NDArray[np.int64]:
    """What `serialized` makes bytes of, and other writers of the same format. Raises ValueError, struct.error."""
    magic, count = struct.unpack_from("<IQ", data)
    if magic != _MAGIC:
        raise ValueError("it has an unknown format")
    at, parts = 12, [np.zeros(0, np.int64)]
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, at)
        rows, at = _read_bitmap(data, at + 4)
        parts.append(rows.astype(np.int64) | (high << 32))
    found = np.concatenate(parts)
    if (np.diff(found) <= 0).any():
        raise ValueError("its rows are in no order")
    return found


def _read_bitmap(data: bytes, at: int) -> tuple[npt.NDArray[np.int64], int]:
    """One 32-bit Roaring bitmap, and where it ends."""
    keys, counts, flags, at = _described(data, at)
    parts = [np.zeros(0, np.int64)]
    for key, most, runs in zip(keys, counts, flags, strict=False):
        block, at = _read_container(data, at, int(most) + 1, bool(runs))
        parts.append(block | (key << 16))
    return np.concatenate(parts), at


def _described(data: bytes, at: int) -> tuple[Any, Any, Any, int]:
    """What a bitmap says of its containers: which blocks, how many rows less one, whether as runs; and where they begin."""
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(np.frombuffer(data, np.uint8, (count + 7) // 8, at), bitorder="little")
        at += (count + 7) // 8
    elif cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", data, at)
        if count > 1 << 16:
            raise ValueError("it has too many containers")
        flags = np.zeros(count, np.uint8)
        at += 4
    else:
        raise ValueError("it is no bitmap")
    described = np.frombuffer(data, "<u2", 2 * count, at).astype(np.int64)
    at += 4 * count
    if cookie == _NO_RUNS or count >= _FEW_RUNS:
        at += 4 * count  # where containers begin
    return described[::2], described[1::2], flags, at


def _read_container(data: bytes, at: int, count: int, runs: bool) -> tuple[npt.NDArray[np.int64], int]:
    if runs:
        (number,) = struct.unpack_from("<H", data, at)
        pairs = np.frombuffer(data, "<u2", 2 * number, at + 2).astype(np.int64)
        found = [np.arange(start, start + length + 1) for start, length in zip(pairs[::2], pairs[1::2], strict=True)]
        return np.concatenate(found or [np.zeros(0, np.int64)]), at + 2 + 4 * number
    if count <= _MOST_LISTED:
        return np.frombuffer(data, "<u2", count, at).astype(np.int64), at + 2 * count
    bits = np.unpackbits(np.frombuffer(data, np.uint8, 1 << 13, at), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64), at + (1 << 13)


# ---- writing

_FORMAT = 1
_MAGIC = 1681511377
_NO_RUNS, _RUNS = 12346, 12347
_FEW_RUNS = 4  # containers, below which a bitmap with runs does not tell where they begin
_MOST_LISTED = 4096  # numbers of a container, above which it is a bitmap


def serialized(rows: npt.NDArray[np.int64]) -> bytes:
    """A set of row numbers, ascending, as the portable form of 64-bit Roaring bitmaps behind Delta's magic number."""
    high = rows >> 32
    keys = np.unique(high)
    parts = [struct.pack("<IQ", _MAGIC, len(keys))]
    for key in keys:
        parts += [struct.pack("<I", int(key)), _bitmap((rows[high == key] & 0xFFFFFFFF).astype(np.uint32))]
    return b"".join(parts)


def _bitmap(rows: npt.NDArray[np.uint32]) -> bytes:
    """One 32-bit Roaring bitmap: a header, and a container for each block of 65,536 numbers."""
    keys, starts = np.unique(rows >> 16, return_index=True)
    blocks = np.split((rows & 0xFFFF).astype("<u2"), starts[1:])
    header = struct.pack("<II", _NO_RUNS, len(keys))
    described = b"".join(struct.pack("<HH", int(k), len(x) - 1) for k, x in zip(keys, blocks, strict=True))
    containers = [_container(block) for block in blocks]
    at = len(header) + len(described) + 4 * len(keys)
    offsets = []
    for container in containers:
        offsets.append(struct.pack("<I", at))
        at += len(container)
    return b"".join([header, described, *offsets, *containers])


def _container(block: npt.NDArray[np.uint16]) -> bytes:
    if len(block) <= _MOST_LISTED:
        return block.tobytes()
    bits = np.zeros(1 << 16, dtype=bool)
    bits[block] = True
    return np.packbits(bits, bitorder="little").tobytes()


def write_vectors(root: str, rows: Sequence[npt.NDArray[np.int64]]) -> tuple[str, list[dict[str, Any]]]:
    """A new file with deletion vectors, each a set of row numbers; its path, and how a log describes each of them."""
    name = uuid.uuid4()
    path = os.path.join(root, f"deletion_vector_{name}.bin")
    described = []
    out = bytearray([_FORMAT])
    for one in rows:
        data = serialized(one)
        described.append(
            {
                "storageType": "u",
                "pathOrInlineDv": encoded(name.bytes),
                "offset": len(out),
                "sizeInBytes": len(data),
                "cardinality": len(one),
            }
        )
        out += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    at_work.begin(root)
    with held_folder(root, root) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(os.path.basename(path), flags, 0o666, dir_fd=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(out)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            os.unlink(os.path.basename(path), dir_fd=folder)
            raise
    return path, described
