"""What programs do with ibis; a script, for the interpreter that has it.

``python ibis_tables.py URL SCHEMA``: tables made of schemas, expressions and data frames, asked, filled and dropped. One JSON
object tells what was seen.
"""

import json
import sys
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit


def main(url: str, schema: str) -> None:
    """Do all of it."""
    ibis: Any = import_module("ibis")
    pandas: Any = import_module("pandas")
    con = ibis.databricks.connect(
        server_hostname="localhost",
        http_path=urlsplit(url).path,
        access_token="none-needed",
        catalog="main",
        schema="default",
        _connection_uri=url,
        enable_telemetry=False,
    )
    seen: dict[str, Any] = {"at": [con.current_catalog, con.current_database], "catalogs": sorted(con.list_catalogs())}
    con.create_database(schema, catalog="main")
    place = {"database": ("main", schema)}
    columns = {"id": "int64", "name": "string", "price": "decimal(10, 2)", "day": "date", "tags": "array<string>"}
    seen["schema"] = str(con.create_table("made", schema=ibis.schema(columns), **place).schema())
    orders = con.table("orders", database=("samples", "tpch"))
    per_year = orders.group_by(year=orders.o_orderdate.year()).agg(n=orders.count()).order_by("year")
    seen["asked"] = per_year.limit(2).execute().values.tolist()
    seen["taken"] = con.create_table("years", per_year, **place).count().execute()
    frame = pandas.DataFrame({"k": [1, 2, 3], "v": ["a", "b", None]})
    framed = con.create_table("framed", frame, **place)
    con.insert("framed", pandas.DataFrame({"k": [4], "v": ["d"]}), **place)
    seen["framed"] = [framed.count().execute(), framed.v.isnull().sum().execute()]
    small = ibis.memtable({"k": [1, 4], "w": [10, 40]})
    seen["joined"] = framed.join(small, "k").order_by("k").select("k", "v", "w").to_pyarrow().to_pylist()
    con.create_view("seen", framed.filter(framed.k > 2), **place)
    seen["view"] = con.table("seen", **place).count().execute()
    con.truncate_table("framed", **place)
    seen["truncated"] = framed.count().execute()
    seen["tables"] = sorted(con.list_tables(**place))
    seen["batches"] = sum(batch.num_rows for batch in orders.select("o_orderkey").to_pyarrow_batches())
    try:
        con.table("none", **place)
    except ibis.common.exceptions.TableNotFound:
        seen["missing"] = "TableNotFound"
    con.drop_view("seen", **place)
    for name in ("made", "years", "framed"):
        con.drop_table(name, **place)
    con.drop_database(schema, catalog="main")
    seen["gone"] = schema not in con.list_databases(catalog="main")
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
