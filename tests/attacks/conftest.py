"""What attacks by statements start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.protocol.client import Client
from tests.live.gateway import Server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    """A session on the gateway of all tests."""
    with Client(server.thrift_url).open() as one:
        yield one
