"""What Superset asks of a Databricks and of a Hive database; a script, for the interpreter that has apache-superset.

``python superset_specs.py URL TCP_PLACE FOLDER SCHEMA``: its models of a database do what its pages do: catalogs, schemas,
tables, views, columns, queries at every grain of time, errors, an upload. The last line is a JSON object of what was seen.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CONFIG = """
SECRET_KEY = "x" * 42
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
CACHE_CONFIG = DATA_CACHE_CONFIG = FILTER_STATE_CACHE_CONFIG = EXPLORE_FORM_DATA_CACHE_CONFIG = {{"CACHE_TYPE": "SimpleCache"}}
from superset.utils.log import StdOutEventLogger
EVENT_LOGGER = StdOutEventLogger()
"""


def native(url: str, schema: str) -> dict[str, Any]:
    """The specification of Databricks."""
    database, table, pandas = (import_module(n) for n in ("superset.models.core", "superset.sql.parse", "pandas"))
    extra = {"connect_args": {"_connection_uri": url, "enable_telemetry": False}}
    db = database.Database(
        database_name="native",
        sqlalchemy_uri=f"databricks://token:x@localhost?http_path={urlsplit(url).path}&catalog=main&schema=default",
        extra=json.dumps({"allow_multi_catalog": True, "engine_params": extra}),
    )
    spec, nation = db.db_engine_spec, table.Table("nation", "tpch", "samples")
    seen: dict[str, Any] = {
        "spec": spec.__name__,
        "catalogs": [db.get_default_catalog(), sorted(db.get_all_catalog_names())],
        "schemas": sorted(db.get_all_schema_names(catalog="samples")),
        "tables": sorted(name for name, *_ in db.get_all_table_names_in_schema("samples", "tpch")),
        "columns": {c["column_name"]: str(c["type"]) for c in db.get_columns(nation)},
        "key": db.get_pk_constraint(nation)["constrained_columns"],
        "star": db.get_df(db.select_star(nation, limit=3), "samples", "tpch").shape,
        "grains": {},
    }
    for grain in db.grains():
        if grain.function:
            when = grain.function.format(col="o_orderdate")
            query = f"SELECT {when} AS g, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1 LIMIT 1"
            seen["grains"][grain.duration] = db.get_df(query, "samples", "tpch").astype(str).values.tolist()[0]
    try:
        db.get_df("SELECT nope FROM nation", "samples", "tpch")
    except import_module("databricks.sql.exc").Error as error:
        seen["error"] = spec.extract_errors(error)[0].message
    uploaded = table.Table("uploaded", schema, "main")
    db.get_df(f"CREATE SCHEMA IF NOT EXISTS {schema}", "main", "default")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y'z"]})
    spec.df_to_sql(db, uploaded, frame, {"if_exists": "replace", "index": False})
    db.get_df(f"CREATE OR REPLACE VIEW {schema}.seen AS SELECT a FROM {schema}.uploaded", "main", "default")
    seen["uploaded"] = db.get_df("SELECT * FROM uploaded ORDER BY a", "main", schema).values.tolist()
    seen["views"] = sorted(name for name, *_ in db.get_all_view_names_in_schema("main", schema))
    seen["there"] = [db.has_table(uploaded), db.has_table(table.Table("none", schema, "main"))]
    return seen


def hive(place: str, schema: str) -> dict[str, Any]:
    """The specification of Hive, over PyHive."""
    database, table = (import_module(name) for name in ("superset.models.core", "superset.sql.parse"))
    db = database.Database(database_name="hive", sqlalchemy_uri=f"hive://me@{place}/default")
    uploaded = table.Table("uploaded", schema)
    return {
        "spec": db.db_engine_spec.__name__,
        "schemas": schema in db.get_all_schema_names(),
        "columns": {c["column_name"]: str(c["type"]) for c in db.get_columns(uploaded)},
        "rows": db.get_df("SELECT * FROM uploaded ORDER BY a", None, schema).values.tolist(),
    }


def main(url: str, place: str, folder: str, schema: str) -> None:
    """Do all of it."""
    config = Path(folder) / "superset_config.py"
    config.write_text(CONFIG.format(folder=folder))
    os.environ |= {"SUPERSET_CONFIG_PATH": str(config), "SUPERSET_HOME": folder}
    app = import_module("superset.app").create_app()
    with app.app_context():
        seen = {"native": native(url, schema), "hive": hive(place, schema)}
    print("\n" + json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
