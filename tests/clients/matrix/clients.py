"""The clients: how the program of each is started, what it needs to be there, and which cases are none of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.matrix.cases import CASES, order

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).with_name("programs")


class MissingError(Exception):
    """What a client needs is not here; says what."""


@dataclass(frozen=True)
class Client:
    """A row of the matrix.

    Attributes:
        command: what starts its program, with places left open.
        needs: the variable that says where its packages are; "" for those of the tests.
        without: cases that it has no way of its own for, and why.
    """

    name: str
    door: str
    command: Sequence[str]
    needs: str = ""
    without: Mapping[str, str] = field(default_factory=dict)


def _python(program: str, *arguments: str) -> tuple[str, ...]:
    return ("{python}", "-m", f"tests.clients.matrix.programs.{program}", *arguments)


def _jdbc(jar: str, driver: str, url: str) -> tuple[str, ...]:
    return ("{python}", "-m", "tests.clients.matrix.programs.jdbc", "{place}/" + jar, driver, url)


def _databricks(version: str, settings: str) -> tuple[str, ...]:
    url = "jdbc:databricks://{{http}}/default;transportMode=http;ssl=0;AuthMech=3;httpPath={{path}};" + settings
    return _jdbc(f"databricks-jdbc-{version}.jar", "com.databricks.client.jdbc.Driver", url)


def _hive(url: str) -> tuple[str, ...]:
    return _jdbc("hive-jdbc-4.0.1-standalone.jar", "org.apache.hive.jdbc.HiveDriver", url)


def _other(way: str) -> tuple[str, ...]:
    return ("{place}", "-m", "tests.clients.matrix.programs.others", way)


_NO_CANCEL = {"cancel": "has no call for it"}
_NO_METADATA = {"metadata": "has no call for it"}
_NO_PARAMETERS = {"parameters": "has none"}
_OTHERS, _DRIVERS, _NODE, _GO = (f"GATEWAY_TEST_{kind}" for kind in ("CLIENTS", "DRIVERS", "NODE", "GO"))
_THRIFT, _REST = "UseThriftClient=1;EnableTelemetry=0", "UseThriftClient=0;EnableTelemetry=0"

CLIENTS: tuple[Client, ...] = (
    Client("databricks-sql-connector", "HTTP", _python("dbapi", "connector")),
    Client("databricks-sql-connector without pyarrow", "HTTP", _python("dbapi", "bare")),
    Client("databricks-sql-connector, use_sea", "REST", _python("dbapi", "rest")),
    Client("pandas.read_sql", "HTTP", _python("dbapi", "pandas")),
    Client("PyHive", "TCP", _python("dbapi", "pyhive")),
    Client("impyla", "TCP", _python("dbapi", "impyla")),
    Client("impyla, HTTP", "HTTP", _python("dbapi", "impyla-http")),
    Client("databricks-sqlalchemy", "HTTP", _other("sqlalchemy"), _OTHERS, _NO_CANCEL),
    Client("polars.read_database", "HTTP", _other("polars"), _OTHERS),
    Client("ibis", "HTTP", _other("ibis"), _OTHERS, {**_NO_CANCEL, **_NO_PARAMETERS}),
    Client("databricks-sdk", "REST", _other("sdk"), _OTHERS),
    Client("arrowbricks", "HTTP", _other("arrowbricks"), _OTHERS),
    Client("arrowbricks, protocol sea", "REST", _other("arrowbricks-rest"), _OTHERS),
    Client("Databricks JDBC 2.8", "HTTP", _databricks("2.8.7", "UseNativeQuery=1"), _DRIVERS),
    Client("Databricks JDBC 3.3", "HTTP", _databricks("3.3.3", _THRIFT), _DRIVERS),
    Client("Databricks JDBC 3.4", "HTTP", _databricks("3.4.5", _THRIFT), _DRIVERS),
    Client("Databricks JDBC 3.4 in SEA mode", "REST", _databricks("3.4.5", _REST), _DRIVERS),
    Client("Hive JDBC", "TCP", _hive("jdbc:hive2://{{tcp}}/default"), _DRIVERS),
    Client(
        "Hive JDBC, HTTP",
        "HTTP",
        _hive("jdbc:hive2://{{http}}/default;transportMode=http;httpPath=cliservice"),
        _DRIVERS,
    ),
    Client("@databricks/sql", "HTTPS", ("node", "{programs}/cases.js", "{place}"), _NODE),
    Client("databricks-sql-go", "HTTP", ("{place}",), _GO, _NO_METADATA),
    Client("databricks-sql-go with links", "HTTPS", ("{place}", "https"), _GO, _NO_METADATA),
    Client("databricks-sdk-go", "REST", ("{place}-sdk",), _GO),
    Client("ADBC Go, driver/databricks", "HTTPS", ("{place}-adbc",), _GO, _NO_PARAMETERS),
)


@dataclass(frozen=True)
class Outcome:
    """What came of a client: its version, and for each case "yes", a reason why it has none, or what went wrong."""

    version: str
    cases: dict[str, str]


def found(client: Client) -> tuple[list[str], dict[str, str]]:
    """The command line of a client's program and its environment. Raises MissingError."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GATEWAY_", "PYTHON"))}
    environment["PYTHONPATH"] = str(ROOT)
    places = {"python": sys.executable, "programs": str(PROGRAMS)}
    if client.needs:
        place = os.environ.get(client.needs, "")
        if not place:
            raise MissingError(f"{client.needs} is not set: make test-clients")
        places["place"] = place
    line = [part.format(**places) for part in client.command]
    absent = [part for part in line if part.startswith("/") and not Path(part).exists()]
    if absent:
        raise MissingError(f"there is no {absent[0]}")
    if shutil.which(line[0]) is None:
        raise MissingError(f"there is no {line[0]}")
    return line, environment


def outcome(client: Client, door: dict[str, str]) -> Outcome:
    """Run a client's program and judge what it tells. Raises MissingError."""
    line, environment = found(client)
    table = "made_" + "".join(c if c.isalnum() else "_" for c in client.name.lower())
    asked = order(table, door, [*client.without])
    done = subprocess.run(
        line,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=300,
        env={**environment, "NODE_EXTRA_CA_CERTS": door["ca"], "NODE_NO_WARNINGS": "1"},
        cwd=ROOT,
        check=False,
    )
    said: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not said:
        raise RuntimeError(f"{client.name} told nothing (exit {done.returncode}): {done.stderr[-3000:]}")
    by_case = {one["case"]: one for one in said if "case" in one}
    cases = {}
    for case in CASES:
        if case.name in client.without:
            cases[case.name] = "- " + client.without[case.name]
        elif case.name not in by_case:
            cases[case.name] = f"its program ended before: {done.stderr[-500:]}"
        elif "failed" in by_case[case.name]:
            cases[case.name] = by_case[case.name]["failed"]
        else:
            cases[case.name] = case.judge(by_case[case.name]["seen"]) or "yes"
    return Outcome(said[0]["version"], cases)
