"""The prompt without its terminal: runs entries over one session and shows what comes."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from gateway.cli.chart import chart
from gateway.cli.output import (
    FOR_EYES,
    Shown,
    choose_format,
    first_rows,
    records,
    table,
    unencodable,
    write_batches,
    write_rows,
)
from gateway.cli.progress import Progress
from gateway.cli.shell.entry import entries, is_shortcut
from gateway.cli.shell.shortcuts import run_shortcut
from gateway.cli.shell.view import View
from gateway.errors import ConfigError
from gateway.observability import printable
from gateway.protocol.client import Client, RemoteError, Result

_MOVING = frozenset({"USE", "SET", "DROP"})  # statements that may change where names are looked up
_CHANGING = frozenset({"CREATE", "DROP", "ALTER", "USE", "RESTORE", "REPLACE"})  # or what there is to complete
_PAGERS = ("less -SRFX", "more")


class Shell:
    """Runs what is typed.

    Args:
        connected: opens a session; called at once, and for each new one.
        view: how rows are shown; shortcuts change it.
        out: where rows go. Errors and remarks go to standard error.
        changed: called after a statement that may have changed which names there are.
    """

    def __init__(
        self,
        connected: Callable[[], Client],
        view: View,
        out: TextIO | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.view = view
        self.left = False
        self.failed = False
        self.place = ""
        self._connected = connected
        self._out = out or sys.stdout
        self._changed = changed
        self._kept: tuple[pa.Schema, list[pa.RecordBatch]] | None = None
        self._file: str | None = None
        self._canceled = False
        self._client = connected()
        self._look_where()

    def close(self) -> None:
        """End the session; if the last statement was canceled, nobody waits long for that."""
        try:
            with self._client.hurried() if self._canceled else contextlib.nullcontext():
                self._client.close()
        except (RemoteError, OSError) as error:
            self.say(f"The session was not closed: {error}")

    def say(self, text: str) -> None:
        """A remark, or an error, for whoever types."""
        print(printable(text, keep="\n"), file=sys.stderr, flush=True)

    def run(self, text: str) -> None:
        """A shortcut, or statements one after the other until one fails (`failed`)."""
        self.failed = False
        try:
            if is_shortcut(text):
                run_shortcut(self, text)
                return
            self.run_text(text)
        except ConfigError as error:
            self._fail(error.message)
        except KeyboardInterrupt:
            self._canceled = True
            self._fail("Canceled.")

    def run_file(self, name: str) -> None:
        """The statements of a file. Raises ConfigError where it cannot be read."""
        try:
            text = Path(name).expanduser().read_text(encoding="utf-8-sig")
        except (OSError, ValueError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or error
            raise ConfigError("file", f"{name or 'it'} cannot be read: {why}") from error
        self.run_text(text)

    def run_text(self, text: str) -> None:
        """Statements one after the other until one fails (`failed`)."""
        for entry in entries(text):
            self.execute(entry.text, entry.vertical)
            if self.failed:
                return

    def send_to(self, name: str) -> None:
        """Rows of the next statement go to the file; no name: to the screen after all."""
        if name:
            choose_format(None, name)
        try:
            self._file = str(Path(name).expanduser()) if name else None
        except RuntimeError as error:
            raise ConfigError("output", f"{name} cannot be written: {error}") from error

    def connect(self) -> None:
        """A new session; that of before is left to the gateway if it cannot be reached any more."""
        self.close()
        try:
            self._client = self._connected()
        except (RemoteError, OSError) as error:
            self._fail(str(error))
            return
        self._look_where()

    def draw(self, kind: str) -> None:
        """The rows of the last statement as a picture. Raises ConfigError."""
        if self._kept is None:
            raise ConfigError("chart", "no rows were shown yet")
        self._out.write(chart(*self._kept, kind))
        self._out.flush()

    def execute(self, text: str, vertical: bool = False) -> None:
        """One statement; what goes wrong is said and leaves `failed`."""
        start = time.monotonic()
        try:
            remark = self._ran(text, vertical)
            self._canceled = False
        except RemoteError as error:
            self._fail(str(error))
            return
        except OSError as error:
            self._fail(f"{error} (\\c connects anew)")
            return
        except UnicodeEncodeError as error:
            self._fail(unencodable(error))
            return
        word = text.split(None, 1)[0].upper() if text.strip() else ""
        if self.view.timing or self._out.isatty():
            took = f", {time.monotonic() - start:.2f} s" if self.view.timing else ""
            self.say(f"({remark}{took})")
        if word in _MOVING:
            self._look_where()
        if word in _CHANGING:
            self._changed()

    def _ran(self, text: str, vertical: bool) -> str:
        """Run a statement and show its rows; what is said of them."""
        progress = Progress(self.view.progress)
        try:
            result = self._client.execute(text, lz4=True, direct=not progress.shown, progress=progress)
        finally:
            progress.end()
        try:
            return self._show(result, vertical, progress)
        finally:
            result.cancel()  # wherever reading has ended

    def _show(self, result: Result, vertical: bool, progress: Progress) -> str:
        """Rows to where they belong; what is said of them."""
        schema = result.arrow_schema
        if self._file is not None:
            name, self._file = self._file, None
            rows, _ = write_rows(schema, progress.fetching(result.batches()), choose_format(None, name), name, 0)
            return f"{rows} rows written to {name}"
        if self.view.format not in FOR_EYES:
            return _counted(write_batches(schema, result.batches(), self.view.format, self._target()), False)
        batches, more = first_rows(progress.fetching(result.batches()), self.view.max_rows)
        self._kept = (schema, batches)
        if schema.names:
            self._page(*self._laid_out(schema, batches, vertical))
        return _counted(sum(batch.num_rows for batch in batches), more)

    def _laid_out(self, schema: pa.Schema, batches: list[pa.RecordBatch], vertical: bool) -> tuple[Iterable[str], int]:
        """Lines, and how many they are."""
        rows = sum(batch.num_rows for batch in batches)
        if vertical or self.view.vertical == "on":
            return records(schema, batches), rows * (len(schema) + 1)
        lines = table(schema, batches)
        head = next(lines)
        narrow = self.view.vertical == "off" or not self._out.isatty()
        if narrow or len(head) - 1 <= shutil.get_terminal_size().columns:
            return itertools.chain((head,), lines), rows + 2
        return records(schema, batches), rows * (len(schema) + 1)

    def _target(self) -> TextIO | Shown:
        return Shown(self._out) if self._out.isatty() else self._out

    def _page(self, lines: Iterable[str], count: int) -> None:
        pager = self._pager() if count >= shutil.get_terminal_size().lines else None
        if pager is None:
            self._out.writelines(lines)
            self._out.flush()
        else:
            _through(pager, lines)

    def _pager(self) -> list[str] | None:
        """The words of the command that shows many lines, if there is one. Raises ConfigError."""
        if not (self.view.pager and self._out.isatty()):
            return None
        asked = os.environ.get("PAGER")
        for command in (asked,) if asked else _PAGERS:
            try:
                words = shlex.split(command)
            except ValueError as error:
                raise ConfigError(
                    "pager", f"$PAGER cannot be read: {error}; \\pager off shows rows without it"
                ) from error
            if words and shutil.which(words[0]):
                return words
        return None

    def _look_where(self) -> None:
        try:
            (row,) = self._client.execute("SELECT current_catalog(), current_schema()").rows_of_texts(2)
        except ValueError:
            self._fail("The gateway does not say where names are looked up.")
            return
        except (RemoteError, OSError) as error:
            self._fail(str(error))
            return
        self.place = printable(".".join(row))

    def _fail(self, text: str) -> None:
        self.failed = True
        self.say(text)


def _through(pager: list[str], lines: Iterable[str]) -> None:
    """Show lines by another program, which may have enough before their end."""
    environment = {**os.environ, "LESSSECURE": "1"}
    with subprocess.Popen(pager, stdin=subprocess.PIPE, text=True, env=environment) as running:
        assert running.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                running.stdin.writelines(lines)
            with contextlib.suppress(BrokenPipeError):
                running.stdin.close()
            running.wait()
        except BaseException:
            running.kill()
            raise


def _counted(rows: int, more: bool) -> str:
    rest = " shown, there are more: \\rows 0 shows all" if more else ""
    return f"{rows} row{'' if rows == 1 else 's'}{rest}"
