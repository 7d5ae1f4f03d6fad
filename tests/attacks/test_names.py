"""A page elsewhere whose own name leads to this machine: where nobody signs in, none of its requests is answered."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest

from tests.live.gateway import Server

PATHS = ("/api/2.0/sql/history/queries", "/api/2.0/openapi.json", "/metrics", "/healthz", "/readyz", "//metrics/")
# What a browser sends of itself, over plain HTTP to a name that is not localhost; a page can set the values, and empty ones.
BROWSERS = ({"Accept-Language": "en-GB,en;q=0.5"}, {"Accept-Language": ""}, {"Sec-Fetch-Site": "same-origin"})
PROGRAMS: tuple[dict[str, str], ...] = ({}, {"User-Agent": "PyDatabricksSqlConnector/4.0", "Accept-Encoding": "gzip"})
FOREIGN = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "x@127.0.0.1", "[::1", "2130706433")


def status(server: Server, path: str, host: str, headers: dict[str, str]) -> int:
    """The answer to a GET by that name."""
    port = urlsplit(server.url).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Host": f"{host}:{port}", **headers})
    try:
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_names_of_others_are_refused_for_browsers(server: Server, path: str) -> None:
    for browser in BROWSERS:
        for host in FOREIGN:
            assert status(server, path, host, browser) == 421, (host, browser)
        for host in ("localhost", "127.0.0.1", "[::1]", "192.168.1.5"):
            assert status(server, path, host, browser) == 200, (host, browser)


@pytest.mark.parametrize("path", PATHS)
def test_programs_may_call_the_server_what_they_like(server: Server, path: str) -> None:
    for host in ("host.docker.internal", "gateway.example", "proxy", *FOREIGN[:3]):
        for program in PROGRAMS:
            assert status(server, path, host, program) == 200, (host, program)
