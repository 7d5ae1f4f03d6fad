"""Protocol features of Delta tables: what each asks of readers and writers, and what is done about it here.

One row per feature of the protocol. A table that asks its readers for a feature without a row here, or with `Read.REFUSE`,
is refused by name; so is a write to a table with a feature that whoever writes does not keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from gateway.errors import UnsupportedError


class Read(StrEnum):
    """How a table with a feature is read: by DataFusion's Parquet scan, by our own dataset, or not at all."""

    NATIVE = "native"
    DATASET = "dataset"
    REFUSE = "refuse"


class Kept(IntEnum):
    """Who keeps a feature when a table is written: nobody has to, who writes files and commits, the statement; nobody can.

    A statement keeps it by the rows that it writes, or by what it says of them.
    """

    ALWAYS = 0
    BY_WRITER = 1
    BY_STATEMENT = 2
    NEVER = 3


@dataclass(frozen=True, slots=True)
class Feature:
    """A table feature. `reader` is the first legacy reader version that includes it (None: only by name, or none needed)."""

    name: str
    read: Read
    kept: Kept = Kept.NEVER
    reader: int | None = None
    writer: int | None = None


# Names from the protocol's "Valid Feature Names in Table Features" and from the RFCs in use.
FEATURES: tuple[Feature, ...] = (
    Feature("appendOnly", Read.NATIVE, Kept.ALWAYS, writer=2),
    Feature("invariants", Read.NATIVE, Kept.ALWAYS, writer=2),  # those of columns are looked for there
    Feature("checkConstraints", Read.NATIVE, Kept.BY_STATEMENT, writer=3),
    # Readers of the feed take what is appended from the files themselves; of other changes statements tell.
    Feature("changeDataFeed", Read.NATIVE, Kept.BY_STATEMENT, writer=4),
    Feature("generatedColumns", Read.NATIVE, Kept.BY_STATEMENT, writer=4),
    Feature("identityColumns", Read.NATIVE, Kept.BY_STATEMENT, writer=6),
    Feature("columnMapping", Read.NATIVE, Kept.BY_WRITER, reader=2, writer=5),
    Feature("deletionVectors", Read.NATIVE, Kept.BY_WRITER),
    Feature("timestampNtz", Read.NATIVE, Kept.ALWAYS),
    Feature("v2Checkpoint", Read.NATIVE, Kept.BY_WRITER),
    Feature("vacuumProtocolCheck", Read.NATIVE, Kept.ALWAYS),
    Feature("typeWidening", Read.NATIVE, Kept.BY_WRITER),  # files are written in the types that columns have by now
    Feature("typeWidening-preview", Read.NATIVE),
    # deltalake names it on tables without any such column; those columns themselves are refused by their type.
    Feature("variantType", Read.NATIVE, Kept.ALWAYS),
    Feature("variantType-preview", Read.NATIVE),
    Feature("variantShredding-preview", Read.NATIVE),
    Feature("variantShredding", Read.NATIVE),
    Feature("catalogManaged", Read.REFUSE),
    Feature("catalogOwned", Read.REFUSE),
    Feature("catalogOwned-preview", Read.REFUSE),
    Feature("coordinatedCommits-preview", Read.NATIVE),
    Feature("coordinatedCommits", Read.NATIVE),
    Feature("rowTracking", Read.NATIVE, Kept.BY_WRITER),
    Feature("domainMetadata", Read.NATIVE, Kept.BY_WRITER),
    Feature("clustering", Read.NATIVE, Kept.ALWAYS),  # files that are not clustered yet say so themselves
    Feature("liquid", Read.NATIVE),
    Feature("inCommitTimestamp", Read.NATIVE, Kept.BY_WRITER),
    Feature("icebergCompatV1", Read.NATIVE),
    Feature("icebergCompatV2", Read.NATIVE),
    Feature("icebergCompatV3", Read.NATIVE),
    Feature("icebergWriterCompatV1", Read.NATIVE),
    Feature("icebergWriterCompatV3", Read.NATIVE),
    # That columns may have defaults; those that do say so in their metadata.
    Feature("allowColumnDefaults", Read.NATIVE, Kept.ALWAYS),
    Feature("materializePartitionColumns", Read.NATIVE),
    # No log is shortened here, and checkpoints are made of the newest version alone.
    Feature("checkpointProtection", Read.NATIVE, Kept.ALWAYS),
    Feature("collations", Read.NATIVE),
    Feature("collations-preview", Read.NATIVE),
    Feature("redirectReaderWriter-preview", Read.REFUSE),
    Feature("redirectWriterOnly-preview", Read.NATIVE),
    Feature("geospatial", Read.REFUSE),
)

