"""The files of the page, read once when the server starts: nothing is made of them, and nothing comes from elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

PATH = "/console"
_FIRST = "index.html"
_MEDIA = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent; `tag` names what is in it."""

    media: bytes
    data: bytes
    tag: bytes


def page_files() -> Mapping[str, PageFile]:
    """All files by the paths that they are served at."""
    found: dict[str, PageFile] = {}
    for entry in resources.files("gateway.console").joinpath("page").iterdir():
        media = _MEDIA.get(entry.name[entry.name.rfind(".") :])
        if media is None or not entry.is_file():
            continue
        data = entry.read_bytes()
        found[f"{PATH}/{entry.name}"] = PageFile(media, data, b'"%s"' % hashlib.sha256(data).hexdigest()[:32].encode())
    first = found[f"{PATH}/{_FIRST}"]
    return {**found, "/": first, PATH: first, f"{PATH}/": first}
