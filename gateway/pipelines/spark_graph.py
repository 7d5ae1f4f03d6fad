"""Spark's own graph of a registered project, read from our JVM: exact inputs, types and properties of every dataset.

Spark Connect has no call for it, so it is read through py4j from the objects that the Connect server keeps for our session
(Spark 4.2's names). What a flow reads beside datasets of the project is read off its analysed plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.pipelines import definitions
from gateway.pipelines.definitions import Dataset, Definitions, Flow
from gateway.pipelines.events import reason, without_catalog
from gateway.pipelines.project import ProjectError, local_path
from gateway.pipelines.server import PROGRESS_KEPT

_CONNECT = "org.apache.spark.sql.connect.service."
# Leaves of plans that hold their rows themselves, stand for the project's datasets while it is analysed, or name a CTE, whose
# own plan is looked at too.
_ROWS = frozenset({"Range", "LocalRelation", "OneRowRelation", "LogicalRDD", "CTERelationRef"})
_STREAM_OF_ROWS = "memory"


class SparkGraph:
    """The graph `graph_id` of the Connect session `session`, inside the JVM `jvm`."""

    def __init__(self, jvm: Any, session: Any, graph_id: str) -> None:
        self._jvm = jvm
        self._id = graph_id
        manager = getattr(getattr(jvm, _CONNECT + "SparkConnectService$"), "MODULE$").sessionManager()
        user = session.client._user_id or ""  # noqa: SLF001 (the key of the session has no public getter)
        key = getattr(jvm, _CONNECT + "SessionKey")(user, session.session_id)
        self._holder = manager.getIsolatedSession(key, jvm.scala.Option.apply(None))

    def forget_format(self, name: str) -> None:
        """Drop the format `name` from tables that ask for it.

        It is the default here, and Spark cannot apply it a second time: DELTA_CANNOT_CHANGE_PROVIDER.
        """
        tables = self._context().tables()
        none = self._jvm.scala.Option.apply(None)
        for i in range(tables.size()):
            table = tables.apply(i)
            if (_option(table.format()) or "").lower() != name:
                continue
            fields = {table.productElementName(k): table.productElement(k) for k in range(table.productArity())}
            tables.update(i, table.copy(*{**fields, "format": none}.values()))

    def read(self) -> Definitions:
        """All definitions, analysed. Raises ProjectError that names the flows that cannot be."""
        classic = getattr(self._jvm, "org.apache.spark.sql.classic.SparkSession")
        classic.setActiveSession(self._holder.session())
        try:
            graph = self._context().toDataflowGraph().resolve()
            datasets = {d.id: d for d in _datasets(graph)}
            flows = [_flow(f) for f in _items(graph.flows())]
        except Exception as error:
            if type(error).__name__ != "Py4JJavaError":
                raise
            raise ProjectError("pipeline", java_reason(error)) from error
        finally:
            classic.clearActiveSession()
        return Definitions(datasets, {f.name: f for f in flows})

    def rows_read(self) -> dict[str, int | None]:
        """Rows that each streaming flow of the finished run has read, by flow; None if Spark does not remember all of them."""
        context = _option(self._holder.getPipelineExecution(self._id))
        execution = None if context is None else _option(context.pipelineExecution().graphExecution())
        rows: dict[str, int | None] = {}
        for name, run in _pairs(execution.flowExecutions()) if execution is not None else ():
            if run.isStreaming():
                query = run.getStreamingQuery()
                progress = query.recentProgress()
                # One less than the setting says is kept.
                forgets = len(progress) >= int(query.sparkSession().conf().get(PROGRESS_KEPT)) - 1
                rows[name.unquotedString()] = None if forgets else sum(int(p.numInputRows()) for p in progress)
        return rows

    def _context(self) -> Any:
        return self._holder.dataflowGraphRegistry().getDataflowGraphOrThrow(self._id)


def java_reason(error: Any) -> str:
    """The message of a Java exception."""
    return reason(str(error.java_exception.getMessage()))


def _datasets(graph: Any) -> Iterator[Dataset]:
    schemas = {name.unquotedString(): type_ for name, type_ in _pairs(graph.inferredSchema())}
    for table in _items(graph.tables()):
        identifier = table.identifier()
        id_ = identifier.unquotedString()
        inferred = schemas.get(id_)
        columns = _option(table.specifiedSchema()) or (None if inferred is None else inferred.asNullable())
        yield Dataset(
            id=id_,
            kind=definitions.STREAMING_TABLE if table.isStreamingTable() else definitions.MATERIALIZED_VIEW,
            schema=_option(identifier.database()) or "",
            name=identifier.table(),
            properties=dict(_pairs(table.properties())),
            format=_option(table.format()),
            comment=_option(table.comment()) or None,
            columns=None if columns is None else columns.json(),
            partitions=_names(table.partitionCols()),
            clusters=_names(table.clusterCols()),
        )
    for view in _items(graph.views()):
        temporary = view.getClass().getSimpleName() == "TemporaryView"
        yield _plain(view, definitions.TEMPORARY_VIEW if temporary else definitions.VIEW)
    for sink in _items(graph.sinks()):
        yield _plain(sink, definitions.SINK)


def _plain(element: Any, kind: str) -> Dataset:
    identifier = element.identifier()
    return Dataset(identifier.unquotedString(), kind, _option(identifier.database()) or "", identifier.table())


def _flow(flow: Any) -> Flow:
    failures = list(_items(flow.funcResult().failure()))
    name = flow.identifier().unquotedString()
    if failures:
        raise ProjectError(without_catalog(name), reason(str(failures[0].getMessage())))
    external = sorted(i.unquotedString() for i in _items(flow.funcResult().usedExternalInputs()))
    leaves = flow.df().queryExecution().analyzed().collectLeaves()
    for source in filter(None, map(_source, _items(leaves))):
        # parquet.`/folder` is told as a table and as files.
        path = source.partition(" ")[2]
        if source not in external and not (path and any(e.endswith(f".{path}") for e in external)):
            external.append(source)
    inputs = tuple(sorted(i.unquotedString() for i in _items(flow.inputs())))
    streamed = {i.input().identifier().unquotedString() for i in _items(flow.funcResult().streamingInputs())}
    target = flow.destinationIdentifier().unquotedString()
    return Flow(name, target, inputs, tuple(external), tuple(sorted(streamed)), bool(flow.once()))


def _source(leaf: Any) -> str | None:
    """What a leaf of a plan reads, unless it is a table of the catalog or needs nothing."""
    kind = leaf.getClass().getSimpleName()
    if kind in _ROWS:
        return None
    if kind == "StreamingRelation":
        source = leaf.dataSource()
        if _option(source.catalogTable()) is not None:
            return None
        path = _option(source.options().get("path"))
        return _files(_format(source.className()), list(_items(source.paths())) if path is None else [path])
    if kind == "StreamingRelationV2":
        name = str(leaf.sourceName())
        return None if name == _STREAM_OF_ROWS else name
    if kind == "LogicalRelation":
        if _option(leaf.catalogTable()) is not None:
            return None
        relation = leaf.relation()
        if relation.getClass().getSimpleName() != "HadoopFsRelation":
            return str(relation.toString())[:80]
        return _files(relation.toString(), [p.toString() for p in _items(relation.location().rootPaths())])
    if kind == "DataSourceV2Relation":
        return str(leaf.name())
    return str(leaf.nodeName())


def _format(name: str) -> str:
    """A format's short name; of one that is given by its class, the class without its package."""
    return name.rpartition(".")[2] if "." in name else name.lower()


def _files(format_: str, paths: Sequence[str]) -> str:
    return f"{format_} {', '.join(local_path(p) or p for p in paths)}".rstrip()


def _option(option: Any) -> Any:
    return option.get() if option.isDefined() else None


def _names(option: Any) -> tuple[str, ...]:
    names = _option(option)
    return () if names is None else tuple(map(str, _items(names)))


def _pairs(entries: Any) -> Iterator[tuple[Any, Any]]:
    for pair in _items(entries):
        yield pair.productElement(0), pair.productElement(1)


def _items(iterable: Any) -> Iterator[Any]:
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()
