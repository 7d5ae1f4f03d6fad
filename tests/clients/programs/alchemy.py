"""What programs do with SQLAlchemy and pandas; a script, for the interpreter that has databricks-sqlalchemy.

``python alchemy.py URL SCHEMA``: tables are made from models, read back by reflection, filled, changed and dropped, and data
frames are written and read. One JSON object tells what was seen.
"""

import json
import sys
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit


def models(sa: Any, schema: str) -> tuple[Any, Any, Any]:
    """Two tables, the second with a key into the first."""
    metadata = sa.MetaData(schema=schema)
    makers = sa.Table(
        "makers",
        metadata,
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("name", sa.String, nullable=False, comment="Who makes it"),
        comment="All makers",
    )
    things = sa.Table(
        "things",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("maker", sa.BigInteger, sa.ForeignKey(makers.c.id)),
        sa.Column("price", sa.Numeric(10, 2)),
        sa.Column("weight", sa.Float),
        sa.Column("sold", sa.Boolean),
        sa.Column("day", sa.Date),
        sa.Column("made", sa.DateTime),
        sa.Column("number", sa.Integer),
    )
    return metadata, makers, things


def reflected(sa: Any, engine: Any, schema: str) -> dict[str, Any]:
    """What the inspector tells of the tables."""
    found = sa.inspect(engine)
    (foreign,) = found.get_foreign_keys("things", schema=schema)
    return {
        "tables": sorted(found.get_table_names(schema=schema)),
        "views": found.get_view_names(schema=schema),
        "there": [found.has_table(name, schema=schema) for name in ("makers", "none")],
        "columns": {c["name"]: [str(c["type"]), c["nullable"]] for c in found.get_columns("things", schema=schema)},
        "key": found.get_pk_constraint("things", schema=schema)["constrained_columns"],
        "foreign": [foreign["constrained_columns"], foreign["referred_table"], foreign["referred_columns"]],
        "comments": [
            found.get_table_comment("makers", schema=schema)["text"],
            {c["name"]: c["comment"] for c in found.get_columns("makers", schema=schema)}["name"],
        ],
        "schema": schema in found.get_schema_names(),
        "again": sorted(sa.Table("things", sa.MetaData(), schema=schema, autoload_with=engine).columns.keys()),
    }


def changed(sa: Any, engine: Any, makers: Any, things: Any) -> list[list[Any]]:
    """Rows that were put in, changed and taken out."""
    with engine.begin() as connection:
        connection.execute(sa.insert(makers), [{"name": "Ann"}, {"name": "O'Bert \\ %"}])
        row = {"maker": 1, "price": Decimal("1.50"), "weight": 0.5, "sold": True, "day": date(2024, 2, 29)}
        row |= {"made": datetime(2024, 2, 29, 12, 30), "number": 7}
        connection.execute(sa.insert(things), [{"id": 1, **row}, {"id": 2, **dict.fromkeys(row)}, {"id": 3, **row}])
        connection.execute(sa.update(things).where(things.c.id == 3).values(price=Decimal("2.25")))
        connection.execute(sa.delete(things).where(things.c.price.between(0, Decimal("1.99"))))
        query = (
            sa.select(things, makers.c.name)
            .join_from(things, makers, isouter=True)
            .where(makers.c.name.like("A%") | things.c.maker.is_(None))
            .order_by(things.c.id)
        )
        return [[None if v is None else str(v) for v in row] for row in connection.execute(query)]


def frames(engine: Any, schema: str) -> dict[str, Any]:
    """Data frames, written in each way and read back."""
    pandas = import_module("pandas")
    frame = pandas.DataFrame(
        {
            "a": [1, 2],
            "b": ["x", None],
            "c": [0.5, 1.5],
            "d": pandas.to_datetime(["2024-01-01 00:00:00", "2024-02-03 04:05:06"]),
        }
    )
    frame.to_sql("frame", engine, schema=schema, index=False, if_exists="replace")
    frame.to_sql("frame", engine, schema=schema, index=False, if_exists="append", method="multi", chunksize=1)
    told = ""
    try:
        frame.to_sql("frame", engine, schema=schema, index=False)
    except ValueError as error:
        told = str(error)
    found = pandas.read_sql_table("frame", engine, schema=schema)
    return {
        "told": told,
        "rows": found.sort_values("a").astype(str).values.tolist(),
        "names": list(found.columns),
        "sum": float(pandas.read_sql_query(f"SELECT sum(c) AS s FROM {schema}.frame", engine).s[0]),
    }


def main(url: str, schema: str) -> None:
    """Do all of it."""
    sa = import_module("sqlalchemy")
    more = {"_connection_uri": url, "enable_telemetry": False}
    place = f"databricks://token:none-needed@localhost?http_path={urlsplit(url).path}&catalog=main&schema=default"
    engine = sa.create_engine(place, connect_args=more)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    metadata, makers, things = models(sa, schema)
    metadata.create_all(engine)
    metadata.create_all(engine)  # they are there
    seen = {"reflected": reflected(sa, engine, schema), "rows": changed(sa, engine, makers, things)}
    seen["frames"] = frames(engine, schema)
    metadata.drop_all(engine)
    seen["left"] = sa.inspect(engine).get_table_names(schema=schema)
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
