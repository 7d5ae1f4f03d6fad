"""The console as the HTTP server asks it: a file of the page, a sign-in, or a call of somebody who has signed in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.auth.base import AuthenticationError, Authenticator
from gateway.console import cookies
from gateway.console.calls import ConsoleCalls
from gateway.console.files import PATH, page_files
from gateway.console.signed_in import SignedIn
from gateway.errors import GatewayError
from gateway.protocol.handler import Caller
from gateway.rest import fields
from gateway.rest.fields import RestError
from gateway.rest.manifest import code_of
from gateway.rest.routes import JsonCalls
from gateway.service.api import Principal

API = f"{PATH}/api/"
_SIGN_IN, _SIGN_OUT = f"{API}sign-in", f"{API}sign-out"
_WAITING = tuple(API + path for path in ("run", "catalog", "files", "results/"))
_ASKS_HISTORY = f"{API}statements"  # by GET
_JSON = b"application/json"
_CLIENT = "gateway-console"  # what it is called where programs are told apart
_FRESH, _CHECKED = (b"cache-control", b"no-store"), (b"cache-control", b"no-cache")
_TOKEN: fields.Fields = {"token": fields.text}

Reply = tuple[int, bytes, tuple[tuple[bytes, bytes], ...], bytes | Sequence[bytes | memoryview]]


class ConsoleServer:
    """The page and its calls. Thread-safe.

    Args:
        calls: what it may be asked.
        authenticator: knows the tokens that people sign in with.
    """

    def __init__(self, calls: ConsoleCalls, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._signed_in = SignedIn(authenticator)
        self._files = page_files()
        self._results = calls.results
        self._calls = JsonCalls(API, calls.routes())
        self.everybody = is_open(authenticator)

    def covers(self, path: str) -> bool:
        """Whether it serves a path."""
        return path in self._files or path.startswith(f"{PATH}/")

    def file(self, path: str, headers: Mapping[str, str]) -> Reply | None:
        """A file of the page, which is everybody's; None for another path."""
        found = self._files.get(path)
        if found is None:
            return None
        told = (_CHECKED, (b"etag", found.tag))
        if headers.get("if-none-match", "").encode("latin-1", "replace") == found.tag:
            return 304, found.media, told, b""
        return 200, found.media, told, found.data

    def is_sign_in(self, path: str) -> bool:
        """Whether a path is that of signing in."""
        return path == _SIGN_IN

    def sign_in(self, headers: Mapping[str, str], origin: str, body: bytes) -> Reply:
        """The answer to a token: a cookie. Raises AuthenticationError."""
        try:
            token = fields.read(body, _TOKEN)["token"] or ""
        except RestError as error:
            return _refused(error)
        if not token.isascii() or not token.isprintable():
            raise AuthenticationError("bearer", "The token is not valid.")
        identity = self._authenticator.authenticate({"authorization": f"Bearer {token}"})
        cookie = cookies.given(
            self._signed_in.open(identity), headers.get("host", ""), secure=cookies.is_secure(headers, origin)
        )
        return _told({"user": identity.name}, (b"set-cookie", cookie))

    def caller(self, headers: Mapping[str, str], origin: str) -> str:
        """The name of who has signed in. Raises AuthenticationError."""
        if self.everybody:
            return self._authenticator.authenticate({}).name
        found = self._signed_in.find(cookies.sent(headers, secure=cookies.is_secure(headers, origin)))
        if found is None:
            raise AuthenticationError("none", "Sign in with a token.")
        return found.name

    def waits(self, method: str, path: str) -> bool:
        """Whether a call may be held up by a statement, or by the store of the history."""
        return path.startswith(_WAITING) or (method == "GET" and path.startswith(_ASKS_HISTORY))

    def answer(
        self, method: str, path: str, query: str, body: bytes, caller: str, headers: Mapping[str, str], origin: str
    ) -> Reply:
        """The answer to a call; never raises."""
        if path == _SIGN_OUT and method == "POST":
            for each in cookies.all_sent(headers):
                self._signed_in.close(each)
            forget = cookies.taken(headers.get("host", ""), secure=cookies.is_secure(headers, origin))
            return _told({}, (b"set-cookie", forget))
        asked = Caller(Principal(caller), _CLIENT, origin)
        try:
            part = self._results.part(asked, path.removeprefix(API), query) if method == "GET" else None
        except RestError as error:
            return _refused(error)
        except GatewayError as error:
            return _refused(RestError(400, code_of(error), error.text()))
        if part is not None:
            return 200, part[0].encode(), (_FRESH,), part[1]
        status, answer = self._calls.answer(method, path, body, caller, _CLIENT, origin, query)
        return status, _JSON, (_FRESH,), answer


def is_open(authenticator: Authenticator) -> bool:
    """Whether an authenticator lets in whoever comes."""
    try:
        authenticator.authenticate({})
    except AuthenticationError:
        return False
    return True


def _told(answer: Mapping[str, Any], *headers: tuple[bytes, bytes]) -> Reply:
    return 200, _JSON, (_FRESH, *headers), json.dumps(answer).encode()


def _refused(error: RestError) -> Reply:
    text = json.dumps({"error_code": error.code, "message": error.message}).encode()
    return error.status, _JSON, (_FRESH,), text
