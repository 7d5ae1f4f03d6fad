"""`gateway demo`: start on sample data, let a real client run a query, show how to connect."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

from gateway.cli.embedded import embedded_config
from gateway.cli.output import layout, texts
from gateway.cli.settings import settings_flags
from gateway.cli.signals import Wishes
from gateway.config import Config
from gateway.engine.launch import Launched
from gateway.observability import configure_logging
from gateway.protocol.client import DEFAULT_PATH, Client

QUERY = """\
SELECT r.r_name AS region, count(*) AS orders, sum(o.o_totalprice) AS revenue, max(o.o_orderdate) AS latest
FROM samples.tpch.orders o
JOIN samples.tpch.customer c ON o.o_custkey = c.c_custkey
JOIN samples.tpch.nation n ON c.c_nationkey = n.n_nationkey
JOIN samples.tpch.region r ON n.n_regionkey = r.r_regionkey
GROUP BY r.r_name
ORDER BY revenue DESC"""

FOR_SPARK = "SELECT histogram_numeric(o_totalprice, 4) AS prices FROM samples.tpch.orders"

SNIPPETS = """\
Python (databricks-sql-connector):

    from databricks import sql
    connection = sql.connect(
        server_hostname="localhost",
        http_path="{path}",
        _connection_uri="{url}{path}",
        access_token="none-needed",
        enable_telemetry=False,
    )

JDBC (Databricks driver):

    jdbc:databricks://{address}/default;transportMode=http;ssl=0;httpPath={path};AuthMech=3;UID=token;PWD=none-needed;UseThriftClient=1;EnableTelemetry=0

beeline:

    beeline -u "jdbc:hive2://{address}/default;transportMode=http;httpPath=cliservice" -n me -p none-needed

This command line:

    {program} query --url {url} "SELECT * FROM samples.nyctaxi.trips LIMIT 5"

Console: {url} in a browser
Health: curl {url}/readyz       Metrics: curl {url}/metrics
Tables: {warehouse}/<schema>/<table>/ is main.<schema>.<table>"""


def run(arguments: argparse.Namespace) -> int:
    """Start, query, explain; then serve until Ctrl-C, or end after the query with --once."""
    flags = settings_flags(arguments)
    config = embedded_config({**flags, "auth": "none", "host": "127.0.0.1"}, arguments.config)
    if flags["port"] is None and _is_taken(config.port):
        config = embedded_config({**flags, "auth": "none", "host": "127.0.0.1", "port": "0"}, arguments.config)
    configure_logging(config.log_format, str(flags["log-level"] or "warning"))
    first = Launched()  # it imports while this process does
    from gateway.app import Gateway

    gateway = Gateway(config, first=first)
    print("Starting the gateway on sample data (the first start makes them) ...", flush=True)
    wishes = Wishes()
    _stop_on_signal(wishes)
    gateway.start()
    try:
        print(f"The gateway is ready at {gateway.url}\n")
        _show(gateway.url, QUERY)
        if config.spark is not None:
            print("\nWhat only Spark knows goes to Spark, which starts now (5 to 30 s) ...\n", flush=True)
            _show(gateway.url, FOR_SPARK)
        print("\n" + _snippets(gateway.url, config), flush=True)
        if not arguments.once:
            print("\nCtrl-C ends the gateway.", flush=True)
            wishes.next()
    finally:
        gateway.stop()
    return 0


def _stop_on_signal(wishes: Wishes) -> None:
    def on_signal(number: int, _frame: FrameType | None) -> None:
        if wishes.stop():
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def _show(url: str, query: str) -> None:
    name, table = _query(url, query)
    print(f"{name} asked:\n\n{_indented(query)}\n\nand got:\n\n{_indented(_shown(table))}", flush=True)


def _query(url: str, query: str) -> tuple[str, pa.Table]:
    """Name of the client that asked, and the rows."""
    try:
        from databricks import sql
    except ImportError:
        with Client(url).open() as client:
            return "The built-in client (databricks-sql-connector is not installed)", client.execute(query).table()
    arguments: dict[str, Any] = {
        "server_hostname": "localhost",
        "http_path": DEFAULT_PATH,
        "_connection_uri": url + DEFAULT_PATH,
        "access_token": "none-needed",
        "enable_telemetry": False,
    }
    with sql.connect(**arguments) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return f"databricks-sql-connector {sql.__version__}", cursor.fetchall_arrow()


def _shown(table: pa.Table) -> str:
    columns = [["NULL" if t is None else t for t in texts(column.combine_chunks())] for column in table.columns]
    return "".join(layout(table.schema, columns)).rstrip("\n")


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def _snippets(url: str, config: Config) -> str:
    return SNIPPETS.format(
        url=url,
        path=DEFAULT_PATH,
        address=url.removeprefix("http://"),
        warehouse=config.warehouse,
        program=os.path.relpath(Path(sys.executable).with_name("gateway")),
    )


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
