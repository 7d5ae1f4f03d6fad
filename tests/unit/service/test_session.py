"""Handles of sessions cannot be guessed, and changes and settings are kept as clients mean them."""

import sys

import pytest

from gateway.engine.base import SessionChange, TempView
from gateway.errors import ProtocolError, ResourceError, ServerError, UserError
from gateway.service.api import Handle, Principal
from gateway.service.session import LARGEST, HandleTable, Session, new_handle, normalise_all, text_of

ME, OTHER = Principal("me"), Principal("other")


def table_with_one() -> tuple[HandleTable[str], Handle]:
    table: HandleTable[str] = HandleTable("INVALID_SESSION_HANDLE", "Invalid SessionHandle: SessionHandle [{}]")
    handle = new_handle()
    table.put(handle, ME, "value")
    return table, handle


def test_wrong_handles_of_every_kind_give_the_same_error() -> None:
    table, handle = table_with_one()
    assert table.get(handle, ME) == "value"
    wrong = {
        "unknown": (Handle(bytes(range(16)), handle.secret), ME),
        "wrong secret": (Handle(handle.guid, bytes(16)), ME),
        "short secret": (Handle(handle.guid, b""), ME),
        "another's": (handle, OTHER),
        "zeros": (Handle(bytes(16), bytes(16)), Principal("")),
        "odd length": (Handle(b"abc", handle.secret), ME),
    }
    for name, (asked, who) in wrong.items():
        with pytest.raises(ProtocolError) as raised:
            table.get(asked, who)
        shown = text_of(asked)
        assert (raised.value.condition, raised.value.message) == (
            "INVALID_SESSION_HANDLE",
            f"Invalid SessionHandle: SessionHandle [{shown}]",
        ), name
    assert table.pop(handle) == "value" and table.pop(handle) is None
    with pytest.raises(ProtocolError, match="Invalid SessionHandle"):
        table.get(handle, ME)


def test_handles_are_two_times_sixteen_random_bytes_and_a_uuid() -> None:
    handles = [new_handle() for _ in range(1000)]
    assert {(len(h.guid), len(h.secret)) for h in handles} == {(16, 16)}
    assert len({h.guid for h in handles}) == len({h.secret for h in handles}) == 1000
    assert text_of(handles[0])[14] == "4"


def test_changes_are_applied_in_order() -> None:
    session = Session(ME, 1, "main", "default", {"timezone": "UTC"})
    view = TempView("MyView", "SELECT 1", (), "main", "default")
    before = session.state()
    session.apply(
        [
            SessionChange("use", "main", "a"),
            SessionChange("use", "other", "b"),
            SessionChange("set", "k", "1"),
            SessionChange("set", "k", "2"),
            SessionChange("set", "gone", "x"),
            SessionChange("reset", "gone"),
            SessionChange("put_view", view=view),
            SessionChange("put_view", view=TempView("w", "SELECT 2", (), "main", "default")),
            SessionChange("drop_view", "W"),
        ]
    )
    after = session.state({"timezone": "Asia/Tokyo"})
    assert (after.catalog, after.schema) == ("other", "b")
    assert after.settings == {"timezone": "Asia/Tokyo", "k": "2"} and after.views == {"myview": view}
    assert (before.catalog, dict(before.settings), dict(before.views)) == ("main", {"timezone": "UTC"}, {})
    assert session.settings()["timezone"] == "UTC"
    session.apply([SessionChange("reset")])
    assert session.settings() == {}


def test_reset_goes_back_to_what_the_server_gives() -> None:
    session = Session(ME, 1, "main", "default", {"k": "1"}, given={"vectors": "false", "k": "0"})
    assert session.settings() == {"vectors": "false", "k": "1"}
    session.apply([SessionChange("set", "vectors", "true"), SessionChange("reset", "k")])
    assert session.state().settings == {"vectors": "true", "k": "0"}
    session.apply([SessionChange("reset")])
    assert session.settings() == {"vectors": "false", "k": "0"}


@pytest.mark.parametrize("change", [SessionChange("dance"), SessionChange("put_view")])
def test_a_broken_change_is_an_error(change: SessionChange) -> None:
    with pytest.raises(ServerError):
        Session(ME, 1, "main", "default", {}).apply([change])


def test_what_a_session_defines_has_an_end() -> None:
    def put(name: str, size: int) -> SessionChange:
        return SessionChange("put_view", view=TempView(name, "x" * size, (), "main", "default"))

    session = Session(ME, 1, "main", "default", {})
    session.apply([put("a", LARGEST // 2)])
    with pytest.raises(ResourceError, match="64 MiB at most"):
        session.apply([SessionChange("use", "other", "b"), put("b", LARGEST // 2)])
    assert list(session.state().views) == ["a"] and session.state().catalog == "main"
    session.apply([SessionChange("drop_view", "a"), put("b", LARGEST // 2)])
    assert list(session.state().views) == ["b"]


def test_settings_get_their_canonical_keys_and_unknown_ones_are_told() -> None:
    def normalise(key: str, value: str) -> tuple[str, str] | None:
        return None if key.startswith("x") else (key.lower(), value)

    assert normalise_all({"A": "1", "x.y": "2"}, normalise) == ({"a": "1"}, ["x.y"])
    assert normalise_all({"A": "1", "a": "1"}, normalise) == ({"a": "1"}, [])
    with pytest.raises(UserError) as caught:
        normalise_all({"A": "1", "a": "2"}, normalise)
    assert caught.value.condition == "INVALID_PARAMETER_VALUE"


def test_an_idle_session_is_small() -> None:
    sessions = [Session(ME, 1, "main", "default", {}) for _ in range(3)]
    parts = [sessions[0], *(getattr(sessions[0], s) for s in Session.__slots__)]
    assert sum(sys.getsizeof(part) for part in parts) < 2000
