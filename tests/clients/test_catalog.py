"""Names, metadata calls, commands and plain writes as clients use them."""

from __future__ import annotations

from typing import Any

import pytest
from databricks.sql import exc


def first_column(cursor: Any, statement: str) -> list[Any]:
    """The first column of all rows."""
    return [row[0] for row in cursor.execute(statement).fetchall()]


def test_samples(cursor: Any) -> None:
    assert set(first_column(cursor, "SHOW CATALOGS")) >= {"main", "samples"}
    assert first_column(cursor, "SELECT count(*) FROM samples.tpch.region") == [5]
    cursor.execute("SELECT r_regionkey, r_name FROM samples.tpch.region ORDER BY r_regionkey")
    names = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
    assert [tuple(r) for r in cursor.fetchall()] == list(enumerate(names))
    assert first_column(cursor, "SELECT count(*) > 0 FROM samples.nyctaxi.trips") == [True]
    cursor.execute("SELECT * FROM samples.delta_types.all_types")
    assert len(cursor.fetchall()) > 0


def test_metadata_calls(cursor: Any) -> None:
    assert {"main", "samples"} <= {r[0] for r in cursor.catalogs().fetchall()}
    cursor.schemas(catalog_name="samples")
    assert [d[0] for d in cursor.description] == ["TABLE_SCHEM", "TABLE_CATALOG"]
    assert {"tpch", "nyctaxi", "delta_types"} <= {r[0] for r in cursor.fetchall()}
    cursor.tables(catalog_name="samples", schema_name="tp%", table_name="o%")
    assert [d[0] for d in cursor.description] == [
        "TABLE_CAT",
        "TABLE_SCHEM",
        "TABLE_NAME",
        "TABLE_TYPE",
        "REMARKS",
        "TYPE_CAT",
        "TYPE_SCHEM",
        "TYPE_NAME",
        "SELF_REFERENCING_COL_NAME",
        "REF_GENERATION",
    ]
    assert [tuple(r)[:3] for r in cursor.fetchall()] == [("samples", "tpch", "orders")]
    cursor.columns(catalog_name="samples", schema_name="tpch", table_name="region")
    assert len(cursor.description) == 23
    rows = cursor.fetchall()
    assert [r[3] for r in rows] == ["r_regionkey", "r_name", "r_comment"]
    assert [r[16] for r in rows] in ([0, 1, 2], [1, 2, 3])


def test_namespaces(connect: Any) -> None:
    with connect(catalog="samples", schema="tpch").cursor() as cursor:
        cursor.execute("SELECT current_catalog(), current_schema(), count(*) FROM region GROUP BY ALL")
        assert tuple(cursor.fetchone()) == ("samples", "tpch", 5)
        cursor.execute("USE main.default")
        cursor.execute("SELECT current_catalog(), current_database()")
        assert tuple(cursor.fetchone()) == ("main", "default")


def test_commands(cursor: Any) -> None:
    assert "tpch" in first_column(cursor, "SHOW SCHEMAS IN samples")
    cursor.execute("SHOW TABLES IN samples.tpch")
    assert "lineitem" in {row.tableName for row in cursor.fetchall()}
    assert first_column(cursor, "SHOW COLUMNS IN samples.tpch.region") == ["r_regionkey", "r_name", "r_comment"]
    cursor.execute("DESCRIBE TABLE samples.tpch.region")
    assert [tuple(r)[:2] for r in cursor.fetchall()][1] == ("r_name", "string")
    assert "datafusion" in str(first_column(cursor, "EXPLAIN SELECT 1")).lower()
    cursor.execute("SET use_cached_result = false")
    cursor.execute("SET use_cached_result")
    assert tuple(cursor.fetchone())[1] == "false"


