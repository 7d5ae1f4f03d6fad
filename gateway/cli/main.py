"""Arguments to commands, and errors to exit codes: 0 ok, 2 bad usage or configuration, 1 anything else."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gateway import __version__
from gateway.cli import certificate, job_arguments, pipeline_arguments
from gateway.cli.settings import SPARK_SETTINGS, add_settings
from gateway.errors import ConfigError, GatewayError
from gateway.observability import printable

# Command -> module of this package with `run(arguments) -> int`; imported only when asked for.
COMMANDS = (
    "serve",
    "demo",
    "query",
    "check-sql",
    "bench",
    "doctor",
    "spark",
    "token",
    "certificate",
    "job",
    "pipeline",
)


Commands = Any  # argparse has no public name for what `add_subparsers` gives


class _CommandParser(argparse.ArgumentParser):
    """Takes flags in full only: an abbreviation may come to mean another setting."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)


def make_parser() -> argparse.ArgumentParser:
    """The whole grammar of the command line."""
    parser = argparse.ArgumentParser(
        prog="gateway", description="A self-hosted SQL warehouse over Delta tables for Databricks and Hive clients."
    )
    parser.add_argument("--version", action="version", version=f"gateway {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_CommandParser)

    _add_servers(commands)
    _add_query(commands.add_parser("query", help="run statements here or on a gateway, or ask for them"))
    _add_checks(commands)
    _add_spark(commands.add_parser("spark", help="bring what the second engine needs, or check that it is there"))
    _add_credentials(commands)
    does = "built-in Spark jobs: load data, look after tables, compare engines, make test data"
    job_arguments.add(commands.add_parser("job", help=does))
    pipeline_arguments.add(commands.add_parser("pipeline", help="data pipelines of Spark into the warehouse"))
    return parser


def _add_servers(commands: Commands) -> None:
    serve = commands.add_parser(
        "serve", help="serve a folder of Delta tables", description="Serve a folder of Delta tables."
    )
    add_settings(serve)

    demo = commands.add_parser("demo", help="start on sample data, run a query, show how to connect")
    demo.add_argument("--once", action="store_true", help="end after the query instead of waiting for Ctrl-C")
    add_settings(
        demo,
        (
            *("warehouse", "port", "state", "memory-limit", "slots", "spark", "spark-jars", "spark-memory"),
            *("log-format", "log-level"),
        ),
    )


def _add_query(query: argparse.ArgumentParser) -> None:
    query.add_argument(
        "sql", metavar="SQL", nargs="?", help="the statement; - reads it from standard input; without it, a prompt"
    )
    query.add_argument("-f", "--file", metavar="FILE", help="run the statements of FILE until one fails")
    query.add_argument(
        "--url", help="a running gateway, e.g. http://127.0.0.1:8080; without it an embedded one is used"
    )
    query.add_argument("--token", help="access token for --url (or the environment variable DATABRICKS_TOKEN)")
    query.add_argument("--catalog", help="default catalog")
    query.add_argument("--schema", help="default schema")
    query.add_argument(
        "--format",
        choices=("table", "vertical", "csv", "json", "parquet"),
        help="output format [by -o's ending, or table]; vertical: one value a line",
    )
    query.add_argument("--chart", action="store_true", help="draw the rows instead of listing them")
    query.add_argument("--chart-kind", metavar="KIND", help="auto, bar, line or scatter [auto]; implies --chart")
    query.add_argument("-o", "--output", metavar="FILE", help="write the rows to FILE")
    query.add_argument("--max-rows", type=int, metavar="N", help="rows shown by the table format [1000]; 0: all")
    query.add_argument("--quiet", action="store_true", help="no progress on standard error")
    add_settings(query, ("warehouse", "allow-path", "state", "memory-limit", "log-level", *SPARK_SETTINGS))


def _add_checks(commands: Commands) -> None:
    check = commands.add_parser("check-sql", help="say what of a SQL file would run, what not, why and where")
    check.add_argument("file", metavar="FILE", help="statements separated by semicolons; - reads standard input")
    check.add_argument("--json", action="store_true", help="one JSON object per statement")
    add_settings(check, ("warehouse", "allow-path", "state", *SPARK_SETTINGS))

    bench = commands.add_parser("bench", help="measure this installation (from a source checkout)")
    bench.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all by default")

    doctor = commands.add_parser("doctor", help="check libraries, ports, folders and memory")
    add_settings(doctor)


def _add_spark(spark: argparse.ArgumentParser) -> None:
    actions = spark.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, does in (
        ("install", "bring Spark's Delta jars with Maven; check pyspark and Java"),
        ("check", "check the jars, pyspark and Java"),
    ):
        add_settings(
            actions.add_parser(action, help=does, description=f"{does[0].upper()}{does[1:]}."), ("spark-jars",)
        )


def _add_credentials(commands: Commands) -> None:
    token = commands.add_parser("token", help="make an access token: the token on standard output, its hash in a file")
    token.add_argument("user", metavar="USER", help="name of the holder")
    token.add_argument(
        "--token-file", required=True, metavar="FILE", help="file of hashed tokens that --auth token reads"
    )

    does = "make a certificate to try TLS with, and say what clients need to trust it"
    certificate.add(commands.add_parser("certificate", help=does))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = make_parser().parse_args(argv)
    command = import_module(f"gateway.cli.{arguments.command.replace('-', '_')}")
    if arguments.command in ("job", "pipeline"):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # they clean up as after Ctrl-C
    try:
        return int(command.run(arguments))
    except ConfigError as error:
        print(printable(f"gateway: {error.message}", keep="\n"), file=sys.stderr)
        return 2
    except GatewayError as error:
        print(printable(f"gateway: {error}", keep="\n"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
