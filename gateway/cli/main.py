"""Arguments to commands, and errors to exit codes: 0 ok, 2 bad usage or configuration, 1 anything else."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gateway import __version__
from gateway.config import SETTINGS
from gateway.errors import ConfigError, GatewayError

# Command -> module of this package with `run(arguments) -> int`; imported only when asked for.
COMMANDS = ("serve", "demo", "query", "check-sql", "bench", "doctor", "spark", "token", "job", "pipeline")


_SPARK = ("spark", "spark-jars", "spark-memory", "spark-properties", "spark-above")


def _add_settings(parser: argparse.ArgumentParser, names: Sequence[str] | None = None) -> None:
    group = parser.add_argument_group(
        "settings", "each is also an environment variable GATEWAY_… and a key of the file"
    )
    for setting in SETTINGS:
        if names is not None and setting.name not in names:
            continue
        default = f" [{setting.default}]" if setting.default else ""
        group.add_argument(
            f"--{setting.name}",
            dest=f"setting_{setting.field}",
            metavar=setting.metavar or setting.field.upper(),
            action="append" if setting.repeatable else "store",
            help=(setting.help + default).replace("%", "%%"),
        )
    group.add_argument("--config", metavar="FILE", help="TOML file with settings")


def settings_flags(arguments: argparse.Namespace) -> dict[str, str | list[str] | None]:
    """The flags of `_add_settings` as `load_config` takes them."""
    return {s.name: getattr(arguments, f"setting_{s.field}", None) for s in SETTINGS}


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

    serve = commands.add_parser(
        "serve", help="serve a folder of Delta tables", description="Serve a folder of Delta tables."
    )
    _add_settings(serve)

    demo = commands.add_parser("demo", help="start on sample data, run a query, show how to connect")
    demo.add_argument("--once", action="store_true", help="end after the query instead of waiting for Ctrl-C")
    _add_settings(
        demo,
        (
            *("warehouse", "port", "state", "memory-limit", "slots", "spark", "spark-jars", "spark-memory"),
            *("log-format", "log-level"),
        ),
    )

    query = commands.add_parser("query", help="run one statement here or on a gateway")
    query.add_argument("sql", metavar="SQL", help="the statement; - reads it from standard input")
    query.add_argument(
        "--url", help="a running gateway, e.g. http://127.0.0.1:8080; without it an embedded one is used"
    )
    query.add_argument("--token", help="access token for --url (or the environment variable DATABRICKS_TOKEN)")
    query.add_argument("--catalog", help="default catalog")
    query.add_argument("--schema", help="default schema")
    query.add_argument(
        "--format", choices=("table", "csv", "json", "parquet"), help="output format [by -o's ending, or table]"
    )
    query.add_argument("-o", "--output", metavar="FILE", help="write the rows to FILE")
    query.add_argument("--max-rows", type=int, metavar="N", help="rows shown by the table format [1000]; 0: all")
    query.add_argument("--quiet", action="store_true", help="no progress on standard error")
    _add_settings(query, ("warehouse", "allow-path", "state", "memory-limit", "log-level", *_SPARK))

    check = commands.add_parser("check-sql", help="say what of a SQL file would run, what not, why and where")
    check.add_argument("file", metavar="FILE", help="statements separated by semicolons; - reads standard input")
    check.add_argument("--json", action="store_true", help="one JSON object per statement")
    _add_settings(check, ("warehouse", "allow-path", "state", *_SPARK))

    bench = commands.add_parser("bench", help="measure this installation (from a source checkout)")
    bench.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all by default")

    doctor = commands.add_parser("doctor", help="check libraries, ports, folders and memory")
    _add_settings(doctor)

    spark = commands.add_parser("spark", help="bring what the second engine needs, or check that it is there")
    actions = spark.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, does in (
        ("install", "bring Spark's Delta jars with Maven; check pyspark and Java"),
        ("check", "check the jars, pyspark and Java"),
    ):
        _add_settings(
            actions.add_parser(action, help=does, description=f"{does[0].upper()}{does[1:]}."), ("spark-jars",)
        )

    token = commands.add_parser("token", help="make an access token: the token on standard output, its hash in a file")
    token.add_argument("user", metavar="USER", help="name of the holder")
    token.add_argument(
        "--token-file", required=True, metavar="FILE", help="file of hashed tokens that --auth token reads"
    )

    _add_jobs(
        commands.add_parser(
            "job", help="built-in Spark jobs: load data, look after tables, compare engines, make test data"
        )
    )
    _add_pipeline(commands)
    return parser


_JOB_SETTINGS = ("warehouse", "state", "spark", "spark-jars", "spark-memory", "spark-properties")


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)

    ingest = jobs.add_parser("ingest", help="files into a table, each once; bad records into a quarantine table")
    ingest.add_argument(
        "places", nargs="+", metavar="[SOURCE …] TABLE", help="files and folders, and [main.]schema.table"
    )
    ingest.add_argument("--format", choices=("csv", "json", "parquet"), help="format of the files [by their endings]")
    ingest.add_argument("--schema", metavar="DDL", help="columns, 'id INT, name STRING' [the table's, or inferred]")
    ingest.add_argument("--evolve", action="store_true", help="add new columns to the table")
    ingest.add_argument(
        "--type-conflicts",
        choices=("refuse", "quarantine"),
        default="refuse",
        help="files where most values of a column do not fit its type [refuse]",
    )
    ingest.add_argument("--no-header", action="store_true", help="CSV files have no names in their first line")
    ingest.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="option of Spark's reader; may be repeated"
    )
    ingest.add_argument("--forget", action="store_true", help="start anew: everything counts as not loaded yet")
    jdbc = ingest.add_argument_group("databases", "the password is taken from the environment variable JDBC_PASSWORD")
    jdbc.add_argument("--jdbc", metavar="URL", help="load rows of a database instead of files")
    jdbc.add_argument("--query", metavar="SQL", help="which rows, in the database's SQL")
    jdbc.add_argument("--table", metavar="NAME", help="the table of the database, instead of --query")
    jdbc.add_argument("--cursor", metavar="COLUMN", help="load only rows whose value in this growing column is new")
    jdbc.add_argument(
        "--replace", action="store_true", help="without --cursor: replace the rows of a table that exists"
    )
    jdbc.add_argument("--jar", action="append", default=[], metavar="FILE", help="the driver; may be repeated")
    jdbc.add_argument("--driver", metavar="CLASS", help="class of the driver [found by the URL]")
    jdbc.add_argument("--user", metavar="NAME", help="who asks the database")
    _add_job_flags(ingest)

    verify = jobs.add_parser("verify", help="the same query on Spark and on DataFusion; exit code 1 if the rows differ")
    verify.add_argument("query", metavar="QUERY", help="a query or [main.]schema.table; - reads standard input")
    verify.add_argument("--schema", default="default", help="schema of unqualified names [default]")
    verify.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        metavar="T",
        help="floats may differ by T, absolutely or relative to the larger [0]",
    )
    verify.add_argument("--rows", type=int, default=10, metavar="N", help="differing rows shown per engine [10]")
    _add_job_flags(verify)

    generate = jobs.add_parser("generate", help="test data as Delta tables, the same for the same seed")
    generate.add_argument("what", choices=("tpch", "all-types", "events"), help="which data")
    generate.add_argument(
        "--scale",
        type=float,
        default=1.0,
        metavar="N",
        help="tpch: scale factor; all-types: N x 1000; events: N x 1M [1]",
    )
    generate.add_argument(
        "--into", metavar="NAME", help="schema of the tpch tables [tpch], or table [generated.all_types, …events]"
    )
    generate.add_argument("--seed", type=int, metavar="N", help="other rows for all-types and events")
    generate.add_argument("--replace", action="store_true", help="write the next version of tables that exist")
    _add_job_flags(generate)

    actions = jobs.add_parser("maintain", help="look after Delta tables").add_subparsers(
        dest="action", metavar="ACTION", required=True
    )
    compact = actions.add_parser("compact", help="many small files into few (OPTIMIZE)")
    compact.add_argument("--where", metavar="PREDICATE", help="only partitions for which this holds")
    cluster = actions.add_parser("cluster", help="rows with near values into the same files")
    cluster.add_argument("--by", required=True, metavar="COLUMNS", help="columns, separated by commas")
    cluster.add_argument("--liquid", action="store_true", help="for good (CLUSTER BY) instead of once (ZORDER BY)")
    vacuum = actions.add_parser("vacuum", help="remove files that no version within the retention needs")
    vacuum.add_argument(
        "--retain",
        type=float,
        default=168.0,
        dest="hours",
        metavar="HOURS",
        help="keep what was removed since then [168]",
    )
    vacuum.add_argument("--force", action="store_true", help="also less than 7 days, or than the table's own retention")
    checkpoint = actions.add_parser("checkpoint", help="write a checkpoint of the log")
    for action in (compact, cluster, vacuum, checkpoint):
        action.add_argument("tables", nargs="+", metavar="TABLE", help="[main.]schema.table")
        _add_job_flags(action)
    widen = actions.add_parser("widen-types", help="give a column a wider type without rewriting files")
    widen.add_argument("tables", nargs=1, metavar="TABLE", help="[main.]schema.table")
    widen.add_argument("column", metavar="COLUMN", help="the column, nested fields with dots")
    widen.add_argument("type", metavar="TYPE", help="the new type")
    _add_job_flags(widen)
    mapping = actions.add_parser(
        "map-columns", help="column mapping by name, so that columns can be renamed and dropped"
    )
    mapping.add_argument("tables", nargs="+", metavar="TABLE", help="[main.]schema.table")
    _add_job_flags(mapping)


def _add_job_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    _add_settings(parser, _JOB_SETTINGS)


def _add_pipeline(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    pipeline = commands.add_parser("pipeline", help="data pipelines of Spark into the warehouse")
    verbs = pipeline.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, does in (
        ("init", "write a small project that runs"),
        ("validate", "check a project without running it"),
        ("run", "run a project once: new data into its tables"),
        ("status", "show the last runs of a project"),
        ("graph", "show tables, views and what flows between them"),
    ):
        parser = verbs.add_parser(verb, help=does, description=f"{does[0].upper()}{does[1:]}.")
        parser.add_argument("folder", metavar="DIR", help="folder of the project, with spark-pipeline.yml")
        if verb == "run":
            anew = parser.add_mutually_exclusive_group()
            anew.add_argument(
                "--full-refresh", action="append", metavar="TABLE", help="compute this table anew; may be repeated"
            )
            anew.add_argument("--full-refresh-all", action="store_true", help="compute all tables anew")
        if verb == "status":
            parser.add_argument("--runs", type=int, default=5, metavar="N", help="how many runs are shown [5]")
        if verb == "graph":
            parser.add_argument("-o", "--output", metavar="FILE", help="write a picture (.svg) instead of text")
        if verb == "status":
            _add_settings(parser, ("warehouse", "state"))
        elif verb != "init":
            _add_settings(parser, ("warehouse", "state", "spark", "spark-jars", "spark-memory", "spark-properties"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = make_parser().parse_args(argv)
    command = import_module(f"gateway.cli.{arguments.command.replace('-', '_')}")
    try:
        return int(command.run(arguments))
    except ConfigError as error:
        print(f"gateway: {error.message}", file=sys.stderr)
        return 2
    except GatewayError as error:
        print(f"gateway: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
