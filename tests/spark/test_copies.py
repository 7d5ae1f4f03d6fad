"""COPY INTO of text files: the rows are those that Spark's own readers make of the files."""

from __future__ import annotations

import pytest

from tests.live.gateway import Server
from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_TEXTS = {
    "csv": 'a,b,c\n1,"x, y",\n\n-2,"",\\n\n007, lead,é\n',
    "json": '{"b":1,"a":"x","n":{"z":1.5,"y":[1,2]}}\n\n'
    '{"a":null,"b":2.5,"c":true,"e":[null,[]]}\n{"n":{"z":null},"big":12345678901}\n',
}


@pytest.mark.parametrize("kind", sorted(_TEXTS))
def test_rows_are_sparks(sql: Sql, spark_server: Server, kind: str) -> None:
    folder = spark_server.log.parent / "files" / f"of-{kind}"
    folder.mkdir()
    (folder / f"f.{kind}").write_text(_TEXTS[kind])
    sql.auto("DROP TABLE IF EXISTS loaded")
    sql.embedded("CREATE TABLE loaded (other INT)")
    merge = "COPY_OPTIONS ('mergeSchema' = 'true')"
    sql.embedded(f"COPY INTO loaded FROM '{folder}' FILEFORMAT = {kind} {merge}")
    assert sql.embedded(f"COPY INTO loaded FROM '{folder}' FILEFORMAT = {kind} {merge}") == [(0, 0, 0)]
    expected = sql.spark(f"SELECT * FROM {kind}.`{folder}`")
    assert len(expected) >= 3
    ask = "SELECT * EXCEPT (other) FROM loaded"
    for found in (sql.spark(ask), sql.embedded(ask)):
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
