"""OPTIMIZE, REORG, VACUUM, RESTORE and REFRESH: the care of a table's files and versions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from gateway.catalog.bound import DeltaBoundTable
from gateway.delta.compaction import Compacted, Layout, check_compactable, compact, indexed_columns, layout_of, outdated
from gateway.delta.containment import as_text
from gateway.delta.held import HeldTable
from gateway.delta.indexed import indexed_paths
from gateway.delta.log import commit_versions, moments_sought
from gateway.delta.restore import check_restorable, no_version, restore_files
from gateway.delta.schema import Column
from gateway.delta.table import Snapshot
from gateway.delta.vacuum import remove, sweep
from gateway.engine.base import Emit, Planned, Statement
from gateway.errors import Span, UserError, unsupported
from gateway.instants import stamp_text
from gateway.planner import plan
from gateway.runner.answer import Answer, done, rows_of
from gateway.runner.commands import views
from gateway.runner.commands.targets import computed, quoted, stop_if_cancelled, wanted_moment, written_table
from gateway.runner.environment import Environment, Queries
from gateway.sql.bind.changes import ChangeBinder
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.compile import binder_of, compile_query, queried
from gateway.sql.read import command_nodes as c
from gateway.sql.typed import nodes as b
from gateway.sqltypes import BIGINT, BOOLEAN, DOUBLE, STRING, DataType, StructField, StructType, struct


def _fields(data_type: DataType, *names: str) -> list[StructField]:
    return [StructField(name, data_type) for name in names]


def _counted(word: str, *names: str) -> list[StructField]:
    """Numbers and bytes of files."""
    return [StructField(name, struct(*_fields(BIGINT, word, "size"))) for name in names]


_SIZES = struct(*_fields(BIGINT, "min", "max"), *_fields(DOUBLE, "avg"), *_fields(BIGINT, "totalFiles", "totalSize"))
_Z_ORDER = struct(
    *_fields(STRING, "strategyName"),
    *_counted("num", "inputCubeFiles", "inputOtherFiles"),
    *_fields(BIGINT, "inputNumCubes"),
    *_counted("num", "mergedFiles"),
    *_fields(BIGINT, "numOutputCubes", "mergedNumCubes"),
)
_CLUSTERING = struct(
    *_counted("numFiles", "inputZCubeFiles", "inputOtherFiles"),
    *_fields(BIGINT, "inputNumZCubes"),
    *_counted("numFiles", "mergedFiles"),
    *_fields(BIGINT, "numOutputZCubes"),
)
_PARALLELISM = struct(
    *_fields(BIGINT, "maxClusterActiveParallelism", "minClusterActiveParallelism"),
    *_fields(BIGINT, "maxSessionActiveParallelism", "minSessionActiveParallelism"),
)
_METRICS = struct(
    *_fields(BIGINT, "numFilesAdded", "numFilesRemoved"),
    *_fields(_SIZES, "filesAdded", "filesRemoved"),
    *_fields(BIGINT, "partitionsOptimized"),
    StructField("zOrderStats", _Z_ORDER),
    StructField("clusteringStats", _CLUSTERING),
    *_fields(BIGINT, "numBins", "numBatches", "totalConsideredFiles", "totalFilesSkipped"),
    *_fields(BOOLEAN, "preserveInsertionOrder"),
    *_fields(BIGINT, "numFilesSkippedToReduceWriteAmplification", "numBytesSkippedToReduceWriteAmplification"),
    *_fields(BIGINT, "startTimeMs", "endTimeMs", "totalClusterParallelism", "totalScheduledTasks"),
    StructField("autoCompactParallelismStats", _PARALLELISM),
    StructField(
        "deletionVectorStats", struct(*_fields(BIGINT, "numDeletionVectorsRemoved", "numDeletionVectorRowsRemoved"))
    ),
    *_fields(BIGINT, "numTableColumns", "numTableColumnsWithStats"),
)
_OPTIMIZED: StructType = struct(StructField("path", STRING), StructField("metrics", _METRICS))


def refresh_table(command: c.RefreshTable, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """REFRESH TABLE of a table or view that is there: each statement reads its newest version anyway."""
    if not views.is_view(command.table, env):
        env.tables.find(command.table.parts, None, command.table.span)
    return done("REFRESH")


def optimize(command: c.Optimize, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """OPTIMIZE."""
    table = written_table(command.table, env, "OPTIMIZE", "no files can be put together")
    snapshot = table.snapshot
    layout = _layout(command, snapshot, table)
    check_compactable(snapshot, layout)
    started = round(time.time() * 1000)
    files, predicate = _candidates(command, table, env, runner, emit)
    emit(Planned("OPTIMIZE", "gateway", "small files are put together by the gateway itself", _OPTIMIZED, writes=True))
    done = compact(snapshot, files, predicate, partial(stop_if_cancelled, emit), layout)
    told = _told(done, started, len(snapshot.columns), indexed_columns(snapshot))
    told |= _ordered(done, layout)
    facts = {} if done.version is None else {"version": done.version, "files_written": len(done.added)}
    return rows_of("OPTIMIZE", _OPTIMIZED, [[f"file:{snapshot.root}"], [told]], announced=True, facts=facts)


def reorg(command: c.Reorg, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """REORG TABLE … APPLY (PURGE)."""
    table = written_table(command.table, env, "REORG", "no files can be written anew")
    snapshot = table.snapshot
    if layout_of(snapshot) is not None:
        raise unsupported("REORG of a clustered table", command.table.span)
    check_compactable(snapshot)
    started = round(time.time() * 1000)
    files, predicate = _candidates(command, table, env, runner, emit)
    emit(Planned("REORG", "gateway", "files are written anew by the gateway itself", _OPTIMIZED, writes=True))
    alive = partial(stop_if_cancelled, emit)
    done = compact(snapshot, outdated(snapshot, files, alive), predicate, alive, purges=True)
    done = replace(done, considered=len(files))
    told = _told(done, started, len(snapshot.columns), indexed_columns(snapshot))
    facts = {} if done.version is None else {"version": done.version, "files_written": len(done.added)}
    return rows_of("REORG", _OPTIMIZED, [[f"file:{snapshot.root}"], [told]], announced=True, facts=facts)


def _layout(command: c.Optimize, snapshot: Snapshot, table: DeltaBoundTable) -> Layout | None:
    """The order that rows are put in. Raises what Delta raises for columns that are not there, or that files are told by."""
    layout, span = layout_of(snapshot), command.table.span
    if command.full:
        if layout is None:
            text = "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns."
            raise UserError("DELTA_OPTIMIZE_FULL_NOT_SUPPORTED", text, span=span)
        layout = replace(layout, full=True)
    shown = ", ".join(str(name) for name in command.order)
    if layout is not None and command.order:
        text = f"OPTIMIZE command for Delta table with clustering cannot specify ZORDER BY. Please remove ZORDER BY ({shown})."
        raise UserError("DELTA_CLUSTERING_WITH_ZORDER_BY", text, span=span)
    if layout is not None and command.condition is not None:
        text = (
            "OPTIMIZE command for Delta table with clustering doesn't support partition predicates. Please remove them."
        )
        raise UserError("DELTA_CLUSTERING_WITH_PARTITION_PREDICATE", text, span=span)
    if layout is not None or not command.order:
        return layout
    partitions = {name.lower() for name in table.partition_columns}
    for name in command.order:
        if name.parts[0].lower() in partitions:
            text = f"{name} is a partition column. Z-Ordering can only be performed on data columns"
            raise UserError("DELTA_ZORDERING_ON_PARTITION_COLUMN", text, span=name.span)
        if not _is_there(snapshot.columns, name.parts):
            text = f"Z-Ordering column {name} does not exist in data schema."
            raise UserError("DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", text, span=name.span)
    paths = tuple(tuple(name.parts) for name in command.order)
    known = [_folded(path) for path in indexed_paths(snapshot.schema, table.partition_columns, snapshot.properties)]
    unknown = ", ".join(".".join(path) for path in paths if _folded(path) not in known)
    if unknown:
        text = f"Z-Ordering on [{unknown}] will be ineffective, because we currently do not collect stats for these columns."
        raise UserError("DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS", text, span=span)
    return Layout(paths)


def _folded(path: Sequence[str]) -> list[str]:
    return [name.lower() for name in path]


def _is_there(columns: Sequence[Column], path: Sequence[str]) -> bool:
    found = next((column for column in columns if column.name.lower() == path[0].lower()), None)
    if found is None or len(path) == 1:
        return found is not None
    return isinstance(found.type, StructType) and _is_there(found.children, path[1:])


def _ordered(done: Compacted, layout: Layout | None) -> dict[str, Any]:
    """What is told of the order of rows."""
    merged = {"num": len(done.removed), "size": sum(done.removed)}
    if done.cubes is not None:
        inside, outside = done.cubes.inside, done.cubes.outside
        stats = {
            "inputZCubeFiles": {"numFiles": len(inside), "size": sum(inside)},
            "inputOtherFiles": {"numFiles": len(outside), "size": sum(outside)},
            "inputNumZCubes": done.cubes.count,
            "mergedFiles": {"numFiles": merged["num"], "size": merged["size"]},
            "numOutputZCubes": done.bins,
        }
        return {"clusteringStats": stats}
    if layout is None:
        return {}
    stats = {
        "strategyName": "all",
        "inputCubeFiles": {"num": 0, "size": 0},
        "inputOtherFiles": merged,
        "inputNumCubes": 0,
        "mergedFiles": merged,
        "numOutputCubes": done.bins,
        "mergedNumCubes": None,
    }
    return {"zOrderStats": stats}


def _candidates(
    command: c.Optimize | c.Reorg, table: DeltaBoundTable, env: Environment, runner: Queries, emit: Emit
) -> tuple[Sequence[int], list[str]]:
    """The files whose partition the condition takes, all without one; and the conditions as the history shows them."""
    snapshot = table.snapshot
    if command.condition is None:
        return range(len(snapshot.files)), []
    binder = binder_of(env.context, env.tables, env.session.views, env.parameters)
    fields = [f for f in table.schema.fields if f.name in table.partition_columns]
    arrays = [pa.array(range(len(snapshot.files)), pa.int64()), *(snapshot.files.partitions[f.name] for f in fields)]
    rows = pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])
    held = HeldTable(
        "partitions",
        struct(*(StructField(f"c{i}", t) for i, t in enumerate((BIGINT, *(f.type for f in fields))))),
        rows,
    )
    scan = binder.scan(held, "partitions")
    named = tuple(b.Col(x.type, True, x.id, f.name) for x, f in zip(scan.columns[1:], fields, strict=True))
    changes = ChangeBinder(binder, quoted(table), "OPTIMIZE")
    found = changes.of_partitions(command.condition, table.partition_columns, Scope([Source((), named)]))
    file = scan.columns[0]
    column = b.Col(file.type, file.nullable, binder.ids.take(), "file")
    rel = b.Project((column,), b.Filter(scan.columns, scan, found), (file,))
    execution = runner.engine.run(plan(compile_query(queried(rel, binder), env.context)).query)
    execution.start()
    files = [file for batch in computed(execution, emit) for file in batch.column(0).to_pylist()]
    return sorted(files), [binder.names.text(found)]


def _told(done: Compacted, started: int, columns: int, indexed: int) -> dict[str, Any]:
    """The metrics under the names of `_METRICS`."""
    vectors = None
    if done.vectors:
        vectors = {"numDeletionVectorsRemoved": done.vectors, "numDeletionVectorRowsRemoved": done.deleted_rows}
    known: dict[str, Any] = {
        "numFilesAdded": len(done.added),
        "numFilesRemoved": len(done.removed),
        "filesAdded": _sizes(done.added),
        "filesRemoved": _sizes(done.removed),
        "partitionsOptimized": done.partitions,
        "zOrderStats": None,
        "clusteringStats": None,
        "numBins": done.bins,
        "numBatches": 1,
        "totalConsideredFiles": done.considered,
        "totalFilesSkipped": done.considered - len(done.removed),
        "preserveInsertionOrder": False,
        "startTimeMs": started,
        "totalClusterParallelism": 1,
        "autoCompactParallelismStats": None,
        "deletionVectorStats": vectors,
        "numTableColumns": columns,
        "numTableColumnsWithStats": indexed,
    }
    return {f.name: known.get(f.name, 0) for f in _METRICS.fields}


def _sizes(bytes_: Sequence[int]) -> dict[str, Any]:
    whole = sum(bytes_)
    return {
        "min": min(bytes_, default=None),
        "max": max(bytes_, default=None),
        "avg": whole / len(bytes_) if bytes_ else 0.0,
        "totalFiles": len(bytes_),
        "totalSize": whole,
    }


# ---- VACUUM

_PATH = struct(StructField("path", STRING))


def vacuum(command: c.Vacuum, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """VACUUM."""
    table = written_table(command.table, env, "VACUUM", "no files can be removed")
    swept = sweep(table.snapshot, command.hours, command.lite)
    if command.dry_run:
        return rows_of("VACUUM", _PATH, [[f"file:{as_text(path)}" for path in swept.paths]])
    emit(Planned("VACUUM", "gateway", "files that are no part of the table are removed", _PATH, writes=True))
    remove(table.snapshot, swept, partial(stop_if_cancelled, emit))
    return rows_of("VACUUM", _PATH, [[f"file:{table.snapshot.root}"]], announced=True)


# ---- RESTORE

_RESTORED = struct(
    *_fields(BIGINT, "table_size_after_restore", "num_of_files_after_restore", "num_removed_files"),
    *_fields(BIGINT, "num_restored_files", "removed_files_size", "restored_files_size"),
)


def restore(command: c.Restore, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """RESTORE TABLE."""
    table = written_table(command.table, env, "RESTORE", "no version can be made")
    snapshot = table.snapshot
    check_restorable(snapshot)
    version, shown = command.version, None
    if version is None:
        version, shown = _version_at(wanted_moment(command, env, command.table.span), table, command.table.span)
    elif version > snapshot.version:
        raise no_version(snapshot, version)
    emit(Planned("RESTORE", "gateway", "a commit to the Delta log", _RESTORED, writes=True))
    made, done = restore_files(snapshot, version, {"version": command.version, "timestamp": shown})
    counts = (done.size, done.files, done.removed, done.restored, done.removed_bytes, done.restored_bytes)
    return rows_of("RESTORE", _RESTORED, [[count] for count in counts], announced=True, facts={"version": made})


def _version_at(micros: int, table: DeltaBoundTable, span: Span) -> tuple[int, str]:
    """The version that was current at a time, and the time as the history shows it."""
    wanted = micros // 1000
    snapshot = table.snapshot
    versions = [n for n in commit_versions(snapshot.root) if n <= snapshot.version]
    times = moments_sought(snapshot.root, versions, snapshot.properties)
    shown = stamp_text(wanted * 1000)
    shown = shown if "." in shown else f"{shown}.0"
    for wrong, condition, side, bound in (
        (not times or wanted < times[0], "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER", "before the earliest", times[:1]),
        (not times or wanted > times[-1], "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER", "after the latest", times[-1:]),
    ):
        if wrong:
            which = ", ".join(stamp_text(moment * 1000) for moment in bound)
            told = f"Cannot restore table to timestamp ({shown}) as it is {side} version available ({which})."
            raise UserError(condition, told, span=span)
    return max(n for n, moment in zip(versions, times, strict=True) if moment <= wanted), shown
