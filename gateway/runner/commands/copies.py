"""COPY INTO: files of a folder become rows of a table, each file once."""

from __future__ import annotations

from dataclasses import replace

from gateway.catalog.base import TableName
from gateway.catalog.bound import DeltaBoundTable, PathTable, TextTable
from gateway.delta.copying import chosen_files, copy_files, loaded_files
from gateway.delta.delimited import layout_of, read_delimited
from gateway.delta.files import open_files, type_of
from gateway.delta.json_lines import check_options, read_json
from gateway.delta.properties import FORGETTING
from gateway.delta.text_files import check_width
from gateway.delta.write import check_appendable
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import GatewayError, Span, UserError, unsupported
from gateway.planner import plan
from gateway.runner.answer import Answer, rows_of
from gateway.runner.commands.constraints import checked, guarded_query
from gateway.runner.commands.evolution import with_columns
from gateway.runner.commands.identities import numbering
from gateway.runner.commands.tables import aligned
from gateway.runner.commands.targets import announced_rows, written_table
from gateway.runner.environment import Environment, Queries
from gateway.runner.written import COPIED
from gateway.sql.bind.resolve import Binder, BoundQuery
from gateway.sql.compile import binder_of, compile_query, queried
from gateway.sql.read import command_nodes as c
from gateway.sql.read.commands import parse_statement
from gateway.sql.typed import nodes as b
from gateway.sql.typed.assignment import overflown
from gateway.sql.typed.coerce import can_upcast, coerced
from gateway.sql.typed.common_types import nullable_inside, plain
from gateway.sqltypes import StructField, StructType, struct

_OPTIONS = ("force", "mergeschema")
_OF_PARQUET = {"mergeschema": ("true", "false"), "ignorecorruptfiles": ("false",)}


