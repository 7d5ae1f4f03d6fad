"""Tables and views in Spark's words: the text of SHOW TABLE EXTENDED, the statement of SHOW CREATE TABLE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.information import Relation
from gateway.catalog.objects import StoredTable, StoredView
from gateway.delta.creation import clustering_of
from gateway.delta.expressions import DEFAULT, GENERATED, INVARIANTS
from gateway.delta.features import Kept
from gateway.delta.identity import is_identity, start_and_step, takes_values
from gateway.delta.log import IN_COMMIT_SINCE
from gateway.delta.properties import FEATURE, MOST_ID
from gateway.delta.schema import Column, declared_of
from gateway.delta.write import check_snapshot_writable
from gateway.errors import unsupported
from gateway.sqltypes import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StructField,
    StructType,
    quote_if_needed,
    quoted_text,
)
from gateway.worker_jobs import TempView

_WORDS = {"INT": "integer", "BIGINT": "long", "SMALLINT": "short", "TINYINT": "byte"}


def extended_text(found: Any) -> str:
    """The facts of a table, a lasting view or a relation of the information schema, and its columns as a tree."""
    name = found.name
    lines = [("Catalog", name.catalog), ("Database", name.schema), ("Table", name.table)]
    if isinstance(found, DeltaBoundTable) and found.snapshot.created_ms is not None:
        created = datetime.fromtimestamp(found.snapshot.created_ms // 1000, UTC)
        lines.append(("Created Time", created.strftime("%a %b %d %H:%M:%S UTC %Y")))
    lines.append(("Last Access", "UNKNOWN"))
    if isinstance(found, StoredView):
        lines += _view(found.query, found.mode or "COMPENSATION", found.catalog, found.schema_name)
        lines.append(("View Query Output Columns", _names(found.query_columns)))
    elif isinstance(found, Relation):
        lines.append(("Type", "VIEW"))
    else:
        provider = found.format if isinstance(found, StoredTable) else "delta"
        kind = "EXTERNAL" if getattr(found, "external", False) else "MANAGED"
        lines += [("Type", kind), ("Provider", provider), ("Location", f"file:{found.location}")]
    if found.properties:
        lines.append(("Table Properties", _properties(found.properties)))
    if not isinstance(found, StoredView) and found.partition_columns:
        lines += [("Partition Provider", "Catalog"), ("Partition Columns", _names(found.partition_columns))]
    return _text([*lines, *_comment(found.comment)], found.schema.fields)


def temporary_text(view: TempView) -> str:
    """The same of a session's view; without columns, where it was made before they were kept."""
    lines = [("Table", view.name), ("Last Access", "UNKNOWN")]
    lines += _view(view.query, "BINDING", view.catalog, view.schema)
    fields = () if view.made is None else view.made.fields
    if fields:
        lines.append(("View Query Output Columns", _names([f.name for f in fields])))
    named = view.columns or [f.name for f in fields]
    lines += _comment(view.comment)
    return _text(lines, [StructField(n, f.type, f.nullable) for n, f in zip(named, fields, strict=True)])


def _view(query: str, mode: str, catalog: str, schema: str) -> list[tuple[str, str]]:
    kind = [("Type", "VIEW"), ("View Text", query), ("View Original Text", query)]
    return [*kind, ("View Schema Mode", mode), ("View Catalog and Namespace", f"{catalog}.{schema}")]


def _comment(comment: str | None) -> list[tuple[str, str]]:
    """Behind all other facts: dbt takes for the comment what stands up to the last of them."""
    return [("Comment", comment)] if comment else []


def _names(names: Sequence[str]) -> str:
    return f"[{', '.join(f'`{name}`' for name in names)}]"


