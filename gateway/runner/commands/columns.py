"""Changes of a table's columns: added, renamed, dropped, moved, retyped; by which ones it is clustered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.delta.creation import (
    check_defaults,
    clustering_action,
    clustering_of,
    field_json,
    holds,
    is_mapped,
    last_id,
    numbered,
    type_json,
)
from gateway.delta.expressions import CONSTRAINT, DEFAULT, GENERATED, INVARIANTS
from gateway.delta.fields import check_clustering, check_fields, nested_not_null
from gateway.delta.identity import START
from gateway.delta.indexed import NAMES, names_of
from gateway.delta.metadata import Alteration, logged_metadata
from gateway.delta.properties import MOST_ID
from gateway.delta.schema import CHAR_VARCHAR
from gateway.delta.widening import is_wider, keeps_texts, may_widen, told
from gateway.errors import Span, UserError, unsupported
from gateway.runner.environment import Environment
from gateway.sql.bind.kept import check_default
from gateway.sql.compile import binder_of
from gateway.sql.read import command_nodes as c
from gateway.sql.read.commands import parse_expression, references
from gateway.sql.typed.coerce import can_upcast
from gateway.sqltypes import (
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    CharType,
    DataType,
    MapType,
    StructType,
    is_nested,
    quote_if_needed,
)

Schema = dict[str, Any]  # a struct as Delta's JSON has it


def as_text(value: Any) -> str:
    """JSON as operation parameters have it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def no_column(column: c.Name, known: Sequence[str], name: str | None = None) -> UserError:
    """UNRESOLVED_COLUMN of a column, or of the `name` that it was to stand behind."""
    shown = ", ".join(f"`{name}`" for name in known[:10])
    wanted = "`.`".join(column.parts) if name is None else name
    return UserError(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        f"A column, variable, or function parameter with name `{wanted}` cannot be resolved. Did you mean "
        f"one of the following? [{shown}].",
        span=column.span,
    )


def needs_feature(table: DeltaBoundTable, name: str, span: Span | None) -> UserError:
    """DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT: a table that is there is given no feature by a type of its columns."""
    there = ", ".join(table.snapshot.protocol.features)
    text = (
        f"Your table schema requires manually enablement of the following table feature(s): {name}. To do this, run ALTER "
        f"TABLE table_name SET TBLPROPERTIES ('delta.feature.{name}' = 'supported'). Current supported feature(s): {there}."
    )
    return UserError("DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT", text, span=span)


# ---- where a column stands


@dataclass(slots=True)
class Found:
    """A column or field in a schema: whose type stands under `key` of `holder`, and its names as the table spells them.

    `owner` is the innermost field around, itself included, `inside` the way from there: element, key, value. A field stands
    at `at` of `siblings`, which an element, a key or a value has not.
    """

    holder: Schema
    key: str
    spelt: list[str] = field(default_factory=list)
    owner: Schema = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)
    siblings: list[Schema] | None = None
    at: int = 0

    @property
    def type(self) -> Any:
        """The type, as JSON."""
        return self.holder[self.key]


_PARTS = {("array", "element"): "elementType", ("map", "key"): "keyType", ("map", "value"): "valueType"}


def find(schema: Schema, column: c.Name, parts: Sequence[str]) -> Found:
    """Where a column or field stands. Raises UserError UNRESOLVED_COLUMN."""
    found = Found({"type": schema}, "type")
    for part in parts:
        inner = found.type
        kind = inner["type"] if isinstance(inner, dict) else ""
        key = _PARTS.get((kind, part.lower()))
        if key is not None:
            inside = [*found.inside, part.lower()]
            found = Found(inner, key, [*found.spelt, part.lower()], found.owner, inside)
            continue
        fields: list[Schema] = inner["fields"] if kind == "struct" else []
        at = next((i for i, f in enumerate(fields) if f["name"].lower() == part.lower()), None)
        if at is None:
            raise no_column(column, [f["name"] for f in schema["fields"]])
        found = Found(fields[at], "type", [*found.spelt, fields[at]["name"]], fields[at], [], fields, at)
    return found


