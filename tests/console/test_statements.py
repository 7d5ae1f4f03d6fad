"""What runs and what ran, looked at in a browser: the list, one statement in full, its end; texts that are no texts."""

from __future__ import annotations

import time

import pytest

from tests.live.browser import Page
from tests.live.console import HOSTILE, LONG, behind, end_all, run
from tests.live.gateway import Server

pytestmark = [pytest.mark.browser]


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


def test_what_is_pressed_for_long_is_still_clicked(page: Page, open_server: Server) -> None:
    end = behind(open_server, LONG)
    page.until("document.querySelector('.is-running .state.running')")
    with page.pressed(".is-running .c-text a"):
        time.sleep(2.5)  # the list would be drawn again and again
    with page.pressed("button", "Kill"):
        time.sleep(2.5)
    page.click("dialog button", "Kill")
    page.shows("Cancelled")
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


def test_the_list_tells_programs_and_finds_what_took_long(page: Page, open_server: Server) -> None:
    run(open_server, "SELECT 1 AS a_short_one")
    end = behind(open_server, LONG.replace("long_one", "a_long_one"))
    page.shows("a_long_one")
    time.sleep(2)  # a time that is told apart from a short one's on a busy machine, too
    end_all(page)
    end()
    page.until("!document.querySelector('.is-running')")
    page.click("input[name=text]")
    page.type("_one")
    page.shows("a_short_one")
    row = "[...document.querySelectorAll('.window-rows .grid-row')].find(r => r.innerText.includes('a_short_one'))"
    assert page.evaluate(f"[...{row}.children].map(c => c.innerText)")[2:5] == ["anonymous", "a", "datafusion"]
    assert page.evaluate(f"{row}.querySelector('.c-client bdi').title") == "a program"
    width = "[...{}.querySelectorAll('.phases i')].reduce((sum, i) => sum + i.getBoundingClientRect().width, 0)"
    long_row = row.replace("a_short_one", "a_long_one")
    assert page.evaluate(width.format(f"({row})")) < page.evaluate(width.format(f"({long_row})"))
    page.evaluate(
        "{const s = document.querySelector('select[name=least_ms]'); s.value = '1000'; s.dispatchEvent(new Event('change'))}"
    )
    page.until(f"!({row}) && ({long_row})")
    page.evaluate(f"{long_row}.querySelector('a').click()")
    page.until("[...document.querySelectorAll('dt')].some(d => d.textContent === 'Rows given')")
    page.until("document.activeElement.id === 'content'")  # keys go on from there
    page.evaluate("history.back()")
    page.until(f"!({row}) && ({long_row})")  # as it was left
    assert page.evaluate("document.querySelector('input[name=text]').value") == "_one"
    page.evaluate(
        "{const i = document.querySelector('input[name=text]'); i.value = 'no such text'; "
        "i.dispatchEvent(new Event('input'))}"
    )
    page.shows("No statement is like that.")
    page.click("button", "Reset")
    page.until(f"({row}) && ({long_row})")
    assert page.evaluate("document.querySelector('select[name=least_ms]').value") == ""


def test_only_news_are_asked_for_and_all_of_them_are_shown(page: Page, open_server: Server) -> None:
    run(open_server, "SELECT 1 AS before_the_news")
    page.shows("before_the_news")
    page.until("document.querySelector('.figures').innerText.includes('ended')")
    run(open_server, "SELECT 1 AS one_of_the_news")
    page.shows("one_of_the_news")
    asked = [url for url in page.requests() if "/api/statements?" in url]
    assert "max_results=20" in asked[-1]
    page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    run(open_server, *(f"SELECT 1 AS many_news_{i}" for i in range(30)))  # more than it asks for at once
    page.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    shown = """[...document.querySelectorAll('.window-rows .grid-row')].sort((a, b) => a.dataset.index - b.dataset.index)
        .map(row => row.querySelector('.c-text a').title).filter(text => text.includes('_news'))"""
    news = [*(f"SELECT ? AS many_news_{i}" for i in range(29, -1, -1)), "SELECT ? AS one_of_the_news"]
    page.until("document.body.innerText.includes('many_news_29')")
    page.evaluate("document.querySelector('.window').scrollTop = 34 * 10")
    page.until(f"{shown}.includes('SELECT ? AS one_of_the_news')")
    page.evaluate("document.querySelector('.window').scrollTop = 0")
    page.until(f"{shown}[0] === 'SELECT ? AS many_news_29'")  # drawn again, once the browser has scrolled
    first = page.evaluate(shown)
    assert len(first) > 10
    assert first == news[: len(first)]


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


def test_a_list_that_was_not_answered_goes_on(page: Page, open_server: Server, long_history: int) -> None:
    page.go("/console#/statements")
    page.until("document.querySelector('.window-rows .grid-row')")
    known = int(page.evaluate("document.querySelector('.window').getAttribute('aria-rowcount')"))
    assert known < long_history
    page.call("Network.setBlockedURLs", urls=["*/api/statements?*"])
    page.evaluate("{const w = document.querySelector('.window'); w.scrollTop = w.scrollHeight}")
    page.until("document.querySelector('.notice.bad:not([hidden])')")
    page.call("Network.setBlockedURLs", urls=[])
    page.until("!document.querySelector('.notice.bad:not([hidden])')")
    end = "{const w = document.querySelector('.window'); w.scrollTop = 0; w.scrollTop = w.scrollHeight}"
    page.until(f"(() => {{{end} return document.querySelector('.window').getAttribute('aria-rowcount') > {known}}})()")
