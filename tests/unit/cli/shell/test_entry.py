"""When Enter runs what was typed at the prompt, and into which statements it falls."""

from __future__ import annotations

import pytest

from gateway.cli.shell.entry import Entry, entries, is_shortcut, is_whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "SELECT 1;",
        "SELECT 1; ",
        "SELECT 1;\nSELECT 2;",
        "SELECT 1 \\G",
        "SELECT ';';",
        "SELECT 1; -- done",
        "\\d t",
        "exit",
        "QUIT;",
        "BEGIN SELECT 1; END;",
        "SELECT 'open\n\n",
        "-- nothing",
    ],
)
def test_whole(text: str) -> None:
    assert is_whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT ';'",
        "SELECT ';",
        "SELECT 1 /* ;",
        "SELECT 1 -- ;",
        "BEGIN SELECT 1;",
        "SELECT 'open\n",
    ],
)
def test_not_whole_yet(text: str) -> None:
    assert not is_whole(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1;", [Entry("SELECT 1")]),
        ("SELECT 1; SELECT 2 \\G", [Entry("SELECT 1"), Entry("SELECT 2", vertical=True)]),
        ("SELECT ';'; ;", [Entry("SELECT ';'")]),
        ("BEGIN SELECT 1; END; SELECT 2", [Entry("BEGIN SELECT 1; END"), Entry("SELECT 2")]),
        ("SELECT 'open", [Entry("SELECT 'open")]),
        ("", []),
    ],
)
def test_statements(text: str, found: list[Entry]) -> None:
    assert entries(text) == found


def test_words_to_leave_are_no_sql() -> None:
    assert all(map(is_shortcut, ("exit", "QUIT;", "help", "?", "\\x on", " \\q")))
    assert not any(map(is_shortcut, ("exits", "SELECT 'exit'", "quit now")))
