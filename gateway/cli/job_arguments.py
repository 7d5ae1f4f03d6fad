"""The grammar of `gateway job`."""

from __future__ import annotations

import argparse

from gateway.cli.settings import add_settings

_SETTINGS = ("warehouse", "state", "spark", "spark-jars", "spark-memory", "spark-properties")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the jobs and their arguments."""
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    _add_ingest(jobs.add_parser("ingest", help="files into a table, each once; bad records into a quarantine table"))
    _add_verify(
        jobs.add_parser("verify", help="the same query on Spark and on DataFusion; exit code 1 if the rows differ")
    )
    _add_generate(jobs.add_parser("generate", help="test data as Delta tables, the same for the same seed"))
    _add_maintain(jobs.add_parser("maintain", help="look after Delta tables"))


def _add_ingest(ingest: argparse.ArgumentParser) -> None:
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
    jdbc.add_argument(
        "--other-source",
        choices=("continue", "add"),
        help="the table has rows of another URL, table or query: go on above their --cursor, or add all rows [refuse]",
    )
    jdbc.add_argument("--jar", action="append", default=[], metavar="FILE", help="the driver; may be repeated")
    jdbc.add_argument("--driver", metavar="CLASS", help="class of the driver [found by the URL]")
    jdbc.add_argument("--user", metavar="NAME", help="who asks the database")
    _add_job_flags(ingest)


def _add_verify(verify: argparse.ArgumentParser) -> None:
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


def _add_generate(generate: argparse.ArgumentParser) -> None:
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


def _add_maintain(maintain: argparse.ArgumentParser) -> None:
    actions = maintain.add_subparsers(dest="action", metavar="ACTION", required=True)
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
    add_settings(parser, _SETTINGS)
