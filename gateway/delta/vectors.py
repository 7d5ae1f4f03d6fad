"""Deletion vectors as a log describes them: where their files lie."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

from gateway.delta.containment import local_path
from gateway.errors import ServerError

# Z85, in which logs spell the UUIDs of files.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGIT = {character: value for value, character in enumerate(_Z85)}
_UUID = 20  # characters


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
            return os.path.join(root, folder, f"deletion_vector_{uuid.UUID(bytes=_decoded(encoded))}.bin")
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
