"""What an operation is for, a statement or a metadata call, and the job that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gateway.config import default_settings
from gateway.config.session import TIMEZONE
from gateway.engine.base import Job, MetadataCall, Statement
from gateway.errors import ServerError
from gateway.service.api import METADATA_TYPES, ExecuteRequest, MetadataRequest, ResultOptions
from gateway.service.session import Session
from gateway.worker_jobs import RUNTIME, FileDoor, FileKey, Parameter, Runtime


@dataclass(frozen=True, slots=True)
class Purpose:
    """What an operation is for: all that is known when it is accepted.

    `make_job` is called when it starts to run, so that it sees what earlier statements did to the session; it is given the
    statement's id.
    """

    operation_type: str
    make_job: Callable[[str], Job]
    text: str = ""
    options: ResultOptions = field(default_factory=ResultOptions)
    row_limit: int | None = None
    byte_limit: int | None = None
    is_metadata: bool = False
    parameters: tuple[Parameter, ...] = ()


_LONGEST_ASKING = 65_536  # characters


def _asks_what_runs(text: str, schema: str) -> bool:
    """Whether a statement may mean `system.runtime`: it spells the name, or its session is in there."""
    return len(text) <= _LONGEST_ASKING and (RUNTIME in text.lower() or schema.lower() == RUNTIME)


def statement(
    home: Session,
    request: ExecuteRequest,
    overlay: Mapping[str, str],
    picture: Callable[[], Runtime],
    files: FileKey | None = None,
) -> Purpose:
    """To run a statement; `overlay` holds settings of it alone, `picture` is taken if it asks for what runs.

    `files`: what links to files of volumes are signed with.
    """
    door = None if files is None or not request.origin else FileDoor(files.key, files.seconds, request.origin)
    # One row more tells whether the limit cuts anything off.
    limit = request.row_limit
    if limit is not None and request.options.files is not None:
        limit += 1

    def make_job(statement_id: str) -> Job:
        state = home.state(overlay)
        if _asks_what_runs(request.statement, state.schema):
            state = replace(state, runtime=picture())
        return Statement(
            statement_id=statement_id,
            text=request.statement,
            session=state,
            parameters=tuple(request.parameters),
            row_limit=limit,
            read_only=request.read_only,
            files=door,
            byte_limit=request.byte_limit,
        )

    return Purpose(
        "EXECUTE_STATEMENT",
        make_job,
        text=request.statement,
        options=request.options,
        row_limit=request.row_limit,
        byte_limit=request.byte_limit,
        parameters=tuple(request.parameters),
    )


def metadata(home: Session, request: MetadataRequest) -> Purpose:
    """To answer a metadata call."""

    def make_job(statement_id: str) -> Job:
        return MetadataCall(
            statement_id=statement_id,
            kind=request.kind,
            session=home.state(),
            catalog=request.catalog,
            schema=request.schema,
            table=request.table,
            column=request.column,
            function=request.function,
            table_types=tuple(request.table_types),
            parent=request.parent,
        )

    return Purpose(METADATA_TYPES[request.kind], make_job, is_metadata=True)


def nothing_to_do(statement_id: str) -> Job:
    """The job of an operation that has ended."""
    raise ServerError("INTERNAL_ERROR", f"The statement {statement_id} has ended and cannot be started.")


def time_zone(job: Job) -> str:
    """The zone that a job's result is shown in."""
    return job.session.settings.get(TIMEZONE, default_settings()[TIMEZONE])