def _fields_in(schema: Schema, column: c.Name) -> list[Schema]:
    """The fields among which a new one is to stand. Raises UserError INVALID_FIELD_NAME."""
    if len(column.parts) == 1:
        top: list[Schema] = schema["fields"]
        return top
    found = find(schema, column, column.parts[:-1])
    if not isinstance(found.type, dict) or found.type["type"] != "struct":
        shown = "`.`".join(column.parts)
        text = f"Field name `{shown}` is invalid: `{'`.`'.join(column.parts[:-1])}` is not a struct."
        raise UserError("INVALID_FIELD_NAME", text, span=column.span)
    fields: list[Schema] = found.type["fields"]
    return fields


def _behind(fields: Sequence[Schema], name: str) -> int | None:
    return next((i for i, f in enumerate(fields) if f["name"].lower() == name.lower()), None)


def _type_at(data_type: DataType, parts: Sequence[str]) -> DataType:
    for part in parts:
        match data_type:
            case StructType():
                data_type = next(f.type for f in data_type.fields if f.name.lower() == part.lower())
            case ArrayType():
                data_type = data_type.element
            case MapType():
                data_type = data_type.key if part.lower() == "key" else data_type.value
    return data_type


def _number(action: Schema) -> None:
    """Ids and names in files for fields that have none, where the table has them."""
    properties = action.get("configuration", {})
    if is_mapped(properties):
        last = numbered(action["schema"], last_id(properties))
        action["configuration"] = {**properties, MOST_ID: str(last)}


# ---- ADD COLUMNS


def added(change: c.AddColumns, table: DeltaBoundTable) -> Alteration:
    """ADD COLUMNS."""
    parameters: dict[str, Any] = {}
    mapped = table.snapshot.mapping != "none"
    for one in change.columns:
        if not one.field.nullable or nested_not_null(one.field.type):
            text = "Operation not allowed: `NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for Delta tables"
            raise UserError("DELTA_OPERATION_NOT_ALLOWED", text, span=one.name.span)
        if holds(one.field.type, TIMESTAMP_NTZ) and not table.snapshot.protocol.has("timestampNtz"):
            raise needs_feature(table, "timestampNtz", one.name.span)

    def edit(action: dict[str, Any]) -> None:
        told = [_insert(_fields_in(action["schema"], one.name), one, mapped) for one in change.columns]
        parameters["columns"] = as_text(told)
        _number(action)

    top = [replace(one.field, name=one.name.parts[-1]) for one in change.columns if len(one.name.parts) == 1]
    check_fields(top, mapped=mapped)
    features = {"variantType"} if any(holds(one.field.type, VARIANT) for one in change.columns) else ()
    return Alteration(
        "ADD COLUMNS", parameters, edit, features=frozenset(features) - set(table.snapshot.protocol.features)
    )


def _insert(fields: list[Schema], one: c.AddedColumn, mapped: bool) -> dict[str, Any]:
    """Put a new field in its place; what the log tells of it."""
    name = one.name.parts[-1]
    check_fields([replace(one.field, name=name)], mapped=mapped)
    if _behind(fields, name) is not None:
        known = ", ".join(quote_if_needed(f["name"]) for f in fields)
        text = f"Cannot add column, because `{'`.`'.join(one.name.parts)}` already exists among {known}."
        raise UserError("FIELD_ALREADY_EXISTS", text, span=one.name.span)
    made = field_json(replace(one.field, name=name))
    metadata = {k: v for k, v in made["metadata"].items() if k != CHAR_VARCHAR}
    declared = made["metadata"].get(CHAR_VARCHAR, made["type"])
    told: dict[str, Any] = {
        "column": {**made, "name": ".".join(one.name.parts), "type": declared, "metadata": metadata}
    }
    if one.first:
        fields.insert(0, made)
        return {**told, "position": "FIRST"}
    if one.after is None:
        fields.append(made)
        return told
    at = _behind(fields, one.after)
    if at is None:
        text = f"No such struct field `{one.after}` in {', '.join(f['name'] for f in fields)}."
        raise UserError("FIELD_NOT_FOUND", text, span=one.name.span)
    fields.insert(at + 1, made)
    return {**told, "position": f"AFTER {fields[at]['name']}"}


# ---- RENAME COLUMN, DROP COLUMNS


