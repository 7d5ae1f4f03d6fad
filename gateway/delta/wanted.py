"""Whether a statement is still wanted: asked in the last moment before its commit stands.

Who was told that it has ended may look at the table, and send it again: a commit that comes after that doubles its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ask: ContextVar[Callable[[], None] | None] = ContextVar("ask", default=None)


@contextmanager
def asked(ask: Callable[[], None]) -> Iterator[None]:
    """Meanwhile `ask` is what raises once nobody wants what this thread does."""
    token = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(token)


def check() -> None:
    """Raise what the statement is ended with if nobody wants it any more."""
    ask = _ask.get()
    if ask is not None:
        ask()
