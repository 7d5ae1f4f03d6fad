"""What a warehouse knows of all its schemas, in one file (their comments), and the lock of those who change such files."""

from __future__ import annotations

import contextlib
import copy
import os
import uuid
from collections.abc import Iterator
from typing import Any

from gateway.catalog import objects
from gateway.delta.locks import ALONE, locked
from gateway.errors import UserError, storage_told

_FILE = ".gateway.json"
_PATIENCE = 10.0  # seconds


def read(root: str) -> dict[str, Any]:
    """The facts of the warehouse in the folder `root`. Raises ServerError CATALOG_FILE_CORRUPT."""
    path = os.path.join(root, _FILE)
    facts = objects.load(path)
    schemas = facts.get("schemas", {}) if facts is not None else {}
    known = isinstance(schemas, dict) and all(isinstance(entry, dict) for entry in schemas.values())
    if not known or not all(isinstance(e.get("comment", ""), str) for e in schemas.values()):
        raise objects.damaged(path, "it does not hold schemas with comments")
    return facts or {}


@contextlib.contextmanager
def changing(root: str) -> Iterator[dict[str, Any]]:
    """The facts, for who changes them behind all others; written at the end, where they are others then."""
    with alone(root):
        before = read(root)
        facts = copy.deepcopy(before)
        yield facts
        if facts != before:
            _write(root, facts)


@contextlib.contextmanager
def alone(root: str) -> Iterator[None]:
    """Hold a warehouse's lock, where its file system has one. Raises UserError WRITE_CONFLICT where others keep it."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if locked(descriptor, ALONE, _PATIENCE) is False:
            text = f"Others change what the catalog in {root} keeps all the time. Send the statement again."
            raise UserError("WRITE_CONFLICT", text, retryable=True)
        yield
    finally:
        os.close(descriptor)


def _write(root: str, facts: dict[str, Any]) -> None:
    path = os.path.join(root, _FILE)
    draft = f"{path}.{uuid.uuid4().hex}"
    try:
        with storage_told("Cannot keep a schema's comment", root):
            with open(draft, "x", encoding="utf-8") as file:
                file.write(objects.spelt(facts, "The comments of all schemas"))
            os.replace(draft, path)
    finally:
        with contextlib.suppress(OSError):  # it is in its place, or is not to be had now
            os.unlink(draft)
