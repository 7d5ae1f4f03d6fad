"""A server over scripted statements, open to everybody or guarded by a token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.auth.authenticators import AllowAll, StaticTokens, token_line
from gateway.protocol.handler import ThriftHandler
from gateway.transport.http import HttpApp, HttpLimits, Probes
from gateway.transport.server import HttpServer
from tests.unit.protocol.fake import FakeService
from tests.unit.transport.raw import LIMIT, SCRIPTS, Probe


@pytest.fixture(scope="module")
def probe() -> Probe:
    return Probe()


@pytest.fixture(scope="module")
def service() -> FakeService:
    return FakeService(dict(SCRIPTS))


@pytest.fixture(scope="module")
def server(service: FakeService, probe: Probe) -> Iterator[HttpServer]:
    app = HttpApp(
        ThriftHandler(service).handle,
        AllowAll(),
        Probes(lambda: probe.reason, lambda: b"rows_total 1\n"),
        limits=HttpLimits(threads=16, body=LIMIT, body_seconds=1.0),
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield server
    server.stop(1.0)
    app.close()


@pytest.fixture
def guarded() -> Iterator[HttpServer]:
    name, digest = token_line("ann", "secret-token").split(":")
    app = HttpApp(
        ThriftHandler(FakeService(dict(SCRIPTS))).handle,
        StaticTokens([(name, digest)]),
        Probes(lambda: None, lambda: b""),
        limits=HttpLimits(threads=2),
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield server
    server.stop(1.0)
    app.close()
