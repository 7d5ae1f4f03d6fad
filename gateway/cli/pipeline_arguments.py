"""The grammar of `gateway pipeline`."""

from __future__ import annotations

import argparse

from gateway.cli.settings import add_settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, does in (
        ("init", "write a small project that runs"),
        ("validate", "check a project without running it"),
        ("run", "run a project once: new data into its tables"),
        ("status", "show the last runs of a project"),
        ("graph", "show tables, views and what flows between them"),
    ):
        one = verbs.add_parser(verb, help=does, description=f"{does[0].upper()}{does[1:]}.")
        one.add_argument("folder", metavar="DIR", help="folder of the project, with spark-pipeline.yml")
        if verb == "run":
            anew = one.add_mutually_exclusive_group()
            anew.add_argument(
                "--full-refresh", action="append", metavar="TABLE", help="compute this table anew; may be repeated"
            )
            anew.add_argument("--full-refresh-all", action="store_true", help="compute all tables anew")
        if verb == "status":
            one.add_argument("--runs", type=int, default=5, metavar="N", help="how many runs are shown [5]")
        if verb == "graph":
            one.add_argument("-o", "--output", metavar="FILE", help="write a picture (.svg) instead of text")
        if verb == "status":
            add_settings(one, ("warehouse", "state"))
        elif verb != "init":
            add_settings(one, ("warehouse", "state", "spark", "spark-jars", "spark-memory", "spark-properties"))
