"""Metadata calls as BI tools make them at connect: the connector's, and the raw ones with what it does not send."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from databricks.sql import exc

from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import Server

I8, I16, I32, TEXT = "tinyint", "smallint", "int", "string"
TYPES = {
    "TABLE_CAT": TEXT,
    "TABLE_SCHEM": TEXT,
    "TABLE_NAME": TEXT,
    "COLUMN_NAME": TEXT,
    "DATA_TYPE": I32,
    "TYPE_NAME": TEXT,
    "COLUMN_SIZE": I32,
    "BUFFER_LENGTH": I8,
    "DECIMAL_DIGITS": I32,
    "NUM_PREC_RADIX": I32,
    "NULLABLE": I32,
    "REMARKS": TEXT,
    "COLUMN_DEF": TEXT,
    "SQL_DATA_TYPE": I32,
    "SQL_DATETIME_SUB": I32,
    "CHAR_OCTET_LENGTH": I32,
    "ORDINAL_POSITION": I32,
    "IS_NULLABLE": TEXT,
    "SCOPE_CATALOG": TEXT,
    "SCOPE_SCHEMA": TEXT,
    "SCOPE_TABLE": TEXT,
    "SOURCE_DATA_TYPE": I16,
    "IS_AUTO_INCREMENT": TEXT,
}
ITEM = "STRUCT<name: STRING, prices: ARRAY<DECIMAL(10,2)>>"
# Column of samples.delta_types.all_types: DATA_TYPE (java.sql.Types), TYPE_NAME, COLUMN_SIZE, DECIMAL_DIGITS, NUM_PREC_RADIX
COLUMNS: dict[str, tuple[int, str, int | None, int | None, int | None]] = {
    "id": (4, "INT", 10, 0, 10),
    "c_boolean": (16, "BOOLEAN", 1, None, None),
    "c_tinyint": (-6, "TINYINT", 3, 0, 10),
    "c_smallint": (5, "SMALLINT", 5, 0, 10),
    "c_int": (4, "INT", 10, 0, 10),
    "c_bigint": (-5, "BIGINT", 19, 0, 10),
    "c_float": (6, "FLOAT", 7, 7, 10),
    "c_double": (8, "DOUBLE", 15, 15, 10),
    "c_decimal": (3, "DECIMAL(10,2)", 10, 2, 10),
    "c_decimal_max": (3, "DECIMAL(38,0)", 38, 0, 10),
    "c_decimal_scale": (3, "DECIMAL(38,18)", 38, 18, 10),
    "c_string": (12, "STRING", 2147483647, None, None),
    "c_varchar": (12, "VARCHAR(10)", 10, None, None),
    "c_char": (1, "CHAR(3)", 3, None, None),
    "c_binary": (-2, "BINARY", 2147483647, None, None),
    "c_date": (91, "DATE", 10, None, None),
    "c_timestamp": (93, "TIMESTAMP", 29, 6, None),
    "c_timestamp_ntz": (93, "TIMESTAMP_NTZ", 29, 6, None),
    "c_array": (2003, "ARRAY<INT>", None, None, None),
    "c_map": (2000, "MAP<STRING, INT>", None, None, None),
    "c_struct": (2002, ITEM, None, None, None),
    "c_array_of_struct": (2003, f"ARRAY<{ITEM}>", None, None, None),
    "c_map_of_array": (2000, "MAP<INT, ARRAY<STRING>>", None, None, None),
}
TPCH = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def rows(cursor: Any) -> list[tuple[Any, ...]]:
    """All rows as tuples."""
    return [tuple(r) for r in cursor.fetchall()]


def names(cursor: Any) -> list[str]:
    """TABLE_NAME of all rows of cursor.tables()."""
    return [r[2] for r in rows(cursor)]


@pytest.fixture
def raw(server: Server) -> Iterator[Client]:
    """A session of the raw client."""
    with Client(server.thrift_url).open() as client:
        yield client


def ask(client: Client, call: str, **fields: Any) -> Any:
    """TSparkDirectResults of a metadata call."""
    request = getattr(ttypes, f"T{call}Req")(
        sessionHandle=client._session, getDirectResults=ttypes.TSparkGetDirectResults(maxRows=100_000), **fields
    )
    return client.call(call, request).directResults


def column_values(direct: Any, index: int) -> int:
    """How many values a column of a page has."""
    for arm in ("stringVal", "i32Val", "i16Val", "byteVal", "boolVal", "i64Val", "doubleVal", "binaryVal"):
        found = getattr(direct.resultSet.results.columns[index], arm)
        if found is not None:
            return int(found.values.count if hasattr(found.values, "count") else len(found.values))
    raise AssertionError("a column without an arm")


def test_catalogs(cursor: Any) -> None:
    assert rows(cursor.catalogs()) == [("main",), ("samples",)]
    assert [d[:2] for d in cursor.description] == [("TABLE_CAT", TEXT)]


@pytest.mark.parametrize(
    ("catalog", "schema", "found"),
    [
        ("samples", None, ["delta_types", "nyctaxi", "tpch"]),
        ("SAMPLES", None, ["delta_types", "nyctaxi", "tpch"]),
        ("samples", "", ["delta_types", "nyctaxi", "tpch"]),
        ("samples", "%", ["delta_types", "nyctaxi", "tpch"]),
        ("samples", "*", ["delta_types", "nyctaxi", "tpch"]),
        ("samples", ".*", ["delta_types", "nyctaxi", "tpch"]),
        ("samples", "TPCH", ["tpch"]),
        ("samples", "t_ch", ["tpch"]),
        ("samples", "delta_types", ["delta_types"]),
        ("samples", r"delta\_types", ["delta_types"]),
        ("samples", r"tpc\_", []),
        ("samples", r"%\%", []),
        ("samples", "%t%", ["delta_types", "nyctaxi", "tpch"]),
        ("samples", "nope", []),
        ("nope", None, []),
        ("samples", "tpch'; DROP TABLE x --", []),
    ],
)
def test_schemas(cursor: Any, catalog: str | None, schema: str | None, found: list[str]) -> None:
    cursor.schemas(catalog_name=catalog, schema_name=schema)
    assert [d[:2] for d in cursor.description] == [("TABLE_SCHEM", TEXT), ("TABLE_CATALOG", TEXT)]
    assert rows(cursor) == [(s, "samples") for s in found]


def test_no_catalog_means_every_catalog(cursor: Any) -> None:
    cursor.schemas(schema_name="default")
    assert rows(cursor) == [("default", "main")]
    cursor.schemas(schema_name="tpch")
    assert rows(cursor) == [("tpch", "samples")]


def test_spark_is_the_sessions_catalog(connect: Any) -> None:
    with connect(catalog="samples").cursor() as cursor:
        cursor.schemas(catalog_name="SPARK", schema_name="tp%")
        assert rows(cursor) == [("tpch", "samples")]
        cursor.tables(catalog_name="spark", schema_name="tpch", table_name="reg%")
        assert [r[:3] for r in rows(cursor)] == [("samples", "tpch", "region")]
    with connect().cursor() as cursor:
        cursor.schemas(catalog_name="SPARK", schema_name="tpch")
        assert rows(cursor) == []


@pytest.mark.parametrize(
    ("schema", "table", "found"),
    [
        ("tpch", None, TPCH),
        ("tpch", "", TPCH),
        ("tpch", "%", TPCH),
        ("t%", "*", TPCH),
        ("tpch", "part%", ["part", "partsupp"]),
        ("tpch", "part_", []),
        ("tpch", "_art", ["part"]),
        ("TPCH", "PART", ["part"]),
        ("tpch", r"part\%", []),
        ("tpch", "p.*", ["part", "partsupp"]),
        ("tpch", "part|orders", []),
        ("tpch", "[a-z]+", []),
        ("delta_types", r"all\_types", ["all_types"]),
        ("nope", "%", []),
        ("tpch", "nope", []),
    ],
)
def test_tables(cursor: Any, schema: str, table: str | None, found: list[str]) -> None:
    cursor.tables(catalog_name="samples", schema_name=schema, table_name=table)
    assert [d[1] for d in cursor.description] == [TEXT] * 10
    assert names(cursor) == found


@pytest.mark.parametrize(
    ("types", "found"),
    [
        (None, ["region"]),
        ([], ["region"]),
        (["TABLE"], ["region"]),
        (["table", "VIEW"], ["region"]),
        (["VIEW"], []),
        (["SYSTEM TABLE"], []),
    ],
)
def test_table_types(cursor: Any, types: list[str] | None, found: list[str]) -> None:
    cursor.tables(catalog_name="samples", schema_name="tpch", table_name="region", table_types=types)
    got = rows(cursor)
    assert [r[2] for r in got] == found
    assert [r[3:] for r in got] == [("TABLE", "", None, None, None, None, None)] * len(found)


def test_temporary_views_are_tables_of_no_catalog(connect: Any) -> None:
    with connect().cursor() as cursor, connect().cursor() as other:
        cursor.execute("CREATE TEMPORARY VIEW looked_at COMMENT 'mine' AS SELECT 1 AS n")
        cursor.tables(table_name="looked%")
        assert rows(cursor) == [(None, None, "looked_at", "VIEW", "mine", None, None, None, None, None)]
        cursor.tables(table_name="looked%", table_types=["TABLE"])
        assert rows(cursor) == []
        other.tables(table_name="looked%")
        assert rows(other) == []


def test_comments_and_new_tables_are_seen_at_once(cursor: Any) -> None:
    schema = f"meta_{uuid.uuid4().hex[:8]}"
    cursor.execute(f"CREATE SCHEMA {schema}")
    cursor.execute(f"CREATE TABLE {schema}.Mixed_Case (Id BIGINT NOT NULL COMMENT 'the key', v STRING) COMMENT 'kept'")
    try:
        cursor.tables(catalog_name="main", schema_name=schema)
        assert [r[:5] for r in rows(cursor)] == [("main", schema, "Mixed_Case", "TABLE", "kept")]
        cursor.columns(catalog_name="main", schema_name=schema, table_name="mixed\\_case", column_name="%")
        got = [(r[3], r[4], r[10], r[11], r[16], r[17]) for r in rows(cursor)]
        assert got == [("Id", -5, 0, "the key", 0, "NO"), ("v", 12, 1, "", 1, "YES")]
    finally:
        cursor.execute(f"DROP SCHEMA {schema} CASCADE")
    cursor.tables(catalog_name="main", schema_name=schema)
    assert rows(cursor) == []


def test_columns_of_every_type(cursor: Any) -> None:
    cursor.columns(catalog_name="samples", schema_name="delta_types", table_name="all_types")
    assert {d[0]: d[1] for d in cursor.description} == TYPES
    assert [d[0] for d in cursor.description] == list(TYPES)
    got = rows(cursor)
    assert {r[3]: (r[4], r[5], r[6], r[8], r[9]) for r in got} == COLUMNS
    assert [r[3] for r in got] == list(COLUMNS)
    assert [r[16] for r in got] == list(range(len(COLUMNS)))
    for r in got:
        assert r[:3] == ("samples", "delta_types", "all_types")
        assert (r[7], r[10], r[11], r[17], r[21], r[22]) == (None, 1, "", "YES", None, "NO")
        assert (*r[12:16], *r[18:21]) == (None,) * 7


@pytest.mark.parametrize(
    ("table", "column", "found"),
    [
        ("region", None, ["r_regionkey", "r_name", "r_comment"]),
        ("region", "R_N%", ["r_name"]),
        ("region", r"r\_name", ["r_name"]),
        ("region", "nope", []),
        ("nope", None, []),
        ("%tion", "%name", ["n_name"]),
        ("%", "%_phone", ["c_phone", "s_phone"]),
    ],
)
def test_column_patterns(cursor: Any, table: str, column: str | None, found: list[str]) -> None:
    cursor.columns(catalog_name="samples", schema_name="tpch", table_name=table, column_name=column)
    assert len(cursor.description) == 23
    assert [r[3] for r in rows(cursor)] == found


def test_columns_of_all_schemas(cursor: Any) -> None:
    cursor.columns(catalog_name="samples")
    assert len({(r[1], r[2]) for r in rows(cursor)}) == len(TPCH) + 2


@pytest.mark.parametrize("pattern", ["%" * 65_536, "_" * 65_536, "a%" * 32_768, "\\" * 65_535, "%_" * 1000 + "%", "\\"])
def test_huge_patterns(cursor: Any, pattern: str) -> None:
    matches = set(pattern) == {"%"}
    cursor.tables(catalog_name="samples", schema_name="tpch", table_name=pattern)
    assert names(cursor) == (TPCH if matches else [])
    cursor.columns(catalog_name="samples", schema_name=pattern, table_name="region")
    assert len(rows(cursor)) == (3 if matches else 0)


@pytest.fixture
def broken(server: Server) -> Iterator[str]:
    """A schema with a good table and four that cannot be opened."""
    schema = f"broken_{uuid.uuid4().hex[:8]}"
    folder = server.warehouse / schema
    with Client(server.thrift_url).open() as client:
        for statement in (f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.good AS SELECT 1 AS a"):
            client.execute(statement).close()
    for name in ("damaged", "empty", "future", "gap"):
        shutil.copytree(folder / "good", folder / name)
    log = Path("_delta_log") / f"{0:020}.json"
    (folder / "damaged" / log).write_text('{"metaData": {"id"')
    (folder / "empty" / log).write_text("")
    lines = [json.loads(line) for line in (folder / "good" / log).read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 99, "minWriterVersion": 99}
    (folder / "future" / log).write_text("\n".join(json.dumps(line) for line in lines))
    (folder / "gap" / "_delta_log" / f"{2:020}.json").write_text('{"commitInfo": {}}')
    yield schema
    shutil.rmtree(folder)


def test_tables_that_cannot_be_opened_are_listed(cursor: Any, broken: str) -> None:
    cursor.tables(catalog_name="main", schema_name=broken)
    assert names(cursor) == ["damaged", "empty", "future", "gap", "good"]
    cursor.execute(f"SHOW TABLES IN main.{broken}")
    assert [r[1] for r in rows(cursor)] == ["damaged", "empty", "future", "gap", "good"]
    cursor.columns(catalog_name="main", schema_name=broken)
    assert [r[2:4] for r in rows(cursor)] == [("good", "a")]


@pytest.mark.parametrize("table", ["damaged", "empty", "future", "gap"])
def test_asked_for_alone_such_a_table_is_an_error(cursor: Any, broken: str, table: str) -> None:
    with pytest.raises(exc.DatabaseError) as read:
        cursor.execute(f"SELECT * FROM main.{broken}.{table}")
    with pytest.raises(exc.DatabaseError) as columns:
        cursor.columns(catalog_name="main", schema_name=broken, table_name=table)
    condition = str(read.value).partition("]")[0]
    assert condition.startswith("[")
    assert condition in str(columns.value)
    assert "XX000" not in str(columns.value)


def test_raw_answers_are_columnar_with_direct_results(raw: Client) -> None:
    for call, fields, width, count in (
        ("GetCatalogs", {}, 1, 2),
        ("GetSchemas", {"catalogName": "samples"}, 2, 3),
        ("GetTables", {"catalogName": "samples", "schemaName": "tpch", "tableTypes": []}, 10, 8),
        ("GetColumns", {"catalogName": "samples", "schemaName": "tpch", "tableName": "region"}, 23, 3),
        ("GetTables", {"catalogName": "nope"}, 10, 0),
        # Asked by databricks-jdbc (getFunctions, getPrimaryKeys, getImportedKeys), Hive JDBC and Node.
        ("GetTableTypes", {}, 1, 2),
        ("GetTypeInfo", {}, 18, 22),
        ("GetFunctions", {"functionName": "add_months"}, 6, 1),
        ("GetPrimaryKeys", {"catalogName": "samples", "schemaName": "tpch", "tableName": "region"}, 6, 0),
        ("GetCrossReference", {"foreignCatalogName": "samples", "foreignTableName": "region"}, 14, 0),
    ):
        direct = ask(raw, call, **fields)
        assert direct.operationStatus.operationState == ttypes.TOperationState.FINISHED_STATE
        assert direct.operationStatus.displayMessage in (None, "")
        assert direct.resultSetMetadata.resultFormat == ttypes.TSparkRowSetType.COLUMN_BASED_SET
        assert [c.position for c in direct.resultSetMetadata.schema.columns] == list(range(1, width + 1))
        assert len(direct.resultSet.results.columns) == width
        assert {column_values(direct, i) for i in range(width)} == {count}
        assert not direct.resultSet.results.arrowBatches
        assert direct.closeOperation is not None


def test_arms_of_the_columns_of_get_columns(raw: Client) -> None:
    direct = ask(raw, "GetColumns", catalogName="samples", schemaName="tpch", tableName="region")
    arms = {I8: "byteVal", I16: "i16Val", I32: "i32Val", TEXT: "stringVal"}
    for column, kind in zip(direct.resultSet.results.columns, TYPES.values(), strict=True):
        assert getattr(column, arms[kind]) is not None


def test_calls_that_are_not_answered_are_refused_by_name(raw: Client) -> None:
    request = ttypes.TGetDelegationTokenReq(sessionHandle=raw._session, owner="me", renewer="me")
    with pytest.raises(RemoteError, match="The call GetDelegationToken is not supported"):
        raw.call("GetDelegationToken", request)


def test_a_metadata_call_without_a_session_is_refused(raw: Client) -> None:
    request = ttypes.TGetTablesReq(
        sessionHandle=ttypes.TSessionHandle(sessionId=ttypes.THandleIdentifier(guid=b"0" * 16, secret=b"1" * 16))
    )
    with pytest.raises(RemoteError, match="INVALID_SESSION_HANDLE"):
        raw.call("GetTables", request)


def test_metadata_calls_that_are_given_up_leave_nothing_behind(raw: Client) -> None:
    handles = []
    for i in range(30):
        request = ttypes.TGetColumnsReq(sessionHandle=raw._session, catalogName="samples", runAsync=True)
        handle = raw.call("GetColumns", request).operationHandle
        handles.append(handle)
        if i % 3:
            raw.call("CancelOperation", ttypes.TCancelOperationReq(operationHandle=handle))
        if i % 3 < 2:
            raw.call("CloseOperation", ttypes.TCloseOperationReq(operationHandle=handle))
    for i, handle in enumerate(handles):
        ask_status = ttypes.TGetOperationStatusReq(operationHandle=handle)
        if i % 3 < 2:
            with pytest.raises(RemoteError, match="INVALID_OPERATION_HANDLE"):
                raw.call("GetOperationStatus", ask_status)
        else:
            state = raw.call("GetOperationStatus", ask_status).operationState
            assert state in (ttypes.TOperationState.CANCELED_STATE, ttypes.TOperationState.FINISHED_STATE)
    assert column_values(ask(raw, "GetColumns", catalogName="samples", tableName="region"), 0) == 3
    assert raw.execute("SELECT 1").table().num_rows == 1
