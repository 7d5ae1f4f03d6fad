"""`gateway query`: statements on a running gateway or an embedded one; without one, a prompt."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gateway.cli.chart import chart
from gateway.cli.embedded import embedded_config, embedded_gateway
from gateway.cli.output import FOR_EYES, choose_format, first_rows, unencodable, write_rows
from gateway.cli.progress import Progress
from gateway.cli.settings import settings_flags
from gateway.errors import ConfigError
from gateway.observability import printable
from gateway.protocol.client import Client, RemoteError

DEFAULT_MAX_ROWS = 1000


def run(arguments: argparse.Namespace) -> int:
    """Run the statement and write its rows; a failed statement goes to standard error and gives 1.

    Without a statement those of standard input (or of ``--file``) are run one after the other until one fails; on a terminal
    they are asked for.
    """
    shape = choose_format(arguments.format, arguments.output)
    max_rows = DEFAULT_MAX_ROWS if arguments.max_rows is None else arguments.max_rows
    if max_rows < 0:
        raise ConfigError("max-rows", "is negative")
    token = arguments.token or os.environ.get("DATABRICKS_TOKEN")
    if arguments.url and token is not None and not (token.isascii() and token.isprintable()):
        raise ConfigError("token", "holds characters that no access token has")
    _check_combination(arguments, shape)
    with contextlib.ExitStack() as stack:
        url = arguments.url
        if not url:
            url, token = stack.enter_context(embedded_gateway(settings_flags(arguments), arguments.config))

        def connected() -> Client:
            try:
                client = Client(url, token=token)
            except ValueError as error:
                raise ConfigError("url", str(error)) from error
            return client.open(catalog=arguments.catalog, schema=arguments.schema)

        try:
            if arguments.sql is None:
                return _run_many(arguments, connected, shape, max_rows)
            text = sys.stdin.read() if arguments.sql == "-" else arguments.sql
            with _session(connected()) as client:
                return _run_one(arguments, client, text, shape, max_rows)
        except RemoteError as error:
            print(printable(str(error), keep="\n"), file=sys.stderr)
            return 1
        except UnicodeEncodeError as error:
            print(unencodable(error), file=sys.stderr)
            return 1
        except OSError as error:
            print(printable(f"gateway: {url}: {error}"), file=sys.stderr)
            return 1


@contextlib.contextmanager
def _session(client: Client) -> Iterator[Client]:
    """The session of one statement, whose outcome is what counts, not that of its end."""
    try:
        yield client
    except BaseException:  # Ctrl-C too: whoever has seen that it fails does not wait
        with client.hurried():
            _end(client)
        raise
    _end(client)


def _end(client: Client) -> None:
    try:
        client.close()
    except (RemoteError, OSError) as error:
        print(printable(f"The session was not closed: {error}", keep="\n"), file=sys.stderr)


def _drawn(arguments: argparse.Namespace) -> bool:
    return arguments.chart or arguments.chart_kind is not None


def _check_combination(arguments: argparse.Namespace, shape: str) -> None:
    if arguments.file is not None and arguments.sql is not None:
        raise ConfigError("file", "a statement and a file of statements exclude each other")
    if arguments.sql is None and arguments.output is not None:
        raise ConfigError("output", "needs a statement; at the prompt \\o FILE writes the rows of the next one")
    if arguments.sql is None and _drawn(arguments):
        raise ConfigError("chart", "needs a statement; at the prompt \\chart draws the rows of the last one")
    if _drawn(arguments) and (arguments.output is not None or shape not in FOR_EYES):
        raise ConfigError("chart", "is drawn on the screen, instead of rows")


def _run_one(arguments: argparse.Namespace, client: Client, text: str, shape: str, max_rows: int) -> int:
    progress = Progress(not arguments.quiet and sys.stderr.isatty())
    try:
        # With direct results the first call would be silent for as long as it waits for them.
        result = client.execute(text, lz4=True, direct=not progress.shown, progress=progress)
    finally:
        progress.end()
    if _drawn(arguments):
        batches, more = first_rows(progress.fetching(result.batches()), max_rows)
        sys.stdout.write(chart(result.arrow_schema, batches, arguments.chart_kind or "auto"))
        rows = sum(batch.num_rows for batch in batches)
    else:
        whole = shape not in FOR_EYES or arguments.output is not None
        fetched = result.batches()
        # Rows that a terminal shows as they come stand where the line would be.
        if arguments.output is not None or not sys.stdout.isatty() or not whole:
            fetched = progress.fetching(fetched)
        rows, more = write_rows(result.arrow_schema, fetched, shape, arguments.output, 0 if whole else max_rows)
    result.close()
    if more:
        print(f"({rows} rows shown, there are more; --max-rows 0 shows all)", file=sys.stderr)
    elif arguments.output is not None:
        print(f"{rows} rows written to {arguments.output}", file=sys.stderr)
    return 0


def _run_many(arguments: argparse.Namespace, connected: Callable[[], Client], shape: str, max_rows: int) -> int:
    from gateway.cli.shell import Shell, View, run_prompt  # it needs the grammar, which one statement does not

    on_terminal = sys.stderr.isatty()
    vertical = "on" if shape == "vertical" else "auto"
    view = View(
        format="table" if shape == "vertical" else shape,
        vertical=vertical,
        max_rows=max_rows,
        progress=on_terminal and not arguments.quiet,
    )
    if arguments.file is None and sys.stdin.isatty():
        return run_prompt(connected, view, _state(arguments) / "prompt-history")
    view.timing = view.pager = False
    shell = Shell(connected, view)
    try:
        if arguments.file is not None:
            shell.run_file(arguments.file)
        else:
            shell.run_text(sys.stdin.read())
    finally:
        shell.close()
    return 1 if shell.failed else 0


def _state(arguments: argparse.Namespace) -> Path:
    return embedded_config(settings_flags(arguments), arguments.config).state
