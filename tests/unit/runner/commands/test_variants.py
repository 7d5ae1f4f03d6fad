"""VARIANT in tables: written, read, changed; what would look at values in another way is refused, and nothing is written."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.errors import UnsupportedError, UserError
from gateway.worker_jobs import Parameter
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_commit

# What Spark 4.2 says of each value as each type, in the zone America/Los_Angeles.
_CASTS = [
    json.loads(line) for line in (Path(__file__).parents[3] / "data" / "variant-casts.jsonl").read_text().splitlines()
]
# What it says to functions of VARIANT and to casts between it and values of parts; rows as the fuzzer's oracle writes them.
_CALLS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "variant-functions.jsonl").read_text().splitlines()
]
_FAILS = "INVALID_VARIANT_CAST"
_ROWS = [(1, '{"a":[true,null,1.5,"x"],"b":1}'), (2, None), (3, "null"), (4, None)]


@pytest.fixture
def held(session: Session) -> Session:
    """``t`` with four rows, of which the last has been given no value."""
    session.run("CREATE TABLE t (id INT, v VARIANT)")
    session.run(
        """INSERT INTO t VALUES (1, parse_json('{"b":1,"a":[true,null,1.5,"x"]}')), (2, NULL), (3, parse_json('null'))"""
    )
    session.run("INSERT INTO t (id) VALUES (4)")
    return session


def _rows(session: Session, table: str = "t") -> list[tuple[Any, ...]]:
    return session.rows(f"SELECT * FROM {table} ORDER BY id")


def test_values_are_written_as_delta_writes_them(held: Session) -> None:
    assert _rows(held) == _ROWS
    told = dict(held.rows("SHOW TBLPROPERTIES t"))
    assert (told["delta.minReaderVersion"], told["delta.feature.variantType"]) == ("3", "supported")
    assert held.run("SELECT v FROM t").columns == [("v", "variant", True)]
    (path,) = [action["add"]["path"] for action in newest_commit(held) if "add" in action]
    schema = pq.read_schema(folder_of(held) / path)
    parts = [pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")]
    assert schema.field("v").type == pa.struct(parts)


def test_rows_with_values_are_changed(held: Session) -> None:
    held.run("UPDATE t SET v = parse_json('[1]') WHERE id = 2")
    held.run("UPDATE t SET id = 40 WHERE id = 4")
    held.run("DELETE FROM t WHERE id = 3")
    source = "SELECT 1 AS id, parse_json('\"m\"') AS v UNION ALL SELECT 9, parse_json('9')"
    held.run(
        f"MERGE INTO t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    rows = [(1, '"m"'), (2, "[1]"), (9, "9"), (40, None)]
    assert _rows(held) == rows
    held.run("OPTIMIZE t")
    assert _rows(held) == rows
    held.run("CREATE TABLE u AS SELECT *, id + 1 AS j FROM t")
    assert _rows(held, "u") == [(*row, row[0] + 1) for row in rows]
    held.run("INSERT OVERWRITE t SELECT id, v FROM t WHERE id < 5")
    assert _rows(held) == rows[:2]
    assert _rows(held, "t VERSION AS OF 2") == _ROWS
    held.run("CREATE TABLE c SHALLOW CLONE t")
    assert _rows(held, "c") == rows[:2]


@pytest.mark.parametrize(
    "properties",
    [
        "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'",
        "'delta.columnMapping.mode' = 'name'",
        "'delta.columnMapping.mode' = 'id'",
        "'delta.enableChangeDataFeed' = 'true'",
    ],
)
def test_tables_that_ask_for_more_hold_values(session: Session, properties: str) -> None:
    session.run(
        "CREATE TABLE t (id INT, v VARIANT, p STRING) PARTITIONED BY (p) "
        f"TBLPROPERTIES ({properties}, 'delta.checkpointInterval' = '3')"
    )
    session.run("INSERT INTO t VALUES (1, parse_json('1'), 'x'), (2, parse_json('2'), 'x'), (3, NULL, NULL)")
    session.run("DELETE FROM t WHERE id = 1")
    session.run("UPDATE t SET v = parse_json('\"u\"') WHERE id = 3")
    session.run("INSERT INTO t VALUES (4, parse_json('4.25'), 'y')")
    rows = [(2, "2", "x"), (3, '"u"', None), (4, "4.25", "y")]
    assert _rows(session) == rows
    if "Feed" in properties:
        feed = "SELECT v, _change_type FROM table_changes('t', 3, 3) ORDER BY 2"
        assert session.rows(feed) == [('"u"', "update_postimage"), (None, "update_preimage")]
    if "columnMapping" in properties:
        session.run("ALTER TABLE t RENAME COLUMN v TO w")
        assert _rows(session) == rows
        session.run("ALTER TABLE t DROP FEATURE columnMapping")
        assert _rows(session) == rows


def test_a_table_gets_a_column_of_values(session: Session) -> None:
    session.run("CREATE TABLE t (id INT)")
    session.run("INSERT INTO t VALUES (1)")
    error = refused(session, "INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1, parse_json('1') AS v")
    assert error.condition == "UNSUPPORTED_FEATURE"
    session.run("ALTER TABLE t ADD COLUMNS (v VARIANT)")
    assert dict(session.rows("SHOW TBLPROPERTIES t"))["delta.feature.variantType"] == "supported"
    session.run("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 2, parse_json('1'), parse_json('{}') AS w")
    assert _rows(session) == [(1, None, None), (2, "1", "{}")]


def test_queries_hand_values_on(held: Session) -> None:
    assert held.rows("SELECT id, v IS NULL, to_json(v) FROM t WHERE v IS NOT NULL ORDER BY id") == [
        (1, False, _ROWS[0][1]),
        (3, False, "null"),
    ]
    assert held.rows("SELECT a.v, b.v FROM t a JOIN t b ON a.id = b.id + 2 ORDER BY a.id") == [
        ("null", _ROWS[0][1]),
        (None, None),
    ]
    assert held.rows("SELECT CASE WHEN id = 1 THEN v END FROM t ORDER BY id LIMIT 1") == [(_ROWS[0][1],)]
    assert held.rows("SELECT v FROM t WHERE id = 3 UNION ALL SELECT NULL ORDER BY v IS NULL") == [("null",), (None,)]
    held.run("INSERT INTO t VALUES (5, NULL)")
    held.run("DELETE FROM t WHERE id = 5 AND v IS NULL")
    held.run("CREATE TEMPORARY VIEW tv AS SELECT id, v FROM t UNION ALL SELECT 5, parse_json('5')")
    assert held.rows("SELECT v FROM tv WHERE id > 4") == [("5",)]
    assert held.rows("WITH q AS (SELECT v FROM t WHERE id = 3) SELECT * FROM q") == [("null",)]
    assert held.rows("SELECT try_parse_json('{')") == [(None,)]
    error = refused(held, "SELECT parse_json('{')")
    assert (error.condition, error.sqlstate) == ("MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION", "22023")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v FROM many ORDER BY id",
        "SELECT v FROM (SELECT * FROM many) ORDER BY id % 7, id",
        "SELECT v, id FROM many ORDER BY 2 DESC LIMIT 300 OFFSET 100",
        "SELECT v FROM (SELECT v, id FROM many UNION ALL SELECT v, id FROM many) ORDER BY id + 0, id",
        "WITH q AS (SELECT * FROM many) SELECT v FROM q WHERE v IS NOT NULL ORDER BY id DESC",
        "(SELECT v, id FROM many) ORDER BY id DESC",
        "SELECT a.v FROM many a JOIN many b ON a.id = b.id ORDER BY b.id",
        "SELECT * FROM many ORDER BY ALL",
        "TABLE many ORDER BY id DESC LIMIT 5",
        "SELECT v FROM many SORT BY id",
    ],
)
def test_rows_keep_their_order(session: Session, query: str) -> None:
    made = "SELECT id, {} AS v FROM (SELECT (id * 7919) % 5000 AS id FROM range(5000))"
    session.run("CREATE TABLE texts AS " + made.format("CAST(id AS STRING)"))
    session.run("CREATE TABLE many AS " + made.format("parse_json(CAST(id AS STRING))"))
    if "ORDER BY ALL" in query:
        assert refused(session, query).condition == "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"
    else:
        assert session.rows(query) == session.rows(query.replace("many", "texts"))


@pytest.mark.parametrize(
    "statement",
    [
        *("SELECT DISTINCT v FROM t", "SELECT count(DISTINCT v) FROM t", "SELECT collect_set(v) FROM t"),
        *("SELECT v FROM t UNION SELECT v FROM t", "SELECT v FROM t EXCEPT SELECT v FROM t"),
        *("INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (1, 5)", "INSERT INTO t SELECT id, to_json(v) FROM t"),
        *("UPDATE t SET v = 'x'", "INSERT INTO n (id) SELECT v FROM t"),
        *("INSERT INTO a VALUES (1, array('x'))", "INSERT INTO a VALUES (1, array(5))"),
        "CREATE TABLE x (v ARRAY<VARIANT> DEFAULT array()) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "CREATE TABLE x (v VARIANT DEFAULT parse_json('1')) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "CREATE TABLE x (v VARIANT) TBLPROPERTIES ('delta.enableVariantShredding' = 'true')",
    ],
)  # fmt: skip
def test_what_looks_at_values_is_refused(held: Session, statement: str) -> None:
    held.run("CREATE TABLE n (id INT, v STRING)")
    held.run("CREATE TABLE a (id INT, v ARRAY<VARIANT>)")
    before = count_versions(held)
    assert refused(held, statement).sqlstate == "0A000"
    assert count_versions(held) == before
    assert held.rows("SHOW TABLES LIKE 'x'") == []


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("SELECT v FROM t GROUP BY v", "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE"),
        ("SELECT count(*) FROM t GROUP BY v:a", "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE"),
        ("SELECT * FROM t ORDER BY v", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
        ("SELECT * FROM t a JOIN t b ON a.v = b.v", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
        ("SELECT * FROM t a JOIN t b USING (v)", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
        ("UPDATE t SET id = 1 WHERE v = v", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
        ("DELETE FROM t WHERE v IN (SELECT v FROM t)", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
        ("SELECT nullif(v, v) FROM t", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
        ("SELECT max_by(id, v) FROM t", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
    ],
)
def test_values_have_no_order(held: Session, statement: str, condition: str) -> None:
    before = count_versions(held)
    error = refused(held, statement)
    assert error.condition == condition and error.span is not None
    assert count_versions(held) == before


@pytest.mark.parametrize(
    ("clauses", "condition"),
    [
        ("PARTITIONED BY (v)", "INVALID_PARTITION_COLUMN_DATA_TYPE"),
        ("CLUSTER BY (v)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
    ],
)
def test_tables_are_not_laid_out_by_values(session: Session, clauses: str, condition: str) -> None:
    assert refused(session, f"CREATE TABLE t (id INT, v VARIANT) {clauses}").condition == condition


@pytest.mark.parametrize(
    ("parts", "condition"),
    [
        ({"metadata": [b"\x01\x00\x00"], "value": [b"\x0c"]}, "MALFORMED_VARIANT"),
        ({"metadata": [b"\x02\x00\x00"], "value": [b"\x00"]}, "MALFORMED_VARIANT"),
        ({"metadata": [b"\x01\x00\x00"], "value": [b"\xfc\x00"]}, "UNSUPPORTED_FEATURE"),
        ({"metadata": [None], "value": [b"\x00"]}, "FAILED_READ_FILE"),
        ({"metadata": [1], "value": [b"\x00"]}, "FAILED_READ_FILE"),
        ({"metadata": [b"\x01\x00\x00"], "value": [b"\x00"], "typed_value": [1]}, "UNSUPPORTED_FEATURE"),
        ({"metadata": [b"\x01\x00\x00"]}, "UNSUPPORTED_FEATURE"),
    ],
)
def test_files_that_hold_something_else_are_told(
    held: Session, parts: dict[str, list[Any]], condition: str, tmp_path: Path
) -> None:
    held.run("CREATE TABLE one AS SELECT 1 AS id, parse_json('1') AS v")
    (path,) = folder_of(held, "one").glob("*.parquet")
    values = pa.StructArray.from_arrays([pa.array(x) for x in parts.values()], names=list(parts))
    size = path.stat().st_size
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": values}), tmp_path / "f", compression="none")
    data = (tmp_path / "f").read_bytes()
    path.write_bytes(data)
    log = next(folder_of(held, "one").glob("_delta_log/*0.json"))
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{len(data)}'))
    held.run("CREATE TABLE two SHALLOW CLONE one")
    assert refused(held, "SELECT v FROM two").condition == condition


def test_parameters_are_no_values(session: Session) -> None:
    assert session.run("SELECT ?", Parameter(None, "VARIANT", None)).rows == [(None,)]
    assert session.run("SELECT parse_json(?)", Parameter(None, "STRING", "[1, 2]")).rows == [("[1,2]",)]
    with pytest.raises(UnsupportedError):
        session.run("SELECT ?", Parameter(None, "VARIANT", "1"))


@pytest.mark.parametrize(
    ("path", "shown", "text"),
    [
        ("$.a", '[true,null,1.5,"x"]', '[true,null,1.5,"x"]'),
        ("$.a[2]", "1.5", "1.5"),
        ("$['a'][3]", '"x"', "x"),
        ('$["b"]', "1", "1"),
        ("$.a[1]", "null", None),
        ("$.a[9]", None, None),
        ("$.A", None, None),
        ("$.a.b", None, None),
        ("$", _ROWS[0][1], _ROWS[0][1]),
    ],
)
def test_parts_of_values(held: Session, path: str, shown: str | None, text: str | None) -> None:
    quoted = path.replace("'", "\\'")
    asked = (
        f"variant_get(v, '{quoted}'), variant_get(v, '{quoted}', 'string'), try_variant_get(v, '{quoted}', 'variant')"
    )
    assert held.rows(f"SELECT {asked} FROM t WHERE id = 1") == [(shown, text, shown)]
    assert held.rows(f"SELECT {asked} FROM t WHERE id = 2") == [(None, None, None)]
    assert held.run(f"SELECT variant_get(v, '{quoted}') FROM t").columns == [
        (f"variant_get(v, {path})", "variant", True)
    ]


def test_values_become_texts(held: Session) -> None:
    held.run("CREATE TABLE n (v VARIANT NOT NULL)")
    held.run("INSERT INTO n VALUES (parse_json('null')), (parse_json('\"s\"')), (parse_json('1.50'))")
    result = held.run("SELECT v::STRING FROM n ORDER BY 1")
    assert result.rows == [(None,), ("1.5",), ("s",)] and result.columns == [("v", "string", True)]
    assert held.rows("SELECT count(*) FROM n WHERE CAST(v AS STRING) IS NULL") == [(1,)]
    assert held.rows("SELECT CAST(v AS STRING), count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 1") == [(None, 3)]
    assert held.rows("SELECT upper(variant_get(v, '$.a[3]')::STRING) FROM t WHERE id = 1") == [("X",)]
    assert held.rows("SELECT v || 'x' FROM n ORDER BY 1") == [(None,), ("1.5x",), ("sx",)]
    assert held.rows("SELECT upper(v) FROM n WHERE v LIKE 's%'") == [("S",)]
    assert refused(held, "SELECT * FROM t WHERE v = 'x'").sqlstate == "42K09"


def test_values_become_texts_of_a_column(held: Session) -> None:
    held.run("CREATE TABLE n (id INT, v STRING)")
    held.run("INSERT INTO n SELECT 1, parse_json('{\"a\": 1}')")
    held.run("INSERT INTO n (v) SELECT parse_json('\"s\"')")
    assert held.rows("SELECT v FROM n ORDER BY id") == [("s",), ('{"a":1}',)]
    held.run("UPDATE n SET v = parse_json('5')")
    assert held.rows("SELECT DISTINCT v FROM n") == [("5",)]


def test_nulls_of_json_are_told(held: Session) -> None:
    assert held.rows("SELECT id, is_variant_null(v) FROM t ORDER BY id") == [
        (1, False),
        (2, False),
        (3, True),
        (4, False),
    ]
    held.run("UPDATE t SET v = variant_get(v, '$.a') WHERE variant_get(v, '$.b', 'string') = '1'")
    assert held.rows("SELECT v FROM t WHERE id = 1") == [('[true,null,1.5,"x"]',)]


@pytest.mark.parametrize(
    "path", ["a", "$.", "$[a]", "$[-1]", "$..a", "$a", "$[0", "$['a]", "$[]", "$['']", "", "$[99999999999]"]
)
def test_paths_that_are_none(held: Session, path: str) -> None:
    quoted = path.replace("'", "\\'")
    error = refused(held, f"SELECT variant_get(v, '{quoted}') FROM t")
    assert (error.condition, error.sqlstate) == ("INVALID_VARIANT_GET_PATH", "22023")


@pytest.mark.parametrize(
    "call",
    [
        "variant_get(v, '$. a')",
        "variant_get(v, string(id))",
        "variant_get(v, NULL)",
        "variant_get('x', '$')",
    ],
)
def test_other_looks_into_values_are_refused(held: Session, call: str) -> None:
    assert refused(held, f"SELECT {call} FROM t").condition == "UNSUPPORTED_FEATURE"


@pytest.mark.parametrize("row", _CASTS, ids=[row["value"] for row in _CASTS])
def test_values_become_other_types_as_in_spark(session: Session, row: dict[str, Any]) -> None:
    session.run("SET TIME ZONE 'America/Los_Angeles'")
    shown = {name: "hex" if name == "binary" else "string" for name in row["as"]}
    calls = [f"{shown[name]}(try_variant_get({row['value']}, '$', '{name}'))" for name in row["as"]]
    casts = [f"{shown[name]}(TRY_CAST({row['value']} AS {name}))" for name in row["as"]]
    expected = tuple(None if value == _FAILS else value for value in row["as"].values())
    assert session.rows(f"SELECT {', '.join(calls)}") == [expected]
    assert session.rows(f"SELECT {', '.join(casts)}") == [expected]
    for name, value in row["as"].items():
        if value == _FAILS:
            with pytest.raises(UserError, match=f'cannot be cast into `"{re.escape(name.upper())}"`') as caught:
                session.rows(f"SELECT CAST({row['value']} AS {name})")
            assert (caught.value.condition, caught.value.sqlstate) == (_FAILS, "22023")


@pytest.mark.parametrize("day", ["-0044-01-01", "+20000-01-01"])
def test_a_value_that_cannot_be_shown_in_an_error_is_refused(session: Session, day: str) -> None:
    with pytest.raises(UnsupportedError, match="date of a VARIANT"):
        session.rows(f"SELECT CAST(CAST(DATE'{day}' AS VARIANT) AS INT)")
    assert session.rows(f"SELECT TRY_CAST(CAST(DATE'{day}' AS VARIANT) AS INT)") == [(None,)]


def test_fields_are_asked_by_paths(held: Session) -> None:
    rows = [(1, 1, "1.5"), (2, None, None), (3, None, None), (4, None, None)]
    assert held.rows("SELECT id, v:b::INT AS b, v:a[2]::STRING AS x FROM t ORDER BY id") == rows
    assert held.rows("SELECT id FROM t WHERE v:b::INT = 1 AND v:a[0]::BOOLEAN") == [(1,)]
    held.run("UPDATE t SET v = CAST(id AS VARIANT) WHERE v IS NULL")
    assert held.rows("SELECT id, v::BIGINT * 2 AS two FROM t WHERE try_cast(v AS BIGINT) > 1 ORDER BY id") == [
        (2, 4),
        (4, 8),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v:a.b FROM VALUES (1) t(v)",
        'SELECT v:a FROM VALUES (\'{"a":1,"A":2}\') t(v)',
        "SELECT v:['a'] FROM VALUES ('{\"a\":1,\"a\":2}') t(v)",
        "SELECT v:a[*] FROM VALUES ('{\"a\":[1]}') t(v)",
        "SELECT v:`a.b` FROM VALUES (parse_json('1')) t(v)",
        "SELECT v:[*] FROM VALUES (parse_json('1')) t(v)",
        "SELECT CAST(v AS STRUCT<a: INT, a: STRING>) FROM VALUES (parse_json('{}')) t(v)",
        "SELECT CAST(v AS STRUCT<a: INT NOT NULL>) FROM VALUES (parse_json('{}')) t(v)",
        "SELECT to_variant_object(named_struct('a', 1, 'a', 2))",
        "SELECT schema_of_variant_agg(v) OVER () FROM VALUES (parse_json('{}')) t(v)",
        "SELECT schema_of_variant_agg(DISTINCT v) FROM VALUES (parse_json('{}')) t(v)",
        """SELECT schema_of_variant_agg(parse_json(j)) FROM VALUES ('{"a":1}'), ('{"A":1}') t(j)""",
        "SELECT decode(1, 1, v, v) FROM VALUES (parse_json('1')) t(v)",
        "SELECT v FROM VALUES (parse_json('1')) t(v) UNION ALL SELECT 'x'",
        "SELECT variant_get(v, '$', 'char(3)') FROM VALUES (parse_json('1')) t(v)",
    ],
)
def test_what_is_no_scalar_is_refused(session: Session, text: str) -> None:
    with pytest.raises(UnsupportedError):
        session.rows(text)


@pytest.mark.parametrize(
    "call", ["_variant_path(parse_json('1'), '$')", "_json_path('{}', '$.a')", "_field(id)", "_sub_dates(id, id)"]
)
def test_names_of_our_own_are_no_functions(session: Session, call: str) -> None:
    error = refused(session, f"SELECT {call} FROM range(1)")
    assert (error.condition, error.sqlstate) == ("UNRESOLVED_ROUTINE", "42883")


def _plain(value: Any) -> Any:
    """A value of the recorded answers as the engine's rows have it."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    as_python: dict[str, Any] = {
        "v": lambda: inner,
        "s": lambda: {name: _plain(one) for name, one in inner},
        "m": lambda: [(name, _plain(one)) for name, one in inner],
        "d": lambda: Decimal(inner),
        "dt": lambda: date(1970, 1, 1) + timedelta(inner),
    }
    return as_python[kind]()