def renamed(change: c.RenameColumn, table: DeltaBoundTable) -> Alteration:
    """RENAME COLUMN: where files have names of their own."""
    _check_mapped(table, "DELTA_UNSUPPORTED_RENAME_COLUMN", "Column rename", change.span)
    check_fields([replace(table.schema.fields[0], name=change.to, type=STRING)], mapped=True)
    parameters: dict[str, Any] = {}

    def edit(action: dict[str, Any]) -> None:
        found = find(action["schema"], change.column, change.column.parts)
        if found.siblings is None:
            raise unsupported(f"renaming the {found.inside[-1]} of a column", change.column.span)
        if _behind(found.siblings, change.to) is not None:
            known = ", ".join(quote_if_needed(f["name"]) for f in found.siblings)
            text = f"Cannot rename column, because `{change.to}` already exists among {known}."
            raise UserError("FIELD_ALREADY_EXISTS", text, span=change.column.span)
        _check_independent(action, found.spelt, change.column)
        found.owner["name"] = change.to
        _follow(action, found.spelt, [*found.spelt[:-1], change.to])
        if len(found.spelt) == 1:
            names = action.get("partitionColumns", [])
            action["partitionColumns"] = [change.to if name == found.spelt[0] else name for name in names]
        parameters["oldColumnPath"] = _path(found.spelt)
        parameters["newColumnPath"] = _path([*found.spelt[:-1], change.to])

    return Alteration("RENAME COLUMN", parameters, edit)


def dropped(change: c.DropColumns, table: DeltaBoundTable) -> Alteration | None:
    """DROP COLUMNS: where files have names of their own; None where there is nothing to drop."""
    _check_mapped(table, "DELTA_UNSUPPORTED_DROP_COLUMN", "DROP COLUMN", change.columns[0].span)
    parameters: dict[str, Any] = {}
    clustered = clustering_of(table.snapshot)
    there = list(change.columns)
    if change.if_exists:
        there = [one for one in there if _exists(table, one)]
        if not there:
            return None

    def edit(action: dict[str, Any]) -> None:
        gone = []
        for one in there:
            found = find(action["schema"], one, one.parts)
            if found.siblings is None:
                raise unsupported(f"dropping the {found.inside[-1]} of a column", one.span)
            if found.spelt[0] in action.get("partitionColumns", ()) and len(found.spelt) == 1:
                text = f"Dropping partition columns ({found.spelt[0]}) is not allowed."
                raise UserError("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN", text, span=one.span)
            if any(path[: len(found.spelt)] == found.spelt for path in clustered):
                text = f"Dropping clustering columns ({_path(found.spelt)}) is not allowed."
                raise UserError("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN", text, span=one.span)
            if len(found.siblings) == 1:
                text = "Cannot drop column from a schema with a single column."
                raise UserError("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", text, span=one.span)
            _check_independent(action, found.spelt, one)
            del found.siblings[found.at]
            _follow(action, found.spelt, None)
            gone.append(_path(found.spelt))
        left = {f["name"] for f in action["schema"]["fields"]}
        if left <= set(action.get("partitionColumns", ())):
            raise unsupported("dropping all columns by which a table is not partitioned", there[0].span)
        parameters["columns"] = as_text(gone)

    return Alteration("DROP COLUMNS", parameters, edit)


def _exists(table: DeltaBoundTable, column: c.Name) -> bool:
    try:
        find({"type": "struct", "fields": type_json(table.schema)["fields"]}, column, column.parts)
    except UserError:
        return False
    return True


def _check_mapped(table: DeltaBoundTable, condition: str, what: str, span: Any) -> None:
    if table.snapshot.mapping == "none":
        text = (
            f"{what} is not supported for your Delta table. Please enable Column Mapping on it: ALTER TABLE … SET "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')."
        )
        raise UserError(condition, text, span=span)


def _follow(action: Schema, path: Sequence[str], new: Sequence[str] | None) -> None:
    """The columns that are named as having statistics, where one gets another name or goes."""
    text = action.get("configuration", {}).get(NAMES)
    if text is None:
        return
    size, kept = len(path), []
    for one in names_of(text) or ():
        if [name.lower() for name in one[:size]] != [name.lower() for name in path]:
            kept.append(one)
        elif new is not None:
            kept.append((*new, *one[size:]))
    action["configuration"] = {**action["configuration"], NAMES: ",".join(_path(one) for one in kept)}


def _path(names: Sequence[str]) -> str:
    return ".".join(map(quote_if_needed, names))


