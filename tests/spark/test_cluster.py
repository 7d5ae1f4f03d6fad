"""A standalone cluster: a master and two workers on loopback addresses."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.live.gateway import Server, clean_environment, connect_to
from tests.live.spark import start_with_spark
from tests.spark.core import core, dies
from tests.spark.test_connect import free_port

pytestmark = [pytest.mark.spark, pytest.mark.heavy]

PROPERTIES = """
spark.executor.memory 512m
spark.executor.cores 1
spark.cores.max 2
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
"""


class Cluster(NamedTuple):
    """The address of its master, and its processes, the master's first."""

    url: str
    processes: list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def master(spark_here: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of a master and two workers."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.origin is not None
    home = Path(found.origin).parent
    port, folder = free_port(), tmp_path_factory.mktemp("cluster")
    url = f"spark://127.0.0.1:{port}"
    name = "org.apache.spark.deploy."
    environment = {**clean_environment(), "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
    commands = [[name + "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for n in (2, 3):
        options = ["--host", f"127.0.0.{n}", "--webui-port", "0", "-c", "1", "-m", "600m"]
        commands.append([name + "worker.Worker", *options, "--work-dir", str(folder / f"work{n}"), url])
    processes: list[subprocess.Popen[bytes]] = []
    log = (folder / "log").open("wb")
    try:
        for command in commands:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command], env=environment, stdout=log, stderr=log, cwd=folder
            )
            processes.append(process)
            time.sleep(5)
        yield Cluster(url, processes)
    finally:
        log.close()
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


@pytest.fixture(scope="module")
def cluster(master: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway over the cluster."""
    folder = tmp_path_factory.mktemp("gateway")
    properties = folder / "spark.conf"
    properties.write_text(PROPERTIES)
    running = start_with_spark(folder, "--spark-properties", str(properties), master=master.url)
    yield running
    assert running.stop() == 0


def test_core(cluster: Server) -> None:
    with connect_to(cluster) as connection:
        core(cluster, connection)
    assert os.path.isdir(cluster.warehouse)


def test_a_cluster_that_dies_in_the_middle_of_a_statement(cluster: Server, master: Cluster) -> None:
    def kill() -> None:
        for process in master.processes:
            process.kill()

    with connect_to(cluster) as connection:
        dies(cluster, connection, kill)
