"""What the console needs of HTTP: which requests of a browser are its own page's, and what browsers may do with an answer."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from gateway.config.server import is_loopback
from gateway.transport.asgi import Answer, Header, Parts, RefusalError

Reply = tuple[int, bytes, tuple[Header, ...], Answer | Parts]
# Nothing but the page's own files is loaded, run, drawn or asked; nobody frames it; no text becomes a part of it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_READS = ("GET", "HEAD")
# What browsers send with each request and no page can have them leave out; JDBC, ODBC, Python, Go and curl send none of it.
_MARKS = ("accept-language", "sec-fetch-site", "sec-fetch-mode", "referer")


class Console(Protocol):
    """The page and its calls (`console.server.ConsoleServer`)."""

    @property
    def everybody(self) -> bool:
        """Whether nobody has to sign in."""

    def covers(self, path: str) -> bool:
        """Whether it serves a path."""

    def file(self, path: str, headers: Mapping[str, str]) -> Reply | None:
        """A file of the page, which is everybody's; None for another path."""

    def is_sign_in(self, path: str) -> bool:
        """Whether a path is that of signing in."""

    def sign_in(self, headers: Mapping[str, str], origin: str, body: bytes) -> Reply:
        """The answer to a token. Quick. Raises AuthenticationError."""

    def caller(self, headers: Mapping[str, str], origin: str) -> str:
        """The name of who has signed in. Quick. Raises AuthenticationError."""

    def waits(self, method: str, path: str) -> bool:
        """Whether a call may be held up by a statement."""

    def answer(
        self, method: str, path: str, query: str, body: bytes, caller: str, headers: Mapping[str, str], origin: str
    ) -> Reply:
        """The answer to a call; blocking, never raises."""


def check_site(method: str, headers: Mapping[str, str], public_url: str | None, *, everybody: bool) -> None:
    """Raise RefusalError for a request that another site's page makes, or that an address brings which is not the server's.

    Where `everybody` may call, a page elsewhere could have its own name lead to this machine: only names of it are taken.
    """
    host, public = headers.get("host", ""), _place(public_url or "")
    if everybody and not is_loopback(_hostname(host)) and host != public:
        raise RefusalError(421, "PERMISSION_DENIED", f"This server is not called {host[:100]!r}.", close=True)
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    own = origin is None or _place(origin) in {host, public} - {""}
    allowed = ("same-origin", "none") if method in _READS else ("same-origin",)
    if not own or (site is not None and site not in allowed):
        raise RefusalError(403, "PERMISSION_DENIED", "Other sites' pages are not served.", close=True)
    if method not in _READS and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        # what other sites' pages send without being asked about it first is never called that
        raise RefusalError(415, "UNSUPPORTED_MEDIA_TYPE", "Calls are sent as application/json.", close=True)


def check_name(headers: Mapping[str, str], public_url: str | None) -> None:
    """Raise RefusalError for a request that a page elsewhere may have made, having its own name lead to this machine.

    Where nobody signs in. Programs may call the server what they like, browsers by an address, localhost or `public_url`.
    """
    host = headers.get("host", "")
    if any(mark in headers for mark in _MARKS) and host != _place(public_url or "") and not _is_own(_hostname(host)):
        raise RefusalError(421, "PERMISSION_DENIED", f"This server is not called {host[:100]!r}.", close=True)


def _is_own(name: str) -> bool:
    """Whether no stranger can have a name lead here: localhost, and addresses."""
    try:
        return is_loopback(name) or bool(ip_address(name))
    except ValueError:
        return False


def _place(url: str) -> str:
    """Name and port of a URL, "" if it is none."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _hostname(host: str) -> str:
    try:
        return "" if "@" in host else urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
