"""Whether files stayed where they were while somebody else looked them up.

DataFusion lists the files of a scan while it plans, and takes one that is not there for no rows. That a file is there before
and after proves nothing: its folder may have been away for a moment. But whoever moves, removes or makes a file or folder
changes the folder that holds it, which its time of change tells; who cuts a file off and fills it again, the file's.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable

from gateway.delta.containment import Within
from gateway.worker_jobs import Witness, marker_of

# Times of change are those of the system's clock tick: what changes twice within one looks as if it had changed once.
_TICK_NS = 20_000_000


class Watch:
    """Folders as they are when it is made: those of files, and all above up to one of `within`; with `contents` they too."""

    def __init__(self, paths: Iterable[str], within: Within, contents: bool = False) -> None:
        self._began = time.time_ns()
        self._seen: dict[str, tuple[int, ...]] = {}
        self._holds = True
        paths = list(paths)
        for path in paths if contents else ():
            self._seen[path] = now = _now(path)
            self._holds &= bool(now)
        for folder in {os.path.dirname(path) for path in paths}:
            while folder not in self._seen:
                self._seen[folder] = now = _now(folder)
                self._holds &= bool(now)
                if folder in within or folder in ("/", ""):
                    break
                folder = os.path.dirname(folder)

    def held(self) -> bool:
        """Whether nothing was moved, removed or made in these folders since, nor in the moment before."""
        return self.unchanged() and all(now[-1] < self._began - _TICK_NS for now in self._seen.values())

    def unchanged(self) -> bool:
        """Whether they look as they did; what happened within a moment before may have happened twice."""
        return self._holds and all(now == _now(folder) for folder, now in self._seen.items())


class FolderWatch(Watch):
    """On a folder and those above it, up to one of `within`: what is made beside it in the folder that holds it is no change.

    A folder that is moved, or made in the place of another, has changed itself, beside the one that holds it.
    """

    def __init__(self, folder: str, within: Within) -> None:
        super().__init__([folder], within)
        self._folder = (folder, _now(folder))

    def unchanged(self) -> bool:
        """Whether it stayed at its place; all above its own holder look as they did."""
        if super().unchanged():
            return True
        folder, seen = self._folder
        holder = os.path.dirname(folder)
        if not self._holds or not seen or seen[-1] >= self._began - _TICK_NS:
            return False
        if any(now != _now(above) for above, now in self._seen.items() if above != holder):
            return False
        # The holder is the same folder, whatever is made in it; this one is looked at last, since it may be moved meanwhile.
        return _now(holder)[:2] == self._seen[holder][:2] and _now(folder) == seen


def unmoved(folder: str) -> Witness | None:
    """What shows that nothing was made, moved or removed in a folder since; None if that was a moment ago."""
    began = time.time_ns()
    found = marker_of(folder)
    return Witness(folder, found) if found and found[1] < began - _TICK_NS else None


def _now(folder: str) -> tuple[int, ...]:
    """What changes with a folder or a file; () if it is not there, or is a link: what that leads to has other folders above."""
    try:
        found = os.lstat(folder)
    except OSError:
        return ()
    return (
        # The size too: a write sets the time before it has made the file longer.
        (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)
        if stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
        else ()
    )
