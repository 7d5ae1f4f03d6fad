"""A table that somebody removes while it is opened, before each of the looks that are taken at its folder."""

from __future__ import annotations

import itertools
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from gateway.delta.table import open_snapshot
from gateway.errors import GatewayError

_LOOKS = ("open", "os.listdir", "os.scandir")


class _Remover:
    """Removes a folder before one of the looks that Python takes below it; there is no end to an audit hook."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.left = 0
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None or event not in _LOOKS or not str(arguments[0]).startswith(str(self.folder)):
            return
        self.left -= 1
        if self.left < 0:
            folder, self.folder = self.folder, None
            shutil.rmtree(folder)


def test_it_is_gone_and_not_damaged(tmp_path: Path) -> None:
    remover, found = _Remover(), set()
    for number in itertools.count():
        root = tmp_path / f"t{number}"
        for _ in range(2):
            write_deltalake(root, pa.table({"a": [1]}), mode="append")
        remover.folder, remover.left = root, number
        try:
            open_snapshot(str(root), within=(str(tmp_path),))
        except GatewayError as error:
            found.add(error.condition)
        if remover.folder is not None:  # there are no more of them
            remover.folder = None
            break
    assert number > 3
    assert found <= {"DELTA_FILE_NOT_FOUND", "PATH_NOT_FOUND"}
