"""Paths in statements (``delta.`/p` ``, ``parquet.`/p` ``, LOCATION): only under allowed roots, after resolving links."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gateway.catalog.base import AsOf, BoundTable, TableName
from gateway.catalog.bound import PathTable, bind
from gateway.delta.files import open_files
from gateway.errors import UnsupportedError, UserError

FORMATS = ("delta", "parquet", "csv", "json", "orc", "avro", "text", "binaryfile")


class AllowedRoots:
    """The folders under which statements may name paths."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(os.path.realpath(r) for r in roots)

    def resolve(self, path: str, *, must_exist: bool = True) -> str:
        """The real absolute path of `path` (absolute, or a ``file:`` URL).

        Raises UserError PATH_NOT_ALLOWED outside of the roots, whether it exists there or not, else PATH_NOT_FOUND.
        """
        plain = _plain(path)
        real = os.path.realpath(plain)
        if not any(is_under(real, root) for root in self._roots):
            raise UserError("PATH_NOT_ALLOWED", f"The path {path} is not under a folder that this server may use.")
        if must_exist and not os.path.exists(real):
            raise UserError("PATH_NOT_FOUND", f"Path does not exist: {path}.")
        return real

    def table(self, format: str, path: str, as_of: AsOf | None = None) -> BoundTable | None:
        """The table ``format.`path` `` of a statement; None if `format` is not the name of a file format."""
        kind = format.lower()
        if kind not in FORMATS:
            return None
        if kind not in ("delta", "parquet"):
            raise UnsupportedError("UNSUPPORTED_FEATURE", f"Reading {kind}.`{path}` is not supported.")
        real = self.resolve(path)
        name = TableName("", kind, path)
        if kind == "delta":
            return bind(name, real, as_of)
        if as_of is not None:
            raise UserError("UNSUPPORTED_FEATURE.TIME_TRAVEL", f"Time travel on parquet.`{path}` is not possible.")
        return PathTable(name, open_files(real))


def is_under(path: str, root: str) -> bool:
    """Whether the real path `path` is `root` or lies under it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


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
