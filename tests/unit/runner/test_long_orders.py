"""Rows in an order that they have had before something else is computed of them: more than one batch, of several files."""

from __future__ import annotations

import pytest

from tests.conformance.session import Session, open_runner

_FIRST = "(SELECT * FROM t ORDER BY v, id LIMIT 100000)"
_ORDERED = (
    f"SELECT id, regexp_replace(s, '[0-9]+', '#') FROM {_FIRST}",
    f"SELECT id, upper(s), v + 1 FROM {_FIRST} WHERE v > 3",
    f"SELECT id, x FROM (SELECT id, regexp_replace(s, '[0-9]+', '#') AS x FROM {_FIRST}) WHERE x <> 'a' LIMIT 50000",
    f"SELECT id, regexp_replace(s, '[0-9]', e) FROM {_FIRST} LATERAL VIEW explode(array('#')) AS e",
    f"WITH c AS {_FIRST} SELECT id, regexp_replace(s, '[0-9]+', '#') FROM c",
    "SELECT id, regexp_replace(s, '[0-9]+', '#') FROM (SELECT * FROM t ORDER BY v, id)",
    "SELECT id, row_number() OVER (ORDER BY 1) FROM (SELECT * FROM t ORDER BY v, id)",
    "SELECT id, row_number() OVER (ORDER BY v, id) FROM t",
    "SELECT id, sum(v) OVER (ORDER BY v, id), regexp_replace(s, '[0-9]+', '#') FROM t",
    "SELECT id, s FROM t ORDER BY v, id LIMIT 60000",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = Session(open_runner(tmp_path_factory.mktemp("long")))
    for file in range(4):
        rows = f"SELECT id, string(id) AS s, id DIV 3 AS v FROM range({file * 50_000}, {(file + 1) * 50_000})"
        session.execute(f"CREATE TABLE t AS {rows}" if file == 0 else f"INSERT INTO t {rows}")
    return session


@pytest.mark.parametrize("text", _ORDERED)
def test_rows_come_in_it(session: Session, text: str) -> None:
    for _ in range(2):  # where they do not, they may by chance
        ids = [row[0] for row in session.execute(text).rows()]
        assert len(ids) > 40_000
        assert ids == sorted(ids)
