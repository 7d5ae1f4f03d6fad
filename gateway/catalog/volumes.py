"""Paths of volumes: ``/Volumes/<catalog>/<schema>/<volume>/<file>`` and where the file lies.

The files of a volume are in the folder ``<schema>/_volumes/<volume>.<mark>`` of the warehouse, which is hidden from tables;
each volume that is made has another mark (`objects.StoredVolume`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from unicodedata import category

from gateway.delta.containment import is_under, not_allowed, real_path
from gateway.errors import UserError

FOLDER = "_volumes"
DRAFTS = ".drafts"  # beside the volumes: files that are being put
_PREFIX = "/Volumes/"
_LONGEST_NAME, _LONGEST = 255, 4096  # bytes
_HERE = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class VolumePath:
    """A path below a volume; `file` is "" for the volume itself, and ends with a slash where the path does."""

    catalog: str
    schema: str
    volume: str
    file: str

    def __str__(self) -> str:
        return f"{_PREFIX}{self.catalog}/{self.schema}/{self.volume}/{self.file}"


def parsed(path: str) -> VolumePath | None:
    """The parts of a path of a volume; None for any other text, and for one that names its parts in a way of file systems."""
    plain = _plain(path)
    names = plain.removeprefix(_PREFIX).split("/")
    folder = len(names) > 3 and names[-1] == ""
    parts = names[:-1] if folder else names
    if not plain.startswith(_PREFIX) or len(parts) < 3 or len(_bytes(plain)) > _LONGEST:
        return None
    if any(p in _HERE or not _is_plain(p) or len(_bytes(p)) > _LONGEST_NAME for p in parts):
        return None
    below = "/".join(parts[3:])
    return VolumePath(parts[0], parts[1], parts[2], below + "/" if folder and below else below)


def place_in(folder: str, file: str) -> str:
    """Where a file of a volume lies whose real folder is known; raises PATH_NOT_ALLOWED for a link that leads out of it."""
    real = real_path(os.path.join(folder, file.rstrip("/")))
    if not is_under(real, folder):
        raise not_allowed(f"The path {file}")
    return real


def no_volume(path: VolumePath) -> UserError:
    """VOLUME_DOES_NOT_EXIST."""
    return UserError(
        "VOLUME_DOES_NOT_EXIST", f"Volume `{path.catalog}`.`{path.schema}`.`{path.volume}` does not exist."
    )


def _is_plain(name: str) -> bool:
    """Whether a name holds no control characters, and no halves of one; joiners, marks of direction and all spaces are text."""
    return name.isprintable() or not any(category(c) in ("Cc", "Cs") for c in name)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _plain(path: str) -> str:
    return path[len("dbfs:") :] if path.startswith("dbfs:/") else path
