"""Every type, state, option and error has its Thrift form, for each version of a client."""

from itertools import product

import pytest

from gateway.errors import ProtocolError, UserError
from gateway.protocol import convert, orientation, versions
from gateway.service.api import Handle, OperationStatus, ResultOptions, State
from gateway.sqltypes import (
    DAY_TIME,
    INT,
    STRING,
    TYPES,
    VOID,
    YEAR_MONTH,
    DataType,
    StructField,
    array,
    char,
    decimal,
    map_of,
    struct,
    varchar,
)
from gateway.thrift_gen.TCLIService import ttypes

HANDLE = Handle(b"g" * 16, b"s" * 16)
IDS = ttypes.TTypeId


def test_every_row_of_the_type_table_has_a_thrift_type() -> None:
    for row in TYPES:
        assert isinstance(getattr(IDS, row.thrift), int)
        assert any(entry[2] == row.slot.value for entry in ttypes.TColumn.thrift_spec if entry)


def test_every_state_and_orientation_has_a_number() -> None:
    assert set(convert.STATES) == set(State)
    assert len(set(convert.STATES.values())) == len(State)
    numbers = set(ttypes.TFetchOrientation._VALUES_TO_NAMES)
    assert set(orientation.ORIENTATIONS) == numbers | {None}
    for number, name in orientation.ORIENTATIONS.items():
        if number is not None:
            assert ttypes.TFetchOrientation._VALUES_TO_NAMES[number] == f"FETCH_{name}"


def test_schema() -> None:
    schema = struct(
        StructField("a", INT),
        StructField("b", decimal(10, 2), comment="money"),
        StructField("b", array(INT)),
        StructField("c", map_of(STRING, INT)),
        StructField("d", struct(StructField("x", INT))),
        StructField("e", varchar(3)),
        StructField("f", char(3)),
    )
    columns = convert.table_schema(schema, ResultOptions()).columns
    assert [c.columnName for c in columns] == ["a", "b", "b", "c", "d", "e", "f"]
    assert [c.position for c in columns] == [1, 2, 3, 4, 5, 6, 7]
    assert [c.comment for c in columns] == ["", "money", "", "", "", "", ""]
    entries = [c.typeDesc.types[0].primitiveEntry for c in columns]
    assert [e.type for e in entries] == [
        IDS.INT_TYPE,
        IDS.DECIMAL_TYPE,
        IDS.ARRAY_TYPE,
        IDS.MAP_TYPE,
        IDS.STRUCT_TYPE,
        IDS.STRING_TYPE,
        IDS.STRING_TYPE,
    ]
    value = ttypes.TTypeQualifierValue
    assert entries[1].typeQualifiers.qualifiers == {"precision": value(i32Value=10), "scale": value(i32Value=2)}
    assert [e.typeQualifiers for e in entries[2:]] == [None] * 5


@pytest.mark.parametrize(
    ("type_", "plain", "asked"),
    [
        (VOID, "STRING_TYPE", "NULL_TYPE"),
        (YEAR_MONTH, "STRING_TYPE", "INTERVAL_YEAR_MONTH_TYPE"),
        (DAY_TIME, "STRING_TYPE", "INTERVAL_DAY_TIME_TYPE"),
    ],
)
def test_types_that_old_clients_do_not_know(type_: DataType, plain: str, asked: str) -> None:
    assert convert.type_id(type_, ResultOptions()) == getattr(IDS, plain)
    both = ResultOptions(interval_as_arrow=True, null_as_arrow=True)
    assert convert.type_id(type_, both) == getattr(IDS, asked)


FLAGS = ("timestampAsArrow", "decimalAsArrow", "complexTypesAsArrow", "intervalTypesAsArrow", "nullTypeAsArrow")


@pytest.mark.parametrize("protocol", [5, 9, *range(0xA501, 0xA50A)])
def test_options_for_every_version_and_flag(protocol: int) -> None:
    native = protocol >= versions.SPARK_V5
    for values in product([None, False, True], repeat=len(FLAGS)):
        types = ttypes.TSparkArrowTypes(**dict(zip(FLAGS, values, strict=True)))
        request = ttypes.TExecuteStatementReq(canReadArrowResult=True, useArrowNativeTypes=types)
        options = convert.result_options(request, protocol, {})
        got = (
            options.timestamp_as_arrow,
            options.decimal_as_arrow,
            options.complex_as_arrow,
            options.interval_as_arrow,
            options.null_as_arrow,
        )
        assert got == tuple(native and value is True for value in values)
        assert options.arrow == versions.is_spark(protocol)


