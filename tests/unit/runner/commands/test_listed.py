"""SHOW … IN CATALOG has the columns that drivers read, and rows by all three patterns."""

from __future__ import annotations

import pytest

from tests.unit.runner.session import Session, refused

TABLES = ["namespace", "tableName", "isTemporary", "information", "catalogName", "tableType", "remarks"]
COLUMNS = [
    *("col_name", "catalogName", "namespace", "tableName", "columnType", "columnSize", "decimalDigits", "radix"),
    *("isNullable", "remarks", "ordinalPosition", "isAutoIncrement", "isGenerated"),
]
T = ("shop", "t", False, "", "main", "TABLE", "a table")
V = ("shop", "v", False, "", "main", "VIEW", "")


@pytest.fixture
def listed(shop: Session) -> Session:
    shop.run("CREATE OR REPLACE VIEW v AS SELECT 1 AS a")
    shop.run("CREATE TABLE IF NOT EXISTS default.u (d DECIMAL(10, 2), s STRING)")
    return shop


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SHOW TABLES IN CATALOG main SCHEMA LIKE 'shop' LIKE '*'", [T, V]),
        ("SHOW TABLES IN CATALOG `main` SCHEMA LIKE 's..p'", [T, V]),
        ("SHOW TABLES IN CATALOG main LIKE 'V|x'", [V]),
        ("SHOW TABLES IN CATALOG main SCHEMA LIKE 'none'", []),
        ("SHOW TABLES IN ALL CATALOGS LIKE 't'", [T]),
        ("SHOW TABLES IN ALL CATALOGS SCHEMA LIKE 'tpch' LIKE 'region'", [("tpch", "region", "samples")]),
    ],
)
def test_tables(listed: Session, text: str, rows: list[tuple[object, ...]]) -> None:
    result = listed.run(text)
    assert [name for name, _, _ in result.columns] == TABLES
    if rows and len(rows[0]) == 3:
        assert [(row[0], row[1], row[4]) for row in result.rows] == rows
    else:
        assert result.rows == rows


def test_columns(listed: Session) -> None:
    result = listed.run("SHOW COLUMNS IN CATALOG main SCHEMA LIKE 'shop' TABLE LIKE 't' LIKE '*'")
    assert [name for name, _, _ in result.columns] == COLUMNS
    assert [(row[0], row[2], row[3], row[4], row[8], row[9], row[10]) for row in result.rows] == [
        ("id", "shop", "t", "INT", "false", "key", 0),
        ("Name", "shop", "t", "STRING", "true", "", 1),
        ("p", "shop", "t", "DATE", "true", "", 2),
    ]
    (found,) = listed.run("SHOW COLUMNS IN CATALOG main SCHEMA LIKE 'default' LIKE 'd'").rows
    assert found[:8] == ("d", "main", "default", "u", "DECIMAL(10,2)", 10, 2, 10)


def test_functions(listed: Session) -> None:
    result = listed.run("SHOW FUNCTIONS IN CATALOG main SCHEMA LIKE '*' LIKE 'abs'")
    assert [name for name, _, _ in result.columns][:3] == ["functionName", "namespace", "catalogName"]
    assert [row[:3] for row in result.rows] == [("abs", "builtin", "system")]


def test_keys(listed: Session) -> None:
    keys = listed.run("SHOW KEYS IN CATALOG main IN SCHEMA shop IN TABLE t")
    assert [name for name, _, _ in keys.columns][:4] == ["catalogName", "namespace", "tableName", "col_name"]
    foreign = listed.run("SHOW FOREIGN KEYS IN CATALOG main IN SCHEMA shop IN TABLE `t`")
    assert [name for name, _, _ in foreign.columns][:4] == [
        "parentCatalogName",
        "parentNamespace",
        "parentTableName",
        "parentColName",
    ]
    assert keys.rows == foreign.rows == []
    assert (
        refused(listed, "SHOW KEYS IN CATALOG main IN SCHEMA shop IN TABLE nope").condition == "TABLE_OR_VIEW_NOT_FOUND"
    )


def test_a_schema_may_be_called_catalog(listed: Session) -> None:
    listed.run("CREATE SCHEMA IF NOT EXISTS catalog")
    assert listed.run("SHOW TABLES IN catalog").rows == [("", "tv", True)]
    assert listed.run("SHOW TABLES IN catalog LIKE 'x'").rows == []


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SHOW TABLES IN CATALOG nope", "NO_SUCH_CATALOG_EXCEPTION"),
        ("SHOW TABLES IN CATALOG main SCHEMA 'x'", "PARSE_SYNTAX_ERROR"),
        ("SHOW TABLES IN CATALOG main TABLE LIKE 'x'", "PARSE_SYNTAX_ERROR"),
        ("SHOW KEYS IN CATALOG main IN TABLE t", "PARSE_SYNTAX_ERROR"),
        ("SHOW KEYS IN CATALOG main IN SCHEMA a.b IN TABLE t", "PARSE_SYNTAX_ERROR"),
        ("SHOW COLUMNS IN ALL CATALOGS", "PARSE_SYNTAX_ERROR"),
        ("SHOW TABLES IN CATALOG main LIKE 'a+'", "UNSUPPORTED_FEATURE"),
    ],
)
def test_wrong_forms(listed: Session, text: str, condition: str) -> None:
    assert refused(listed, text).condition == condition
