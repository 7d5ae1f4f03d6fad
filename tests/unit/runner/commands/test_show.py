"""SHOW: columns and rows as Spark 4.2 and Databricks answer (Databricks' names where the two differ), and every refusal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.runner.session import Session, refused

SET = [("key", "string", False), ("value", "string", False)]
TABLES = [("database", "string", False), ("tableName", "string", False), ("isTemporary", "boolean", False)]


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("SHOW CATALOGS", [("catalog", "string", False)], [("main",), ("samples",)]),
        ("SHOW CATALOGS LIKE 's*'", [("catalog", "string", False)], [("samples",)]),
        ("SHOW SCHEMAS", [("databaseName", "string", False)], [("default",), ("shop",)]),
        ("SHOW DATABASES LIKE 'SH*|x'", [("databaseName", "string", False)], [("shop",)]),
        (
            "SHOW SCHEMAS IN samples",
            [("databaseName", "string", False)],
            [("delta_types",), ("nyctaxi",), ("tpch",)],
        ),
        ("SHOW TABLES", TABLES, [("shop", "t", False), ("", "tv", True)]),
        ("SHOW TABLES IN SHOP LIKE 'T'", TABLES, [("shop", "t", False)]),
        ("SHOW TABLES FROM main.shop 'nope'", TABLES, []),
        ("SHOW TABLES IN samples.tpch LIKE 'reg*'", TABLES, [("tpch", "region", False)]),
        (
            "SHOW VIEWS",
            [("namespace", "string", False), ("viewName", "string", False), ("isTemporary", "boolean", False)],
            [("", "tv", True)],
        ),
        (
            "SHOW VIEWS LIKE 'x*'",
            [("namespace", "string", False), ("viewName", "string", False), ("isTemporary", "boolean", False)],
            [],
        ),
        ("SHOW COLUMNS IN t", [("col_name", "string", False)], [("id",), ("Name",), ("p",)]),
        ("SHOW COLUMNS IN t IN shop", [("col_name", "string", False)], [("id",), ("Name",), ("p",)]),
        ("SHOW COLUMNS IN Shop.T IN shop", [("col_name", "string", False)], [("id",), ("Name",), ("p",)]),
        ("SHOW COLUMNS IN main.shop.t IN shop", [("col_name", "string", False)], [("id",), ("Name",), ("p",)]),
        ("SHOW COLUMNS IN tv", [("col_name", "string", False)], [("a",), ("b",)]),
        ("SHOW FUNCTIONS LIKE 'abs'", [("function", "string", False)], [("abs",)]),
        ("SHOW USER FUNCTIONS LIKE 'abs'", [("function", "string", False)], []),
        (
            "SHOW TBLPROPERTIES t",
            SET,
            [
                ("a.b", "1"),
                ("delta.enableDeletionVectors", "true"),
                *((f"delta.feature.{name}", "supported") for name in ("appendOnly", "deletionVectors", "invariants")),
                ("delta.minReaderVersion", "3"),
                ("delta.minWriterVersion", "7"),
                ("k", "v"),
            ],
        ),
        ("SHOW TBLPROPERTIES t ('k')", SET, [("k", "v")]),
        ("SHOW TBLPROPERTIES t (a.b)", SET, [("a.b", "1")]),
        ("SHOW TBLPROPERTIES t ('none')", SET, [("none", "Table main.shop.t does not have property: none")]),
        ("SHOW TBLPROPERTIES tv", SET, []),
    ],
)
def test_answers(shop: Session, text: str, columns: list[Any], rows: list[Any]) -> None:
    result = shop.run(text)
    assert result.columns == columns
    assert result.rows == rows
    assert result.planned.is_query
    assert not result.planned.writes
    assert result.finished.modified_rows is None


@pytest.mark.parametrize(
    ("text", "condition", "sqlstate"),
    [
        ("SHOW SCHEMAS IN nope", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("SHOW SCHEMAS IN main.shop", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("SHOW TABLES IN nope", "SCHEMA_NOT_FOUND", "42704"),
        ("SHOW TABLES IN nope.shop", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("SHOW VIEWS IN nope", "SCHEMA_NOT_FOUND", "42704"),
        ("SHOW FUNCTIONS IN nope LIKE 'abs'", "SCHEMA_NOT_FOUND", "42704"),
        ("SHOW COLUMNS IN nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("SHOW COLUMNS IN shop.t IN default", "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE", "42K05"),
        ("SHOW COLUMNS IN tv IN shop", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("SHOW TBLPROPERTIES nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("SHOW TABLES LIKE '[a-z]*'", "UNSUPPORTED_FEATURE", "0A000"),
        ("SHOW PARTITIONS t PARTITION (id = 1)", "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN", "42P10"),
        ("SHOW PARTITIONS t PARTITION (p = NULL)", "UNSUPPORTED_FEATURE", "0A000"),
        ("SHOW CREATE TABLE tv", "UNSUPPORTED_FEATURE", "0A000"),
        ("SHOW TABLE EXTENDED IN nope LIKE 't'", "SCHEMA_NOT_FOUND", "42704"),
        ("SHOW TABLE EXTENDED", "PARSE_SYNTAX_ERROR", "42601"),
    ],
)
def test_refusals(shop: Session, text: str, condition: str, sqlstate: str) -> None:
    error = refused(shop, text)
    assert (error.condition, error.sqlstate) == (condition, sqlstate)
