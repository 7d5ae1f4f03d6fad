"""The console over HTTP without a browser: who is let in, which pages may call, what cookies say, who sees and ends what."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.auth.authenticators import AllowAll, StaticTokens, token_line
from gateway.auth.base import Authenticator
from gateway.config import ServerSetting
from gateway.console.calls import ConsoleCalls, Facts
from gateway.console.server import API, ConsoleServer
from gateway.errors import ProtocolError
from gateway.history.search import History
from gateway.rest.statements import StatementApi
from gateway.results.links import LinkSigner
from gateway.service.api import Principal
from gateway.transport.http import Beside, HttpApp, Probes
from gateway.transport.server import HttpServer
from gateway.worker_jobs import RunningOperation, Runtime

TOKENS = {"ann": "a-token", "root": "r-token"}
JSON = {"Content-Type": "application/json"}
_NAMES = (
    "11111111-1111-4111-8111-111111111111",
    "s",
    "ann",
    "dbt",
    "EXECUTE_STATEMENT",
    "RUNNING",
    "SELECT ?",
    "SELECT",
)
OF_ANN = RunningOperation._make((*_NAMES, "datafusion", "proved", 1_000_000, 5, 1, None, "", 0, 0))


class Verbs:
    """The verbs that the console calls, over one statement of ann's."""

    def __init__(self) -> None:
        self.killed: list[tuple[str, str]] = []

    def picture(self, user: str) -> Runtime:
        return Runtime((), (OF_ANN,) if user in ("ann", "root", "anonymous") else ())

    def kill(self, principal: Principal, identifier: str) -> None:
        if identifier != OF_ANN.statement_id or principal.name not in ("ann", "root", "anonymous"):
            raise ProtocolError("INVALID_OPERATION_HANDLE", "Invalid OperationHandle.")
        self.killed.append((principal.name, identifier))


class Door:
    """A listening console, asked as browsers and others ask."""

    def __init__(self, authenticator: Authenticator, admins: frozenset[str], folder: Path) -> None:
        self.verbs = Verbs()
        history = History(str(folder / "none.db"), isinstance(authenticator, AllowAll), admins)
        setting = ServerSetting("slots", "2", "flag", "how many")
        facts = Facts("1.2.3", not isinstance(authenticator, AllowAll), lambda: {"problem": None}, [setting])
        verbs: Any = self.verbs
        self.calls = ConsoleCalls(verbs, StatementApi(verbs, LinkSigner(60)), history, None, facts)
        console = ConsoleServer(self.calls, authenticator)
        probes = Probes(lambda: None, lambda: b"")
        self.app = HttpApp(lambda *of: b"", authenticator, probes, beside=Beside(console=console))
        self.server = HttpServer(self.app, "127.0.0.1", 0)
        self.server.start()
        self.host = self.server.url.removeprefix("http://")

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, http.client.HTTPMessage]:
        """Status, JSON or bytes, and headers of an answer."""
        connection = http.client.HTTPConnection(self.host, timeout=20)
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, sent, {**(JSON if method != "GET" else {}), **given})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(data) if is_json else data, answer.headers

    def sign_in(self, token: str, **headers: str) -> str:
        """The cookie that a token brings, as a browser sends it back."""
        status, _, told = self.ask("POST", "/console/api/sign-in", {"token": token}, **headers)
        assert status == 200
        return told["set-cookie"].partition(";")[0]

    def stop(self) -> None:
        self.server.stop(1.0)
        self.app.close()


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Door]:
    lines = (token_line(name, token).rpartition(":") for name, token in TOKENS.items())
    door = Door(StaticTokens((name, digest) for name, _, digest in lines), frozenset({"root"}), tmp_path)
    yield door
    door.stop()


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[Door]:
    door = Door(AllowAll(), frozenset(), tmp_path)
    yield door
    door.stop()


def test_the_page_is_everybodys_and_strict(closed: Door) -> None:
    for path in ("/", "/console", "/console/", "/console/index.html"):
        status, data, headers = closed.ask("GET", path)
        assert status == 200 and b"<!doctype html>" in data
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
    status, data, headers = closed.ask("GET", "/console/app.js")
    assert status == 200 and headers["content-type"].startswith("text/javascript")
    assert closed.ask("GET", "/console/app.js", if_none_match=headers["etag"])[:2] == (304, b"")
    assert closed.ask("POST", "/", {})[0] == 405
    for path in (
        "/console/../app.py",
        "/console/%2e%2e/app.py",
        "/console/__init__.py",
        "/console/server.py",
        "/consolex",
    ):
        assert closed.ask("GET", path)[0] in (401, 404)


