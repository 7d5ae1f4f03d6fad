"""dbt-databricks builds, tests, snapshots and documents a project without Spark.

dbt is looked for in GATEWAY_TEST_DBT, the path of its program; `make test-dbt` installs it into a folder of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.gateway import Server, connect_to, start_server

PROJECT = Path(__file__).with_name("dbt")
DBT = os.environ.get("GATEWAY_TEST_DBT", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DBT, reason="GATEWAY_TEST_DBT names no dbt: make test-dbt"),
]


class Project:
    """A copy of the project, and a gateway for it."""

    def __init__(self, folder: Path) -> None:
        self.server: Server = start_server(folder / "gateway")
        self.folder = folder / "project"
        shutil.copytree(PROJECT, self.folder)

    def dbt(self, *arguments: str) -> dict[str, str]:
        """Run dbt; the status of each node."""
        environment = {**os.environ, "GATEWAY_URL": self.server.url, "DBT_PROFILES_DIR": str(self.folder)}
        done = subprocess.run(
            [DBT, "--no-use-colors", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        results = json.loads((self.folder / "target" / "run_results.json").read_text())["results"]
        return {r["unique_id"].split(".", 2)[2]: r["status"] for r in results}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        connection = connect_to(self.server)
        try:
            with connection.cursor() as cursor:
                cursor.execute(query)
                return [tuple(row) for row in cursor.fetchall()]
        finally:
            connection.close()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    made = Project(tmp_path_factory.mktemp("dbt"))
    try:
        yield made
    finally:
        made.server.stop()


def test_a_project_is_built_again_and_again(project: Project) -> None:
    assert set(project.dbt("seed").values()) == {"success"}
    assert project.rows("SELECT name, balance FROM main.shop.customers WHERE id = 3") == [('Zoë "Z" O\'N', -3.25)]
    assert set(project.dbt("run").values()) == {"success"}
    totals = "SELECT id, orders, total FROM main.shop.customer_totals ORDER BY id"
    assert [tuple(map(float, row)) for row in project.rows(totals)] == [(1, 2, 25.5), (2, 0, 0), (3, 1, 7.25)]
    with (project.folder / "seeds" / "orders.csv").open("a") as seed:
        seed.write("13,2,1.75,2024-05-04 09:00:00\n")
    assert set(project.dbt("seed").values()) == {"success"}
    assert set(project.dbt("run").values()) == {"success"}  # the second time incremental models add to what is there
    counts = {}
    for model in (
        "orders_merge",
        "orders_append",
        "orders_replace",
        "orders_columns",
        "orders_delins",
        "orders_overwrite",
    ):
        ((counts[model],),) = project.rows(f"SELECT count(*) FROM main.shop.{model}")
    assert counts == dict.fromkeys(counts, 4)
    assert project.rows("SELECT count(customer_id) FROM main.shop.orders_columns") == [(4,)]


def test_what_a_project_says_of_itself_is_kept(project: Project) -> None:
    table = project.rows("SELECT comment FROM main.information_schema.tables WHERE table_name = 'customer_totals'")
    assert table == [("What each customer's bought",)]
    assert project.rows("SHOW TBLPROPERTIES main.shop.customer_totals ('team')") == [("team", "sales")]
    columns = (
        "SELECT table_name, column_name, is_nullable, comment FROM main.information_schema.columns "
        "WHERE table_schema = 'shop' AND table_name IN ('contracted', 'stg_orders') "
        "AND column_name IN ('id', 'name', 'order_id')"
    )
    assert sorted(project.rows(columns), key=str) == [
        ("contracted", "id", "NO", None),
        ("contracted", "name", "YES", "Its name"),
        ("stg_orders", "order_id", "YES", "Key"),
    ]


def test_contracts_hold(project: Project) -> None:
    with pytest.raises(Exception, match="CHECK constraint positive"):
        project.rows("INSERT INTO main.shop.contracted VALUES (-1, 'x')")
    with pytest.raises(Exception, match="CONSTRAINT"):
        project.rows("INSERT INTO main.shop.contracted VALUES (NULL, 'x')")


def test_snapshots_keep_what_was(project: Project) -> None:
    assert set(project.dbt("snapshot").values()) == {"success"}
    seed = project.folder / "seeds" / "customers.csv"
    seed.write_text(seed.read_text().replace("Oslo", "Bergen"))
    orders = project.folder / "seeds" / "orders.csv"
    orders.write_text(orders.read_text().replace("12,3,7.25,2024-05-03 00:00:00", "12,3,8.25,2024-06-03 00:00:00"))
    project.dbt("seed")
    assert set(project.dbt("snapshot").values()) == {"success"}
    cities = "SELECT city, dbt_valid_to IS NULL FROM main.shop.customers_check WHERE id = 1 ORDER BY dbt_valid_from"
    assert project.rows(cities) == [("Oslo", False), ("Bergen", True)]
    amounts = "SELECT amount, dbt_valid_to IS NULL FROM main.shop.orders_ts WHERE id = 12 ORDER BY dbt_valid_from"
    assert project.rows(amounts) == [(7.25, False), (8.25, True)]


def test_tests_pass_and_fail(project: Project) -> None:
    assert set(project.dbt("test").values()) == {"pass"}
    failing = project.folder / "tests" / "no_negative.sql"
    text = failing.read_text()
    failing.write_text(text.replace("total < 0", "total > 0"))
    with pytest.raises(AssertionError, match="no_negative"):
        project.dbt("test")
    failing.write_text(text)
    assert project.dbt("retry") == {"no_negative": "pass"}


def test_documents_know_tables_and_columns(project: Project) -> None:
    project.dbt("docs", "generate")
    catalog = json.loads((project.folder / "target" / "catalog.json").read_text())
    assert catalog["errors"] is None
    nodes = catalog["nodes"]
    totals = nodes["model.shop.customer_totals"]
    assert totals["metadata"]["comment"] == "What each customer's bought"
    assert {name: c["type"] for name, c in totals["columns"].items()} == {
        "id": "bigint",
        "name": "string",
        "orders": "bigint",
        "total": "decimal(20,2)",
    }
    assert nodes["model.shop.stg_orders"]["metadata"]["type"] == "view"


def test_everything_is_made_anew(project: Project) -> None:
    assert set(project.dbt("build", "--full-refresh", "--exclude", "resource_type:snapshot").values()) <= {
        "success",
        "pass",
    }
