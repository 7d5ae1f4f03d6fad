"""What a thread raises once a run is interrupted goes to its log, never to the terminal."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gateway.pipelines.run import _into


def test_what_a_thread_raises_once_a_run_is_interrupted_goes_to_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "spark.log"
    log.write_text("before\n")
    monkeypatch.setattr(threading, "excepthook", _into(log))

    def fail() -> None:
        raise ValueError("the channel is closed")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    text = log.read_text()
    assert text.startswith("before\nTraceback") and text.endswith("ValueError: the channel is closed\n")
    assert capsys.readouterr().err == ""
