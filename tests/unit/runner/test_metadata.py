"""Answers of metadata calls: schemas of the rows, order, what is left out; the clients' view is tests/clients."""

from __future__ import annotations

import os

import pytest

from gateway.catalog.local import LocalCatalog
from gateway.errors import GatewayError, ServerError
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
        session.ask("functions")
