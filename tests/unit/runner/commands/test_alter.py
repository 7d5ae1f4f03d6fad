"""ALTER TABLE and COMMENT ON write what Delta with Spark writes, keep all that they do not change, and refuse the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.delta.table import open_snapshot
from tests.unit.runner.session import Session, refused

TABLE = "CREATE TABLE t (id INT NOT NULL, s STRUCT<a: INT, b: STRING>, v VARCHAR(5)) COMMENT 'hey' TBLPROPERTIES ('a' = '1')"


@pytest.fixture
def shop(session: Session) -> Session:
    session.run(TABLE)
    return session


def folder(session: Session, table: str = "t") -> Path:
    found = session.runner.catalogs["main"].table_folder("shop", table)
    assert found is not None
    return Path(found)


def actions(session: Session, version: int) -> list[dict[str, Any]]:
    text = (folder(session) / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


# Operation and parameters as Delta 4.4 logs them with Spark 4.2.
COMMITS = [
    ("COMMENT ON TABLE t IS 'new'", "SET TBLPROPERTIES", {"properties": '{"comment":"new"}'}),
    ("COMMENT ON TABLE t IS NULL", "SET TBLPROPERTIES", {"properties": '{"comment":""}'}),
    (
        "ALTER TABLE t ALTER COLUMN ID COMMENT 'the key'",
        "CHANGE COLUMN",
        {"column": '{"name":"id","type":"integer","nullable":false,"metadata":{"comment":"the key"}}'},
    ),
    (
        "ALTER TABLE t CHANGE COLUMN v COMMENT 'a v'",
        "CHANGE COLUMN",
        {
            "column": '{"name":"v","type":"string","nullable":true,"metadata":{"comment":"a v",'
            '"__CHAR_VARCHAR_TYPE_STRING":"varchar(5)"}}'
        },
    ),
    (
        "ALTER TABLE t ALTER COLUMN s.a COMMENT 'inner'",
        "CHANGE COLUMN",
        {"column": '{"name":"s.a","type":"integer","nullable":true,"metadata":{"comment":"inner"}}'},
    ),
    (
        "ALTER TABLE t ALTER COLUMN id DROP NOT NULL",
        "CHANGE COLUMN",
        {"column": '{"name":"id","type":"integer","nullable":true,"metadata":{}}'},
    ),
    (
        "ALTER TABLE t ALTER COLUMN v COMMENT 'b', id COMMENT 'a'",
        "CHANGE COLUMNS",
        {
            "columns": '[{"name":"v","type":"string","nullable":true,"metadata":{"comment":"b",'
            '"__CHAR_VARCHAR_TYPE_STRING":"varchar(5)"}},'
            '{"name":"id","type":"integer","nullable":false,"metadata":{"comment":"a"}}]'
        },
    ),
    (
        "ALTER TABLE t ADD COLUMNS (n1 INT, n2 STRING COMMENT 'two')",
        "ADD COLUMNS",
        {
            "columns": '[{"column":{"name":"n1","type":"integer","nullable":true,"metadata":{}}},'
            '{"column":{"name":"n2","type":"string","nullable":true,"metadata":{"comment":"two"}}}]'
        },
    ),
    (
        "ALTER TABLE t ADD COLUMN n3 DECIMAL(5,1) FIRST",
        "ADD COLUMNS",
        {
            "columns": '[{"column":{"name":"n3","type":"decimal(5,1)","nullable":true,"metadata":{}},"position":"FIRST"}]'
        },
    ),
    (
        "ALTER TABLE t ADD COLUMN y VARCHAR(3) AFTER ID",
        "ADD COLUMNS",
        {
            "columns": '[{"column":{"name":"y","type":"varchar(3)","nullable":true,"metadata":{}},"position":"AFTER id"}]'
        },
    ),
    (
        "ALTER TABLE t ADD COLUMNS (s.c INT AFTER a)",
        "ADD COLUMNS",
        {"columns": '[{"column":{"name":"s.c","type":"integer","nullable":true,"metadata":{}},"position":"AFTER a"}]'},
    ),
    (
        "ALTER TABLE t SET TBLPROPERTIES ('x' = 'y', 'DELTA.logRetentionDuration' = 'interval 20 days')",
        "SET TBLPROPERTIES",
        {"properties": '{"x":"y","delta.logRetentionDuration":"interval 20 days"}'},
    ),
    (
        "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a', 'zz')",
        "UNSET TBLPROPERTIES",
        {"properties": '["a","zz"]', "ifExists": True},
    ),
]


@pytest.mark.parametrize(("text", "operation", "parameters"), COMMITS)
def test_commits_are_those_of_delta(shop: Session, text: str, operation: str, parameters: dict[str, Any]) -> None:
    before = actions(shop, 0)[-1]["metaData"]
    shop.run(text)
    info, metadata = actions(shop, 1)
    commit = info["commitInfo"]
    assert (commit["operation"], commit["operationParameters"]) == (operation, parameters)
    assert (commit["readVersion"], commit["isBlindAppend"], commit["operationMetrics"]) == (0, True, {})
    after = metadata["metaData"]
    for key in ("id", "format", "partitionColumns", "createdTime"):
        assert after[key] == before[key]


@pytest.mark.rewrites
def test_what_is_said_is_told(shop: Session) -> None:
    for text, _, _ in COMMITS:
        shop.run(text)
    assert shop.rows("DESCRIBE t") == [
        ("n3", "decimal(5,1)", None),
        ("id", "int", "a"),
        ("y", "varchar(3)", None),
        ("s", "struct<a:int,c:int,b:string>", None),
        ("v", "varchar(5)", "b"),
        ("n1", "int", None),
        ("n2", "string", "two"),
    ]
    told = dict(shop.rows("SHOW TBLPROPERTIES t"))
    assert (told.pop("delta.minReaderVersion"), told.pop("delta.minWriterVersion")) == ("1", "2")
    assert told == {"delta.logRetentionDuration": "interval 20 days", "x": "y"}
    shop.run("COMMENT ON COLUMN shop.t.N2 IS 'three'")
    shop.run("COMMENT ON COLUMN t.n1 IS NULL")
    assert shop.rows("DESCRIBE t")[-2:] == [("n1", "int", ""), ("n2", "string", "three")]


def test_rows_of_before_have_no_values_in_new_columns(shop: Session) -> None:
    shop.run("INSERT INTO t VALUES (1, named_struct('a', 2, 'b', 'x'), 'v')")
    shop.run("ALTER TABLE t ADD COLUMNS (n BIGINT, s.c INT)")
    shop.run("INSERT INTO t VALUES (2, named_struct('a', 3, 'b', 'y', 'c', 4), 'w', 5)")
    query = "SELECT id, s.a, s.c, n FROM t ORDER BY id"
    assert shop.rows(query) == [(1, 2, None, None), (2, 3, 4, 5)]
    assert shop.rows("SELECT id FROM t WHERE n IS NULL") == [(1,)]
    assert shop.rows("SELECT id FROM t WHERE n > 4") == [(2,)]
    shop.run("UPDATE t SET n = 7 WHERE id = 1")
    assert shop.rows(query) == [(1, 2, None, 7), (2, 3, 4, 5)]


@pytest.mark.rewrites
def test_what_is_not_known_is_kept_whether_it_lies_in_commits_or_a_checkpoint(shop: Session) -> None:
    log = folder(shop) / "_delta_log"
    found = actions(shop, 0)
    spec = found[-1]["metaData"]
    schema = json.loads(spec["schemaString"])
    schema["fields"][0]["metadata"]["vendor.mark"] = {"deep": [1, "x"]}
    spec |= {"schemaString": json.dumps(schema), "name": "its name"}
    (log / f"{0:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in found))
    for at in range(12):
        shop.run(f"ALTER TABLE t SET TBLPROPERTIES ('k' = '{at}')")
    assert (log / f"{10:020d}.checkpoint.parquet").exists()
    for version in range(11):
        (log / f"{version:020d}.json").unlink()
    (log / f"{11:020d}.json").unlink()
    (log / f"{12:020d}.json").unlink()
    shop.run("COMMENT ON TABLE t IS 'still'")
    (_, metadata) = actions(shop, 11)
    after = metadata["metaData"]
    assert (after["name"], after["description"], after["configuration"]) == ("its name", "still", {"a": "1", "k": "9"})
    assert json.loads(after["schemaString"])["fields"][0]["metadata"] == {"vendor.mark": {"deep": [1, "x"]}}
    assert after["format"] == {"provider": "parquet", "options": {}}


def test_not_null_is_for_columns_without_nulls(shop: Session) -> None:
    shop.run("INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b')")
    shop.run("ALTER TABLE t CHANGE COLUMN `v` SET NOT NULL ;")
    assert [f.nullable for f in open_snapshot(str(folder(shop))).columns] == [False, True, False]
    assert refused(shop, "INSERT INTO t VALUES (3, NULL, NULL)").condition == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    shop.run("ALTER TABLE t ALTER COLUMN v DROP NOT NULL")
    shop.run("INSERT INTO t VALUES (3, NULL, NULL)")
    assert refused(shop, "ALTER TABLE t ALTER COLUMN v SET NOT NULL").condition == "DELTA_NEW_NOT_NULL_VIOLATION"


def test_tables_and_views_get_other_names(shop: Session) -> None:
    shop.run("INSERT INTO t (id) VALUES (1)")
    shop.run("CREATE SCHEMA IF NOT EXISTS other")
    shop.run("ALTER TABLE t RENAME TO other.U")
    assert shop.rows("SELECT id FROM other.u") == [(1,)]
    assert refused(shop, "SELECT * FROM t").condition == "TABLE_OR_VIEW_NOT_FOUND"
    shop.run(TABLE)
    assert shop.rows("SELECT id FROM t") == []
    shop.run("CREATE VIEW v AS SELECT id FROM other.u")
    shop.run("ALTER VIEW v RENAME TO w")
    assert shop.rows("SELECT * FROM w") == [(1,)]
    assert refused(shop, "ALTER TABLE t RENAME TO w").condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert refused(shop, "ALTER TABLE t RENAME TO T").condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert shop.rows("SHOW TABLES") == [("shop", "t", False), ("shop", "w", False)]
    shop.run("DROP SCHEMA other CASCADE")


def test_views_and_schemas_have_comments_and_properties(shop: Session) -> None:
    shop.run("CREATE VIEW v AS SELECT id, v FROM t")
    shop.run("COMMENT ON VIEW v IS 'one'")
    shop.run("COMMENT ON COLUMN v.ID IS 'a key'")
    shop.run("ALTER VIEW v SET TBLPROPERTIES ('a' = 'b', 'c' = 'd')")
    shop.run("ALTER VIEW v UNSET TBLPROPERTIES ('a', 'never')")
    assert shop.rows("DESCRIBE v")[0] == ("id", "int", "a key")
    assert shop.rows("SHOW TBLPROPERTIES v") == [("c", "d")]
    assert shop.rows("SELECT comment FROM information_schema.tables WHERE table_name = 'v'") == [("one",)]
    shop.run("COMMENT ON SCHEMA shop IS 'other things'")
    assert ("Comment", "other things") in shop.rows("DESCRIBE SCHEMA shop")
    shop.run("COMMENT ON DATABASE shop IS NULL")
    assert ("Comment", "") in shop.rows("DESCRIBE SCHEMA shop")


def test_statements_of_tables_make_them_again(shop: Session) -> None:
    shop.run("ALTER TABLE t ADD COLUMN `day` DATE COMMENT 'it''s one'")
    ((text,),) = shop.rows("SHOW CREATE TABLE t")
    described = shop.rows("DESCRIBE EXTENDED t")
    shop.run("DROP TABLE t")
    shop.run(text)
    assert shop.rows("DESCRIBE EXTENDED t") == described
    assert shop.rows("SHOW CREATE TABLE t") == [(text,)]


def test_show_table_extended_has_sparks_words(shop: Session) -> None:
    shop.run(
        "CREATE TABLE p (id INT NOT NULL, d DATE, s STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, BIGINT>) PARTITIONED BY (d)"
    )
    shop.run("CREATE VIEW pv COMMENT 'vc' AS SELECT id FROM p")
    shop.run("CREATE TEMPORARY VIEW ptemp AS SELECT 1 AS a")
    result = shop.run("SHOW TABLE EXTENDED IN shop LIKE 'p*'")
    assert [c[:2] for c in result.columns] == [
        ("database", "string"),
        ("tableName", "string"),
        ("isTemporary", "boolean"),
        ("information", "string"),
    ]
    assert [row[:3] for row in result.rows] == [("shop", "p", False), ("shop", "pv", False), ("", "ptemp", True)]
    table, view, temporary = (row[3] for row in result.rows)
    for line in ("Type: MANAGED", "Provider: delta", f"Location: file:{folder(shop, 'p')}", "Partition Columns: [`d`]"):
        assert f"\n{line}\n" in table
    assert table.endswith(
        "Schema: root\n |-- id: integer (nullable = false)\n |-- d: date (nullable = true)\n |-- s: struct (nullable = true)\n"
        " |    |-- a: integer (nullable = true)\n |    |-- b: array (nullable = true)\n"
        " |    |    |-- element: string (containsNull = true)\n |-- m: map (nullable = true)\n"
        " |    |-- key: string\n |    |-- value: long (valueContainsNull = true)\n\n"
    )
    assert "\nType: VIEW\nView Text: SELECT id FROM p\n" in view and "\nComment: vc\nSchema: root\n" in view
    assert "\nView Schema Mode: BINDING\n" in temporary and "Catalog: main" not in temporary
    assert shop.rows("SHOW TABLE EXTENDED LIKE 'nothing'") == []


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("ALTER TABLE t ADD COLUMNS (ID INT)", "FIELD_ALREADY_EXISTS"),
        ("ALTER TABLE t ADD COLUMNS (q INT, Q INT)", "COLUMN_ALREADY_EXISTS"),
        ("ALTER TABLE t ADD COLUMNS (q INT NOT NULL)", "DELTA_OPERATION_NOT_ALLOWED"),
        ("ALTER TABLE t ADD COLUMNS (`a b` INT)", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ("ALTER TABLE t ADD COLUMNS (q INT AFTER nope)", "FIELD_NOT_FOUND"),
        ("ALTER TABLE t ADD COLUMNS (q ARRAY<VOID>)", "UNSUPPORTED_DATATYPE"),
        ("ALTER TABLE t ADD COLUMNS (q MAP<STRING, INTERVAL DAY>)", "DELTA_UNSUPPORTED_DATA_TYPES"),
        ("ALTER TABLE t ADD COLUMNS (q TIMESTAMP_NTZ)", "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"),
        ("ALTER TABLE t ADD COLUMNS (v.q INT)", "INVALID_FIELD_NAME"),
        ("ALTER TABLE t ADD COLUMNS ()", "PARSE_SYNTAX_ERROR"),
        ("ALTER TABLE t ALTER COLUMN nope COMMENT 'x'", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("ALTER TABLE t ALTER COLUMN nope SET NOT NULL", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("ALTER TABLE t ALTER COLUMN id COMMENT NULL", "PARSE_SYNTAX_ERROR"),
        ("ALTER TABLE t SET TBLPROPERTIES ('owner' = 'x')", "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'other')", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'maybe')", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.logRetentionDuration' = 'forever')", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.checkpointInterval' = '0')", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE t SET TBLPROPERTIES ('a' = '1', 'a' = '2')", "DUPLICATE_KEY"),
        ("ALTER TABLE t UNSET TBLPROPERTIES ('delta.feature.x')", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE nope SET TBLPROPERTIES ('a' = 'b')", "TABLE_OR_VIEW_NOT_FOUND"),
        ("ALTER TABLE t RENAME TO samples.tpch.t", "PERMISSION_DENIED"),
        ("ALTER TABLE t RENAME TO nope.t", "SCHEMA_NOT_FOUND"),
        ("ALTER TABLE t RENAME TO `.t`", "INVALID_IDENTIFIER"),
        ("ALTER VIEW t RENAME TO u", "EXPECT_VIEW_NOT_TABLE.USE_ALTER_TABLE"),
        ("ALTER VIEW t SET TBLPROPERTIES ('a' = 'b')", "EXPECT_VIEW_NOT_TABLE.USE_ALTER_TABLE"),
        ("ALTER TABLE w SET TBLPROPERTIES ('a' = 'b')", "EXPECT_TABLE_NOT_VIEW.USE_ALTER_VIEW"),
        ("ALTER TABLE w RENAME TO u", "EXPECT_TABLE_NOT_VIEW.USE_ALTER_VIEW"),
        ("ALTER TABLE w ADD COLUMNS (a INT)", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        ("ALTER TABLE w ALTER COLUMN id COMMENT 'x'", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        ("COMMENT ON TABLE w IS 'x'", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        ("COMMENT ON VIEW t IS 'x'", "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE"),
        ("COMMENT ON COLUMN id IS 'x'", "PARSE_SYNTAX_ERROR"),
        ("COMMENT ON TABLE samples.tpch.nation IS 'x'", "PERMISSION_DENIED"),
        ("COMMENT ON SCHEMA samples.tpch IS 'x'", "PERMISSION_DENIED"),
        ("COMMENT ON SCHEMA nope IS 'x'", "SCHEMA_NOT_FOUND"),
        ("COMMENT ON TABLE information_schema.tables IS 'x'", "PERMISSION_DENIED"),
    ],
)
def test_refusals_write_nothing(shop: Session, text: str, condition: str) -> None:
    shop.run("CREATE VIEW w AS SELECT id FROM t")
    assert refused(shop, text).condition == condition
    assert [p.name for p in sorted((folder(shop) / "_delta_log").iterdir())] == [f"{0:020d}.json"]


@pytest.mark.parametrize("text", ["COMMENT ON TABLE t IS 'x'", "ALTER TABLE t ADD COLUMNS (n INT)"])
def test_tables_that_ask_more_of_writers_are_refused(shop: Session, text: str) -> None:
    log = folder(shop) / "_delta_log" / f"{0:020d}.json"
    found = actions(shop, 0)
    found[-1]["metaData"]["configuration"]["delta.enableIcebergCompatV2"] = "true"
    log.write_text("".join(json.dumps(action) + "\n" for action in found))
    assert refused(shop, text).condition == "UNSUPPORTED_TABLE_FEATURE"


@pytest.mark.rewrites
def test_constraints_are_logged_as_delta_does(shop: Session) -> None:
    shop.run("ALTER TABLE t ADD CONSTRAINT Pos CHECK (id>0   AND id <  10 /* as they come */)")
    info, metadata, protocol = actions(shop, 1)
    commit = info["commitInfo"]
    assert commit["operation"] == "ADD CONSTRAINT"
    assert commit["operationParameters"] == {"name": "Pos", "expr": "id > 0 AND id < 10"}
    assert (commit["isBlindAppend"], protocol) == (False, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}})
    assert metadata["metaData"]["configuration"] == {"a": "1", "delta.constraints.pos": "id > 0 AND id < 10"}
    shop.run("ALTER TABLE t ADD CONSTRAINT `b c` CHECK ((s.a IS NULL OR s.a > 0))")
    assert len(actions(shop, 2)) == 2  # the protocol knows them already
    assert actions(shop, 2)[0]["commitInfo"]["operationParameters"]["expr"] == "( s . a IS NULL OR s . a > 0 )"
    shop.run("ALTER TABLE t DROP CONSTRAINT POS")
    parameters = actions(shop, 3)[0]["commitInfo"]["operationParameters"]
    assert parameters == {"name": "POS", "expr": "id > 0 AND id < 10", "existed": "true"}
    shop.run("ALTER TABLE t DROP CONSTRAINT IF EXISTS pos")
    assert actions(shop, 4)[0]["commitInfo"]["operationParameters"] == {"name": "pos", "existed": "false"}


def test_constraints_hold_from_then_on(shop: Session) -> None:
    shop.run("INSERT INTO t (id, v) VALUES (1, 'a'), (2, NULL)")
    assert refused(shop, "ALTER TABLE t ADD CONSTRAINT c CHECK (v <> 'x')").condition == (
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"  # a NULL is not true
    )
    shop.run("ALTER TABLE t ADD CONSTRAINT c CHECK (id < 10)")
    violating = ("INSERT INTO t (id) VALUES (10)", "UPDATE t SET id = id + 9", "INSERT OVERWRITE t (id) VALUES (11)")
    for text in (*violating, "INSERT INTO t REPLACE ON (true) (SELECT 12, NULL, NULL) AS s"):
        assert refused(shop, text).condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    shop.run("ALTER TABLE t ADD COLUMNS (n INT)")
    shop.run("COMMENT ON TABLE t IS 'still'")
    listed = "SELECT constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = 'shop'"
    assert shop.rows(listed) == [("c", "id < 10")]
    shop.run("CREATE OR REPLACE TABLE t (id INT)")
    shop.run("INSERT INTO t VALUES (100)")
    assert shop.rows(listed) == []


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("ALTER TABLE t ADD CONSTRAINT HAD CHECK (id > 1)", "DELTA_CONSTRAINT_ALREADY_EXISTS"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (nope > 1)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (id + 1)", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (id IN (SELECT 1))", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (rand() < 2)", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (count(*) > 2)", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK id > 1", "PARSE_SYNTAX_ERROR"),
        ("ALTER TABLE t ADD CONSTRAINT c UNIQUE (id)", "UNSUPPORTED_FEATURE"),
        ("ALTER TABLE t DROP CONSTRAINT nope", "DELTA_CONSTRAINT_DOES_NOT_EXIST"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.constraints.z' = 'id > 0')", "DELTA_ADD_CONSTRAINTS"),
    ],
)
def test_refusals_of_constraints_write_nothing(shop: Session, text: str, condition: str) -> None:
    shop.run("ALTER TABLE t ADD CONSTRAINT had CHECK (id > 0)")
    assert refused(shop, text).condition == condition
    assert len(list((folder(shop) / "_delta_log").iterdir())) == 2
