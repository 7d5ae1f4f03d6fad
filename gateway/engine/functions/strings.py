"""String functions that DataFusion lacks or means otherwise: binary forms, encodings, masks, splitting, capitals."""

from __future__ import annotations

import base64
import functools
import itertools
import re
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.functions import RowError, lists
from gateway.engine.functions.distinct import scalar, vectorised
from gateway.engine.functions.maths import unhex

MAX_PADDED = 1 << 28
MAX_REPLACED = 1 << 30
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


@scalar("raise_row", strict=False)
def raise_row(*values: Any) -> None:
    """Fails for whatever row it is asked for: the last two values are condition and message template."""
    *shown, condition, template = values
    raise RowError(condition, template.format(*("null" if v is None else v for v in shown)))


@scalar("assert_true", strict=False)
def assert_true(condition: bool | None, *message: str | None) -> None:
    """NULL where the condition holds, else USER_RAISED_EXCEPTION with the message."""
    if condition is not True:
        raise RowError("USER_RAISED_EXCEPTION", str(message[0]) if message else "The condition is not true!")


@scalar("like_pattern")
def like_pattern(pattern: str, given: bool, escape: str) -> str:
    """A pattern of LIKE with backslash as its escape; INVALID_FORMAT where one is misplaced and a value given."""
    out, index = [], 0
    while index < len(pattern):
        char = pattern[index]
        if char != escape:
            out.append("\\\\" if char == "\\" else char)
            index += 1
            continue
        escaped = pattern[index + 1 : index + 2]
        if given and not escaped:
            message = f"The format is invalid: '{pattern}'. The escape character is not allowed to end with."
            raise RowError("INVALID_FORMAT.ESC_AT_THE_END", message)
        if given and escaped not in ("_", "%", escape):
            message = f"The format is invalid: '{pattern}'. The escape character is not allowed to precede '{escaped}'."
            raise RowError("INVALID_FORMAT.ESC_IN_THE_MIDDLE", message)
        out.append(f"\\{escaped}" if escaped in ("%", "_", "\\") else escaped)
        index += 2
    return "".join(out)


@scalar("raise_error", strict=False)
def raise_error(message: str | None) -> None:
    """Fails with USER_RAISED_EXCEPTION."""
    raise RowError("USER_RAISED_EXCEPTION", "null" if message is None else message)


@vectorised("binary_length")
def binary_length(value: pa.Array) -> pa.Array:
    """Bytes of a BINARY."""
    return pc.binary_length(value)


@vectorised("binary_bit_length")
def binary_bit_length(value: pa.Array) -> pa.Array:
    """Bits of a BINARY."""
    return pc.multiply(pc.binary_length(value), pa.scalar(8, pa.int32()))


@scalar("binary_contains")
def binary_contains(value: bytes, piece: bytes) -> bool:
    """contains on bytes."""
    return piece in value


@scalar("binary_startswith")
def binary_startswith(value: bytes, piece: bytes) -> bool:
    """startswith on bytes."""
    return value.startswith(piece)


@scalar("binary_endswith")
def binary_endswith(value: bytes, piece: bytes) -> bool:
    """endswith on bytes."""
    return value.endswith(piece)


def sql_substring(value: Any, position: int, length: int) -> Any:
    """Spark's substring of text or bytes: from 1, negative from the end, 0 like 1; the part before the start is cut off."""
    start = position - 1 if position > 0 else (len(value) + position if position < 0 else 0)
    end = start + length
    return value[max(0, start) : max(0, end)] if end > start else value[:0]


@scalar("binary_substring")
def binary_substring(value: bytes, position: int, length: int) -> bytes:
    """substring on bytes, with Java's int overflow at the ends: Arrays.copyOfRange then fills up with zeros."""
    count = len(value)
    start = position - 1 if position > 0 else (count + position if position < 0 else 0)
    end = count if _wrapped(count - start) < length else _wrapped(start + length)
    start = max(start, 0)
    if position > count or start >= end:
        return b""
    if end - count > MAX_PADDED:
        raise RowError("RESOURCE_EXHAUSTED", f"A value is padded to more than {MAX_PADDED} bytes.")
    return value[start:end].ljust(end - start, b"\0")


@scalar("binary_lpad")
def binary_lpad(value: bytes, length: int, pad: bytes) -> bytes:
    """lpad on bytes."""
    return _fill(value, length, pad) + value[: max(0, length)]


@scalar("binary_rpad")
def binary_rpad(value: bytes, length: int, pad: bytes) -> bytes:
    """rpad on bytes."""
    return value[: max(0, length)] + _fill(value, length, pad)


