"""A master or Connect server that is not there is told before a JVM waits for it for minutes."""

import socket

import pytest

from gateway.engine.spark.session import reach
from gateway.errors import ConfigError


@pytest.mark.parametrize("scheme", ["spark", "sc"])
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


@pytest.mark.parametrize("url", ["spark://", "spark://host", "spark://host:port", "sc://", "sc://[::1"])
def test_reach_of_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match=r"is not (spark|sc)://HOST:PORT"):
        reach(url)
