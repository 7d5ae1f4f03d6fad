"""What must not reach a Spark that does not know the gateway's user; all other refusals are in `test_respell`."""

from __future__ import annotations

import pytest

from gateway.errors import UnsupportedError
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.allowed import check_allowed


@pytest.mark.parametrize(
    "text",
    [
        "SELECT user",
        "SELECT upper(`User`) FROM range(1)",
        "SELECT `session_user`, 1",
        "SELECT * FROM t WHERE owner IS DISTINCT FROM user",
        "UPDATE t SET a = user",
        "CREATE VIEW v AS SELECT `current_user` AS u",
        "BEGIN SELECT user; END",
    ],
)
def test_a_name_that_may_tell_sparks_own_user(text: str) -> None:
    statement = read_statement(text)
    check_allowed(statement)
    with pytest.raises(UnsupportedError, match="where it may tell Spark's own user") as raised:
        check_allowed(statement, tells_user=False)
    assert raised.value.span is not None and "user" in text[slice(*raised.value.span)].lower()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT t.user, t.`user`, user.name, 1 AS user, 'user', :user FROM t JOIN user ON t.id = user.id",
        "SELECT CAST(NULL AS STRUCT<user: STRING>)",
        "INSERT INTO user VALUES (1)",
        "SHOW USER FUNCTIONS",
    ],
)
def test_a_name_that_tells_nothing(text: str) -> None:
    check_allowed(read_statement(text), tells_user=False)
