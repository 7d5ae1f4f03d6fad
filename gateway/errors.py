"""The error tree: a condition, its SQLSTATE, whose fault it is; imports nothing of ours.

Every failure that a client may see is a `GatewayError`. Its text is made in one place (`GatewayError.text`) in the shape of
Spark's messages: ``[CONDITION] message SQLSTATE: xxxxx`` and, where known, the position and the line of the statement.
Errors are values: they cross process borders through `to_wire` / `from_wire` and have no side effects.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

# Condition (`CLASS`, or `CLASS.SUB` where it differs) -> SQLSTATE, as in Spark's error-conditions file. Who raises names the
# condition only.
SQLSTATES: dict[str, str] = {
    "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION": "42845",
    "ALL_PARTITION_COLUMNS_NOT_ALLOWED": "KD005",
    "AMBIGUOUS_LATERAL_COLUMN_ALIAS": "42702",
    "AMBIGUOUS_REFERENCE": "42704",
    "AMBIGUOUS_REFERENCE_TO_FIELDS": "42000",
    "ARITHMETIC_OVERFLOW": "22003",
    "ASSIGNMENT_ARITY_MISMATCH": "42802",
    "BINARY_ARITHMETIC_OVERFLOW": "22003",
    "CANNOT_DECODE_URL": "22546",
    "CANNOT_DROP_REFERENCED_PRIMARY_KEY": "42893",
    "CANNOT_PARSE_TIMESTAMP": "22007",
    "CANNOT_RESOLVE_STAR_EXPAND": "42704",
    "CANNOT_UPDATE_FIELD": "0A000",
    "CANNOT_UP_CAST_DATATYPE": "42846",
    "CAST_INVALID_INPUT": "22018",
    "CAST_OVERFLOW": "22003",
    "CAST_OVERFLOW_IN_TABLE_INSERT": "22003",
    "CAST_WITHOUT_SUGGESTION": "42K09",
    "CATALOG_FILE_CORRUPT": "XX001",
    "COLLECTION_SIZE_LIMIT_EXCEEDED": "54000",
    "COMPARATOR_RETURNS_NULL": "22004",
    "COLUMN_ALIASES_NOT_ALLOWED": "42601",
    "COLUMN_ALREADY_EXISTS": "42711",
    "COLUMN_NOT_DEFINED_IN_TABLE": "42703",
    "COLUMN_NOT_FOUND": "42703",
    "COMPLEX_EXPRESSION_UNSUPPORTED_INPUT": "42K09",
    "CONFIG_NOT_AVAILABLE": "42K0I",
    "CONSTRAINT_ALREADY_EXISTS": "42710",
    "CONSTRAINT_DOES_NOT_EXIST": "42704",
    "CONVERSION_INVALID_INPUT": "22018",
    "COPY_INTO_SCHEMA_MISMATCH_WITH_TARGET_TABLE": "42KDG",
    "CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE": "42710",
    "CREATE_VIEW_COLUMN_ARITY_MISMATCH": "21S01",
    "DATATYPE_MISMATCH": "42K09",
    "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE": "42K09",
    "DATATYPE_MISSING_SIZE": "42K01",
    "DATETIME_FIELD_OUT_OF_BOUNDS": "22023",
    "DATETIME_OVERFLOW": "22008",
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION": "22003",
    "DELTA_ADD_CONSTRAINTS": "0A000",
    "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED": "42000",
    "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE": "0AKDE",
    "DELTA_CANNOT_MODIFY_APPEND_ONLY": "42809",
    "DELTA_CANNOT_RESTORE_TABLE_VERSION": "22003",
    "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER": "22003",
    "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER": "22003",
    "DELTA_CANNOT_VACUUM_LITE": "55000",
    "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE": "22003",
    "DELTA_CDC_READ_NULL_RANGE_BOUNDARY": "22004",
    "DELTA_CDC_START_VERSION_AFTER_LATEST": "22003",
    "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED": "0A000",
    "DELTA_CLUSTERING_COLUMN_MISSING_STATS": "22000",
    "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE": "42000",
    "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE": "0A000",
    "DELTA_CLUSTERING_WITH_ZORDER_BY": "42613",
    "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS": "54000",
    "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN": "0AKDC",
    "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE": "0AKDC",
    "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA": "42703",
    "DELTA_COLUMN_STRUCT_TYPE_MISMATCH": "2200G",
    "DELTA_CONCURRENT_APPEND": "2D521",
    "DELTA_CONCURRENT_DELETE_READ": "2D521",
    "DELTA_CONCURRENT_TRANSACTION": "2D521",
    "DELTA_CONFLICT_SET_COLUMN": "42701",
    "DELTA_CONSTRAINT_ALREADY_EXISTS": "42710",
    "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE": "42K09",
    "DELTA_CONSTRAINT_DOES_NOT_EXIST": "42704",
    "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH": "XXKDS",
    "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA": "0AKDC",
    "DELTA_CREATE_TABLE_SCHEME_MISMATCH": "42KD7",
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY": "42KD7",
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION": "42601",
    "DELTA_DUPLICATE_COLUMNS_FOUND": "42711",
    "DELTA_DUPLICATE_COLUMNS_ON_INSERT": "42701",
    "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS": "42701",
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT": "22001",
    "DELTA_FAILED_RECOGNIZE_PREDICATE": "42601",
    "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT": "42000",
    "DELTA_FEATURE_DROP_CHECKPOINT_FAILED": "22KD0",
    "DELTA_FEATURE_DROP_DEPENDENT_FEATURE": "55000",
    "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT": "55000",
    "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED": "42000",
    "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE": "0AKDC",
    "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE": "0AKDC",
    "DELTA_FILE_NOT_FOUND": "58030",
    "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE": "42K09",
    "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH": "42K09",
    "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED": "429BQ",
    "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN": "429BQ",
    "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED": "42808",
    "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED": "42601",
    "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE": "428H2",
    "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED": "42808",
    "DELTA_INSERT_COLUMN_ARITY_MISMATCH": "42802",
    "DELTA_INSERT_COLUMN_MISMATCH": "42802",
    "DELTA_INVALID_CDC_RANGE": "22003",
    "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES": "42K05",
    "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING": "42K05",
    "DELTA_INVALID_FORMAT": "XXKDS",
    "DELTA_LOG_CORRUPT": "XXKDS",
    "DELTA_MERGE_ADD_VOID_COLUMN": "42K09",
    "DELTA_MERGE_UNRESOLVED_EXPRESSION": "42601",
    "DELTA_METADATA_CHANGED": "2D521",
    "DELTA_METADATA_MISMATCH": "42KDG",
    "DELTA_MISSING_CHANGE_DATA": "KD002",
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE": "21506",
    "DELTA_NESTED_NOT_NULL_CONSTRAINT": "0AKDC",
    "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION": "23512",
    "DELTA_NEW_NOT_NULL_VIOLATION": "23512",
    "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT": "42621",
    "DELTA_NO_COMMITS_FOUND": "KD006",
    "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED": "0AKDC",
    "DELTA_NON_PARTITION_COLUMN_REFERENCE": "42P10",
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": "23502",
    "DELTA_ONLY_OPERATION": "0AKDD",
    "DELTA_OPERATION_NOT_ALLOWED": "0AKDC",
    "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED": "42601",
    "DELTA_PROTOCOL_CHANGED": "2D521",
    "DELTA_REPLACE_WHERE_MISMATCH": "44000",
    "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS": "22000",
    "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN": "42P10",
    "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE": "42809",
    "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS": "42711",
    "DELTA_TABLE_ALREADY_EXISTS": "42P07",
    "DELTA_TABLE_LOCATION_MISMATCH": "42613",
    "DELTA_TABLE_NOT_FOUND": "42P01",
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": "42816",
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": "42816",
    "DELTA_TIMESTAMP_INVALID": "42816",
    "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED": "0AKDC",
    "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP": "0AKDC",
    "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE": "0AKDC",
    "DELTA_UNSUPPORTED_DATA_TYPES": "0AKDC",
    "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN": "0AKDC",
    "DELTA_UNSUPPORTED_DROP_COLUMN": "0AKDC",
    "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN": "0AKDC",
    "DELTA_UNSUPPORTED_EXPRESSION": "0A000",
    "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN": "42621",
    "DELTA_UNSUPPORTED_NON_EMPTY_CLONE": "0AKDC",
    "DELTA_UNSUPPORTED_RENAME_COLUMN": "0AKDC",
    "DELTA_UNSUPPORTED_SOURCE": "0AKDD",
    "DELTA_UNSUPPORTED_SUBQUERY": "0AKDC",
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION": "0AKDC",
    "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION": "42846",
    "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT": "22003",
    "DELTA_VERSION_NOT_FOUND": "22003",
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": "23001",
    "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST": "42703",
    "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS": "KD00D",
    "DELTA_ZORDERING_ON_PARTITION_COLUMN": "42P10",
    "DESCRIBE_JSON_NOT_EXTENDED": "0A000",
    "DISTINCT_WINDOW_FUNCTION_UNSUPPORTED": "0A000",
    "DIVIDE_BY_ZERO": "22012",
    "DUPLICATED_CTE_NAMES": "42602",
    "DUPLICATED_MAP_KEY": "23505",
    "DUPLICATE_CLAUSES": "42614",
    "DUPLICATE_KEY": "23505",
    "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT": "4274K",
    "EMPTY_LOCAL_FILE_IN_STAGING_ACCESS_QUERY": "22023",
    "EXCEED_LIMIT_LENGTH": "54006",
    "EXCEPT_OVERLAPPING_COLUMNS": "42702",
    "EXPECT_PERMANENT_VIEW_NOT_TEMP": "42809",
    "EXPECT_TABLE_NOT_VIEW": "42809",
    "EXPECT_VIEW_NOT_TABLE": "42809",
    "EXPRESSION_NOT_ALLOWED": "42501",
    "EXPRESSION_TYPE_IS_NOT_ORDERABLE": "42822",
    "FAILED_FUNCTION_CALL": "38000",
    "FAILED_READ_FILE": "KD001",
    "FIELD_ALREADY_EXISTS": "42710",
    "FIELD_NOT_FOUND": "42704",
    "FILE_IN_STAGING_PATH_ALREADY_EXISTS": "42K04",
    "FOREIGN_KEY_MISMATCH": "42830",
    "GENERATED_COLUMN_WITH_DEFAULT_VALUE": "42623",
    "GROUPING_COLUMN_MISMATCH": "42803",
    "GROUPING_ID_COLUMN_MISMATCH": "42803",
    "GROUP_BY_AGGREGATE": "42903",
    "GROUP_BY_POS_AGGREGATE": "42903",
    "GROUP_BY_POS_OUT_OF_RANGE": "42805",
    "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE": "42822",
    "HISTORY_UNREADABLE": "58030",
    "IDENTITY_COLUMNS_DUPLICATED_SEQUENCE_GENERATOR_OPTION": "42601",
    "IDENTITY_COLUMNS_ILLEGAL_STEP": "42611",
    "IDENTITY_COLUMN_WITH_DEFAULT_VALUE": "42623",
    "ILLEGAL_DAY_OF_WEEK": "22009",
    "INCOMPARABLE_PIVOT_COLUMN": "42818",
    "INCOMPATIBLE_COLUMN_TYPE": "42825",
    "INCOMPATIBLE_JOIN_TYPES": "42613",
    "INCOMPATIBLE_VIEW_SCHEMA_CHANGE": "51024",
    "INCOMPLETE_TYPE_DEFINITION": "42K01",
    "INCONSISTENT_BEHAVIOR_CROSS_VERSION": "42K0B",
    "INSERT_COLUMN_ARITY_MISMATCH": "21S01",
    "INTERNAL_ERROR": "XX000",
    "INTERVAL_ARITHMETIC_OVERFLOW": "22015",
    "INTERVAL_DIVIDED_BY_ZERO": "22012",
    "INVALID_AGGREGATE_FILTER": "42903",
    "INVALID_ARRAY_INDEX": "22003",
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": "22003",
    "INVALID_CONF_VALUE": "22022",
    "INVALID_CONSTRAINT_CHARACTERISTICS": "42613",
    "INVALID_CORRUPT_RECORD_TYPE": "42804",
    "INVALID_DATETIME_PATTERN": "22007",
    "INVALID_DEFAULT_VALUE": "42623",
    "INVALID_ESC": "42604",
    "INVALID_ESCAPE_CHAR": "42604",
    "INVALID_EXTRACT_BASE_FIELD_TYPE": "42000",
    "INVALID_EXTRACT_FIELD": "42601",
    "INVALID_EXTRACT_FIELD_TYPE": "42000",
    "INVALID_FETCH_ORIENTATION": "HY106",
    "INVALID_FIELD_NAME": "42000",
    "INVALID_FORMAT": "42601",
    "INVALID_FRACTION_OF_SECOND": "22023",
    "INVALID_IDENTIFIER": "42602",
    "INVALID_INDEX_OF_ZERO": "22003",
    "INVALID_INLINE_TABLE": "42000",
    "INVALID_INTERVAL_FORMAT": "22006",
    "INVALID_LAMBDA_FUNCTION_CALL": "42K0D",
    "INVALID_LATERAL_JOIN_TYPE": "42613",
    "INVALID_LIMIT_LIKE_EXPRESSION": "42K0E",
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS": "42K0E",
    "INVALID_NUMERIC_LITERAL_RANGE": "22003",
    "INVALID_OPERATION_HANDLE": "HY000",
    "INVALID_OPTIONS": "42K06",
    "INVALID_PARAMETER_MARKER_VALUE": "22023",
    "INVALID_PARAMETER_VALUE": "22023",
    "INVALID_PARTITION_COLUMN_DATA_TYPE": "0A000",
    "INVALID_REGEXP_REPLACE": "22023",
    "INVALID_RESET_COMMAND_FORMAT": "42000",
    "INVALID_SCHEMA": "42K07",
    "INVALID_SESSION_HANDLE": "08003",
    "INVALID_SET_SYNTAX": "42000",
    "INVALID_SQL_SYNTAX": "42000",
    "INVALID_STAGING_PATH_IN_STAGING_ACCESS_QUERY": "42604",
    "INVALID_SUBQUERY_EXPRESSION": "42823",
    "INVALID_TEMP_OBJ_REFERENCE": "42K0F",
    "INVALID_TIMEZONE": "22009",
    "INVALID_TIME_TRAVEL_SPEC": "42K0E",
    "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR": "42K0E",
    "INVALID_TYPED_LITERAL": "42604",
    "INVALID_URL": "22P02",
    "INVALID_USAGE_OF_STAR_OR_REGEX": "42000",
    "INVALID_USAGE_OF_STAR_WITH_TABLE_IDENTIFIER_IN_COUNT": "42000",
    "INVALID_UTF8_STRING": "22029",
    "INVALID_VARIANT_CAST": "22023",
    "INVALID_VARIANT_GET_PATH": "22023",
    "INVALID_WHERE_CONDITION": "42903",
    "INVALID_WITHIN_GROUP_EXPRESSION": "42K0K",
    "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE": "42K0E",
    "LOCATION_ALREADY_EXISTS": "42710",
    "MALFORMED_CHARACTER_CODING": "22000",
    "MALFORMED_RECORD_IN_PARSING": "22023",
    "MALFORMED_VARIANT": "22023",
    "MERGE_INSERT_VALUE_COUNT_MISMATCH": "21S01",
    "MERGE_WITHOUT_WHEN": "42601",
    "MISSING_AGGREGATION": "42803",
    "MISSING_GROUP_BY": "42803",
    "MISSING_WINDOW_SPECIFICATION": "42P20",
    "MULTIPLE_PRIMARY_KEYS": "42P16",
    "MULTI_ALIAS_WITHOUT_GENERATOR": "42K0E",
    "NAMED_PARAMETERS_NOT_SUPPORTED": "4274K",
    "NESTED_AGGREGATE_FUNCTION": "42607",
    "NON_FOLDABLE_ARGUMENT": "42K08",
    "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION": "42613",
    "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION": "42613",
    "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION": "42613",
    "NON_LITERAL_PIVOT_VALUES": "42K08",
    "NOT_ALLOWED_IN_FROM": "42601",
    "NOT_A_CONSTANT_STRING": "42601",
    "NOT_A_SCALAR_FUNCTION": "42887",
    "NOT_A_TABLE_FUNCTION": "42887",
    "NOT_READ_ONLY": "25006",
    "NOT_SUPPORTED_CHANGE_COLUMN": "0A000",
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE": "0A000",
    "NO_SUCH_CATALOG_EXCEPTION": "42704",
    "NULL_MAP_KEY": "2200E",
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": "22003",
    "NUMERIC_VALUE_OUT_OF_RANGE": "22003",
    "NUM_COLUMNS_MISMATCH": "42826",
    "NUM_TABLE_VALUE_ALIASES_MISMATCH": "42826",
    "OPERATION_CANCELED": "HY008",
    "ORDER_BY_POS_OUT_OF_RANGE": "42805",
    "PARSE_EMPTY_STATEMENT": "42617",
    "PARSE_SYNTAX_ERROR": "42601",
    "PATH_NOT_ALLOWED": "42501",
    "PATH_NOT_FOUND": "42K03",
    "PERMISSION_DENIED": "42501",
    "PIPELINE_RUNNING": "55006",
    "PROTOCOL_VERSION_TOO_OLD": "08004",
    "PROTOCOL_VERSION_UNKNOWN": "08004",
    "QUALIFY_AGGREGATE_NOT_ALLOWED": "42903",
    "QUALIFY_REQUIRES_WINDOW_FUNCTION": "42903",
    "QUERY_EXECUTION_TIMEOUT_EXCEEDED": "57KD0",
    "RECURSIVE_VIEW": "42K0H",
    "REMAINDER_BY_ZERO": "22012",
    "REQUIRED_PARAMETER_NOT_FOUND": "4274K",
    "RESOURCE_EXHAUSTED": "53200",
    "RESULT_TOO_LARGE": "54000",
    "ROUTINE_ALREADY_EXISTS": "42723",
    "ROUTINE_NOT_FOUND": "42883",
    "SCALAR_SUBQUERY_IS_IN_GROUP_BY_OR_AGGREGATE_FUNCTION": "0A000",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": "21000",
    "SCHEMA_ALREADY_EXISTS": "42P06",
    "SCHEMA_NOT_EMPTY": "2BP01",
    "SCHEMA_NOT_FOUND": "42704",
    "SERVER_SHUTTING_DOWN": "57P01",
    "SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE": "42K05",
    "STAR_GROUP_BY_POS": "0A000",
    "STATEMENT_TOO_COMPLEX": "54001",
    "STATEMENT_TOO_LARGE": "54000",
    "TABLE_OR_VIEW_ALREADY_EXISTS": "42P07",
    "TABLE_OR_VIEW_NOT_FOUND": "42P01",
    "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS": "42P07",
    "UDTF_ALIAS_NUMBER_MISMATCH": "42802",
    "UNABLE_TO_INFER_SCHEMA": "42KD9",
    "UNAUTHENTICATED": "28000",
    "UNBOUND_SQL_PARAMETER": "42P02",
    "UNCLOSED_BRACKETED_COMMENT": "42601",
    "UNEXPECTED_INPUT_TYPE": "42K09",
    "UNEXPECTED_POSITIONAL_ARGUMENT": "4274K",
    "UNPIVOT_VALUE_DATA_TYPE_MISMATCH": "42K09",
    "UNPIVOT_VALUE_SIZE_MISMATCH": "428C4",
    "UNRECOGNIZED_PARAMETER_NAME": "4274K",
    "UNRESOLVED_ALL_IN_GROUP_BY": "42803",
    "UNRESOLVED_COLUMN": "42703",
    "UNRESOLVED_ROUTINE": "42883",
    "UNRESOLVED_TABLE_VALUED_FUNCTION": "42883",
    "UNRESOLVED_USING_COLUMN_FOR_JOIN": "42703",
    "UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING": "0A000",
    "UNSUPPORTED_CONSTRAINT_CHARACTERISTIC": "0A000",
    "UNSUPPORTED_DATATYPE": "0A000",
    "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN": "42621",
    "UNSUPPORTED_EXPR_FOR_OPERATOR": "42K0E",
    "UNSUPPORTED_EXPR_FOR_WINDOW": "42P20",
    "UNSUPPORTED_FEATURE": "0A000",
    "UNSUPPORTED_FUNCTION": "0A000",
    "UNSUPPORTED_GENERATOR": "42K0E",
    "UNSUPPORTED_GROUPING_EXPRESSION": "42K0E",
    "UNSUPPORTED_RESULT_TYPE": "0A000",
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY": "0A000",
    "UNSUPPORTED_TABLE_FEATURE": "0A000",
    "UNSUPPORTED_TYPED_LITERAL": "0A000",
    "USER_RAISED_EXCEPTION": "P0001",
    "VALUE_OUT_OF_RANGE": "22003",
    "VIEW_EXCEED_MAX_NESTED_DEPTH": "54K00",
    "VOLUME_ALREADY_EXISTS": "42000",
    "VOLUME_DOES_NOT_EXIST": "42704",
    "WINDOW_FUNCTION_AND_FRAME_MISMATCH": "42K0E",
    "WINDOW_FUNCTION_FRAME_NOT_ORDERED": "42601",
    "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE": "42601",
    "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE": "42601",
    "WORKER_LOST": "08006",
    "WRITE_CONFLICT": "40001",
    "WRITE_FAILED": "58030",
    "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED": "0AKDE",
    "WRONG_COMMAND_FOR_OBJECT_TYPE": "42809",
    "WRONG_NUM_ARGS": "42605",
    "_LEGACY_ERROR_TEMP_0035": "42000",
    "_LEGACY_ERROR_TEMP_0064": "42000",
    "_LEGACY_ERROR_TEMP_1035": "42000",
    "_LEGACY_ERROR_TEMP_1104": "42000",
    "_LEGACY_ERROR_TEMP_1210": "42000",
}


DISK_FULL = "53100"  # the SQLSTATE
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def sqlstate_of(condition: str) -> str:
    """SQLSTATE of a condition (`CLASS` or `CLASS.SUB`); XX000 for one that the table does not know."""
    return SQLSTATES.get(condition) or SQLSTATES.get(condition.partition(".")[0], "XX000")


class Span(NamedTuple):
    """A piece of the user's text: code point offsets `start` (inclusive) and `stop` (exclusive)."""

    start: int
    stop: int


