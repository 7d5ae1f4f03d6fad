"""The one cookie of the console: made, read, and taken back."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.console.signed_in import LIFETIME_SECONDS

_NAME = "gateway-console"


def _names(host: str) -> tuple[str, str]:
    """The cookie's name over TLS and without: browsers do not tell ports of a host apart, so the port is in it."""
    _, _, port = host.rpartition(":")
    plain = f"{_NAME}-{port}" if port.isascii() and port.isdecimal() else _NAME
    return f"__Host-{plain}", plain


def is_secure(headers: Mapping[str, str], origin: str) -> bool:
    """Whether a browser reaches the server over TLS, be it by a proxy, as it says itself."""
    return origin.startswith("https:") or headers.get("origin", "").startswith("https:")


def given(value: str, host: str, *, secure: bool) -> bytes:
    """The value of Set-Cookie that has a browser keep `value`: out of reach for scripts and for other sites' pages."""
    return _set(value, LIFETIME_SECONDS, host, secure=secure)


def taken(host: str, *, secure: bool) -> bytes:
    """The value of Set-Cookie that has a browser forget it."""
    return _set("", 0, host, secure=secure)


def _set(value: str, seconds: int, host: str, *, secure: bool) -> bytes:
    protected, plain = _names(host)
    name = protected if secure else plain
    text = f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
    return text.encode("latin-1", "replace")


def sent(headers: Mapping[str, str], *, secure: bool) -> str:
    """What a browser has sent back, "" without it.

    Over TLS the plain name does not count: hosts beside this one, and whoever is between, can give a browser such a cookie.
    """
    protected, plain = all_sent(headers)
    return protected or ("" if secure else plain)


def all_sent(headers: Mapping[str, str]) -> tuple[str, str]:
    """What a browser has sent back by the name over TLS and by the plain one, "" without it."""
    found = dict(pair.strip().partition("=")[::2] for pair in headers.get("cookie", "").split(";"))
    protected, plain = _names(headers.get("host", ""))
    return found.get(protected, ""), found.get(plain, "")
