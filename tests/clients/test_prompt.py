"""`gateway query` on a terminal of its own, against a running gateway: typing, completing, cancelling, leaving."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.gateway import Server

_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


class Terminal:
    """A pseudo terminal with the prompt in it; `seen` is all that it showed, without what moves the cursor."""

    def __init__(self, *arguments: str, pager: str = "cat") -> None:
        self.seen = ""
        self._answered = 0
        self._raw = b""
        self.pid, self._file = pty.fork()
        if not self.pid:
            os.environ.update(TERM="xterm", COLUMNS="100", LINES="40", PAGER=pager)
            os.execv(sys.executable, [sys.executable, "-m", "gateway", "query", *arguments])

    def wait(self, pattern: str, seconds: float = 60.0) -> str:
        """What comes until `pattern` is matched by what is new."""
        end = time.monotonic() + seconds
        start = len(self.seen)
        while not re.search(pattern, self.seen[start:], re.DOTALL):
            assert time.monotonic() < end, f"{pattern} never came: {self.seen[start:]!r}"
            if not self._read(0.2):
                assert re.search(pattern, self.seen[start:], re.DOTALL), self.seen[start:]
        return self.seen[start:]

    def _read(self, seconds: float) -> bool:
        """Take what is there; False at the end."""
        if not select.select([self._file], [], [], seconds)[0]:
            return True
        try:
            self._raw += os.read(self._file, 65536)
        except OSError:  # the other end is closed
            return False
        for _ in range(self._raw.count(b"\x1b[6n") - self._answered):  # where the cursor is
            self._answered += 1
            os.write(self._file, b"\x1b[10;1R")
        self.seen = _ESCAPES.sub(b"", self._raw).decode("utf-8", "ignore")
        return True

    def come(self, seconds: float) -> str:
        """What comes within a time."""
        start, end = len(self.seen), time.monotonic() + seconds
        while time.monotonic() < end:
            self._read(0.05)
        return self.seen[start:]

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def complete(self, typed: str, whole: str) -> None:
        """Type a text, and Tab behind it until its end is `whole`: names are read in the background.

        What a Tab adds may be drawn alone, behind the empty lines below what was drawn before.
        """
        start, end = len(self.seen), time.monotonic() + 30
        self.type(typed)
        while whole not in re.sub(r"[\s\b]", "", self.seen[start:]):
            assert time.monotonic() < end, self.seen[start:]
            self.type("\t")
            self.come(0.2)

    def ended(self) -> int:
        """Its exit code."""
        for _ in range(600):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            if select.select([self._file], [], [], 0.1)[0]:
                try:
                    os.read(self._file, 65536)
                except OSError:
                    time.sleep(0.05)
        raise AssertionError("it does not end")

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._file)


@pytest.fixture
def terminal(server: Server, tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal("--url", server.url, "--state", str(tmp_path))
    opened.wait("main.default>")
    yield opened
    opened.close()


def test_a_statement_over_two_lines(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type("SELECT 41 + 1 AS answer,\n")
    terminal.type("'x' AS b;\n")
    assert re.search(r"answer  b\r\n------  -\r\n    42  x\r\n\(1 row, \d", terminal.wait(r"\(1 row.*default>"))
    terminal.type("\x04")
    assert terminal.ended() == 0
    history = tmp_path / "prompt-history"
    assert "+SELECT 41 + 1 AS answer," in history.read_text() and history.stat().st_mode & 0o077 == 0


def test_without_an_address_a_gateway_of_its_own_is_asked(tmp_path: Path) -> None:
    opened = Terminal("--state", str(tmp_path / "state"), "--warehouse", str(tmp_path / "warehouse"))
    try:
        opened.wait("main.default>")
        opened.type("CREATE TABLE kept AS SELECT 41 + 1 AS answer;\n")
        opened.wait("default>")
        opened.type("SELECT answer FROM kept;\n")
        assert re.search(r"answer\r\n------\r\n    42\r\n\(1 row, \d", opened.wait(r"\(1 row.*default>"))
        opened.type("quit\n")
        assert opened.ended() == 0
        assert (tmp_path / "warehouse" / "default" / "kept" / "_delta_log").is_dir()
    finally:
        opened.close()


def test_shortcuts_completion_and_errors(terminal: Terminal) -> None:
    terminal.type("\\d samples.tpch.region\n")
    assert "r_name" in terminal.wait(r"rows, .*default>")
    terminal.type("USE samples.tpch;\n")
    terminal.wait("samples.tpch>")
    terminal.complete("SELECT * FROM regi", "region")
    terminal.type(" WHERE r_regionkey = 0 \\G\n")
    shown = terminal.wait(r"\(1 row.*tpch>")
    assert "-[ 1 ]" in shown and re.search(r"r_name +AFRICA", shown)
    terminal.complete("SELECT * FROM region WHERE r_com", "r_comment")
    terminal.type(" IS NULL;\n")
    terminal.wait(r"\(0 rows.*tpch>")
    terminal.type("SELECT 1/0;\n")
    assert "[DIVIDE_BY_ZERO]" in terminal.wait("22012.*tpch>")
    terminal.type("\\nonsense\n")
    terminal.wait(r"there is no \\nonsense.*tpch>")
    terminal.type("quit\n")
    assert terminal.ended() == 0


def test_what_a_table_is_and_was(terminal: Terminal, server: Server) -> None:
    terminal.type("CREATE TABLE told (id INT COMMENT 'a number');\n")
    terminal.wait("default>")
    terminal.type("INSERT INTO told VALUES (1), (2);\n")
    terminal.wait(r"\(1 row.*default>")
    terminal.type("\\dh told\n")
    shown = terminal.wait(r"\(2 rows.*default>")
    assert re.search(
        r"-\[ 1 \].*version +1\b.*operation +WRITE.*-\[ 2 \].*version +0\b.*operation +CREATE TABLE", shown, re.DOTALL
    )
    terminal.type("\\ddl told\n")
    assert "id INT COMMENT 'a number'" in terminal.wait(r"\(1 row.*default>")
    terminal.type("\\dt default\n")
    assert re.search(r"default +told", terminal.wait(r"rows?,.*default>"))
    terminal.type("\\df to_da*\n")
    assert "to_date" in terminal.wait(r"\(1 row.*default>")
    terminal.type("\\l\n")
    assert "samples" in terminal.wait(r"\(2 rows.*default>")
    terminal.type("\\ddl\n")
    terminal.wait(r"a name is missing.*default>")


def test_where_one_stands_how_rows_are_shown_and_a_new_session(terminal: Terminal) -> None:
    terminal.type("\\u samples.tpch\n")
    terminal.wait("samples.tpch>")
    terminal.type("\\f csv\n")
    terminal.wait("format is csv.*tpch>")
    terminal.type("SELECT r_regionkey, r_name FROM region WHERE r_regionkey = 1;\n")
    terminal.wait(r"r_regionkey,r_name\r\n1,AMERICA\r\n.*tpch>")
    terminal.type("\\f json\n")
    terminal.wait("format is json.*tpch>")
    terminal.type("SELECT 1 AS a;\n")
    terminal.wait(r'\{"a": 1\}\r\n.*tpch>')
    terminal.type("\\dn samples\n")
    terminal.wait(r"nyctaxi.*tpch>")
    terminal.type("CREATE TEMPORARY VIEW of_this_session AS SELECT 1 AS a;\n")
    terminal.wait("tpch>")
    terminal.type("\\c\n")
    terminal.wait("main.default>")
    terminal.type("SELECT a FROM of_this_session;\n")
    terminal.wait("TABLE_OR_VIEW_NOT_FOUND.*default>")
    terminal.type("\\?\n")
    assert "Ctrl-C cancels" in terminal.wait(r"Ctrl-D leaves.*default>")


def test_the_statements_of_a_file_run_until_one_fails(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "some statements.sql"
    file.write_text("-- two\nSELECT 1 AS first;\nSELECT ';' AS second;\nSELECT no_such;\nSELECT 4 AS fourth;\n")
    terminal.type(f"\\i {file}\n")
    shown = terminal.wait(r"UNRESOLVED_COLUMN.*\^.*default>")
    assert re.search(r"first\r\n-+\r\n +1\r\n.*second\r\n-+\r\n; *\r\n", shown, re.DOTALL) and "fourth" not in shown
    terminal.type("\\i no-such-file.sql\n")
    terminal.wait(r"no-such-file.sql cannot be read: No such file or directory\r\n.*default>")
    terminal.type(f"\\o {tmp_path / 'rows.csv'}\n")
    terminal.wait("default>")
    terminal.type("SELECT 1 AS a, 'x' AS b;\n")
    terminal.wait(r"1 rows written to .*rows.csv.*default>")
    assert (tmp_path / "rows.csv").read_text().split() == ["a,b", "1,x"]


def test_what_is_longer_than_the_screen_goes_through_the_pager(server: Server, tmp_path: Path) -> None:
    opened = Terminal("--url", server.url, "--state", str(tmp_path), pager="sed s/^/paged:/")
    try:
        opened.wait("main.default>")
        opened.type("SELECT id FROM range(3);\n")
        assert "paged:" not in opened.wait(r"\(3 rows.*default>")
        opened.type("SELECT id FROM range(100);\n")
        assert "paged:99" in re.sub(" ", "", opened.wait(r"\(100 rows.*default>"))
        opened.type("\\pager off\n")
        opened.wait("pager is off.*default>")
        opened.type("SELECT id FROM range(100);\n")
        assert "paged:" not in opened.wait(r"\(100 rows.*default>")
        opened.type("\\rows 2\n")
        opened.wait("at most 2 rows.*default>")
        opened.type("SELECT id FROM range(100);\n")
        opened.wait(r"\(2 rows shown, there are more.*default>")
        opened.type("\\x on\n")
        opened.wait("vertical is on.*default>")
        opened.type("SELECT 1 AS one, 2 AS two;\n")
        assert re.search(r"-\[ 1 \].*one +1.*two +2", opened.wait(r"\(1 row,.*default>"), re.DOTALL)
        opened.type("\\timing off\n")
        opened.wait("timing is off.*default>")
        opened.type("SELECT 1 AS one;\n")
        opened.wait(r"\(1 row\).*default>")
        opened.type("\\chart bar\n")
        opened.wait(r"█.*default>")
        opened.type("\x1b[A\x1b[A")  # what was typed before the last one
        opened.wait("SELECT 1 AS one;")
    finally:
        opened.close()


def test_control_c_cancels_and_the_session_goes_on(terminal: Terminal) -> None:
    terminal.type("CREATE TEMPORARY VIEW mine AS SELECT 5 AS five;\n")
    terminal.wait("rows?,.*default>")
    terminal.type("SELECT count(*) FROM range(1000000000) a JOIN range(1000000) b ON a.id % 7 = b.id % 11;\n")
    terminal.wait("running [1-9]")
    terminal.type("\x03")
    terminal.wait(r"Canceled\..*default>")
    terminal.type("SELECT five FROM mine;\n")
    assert "five" in terminal.wait(r"\(1 row,.*default>")


def test_a_gateway_that_cannot_be_reached(tmp_path: Path) -> None:
    opened = Terminal("--url", "http://127.0.0.1:1", "--state", str(tmp_path))
    opened.wait("refused")
    assert opened.ended() == 1
    opened.close()
