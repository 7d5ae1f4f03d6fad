"""Disks that are soon full: small file systems, where they may be mounted."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

_BALLAST = "ballast"


class SmallDisk:
    """A file system of few MiB in memory, mounted on `folder`."""

    def __init__(self, folder: Path, mebibytes: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "none", str(folder)]
        try:
            mounted = subprocess.run(command, capture_output=True).returncode == 0
        except FileNotFoundError:
            mounted = False
        if not mounted:
            pytest.skip("no small file system can be mounted here")

    def fill(self, leave: int = 0) -> None:
        """Take all its room, but for some `leave` bytes."""
        ballast = os.open(self.folder / _BALLAST, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        with contextlib.suppress(OSError):
            while True:
                os.write(ballast, bytes(4096))
        os.ftruncate(ballast, os.fstat(ballast).st_size - leave)
        os.close(ballast)

    def make_room(self, mebibytes: int) -> None:
        """Make it larger, and give back what `fill` took."""
        (self.folder / _BALLAST).unlink(missing_ok=True)
        command = ["mount", "-o", f"remount,size={mebibytes}m", str(self.folder)]
        subprocess.run(command, check=True, capture_output=True)

    def remove(self) -> None:
        """Unmount it, also where something has files of it open."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


Disk = Callable[[Path, int], SmallDisk]
