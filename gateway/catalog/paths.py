"""Paths in statements (``delta.`/p` ``, ``parquet.`/p` ``, LOCATION): only under allowed roots, after resolving links."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gateway.delta.containment import is_within
from gateway.errors import UserError


class AllowedRoots:
    """The folders under which statements may name paths."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = tuple(os.path.realpath(r) for r in roots)

    def resolve(self, path: str, *, must_exist: bool = True) -> str:
        """The real absolute path of `path` (absolute, or a ``file:`` URL).

        Raises UserError PATH_NOT_ALLOWED outside of the roots, whether it exists there or not, else PATH_NOT_FOUND.
        """
        plain = _plain(path)
        real = os.path.realpath(plain)
        if not is_within(real, self.roots):
            raise UserError("PATH_NOT_ALLOWED", f"The path {path} is not under a folder that this server may use.")
        if must_exist and not os.path.exists(real):
            raise UserError("PATH_NOT_FOUND", f"Path does not exist: {path}.")
        return real


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
