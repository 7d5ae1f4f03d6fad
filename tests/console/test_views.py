"""The other views in a browser: signing in, catalog, sessions, health, settings; phones, colours, names for screen readers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.conftest import TOKENS
from tests.live.browser import Browser, Page
from tests.live.console import HOSTILE, LONG, ask, behind, marked, run, sign_in
from tests.live.gateway import Server, connect_to, start_server

pytestmark = [pytest.mark.browser]

VIEWS = ("statements", "editor", "catalog/samples/tpch/nation", "pipelines", "sessions", "health", "settings")


@pytest.fixture
def closed(browser: Browser, token_server: Server) -> Iterator[Page]:
    """The console of the gateway that wants tokens, before anybody has signed in."""
    with browser.page(token_server.url) as found:
        yield found
        assert [c for c in found.complaints() if not c.startswith("log:")] == []


def test_one_signs_in_and_out(closed: Page) -> None:
    closed.shows("Sign in")
    sign_in(closed, "wrong")
    closed.shows("The token is not valid.")
    closed.evaluate("document.querySelector('input[name=token]').value = ''")
    sign_in(closed, TOKENS["ann"])
    closed.until("document.querySelector('.who .user')?.innerText === 'ann'")
    assert TOKENS["ann"] not in closed.evaluate(
        "document.cookie + JSON.stringify({...localStorage, ...sessionStorage})"
    )
    assert closed.evaluate("document.cookie") == ""  # it is there, and out of reach
    closed.go("/console")
    closed.until("document.querySelector('.who .user')?.innerText === 'ann'")
    assert "Settings" not in closed.evaluate("document.getElementById('views').innerText")
    closed.click("button", "Sign out")
    closed.until("document.querySelector('input[name=token]')")
    assert ask(closed, "GET", "now")[0] == 401


def _signed_in(page: Page, name: str) -> None:
    sign_in(page, TOKENS[name])
    page.until(f"document.querySelector('.who .user')?.innerText === '{name}'")


def _editor(page: Page) -> str:
    """What the editor of the tab shows, and offers of what was run."""
    page.evaluate("location.hash = '#/editor'")
    page.until("document.getElementById('sql')")
    return str(page.evaluate("document.getElementById('sql').value + document.querySelector('.editor-bar').innerText"))


def _ran(page: Page, text: str) -> None:
    _editor(page)
    page.evaluate("document.getElementById('sql').focus(); document.getElementById('sql').select()")
    page.type(text)
    page.key("Enter", control=True)
    page.shows("1 row")


def test_what_somebody_has_written_is_not_shown_to_who_signs_in_next(closed: Page) -> None:
    _signed_in(closed, "ann")
    _ran(closed, "SELECT 'private' AS p")
    closed.click("button", "Sign out")
    closed.until("document.querySelector('input[name=token]')")
    assert "private" not in closed.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    _signed_in(closed, "bob")
    assert "private" not in _editor(closed)
    _ran(closed, "SELECT 'secret' AS s")
    for name, sees in (("bob", True), ("ann", False), ("bob", False)):  # after a sign-in that has ended by itself
        assert ask(closed, "POST", "sign-out")[0] == 200
        closed.until("document.querySelector('input[name=token]')")
        _signed_in(closed, name)
        assert ("secret" in _editor(closed)) is sees


def test_a_tab_is_begun_anew_where_another_one_signs_in_somebody_else(closed: Page) -> None:
    _signed_in(closed, "ann")
    _ran(closed, "SELECT 'private' AS p")
    body = json.dumps({"token": TOKENS["bob"]})
    init = json.dumps({"method": "POST", "headers": {"Content-Type": "application/json"}, "body": body})
    assert closed.evaluate(f"fetch('/console/api/sign-in', {init}).then(a => a.status)") == 200  # as another tab does
    closed.until("document.querySelector('.who .user')?.innerText === 'bob'")
    assert "private" not in _editor(closed)


def test_everybody_sees_and_kills_their_own_and_administrators_all(closed: Page, token_server: Server) -> None:
    run(token_server, "SELECT 1 AS of_bob", token=TOKENS["bob"])
    end = behind(token_server, LONG, token=TOKENS["bob"])
    sign_in(closed, TOKENS["ann"])
    closed.until("document.querySelector('.who .user')?.innerText === 'ann'")
    closed.shows("0 running or queued")
    assert "of_bob" not in closed.evaluate("document.body.innerText")
    closed.click("button", "Sign out")
    closed.until("document.querySelector('input[name=token]')")
    sign_in(closed, TOKENS["root"])
    closed.shows("of_bob")
    closed.until("document.querySelector('.is-running')")
    identifier = closed.evaluate("document.querySelector('.is-running a').hash.split('/').pop()")
    closed.click("button", "Sign out")
    closed.until("document.querySelector('input[name=token]')")
    sign_in(closed, TOKENS["ann"])
    closed.until("document.querySelector('.who .user')?.innerText === 'ann'")
    for method, path in (("POST", f"statements/{identifier}/kill"), ("GET", f"statements/{identifier}")):
        assert ask(closed, method, path)[0] == 404
    for path in ("rows", "csv", "arrow", "parquet"):  # a link to somebody else's result
        assert ask(closed, "GET", f"results/{identifier}/{path}")[0] in (400, 404)
    closed.evaluate(f"location.hash = '#/statements/{identifier}'")
    closed.shows("Not known")
    closed.click("button", "Sign out")
    closed.until("document.querySelector('input[name=token]')")
    sign_in(closed, TOKENS["root"])
    closed.evaluate(f"location.hash = '#/statements/{identifier}'")
    closed.click("button", "Kill")
    closed.click("dialog button", "Kill")
    closed.shows("Cancelled")
    end()


def test_the_tree_leads_to_tables(page: Page, open_server: Server) -> None:
    run(
        open_server,
        "CREATE SCHEMA IF NOT EXISTS main.`odd <i>schema`",
        "CREATE TABLE IF NOT EXISTS main.`odd <i>schema`.`<b>t_1` (`c<b>` INT COMMENT '<script>\u202e', `d` STRING)",
        "INSERT INTO main.`odd <i>schema`.`<b>t_1` VALUES (1, '<img src=x>')",
    )
    page.shows("running or queued")  # keys are heard from now on
    page.key("3", alt=True)
    page.until("document.querySelectorAll('[role=treeitem]').length >= 2")
    page.click("a[role=treeitem]", "main")
    page.click("article a", "odd <i>schema")
    page.click("article a", "<b>t_1")
    page.shows("c<b>")
    page.shows("<script>⟨U+202E⟩")
    page.click("button", "Preview")
    page.shows("<img src=x>")
    page.click("button", "History")
    page.shows("CREATE TABLE")
    page.click("button", "Detail")
    page.shows("numFiles")
    page.click("button", "Definition")
    page.shows("CREATE TABLE main")
    page.click("button", "Query in the editor")
    page.until("document.getElementById('sql')?.value.includes('`main`.`odd <i>schema`.`<b>t_1`')")
    page.click("button", "Run")
    page.shows("1 row in")


def test_hostile_names_comments_and_values_are_texts_in_the_catalog(page: Page, open_server: Server) -> None:
    texts = [text.replace("\0", "") for text in HOSTILE]

    def quoted(text: str) -> str:
        return f"`{text.replace('`', '``')}`"

    def literal(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    columns = ", ".join(f"{quoted(f'{i} {text}')} STRING COMMENT {literal(text)}" for i, text in enumerate(texts))
    values = ", ".join(
        literal(text) + (" || chr(0) || repeat('<i>', 350000)" if not i else "") for i, text in enumerate(texts)
    )
    schema, table = "main.`h <b>&\u202e`", "main.`h <b>&\u202e`.`t \"'<img src=x>`"
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    made = [
        f"CREATE SCHEMA IF NOT EXISTS {schema} COMMENT {literal(texts[1])}",
        f"CREATE TABLE IF NOT EXISTS {table} ({columns}) COMMENT {literal(texts[0])} {mapped}",
        f"INSERT INTO {table} SELECT {values}",
    ]
    assert run(open_server, *made) == []
    page.evaluate("location.hash = '#/catalog/main'")
    page.click("article a", "h <b>&⟨U+202E⟩")
    page.shows("t \"'<img src=x>")
    page.shows(texts[0])  # its comment
    page.click("article a", "t \"'<img src=x>")
    shown_texts = [*map(marked, texts)]
    page.until(f"document.querySelectorAll('.tab-body tbody tr').length === {len(texts)}")
    cells = page.evaluate(
        "[...document.querySelectorAll('.tab-body tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
    )
    assert [(cell[0], cell[3]) for cell in cells] == [(f"{i} {text}", text) for i, text in enumerate(shown_texts)]
    for tab, shown in (
        ("Preview", shown_texts[2]),
        ("History", "CREATE TABLE"),
        ("Detail", "numFiles"),
        ("Definition", shown_texts[4]),
    ):
        page.click("button", tab)
        page.shows(shown)
    page.click("button", "Preview")
    page.until("document.querySelector('.tab-body tbody')?.innerText.includes('␀<i>')")
    page.click("button", "Query in the editor")
    page.until("document.getElementById('sql')?.value.includes('<img src=x>')")
    page.click("button", "Run")
    page.shows("1 row in")
    page.evaluate("location.hash = '#/statements'")
    page.shows("INSERT INTO main.`h <b>&⟨U+202E⟩`")
    assert page.evaluate("document.querySelectorAll('main img, main script, main i:not([class])').length") == 0
    assert page.evaluate("document.title").endswith("Delta SQL Gateway")


def test_the_tree_goes_by_keys(page: Page) -> None:
    page.evaluate("location.hash = '#/catalog'")
    page.until("document.querySelector('a[role=treeitem]')")
    page.evaluate("document.querySelector('a[role=treeitem]').focus()")
    page.key("ArrowDown")
    assert page.evaluate("document.activeElement.innerText") == "samples"
    page.evaluate("location.hash = '#/catalog/system/query/history'")
    page.shows("statement_text")
    page.evaluate("location.hash = '#/catalog'")
    page.until("[...document.querySelectorAll('a[role=treeitem]')].some(a => a.innerText === 'samples')")
    page.evaluate("[...document.querySelectorAll('a[role=treeitem]')].find(a => a.innerText === 'samples').focus()")
    page.call(
        "Input.dispatchKeyEvent", type="rawKeyDown", key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39
    )
    page.until("[...document.querySelectorAll('a[role=treeitem]')].some(a => a.innerText === 'tpch')")
    page.key("ArrowDown")
    page.key("Enter")
    page.until("location.hash.startsWith('#/catalog/samples/')")


def test_sessions_health_and_settings(page: Page, open_server: Server) -> None:
    page.evaluate("location.hash = '#/health'")
    page.shows("Ready")
    page.shows("Engine processes")
    page.until("[...document.querySelectorAll('dd .state.finished')].some(e => e.innerText === 'written')")
    page.evaluate("location.hash = '#/settings'")
    page.shows("memory-limit")
    page.shows("1GiB")
    row = "[...document.querySelectorAll('tr')].find(r => r.innerText.includes('memory-limit')).innerText"
    assert page.evaluate(row).split("\t")[1:3] == ["1GiB", "flag"]
    page.click("input[type=search]")
    page.type("slow")
    page.until("document.querySelectorAll('tbody tr').length === 1")


def test_sessions_tell_whose_they_are_and_what_they_have_set(page: Page, open_server: Server) -> None:
    with connect_to(open_server, user_agent_entry="a tool (<b>)") as connection, connection.cursor() as cursor:
        cursor.execute("USE samples.tpch")
        cursor.execute("SET TIME ZONE 'Asia/Tokyo'")
        page.evaluate("location.hash = '#/sessions'")
        row = "[...document.querySelectorAll('tbody tr')].find(r => r.innerText.includes('a tool (<b>)'))"
        page.until(f"{row}?.innerText.includes('tpch')")
        cells = page.evaluate(f"[...{row}.cells].map(c => c.innerText)")
        assert cells[0] == "anonymous" and cells[2:5] == ["samples", "tpch", "0"] and len(cells[7]) == 36
        page.evaluate(f"{row}.querySelector('summary').click()")
        page.until(f"{row}.innerText.toLowerCase().includes('timezone = asia/tokyo')")
    page.until(f"!{row}", 60)  # it has been closed


def test_without_a_history_what_runs_is_told_and_nothing_else(browser: Browser, tmp_path: Path) -> None:
    server = start_server(tmp_path, "--history", "false", "--slots", "2")
    try:
        with browser.page(server.url) as page:
            page.shows("the history is off (--history)")
            end = behind(server, LONG)
            page.shows("long_one")
            page.click(".is-running .c-text a")
            page.click("button", "Kill")
            page.click("dialog button", "Kill")
            end()
            page.shows("Not known")
            page.evaluate("location.hash = '#/health'")
            page.shows("Off (--history).")
            assert page.complaints() == []
    finally:
        assert server.stop() == 0


def test_light_and_dark(page: Page) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    page.shows("Statements")
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    light = page.evaluate(paper)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = page.evaluate(paper)
    assert light != dark
    choose = "{const s = document.querySelector('.who select'); s.value = '%s'; s.dispatchEvent(new Event('change'))}"
    page.evaluate(choose % "light")
    assert page.evaluate(paper) == light
    page.go("/console")
    page.until("document.querySelector('.who select')?.value === 'light'")
    assert page.evaluate(paper) == light


def test_it_fits_on_a_phone(browser: Browser, open_server: Server) -> None:
    with browser.page(open_server.url, width=390, height=800, phone=True) as page:
        for view in VIEWS:
            page.evaluate(f"location.hash = '#/{view}'")
            page.until("document.querySelector('main')?.childElementCount > 0")
            page.until("document.documentElement.scrollWidth <= innerWidth")
        assert page.complaints() == []


# What has no name for those who do not see it; contrast, order and the like are looked at by other programs.
NAMELESS = """[...document.querySelectorAll('button, a, input, select, textarea, [role=grid], [role=img], [tabindex]')]
    .filter(e => e.getClientRects().length && e.id !== 'content')
    .filter(e => !(e.getAttribute('aria-label') || e.innerText?.trim() || e.closest('label')?.innerText.trim() || e.title))
    .map(e => e.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("view", VIEWS)
def test_all_that_can_be_used_has_a_name(page: Page, view: str) -> None:
    page.shows("Statements")
    page.evaluate(f"location.hash = '#/{view}'")
    page.until(f"document.querySelector('main').className === 'view-{view.partition('/')[0]}'")
    page.until("document.querySelector('main h1')")
    assert page.evaluate(NAMELESS) == []
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    unnamed = [
        node["role"]["value"]
        for node in tree
        if not node["ignored"]
        and node["role"]["value"] in ("button", "link", "textbox", "combobox", "searchbox", "checkbox", "img", "grid")
        and not node.get("name", {}).get("value")
    ]
    assert unnamed == []


def test_the_first_view_is_there_at_once_and_little_is_asked_for(
    browser: Browser, open_server: Server, long_history: int
) -> None:
    assert long_history
    with browser.page(open_server.url) as page:
        page.until("document.querySelectorAll('.window-rows .grid-row').length > 5")
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        sizes = json.loads(
            page.evaluate("JSON.stringify(performance.getEntriesByType('resource').map(r => r.decodedBodySize))")
        )
    assert painted < 5_000  # on a machine that does other things; a tenth of it else
    assert sum(sizes) < 600_000


def test_what_comes_late_fills_no_other_view(page: Page) -> None:
    page.shows("Statements")
    page.evaluate("location.hash = '#/settings'; setTimeout(() => { location.hash = '#/sessions' }, 1)")
    page.until("document.querySelector('main h1')?.innerText === 'Sessions'")
    page.evaluate("new Promise(done => setTimeout(done, 500))")
    assert page.evaluate("document.querySelectorAll('main h1').length") == 1
    assert page.evaluate("document.querySelector('main h1').innerText") == "Sessions"