@pytest.mark.parametrize("call", _CALLS, ids=[call["sql"][7:60] for call in _CALLS])
def test_functions_of_values_answer_as_spark(session: Session, call: dict[str, Any]) -> None:
    if "condition" in call:
        error = refused(session, call["sql"])
        assert (error.condition, error.sqlstate) == (call["condition"], call["sqlstate"])
        return
    result = session.run(call["sql"])
    assert [[name, nullable] for name, _, nullable in result.columns] == call["columns"]
    assert session.rows(call["sql"]) == [tuple(_plain(value) for value in row) for row in call["rows"]]


def test_values_of_tables_are_taken_apart(held: Session) -> None:
    held.run("CREATE TABLE parts AS SELECT id, pos, key, value FROM t, LATERAL variant_explode_outer(v)")
    rows = held.rows("SELECT id, pos, key, value FROM parts ORDER BY id, pos")
    assert rows == [
        (1, 0, "a", '[true,null,1.5,"x"]'),
        (1, 1, "b", "1"),
        *((id_, None, None, None) for id_ in (2, 3, 4)),
    ]
    held.run("UPDATE parts SET value = to_variant_object(named_struct('was', key, 'at', array(pos))) WHERE pos = 1")
    assert held.rows("SELECT schema_of_variant_agg(value) FROM parts") == [("VARIANT",)]
    assert held.rows("SELECT value:at::ARRAY<INT>, value:was::STRING FROM parts WHERE pos = 1") == [([1], "b")]
    assert held.rows("SELECT coalesce(value, parse_json('0')) FROM parts WHERE id > 2") == [("0",), ("0",)]