def test_all_of_it_is_small_and_names_no_other_host(open_: Door) -> None:
    folder = Path(__file__).parents[3] / "gateway" / "console" / "page"
    files = [path for path in folder.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 600_000
    for path in files:
        status, data, _ = open_.ask("GET", f"/console/{path.name}")
        assert (status, data) == (200, path.read_bytes()), path
        text = path.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://"):
            assert word not in text, f"{word} in {path.name}"


def test_nothing_is_told_before_a_sign_in(closed: Door) -> None:
    for path in ("me", "now", "statements", f"statements/{OF_ANN.statement_id}", "settings", "health", "nothing"):
        for cookie in (
            "",
            "gateway-console=x",
            f"gateway-console-{closed.host.rpartition(':')[2]}=x",
            "a=b; ;=;\xe9=\xe9",
        ):
            status, told, headers = closed.ask("GET", f"/console/api/{path}", cookie=cookie)
            assert (status, told["error_code"]) == (401, "UNAUTHENTICATED"), path
            assert headers["www-authenticate"] is None  # else browsers ask for a name and a password
    bearer = closed.ask("GET", "/console/api/me", authorization="Bearer a-token")
    assert bearer[0] == 401  # it is for people; programs have an API


@pytest.mark.parametrize("token", ["", "wrong", "a-token ", "a-tokeń", "a\0b", "x" * 9000, None, 5])
def test_wrong_tokens_open_nothing(closed: Door, token: Any) -> None:
    status, _, headers = closed.ask("POST", "/console/api/sign-in", {"token": token})
    # what stands around a token does not count anywhere
    assert (status, headers["set-cookie"] is None) == ((200, False) if token == "a-token " else (status, True))
    assert status in (400, 401) or token == "a-token "


def test_the_cookie_is_out_of_reach_and_not_the_token(closed: Door) -> None:
    _, _, headers = closed.ask("POST", "/console/api/sign-in", {"token": "a-token"})
    cookie = headers["set-cookie"]
    for flag in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="):
        assert flag in cookie
    assert "a-token" not in cookie and "Secure" not in cookie
    _, _, headers = closed.ask(
        "POST",
        "/console/api/sign-in",
        {"token": "a-token"},
        origin=f"https://{closed.host}",
        sec_fetch_site="same-origin",
    )
    assert headers["set-cookie"].startswith("__Host-") and "Secure" in headers["set-cookie"]
    assert closed.ask("GET", "/console/api/me", cookie=headers["set-cookie"].partition(";")[0])[1]["user"] == "ann"


def test_over_tls_a_cookie_that_others_can_set_is_none(closed: Door) -> None:
    """Hosts beside this one can give a browser the plain one: their sign-in, in place of its user's or behind a sign-out."""
    plain = closed.sign_in("r-token")
    over_tls = {"origin": f"https://{closed.host}", "sec_fetch_site": "same-origin"}
    assert closed.ask("GET", "/console/api/me", cookie=plain)[0] == 200
    assert closed.ask("GET", "/console/api/me", cookie=plain, **over_tls)[0] == 401
    _, _, headers = closed.ask("POST", "/console/api/sign-in", {"token": "a-token"}, cookie=plain, **over_tls)
    both = f"{plain}; {headers['set-cookie'].partition(';')[0]}"
    assert closed.ask("GET", "/console/api/me", cookie=both)[1]["user"] == "ann"
    assert closed.ask("POST", "/console/api/sign-out", {}, cookie=both, **over_tls)[0] == 200
    assert closed.ask("GET", "/console/api/me", cookie=both)[0] == 401  # also where a proxy does not tell of TLS


def test_who_has_signed_out_is_out(closed: Door) -> None:
    cookie, other = closed.sign_in("a-token"), closed.sign_in("a-token")
    assert cookie != other
    status, _, headers = closed.ask("POST", "/console/api/sign-out", {}, cookie=cookie)
    assert status == 200 and "Max-Age=0" in headers["set-cookie"]
    assert closed.ask("GET", "/console/api/me", cookie=cookie)[0] == 401
    assert closed.ask("GET", "/console/api/me", cookie=other)[0] == 200


def test_other_sites_pages_are_refused(closed: Door) -> None:
    cookie, path = closed.sign_in("a-token"), f"/console/api/statements/{OF_ANN.statement_id}/kill"
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": f"http://{closed.host}.evil.example"},
        {"origin": "http://["},
        {"origin": ""},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
    ):
        assert closed.ask("POST", path, {}, cookie=cookie, **headers)[0] == 403, headers
    for headers in (
        {"sec_fetch_site": "cross-site"},
        {"origin": "https://evil.example"},
        {"sec_fetch_site": "same-site"},
    ):
        assert closed.ask("GET", "/console/api/now", cookie=cookie, **headers)[0] == 403, headers
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert closed.ask("POST", path, {}, cookie=cookie, Content_Type=kind)[0] == 415, kind
    assert closed.verbs.killed == []
    own = {"origin": f"http://{closed.host}", "sec_fetch_site": "same-origin"}
    assert closed.ask("POST", path, {}, cookie=cookie, **own)[0] == 200
    assert closed.verbs.killed == [("ann", OF_ANN.statement_id)]


