"""The passwords that a connection to a database may be made with: a server may repeat them in what it says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from gateway.config.values import DatabaseUrl

_MASK = "***"
_MOST_BYTES = 1 << 20  # of a file
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
# Parameters whose values are words that stand in errors, and no secrets.
_PLAIN = (
    "application_name channel_binding client_encoding connect_timeout fallback_application_name gssencmode host hostaddr "
    "keepalives keepalives_count keepalives_idle keepalives_interval load_balance_hosts passfile port replication require_auth "
    "service sslcert sslcompression sslcrl sslkey sslmode sslnegotiation sslrootcert ssl_max_protocol_version "
    "ssl_min_protocol_version target_session_attrs tcp_user_timeout user"
)
_FIELD = re.compile(r"((?:[^\\:]|\\.)*)(?::|$)")  # of a line of a passfile; \: and \\ are a colon and a backslash
_AT = 4  # where the password stands in it
_SERVICE = re.compile(rf"[ \t]*(?:{'|'.join(_SECRETS)})[ \t]*=[ \t]*(.*?)[ \t]*")


def masked(text: str, url: DatabaseUrl) -> str:
    """A text without the passwords that the address, the environment and the files of libpq hold."""
    for secret in sorted({url.text, *_passwords(url)} - {""}, key=len, reverse=True):
        text = text.replace(secret, _MASK)
    return text


def _passwords(url: DatabaseUrl) -> Iterator[str]:
    import psycopg

    found = {name: str(value) for name, value in psycopg.conninfo.conninfo_to_dict(url.text).items()}
    own = {found[name] for name in _SECRETS if name in found}
    raw = [pair.partition("=")[::2] for pair in url.text.partition("?")[2].split("&")]
    plain = {text for name, value in raw if name in _PLAIN.split() for text in (value, unquote(value))}
    yield from (secret for secret in url.secrets if secret in own or secret not in plain)
    yield from own
    yield from (os.environ[name] for name in ("PGPASSWORD", "PGSSLPASSWORD") if name in os.environ)
    for line in _lines(found.get("passfile") or os.environ.get("PGPASSFILE") or str(Path.home() / ".pgpass")):
        fields = _FIELD.findall(line)
        if len(fields) > _AT:
            yield from (fields[_AT], re.sub(r"\\(.)", r"\1", fields[_AT]))
    services = [os.environ.get("PGSERVICEFILE") or str(Path.home() / ".pg_service.conf")]
    services += [f"{folder}/pg_service.conf" for folder in filter(None, [os.environ.get("PGSYSCONFDIR")])]
    for line in (line for path in services for line in _lines(path)):
        if match := _SERVICE.fullmatch(line):
            yield match[1]


def _lines(path: str) -> list[str]:
    """Of a file, none of one that is not there: libpq reads nothing of it either."""
    if not os.path.isfile(path):
        return []
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
