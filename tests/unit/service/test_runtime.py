"""The picture of what is open shows everybody their own, and no secrets of settings."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from gateway.service.api import ExecuteRequest, Principal
from gateway.service.operation import Listener, Operation
from gateway.service.purposes import statement
from gateway.service.runtime import picture
from gateway.service.session import Session
from gateway.worker_jobs import Runtime, Statement


def _session(name: str, schema: str = "default", **settings: str) -> Session:
    return Session(Principal(name), 0, "main", schema, settings, "curl")


def test_everybody_sees_their_own_and_none_all() -> None:
    sessions = [_session("ann"), _session("bob")]
    assert [s.user for s in picture(sessions, (), "ann", 1.0).sessions] == ["ann"]
    assert [s.user for s in picture(sessions, (), None, 1.0).sessions] == ["ann", "bob"]


def test_secrets_of_settings_are_masked() -> None:
    session = _session("ann", **{"x.secret.key": "hunter2", "tags": "Bearer abcdefghij", "timezone": "UTC"})
    told = dict(picture([session], (), None, 1.0).sessions[0].settings)
    assert told == {"x.secret.key": "***", "tags": "***", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("text", "schema", "asked"),
    [
        ("SELECT * FROM system.runtime.sessions", "default", True),
        ("select * from SYSTEM.RunTime.sessions", "default", True),
        ("SELECT * FROM sessions", "Runtime", True),
        ("SELECT 1", "default", False),
        ("SELECT * FROM system.runtime.sessions --" + "x" * 70_000, "runtime", False),
    ],
)
def test_a_picture_is_taken_for_who_asks(text: str, schema: str, asked: bool) -> None:
    taken: list[Runtime] = []

    def take() -> Runtime:
        taken.append(Runtime((), ()))
        return taken[-1]

    job = statement(_session("ann", schema), ExecuteRequest(text), {}, take).make_job("id")
    assert isinstance(job, Statement)
    assert (job.session.runtime is not None) is bool(taken) is asked


def test_texts_are_cut_and_without_literals() -> None:
    session = _session("ann")
    purpose = statement(session, ExecuteRequest("SELECT 'hunter2', " + "x" * 100_000), {}, lambda: Runtime((), ()))
    operation = Operation(session, purpose, cast(Listener, None), lambda: 2.0, None, Path("/"))
    (told,) = picture([session], [operation], "ann", 3.5).operations
    assert told.statement_text.startswith("SELECT ?, xxx") and len(told.statement_text) < 5000
    assert (told.state, told.duration_ms, told.waiting_at_capacity_duration_ms) == ("INITIALIZED", 1500, 1500)
    assert picture([session], [operation], "bob", 3.5) == Runtime((), ())


def test_pictures_that_many_ask_for_read_a_text_once() -> None:
    session = _session("ann")
    purpose = statement(session, ExecuteRequest("SELECT 'once', " + "y" * 100_000), {}, lambda: Runtime((), ()))
    operation = Operation(session, purpose, cast(Listener, None), lambda: 2.0, None, Path("/"))
    first = picture([session], [operation], "ann", 3.5).operations[0]
    again = picture([session], [operation], "ann", 4.5).operations[0]
    assert again.statement_text is first.statement_text