_LONGEST = 4000  # characters of a message that are shown: some quote the value at fault
_MARK = 40  # and of what is said where one was cut


def _cut(message: str) -> str:
    """A message that is not too long; one that was cut already stays as it is."""
    if len(message) <= _LONGEST + _MARK:
        return message
    return f"{message[:_LONGEST]}… ({len(message)} characters)"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line (from 1) and column (from 0) of a code point offset in `text`."""
    offset = max(0, min(offset, len(text)))
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1)


class GatewayError(Exception):
    """Root of all errors shown to a client.

    Attributes:
        condition: Spark-style error condition, ``CLASS`` or ``CLASS.SUB``.
        sqlstate: five characters; given only where an error came with its own, otherwise that of the condition.
        message: one sentence or two, without condition, SQLSTATE and position.
        span: the piece of the statement that is at fault, if known.
        retryable: the same statement may succeed when sent again.
        statement: the text that `span` points into, filled in where the statement ran.
    """

    fault: ClassVar[str] = "server"

    def __init__(
        self,
        condition: str,
        message: str,
        *,
        sqlstate: str | None = None,
        span: Span | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.condition = condition
        self.message = message
        self.sqlstate = sqlstate or sqlstate_of(condition)
        self.span = span
        self.retryable = retryable
        self.statement: str | None = None

    def text(self, statement: str | None = None) -> str:
        """The message as shown to users; where the statement is known, position and the source line are added."""
        statement = self.statement if statement is None else statement
        head = f"[{self.condition}] {_cut(self.message.rstrip())} SQLSTATE: {self.sqlstate}"
        if statement is None or self.span is None:
            return head
        line, col = line_and_column(statement, self.span.start)
        source = statement.split("\n")[line - 1]
        width = max(1, min(self.span.stop - self.span.start, len(source) - col))
        indent = col
        if len(source) > 200:
            left = max(0, col - 80)
            source, indent = source[left : left + 200], col - left
            width = min(width, 120)
        caret = " " * indent + "^" * width
        return f"{head} (line {line}, pos {col})\n\n== SQL (line {line}, position {col + 1}) ==\n{source}\n{caret}"

    def __str__(self) -> str:
        return self.text()

    def at(self, span: Span | None) -> GatewayError:
        """The same error with a position, unless it has one already."""
        if self.span is None:
            self.span = span
        return self

    def to_wire(self) -> dict[str, Any]:
        """Plain values from which `from_wire` makes an equal error in another process."""
        return {
            "kind": type(self).__name__,
            "condition": self.condition,
            "message": _cut(self.message),
            "sqlstate": self.sqlstate,
            "span": (self.span.start, self.span.stop) if self.span else None,
            "retryable": self.retryable,
            "statement": self.statement if self.span else None,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return (from_wire, (self.to_wire(),))


class UserError(GatewayError):
    """The statement, its data or its parameters are wrong; Spark raises here too."""

    fault = "client"


class UnsupportedError(GatewayError):
    """Right for Databricks, not (yet) answered here; always names the construct. SQLSTATE 0A000."""

    fault = "client"


class ProtocolError(GatewayError):
    """The client's bytes, handle or request are wrong."""

    fault = "client"


