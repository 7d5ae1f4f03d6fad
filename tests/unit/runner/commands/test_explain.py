"""EXPLAIN: names the engine and the reason, tells what is not answered, changes nothing."""

from __future__ import annotations

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


def test_what_is_wrong_is_an_error(shop: Session) -> None:
    error = refused(shop, "EXPLAIN SELECT nope")
    assert (error.condition, error.sqlstate) == ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703")
