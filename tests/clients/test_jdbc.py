"""JDBC drivers read every row once. Their jars are looked for in GATEWAY_TEST_DRIVERS or a cache folder; none is fetched."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.fuzz.clients.wire import query
from tests.live.gateway import HTTP_PATH, Server

pytestmark = pytest.mark.heavy

ROWS = 100_001
LINKED_ROWS = 1_200_001
PROGRAM = Path(__file__).with_name("Pages.java")
_DATABRICKS = f"jdbc:databricks://{{host}}/default;transportMode=http;ssl=0;AuthMech=3;httpPath={HTTP_PATH}"
_HIVE = "jdbc:hive2://{host}/default;transportMode=http;httpPath=cliservice"


@dataclass(frozen=True)
class Driver:
    """A released driver: where it is found, its class, and a URL with the server and the rows of a page left open."""

    coordinates: str
    name: str
    url: str
    file: str

    @classmethod
    def databricks(cls, version: str, settings: str) -> Driver:
        """A version of databricks-jdbc."""
        coordinates = f"com.databricks:databricks-jdbc:{version}"
        url = f"{_DATABRICKS};RowsFetchedPerBlock={{size}};{settings}"
        return cls(coordinates, "com.databricks.client.jdbc.Driver", url, f"databricks-jdbc-{version}.jar")

    @classmethod
    def hive(cls, version: str) -> Driver:
        """A version of hive-jdbc, with all that it needs."""
        coordinates = f"org.apache.hive:hive-jdbc:{version}:jar:standalone"
        return cls(coordinates, "org.apache.hive.jdbc.HiveDriver", _HIVE, f"hive-jdbc-{version}-standalone.jar")


_OLD, _NEW = "UseNativeQuery=1", "UseThriftClient=1;EnableTelemetry=0"
DRIVERS = [
    Driver.databricks("2.6.40", _OLD),
    Driver.databricks("2.7.3", _OLD),
    Driver.databricks("2.8.7", _OLD),
    Driver.databricks("2.8.7", f"{_OLD};EnableArrow=0"),
    Driver.databricks("2.8.7", f"{_OLD};EnableDirectResults=0"),
    Driver.databricks("3.0.3", _NEW),
    Driver.databricks("3.2.1", _NEW),
    Driver.databricks("3.3.3", _NEW),
    Driver.databricks("3.4.5", _NEW),
    Driver.databricks("3.3.3", "UseThriftClient=0;EnableTelemetry=0"),
    Driver.databricks("3.4.5", "UseThriftClient=0;EnableTelemetry=0"),
    Driver.databricks("3.4.5", f"{_NEW};EnableDirectResults=0"),
    Driver.databricks("3.4.5", f"{_NEW};EnableArrow=0"),
    Driver.hive("4.0.1"),
]


def folder() -> Path:
    """Where jars of drivers are."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get("GATEWAY_TEST_DRIVERS") or Path(base) / "delta-sql-gateway" / "drivers")


@pytest.fixture
def jar(driver: Driver) -> Path:
    """The driver's jar; without it or Java the test is skipped."""
    found = folder() / driver.file
    if shutil.which("java") is None:
        pytest.skip("no Java here")
    if not found.is_file():
        pytest.skip(f"no {found}: mvn dependency:copy -Dartifact={driver.coordinates} -DoutputDirectory={folder()}")
    return found


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda d: d.coordinates + ";" + d.url.rpartition(";")[2])
@pytest.mark.parametrize("size", [997, 25_000, 2_000_000])
def test_every_row_comes_once(server: Server, driver: Driver, jar: Path, size: int) -> None:
    read(server, driver, jar, size, ROWS)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda d: d.coordinates + ";" + d.url.rpartition(";")[2])
def test_every_row_of_a_result_that_is_large_enough_for_links_comes_once(
    server: Server, driver: Driver, jar: Path
) -> None:
    read(server, driver, jar, 100_000, LINKED_ROWS)


def read(server: Server, driver: Driver, jar: Path, size: int, rows: int) -> None:
    """Has the driver read `rows` rows and look at each of them."""
    url = driver.url.format(host=urlsplit(server.url).netloc, size=size)
    command = ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", str(jar), str(PROGRAM)]
    command += [url, driver.name, str(size), query(rows)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == f"rows: {rows}", done.stdout[-4000:]
