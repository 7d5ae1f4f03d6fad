"""The tree of a query's text."""

from __future__ import annotations

from gateway.sql.read.expressions import Node
from gateway.sql.read.parse import QueryParser, prepare_recursion
from gateway.sql.read.statement import Statement, read_statement
from gateway.sql.read.tokens import END


def parse_query(query: str | Statement) -> Node:
    """The tree of a query. Raises GatewayError as a statement with it would."""
    statement = read_statement(query) if isinstance(query, str) else query
    prepare_recursion(statement.limits)
    parser = QueryParser(statement.tokens, statement.words, statement.limits)
    found = parser.query()
    if parser.word != END:
        parser.fail()
    return found
