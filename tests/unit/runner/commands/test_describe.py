"""DESCRIBE: columns and rows as Spark 4.2 and Databricks answer (Databricks' names where the two differ), and every refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.runner.session import Session, refused

DESCRIBED = [("col_name", "string", False), ("data_type", "string", False), ("comment", "string", True)]
T_ROWS: list[tuple[str, str, str | None]] = [
    ("id", "int", "key"),
    ("Name", "string", None),
    ("p", "date", None),
    ("# Partition Information", "", ""),
    ("# col_name", "data_type", "comment"),
    ("p", "date", None),
]
DESCRIBED_COLUMN = [("info_name", "string", False), ("info_value", "string", False)]


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("DESCRIBE TABLE t", DESCRIBED, T_ROWS),
        ("DESC main.shop.t", DESCRIBED, T_ROWS),
        ("DESCRIBE tv", DESCRIBED, [("a", "int", None), ("b", "string", None)]),
        ("DESCRIBE EXTENDED tv", DESCRIBED, [("a", "int", None), ("b", "string", None)]),
        (
            "DESCRIBE t NAME",
            DESCRIBED_COLUMN,
            [("col_name", "Name"), ("data_type", "string"), ("comment", "NULL")],
        ),
        ("DESCRIBE t t.id", DESCRIBED_COLUMN, [("col_name", "id"), ("data_type", "int"), ("comment", "key")]),
        ("DESCRIBE tv a", DESCRIBED_COLUMN, [("col_name", "a"), ("data_type", "int"), ("comment", "NULL")]),
        (
            "DESCRIBE EXTENDED t id",
            DESCRIBED_COLUMN,
            [
                ("col_name", "id"),
                ("data_type", "int"),
                ("comment", "key"),
                *(
                    (k, "NULL")
                    for k in ["min", "max", "num_nulls", "distinct_count", "avg_col_len", "max_col_len", "histogram"]
                ),
            ],
        ),
        (
            "DESCRIBE QUERY SELECT 1 AS a, 'x' AS b, CAST(NULL AS DECIMAL(10,2)) AS c",
            DESCRIBED,
            [("a", "int", None), ("b", "string", None), ("c", "decimal(10,2)", None)],
        ),
        ("DESCRIBE SELECT 1", DESCRIBED, [("1", "int", None)]),
    ],
)
def test_answers(shop: Session, text: str, columns: list[Any], rows: list[Any]) -> None:
    result = shop.run(text)
    assert result.columns == columns
    assert result.rows == rows
    assert result.planned.is_query
    assert not result.planned.writes
    assert result.finished.modified_rows is None


def test_describe_extended(shop: Session) -> None:
    rows = shop.rows("DESCRIBE TABLE EXTENDED t")
    assert rows[: len(T_ROWS)] == T_ROWS
    assert rows[len(T_ROWS) : len(T_ROWS) + 2] == [("", "", ""), ("# Detailed Table Information", "", "")]
    facts = {name: value for name, value, _ in rows[len(T_ROWS) + 2 :]}
    location = facts.pop("Location")
    assert location.startswith("file:/")
    assert location.endswith("/shop/t")
    assert facts == {
        "Catalog": "main",
        "Database": "shop",
        "Table": "t",
        "Type": "MANAGED",
        "Comment": "a table",
        "Provider": "delta",
        "Table Properties": "[a.b=1,delta.enableDeletionVectors=true,delta.feature.appendOnly=supported,"
        "delta.feature.deletionVectors=supported,delta.feature.invariants=supported,delta.minReaderVersion=3,"
        "delta.minWriterVersion=7,k=v]",
    }


def test_describe_schema_and_catalog(shop: Session) -> None:
    result = shop.run("DESCRIBE SCHEMA EXTENDED SHOP")
    assert [c[0] for c in result.columns] == ["database_description_item", "database_description_value"]
    facts = dict(result.rows)
    assert facts.pop("Location").endswith("/shop")
    assert facts == {
        "Catalog Name": "main",
        "Namespace Name": "shop",
        "Comment": "things",
        "Owner": "",
        "Properties": "",
    }
    assert "Properties" not in dict(shop.rows("DESCRIBE DATABASE shop"))
    assert dict(shop.rows("DESCRIBE CATALOG samples"))["Catalog Name"] == "samples"


@pytest.mark.parametrize(
    ("text", "condition", "sqlstate"),
    [
        ("DESCRIBE nope", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("DESCRIBE t nope", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ("DESCRIBE t other.id", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ("DESCRIBE samples.delta_types.all_types c_struct.name", "UNSUPPORTED_FEATURE", "0A000"),
        ("DESCRIBE SCHEMA nope", "SCHEMA_NOT_FOUND", "42704"),
        ("DESCRIBE CATALOG nope", "NO_SUCH_CATALOG_EXCEPTION", "42704"),
        ("DESCRIBE QUERY SELECT nope", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703"),
        ("DESCRIBE t AS JSON", "DESCRIBE_JSON_NOT_EXTENDED", "0A000"),
        ("DESCRIBE EXTENDED t id AS JSON", "UNSUPPORTED_FEATURE.DESC_TABLE_COLUMN_JSON", "0A000"),
        ("DESCRIBE EXTENDED nope AS JSON", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("DESCRIBE EXTENDED t AS JSON x", "PARSE_SYNTAX_ERROR", "42601"),
    ],
)
def test_refusals(shop: Session, text: str, condition: str, sqlstate: str) -> None:
    error = refused(shop, text)
    assert (error.condition, error.sqlstate) == (condition, sqlstate)


def test_a_table_as_json(shop: Session) -> None:
    """The keys and types that Spark gives, in its order."""
    shop.run(
        "CREATE TABLE typed (a INT NOT NULL COMMENT 'c', b STRING, c DECIMAL(10,2), d ARRAY<STRUCT<x: INT, y: TIMESTAMP>>, "
        "e MAP<STRING, BIGINT>, h TIMESTAMP_NTZ, p DATE) PARTITIONED BY (p) COMMENT 'tab' TBLPROPERTIES ('k' = 'v')"
    )
    result = shop.run("DESCRIBE TABLE EXTENDED typed AS JSON")
    assert result.columns == [("json_metadata", "string", False)]
    found = json.loads(result.rows[0][0])
    text = {"name": "string", "collation": "UTF8_BINARY"}
    assert list(found) == [
        *(
            "table_name",
            "catalog_name",
            "namespace",
            "schema_name",
            "columns",
            "location",
            "type",
            "provider",
            "comment",
        ),
        *("table_properties", "partition_columns", "collation"),
    ]
    assert (found["table_name"], found["catalog_name"], found["namespace"]) == ("typed", "main", [found["schema_name"]])
    assert (found["provider"], found["comment"], found["partition_columns"]) == ("delta", "tab", ["p"])
    assert found["table_properties"] == {"delta.enableDeletionVectors": "true", "k": "v"}
    fields = [
        {"name": "x", "type": {"name": "int"}, "nullable": True},
        {"name": "y", "type": {"name": "timestamp_ltz"}, "nullable": True},
    ]
    array = {"name": "array", "element_type": {"name": "struct", "fields": fields}, "element_nullable": True}
    entries = {"name": "map", "key_type": text, "value_type": {"name": "bigint"}, "value_nullable": True}
    types = [
        *({"name": "int"}, text, {"name": "decimal", "precision": 10, "scale": 2}, array, entries),
        *({"name": "timestamp_ntz"}, {"name": "date"}),
    ]
    assert [column["type"] for column in found["columns"]] == types
    assert found["columns"][0] == {"name": "a", "type": {"name": "int"}, "nullable": False, "comment": "c"}
    shop.run("DROP TABLE typed")


def test_views_as_json(shop: Session) -> None:
    shop.run("CREATE TEMPORARY VIEW shown AS SELECT 1 AS a, INTERVAL '1' DAY AS i, NULL AS n, 'é' AS t")
    found = json.loads(shop.run("DESCRIBE FORMATTED shown AS JSON").rows[0][0])
    assert (found["catalog_name"], found["schema_name"], found["type"]) == ("system", "session", "VIEW")
    assert found["view_text"] == "SELECT 1 AS a, INTERVAL '1' DAY AS i, NULL AS n, 'é' AS t"
    assert [(column["type"]["name"], column["nullable"]) for column in found["columns"]] == [
        *(("int", False), ("interval", False), ("void", True), ("string", False)),
    ]
    assert found["columns"][1]["type"] == {"name": "interval", "start_unit": "day", "end_unit": "day"}
