"""Primary and foreign keys of Delta tables: which of those that a catalog keeps still hold.

They are files of the catalog, as they are entries of the metastore elsewhere: Delta's log knows none of them. A key holds for
the table (by its id) and the columns that it was declared for; a foreign key for as long as the primary key does that it
refers to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gateway.catalog.base import Catalog, TableName
from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.objects import Key, StoredKeys
from gateway.errors import GatewayError
from gateway.sqltypes import quote_if_needed, quote_part


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key that holds: of which table, and the table and primary key that it refers to."""

    table: TableName
    key: Key
    parent: TableName
    primary: Key


def keys_of(catalog: Catalog, table: Any) -> StoredKeys:
    """The primary key of a table, and its foreign keys whether they hold or not."""
    nothing = StoredKeys(table.name, "")
    if not isinstance(table, DeltaBoundTable) or not table.name.catalog:
        return nothing
    found = catalog.keys(table.name.schema, table.name.table)
    found = None if found is None else found.of(table.snapshot.table_id)
    if found is None:
        return replace(nothing, table_id=table.snapshot.table_id)
    columns = table.snapshot.by_name.keys()
    held = tuple(key for key in found.keys if columns >= set(key.columns))
    return StoredKeys(table.name, found.table_id, held)


def references_of(catalog: Catalog, keys: StoredKeys) -> list[Reference]:
    """The foreign keys of a table that hold."""
    found = []
    for key in keys.foreign:
        parent = _parent(catalog, key)
        if parent is not None and parent.primary is not None and parent.primary.columns == key.parent_columns:
            found.append(Reference(keys.name, key, parent.name, parent.primary))
    return found


def referring_to(catalog: Catalog, keys: StoredKeys) -> list[tuple[StoredKeys, Key]]:
    """The foreign keys, with all keys of their tables, that refer to the primary key of a table."""
    return [
        (other, key)
        for other in _all(catalog)
        for key in other.foreign
        if key.parent_id == keys.table_id and keys.primary is not None and key.parent_columns == keys.primary.columns
    ]


def holding(catalog: Catalog, keys: StoredKeys) -> StoredKeys:
    """The keys of a table without the foreign ones that hold no more."""
    held = {reference.key.name for reference in references_of(catalog, keys)}
    return replace(keys, keys=tuple(key for key in keys.keys if not key.parent or key.name in held))


def taken_names(catalog: Catalog, schema: str, but: TableName | None = None) -> set[str]:
    """Names of the keys of a schema that hold, in lower case, those of one table aside: they are those of one namespace."""
    others = (stored for stored in _stored(catalog, schema) if stored.name != but)
    return {key.name.lower() for stored in others for key in holding(catalog, stored).keys}


def shown(key: Key, parent: TableName | None = None) -> str:
    """A key as DESCRIBE and SHOW CREATE TABLE tell it."""
    rely = " RELY" if key.rely else ""
    if not key.parent:
        return f"PRIMARY KEY ({_list(key.columns)}){rely}"
    place = (parent.catalog, parent.schema, parent.table) if parent is not None else key.parent
    name = ".".join(f"`{part}`" for part in place)
    return f"FOREIGN KEY ({_list(key.columns)}) REFERENCES {name} ({_list(key.parent_columns)}){rely}"


def told(catalog: Catalog, table: Any) -> list[tuple[str, str]]:
    """Names and texts of a table's keys: the primary key, then those foreign ones that hold."""
    keys = keys_of(catalog, table)
    own = [(keys.primary.name, shown(keys.primary))] if keys.primary is not None else []
    return own + [(r.key.name, shown(r.key, r.parent)) for r in references_of(catalog, keys)]


def clauses(catalog: Catalog, table: Any) -> list[str]:
    """The same as the clauses of a CREATE TABLE."""
    return [f"CONSTRAINT {quote_if_needed(name)} {text}" for name, text in told(catalog, table)]


def _list(columns: tuple[str, ...]) -> str:
    return ", ".join(map(quote_part, columns))


def _parent(catalog: Catalog, key: Key) -> StoredKeys | None:
    """The keys of the table that a foreign key refers to, whatever its name by now."""
    _, schema, table = key.parent
    named = _opened(catalog, schema, table)
    if named is not None and named.table_id == key.parent_id:
        return named
    for other in _all(catalog):
        if other.table_id == key.parent_id and (other.name.schema, other.name.table) != (schema, table):
            return other
    return None


def _opened(catalog: Catalog, schema: str, table: str) -> StoredKeys | None:
    try:
        found = catalog.table(schema, table)
    except GatewayError:  # asking for that table tells what is wrong
        return None
    return None if found is None else keys_of(catalog, found)


def _all(catalog: Catalog) -> Iterator[StoredKeys]:
    for schema in catalog.schemas():
        yield from _stored(catalog, schema)


def _stored(catalog: Catalog, schema: str) -> Iterator[StoredKeys]:
    """Those that hold of a schema."""
    for stored in catalog.all_keys(schema):
        found = _opened(catalog, schema, stored.name.table)
        if found is not None and found.keys:
            yield found
