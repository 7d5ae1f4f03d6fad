"""IDENTIFIER clauses from end to end: in what is read, made, written, described and explained."""

from __future__ import annotations

import pytest

from gateway.errors import GatewayError
from gateway.worker_jobs import Parameter
from tests.unit.runner.session import Session


def test_every_kind_of_name(session: Session) -> None:
    table = Parameter("t", "STRING", "main.shop.named")
    session.run("CREATE TABLE IDENTIFIER(:t) (a INT)", table)
    session.run("INSERT INTO IDENTIFIER('nam' || 'ed') VALUES (?)", Parameter(None, "INT", "4"))
    asked = session.run(
        "SELECT ?, IDENTIFIER('a'), IDENTIFIER('abs')(-1) AS IDENTIFIER('x') FROM IDENTIFIER(?) WHERE a = ?",
        *(Parameter(None, kind, value) for kind, value in (("INT", "7"), ("STRING", "named"), ("INT", "4"))),
    )
    assert asked.columns == [("7", "int", False), ("a", "int", True), ("x", "int", False)]
    assert asked.rows == [(7, 4, 1)]
    session.run("CREATE TEMPORARY VIEW v AS SELECT * FROM IDENTIFIER('named')")
    assert session.rows("WITH IDENTIFIER('c') AS (TABLE v) SELECT v.IDENTIFIER('a') FROM IDENTIFIER('c') v") == [(4,)]
    assert session.rows("DESCRIBE IDENTIFIER('named')") == [("a", "int", None)]
    assert "Engine: datafusion" in session.rows("EXPLAIN SELECT * FROM IDENTIFIER('named')")[0][0]
    session.run("USE CATALOG IDENTIFIER('samples')")
    session.run("USE IDENTIFIER('main.shop')")
    session.run("DROP TABLE IDENTIFIER('named')")


def test_errors_are_where_the_clause_is(session: Session) -> None:
    text = "SELECT 1 FROM  IDENTIFIER('range')(3) WHERE  nope > 1"
    with pytest.raises(GatewayError) as raised:
        session.run(text)
    assert "(line 1, pos 45)" in raised.value.text(text)
    text = "SELECT * FROM IDENTIFIER('nowhere.x'), range(3)"
    with pytest.raises(GatewayError) as raised:
        session.run(text)
    assert raised.value.span is not None and text[raised.value.span.start :].startswith("IDENTIFIER('nowhere.x')")
    assert text[: raised.value.span.stop].endswith("IDENTIFIER('nowhere.x')")
