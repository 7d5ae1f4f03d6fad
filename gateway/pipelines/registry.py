"""Registration of a project's files with Spark: what `spark-pipelines` does, with what it prints kept apart."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.pipelines.definitions import MATERIALIZED_VIEW, SINK, STREAMING_TABLE, TEMPORARY_VIEW, Dataset, Flow
from gateway.pipelines.events import reason
from gateway.pipelines.project import Project, ProjectError

DELTA = "delta"
_WORD = re.compile(r"\w+")
# Of a syntax error: its place, and the statement with a line that points to it.
_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)")
_PICTURE = "\n== SQL ==\n"
_MARK = re.compile(r"\n-*\^\^\^(\n|\Z)")


@dataclass(frozen=True, slots=True)
class Registered:
    """A graph on the server. `datasets` and `flows` are those of Python files, `words` all names that their plans hold."""

    graph_id: str
    datasets: list[Dataset]
    flows: list[Flow]
    words: frozenset[str]


def words(text: str) -> set[str]:
    """All that may be a name in `text`, or a part of one, in lower case."""
    return set(_WORD.findall(text.casefold()))


def register(project: Project, session: Any, settings: Mapping[str, str]) -> Registered:
    """Make the graph of `project` on the server. Raises ProjectError naming the file and line that is at fault."""
    from pyspark.errors import PySparkException
    from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph

    try:
        spec = load_pipeline_spec(project.spec)
        graph_id = create_dataflow_graph(session, project.catalog, project.database, {**settings, **spec.configuration})
    except PySparkException as error:
        raise ProjectError(str(project.spec), reason(str(error))) from error
    registry = _make(session, graph_id, project.database)
    with _own_output(), _own_modules(project.folder):
        try:
            register_definitions(project.spec, registry, spec, session, graph_id)
        except Exception as error:
            raise ProjectError(_where(project, registry, error), _what(error, registry.text)) from error
    return Registered(graph_id, registry.datasets, registry.flows, frozenset(registry.words))


def _make(session: Any, graph_id: str, database: str) -> Any:
    from pyspark.pipelines.output import MaterializedView, Sink, StreamingTable, Table, TemporaryView
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry

    kinds = {
        StreamingTable: STREAMING_TABLE,
        MaterializedView: MATERIALIZED_VIEW,
        TemporaryView: TEMPORARY_VIEW,
        Sink: SINK,
    }

    class Registry(SparkConnectGraphElementRegistry):  # type: ignore[misc]
        """Spark's registry, which also remembers what it was told."""

        def __init__(self) -> None:
            super().__init__(session, graph_id)
            self.datasets: list[Dataset] = []
            self.flows: list[Flow] = []
            self.words: set[str] = set()
            self.file: Path | None = None
            self.text = ""

        def register_output(self, output: Any) -> None:
            dataset = _dataset(output, kinds[type(output)], database)
            if isinstance(output, Table) and (output.format or "").lower() == DELTA:
                # The default here; Spark cannot apply it to a table that exists.
                output = replace(output, format=None)
            super().register_output(output)
            self.datasets.append(dataset)

        def register_flow(self, flow: Any) -> None:
            frames: list[Any] = []

            def query() -> Any:
                frames.append(flow.func())
                return frames[-1]

            super().register_flow(replace(flow, func=query))
            for frame in frames:
                self.words |= words(str(frame._plan.plan(session.client)))  # noqa: SLF001
            self.flows.append(Flow(flow.name, flow.target))

        def register_auto_cdc_flow(self, flow: Any) -> None:
            super().register_auto_cdc_flow(flow)
            self.flows.append(Flow(flow.name or flow.target, flow.target))

        def register_sql(self, sql_text: str, file_path: Path) -> None:
            self.file, self.text = file_path, sql_text
            super().register_sql(sql_text, file_path)
            self.file = None

    return Registry()


def _dataset(output: Any, kind: str, database: str) -> Dataset:
    *prefix, name = output.name.replace("`", "").split(".")
    in_schema = kind in (STREAMING_TABLE, MATERIALIZED_VIEW)
    return Dataset(
        id=output.name,
        kind=kind,
        schema=(prefix[-1] if prefix else database) if in_schema else "",
        name=name,
        properties=dict(getattr(output, "table_properties", None) or {}),
        format=getattr(output, "format", None),
        comment=output.comment,
    )


@contextlib.contextmanager
def _own_output() -> Iterator[None]:
    """What definitions print goes to standard error; Spark's own notes about files are dropped."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            yield
        finally:
            notes = ("Loading definitions.", "Found ", "Importing ", "Registering SQL file ")
            for line in said.getvalue().splitlines():
                if not line.partition(": ")[2].startswith(notes):
                    sys.stderr.write(line + "\n")


@contextlib.contextmanager
def _own_modules(folder: Path) -> Iterator[None]:
    """Definitions may import modules that lie beside the spec."""
    path = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = path


def _where(project: Project, registry: Any, error: BaseException) -> str:
    if registry.file is not None:
        return str(project.folder / registry.file)
    files = {str(f.resolve()) for f in project.files}
    frames = [f for f in traceback.extract_tb(error.__traceback__) if str(Path(f.filename).resolve()) in files]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(project.folder)


def in_file(error: str, text: str) -> str:
    """Spark's syntax error, which counts from the end of the statement before, with its place in `text`, the whole file."""
    place = _PLACE.search(error)
    _, found, picture = error.partition(_PICTURE)
    statement = _MARK.sub("\n", picture, count=1).rstrip("\n")
    start = text.find(statement)
    if place is None or not found or start < 0 or text.find(statement, start + 1) >= 0:
        return error
    line, column = int(place[1]), int(place[2])
    before = text[:start]
    if line == 1:
        column += len(before) - (before.rfind("\n") + 1)
    return f"{error[: place.start()]}(line {line + before.count(chr(10))}, pos {column}){error[place.end() :]}"


def _what(error: BaseException, text: str) -> str:
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        return reason(in_file(str(error), text))
    return f"{type(error).__name__}: {error}"
