"""The one thread that writes to a store of the history, and the bounded list that it is fed by.

Whoever ends a statement, or signs in, only adds to that list: whatever is the matter with the store (slow, full, locked,
read-only, damaged, gone), nobody waits for it or fails. Records are kept for as long as the list has room, then they are
lost and counted.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic

from gateway.history.details import kept
from gateway.history.records import LONGEST_MESSAGE, LONGEST_NAME, LONGEST_TEXT, R, Record, SignIn
from gateway.history.redaction import redacted_with
from gateway.history.store import LastingError, Later, PassingError, Row, Store
from gateway.observability import Throttle, counter, log, mask

_WAITING_BYTES = 32 << 20
_RECORD_BYTES = 1024  # about, beside its texts
_GATHER_SECONDS = 0.1  # so long is waited for more, to write them at once
_MOST_LATER = 10_000
_RETRY_SECONDS = 1.0
_PRUNE_SECONDS = 60.0
_STOP_SECONDS = 5.0
_STOP_TROUBLED_SECONDS = 1.0  # of a store that did not take what it was given last
_JUMP_SECONDS = 600.0  # a wall clock that is off by more has been set
_PATIENCE_SECONDS = 3600.0  # nothing is too old for so long after that


class Recorder(Generic[R]):
    """Writes records to a store from `start` to `stop`.

    Args:
        store: where they go; nobody else writes through it.
        age: seconds that a record is kept.
        size: bytes that the store may use; the oldest go first.
        show_sql: whether statement texts and error messages are kept as they are.
        wall, clock: the time of day, which may jump, and one that does not.
        waiting_bytes: memory of records that wait to be written.
    """

    def __init__(
        self,
        store: Store,
        *,
        age: float,
        size: int,
        show_sql: bool = False,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        waiting_bytes: int = _WAITING_BYTES,
    ) -> None:
        self._store = store
        self._age = age
        self._size = size
        self._show_sql = show_sql
        self._wall = wall
        self._clock = clock
        self._limit = waiting_bytes
        self._lock = threading.Condition()
        self._waiting: list[R] = []
        self._batch: list[R] = []  # what the thread has taken of them and not yet written
        self._later: list[Later] = []
        self._weight = 0
        self._added = self._done = self.lost = 0
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._stopping = False
        self._stops_by = clock()
        self._thread = threading.Thread(target=self._work, name="history", daemon=True)
        self._troubled = False
        self._told = 0
        self._throttle = Throttle(1, 60.0)
        self._pruned = clock() - _PRUNE_SECONDS
        self._offset = wall() - clock()
        self._patient_until = clock()

    def start(self) -> None:
        """Start the thread."""
        self._wake.set()
        self._thread.start()

    def add(self, record: R) -> None:
        """Have a record written soon. Never waits for the store, never fails."""
        if isinstance(record, Record) and len(record.text) > LONGEST_TEXT:  # one character more tells that it is cut
            record = record._replace(text=record.text[: LONGEST_TEXT + 1])
        weight = _weight(record)
        with self._lock:
            fits = self._weight + weight <= self._limit and not self._stopping
            if fits:
                self._waiting.append(record)
                self._weight += weight
                self._added += 1
        if not fits:
            self._lose(1)
        elif not self._wake.is_set():
            self._wake.set()

    def add_later(self, key: str, value: float) -> None:
        """Have what became known of a record written soon, where there is room for it; see `store.LATER`."""
        with self._lock:
            fits = len(self._later) < _MOST_LATER and not self._stopping
            if fits:
                self._later.append((value, key))
        if fits and not self._wake.is_set():
            self._wake.set()

    @property
    def added(self) -> int:
        """How many records were given to it."""
        return self._added

    @property
    def is_written(self) -> bool:
        """Whether the store took what it was given last."""
        return not self._troubled

    def flush(self, seconds: float) -> bool:
        """Wait until all that has been added so far is written; whether it is."""
        with self._lock:
            target = self._added
            if self._done >= target:
                return True
            self._hurry.set()
            self._wake.set()
            return self._lock.wait_for(lambda: self._done >= target or self._stopping, seconds) and self._done >= target

    def begin_stop(self) -> None:
        """Take nothing more, and write what waits while others stop too. Idempotent."""
        with self._lock:
            if not self._stopping:
                self._stops_by = self._clock() + (_STOP_TROUBLED_SECONDS if self._troubled else _STOP_SECONDS)
            self._stopping = True
            self._lock.notify_all()
        self._hurry.set()
        self._wake.set()

    def stop(self) -> None:
        """Write what waits, as far as that goes, and end the thread. Idempotent."""
        self.begin_stop()
        if self._thread.is_alive():
            self._thread.join(max(0.0, self._stops_by - self._clock()))
        with self._lock:
            left, self._done = self._added - self._done, self._added
        self._lose(left)  # of a store that does not answer
        self._tell_loss()

    def _work(self) -> None:
        while True:
            self._wake.wait(_PRUNE_SECONDS)
            self._wake.clear()
            if not self._stopping:
                self._hurry.wait(_GATHER_SECONDS)
            self._hurry.clear()
            stopping = self._stopping
            with self._lock:
                self._batch += self._waiting
                self._waiting = []
            done = self._attempt() or self._attempt()  # once more: the store was mended, or others have had their turn
            if stopping:
                self._let_go(written=False)
                self._store.close()
                return
            if not done:
                self._pause()

    def _pause(self) -> None:
        """After a failure: records may come meanwhile, and wait with the others."""
        end = self._clock() + _RETRY_SECONDS
        while not self._stopping and (left := end - self._clock()) > 0:
            time.sleep(min(0.05, left))
        self._wake.set()

    def _attempt(self) -> bool:
        """Write what waits and remove what is old; False if that is to be tried again."""
        try:
            later = self._later[:]
            self._store.write([_ROWS[type(record)](record, self._show_sql) for record in self._batch], later)
            with self._lock:
                del self._later[: len(later)]
            self._let_go(written=True)
            self._prune()
        except PassingError as error:
            return self._trouble(error.reason)
        except LastingError as error:
            return self._give_up(str(error))
        except Exception as error:  # noqa: BLE001 - a record that cannot be written must not keep others from it
            return self._give_up(f"{type(error).__name__}: {error}")
        if self._troubled:
            self._troubled = False
            log("history is written again")
        if self.lost > self._told and (self._throttle.ask() is not None):
            self._tell_loss()
        return True

    def _tell_loss(self) -> None:
        if self.lost > self._told:
            log("history is not complete", "warning", lost=self.lost - self._told)
            self._told = self.lost

    def _let_go(self, *, written: bool) -> None:
        """What waited is written, or lost."""
        batch, self._batch = self._batch, []
        with self._lock:
            self._weight -= sum(map(_weight, batch))
            self._done += len(batch)
            self._lock.notify_all()
        if not written and batch:
            self._lose(len(batch))

    def _lose(self, count: int) -> None:
        with self._lock:
            self.lost += count
        counter("history_lost_total", count)

    def _trouble(self, reason: str | None) -> bool:
        """False: it is tried again. Told once, until it is good again."""
        self._store.close()
        if not self._troubled and reason is not None:
            self._troubled = True
            log("history cannot be written", "warning", file=self._store.name, reason=reason)
        return False

    def _give_up(self, reason: str) -> bool:
        """What waited is lost."""
        self._trouble(reason)
        with self._lock:
            self._later.clear()
        self._let_go(written=False)
        return True

    def _prune(self) -> None:
        self._store.prune_by_size(self._size, self._going)
        if self._clock() - self._pruned < _PRUNE_SECONDS:
            return
        self._pruned = self._clock()
        offset = self._wall() - self._clock()
        if abs(offset - self._offset) > _JUMP_SECONDS:  # set rightly, or wrongly for a while
            self._patient_until = self._clock() + _PATIENCE_SECONDS
            log(
                "history: the clock has jumped, nothing is too old for an hour",
                "warning",
                seconds=offset - self._offset,
            )
        self._offset = offset
        if self._clock() >= self._patient_until:
            self._store.prune_by_age(int((self._wall() - self._age) * 1000), self._going)

    def _going(self) -> bool:
        return not self._stopping


def _statement_row(record: Record, show_sql: bool) -> Row:
    """A statement as it is kept: nothing too long, and without literals unless they are wanted."""
    whole = len(record.text) <= LONGEST_TEXT
    text = record.text[:LONGEST_TEXT]
    error = [place for place in (record.error_at, record.error_to) if place is not None]
    if not show_sql:
        text, error = redacted_with(text, error)
    plain = _plain(text if whole else text + " …", LONGEST_TEXT + 2) or ""
    at, to = error if error and plain.startswith(text) else (None, None)  # else something before it was masked
    shown = record._replace(
        text=plain,
        message=_plain(record.message, LONGEST_MESSAGE) if show_sql else None,
        user=_plain(record.user, LONGEST_NAME) or "",
        client=_plain(record.client, LONGEST_NAME) or "",
        reason=_plain(record.reason, LONGEST_MESSAGE),
        details=kept(record.details, show_values=show_sql),
        error_at=at,
        error_to=to,
    )
    return tuple(shown)


def _sign_in_row(record: SignIn, show_sql: bool) -> Row:
    """A sign-in as it is kept: nothing too long; it holds no statement."""
    return tuple(_plain(value, LONGEST_NAME) if isinstance(value, str) else value for value in record)


# A record of each kind as its row.
_ROWS: Mapping[type, Callable[[Any, bool], Row]] = {Record: _statement_row, SignIn: _sign_in_row}


def _weight(record: Record | SignIn) -> int:
    return _RECORD_BYTES + sum(sys.getsizeof(value) for value in record if isinstance(value, str))


def _plain(text: str | None, most: int) -> str | None:
    """A text as the file takes it: no halves of characters, no secrets, not too long."""
    if text is None:
        return None
    return str(mask(text[:most])).encode("utf-8", "replace").decode()
