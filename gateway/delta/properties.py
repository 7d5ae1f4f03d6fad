"""Properties that a table may be given: what values they take, and which feature of the protocol each asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from gateway.delta import log
from gateway.delta.datafiles import TARGET_SIZE, VECTORS, size_of
from gateway.delta.expressions import CONSTRAINT
from gateway.delta.features import BY_NAME, FEATURES, Kept
from gateway.delta.indexed import NAMES, NUMBER, names_of
from gateway.delta.schema import MAPPING
from gateway.errors import UnsupportedError, UserError

FEATURE = "delta.feature."
#: The property of tables whose every change of a row is to be found in files of its own.
FEED = "delta.enableChangeDataFeed"
#: What rows of such files tell of themselves.
FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
ROW_TRACKING = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
#: The properties that name the columns of files with numbers of rows and their versions.
ROW_ID, ROW_VERSION = (f"delta.rowTracking.materializedRow{x}ColumnName" for x in ("Id", "CommitVersion"))
WIDENING = "delta.enableTypeWidening"
MOST_ID = "delta.columnMapping.maxColumnId"
_ASKED = ("supported", "enabled")
_VERSIONS = {"delta.minreaderversion": ("1", "2"), "delta.minwriterversion": ("2", "3", "4", "5")}


_MOST_DIGITS = 18


def _is_boolean(text: str) -> bool:
    return text.lower() in ("true", "false")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) > 0


def _is_number_of_columns(text: str) -> bool:
    return text in ("-1", "0") or _is_count(text)


def _is_interval(text: str) -> bool:
    count, _, unit = text.strip().lower().removeprefix("interval ").strip().partition(" ")
    return count.isascii() and count.isdecimal() and unit.strip().removesuffix("s") in _UNITS


_UNITS = frozenset({"second", "minute", "hour", "day", "week"})


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda text: text in values


@dataclass(frozen=True, slots=True)
class Property:
    """What values a property takes; the feature that a value other than "false", "none" and `plain` asks for."""

    takes: Callable[[str], bool]
    feature: str = ""
    plain: str = "false"


#: How long a log keeps what applications say of themselves there: also which files COPY INTO has loaded.
FORGETTING = "delta.setTransactionRetentionDuration"
_PROPERTIES: Mapping[str, Property] = {
    "delta.appendOnly": Property(_is_boolean),
    "delta.autoOptimize": Property(_is_boolean),
    "delta.autoOptimize.autoCompact": Property(_is_boolean),
    "delta.autoOptimize.optimizeWrite": Property(_is_boolean),
    "delta.checkpoint.writeStatsAsJson": Property(_is_boolean),
    "delta.checkpoint.writeStatsAsStruct": Property(_is_boolean),
    "delta.checkpointInterval": Property(_is_count),
    "delta.checkpointPolicy": Property(_one_of("classic", "v2"), "v2Checkpoint", "classic"),
    MAPPING: Property(lambda text: text.lower() in ("none", "name", "id"), "columnMapping", "none"),
    NUMBER: Property(_is_number_of_columns),
    NAMES: Property(lambda text: names_of(text) is not None),
    "delta.deletedFileRetentionDuration": Property(_is_interval),
    FEED: Property(_is_boolean, "changeDataFeed"),
    VECTORS: Property(_is_boolean, "deletionVectors"),
    "delta.enableExpiredLogCleanup": Property(_is_boolean),
    ROW_TRACKING: Property(_is_boolean, "rowTracking"),
    log.IN_COMMIT: Property(_is_boolean, "inCommitTimestamp"),
    WIDENING: Property(_is_boolean, "typeWidening"),
    "delta.isolationLevel": Property(_one_of("Serializable")),
    "delta.logRetentionDuration": Property(_is_interval),
    "delta.randomizeFilePrefixes": Property(_one_of("false")),
    "delta.sampleRetentionDuration": Property(_is_interval),
    FORGETTING: Property(_is_interval),
    TARGET_SIZE: Property(lambda text: size_of(text) is not None),
    "delta.tuneFileSizesForRewrites": Property(_is_boolean),
}
_SPELT = {key.lower(): key for key in _PROPERTIES}
# Features that are asked for in another way, or whose names in files a writer has to make up.
_NOT_BY_NAME = {"clustering": "CLUSTER BY", "rowTracking": "delta.enableRowTracking"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Properties as a table keeps them, and the features that they ask for."""

    properties: dict[str, str]
    features: frozenset[str]


