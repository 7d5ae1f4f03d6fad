"""A table's columns as it was written before, against those that its definition asks for now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.delta.table import Snapshot, open_snapshot
from gateway.pipelines.definitions import STREAMING_TABLE, Dataset
from gateway.pipelines.prepare import Prepared, views
from gateway.pipelines.warehouse import version
from gateway.sqltypes import quote_part, quoted_text

# Delta writes them for itself; they belong to the columns that are replaced.
_OF_COLUMNS = ("delta.columnMapping.maxColumnId", "delta.rowTracking.materialized")


def changed(dataset: Dataset, stored: Snapshot) -> bool:
    """Whether a stored column has another type than its definition gives it, or the rows are grouped by other columns."""
    if tuple(stored.partition_columns) != dataset.partitions:
        return True
    defined = {f["name"].casefold(): _plain(f["type"]) for f in _fields(dataset)}
    return any(defined.get(c.name.casefold(), t) != t for c in stored.columns for t in [_plain(c.type.json())])


def fits(dataset: Dataset, stored: Snapshot) -> bool:
    """Whether Spark can bring the emptied table to its definition: by new columns, for Delta alters no others."""
    defined = {f["name"]: f for f in _fields(dataset)}
    if tuple(stored.partition_columns) != dataset.partitions:
        return False
    for column in stored.columns:
        field = defined.pop(column.name, None)
        if field is None or field["nullable"] != column.nullable:
            return False
        if _plain(field["type"]) != _plain(column.type.json()):
            return False
    return all(field["nullable"] for field in defined.values())


def replace_misfits(prepared: Prepared, anew: Sequence[Dataset]) -> None:
    """Give tables that this run computes anew the columns of their definitions, where Spark itself could not.

    They are empty then, as Spark would make them; their history stays. Streaming tables whose checkpoints are on another file
    system are left alone: if the run is killed now, their rows could not be given back.
    """
    local = prepared.project.storage_folder is not None
    for table in {t.id: t for t in (*views(prepared.definitions), *anew)}.values():
        folder = prepared.folder(table)
        if table.columns is None or version(folder) is None or (table.kind == STREAMING_TABLE and not local):
            continue
        stored = open_snapshot(str(folder))
        if not fits(table, stored):
            prepared.server.session.sql(_replacing(table, folder, stored))


def _replacing(table: Dataset, folder: Path, stored: Snapshot) -> str:
    from pyspark.sql.types import StructType

    assert table.columns is not None
    columns = StructType.fromJson(json.loads(table.columns)).toDDL()
    kept = {k: v for k, v in stored.properties.items() if k.startswith("delta.") and not k.startswith(_OF_COLUMNS)}
    parts = [f"CREATE OR REPLACE TABLE {quote_part(table.schema)}.{quote_part(table.name)} ({columns}) USING delta"]
    if table.partitions:
        parts.append(f"PARTITIONED BY ({', '.join(map(quote_part, table.partitions))})")
    if table.clusters:
        parts.append(f"CLUSTER BY ({', '.join(map(quote_part, table.clusters))})")
    parts.append(f"LOCATION {quoted_text(f'file:{folder}')}")
    if kept:
        parts.append(
            f"TBLPROPERTIES ({', '.join(f'{quoted_text(k)} = {quoted_text(v)}' for k, v in sorted(kept.items()))})"
        )
    return " ".join(parts)


def _fields(dataset: Dataset) -> list[dict[str, Any]]:
    return [] if dataset.columns is None else list(json.loads(dataset.columns)["fields"])


def _plain(type_: Any) -> Any:
    """A type of Spark's JSON without comments and other metadata of nested fields."""
    if isinstance(type_, dict):
        return {key: _plain(value) for key, value in type_.items() if key != "metadata"}
    return [_plain(each) for each in type_] if isinstance(type_, list) else type_
