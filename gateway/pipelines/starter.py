"""A small project that runs: files into bronze, checked rows into silver, a sum into gold."""

from __future__ import annotations

import json
import re
from pathlib import Path

from gateway.pipelines.project import ProjectError

_SPEC = """\
# A project of Spark Declarative Pipelines: `gateway pipeline run` and plain `spark-pipelines run` both run it.
name: {name}
storage: {storage}
database: {database}
configuration:
  spark.sql.sources.default: delta
libraries:
  - glob:
      include: transformations/**
"""
_BRONZE = '''\
"""Bronze: files as they come. Each run takes in the files that are new in raw/."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

RAW = Path(__file__).resolve().parents[1] / "raw"
spark = SparkSession.active()


@dp.table(comment="orders as they come")
def bronze_orders() -> DataFrame:
    return (
        spark.readStream.schema("order_id BIGINT, customer STRING, amount DECIMAL(10, 2), ordered_at TIMESTAMP")
        .option("header", True)
        .csv(f"file://{RAW}")
    )
'''
_SILVER = """\
-- Silver: rows that can be used, and an expectation that is counted after each run.
CREATE STREAMING TABLE silver_orders
COMMENT 'orders with a customer'
TBLPROPERTIES (
  'gateway.expect.positive_amount' = 'amount > 0',
  'gateway.expect.positive_amount.action' = 'warn'
)
AS SELECT order_id, customer, amount, CAST(ordered_at AS DATE) AS ordered_on
FROM STREAM(bronze_orders)
WHERE customer IS NOT NULL;
"""
_GOLD = """\
-- Gold: computed anew by each run.
CREATE MATERIALIZED VIEW gold_revenue
COMMENT 'revenue of each customer'
AS SELECT customer, COUNT(*) AS orders, SUM(amount) AS revenue
FROM silver_orders
GROUP BY customer;
"""
_RAW = """\
order_id,customer,amount,ordered_at
1,ann,10.50,2026-01-01T08:00:00Z
2,bob,7.25,2026-01-01T09:30:00Z
3,,3.00,2026-01-02T10:00:00Z
4,ann,-2.00,2026-01-02T11:15:00Z
"""


def write(folder: Path) -> list[Path]:
    """Write the project into `folder`, which must be missing or empty; the files. Raises ProjectError."""
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectError(str(folder), "exists and is not an empty folder")
    name = re.sub(r"\W+", "_", folder.name.lower()).strip("_") or "pipeline"
    if name[0].isdigit():
        name = f"p_{name}"
    storage = folder / "pipeline-storage"
    files = {
        "spark-pipeline.yml": _SPEC.format(
            name=name, storage=json.dumps(f"file://{storage}", ensure_ascii=False), database=name
        ),
        "transformations/bronze.py": _BRONZE,
        "transformations/silver.sql": _SILVER,
        "transformations/gold.sql": _GOLD,
        "raw/orders-1.csv": _RAW,
    }
    written = []
    try:
        for relative, content in files.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise ProjectError(str(folder), f"cannot be written: {error.strerror}") from error
    return written
