"""The information schema: what there is in the catalogs as relations with Databricks' columns, computed when they are read.

Every catalog has one of its own, `system.information_schema` is that of all. Names are told in lower case, as Databricks keeps
them. Filters that pin catalogs, schemas or names are followed before anything is opened, and only tables of which more than the
name is asked are opened at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from gateway.catalog.base import Catalog, TableName
from gateway.catalog.information_columns import RELATIONS
from gateway.catalog.keys import Reference, keys_of, references_of
from gateway.catalog.objects import StoredKeys, StoredTable, StoredView
from gateway.delta.held import HeldScan
from gateway.delta.history import last_modified_ms
from gateway.delta.predicates import Comparison, OneOf, Predicate
from gateway.errors import GatewayError, unsupported
from gateway.sqltypes import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    DecimalType,
    IntervalType,
    StructField,
    StructType,
)

SCHEMA = "information_schema"
SYSTEM = "system"
_OWNER = "System user"  # of what nobody has made, as Databricks calls it
_BITS: dict[DataType, int] = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64, FLOAT: 32, DOUBLE: 64}
_DATETIME: dict[DataType, int] = {DATE: 0, TIMESTAMP: 3, TIMESTAMP_NTZ: 3}
_CHECK = "delta.constraints."
Row = dict[str, Any]  # what is not in it is NULL
Shape = tuple[str, str, StructType]  # what is computed: schema, name, columns
_INFORMATION: Sequence[Shape] = tuple((SCHEMA, name, shape) for name, shape in RELATIONS.items())


@dataclass(frozen=True, slots=True)
class Pinned:
    """The names that a query's filters leave, by column in lower case; None for any."""

    of: Mapping[str, frozenset[str]]

    def leaves(self, column: str, name: str) -> bool:
        """Whether rows with `name` in `column` may be wanted."""
        wanted = self.of.get(column)
        return wanted is None or name.lower() in wanted


def pinned_by(predicates: Sequence[Predicate]) -> Pinned:
    """What equalities of a filter say; several of one column have to hold at once."""
    found: dict[str, frozenset[str]] = {}
    for predicate in predicates:
        values: tuple[Any, ...]
        if isinstance(predicate, Comparison) and predicate.op == "=":
            values = (predicate.value,)
        elif isinstance(predicate, OneOf):
            values = predicate.values
        else:
            continue
        names = frozenset(str(value.as_py()).lower() for value in values)
        found[predicate.column] = found.get(predicate.column, names) & names
    return Pinned(found)


