"""Who reads the history sees what they may see, in the order and the pieces that they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ServerError
from gateway.history.records import STATEMENTS
from gateway.history.search import Condition, History
from tests.unit.history.test_recorder import record, running


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("state #1?") / "history.db"
    with running(path, age=1e10) as history:
        for number in range(2500):
            history.add(record(number, user=f"user{number % 3}", started_ms=1000 + number // 2))
        assert history.flush(20)
    return str(path)


def _found(history: History, user: str, *conditions: Condition, **more: Any) -> list[str]:
    return [row[0] for piece in history.rows(user, ["statement_id"], conditions, **more) for row in piece]


def test_everybody_sees_their_own_and_administrators_all(path: str) -> None:
    guarded = History(path, admins=frozenset({"root"}))
    own = _found(guarded, "user1")
    assert len(own) == 833 and {int(s[1:]) % 3 for s in own} == {1}
    assert len(_found(guarded, "root")) == len(_found(History(path, open_to_all=True), "user1")) == 2500
    assert _found(guarded, "user1", Condition("user", "=", "user2")) == []
    assert _found(guarded, "user1", Condition("statement_id", "IN", ["s0", "s1"])) == ["s1"]
    for stranger in ("", "user", "USER1", "user1\0", "user1' OR '1'='1", "%", "root "):
        assert _found(guarded, stranger) == []


def test_pages_hold_each_row_once_the_newest_first(path: str) -> None:
    history = History(path, open_to_all=True)
    seen: list[str] = []
    place = None
    while True:
        page = [
            r
            for piece in history.rows("", ["statement_id", "started_ms", "id"], before=place, limit=700)
            for r in piece
        ]
        if not page:
            break
        seen += [row[0] for row in page]
        place = (page[-1][1], page[-1][2])
    assert seen == [f"s{n}" for n in reversed(range(2500))]


def test_conditions(path: str) -> None:
    history = History(path, open_to_all=True)
    between = (Condition("started_ms", ">=", 1010), Condition("started_ms", "<=", 1011))
    assert _found(history, "", *between) == ["s20", "s21", "s22", "s23"]
    assert _found(history, "", Condition("state", "IN", [])) == []
    for column, operator in (("1=1 --", "="), ("user", "LIKE"), ("user", "= ''OR"), ("sqlite_master", "=")):
        with pytest.raises(ValueError):
            _found(history, "", Condition(column, operator, "x"))
    with pytest.raises(ValueError):
        list(history.rows("", ["user FROM statements --"]))
    assert set(STATEMENTS.columns) >= {"user", "text"}


def test_a_search_that_takes_long_is_given_up(path: str) -> None:
    with pytest.raises(ServerError) as raised:
        _found(History(path, open_to_all=True), "", Condition("text", "CONTAINS", "x"), seconds=-1.0)
    assert raised.value.condition == "HISTORY_UNREADABLE" and "longer than" in str(raised.value)
    assert len(_found(History(path, open_to_all=True), "", seconds=60.0)) == 2500


def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    assert _found(History(str(tmp_path / "history.db")), "ann") == []
    assert not (tmp_path / "history.db").exists()
    (tmp_path / "empty.db").touch()
    assert _found(History(str(tmp_path / "empty.db")), "ann") == []


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    for name, data in (("text.db", b"no database" * 1000), ("folder.db", None)):
        path = tmp_path / name
        path.mkdir() if data is None else path.write_bytes(data)
        with pytest.raises(ServerError) as raised:
            _found(History(str(path)), "ann")
        assert raised.value.condition == "HISTORY_UNREADABLE"
