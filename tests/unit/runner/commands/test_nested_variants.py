"""VARIANT inside of columns: written, read, changed, taken out of files and put together."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import folder_of, newest_commit

_COLUMNS = "id INT, a ARRAY<VARIANT>, s STRUCT<v: VARIANT, n: INT>, m MAP<STRING, VARIANT>"
_INSERT = (
    "INSERT INTO t VALUES (1, array(parse_json('1'), NULL, parse_json('\"a\"')), "
    "named_struct('v', parse_json('{\"x\":1}'), 'n', 2), map('k', parse_json('[1]'), 'l', NULL)), "
    "(2, NULL, NULL, NULL), (3, array(), named_struct('v', NULL, 'n', 3), map('z', parse_json('null')))"
)
_ROWS: list[tuple[Any, ...]] = [
    (1, ["1", None, '"a"'], {"v": '{"x":1}', "n": 2}, [("k", "[1]"), ("l", None)]),
    (2, None, None, None),
    (3, [], {"v": None, "n": 3}, [("z", "null")]),
]
_PROPERTIES = [
    "'delta.enableDeletionVectors' = 'false'",
    "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = 'name'",
    "'delta.columnMapping.mode' = 'id', 'delta.enableChangeDataFeed' = 'true'",
]


def _made(session: Session, properties: str = _PROPERTIES[0]) -> Session:
    session.run(f"CREATE TABLE t ({_COLUMNS}) TBLPROPERTIES ({properties}, 'delta.checkpointInterval' = '3')")
    session.run(_INSERT)
    return session


def _rows(session: Session, table: str = "t", columns: str = "*") -> list[tuple[Any, ...]]:
    return session.rows(f"SELECT {columns} FROM {table} ORDER BY id")


def test_values_are_written_as_delta_writes_them(session: Session) -> None:
    _made(session)
    assert _rows(session) == _ROWS
    assert dict(session.rows("SHOW TBLPROPERTIES t"))["delta.feature.variantType"] == "supported"
    assert session.run("SELECT * FROM t").columns[1:] == [
        ("a", "array<variant>", True),
        ("s", "struct<v:variant,n:int>", True),
        ("m", "map<string,variant>", True),
    ]
    (path,) = [action["add"]["path"] for action in newest_commit(session) if "add" in action]
    parts = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")])
    schema = pq.read_schema(folder_of(session) / path)
    assert (schema.field("a").type.value_type, schema.field("m").type.item_type) == (parts, parts)
    assert schema.field("s").type.field("v").type == parts


@pytest.mark.parametrize("properties", _PROPERTIES)
def test_rows_are_changed(session: Session, properties: str) -> None:
    _made(session, properties)
    session.run("UPDATE t SET a = array_append(a, s.v:x), s.v = parse_json('9') WHERE s.v:x::INT = 1")
    session.run("UPDATE t SET m = map_concat(m, map('u', parse_json('true'))) WHERE is_variant_null(m['z'])")
    session.run("DELETE FROM t WHERE a IS NULL")
    first = (1, ["1", None, '"a"', "1"], {"v": "9", "n": 2}, [("k", "[1]"), ("l", None)])
    third: tuple[Any, ...] = (3, [], {"v": None, "n": 3}, [("z", "null"), ("u", "true")])
    assert _rows(session) == [first, third]
    source = "SELECT 3 AS id, array(parse_json('3')) AS a, named_struct('v', parse_json('{}'), 'n', 0) AS s, NULL AS m"
    session.run(
        f"MERGE INTO t USING ({source} UNION ALL SELECT 4, NULL, NULL, map('q', parse_json('4'))) q ON t.id = q.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    rows = [first, (3, ["3"], {"v": "{}", "n": 0}, None), (4, None, None, [("q", "4")])]
    assert _rows(session) == rows
    session.run("OPTIMIZE t")
    assert _rows(session) == rows
    assert _rows(session, "t VERSION AS OF 1") == _ROWS
    if "Feed" in properties:
        feed = "SELECT a, _change_type FROM table_changes('t', 2, 2) ORDER BY 2"
        assert session.rows(feed) == [(first[1], "update_postimage"), (_ROWS[0][1], "update_preimage")]
    if "name" in properties or "'id'" in properties:
        session.run("ALTER TABLE t RENAME COLUMN s.v TO w")
        session.run("ALTER TABLE t RENAME COLUMN a TO b")
        assert _rows(session, "t", "b, s.w") == [(row[1], row[2] and row[2]["v"]) for row in rows]
        session.run("ALTER TABLE t DROP COLUMN s.n")
        assert _rows(session, "t", "s") == [({"w": "9"},), ({"w": "{}"},), (None,)]


def test_tables_are_made_of_others(session: Session) -> None:
    _made(session)
    session.run("CREATE TABLE u AS SELECT *, transform(a, x -> x::STRING) AS texts, array(s) AS l FROM t")
    assert [row[:4] for row in _rows(session, "u")] == _ROWS
    assert _rows(session, "u", "texts, l[0].v") == [(["1", None, "a"], '{"x":1}'), (None, None), ([], None)]
    session.run("CREATE TABLE c SHALLOW CLONE t")
    session.run("INSERT OVERWRITE c SELECT id + 10, a, s, m FROM t WHERE id = 1")
    assert _rows(session, "c") == [(11, *_ROWS[0][1:])]
    session.run("CREATE TABLE e AS SELECT id, v FROM t LATERAL VIEW explode(a) x AS v")
    assert session.rows("SELECT v FROM e WHERE v IS NOT NULL ORDER BY v::STRING") == [("1",), ('"a"',)]
    assert session.rows("SELECT collect_list(v) FROM (SELECT v FROM e WHERE v::STRING = 'a')") == [(['"a"'],)]


def test_tables_get_columns_that_hold_values(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, s STRUCT<x: INT>)")
    session.run("INSERT INTO t VALUES (1, named_struct('x', 1))")
    error = refused(session, "INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1, NULL, array(parse_json('1')) AS v")
    assert error.condition == "UNSUPPORTED_FEATURE"
    session.run("ALTER TABLE t ADD COLUMNS (s.v VARIANT, a ARRAY<VARIANT>)")
    assert dict(session.rows("SHOW TBLPROPERTIES t"))["delta.feature.variantType"] == "supported"
    session.run("INSERT INTO t SELECT 2, named_struct('x', 2, 'v', parse_json('{}')), array(parse_json('2'))")
    assert _rows(session) == [(1, {"x": 1, "v": None}, None), (2, {"x": 2, "v": "{}"}, ["2"])]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("CREATE TABLE x (id INT, a ARRAY<VARIANT>) PARTITIONED BY (a)", "INVALID_PARTITION_COLUMN_DATA_TYPE"),
        (
            "CREATE TABLE x (id INT, s STRUCT<v: VARIANT>) CLUSTER BY (s.v)",
            "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
        ),
        ("SELECT DISTINCT s FROM t", "UNSUPPORTED_FEATURE.SET_OPERATION_ON_VARIANT_TYPE"),
        ("SELECT id FROM t ORDER BY a", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
        ("SELECT m FROM t GROUP BY m", "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE"),
    ],
)
def test_what_values_are_not_good_for(session: Session, statement: str, condition: str) -> None:
    _made(session)
    assert refused(session, statement).condition == condition