BY_NAME: Mapping[str, Feature] = {f.name: f for f in FEATURES}
MAX_READER, MAX_WRITER = 3, 7


@dataclass(frozen=True, slots=True)
class Protocol:
    """The protocol action of a snapshot."""

    reader: int
    writer: int
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()

    def has(self, feature: str) -> bool:
        """Whether the table uses `feature`, by name or through a legacy version."""
        if feature in self.reader_features or feature in self.writer_features:
            return True
        row = BY_NAME[feature]
        by_reader = row.reader is not None and row.reader <= self.reader < MAX_READER
        by_writer = row.writer is not None and row.writer <= self.writer < MAX_WRITER
        return by_reader or by_writer

    @property
    def features(self) -> list[str]:
        """All features that the table has, by name or through a legacy version, in order."""
        return sorted(self.reader_features | self.writer_features | {name for name in BY_NAME if self.has(name)})

    def merged(self, other: Protocol) -> Protocol:
        """The protocol with the features of both."""
        if self == other:
            return self
        readers, writers = self.reader_features | other.reader_features, self.writer_features | other.writer_features
        reader, writer = max(self.reader, other.reader), max(self.writer, other.writer)
        if writer == MAX_WRITER:
            for one in (self, other):
                writers |= {row.name for row in FEATURES if one.has(row.name)}
        if reader == MAX_READER:
            for one in (self, other):
                readers |= {row.name for row in FEATURES if row.reader is not None and one.has(row.name)}
        return Protocol(reader, writer, readers, writers)


def coordinated(protocol: Protocol) -> list[str]:
    """The features by which the newest commits may lie beside the log; only writers must know them."""
    return [name for name in ("coordinatedCommits-preview", "coordinatedCommits") if protocol.has(name)]


def refused(features: Iterable[str], where: str, action: str) -> UnsupportedError:
    """The error that names `features` of the table at `where`; `action` is ``read`` or ``written``."""
    names = ", ".join(sorted(features))
    return UnsupportedError(
        "UNSUPPORTED_TABLE_FEATURE", f"The Delta table {where} cannot be {action}: it uses {names}."
    )


def check_readable(protocol: Protocol, where: str) -> None:
    """Raise UnsupportedError if readers must know something that is not known here."""
    if protocol.reader > MAX_READER:
        raise refused([f"reader version {protocol.reader}"], where, "read")
    bad = [name for name in protocol.reader_features if name not in BY_NAME or BY_NAME[name].read is Read.REFUSE]
    bad += [name for name in protocol.writer_features if name in BY_NAME and BY_NAME[name].read is Read.REFUSE]
    if bad:
        raise refused(set(bad), where, "read")


def check_unshredded(protocol: Protocol, where: str) -> None:
    """Raise UnsupportedError if files may hold parts of a VARIANT as columns of their own."""
    used = protocol.reader_features | protocol.writer_features
    shredded = [name for name in used if name.startswith("variantShredding")]
    if shredded:
        raise refused(shredded, where, "read")


def check_writable(protocol: Protocol, where: str, kept: Kept = Kept.ALWAYS) -> None:
    """Raise UnsupportedError unless every feature of the table is one that is kept, or that `kept` says who keeps it."""
    if protocol.writer > MAX_WRITER:
        raise refused([f"writer version {protocol.writer}"], where, "written")
    if protocol.writer == MAX_WRITER:
        used = protocol.writer_features | protocol.reader_features
        bad = {name for name in used if name not in BY_NAME or BY_NAME[name].kept > kept}
    else:
        # Legacy versions switch features on by version; those that a schema or property must ask for are checked there.
        bad = {"columnMapping"} if protocol.reader >= 2 and BY_NAME["columnMapping"].kept > kept else set()
    if bad:
        raise refused(bad, where, "written")
