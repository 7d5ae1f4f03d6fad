"""ALTER TABLE and COMMENT ON: what a table says of itself and of its columns, in one commit that keeps everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.information import Relation
from gateway.catalog.objects import StoredTable, StoredView
from gateway.delta.copying import loaded_files
from gateway.delta.creation import numbered
from gateway.delta.downgrade import DROPPED, check_droppable, drop
from gateway.delta.expressions import CONSTRAINT
from gateway.delta.identity import goes_up, is_identity
from gateway.delta.log import IN_COMMIT
from gateway.delta.metadata import Alteration, alter, check_alterable, edited
from gateway.delta.properties import FORGETTING, MOST_ID, ROW_TRACKING, asked, check_known, spelt
from gateway.delta.row_ids import tracks_rows
from gateway.delta.schema import MAPPING
from gateway.delta.tracking import check_trackable, track_rows
from gateway.delta.write import newest
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import UserError, unsupported
from gateway.runner import objects
from gateway.runner.answer import RESULT, Answer, done
from gateway.runner.commands import keys
from gateway.runner.commands.columns import added, as_text, changed, dropped, no_column, reclustered, renamed
from gateway.runner.commands.constraints import check_condition
from gateway.runner.commands.definitions import unreserved
from gateway.runner.commands.dropped_features import alterations, feature_of
from gateway.runner.commands.identities import synced
from gateway.runner.commands.targets import back_quoted, only_row, query_of, quoted, stop_if_cancelled
from gateway.runner.commands.views import is_view
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import struct

# Properties whose change asks for more than to be written down.
_NOT_LATER = frozenset({MAPPING, IN_COMMIT, ROW_TRACKING})
_WHAT = "no table can be altered"


def alter_table(command: c.AlterTable, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """ALTER TABLE: one change of properties or columns."""
    verb = _VERBS[type(command.change)]
    view = _view(command.name, env, verb)
    if view is not None:
        if isinstance(command.change, (c.SetProperties, c.UnsetProperties)):
            raise _expects_table(verb, view, command.name, "USE_ALTER_VIEW", " Please use ALTER VIEW instead.")
        raise _expects_table(verb, view, command.name)
    table = _altered_table(command.name, env)
    match command.change:
        case c.AddKey():
            return keys.add(command.change, table, env, emit)
        case c.DropKey():
            return keys.drop(command.change, table, env, emit)
        case c.SetProperties() if _tracks(command.change) and not tracks_rows(table.snapshot):
            check_trackable(table.snapshot)
            emit(Planned("ALTER_TABLE", "gateway", "commits to the Delta log", RESULT, writes=True, is_query=False))
            version = track_rows(table.snapshot)
            return Answer("ALTER_TABLE", is_query=False, announced=True, facts={"version": version})
        case c.DropFeature():
            name = feature_of(command.change, table)
            if name in DROPPED:
                check_droppable(table.snapshot, name)
                emit(Planned("ALTER_TABLE", "gateway", "commits to the Delta log", RESULT, writes=True, is_query=False))
                version = drop(table.snapshot, name, partial(stop_if_cancelled, emit))
                return Answer("ALTER_TABLE", is_query=False, announced=True, facts={"version": version})
            return _committed(table, list(alterations(name, command.change, table)), emit)
        case c.DropConstraint():
            dropped_key = keys.drop_named(command.change, table, env, emit)
            if dropped_key is not None:
                return dropped_key
    if not keys.may_break(command.change):
        return _commit(table, _alteration(command.change, table, env, runner, emit), emit)
    with env.tables.catalog_of(table.name.catalog).alone():
        keys.check_not_in_key(command.change, table, env)
        return _commit(table, _alteration(command.change, table, env, runner, emit), emit)


def alter_properties(
    command: c.AlterViewProperties, job: Statement, env: Environment, runner: Queries, emit: Emit
) -> Answer:
    """ALTER VIEW … SET and UNSET TBLPROPERTIES."""
    verb = _VERBS[type(command.change)].replace("TABLE", "VIEW", 1)
    view = _view(command.name, env, verb)
    if view is None:
        table = env.tables.find(command.name.parts, None, command.name.span)
        raise UserError(
            "EXPECT_VIEW_NOT_TABLE.USE_ALTER_TABLE",
            f"The table {_quoted(table.name)} does not support {verb}. Please use ALTER TABLE instead.",
            span=command.name.span,
        )
    properties = dict(view.properties)
    comment = view.comment
    if isinstance(command.change, c.SetProperties):
        properties |= unreserved(command.change.pairs, command.change)
        comment = properties.pop("comment", comment)
    else:
        assert isinstance(command.change, c.UnsetProperties)
        comment = None if "comment" in command.change.keys else comment
        properties = {k: v for k, v in properties.items() if k not in command.change.keys}
    return _put(view, replace(view, properties=properties, comment=comment), command.name, env, emit)


def comment_on(command: c.CommentOn, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """COMMENT ON TABLE, VIEW, COLUMN and SCHEMA."""
    name = command.name
    if command.kind == "SCHEMA":
        catalog, schema = env.tables.schema_of(name.parts, name.span)
        objects.check_writable(catalog, "no schema can be changed", name.span)
        emit(Planned("COMMENT", "gateway", "a file of the catalog", RESULT, writes=True, is_query=False))
        catalog.comment_schema(schema, command.comment or None)
        return Answer("COMMENT", is_query=False, announced=True)
    column = c.Name(name.parts[-1:], name.span) if command.kind == "COLUMN" else None
    owner = c.Name(name.parts[:-1], name.span) if column is not None else name
    view = _view(owner, env, f"COMMENT ON {command.kind}")
    if view is not None:
        if command.kind == "TABLE":
            raise _expects_table("COMMENT ON TABLE", view, name)
        if column is None:
            return _put(view, replace(view, comment=command.comment or None), name, env, emit)
        return _put(view, _with_column_comment(view, column, command.comment), name, env, emit)
    if command.kind == "VIEW":
        found = env.tables.find(owner.parts, None, name.span)
        text = f"'COMMENT ON VIEW' expects a view but {_quoted(found.name)} is a table."
        raise UserError("EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE", text, span=name.span)
    table = _altered_table(owner, env)
    if column is None:
        return _commit(table, _set_properties({"comment": command.comment or ""}, table.snapshot.mapping), emit)
    return _commit(table, changed([c.ColumnChange(column, comment=command.comment or "")], table, env), emit)


def _commit(table: DeltaBoundTable, alteration: Alteration | None, emit: Emit) -> Answer:
    if alteration is None:
        return done("ALTER_TABLE")
    edited(table.snapshot, alteration)  # what is wrong with it is told before it is announced
    return _committed(table, [alteration], emit)


def _committed(table: DeltaBoundTable, alterations: Sequence[Alteration], emit: Emit) -> Answer:
    """One commit after the other."""
    emit(Planned("ALTER_TABLE", "gateway", "a commit to the Delta log", RESULT, writes=True, is_query=False))
    snapshot, version = table.snapshot, None
    for at, alteration in enumerate(alterations):
        snapshot = newest(snapshot) if at else snapshot
        version = alter(snapshot, alteration)
    return Answer("ALTER_TABLE", is_query=False, announced=True, facts={"version": version})


def _put(old: StoredView, view: StoredView, name: c.Name, env: Environment, emit: Emit) -> Answer:
    catalog = env.tables.catalog_of(view.name.catalog)
    objects.check_writable(catalog, "no view can be altered", name.span)
    emit(Planned("ALTER_VIEW", "gateway", "a file in the schema's folder", RESULT, writes=True, is_query=False))
    objects.change_view(catalog, old, view)
    return Answer("ALTER_VIEW", is_query=False, announced=True)


def rename(command: c.Rename, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """ALTER TABLE and ALTER VIEW … RENAME TO: within one catalog."""
    if is_view(command.name, env):
        raise unsupported("ALTER VIEW … RENAME TO of a temporary view", command.name.span)
    found = env.tables.find(command.name.parts, None, command.name.span)
    if isinstance(found, StoredView) != (command.kind == "VIEW"):
        raise _wrong_kind(command, found)
    if isinstance(found, (Relation, StoredTable)):
        raise unsupported(f"Renaming `{found.name}`", command.name.span)
    place = objects.place_of(env.tables, command.to.parts, "nothing can be renamed", command.to.span)
    if place.catalog.name != found.name.catalog:
        raise unsupported("ALTER TABLE … RENAME TO another catalog", command.to.span)
    if place.kind:
        raise objects.already_exists(place, command.to.span)
    place.catalog.check_name(command.kind.lower(), place.name)
    kind = f"ALTER_{command.kind}"
    emit(Planned(kind, "gateway", "a rename in the catalog", RESULT, writes=True, is_query=False))
    if isinstance(found, StoredView):
        objects.rename_view(found, place, command.to.span)
    else:
        place.catalog.rename_table(found.name.schema, found.name.table, place.schema, place.name)
    return Answer(kind, is_query=False, announced=True)


def _wrong_kind(command: c.Rename, found: Any) -> UserError:
    name, span = found.name, command.name.span
    if command.kind == "TABLE":
        text = f"'ALTER TABLE' expects a table but {_quoted(name)} is a view. Please use ALTER VIEW instead."
        return UserError("EXPECT_TABLE_NOT_VIEW.USE_ALTER_VIEW", text, span=span)
    text = f"The table {_quoted(name)} does not support ALTER VIEW. Please use ALTER TABLE instead."
    return UserError("EXPECT_VIEW_NOT_TABLE.USE_ALTER_TABLE", text, span=span)


# ---- what is altered


def _view(name: c.Name, env: Environment, what: str) -> StoredView | None:
    """The lasting view of a name, None for a table. Raises UnsupportedError for a temporary one."""
    if is_view(name, env):
        raise unsupported(f"{what} of a temporary view", name.span)
    found = env.tables.find(name.parts, None, name.span)
    return found if isinstance(found, StoredView) else None


def _altered_table(name: c.Name, env: Environment) -> DeltaBoundTable:
    found = env.tables.find(name.parts, None, name.span)
    if isinstance(found, Relation):
        raise objects.information_is_read_only(str(found.name), _WHAT, name.span)
    objects.check_writable(env.tables.catalog_of(found.name.catalog), _WHAT, name.span)
    if isinstance(found, StoredTable):
        raise found.refused().at(name.span)
    assert isinstance(found, DeltaBoundTable)
    check_alterable(found.snapshot)
    return found


def _quoted(name: Any) -> str:
    return f"`{name.catalog}`.`{name.schema}`.`{name.table}`"


def _expects_table(
    verb: str, view: StoredView, name: c.Name, part: str = "NO_ALTERNATIVE", hint: str = ""
) -> UserError:
    text = f"'{verb}' expects a table but {_quoted(view.name)} is a view.{hint}"
    return UserError(f"EXPECT_TABLE_NOT_VIEW.{part}", text, span=name.span)


def _with_column_comment(view: StoredView, column: c.Name, comment: str | None) -> StoredView:
    fields = list(view.schema.fields)
    at = next((i for i, f in enumerate(fields) if f.name.lower() == column.parts[0].lower()), None)
    if at is None:
        raise no_column(column, [f.name for f in fields])
    fields[at] = replace(fields[at], comment=comment or None)
    return replace(view, schema=struct(*fields))


# ---- properties


def _tracks(change: c.SetProperties) -> bool:
    """Whether rows are to be numbered from now on, and nothing else is asked for."""
    return [(spelt(key), value.lower()) for key, value in change.pairs] == [(ROW_TRACKING, "true")]


def _check_remembered(change: c.SetProperties, table: DeltaBoundTable) -> None:
    """Raise UnsupportedError where a table is to forget which files it was given."""
    if any(spelt(key) == FORGETTING for key, _ in change.pairs) and loaded_files(table.snapshot):
        raise unsupported(f"setting {FORGETTING} of a table that COPY INTO has loaded, which would load files twice,")


def _set_properties(pairs: dict[str, str], mapping: str) -> Alteration:
    wanted = asked(pairs)
    for key in wanted.properties:
        if key in (IN_COMMIT, ROW_TRACKING):
            raise unsupported(f"setting the table property {key} of a table that is there")
        if key.startswith(CONSTRAINT):
            raise UserError("DELTA_ADD_CONSTRAINTS", "Please use ALTER TABLE ADD CONSTRAINT to add CHECK constraints.")
    mode = wanted.properties.get(MAPPING, mapping).lower()
    if mode == "none" != mapping:
        raise unsupported(f"setting {MAPPING} to none, which writes all files anew")
    if mode != mapping and (mapping, mode) != ("none", "name"):
        text = f"Changing column mapping mode from '{mapping}' to '{mode}' is not supported."
        raise UserError("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", text)

    def edit(action: dict[str, Any]) -> None:
        set_ = dict(wanted.properties)
        if "comment" in set_:
            action["description"] = set_.pop("comment")
        if mode != mapping:
            set_[MOST_ID] = str(numbered(action["schema"], 0, keeps_names=True))
        action["configuration"] = {**action.get("configuration", {}), **set_}

    return Alteration("SET TBLPROPERTIES", {"properties": as_text(wanted.properties)}, edit, features=wanted.features)


def _unset_properties(keys: Sequence[str]) -> Alteration:
    def edit(action: dict[str, Any]) -> None:
        if "comment" in keys:
            action.pop("description", None)
        action["configuration"] = {k: v for k, v in action.get("configuration", {}).items() if k not in keys}

    return Alteration("UNSET TBLPROPERTIES", {"properties": as_text(list(keys)), "ifExists": True}, edit)


# ---- columns


def _alteration(
    change: Any, table: DeltaBoundTable, env: Environment, runner: Queries, emit: Emit
) -> Alteration | None:
    match change:
        case c.SetProperties():
            _check_remembered(change, table)
            return _set_properties(unreserved(change.pairs, change), table.snapshot.mapping)
        case c.UnsetProperties():
            for key in change.keys:
                check_known(key)
                if spelt(key) in _NOT_LATER:
                    raise unsupported(f"unsetting the table property {key}")
            return _unset_properties(change.keys)
        case c.AddColumns():
            return added(change, table)
        case c.RenameColumn():
            return renamed(change, table)
        case c.DropColumns():
            return dropped(change, table)
        case c.ClusterBy():
            return reclustered(change, table)
        case c.SyncIdentity():
            return _synced(change, table, env, runner, emit)
        case c.AddConstraint():
            return _constrained(change, table, env, runner, emit)
        case c.DropConstraint():
            return _unconstrained(change, table)
        case c.ChangeColumns():
            for one in change.columns:
                if one.not_null:
                    _check_no_nulls(one, table, env, runner, emit)
            return changed(change.columns, table, env)
    raise TypeError(type(change).__name__)


def _check_no_nulls(
    change: c.ColumnChange, table: DeltaBoundTable, env: Environment, runner: Queries, emit: Emit
) -> None:
    """Raise DELTA_NEW_NOT_NULL_VIOLATION if a column that is to be NOT NULL holds a NULL."""
    if len(change.column.parts) > 1:
        raise unsupported("SET NOT NULL inside of a column", change.column.span)
    fields = [f.name for f in table.schema.fields]
    name = next((f for f in fields if f.lower() == change.column.parts[0].lower()), None)
    if name is None:
        raise no_column(change.column, fields)
    violating = _count(f"{next(back_quoted((name,)))} IS NULL", table, env, runner, emit)
    if violating:
        text = f"{violating} rows in {table.name} violate the new NOT NULL constraint on {name}"
        raise UserError("DELTA_NEW_NOT_NULL_VIOLATION", text, span=change.column.span)


def _synced(
    change: c.SyncIdentity, table: DeltaBoundTable, env: Environment, runner: Queries, emit: Emit
) -> Alteration:
    """SYNC IDENTITY. Raises UserError DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN."""
    found = {x.name.lower(): x for x in table.snapshot.columns}.get(change.column.parts[0].lower())
    if found is None:
        raise no_column(change.column, [f.name for f in table.schema.fields])
    if len(change.column.parts) > 1 or not is_identity(found):
        text = "ALTER TABLE ALTER COLUMN SYNC IDENTITY cannot be called on non IDENTITY columns."
        raise UserError("DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN", text, span=change.column.span)
    word, (name,) = "max" if goes_up(found) else "min", back_quoted((found.name,))
    return synced(found.name, table.snapshot, _value(f"SELECT {word}({name})", table, "", env, runner, emit))


def _count(condition: str, table: DeltaBoundTable, env: Environment, runner: Queries, emit: Emit) -> int:
    """How many rows of a table a condition takes."""
    return int(_value("SELECT count(*)", table, f"WHERE {condition}", env, runner, emit))


def _value(select: str, table: DeltaBoundTable, where: str, env: Environment, runner: Queries, emit: Emit) -> Any:
    """The one value that a query of a table gives."""
    (found,) = only_row(runner.prepared(query_of(table, select, where), env)[1], runner, emit)
    return found


# ---- constraints


def _constrained(
    change: c.AddConstraint, table: DeltaBoundTable, env: Environment, runner: Queries, emit: Emit
) -> Alteration:
    key = CONSTRAINT + change.name.lower()
    if key in table.properties:
        text = f"Constraint '{change.name}' already exists. Please delete the old constraint first."
        raise UserError("DELTA_CONSTRAINT_ALREADY_EXISTS", text, span=change.span)
    check_condition(change.name, change.text, table.schema, quoted(table), env, change.span)
    violating = _count(f"({change.text}) IS NOT TRUE", table, env, runner, emit)
    if violating:
        text = f"{violating} rows in {table.name} violate the new CHECK constraint ({change.text})"
        raise UserError("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", text, span=change.span)

    def edit(action: dict[str, Any]) -> None:
        action["configuration"] = {**action.get("configuration", {}), key: change.text}

    parameters = {"name": change.name, "expr": change.text}
    return Alteration("ADD CONSTRAINT", parameters, edit, reads=True, features=frozenset({"checkConstraints"}))


def _unconstrained(change: c.DropConstraint, table: DeltaBoundTable) -> Alteration:
    key = CONSTRAINT + change.name.lower()
    text = table.properties.get(key)
    if text is None and not change.if_exists:
        message = f"Cannot drop nonexistent constraint {change.name} from table {quoted(table)}. Provide IF EXISTS to allow it."
        raise UserError("DELTA_CONSTRAINT_DOES_NOT_EXIST", message, span=change.span)

    def edit(action: dict[str, Any]) -> None:
        action["configuration"] = {k: v for k, v in action.get("configuration", {}).items() if k != key}

    found = {} if text is None else {"expr": text}
    existed = "false" if text is None else "true"
    return Alteration("DROP CONSTRAINT", {"name": change.name, **found, "existed": existed}, edit)


_VERBS: dict[type, str] = {
    c.SetProperties: "ALTER TABLE ... SET TBLPROPERTIES",
    c.UnsetProperties: "ALTER TABLE ... UNSET TBLPROPERTIES",
    c.AddColumns: "ALTER TABLE ... ADD COLUMNS",
    c.ChangeColumns: "ALTER TABLE ... ALTER COLUMN",
    c.RenameColumn: "ALTER TABLE ... RENAME COLUMN",
    c.DropColumns: "ALTER TABLE ... DROP COLUMNS",
    c.ClusterBy: "ALTER TABLE ... CLUSTER BY",
    c.SyncIdentity: "ALTER TABLE ... ALTER COLUMN",
    c.AddConstraint: "ALTER TABLE ... ADD CONSTRAINT",
    c.DropConstraint: "ALTER TABLE ... DROP CONSTRAINT",
    c.DropFeature: "ALTER TABLE ... DROP FEATURE",
    c.AddKey: "ALTER TABLE ... ADD CONSTRAINT",
    c.DropKey: "ALTER TABLE ... DROP CONSTRAINT",
}
