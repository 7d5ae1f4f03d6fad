"""What a statement's compilation sees of its session beside names."""

from __future__ import annotations

import time

from gateway.config.session import (
    DEFAULT_ZONE,
    GROUP_BY_ALIASES,
    GROUP_BY_ORDINAL,
    ORDER_BY_ORDINAL,
    PRECISION_LOSS,
    TIMEZONE,
)
from gateway.sql.typed.catalogue import Clock, Context
from gateway.worker_jobs import SessionState

_FLAGS = (GROUP_BY_ALIASES, GROUP_BY_ORDINAL, ORDER_BY_ORDINAL, PRECISION_LOSS)


def context_of(session: SessionState) -> Context:
    """The context of a statement that starts now."""
    zone = session.settings.get(TIMEZONE) or DEFAULT_ZONE
    return Context(
        Clock(time.time_ns() // 1000, zone),
        session.catalog,
        session.schema,
        session.user,
        *(session.settings.get(key, "true") == "true" for key in _FLAGS),
    )


def meaning_of(context: Context) -> dict[str, str]:
    """The settings that what a query means may depend on."""
    flags = (context.group_by_aliases, context.group_by_ordinal, context.order_by_ordinal, context.precision_loss)
    found = {key: str(flag).lower() for key, flag in zip(_FLAGS, flags, strict=True)}
    return {TIMEZONE: context.time_zone, **found}
