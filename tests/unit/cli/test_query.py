"""`gateway query` on a terminal: one line tells how far the statement is and is wiped before anything else is written."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from gateway.auth.authenticators import AllowAll
from gateway.cli import main
from gateway.cli.progress import Progress
from gateway.errors import UserError
from gateway.protocol.handler import ThriftHandler
from gateway.sqltypes import INT, StructField, struct
from gateway.transport.http import HttpApp, HttpLimits, Probes
from gateway.transport.server import HttpServer
from tests.unit.protocol.fake import FakeService, Script

SCRIPTS = {
    "SLOW": Script(struct(StructField("n", INT)), [(1,), (2,)], polls=4),
    "SLOW FAIL": Script(error=UserError("DIVIDE_BY_ZERO", "Division by zero."), polls=4),
    "FAST": Script(struct(StructField("n", INT)), [(1,), (2,)]),
}
ROWS = "n\n-\n1\n2\n"


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def __enter__(self) -> Terminal:
        """It is standard error; not as a fixture, for pytest sets that anew before each test."""
        self._real, sys.stderr = sys.stderr, self
        return self

    def __exit__(self, *_: object) -> None:
        sys.stderr = self._real


def screen(written: str) -> list[str]:
    """The lines that are seen at last on a terminal that got `written`, which moves only by line ends and returns."""
    lines = []
    for line in written.split("\n"):
        shown: list[str] = []
        for piece in line.split("\r"):
            shown[: len(piece)] = piece
        lines.append("".join(shown).rstrip())
    return [line for line in lines if line]


@pytest.fixture
def url() -> Iterator[str]:
    """A server whose statements are under way for as many questions as their scripts say."""
    app = HttpApp(
        ThriftHandler(FakeService(dict(SCRIPTS))).handle,
        AllowAll(),
        Probes(lambda: None, lambda: b""),
        limits=HttpLimits(threads=4, body=100_000, body_seconds=5.0),
    )
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop(1.0)
    app.close()


def test_progress_is_shown_while_a_statement_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal() as terminal:
        assert main(["query", "--url", url, "SLOW"]) == 0
    assert len(re.findall(r"\rrunning \d+ s", terminal.getvalue())) >= 3
    assert screen(terminal.getvalue()) == []
    assert capsys.readouterr().out == ROWS


def test_a_failure_stands_alone_after_the_progress(url: str) -> None:
    with Terminal() as terminal:
        assert main(["query", "--url", url, "SLOW FAIL"]) == 1
    assert "\rrunning " in terminal.getvalue()
    (line,) = screen(terminal.getvalue())
    assert line.startswith("[DIVIDE_BY_ZERO] Division by zero.")


@pytest.mark.parametrize("argv", [["--quiet", "SLOW"], ["FAST"]])
def test_no_progress_if_it_is_not_wanted_or_not_needed(
    url: str, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    with Terminal() as terminal:
        assert main(["query", "--url", url, *argv]) == 0
    assert (terminal.getvalue(), capsys.readouterr().out) == ("", ROWS)


def test_no_progress_in_a_file(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "--url", url, "SLOW"]) == 0
    assert capsys.readouterr() == (ROWS, "")


def test_the_share_is_shown_if_the_server_knows_it() -> None:
    with Terminal() as terminal:
        progress = Progress(True)
        for share in (0.0, 0.25, 0.5):
            progress(SimpleNamespace(progressUpdateResponse=SimpleNamespace(progressedPercentage=share)))
        (line,) = screen(terminal.getvalue())
        assert re.fullmatch(r"running \d+ s 50% █{10}░{10}", line)
        assert " 25%" in terminal.getvalue() and " 0%" not in terminal.getvalue()
        progress.end()
    assert screen(terminal.getvalue()) == []
