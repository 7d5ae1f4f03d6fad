"""Signals reach the main thread whenever they come, also while it begins to wait for them."""

from __future__ import annotations

import subprocess
import sys

SIGNALLED = """
import signal
from gateway.cli.signals import Wish, Wishes

wishes = Wishes()
signal.signal(signal.SIGALRM, lambda number, frame: wishes.reread())
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for _ in range(5000):
    assert wishes.next() is Wish.REREAD
signal.setitimer(signal.ITIMER_REAL, 0)
assert not wishes.stop() and wishes.stop()
while wishes.next() is not Wish.STOP:
    pass
print("done")
"""


def test_no_signal_is_lost_or_waited_for_without_an_end() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNALLED], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "done\n", done.stderr
