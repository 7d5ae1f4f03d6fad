"""Bronze: files as they come. Each run takes in the files that are new below raw/."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

RAW = f"file://{Path(__file__).resolve().parents[1]}/raw"  # not as_uri(): Spark does not decode %20
ORDERS = "order_id BIGINT, customer_id BIGINT, ordered_at TIMESTAMP, quantity INT, unit_price DECIMAL(10, 2)"
CUSTOMERS = "customer_id BIGINT, name STRING, country STRING"
spark = SparkSession.active()

dp.create_streaming_table("bronze_orders", comment="orders of the web shop and of the stores, as they come")


@dp.append_flow(target="bronze_orders")
def web_orders() -> DataFrame:
    files = spark.readStream.schema(ORDERS).option("header", True).csv(f"{RAW}/web")
    return files.withColumn("channel", lit("web"))


@dp.append_flow(target="bronze_orders")
def store_orders() -> DataFrame:
    return spark.readStream.schema(ORDERS).json(f"{RAW}/store").withColumn("channel", lit("store"))


@dp.table(comment="customers as they come")
def bronze_customers() -> DataFrame:
    return spark.readStream.schema(CUSTOMERS).json(f"{RAW}/customers")
