"""Spark's run of a registered graph as its event stream, dry or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.pipelines import events
from gateway.pipelines.project import Project, ProjectError


def messages(
    session: Any,
    graph_id: str,
    storage: str,
    *,
    anew: Sequence[str] = (),
    others: Sequence[str] = (),
    anew_all: bool = False,
    dry: bool = False,
) -> Iterator[str]:
    """Run the graph; the sentences of its event stream. `anew` are names of tables to compute anew, and then `others`
    those of tables to take into the run as usual."""
    from pyspark.pipelines.spark_connect_pipeline import start_run

    results = start_run(
        session,
        graph_id,
        full_refresh=list(anew),
        full_refresh_all=anew_all,
        refresh=list(others),
        dry=dry,
        storage=storage,
    )
    for result in results:
        if "pipeline_event_result" in result:
            yield result["pipeline_event_result"].event.message


def dry_run(session: Any, graph_id: str, project: Project) -> None:
    """Let Spark check the graph. Raises ProjectError with what it says."""
    unresolved: list[events.UnresolvedEvent] = []
    try:
        for message in messages(session, graph_id, project.storage, dry=True):
            event = events.parse(message)
            if isinstance(event, events.UnresolvedEvent):
                unresolved.append(event)
    except Exception as error:
        if not is_sparks(error):
            raise
        raise_unresolved(unresolved)
        raise ProjectError(str(project.folder), events.reason(str(error))) from error


def is_sparks(error: BaseException) -> bool:
    """Whether an exception comes from Spark or the connection to it."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "grpc", "py4j")


def raise_unresolved(found: Sequence[events.UnresolvedEvent]) -> None:
    """Raise ProjectError if flows could not be analysed: for their own faults, not what follows from them."""
    faults = [e for e in found if not e.upstream] or found
    if faults:
        named = {e.flow: events.reason(e.error) for e in faults}
        raise ProjectError(
            "pipeline", "; ".join(f"flow {events.without_catalog(flow)}: {why}" for flow, why in named.items())
        )
