"""Sessions for the tests beside this file."""

from __future__ import annotations

import pytest

from tests.unit.runner.session import Session

TABLE = (
    "CREATE TABLE t (id INT NOT NULL COMMENT 'key', Name STRING, p DATE) "
    "PARTITIONED BY (p) COMMENT 'a table' TBLPROPERTIES ('k' = 'v', 'a.b' = 1)"
)


@pytest.fixture
def shop(session: Session) -> Session:
    """A session in a schema with a table and a temporary view."""
    session.run(TABLE)
    session.run("CREATE TEMPORARY VIEW tv AS SELECT 1 AS a, 'x' AS b")
    return session
