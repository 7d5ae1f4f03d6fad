"""DESCRIBE … AS JSON: the columns and facts of a table or view as one JSON text, with Spark's keys in Spark's order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.catalog.objects import StoredView
from gateway.sqltypes import (
    TIMESTAMP,
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    IntervalType,
    MapType,
    StructField,
    StructType,
)
from gateway.worker_jobs import TempView

_USUAL = "UTF8_BINARY"


def table_json(
    table: Any,
    fields: Sequence[StructField],
    provider: str,
    keys: Sequence[tuple[str, str]] = (),
    statistics: Mapping[str, int] | None = None,
) -> str:
    """Of a table of a catalog."""
    return _document(
        (table.name.catalog, table.name.schema, table.name.table),
        fields,
        {
            "location": f"file:{table.location}",
            "type": "EXTERNAL" if getattr(table, "external", False) else "MANAGED",
            "provider": provider,
            "comment": table.comment,
            "table_properties": dict(sorted(table.properties.items())),
            "statistics": dict(statistics or {}),
            "partition_columns": list(table.partition_columns),
            "table_constraints": f"[{', '.join(f'({name},{text})' for name, text in keys)}]" if keys else None,
        },
    )


def view_json(view: StoredView) -> str:
    """Of a lasting view."""
    return _document(
        (view.name.catalog, view.name.schema, view.name.table),
        view.schema.fields,
        {
            "type": "VIEW",
            "comment": view.comment,
            "view_text": view.query,
            "view_original_text": view.query,
            "view_schema_mode": view.mode or "COMPENSATION",
            "view_catalog_and_namespace": f"{view.catalog}.{view.schema_name}",
            "view_query_output_columns": list(view.query_columns),
            "table_properties": dict(sorted(view.properties.items())),
        },
    )


def temporary_view_json(view: TempView, fields: Sequence[StructField]) -> str:
    """Of a session's view."""
    return _document(
        ("system", "session", view.name),
        fields,
        {
            "type": "VIEW",
            "comment": view.comment,
            "view_text": view.query,
            "view_schema_mode": "BINDING",
            "view_catalog_and_namespace": f"{view.catalog}.{view.schema}",
        },
    )


def _document(place: tuple[str, str, str], fields: Sequence[StructField], facts: Mapping[str, Any]) -> str:
    catalog, schema, name = place
    found = {
        "table_name": name,
        "catalog_name": catalog,
        "namespace": [schema],
        "schema_name": schema,
        "columns": [_column(field) for field in fields],
        **{key: value for key, value in facts.items() if value not in (None, {}, [])},
        "collation": _USUAL,
    }
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _column(field: StructField) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field.name, "type": _type(field.type), "nullable": field.nullable}
    return {**found, "comment": field.comment} if field.comment else found


def _type(type_: DataType) -> dict[str, Any]:
    match type_:
        case DecimalType():
            return {"name": "decimal", "precision": type_.precision, "scale": type_.scale}
        case ArrayType():
            return {
                "name": "array",
                "element_type": _type(type_.element),
                "element_nullable": type_.contains_null,
            }
        case MapType():
            return {
                "name": "map",
                "key_type": _type(type_.key),
                "value_type": _type(type_.value),
                "value_nullable": type_.value_contains_null,
            }
        case StructType():
            return {"name": "struct", "fields": [_column(field) for field in type_.fields]}
        case IntervalType():
            return {"name": "interval", "start_unit": type_.start.lower(), "end_unit": type_.end.lower()}
        case CharType():  # texts to Spark, which keeps their lengths elsewhere
            return {"name": "string", "collation": _USUAL}
    if type_ == TIMESTAMP:
        return {"name": "timestamp_ltz"}
    if type_.name == "STRING":
        return {"name": "string", "collation": _USUAL}
    return {"name": type_.simple}
