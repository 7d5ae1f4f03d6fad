"""Answers of GetInfo, one row per question; what is not listed is refused by number.

Hive's JDBC driver asks 17 and 18 at every connect; Simba's ODBC driver refuses servers that are not called Spark and reads
the version as Spark's.
"""

from __future__ import annotations

from typing import Any

from gateway.errors import unsupported
from gateway.thrift_gen.TCLIService import ttypes

_Type = ttypes.TGetInfoType

SPARK_VERSION = "4.0.1"

STRINGS: dict[int, str] = {
    _Type.CLI_DATA_SOURCE_NAME: "Spark SQL",
    _Type.CLI_SERVER_NAME: "Spark SQL",
    _Type.CLI_SEARCH_PATTERN_ESCAPE: "\\",
    _Type.CLI_DBMS_NAME: "Spark SQL",
    _Type.CLI_DBMS_VER: SPARK_VERSION,
    _Type.CLI_ACCESSIBLE_TABLES: "Y",
    _Type.CLI_ACCESSIBLE_PROCEDURES: "N",
    _Type.CLI_DATA_SOURCE_READ_ONLY: "N",
    _Type.CLI_IDENTIFIER_QUOTE_CHAR: "`",
    _Type.CLI_INTEGRITY: "N",
    _Type.CLI_ORDER_BY_COLUMNS_IN_SELECT: "N",
    _Type.CLI_SPECIAL_CHARACTERS: "",
    _Type.CLI_XOPEN_CLI_YEAR: "1995",
    _Type.CLI_DESCRIBE_PARAMETER: "N",
    _Type.CLI_CATALOG_NAME: "Y",
    _Type.CLI_COLLATION_SEQ: "UTF8_BINARY",
}
# Lengths and counts; 0 means without a limit of its own.
LENGTHS: dict[int, int] = {
    _Type.CLI_MAX_COLUMN_NAME_LEN: 255,
    _Type.CLI_MAX_SCHEMA_NAME_LEN: 255,
    _Type.CLI_MAX_CATALOG_NAME_LEN: 255,
    _Type.CLI_MAX_TABLE_NAME_LEN: 255,
    _Type.CLI_MAX_IDENTIFIER_LEN: 255,
    _Type.CLI_MAX_COLUMNS_IN_GROUP_BY: 0,
    _Type.CLI_MAX_COLUMNS_IN_ORDER_BY: 0,
    _Type.CLI_MAX_COLUMNS_IN_SELECT: 0,
    _Type.CLI_MAX_COLUMNS_IN_TABLE: 0,
    _Type.CLI_MAX_ROW_SIZE: 0,
    _Type.CLI_MAX_STATEMENT_LEN: 0,
    _Type.CLI_MAX_TABLES_IN_SELECT: 0,
    _Type.CLI_MAX_USER_NAME_LEN: 0,
}
SMALL: dict[int, int] = {
    _Type.CLI_TXN_CAPABLE: 0,  # SQL_TC_NONE
    _Type.CLI_NULL_COLLATION: 1,  # SQL_NC_LOW: NULL sorts before every value
    _Type.CLI_IDENTIFIER_CASE: 4,  # SQL_IC_MIXED
}


def answer(question: int | None) -> Any:
    """TGetInfoValue for a TGetInfoType. Raises UnsupportedError."""
    if question in STRINGS:
        return ttypes.TGetInfoValue(stringValue=STRINGS[question])
    if question in LENGTHS:
        return ttypes.TGetInfoValue(lenValue=LENGTHS[question])
    if question in SMALL:
        return ttypes.TGetInfoValue(smallIntValue=SMALL[question])
    raise unsupported(f"GetInfo type {question}")
