"""EXPLAIN: names the engine and the reason, tells what is not answered, changes nothing."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from deltalake import WriterProperties, write_deltalake

from gateway.engine.datafusion import DataFusionEngine
from gateway.errors import UserError
from tests.live.processes import eventually
from tests.unit.runner.session import Session, refused


def test_explain_names_engine_and_reason(shop: Session) -> None:
    result = shop.run("EXPLAIN SELECT id FROM t WHERE id > 3")
    assert result.columns == [("plan", "string", False)]
    ((plan,),) = result.rows
    assert plan.startswith("Engine: datafusion\nReason: ")
    assert "Physical Plan" in plan
    ((extended,),) = shop.rows("EXPLAIN EXTENDED SELECT id FROM t WHERE id > 3")
    assert "== Engine Text ==\nSELECT" in extended


def test_explain_tells_what_is_not_answered(session: Session) -> None:
    ((plan,),) = session.rows("EXPLAIN SELECT xpath('<a/>', 'a')")
    assert plan.startswith("Engine: none\nReason: [UNSUPPORTED")


def test_explain_changes_nothing(shop: Session) -> None:
    for text in (
        "CREATE TABLE made AS SELECT 1 AS a",
        "INSERT INTO t VALUES (1, 'x', DATE'2020-01-01')",
        "DROP TABLE t",
    ):
        assert shop.run(f"EXPLAIN {text}").rows
    assert shop.rows("SELECT count(*) FROM t") == [(0,)]
    assert shop.rows("SHOW TABLES LIKE 'made'") == []


@pytest.mark.parametrize("mode", ["", "EXTENDED ", "FORMATTED "])
def test_what_is_wrong_is_told_as_spark_tells_it(shop: Session, mode: str) -> None:
    rows = [text for (text,) in shop.rows(f"EXPLAIN {mode}SELECT nope")]
    assert rows[0] == "Error occurred during query planning: "
    assert rows[1].startswith("[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] ")
    assert rows[1].endswith(f" SQLSTATE: 42703 (line 1, pos {15 + len(mode)})")
    assert rows[-2] == f"EXPLAIN {mode}SELECT nope"


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("EXPLAIN ANALYZE SELECT nope", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),
        ("EXPLAIN SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("EXPLAIN SELECT * FROM delta.`/etc/x`", "PATH_NOT_ALLOWED"),
    ],
)
def test_what_is_wrong_is_an_error(shop: Session, text: str, condition: str) -> None:
    assert refused(shop, text).condition == condition


def analyzed(session: Session, query: str) -> str:
    """What EXPLAIN ANALYZE tells of a query; files that are a moment old are read one by one, not by the engine's scan."""
    found: list[str] = []

    def told() -> bool:
        found.append(session.rows(f"EXPLAIN ANALYZE {query}")[0][0])
        return "DataSourceExec" in found[-1]

    eventually(told, 20)
    return found[-1]


def test_analyze_runs_the_query_and_tells_of_its_operators(session: Session) -> None:
    session.run("CREATE TABLE numbers (id BIGINT, part INT) PARTITIONED BY (part)")
    for part in range(3):
        session.run(f"INSERT INTO numbers PARTITION (part = {part}) SELECT id FROM range(1000)")
    text = analyzed(session, "SELECT part, count(*) FROM numbers WHERE id >= 10 AND part < 2 GROUP BY part ORDER BY 1")
    assert "Engine: datafusion" in text and "files 2 of 3" in text
    lines = text.split("== Analyzed Plan ==\n")[1].splitlines()
    assert re.search(r"^Rows: 2$", text, re.MULTILINE) and re.search(r"^Time: \d+\.\d ms$", text, re.MULTILINE)
    assert "Spilled: 0 bytes" in text
    scans = [line for line in lines if "DataSourceExec" in line]  # one for each partition
    assert len(scans) == 2
    for scan in scans:
        assert "rows 990," in scan and re.search(r"read [1-9]\d* bytes", scan) and "filtered by the scan 10" in scan
    assert all(re.search(r"\[(rows \d+, )?time \d+\.\d\d ms", line) for line in lines)


