"""The commit files of a Delta table as files: which versions there are, when they were made, what they ask of readers."""

from __future__ import annotations

import errno
import json
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from gateway.delta.features import Protocol
from gateway.errors import ServerError, UnsupportedError, UserError
from gateway.worker_jobs import marker_of

LOG = "_delta_log"
_STAGED = "_commits"
HINT = "_last_checkpoint"
_MOST_OF_COMMIT, _MOST_OF_OTHERS = 512 << 20, 64 << 20  # bytes: two million files, which take five times as much memory
DIGITS = 20
_LONG = 18  # digits that every number of 64 bits may have
_FEW = 1000  # commits, of which each is asked for: fewer calls than for a list of a long log
IN_COMMIT = "delta.enableInCommitTimestamps"
IN_COMMIT_SINCE = "delta.inCommitTimestampEnablement"
IN_COMMIT_FROM = f"{IN_COMMIT_SINCE}Version"
# Paths that have one spelling: names of files and folders below the table's, none of them `.` or `..`.
PLAIN = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_=.-]*/)*[A-Za-z0-9_][A-Za-z0-9_=.-]*")
LAST_MS = 253_402_300_799_999  # 9999-12-31


def commit_path(root: str, version: int) -> str:
    """Path of the commit file of `version`."""
    return f"{root}/{LOG}/{version:020d}.json"


def is_staged_beyond(root: str, version: int) -> bool:
    """Whether commits behind `version` lie beside the log of a table whose commits others coordinate.

    Which of them count only the coordinator knows (protocol, "Coordinated Commits").
    """
    try:
        names = os.listdir(f"{root}/{LOG}/{_STAGED}")
    except FileNotFoundError:
        return False
    found = (name.partition(".")[0] for name in names if name.endswith(".json"))
    return any(number.isascii() and number.isdecimal() and int(number) > version for number in found)


def commit_versions(root: str) -> list[int]:
    """Versions that have a commit file, ascending; empty if there is no log."""
    try:
        names = os.listdir(f"{root}/{LOG}")
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(n[:DIGITS]) for n in names if n[DIGITS:] == ".json" and is_version(n))


def is_version(name: str) -> bool:
    """Whether the name of a file of a log begins with a version: 20 digits, of ASCII's."""
    return name[:DIGITS].isdecimal() and name.isascii()


def is_checkpoint(name: str) -> bool:
    """Whether a file of a log is a checkpoint or a part of one; what is being written is none yet (``….parquet#1``)."""
    return name.startswith(".checkpoint.", DIGITS) and name.endswith((".parquet", ".json")) and is_version(name)


def is_beheaded(root: str) -> bool:
    """Whether the log's first commits are gone and no checkpoint stands for them: the table cannot be known.

    Commits of later versions alone would be read as a smaller table, without an error.
    """
    names = os.listdir(f"{root}/{LOG}")
    versions = commit_versions(root)
    if versions and versions[0] == 0:
        return False
    checkpoints = whole_checkpoints(names)
    compacted = any(".compacted." in n and n[:DIGITS] == "0" * DIGITS for n in names)
    if compacted:
        return False
    return not any(not versions or c >= versions[0] - 1 for c in checkpoints)


