"""What all tests may ask for: a gateway, a Spark, connections to them, small disks, the corpora."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.spark import setup
from tests.conformance.shared import TABLES, shared_folder, unpacked
from tests.live.disk import Disk, SmallDisk
from tests.live.doors import Certificates, make_certificates
from tests.live.gateway import Connect, Server, connections, start_server
from tests.live.postgres import Postgres, problem
from tests.live.spark import QUICK, Sql, jars, missing, start_with_spark


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One gateway for all tests of a process."""
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "files").mkdir()
    running = start_server(folder, "--allow-path", str(folder / "files"), "--memory-limit", "1GiB")
    yield running
    code = running.stop()
    assert code == 0, f"gateway serve ended with {code}:\n{running.log.read_text()[-4000:]}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for all tests of a process, skipped where there is none."""
    reason = problem()
    if reason is not None:
        pytest.skip(reason)
    found = Postgres()
    try:
        found.start()
        yield found
    finally:
        found.close()


@pytest.fixture
def connect(server: Server) -> Iterator[Connect]:
    """Opens connections to `server` that are closed after the test."""
    yield from connections(server)


@pytest.fixture
def cursor(connect: Connect) -> Iterator[Any]:
    """A cursor of a new connection."""
    with connect().cursor() as one:
        yield one


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority and a server's certificate."""
    return make_certificates(tmp_path_factory.mktemp("tls") / "files")


@pytest.fixture(scope="session")
def tcp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway with HTTP and TCP, both plain."""
    folder = tmp_path_factory.mktemp("tcp")
    running = start_server(folder, "--tcp-port", "0", "--memory-limit", "1GiB", "--max-request-body", "64KiB")
    yield running
    code = running.stop()
    assert code == 0, f"gateway serve ended with {code}:\n{running.log.read_text()[-4000:]}"


@pytest.fixture(scope="session")
def tls_server(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Server]:
    """A gateway with HTTP, HTTPS, and TLS on TCP."""
    flags = ("--tcp-port", "0", "--tcp-tls", "true", "--tls-port", "0", "--memory-limit", "1GiB")
    running = start_server(tmp_path_factory.mktemp("tls-server"), *flags, *certificates.flags)
    yield running
    code = running.stop()
    assert code == 0, f"gateway serve ended with {code}:\n{running.log.read_text()[-4000:]}"


@pytest.fixture
def small_disk() -> Iterator[Disk]:
    """Mounts file systems of so many MiB on folders; skips the test where nothing can be mounted."""
    with contextlib.ExitStack() as stack:

        def mount(folder: Path, mebibytes: int) -> SmallDisk:
            disk = SmallDisk(folder, mebibytes)
            stack.callback(disk.remove)
            return disk

        yield mount


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the corpora; skips the test where it is missing."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("the corpora are not here (set GATEWAY_SHARED)")
    return folder


@pytest.fixture(scope="module")
def tables_of_others(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Delta tables that others wrote, unpacked; skips the test where they are missing."""
    found = unpacked(tmp_path_factory.mktemp("others"))
    if found is None:
        pytest.skip(f"{TABLES} is not among the corpora")
    return found


@pytest.fixture(scope="session")
def spark_here() -> None:
    """Skips the test where Java, pyspark or the Delta jars are missing."""
    reason = missing()
    if reason is not None:
        pytest.skip(f"no Spark here: {reason}")


@pytest.fixture(scope="session")
def spark(spark_here: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One classic SparkSession with Delta in the tests' own process."""
    from gateway.engine.spark import session

    settings = session.settings(setup.check(jars()), tmp_path_factory.mktemp("spark"), memory=1 << 30, extra=QUICK)
    with warnings.catch_warnings():  # pyspark speaks of pandas, which it only imports
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="pyspark")
        one = session.start("local[2]", settings)
    yield one
    one.stop()


@pytest.fixture(scope="session")
def spark_server(spark_here: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One gateway with Spark for all tests of a process."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "files").mkdir()
    running = start_with_spark(folder, "--allow-path", str(folder / "files"))
    yield running
    code = running.stop()
    log = running.log.read_text()
    assert code == 0, f"gateway serve ended with {code}:\n{log[-4000:]}"
    assert "\tat " not in log and "Caused by:" not in log and "Aborting job" not in log, "Java in the gateway's log"


@pytest.fixture
def spark_connect(spark_server: Server) -> Iterator[Connect]:
    """Opens connections to `spark_server` that are closed after the test."""
    yield from connections(spark_server)


@pytest.fixture
def sql(spark_connect: Connect) -> Sql:
    """Statements on a new connection."""
    return Sql(spark_connect())