def _properties(properties: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{key}={value}' for key, value in sorted(properties.items()))}]"


def _text(lines: Sequence[tuple[str, str]], fields: Sequence[StructField]) -> str:
    head = "".join(f"{key}: {value}\n" for key, value in lines)
    return head + "Schema: root\n" + "".join(f"{line}\n" for line in _tree(fields, " |")) + "\n"


def _tree(fields: Sequence[StructField], margin: str) -> Iterator[str]:
    for f in fields:
        yield f"{margin}-- {f.name}: {_word(f.type)} (nullable = {_boolean(f.nullable)})"
        yield from _inside(f.type, f"{margin}    |")


def _inside(data_type: DataType, margin: str) -> Iterator[str]:
    match data_type:
        case StructType():
            yield from _tree(data_type.fields, margin)
        case ArrayType():
            yield f"{margin}-- element: {_word(data_type.element)} (containsNull = {_boolean(data_type.contains_null)})"
            yield from _inside(data_type.element, f"{margin}    |")
        case MapType():
            yield f"{margin}-- key: {_word(data_type.key)}"
            yield from _inside(data_type.key, f"{margin}    |")
            nullable = _boolean(data_type.value_contains_null)
            yield f"{margin}-- value: {_word(data_type.value)} (valueContainsNull = {nullable})"
            yield from _inside(data_type.value, f"{margin}    |")


def _word(data_type: DataType) -> str:
    if isinstance(data_type, (StructType, ArrayType, MapType)):
        return data_type.name.lower()
    if isinstance(data_type, CharType):
        return "string"
    return _WORDS.get(data_type.name, data_type.simple)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def view_statement(view: StoredView) -> str:
    """The CREATE VIEW that makes a view like this one."""
    columns = [quote_if_needed(f.name) + _comment_clause(f.comment) for f in view.schema.fields]
    text = f"CREATE VIEW {_full(view.name)} (\n  " + ",\n  ".join(columns) + ")\n"
    text += _clauses(view.comment, view.properties)
    if view.collation:
        text += f"DEFAULT COLLATION {quote_if_needed(view.collation)}\n"
    return text + f"WITH SCHEMA {view.mode or 'COMPENSATION'}\nAS {view.query}\n"


def table_statement(table: DeltaBoundTable, keys: Sequence[str] = ()) -> str:
    """The CREATE TABLE that makes an empty table like this one, with its `keys` as clauses.

    Raises UnsupportedError for what it could not say.
    """
    snapshot = table.snapshot
    check_snapshot_writable(snapshot, kept=Kept.BY_STATEMENT)
    columns = [
        f"{quote_if_needed(f.name)} {f.type.sql}{'' if f.nullable else ' NOT NULL'}"
        f"{_computed(snapshot.by_name[f.name])}{_comment_clause(f.comment)}"
        for f in declared_of(snapshot.columns).fields
    ]
    text = f"CREATE TABLE {_full(table.name)} (\n  " + ",\n  ".join([*columns, *keys]) + ")\nUSING delta\n"
    if table.partition_columns:
        text += f"PARTITIONED BY ({', '.join(map(quote_if_needed, table.partition_columns))})\n"
    if clusters := clustering_of(snapshot):
        text += f"CLUSTER BY ({', '.join('.'.join(map(quote_if_needed, path)) for path in clusters)})\n"
    kept = {k: v for k, v in table.properties.items() if k != MOST_ID and not k.startswith(IN_COMMIT_SINCE)}
    if "allowColumnDefaults" in snapshot.protocol.writer_features:
        kept[f"{FEATURE}allowColumnDefaults"] = "supported"
    if table.external:
        text += f"LOCATION {quoted_text(f'file:{table.location}')}\n"
    return text + _clauses(table.comment, kept)


def _computed(column: Column) -> str:
    """What a column is when nothing is given for it."""
    metadata = column.metadata
    if INVARIANTS in metadata:
        raise unsupported("SHOW CREATE TABLE of a table with invariants")
    if GENERATED in metadata:
        return f" GENERATED ALWAYS AS ({metadata[GENERATED]})"
    if is_identity(column):
        kind, (start, step) = "BY DEFAULT" if takes_values(column) else "ALWAYS", start_and_step(column)
        return f" GENERATED {kind} AS IDENTITY (START WITH {start} INCREMENT BY {step})"
    return f" DEFAULT {metadata[DEFAULT]}" if DEFAULT in metadata else ""


def _full(name: Any) -> str:
    return ".".join(map(quote_if_needed, (name.catalog, name.schema, name.table)))


def _comment_clause(comment: str | None) -> str:
    return f" COMMENT {quoted_text(comment)}" if comment else ""


def _clauses(comment: str | None, properties: Mapping[str, str]) -> str:
    text = f"COMMENT {quoted_text(comment)}\n" if comment else ""
    if properties:
        pairs = (f"{quoted_text(k)} = {quoted_text(v)}" for k, v in sorted(properties.items()))
        text += "TBLPROPERTIES (\n  " + ",\n  ".join(pairs) + ")\n"
    return text