def has_log(root: str) -> bool:
    """Whether the folder `root` is a Delta table: its log holds a commit or a checkpoint."""
    if os.path.exists(commit_path(root, 0)):  # most logs still have it, and a look costs less than a list
        return True
    try:
        with os.scandir(f"{root}/{LOG}") as entries:
            return any(is_version(e.name) and len(e.name) > DIGITS for e in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # a link to itself is no log; that nobody may look, opening it tells
        return error.errno != errno.ELOOP


def check_sizes(root: str, version: int | None = None, known: int = -1) -> None:
    """Raise ServerError if a file that the log's reader may take in, up to a version, is larger than memory should be.

    Commits up to the `known` version, and those before the newest checkpoint, are not read.
    """
    names = os.listdir(f"{root}/{LOG}")
    last = max(map(int, (n[:DIGITS] for n in names if is_version(n))), default=-1) if version is None else version
    first = max([known, *(c for c in whole_checkpoints(names) if c <= last)])
    for name in names:
        if name == HINT or (
            is_version(name) and name.endswith((".json", ".crc")) and first <= int(name[:DIGITS]) <= last
        ):
            check_size(f"{root}/{LOG}/{name}")


def check_size(path: str) -> None:
    """Raise ServerError for a file of a log, no checkpoint in Parquet, that is larger than such files are."""
    most = _MOST_OF_COMMIT if path.endswith(".json") else _MOST_OF_OTHERS
    with suppress(OSError):  # which whoever reads it tells
        if os.stat(path).st_size > most:
            text = f"The file {path} of a Delta table's log is larger than {most >> 20} MiB."
            raise ServerError("DELTA_LOG_CORRUPT", text)


def actions(root: str, version: int) -> list[dict[str, Any]]:
    """All actions of one commit, without kinds that are null. Raises ServerError if the file is damaged."""
    path = commit_path(root, version)
    check_size(path)
    try:
        with open(path, encoding="utf-8") as file:
            found = [read_json(line) for line in file if line.strip()]
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not all(isinstance(action, dict) for action in found):
        raise _damaged(path)
    return [without_nulls(action) for action in found]


def without_nulls(action: dict[str, Any]) -> dict[str, Any]:
    """An action of JSON without the kinds that it is not: some writers spell them out as null."""
    return {kind: spec for kind, spec in action.items() if spec is not None}


def counted(info: object, name: str) -> int:
    """What a ``commitInfo`` says that its statement has counted; 0 where that is no number: writers may say anything."""
    metrics = info.get("operationMetrics") if isinstance(info, dict) else None
    value = str(metrics.get(name)) if isinstance(metrics, dict) else ""
    return int(value) if value.isascii() and value.isdecimal() and len(value) <= _LONG else 0


def read_json(text: str) -> Any:
    """What JSON says. Raises ValueError for what is none, or holds half a character, and RecursionError."""
    found = json.loads(text)
    if "\\u" in text:
        json.dumps(found, ensure_ascii=False).encode()
    return found


_ODD_RECORDS = re.compile(rb"""numRecords\\*"\s*:\s*\\*"?-?[0-9]+[.eE]""")
_ODD_DIGIT = re.compile(rb"[0-9][.eE]")
_BRACE = re.compile(rb"[{}]")
_NULLS = b"nullCount"


def check_commits(root: str, last: int, first: int | None = None) -> None:
    """Raise ServerError if a commit up to `last` is one that readers read in several ways.

    It counts rows in fractions (deltalake would read 1.5 as 1), or adds and removes the same file. Commits from `first` on,
    else the checkpoint, if it is JSON, and those behind it. UnsupportedError for characters that deltalake takes for others.
    """
    for path in _texts_of(root, last) if first is None else _commits_behind(first - 1, root, last):
        signs = _signs(path)
        if signs.damaged:
            raise _damaged(path)
        if signs.undecided:
            text = f"The commit {path} both adds and removes the file {signs.undecided[:200]}."
            raise ServerError("DELTA_LOG_CORRUPT", text)
        if signs.odd:
            raise ServerError("DELTA_LOG_CORRUPT", f"The commit {path} counts rows of a data file in fractions.")
        if signs.misread:
            text = f"The file {path} of a Delta table's log escapes the character {signs.misread!a}, which is not supported."
            raise UnsupportedError("UNSUPPORTED_TABLE_FEATURE", text)


def escapes_in_statistics(root: str, last: int) -> bool:
    """Whether files of the log from the checkpoint on, up to `last`, may escape characters that deltalake misreads.

    Of statistics in a checkpoint in Parquet nothing is told: `pruning` expects them anywhere.
    """
    return any(_signs(path).escaped for path in _texts_of(root, last))


def may_list_vectors(root: str, last: int) -> bool:
    """Whether a commit behind the checkpoint, up to `last`, may list a deletion vector."""
    return any(_signs(path).vectors for path in _commits_behind(_newest_checkpoint(root, last)[0], root, last))


def removed_paths(root: str, last: int) -> set[str]:
    """What commits behind the checkpoint, up to `last`, remove and spell in one of several ways."""
    commits = _commits_behind(_newest_checkpoint(root, last)[0], root, last)
    return {path for commit in commits for path in _signs(commit).removed}


def _newest_checkpoint(root: str, last: int) -> tuple[int, list[str]]:
    """The version of the newest checkpoint up to `last`, and its files; -1 and none without one."""
    whole = whole_checkpoints(os.listdir(f"{root}/{LOG}"))
    newest = max((version for version in whole if version <= last), default=-1)
    return newest, whole.get(newest, [])


def whole_checkpoints(names: Iterable[str]) -> dict[int, list[str]]:
    """The files of each version's checkpoint among the names of a log's files; a part of one that is not whole is none."""
    found: dict[int, dict[str, list[str]]] = {}
    for name in filter(is_checkpoint, names):
        kind = name[DIGITS:].split(".")
        # of several parts, whose number is told, or of one
        parts = kind[3] if len(kind) == 5 else ""
        found.setdefault(int(name[:DIGITS]), {}).setdefault(parts or name, []).append(name)
    whole = {}
    for version, kinds in found.items():
        for parts, files in sorted(kinds.items()):
            if not parts.isdecimal() or len(files) == int(parts):
                whole[version] = sorted(files)
                break
    return whole


def lost_checkpoint(root: str) -> int | None:
    """The version of the checkpoint that the log's hint names but that is not there; None if there is no such hint."""
    try:
        with open(f"{root}/{LOG}/{HINT}", encoding="utf-8") as file:
            hint = read_json(file.read())
    except (OSError, ValueError, RecursionError):  # which is none to the log's reader either
        return None
    version = hint.get("version") if isinstance(hint, dict) else None
    named = isinstance(version, int) and not isinstance(version, bool)
    return version if named and version not in whole_checkpoints(os.listdir(f"{root}/{LOG}")) else None


def _texts_of(root: str, last: int) -> list[str]:
    """The files in JSON that a version is read from."""
    newest, files = _newest_checkpoint(root, last)
    checkpoint = [f"{root}/{LOG}/{name}" for name in files if name.endswith(".json")]
    return [*checkpoint, *_commits_behind(newest, root, last)]


def _commits_behind(checkpoint: int, root: str, last: int) -> list[str]:
    return [commit_path(root, version) for version in _behind(checkpoint, root, last)]


def _behind(checkpoint: int, root: str, last: int) -> Sequence[int]:
    """Versions behind a checkpoint, those that have no commit among them where they are few: they say nothing."""
    if last - checkpoint <= _FEW:
        return range(checkpoint + 1, last + 1)
    return [version for version in commit_versions(root) if checkpoint < version <= last]


# Halves of characters of every second plane from U+20000 on, with a backslash before them, or how one is spelt in a text within
# a text: deltalake 1.6 adds 0x10000 to such a pair by `|`, and U+20BB7 becomes U+10BB7.
_EVEN_PLANE = re.compile(rb"\\(?:u005[cC])?u[dD][89abAB][4-7c-fC-F][0-9a-fA-F]")
#: What deltalake takes away from characters that it misreads.
PLANE = 0x10000
_UNREAD = ("commitInfo", "stats", "tags")
_ODD_KEY = re.compile(rb'"[^"]*\\u[^"]*"\s*:')


class _Signs(NamedTuple):
    """What the bytes of a commit hold, or may hold."""

    odd: bool = False  # a count of rows in fractions
    vectors: bool = False
    undecided: str = ""  # a file that is added and removed
    removed: tuple[str, ...] = ()  # files that may be spelt in other ways
    escaped: bool = False  # a character that deltalake may take for another
    misread: str = ""  # one that it does, outside of statistics
    damaged: bool = False  # lines that are no actions, which deltalake does not mind


def _signs(path: str) -> _Signs:
    try:
        return _signs_of(path, marker_of(path))
    except FileNotFoundError:
        return _Signs()  # removed, behind a new checkpoint
    except OSError as error:
        raise ServerError("DELTA_LOG_CORRUPT", f"The commit {path} cannot be read: {error.strerror}.") from error


@lru_cache(maxsize=4096)
def _signs_of(path: str, _: tuple[int, ...]) -> _Signs:
    with open(path, "rb") as file:
        data = file.read()
    escaped = b"\\u" in data and bool(_ODD_KEY.search(data))  # any key may be that of which nothing is found
    vectors = escaped or b'"deletionVector"' in data
    odd, removes = _looks_odd(data), escaped or b'"remove"' in data
    try:
        told = list(_told(data)) if odd or removes else []
    except (ValueError, RecursionError):
        return _Signs(vectors=vectors, damaged=True)
    odd = odd and any(_counts_fractions(action.get("add")) for action in told)
    found = _Signs(odd, vectors, escaped=bool(_EVEN_PLANE.search(data)))
    if found.escaped:
        lines = b"\n".join(line for line in data.splitlines() if _EVEN_PLANE.search(line.replace(rb"\\", b"")))
        try:
            found = found._replace(misread=next((c for action in _told(lines) for c in _misread(action)), ""))
        except (ValueError, RecursionError):
            return found._replace(damaged=True)
    if not removes:
        return found
    added, removed = ({file for action in told for file in _files_of(action, kind)} for kind in ("add", "remove"))
    undecided = next((path for path, _ in added & removed), "")
    return found._replace(undecided=undecided, removed=tuple(path for path, _ in removed if not PLAIN.fullmatch(path)))


def is_misread(character: str) -> bool:
    """Whether deltalake takes a character for another one, 0x10000 before it, where a text escapes it."""
    return bool(ord(character) >= 2 * PLANE and not ord(character) & PLANE)


def _misread(action: Any) -> Iterator[str]:
    """Characters that are misread in what counts of an action."""
    left = [action]  # it may be deep
    while left:
        told = left.pop()
        if isinstance(told, str):
            yield from filter(is_misread, told)
        elif isinstance(told, dict):
            left += [each for key, value in told.items() if key not in _UNREAD for each in (key, value)]
        elif isinstance(told, list):
            left += told


def _told(data: bytes) -> Iterator[dict[str, Any]]:
    """The actions of a commit. Raises ValueError or RecursionError for a line that is none."""
    for line in filter(bytes.strip, data.splitlines()):
        action = json.loads(line)
        if not isinstance(action, dict):
            raise ValueError("no action")
        yield action


def _files_of(action: dict[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    """Path and deletion vector of what an action adds or removes."""
    spec = action.get(kind)
    if isinstance(spec, dict) and isinstance(path := spec.get("path"), str):
        yield path, json.dumps(spec.get("deletionVector"), sort_keys=True)


def _looks_odd(data: bytes) -> bool:
    """Whether there may be a count that is no whole number: nearly all commits are told by this alone."""
    if _ODD_RECORDS.search(data) or b"\\u" in data:  # statistics are a text in which a quote, too, may be written so
        return True
    at = data.find(_NULLS)
    while at >= 0:
        depth, end = 0, len(data)
        for brace in _BRACE.finditer(data, at):
            depth += 1 if brace[0] == b"{" else -1
            if depth <= 0:
                end = brace.end()
                break
        told = data[at:end]
        # It ends at a brace in a column's name where quotes do not add up; a quote in a name is behind several backslashes.
        if _ODD_DIGIT.search(told) or told.count(b'"') % 2 == 0 or b"\\\\" in told:
            return True
        at = data.find(_NULLS, end)
    return False


def _counts_fractions(add: object) -> bool:
    """Whether statistics of an ``add`` hold a count that is no whole number."""
    try:
        found = json.loads(add["stats"]) if isinstance(add, dict) and isinstance(add.get("stats"), str) else None
    except (ValueError, RecursionError):
        return False  # told by who reads them
    return isinstance(found, dict) and any(_has_fraction(found.get(name)) for name in ("numRecords", _NULLS.decode()))


def _has_fraction(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_fraction, value.values()))
    try:
        return isinstance(value, (str, float)) and not float(value).is_integer()
    except ValueError:
        return False


def _damaged(path: str) -> ServerError:
    return ServerError("DELTA_LOG_CORRUPT", f"The commit file {path} of a Delta table is damaged.")


def protocol_in_commits(root: str) -> Protocol | None:
    """The newest protocol action found in commit files: names what a table asks for when it cannot be opened."""
    for version in reversed(commit_versions(root)):
        try:
            found = [a["protocol"] for a in actions(root, version) if "protocol" in a]
        except ServerError:
            continue  # the caller already has an error to report; this only makes it more precise
        if found:
            return protocol_of(found[-1])
    return None


def protocol_of(spec: object) -> Protocol | None:
    """A protocol action; None unless it has the protocol's types."""
    if not isinstance(spec, dict):
        return None
    reader, writer = spec.get("minReaderVersion"), spec.get("minWriterVersion")
    features = [spec.get("readerFeatures") or [], spec.get("writerFeatures") or []]
    if not isinstance(reader, int) or not isinstance(writer, int):
        return None
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in features):
        return None
    return Protocol(reader, writer, *map(frozenset, features))


def _in_commit_ms(root: str, version: int) -> int:
    # The protocol puts commitInfo with inCommitTimestamp first in the file.
    for action in actions(root, version):
        info = action.get("commitInfo")
        moment = info.get("inCommitTimestamp") if isinstance(info, dict) else None
        if isinstance(moment, int) and not isinstance(moment, bool) and abs(moment) <= LAST_MS:
            return moment
    raise ServerError("DELTA_LOG_CORRUPT", f"The commit {commit_path(root, version)} has no inCommitTimestamp.")


def _in_commit_from(root: str, properties: Mapping[str, str]) -> int | None:
    """The first version with an in-commit timestamp; None where commits have none."""
    if properties.get(IN_COMMIT, "").lower() != "true":
        return None
    text = properties.get(IN_COMMIT_FROM, "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONG):
        raise ServerError("DELTA_LOG_CORRUPT", f"The Delta table {root} has {text[:40]!r} as {IN_COMMIT_FROM}.")
    return int(text)


def commit_times(root: str, versions: list[int], properties: Mapping[str, str]) -> list[int]:
    """Commit times in epoch milliseconds, ascending: in-commit timestamps where enabled, else file times made monotonic."""
    in_commit_from = _in_commit_from(root, properties)
    times: list[int] = []
    for version in versions:
        if in_commit_from is not None and version >= in_commit_from:
            times.append(_in_commit_ms(root, version))
            continue
        moment = os.stat(commit_path(root, version)).st_mtime_ns // 1_000_000
        times.append(max(moment, times[-1] + 1) if times else moment)
    return times


def moments_sought(root: str, versions: list[int], properties: Mapping[str, str]) -> list[int]:
    """Commit times as a version is found by: of one whose file is younger than the first in-commit timestamp, that one.

    A copied log has younger files. What is sought from that timestamp on is among the versions that have one, as for Delta.
    Raises ServerError DELTA_LOG_CORRUPT where these do not increase: which version a moment has, readers would not agree on.
    """
    times = commit_times(root, versions, properties)
    in_commit_from = _in_commit_from(root, properties)
    first = len(versions) if in_commit_from is None else bisect_left(versions, in_commit_from)
    for at in range(first + 1, len(times)):
        if times[at] <= times[at - 1]:
            path = commit_path(root, versions[at])
            raise ServerError(
                "DELTA_LOG_CORRUPT", f"The inCommitTimestamp of {path} is not behind that of the commit before."
            )
    return times if first == len(times) else [*(min(time, times[first]) for time in times[:first]), *times[first:]]


def version_at(root: str, timestamp_us: int, properties: Mapping[str, str]) -> int:
    """The version that was current at `timestamp_us` (epoch microseconds).

    Raises UserError before the first and after the last commit, as Spark does.
    """
    versions = commit_versions(root)
    if not versions:
        raise UserError("DELTA_NO_COMMITS_FOUND", f"The Delta table {root} has no commit files to travel to.")
    times = moments_sought(root, versions, properties)
    if timestamp_us < times[0] * 1000:
        raise _none_at(
            "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", root, timestamp_us, "before the earliest", times[0]
        )
    if timestamp_us > times[-1] * 1000:
        raise _none_at("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", root, timestamp_us, "after the latest", times[-1])
    return versions[bisect_right(times, timestamp_us // 1000) - 1]


def _show(timestamp_us: int) -> str:
    seconds, micros = divmod(timestamp_us, 1_000_000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{micros:06d}"
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_us} microseconds since 1970-01-01"


def _none_at(condition: str, root: str, timestamp_us: int, side: str, made: int) -> UserError:
    text = (
        f"The timestamp {_show(timestamp_us)} (UTC) given for the Delta table {root} is {side} version, which was made at "
        f"{_show(made * 1000)} (UTC)."
    )
    return UserError(condition, text)
