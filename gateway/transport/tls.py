"""TLS: the server's certificate, which can be exchanged while it is served, and the door of HTTPS.

TLS 1.2 and 1.3 only. A certificate that is read again counts for connections that come after; one that cannot be read changes
nothing.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextvars import ContextVar
from pathlib import Path

from gateway.auth.authenticators import check_file
from gateway.errors import ConfigError
from gateway.observability import log
from gateway.transport import strangers
from gateway.transport.door import Door, Factory
from gateway.transport.strangers import Tongue

HANDSHAKE_SECONDS = 20.0
# Why, of the handshake that goes on.
_refused: ContextVar[list[ssl.SSLError] | None] = ContextVar("refused", default=None)


class _Telling(ssl.SSLObject):
    """Tells the client why its handshake is refused: asyncio would close the connection before the alert has left."""

    def do_handshake(self) -> None:
        """As of `ssl.SSLObject`, but that a failure is raised once the client has had its say, or is gone."""
        refused = _refused.get()
        if refused:
            raise refused[0]
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError):
            raise
        except ssl.SSLError as error:
            if refused is None:
                raise
            refused.append(error)
            raise ssl.SSLWantReadError from error


class Certificate:
    """The files of a server's certificate as the context that they make.

    Args:
        chain, key: PEM files.
        client_authority: PEM file of who signs the certificates that clients must then show.

    Raises ConfigError naming the setting whose file cannot be used.
    """

    def __init__(self, chain: Path, key: Path, client_authority: Path | None = None) -> None:
        self._files = (chain, key, client_authority)
        self.context = _context(*self._files)

    def reload(self) -> bool:
        """Read the files again; False, with a line in the log, if they cannot be used: then the old ones stay."""
        try:
            self.context = _context(*self._files)
        except ConfigError as error:
            log("the TLS certificate cannot be read again, the old one stays", "error", reason=error.message)
            return False
        log("TLS certificate read again", path=str(self._files[0]))
        return True


def _context(chain: Path, key: Path, client_authority: Path | None) -> ssl.SSLContext:
    for setting, path in (("tls-cert", chain), ("tls-key", key), ("tls-client-ca", client_authority)):
        if path is not None:
            check_file(setting, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _Telling
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])  # Hive's clients name none, and are served all the same
    try:
        # Without a password of its own, OpenSSL would ask at the terminal.
        context.load_cert_chain(chain, key, password=_no_password)
    except ssl.SSLError as error:
        raise ConfigError("tls-cert", _why(error, chain, key)) from error
    except ValueError as error:
        raise ConfigError("tls-key", f"{key} is encrypted; give a key without a password") from error
    if client_authority is not None:
        try:
            context.load_verify_locations(client_authority)
        except ssl.SSLError as error:
            raise ConfigError("tls-client-ca", f"{client_authority} holds no certificate in PEM") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    raise ValueError("encrypted")


def _why(error: ssl.SSLError, chain: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{chain} is not the certificate of the key {key}"
    return f"{chain} and {key} are no certificate and key in PEM ({error.reason or error})"


async def secure(connection: socket.socket, certificate: Certificate, factory: Factory) -> None:
    """Shake hands on an accepted connection, and give it to the protocol that `factory` makes. Raises OSError."""
    loop = asyncio.get_running_loop()
    refused: list[ssl.SSLError] = []
    before = _refused.set(refused)
    try:
        await loop.connect_accepted_socket(
            factory, connection, ssl=certificate.context, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )
    except OSError:
        if refused:  # which says more than that the client has gone
            raise refused[0] from None
        raise
    finally:
        _refused.reset(before)


class HttpsDoor(Door):
    """HTTPS in front of the protocol of plain HTTP.

    Args:
        listener: see `Door`.
        certificate: see `Certificate`.
        limit: see `Door`; connections that have shaken hands are counted by their protocol.
    """

    def __init__(self, listener: socket.socket, certificate: Certificate, limit: int) -> None:
        super().__init__(listener, "https", limit)
        self._certificate = certificate
        self.factory: Factory | None = None  # of the HTTP server that this door belongs to

    async def admit(self, connection: socket.socket, first: bytes) -> None:
        """See `Door`."""
        tongue = strangers.tongue_of(first)
        if tongue is not Tongue.TLS:
            await self.refuse(connection, tongue, "This port speaks HTTPS, and the connection came without TLS.")
            return
        assert self.factory is not None
        await secure(connection, self._certificate, self.factory)
