"""A master or Connect server that is not there is told before a JVM waits for it for minutes."""

import socket

import pytest

from gateway.engine.spark.session import reach
from gateway.errors import ConfigError


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_reach(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reach(f"{scheme}://127.0.0.1:{port}")
        reach(f"{scheme}://127.0.0.1:1,127.0.0.1:{port}")
        reach(f"{scheme}://127.0.0.1:{port}/;token=abc")
    with pytest.raises(ConfigError, match=f"{scheme}://127.0.0.1:{port} does not answer: .*refused"):
        reach(f"{scheme}://127.0.0.1:{port}")


@pytest.mark.parametrize("url", ["spark://host:port", "sc://[::1"])
def test_reach_of_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match="does not answer"):
        reach(url)
