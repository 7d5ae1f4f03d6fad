"""Files to load: found in folders, told apart by ending, left out by name where that is right."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gateway.delta.containment import is_under
from gateway.errors import ConfigError

CSV, JSON, PARQUET = "csv", "json", "parquet"
_ENDINGS = {
    ".csv": CSV,
    ".tsv": CSV,
    ".json": JSON,
    ".jsonl": JSON,
    ".ndjson": JSON,
    ".parquet": PARQUET,
}
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
# Files that their writers have not finished, or that are not data.
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", "._COPYING_")


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """A file: absolute path with links resolved, size in bytes, time of change in ns."""

    path: str
    size: int
    changed: int

    @property
    def uri(self) -> str:
        """As Spark's readers take it: not percent-encoded."""
        return f"file://{self.path}"

    def check_unchanged(self) -> None:
        """Raise OSError if the file is gone or is another now."""
        if stat_file(self.path) != self:
            raise OSError(f"{self.path} was changed")


@dataclass(frozen=True, slots=True)
class Found:
    """What there is to load: the format, files in the order of their paths, sentences about those left out; the sources."""

    format: str
    files: tuple[SourceFile, ...]
    notes: tuple[str, ...]
    sources: tuple[str, ...] = ()  # links resolved

    def covers(self, path: str) -> bool:
        """Whether a file is one of the sources, or lies in one."""
        return any(is_under(path, source) for source in self.sources) and os.path.realpath(path) == path


def stat_file(path: str) -> SourceFile:
    """The file as it is now. Raises OSError."""
    status = os.stat(path)
    return SourceFile(path, status.st_size, status.st_mtime_ns)


def find(sources: Sequence[str], format: str | None) -> Found:
    """The data files of files and folders (with subfolders).

    Hidden, unfinished and empty files are left out. Without `format` the endings must name exactly one, and files with other
    endings in folders are left out, with a note.

    Raises:
        ConfigError: a source is missing, cannot be read, or has no or several formats.
    """
    named: dict[str, SourceFile] = {}
    listed: dict[str, SourceFile] = {}
    notes: list[str] = []
    for source in sources:
        if "://" in source:
            raise ConfigError("source", f"{source}: only files and folders of this machine can be loaded")
        try:
            path = os.path.realpath(source, strict=True)
            if os.path.isdir(path):
                listed |= {p: stat_file(p) for p in _walk(path)}
            else:
                named[path] = stat_file(path)
        except OSError as error:
            raise ConfigError("source", f"{source} cannot be read: {error.strerror or error}") from error
    everything = {**listed, **named}
    for path in everything:
        if not os.access(path, os.R_OK):
            raise ConfigError("source", f"{path} cannot be read: no permission")
    formats = {path: format or format_of(path) for path in everything}
    unknown = [p for p in sorted(named) if formats[p] is None]
    if unknown:
        raise ConfigError("format", f"the ending of {unknown[0]} names no format: give --format csv, json or parquet")
    counts = Counter(f for f in formats.values() if f is not None)
    if len(counts) > 1:
        text = ", ".join(f"{n} {f}" for f, n in sorted(counts.items()))
        raise ConfigError("format", f"the files are of several formats ({text}): load them one by one with --format")
    others = sorted(p for p in everything if formats[p] is None)
    if others and not counts:
        raise ConfigError("format", f"the ending of {others[0]} names no format: give --format csv, json or parquet")
    if others:
        notes.append(f"{len(others)} files left out, whose endings name no format: {os.path.basename(others[0])}, …")
    empty = sorted(p for p, file in everything.items() if file.size == 0 and formats[p] is not None)
    if empty:
        notes.append(f"{len(empty)} empty files left out for now: {os.path.basename(empty[0])}, …")
    files = sorted(f for p, f in everything.items() if formats[p] is not None and f.size)
    roots = tuple(map(os.path.realpath, sources))
    return Found(next(iter(counts), format or CSV), tuple(files), tuple(notes), roots)


def format_of(path: str) -> str | None:
    """The format that a name's ending stands for, compression left aside."""
    stem, ending = os.path.splitext(path.lower())
    if ending in _COMPRESSIONS:
        ending = os.path.splitext(stem)[1]
    return _ENDINGS.get(ending)


def _walk(folder: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(n for n in folders if not n.startswith((".", "_")))
        for name in names:
            path = os.path.join(parent, name)
            if name.startswith((".", "_")) or name.endswith(_UNFINISHED) or not os.path.isfile(path):
                continue
            yield os.path.realpath(path)


def file_of(uri: str) -> Path:
    """The file of Spark's ``_metadata.file_path``."""
    return Path(unquote(urlsplit(uri).path))
