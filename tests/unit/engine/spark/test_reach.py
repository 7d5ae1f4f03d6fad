"""A master or Connect server that is not there is told before a JVM waits for it for minutes."""

import socket
from pathlib import Path

import pytest

from gateway.engine.spark.masters import find, reach
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


@pytest.fixture
def yarn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that tells where YARN is."""
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    return tmp_path / "yarn-site.xml"


def properties(**values: str) -> str:
    """A file of Hadoop's; keys are those of resource managers, with _ for dots."""
    one = "<property><name>yarn.resourcemanager.{}</name><value>{}</value></property>"
    inner = "".join(one.format(key.replace("_", "."), value) for key, value in values.items())
    return f"<configuration>{inner}</configuration>"


def test_yarn_needs_its_configuration(yarn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"YARN's configuration cannot be read: .*No such file"):
        find("yarn")
    yarn.write_text("<configuration>")
    with pytest.raises(ConfigError, match=r"YARN's configuration cannot be read: .*yarn-site.xml: no element found"):
        find("yarn")
    monkeypatch.delenv("YARN_CONF_DIR")
    with pytest.raises(ConfigError, match="yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR"):
        find("yarn")


def test_yarn_is_where_its_configuration_says(yarn: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        there = f"127.0.0.1:{port}"
        for values in (
            {"address": there},
            {"hostname": "127.0.0.1", "address": f"${{yarn.resourcemanager.hostname}}:{port}"},
            {"ha_enabled": "true", "ha_rm-ids": "a, b", "address_a": "127.0.0.1:1", "address_b": there},
        ):
            yarn.write_text(properties(**values))
            assert find("yarn") == f"{there} accepts connections"
    with pytest.raises(ConfigError, match=f"{there} does not answer: Connection refused"):
        find("yarn")
    yarn.write_text(properties(hostname="127.0.0.1"))
    with pytest.raises(ConfigError, match=r"127.0.0.1:8032 does not answer: Connection refused"):
        find("yarn")
    yarn.write_text(properties(address="here:and there"))
    with pytest.raises(ConfigError, match=r"yarn.resourcemanager.address in .* is not HOST:PORT"):
        find("yarn")


def test_nothing_is_known_of_other_masters() -> None:
    assert find("local-cluster[2, 1, 1024]") is None


@pytest.mark.parametrize(
    "url", ["spark://", "spark://host", "spark://host:port", "sc://", "sc://[::1", "k8s://https://", "k8s://host:port"]
)
def test_reach_of_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match=r"is not (spark|sc|k8s)://HOST:PORT"):
        reach(url)
