"""A browser for all tests of the console, if there is one; gateways with and without tokens."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest

from gateway.auth.authenticators import token_line
from gateway.history.records import STATEMENTS, Record
from tests.live.browser import Browser, Page, browser_path
from tests.live.console import run
from tests.live.gateway import Server, start_server
from tests.live.processes import eventually

TOKENS = {"ann": "dapi" + "a" * 32, "bob": "dapi" + "b" * 32, "root": "dapi" + "c" * 32}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = browser_path()
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    found = Browser(path)
    yield found
    found.close()


@pytest.fixture(scope="session")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway that asks nobody for a token."""
    running = start_server(tmp_path_factory.mktemp("open"), "--memory-limit", "1GiB", "--slots", "2")
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.log.read_text()


@pytest.fixture(scope="session")
def token_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway that wants tokens; `root` is its administrator."""
    folder = tmp_path_factory.mktemp("closed")
    tokens = folder / "tokens"
    tokens.write_text("".join(token_line(name, token) + "\n" for name, token in TOKENS.items()))
    flags = (
        "--auth",
        "token",
        "--token-file",
        str(tokens),
        "--admins",
        "root",
        "--memory-limit",
        "1GiB",
        "--slots",
        "2",
    )
    running = start_server(folder, *flags)
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.log.read_text()


@pytest.fixture
def page(browser: Browser, open_server: Server) -> Iterator[Page]:
    """The console of the gateway that asks nobody; at the end nothing was complained of, and nothing asked for elsewhere."""
    with browser.page(open_server.url) as found:
        found.until("document.querySelector('main')?.childElementCount > 0")  # until then it knows no keys
        yield found
        assert found.complaints() == []
        elsewhere = [url for url in found.requests() if not url.startswith((open_server.url, "data:", "blob:"))]
        assert elsewhere == []


@pytest.fixture(scope="session")
def long_history(open_server: Server) -> int:
    """Many statements of long ago in the history of the gateway that asks nobody; how many."""
    count, now = 10_000, int(time.time() * 1000)
    path = open_server.warehouse.parent / "state" / "history.db"
    run(open_server, "SELECT 1")
    eventually(path.exists, 30)
    names = ("0", "s", "anonymous", "test", "SELECT", "datafusion", "proved", "FINISHED", None, None, None, "")
    old = Record(*names, 0, 0, 12.5, 1.5, 0.5, 3.0, 8.0, 1, None, 100, 1, 2, 0, 64, False)
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.executemany(
            STATEMENTS.insertion(),
            (
                old._replace(
                    statement_id=str(uuid.UUID(int=i + 1)),
                    text="SELECT ? AS old_first" if i == 0 else f"SELECT ? AS old_{i}",
                    started_ms=now - 86_400_000 + i,
                    ended_ms=now - 86_400_000 + i + 12,
                )
                for i in range(count)
            ),
        )
        connection.commit()
    return count
