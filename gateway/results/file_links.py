"""Links to files of volumes: who holds one may put, get or remove this one file until it expires, and nothing else.

Made by workers, which find and check the file's place, and read by the front process, with a key that each statement carries.
Clients follow them without credentials, so the link is all that is needed. What it says is sealed: where files lie on the
server is not for who holds one. (The text's mac is what its cipher starts from, as in AES-SIV; the standard library has no
cipher, but keyed SHAKE256 is a stream that nobody else can make.)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from dataclasses import asdict, dataclass

from gateway.results.links import BadLinkError
from gateway.worker_jobs import FileDoor

PATH = "/sql/1.0/files/"
_LONGEST = 16_384  # characters
_MAC_BYTES = 32


@dataclass(frozen=True, slots=True)
class FileLink:
    """What may be done with a file: `verb` is PUT, GET or DELETE.

    `volume` is the real folder of its volume, `file` the file below that; with `replaces` a PUT may take the place
    of a file that is there. `owner` asked for it; `expires_ms` in epoch milliseconds.
    """

    verb: str
    volume: str
    file: str
    owner: str
    replaces: bool = False
    expires_ms: int = 0


def url(door: FileDoor, verb: str, volume: str, file: str, owner: str, *, replaces: bool = False) -> str:
    """The address of a file for one verb."""
    expires_ms = int((time.time() + door.seconds) * 1000)
    return f"{door.origin}{PATH}{signed(FileLink(verb, volume, file, owner, replaces, expires_ms), door.key)}"


def signed(link: FileLink, key: bytes) -> str:
    """The text of a link."""
    fields = json.dumps(asdict(link), separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    mac = hmac.digest(key, fields, "sha256")
    return _text(mac + _crossed(fields, mac, key))


def read(text: str, key: bytes) -> FileLink:
    """What a link says. Raises BadLinkError."""
    sealed = _bytes(text) if len(text) <= _LONGEST else b""
    mac = sealed[:_MAC_BYTES]
    fields = _crossed(sealed[_MAC_BYTES:], mac, key)
    # The decoder knows several spellings of some texts; a link has one.
    if not hmac.compare_digest(mac, hmac.digest(key, fields, "sha256")) or _text(sealed) != text:
        raise BadLinkError(expired=False)
    link = FileLink(**json.loads(fields))
    if link.expires_ms <= time.time() * 1000:
        raise BadLinkError(expired=True)
    return link


def _crossed(data: bytes, mac: bytes, key: bytes) -> bytes:
    """`data` sealed, or what was sealed."""
    stream = hashlib.shake_256(hmac.digest(key, b"seal", "sha256") + mac).digest(len(data))
    return bytes(a ^ b for a, b in zip(data, stream, strict=True))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text.encode("ascii"))
    except (UnicodeEncodeError, binascii.Error):
        return b""
