"""What is not a query: one module per kind of command, and the table that says which function runs which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.engine.base import Emit, Statement
from gateway.errors import unsupported
from gateway.runner.answer import Answer
from gateway.runner.commands import (
    alter,
    analysis,
    changes,
    clones,
    copies,
    describe,
    explain,
    functions,
    history,
    listed,
    maintenance,
    merges,
    overwrites,
    replacements,
    schemas,
    session,
    show,
    staging,
    tables,
    views,
    volumes,
)
from gateway.runner.commands.targets import is_path
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c

Rule = Callable[[Any, Statement, Environment, Queries, Emit], Answer]
# Those that only read, or change the session, or announce what they will write before they do: `check` runs them too.
_WITHOUT_TRACE: dict[type, Rule] = {
    c.UseCatalog: session.use_catalog,
    c.UseSchema: session.use_schema,
    c.Kill: session.kill,
    c.SetConf: session.set_conf,
    c.SetTimeZone: session.set_zone,
    c.Reset: session.reset,
    c.ShowCatalogs: show.show_catalogs,
    c.ShowCurrent: show.show_current,
    c.ShowSchemas: show.show_schemas,
    c.ShowTables: show.show_tables,
    c.ShowTableExtended: show.show_extended,
    c.ShowViews: show.show_views,
    c.ShowColumns: show.show_columns,
    c.ShowFunctions: show.show_functions,
    c.ShowListed: listed.show_listed,
    c.ShowKeys: listed.show_keys,
    c.ShowTblProperties: show.show_properties,
    c.DescribeTable: describe.describe_table,
    c.DescribeQuery: describe.describe_query,
    c.DescribeSchema: describe.describe_schema,
    c.DescribeCatalog: describe.describe_catalog,
    c.ShowCreateTable: show.show_create_table,
    c.CreateView: views.create_view,
    c.AlterView: views.alter_view,
    c.AlterViewProperties: alter.alter_properties,
    c.AlterTable: alter.alter_table,
    c.Rename: alter.rename,
    c.CommentOn: alter.comment_on,
    c.DropView: views.drop_view,
    c.CreateVolume: volumes.create_volume,
    c.DropVolume: volumes.drop_volume,
    c.ShowVolumes: volumes.show_volumes,
    c.ListFiles: staging.list_files,
    c.DropFunction: functions.drop_function,
    c.RefreshTable: maintenance.refresh_table,
    c.DescribeHistory: history.describe_history,
    c.DescribeDetail: history.describe_detail,
    c.ShowPartitions: history.show_partitions,
}
_RULES: dict[type, Rule] = {
    **_WITHOUT_TRACE,
    c.Explain: explain.explain,
    c.CreateSchema: schemas.create_schema,
    c.DropSchema: schemas.drop_schema,
    c.CreateTable: tables.create_table,
    c.CreateTableLike: tables.create_table_like,
    c.CreateClone: clones.create_clone,
    c.DropTable: tables.drop_table,
    c.Insert: tables.insert,
    c.ReplaceOn: replacements.replace_on,
    c.Delete: changes.delete,
    c.Update: changes.update,
    c.Merge: merges.merge,
    c.Truncate: overwrites.truncate,
    c.CopyInto: copies.copy_into,
    c.PutFile: staging.put_file,
    c.GetFile: staging.get_file,
    c.RemoveFile: staging.remove_file,
    c.Optimize: maintenance.optimize,
    c.Reorg: maintenance.reorg,
    c.Vacuum: maintenance.vacuum,
    c.Analyze: analysis.analyze,
    c.AnalyzeTables: analysis.analyze_tables,
    c.Restore: maintenance.restore,
}


# Those that change a table or a view, whose name is their `table` or `name`.
_CHANGES = (c.CreateTable, c.CreateTableLike, c.CreateClone, c.DropTable, c.Insert, c.ReplaceOn, c.Delete, c.Update,
            c.Merge, c.Truncate, c.CopyInto, c.Optimize, c.Reorg, c.Vacuum, c.Restore, c.CreateView, c.AlterTable,
            c.DropView)  # fmt: skip


def written(command: Any) -> c.Name | None:
    """What a command has changed: the name of a table or view."""
    if not isinstance(command, _CHANGES):
        return None
    found = getattr(command, "table", None) or getattr(command, "name", None)
    return found if isinstance(found, c.Name) and not is_path(found) else None


def run(command: Any, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """Run a command; raises GatewayError."""
    rule = _RULES.get(type(command))
    if rule is None:
        raise unsupported(type(command).__name__)
    return rule(command, job, env, runner, emit)


def leaves_no_trace(command: Any) -> bool:
    """Whether a command may be run to see what it would do."""
    return type(command) in _WITHOUT_TRACE