def _fill(value: bytes, length: int, pad: bytes) -> bytes:
    missing = length - len(value)
    if missing <= 0 or not pad:
        return b""
    if missing > MAX_PADDED:
        raise RowError("RESOURCE_EXHAUSTED", f"A value is padded to more than {MAX_PADDED} bytes.")
    return (pad * (missing // len(pad) + 1))[:missing]


@scalar("overlay")
def overlay(value: Any, piece: Any, position: int, length: int) -> Any:
    """overlay(input PLACING piece FROM position FOR length) with Java's int overflow at the ends."""
    covered = length if length >= 0 else len(piece)
    cut = binary_substring if isinstance(value, bytes) else sql_substring
    head = cut(value, 1, _wrapped(position - 1))
    return head + piece + cut(value, _wrapped(position + covered), _INT_MAX)


def _wrapped(value: int) -> int:
    return (value - _INT_MIN) % 2**32 + _INT_MIN


@vectorised("concat_ws")
def concat_ws(separator: pa.Array, *parts: pa.Array) -> pa.Array:
    """concat_ws with ARRAY<STRING> parts: NULLs and NULL elements are skipped, an empty array adds no separator."""
    joined = []
    for part in parts:
        if pa.types.is_list(part.type):
            part = _joined_list(part, separator)
        joined.append(part)
    # Arrow leaves rows out of which all parts are NULL.
    void = functools.reduce(pc.and_, [pc.is_null(part) for part in joined])
    joined[0] = pc.if_else(void, pa.scalar("", pa.string()), joined[0])
    text = pc.binary_join_element_wise(*joined, separator, null_handling="skip")
    return pc.if_else(separator.is_valid(), text, pa.scalar(None, pa.string()))


def _joined_list(part: pa.Array, separator: pa.Array) -> pa.Array:
    """Each list's non-NULL elements joined; NULL where there are none."""
    rows = pc.list_parent_indices(part)
    items = pc.list_flatten(part)
    kept = items.is_valid()
    rows, items = rows.filter(kept), items.filter(kept)
    grouped = pa.table({"r": rows}).group_by("r").aggregate([([], "count_all")])
    by_row = dict(zip(grouped["r"].to_pylist(), grouped["count_all"].to_pylist(), strict=True))
    counts = [by_row.get(i, 0) for i in range(len(part))]
    offsets = [0]
    for count in counts:
        offsets.append(offsets[-1] + count)
    made = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
    text = lists.joined(made, separator)
    return pc.if_else(pa.array([c > 0 for c in counts]), text, pa.scalar(None, pa.string()))


@scalar("replace_large")
def replace_large(value: str, old: str, new: str) -> str:
    """replace where the result may be too long."""
    if not old:
        return value
    size = len(value.encode()) + value.count(old) * (len(new.encode()) - len(old.encode()))
    if size > MAX_REPLACED:
        raise RowError("RESOURCE_EXHAUSTED", f"replace makes a text of more than {MAX_REPLACED} bytes.")
    return value.replace(old, new)


@scalar("split_part")
def split_part(value: str, delimiter: str, part: int) -> str:
    """split_part: parts from 1, negative from the end, empty beyond."""
    if part == 0:
        raise RowError(
            "INVALID_INDEX_OF_ZERO",
            "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1).",
        )
    if part == _INT_MIN:
        raise RowError("INVALID_ARRAY_INDEX", f"The index {part} is out of bounds.")
    parts = value.split(delimiter) if delimiter else [value]
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


@scalar("substring_index")
def substring_index(value: str, delimiter: str, count: int) -> str:
    """substring_index: up to the count-th delimiter from the left, or after it from the right; matches may overlap."""
    if not delimiter or count == 0:
        return ""
    if count == _INT_MIN:
        raise RowError("INVALID_ARRAY_INDEX", f"The index {count} is out of bounds.")
    if count > 0:
        at = -1
        for _ in range(min(count, len(value) + 1)):
            at = value.find(delimiter, at + 1)
            if at < 0:
                return value
        return value[:at]
    at = len(value) - len(delimiter) + 1
    for _ in range(min(-count, len(value) + 1)):
        at = value.rfind(delimiter, 0, max(0, at - 1 + len(delimiter)))
        if at < 0:
            return value
    return value[at + len(delimiter) :]


@scalar("initcap")
def initcap(value: str) -> str:
    """Title case after spaces only, the rest lower case, by Unicode's full mappings."""
    words = value.split(" ")
    return " ".join([w.capitalize() for w in words] if value.isascii() else map(_capitalised, words))


def _capitalised(word: str) -> str:
    return word[0].title() + word.lower()[len(word[0].lower()) :] if word else word


@scalar("translate")
def translate(value: str, matched: str, replaced: str) -> str:
    """Each character of `matched` by that at its place in `replaced`; without one there, or with NUL, it goes, as in Spark."""
    return value.translate(_translations(matched, replaced))


@functools.lru_cache(maxsize=64)
def _translations(matched: str, replaced: str) -> dict[int, str]:
    pairs = itertools.zip_longest(matched, replaced[: len(matched)], fillvalue="")
    return {ord(char): other.strip("\0") for char, other in reversed(list(pairs))}  # the first of equals holds


@scalar("mask")
def mask(value: str, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str:
    """Replaces each upper-case letter, lower-case letter, digit and other character by its mask (None: keeps it)."""
    if value.isascii():
        return value.translate(_ascii_masks(upper, lower, digit, other))
    return _masked(value, upper, lower, digit, other)


@functools.lru_cache(maxsize=64)
def _ascii_masks(*masks: str | None) -> dict[int, str]:
    return {code: _masked(chr(code), *masks) for code in range(128)}


def _masked(value: str, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str:
    out = []
    for char in value:
        if char.isupper():
            out.append(upper or char)
        elif char.islower():
            out.append(lower or char)
        elif char.isdecimal():
            out.append(digit or char)
        elif other is None:
            out.append(char)
        else:
            out.append(other * (2 if ord(char) > 0xFFFF else 1))  # Java counts two units there
    return "".join(out)


@scalar("quote")
def quote_text(value: str) -> str:
    """The text in single quotes, single quotes inside escaped by a backslash."""
    return "'" + value.replace("'", "\\'") + "'"


@scalar("utf8")
def utf8(value: str | bytes, mode: str) -> str | None:
    """Bytes as text; `mode` says what becomes of malformed ones: "replace", "raise" or "null"."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        if mode == "null":
            return None
        if mode == "replace":
            return value.decode("utf-8", "replace")
    shown = "".join(f"\\x{b:02X}" for b in value)
    raise RowError("INVALID_UTF8_STRING", f"Invalid UTF8 byte sequence found in string: {shown}.")


@scalar("luhn_check")
def luhn_check(value: str) -> bool:
    """Luhn checksum of a string of digits, of any script that Java's `char` holds."""
    if not value.isdecimal() or max(value) > "\uffff":
        return False
    digits = [int(c) for c in reversed(value)]
    return (sum(digits[0::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0


@scalar("is_valid_utf8")
def is_valid_utf8(value: str | bytes) -> bool:
    """Whether bytes are UTF-8; strings always are."""
    if isinstance(value, str):
        return True
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@scalar("base64")
def to_base64(value: bytes) -> str:
    """MIME base64: CRLF after every 76 characters."""
    text = base64.b64encode(value).decode("ascii")
    return "\r\n".join(text[i : i + 76] for i in range(0, len(text), 76))


_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


_PLAIN_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def mime_decoded(value: str) -> bytes:
    """java.util.Base64's MIME decoder: foreign characters are skipped, padding may be missing.

    Raises ValueError with Java's message.
    """
    if _PLAIN_BASE64.fullmatch(value):
        return base64.b64decode(value)
    source = value.encode("latin-1", "replace")
    figures = bytearray()
    at = 0
    while at < len(source):
        byte = source[at]
        at += 1
        if byte in _ALPHABET:
            figures.append(byte)
        elif byte == 0x3D:
            have = len(figures) % 4
            if have == 2:
                if at == len(source) or source[at] != 0x3D:
                    raise ValueError("Input byte array has wrong 4-byte ending unit")
                at += 1
            elif have == 0:
                raise ValueError("Input byte array has wrong 4-byte ending unit")
            break
    if any(b in _ALPHABET or b == 0x3D for b in source[at:]):
        raise ValueError(f"Input byte array has incorrect ending byte at {at}")
    if len(figures) % 4 == 1:
        raise ValueError("Last unit does not have enough valid bits")
    return base64.b64decode(bytes(figures) + b"=" * (-len(figures) % 4))


@scalar("unbase64")
def unbase64(value: str) -> bytes:
    """unbase64 with Java's MIME rules."""
    try:
        return mime_decoded(value)
    except ValueError as error:
        raise RowError("CONVERSION_INVALID_INPUT", f"{error}.") from None


def _strict_base64(value: str) -> bool:
    """Spark's check of base64 text for to_binary (RFC 4648, spaces allowed before the padding)."""
    count = pads = 0
    for char in value:
        if char.isspace():
            if pads:
                return False
            continue
        if char == "=":
            pads += 1
        elif not char.isascii() or ord(char) not in _ALPHABET or pads:
            return False
        count += 1
    if pads > 2:
        return False
    return count % 4 == 0 if pads else count % 4 != 1


@scalar("to_binary")
def to_binary(value: str, form: str, lenient: bool) -> bytes | None:
    """to_binary / try_to_binary for the formats hex, utf-8 and base64."""
    if form == "utf-8":
        return value.encode("utf-8")
    decoded: bytes | None = None
    if form == "hex":
        decoded = unhex(value)
    elif _strict_base64(value):
        decoded = mime_decoded(value)
    if decoded is not None or lenient:
        return decoded
    raise RowError(
        "CONVERSION_INVALID_INPUT",
        f"The value '{value}' ({form.upper()}) cannot be converted to \"BINARY\" because it is malformed. Correct the "
        "value as per the syntax, or change its format. Use `try_to_binary` to tolerate malformed input and return NULL "
        "instead.",
    )


_CHARSETS = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16",
    "UTF-32": "utf-32",
}


def _codec(function: str, charset: str) -> str:
    codec = _CHARSETS.get(charset.upper())
    if codec is None:
        raise RowError(
            "INVALID_PARAMETER_VALUE.CHARSET",
            f"The value of parameter(s) `charset` in `{function}` is invalid: expects one of the iso-8859-1, us-ascii, "
            f"utf-16, utf-16be, utf-16le, utf-32, utf-8, but got {charset}.",
        )
    return codec


def _malformed(function: str, charset: str) -> RowError:
    return RowError("MALFORMED_CHARACTER_CODING", f"Invalid value found when performing `{function}` with {charset}")


@scalar("encode")
def encode(value: str, charset: str) -> bytes:
    """Bytes of a string in a character set; UTF-16 with a big-endian mark, as Java writes it."""
    codec = _codec("encode", charset)
    try:
        if codec == "utf-16":
            return b"\xfe\xff" + value.encode("utf-16-be") if value else b""
        return value.encode("utf-32-be" if codec == "utf-32" else codec)
    except UnicodeEncodeError:
        raise _malformed("encode", charset) from None


@scalar("decode")
def decode(value: bytes, charset: str) -> str:
    """String of bytes in a character set; UTF-16 and UTF-32 are big-endian unless marked otherwise."""
    codec = _codec("decode", charset)
    if codec == "utf-16" and value[:2] not in (b"\xfe\xff", b"\xff\xfe"):
        codec = "utf-16-be"
    if codec == "utf-32" and value[:4] not in (b"\x00\x00\xfe\xff", b"\xff\xfe\x00\x00"):
        codec = "utf-32-be"
    try:
        return value.decode(codec)
    except UnicodeDecodeError:
        raise _malformed("decode", charset) from None


_SOUNDEX = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))


@scalar("soundex")
def soundex(value: str) -> str:
    """Spark's soundex; text that does not start with a Latin letter stays as it is."""
    upper = value.upper() if value.isascii() else "".join(c.upper() if c.isascii() else c for c in value)
    if not upper or upper[0] not in _SOUNDEX:
        return value
    out, last = upper[0], _SOUNDEX[upper[0]]
    for char in upper[1:]:
        code = _SOUNDEX.get(char)
        if code is None:
            last = "0"
            continue
        if code == "7":  # H and W do not separate equal codes
            continue
        if code not in ("0", last):
            out += code
            if len(out) == 4:
                break
        last = code
    return out.ljust(4, "0")


@scalar("url_encode")
def url_encode(value: str) -> str:
    """application/x-www-form-urlencoded as java.net.URLEncoder writes it."""
    return quote(value, safe="* ").replace(" ", "+").replace("~", "%7E")


_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


@scalar("url_decode")
def url_decode(value: str, lenient: bool) -> str | None:
    """java.net.URLDecoder; a bad escape is CANNOT_DECODE_URL, or NULL if `lenient`."""
    if _BAD_ESCAPE.search(value):
        if lenient:
            return None
        raise RowError(
            "CANNOT_DECODE_URL",
            f"The provided URL cannot be decoded: {value}. Please ensure that the URL is properly formatted and "
            "try again.",
        )
    return unquote(value.replace("+", " "), errors="replace")
