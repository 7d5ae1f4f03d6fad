"""Spill folders: locked while their process lives, removed when it is gone."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.engine import spill


def test_a_live_folder_stays(tmp_path: Path) -> None:
    base = tmp_path / "spill"
    first, second = spill.claim(str(base)), spill.claim(str(base))
    assert first != second
    spill.sweep(str(base))
    assert sorted(map(str, base.iterdir())) == sorted([first, second])


def test_a_dead_process_leaves_nothing(tmp_path: Path) -> None:
    base = tmp_path / "spill"
    code = (
        "import sys, os; from gateway.engine import spill; folder = spill.claim(sys.argv[1]);"
        "open(folder + '/x', 'w').write('1'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(base)], check=False).returncode == 9
    assert len(list(base.iterdir())) == 1
    spill.sweep(str(base))
    assert list(base.iterdir()) == []


def test_no_folder_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "spill").mkdir()
    (tmp_path / "spill" / "note.txt").write_text("kept")
    spill.sweep(str(tmp_path / "spill"))
    spill.sweep(str(tmp_path / "missing"))
    assert (tmp_path / "spill" / "note.txt").exists()


def test_claimed_for_a_while(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "left").mkdir(parents=True)
    with spill.claimed(base) as folder, spill.claimed(base) as other:
        assert {p.name for p in base.iterdir()} == {folder.name, other.name}
    assert not list(base.iterdir())


def test_beside_other_things_only_what_was_claimed_goes(tmp_path: Path) -> None:
    code = (
        "import os, sys; from gateway.engine import spill; folder = spill.claim(sys.argv[1], '.verify-');"
        "open(folder + '/x', 'w').write('1'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 9
    (tmp_path / "schema").mkdir()
    assert len(list(tmp_path.glob(".verify-*/x"))) == 1
    with spill.claimed(tmp_path, ".verify-") as folder:
        assert {p.name for p in tmp_path.iterdir()} == {folder.name, "schema"} and folder.name.startswith(".verify-")
    assert [p.name for p in tmp_path.iterdir()] == ["schema"]


def test_where_folders_cannot_be_locked_nothing_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.EBADF, "as NFS says")

    monkeypatch.setattr("fcntl.flock", no_locks)
    (tmp_path / "left").mkdir()
    with spill.claimed(tmp_path) as folder:
        assert {p.name for p in tmp_path.iterdir()} == {folder.name, "left"}
    assert [p.name for p in tmp_path.iterdir()] == ["left"]
