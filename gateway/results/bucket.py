"""Files of results in a bucket: clients read them there, by presigned links, so that their bytes do not pass the gateway.

A file is put there when a client first follows its link, and removed once its operation is closed. The bucket is asked with the
credentials and the endpoint of AWS's environment variables.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from gateway.errors import ConfigError
from gateway.observability import log
from gateway.results.bucket_requests import ask

#: The extra that brings what asks buckets.
EXTRA = "bucket"
_SETTING = "result-bucket"
_LINK = timedelta(minutes=5)  # to begin to read: who is sent on reads at once
_CLIENT = {"timeout": "10s", "connect_timeout": "5s", "allow_http": True}  # where the endpoint that is given has it
_ADDRESSES = re.compile(r"https?://\S+")
_SWEEP_SECONDS = 2.0
_REST_SECONDS = 30.0  # after a failure: who downloads is not to wait for the next one

#: The media type of a file, and the file in parts.
File = tuple[str, Sequence[bytes | memoryview]]


@dataclass(slots=True)
class _File:
    """One object, which may not be there yet."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    is_there: bool = False
    is_gone: bool = False


class Bucket:
    """The place of files of results. Thread-safe.

    Args:
        url: ``s3://BUCKET`` or ``s3://BUCKET/PREFIX``; below it each process has a folder of its own.
        is_open: whether an operation still has its result, by its identifier.
        lifetime: seconds for which links of the gateway are good; those of the bucket are so for five minutes at most.

    Raises ConfigError if nothing can be put there.
    """

    def __init__(self, url: str, is_open: Callable[[bytes], bool], lifetime: float) -> None:
        import obstore
        from obstore.store import S3Store

        self._obstore: Any = obstore
        self._folder = secrets.token_hex(8)
        self._is_open = is_open
        self._link = min(_LINK, timedelta(seconds=lifetime))
        self._lock = threading.Lock()
        self._files: dict[bytes, dict[str, _File]] = {}
        self._stopped = threading.Event()
        self._is_failing = False  # to remove what is there
        self._rests_until = 0.0
        try:
            self._store = S3Store.from_url(url, client_options=_CLIENT)  # type: ignore[arg-type]
            self._put("probe", ("text/plain", (b"",)))
            self._remove(["probe"])
        except Exception as error:
            raise ConfigError(_SETTING, f"nothing can be put into {url}: {_reason(error)}") from error
        self._sweeper = threading.Thread(target=self._sweep, name="result-bucket", daemon=True)
        self._sweeper.start()

    def link(self, operation: bytes, name: str, made: Callable[[], File]) -> str | None:
        """A link to a file of an operation, which is put there if it is not yet; None if the bucket does not take it.

        Raises what making the file raises.
        """
        if time.monotonic() < self._rests_until:
            return None
        with self._lock:
            entry = self._files.setdefault(operation, {}).setdefault(name, _File())
        path = f"{operation.hex()}/{name}"
        with entry.lock:
            if entry.is_gone or time.monotonic() < self._rests_until:  # it may have failed meanwhile
                return None
            if not entry.is_there:
                file = made()
                try:
                    self._put(path, file)
                except Exception as error:  # noqa: BLE001 - whatever it is, the gateway can serve the file itself
                    self._rests_until = time.monotonic() + _REST_SECONDS
                    log("a file of a result cannot be put into the bucket", "warning", reason=_reason(error))
                    return None
                entry.is_there = True
            return self._signed("GET", path)

    def stop(self) -> None:
        """Remove all that is there, if the bucket lets that be done. Idempotent."""
        self._stopped.set()
        self._sweeper.join(_SWEEP_SECONDS + 60)
        all(self._forget(operation) for operation in list(self._files))

    def _sweep(self) -> None:
        while not self._stopped.wait(_SWEEP_SECONDS):
            over = (operation for operation in list(self._files) if not self._is_open(operation))
            all(not self._stopped.is_set() and self._forget(operation) for operation in over)

    def _forget(self, operation: bytes) -> bool:
        """Remove the files of an operation; whether the bucket has done it."""
        with self._lock:
            files = self._files.pop(operation, {})
        there = []
        for name, entry in files.items():
            with entry.lock:
                entry.is_gone = True
                if entry.is_there:
                    there.append(f"{operation.hex()}/{name}")
        if not there:
            return True
        try:
            self._remove(there)
        except Exception as error:  # noqa: BLE001 - the next sweep tries again
            with self._lock:
                self._files[operation] = {**files, **self._files.get(operation, {})}
            if not self._is_failing:
                log("files of results cannot be removed from the bucket", "warning", reason=_reason(error))
            self._is_failing = True
        else:
            self._is_failing = False
        return not self._is_failing

    def _put(self, path: str, file: File) -> None:
        media, parts = file
        ask(self._signed("PUT", path), "PUT", {"Content-Type": media}, parts)

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            ask(self._signed("DELETE", path), "DELETE", {})

    def _signed(self, method: str, path: str) -> str:
        """A link, which is made here: the library would believe what answers say of their size."""
        return str(self._obstore.sign(self._store, method, f"{self._folder}/{path}", self._link))


def _reason(error: BaseException) -> str:
    """What kept something from being put there, in one line, without addresses in it: they may be signed."""
    first = str(error).strip().split("\n", 1)[0]
    return _ADDRESSES.sub("...", first)[:300] or type(error).__name__


__all__ = ["EXTRA", "Bucket", "File"]
