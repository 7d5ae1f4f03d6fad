"""New tables: what they ask of readers and writers, and their metadata, by columns, properties and the table in their place."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway import sqltypes as t
from gateway.delta import commit, log
from gateway.delta.datafiles import VECTORS
from gateway.delta.expressions import DEFAULT, GENERATED
from gateway.delta.features import BY_NAME, FEATURES, MAX_WRITER, Protocol
from gateway.delta.identity import START
from gateway.delta.logged import state_of
from gateway.delta.properties import MOST_ID, ROW_ID, ROW_TRACKING, ROW_VERSION, asked
from gateway.delta.replay import damage_told
from gateway.delta.schema import CHAR_VARCHAR, FIELD_ID, MAPPING, PHYSICAL, Column
from gateway.delta.table import Snapshot
from gateway.errors import ServerError, UserError, unsupported

#: The domain that says by which columns a table is clustered.
CLUSTERING = "delta.clustering"
# Features of readers, beside column mapping, that go by name alone.
_OF_READERS = frozenset(
    {"deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck", "variantType"}
)
_ALWAYS = frozenset({"appendOnly", "invariants"})
_NESTED_IDS = "delta.columnMapping.nested.ids"  # of elements, keys and values below a column: some writers give them
_ID_DIGITS, _LAST_ID = 10, 2**31 - 1  # of field ids in Parquet
_WITH = {"clustering": "domainMetadata", "rowTracking": "domainMetadata"}


@dataclass(frozen=True, slots=True)
class Definition:
    """A table as it is to be, but for its rows. `metadata` is of columns by their names, beside comments.

    `of_old` says that it takes the place of a table which has to be there; `table_id` is the new one's.
    """

    schema: t.StructType
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[tuple[str, ...], ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    external: bool = False
    of_old: bool = False
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def features(self, old: Protocol | None = None) -> frozenset[str]:
        """The features that it needs, beside those of the table that it replaces.

        Raises UserError WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED; what `properties.asked` does.
        """
        found = set(asked(self.properties).features)
        if any(DEFAULT in of for of in self.metadata.values()):
            check_defaults(found if old is None else found | set(old.features), "CREATE TABLE")
        if any(GENERATED in of for of in self.metadata.values()):
            found.add("generatedColumns")
        if any(START in of for of in self.metadata.values()):
            found.add("identityColumns")
        if holds(self.schema, t.TIMESTAMP_NTZ):
            found.add("timestampNtz")
        if holds(self.schema, t.VARIANT):
            found.add("variantType")
        if self.cluster_by:
            found.add("clustering")
        return frozenset(found)


def check_defaults(features: Collection[str], command: str) -> None:
    """Raise unless a table with `features` may have columns with defaults."""
    if "allowColumnDefaults" not in features:
        text = (
            f"Failed to execute {command} command because it assigned a column DEFAULT value, but the corresponding table "
            "feature was not enabled. Please retry the command again after executing ALTER TABLE tableName SET "
            "TBLPROPERTIES('delta.feature.allowColumnDefaults' = 'supported')."
        )
        raise UserError("WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED", text)


def is_mapped(properties: Mapping[str, str]) -> bool:
    """Whether columns have other names in files."""
    return properties.get(MAPPING, "none").lower() != "none"


# ---- protocol


def protocol_of(features: Iterable[str]) -> Protocol:
    """The protocol of a table with some features: the legacy version that stands for just these, else their names."""
    found = _ALWAYS | set(features)
    found |= {_WITH[name] for name in found if name in _WITH}
    reader = 2 if "columnMapping" in found else 1
    for version in range(2, MAX_WRITER):
        if found == {row.name for row in FEATURES if row.writer is not None and row.writer <= version}:
            return Protocol(reader, version)
    by_name = found & _OF_READERS
    if by_name:
        return Protocol(3, MAX_WRITER, frozenset(by_name | (found & {"columnMapping"})), found)
    return Protocol(reader, MAX_WRITER, frozenset(), found)


def with_features(old: Protocol, features: Iterable[str]) -> Protocol:
    """`old` with more features; itself where it has them."""
    wanted = set(features)
    wanted |= {_WITH[name] for name in wanted if name in _WITH}
    if all(old.has(name) for name in wanted):
        return old
    new = protocol_of(wanted | {name for name in old.features if name in BY_NAME})
    return Protocol(
        max(old.reader, new.reader),
        max(old.writer, new.writer),
        new.reader_features | old.reader_features,
        new.writer_features | old.writer_features if new.writer == MAX_WRITER else frozenset(),
    )


def without_features(old: Protocol, features: Collection[str]) -> Protocol:
    """`old` without some features: the lowest versions that stand for the others, else their names."""
    known = {name for name in old.features if name in BY_NAME and name not in features}
    unknown = (old.reader_features | old.writer_features) - BY_NAME.keys()
    if unknown:
        raise unsupported(
            f"dropping a feature of a table that has others which are not known ({', '.join(sorted(unknown))})"
        )
    return protocol_of(known)


# ---- metadata


def metadata_action(definition: Definition, old: Snapshot | None) -> commit.Action:
    """The metaData action of a table that is made, in the place of `old` where there was one."""
    properties = asked(definition.properties).properties
    for key in (VECTORS, ROW_TRACKING):  # which Delta keeps, as the only ones
        if old is not None and key in old.properties:
            properties.setdefault(key, old.properties[key])
    if old is not None and properties.get(log.IN_COMMIT, "").lower() == "true":
        properties |= _enabled_earlier(old)
    fields = [field_json(f, definition.metadata.get(f.name, {})) for f in definition.schema.fields]
    schema: dict[str, Any] = {"type": "struct", "fields": fields}
    if is_mapped(properties):
        last = last_id(old.properties) if old is not None else 0
        properties[MOST_ID] = str(numbered(schema, last))
    if properties.get(ROW_TRACKING, "").lower() == "true":
        properties[ROW_ID] = f"_row-id-col-{uuid.uuid4()}"
        properties[ROW_VERSION] = f"_row-commit-version-col-{uuid.uuid4()}"
    spec: dict[str, Any] = {
        "id": definition.table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema, ensure_ascii=False),
        "partitionColumns": list(definition.partition_by),
        "configuration": properties,
        "createdTime": commit.now_ms(),
    }
    if definition.comment is not None:
        spec["description"] = definition.comment
    return {"metaData": spec}


def _enabled_earlier(old: Snapshot) -> dict[str, str]:
    """Since when commits tell their times. Raises UnsupportedError where they do not, and the new ones were to."""
    if old.properties.get(log.IN_COMMIT, "").lower() != "true":
        raise unsupported(f"replacing a table by one with {log.IN_COMMIT}")
    return {key: value for key, value in old.properties.items() if key.startswith(log.IN_COMMIT_SINCE)}


def numbered(spec: Any, last: int, keeps_names: bool = False) -> int:
    """Give each field of a schema's JSON that has none an id behind `last` and all others, and a name in files; the last id.

    With `keeps_names` it is found in files by its own name.
    """
    return _numbered(spec, max(last, _most_id(spec)), keeps_names)


def last_id(properties: Mapping[str, str]) -> int:
    """The last id that a table says it has given to a column. Raises ServerError DELTA_LOG_CORRUPT for what is none."""
    text = properties.get(MOST_ID, "0")
    found = int(text) if text.isascii() and text.isdecimal() and len(text) <= _ID_DIGITS else -1
    if not 0 <= found <= _LAST_ID:
        raise ServerError("DELTA_LOG_CORRUPT", f"The table has {text[:40]!r} as {MOST_ID}.")
    return found


def _most_id(spec: Any) -> int:
    """The highest id in a schema's JSON: other writers may have told a lower one as the last."""
    if not isinstance(spec, dict):
        return 0
    kept = [f["metadata"] for f in spec.get("fields", ())]
    ids = [i for one in kept for i in (one.get(FIELD_ID), *(one.get(_NESTED_IDS) or {}).values()) if type(i) is int]
    inner = [f["type"] for f in spec.get("fields", ())] + [spec.get(n) for n in ("elementType", "keyType", "valueType")]
    return max([0, *ids, *map(_most_id, inner)])


