"""CREATE TABLE with all that columns and tables ask for: what stands in the log, what rows keep, what is an error."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from gateway.errors import UnsupportedError
from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import newest_commit, newest_info, rows_here_and_there

DEFAULTS = "'delta.feature.allowColumnDefaults' = 'supported'"


def _actions(session: Session, kind: str, table: str = "t") -> list[dict[str, Any]]:
    return [action[kind] for action in newest_commit(session, table) if kind in action]


def _fields(session: Session, table: str = "t") -> dict[str, dict[str, Any]]:
    (metadata,) = _actions(session, "metaData", table)
    return {f["name"]: f for f in json.loads(metadata["schemaString"])["fields"]}


def _domain(session: Session) -> Any:
    (domain,) = _actions(session, "domainMetadata")
    assert domain["domain"] == "delta.clustering" and domain["removed"] is False
    return json.loads(domain["configuration"])["clusteringColumns"]


@pytest.mark.rewrites
def test_defaults_and_generated_columns_are_kept_as_they_are_written(session: Session) -> None:
    session.run(
        "CREATE TABLE t (a INT NOT NULL COMMENT 'k', b STRING DEFAULT  concat('x' ,  'y') COMMENT 'l', "
        "g INT GENERATED ALWAYS AS ( a +  1 ) COMMENT 'm', d DATE DEFAULT '2020-01-01' NOT NULL, f FLOAT DEFAULT 1.5, "
        f"i TINYINT DEFAULT 5, l INT DEFAULT NULL, m DECIMAL(3, 1) DEFAULT 12.45) TBLPROPERTIES ({DEFAULTS})"
    )
    fields = _fields(session)
    assert fields["b"]["metadata"] == {"CURRENT_DEFAULT": "concat('x' ,  'y')", "comment": "l"}
    assert fields["g"]["metadata"] == {"delta.generationExpression": "a +  1", "comment": "m"}
    assert (fields["a"]["nullable"], fields["d"]["nullable"], fields["b"]["nullable"]) == (False, False, True)
    (protocol,) = _actions(session, "protocol")
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (1, 7)
    assert protocol["writerFeatures"] == ["allowColumnDefaults", "appendOnly", "generatedColumns", "invariants"]
    session.run("INSERT INTO t (a) VALUES (1)")
    ((_, b, g, d, f, i, last, m),) = session.rows("SELECT * FROM t")
    assert (b, g, str(d), f, i, last, str(m)) == ("xy", 2, "2020-01-01", 1.5, 5, None, "12.5")
    error = refused(session, "INSERT INTO t (a, g) VALUES (1, 5)")
    assert error.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


@pytest.mark.parametrize(
    ("columns", "condition"),
    [
        ("a INT, g INT GENERATED ALWAYS AS (a + 'x')", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("a INT, g INT GENERATED ALWAYS AS (zz + 1)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("a INT, g INT GENERATED ALWAYS AS (G + 1)", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        (
            "a INT, g INT GENERATED ALWAYS AS (a + 1), h INT GENERATED ALWAYS AS (g + 1)",
            "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        ),
        ("a INT, g DOUBLE GENERATED ALWAYS AS (rand())", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("a INT, g INT GENERATED ALWAYS AS ((SELECT 1))", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("a INT, g BIGINT GENERATED ALWAYS AS (a + 1)", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        ("a BIGINT, g INT GENERATED ALWAYS AS (a + 1)", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("a STRING, g VARCHAR(3) GENERATED ALWAYS AS (a)", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("a INT, g DATE GENERATED ALWAYS AS (current_date())", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("a INT, b INT DEFAULT 3 GENERATED ALWAYS AS (a)", "GENERATED_COLUMN_WITH_DEFAULT_VALUE"),
        ("a INT, b INT DEFAULT a", "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
        ("a INT, b INT DEFAULT (SELECT 1)", "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION"),
        ("a INT, b DOUBLE DEFAULT rand()", "INVALID_DEFAULT_VALUE.NON_DETERMINISTIC"),
        ("a INT, b INT DEFAULT 1 / 0", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("a INT, b INT DEFAULT array(1)", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("a INT, b BOOLEAN DEFAULT 1", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("a VARCHAR(5) DEFAULT 'abcdefgh'", "EXCEED_LIMIT_LENGTH"),
        ("a INT, b INT CHECK (zz > 1)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("a INT, CHECK (a + 1)", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("a INT, a STRING", "COLUMN_ALREADY_EXISTS"),
    ],
)
def test_what_spark_does_not_keep(session: Session, columns: str, condition: str) -> None:
    error = refused(session, f"CREATE TABLE t ({columns}) TBLPROPERTIES ({DEFAULTS})")
    assert error.condition == condition and not isinstance(error, UnsupportedError)


@pytest.mark.parametrize(
    "columns",
    [
        *("a INT DEFAULT 'x'", "a TINYINT DEFAULT 500", "a DECIMAL(3, 1) DEFAULT 123.45", "a BIGINT DEFAULT sum(1)"),
        *("a INT, g INT GENERATED ALWAYS AS (sum(a))", "a INT UNIQUE", "a INT MASK f"),
        *("a INT, UNIQUE (a)", "a INT, CHECK (rand() > 0)"),
    ],
)
def test_what_spark_might_judge_otherwise_is_left_to_it(session: Session, columns: str) -> None:
    assert isinstance(refused(session, f"CREATE TABLE t ({columns}) TBLPROPERTIES ({DEFAULTS})"), UnsupportedError)


def test_defaults_ask_for_their_feature(session: Session) -> None:
    text = "TABLE t (a INT, b INT DEFAULT 3)"
    assert refused(session, f"CREATE {text}").condition == "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"
    session.run(f"CREATE {text} TBLPROPERTIES ({DEFAULTS})")
    session.run(f"CREATE OR REPLACE {text}")  # which the table in its place has
    session.run("INSERT INTO t (a) VALUES (1)")
    assert session.rows("SELECT * FROM t") == [(1, 3)]


@pytest.mark.rewrites
def test_checks_are_kept_by_their_names(session: Session) -> None:
    session.run("CREATE TABLE t (a INT CHECK (a < 9), b INT, CONSTRAINT Pos CHECK (a > 0) ENFORCED)")
    (metadata,) = _actions(session, "metaData")
    named = {value: key for key, value in metadata["configuration"].items()}
    assert named["a > 0"] == "delta.constraints.pos" and named["a < 9"].startswith("delta.constraints.t_chk_")
    assert _actions(session, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 3}]
    session.run("INSERT INTO t VALUES (1, 2)")
    for value in (0, 9):
        error = refused(session, f"INSERT INTO t VALUES ({value}, 2)")
        assert error.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert rows_here_and_there(session) == [(1, 2)]


def test_partition_columns_with_types_stand_behind_the_others(session: Session) -> None:
    session.run("CREATE TABLE t (a INT) PARTITIONED BY (p STRING COMMENT 'x', q DATE)")
    assert [f.name for f in session.run("SELECT * FROM t").planned.schema.fields] == ["a", "p", "q"]
    session.run("INSERT INTO t VALUES (1, 'x', NULL)")
    assert session.rows("SHOW PARTITIONS t") == [("x", None)]
    for text, condition in (
        ("(a INT, b INT) PARTITIONED BY (b, p STRING)", "_LEGACY_ERROR_TEMP_0035"),
        ("(a INT) PARTITIONED BY (a STRING)", "COLUMN_ALREADY_EXISTS"),
        ("PARTITIONED BY (p STRING)", "ALL_PARTITION_COLUMNS_NOT_ALLOWED"),
        ("(a INT, b INT) PARTITIONED BY (a) CLUSTER BY (b)", "_LEGACY_ERROR_TEMP_0035"),
    ):
        assert refused(session, f"CREATE TABLE u {text}").condition == condition


@pytest.mark.rewrites
def test_clustered_tables(session: Session) -> None:
    session.run(
        "CREATE TABLE t (`a b` INT, s STRUCT<x: STRING>) CLUSTER BY (`a b`, s.x) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    fields = _fields(session)
    paths = [
        [fields["a b"]["metadata"]["delta.columnMapping.physicalName"]],
        [
            fields["s"]["metadata"]["delta.columnMapping.physicalName"],
            fields["s"]["type"]["fields"][0]["metadata"]["delta.columnMapping.physicalName"],
        ],
    ]
    assert _domain(session) == paths
    assert newest_info(session)["operationParameters"]["clusterBy"] == '["a b","s.x"]'
    (protocol,) = _actions(session, "protocol")
    assert protocol["writerFeatures"] == ["appendOnly", "clustering", "columnMapping", "domainMetadata", "invariants"]
    session.run("INSERT INTO t VALUES (1, named_struct('x', 'y')), (2, NULL)")
    session.run("UPDATE t SET `a b` = 3 WHERE s.x = 'y'")
    assert sorted(session.rows("SELECT `a b` FROM t")) == [(2,), (3,)]
    detail = session.run("DESCRIBE DETAIL t")
    at = [name for name, _, _ in detail.columns].index("clusteringColumns")
    assert detail.rows[0][at] == ["a b", "s.x"]
    error = refused(session, "CREATE OR REPLACE TABLE t PARTITIONED BY (p) AS SELECT 1 AS a, 2 AS p")
    assert error.condition == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"
    session.run("CREATE OR REPLACE TABLE t CLUSTER BY (a) AS SELECT 1 AS a, 2 AS p")
    assert _domain(session) == [["a"]]
    session.run("CREATE OR REPLACE TABLE t AS SELECT 1 AS a, 2 AS p")
    assert _domain(session) == []
    session.run("OPTIMIZE t")


@pytest.mark.parametrize(
    ("by", "condition"),
    [
        ("zz", "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED"),
        ("A", "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED"),
        ("s.zz", "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED"),
        ("l.element", "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED"),
        ("a, a", "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"),
        ("l", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("s", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("c", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("a, c1, c2, c3, c4", "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        ("c4", "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
    ],
)
def test_what_no_table_is_clustered_by(session: Session, by: str, condition: str) -> None:
    columns = "a INT, s STRUCT<x: INT, y: INT>, l ARRAY<INT>, c BOOLEAN, c1 INT, c2 INT, c3 INT, c4 INT"
    indexed = "'delta.dataSkippingNumIndexedCols' = '8'"
    error = refused(session, f"CREATE TABLE t ({columns}) CLUSTER BY ({by}) TBLPROPERTIES ({indexed})")
    assert error.condition == condition


def test_a_table_like_another(session: Session) -> None:
    session.run(
        "CREATE TABLE u (a INT NOT NULL, b STRING DEFAULT 'q', g INT GENERATED ALWAYS AS (a + 1), n TIMESTAMP_NTZ, "
        f"v CHAR(3) COMMENT 'c') PARTITIONED BY (b) COMMENT 'u' TBLPROPERTIES ({DEFAULTS}, 'k' = 'v', "
        "'delta.constraints.pos' = 'a > 0', 'delta.columnMapping.mode' = 'name')"
    )
    session.run("CREATE TABLE t LIKE u TBLPROPERTIES ('k' = 'w', 'l' = 'x')")
    (made,), (like,) = _actions(session, "protocol", "u"), _actions(session, "protocol")
    assert made == like
    assert newest_info(session)["operation"] == "CREATE TABLE"
    described = session.rows("DESCRIBE t")
    assert described == session.rows("DESCRIBE u") and described[4] == ("v", "char(3)", "c")
    assert set(session.rows("SHOW TBLPROPERTIES t")) - set(session.rows("SHOW TBLPROPERTIES u")) == {
        ("k", "w"),
        ("l", "x"),
    }
    session.run("INSERT INTO t (a, v) VALUES (1, 'x')")
    assert session.rows("SELECT * FROM t") == [(1, "q", 2, None, "x  ")]
    assert session.rows("SELECT * FROM u") == []
    assert refused(session, "INSERT INTO t (a) VALUES (0)").condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert refused(session, "CREATE TABLE t LIKE u").condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    session.run("CREATE TABLE IF NOT EXISTS t LIKE u")
    assert refused(session, "CREATE TABLE w LIKE nowhere").condition == "TABLE_OR_VIEW_NOT_FOUND"
    session.run("CREATE VIEW v AS SELECT 1 AS a")
    assert isinstance(refused(session, "CREATE TABLE w LIKE v"), UnsupportedError)


def test_a_replaced_table_keeps_what_delta_keeps(session: Session) -> None:
    session.run(
        "CREATE TABLE t (a INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name', "
        "'delta.enableInCommitTimestamps' = 'true', 'k' = 'v')"
    )
    session.run("INSERT INTO t VALUES (1), (2)")
    session.run("DELETE FROM t WHERE a = 1")
    session.run("CREATE OR REPLACE TABLE t (b INT) COMMENT 'new'")
    (metadata,) = _actions(session, "metaData")
    assert metadata["configuration"] == {"delta.enableDeletionVectors": "true"} and metadata["description"] == "new"
    (remove,) = _actions(session, "remove")
    assert remove["deletionVector"]["cardinality"] == 1
    assert _actions(session, "protocol") == []
    session.run("CREATE OR REPLACE TABLE t TBLPROPERTIES ('delta.columnMapping.mode' = 'id') AS SELECT 5 AS `x y`")
    assert session.rows("SELECT * FROM t") == [(5,)]
    assert session.rows("SELECT * FROM t VERSION AS OF 2") == [(2,)]


def test_replace_table_replaces_what_is_there(session: Session) -> None:
    for missing in ("REPLACE TABLE t (a INT)", "REPLACE TABLE t AS SELECT 1 AS a"):
        assert refused(session, missing).condition == "TABLE_OR_VIEW_NOT_FOUND"
    session.run("CREATE TABLE t (a INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('k' = 'v')")
    session.run("INSERT INTO t VALUES (1, 'x')")
    session.run("REPLACE TABLE t (b BIGINT NOT NULL, c STRING) USING delta CLUSTER BY (c) COMMENT 'new'")
    assert newest_info(session)["operation"] == "REPLACE TABLE"
    assert session.rows("SELECT b, c FROM t") == []
    session.run("REPLACE TABLE t AS SELECT 2 AS a, 'y' AS b")
    assert newest_info(session)["operation"] == "REPLACE TABLE AS SELECT"
    assert rows_here_and_there(session) == [(2, "y")]
    assert session.rows("SELECT * FROM t VERSION AS OF 1") == [(1, "x")]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("REPLACE TABLE IF NOT EXISTS t (a INT)", "PARSE_SYNTAX_ERROR"),
        ("REPLACE TABLE IF EXISTS t (a INT)", "PARSE_SYNTAX_ERROR"),
        ("REPLACE TABLE t SHALLOW CLONE t", "UNSUPPORTED_FEATURE"),
        ("REPLACE TABLE t (a INT) USING csv", "UNSUPPORTED_FEATURE"),
        ("REPLACE TABLE t (a INT) AS SELECT 1 AS a", "_LEGACY_ERROR_TEMP_0035"),
        ("REPLACE VIEW t AS SELECT 1", "UNSUPPORTED_FEATURE"),
        ("REPLACE TABLE v (a INT)", "EXPECT_TABLE_NOT_VIEW"),
    ],
)
def test_replace_table_is_refused(session: Session, statement: str, condition: str) -> None:
    session.run("CREATE TABLE t (b INT)")
    session.run("CREATE VIEW v AS SELECT 1 AS a")
    assert refused(session, statement).condition.startswith(condition)
    assert session.rows("SHOW COLUMNS IN t") == [("b",)]


@pytest.mark.rewrites
def test_what_a_table_asks_for_is_told(session: Session) -> None:
    session.run(
        "CREATE TABLE t (a INT NOT NULL, b STRING DEFAULT  concat('x', 'y') COMMENT 'c', g INT GENERATED ALWAYS AS (a + 1), "
        "s STRUCT<x: INT>, CONSTRAINT c CHECK (a > 0)) CLUSTER BY (a, s.x) COMMENT 'd' "
        f"TBLPROPERTIES ({DEFAULTS}, 'delta.columnMapping.mode' = 'name', 'delta.enableInCommitTimestamps' = 'true')"
    )
    told = dict(session.rows("SHOW TBLPROPERTIES t"))
    assert told["clusteringColumns"] == '[["a"],["s","x"]]'
    assert (told["delta.minReaderVersion"], told["delta.minWriterVersion"]) == ("2", "7")
    assert told["delta.feature.clustering"] == told["delta.feature.generatedColumns"] == "supported"
    described = session.rows("DESCRIBE EXTENDED t")
    assert described[-3:] == [("", "", ""), ("# Column Default Values", "", ""), ("b", "string", "concat('x', 'y')")]
    ((statement,),) = session.rows("SHOW CREATE TABLE t")
    session.run(statement.replace("shop.t ", "shop.u ", 1))
    ((again,),) = session.rows("SHOW CREATE TABLE u")
    assert again == statement.replace("shop.t ", "shop.u ", 1)
    assert "CLUSTER BY (a, s.x)" in statement and "GENERATED ALWAYS AS (a + 1)" in statement
    assert {**told, "delta.columnMapping.maxColumnId": ""} == {
        **dict(session.rows("SHOW TBLPROPERTIES u")),
        "delta.columnMapping.maxColumnId": "",
    }
    assert session.rows("DESCRIBE u") == session.rows("DESCRIBE t")


def test_partitions_by_their_values(session: Session) -> None:
    session.run("CREATE TABLE t (a INT, p STRING, q DATE) PARTITIONED BY (p, q)")
    rows = "(1, 'x', DATE'2020-01-01'), (2, NULL, NULL), (3, 'a b', DATE'2020-01-01'), (4, 'x', NULL)"
    session.run(f"INSERT INTO t VALUES {rows}")
    day = datetime.date(2020, 1, 1)
    assert session.rows("SHOW PARTITIONS t PARTITION (P = 'x')") == [("x", day), ("x", None)]
    assert session.rows("SHOW PARTITIONS t PARTITION (q = DATE'2020-01-01', p = 'x')") == [("x", day)]
    assert session.rows("SHOW PARTITIONS t PARTITION (q = '2020-01-01')") == [("a b", day), ("x", day)]
    assert session.rows("SHOW PARTITIONS t PARTITION (p = 'y')") == []
