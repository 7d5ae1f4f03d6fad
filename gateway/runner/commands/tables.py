"""Tables that a statement makes, fills and drops: plain Delta tables, one atomic commit each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.catalog.objects import StoredLocation, StoredTable
from gateway.delta import write
from gateway.delta.expressions import GENERATED
from gateway.delta.features import Kept
from gateway.delta.identity import is_identity
from gateway.delta.rewrite import check_read
from gateway.engine.base import Emit, Planned, SessionChange, Statement
from gateway.errors import Span, UserError, unsupported
from gateway.planner import plan
from gateway.runner import objects
from gateway.runner.answer import RESULT, Answer, done, rows_of
from gateway.runner.commands import keys, locations
from gateway.runner.commands.constraints import checked, guarded_query
from gateway.runner.commands.definitions import definition_of, like, selected, unreserved
from gateway.runner.commands.evolution import inserted, told
from gateway.runner.commands.generated import default_of, recomputed, stands_for
from gateway.runner.commands.identities import numbering
from gateway.runner.commands.overwrites import Overwrite, Static, overwrite, static_partition
from gateway.runner.commands.targets import announced_rows, new_table, quoted, written_rows, written_table
from gateway.runner.commands.views import is_view
from gateway.runner.environment import Environment, Queries
from gateway.runner.written import INSERTED
from gateway.sql.bind.defaults import Default, with_defaults, with_read_defaults
from gateway.sql.bind.resolve import Binder, BoundQuery
from gateway.sql.compile import compile_query, projected, stored
from gateway.sql.read import command_nodes as c
from gateway.sql.typed import nodes as b
from gateway.sql.typed.assignment import (
    Assigned,
    are_found_by_name,
    assigned,
    found_by_name,
    overflown,
    too_few,
    too_many,
    with_maps_of,
    with_names_of,
)
from gateway.sql.typed.coerce import coerced
from gateway.sqltypes import DataType, MapType, StructField, StructType, struct


def create_table(command: c.CreateTable, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """CREATE TABLE and CREATE TABLE AS SELECT."""
    catalog, schema, table = new_table(command.name, env)
    objects.check_writable(catalog, "no table can be created", command.name.span)
    place = objects.Place(catalog, schema, table)
    if not objects.may_make_table(place, command.replace, command.if_not_exists, command.name.span):
        return done("CREATE_TABLE")
    path, replace = catalog.table_location(schema, table), command.replace
    is_new = not place.kind
    if is_new and command.must_exist:
        raise env.tables.missing(command.name.parts, command.name.span)
    if command.location is not None:
        path = locations.checked_folder(command, place, env)
        if locations.is_table(command, path, place):
            return locations.adopted(command, path, place, env, emit)
    external = command.location is not None or catalog.located(schema, table) == path
    if command.query is None:
        definition = dataclasses.replace(definition_of(command, env), external=external, of_old=command.must_exist)
        declared = keys.declared(command, place, definition.schema, keys.checks_of(definition.properties), env)
        write.check_creatable(path, definition, as_select=False, replace=replace)
        emit(Planned("CREATE_TABLE", "gateway", "a commit to the Delta log", RESULT, writes=True, is_query=False))
        claim = nullcontext if external else partial(keys.claimed, place, declared, definition.table_id)
        with objects.Tolerated(objects.MADE, command.if_not_exists):
            if external or not is_new:
                keys.announce(place, declared, definition.table_id)
            version = write.make_table(path, definition, None, replace, None, claim).version
            if command.location is not None and is_new:
                locations.keep(place, path, command.name.span)
            if external or version:
                keys.keep(place, declared, definition.table_id)
        return Answer("CREATE_TABLE", is_query=False, announced=True)
    seen = write.replaced(path) if replace else None
    query, binder = runner.bind(command.query.tree, env)
    made = selected(command, query.schema, env)
    definition = dataclasses.replace(made, external=external, of_old=command.must_exist)
    write.check_creatable(path, definition, as_select=True, replace=replace)
    decision = plan(compile_query(stored(query, binder, definition.schema), env.context))
    runner.check_size(decision, env, command.name.span)
    rows = announced_rows("CREATE_TABLE_AS_SELECT", decision, INSERTED, runner, emit)
    named = nullcontext if external else partial(catalog.claimed, schema, table)
    with objects.Tolerated(objects.MADE, command.if_not_exists):
        result = write.make_table(path, definition, rows, replace, seen if decision.reads_of(path) else None, named)
        if command.location is not None and is_new:
            locations.keep(place, path, command.name.span)
        # Databricks shows the columns without a row here; connector tests rely on it.
        return written_rows("CREATE_TABLE_AS_SELECT", result, [])
    return rows_of("CREATE_TABLE_AS_SELECT", INSERTED, [[], []], announced=True)


def create_table_like(
    command: c.CreateTableLike, job: Statement, env: Environment, runner: Queries, emit: Emit
) -> Answer:
    """CREATE TABLE … LIKE."""
    span = command.name.span
    catalog, schema, table = new_table(command.name, env)
    objects.check_writable(catalog, "no table can be created", span)
    found = None if is_view(command.source, env) else env.tables.find(command.source.parts, None, command.source.span)
    if not isinstance(found, DeltaBoundTable):
        raise unsupported("CREATE TABLE … LIKE anything but a Delta table", command.source.span)
    place = objects.Place(catalog, schema, table)
    if not objects.may_make_table(place, False, command.if_not_exists, span):
        return done("CREATE_TABLE")
    definition = like(found, unreserved(command.properties, command.name))
    path = catalog.table_location(schema, table)
    write.check_creatable(path, definition, as_select=False, replace=False)
    emit(Planned("CREATE_TABLE", "gateway", "a commit to the Delta log", RESULT, writes=True, is_query=False))
    with objects.Tolerated(objects.MADE, command.if_not_exists):
        write.make_table(path, definition, claim=partial(catalog.claimed, schema, table))
    return Answer("CREATE_TABLE", is_query=False, announced=True)


def drop_table(command: c.DropTable, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """DROP TABLE."""
    name = command.name
    if is_view(name, env):  # as in Spark, the view goes; a table behind it stays
        return done("DROP_TABLE", SessionChange("drop_view", name.parts[0].lower()))
    catalog_name, schema, table = env.tables.qualified(name.parts)
    catalog = env.tables.catalogs.get(catalog_name.lower())
    if catalog is not None and objects.has_view(catalog, schema, table):
        shown = f"{catalog.name}.{schema}.{table}"
        raise objects.wrong_kind("DROP TABLE", "EXTERNAL or MANAGED", shown, "VIEW", "DROP VIEW", name.span)
    known = catalog is not None and (
        any(catalog.identity(kind, schema, table) is not None for kind in (StoredLocation, StoredTable))
        or catalog.table_folder(schema, table) is not None
    )
    if catalog is None or not known:
        if command.if_exists:
            return done("DROP_TABLE")
        raise env.tables.missing(name.parts, name.span)
    objects.check_writable(catalog, "no table can be dropped", name.span)
    emit(Planned("DROP_TABLE", "gateway", "removes the table's folder", RESULT, writes=True, is_query=False))
    with objects.Tolerated("TABLE_OR_VIEW_NOT_FOUND", command.if_exists):
        catalog.drop_table(schema, table)
    return Answer("DROP_TABLE", is_query=False, announced=True)


def insert(command: c.Insert, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """INSERT INTO … VALUES / SELECT, with ANSI store assignment."""
    replaces = command.overwrite or command.replaced is not None
    to_add = not replaces and not command.evolves
    table = written_table(command.table, env, "INSERT", "no rows can be inserted", to_add=to_add)
    partition = static_partition(command, table, env)
    query, binder = _source(command, stands_for(filled(command, table, partition), table.snapshot), env, runner)
    grown, metadata = _grown(command, table, query, partition)
    rows, casts, given = aligned(command, grown, query, binder, partition)
    numbers = numbering(grown.snapshot, [given], command.table.span)
    try:
        if replaces:
            change = Overwrite(command, table, grown, metadata, partition, numbers)
            return overwrite(change, rows, binder, env, runner, emit)
        write.check_appendable(table.location)
        guarded = guarded_query(rows, grown.snapshot, binder)
        decision = plan(compile_query(guarded, env.context, answers=True))
        runner.check_size(decision, env, command.table.span)
        batches = announced_rows("INSERT", decision, INSERTED, runner, emit)
        found = checked(batches, grown.snapshot, command.table.span)
        found = found if numbers is None else numbers.filled(found)
        own = decision.reads_of(table.location)
        reads = partial(check_read, table.snapshot, reads=[()]) if own else None
        also, columns = partial(told, metadata, numbers), grown.snapshot.columns if command.evolves else ()
        result = write.append(table.location, found, table.snapshot, Kept.BY_STATEMENT, also, reads, columns)
    except UserError as error:
        raise overflown(error, casts) from None
    return written_rows("INSERT", result, [result.rows])


def _source(
    command: c.Insert, told: Sequence[Default | None], env: Environment, runner: Queries
) -> tuple[BoundQuery, Binder]:
    """The query of an INSERT. Raises UnsupportedError for DEFAULT where it is not known what it stands for."""
    try:
        return runner.bind(with_defaults(command.query.tree, told), env)
    except UserError as error:
        if not _is_of_default(error):
            raise
        refusal = unsupported("DEFAULT as a value", error.span)
    tree = with_read_defaults(command.query.tree, told)
    try:
        query, binder = runner.bind(tree, env)
    except UserError as error:
        raise (refusal if _is_of_default(error) else error) from None
    if _puts_together(query.rel):
        raise refusal
    return query, binder


def _is_of_default(error: UserError) -> bool:
    return error.condition.startswith("UNRESOLVED_COLUMN") and "name `default` cannot" in error.message.lower()


def _puts_together(rel: b.Rel) -> bool:
    """Whether what a query gives are no rows that it reads, but what many of them come to."""
    while isinstance(rel, (b.Project, b.Sort, b.Limit, b.Filter, b.WindowRel)):
        rel = rel.input
    return isinstance(rel, b.Aggregate)


def _grown(
    command: c.Insert, table: DeltaBoundTable, query: BoundQuery, partition: Static
) -> tuple[DeltaBoundTable, dict[str, Any] | None]:
    """The table with the columns that the statement may bring along, and its metadata then; None where it stays as it is."""
    if not command.evolves:
        return table, None
    span, given = command.table.span, query.rel.columns
    own = [f for f in table.schema.fields if f.name not in partition]
    by_name = {f.name.lower(): f for f in own}
    if command.columns is not None:
        names = [by_name.get(name.parts[-1].lower()) for name in command.columns]
        pairs, more = [(f, x) for f, x in zip(names, given, strict=False) if f is not None], []
    elif command.by_name:
        _distinct([x.name for x in given], given, "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA", span)
        pairs = [(by_name[x.name.lower()], x) for x in given if x.name.lower() in by_name]
        known = {f.name.lower() for f in table.schema.fields}
        more = [x for x in given if x.name.lower() not in known]
    else:
        pairs, more = list(zip(own, given, strict=False)), list(given[len(own) :])
    filled_by = [(f, StructField(f.name, x.type)) for f, x in pairs]
    return inserted(table, filled_by, [StructField(x.name, x.type) for x in more], span)


def filled(command: c.Insert, table: DeltaBoundTable, partition: Static) -> list[StructField]:
    """The columns that values fill by their places, as far as there are such."""
    if command.by_name:
        return []
    fields = {f.name.lower(): f for f in table.schema.fields if f.name not in partition}
    if command.columns is None:
        return list(fields.values())
    names = [name.parts[-1].lower() for name in command.columns]
    return [fields[name] for name in names] if all(name in fields for name in names) else []


def aligned(
    command: c.Insert,
    target: DeltaBoundTable,
    query: BoundQuery,
    binder: Binder,
    partition: Static,
    in_order: bool = False,
) -> tuple[BoundQuery, list[Assigned], set[str]]:
    """The query's columns as the table's: by position, by the given list, or by name; missing ones as it says, or NULL.

    And the names of those that it gives. Structs with fields in another order are refused with `in_order` where it is not
    by their names that the fields are found.
    """
    span, schema, table = command.table.span, target.schema, quoted(target)
    others = struct(*(f for f in schema.fields if f.name not in partition))
    given, extra = _by_name(command, others, query.rel.columns, table)
    sources = _sources(command, others, given)
    by_name = are_found_by_name(sources)
    types = {f.name: source for _, source, f in sources}
    maps = {
        given[f.name.lower()].id: f.type
        for f in others.fields
        if f.name.lower() in given and isinstance(f.type, MapType)
    }
    query = dataclasses.replace(query, rel=with_maps_of(query.rel, maps))
    columns = {column.id: column for column in query.rel.columns}
    casts: list[Assigned] = []
    exprs: list[b.Expr] = []
    for f in schema.fields:
        found = given.get(f.name.lower())
        if f.name in partition:
            exprs.append(partition[f.name])
        elif found is not None and by_name:
            exprs.append(found_by_name(found, types[f.name], f, table, command.query.span))
        elif found is not None:
            casts += assigned(found.type, f, table, in_order, command.query.span)
            exprs.append(coerced(columns[found.id], f.type))
        elif GENERATED in target.snapshot.by_name[f.name].metadata:
            exprs.append(b.null(f.type))  # until what it is computed from is of the table's types
        elif (default := default_of(f, target.snapshot, binder)) is not None:
            exprs.append(default)
        elif f.nullable or is_identity(target.snapshot.by_name[f.name]):
            exprs.append(b.null(f.type))
        else:
            text = f"Column {f.name} is not specified in INSERT."
            raise UserError("DELTA_INSERT_COLUMN_MISMATCH", text, span=span)
    if extra:
        raise too_many(table, extra, span)
    names = {f.name for f in schema.fields if f.name.lower() in given or f.name in partition}
    rows = projected(query, binder, exprs, schema)
    return (
        dataclasses.replace(rows, rel=recomputed(rows.rel, target.snapshot, names, binder, in_order=True)),
        casts,
        names,
    )


def _sources(
    command: c.Insert, schema: StructType, given: Mapping[str, b.Col]
) -> list[tuple[str, DataType, StructField]]:
    """Name and type of what fills each of a table's columns, as Delta compares them; a list of columns gives their names."""
    pairs = [(given[f.name.lower()], f) for f in schema.fields if f.name.lower() in given]
    if command.columns is None:
        return [(found.name, found.type, f) for found, f in pairs]
    return [(f.name, with_names_of(found.type, f.type), f) for found, f in pairs]


