"""Features that a new table has by its properties: deletion vectors, in-commit timestamps, column mapping."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from gateway.delta import log
from gateway.delta.features import Protocol
from gateway.delta.schema import FIELD_ID, PHYSICAL
from gateway.delta.table import MAPPING

_MOST_ID = "delta.columnMapping.maxColumnId"
_VECTORS = "delta.enableDeletionVectors"
#: Properties that ask for a feature, and the values that a new table may be given.
FEATURE_PROPERTIES: Mapping[str, tuple[str, ...]] = {
    _VECTORS: ("true", "false"),
    log.IN_COMMIT: ("true", "false"),
    MAPPING: ("name", "id", "none"),
}


def is_mapped(properties: Mapping[str, str]) -> bool:
    """Whether columns have other names in files."""
    return properties.get(MAPPING, "none") != "none"


# Features of writers that a table may be made with by a property.
_FEATURES = {f"delta.feature.{name.lower()}": name for name in ("allowColumnDefaults", "appendOnly", "invariants")}
_PLAIN = Protocol(1, 2)


def protocol_for(
    properties: Mapping[str, str], local_timestamps: bool, features: frozenset[str] = frozenset()
) -> Protocol:
    """What a new table asks of readers and writers; `features` are others that it is to have, of writers alone."""
    readers = {"timestampNtz"} if local_timestamps else set()
    if properties.get(_VECTORS) == "true":
        readers.add("deletionVectors")
    mapping = {"columnMapping"} if is_mapped(properties) else set()
    stamps = {"inCommitTimestamp"} if properties.get(log.IN_COMMIT) == "true" else set()
    others = {name for name in features if not _PLAIN.has(name)}
    writers = frozenset(readers | mapping | stamps | others)
    if not writers:
        return _PLAIN
    writers |= {"appendOnly", "invariants"}
    if readers:
        return Protocol(3, 7, frozenset(readers | mapping), writers)
    return Protocol(2 if mapping else 1, 7, frozenset(), writers)


def mapped_schema(schema: dict[str, Any], properties: dict[str, str]) -> None:
    """Give each field of a schema's JSON an id and a name in files, and let the properties tell the last id."""
    last = _number(schema, 0)
    properties[_MOST_ID] = str(last)


def with_last_id(metadata: dict[str, Any], properties: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of an earlier version, but that no column's id is given again."""
    configuration = metadata.get("configuration", {})
    last = max(
        (int(of[_MOST_ID]) for of in (configuration, properties) if of.get(_MOST_ID, "").isdecimal()), default=None
    )
    if last is None or not is_mapped(configuration):
        return metadata
    return {**metadata, "configuration": {**configuration, _MOST_ID: str(last)}}


def _number(spec: Any, last: int) -> int:
    if not isinstance(spec, dict):
        return last
    for field in spec.get("fields", ()):
        last += 1
        field["metadata"] |= {FIELD_ID: last, PHYSICAL: f"col-{uuid.uuid4()}"}
        last = _number(field["type"], last)
    for inner in ("elementType", "keyType", "valueType"):
        last = _number(spec.get(inner), last)
    return last


def asked_features(properties: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Properties without those that ask for features, and the features: those that need nothing of writers."""
    plain: dict[str, str] = {}
    features = set()
    for key, value in properties.items():
        name = _FEATURES.get(key.lower())
        if name is None or value.lower() not in ("enabled", "supported"):
            plain[key] = value
        else:
            features.add(name)
    return plain, frozenset(features)


def with_features(old: Protocol, local_timestamps: bool, features: frozenset[str]) -> Protocol:
    """`old` with what columns and `features` need; its legacy versions are then spelt out."""
    ntz = frozenset({"timestampNtz"} if local_timestamps else ())
    if all(old.has(name) for name in ntz | features):
        return old
    legacy = frozenset({"appendOnly", "invariants"}) if old.writer < 7 else old.writer_features
    reader = max(old.reader, 3 if ntz else 1)
    return Protocol(reader, 7, old.reader_features | ntz, legacy | ntz | features)
