"""Paths in statements (``delta.`/p` ``, ``parquet.`/p` ``, LOCATION): only under allowed roots, after resolving links."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from gateway.catalog import volumes
from gateway.catalog.volumes import VolumePath
from gateway.delta.containment import is_within, real_path
from gateway.errors import UserError


class AllowedRoots:
    """The folders under which statements may name paths; `volume` gives the real folder of a volume, None if there is none."""

    def __init__(self, roots: Sequence[str], volume: Callable[[VolumePath], str | None] = lambda path: None) -> None:
        self.roots = tuple(os.path.realpath(r) for r in roots)
        self._volume = volume

    def resolve(self, path: str, *, must_exist: bool = True) -> str:
        """The real absolute path of `path` (absolute, a ``file:`` URL, or the path of a volume).

        Raises UserError PATH_NOT_ALLOWED outside of the roots, whether it exists there or not, else PATH_NOT_FOUND.
        """
        real = self._in_volume(path) or real_path(_plain(path))
        if not is_within(real, self.roots):
            raise UserError("PATH_NOT_ALLOWED", f"The path {path} is not under a folder that this server may use.")
        if must_exist and not os.path.exists(real):
            raise UserError("PATH_NOT_FOUND", f"Path does not exist: {path}.")
        return real

    def _in_volume(self, path: str) -> str | None:
        """Where a path of a volume leads; None for other paths, and where no volume has its name."""
        within = volumes.parsed(path)
        folder = None if within is None else self._volume(within)
        return None if within is None or folder is None else volumes.place_in(folder, within.file)


def _plain(path: str) -> str:
    if "\0" in path:
        raise UserError("PATH_NOT_FOUND", "A path cannot hold a NUL character.")
    for prefix in ("file://", "file:"):
        if path.lower().startswith(prefix):
            path = path[len(prefix) :]
            break
    else:
        if "://" in path:
            raise UserError("PATH_NOT_ALLOWED", f"Only local paths can be read, not {path}.")
    if not path.startswith("/"):
        raise UserError("PATH_NOT_ALLOWED", f"The path {path} must be absolute.")
    return path
