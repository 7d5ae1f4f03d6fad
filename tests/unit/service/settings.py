"""Settings of a service under test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.service.settings import ServiceConfig


def service_config(folder: Path, **settings: Any) -> ServiceConfig:
    """Settings with room for what a test does; `settings` are other ones."""
    config = ServiceConfig(
        spool_directory=folder,
        slots=2,
        queue_limit=1000,
        kept_limit=1 << 30,
        spool_limit=40 << 30,
        statement_timeout=3600,
        session_idle=8 * 3600,
        operation_idle=20 * 60,
        max_statement=16 << 20,
        slow_statement=10,
    )
    return replace(config, **settings)
