"""Settings of the service, and what each bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.config import ServerSetting
from gateway.service.cursor import PageLimits
from gateway.worker_jobs import FileKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """Settings of the service; those of the server have their defaults in `config`. Times in seconds, sizes in bytes.

    Attributes:
        catalogs: names of all catalogs; a session that asks for another one is refused. Empty: not checked.
        statement_timeout: for statements whose client and session set none; 0: no limit.
        kept_limit: bytes of memory for what is kept for callers (`holdings`).
        spool_limit: the same of disk.
        results_limit: bytes of memory for answers that are kept for the same statements.
        reserved_slots: beside `slots`, for metadata calls only.
        files: what links to files of volumes are signed with; without it there are none.
        session_settings: what sessions have set where they do not say otherwise.
        told: the server's settings, for administrators who ask.
        lane: beside both, for statements that would wait, as long as they turn out to be short.
    """

    spool_directory: Path
    slots: int
    reserved_slots: int = 1
    lane: int = 0
    queue_limit: int
    session_limit: int = 10_000
    results_limit: int = 64 << 20
    kept_limit: int
    spool_limit: int
    catalogs: tuple[str, ...] = ()
    default_catalog: str = "main"
    default_schema: str = "default"
    statement_timeout: float
    session_idle: float
    operation_idle: float
    max_statement: int
    slow_statement: float
    told: tuple[ServerSetting, ...] = ()
    session_settings: Mapping[str, str] = field(default_factory=dict)
    files: FileKey | None = None
    pages: PageLimits = field(default_factory=PageLimits)
