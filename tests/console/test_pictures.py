"""The pictures of docs/console.md, taken of a gateway at work: with GATEWAY_TEST_PICTURES=docs/pictures they are put there."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.auth.authenticators import token_line
from tests.console.test_editor import write
from tests.live.browser import Browser, Page
from tests.live.console import LONG, behind, record_pipelines, run, sign_in
from tests.live.gateway import Server, start_server

pytestmark = [pytest.mark.browser]

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 150_000
JOINED = """SELECT n_name, count(*) AS customers, round(sum(c_acctbal)) AS balance
FROM samples.tpch.nation
JOIN samples.tpch.customer ON n_nationkey = c_nationkey
GROUP BY n_name ORDER BY customers DESC"""
SLOW = """SELECT n_name, count(*) AS pairs FROM samples.tpch.lineitem a
JOIN samples.tpch.lineitem b ON a.l_suppkey = b.l_suppkey AND a.l_quantity <> b.l_quantity
JOIN samples.tpch.supplier ON s_suppkey = a.l_suppkey JOIN samples.tpch.nation ON n_nationkey = s_nationkey GROUP BY n_name"""
OTHERS = {
    "pipelines/shop": "json /srv/raw",
    "sessions": "gateway-console",
    "health": "Engine processes",
    "settings": "memory-limit",
}
TOKEN = "dapi" + "a" * 32
DONE = (
    SLOW,
    "SELECT r_name, count(*) FROM samples.tpch.region JOIN samples.tpch.nation ON r_regionkey = n_regionkey GROUP BY r_name",
    "SELECT l_returnflag, sum(l_quantity) FROM samples.tpch.lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1",
    "CREATE TABLE main.default.trips AS SELECT * FROM samples.nyctaxi.trips",
    "SELECT o_orderpriority, count(*) FROM samples.tpch.orders GROUP BY o_orderpriority",
    "SELECT no_such_column FROM samples.tpch.nation",
    "DELETE FROM main.default.trips WHERE fare_amount < 3",
    "SHOW TABLES IN samples.tpch",
    "SELECT upper(n_name) FROM samples.tpch.nation ORDER BY n_name",
    "DESCRIBE HISTORY main.default.trips",
)


def kept(text: str) -> str:
    """A text as a list shows it."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("work")
    tokens = folder / "tokens"
    tokens.write_text(token_line("ann", TOKEN) + "\n")
    flags = ("--auth", "token", "--token-file", str(tokens), "--admins", "ann")
    running = start_server(folder, "--memory-limit", "1GiB", "--slots", "2", *flags)
    run(running, *DONE, token=TOKEN)
    record_pipelines(running, "shop", "[PATH_NOT_FOUND] Path does not exist: /srv/raw")
    yield running
    assert running.stop() == 0


def taken(page: Page, name: str, folder: Path) -> None:
    """A picture of what is seen: small, and put where it is wanted."""
    page.evaluate("document.getElementById('notices').replaceChildren()")  # what was done before it
    time.sleep(0.5)  # for what fades and moves
    wanted = os.environ.get("GATEWAY_TEST_PICTURES")
    path = (ROOT / wanted if wanted else folder) / f"console-{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.picture(path)
    data = path.read_bytes()
    assert struct.unpack(">II", data[16:24])[0] >= 380
    assert len(data) < LARGEST


def test_pictures(browser: Browser, at_work: Server, tmp_path: Path) -> None:
    end = behind(at_work, LONG, token=TOKEN)
    with browser.page(at_work.url, width=1100, height=640) as page:
        page.shows("Sign in")
        taken(page, "sign-in", tmp_path)
        sign_in(page, TOKEN)
        page.until("document.querySelector('.is-running .state.running')")
        page.shows("DESCRIBE HISTORY")
        page.key("ArrowDown")
        taken(page, "statements", tmp_path)
        page.click(".is-running a")
        page.click("button", "Kill")
        page.click("dialog button", "Kill")
        page.shows("Cancelled")
        end()
        write(page, JOINED)
        page.click("button", "Run")
        page.shows("25 rows")
        page.until("document.querySelectorAll('.window-rows .result-row').length > 5")
        taken(page, "editor", tmp_path)
        page.click("button", "Chart")
        page.until("document.querySelector('.chart svg')")
        page.evaluate("document.querySelector('.editor-box').style.height = '100px'")
        page.evaluate("document.querySelector('main').scrollTop = 1e4")
        taken(page, "chart", tmp_path)
        page.click("button", "Analyze")
        page.click(".plan-slowest button")
        page.until("document.activeElement.classList.contains('operator')")
        page.evaluate("document.querySelector('main').scrollTop = 0")
        taken(page, "plan", tmp_path)
        page.evaluate("location.hash = '#/catalog/samples/tpch/nation'")
        page.shows("n_regionkey")
        taken(page, "catalog", tmp_path)
        for view, text in OTHERS.items():
            page.evaluate(f"location.hash = '#/{view}'")
            page.shows(text)
            taken(page, view.partition("/")[0], tmp_path)
        page.evaluate("location.hash = '#/statements'")
        page.click(".c-text a", kept(SLOW))
        page.until("document.querySelector('.plan .operator')")
        page.evaluate("document.querySelector('.plan').closest('section').scrollIntoView()")
        taken(page, "statement", tmp_path)
        page.evaluate("document.documentElement.dataset.theme = 'dark'; location.hash = '#/statements'")
        page.click(".c-text a", "SELECT upper(n_name) FROM samples.tpch.nation ORDER BY n_name")
        page.shows("Rows given")
        page.click("button", "Explain")
        page.until("document.querySelector('.plan')")
        taken(page, "statement-dark", tmp_path)
        assert page.complaints() == []
    with browser.page(at_work.url, width=390, height=640, phone=True) as page:
        page.shows("Sign in")
        sign_in(page, TOKEN)
        page.shows("DESCRIBE HISTORY")
        taken(page, "phone", tmp_path)


def test_the_page_of_the_docs_shows_pictures_that_are_there() -> None:
    shown = re.findall(
        r"\]\((pictures/console-[\w-]+\.png)\)", (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    )
    assert len(shown) >= 5
    for name in shown:
        assert (ROOT / "docs" / name).stat().st_size < LARGEST
