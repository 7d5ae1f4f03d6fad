"""Who has waited for a database spares others that for a while, and not for long."""

from __future__ import annotations

import pytest

from gateway.errors import ServerError
from gateway.history.silence import Silence


def test_what_was_waited_for_is_told_at_once_for_a_while() -> None:
    now = [100.0]
    silence = Silence(lambda: now[0])
    silence.check("a")
    silence.note("a", 2.0, "its database does not answer")
    silence.check("b")
    now[0] += 5.9
    with pytest.raises(ServerError, match="its database does not answer") as caught:
        silence.check("a")
    assert caught.value.condition == "HISTORY_UNREADABLE" and caught.value.retryable
    now[0] += 0.2
    silence.check("a")


def test_what_fails_at_once_is_asked_again_and_nothing_is_silent_for_long() -> None:
    now = [100.0]
    silence = Silence(lambda: now[0])
    silence.note("a", 0.5, "x")
    silence.check("a")
    silence.note("a", 1000.0, "x")
    now[0] += 31.0
    silence.check("a")
