"""Keys that statements declare and drop: judged against the tables as they are, kept by the catalog."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gateway.catalog.base import Catalog, TableName
from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.keys import holding, keys_of, referring_to, taken_names
from gateway.catalog.objects import Key, StoredKeys
from gateway.delta.expressions import CONSTRAINT
from gateway.delta.write import conflict
from gateway.engine.base import Emit, Planned
from gateway.errors import GatewayError, Span, UserError, unsupported
from gateway.runner.answer import RESULT, Answer, done
from gateway.runner.environment import Environment
from gateway.runner.objects import Place
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import StructField, StructType

_CASCADE = "Foreign key `{}` depends on the primary key `{}`. Use CASCADE to drop both."


def with_primary(columns: Sequence[c.ColumnDefinition], keys: Sequence[c.Key]) -> list[c.ColumnDefinition]:
    """The columns of a new table: those of its primary key are NOT NULL."""
    primary = {name.lower() for key in keys if key.parent is None for name in key.columns}
    return [
        replace(one, field=replace(one.field, nullable=False)) if one.field.name.lower() in primary else one
        for one in columns
    ]


def declared(
    command: c.CreateTable, place: Place, schema: StructType, checks: Sequence[str], env: Environment
) -> tuple[Key, ...]:
    """The keys of a table that is to be made, `checks` being names of its CHECK constraints. Raises what is wrong with them."""
    found: list[Key] = []
    old = place.catalog.keys(place.schema, place.name)
    own = set() if old is None else {key.name.lower() for key in old.keys}
    names = (taken_names(place.catalog, place.schema) - own) | {name.lower() for name in checks}
    # A foreign key may refer to the primary key of its own table, wherever that stands.
    for key in sorted(command.keys, key=lambda key: key.parent is not None):
        primary = next((one for one in found if not one.parent), None)
        made = _judged(key, place, schema, primary, "", names, found, env)
        names.add(made.name.lower())
        found.append(made)
    return tuple(found)


@contextlib.contextmanager
def claimed(place: Place, keys: tuple[Key, ...], table_id: str) -> Iterator[None]:
    """A block in which a new table comes to its name, with its keys there before it: whose process is killed leaves none
    without them. Raises what `Catalog.claimed` does, and CONSTRAINT_ALREADY_EXISTS."""
    with place.catalog.claimed(place.schema, place.name):
        # Of a table that somebody has made by now nothing is touched: the block will tell.
        own = bool(keys) and place.catalog.table_folder(place.schema, place.name) is None
        if own:
            _check_names(place, place.full, keys)
            place.catalog.put(_of_own(place.full, keys, table_id), True)
        try:
            yield
        except BaseException:
            if own:
                place.catalog.drop(StoredKeys, place.schema, place.name)
            raise


def announce(place: Place, keys: tuple[Key, ...], table_id: str) -> None:
    """Keep the keys of a table that is about to take another's place, or a folder of its own: they are there before it is.

    Those of the table that has the name stay beside them; where the new one never comes they say nothing. Raises
    CONSTRAINT_ALREADY_EXISTS.
    """
    if not keys:
        return
    with place.catalog.alone():
        old, table = place.catalog.keys(place.schema, place.name), place.catalog.table(place.schema, place.name)
        name = place.full if old is None else old.name
        _check_names(place, name, keys)
        if old is not None and isinstance(table, DeltaBoundTable):  # which may have been announced itself
            old = old.of(table.snapshot.table_id) or old
        told = _of_own(name, keys, table_id).keys
        place.catalog.put(replace(old or StoredKeys(name), next_id=table_id, next_keys=told), True)


def _of_own(name: TableName, keys: tuple[Key, ...], own: str) -> StoredKeys:
    """The keys of a table, of which foreign ones may refer to its own primary key."""
    told = tuple(replace(key, parent_id=own) if key.parent and not key.parent_id else key for key in keys)
    return StoredKeys(name, own, told)


def keep(place: Place, keys: tuple[Key, ...], table_id: str) -> None:
    """What was announced is what holds; not where the table is gone by now, or others have changed its keys since.

    Where nothing can be kept the announcement does for it.
    """
    if not keys and place.catalog.identity(StoredKeys, place.schema, place.name) is None:
        return
    with contextlib.suppress(GatewayError), place.catalog.alone():
        table, old = place.catalog.table(place.schema, place.name), place.catalog.keys(place.schema, place.name)
        if not isinstance(table, DeltaBoundTable) or table.snapshot.table_id != table_id:
            return
        if old is not None and old.table_id != table_id:
            _write(place.catalog, _of_own(table.name, keys, table_id))


def _check_names(place: Place, name: TableName, keys: tuple[Key, ...]) -> None:
    """Raise CONSTRAINT_ALREADY_EXISTS if another table has got a key of one of the names meanwhile."""
    taken = taken_names(place.catalog, place.schema, name)
    for key in keys:
        if key.name.lower() in taken:
            raise _name_is_taken(key.name, None)


def add(command: c.AddKey, table: DeltaBoundTable, env: Environment, emit: Emit) -> Answer:
    """ALTER TABLE … ADD [CONSTRAINT name] key."""
    catalog = env.tables.catalog_of(table.name.catalog)
    with catalog.alone():
        now = catalog.table(table.name.schema, table.name.table)
        if not isinstance(now, DeltaBoundTable) or now.snapshot.table_id != table.snapshot.table_id:
            raise conflict(table.location)
        return _added(command, now, env, emit)


def _added(command: c.AddKey, table: DeltaBoundTable, env: Environment, emit: Emit) -> Answer:
    key, catalog = command.key, env.tables.catalog_of(table.name.catalog)
    stored = keys_of(catalog, table)
    kept = holding(catalog, stored)
    if key.parent is None and kept.primary is not None:
        shown = f"[{', '.join(kept.primary.columns)}], [{', '.join(key.columns)}]"
        raise UserError("MULTIPLE_PRIMARY_KEYS", f"Multiple primary keys are defined: {shown}.", span=key.span)
    place = Place(catalog, table.name.schema, table.name.table)
    names = taken_names(catalog, table.name.schema) | {name.lower() for name in checks_of(table.properties)}
    own = table.snapshot.table_id
    made = _judged(key, place, table.schema, kept.primary, own, names, kept.keys, env)
    if key.parent is None:
        for f in table.schema.fields:
            if f.name in made.columns and f.nullable:
                text = (
                    f"Cannot create the primary key `{made.name}` because its child column(s) `{f.name}` is nullable. "
                    "Please change the column nullability and retry."
                )
                raise UserError("INVALID_PARAMETER_VALUE", text, span=key.span)
    # A foreign key that holds no more is told nowhere: it makes room for one of its name or its columns.
    others = [
        one
        for one in stored.keys
        if one in kept.keys
        or not (one.name.lower() == made.name.lower() or (made.parent and one.columns == made.columns))
    ]
    return _put(catalog, replace(stored, keys=(*others, made)), emit)


def drop(command: c.DropKey, table: DeltaBoundTable, env: Environment, emit: Emit) -> Answer:
    """ALTER TABLE … DROP PRIMARY KEY and DROP FOREIGN KEY."""
    catalog = env.tables.catalog_of(table.name.catalog)
    with catalog.alone():
        return _dropped_by_columns(command, catalog, table, emit)


def _dropped_by_columns(command: c.DropKey, catalog: Catalog, table: DeltaBoundTable, emit: Emit) -> Answer:
    kept = keys_of(catalog, table)
    if command.columns is None:
        found = kept.primary
    else:
        columns = [name.lower() for name in command.columns]
        found = next((key for key in kept.foreign if [n.lower() for n in key.columns] == columns), None)
    if found is None:
        if command.if_exists:
            return done("ALTER_TABLE")
        what = "primary key" if command.columns is None else f"foreign key ({', '.join(command.columns)})"
        text = f"Cannot drop the {what} of the table {table.name}, which does not have it."
        raise UserError("CONSTRAINT_DOES_NOT_EXIST", text, span=command.span)
    return _dropped(catalog, kept, found, command.cascade, command.span, emit)


def drop_named(command: c.DropConstraint, table: DeltaBoundTable, env: Environment, emit: Emit) -> Answer | None:
    """ALTER TABLE … DROP CONSTRAINT of a key; None where there is no key of that name."""
    catalog = env.tables.catalog_of(table.name.catalog)
    with catalog.alone():
        kept = keys_of(catalog, table)
        found = next((key for key in kept.keys if key.name.lower() == command.name.lower()), None)
        return None if found is None else _dropped(catalog, kept, found, command.cascade, command.span, emit)


def may_break(change: object) -> bool:
    """Whether a change of a table may leave a key without its columns: see `check_not_in_key`."""
    return bool(_at_risk(change))


def _at_risk(change: object) -> list[c.Name]:
    if isinstance(change, c.RenameColumn):
        return [change.column]
    if isinstance(change, c.DropColumns):
        return list(change.columns)
    if isinstance(change, c.ChangeColumns):
        return [one.column for one in change.columns if one.not_null is False or one.type is not None]
    return []


def check_not_in_key(change: object, table: DeltaBoundTable, env: Environment) -> None:
    """Raise DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE for what would leave a key without its columns."""
    kept = keys_of(env.tables.catalog_of(table.name.catalog), table)
    for name in _at_risk(change):
        column = name.parts[-1].lower()
        nulls = isinstance(change, c.ChangeColumns)
        for key in kept.keys:
            if len(name.parts) == 1 and column in (n.lower() for n in key.columns) and not (nulls and key.parent):
                verb = "alter" if nulls else "rename" if isinstance(change, c.RenameColumn) else "drop"
                text = (
                    f"Cannot {verb} column {name.parts[-1]} because this column is referenced by the key `{key.name}`."
                )
                raise UserError("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", text, span=name.span)


def checks_of(properties: Mapping[str, str]) -> list[str]:
    """Names of CHECK constraints."""
    return [key[len(CONSTRAINT) :] for key in properties if key.startswith(CONSTRAINT)]


def _dropped(catalog: Catalog, kept: StoredKeys, key: Key, cascade: bool, span: Span, emit: Emit) -> Answer:
    dependent = [] if key.parent else referring_to(catalog, kept)
    for _, other in dependent:
        if not cascade:
            text = _CASCADE.format(other.name, key.name)
            raise UserError("CANNOT_DROP_REFERENCED_PRIMARY_KEY", text, span=span)
    gone = {(stored.name, other.name) for stored, other in dependent}
    answer = _put(catalog, _without(kept, {*gone, (kept.name, key.name)}), emit)
    for stored in {stored.name: stored for stored, _ in dependent if stored.name != kept.name}.values():
        _write(catalog, _without(stored, gone))
    return answer


def _without(stored: StoredKeys, gone: set[tuple[TableName, str]]) -> StoredKeys:
    return replace(stored, keys=tuple(key for key in stored.keys if (stored.name, key.name) not in gone))


def _put(catalog: Catalog, kept: StoredKeys, emit: Emit) -> Answer:
    emit(Planned("ALTER_TABLE", "gateway", "a file of the catalog", RESULT, writes=True, is_query=False))
    _write(catalog, kept)
    return Answer("ALTER_TABLE", is_query=False, announced=True)


def _write(catalog: Catalog, kept: StoredKeys) -> None:
    """Keep the keys of a table, beside those of one that is about to take its place."""
    old = catalog.keys(kept.name.schema, kept.name.table)
    if old is not None and old.next_id != kept.table_id:
        kept = replace(kept, next_id=old.next_id, next_keys=old.next_keys)
    if kept.keys or kept.next_id:
        catalog.put(kept, True)
    else:
        catalog.drop(StoredKeys, kept.name.schema, kept.name.table)


# ---- judged


def _judged(
    key: c.Key,
    place: Place,
    schema: StructType,
    primary: Key | None,
    own_id: str,
    names: set[str],
    others: Sequence[Key],
    env: Environment,
) -> Key:
    """A key of the table at `place` with its `primary` key. Raises what is wrong with it."""
    fields = _fields(key.columns, schema, key.span)
    columns = tuple(f.name for f in fields)
    if key.parent is None:
        for f in fields:
            if f.type.name in ("ARRAY", "MAP", "STRUCT", "VARIANT"):
                raise unsupported(f"a primary key over the column {f.name} of type {f.type.simple}", key.span)
        return Key(_name(key, f"{place.name}_pk", names), columns, key.rely)
    if any(other.parent and other.columns == columns for other in others):
        text = f"The table {place.quoted} has a foreign key over ({', '.join(columns)}) already."
        raise UserError("CONSTRAINT_ALREADY_EXISTS", text, span=key.span)
    catalog_name, schema_name, table_name = env.tables.qualified(key.parent.parts)
    own = (place.catalog.name.lower(), place.schema.lower(), place.name.lower())
    if (catalog_name.lower(), schema_name.lower(), table_name.lower()) == own:
        parent = (place.catalog.name, place.schema, place.name)
        parent_schema, parent_id = schema, own_id
    else:
        table = env.tables.find(key.parent.parts, None, key.parent.span)
        if not isinstance(table, DeltaBoundTable):
            raise unsupported(f"a foreign key that refers to {table.name}, which is no Delta table,", key.parent.span)
        if table.name.catalog != place.catalog.name:
            raise unsupported("a foreign key that refers to another catalog", key.parent.span)
        parent = (table.name.catalog, table.name.schema, table.name.table)
        primary = keys_of(place.catalog, table).primary
        parent_schema, parent_id = table.schema, table.snapshot.table_id
    wanted = tuple(f.name for f in _fields(key.parent_columns, parent_schema, key.span))
    if (
        primary is None
        or (wanted and sorted(wanted) != sorted(primary.columns))
        or len(columns) != len(primary.columns)
    ):
        raise _mismatch(wanted, () if primary is None else primary.columns, key.span)
    if wanted and wanted != primary.columns:  # the same columns in another order: the key's own follows
        order = [wanted.index(name) for name in primary.columns]
        columns = tuple(columns[at] for at in order)
        fields = [fields[at] for at in order]
    types = {f.name: f.type for f in parent_schema.fields}
    for f, name in zip(fields, primary.columns, strict=True):
        if f.type != types[name]:
            text = (
                f"Foreign key column {f.name} has the type {f.type.simple}, the primary key column {name} that it refers "
                f"to {types[name].simple}."
            )
            raise UserError("FOREIGN_KEY_MISMATCH", text, span=key.span)
    name = _name(key, f"{place.name}_{parent[2]}_fk", names)
    return Key(name, columns, key.rely, parent, parent_id, primary.columns)


def _mismatch(wanted: Sequence[str], primary: Sequence[str], span: Span) -> UserError:
    shown, own = (f"[{', '.join(f'`{n}`' for n in names)}]" for names in (wanted, primary))
    text = f"Foreign key parent columns {shown} do not match primary key child columns {own}."
    return UserError("FOREIGN_KEY_MISMATCH", text, span=span)


def _name(key: c.Key, usual: str, names: set[str]) -> str:
    """The key's name, or one that the schema does not have yet."""
    if key.name is not None:
        if key.name.lower() in names:
            raise _name_is_taken(key.name, key.span)
        return key.name
    numbered = (usual if at == 0 else f"{usual}_{at}" for at in range(len(names) + 1))
    return next(name for name in numbered if name.lower() not in names)


def _name_is_taken(name: str, span: Span | None) -> UserError:
    text = f"Constraint '{name}' already exists. Please delete the existing constraint first."
    return UserError("CONSTRAINT_ALREADY_EXISTS", text, span=span)


def _fields(names: Sequence[str], schema: StructType, span: Span) -> list[StructField]:
    """The columns of a key. Raises UNRESOLVED_COLUMN, COLUMN_ALREADY_EXISTS."""
    known = {f.name.lower(): f for f in schema.fields}
    found: list[StructField] = []
    for name in names:
        f = known.get(name.lower())
        if f is None:
            near = ", ".join(f"`{one.name}`" for one in schema.fields[:5])
            text = f"A column with name `{name}` cannot be resolved. Did you mean one of the following? [{near}]."
            raise UserError("UNRESOLVED_COLUMN.WITH_SUGGESTION", text, span=span)
        if f in found:
            raise UserError("COLUMN_ALREADY_EXISTS", f"The column `{f.name}` is given more than once.", span=span)
        found.append(f)
    return found
