"""The same fault has the same condition, SQLSTATE and position on both engines; no Java in any text."""

from __future__ import annotations

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark

FAULTS = [
    "SELECT 1 / 0",
    "SELECT *\nFROM fault_t -- c\nWHERE zz > 1",
    "/* é😀 */ SELECT '😀😀', zz FROM main.default.fault_t",
    "SELECT '😀' AS a,\n   b / 0 FROM main.default.fault_t",
    "SELECT CAST('x' AS INT)",
    "SELECT CAST(s AS INT) FROM main.default.fault_t",
    "SELECT * FROM nope",
    "SELECT * FROM main.default.fault_t JOIN\n main.default.nope USING (id)",
    "SELECT id FROM fault_t a JOIN fault_t b ON a.id = b.id",
    "SELECT id, count(*) FROM fault_t",
    "SELECT element_at(array(1), 5)",
    "SELECT array(1)[3]",
    "SELECT 2147483647 + 1",
    "SELECT CAST(300 AS TINYINT)",
    "SELECT raise_error('told')",
    "SELECT DATE'2024-13-01'",
    "SELECT * FROM fault_t UNION SELECT 1",
    "SELECT * FROM fault_t ORDER BY 9",
    "SELECT (SELECT id FROM fault_t)",
    "SELECT nope(1)",
    "INSERT INTO fault_t SELECT id, s, CAST(s AS INT) FROM fault_t",
    "CREATE TABLE fault_made AS SELECT CAST(s AS INT) AS i FROM fault_t",
]


def fault(sql: Sql, engine: str, text: str) -> tuple[str, str, str]:
    """Condition, SQLSTATE, line and position of an error."""
    with pytest.raises(Exception, match="SQLSTATE") as raised:
        getattr(sql, engine)(text)
    told = str(raised.value)
    assert "\tat " not in told and "org.apache" not in told and "java." not in told, told
    assert "spark_catalog" not in told, told
    first = told.split("\n\n== SQL")[0]
    place = first[first.rindex("(line") :].split(")")[0] if "(line" in first else ""
    return told.split("]")[0].lstrip("["), first.split("SQLSTATE: ")[1][:5], place


@pytest.mark.parametrize("text", FAULTS)
def test_faults_are_told_alike(sql: Sql, text: str) -> None:
    sql.embedded("CREATE TABLE IF NOT EXISTS fault_t AS SELECT id, 'x' AS s, 1 AS b FROM range(2)")
    sparks, ours = fault(sql, "spark", text), fault(sql, "embedded", text)
    assert sparks[:2] == ours[:2]
    if ours[2]:  # the embedded engine tells no position of what fails while it runs
        assert sparks[2] == ours[2]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT 1,\n 1 / 0", "(line 2, pos 1"),
        ("/* 😀 */ SELECT '😀😀', 1 / 0, :p FROM main.default.fault_t", "(line 1, pos 21"),
        ("SELECT main.default.fault_t.b,\n 'é' AS `é`, CAST(s AS INT) FROM main.default.fault_t", "(line 2, pos 13"),
        ("SELECT array(1)[3]", "(line 1, pos 7"),
    ],
)
def test_positions_of_what_fails_while_it_runs(sql: Sql, text: str, place: str) -> None:
    sql.embedded("CREATE TABLE IF NOT EXISTS fault_t AS SELECT id, 'x' AS s, 1 AS b FROM range(2)")
    with pytest.raises(Exception, match="SQLSTATE: 22") as raised:
        sql.spark(text, **({"p": 5} if ":p" in text else {}))
    assert place in str(raised.value)


def test_syntax_errors_of_what_only_spark_parses(sql: Sql) -> None:
    condition, sqlstate, place = fault(sql, "spark", "SELECT '😀',\n  a b c d FROM main.default.fault_t")
    assert (condition, sqlstate) == ("PARSE_SYNTAX_ERROR", "42601") and place.startswith("(line 2, pos ")


@pytest.mark.parametrize("kind", ["VIEW", "TEMPORARY VIEW"])
def test_positions_in_the_query_of_a_view(sql: Sql, kind: str) -> None:
    text = f"CREATE {kind} never AS\n SELECT histogram_numeric(id, 2), nosuch FROM main.default.fault_t"
    sql.embedded("CREATE TABLE IF NOT EXISTS fault_t AS SELECT id, 'x' AS s, 1 AS b FROM range(2)")
    condition, _, place = fault(sql, "auto", text)
    assert (condition, place) == ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "(line 2, pos 34")


def test_an_error_of_the_embedded_engine_is_confirmed(sql: Sql) -> None:
    """GROUP BY names a column that Spark makes itself: nothing that the embedded engine could know."""
    text = (
        "SELECT stack(2, 'first', count(*), arr, 'second', 0L, array('1', '2', '3')) AS (x1, x2, x3), id "
        "FROM (VALUES (1, array('a', 'b'))) AS t(id, arr) GROUP BY _gen_input_3, id"
    )
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        sql.embedded(text)
    assert sql.spark("SELECT 1") == [(1,)]  # it is up
    assert [row[0] for row in sql.auto(text)] == ["first", "second"]
    with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN.WITH_SUGGESTION.*`nowhere`"):
        sql.auto("SELECT nowhere FROM samples.tpch.region")
    sql.embedded("CREATE OR REPLACE TABLE confirmed (id INT)")
    with pytest.raises(Exception, match="DATATYPE_MISMATCH"):
        sql.auto("INSERT INTO confirmed VALUES (array(1))")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        sql.auto("INSERT INTO confirmed VALUES ('x')")
    assert sql.embedded("SELECT count(*) FROM confirmed") == [(0,)]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT format_string('%d', 'x')", "22023"),
        ("SELECT xpath_string('<a', 'a')", "22023"),
        ("SELECT xpath('<a/>', '///')", "22023"),
        ("SELECT schema_of_json(repeat('[', 20000))", "54001"),
        ("SELECT schema_of_json('{')", "22023"),
        ("SELECT split('a', '(', 1), hash(1)", "22023"),
        ("SELECT from_json('{}', 'a INT', map('primitivesAsString', 'x'))", "42K06"),
        ("SELECT from_csv('1', 'a INT', map('sep', ''))", "42K06"),
        ("SELECT from_xml('<a/>', 'b INT', map('rowTag', ''))", "42K06"),
    ],
)
def test_values_for_which_spark_has_no_condition(sql: Sql, text: str, sqlstate: str) -> None:
    assert fault(sql, "spark", text)[1] == sqlstate
