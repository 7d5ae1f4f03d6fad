"""`gateway query`: one statement, on a running gateway or an embedded one."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from typing import Any

from gateway.cli.embedded import embedded_gateway
from gateway.cli.output import choose_format, write_rows
from gateway.cli.settings import settings_flags
from gateway.errors import ConfigError
from gateway.observability import printable
from gateway.protocol.client import Client, RemoteError

DEFAULT_MAX_ROWS = 1000


class Progress:
    """One line on a terminal that shows how far the statement is."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self._start = time.monotonic()
        self._width = 0

    def __call__(self, status: Any) -> None:
        """Show a TGetOperationStatusResp."""
        if not self.shown:
            return
        answer = getattr(status, "progressUpdateResponse", None)
        fraction = getattr(answer, "progressedPercentage", None)
        share = f" {fraction:.0%}" if fraction else ""
        text = f"running {time.monotonic() - self._start:.0f} s{share}"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        """Wipe the line."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0


def run(arguments: argparse.Namespace) -> int:
    """Run the statement and write its rows; a failed statement goes to standard error and gives 1."""
    text = sys.stdin.read() if arguments.sql == "-" else arguments.sql
    shape = choose_format(arguments.format, arguments.output)
    max_rows = DEFAULT_MAX_ROWS if arguments.max_rows is None else arguments.max_rows
    if max_rows < 0:
        raise ConfigError("max-rows", "is negative")
    token = arguments.token or os.environ.get("DATABRICKS_TOKEN")
    if arguments.url and token is not None and not (token.isascii() and token.isprintable()):
        raise ConfigError("token", "holds characters that no access token has")
    with contextlib.ExitStack() as stack:
        url = arguments.url or stack.enter_context(embedded_gateway(settings_flags(arguments), arguments.config))
        try:
            client = stack.enter_context(Client(url, token=token if arguments.url else None))
        except ValueError as error:
            raise ConfigError("url", str(error)) from error
        progress = Progress(not arguments.quiet and sys.stderr.isatty())
        try:
            client.open(catalog=arguments.catalog, schema=arguments.schema)
            # With direct results the first call would be silent for as long as it waits for them.
            result = client.execute(text, lz4=True, direct=not progress.shown, progress=progress)
            progress.end()
            whole = shape != "table" or arguments.output is not None
            rows, more = write_rows(
                result.arrow_schema, result.batches(), shape, arguments.output, 0 if whole else max_rows
            )
            result.close()
        except RemoteError as error:
            progress.end()
            print(printable(str(error), keep="\n"), file=sys.stderr)
            return 1
        except OSError as error:
            progress.end()
            print(printable(f"gateway: {url}: {error}"), file=sys.stderr)
            return 1
    if more:
        print(f"({rows} rows shown, there are more; --max-rows 0 shows all)", file=sys.stderr)
    elif arguments.output is not None:
        print(f"{rows} rows written to {arguments.output}", file=sys.stderr)
    return 0
