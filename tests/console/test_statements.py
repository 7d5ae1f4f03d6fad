"""What runs and what ran, looked at in a browser: the list, one statement in full, its end; texts that are no texts."""

from __future__ import annotations

import pytest

from tests.live.browser import Page
from tests.live.console import LONG, behind, run
from tests.live.gateway import Server

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HOSTILE = (
    "<script>complaints.push('script ran')</script>",
    "<img src=x onerror=complaints.push('image')>",
    "\"'`--/*",
    "\u202egnp.exe\u2066",
    "a\0b",
    "]]>&lt;%00",
)


def test_statements_are_listed_and_told_in_full(page: Page, open_server: Server) -> None:
    run(
        open_server,
        "SELECT count(*) AS listed_one FROM samples.tpch.nation",
        "SELECT no_such_column FROM samples.tpch.nation",
    )
    page.shows("listed_one")
    page.shows("Failed")
    assert page.evaluate("document.title").startswith("Statements")
    page.click(".c-text a", "SELECT no_such_column FROM samples.tpch.nation")
    page.shows("UNRESOLVED_COLUMN")
    page.shows("42703")
    page.click(".crumbs a")
    page.click(".c-text a", "SELECT count(*) AS listed_one FROM samples.tpch.nation")
    for told in ("Rows given", "Why", "datafusion", "Compiling", "Files read", "a program"):
        page.shows(told)


def test_what_runs_is_seen_live_and_killed(page: Page, open_server: Server) -> None:
    end = behind(open_server, LONG)
    page.shows("long_one")
    page.until("document.querySelector('.is-running .state.running')")
    page.click(".is-running .c-text a")
    page.click("button", "Kill")
    page.click("dialog button", "Kill")
    page.shows("Cancelled")
    page.shows("killed by anonymous")
    end()


def test_hostile_texts_are_shown_and_nothing_else(page: Page, open_server: Server) -> None:
    for text in HOSTILE:
        run(open_server, f"SELECT 1 AS `h {text.replace('`', '``')}`")
    run(open_server, f"SELECT '{'x' * 1_000_000}' AS large_one")
    page.until(f"document.querySelectorAll('.window-rows .grid-row').length >= {len(HOSTILE) + 1}")
    page.shows("<script>complaints.push('script ran')</script>")
    page.shows("⟨U+202E⟩gnp.exe⟨U+2066⟩")
    page.shows("a␀b")
    page.click(".c-text a", "SELECT ? AS `h <img src=x onerror=complaints.push('image')>`")
    page.shows("Rows given")
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    page.evaluate("location.hash = '#/statements/' + encodeURIComponent('<b>../../x\\u202e')")
    page.shows("Not known")


def test_the_list_goes_by_keys_and_filters(page: Page, open_server: Server) -> None:
    run(open_server, "SELECT 1 AS by_keys", "SELECT 2 AS by_keys_too")
    page.shows("by_keys_too")
    page.key("ArrowDown")
    page.key("Enter")
    page.shows("Rows given")
    page.key("1", alt=True)
    page.until("document.querySelector('.filters')")
    page.evaluate("document.activeElement.blur()")
    page.key("/")
    page.type("by_KEYS_too")
    page.until("document.querySelectorAll('.window-rows .grid-row').length === 1")
    page.shows("SELECT ? AS by_keys_too")


def test_a_long_history_is_windowed(page: Page, open_server: Server, long_history: int) -> None:
    page.go("/console#/statements")
    page.until("document.querySelector('.window-rows .grid-row')")
    for _ in range(40):
        page.evaluate("{const w = document.querySelector('.window'); w.scrollTop = w.scrollHeight}")
        if int(page.evaluate("document.querySelector('.window').getAttribute('aria-rowcount')")) >= long_history:
            break
        page.evaluate("new Promise(done => setTimeout(done, 100))")
    assert int(page.evaluate("document.querySelector('.window').getAttribute('aria-rowcount')")) >= long_history
    end = "{const w = document.querySelector('.window'); w.scrollTop = w.scrollHeight}"
    page.until(f"(() => {{{end} return document.body.innerText.includes('SELECT ? AS old_first')}})()")
    assert page.evaluate("document.querySelectorAll('.window-rows .grid-row').length") < 100
