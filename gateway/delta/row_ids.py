"""Row tracking: the number that each row keeps for as long as it lives, and the version that has changed it last.

A file says from which number on its rows are counted, and the version that has added it. Rows that are written anew take theirs
along in two columns of their own, named by the table's properties; of new rows these hold NULL. Up to which number there are
rows is a domain of the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.delta import log
from gateway.delta.commit import Action, compact_json
from gateway.delta.dataset import DataFile, read_file
from gateway.delta.features import Protocol, refused
from gateway.delta.feed import COPIED
from gateway.delta.logged import specs_of, state_of
from gateway.delta.properties import ROW_ID, ROW_TRACKING, ROW_VERSION, SUSPENDED
from gateway.delta.replay import Fields, State, check_file, check_other
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.errors import ServerError, UserError
from gateway.sqltypes import BIGINT

DOMAIN = "delta.rowTracking"
#: What a commit says that has kept the numbers of rows.
PRESERVED = {"tags": {"delta.rowTracking.preserved": "true"}}
#: What a file's action says of the numbers of its rows.
NUMBERS = ("baseRowId", "defaultRowCommitVersion")
_MARK = "rowIdHighWaterMark"
_NONE = -1  # no file: a row that is new
_MOST = 2**62  # numbers of rows: nobody comes near, and none may wrap around
_KEEPING = frozenset({"UPDATE", "DELETE", "MERGE", "OPTIMIZE"})
Numbers = npt.NDArray[np.int64]
Known = tuple[Numbers, npt.NDArray[np.bool_]]


def tracks_rows(snapshot: Snapshot) -> bool:
    """Whether rows of a table keep their numbers when they are written anew."""
    return snapshot.protocol.has("rowTracking") and snapshot.properties.get(ROW_TRACKING, "").lower() == "true"


def hidden_columns(snapshot: Snapshot) -> tuple[Column, ...]:
    """The columns of files that hold numbers and versions of rows, if the table tracks its rows."""
    if not tracks_rows(snapshot):
        return ()
    names = [snapshot.properties.get(key) for key in (ROW_ID, ROW_VERSION)]
    if None in names or snapshot.mapping == "id":
        raise refused([ROW_TRACKING], snapshot.root, "changed")
    return tuple(Column(str(name), str(name), None, BIGINT) for name in names)


def told(operation: str, snapshot: Snapshot) -> Mapping[str, Any]:
    """What the commit of an operation says of the numbers of rows."""
    return PRESERVED if operation in _KEEPING and tracks_rows(snapshot) else {}


@dataclass(slots=True)
class Tracker:
    """The numbers and versions of a table's rows, by their files and places in them."""

    snapshot: Snapshot
    columns: tuple[Column, ...]
    _specs: list[Fields] = field(init=False)
    _held: dict[int, tuple[Known, Known]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._specs = specs_of(self.snapshot) if self.columns else []

    def of(self, kinds: Numbers, files: Numbers, places: Numbers) -> list[pa.Array]:
        """Number and version of each row: none of a new one, and no version of one that changes now."""
        ids, versions = np.zeros(len(files), np.int64), np.zeros(len(files), np.int64)
        for file in np.unique(files[files != _NONE]).tolist():
            at = files == file
            ids[at], versions[at] = self._of_file(file, places[at])
        changed = kinds != COPIED
        return [pa.array(ids, mask=files == _NONE), pa.array(versions, mask=changed | (files == _NONE))]

    def _of_file(self, file: int, places: Numbers) -> tuple[Numbers, Numbers]:
        first, version = checked_numbers(self.snapshot, self._specs[file], len(places))
        (ids, with_id), (versions, with_version) = self._known(file)
        counted = first + places
        return (
            np.where(with_id[places], ids[places], counted),
            np.where(with_version[places], versions[places], version),
        )

    def _known(self, file: int) -> tuple[Known, Known]:
        """What the file itself says."""
        if file not in self._held:
            files = self.snapshot.files
            schema = pa.schema([pa.field(c.name, pa.int64()) for c in self.columns])
            read = DataFile(files.paths[file], int(files.sizes[file]), {})
            batches = list(read_file(read, self.columns, schema, self.snapshot.within))
            table = pa.Table.from_batches(batches, schema)
            first, second = (
                (
                    column.fill_null(0).to_numpy().astype(np.int64),
                    column.is_valid().to_numpy().astype(bool),
                )
                for column in table.columns
            )
            self._held[file] = (first, second)
        return self._held[file]


def checked_numbers(snapshot: Snapshot, spec: Fields, rows: int) -> tuple[int, int]:
    """The number of a file's first row and the version of all. Raises ServerError DELTA_LOG_CORRUPT where they are none."""
    first, version = spec.get("baseRowId"), spec.get("defaultRowCommitVersion")
    if first is None or version is None or not 0 <= first <= _MOST - rows:
        text = f"The log of the Delta table {snapshot.root} does not number the rows of {spec['path']}."
        raise ServerError("DELTA_LOG_CORRUPT", text)
    return first, version


# ---- commits


def numbered(seen: Snapshot, actions: Sequence[Action], protocol: Protocol | None = None) -> Sequence[Action]:
    """The actions of the commit behind a version, their new files numbered from where that version's end.

    `protocol` is the table's by that commit, if it is another.
    """
    if not (protocol or seen.protocol).has("rowTracking") or _suspended(seen, actions):
        return actions
    mark = _high_water(seen)
    return with_numbers(actions, mark, seen.version + 1)


def numbered_again(
    seen: Snapshot, now: State, then: State, actions: Sequence[Action], protocol: Protocol
) -> Sequence[Action]:
    """As `numbered`, of a commit that gives a table its files of an earlier version, with the numbers that they had then.

    Files that stayed lose them with the feature and may have got others since, and the domain goes with it: none is given
    that a row of either version has had.
    """
    if not protocol.has("rowTracking") or _suspended(seen, actions):
        return actions
    most = max(map(_last_number, then.files.values()), default=_NONE)
    tracked = (then.metadata.get("configuration") or {}).get(ROW_TRACKING, "").lower() == "true"

    def differs(old: Fields, new: Fields) -> bool:
        first = new.get("baseRowId")
        if old.get("baseRowId") is None:  # as it stays, unless a number would be there twice, or is missed
            return tracked if first is None else int(first) <= most
        return any(old.get(name) != new.get(name) for name in NUMBERS)

    again = [
        {"add": {**spec, "dataChange": False}}
        for key, spec in then.files.items()
        if key in now.files and differs(spec, now.files[key])
    ]
    mark = max(_marked(seen, now), _marked(seen, then), most)
    gone = now.domains.get(DOMAIN, {}).get("removed", True)
    return with_numbers([*actions, *again], mark, seen.version + 1, _NONE if gone else _marked(seen, now))


def _marked(seen: Snapshot, state: State) -> int:
    domain = state.domains.get(DOMAIN)
    return _NONE if domain is None else _mark_of(seen, domain)


def _last_number(spec: Fields) -> int:
    first = spec.get("baseRowId")
    return _NONE if first is None else int(first) + (_row_count(spec) or 0) - 1


def _row_count(spec: Fields) -> int | None:
    """How many rows a file says that it has, deleted ones among them."""
    try:
        rows = json.loads(spec.get("stats") or "{}").get("numRecords")
    except (ValueError, AttributeError):
        return None
    return rows if type(rows) is int else None


def _suspended(seen: Snapshot, actions: Sequence[Action]) -> bool:
    """Whether the table numbers no rows by a commit, as while the feature is being dropped."""
    given = [action["metaData"].get("configuration", {}) for action in actions if "metaData" in action]
    properties: Mapping[str, str] = given[-1] if given else seen.properties
    return properties.get(SUSPENDED, "").lower() == "true"


def with_numbers(actions: Sequence[Action], mark: int, version: int, told: int | None = None) -> list[Action]:
    """Actions whose new files are numbered behind `mark`, and the domain that tells how far that goes.

    `told` is what the table's domain says, if it is not `mark`. Raises UserError DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS.
    """
    made: list[Action] = []
    last = mark
    for action in actions:
        add = action.get("add")
        if add is None or "baseRowId" in add:
            made.append(action)
            continue
        rows = _row_count(add)
        if rows is None:
            text = f"The rows of {add['path']} cannot be numbered: its statistics do not say how many there are."
            raise UserError("DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS", text)
        made.append({"add": {**add, "baseRowId": last + 1, "defaultRowCommitVersion": version}})
        last += rows
        if last > _MOST:
            raise UserError("ARITHMETIC_OVERFLOW", "The table has no number left for its rows.")
    if last != (mark if told is None else told):
        made.append(_domain(last))
    return made


def _domain(mark: int) -> Action:
    configuration = compact_json({_MARK: mark, "domainName": DOMAIN})
    return {"domainMetadata": {"domain": DOMAIN, "configuration": configuration, "removed": False}}


def _high_water(seen: Snapshot) -> int:
    """The last number of a row at a version; -1 for none."""
    for version in range(seen.version, max(seen.version - 10, -1), -1):  # it nearly always is in one of the last
        try:
            actions = log.actions(seen.root, version)
        except FileNotFoundError:
            break
        for action in actions:
            found = action.get("domainMetadata")
            if "domainMetadata" in action:
                check_other(seen.root, "domainMetadata", found)
            if found is not None and found["domain"] == DOMAIN:
                return _checked(seen, _mark_of(seen, found), actions)
    found = state_of(seen).domains.get(DOMAIN)
    return _NONE if found is None or found.get("removed") else _mark_of(seen, found)


def _mark_of(seen: Snapshot, domain: Fields) -> int:
    try:
        mark = json.loads(domain["configuration"])[_MARK]
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(seen) from error
    if type(mark) is not int or not _NONE <= mark <= _MOST:
        raise _damaged(seen)
    return mark


def _checked(seen: Snapshot, mark: int, actions: Sequence[Action]) -> int:
    """The number, unless files of the commit that tells it go further: it would be given again."""
    for add in (action["add"] for action in actions if "add" in action):
        check_file(seen.root, add)
        if (add.get("baseRowId") or 0) + (_row_count(add) or 0) - 1 > mark:
            raise _damaged(seen)
    return mark


def _damaged(seen: Snapshot) -> ServerError:
    return ServerError("DELTA_LOG_CORRUPT", f"The log of {seen.root} has a damaged domain {DOMAIN}.")
