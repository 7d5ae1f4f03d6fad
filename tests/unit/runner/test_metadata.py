"""Answers of metadata calls: schemas of the rows, order, what is left out; the clients' view is tests/clients."""

from __future__ import annotations

import os

import pytest

from gateway.catalog.local import LocalCatalog
from gateway.errors import GatewayError, ServerError
from gateway.runner.metadata import _RULES
from gateway.service.api import METADATA_TYPES
from gateway.sqltypes import ROWS
from tests.unit.runner.session import Session


@pytest.mark.parametrize(("kind", "width"), [("catalogs", 1), ("schemas", 2), ("tables", 10), ("columns", 23)])
def test_shapes(session: Session, kind: str, width: int) -> None:
    result = session.ask(kind)
    assert len(result.columns) == width
    assert result.planned.is_query
    assert not result.planned.writes
    assert len(result.rows) > 0
    assert session.ask(kind, catalog="nope").columns == result.columns


def test_no_rows_for_unknown_names(session: Session) -> None:
    for kind in ("schemas", "tables", "columns"):
        assert session.ask(kind, catalog="nope").rows == []
        assert session.ask(kind, schema="nope").rows == []
    for kind in ("tables", "columns"):
        assert session.ask(kind, table="nope").rows == []
    assert session.ask("columns", column="nope").rows == []


def test_rows_are_ordered(session: Session) -> None:
    for name in ("zeta", "Alpha", "beta"):
        session.run(f"CREATE TABLE {name} (z INT, a INT)")
    session.run("CREATE TEMPORARY VIEW a_view AS SELECT 1 AS x")
    tables = [r[:4] for r in session.ask("tables").rows]
    assert tables[-1] == (None, None, "a_view", "VIEW")
    assert [t[2] for t in tables if t[1] == "shop"] == ["Alpha", "beta", "zeta"]
    assert [t[:2] for t in tables[:-1]] == sorted(t[:2] for t in tables[:-1])
    columns = session.ask("columns", catalog="main", schema="shop", table="beta").rows
    assert [(r[3], r[16]) for r in columns] == [("z", 0), ("a", 1)]


def test_columns_that_are_asked_for_again_are_those_of_now(session: Session) -> None:
    def columns(pattern: str | None = None) -> list[tuple[str, str]]:
        return [(r[2], r[3]) for r in session.ask("columns", catalog="main", schema="shop", column=pattern).rows]

    session.run("CREATE TABLE one (a INT)")
    session.run("CREATE TABLE two (b INT)")
    assert [columns(), columns(), columns()] == [[("one", "a"), ("two", "b")]] * 3
    assert columns("b") == columns("b") == [("two", "b")]
    session.run("ALTER TABLE one ADD COLUMN c INT")
    assert columns() == columns() == [("one", "a"), ("one", "c"), ("two", "b")]
    session.run("DROP TABLE two")
    assert (columns(), columns("b")) == ([("one", "a"), ("one", "c")], [])
    session.run("CREATE VIEW three AS SELECT 1 AS d")
    assert columns() == columns() == [("one", "a"), ("one", "c"), ("three", "d")]


def test_views_belong_to_no_catalog(session: Session) -> None:
    session.run("CREATE TEMPORARY VIEW v AS SELECT 1 AS x")
    assert [r[2] for r in session.ask("tables", table="v").rows] == ["v"]
    assert [r[2] for r in session.ask("tables", schema="%", table="v").rows] == ["v"]
    assert session.ask("tables", catalog="main", table="v").rows == []
    assert session.ask("tables", schema="shop", table="v").rows == []
    assert session.ask("tables", table="v", table_types=("TABLE",)).rows == []


def test_a_folder_that_is_no_table_is_not_listed(session: Session) -> None:
    catalog = session.runner.catalogs["main"]
    assert isinstance(catalog, LocalCatalog)
    session.run("CREATE TABLE good (a INT)")
    os.makedirs(os.path.join(catalog.root, "shop", "plain_folder"))
    os.makedirs(os.path.join(catalog.root, "shop", "damaged", "_delta_log"))
    with open(os.path.join(catalog.root, "shop", "damaged", "_delta_log", f"{0:020}.json"), "w") as file:
        file.write("{")
    assert [r[2] for r in session.ask("tables", schema="shop").rows] == ["damaged", "good"]
    assert [r[2] for r in session.ask("columns", schema="shop").rows] == ["good"]
    with pytest.raises(GatewayError, match="damaged"):
        session.ask("columns", schema="shop", table="damaged")


def test_an_unknown_call_is_our_fault(session: Session) -> None:
    with pytest.raises(ServerError):
        session.ask("delegation_tokens")


def test_every_call_of_the_service_is_answered() -> None:
    assert set(METADATA_TYPES) == set(_RULES)


def test_types(session: Session) -> None:
    result = session.ask("type_info")
    assert len(result.columns) == 18
    rows = {r[0]: r for r in result.rows}
    assert [r[1] for r in result.rows] == sorted(r[1] for r in result.rows)
    assert set(rows) == set(ROWS) - {"INTERVAL"}
    assert rows["DECIMAL"] == (
        *(
            "DECIMAL",
            3,
            38,
            None,
            None,
            "precision,scale",
            1,
            False,
            3,
            False,
            False,
            False,
            None,
            0,
            38,
            None,
            None,
            10,
        ),
    )
    assert rows["STRING"][2:9] == (2147483647, "'", "'", None, 1, True, 3)
    assert rows["MAP"][8] == 0


def test_table_types_are_those_of_tables(session: Session) -> None:
    session.run("CREATE VIEW seen AS SELECT 1 AS x")
    assert {r[0] for r in session.ask("table_types").rows} >= {r[3] for r in session.ask("tables").rows} >= {"VIEW"}


def test_functions(session: Session) -> None:
    result = session.ask("functions", function="array\\_pos%")
    assert result.rows == [("system", "builtin", "array_position", "", 1, "array_position")]
    assert len(session.ask("functions").rows) > 300
    assert session.ask("functions", catalog="main", function="abs").rows == []
    assert session.ask("functions", schema="nope").rows == []
    assert [r[2] for r in session.ask("functions", catalog="system", schema="builtin", function="ABS").rows] == ["abs"]


@pytest.mark.parametrize(("kind", "width"), [("primary_keys", 6), ("cross_reference", 14)])
def test_no_table_declares_keys(session: Session, kind: str, width: int) -> None:
    session.run("CREATE TABLE keyed (a INT)")
    result = session.ask(kind, catalog="main", schema="shop", table="keyed")
    assert len(result.columns) == width
    assert result.rows == []
