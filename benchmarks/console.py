"""What the history costs look-ups, and the console: first rows, open pages, many rows scrolled, the weight of the page."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks import tables
from benchmarks.lookup import check, sql
from benchmarks.measure import Row, Sample, cpu_seconds, settle, show
from benchmarks.systems import ANEW, gateway_process
from gateway.console.files import page_files
from gateway.history.records import STATEMENTS, Record
from gateway.protocol.client import Client
from tests.live.browser import Browser, Page, browser_path

TURNS, LOOKUPS, CLIENTS = 100, 60, 4
MOST_LOST = 0.03
RECORDED, PAINTS, PAINT_SECONDS = 100_000, 7, 1.0
CONSOLES, WATCHED_SECONDS, MOST_CPU = 10, 20.0, 0.02
RESULT_ROWS, FRAMES, FRAME_SECONDS, MOST_ELEMENTS = 50_000, 240, 0.025, 100
MOST_PAGE_BYTES = 600_000
_ROWS = "document.querySelectorAll('.window-rows .grid-row').length > 5"
_NO_BROWSER = "no chromium on this machine: apt-get install chromium"

# Notes when the first rows of the list were there, at the frame that shows them.
_NOTED = f"""(function look() {{
    if ({_ROWS}) requestAnimationFrame(() => {{ window.rowsSeen = performance.now(); }});
    else requestAnimationFrame(look);
}})()"""
# Scrolls a part of the list with each frame, as a wheel that does not rest does; the milliseconds of all frames.
_SCROLL = """new Promise(done => {
    const list = document.querySelector('.window'), frames = [];
    let last = null;
    const step = now => {
        if (last !== null) frames.push(now - last);
        last = now;
        list.scrollTop += 400;
        if (frames.length < %d) requestAnimationFrame(step); else done(frames);
    };
    requestAnimationFrame(step);
})"""


@contextlib.contextmanager
def _looking_up(*flags: str) -> Iterator[tuple[list[Client], int]]:
    """Connections to a gateway of its own, and its process."""
    with (
        tempfile.TemporaryDirectory() as state,
        gateway_process("--state", state, *flags) as (url, pid, _),
        contextlib.ExitStack() as stack,
    ):
        yield [stack.enter_context(Client(url).open(ANEW, catalog="main", schema="bench")) for _ in range(CLIENTS)], pid


def _round(clients: list[Client], seed: int) -> float:
    """Seconds of some look-ups of each client, side by side."""

    def work(client: Client, keys: random.Random) -> None:
        for _ in range(LOOKUPS // CLIENTS):
            key = keys.randrange(tables.LOOKUP_ROWS)
            check(client.execute(sql(key)).table(), key)

    threads = [threading.Thread(target=work, args=(c, random.Random(seed + i))) for i, c in enumerate(clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def _turn(recorded: list[Client], plain: list[Client], number: int) -> tuple[list[float], list[float]]:
    """Seconds with a history and without, twice each and so that neither is the later one."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for which in (0, 1, 1, 0) if number % 2 else (1, 0, 0, 1):
        seconds[which].append(_round((recorded, plain)[which], 1 + number))
    return seconds


def _history() -> Row:
    """The same look-ups with and without a history, by turns: the usual share that the history took of a turn."""
    tables.table("lookup")
    with _looking_up() as (recorded, pid), _looking_up("--history", "false") as (plain, other):
        for clients in (recorded, plain):
            _round(clients, 0)
        settle(pid)
        settle(other)
        turns = [_turn(recorded, plain, number) for number in range(TURNS)]
    shares = sorted(1 - (off[0] * off[1] / (on[0] * on[1])) ** 0.5 for on, off in turns)
    lost = statistics.median(shares)
    # of a median: half of what is between the quartiles is as far from it as 0.67 deviations
    error = 1.25 * (shares[3 * TURNS // 4] - shares[TURNS // 4]) / 1.35 / TURNS**0.5
    rates = [2 * LOOKUPS / statistics.median(map(sum, each)) for each in zip(*turns, strict=True)]
    told = f"{rates[0]:.0f} per s ({lost:+.1%} lost, give or take {error:.1%})"
    shown = {"ours": told, "floor": f"{rates[1]:.0f} per s without"}
    return Row("look-ups with a history", shown, f"< {MOST_LOST:.0%} lost", lost < MOST_LOST)


def _record(state: Path) -> None:
    """A history of many statements, as a gateway would have written it."""
    now = int(time.time() * 1000)
    names = ("0", "s", "anonymous", "a program", "SELECT", "datafusion", "proved", "FINISHED", None, None, None, "")
    one = Record(*names, 0, 0, 12.5, 1.5, 0.5, 3.0, 8.0, 1, None, 100, 1, 2, 0, 64, False)
    state.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(state / STATEMENTS.file, timeout=30)) as connection, connection:
        connection.executemany(
            STATEMENTS.insertion(),
            (
                one._replace(
                    statement_id=str(uuid.UUID(int=i + 1)),
                    text=f"SELECT region, sum(amount) AS amount_{i} FROM main.default.sales WHERE day > ? GROUP BY region",
                    started_ms=now - 1000 * (RECORDED - i),
                    ended_ms=now - 1000 * (RECORDED - i) + 12,
                )
                for i in range(RECORDED)
            ),
        )


def _paint(browser: Browser, url: str) -> tuple[float, float, int]:
    """Seconds until something was seen and until rows were, and bytes of all that was asked for."""
    with browser.page(url) as page:
        page.go("/healthz")
        page.call("Network.clearBrowserCache")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=_NOTED)
        page.go("/console")
        page.until("window.rowsSeen")
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        sizes = page.evaluate("performance.getEntriesByType('resource').map(r => r.decodedBodySize)")
        return painted / 1000, page.evaluate("rowsSeen") / 1000, sum(sizes)