def asked(properties: Mapping[str, str]) -> Asked:
    """What properties ask of a table, those of Delta as it spells them.

    Raises UnsupportedError for what is not kept, and for values that Delta might not take or might take otherwise.
    """
    found: dict[str, str] = {}
    features: set[str] = set()
    for key, value in properties.items():
        name = _SPELT.get(key.lower())
        if key.lower().startswith(FEATURE):
            features.add(_feature(key, value))
        elif key.lower().startswith(CONSTRAINT):
            found[CONSTRAINT + key[len(CONSTRAINT) :]] = value
            features.add("checkConstraints")
        elif name is not None:
            found[name] = value
            features |= _of_value(name, value)
        elif key.lower() in _VERSIONS:
            _check_version(key, value)
        else:
            check_known(key)
            found[key] = value
    versions = {key.lower(): int(value) for key, value in properties.items() if key.lower() in _VERSIONS}
    return Asked(found, frozenset(features | _of_versions(versions, features)))


def check_feed_columns(names: Iterable[str], properties: Mapping[str, str]) -> None:
    """Raise UnsupportedError for a table with a feed of its changes that has columns called as the feed's are."""
    taken = [name for name in names if name.lower() in FEED_COLUMNS]
    if taken and properties.get(FEED, "").lower() == "true":
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"A column {taken[0]} in a table with {FEED}.")


def check_may_feed(names: Iterable[str], properties: Mapping[str, str]) -> None:
    """Raise DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS if a table with such columns is to be given a feed of its changes."""
    taken = [name for name in names if name.lower() in FEED_COLUMNS]
    if taken and properties.get(FEED, "").lower() == "true":
        text = (
            "Unable to enable Change Data Capture on the table. The table already contains reserved columns "
            f"[{', '.join(taken)}] that will be used internally as metadata for the table's Change Data Feed. To enable Change "
            "Data Feed on the table rename/drop these columns."
        )
        raise UserError("DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", text)


def check_known(key: str) -> None:
    """Raise for a property of Delta's that a table cannot be given."""
    if key.lower().startswith("delta.") and key.lower() not in _SPELT:
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"The table property {key} is not supported.")


def _check_version(key: str, value: str) -> None:
    if value not in _VERSIONS[key.lower()]:
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"The value {value!r} of the table property {key}.")


def _of_versions(versions: Mapping[str, int], features: Collection[str]) -> set[str]:
    """The features of legacy versions that are asked for; those of readers only where their version is, too."""
    writer, reader = versions.get("delta.minwriterversion", 0), versions.get("delta.minreaderversion", 1)
    rows = (row for row in FEATURES if row.writer is not None and row.writer <= writer)
    return {row.name for row in rows if row.reader is None or row.reader <= reader or row.name in features}


def spelt(key: str) -> str:
    """A property's name as Delta spells it."""
    return _SPELT.get(key.lower(), key)


def _of_value(name: str, value: str) -> set[str]:
    row = _PROPERTIES[name]
    if not row.takes(value):
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"The value {value!r} of the table property {name}.")
    if not row.feature or value.lower() == row.plain:
        return set()
    return {_kept(row.feature, f"The table property {name}")}


def _feature(key: str, value: str) -> str:
    wanted = key[len(FEATURE) :].lower()
    name = next((f for f in BY_NAME if f.lower() == wanted), None)
    if name is None or value.lower() not in _ASKED or name in _NOT_BY_NAME:
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"The table property {key} = {value!r} is not supported.")
    return _kept(name, f"The table property {key}")


def _kept(feature: str, what: str) -> str:
    if BY_NAME[feature].kept is Kept.NEVER:
        raise UnsupportedError("UNSUPPORTED_FEATURE", f"{what} is not supported.")
    return feature