def _check_independent(action: Schema, path: Sequence[str], column: c.Name) -> None:
    """Raise UserError if a constraint, or another generated column, is of a column."""
    of = [name.lower() for name in path]
    properties = action.get("configuration", {})
    checks = [value for key, value in properties.items() if key.startswith(CONSTRAINT) and _names(value, of)]
    if checks:
        text = (
            f"Cannot alter column {_path(path)} because this column is referenced by the following check constraint(s):"
        )
        raise UserError("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", f"{text} {', '.join(checks)}", span=column.span)
    fields = action["schema"]["fields"]
    generated = [f["name"] for f in fields if _names(f["metadata"].get(GENERATED, ""), of)]
    if generated:
        text = (
            f"Cannot alter column {_path(path)} because this column is referenced by the following generated column(s):"
        )
        raise UserError(
            "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE", f"{text} {', '.join(generated)}", span=column.span
        )
    if any(INVARIANTS in f["metadata"] for f in fields):
        raise unsupported("altering the columns of a table with invariants", column.span)


def _names(text: str, path: Sequence[str]) -> bool:
    """Whether an expression speaks of a column, of what is in it or of what it is in."""
    if not text:
        return False
    named = ([part.lower() for part in found] for found in references(parse_expression(text)))
    return any(found[: len(path)] == path[: len(found)] for found in named)


# ---- ALTER COLUMN


def changed(changes: Sequence[c.ColumnChange], table: DeltaBoundTable, env: Environment) -> Alteration:
    """ALTER COLUMN: comment, NOT NULL, default, type, place."""
    columns: list[dict[str, Any]] = []
    positions: list[str] = []
    parameters: dict[str, Any] = {}

    def edit(action: dict[str, Any]) -> None:
        columns.clear()
        positions.clear()
        for change in changes:
            found = find(action["schema"], change.column, change.column.parts)
            if found.siblings is None and change.type is None:
                raise unsupported(f"altering the {found.inside[-1]} of a column but for its type", change.column.span)
            retyped = change.type is not None and change.type != _type_at(table.schema, found.spelt)
            if START in found.owner["metadata"] and (retyped or change.default is not None):
                text = "ALTER TABLE ALTER COLUMN is not supported for IDENTITY columns."
                raise UserError("DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED", text, span=change.column.span)
            for one in (_retyped, _with_default):
                one(change, found, action, table, env)
            f = found.owner
            if change.comment is not None:
                others = {k: v for k, v in f["metadata"].items() if k != "comment"}
                f["metadata"] = {"comment": change.comment, **others}
            if change.not_null is not None:
                f["nullable"] = not change.not_null
            columns.append({**f, "name": ".".join(found.spelt), "type": found.type})
            positions.extend(_moved(change, found, action["schema"]))
        parameters.update({"column": as_text(columns[0])} if len(columns) == 1 else {"columns": as_text(columns)})
        if positions and len(columns) == 1:
            parameters["position"] = positions[0]

    operation = "CHANGE COLUMN" if len(changes) == 1 else "CHANGE COLUMNS"
    return Alteration(operation, parameters, edit, any(change.not_null for change in changes))


def _moved(change: c.ColumnChange, found: Found, schema: Schema) -> Iterator[str]:
    """Move a field among its siblings; what the log tells of it."""
    if not change.first and change.after is None:
        return
    assert found.siblings is not None
    at = None if change.after is None else _behind(found.siblings, change.after)
    if change.after is not None and at is None:
        raise no_column(change.column, [f["name"] for f in schema["fields"]], change.after)
    if at == found.at:
        raise unsupported("moving a column behind itself", change.column.span)
    behind = None if at is None else found.siblings[at]["name"]
    moved = found.siblings.pop(found.at)
    to = 0 if behind is None else next(i for i, f in enumerate(found.siblings) if f["name"] == behind) + 1
    found.siblings.insert(to, moved)
    yield "FIRST" if behind is None else f"AFTER {behind}"


def _with_default(
    change: c.ColumnChange, found: Found, action: Schema, table: DeltaBoundTable, env: Environment
) -> None:
    text = change.default
    if text is None:
        return
    if len(found.spelt) > 1 or GENERATED in found.owner["metadata"]:
        raise unsupported("a DEFAULT of a generated column, or of a field in one", change.column.span)
    others = {k: v for k, v in found.owner["metadata"].items() if k != DEFAULT}
    if text:
        check_defaults(table.snapshot.protocol.features, "ALTER TABLE")
        column = next(f for f in table.schema.fields if f.name == found.spelt[0])
        binder = binder_of(env.context, env.tables, {}, {})
        tree, span = parse_expression(text), change.column.span
        check_default(tree, text, column, "ALTER TABLE ALTER COLUMN", binder, env.context, span)
        others[DEFAULT] = text
    found.owner["metadata"] = others


