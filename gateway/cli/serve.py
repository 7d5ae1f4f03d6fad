"""`gateway serve`: run until SIGTERM, Ctrl-C or the terminal's end; the first drains, a second one ends the process at once.

With a TLS certificate or a token file, SIGHUP has them read again instead, as servers do that run without a terminal.
"""

from __future__ import annotations

import argparse
import os
import signal
from types import FrameType

from gateway.cli.settings import settings_flags
from gateway.cli.signals import Wish, Wishes
from gateway.config import load_config
from gateway.engine.launch import Launched
from gateway.observability import configure_logging, log


def run(arguments: argparse.Namespace) -> int:
    """Serve with the settings of flags, environment and file."""
    config = load_config(settings_flags(arguments), config_file=arguments.config)
    configure_logging(config.log_format, config.log_level, config.log_sql)
    first = Launched()  # it imports while this process does; the settings are checked before either
    from gateway.app import Gateway

    wishes = Wishes()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if wishes.stop():
            if config.ready_file is not None:
                config.ready_file.unlink(missing_ok=True)
            os._exit(1)  # workers die with this process

    gateway = Gateway(config, first=first)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    if config.tls_cert is not None or config.auth == "token":
        signal.signal(signal.SIGHUP, lambda number, frame: wishes.reread())
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup's wish
        signal.signal(signal.SIGHUP, on_signal)
    gateway.start()
    remark_root()
    try:
        while wishes.next() is Wish.REREAD:
            gateway.reread()
        if not gateway.drain(config.drain_timeout):
            log("statements were cut off", "warning", seconds=config.drain_timeout)
    finally:
        gateway.stop()
    return 0


def remark_root() -> None:
    """One line in the log if nothing on this machine is out of reach for a fault."""
    if os.geteuid() == 0:
        log("running as root: a fault of the gateway would reach all files here; use an account of its own", "warning")