@pytest.mark.parametrize(("arrow", "lz4", "links"), list(product([None, False, True], repeat=3)))
def test_options_of_the_request(arrow: bool | None, lz4: bool | None, links: bool | None) -> None:
    request = ttypes.TExecuteStatementReq(canReadArrowResult=arrow, canDecompressLZ4Result=lz4, canDownloadResult=links)
    options = convert.result_options(request, 0xA508, {})
    assert (options.arrow, options.lz4, options.links) == (arrow is True, lz4 is True, links is True)
    hive = convert.result_options(request, 5, {})
    assert (hive.arrow, hive.lz4, hive.links) == (False, False, False)
    # No flags at all: nothing native, as Spark's own server reads it.
    assert not (options.timestamp_as_arrow or options.decimal_as_arrow or options.complex_as_arrow)


@pytest.mark.parametrize(
    ("origin", "near"),
    [
        ("http://localhost:8080", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:8080", True),
        ("https://sql.example.org", False),
        ("http://localhost.example.org:8080", False),
        ("http://10.0.0.1:8080", False),
        ("", False),
    ],
)
def test_who_is_on_this_machine(origin: str, near: bool) -> None:
    assert convert.is_near(origin) is near
    request = ttypes.TExecuteStatementReq(canReadArrowResult=True)
    assert convert.result_options(request, 0xA508, {}, near=near).near is near


def test_timestamp_as_string_overrides_the_flag() -> None:
    key = "spark.thriftserver.arrowBasedRowSet.timestampAsString"
    request = ttypes.TExecuteStatementReq(
        canReadArrowResult=True, useArrowNativeTypes=ttypes.TSparkArrowTypes(timestampAsArrow=True)
    )
    assert convert.result_options(request, 0xA508, {key: "false"}).timestamp_as_arrow
    assert not convert.result_options(request, 0xA508, {key: "TRUE"}).timestamp_as_arrow
    request.confOverlay = {key: "false"}
    assert convert.result_options(request, 0xA508, {key: "true"}).timestamp_as_arrow


def test_settings_of_hive_jdbc() -> None:
    sent = {
        "use:database": "sales",
        "set:hiveconf:spark.sql.ansi.enabled": "true",
        "set:hivevar:x": "1",
        "TIMEZONE": "UTC",
    }
    settings, catalog, schema = convert.settings_from(sent)
    assert settings == {"spark.sql.ansi.enabled": "true", "x": "1", "TIMEZONE": "UTC"}
    assert (catalog, schema) == (None, "sales")
    assert convert.settings_from({"use:catalog": "samples"}) == ({}, "samples", None)
    assert convert.settings_from({"use:catalog": "SPARK"}) == ({}, None, None)
    assert convert.settings_from(None) == ({}, None, None)


@pytest.mark.parametrize(("sent", "meant"), [("SPARK", None), ("spark", None), (None, None), ("main", "main")])
def test_spark_means_the_default_catalog(sent: str | None, meant: str | None) -> None:
    assert convert.catalog_from(sent) == meant


def test_error_sets_both_texts_and_no_java_trace() -> None:
    status = convert.failure(UserError("DIVIDE_BY_ZERO", "Division by zero."))
    assert status.statusCode == ttypes.TStatusCode.ERROR_STATUS
    assert status.errorMessage == status.displayMessage == "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
    assert (status.sqlState, status.infoMessages) == ("22012", None)


def test_bad_handle_is_told_apart() -> None:
    for condition in convert.HANDLE_CONDITIONS:
        code = convert.failure(ProtocolError(condition, "Invalid.")).statusCode
        assert code == ttypes.TStatusCode.INVALID_HANDLE_STATUS


def test_success_has_no_texts() -> None:
    status = convert.operation_status(OperationStatus(HANDLE, "EXECUTE_STATEMENT", State.FINISHED))
    assert (status.errorMessage, status.displayMessage, status.sqlState, status.diagnosticInfo) == (None,) * 4
    assert status.hasResultSet is True


@pytest.mark.parametrize(
    ("state", "fraction", "code", "percentage"),
    [
        (State.RUNNING, None, "NOT_AVAILABLE", 0.0),
        (State.RUNNING, 0.25, "IN_PROGRESS", 0.25),
        (State.FINISHED, None, "COMPLETE", 1.0),
    ],
)
def test_progress(state: State, fraction: float | None, code: str, percentage: float) -> None:
    status = OperationStatus(HANDLE, "EXECUTE_STATEMENT", state, progress_fraction=fraction, progress_text="x")
    assert convert.operation_status(status).progressUpdateResponse is None
    progress = convert.operation_status(status, with_progress=True).progressUpdateResponse
    assert progress.status == getattr(ttypes.TJobExecutionStatus, code)
    assert (progress.progressedPercentage, progress.footerSummary) == (percentage, "x")
    assert len(progress.headerNames) == 9, "beeline's format has as many places"
    assert [len(row) for row in progress.rows] == [9]


@pytest.mark.parametrize(
    "handle",
    [
        None,
        ttypes.TSessionHandle(),
        ttypes.TSessionHandle(sessionId=ttypes.THandleIdentifier(guid=b"g" * 16)),
        ttypes.TSessionHandle(sessionId=ttypes.THandleIdentifier(guid=b"g" * 15, secret=b"s" * 16)),
        ttypes.TSessionHandle(sessionId=ttypes.THandleIdentifier(guid=b"g" * 16, secret=b"s" * 1600)),
    ],
)
def test_misshapen_session_handles(handle: object) -> None:
    with pytest.raises(ProtocolError, match="Invalid SessionHandle") as caught:
        convert.session_from(handle)
    assert caught.value.condition == "INVALID_SESSION_HANDLE"


def test_handles_round_trip() -> None:
    assert convert.session_from(convert.session_handle(HANDLE, 0xA508)) == HANDLE
    assert convert.session_handle(HANDLE, 0xA508).serverProtocolVersion == 0xA508
    assert convert.session_handle(HANDLE, 5).serverProtocolVersion is None
    for name in ttypes.TOperationType._NAMES_TO_VALUES:
        sent = convert.operation_handle(OperationStatus(HANDLE, name, State.RUNNING))
        assert convert.operation_from(sent) == HANDLE
        assert sent.operationType == ttypes.TOperationType._NAMES_TO_VALUES[name]
    with pytest.raises(ProtocolError, match="Invalid OperationHandle:"):
        convert.operation_from(None)


def parameter(**fields: object) -> object:
    return ttypes.TSparkParameter(**fields)


def text(value: str) -> object:
    return ttypes.TSparkParameterValue(stringValue=value)


def test_positional_parameters_of_the_python_client_keep_their_order() -> None:
    sent = [parameter(ordinal=1, type="INT", value=text(str(i))) for i in range(5)]
    assert [(p.name, p.type, p.value) for p in convert.parameters_from(sent)] == [
        (None, "INT", str(i)) for i in range(5)
    ]


def test_positional_parameters_with_ordinals() -> None:
    sent = [parameter(ordinal=i, type="STRING", value=text(str(i))) for i in (2, 1, 3)]
    assert [p.value for p in convert.parameters_from(sent)] == ["1", "2", "3"]


def test_named_parameters_and_kinds_of_values() -> None:
    value = ttypes.TSparkParameterValue
    sent = [
        parameter(name="a", ordinal=0, type="DECIMAL(3,1)", value=text("-0.5")),
        parameter(name="b", type="DOUBLE", value=value(doubleValue=0.1)),
        parameter(name="c", type="BOOLEAN", value=value(booleanValue=False)),
        parameter(name="d", type="VOID"),
        parameter(name="e", type="void", value=text("None")),
        parameter(name="f"),
    ]
    assert [(p.name, p.type, p.value) for p in convert.parameters_from(sent)] == [
        ("a", "DECIMAL(3,1)", "-0.5"),
        ("b", "DOUBLE", "0.1"),
        ("c", "BOOLEAN", "false"),
        ("d", "VOID", None),
        ("e", "void", None),
        ("f", "STRING", None),
    ]
    assert convert.parameters_from(None) == convert.parameters_from([]) == ()


def test_nested_parameters() -> None:
    child = ttypes.TSparkParameterValueArg
    inner = child(type="ARRAY", arguments=[child(type="INT", value="1"), child(type="VOID", value="None")])
    (got,) = convert.parameters_from([parameter(type="MAP", arguments=[child(type="STRING", value="k"), inner])])
    assert got.arguments is not None
    key, value = got.arguments
    assert (key.type, key.value, key.arguments) == ("STRING", "k", None)
    assert value.arguments is not None
    assert [(a.type, a.value) for a in value.arguments] == [("INT", "1"), ("VOID", None)]
    (empty,) = convert.parameters_from([parameter(type="ARRAY", arguments=[])])
    assert empty.arguments == ()


def test_mixed_parameters_are_refused() -> None:
    with pytest.raises(ProtocolError, match="mixed"):
        convert.parameters_from([parameter(name="a", value=text("1")), parameter(value=text("2"))])


def test_every_orientation_says_which_offsets_go_with_it() -> None:
    assert set(orientation.OFFSETS) == set(orientation.ORIENTATIONS.values())
    kinds = {None: orientation.Offset.ABSENT, 0: orientation.Offset.ZERO, 7: orientation.Offset.POSITIVE}
    for offset, kind in (kinds | {-7: orientation.Offset.NEGATIVE}).items():
        for number, name in orientation.ORIENTATIONS.items():
            if kind in orientation.OFFSETS[name]:
                assert orientation.asked(number, offset) is name
            else:
                with pytest.raises(ProtocolError, match=f"FETCH_{name} with"):
                    orientation.asked(number, offset)
