"""What axe-core says of every view, light and dark, on a phone too: nothing serious.

It is no part of this repository: `npm pack axe-core`, and GATEWAY_TEST_AXE names its `axe.min.js`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.test_editor import write
from tests.console.test_facts import SLOW, open_statement
from tests.console.test_views import VIEWS
from tests.live.browser import Browser, Page
from tests.live.console import record_pipelines, run
from tests.live.gateway import Server

AXE = os.environ.get("GATEWAY_TEST_AXE")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(AXE is None, reason="GATEWAY_TEST_AXE names no axe.min.js (npm pack axe-core)"),
]
RUN = """axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => one.id + ": " + one.nodes.slice(0, 5).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join(" | ")))"""


@pytest.fixture(scope="module")
def filled(open_server: Server) -> Server:
    """A gateway with something to be seen in each view."""
    run(
        open_server,
        "CREATE TABLE IF NOT EXISTS main.default.facts PARTITIONED BY (k) AS SELECT id, id % 3 AS k FROM range(100000)",
        "SELECT no_such_column FROM samples.tpch.nation",
        SLOW,
    )
    record_pipelines(open_server, "axe", "[PATH_NOT_FOUND] Path does not exist: /srv/raw")
    return open_server


@pytest.fixture(params=[("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)], ids="{0[0]}-{0[1]}".format)
def looked_at(request: pytest.FixtureRequest, browser: Browser, filled: Server) -> Iterator[Page]:
    colour, width = request.param
    with browser.page(filled.url, width=width, height=800, phone=width < 500) as page:
        page.until("document.querySelector('main')?.childElementCount > 0")
        page.evaluate(f"document.documentElement.dataset.theme = '{colour}'")
        page.evaluate(Path(str(AXE)).read_text(encoding="utf-8") + "; 0")
        yield page


def test_no_view_has_a_serious_finding(looked_at: Page) -> None:
    found: dict[str, list[str]] = {}

    def look(name: str) -> None:
        looked_at.evaluate("new Promise(done => setTimeout(done, 300))")
        findings = looked_at.evaluate(RUN)
        if findings:
            found[name] = findings

    for view in (*VIEWS, "pipelines/axe"):
        looked_at.evaluate(f"location.hash = '#/{view}'")
        looked_at.until(f"document.querySelector('main').className === 'view-{view.partition('/')[0]}'")
        looked_at.until(
            "document.querySelector('main h1') && !document.querySelector('main').innerText.includes('…\\n')"
        )
        look(view)
    looked_at.evaluate("location.hash = '#/catalog/main/default/facts'")
    looked_at.click("button", "Files")
    looked_at.shows("3 files")
    look("files")
    for text in ("of_long", "no_such_column"):
        open_statement(looked_at, text)
        look(text)
    write(looked_at, "SELECT id, id * id AS y FROM range(30)")
    looked_at.click("button", "Run")
    looked_at.shows("30 rows")
    look("rows")
    looked_at.click("button", "Chart")
    looked_at.until("document.querySelector('.chart svg')")
    look("chart")
    looked_at.click("button", "Analyze")
    looked_at.until("document.querySelector('.plan .operator')")
    look("plan")
    assert found == {}, json.dumps(found, indent=1)


def test_signing_in_has_no_serious_finding(browser: Browser, token_server: Server) -> None:
    with browser.page(token_server.url) as page:
        page.shows("Sign in")
        page.evaluate(Path(str(AXE)).read_text(encoding="utf-8") + "; 0")
        assert page.evaluate(RUN) == []