@dataclass(frozen=True, slots=True)
class Asked:
    """One scan: which catalogs are looked at, what pins names in them, and the columns that are read."""

    catalogs: Sequence[Catalog]
    systems: Sequence[str]  # catalogs whose own information schemas are told, by name
    pinned: Pinned
    columns: frozenset[str]
    computed: Sequence[Shape] = ()  # in `system`, beside its information schema


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation of an information schema: a `catalog.base.BoundTable` whose rows are made by each scan."""

    name: TableName
    catalogs: Sequence[Catalog] = field(repr=False, compare=False)
    partition_columns: tuple[str, ...] = ()
    version: int | None = None
    num_rows: int | None = None
    comment: str | None = None
    location: str = ""
    computed: Sequence[Shape] = field(default=(), repr=False, compare=False)

    @property
    def schema(self) -> StructType:
        return RELATIONS[self.name.table]

    @property
    def properties(self) -> dict[str, str]:
        return {}

    def scan(
        self, columns: Sequence[str], predicates: Sequence[Predicate], *, floats_compared: bool = True
    ) -> HeldScan:
        """The rows as of now. Raises the error of a table that is pinned alone and cannot be opened."""
        names = list(columns) or [self.schema.fields[0].name]
        own = [c.name for c in self.catalogs]
        systems = [*own, SYSTEM] if self.name.catalog == SYSTEM else own
        asked = Asked(self.catalogs, systems, pinned_by(predicates), frozenset(names), self.computed)
        rule = _ROWS.get(self.name.table)
        rows = [] if rule is None else list(rule(asked))
        types = {f.name: f.type.arrow() for f in self.schema.fields}
        table = pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in names})
        return HeldScan(table, reason="rows of the information schema")


class InformationCatalog:
    """The part of a catalog that is its information schema, with the reading methods of a `catalog.base.Catalog`.

    Args:
        name: whose it is; that of `system` tells of all `catalogs`, and of what is `computed` in it.
    """

    read_only = True

    def __init__(self, name: str, catalogs: Mapping[str, Catalog], computed: Sequence[Shape] = ()) -> None:
        self.name = name
        self._computed = computed
        self._catalogs = tuple(catalogs.values()) if name == SYSTEM else (catalogs[name.lower()],)

    def schemas(self) -> list[str]:
        """Its only schema."""
        return [SCHEMA]

    def has_schema(self, schema: str) -> bool:
        return schema.lower() == SCHEMA

    def views(self, schema: str) -> list[str]:
        """The relations: views, as on Databricks."""
        return list(RELATIONS)

    def tables(self, schema: str) -> list[str]:
        """None."""
        return []

    def outlines(self, schema: str) -> Mapping[str, Any]:
        """None."""
        return {}

    other_tables = functions = volumes = tables

    def table(self, schema: str, table: str, as_of: Any = None, *, to_add: bool = False) -> None:
        """None."""

    def view(self, schema: str, view: str) -> Relation | None:
        """The relation of that name."""
        name = view.lower()
        if name not in RELATIONS:
            return None
        return Relation(TableName(self.name, SCHEMA, name), self._catalogs, computed=self._computed)

    def keys(self, schema: str, table: str) -> None:
        """None."""

    def statistics(self, schema: str, table: str) -> None:
        """None."""

    def all_keys(self, schema: str) -> tuple[Any, ...]:
        """None."""
        return ()

    def identity(self, kind: type, schema: str, name: str) -> None:
        """None: nothing shows whether rows of it would be the same."""

    def schema_location(self, schema: str) -> str:
        """There is no folder."""
        return ""


def information_of(
    catalog: str, schema: str, catalogs: Mapping[str, Catalog], computed: Sequence[Shape] = ()
) -> InformationCatalog | None:
    """The information schema that two names mean, None if they mean another schema."""
    if schema.lower() != SCHEMA:
        return None
    if catalog.lower() == SYSTEM:
        return InformationCatalog(SYSTEM, catalogs, computed)
    known = catalogs.get(catalog.lower())
    return None if known is None else InformationCatalog(known.name, catalogs)


@dataclass(frozen=True, slots=True)
class Place:
    """A table or view by its names; `kind` is a method of catalogs that lists such."""

    catalog: Catalog
    schema: str
    name: str
    kind: str

    def opened(self) -> Any:
        """The table or view itself; None if it was dropped meanwhile. Raises GatewayError."""
        return (self.catalog.view if self.kind == "views" else self.catalog.table)(self.schema, self.name)

    def row(self, **more: Any) -> Row:
        """A row about it."""
        names = {"table_catalog": self.catalog.name, "table_schema": self.schema, "table_name": self.name}
        return {**{key: value.lower() for key, value in names.items()}, **more}


def _schemas(
    asked: Asked, catalog: str = "table_catalog", schema: str = "table_schema"
) -> Iterator[tuple[Catalog, str]]:
    """Catalogs and schemas that the columns of these names leave."""
    for one in asked.catalogs:
        if asked.pinned.leaves(catalog, one.name):
            for name in one.schemas():
                if name.lower() != SCHEMA and asked.pinned.leaves(schema, name):
                    yield one, name


def _places(asked: Asked, kinds: Sequence[str] = ("tables", "other_tables", "views")) -> Iterator[Place]:
    for catalog, schema in _schemas(asked):
        for kind in kinds:
            for name in getattr(catalog, kind)(schema):
                if asked.pinned.leaves("table_name", name):
                    yield Place(catalog, schema, name, kind)


def _opened(asked: Asked, kinds: Sequence[str] = ("tables", "other_tables", "views")) -> Iterator[tuple[Place, Any]]:
    """What could be opened of `_places`. Raises the error of the only one."""
    places = list(_places(asked, kinds))
    for place in places:
        try:
            found = place.opened()
        except GatewayError:
            if len(places) == 1:
                raise
            continue  # one of many: asking for it alone tells what is wrong
        if found is not None:
            yield place, found


def _own(asked: Asked) -> Iterator[tuple[Row, StructType]]:
    """What is computed: the information schemas, the history, what runs; the names of each, and its columns."""
    for catalog in asked.systems:
        if asked.pinned.leaves("table_catalog", catalog):
            for schema, name, shape in (*_INFORMATION, *(asked.computed if catalog == SYSTEM else ())):
                if asked.pinned.leaves("table_schema", schema) and asked.pinned.leaves("table_name", name):
                    yield {"table_catalog": catalog.lower(), "table_schema": schema, "table_name": name}, shape


def _catalog_name(asked: Asked) -> Iterator[Row]:
    yield {"catalog_name": (asked.systems[-1]).lower()}


def _catalogs(asked: Asked) -> Iterator[Row]:
    for name in asked.systems:
        owner = _OWNER if name == SYSTEM else ""
        yield {"catalog_name": name.lower(), "catalog_owner": owner}


def _schemata(asked: Asked) -> Iterator[Row]:
    for catalog, schema in _schemas(asked, "catalog_name", "schema_name"):
        told = getattr(catalog, "schema_comment", None)
        comment = told(schema) if told is not None else None
        yield {
            "catalog_name": catalog.name.lower(),
            "schema_name": schema.lower(),
            "schema_owner": "",
            "comment": comment,
        }
    for name in asked.systems:
        computed = asked.computed if name == SYSTEM else ()
        for schema in dict.fromkeys((SCHEMA, *(schema for schema, _, _ in computed))):
            yield {"catalog_name": name.lower(), "schema_name": schema, "schema_owner": _OWNER}


_OPENED_FOR = frozenset({"comment", "created", "last_altered", "storage_path"})
_TYPES = {"tables": "MANAGED", "other_tables": "MANAGED", "views": "VIEW"}


def _is_external(place: Place) -> bool:
    """Whether a table lies elsewhere, as far as its object can be read: asking for it tells what is wrong with that."""
    try:
        return place.kind == "tables" and place.catalog.located(place.schema, place.name) is not None
    except GatewayError:
        return False


def _tables(asked: Asked) -> Iterator[Row]:
    for place in _places(asked):
        is_view = place.kind == "views"
        row = place.row(
            table_type="EXTERNAL" if _is_external(place) else _TYPES[place.kind],
            is_insertable_into="NO" if is_view or place.catalog.read_only else "YES",
            commit_action="PRESERVE",
            table_owner="",
            data_source_format="UNKNOWN_DATA_SOURCE_FORMAT" if is_view else "DELTA",
        )
        if place.kind == "other_tables" or asked.columns & _OPENED_FOR:
            try:
                row |= _facts(place.opened())
            except GatewayError:  # it is listed; its columns tell what is wrong
                row |= {"data_source_format": "UNKNOWN_DATA_SOURCE_FORMAT" if place.kind == "other_tables" else "DELTA"}
        yield row
    for names, _ in _own(asked):
        yield {
            **names,
            "table_type": "VIEW",
            "is_insertable_into": "NO",
            "commit_action": "PRESERVE",
            "table_owner": _OWNER,
            "data_source_format": "UNKNOWN_DATA_SOURCE_FORMAT",
        }


def _facts(found: Any) -> Row:
    """What an opened table or view says of itself."""
    if found is None:
        return {}
    if isinstance(found, StoredView):
        return {"comment": found.comment}
    path = f"file:{found.location}"
    if isinstance(found, StoredTable):
        return {"comment": found.comment, "storage_path": path, "data_source_format": found.format.upper()}
    snapshot = found.snapshot
    return {
        "comment": found.comment,
        "storage_path": path,
        "created": None if snapshot.created_ms is None else snapshot.created_ms * 1000,
        "last_altered": None if (altered := last_modified_ms(snapshot)) is None else altered * 1000,
    }


def _columns(asked: Asked) -> Iterator[Row]:
    for place, found in _opened(asked):
        snapshot = getattr(found, "snapshot", None)
        metadata = {} if snapshot is None else {c.name: c.metadata for c in snapshot.columns}
        partitions = getattr(found, "partition_columns", ())
        updatable = "NO" if place.kind == "views" or place.catalog.read_only else "YES"
        for position, f in enumerate(found.schema.fields, 1):
            at = partitions.index(f.name) + 1 if f.name in partitions else None
            default = metadata.get(f.name, {}).get("CURRENT_DEFAULT")
            yield place.row(**_column(f, position), column_default=default, is_updatable=updatable, partition_index=at)
    for names, shape in _own(asked):
        for position, f in enumerate(shape.fields, 1):
            yield {**names, **_column(f, position), "is_updatable": "NO"}


def _column(f: StructField, position: int) -> Row:
    return {
        "column_name": f.name,
        "ordinal_position": position,
        "is_nullable": "YES" if f.nullable else "NO",
        "full_data_type": f.type.simple,
        "data_type": f.type.name if not isinstance(f.type, IntervalType) else "INTERVAL",
        "is_identity": "NO",
        "is_generated": "NO",
        "is_system_time_period_start": "NO",
        "is_system_time_period_end": "NO",
        "comment": f.comment,
        **_measures(f.type),
    }


def _measures(data_type: DataType) -> Row:
    if isinstance(data_type, DecimalType):
        return {
            "numeric_precision": data_type.precision,
            "numeric_precision_radix": 10,
            "numeric_scale": data_type.scale,
        }
    if data_type in _BITS:
        scale = None if data_type in (FLOAT, DOUBLE) else 0
        return {"numeric_precision": _BITS[data_type], "numeric_precision_radix": 2, "numeric_scale": scale}
    if isinstance(data_type, IntervalType):
        start, end = data_type.start.upper(), data_type.end.upper()
        unit = start if start == end else f"{start} TO {end}"
        return {"datetime_precision": 3 if end == "SECOND" else 0, "interval_type": unit}
    return {"datetime_precision": _DATETIME.get(data_type)}


def _views(asked: Asked) -> Iterator[Row]:
    fixed = {"check_option": "NONE", "is_updatable": "NO", "is_insertable_into": "NO", "is_materialized": "NO"}
    for place, found in _opened(asked, ("views",)):
        yield place.row(**fixed, view_definition=found.query)
    for names, _ in _own(asked):
        yield {**fixed, **names}


def _checks(asked: Asked) -> Iterator[tuple[Place, str, str]]:
    """Tables with their CHECK constraints: the only ones that Delta keeps."""
    for place, found in _opened(asked, ("tables",)):
        for key, value in sorted(found.properties.items()):
            if key.startswith(_CHECK):
                yield place, key.removeprefix(_CHECK), value


def _constraint(place: Place, name: str) -> Row:
    return {
        "constraint_catalog": place.catalog.name.lower(),
        "constraint_schema": place.schema.lower(),
        "constraint_name": name,
    }


def _keys(asked: Asked) -> Iterator[tuple[Place, StoredKeys, list[Reference]]]:
    """Tables that have keys, with those foreign ones that hold."""
    for catalog, schema in _schemas(asked):
        for stored in catalog.all_keys(schema):
            place = Place(catalog, schema, stored.name.table, "tables")
            if not asked.pinned.leaves("table_name", place.name):
                continue
            try:
                found = place.opened()
            except GatewayError:
                continue  # asking for that table tells what is wrong
            if found is not None and (keys := keys_of(catalog, found)).keys:
                yield place, keys, references_of(catalog, keys)


def _of_any_table(asked: Asked) -> Asked:
    """The same without what is said of tables: rows of keys tell of their parents there."""
    of = {column: names for column, names in asked.pinned.of.items() if not column.startswith("table_")}
    return replace(asked, pinned=Pinned(of))


def _table_constraints(asked: Asked) -> Iterator[Row]:
    fixed = {"constraint_type": "CHECK", "is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"}
    for place, name, _ in _checks(asked):
        yield place.row(**_constraint(place, name), **fixed)
    unchecked = {"is_deferrable": "YES", "initially_deferred": "NO", "enforced": "NO"}
    for place, keys, references in _keys(asked):
        if keys.primary is not None:
            yield place.row(**_constraint(place, keys.primary.name), constraint_type="PRIMARY KEY", **unchecked)
        for one in references:
            yield place.row(**_constraint(place, one.key.name), constraint_type="FOREIGN KEY", **unchecked)


def _key_columns(asked: Asked) -> Iterator[Row]:
    for place, keys, references in _keys(asked):
        own = [] if keys.primary is None else [keys.primary]
        for key in (*own, *(one.key for one in references)):
            for at, column in enumerate(key.columns, 1):
                yield place.row(
                    **_constraint(place, key.name),
                    column_name=column,
                    ordinal_position=at,
                    position_in_unique_constraint=at if key.parent else None,
                )


def _references(asked: Asked) -> Iterator[Row]:
    for place, _, references in _keys(asked):
        for one in references:
            yield {
                **_constraint(place, one.key.name),
                "unique_constraint_catalog": one.parent.catalog.lower(),
                "unique_constraint_schema": one.parent.schema.lower(),
                "unique_constraint_name": one.primary.name,
                "match_option": "FULL",
                "update_rule": "NO ACTION",
                "delete_rule": "NO ACTION",
            }


def _column_usage(asked: Asked) -> Iterator[Row]:
    """The columns that are unique by a key: of a foreign key those that it refers to."""
    for place, keys, references in _keys(_of_any_table(asked)):
        if keys.primary is not None:
            for column in keys.primary.columns:
                yield place.row(**_constraint(place, keys.primary.name), column_name=column)
        for one in references:
            parent = Place(place.catalog, one.parent.schema, one.parent.table, "tables")
            for column in one.primary.columns:
                yield parent.row(**_constraint(place, one.key.name), column_name=column)


def _check_constraints(asked: Asked) -> Iterator[Row]:
    for place, name, condition in _checks(asked):
        yield {**_constraint(place, name), "check_clause": condition}


def _table_usage(asked: Asked) -> Iterator[Row]:
    for place, name, _ in _checks(asked):
        yield place.row(**_constraint(place, name))
    for place, keys, references in _keys(_of_any_table(asked)):
        if keys.primary is not None:
            yield place.row(**_constraint(place, keys.primary.name))
        for one in references:
            yield Place(place.catalog, one.parent.schema, one.parent.table, "tables").row(
                **_constraint(place, one.key.name)
            )


def _functions(asked: Asked) -> Iterator[tuple[Catalog, str, str]]:
    for catalog, schema in _schemas(asked, "specific_catalog", "specific_schema"):
        for name in catalog.functions(schema):
            if asked.pinned.leaves("specific_name", name) and asked.pinned.leaves("routine_name", name):
                yield catalog, schema, name


def _routines(asked: Asked) -> Iterator[Row]:
    for catalog, schema, name in _functions(asked):
        names = {"catalog": catalog.name.lower(), "schema": schema.lower(), "name": name.lower()}
        yield {
            **{f"{of}_{key}": value for of in ("specific", "routine") for key, value in names.items()},
            "routine_owner": "",
            "routine_type": "FUNCTION",
            "routine_body": "SQL",
            "parameter_style": "SQL",
            "sql_data_access": "READS SQL DATA",
            "is_null_call": "YES",
            "security_type": "DEFINER",
        }


def _parameters(asked: Asked) -> Iterator[Row]:
    for catalog, schema, name in _functions(asked):
        raise unsupported(f"Telling the parameters of the function `{catalog.name}.{schema}.{name}`")
    yield from ()


def _volumes(asked: Asked) -> Iterator[Row]:
    for catalog, schema in _schemas(asked, "volume_catalog", "volume_schema"):
        for name in catalog.volumes(schema):
            names = {"volume_catalog": catalog.name, "volume_schema": schema, "volume_name": name}
            fixed = {"volume_type": "MANAGED", "volume_owner": "", "storage_location": ""}
            yield {**{key: value.lower() for key, value in names.items()}, **fixed}


# The others have no rows: what they tell of (tags, privileges, masks, filters) is not to be had here.
_ROWS: dict[str, Callable[[Asked], Iterator[Row]]] = {
    "catalogs": _catalogs,
    "check_constraints": _check_constraints,
    "columns": _columns,
    "constraint_column_usage": _column_usage,
    "constraint_table_usage": _table_usage,
    "information_schema_catalog_name": _catalog_name,
    "key_column_usage": _key_columns,
    "parameters": _parameters,
    "referential_constraints": _references,
    "routine_columns": _parameters,
    "routines": _routines,
    "schemata": _schemata,
    "table_constraints": _table_constraints,
    "tables": _tables,
    "views": _views,
    "volumes": _volumes,
}
