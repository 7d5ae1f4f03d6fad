"""Columns that are renamed, dropped, moved, retyped: commits as Delta makes them, rows of before under the new columns."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from gateway.errors import ServerError, UnsupportedError
from tests.live.tables import alter
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import folder_of, newest_commit, newest_info

MAPPED = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
TABLE = (
    "CREATE TABLE t (a INT, b STRING, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<z: INT>>, "
    "m MAP<STRING, STRUCT<w: INT>>, p STRING) PARTITIONED BY (p)"
)
ROW = "named_struct('x', {0}, 'y', 'q'), array(named_struct('z', {0})), map('k', named_struct('w', {0}))"


@pytest.fixture
def shop(session: Session) -> Session:
    """``t`` with a row of before its columns were mapped, and one of after."""
    session.run(TABLE)
    session.run(f"INSERT INTO t VALUES (1, 'x', {ROW.format(1)}, 'p1')")
    session.run(f"ALTER TABLE t {MAPPED}")
    session.run(f"INSERT INTO t VALUES (2, 'y', {ROW.format(2)}, 'p2')")
    return session


def _metadata(session: Session) -> dict[str, Any]:
    return next(action["metaData"] for action in newest_commit(session) if "metaData" in action)


def _fields(session: Session) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_metadata(session)["schemaString"])["fields"]
    return found


@pytest.mark.rewrites
def test_mapping_is_switched_on_under_the_names_that_files_have(session: Session) -> None:
    session.run(TABLE)
    session.run(f"ALTER TABLE t {MAPPED}")
    assert newest_info(session)["operationParameters"] == {"properties": '{"delta.columnMapping.mode":"name"}'}
    fields = _fields(session)
    ids = {f["name"]: f["metadata"]["delta.columnMapping.id"] for f in fields}
    assert ids == {"a": 1, "b": 2, "s": 3, "l": 6, "m": 8, "p": 10}
    assert all(f["metadata"]["delta.columnMapping.physicalName"] == f["name"] for f in fields)
    assert _metadata(session)["configuration"]["delta.columnMapping.maxColumnId"] == "10"
    (protocol,) = (action["protocol"] for action in newest_commit(session) if "protocol" in action)
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (2, 7)
    assert protocol["writerFeatures"] == ["appendOnly", "columnMapping", "invariants"]
    session.run(f"ALTER TABLE t {MAPPED}")
    for mode, error in (("id", "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"), ("none", "UNSUPPORTED_FEATURE")):
        text = f"ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
        assert refused(session, text).condition == error


def test_renamed_columns_keep_their_rows(shop: Session) -> None:
    for old, new, told in (
        ("A", "`a b`", ("a", "`a b`")),
        ("s.x", "xx", ("s.x", "s.xx")),
        ("l.element.z", "zz", ("l.element.z", "l.element.zz")),
        ("m.value.w", "ww", ("m.value.w", "m.value.ww")),
        ("p", "part", ("p", "part")),
    ):
        shop.run(f"ALTER TABLE t RENAME COLUMN {old} TO {new}")
        info = newest_info(shop)
        assert info["operation"] == "RENAME COLUMN" and info["isBlindAppend"] is True
        assert tuple(info["operationParameters"].values()) == told
    assert _metadata(shop)["partitionColumns"] == ["part"]
    row = ROW.format(3)
    for old, new in (("'x'", "'xx'"), ("'z'", "'zz'"), ("'w'", "'ww'")):
        row = row.replace(old, new)
    shop.run(f"INSERT INTO t VALUES (3, 'z', {row}, 'p3')")
    found = shop.rows("SELECT `a b`, s.xx, l[0].zz, m['k'].ww, part FROM t WHERE part <> 'p0' ORDER BY 1")
    assert found == [(i, i, i, i, f"p{i}") for i in (1, 2, 3)]
    assert shop.rows("SELECT a, s.x FROM t VERSION AS OF 3 ORDER BY 1") == [(1, 1), (2, 2)]
    shop.run("UPDATE t SET b = 'new' WHERE `a b` = 1")
    shop.run("DELETE FROM t WHERE part = 'p2'")
    assert shop.rows("SELECT b FROM t ORDER BY `a b`") == [("new",), ("z",)]


def test_dropped_columns_do_not_come_back(shop: Session) -> None:
    shop.run("ALTER TABLE t DROP COLUMNS (b, s.y)")
    assert newest_info(shop)["operationParameters"] == {"columns": '["b","s.y"]'}
    before = _fields(shop)
    shop.run("ALTER TABLE t DROP COLUMN IF EXISTS nowhere")
    assert _fields(shop) == before
    shop.run("ALTER TABLE t ADD COLUMNS (b STRING FIRST, s.y STRING, l.element.n INT FIRST, m.value.v INT)")
    ids = {f["name"]: f["metadata"]["delta.columnMapping.id"] for f in _fields(shop)}
    assert ids["b"] == 11 and _metadata(shop)["configuration"]["delta.columnMapping.maxColumnId"] == "14"
    assert shop.rows("SELECT b, a, s, l, m FROM t ORDER BY a") == [
        (None, i, {"x": i, "y": None}, [{"n": None, "z": i}], [("k", {"w": i, "v": None})]) for i in (1, 2)
    ]
    shop.run("INSERT INTO t (a, b, p) VALUES (3, 'back', 'p')")
    assert shop.rows("SELECT b FROM t WHERE a = 3") == [("back",)]


def test_columns_are_moved(shop: Session) -> None:
    for text, names, position in (
        ("ALTER COLUMN b FIRST", "baslmp", "FIRST"),
        ("CHANGE COLUMN b AFTER S", "asblmp", "AFTER s"),
        ("CHANGE COLUMN b b STRING COMMENT 'c' FIRST", "baslmp", "FIRST"),
    ):
        shop.run(f"ALTER TABLE t {text}")
        assert "".join(f["name"] for f in _fields(shop)) == names
        assert newest_info(shop)["operationParameters"]["position"] == position
    shop.run("ALTER TABLE t ALTER COLUMN s.y FIRST")
    assert shop.rows("SELECT b, a, s FROM t WHERE a = 1") == [("x", 1, {"y": "q", "x": 1})]
    assert shop.rows("DESCRIBE t")[0] == ("b", "string", "c")


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ("RENAME COLUMN nope TO x", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("RENAME COLUMN a TO B", "FIELD_ALREADY_EXISTS"),
        ("RENAME COLUMN a TO A", "FIELD_ALREADY_EXISTS"),
        ("DROP COLUMN nope", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("DROP COLUMNS (s.x, s.y)", "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"),
        ("DROP COLUMN l.element.z", "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"),
        ("DROP COLUMN p", "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
        ("ADD COLUMN b.c INT", "INVALID_FIELD_NAME"),
        ("ADD COLUMN A INT", "FIELD_ALREADY_EXISTS"),
        ("ALTER COLUMN a AFTER nope", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("ALTER COLUMN nope FIRST", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("ALTER COLUMN a TYPE BIGINT", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("ALTER COLUMN a TYPE STRING", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
        ("ALTER COLUMN a TYPE TINYINT", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("ALTER COLUMN s TYPE STRUCT<x: BIGINT>", "CANNOT_UPDATE_FIELD.STRUCT_TYPE"),
        ("ALTER COLUMN l TYPE ARRAY<INT>", "CANNOT_UPDATE_FIELD.ARRAY_TYPE"),
        ("ALTER COLUMN a SET DEFAULT 5", "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"),
        ("CLUSTER BY (a)", "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"),
        ("SET TBLPROPERTIES ('delta.constraints.c' = 'a > 0')", "DELTA_ADD_CONSTRAINTS"),
    ],
)
def test_what_delta_does_not_change(shop: Session, change: str, condition: str) -> None:
    error = refused(shop, f"ALTER TABLE t {change}")
    assert error.condition == condition and not isinstance(error, UnsupportedError)
    assert newest_info(shop)["operation"] == "WRITE"


@pytest.mark.parametrize(
    "change",
    [
        *("SET OWNER TO x", "DROP FEATURE icebergCompatV1", "REPLACE COLUMNS (q INT)", "CLUSTER BY AUTO"),
        *(
            "CHANGE COLUMN a c INT",
            "RENAME COLUMN l.element TO x",
            "DROP COLUMN m.key",
            "ALTER COLUMN m.value COMMENT 'c'",
        ),
        *("ALTER COLUMN a AFTER a", "ALTER COLUMN s.x SET DEFAULT 3", "ADD COLUMN d INT DEFAULT 3"),
        "SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    ],
)
def test_what_is_left_to_spark(shop: Session, change: str) -> None:
    assert isinstance(refused(shop, f"ALTER TABLE t {change}"), UnsupportedError)


def test_without_mapping_columns_keep_their_names(session: Session) -> None:
    session.run(TABLE)
    for change, condition in (("RENAME COLUMN a TO c", "RENAME"), ("DROP COLUMN a", "DROP")):
        assert refused(session, f"ALTER TABLE t {change}").condition == f"DELTA_UNSUPPORTED_{condition}_COLUMN"


def test_what_others_are_made_of_stays(session: Session) -> None:
    session.run(
        "CREATE TABLE t (a INT, b INT, g INT GENERATED ALWAYS AS (b + 1), s STRUCT<x: INT, y: INT>, c INT) CLUSTER BY (c) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', "
        "'delta.constraints.c' = 'a > 0 AND s.x > 0')"
    )
    for change, condition in (
        ("RENAME COLUMN a TO z", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        ("DROP COLUMN s", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        ("ALTER COLUMN a TYPE BIGINT", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        ("DROP COLUMN b", "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"),
        ("DROP COLUMN c", "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"),
    ):
        assert refused(session, f"ALTER TABLE t {change}").condition == condition
    session.run("ALTER TABLE t RENAME COLUMN s.y TO z")
    session.run("ALTER TABLE t DROP COLUMN g")
    session.run("ALTER TABLE t RENAME COLUMN c TO d")
    detail = session.run("DESCRIBE DETAIL t")
    assert detail.rows[0][[name for name, _, _ in detail.columns].index("clusteringColumns")] == ["d"]


def test_types_are_widened(session: Session) -> None:
    session.run(
        "CREATE TABLE t (k INT, a TINYINT, c INT, d FLOAT, f DECIMAL(5, 2), g BIGINT, l ARRAY<INT>, p INT, dt DATE, "
        "s STRUCT<x: SMALLINT>, v VARCHAR(3)) PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')"
    )
    before = "1, 1, 100, 1.1, 1.25, 5, array(1, 2), 3, DATE'2020-01-01', named_struct('x', 7), 'abc'"
    session.run(f"INSERT INTO t VALUES ({before})")
    session.run("ALTER TABLE t ALTER COLUMN a TYPE INT")
    session.run("ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(12, 2), c TYPE DECIMAL(14, 3)")
    for name, kind in (
        *(("d", "DOUBLE"), ("f", "DECIMAL(8, 4)"), ("g", "DECIMAL(20, 0)"), ("l.element", "BIGINT"), ("p", "BIGINT")),
        *(("dt", "TIMESTAMP_NTZ"), ("s.x", "DOUBLE"), ("v", "VARCHAR(5)"), ("v", "STRING")),
    ):
        session.run(f"ALTER TABLE t ALTER COLUMN {name} TYPE {kind}")
        assert newest_info(session)["operation"] == "CHANGE COLUMN"
    metadata = {f["name"]: f["metadata"] for f in _fields(session)}
    assert metadata["a"]["delta.typeChanges"] == [
        {"toType": "integer", "fromType": "byte"},
        {"toType": "decimal(12,2)", "fromType": "integer"},
    ]
    assert metadata["l"]["delta.typeChanges"] == [{"toType": "long", "fromType": "integer", "fieldPath": "element"}]
    assert metadata["s"] == {} and metadata["v"] == {}
    after = "2, 4.5, 400.125, 4.4, 4.2525, 99999999999999999999, array(9999999999), 5000000000, "
    session.run(f"INSERT INTO t VALUES ({after} TIMESTAMP_NTZ'2023-01-01 10:00:00', named_struct('x', 1.5D), 'abcdef')")
    old = (1, Decimal("1.00"), Decimal("100.000"), 1.100000023841858, Decimal("1.2500"), Decimal(5), [1, 2], 3)
    new = (2, Decimal("4.50"), Decimal("400.125"), 4.4, Decimal("4.2525"), Decimal(99999999999999999999), [9999999999])
    assert session.rows("SELECT * FROM t ORDER BY k") == [
        (*old, datetime(2020, 1, 1), {"x": 7.0}, "abc"),
        (*new, 5000000000, datetime(2023, 1, 1, 10), {"x": 1.5}, "abcdef"),
    ]
    for condition, keys in (
        *(
            ("a = 1", [1]),
            ("c = 100", [1]),
            ("c > 100", [2]),
            ("d > 1.1", [1, 2]),
            ("f < 2", [1]),
            ("g > 5", [2]),
            ("p = 3", [1]),
        ),
        *(("dt = TIMESTAMP_NTZ'2020-01-01 00:00:00'", [1]), ("s.x < 2", [2])),
    ):
        assert [k for (k,) in session.rows(f"SELECT k FROM t WHERE {condition} ORDER BY k")] == keys
    session.run("UPDATE t SET c = c + 1 WHERE k = 1")
    assert session.rows("SELECT c FROM t ORDER BY k") == [(Decimal("101.000"),), (Decimal("400.125"),)]
    for change, condition in (
        ("g TYPE DOUBLE", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("c TYPE DECIMAL(20, 2)", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("v TYPE VARCHAR(9)", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("k TYPE STRING", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
    ):
        assert refused(session, f"ALTER TABLE t ALTER COLUMN {change}").condition == condition


def test_rows_are_deleted_by_vectors_beside_widened_types(session: Session) -> None:
    session.run(
        "CREATE TABLE t (k INT, b TINYINT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true', "
        "'delta.enableDeletionVectors' = 'true')"
    )
    session.run("INSERT INTO t SELECT CAST(id AS INT), CAST(id % 100 AS TINYINT) FROM range(1000)")
    session.run("DELETE FROM t WHERE k % 3 = 0")
    session.run("ALTER TABLE t ALTER COLUMN b TYPE BIGINT")
    session.run("DELETE FROM t WHERE k BETWEEN 100 AND 299")
    session.run("INSERT INTO t VALUES (5000, 5000000000)")
    session.run("UPDATE t SET b = -1 WHERE k = 1")
    vectors = [
        action["add"] for action in newest_commit(session) if "add" in action and "deletionVector" in action["add"]
    ]
    assert [add["deletionVector"]["cardinality"] for add in vectors] == [334 + 134 + 1]
    left = [k for k in range(1000) if k % 3 and not 100 <= k <= 299]
    assert session.rows("SELECT count(*), sum(k) FROM t WHERE k < 5000") == [(len(left), sum(left))]
    assert session.rows("SELECT k FROM t WHERE b = 1 ORDER BY k LIMIT 2") == [(301,), (401,)]
    assert session.rows("SELECT b FROM t WHERE k IN (1, 5000) ORDER BY k") == [(-1,), (5000000000,)]
    assert session.rows("SELECT count(*) FROM t VERSION AS OF 1") == [(1000,)]
    session.run("OPTIMIZE t")
    assert session.rows("SELECT count(*), sum(k) FROM t WHERE k < 5000") == [(len(left), sum(left))]


def test_rows_that_are_deleted_do_not_come_back_whatever_the_protocol_says(session: Session) -> None:
    """Spark would show them again; here the log is told to be damaged."""
    session.run(
        "CREATE TABLE t (k INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    session.run("INSERT INTO t VALUES (1), (2)")
    session.run("DELETE FROM t WHERE k = 1")
    features = ["typeWidening", "appendOnly", "invariants"]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol = {**versions, "readerFeatures": features[:1], "writerFeatures": features}
    alter(str(folder_of(session)), {"delta.enableDeletionVectors": "false"}, protocol)
    with pytest.raises(ServerError, match="lists a deletion vector, which its protocol does not have"):
        session.rows("SELECT * FROM t")


def test_defaults_are_set_and_dropped(session: Session) -> None:
    session.run("CREATE TABLE t (a INT, b STRING) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    session.run("ALTER TABLE t ALTER COLUMN b SET DEFAULT concat('x',  'y')")
    column = json.loads(newest_info(session)["operationParameters"]["column"])
    assert column["metadata"] == {"CURRENT_DEFAULT": "concat('x',  'y')"}
    session.run("INSERT INTO t (a) VALUES (1)")
    session.run("ALTER TABLE t ALTER COLUMN b DROP DEFAULT")
    session.run("INSERT INTO t (a) VALUES (2)")
    assert session.rows("SELECT * FROM t ORDER BY a") == [(1, "xy"), (2, None)]
    assert (
        refused(session, "ALTER TABLE t ALTER COLUMN a SET DEFAULT b").condition == "INVALID_DEFAULT_VALUE.NOT_CONSTANT"
    )


def test_tables_are_clustered_later(session: Session) -> None:
    session.run("CREATE TABLE t (a INT, b INT)")
    session.run("ALTER TABLE t CLUSTER BY NONE")
    assert newest_info(session)["operation"] == "CREATE TABLE"
    for by, told in (("(a)", ("", "a")), ("(b, a)", ("a", "b,a")), ("NONE", ("b,a", ""))):
        session.run(f"ALTER TABLE t CLUSTER BY {by}")
        info = newest_info(session)
        assert info["operation"] == "CLUSTER BY"
        assert tuple(info["operationParameters"].values()) == told
        (domain,) = (action["domainMetadata"] for action in newest_commit(session) if "domainMetadata" in action)
        wanted = [[name] for name in told[1].split(",") if name]
        assert json.loads(domain["configuration"])["clusteringColumns"] == wanted
        assert not any("metaData" in action for action in newest_commit(session))
    assert refused(session, "ALTER TABLE t CLUSTER BY (c)").condition == "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"


def test_identity_columns_keep_their_type_and_their_numbers(session: Session) -> None:
    session.run(
        "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), b STRING, "
        "j BIGINT GENERATED BY DEFAULT AS IDENTITY) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.feature.allowColumnDefaults' = 'supported', 'delta.enableTypeWidening' = 'true')"
    )
    session.run("INSERT INTO t (b) VALUES ('x')")
    ((statement,),) = session.rows("SHOW CREATE TABLE t")
    assert "id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2)" in statement
    assert "j BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 1)" in statement
    for change in ("TYPE DECIMAL(20, 0)", "SET DEFAULT 3", "DROP DEFAULT"):
        error = refused(session, f"ALTER TABLE t ALTER COLUMN id {change}")
        assert error.condition == "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"
    for change in ("RENAME COLUMN id TO n", "ALTER COLUMN n TYPE BIGINT", "ALTER COLUMN n AFTER b", "DROP COLUMN j"):
        session.run(f"ALTER TABLE t {change}")
    session.run("INSERT INTO t (b) VALUES ('y')")
    assert session.rows("SELECT * FROM t ORDER BY n") == [("x", 5), ("y", 7)]


def test_columns_of_a_feed_are_the_feeds(session: Session) -> None:
    session.run("CREATE TABLE t (a INT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    session.run("CREATE TABLE u (a INT, _change_type STRING)")
    assert isinstance(refused(session, "ALTER TABLE t ADD COLUMN _commit_version INT"), UnsupportedError)
    error = refused(session, "ALTER TABLE u SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    assert error.condition == "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
