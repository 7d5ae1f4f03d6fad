"""Names of a query as Spark knows its tables: respelt by position, strings and aliases left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.catalog.local import LocalCatalog
from gateway.errors import ConfigError
from gateway.pipelines.jobs.names import respelt
from gateway.pipelines.jobs.verify import check_tolerance, query_of


@pytest.fixture
def catalogs(tmp_path: Path) -> dict[str, LocalCatalog]:
    for name in ("Sales/Orders", "default/t"):
        log = tmp_path / name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020}.json").write_text("{}")
    return {"main": LocalCatalog("main", str(tmp_path), read_only=True)}


@pytest.mark.parametrize(
    ("text", "expected", "tables"),
    [
        ("select * from main.sales.orders", "select * from S.orders", {("main", "sales"): {"Orders"}}),
        (
            "select sales.`ORDERS`.id from Sales.orders",
            "select S.`ORDERS`.id from S.orders",
            {("main", "sales"): {"Orders"}},
        ),
        (
            "select t.a, 'main.sales.orders' from t",
            "select t.a, 'main.sales.orders' from t",
            {("main", "default"): {"t"}},
        ),
        ("select x.orders from x /* sales.orders */", "select x.orders from x /* sales.orders */", {}),
        ("select * from sales.nope", "select * from sales.nope", {}),
        ("select 'unclosed", "select 'unclosed", {}),
        (
            "select * from main.sales.orders version as of 1",
            "select * from S.orders version as of 1",
            {("main", "sales"): {"Orders"}},
        ),
    ],
)
def test_names(
    catalogs: dict[str, LocalCatalog], text: str, expected: str, tables: dict[tuple[str, str], set[str]]
) -> None:
    found, named = respelt(text, catalogs, "default", "p")
    assert found == expected.replace("S.", "spark_catalog.`p_main_sales`.")
    assert named == tables


def test_a_table_is_a_query(catalogs: dict[str, LocalCatalog]) -> None:
    assert query_of("select 1", catalogs) == "select 1"
    for bad in ("", "orders", "sales.nope", "other.sales.orders"):
        with pytest.raises(ConfigError):
            query_of(bad, catalogs)
    for tolerance in (-1.0, 0.6, float("nan")):
        with pytest.raises(ConfigError):
            check_tolerance(tolerance)
