"""A master or Connect server that is not there is told before a JVM waits for it for minutes."""

import socket
from pathlib import Path

import pytest

from gateway.engine.spark.session import find, reach
from gateway.errors import ConfigError


@pytest.mark.parametrize("scheme", ["spark", "sc", "k8s", "k8s://http", "k8s://https"])
def test_reach(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert reach(f"{scheme}://127.0.0.1:{port}") == f"127.0.0.1:{port}"
    with pytest.raises(ConfigError, match=f"127.0.0.1:{port} does not answer: Connection refused"):
        reach(f"{scheme}://127.0.0.1:{port}")


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert reach(f"spark://127.0.0.1:1,127.0.0.1:{port}") == f"127.0.0.1:{port}"


def test_a_token_is_never_told() -> None:
    with pytest.raises(ConfigError) as raised:
        reach("sc://127.0.0.1:1/;token=secret")
    assert "secret" not in str(raised.value)


def test_yarn_is_found_by_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(ConfigError, match="yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR"):
        find("yarn")
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match=r"gone, is not there"):
        find("yarn")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert find("yarn") == f"YARN by {tmp_path}"
    assert find("local-cluster[2, 1, 1024]") is None


@pytest.mark.parametrize(
    "url", ["spark://", "spark://host", "spark://host:port", "sc://", "sc://[::1", "k8s://https://", "k8s://host:port"]
)
def test_reach_of_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match=r"is not (spark|sc|k8s)://HOST:PORT"):
        reach(url)
