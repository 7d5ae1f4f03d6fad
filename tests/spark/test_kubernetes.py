"""Kubernetes: two executor pods of a fake cluster."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.protocol.client import Client
from gateway.thrift_gen.TCLIService import ttypes
from tests.live.gateway import Server, connect_to
from tests.live.processes import descendants, eventually
from tests.live.spark import Background, Sql, start_with_spark
from tests.spark.core import core, dies
from tests.spark.kubernetes import Kubernetes
from tests.spark.test_loss import alive
from tests.spark.test_running import COUNTED, SPARK

pytestmark = [pytest.mark.spark, pytest.mark.heavy]

PROPERTIES = """
spark.kubernetes.container.image any
spark.executor.instances 2
spark.scheduler.maxRegisteredResourcesWaitingTime 20s
spark.executor.memory 512m
spark.executor.cores 1
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
"""
TASKS = "range(0, 12000000, 1, 24) WHERE sha2(CAST(id AS STRING), 512) > ''"
FORBIDDEN = 'pods is forbidden: User "gateway" cannot create resource "pods" in API group "" in the namespace "default"'


@pytest.fixture
def kubernetes(spark_here: None, tmp_path: Path) -> Iterator[Kubernetes]:
    """A cluster without pods."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.origin is not None
    one = Kubernetes(Path(found.origin).parent, tmp_path / "pods")
    yield one
    one.die()


@pytest.fixture
def gateway(kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Server]:
    """A gateway over the cluster; Spark has not started."""
    properties = tmp_path / "spark.conf"
    properties.write_text(PROPERTIES)
    running = start_with_spark(tmp_path, "--spark-properties", str(properties), master=kubernetes.url)
    yield running
    if running.process.poll() is None:
        assert running.stop() == 0


def test_core_and_the_end(gateway: Server, kubernetes: Kubernetes) -> None:
    with connect_to(gateway) as connection:
        core(gateway, connection)
        assert len(kubernetes.pods("Running")) == 2
    assert gateway.stop() == 0
    eventually(lambda: not kubernetes.pods() and not kubernetes.named("configmaps"), 20)


def test_a_killed_gateway_leaves_nothing(gateway: Server, kubernetes: Kubernetes) -> None:
    with connect_to(gateway) as connection:
        assert Sql(connection).spark(COUNTED) == [(4950,)]
    below = list(descendants(gateway.process.pid))
    gateway.process.kill()
    gateway.process.wait()
    eventually(lambda: not kubernetes.pods() and not kubernetes.named("configmaps"), 20)
    eventually(lambda: not alive(below), 20)


def test_pods_that_end(gateway: Server, kubernetes: Kubernetes) -> None:
    """Spark asks for others, and runs the tasks of those that are gone once more."""
    with connect_to(gateway) as connection:
        assert Sql(connection).spark(COUNTED) == [(4950,)]
        one, other = kubernetes.pods("Running")
        statement = Background(gateway, f"SELECT count(*) FROM {TASKS}")
        time.sleep(4)  # it runs by now
        kubernetes.kill(one)
        statement.close()
        assert statement.error is None and statement.rows == [(12_000_000,)]
        eventually(lambda: len(kubernetes.pods("Running")) == 2, 30)
        assert one not in kubernetes.pods() and other in kubernetes.pods()

    with Client(gateway.thrift_url) as client:  # all of them, while no image can be had
        client.open()
        told: list[str] = []

        def look(status: ttypes.TGetOperationStatusResp) -> None:
            told.append(status.progressUpdateResponse.footerSummary)
            if told[-1].endswith(" tasks") and kubernetes.start_pods and "Waiting for executors" not in told:
                kubernetes.start_pods = False
                for pod in kubernetes.pods("Running"):
                    kubernetes.kill(pod)
            kubernetes.start_pods |= told[-1] == "Waiting for executors"

        found = client.execute(f"SELECT count(*) AS n FROM {TASKS}", configuration=SPARK, progress=look, direct=False)
        assert found.table().to_pydict() == {"n": [12_000_000]}
    assert "Waiting for executors" in told


def test_pods_that_nobody_may_create(gateway: Server, kubernetes: Kubernetes) -> None:
    with connect_to(gateway) as connection:
        sql = Sql(connection)
        for status, text in ((403, FORBIDDEN), (401, "Unauthorized")):
            kubernetes.refuse = (status, text)
            begin = time.monotonic()
            with pytest.raises(
                Exception, match=r"Spark cannot be started: .* more stands in this server's standard error"
            ):
                sql.spark(COUNTED)
            assert time.monotonic() - begin < 60
            log = gateway.log.read_text()
            assert f"Message: {text}" in log and "\tat " not in log
            assert sql.embedded("SELECT 1") == [(1,)]
        kubernetes.refuse = None
        assert sql.spark(COUNTED) == [(4950,)]


def test_pods_that_do_not_start(gateway: Server, kubernetes: Kubernetes) -> None:
    kubernetes.start_pods = False
    with connect_to(gateway) as connection:
        sql = Sql(connection)
        with pytest.raises(
            Exception, match=r"no executor of .* came within 120 seconds: pod .*-exec-1 is Pending"
        ) as raised:
            sql.spark(COUNTED)
        assert 'ImagePullBackOff: Back-off pulling image "any"' in str(raised.value)
        eventually(lambda: not kubernetes.pods(), 20)
        kubernetes.start_pods = True
        assert sql.spark(COUNTED) == [(4950,)]


def test_a_cluster_that_dies_in_the_middle_of_a_statement(gateway: Server, kubernetes: Kubernetes) -> None:
    with connect_to(gateway) as connection:
        dies(gateway, connection, kubernetes.die)