def _numbered(spec: Any, last: int, keeps_names: bool) -> int:
    if not isinstance(spec, dict):
        return last
    for f in spec.get("fields", ()):
        if FIELD_ID not in f["metadata"]:
            last += 1
            name = f["name"] if keeps_names else f"col-{uuid.uuid4()}"
            f["metadata"] = {**f["metadata"], FIELD_ID: last, PHYSICAL: name}
        last = _numbered(f["type"], last, keeps_names)
    for inner in ("elementType", "keyType", "valueType"):
        last = _numbered(spec.get(inner), last, keeps_names)
    return last


def with_last_id(metadata: dict[str, Any], properties: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of an earlier version, but that no column's id is given again."""
    configuration = metadata.get("configuration", {})
    last = max(
        (int(of[MOST_ID]) for of in (configuration, properties) if of.get(MOST_ID, "").isdecimal()), default=None
    )
    if last is None or not is_mapped(configuration):
        return metadata
    return {**metadata, "configuration": {**configuration, MOST_ID: str(last)}}


def field_json(f: t.StructField, more: Mapping[str, Any] | None = None) -> Any:
    """A column as a table's schema has it, with more metadata than its own."""
    metadata: dict[str, Any] = {**(more or {}), **({"comment": f.comment} if f.comment else {})}
    if isinstance(f.type, t.CharType):
        metadata[CHAR_VARCHAR] = f.type.simple
    return {"name": f.name, "type": type_json(f.type), "nullable": f.nullable, "metadata": metadata}


def type_json(data_type: t.DataType) -> Any:
    """Delta's JSON of a type: as Spark's, with CHAR and VARCHAR as string."""
    match data_type:
        case t.CharType():
            return "string"
        case t.StructType():
            return {"type": "struct", "fields": [field_json(f) for f in data_type.fields]}
        case t.ArrayType():
            return {
                "type": "array",
                "elementType": type_json(data_type.element),
                "containsNull": data_type.contains_null,
            }
        case t.MapType():
            return {
                "type": "map",
                "keyType": type_json(data_type.key),
                "valueType": type_json(data_type.value),
                "valueContainsNull": data_type.value_contains_null,
            }
    return data_type.json()


def holds(data_type: t.DataType, wanted: t.DataType) -> bool:
    """Whether a type is or holds another one."""
    return data_type == wanted or any(holds(c, wanted) for c in data_type.children())


# ---- clustering


def clustering_action(schema: dict[str, Any], columns: Sequence[Sequence[str]], mapped: bool) -> commit.Action:
    """The domain that says by which columns, as the paths of their names, a table is clustered: by their names in files."""
    paths = [_physical(schema, path) if mapped else list(path) for path in columns]
    text = commit.compact_json({"clusteringColumns": paths, "domainName": CLUSTERING})
    return {"domainMetadata": {"domain": CLUSTERING, "configuration": text, "removed": False}}


def _physical(schema: dict[str, Any], path: Sequence[str]) -> list[str]:
    found: list[str] = []
    inside: Any = schema
    for name in path:
        f = next(f for f in inside["fields"] if f["name"] == name)
        found.append(f["metadata"][PHYSICAL])
        inside = f["type"]
    return found


def clustering_of(snapshot: Snapshot) -> list[list[str]]:
    """The paths of the columns that a table is clustered by, as the table names them."""
    if not snapshot.protocol.has("clustering"):
        return []
    spec = state_of(snapshot).domains.get(CLUSTERING)
    if spec is None or spec.get("removed"):
        return []
    with damage_told(snapshot.root):
        found = json.loads(spec["configuration"])["clusteringColumns"]
        return [_logical(snapshot.columns, path) for path in found]


def _logical(columns: Sequence[Column], path: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in path:
        column = {c.physical: c for c in columns}[name]
        found.append(column.name)
        columns = column.children
    return found


def told_properties(snapshot: Snapshot) -> dict[str, str]:
    """A table's properties as Delta tells them: with its versions and features, and what it is clustered by."""
    protocol = snapshot.protocol
    found = dict(snapshot.properties)
    found["delta.minReaderVersion"] = str(protocol.reader)
    found["delta.minWriterVersion"] = str(protocol.writer)
    found |= {f"delta.feature.{name}": "supported" for name in protocol.reader_features | protocol.writer_features}
    if protocol.has("clustering"):
        found["clusteringColumns"] = commit.compact_json(clustering_of(snapshot))
    return dict(sorted(found.items()))
