"""IDENTIFIER clauses: what a text is read as instead, and where its errors are."""

from __future__ import annotations

import pytest

from gateway.errors import GatewayError, Span, UserError
from gateway.sql.read.identifiers import identified
from gateway.worker_jobs import Parameter, SessionState, Statement

NAMED = (Parameter("t", "STRING", "b c"), Parameter("N", "INT", "1"), Parameter("none", "STRING", None))
POSITIONAL = (Parameter(None, "INT", "1"), Parameter(None, "VARCHAR(9)", "a.b"), Parameter(None, "INT", "3"))
PAIRS = [
    ("SELECT * FROM IDENTIFIER('a.b') x", "SELECT * FROM `a`.`b` x"),
    ("SELECT identifier ( 'a' 'b' || '.' || '`c``.d`' )(1)", "SELECT `ab`.`c``.d`(1)"),
    ("SELECT IDENTIFIER('a') + IDENTIFIER('b'), t.IDENTIFIER('c')", "SELECT `a` + `b`, t.`c`"),
    ("SELECT identifier, 'IDENTIFIER(1)' FROM t -- IDENTIFIER(x)", None),
    ("SELECT 'IDENTIFIER(", None),
    ("SELECT IDENTIFIER ('a') -- it's\n", "SELECT `a` -- it's\n"),
    ("SELECT * FROM IDENTIFIER('`' || :t || '`.x') WHERE a = :n", "SELECT * FROM `b c`.`x` WHERE a = :n"),
]
FAULTS = [
    ("SELECT IDENTIFIER(x)", "UNSUPPORTED_FEATURE", "0A000", "x"),
    ("SELECT IDENTIFIER('a', 'b')", "UNSUPPORTED_FEATURE", "0A000", ","),
    ("SELECT IDENTIFIER()", "UNSUPPORTED_FEATURE", "0A000", ")"),
    ("SELECT IDENTIFIER('a' ||", "UNSUPPORTED_FEATURE", "0A000", "||"),
    ("SELECT IDENTIFIER(lower('a'))", "UNSUPPORTED_FEATURE", "0A000", "lower"),
    ("SELECT IDENTIFIER('')", "PARSE_SYNTAX_ERROR", "42601", "IDENTIFIER('')"),
    ("SELECT IDENTIFIER('a..b')", "PARSE_SYNTAX_ERROR", "42601", "IDENTIFIER('a..b')"),
    ("SELECT IDENTIFIER('a; DROP TABLE b')", "PARSE_SYNTAX_ERROR", "42601", "IDENTIFIER('a; DROP TABLE b')"),
    ("SELECT IDENTIFIER('a.`b')", "PARSE_SYNTAX_ERROR", "42601", "IDENTIFIER('a.`b')"),
    ("SELECT IDENTIFIER(:nope)", "UNBOUND_SQL_PARAMETER", "42P02", ":nope"),
    ("SELECT IDENTIFIER(?)", "UNBOUND_SQL_PARAMETER", "42P02", "?"),
    ("SELECT IDENTIFIER(:n)", "NOT_A_CONSTANT_STRING.WRONG_TYPE", "42601", ":n"),
    ("SELECT IDENTIFIER('a' || :none)", "NOT_A_CONSTANT_STRING.NULL", "42601", ":none"),
]


def job(text: str, *parameters: Parameter) -> Statement:
    return Statement("s", text, SessionState("main", "default", "tester", {}), parameters)


@pytest.mark.parametrize(("text", "read"), PAIRS)
def test_names_take_their_places(text: str, read: str | None) -> None:
    with identified(job(text, *NAMED)) as found:
        assert found.text == (read or text) and found.parameters == NAMED


def test_question_marks_that_stand_for_names_are_used_up() -> None:
    with identified(job("SELECT ?, IDENTIFIER(?), ?", *POSITIONAL)) as found:
        assert found.text == "SELECT ?, `a`.`b`, ?"
        assert [p.value for p in found.parameters] == ["1", "3"]


@pytest.mark.parametrize(("text", "condition", "sqlstate", "at"), FAULTS)
def test_faults(text: str, condition: str, sqlstate: str, at: str) -> None:
    with pytest.raises(GatewayError) as raised, identified(job(text, *NAMED)):
        raise AssertionError("never read")
    error = raised.value
    assert (error.condition, error.sqlstate) == (condition, sqlstate)
    assert error.span is not None and text[error.span.start : error.span.stop] == at


def test_errors_are_where_they_are_in_the_text_that_was_sent() -> None:
    """For each piece of the text that is read: which piece of the sent one it is."""
    text = "SELECT a1, IDENTIFIER('bb') FROM IDENTIFIER('c.d') WHERE e1"
    read = "SELECT a1, `bb` FROM `c`.`d` WHERE e1"
    pairs = {"SELECT": "SELECT", "a1": "a1", "`bb`": "IDENTIFIER('bb')", "`d`": "IDENTIFIER('c.d')", "e1": "e1"}
    pairs |= {read: text, "a1, `bb`": "a1, IDENTIFIER('bb')", "`bb` FROM": "IDENTIFIER('bb') FROM", " WHERE": " WHERE"}
    for piece, sent in pairs.items():
        with pytest.raises(UserError) as raised, identified(job(text)) as found:
            assert found.text == read
            start = read.index(piece)
            raise UserError("PARSE_SYNTAX_ERROR", "no", span=Span(start, start + len(piece)))
        span = raised.value.span
        assert span is not None and text[span.start : span.stop] == sent
