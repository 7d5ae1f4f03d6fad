"""Which engine a statement is for, why, and what is said where there is no Spark; no JVM is started."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.engine.base import HandedOverError
from gateway.errors import UnsupportedError, UserError
from gateway.planner import confirmed
from gateway.runner import make_runner
from gateway.sql.read.statement import read_statement
from tests.unit.runner.session import Session

ABOVE = 4_000
PROVED = "every construct, function and table feature is proved for the embedded engine"
REQUIRED = "SELECT histogram_numeric(n_nationkey, 2) FROM samples.tpch.nation"
FAULTS = [
    ("SELECT nowhere FROM samples.tpch.nation", "UNRESOLVED_COLUMN", "42703"),
    ("SELECT * FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
    ("SELECT * FRM x", "PARSE_SYNTAX_ERROR", "42601"),
    ("SELECT no_such_function(1)", "UNRESOLVED_ROUTINE", "42883"),
    ("SELECT histogram_numeric(nowhere, 2) FROM samples.tpch.nation", "UNRESOLVED_COLUMN", "42703"),
]


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Session:
    """A session of a gateway with Spark behind it; `routed.runner.has_spark` is what it believes."""
    folder = tmp_path_factory.mktemp("routed")
    runner = make_runner(
        warehouse=str(folder / "warehouse"),
        samples=str(samples),
        allow_paths=(),
        spill=str(folder / "spill"),
        memory_limit=1 << 28,
        spark=True,
        spark_above=ABOVE,
    )
    runner.warm_up()
    session = Session(runner)
    session.run("CREATE TABLE t (id INT)")
    return session


def engine_of(session: Session, text: str) -> tuple[str, str]:
    """Engine and reason."""
    try:
        planned = session.run(text).planned
    except HandedOverError as handed:
        return handed.handover.engine, handed.handover.reason
    return planned.engine, planned.reason


def asking(session: Session, engine: str) -> Session:
    """The session with `gateway.engine`."""
    other = Session(session.runner)
    other.state = replace(session.state, settings={"gateway.engine": engine})
    return other


@pytest.mark.parametrize(
    ("text", "engine", "reason"),
    [
        ("SELECT count(*) FROM samples.tpch.region", "datafusion", PROVED),
        ("SELECT sum(l_quantity) FROM samples.tpch.lineitem", "spark", f"more than spark-above = {ABOVE}"),
        ("INSERT INTO t SELECT l_orderkey FROM samples.tpch.lineitem", "spark", "more than spark-above"),
        ("CREATE TABLE u AS SELECT l_orderkey FROM samples.tpch.lineitem", "spark", "more than spark-above"),
        (REQUIRED, "spark", "histogram_numeric"),
        ("ANALYZE TABLE t COMPUTE STATISTICS", "gateway", "a file of the catalog"),
        ("ANALYZE TABLE t COMPUTE DELTA STATISTICS", "gateway", "a commit to the Delta log"),
        ("UPDATE t SET id = 2", "datafusion", PROVED),
        ("UPDATE t SET id = (SELECT 2)", "datafusion", PROVED),
        ("DELETE FROM t WHERE id < (SELECT min(l_orderkey) FROM samples.tpch.lineitem)", "datafusion", PROVED),
        ("UPDATE t SET id = length(_metadata.file_name)", "spark", "_metadata"),
        ("OPTIMIZE t", "gateway", "small files"),
        ("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", "spark", "REORG TABLE … APPLY"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "spark", "CREATE FUNCTION"),
        ("BEGIN SELECT 1; END", "spark", "BEGIN"),
        ("CREATE TABLE p (a INT) USING parquet", "spark", "parquet"),
    ],
)
def test_the_engine_and_why(routed: Session, text: str, engine: str, reason: str) -> None:
    found, told = engine_of(routed, text)
    assert found == engine and reason in told


def test_a_table_feature_that_is_not_written_here(routed: Session) -> None:
    """Reading it is proved, writing is not."""
    routed.run("CREATE TABLE tracked (id INT)")
    (log,) = Path(str(routed.runner.catalogs["main"].table_folder("default", "tracked"))).glob("_delta_log/*0.json")
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["materializePartitionColumns"]}
    (log.parent / f"{1:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    assert engine_of(routed, "SELECT * FROM tracked") == ("datafusion", PROVED)
    engine, reason = engine_of(routed, "INSERT INTO tracked VALUES (1)")
    assert engine == "spark" and "materializePartitionColumns" in reason


@pytest.mark.parametrize("text", ["SELECT count(*) FROM samples.tpch.region", REQUIRED, "INSERT INTO t VALUES (1)"])
def test_the_engine_that_is_asked_for(routed: Session, text: str) -> None:
    assert engine_of(asking(routed, "spark"), text) == ("spark", "gateway.engine is spark")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM main.information_schema.tables",
        "SELECT count(*) FROM t JOIN `information_schema`.columns ON true",
        "EXPLAIN SELECT * FROM system.information_schema.schemata",
        "CREATE TABLE told AS SELECT table_name FROM information_schema.tables",
    ],
)
def test_the_information_schema_is_answered_here_whatever_engine_is_asked_for(routed: Session, text: str) -> None:
    session = asking(routed, "spark")
    assert engine_of(session, text)[0] in ("datafusion", "gateway")
    session.run("DROP TABLE IF EXISTS told")
    assert engine_of(session, "SELECT 1 AS information_schema")[0] == "spark"
    session.state = replace(session.state, schema="information_schema")
    assert engine_of(session, "SELECT count(*) FROM tables") == ("datafusion", PROVED)


def test_the_information_schema_is_not_read_under_settings_that_only_spark_honours(routed: Session) -> None:
    session = asking(routed, "auto")
    session.state = replace(session.state, settings={"spark.sql.ansi.enabled": "false"})
    assert engine_of(session, "SELECT 1")[0] == "spark"
    with pytest.raises(UnsupportedError, match="Spark knows no information schema"):
        session.run("SELECT count(*) FROM main.information_schema.tables")


def test_nothing_is_handed_over_if_the_embedded_engine_is_asked_for(routed: Session) -> None:
    session = asking(routed, "datafusion")
    assert engine_of(session, "SELECT sum(l_quantity) FROM samples.tpch.lineitem") == ("datafusion", PROVED)
    with pytest.raises(UnsupportedError, match="histogram_numeric"):
        session.run(REQUIRED)


@pytest.mark.parametrize(("text", "condition", "sqlstate"), FAULTS)
def test_what_is_an_error_for_spark_too_is_answered_at_once(
    routed: Session, text: str, condition: str, sqlstate: str
) -> None:
    with pytest.raises(UserError) as raised:
        asking(routed, "datafusion").run(text)
    assert raised.value.condition.startswith(condition) and raised.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SELECT nowhere FROM samples.tpch.nation", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("SELECT * FRM x", "PARSE_SYNTAX_ERROR"),
        ("SELECT no_such_function(1)", "UNRESOLVED_ROUTINE"),
        ("SELECT 1 / 0", "DIVIDE_BY_ZERO"),
        ("WITH c AS (SELECT 1) SELECT * FROM d", "TABLE_OR_VIEW_NOT_FOUND"),
        ("INSERT INTO t VALUES (array(1))", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
    ],
)
def test_an_error_that_spark_confirms_if_it_is_there(routed: Session, text: str, condition: str) -> None:
    with pytest.raises(HandedOverError) as raised:
        routed.run(text)
    handover = raised.value.handover
    assert (raised.value.error.condition, handover.engine, handover.confirms) == (condition, "spark", True)
    assert condition in handover.reason


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SELECT * FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM nowhere.t", "TABLE_OR_VIEW_NOT_FOUND"),
        ("INSERT INTO nowhere.a.t VALUES (1)", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM parquet.`/etc/x`", "PATH_NOT_ALLOWED"),
        ("SELECT :x", "UNBOUND_SQL_PARAMETER"),
        ("SELECT nowhere, current_user()", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),  # Spark must not run it
        ("CREATE TABLE t (id INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("EXPLAIN ANALYZE SELECT nowhere FROM t", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("EXPLAIN SELECT * FROM parquet.`/etc/x`", "PATH_NOT_ALLOWED"),
    ],
)
def test_an_error_that_is_certain(routed: Session, text: str, condition: str) -> None:
    with pytest.raises(UserError) as raised:
        routed.run(text)
    assert raised.value.condition == condition


@pytest.mark.parametrize(("size", "seconds"), [(1 << 30, 0.0), (0, 60.0)])
def test_what_would_cost_much_is_not_confirmed(size: int, seconds: float) -> None:
    statement, error = read_statement("SELECT 1 / a FROM t"), UserError("DIVIDE_BY_ZERO", "Division by zero.")
    assert confirmed(statement, error, "auto", 0, 0.0) is not None
    assert confirmed(statement, error, "auto", size, seconds) is None
    assert confirmed(statement, error, "datafusion", 0, 0.0) is None


def test_spark_is_not_asked_of_subqueries_where_it_refuses_them() -> None:
    error = UserError("SCALAR_SUBQUERY_TOO_MANY_ROWS", "More than one row.")
    for text in ("DELETE FROM t WHERE a = (SELECT b FROM u)", "UPDATE t SET a = (VALUES (1), (2))"):
        assert confirmed(read_statement(text), error, "auto", 0, 0.0) is None
    assert confirmed(read_statement("DELETE FROM t WHERE a = 1 / 0"), error, "auto", 0, 0.0) is not None


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t SET LOCATION '/tmp/u'",
        "BEGIN CREATE TABLE x (a INT); END",
        "SELECT reflect('java.lang.System', 'exit', 0)",
        "CREATE TABLE x (a INT) USING csv LOCATION '/tmp/x'",
        "ALTER TABLE t SET TAGS ('a' = 'b')",  # this one and the rest are Databricks' alone
        "ALTER TABLE t ALTER COLUMN a UNSET TAGS ('a')",
        "ALTER TABLE t SET ROW FILTER f ON (a)",
        "BEGIN TRANSACTION",
    ],
)
def test_what_spark_must_not_run_is_refused(routed: Session, text: str) -> None:
    with pytest.raises(UnsupportedError):
        routed.run(text)


@pytest.mark.parametrize(
    "text", [REQUIRED, "ANALYZE TABLE t COMPUTE DELTA STATISTICS NOSCAN", "CREATE FUNCTION f() RETURNS INT RETURN 1"]
)
def test_without_spark_the_refusal_says_what_it_is_needed_for(session: Session, text: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        session.run(text)
    what = "histogram_numeric" if text == REQUIRED else text.split(" ")[0]
    assert what in raised.value.message
    assert "Spark may run it: start the gateway with --spark." in raised.value.message
    assert raised.value.sqlstate == "0A000" and raised.value.span is not None


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("SELECT 1", "datafusion"),
        (REQUIRED, "spark"),
        ("SELECT sum(l_quantity) FROM samples.tpch.lineitem", "spark"),
        ("INSERT INTO t SELECT l_orderkey FROM samples.tpch.lineitem", "spark"),
        ("SELECT reflect('java.lang.System', 'exit', 0)", "none"),
        ("ALTER TABLE t SET LOCATION '/tmp/u'", "none"),
    ],
)
def test_explain_tells_engine_and_reason(routed: Session, text: str, engine: str) -> None:
    lines = str(routed.rows(f"EXPLAIN {text}")[0][0]).splitlines()
    assert lines[0] == f"Engine: {engine}" and lines[1].startswith("Reason: ") and len(lines[1]) > 12


def test_explain_of_a_write_to_what_is_not_there(routed: Session) -> None:
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in routed.rows("EXPLAIN INSERT INTO nowhere VALUES (1)")[1][0]
