"""What tests of the console do beside the browser: statements run, sign-ins, calls as the page makes them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.pipelines.expectations import Expectation, Outcome
from gateway.pipelines.history import History, Run, TableRun
from gateway.pipelines.warehouse import Warehouse
from tests.live.browser import Page
from tests.live.gateway import Server

LONG = "SELECT sum(a.id * b.id % 7) AS long_one FROM range(300000) a CROSS JOIN range(300000) b"

#: Texts that are markup, quotes, comments, marks that turn the writing around or are not seen, and a NUL.
HOSTILE = (
    "<script>complaints.push('script ran')</script>",
    "<img src=x onerror=complaints.push('image')>",
    "\"'`--/*",
    "\u202egnp.exe\u2066",
    "tag\U000e0041\u3164",
    "a\0b",
    "]]>&lt;%00",
)
_HIDDEN = ("\u202e", "\u2066", "\U000e0041", "\u3164")


def marked(text: str) -> str:
    """One of these texts as the page shows it."""
    for hidden in _HIDDEN:
        text = text.replace(hidden, f"⟨U+{ord(hidden):04X}⟩")
    return text.replace("\0", "␀")


def run(server: Server, *statements: str, token: str = "none-needed") -> list[str]:
    """Execute statements by the REST API; their errors' messages."""
    found = [_executed(server, statement, token) for statement in statements]
    return [told["status"]["error"]["message"] for told in found if "error" in told["status"]]


def _executed(server: Server, statement: str, token: str) -> Any:
    body = json.dumps({"statement": statement, "wait_timeout": "50s", "row_limit": 10}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}", "User-Agent": "a program"}
    request = urllib.request.Request(f"{server.url}/api/2.0/sql/statements", body, headers)
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def behind(server: Server, statement: str, token: str = "none-needed") -> Callable[[], list[str]]:
    """Execute a statement meanwhile; what waits for its errors."""
    executor = ThreadPoolExecutor(1)
    found = executor.submit(run, server, statement, token=token)
    executor.shutdown(wait=False)
    return lambda: found.result(60)


def sign_in(page: Page, token: str) -> None:
    """Type a token and send it."""
    page.click("input[name=token]")
    page.type(token)
    page.click("button", "Sign in")


def ask(page: Page, method: str, path: str) -> tuple[int, Any]:
    """Status and JSON of a call that the page's script makes."""
    init = {"method": method, "headers": {"Content-Type": "application/json"}}
    if method != "GET":
        init["body"] = "{}"
    script = f"fetch('/console/api/{path}', {json.dumps(init)}).then(async a => [a.status, await a.json()])"
    status, body = page.evaluate(script)
    return status, body


def end_all(page: Page) -> None:
    """Kill all that runs or waits, by calls as the page makes them."""
    page.evaluate("""fetch('/console/api/now').then(a => a.json()).then(now => Promise.all(now.operations.map(o =>
        fetch(`/console/api/statements/${o.statement_id}/kill`, {method: 'POST', body: '{}',
              headers: {'Content-Type': 'application/json'}})))).then(all => all.length)""")


def record_pipelines(server: Server, name: str, message: str) -> None:
    """Let a pipeline have run three times into a gateway's warehouse, once badly, and another one crashed."""
    past = History(Warehouse(server.warehouse))
    start = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    outcome = Outcome(Expectation("positive", "amount > 0", "warn"), 4, 1, 1)
    graph = [
        ("shop.bronze", "streaming table", ["json /srv/raw"]),
        ("v", "temporary view", ["shop.bronze"]),
        ("shop.silver", "streaming table", ["v", "shop.bronze"]),
    ]
    for number, state in enumerate(("COMPLETED", "FAILED", "COMPLETED")):
        began = start + timedelta(days=number)
        ended = began + timedelta(seconds=3)
        tables = [
            TableRun("shop.bronze", "streaming table", "COMPLETED", began, ended, 4, 4, None, 1),
            TableRun("shop.silver", "streaming table", state, began, ended, 4, 3, 0, 1, outcomes=[outcome]),
        ]
        told = message if state == "FAILED" else None
        past.add(Run(f"2026010{number}", name, began, began + timedelta(seconds=9), state, told, (), tables, graph))
    past.add(Run("20260109", "other", start, None, "CRASHED", "gone"))