def test_analyze_tells_what_each_operator_held_and_spilled(session: Session) -> None:
    session.run("CREATE TABLE sides (id BIGINT)")
    session.run("INSERT INTO sides VALUES (1), (2)")
    joined = analyzed(session, "SELECT a.id FROM sides a JOIN sides b ON a.id = b.id")
    assert re.search(r"HashJoinExec.*\[.*memory [1-9]\d* bytes", joined)
    session.runner.engine = DataFusionEngine(32 << 20, session.runner.engine.spill, 1)
    ((ordered,),) = session.rows("EXPLAIN ANALYZE SELECT id FROM range(3000000) ORDER BY id % 1000003, id")
    assert re.search(r"^Spilled: [1-9]\d{6,} bytes$", ordered, re.MULTILINE)
    assert re.search(r"SortExec.*\[.*spilled [1-9]\d{6,} bytes", ordered)


def test_analyze_tells_of_row_groups_that_were_left_out(session: Session) -> None:
    session.run("CREATE TABLE grouped (id BIGINT)")
    table = pa.table({"id": range(1000)})
    write_deltalake(
        str(session.runner.catalogs["main"].table_folder("shop", "grouped")),
        table,
        mode="append",
        writer_properties=WriterProperties(max_row_group_size=100),
    )
    text = analyzed(session, "SELECT * FROM grouped WHERE id = 555")
    assert "row groups by statistics pruned 9 of 10" in text


def test_analyze_raises_what_the_query_raises_and_writes_nothing(session: Session) -> None:
    with pytest.raises(UserError, match="DIVIDE_BY_ZERO"):
        session.run("EXPLAIN ANALYZE SELECT 1 / (id - 1) FROM range(3)")
    session.run("CREATE TABLE t (id INT)")
    for text in ("INSERT INTO t VALUES (1)", "DELETE FROM t", "CREATE TABLE u AS SELECT 1 AS a", "SHOW TABLES"):
        assert "EXPLAIN ANALYZE of what is no query is not supported" in session.rows(f"EXPLAIN ANALYZE {text}")[0][0]
    assert session.rows("EXPLAIN ANALYZE TABLE t COMPUTE STATISTICS")[0][0].startswith("Engine: gateway\n")
    assert session.rows("SELECT * FROM t") == [] and session.rows("SHOW TABLES") == [("shop", "t", False)]


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("p = 'a' OR p = 'b'", 2),
        ("p = 'a' OR (p = 'b' AND id > 5) OR 'c' = p", 3),
        ("(p = 'a' AND id = 1) OR (p IN ('b', 'x') AND id = 2)", 2),
        ("(p = 'a' OR p = 'd') AND (id = 1 OR id = 2)", 1),
        ("p = 'a' OR id = 2", 4),  # a side that says nothing of p
        ("p = 'a' OR p > 'b'", 4),
        ("NOT (p = 'a' OR p = 'b')", 4),
    ],
)
def test_alternatives_leave_files_out(session: Session, condition: str, files: int) -> None:
    session.run("CREATE TABLE alternatives (id INT, p STRING) PARTITIONED BY (p)")
    session.run("INSERT INTO alternatives VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'e')")
    query = f"SELECT id FROM alternatives WHERE {condition}"
    ((text,),) = session.rows(f"EXPLAIN {query}")
    assert f"files {files} of 4" in text
    everything = session.rows(f"SELECT id FROM (SELECT * FROM alternatives LIMIT 100) AS x WHERE {condition}")
    assert sorted(session.rows(query)) == sorted(everything)


@pytest.mark.parametrize("kind", ["LEFT", "FULL"])
@pytest.mark.parametrize("mode", ["", "FORMATTED", "ANALYZE"])
def test_plans_that_the_engine_makes_at_the_second_attempt(session: Session, kind: str, mode: str) -> None:
    """Its check of plans loses the order of what a join may make NULL."""
    query = f"SELECT a.id FROM range(9) a {kind} JOIN range(9) b ON a.id = b.id ORDER BY b.id"
    ((text,),) = session.rows(f"EXPLAIN {mode} {query}")
    assert "HashJoinExec" in text
    assert session.rows(query) == [(i,) for i in range(9)]
