"""`gateway check-sql`: verdicts, positions, and that nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import main

TEXT = """\
-- a file of statements; with a semicolon in a comment
USE samples.tpch;
SELECT count(*) FROM lineitem WHERE l_comment <> ';';
CREATE TEMPORARY VIEW v AS SELECT 1 AS a;
SELECT a,
  b FROM v;
CREATE TABLE main.default.made AS SELECT a FROM v;
SELECT a FROM main.default.made;
DROP TABLE main.default.missing;
SELECT * FROM v TABLESAMPLE (10 PERCENT) REPEATABLE (1);
SET spark.sql.ansi.enabled = false;
CREATE VIEW main.default.lasting AS SELECT 1 AS a;
SELEC 1;
EXPLAIN SELECT 1;
SELECT n_name FROM nation WHERE 2 IN (SELECT a.r_regionkey FROM region a FULL JOIN region b ON a.r_regionkey < n_regionkey)
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for warehouse and samples."""
    return tmp_path_factory.mktemp("check")


def run(text: str, state: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[dict[str, object]]]:
    """Exit code and the reports of `text`."""
    file = state / "statements.sql"
    file.write_text(text)
    flags = ["--warehouse", str(state / "warehouse"), "--state", str(state / "state")]
    code = main(["check-sql", str(file), "--json", *flags, *more])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_byte_order_mark_is_no_part_of_the_text(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, reports = run("\ufeffSELECT 1", state, capsys)
    assert code == 0 and [(r["line"], r["column"], r["verdict"]) for r in reports] == [(1, 1, "runs")]


def test_verdicts_and_positions(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, reports = run(TEXT, state, capsys)
    assert code == 1
    assert [(r["line"], r["column"], r["verdict"]) for r in reports] == [
        (2, 1, "runs"),
        (3, 1, "runs"),
        (4, 1, "runs"),
        (6, 3, "error"),
        (7, 1, "runs"),
        (8, 15, "later"),
        (9, 1, "runs"),
        (10, 17, "refused"),
        (11, 1, "refused"),
        (12, 1, "runs"),
        (13, 1, "error"),
        (14, 1, "runs"),
        (15, 1, "refused"),
    ]
    assert reports[3]["sqlstate"] == "42703"
    assert reports[10]["condition"] == "PARSE_SYNTAX_ERROR"
    assert reports[1]["engine"] == "datafusion"
    assert list((state / "warehouse").rglob("*.parquet")) == []
    assert not (state / "warehouse" / "default" / "made").exists()


def test_an_insert_is_checked_but_not_done(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "nothing_there"
    code, reports = run(f"INSERT INTO {table} VALUES (1);", state, capsys)
    assert (code, reports[0]["sqlstate"]) == (1, "42P01")


def test_good_text_gives_0(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("SELECT 1;\n;\n  SELECT 2", state, capsys)[0] == 0
    assert run("", state, capsys) == (0, [])


def test_a_text_that_cannot_be_split(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, reports = run("SELECT 'open", state, capsys)
    assert code == 1
    assert all(r["verdict"] == "error" for r in reports)


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-sql", "/no/such/file.sql"]) == 2
    assert "/no/such/file.sql" in capsys.readouterr().err


FOR_SPARK = """\
DECLARE x INT DEFAULT 1;
SELECT x + 1;
CREATE TEMPORARY FUNCTION twice(a INT) RETURNS INT RETURN a * 2;
SELECT twice(2);
CREATE TEMPORARY VIEW known AS SELECT histogram_numeric(n_nationkey, 2) AS h FROM samples.tpch.nation;
SELECT * FROM known;
SELECT n_name FROM samples.tpch.nation;
SELECT reflect('java.lang.System', 'exit', 0);
SET ANSI_MODE = false;
SELECT 1;
RESET;
CREATE FUNCTION main.default.thrice(a INT) RETURNS INT RETURN a * 3;
SELECT thrice(2);
DROP TEMPORARY VARIABLE x;
SELECT x;
SELECT sum(l_quantity) FROM samples.tpch.lineitem;
CREATE TABLE main.default.copied AS SELECT l_quantity FROM samples.tpch.lineitem
"""


def test_what_spark_would_run(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, reports = run(FOR_SPARK, state, capsys, "--spark", "local[2]", "--spark-above", "4000")
    assert [(r["verdict"], r.get("engine", "")) for r in reports] == [
        ("runs", "spark"),
        ("runs", "spark"),
        ("runs", "spark"),
        ("runs", "spark"),
        ("runs", "spark"),
        ("runs", "spark"),
        ("runs", "datafusion"),
        ("refused", ""),
        ("runs", "gateway"),
        ("runs", "spark"),
        ("runs", "gateway"),
        ("runs", "spark"),
        ("later", ""),
        ("runs", "spark"),
        ("error", ""),
        ("runs", "spark"),
        ("runs", "spark"),
    ]
    assert str(reports[-2]["reason"]).endswith("more than spark-above = 4000")
