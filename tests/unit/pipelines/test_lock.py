"""One run at a time: the lock, what it says of its holder, and its holder's death."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.errors import ResourceError, UserError
from gateway.pipelines.lock import Holder, end_jvm, held, process_start, reader

KEY = b"k" * 32
HOLDER = Holder("run-1", "shop", 1_700_000_000.0)
HOLD = """
import sys, time
from pathlib import Path
from gateway.pipelines.lock import Holder, held
with held(Path(sys.argv[1]), Holder("run-0", "shop", 1.7e9, jvm=int(sys.argv[2]), jvm_start=int(sys.argv[3])), b"k" * 32):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(path: Path, jvm: int = 0, jvm_start: int = 0) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(path), str(jvm), str(jvm_start)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_second_holder_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a" / "shop.lock"
    other = hold(path)
    try:
        with pytest.raises(UserError) as caught, held(path, HOLDER, KEY):
            pass
        assert caught.value.condition == "PIPELINE_RUNNING"
        assert f"run run-0 (process {other.pid} on " in caught.value.message
        assert "since 2023-11-14 22:13:20 UTC" in caught.value.message
        seen = reader(path)
        assert seen is not None and seen.pid == other.pid
    finally:
        other.kill()
        other.wait()


def test_lock_is_removed_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "shop.lock"
    with held(path, HOLDER, KEY) as lock:
        assert lock.left is None
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert not path.exists()
    assert reader(path) is None


def test_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "shop.lock"
    other = hold(path)
    other.kill()
    other.wait()
    assert path.exists() and reader(path) is None
    with held(path, HOLDER, KEY) as lock:
        assert lock.left is not None and lock.left.run == "run-0"
        assert json.loads(path.read_text())["run"] == "run-1"


def test_jvm_of_a_killed_run_is_ended_first(tmp_path: Path) -> None:
    path = tmp_path / "shop.lock"
    jvm = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    other = hold(path, jvm.pid, process_start(jvm.pid))
    other.kill()
    other.wait()
    with held(path, HOLDER, KEY):
        assert process_start(jvm.pid) == -1
    assert jvm.wait() == -signal.SIGKILL


def test_a_process_that_has_the_number_of_a_dead_jvm_is_left_alone() -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        end_jvm(Holder("run-0", "shop", time.time(), jvm=other.pid, jvm_start=process_start(other.pid) - 1))
        end_jvm(
            Holder("run-0", "shop", time.time(), host="elsewhere", jvm=other.pid, jvm_start=process_start(other.pid))
        )
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_what_a_killed_run_has_left_is_not_lost_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.lock"
    other = hold(path)
    other.kill()
    other.wait()
    text = path.read_text().rstrip()
    path.write_text(text)  # killed after it had given back its room

    def full(descriptor: int, data: bytes, at: int) -> int:
        if at + len(data) > len(text):
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(descriptor, data, at)

    pwrite = os.pwrite
    larger = Holder("run-1", "shop", time.time(), before=[{"table": "t" * 5000}])
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(ResourceError, match="no space left"), held(path, larger, KEY):
            pytest.fail("the lock was written")
        assert path.read_text() == text
        with pytest.raises(ResourceError), held(tmp_path / "new.lock", larger, KEY):
            pytest.fail("the lock was written")
        assert not (tmp_path / "new.lock").exists()
    with held(path, larger, KEY) as lock:
        assert lock.left is not None and lock.left.run == "run-0"
        assert json.loads(path.read_text())["before"] == larger.before
        taken = path.stat().st_size
        lock.give_room()
        assert json.loads(path.read_text())["before"] == larger.before and path.stat().st_size < taken


def test_damaged_lock_file_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "shop.lock"
    path.write_text('{"run": ')
    with held(path, HOLDER, KEY) as lock:
        assert lock.left is None
