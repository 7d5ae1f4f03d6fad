"""From a project to a graph on the server that is ready to run: catalog, registration, definitions, our own checks."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.delta.table import open_snapshot
from gateway.pipelines import checkpoints, expectations, history, sql_heads
from gateway.pipelines.definitions import MATERIALIZED_VIEW, STREAMING_TABLE, Dataset, Definitions
from gateway.pipelines.events import reason
from gateway.pipelines.expectations import Expectation
from gateway.pipelines.project import CHECKPOINTS, Project, ProjectError, local_path
from gateway.pipelines.registry import DELTA, register, words
from gateway.pipelines.server import TABLE_FORMAT, Server
from gateway.pipelines.spark_graph import SparkGraph
from gateway.pipelines.stream import dry_run
from gateway.pipelines.warehouse import Warehouse, version

# Spark 4.2.0 waits for ever in Python functions that read Parquet if this is on, which is its default (SPARK-58241).
_COLUMNAR_UDF = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
_RESET = "pipelines.reset.allowed"


@dataclass(frozen=True)
class Prepared:
    """A registered project. `graph` is None on a server of others; `expectations` by id of the table."""

    project: Project
    server: Server
    warehouse: Warehouse
    graph_id: str
    graph: SparkGraph | None
    definitions: Definitions
    expectations: Mapping[str, Sequence[Expectation]]
    warnings: Sequence[str]

    def folder(self, table: Dataset) -> Path:
        return self.warehouse.folder(table.schema, table.name)


def prepare(
    project: Project, server: Server, warehouse: Warehouse, held: contextlib.ExitStack | None = None
) -> Prepared:
    """Register `project` on `server`, with the tables that are on disk; `held` keeps the names of its own. Raises ProjectError,
    and what `Warehouse.kept` does."""
    from pyspark.errors import PySparkException

    session = server.session
    settings = {TABLE_FORMAT: DELTA, _COLUMNAR_UDF: "false", **project.configuration}
    warnings = [*_format_warnings(project), *_storage_warnings(project)]
    for key, value in settings.items():
        try:
            session.conf.set(key, value)
        except PySparkException as error:
            warnings.append(f"{project.spec}: configuration.{key} has no effect: {reason(str(error))}")
    names = {w for file in project.files for w in words(file.read_text(encoding="utf-8", errors="replace"))}
    known: set[tuple[str, str]] = set()
    warehouse.attach(session, [project.database])
    warnings.extend(warehouse.register(session, project.database, names, known))
    registered = register(project, session, settings)
    warnings.extend(warehouse.register(session, project.database, names | registered.words, known))
    graph = SparkGraph(server.jvm, session, registered.graph_id) if server.jvm is not None else None
    if graph is not None:
        try:
            definitions = graph.read()
        except ProjectError:
            dry_run(session, registered.graph_id, project)  # tells it better, and of all flows
            raise
        graph.forget_format(DELTA)
    else:
        catalog = project.catalog or session.catalog.currentCatalog()
        definitions = sql_heads.definitions(project, catalog, registered)
    own = sorted({(table.schema, table.name) for table in definitions.tables()})
    with contextlib.ExitStack() as checked:
        (held or checked).enter_context(warehouse.kept(own))
    for table in definitions.tables():
        warehouse.check_followed(table.schema, table.name, writes=True)
        names |= words(table.schema) | words(table.name)
    warehouse.attach(session, sorted({table.schema for table in definitions.tables()}))
    warnings.extend(warehouse.register(session, project.database, names | registered.words, known))
    wanted = {table.id: expectations.parse(table.label, table.properties) for table in definitions.tables()}
    for table in definitions.tables():
        _check_table(table, owned=server.jvm is not None)
        warnings.extend(_table_warnings(table, owned=server.jvm is not None))
        expectations.check(session, table, wanted[table.id])
    return Prepared(project, server, warehouse, registered.graph_id, graph, definitions, wanted, warnings)


def refreshed(prepared: Prepared, names: Sequence[str]) -> list[Dataset]:
    """The tables that `names` mean: NAME, SCHEMA.NAME or main.SCHEMA.NAME. Raises ProjectError for an unknown one."""
    tables = prepared.definitions.tables()
    found = []
    for name in names:
        wanted = name.casefold().removeprefix("main.")
        fitting = [t for t in tables if wanted in (t.name.casefold(), t.label.casefold(), t.id.casefold())]
        if len(fitting) > 1:
            raise ProjectError("full-refresh", f"{name} may be {' or '.join(t.label for t in fitting)}")
        if not fitting:
            labels = [t.label for t in tables]
            near = difflib.get_close_matches(name, labels + [t.name for t in tables], n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(labels))}"
            raise ProjectError("full-refresh", f"the pipeline has no table {name}{hint}")
        if fitting[0] not in found:
            found.extend(fitting)
    for table in found:
        if not _resettable(table):
            raise ProjectError(table.label, f"the table is not to be computed anew: its property {_RESET} is false")
    return found


def all_refreshed(prepared: Prepared) -> list[Dataset]:
    """All tables but those that their definitions keep from it."""
    return [table for table in prepared.definitions.tables() if _resettable(table)]


def _resettable(table: Dataset) -> bool:
    return table.properties.get(_RESET, "true").lower() != "false"


def check_checkpoints(prepared: Prepared, anew: Sequence[Dataset]) -> None:
    """Refuse to continue a stream whose table or whose place in its sources is lost: rows would be missing or twice there.

    `anew` are tables that are computed anew. Storage on other file systems cannot be looked at here.
    """
    once = {f.target for f in prepared.definitions.flows.values() if f.once}
    gone: list[tuple[str, Path]] = []
    for table in prepared.definitions.tables():
        if table.kind != STREAMING_TABLE or table in anew:
            continue
        place = checkpoints.place(prepared.project, table.id)
        if place is None:
            break
        folder = prepared.folder(table)
        has_place = place.is_dir() and any(place.iterdir())
        exists = version(folder) is not None
        if has_place and not exists:
            gone.append((table.label, place))
        if exists and not has_place and table.id not in once and open_snapshot(str(folder)).num_rows != 0:
            raise ProjectError(
                table.label,
                f"the table has rows, but no checkpoint in {place} tells what its streams have read: rows would be "
                f"there twice. Give --full-refresh {table.label}, or bring the checkpoints back",
            )
    if gone:
        labels = [label for label, _ in gone]
        refresh = " ".join(f"--full-refresh {label}" for label in labels)
        raise ProjectError(
            ", ".join(labels),
            f"not in this warehouse, but their streams' checkpoints are in {gone[0][1].parent}: rows that were read before "
            f"would be missing. Give the warehouse that they were written to, {refresh}, or "
            "remove the checkpoints",
        )


def check_refreshed(prepared: Prepared, anew: Sequence[Dataset]) -> None:
    """Refuse to compute tables `anew` where that would break others, or lose rows. Raises ProjectError."""
    streaming = [t for t in anew if t.kind == STREAMING_TABLE]
    storage = prepared.project.storage
    if streaming and prepared.project.storage_folder is None and checkpoints.encoded(storage) != storage:
        raise ProjectError(
            streaming[0].label,
            f"with the storage {storage} Spark goes on with the old checkpoints and would miss rows: choose one without "
            "spaces and characters that a URI encodes",
        )
    emptied = {t.id: t.label for t in anew if version(prepared.folder(t)) is not None}
    for table in prepared.definitions.tables():
        read = prepared.definitions.streamed(table.id) & set(emptied)
        if read and table not in anew and version(prepared.folder(table)) is not None:
            source = emptied[min(read)]
            raise ProjectError(
                table.label,
                f"its stream reads {source} and cannot go on when the rows there are replaced: give --full-refresh "
                f"{table.label} as well as --full-refresh {source}",
            )


def _check_table(table: Dataset, *, owned: bool) -> None:
    if table.schema.casefold() == history.SCHEMA and table.name.casefold() in history.TABLES:
        raise ProjectError(table.label, "this table holds the history of runs: give the table another name or schema")
    if owned and table.format is not None and table.format.lower() != DELTA:
        raise ProjectError(
            table.label, f"the format {table.format} cannot be seen as a table of the warehouse: leave it out for Delta"
        )


def _table_warnings(table: Dataset, *, owned: bool) -> Iterator[str]:
    if table.format is None or table.format.lower() != DELTA:
        return
    where = "plain Spark" if owned else "this server"
    yield (
        f"{table.label}: the format delta in the definition makes a second run fail on {where} "
        f"(DELTA_CANNOT_CHANGE_PROVIDER): leave it out, and put {TABLE_FORMAT}: delta under configuration"
    )


def _storage_warnings(project: Project) -> Iterator[str]:
    plain = local_path(project.storage) or project.storage
    if checkpoints.encoded(plain) != plain:
        yield (
            f"{project.spec}: Spark encodes some characters of the storage's path: the checkpoints lie in "
            f"{checkpoints.encoded(plain)}/{CHECKPOINTS}"
        )


def _format_warnings(project: Project) -> Iterator[str]:
    given = project.configuration.get(TABLE_FORMAT)
    if given is None:
        yield f"{project.spec}: without {TABLE_FORMAT}: delta under configuration, plain Spark writes Parquet tables"
    elif given.lower() != DELTA:
        raise ProjectError(
            str(project.spec), f"configuration.{TABLE_FORMAT} is {given}: only Delta tables are seen in the warehouse"
        )


def views(definitions: Definitions) -> list[Dataset]:
    """The materialized views: Spark empties them when a run begins and fills them again."""
    return [table for table in definitions.tables() if table.kind == MATERIALIZED_VIEW]
