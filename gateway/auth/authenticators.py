"""The ways to tell who calls: nobody is asked (`none`; `config` allows it on loopback only), or static tokens (`token`).

Tokens are kept as SHA-256 of the token: they are long and random, so a slow hash would only slow every request. A token
file has one ``name:sha256-hex`` a line, `#` starts a comment; `token_line` makes such lines.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from gateway.auth.base import AuthenticationError, Identity
from gateway.errors import ConfigError

ANONYMOUS = "anonymous"
_LONGEST_NAME = 512  # characters: names are kept with all that is kept for whoever has them
_HEX_DIGITS = frozenset("0123456789abcdef")
# The user name of HTTP Basic that says "the password is a token" (Databricks JDBC and ODBC).
TOKEN_USER = "token"


def basic_credentials(authorization: str) -> tuple[str, str] | None:
    """User and password of an ``Authorization: Basic`` value, None if it is malformed."""
    try:
        text = base64.b64decode(authorization[len("Basic") :].strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    user, colon, password = text.partition(":")
    return (user, password) if colon else None


def scheme_of(headers: Mapping[str, str]) -> str:
    """The scheme of the Authorization header in lower case, "" without one."""
    scheme, space, _ = headers.get("authorization", "").partition(" ")
    scheme = scheme.lower()
    # Databricks JDBC 2.x leaves out the space behind `Basic`.
    return "basic" if not space and scheme.startswith("basic") else scheme


class AllowAll:
    """Mode `none`: every credential is accepted; the name is that of HTTP Basic, if there is one."""

    def authenticate(self, headers: Mapping[str, str]) -> Identity:
        """See `Authenticator`; refuses names alone that are too long."""
        if scheme_of(headers) == "basic":
            credentials = basic_credentials(headers["authorization"])
            if credentials and len(credentials[0]) > _LONGEST_NAME:
                raise AuthenticationError("basic", f"The user name is longer than {_LONGEST_NAME} characters.")
            if credentials and credentials[0] and credentials[0] != TOKEN_USER:
                return Identity(credentials[0])
        return Identity(ANONYMOUS)

    def proofs(self, name: str) -> Collection[bytes]:
        """See `Authenticator`."""
        return (b"",)


class StaticTokens:
    """Mode `token`: ``Bearer <token>``, ``Basic token:<token>`` or ``Basic <name>:<token>``.

    Args:
        tokens: pairs of name and SHA-256 (lower-case hex) of the token. A name may have several.
    """

    def __init__(self, tokens: Iterable[tuple[str, str]]) -> None:
        self._tokens = [(name, bytes.fromhex(digest)) for name, digest in tokens]

    def authenticate(self, headers: Mapping[str, str]) -> Identity:
        """See `Authenticator`."""
        scheme = scheme_of(headers)
        user: str | None = None
        if scheme == "bearer":
            token = headers["authorization"].partition(" ")[2].strip()
        elif scheme == "basic":
            credentials = basic_credentials(headers["authorization"])
            if credentials is None:
                raise AuthenticationError("basic", "The Authorization header is malformed.")
            user, token = credentials
        else:
            raise AuthenticationError("other" if scheme else "none", "A token is required.")
        found = self._owner(token) if token else None
        if found is None or user not in (None, TOKEN_USER, found.name):
            raise AuthenticationError(scheme, "The token is not valid.")
        return found

    def proofs(self, name: str) -> Collection[bytes]:
        """See `Authenticator`."""
        return [digest for known, digest in self._tokens if known == name]

    def replace(self, others: StaticTokens) -> None:
        """From now on these tokens count, and no others."""
        self._tokens = others._tokens

    def _owner(self, token: str) -> Identity | None:
        """Whom a token belongs to; every known token is compared, in constant time."""
        digest = hashlib.sha256(token.encode()).digest()
        owner = None
        for name, known in self._tokens:
            if hmac.compare_digest(digest, known):
                owner = Identity(name, known)
        return owner


def token_line(name: str, token: str) -> str:
    """A line of a token file."""
    return f"{name}:{token_digest(token)}"


def token_digest(token: str) -> str:
    """What is kept of a token: its SHA-256, in hex."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token() -> str:
    """A random token (128 bits) in the shape that Databricks users know."""
    return "dapi" + secrets.token_hex(16)


def check_file(setting: str, path: Path) -> None:
    """Raise ConfigError naming `setting` for what cannot be opened, and for pipes, which whoever reads them would wait for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(setting, f"cannot read {str(path)!r}: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(setting, f"cannot read {str(path)!r}: it is no file.")
    finally:
        os.close(descriptor)


def read_tokens(path: Path) -> StaticTokens:
    """Tokens of a file. Raises ConfigError naming `token-file`, never showing a line's text."""
    check_file("token-file", path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError("token-file", f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError("token-file", f"{str(path)!r} is not UTF-8 text.") from error
    tokens = []
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, _, digest = line.rpartition(":")
        name, digest = name.strip(), digest.strip().lower()
        if not name or not name.isprintable() or ":" in name or len(digest) != 64 or not _HEX_DIGITS.issuperset(digest):
            raise ConfigError("token-file", f"line {number} of {str(path)!r} is not `name:sha256-hex`.")
        if digest == hashlib.sha256(b"").hexdigest():
            raise ConfigError("token-file", f"line {number} of {str(path)!r} is the hash of an empty token.")
        tokens.append((name, digest))
    if not tokens:
        raise ConfigError("token-file", f"{str(path)!r} holds no token.")
    return StaticTokens(tokens)
