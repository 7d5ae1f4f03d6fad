"""Functions that Databricks has and Spark has not: other names of some that both have."""

from __future__ import annotations

from tests.unit.runner.session import Session


def test_functions_under_their_names_in_databricks(session: Session) -> None:
    found = session.rows("SELECT charindex('bar', 'abcbarbar'), charindex('bar', 'abcbarbar', 5), iff(1 < 2, 7, 1 / 0)")
    assert found == [(4, 7, 7)]
    assert session.rows("SELECT getdate() = current_timestamp()") == [(True,)]
