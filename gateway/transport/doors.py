"""The doors beside plain HTTP that a configuration asks for: HTTPS and Thrift over TCP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.auth.base import Authenticator
from gateway.config import Config
from gateway.protocol.reader import Budget
from gateway.transport.door import Door
from gateway.transport.server import address_of, bind
from gateway.transport.sign_ins import SignIns
from gateway.transport.tcp import Calls, TcpDoor, TcpLimits
from gateway.transport.tls import Certificate, HttpsDoor


@dataclass(frozen=True, slots=True)
class Doors:
    """What `open_doors` has made."""

    host: str
    https: HttpsDoor | None
    tcp: TcpDoor | None
    certificate: Certificate | None

    @property
    def all(self) -> tuple[Door, ...]:
        return tuple(door for door in (self.https, self.tcp) if door is not None)

    @property
    def https_url(self) -> str | None:
        return f"https://{address_of(self.host, self.https.port)}" if self.https is not None else None

    @property
    def tcp_address(self) -> str | None:
        return address_of(self.host, self.tcp.port) if self.tcp is not None else None


def open_doors(
    config: Config,
    calls: Calls,
    authenticator: Authenticator,
    may_wait: Callable[[bytes], bool],
    budget: Budget,
    connections: int,
    sign_ins: SignIns,
) -> Doors:
    """Bind the ports and read the certificate; nothing is served yet. Raises ConfigError naming the setting at fault.

    Each door has so many connections at most.
    """
    certificate = None
    if config.tls_cert is not None and config.tls_key is not None:
        certificate = Certificate(config.tls_cert, config.tls_key, config.tls_client_ca)
    https = tcp = None
    if config.tls_port is not None and certificate is not None:
        https = HttpsDoor(bind(config.host, config.tls_port, "tls-port"), certificate, connections)
    if config.tcp_port is not None:
        tcp = TcpDoor(
            bind(config.host, config.tcp_port, "tcp-port"),
            calls,
            authenticator,
            trusting=config.auth == "none",
            may_wait=may_wait,
            certificate=certificate if config.tcp_tls else None,
            sign_ins=sign_ins,
            limits=TcpLimits(budget=budget, connections=connections, idle=config.session_idle),
        )
    return Doors(config.host, https, tcp, certificate)