def _painted(browser: Browser, url: str) -> list[Row]:
    paints = [_paint(browser, url) for _ in range(1 + PAINTS)][1:]
    first, rows = (Sample(tuple(each)) for each in list(zip(*paints, strict=True))[:2])
    work = f"console, {RECORDED:,} statements recorded"
    return [
        Row(f"{work}: first paint", {"ours": str(first)}, f"< {PAINT_SECONDS:g} s", first.median < PAINT_SECONDS),
        Row(f"{work}: rows to be read", {"ours": str(rows)}, f"< {PAINT_SECONDS:g} s", rows.median < PAINT_SECONDS),
        Row(f"{work}: page with its rows", {"ours": f"{max(p[2] for p in paints) / 1000:.0f} kB"}),
    ]


def _watched(browser: Browser, url: str, pid: int) -> list[Row]:
    """CPU of a gateway that is looked at by many: while nothing happens, and while a statement ends every second."""
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(url).open(ANEW))
        client.execute("SELECT 1").table()
        pages = [stack.enter_context(browser.page(url)) for _ in range(CONSOLES)]
        for page in pages:
            page.until(_ROWS)
        settle(pid, 10)
        idle = _spent(pid, pages)
        over = threading.Event()

        def work() -> None:
            while not over.wait(1.0):
                client.execute("SELECT 1").table()

        busy = threading.Thread(target=work)
        busy.start()
        try:
            at_work = _spent(pid, pages)
        finally:
            over.set()
            busy.join()
    alone = _alone(url, pid)
    return [
        Row(f"{CONSOLES} open consoles, nothing runs", {"ours": f"{idle:.2%} of a core"}, "< 2%", idle < MOST_CPU),
        Row(
            f"{CONSOLES} open consoles, a statement a second",
            {"ours": f"{at_work:.2%} of a core", "floor": f"{alone:.2%} unwatched"},
            "< 2% more",
            at_work - alone < MOST_CPU,
        ),
    ]


def _alone(url: str, pid: int) -> float:
    """The share of a core that a statement a second takes of its own."""
    settle(pid, 10)
    with Client(url).open(ANEW) as client:
        before, start = cpu_seconds(pid), time.perf_counter()
        while time.perf_counter() - start < WATCHED_SECONDS:
            time.sleep(1.0)
            client.execute("SELECT 1").table()
        return (cpu_seconds(pid) - before) / (time.perf_counter() - start)


def _spent(pid: int, pages: list[Page]) -> float:
    """The share of a core that a gateway takes while pages look at it; each has to have asked."""
    asked = "performance.getEntriesByType('resource').length"
    for page in pages:
        page.evaluate("performance.clearResourceTimings()")
    before, start = cpu_seconds(pid), time.perf_counter()
    time.sleep(WATCHED_SECONDS)
    share = (cpu_seconds(pid) - before) / (time.perf_counter() - start)
    if any(page.evaluate(asked) < WATCHED_SECONDS / 5 for page in pages):
        raise AssertionError("a page that is open has not asked")
    return share


def _scrolled(browser: Browser, url: str) -> Row:
    """Frames while a result is scrolled, and how many rows are elements meanwhile."""
    with browser.page(url) as page:
        page.evaluate("location.hash = '#/editor'")
        page.until("document.getElementById('sql')")
        page.evaluate("document.getElementById('sql').focus(); document.getElementById('sql').select()")
        page.type(
            f"SELECT id, id * id AS square, concat('row ', id) AS name, id % 7 AS seven FROM range({RESULT_ROWS}) ORDER BY id"
        )
        page.key("Escape")
        page.key("Enter", control=True)
        page.shows(f"{RESULT_ROWS:,} rows")
        page.until("document.querySelectorAll('.window-rows .result-row').length > 5")
        frames = Sample(tuple(each / 1000 for each in page.evaluate(_SCROLL % FRAMES)))
        elements = page.evaluate("document.querySelectorAll('.window-rows .result-row').length")
        page.evaluate("document.querySelector('.window').scrollTop = 1e9")
        page.until(f"document.querySelector('.window-rows').innerText.includes('row {RESULT_ROWS - 1}')")
    shown = f"frame {show(frames.median)}, p95 {show(frames.quantile(0.95))}; {elements} rows are elements"
    smooth = frames.median <= FRAME_SECONDS and elements <= MOST_ELEMENTS
    return Row(
        f"console, {RESULT_ROWS:,} rows scrolled",
        {"ours": shown},
        f"<= {FRAME_SECONDS * 1000:g} ms, <= {MOST_ELEMENTS} rows",
        smooth,
    )


def _weight() -> Row:
    """The files of the page, all of them: it loads nothing else."""
    size = sum(len(file.data) for path, file in page_files().items() if "." in path)
    return Row(
        "console, weight of the page",
        {"ours": f"{size / 1000:.0f} kB"},
        f"< {MOST_PAGE_BYTES / 1000:g} kB",
        size < MOST_PAGE_BYTES,
    )


def run() -> list[Row]:
    """The history, and the console where there is a browser."""
    rows = [_history(), _weight()]
    path = browser_path()
    if path is None:
        return [*rows, Row("console in a browser", {"ours": _NO_BROWSER})]
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        with gateway_process("--state", str(state)) as (url, _, _), Client(url).open(ANEW) as client:
            client.execute("SELECT 1").table()
        _record(state)
        with closing(Browser(path)) as browser, gateway_process("--state", str(state)) as (url, pid, _):
            rows += _painted(browser, url)
            rows += _watched(browser, url, pid)
            rows.append(_scrolled(browser, url))
    return rows