class ResourceError(GatewayError):
    """A limit (memory, time, size, depth, disk) was reached."""

    fault = "client"


class CanceledError(GatewayError):
    """The statement was cancelled by its owner."""

    fault = "client"


class ServerError(GatewayError):
    """Our fault, or that of a file or process that we depend on."""


class ConfigError(GatewayError):
    """A setting is unknown or has a bad value; the process exits with 2 and names it."""

    fault = "client"

    def __init__(self, setting: str, message: str) -> None:
        super().__init__("INVALID_CONF_VALUE", f"{setting}: {message}")
        self.setting = setting


def disk_full(text: str) -> ResourceError:
    """No space is left on a disk, or of a quota on it."""
    return ResourceError("RESOURCE_EXHAUSTED", text, sqlstate=DISK_FULL)


def is_disk_full(error: BaseException) -> bool:
    """Whether `error` is what the system, or one of our own errors, says of a full disk or a used up quota."""
    if isinstance(error, GatewayError):
        return error.sqlstate == DISK_FULL
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def full_disk_told(doing: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """A full disk as an error that says what failed, and a `path` on the disk; writing names none by itself."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        raise disk_full(f"{doing}: no space left on the disk of {os.fspath(path)}.") from error


@contextmanager
def storage_told(doing: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """The same for whatever a file system refuses: it is read-only or broken, or there is no permission."""
    try:
        with full_disk_told(doing, path):
            yield
    except OSError as error:
        raise ServerError("WRITE_FAILED", f"{doing}: {error.strerror or error} ({os.fspath(path)}).") from error


def free_space(*folders: str | os.PathLike[str]) -> str:
    """How much room there is on the disks of `folders`, in words, the fullest first; "" if none of them is there."""
    found = []
    for folder in dict.fromkeys(os.fspath(f) for f in folders):
        try:
            disk = os.statvfs(folder)
        except OSError:
            continue
        found.append((disk.f_bavail * disk.f_frsize, folder))
    return ", ".join(f"{free >> 20} MiB free in {folder}" for free, folder in sorted(found))


_KINDS: dict[str, type[GatewayError]] = {
    c.__name__: c
    for c in (GatewayError, UserError, UnsupportedError, ProtocolError, ResourceError, CanceledError, ServerError)
}


def from_wire(wire: dict[str, Any]) -> GatewayError:
    """The error that `GatewayError.to_wire` described."""
    span = wire["span"]
    error = _KINDS.get(wire["kind"], GatewayError)(
        wire["condition"],
        wire["message"],
        sqlstate=wire["sqlstate"],
        span=Span(*span) if span else None,
        retryable=wire["retryable"],
    )
    error.statement = wire.get("statement")
    return error


def unsupported(construct: str, span: Span | None = None) -> UnsupportedError:
    """Refusal by name: `construct` is what the user wrote ("TABLESAMPLE", "function foo")."""
    return UnsupportedError("UNSUPPORTED_FEATURE", f"{construct} is not supported.", span=span)