_STORE = (
    '{"store":{"fruit":[{"weight":8,"type":"apple"},{"weight":9,"type":"pear"}],'
    '"basket":[[1,2,{"b":"y","a":"x"}],[3,4]],"bicycle":{"price":19.95,"color":"red"}},'
    '"owner":"amy","zip code":"94025","fb:testid":"1234","n":null}'
)


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("raw:owner", "owner", "amy"),
        ("raw:OWNER", "OWNER", "amy"),
        ("raw:['owner']", "owner", "amy"),
        ("raw:['OWNER']", "OWNER", None),
        ("raw:`Zip Code`", "Zip Code", "94025"),
        ("raw:['fb:testid']", "fb:testid", "1234"),
        ("raw:store.bicycle", "bicycle", '{"price":19.95,"color":"red"}'),
        ("raw:store.Fruit[1].type", "type", "pear"),
        ("raw:store.fruit[2]", "fruit", None),
        ("raw:store.basket[0][2].b", "b", "y"),
        ("raw:n", "n", None),
        ("raw:store.bicycle.price::DOUBLE", "price", 19.95),
        ("raw:owner[0]", "owner", None),
        ("raw:none.owner", "owner", None),
    ],
)
def test_paths_into_json_are_texts_as_databricks_documents(session: Session, path: str, name: str, value: Any) -> None:
    session.run("CREATE TABLE s (id INT, raw STRING)")
    session.run(f"INSERT INTO s VALUES (1, '{_STORE}'), (2, NULL), (3, 'no'), (4, '[1]')")
    text = f"SELECT {path} FROM s ORDER BY id"
    assert session.rows(text) == [(value,), (None,), (None,), (None,)]
    ((shown, type_, _),) = session.run(text).columns
    assert (shown, type_) == (name, "double" if "::" in path else "string")
    assert session.rows("SELECT id FROM s WHERE raw:store.bicycle.color = 'red'") == [(1,)]
