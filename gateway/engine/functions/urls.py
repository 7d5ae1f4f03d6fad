"""parse_url as java.net.URI reads it: RFC 2396 with Java's additions (non-ASCII letters), strict about characters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from gateway.engine.functions import RowError
from gateway.engine.functions.distinct import scalar
from gateway.engine.functions.regex import first_group

_ALPHANUM = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_UNRESERVED = _ALPHANUM | frozenset("_-!.~'()*")
_PATH = _UNRESERVED | frozenset(":@&=+$,;/")
_QUERY = _UNRESERVED | frozenset(";/?:@&=+$,[]")
_AUTHORITY = _UNRESERVED | frozenset("$,;:@&=+[]")
_HEX = frozenset("0123456789abcdefABCDEF")


@dataclass(slots=True)
class _Uri:
    scheme: str | None
    authority: str | None
    userinfo: str | None
    host: str | None
    path: str | None
    query: str | None
    fragment: str | None


def _legal(text: str, allowed: frozenset[str]) -> None:
    """Raises ValueError at a character that a component must not have; escapes and other Unicode letters may stand."""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "%":
            if len(text) < at + 3 or text[at + 1] not in _HEX or text[at + 2] not in _HEX:
                raise ValueError("malformed escape pair")
            at += 3
            continue
        foreign = ord(char) >= 0x80 and not char.isspace() and not 0x80 <= ord(char) < 0xA0
        if char not in allowed and not foreign:
            raise ValueError(f"illegal character {char!r}")
        at += 1


def _any_of(chars: frozenset[str]) -> str:
    return f"(?:[{re.escape(''.join(sorted(chars)))}]|%[0-9a-fA-F]{{2}})*"


# What most look like; others are taken apart by hand.
_PLAIN = re.compile(
    f"([A-Za-z][A-Za-z0-9+.-]*)://([A-Za-z0-9.-]+(?::[0-9]+)?)(/{_any_of(_PATH)})?"
    f"(?:[?]({_any_of(_QUERY)}))?(?:#({_any_of(_QUERY)}))?"
)


@lru_cache(maxsize=4096)
def _host(authority: str) -> str | None:
    return _server(authority)[1]


def _uri(text: str) -> _Uri:
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        scheme, authority, path, query, fragment = plain.groups()
        return _Uri(scheme, authority, None, _host(authority), path or "", query, fragment)
    return _odd_uri(text)


def _odd_uri(text: str) -> _Uri:
    rest, _, fragment = text.partition("#")
    has_fragment = "#" in text
    if has_fragment:
        _legal(fragment, _QUERY)
    scheme: str | None = None
    stop = next((i for i, c in enumerate(rest) if c in ":/?"), -1)
    if stop >= 0 and rest[stop] == ":":
        scheme, rest = rest[:stop], rest[stop + 1 :]
        if not scheme or not scheme[0].isalpha() or any(c not in _ALPHANUM and c not in "+-." for c in scheme):
            raise ValueError("illegal scheme")
        if not rest:
            raise ValueError("expected scheme-specific part")
        if not rest.startswith("/"):  # opaque
            _legal(rest, _QUERY)
            return _Uri(scheme, None, None, None, None, None, fragment if has_fragment else None)
    rest, question, query = rest.partition("?")
    if question:
        _legal(query, _QUERY)
    authority: str | None = None
    if rest.startswith("//"):
        body = rest[2:]
        cut = body.find("/")
        authority, rest = (body, "") if cut < 0 else (body[:cut], body[cut:])
        if not authority and not rest and not question:
            raise ValueError("expected authority")
        if authority:
            _legal(authority, _AUTHORITY)
    _legal(rest, _PATH)
    userinfo, host = _server(authority) if authority else (None, None)
    return _Uri(
        scheme,
        authority or None,
        userinfo,
        host,
        rest,
        query if question else None,
        fragment if has_fragment else None,
    )


def _server(authority: str) -> tuple[str | None, str | None]:
    """User information and host; None for both where the authority is not server-based."""
    userinfo: str | None = None
    rest = authority
    if "@" in rest:
        userinfo, _, rest = rest.partition("@")
    if rest.startswith("["):
        stop = rest.find("]")
        if stop < 0:
            raise ValueError("expected closing bracket")
        host, port = rest[: stop + 1], rest[stop + 1 :]
    else:
        host, colon, number = rest.partition(":")
        port = colon + number
    if port and not (port[0] == ":" and (len(port) == 1 or port[1:].isdigit())):
        return None, None
    if host.startswith("["):
        return userinfo, host
    labels = host.removesuffix(".").split(".")
    for label in labels:
        if not label or label[0] == "-" or label[-1] == "-" or any(c not in _ALPHANUM and c != "-" for c in label):
            return None, None
    if len(labels) == 4 and all(part.isdigit() for part in labels):
        return (userinfo, host) if all(int(part) < 256 for part in labels) else (None, None)
    return (userinfo, host) if labels[-1][0].isalpha() else (None, None)


@scalar("parse_url")
def parse_url(url: str, part: str, *rest: str | bool) -> str | None:
    """A part of a URL, or a parameter of its query; the last argument says whether a bad URL is NULL."""
    *key, lenient = rest
    if key and part != "QUERY":
        return None
    try:
        uri = _uri(url)
    except ValueError:
        if lenient:
            return None
        raise RowError(
            "INVALID_URL",
            f"The url is invalid: {url}. Use `try_parse_url` to tolerate invalid URL and return NULL instead.",
        ) from None
    if key:
        return _parameter(uri.query or "", str(key[0]))
    if part == "FILE":
        return None if uri.path is None else uri.path + (f"?{uri.query}" if uri.query is not None else "")
    return getattr(uri, _PARTS[part]) if part in _PARTS else None


_PARTS = {
    "HOST": "host", "PATH": "path", "QUERY": "query", "REF": "fragment", "PROTOCOL": "scheme", "AUTHORITY": "authority",
    "USERINFO": "userinfo",
}  # fmt: skip


def _parameter(query: str, key: str) -> str | None:
    """The value of a query's first parameter of a name, which is a pattern: Spark looks for `(&|^)` name `=([^&]*)`."""
    if key.replace("_", "").isalnum():
        found = (pair.partition("=") for pair in query.split("&"))
        return next((value for name, equals, value in found if equals and name == key), None)
    return first_group("parse_url", f"(&|^){key}=([^&]*)", query, 2)