def test_temporary_views(connect: Any) -> None:
    with connect().cursor() as cursor, connect().cursor() as other:
        cursor.execute("CREATE OR REPLACE TEMPORARY VIEW seven AS SELECT 7 AS n")
        assert first_column(cursor, "SELECT n FROM seven") == [7]
        with pytest.raises(exc.ServerOperationError, match="TABLE_OR_VIEW_NOT_FOUND"):
            other.execute("SELECT n FROM seven")
        cursor.execute("DROP VIEW seven")
        with pytest.raises(exc.ServerOperationError, match="TABLE_OR_VIEW_NOT_FOUND"):
            cursor.execute("SELECT n FROM seven")


def test_tables_are_written_and_read(cursor: Any) -> None:
    cursor.execute("CREATE SCHEMA IF NOT EXISTS shop")
    cursor.execute("CREATE OR REPLACE TABLE shop.items (id BIGINT, name STRING, price DECIMAL(10,2))")
    cursor.execute("INSERT INTO shop.items VALUES (1, 'pen', 1.5), (2, NULL, 20)")
    assert cursor.rowcount == 2
    cursor.execute("INSERT INTO shop.items SELECT id + 10, concat('item ', id), 0.25 FROM range(3)")
    cursor.execute("SELECT id, name, CAST(price AS STRING) FROM shop.items ORDER BY id")
    assert [tuple(r) for r in cursor.fetchall()] == [
        (1, "pen", "1.50"),
        (2, None, "20.00"),
        (10, "item 0", "0.25"),
        (11, "item 1", "0.25"),
        (12, "item 2", "0.25"),
    ]
    cursor.execute("CREATE TABLE shop.copy AS SELECT name, sum(price) AS total FROM shop.items GROUP BY name")
    assert first_column(cursor, "SELECT count(*) FROM shop.copy") == [5]
    with pytest.raises(exc.ServerOperationError, match=r"already exists|ALREADY_EXISTS"):
        cursor.execute("CREATE TABLE shop.copy AS SELECT 1 AS x")
    with pytest.raises(exc.ServerOperationError, match=r"CAST_INVALID_INPUT|INCOMPATIBLE|CAST_OVERFLOW|NUMERIC"):
        cursor.execute("INSERT INTO shop.items VALUES ('x', 'y', 1)")
    assert first_column(cursor, "SELECT count(*) FROM shop.items") == [5]
    for table in ("items", "copy"):
        cursor.execute(f"DROP TABLE shop.{table}")
    with pytest.raises(exc.ServerOperationError, match="TABLE_OR_VIEW_NOT_FOUND"):
        cursor.execute("SELECT * FROM shop.items")


def test_samples_are_read_only(cursor: Any) -> None:
    with pytest.raises(exc.ServerOperationError):
        cursor.execute("DROP TABLE samples.tpch.region")
    assert first_column(cursor, "SELECT count(*) FROM samples.tpch.region") == [5]


def test_names_ignore_case(cursor: Any) -> None:
    assert first_column(cursor, "SELECT R_NAME FROM Samples.TPCH.Region WHERE r_RegionKey = 2") == ["ASIA"]


def test_the_version_that_databricks_clients_ask_for(cursor: Any) -> None:
    """ADBC and ibis read it at connect, as a struct."""
    cursor.execute("SELECT current_version() AS v, current_version().dbsql_version AS s")
    row = cursor.fetchone()
    assert list(row.v) == ["dbr_version", "dbsql_version", "u_build_hash", "r_build_hash"]
    assert row.v["dbsql_version"] == row.s == "2026.10"


def test_volumes(cursor: Any) -> None:
    """ibis makes one at connect, of a name with its process, and puts tables of the client's memory into it."""
    cursor.execute("CREATE VOLUME IF NOT EXISTS `me-py=3117-pid=1` COMMENT 'Ibis memtable storage volume'")
    cursor.execute("SHOW VOLUMES IN main.default LIKE 'me-*'")
    assert [tuple(row) for row in cursor.fetchall()] == [("default", "me-py=3117-pid=1")]
    cursor.execute("LIST '/Volumes/main/default/me-py=3117-pid=1/'")
    assert cursor.fetchall() == []
    cursor.execute("DROP VOLUME `me-py=3117-pid=1`")
