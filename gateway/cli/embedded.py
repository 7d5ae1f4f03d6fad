"""A gateway inside this process, for commands that need one for a moment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from gateway.auth.authenticators import ANONYMOUS, StaticTokens, new_token, token_digest
from gateway.config import Config, load_config
from gateway.engine.launch import Launched
from gateway.errors import ConfigError
from gateway.observability import configure_logging

Flags = Mapping[str, str | list[str] | None]


def embedded_config(flags: Flags, config_file: str | None) -> Config:
    """The settings; without a warehouse, a folder of its own below the state folder is taken."""
    try:
        return load_config(flags, config_file=config_file)
    except ConfigError as error:
        if error.setting != "warehouse" or flags.get("warehouse"):
            raise
    state = load_config({**flags, "warehouse": "."}, config_file=config_file).state
    return load_config({**flags, "warehouse": str(state / "warehouse")}, config_file=config_file)


@contextlib.contextmanager
def embedded_gateway(flags: Flags, config_file: str | None) -> Iterator[tuple[str, str]]:
    """A gateway on a free loopback port; its URL, and the token that it asks for."""
    given = flags.get("log-level")
    config = embedded_config({**flags, "port": "0", "host": "127.0.0.1", "auth": "none"}, config_file)
    configure_logging(config.log_format, str(given or "warning"), config.log_sql)
    with running_gateway(config, token := new_token()) as url:
        yield url, token


@contextlib.contextmanager
def running_gateway(config: Config, token: str | None = None) -> Iterator[str]:
    """A gateway with these settings; its URL. With a `token` whoever has that one is let in, and nobody else: all users of
    this machine reach its port."""
    first = Launched()  # it imports while this process does
    from gateway.app import Gateway

    tokens = StaticTokens([(ANONYMOUS, token_digest(token))]) if token is not None else None
    gateway = Gateway(config, first=first, tokens=tokens)
    gateway.start()
    try:
        yield gateway.url
    finally:
        gateway.stop()