def _retyped(change: c.ColumnChange, found: Found, action: Schema, table: DeltaBoundTable, env: Environment) -> None:
    """Give a column another type. Raises what Spark and Delta say of those that do not give way to it."""
    new, span = change.type, change.column.span
    old = _type_at(table.schema, found.spelt)
    if new is None or new == old:
        return
    if old == VOID:
        raise unsupported("another type for a column of NULLs", span)
    name, shown = _path(found.spelt), quote_if_needed(found.spelt[-1])
    kind = next(
        (k for k, t in (("ARRAY", ArrayType), ("MAP", MapType), ("STRUCT", StructType)) if isinstance(old, t)), ""
    )
    if kind:
        raise UserError(
            f"CANNOT_UPDATE_FIELD.{kind}_TYPE", f"Cannot update the field {name}: update what is in it.", span=span
        )
    if isinstance(old, CharType) or isinstance(new, CharType):
        if not _holds_texts(old, new):
            raise _not_supported(shown, old, new, span)
        others = {k: v for k, v in found.owner["metadata"].items() if k != CHAR_VARCHAR}
        found.owner["metadata"] = others if new == STRING else {**others, CHAR_VARCHAR: new.simple}
        return
    if is_nested(new) or not can_upcast(old, new):
        raise _not_supported(shown, old, new, span)
    if not (may_widen(table.snapshot) and is_wider(old, new)):
        text = f"ALTER TABLE CHANGE COLUMN is not supported for changing column {name} from {old.sql} to {new.sql}."
        raise UserError("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", text, span=span)
    if new == TIMESTAMP_NTZ and not table.snapshot.protocol.has("timestampNtz"):
        raise needs_feature(table, "timestampNtz", span)
    if not table.snapshot.protocol.has("typeWidening"):
        raise unsupported("another type than in files in a table without the feature typeWidening", span)
    if found.spelt[0] in table.snapshot.partition_columns and not keeps_texts(old, new):
        raise unsupported(f"{new.sql} as the type of the partition column {name}, with values of {old.sql},", span)
    _check_independent(action, found.spelt, change.column)
    found.holder[found.key] = type_json(new)
    told(found.owner, found.inside, old, new)


def _holds_texts(old: DataType, new: DataType) -> bool:
    """Whether texts of a declared type are texts of another one."""
    if not isinstance(old, CharType) or (isinstance(new, CharType) and new.name == "CHAR"):
        return False
    return (new == STRING and old.name == "VARCHAR") or (isinstance(new, CharType) and new.length >= old.length)


def _not_supported(name: str, old: DataType, new: DataType, span: Any) -> UserError:
    text = (
        f'ALTER TABLE ALTER/CHANGE COLUMN is not supported for changing `{name}` with type "{old.sql}" to "{new.sql}".'
    )
    return UserError("NOT_SUPPORTED_CHANGE_COLUMN", text, span=span)


# ---- CLUSTER BY


def reclustered(change: c.ClusterBy, table: DeltaBoundTable) -> Alteration | None:
    """CLUSTER BY, which later files go by; None where there is nothing to change."""
    snapshot = table.snapshot
    if snapshot.partition_columns:
        text = "ALTER TABLE CLUSTER BY cannot be applied to a partitioned table."
        raise UserError("DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED", text, span=change.span)
    paths = [one.parts for one in change.columns]
    old = clustering_of(snapshot)
    if not paths and not snapshot.protocol.has("clustering"):
        return None
    for one in change.columns:
        if one.parts[0] not in snapshot.by_name:
            text = f"Couldn't find column {one} in {', '.join(snapshot.by_name)}."
            raise UserError("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", text, span=one.span)
    check_clustering(snapshot.schema, paths, snapshot.properties)
    schema = json.loads(logged_metadata(snapshot)["schemaString"])
    parameters = {
        "oldClusteringColumns": ",".join(map(_path, old)),
        "newClusteringColumns": ",".join(map(_path, paths)),
    }
    action = clustering_action(schema, paths, snapshot.mapping != "none")
    return Alteration(
        "CLUSTER BY", parameters, lambda _: None, features=frozenset({"clustering"}), more=(action,), unchanged=True
    )