def copy_into(command: c.CopyInto, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """COPY INTO."""
    force, merge = (_option(command, name) for name in _OPTIONS)
    table = written_table(command.table, env, "COPY INTO", "no files can be loaded")
    check_appendable(table.location)
    if FORGETTING in table.snapshot.properties and not force:
        raise unsupported(f"COPY INTO a table with {FORGETTING}, which forgets what was loaded,", command.table.span)
    try:
        folder = env.tables.paths.resolve(command.path)
        paths = chosen_files(folder, env.tables.paths.roots, command.files, command.pattern)
    except UserError as error:
        raise error.at(command.span) from None
    known = set() if force else loaded_files(table.snapshot)
    paths = [path for path in paths if path not in known]
    if not paths:
        emit(Planned("COPY_INTO", "gateway", "all files are loaded", COPIED, writes=True, is_query=True))
        return rows_of("COPY_INTO", COPIED, [[0], [0], [0]], modified_rows=0, announced=True)
    files = _read(command, folder, paths, env)
    given, binder = _given(command, files, env, runner)
    target, metadata = _with_more(given.schema, table, merge, command.span)
    rows, casts, names = aligned(_by_name(command), target, _typed(given, target, binder), binder, {}, in_order=True)
    if numbering(target.snapshot, [names], command.table.span) is not None:
        raise unsupported("COPY INTO without the identity column", command.table.span)
    decision = plan(compile_query(guarded_query(rows, target.snapshot, binder), env.context))
    runner.check_size(decision, env, command.table.span)
    batches = announced_rows("COPY_INTO", decision, COPIED, runner, emit)
    try:
        batches = checked(batches, target.snapshot, command.table.span)
        own = [()] if decision.reads_of(table.location) else []
        result = copy_files(table.snapshot, paths, batches, target.snapshot.columns, metadata, force, own)
    except UserError as error:
        raise overflown(error, casts) from None
    counts = [[result.rows], [result.rows], [0]]
    facts = {"version": result.version, "files_written": result.files, "bytes_written": result.bytes}
    return rows_of("COPY_INTO", COPIED, counts, modified_rows=result.rows, announced=True, facts=facts)


def _read(command: c.CopyInto, folder: str, paths: list[str], env: Environment) -> PathTable | TextTable:
    """The rows of files of the format that the statement says."""
    roots, options = env.tables.paths.roots, {key.lower(): value for key, value in command.format_options}
    try:
        if command.format == "PARQUET":
            merge = options.get("mergeschema", "").lower() == "true"
            found = PathTable(
                TableName("parquet", "", command.path), open_files(folder, roots, paths, merge), by_us=True
            )
            check_width(len(found.snapshot.columns), folder)
            for column in found.snapshot.columns:
                column.check_readable()
            return found
        if command.format == "CSV":
            rows = read_delimited(paths, roots, layout_of(options))
        else:
            check_options(options)
            rows = read_json(paths, roots)
    except GatewayError as error:
        raise error.at(command.span) from None
    folded = [name.lower() for name in rows.column_names]
    if len(set(folded)) < len(folded):
        raise UserError(
            "COLUMN_ALREADY_EXISTS", f"Columns of the files in {folder} differ in case only.", span=command.span
        )
    shape = struct(*(StructField(f.name, type_of(f.type)) for f in rows.schema))
    return TextTable(TableName(command.format.lower(), "", command.path), shape, rows, folder)


def _given(
    command: c.CopyInto, files: PathTable | TextTable, env: Environment, runner: Queries
) -> tuple[BoundQuery, Binder]:
    """The rows of files, or what the statement's query makes of them."""
    if command.query is None:
        binder = binder_of(env.context, env.tables, {}, {})
        return queried(binder.scan(files, "files"), binder), binder
    env.tables.pinned["parquet", command.path, None] = files  # where the query finds them, and no others
    return runner.bind(command.query.tree, env)


def _typed(given: BoundQuery, table: DeltaBoundTable, binder: Binder) -> BoundQuery:
    """Rows in the types that the table's columns have."""
    types = {f.name.lower(): plain(f.type) for f in table.schema.fields}
    named = list(zip(given.rel.columns, given.schema.fields, strict=True))
    exprs = tuple(coerced(x, types[f.name.lower()]) for x, f in named)
    columns = tuple(
        b.Col(e.type, e.nullable, binder.ids.take(), f.name) for e, (_, f) in zip(exprs, named, strict=True)
    )
    shape = struct(*(StructField(x.name, x.type, x.nullable) for x in columns))
    return BoundQuery(b.Project(columns, given.rel, exprs), shape, given.ids)


def _by_name(command: c.CopyInto) -> c.Insert:
    """The INSERT that finds columns as COPY INTO does."""
    found = parse_statement("INSERT INTO t BY NAME SELECT 1")
    assert isinstance(found, c.Insert)
    return replace(found, table=command.table, query=replace(found.query, span=command.span))


def _option(command: c.CopyInto, name: str) -> bool:
    """One of COPY_OPTIONS. Raises UnsupportedError for those that are not known, and those of the format."""
    for key, value in command.copy_options:
        if key.lower() not in _OPTIONS or value.lower() not in ("true", "false"):
            raise unsupported(f"COPY_OPTIONS ('{key}' = '{value}')", command.span)
    for key, value in command.format_options if command.format == "PARQUET" else ():
        if value.lower() not in _OF_PARQUET.get(key.lower(), ()):
            raise unsupported(f"FORMAT_OPTIONS ('{key}' = '{value}')", command.span)
    return any(key.lower() == name and value.lower() == "true" for key, value in command.copy_options)


def _with_more(
    given: StructType, table: DeltaBoundTable, merge: bool, span: Span
) -> tuple[DeltaBoundTable, dict[str, object] | None]:
    """The table with the columns that only the given rows have, and its metadata then, None where it stays as it is.

    Raises UserError COPY_INTO_SCHEMA_MISMATCH_WITH_TARGET_TABLE for columns that it is not to be given; UnsupportedError for
    types that do not become the table's by what Spark calls an upcast.
    """
    by_name = {f.name.lower(): f for f in table.schema.fields}
    for f in given.fields:
        own = by_name.get(f.name.lower())
        if own is not None and f.type != plain(own.type) and not can_upcast(f.type, nullable_inside(plain(own.type))):
            raise unsupported(f"COPY INTO of {f.type.sql} into the column {own.name} {own.type.sql}", span)
    more = [f for f in given.fields if f.name.lower() not in by_name]
    if not more:
        return table, None
    if not merge:
        names = ", ".join(f.name for f in more)
        text = (
            f"A schema mismatch was detected while copying into the Delta table {table.name}: it has no columns {names}. "
            "They are added with COPY_OPTIONS ('mergeSchema' = 'true')."
        )
        raise UserError("COPY_INTO_SCHEMA_MISMATCH_WITH_TARGET_TABLE", text, span=span)
    return with_columns(table, more, span)
