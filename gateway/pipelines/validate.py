"""Checks of a project without running it: Spark's dry run and our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.config import Config
from gateway.pipelines import events
from gateway.pipelines.definitions import Definitions
from gateway.pipelines.expectations import Expectation
from gateway.pipelines.prepare import check_checkpoints, prepare
from gateway.pipelines.project import Project, ProjectError
from gateway.pipelines.run import log_path, messages
from gateway.pipelines.server import serve
from gateway.pipelines.warehouse import Warehouse
from gateway.pipelines.watch import is_sparks, raise_unresolved


@dataclass(frozen=True, slots=True)
class Checked:
    """A project that can run: what it defines, its expectations by table, and what may surprise."""

    definitions: Definitions
    expectations: Sequence[tuple[str, Expectation]]
    warnings: Sequence[str]


def validate(project: Project, config: Config, master: str) -> Checked:
    """Check `project`; nothing is written but the folders of its schemas. Raises ProjectError, ConfigError."""
    with serve(config, master, Warehouse(config.warehouse).root, log_path(config.state, project.name)) as server:
        prepared = prepare(project, server, Warehouse(config.warehouse))
        check_checkpoints(prepared, ())
        unresolved: list[events.UnresolvedEvent] = []
        try:
            for message in messages(prepared, (), False, dry=True):
                event = events.parse(message)
                if isinstance(event, events.UnresolvedEvent):
                    unresolved.append(event)
        except Exception as error:
            if not is_sparks(error):
                raise
            raise_unresolved(unresolved)
            raise ProjectError(str(project.folder), events.reason(str(error))) from error
    labels = {table.id: table.label for table in prepared.definitions.tables()}
    found = [(labels[id_], expectation) for id_, wanted in prepared.expectations.items() for expectation in wanted]
    return Checked(prepared.definitions, found, prepared.warnings)
