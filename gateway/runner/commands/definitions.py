"""What a statement says that a new table is like, judged before anything is made of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.config.session import DELETION_VECTORS
from gateway.delta.creation import Definition
from gateway.delta.datafiles import VECTORS
from gateway.delta.expressions import CONSTRAINT, DEFAULT, GENERATED
from gateway.delta.features import Kept
from gateway.delta.identity import EXPLICIT, MARK, START, STEP
from gateway.delta.log import IN_COMMIT_SINCE
from gateway.delta.properties import FEATURE, MOST_ID, ROW_ID, ROW_TRACKING, ROW_VERSION
from gateway.delta.schema import declared_of
from gateway.delta.write import check_snapshot_writable
from gateway.errors import UnsupportedError, UserError
from gateway.runner.commands.constraints import check_condition
from gateway.runner.commands.keys import with_primary
from gateway.runner.environment import Environment
from gateway.sql.bind.kept import check_default, check_generated
from gateway.sql.bind.resolve import Binder
from gateway.sql.compile import binder_of
from gateway.sql.read import command_nodes as c
from gateway.sql.read.commands import parse_expression
from gateway.sqltypes import StructField, StructType, struct

# Features that a table has for what a new one is not given.
_NOT_LIKE = frozenset({"clustering", "domainMetadata"})
# Identity columns go on behind the last number of the table that is copied, as in Spark.
_KEPT_OF_COLUMNS = (DEFAULT, GENERATED, STEP, EXPLICIT, START, MARK)
# Properties that each table is given for itself.
_OWN_ALONE = frozenset({MOST_ID, ROW_ID, ROW_VERSION})
# Properties that Spark keeps for itself.
_RESERVED = {
    "location": "please use the LOCATION clause to specify it",
    "owner": "it will be set to the current user",
    "provider": "please use the USING clause to specify it",
    "external": "please use CREATE EXTERNAL TABLE",
    "is_managed_location": "it is a reserved property",
}


def definition_of(command: c.CreateTable, env: Environment) -> Definition:
    """What CREATE TABLE without a query says. Raises what is wrong with its columns."""
    columns = with_primary(command.columns or (), command.keys)
    schema = struct(*(one.field for one in columns))
    return _defined(command, schema, column_metadata(columns, schema, "CREATE TABLE", env), env)


def selected(command: c.CreateTable, given: StructType, env: Environment) -> Definition:
    """What CREATE TABLE … AS says of a table with the columns of its query."""
    return _defined(command, struct(*(StructField(f.name, f.type, True) for f in given.fields)), {}, env)


def _defined(
    command: c.CreateTable, schema: StructType, metadata: Mapping[str, Mapping[str, Any]], env: Environment
) -> Definition:
    properties = unreserved(command.properties, command.name)
    comment = properties.pop("comment", None) if command.comment is None else command.comment
    properties.pop("comment", None)
    for key, text in properties.items():
        if key.lower().startswith(CONSTRAINT):
            name = key[len(CONSTRAINT) :]
            check_condition(name, text, schema, command.name.parts[-1], env, command.name.span)
    for check in command.checks:
        name = check.name or f"{command.name.parts[-1]}_chk_{uuid.uuid4().hex[:7]}"
        check_condition(name, check.text, schema, command.name.parts[-1], env, check.span)
        properties[CONSTRAINT + name.lower()] = check.text
    for name, of in metadata.items():
        if START in of and name.lower() in (one.lower() for one in command.partitioned_by):
            text = f"PARTITIONED BY IDENTITY column {name} is not supported."
            raise UserError("DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED", text, span=command.name.span)
    if env.setting(DELETION_VECTORS) == "true" and VECTORS.lower() not in map(str.lower, properties):
        properties[VECTORS] = "true"
    clusters = tuple(name.parts for name in command.clustered_by)
    return Definition(schema, command.partitioned_by, clusters, properties, comment, metadata)


def like(table: DeltaBoundTable, properties: Mapping[str, str]) -> Definition:
    """An empty table like another, with more properties; as in Spark it is not clustered."""
    snapshot = table.snapshot
    check_snapshot_writable(snapshot, kept=Kept.BY_STATEMENT)
    own = {
        key: value
        for key, value in snapshot.properties.items()
        if key not in _OWN_ALONE and not key.startswith(IN_COMMIT_SINCE)
    }
    brought = {"rowTracking"} if own.get(ROW_TRACKING, "").lower() == "true" else set()
    left = _NOT_LIKE | brought
    features = {f"{FEATURE}{name}": "supported" for name in snapshot.protocol.features if name not in left}
    metadata = {
        column.name: {key: value for key, value in column.metadata.items() if key in _KEPT_OF_COLUMNS}
        for column in snapshot.columns
    }
    kept = {**features, **own, **properties}
    schema = declared_of(snapshot.columns)
    return Definition(schema, snapshot.partition_columns, (), kept, snapshot.comment, metadata)


def unreserved(pairs: Sequence[tuple[str, str]], name: c.Name | c.SetProperties) -> dict[str, str]:
    """Properties, none of which Spark keeps for itself. Raises UnsupportedError."""
    for key, _ in pairs:
        if key.lower() in _RESERVED:
            raise UnsupportedError(
                "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY",
                f"The feature is not supported: `{key}` is a reserved table property, {_RESERVED[key.lower()]}.",
                span=name.span,
            )
    return dict(pairs)


def column_metadata(
    columns: Sequence[c.ColumnDefinition], schema: StructType, command: str, env: Environment
) -> dict[str, dict[str, Any]]:
    """What columns of a table with `schema` keep, beside comments, by their names. Raises what is wrong with it."""
    found: dict[str, dict[str, Any]] = {}
    generated = [one.field.name for one in columns if one.generated is not None]
    for one in columns:
        if one.default is not None:
            tree = parse_expression(one.default)
            check_default(tree, one.default, one.field, command, _binder(env), env.context, one.span)
            found[one.field.name] = {DEFAULT: one.default}
        if one.identity is not None:
            start, step = one.identity.start, one.identity.step
            found[one.field.name] = {STEP: step, EXPLICIT: one.identity.explicit, START: start}
        if one.generated is not None:
            others = [name for name in generated if name != one.field.name]
            tree = parse_expression(one.generated)
            check_generated(tree, one.generated, one.field, schema, others, _binder(env), one.span)
            found[one.field.name] = {GENERATED: one.generated}
    return found


def _binder(env: Environment) -> Binder:
    return binder_of(env.context, env.tables, {}, {})
