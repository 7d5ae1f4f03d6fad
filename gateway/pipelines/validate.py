"""Checks of a project without running it: Spark's dry run and our own."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.config import Config
from gateway.pipelines.definitions import Definitions
from gateway.pipelines.expectations import Expectation
from gateway.pipelines.prepare import check_checkpoints, prepare
from gateway.pipelines.project import Project
from gateway.pipelines.run import log_path
from gateway.pipelines.server import serve
from gateway.pipelines.stream import dry_run
from gateway.pipelines.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Checked:
    """A project that can run: what it defines, its expectations by table, and what may surprise."""

    definitions: Definitions
    expectations: Sequence[tuple[str, Expectation]]
    warnings: Sequence[str]


def validate(project: Project, config: Config, master: str) -> Checked:
    """Check `project`; nothing of it stays in the warehouse. Raises ProjectError, ConfigError."""
    warehouse = Warehouse(config.warehouse, config.allow_path)
    with serve(config, master, warehouse.root, log_path(config.state, project.name)) as server:
        before = set(warehouse.root.iterdir())
        try:
            prepared = prepare(project, server, warehouse)
            check_checkpoints(prepared, ())
            dry_run(server.session, prepared.graph_id, project)
        finally:  # Spark asks for the schemas' folders
            for made in set(warehouse.root.iterdir()) - before:
                with contextlib.suppress(OSError):  # somebody uses it by now
                    made.rmdir()
    labels = {table.id: table.label for table in prepared.definitions.tables()}
    found = [(labels[id_], expectation) for id_, wanted in prepared.expectations.items() for expectation in wanted]
    return Checked(prepared.definitions, found, prepared.warnings)
