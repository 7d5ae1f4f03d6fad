"""`make bench`: all benchmarks but the long ones, or those that are named, as one table."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module

from benchmarks.measure import Row, print_rows

NAMES = (
    "startup",
    "roundtrip",
    "doors",
    "transfer",
    "links",
    "crowds",
    "strangers",
    "metadata",
    "lookup",
    "hits",
    "clicks",
    "functions",
    "tpch",
    "ssb",
    "compile",
    "writes",
    "console",
)

# Minutes each, so that they run only when they are named.
LONG = ("tpcds", "large")


def main(names: Sequence[str] | None = None) -> int:
    """Run benchmarks by name, without one all but the long ones.

    0 if every figure asked for is met, 1 otherwise, 2 for an unknown name.
    """
    chosen = list(names or NAMES)
    known = (*NAMES, *LONG)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; medians (min..max)\n")
    rows: list[Row] = []
    for name in chosen:
        print(f"... {name}", file=sys.stderr, flush=True)
        rows += import_module(f"benchmarks.{name}").run()
    print_rows(rows)
    return 1 if any(row.ok is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
