"""Checkpoints of streams below a project's storage: where Spark puts them, which there are, how they are put back.

``<storage>/_checkpoints/<catalog>/<schema>/<table>/<flow>/<number>``; a table that is computed anew gets the next number.
Spark 4.2.0 writes below the URI-encoded path (a folder ``my%20shop`` for ``my shop``), but looks for the newest number below
the path as it is: there it never starts anew by itself, so that the old number is set aside for it.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from gateway.pipelines.project import CHECKPOINTS, Project

_RESERVED = frozenset('"#%<>?[\\]^`{|}')
_SEPARATORS = ("Cc", "Zs", "Zl", "Zp")  # control characters and spaces of any script


def encoded(path: str) -> str:
    """`path` as Hadoop's ``Path.toUri`` spells it: what no URI may hold is encoded, letters of all scripts are kept."""
    return "".join(_encoded(c) if c in _RESERVED or unicodedata.category(c) in _SEPARATORS else c for c in path)


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def root(project: Project) -> Path | None:
    """The folder of all checkpoints; None if it is on another file system."""
    storage = project.storage_folder
    return None if storage is None else Path(encoded(str(storage / CHECKPOINTS)))


def place(project: Project, table_id: str) -> Path | None:
    """The folder of the checkpoints of the streams into a table; None if it is on another file system."""
    folder = root(project)
    return None if folder is None else folder.joinpath(*map(encoded, table_id.split(".")))


def numbers(folder: Path) -> list[str]:
    """The checkpoints in the folder of a table, as ``flow/number``."""
    if not folder.is_dir():
        return []
    return sorted(str(found.relative_to(folder)) for found in _numbered(folder))


def set_aside(folder: Path, run: str) -> None:
    """Let Spark start anew in the folder of a table where it would not do so by itself; `put_back` undoes it."""
    for found in list(_numbered(folder)):
        if "%" in str(found):
            found.rename(_aside(found, run))


def put_back(folder: Path, kept: Sequence[str], run: str) -> None:
    """Only the checkpoints `kept` (as `numbers` gave them) are in the folder again, those set aside by `run` too."""
    for name in kept:
        if _aside(folder / name, run).is_dir():
            shutil.rmtree(folder / name, ignore_errors=True)
            _aside(folder / name, run).rename(folder / name)
    for name in numbers(folder):
        if name not in kept:
            shutil.rmtree(folder / name)


def remove_aside(folder: Path, run: str) -> None:
    """Remove what was set aside for `run`: the table has been computed anew."""
    for found in folder.glob(f"*/*{_suffix(run)}"):
        shutil.rmtree(found, ignore_errors=True)


def remove_all(folder: Path) -> None:
    """Remove all checkpoints of a table: its streams read everything again."""
    shutil.rmtree(folder, ignore_errors=True)


def _numbered(folder: Path) -> Iterator[Path]:
    return (found for found in folder.glob("*/*") if found.name.isdigit() and found.is_dir())


def _aside(checkpoint: Path, run: str) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}{_suffix(run)}")


def _suffix(run: str) -> str:
    return f".before-{run}"