def test_no_call_that_changes_something_is_other_sites(closed: Door) -> None:
    cookie = closed.sign_in("a-token")
    changing = [(route.method, API + route.path) for route in closed.calls.routes() if route.method != "GET"]
    assert len(changing) >= 5
    for method, path in (*changing, ("POST", f"{API}sign-in"), ("POST", f"{API}sign-out")):
        for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec_fetch_site": "cross-site"}):
            status, _, told = closed.ask(method, path, {"token": "a-token"}, cookie=cookie, **headers)
            assert (status, told["set-cookie"]) == (403, None), (method, path, headers)
            assert "frame-ancestors 'none'" in told["content-security-policy"]
    assert closed.ask("GET", f"{API}me", cookie=cookie)[0] == 200  # nobody signed it out
    assert closed.verbs.killed == []


def test_names_that_lead_here_from_elsewhere_are_refused_where_nobody_signs_in(open_: Door) -> None:
    assert open_.ask("GET", "/console/api/now")[0] == 200
    port = open_.host.rpartition(":")[2]
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert open_.ask("GET", "/console/api/now", host=host)[0] == 200, host
    for host in (f"evil.example:{port}", "127.0.0.1.evil.example", "[::1", "x@127.0.0.1", "10.0.0.1"):
        assert open_.ask("GET", "/console/api/now", host=host)[0] == 421, host


def test_everybody_sees_and_ends_their_own_and_administrators_all(closed: Door) -> None:
    ann, root = closed.sign_in("a-token"), closed.sign_in("r-token")
    assert closed.ask("GET", "/console/api/me", cookie=ann)[1]["administrator"] is False
    assert closed.ask("GET", "/console/api/me", cookie=root)[1]["administrator"] is True
    assert closed.ask("GET", "/console/api/settings", cookie=ann)[0] == 403
    told = closed.ask("GET", "/console/api/settings", cookie=root)[1]["settings"]
    assert told == [{"name": "slots", "value": "2", "origin": "flag", "meaning": "how many"}]
    assert closed.ask("POST", f"/console/api/statements/{OF_ANN.statement_id}/kill", {}, cookie=root)[0] == 200
    for identifier in ("0", "%00", "x" * 500, "../now", "22222222-2222-4222-8222-222222222222"):
        assert closed.ask("POST", f"/console/api/statements/{identifier}/kill", {}, cookie=ann)[0] in (404, 405)
        assert closed.ask("GET", f"/console/api/statements/{identifier}", cookie=ann)[0] == 404


@pytest.mark.parametrize(
    "query", ["max_results=0", "max_results=99999", "status=ODD", "nope=1", "before_ms=x", "text=%ff&a.b=1"]
)
def test_wrong_fields_are_named(open_: Door, query: str) -> None:
    assert open_.ask("GET", f"/console/api/statements?{query}")[0] == 400


def test_programs_calls_stay_closed_to_pages_and_cookies(closed: Door) -> None:
    cookie = closed.sign_in("a-token")
    assert closed.ask("GET", "/api/2.0/sql/history/queries", cookie=cookie)[0] in (401, 404)
    assert closed.ask("POST", "/cliservice", b"", cookie=cookie)[0] == 401


def test_many_at_once(open_: Door) -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(open_.ask("GET", "/console/api/now")[0])) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 20
