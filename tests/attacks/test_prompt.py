"""What is typed at the prompt, or stands in its environment, that is no name, number or text: said, and the prompt goes on."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.cli.shell import Shell, View
from gateway.protocol.client import Client
from tests.live.gateway import Server


class Screen(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def shell(server: Server) -> Iterator[Shell]:
    one = Shell(lambda: Client(server.thrift_url).open(), View(timing=False, progress=False), Screen())
    yield one
    one.close()


@pytest.mark.parametrize(
    "typed",
    [
        "\\o ~nobody-of-that-name/x.csv",
        "\\i a\0b.sql",
        "\\i ~nobody-of-that-name/x.sql",
        "\\rows " + "9" * 5000,
        "SELECT '\udcff';",
    ],
)
def test_what_cannot_be_is_said(shell: Shell, typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run(typed)
    assert shell.failed and capsys.readouterr().err
    shell.run("SELECT 5 AS five;")
    assert not shell.failed


def test_a_file_that_no_disk_has_is_said(shell: Shell) -> None:
    shell.run("\\o a\0b.csv")
    shell.run("SELECT 5;")
    assert shell.failed
    shell.run("SELECT 5;")
    assert not shell.failed


def test_a_pager_that_cannot_be_read_is_said(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "less '")
    shell.run("SELECT id FROM range(200);")
    assert shell.failed
    monkeypatch.setenv("PAGER", "nothing-of-that-name")
    shell.run("SELECT id FROM range(200);")
    assert not shell.failed


def test_a_statement_that_is_no_text_is_said(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "--url", server.url, "SELECT '\udcff'"]) == 1
    assert "UTF-8" in capsys.readouterr().err


def test_a_link_that_waits_for_the_draft_of_a_file_is_not_written_through(server: Server, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep")
    (tmp_path / ".o.csv.part").symlink_to(victim)
    assert main(["query", "--url", server.url, "-o", str(tmp_path / "o.csv"), "SELECT 5 AS five"]) == 0
    assert victim.read_text() == "keep"
    assert (tmp_path / "o.csv").read_text() == "five\n5\n" and not (tmp_path / "o.csv").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".o.csv.part", "o.csv", "victim"]


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_pipes_devices_and_folders_are_not_replaced(server: Server, tmp_path: Path, ending: str) -> None:
    os.mkfifo(tmp_path / f"pipe.{ending}")
    (tmp_path / f"link.{ending}").symlink_to("/dev/null")
    (tmp_path / f"folder.{ending}").mkdir()
    for name in ("pipe", "link", "folder"):
        assert main(["query", "--url", server.url, "-o", str(tmp_path / f"{name}.{ending}"), "SELECT 5 AS five"]) == 2
    assert (tmp_path / f"pipe.{ending}").is_fifo() and (tmp_path / f"link.{ending}").is_symlink()


@pytest.mark.parametrize("target", ["o.json", None])
def test_columns_of_one_name_are_not_lost_in_json(
    server: Server, tmp_path: Path, target: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["-o", str(tmp_path / target)] if target else ["--format", "json"]
    assert main(["query", "--url", server.url, *where, "SELECT 1 AS a, 2 AS a"]) == 2
    assert "a" in capsys.readouterr().err and list(tmp_path.iterdir()) == []
