"""Statements that read and do nothing else: all that runs where a client has asked for no more."""

from __future__ import annotations

from gateway.errors import UserError
from gateway.sql.read.commands import explained
from gateway.sql.read.statement import CHANGES, Kind, Statement
from gateway.sql.read.tokens import STRING, span_of_token

_TELLING = frozenset({"SHOW", "DESCRIBE", "DESC"})


def check_reads(statement: Statement) -> None:
    """Raise UserError (NOT_READ_ONLY) unless a statement is a query, SHOW, DESCRIBE, LIST of files, or EXPLAIN of one.

    SET and USE are none of them, nor is what makes something for a session alone.
    """
    inner = explained(statement)
    while inner is not None:
        statement, inner = inner, explained(inner)
    words = statement.words
    # Spark's LIST JARS is of no path.
    if statement.kind is Kind.QUERY or words[0] in _TELLING or words[:2] == ["LIST", STRING]:
        return
    # Of WITH and FROM the change that follows is at fault.
    at = next((i for i, word in enumerate(words) if word in CHANGES), 0) if statement.kind is Kind.DML else 0
    text = f"{words[at]} does more than read, and only statements that read may run here."
    raise UserError("NOT_READ_ONLY", text, span=span_of_token(statement.tokens[at]))
