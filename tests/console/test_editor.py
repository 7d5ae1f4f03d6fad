"""The editor in a browser: statements run, stopped and explained, completion, rows by the ten thousand, charts, files."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.sql.read.statement import statement_spans
from tests.live.browser import Browser, Page
from tests.live.console import HOSTILE, LONG, behind, end_all, marked
from tests.live.gateway import Server

pytestmark = [pytest.mark.browser]


def write(page: Page, text: str) -> None:
    """Open the editor, with this text in it."""
    page.evaluate("location.hash = '#/editor'")
    page.until("document.getElementById('sql')")
    page.evaluate("document.getElementById('sql').focus(); document.getElementById('sql').select()")
    page.type(text)
    page.key("Escape")


def shown_rows(page: Page) -> str:
    script = "[...document.querySelectorAll('.window-rows .result-row')].map(r => r.innerText).join('\\n')"
    return str(page.evaluate(script))


def test_a_statement_runs_by_keys_and_is_shown(page: Page) -> None:
    write(page, "SELECT 1 AS one;\nSELECT 'two\u202e' AS `<b>two</b>`, NULL AS n, -1.50 AS d;\n")
    page.key("Enter", control=True)
    page.shows("two⟨U+202E⟩")
    page.shows("<b>two</b>")
    page.shows("-1.50")
    page.evaluate("document.getElementById('sql').setSelectionRange(3, 3)")
    page.key("Enter", control=True)
    page.until("document.querySelector('.result-row.head')?.innerText.includes('one')")
    page.click(".window-rows .result-row")
    page.shows("Copy as JSON")
    page.key("Escape")
    page.until("!document.querySelector('.whole-row:not([hidden])')")


_TEXTS = (
    r"SELECT r'\\', ' ; DELETE FROM t; --'",
    "/* a /* b */ ; DELETE FROM t; */ SELECT 1",
    "/* a /*+ b */ ; SELECT 1",
    "-- a \\\n ; DELETE FROM t\n; SELECT 1",
    "SELECT 'a''\\';', \"\"\";\", `a``;b`; SELECT '\U0001f600;'; SELECT 3",
    "CREATE FUNCTION f() RETURNS INT LANGUAGE PYTHON AS $$\nx = 1; y = 2\n$$; SELECT $a$;$$;$a$",
    "BEGIN IF a THEN DELETE FROM t; END IF; CASE WHEN b THEN SELECT 1; END CASE; BEGIN SELECT 1; END; END; SELECT 3",
    "BEGIN TRANSACTION; SELECT 1",
)


@pytest.mark.parametrize("text", _TEXTS)
def test_statements_are_told_apart_as_the_gateway_does(page: Page, text: str) -> None:
    """What stands in a comment, a text or a script is no statement of its own, wherever the cursor is."""
    script = """import("/console/split.js").then(({statementAt}) => Array.from({length: %d}, (_, i) => statementAt(%s, i)))"""
    units = len(text.encode("utf-16-le")) // 2
    found = {tuple(span) for span in page.evaluate(script % (units, json.dumps(text)))}
    told = [text.encode("utf-16-le")[2 * a : 2 * b].decode("utf-16-le") for a, b in sorted(found)]
    wanted = [text[span.start : span.stop] for span in statement_spans(text)]
    assert len(told) == len(wanted)
    assert all(one.strip().endswith(two) for one, two in zip(told, wanted, strict=True))


def test_a_long_text_is_one_piece(page: Page) -> None:
    script = """import("/console/split.js").then(({statementAt}) => {
        const text = "SELECT '" + "x''\\n".repeat(2_000_000) + "'; SELECT 2";
        return text.slice(...statementAt(text, text.length));
    })"""
    assert page.evaluate(script) == " SELECT 2"


def test_a_row_is_copied_whole_or_not_at_all(page: Page) -> None:
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copiedText = text; }")
    for columns, told in (("1 AS a, 2 AS b", '{"a":"1","b":"2"}'), ("1 AS a, 2 AS a", None)):
        page.evaluate("window.copiedText = null")
        write(page, f"SELECT {columns}")
        page.click("button", "Run")
        page.until(f"document.querySelector('.result-row.head')?.innerText.includes({json.dumps(columns[-1])})")
        page.click(".window-rows .result-row")
        page.click("button", "Copy as JSON")
        page.shows("Copied." if told else "JSON has room for one column called a")
        assert page.evaluate("window.copiedText") == told


def test_hostile_names_and_values_are_texts_in_rows_charts_and_plans(page: Page) -> None:
    columns = []
    for i, text in enumerate(HOSTILE):
        value = text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
        name = text.replace("`", "``").replace("\0", "")
        columns.append(f"'{value}' AS `{i} {name}`")
    write(page, f"SELECT id, {', '.join(columns)}, repeat('<i>', 400000) AS large FROM range(3)")
    page.click("button", "Run")
    page.shows("3 rows")
    page.until("document.querySelector('.window-rows .result-row')?.innerText.includes('a␀b')")
    shown = shown_rows(page)
    assert [text for text in map(marked, HOSTILE) if text not in shown] == []
    page.click(".window-rows .result-row")
    page.shows("Copy as JSON")
    page.key("Escape")
    page.click("button", "Chart")
    page.until("document.querySelector('.chart svg[role=img]')")
    page.click("button", "Explain")
    page.until("document.querySelector('.plan svg, svg.plan, .plan')")
    assert page.evaluate("document.querySelectorAll('main img, main script, main i').length") == 0


def test_what_fails_says_where(page: Page) -> None:
    write(page, "SELECT 1,\n  no_such_name FROM samples.tpch.nation")
    page.click("button", "Run")
    page.shows("UNRESOLVED_COLUMN")
    assert page.evaluate("document.querySelector('.colours .hl-error').innerText") == "no_such_name"
    page.click("button", "Go to the place")
    selected = "(a => a.value.slice(a.selectionStart, a.selectionEnd))(document.getElementById('sql'))"
    assert page.evaluate(selected) == "no_such_name"
    page.type("n_name")
    assert not page.evaluate("document.querySelector('.colours .hl-error')")  # until the text changes
    page.click(".error-box a")
    page.shows("Waiting for a slot")


def test_what_runs_long_is_stopped(page: Page) -> None:
    write(page, LONG)
    page.click("button", "Run")
    page.shows("Running …")
    page.until("document.querySelector('button.danger') && !document.querySelector('button.danger').disabled")
    page.click("button.danger")  # once, though nobody knows its name yet
    page.shows("Stopped")


def test_what_waits_in_the_editor_tells_its_place(page: Page, open_server: Server) -> None:
    ends = [behind(open_server, LONG + f" -- {i}") for i in range(5)]  # two slots, and the lane of short ones
    page.until("document.querySelectorAll('.is-running').length === 5")
    write(page, LONG.replace("long_one", "waits"))
    page.click("button", "Run")
    page.until(
        "/Running … [\\d.]+ m?s · Waiting for a slot: .* in the queue/.test(document.querySelector('.answer').innerText)"
    )
    page.click("button.danger")
    page.shows("Stopped")
    end_all(page)
    for end in ends:
        end()


def test_fifty_thousand_rows_scroll(page: Page) -> None:
    write(page, "SELECT id, repeat('x', 20) AS x FROM range(50000) ORDER BY id")
    page.click("button", "Run")
    page.shows("50,000 rows")
    page.until("document.querySelectorAll('.window-rows .result-row').length > 5")
    script = """new Promise(done => {
        const w = document.querySelector('.window'), slow = [];
        let last = performance.now(), steps = 0;
        const step = now => {
            slow.push(now - last); last = now;
            w.scrollTop += 5000;
            if (++steps < 120) requestAnimationFrame(step); else done(slow.sort((a, b) => a - b)[Math.floor(slow.length / 2)]);
        };
        requestAnimationFrame(step);
    })"""
    assert page.evaluate(script) < 200  # milliseconds of the usual frame, on a machine that does other things too
    page.evaluate("document.querySelector('.window').scrollTop = 1e9")
    page.until("document.querySelector('.window-rows').innerText.includes('49999')")
    assert page.evaluate("document.querySelectorAll('.window-rows .result-row').length") < 80
    rows = shown_rows(page).splitlines()
    assert "50000" in rows


def test_names_are_completed(page: Page) -> None:
    write(page, "SELECT n. FROM samples.tpch.nation n")
    page.evaluate("document.getElementById('sql').setSelectionRange(9, 9)")
    page.key(" ", control=True)
    page.until("document.getElementById('completions').innerText.includes('n_regionkey')")
    page.key("ArrowDown")
    page.key("Enter")
    assert page.evaluate("document.getElementById('sql').value") == "SELECT n.n_name FROM samples.tpch.nation n"
    write(page, "SELECT * FROM samples.tp")
    page.evaluate("document.getElementById('sql').focus()")
    page.key(" ", control=True)
    page.until("document.getElementById('completions').innerText.includes('tpch')")
    page.key("Tab")
    assert page.evaluate("document.getElementById('sql').value") == "SELECT * FROM samples.tpch"


@pytest.mark.parametrize("kind", ["bar", "line", "area", "scatter", "pie"])
def test_charts_are_drawn(page: Page, kind: str) -> None:
    write(page, "SELECT CAST(id AS INT) AS id, id * id - 3 AS y, concat('<n>', id) AS n FROM range(30)")
    page.click("button", "Run")
    page.shows("30 rows")
    page.click("button", "Chart")
    page.click(".chart-controls button", kind)
    marks = {
        "bar": "rect.series",
        "line": "polyline.stroke",
        "area": "polygon",
        "scatter": "circle",
        "pie": "path.slice",
    }
    page.until(f"document.querySelector('.chart svg[role=img] {marks[kind]}')")
    assert page.evaluate("document.querySelector('.chart svg').getAttribute('aria-label')").startswith(f"{kind} chart")
    assert "NaN" not in page.evaluate("document.querySelector('.chart').outerHTML")


def chart_texts(page: Page, statement: str, rows: str, kind: str) -> list[str]:
    write(page, statement)
    page.click("button", "Run")
    page.shows(rows)
    page.click("button", "Chart")
    page.click(".chart-controls button", kind)
    page.until(f"document.querySelector('.chart svg')?.getAttribute('aria-label').startsWith('{kind}')")
    found: list[str] = page.evaluate("[...document.querySelectorAll('.chart svg text')].map(t => t.textContent)")
    return found


def test_axes_tell_values_apart_and_say_what_they_are(page: Page) -> None:
    flat = chart_texts(page, "SELECT CAST(id AS INT) AS id, 10000 + id % 2 AS height FROM range(4)", "4 rows", "line")
    assert len(set(flat)) == len(flat) and {"10,000", "10,001", "id", "height"} <= set(flat)
    assert "0.5" not in flat  # whole numbers have no halves between them
    hours = chart_texts(
        page, "SELECT TIMESTAMP'2024-01-01 22:00:00' + make_dt_interval(0, id) AS t, id FROM range(6)", "6 rows", "line"
    )
    assert {"01-01 22:00", "01-02 00:00"} <= set(hours)
    days = chart_texts(page, "SELECT DATE'2024-01-15' + CAST(id AS INT) * 30 AS d, id FROM range(9)", "9 rows", "line")
    assert {"2024-02", "2024-03"} <= set(days)


def test_a_chart_tells_the_point_under_the_pointer(page: Page) -> None:
    chart_texts(page, "SELECT concat('n', id) AS name, id * 11 AS v FROM range(3)", "3 rows", "bar")
    box = page.evaluate(
        "(r => [r.x, r.y, r.width, r.height])(document.querySelector('.chart').getBoundingClientRect())"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] / 2, y=box[1] + box[3] / 2)
    page.until("document.querySelector('.chart-readout').innerText === 'n1 — v: 11'")


def downloaded(page: Page, browser: Browser, kind: str) -> bytes:
    file = browser.downloads / f"result.{kind}"
    file.unlink(missing_ok=True)
    page.click("button.download", {"csv": "CSV", "arrow": "Arrow", "parquet": "Parquet"}[kind])
    end = time.monotonic() + 30
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.2)
    return Path(file).read_bytes()


@pytest.mark.parametrize("rows", [3, 2_000_000])  # of one part, and of several
def test_results_are_saved_as_files(page: Page, browser: Browser, rows: int) -> None:
    limited = "LIMIT 1000000"
    write(page, f"SELECT id, concat('n,\"', id) AS n FROM range({rows}) ORDER BY id {limited}")
    count = min(rows, 1_000_000)
    page.click("button", "Run")
    page.shows(f"{count:,} rows", 60)
    table = pa.ipc.open_stream(downloaded(page, browser, "arrow")).read_all()
    assert table.num_rows == count and table["id"][-1].as_py() == count - 1
    assert pq.read_table(io.BytesIO(downloaded(page, browser, "parquet"))).equals(table)
    lines = list(csv.reader(io.StringIO(downloaded(page, browser, "csv").decode())))
    assert len(lines) == count + 1
    assert lines[0] == ["id", "n"] and lines[-1] == [str(count - 1), f'n,"{count - 1}']


def test_plans_are_pictures(page: Page) -> None:
    write(
        page,
        "SELECT n_name, count(*) FROM samples.tpch.nation JOIN samples.tpch.customer ON n_nationkey = c_nationkey GROUP BY 1",
    )
    page.click("button", "Analyze")
    page.until("document.querySelectorAll('.plan .operator').length > 3")
    told = page.evaluate(
        "[...document.querySelectorAll('.plan .operator')].map(o => o.getAttribute('aria-label')).join('; ')"
    )
    assert re.search(r"HashJoin [^;]*1,500 rows", told)
    page.click(".plan summary")
    page.shows("== Analyzed Plan ==")


def test_a_session_stays_with_the_page_and_texts_are_remembered(page: Page) -> None:
    write(page, "USE samples.tpch")
    page.key("Enter", control=True)
    page.shows("Done in")
    write(page, "SELECT count(*) AS nations FROM nation")
    page.key("Enter", control=True)
    page.until("document.querySelector('.window-rows')?.innerText.includes('25')")
    page.evaluate("location.hash = '#/sessions'")
    page.shows("gateway-console")
    page.until("[...document.querySelectorAll('td')].some(t => t.innerText === 'tpch')")
    page.evaluate("location.hash = '#/editor'")
    page.until("document.getElementById('sql')?.value === 'SELECT count(*) AS nations FROM nation'")
    texts = json.loads(page.evaluate("sessionStorage.getItem('texts')"))
    assert "USE samples.tpch" in texts
