"""A JDBC driver: starts Cases.java with what standard input orders. Arguments: the jar, the driver's class, its URL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def main(jar: str, driver: str, url: str) -> int:
    """The exit code of the Java program."""
    order = json.load(sys.stdin)
    places = {"http": order["http"].rpartition("/")[2], "tcp": order["tcp"], "path": order["path"]}
    line = ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", jar]
    line += [str(Path(__file__).with_name("Cases.java")), url.format(**places), driver]
    for name, statements in order["cases"].items():
        line += [name, "\n;\n".join(statements)]
    return subprocess.run(line, env={**os.environ, "TZ": "UTC"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
