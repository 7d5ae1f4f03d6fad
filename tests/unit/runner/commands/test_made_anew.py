"""A table that is dropped and made anew while rows for it are made takes none of them: its name alone is the same."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.delta import commit
from gateway.errors import GatewayError
from tests.unit.runner.session import Session

MADE = ("CREATE TABLE t (id BIGINT)", "INSERT INTO t VALUES (1), (2)", "INSERT INTO t VALUES (3)")
WRITES = (
    "INSERT INTO t VALUES (9)",
    "INSERT INTO t SELECT id + 10 FROM t",
    "INSERT OVERWRITE t VALUES (9)",
    "DELETE FROM t WHERE id = 1",
    "UPDATE t SET id = 8 WHERE id = 1",
    "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "OPTIMIZE t",
    "RESTORE TABLE t TO VERSION AS OF 0",
    "ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')",
    "ALTER TABLE t ADD COLUMN more INT",
    "COMMENT ON TABLE t IS 'old'",
    "CREATE OR REPLACE TABLE t AS SELECT 9 AS id",
)


@pytest.mark.parametrize("versions", [1, 3, 5])
@pytest.mark.parametrize("write", WRITES)
def test_another_table_of_the_name_is_left_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch, write: str, versions: int
) -> None:
    for statement in MADE:
        session.run(statement)
    publish = commit.publish

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(commit, "publish", publish)
        session.run("DROP TABLE t")
        session.run("CREATE TABLE t (s STRING)")
        for number in range(1, versions):
            session.run(f"INSERT INTO t VALUES ('{number}')")
        publish(*arguments)

    monkeypatch.setattr(commit, "publish", late)
    with pytest.raises(GatewayError) as caught:
        session.run(write)
    assert caught.value.retryable, caught.value
    assert session.rows("SELECT * FROM t ORDER BY s") == [(str(number),) for number in range(1, versions)]
    assert len(session.rows("DESCRIBE HISTORY t")) == versions
    session.run("INSERT INTO t VALUES ('new')")
    assert session.rows("SELECT count(*) FROM t") == [(versions,)]