def _by_name(
    command: c.Insert, schema: StructType, given: Sequence[b.Col], table: str
) -> tuple[dict[str, b.Col], list[str]]:
    """The query's columns by the lower-cased names of the table's that they fill, and the names of those that fill none."""
    span = command.table.span
    known = [f.name for f in schema.fields]
    lower = [name.lower() for name in known]
    if command.by_name:
        names = [g.name for g in given]
        found = _distinct(names, given, "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA", span)
        return found, [name for name in names if name.lower() not in lower]
    if command.columns is None:
        if len(given) < len(known):
            raise too_few(table, "data columns", len(known), len(given), span)
        return dict(zip(lower, given, strict=False)), [g.name for g in given[len(known) :]]
    names = [n.parts[-1] for n in command.columns]
    found = _distinct(names, given, "COLUMN_ALREADY_EXISTS", span)
    if len(names) != len(given):
        many = len(given) > len(names)
        raise UserError(
            f"INSERT_COLUMN_ARITY_MISMATCH.{'TOO_MANY' if many else 'NOT_ENOUGH'}_DATA_COLUMNS",
            f"Cannot write to {table}, the reason is {'too many' if many else 'not enough'} data "
            f"columns: table columns: {', '.join(f'`{n}`' for n in names)}; data columns: "
            f"{', '.join(f'`{g.name}`' for g in given)}.",
            span=span,
        )
    for name in names:
        if name.lower() not in lower:
            raise UserError(
                "UNRESOLVED_COLUMN.WITH_SUGGESTION",
                f"A column with name `{name}` cannot be resolved. Did you mean one of the following? "
                f"[{', '.join(f'`{k}`' for k in known[:5])}].",
                span=span,
            )
    return found, []


def _distinct(names: Sequence[str], given: Sequence[b.Col], condition: str, span: Span | None) -> dict[str, b.Col]:
    """Columns by lower-cased name, as far as there are names and columns. Raises UserError for a name that is there twice."""
    found: dict[str, b.Col] = {}
    for at, name in enumerate(names):
        if name.lower() in (n.lower() for n in names[:at]):
            raise UserError(condition, f"The column `{name}` is given more than once.", span=span)
        if at < len(given):
            found[name.lower()] = given[at]
    return found
