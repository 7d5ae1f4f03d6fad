"""Heads of SQL definitions, for servers whose graph cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.pipelines.definitions import MATERIALIZED_VIEW, STREAMING_TABLE, TEMPORARY_VIEW, Dataset, Flow
from gateway.pipelines.project import Project, ProjectError
from gateway.pipelines.registry import Registered
from gateway.pipelines.sql_heads import definitions, read

FILE = Path("a.sql")
TEXT = """
-- CREATE STREAMING TABLE commented AS SELECT 1;
CREATE OR REFRESH STREAMING TABLE IF NOT EXISTS `my shop`.bronze (id BIGINT COMMENT 'AS', x INT)
  USING DELTA PARTITIONED BY (x) COMMENT 'a; b'
  TBLPROPERTIES ('gateway.expect.id' = 'id > 0 AS x', delta.appendOnly = true, k 5)
AS SELECT * FROM STREAM(raw);
CREATE MATERIALIZED VIEW gold AS SELECT count(*) AS n FROM bronze;
CREATE STREAMING TABLE silver;
CREATE FLOW fill COMMENT 'x' AS INSERT INTO mart.silver BY NAME SELECT * FROM STREAM(bronze);
CREATE TEMPORARY VIEW v AS SELECT 1;
SET a = b;
"""


def test_statements() -> None:
    datasets, flows = read(TEXT, FILE, "shop")
    properties = {"gateway.expect.id": "id > 0 AS x", "delta.appendOnly": "true", "k": "5"}
    assert datasets == [
        Dataset("my shop.bronze", STREAMING_TABLE, "my shop", "bronze", properties, "DELTA"),
        Dataset("gold", MATERIALIZED_VIEW, "shop", "gold"),
        Dataset("silver", STREAMING_TABLE, "shop", "silver"),
        Dataset("v", TEMPORARY_VIEW, "", "v"),
    ]
    assert flows == [
        Flow("my shop.bronze", "my shop.bronze"),
        Flow("gold", "gold"),
        Flow("fill", "mart.silver"),
        Flow("v", "v"),
    ]


def test_unclosed_quotation_is_told_by_file() -> None:
    with pytest.raises(ProjectError, match=r"a\.sql: .*unclosed quotation"):
        read("CREATE MATERIALIZED VIEW g AS SELECT 'x", FILE, "shop")


def test_names_are_those_of_events(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(
        "CREATE STREAMING TABLE s; CREATE FLOW f AS INSERT INTO s SELECT * FROM STREAM(p); "
        "CREATE TEMPORARY VIEW v AS SELECT 1; CREATE STREAMING TABLE mart.t AS SELECT * FROM STREAM(p)"
    )
    project = Project(tmp_path, tmp_path / "x", "p", "/s", None, "shop", {}, (tmp_path / "a.sql",))
    python = Registered(
        "g", [Dataset("p", STREAMING_TABLE, "shop", "p")], [Flow("p", "p"), Flow("q", "p")], frozenset()
    )
    found = definitions(project, "cat", python)
    assert set(found.datasets) == {"cat.shop.s", "cat.shop.p", "cat.mart.t", "v"}
    assert {name: flow.target for name, flow in found.flows.items()} == {
        "cat.shop.f": "cat.shop.s",
        "cat.mart.t": "cat.mart.t",
        "cat.shop.p": "cat.shop.p",
        "cat.shop.q": "cat.shop.p",
        "v": "v",
    }
