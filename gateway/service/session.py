"""Sessions: who, which settings, where they are, their temporary views; and the tables of handles.

A session lives in the front and is plain values; a statement gets a snapshot of it when it starts, and its effects come
back as `SessionChange`s that are applied when it has finished.
"""

from __future__ import annotations

import hmac
import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from gateway.engine.base import Definition, SessionChange, SessionState, TempView, changed
from gateway.errors import ProtocolError, ResourceError, UserError
from gateway.service import holdings
from gateway.service.api import Handle, Principal, SessionInfo

Normalise = Callable[[str, str], tuple[str, str] | None]

_NOBODY = Handle(bytes(16), bytes(16))
_REMEMBERED = 4096  # handles whose values are gone
LARGEST = 64 << 20  # bytes of memory of what one session has defined


def new_handle() -> Handle:
    """A random identifier (a version 4 UUID, which clients show) and a random secret."""
    return Handle(uuid.uuid4().bytes, os.urandom(16))


def text_of(handle: Handle) -> str:
    """The identifier as clients and logs show it."""
    return str(uuid.UUID(bytes=handle.guid)) if len(handle.guid) == 16 else handle.guid.hex()


class Session:
    """One client's session. Its methods are safe from many threads."""

    __slots__ = (
        "_definitions",
        "_given",
        "_lock",
        "_settings",
        "_views",
        "active",
        "catalog",
        "client",
        "for_one",
        "handle",
        "held",
        "id",
        "operations",
        "owner",
        "protocol",
        "schema",
        "touched",
    )

    def __init__(
        self,
        owner: Principal,
        protocol: int,
        catalog: str,
        schema: str,
        settings: Mapping[str, str],
        client: str = "",
        *,
        given: Mapping[str, str] | None = None,
        for_one: bool = False,
    ) -> None:
        self.handle = new_handle()
        self.id = text_of(self.handle)
        self.owner = owner
        self.protocol = protocol
        self.catalog = catalog
        self.schema = schema
        self.client = client
        self.for_one = for_one
        self.touched = 0.0
        self.active = 0  # operations that have not ended, with the service's lock held
        self.operations: set[Handle] = set()  # with the service's lock held
        self.held = 0  # see `holdings`, with the service's lock held
        self._given = given or {}  # what RESET goes back to
        self._settings: dict[str, str] = {**self._given, **settings}
        self._views: dict[str, TempView] = {}
        self._definitions: dict[str, Definition] = {}
        self._lock = threading.Lock()

    @property
    def weight(self) -> int:
        """About how many bytes it holds."""
        with self._lock:
            kept = (self.catalog, self.schema, self.client, self._settings, self._views, self._definitions)
            return holdings.SESSION + holdings.weight(kept)

    def settings(self) -> dict[str, str]:
        """The settings that were set explicitly, by canonical key."""
        with self._lock:
            return dict(self._settings)

    def state(self, overlay: Mapping[str, str] | None = None) -> SessionState:
        """What a statement that starts now sees; `overlay` holds settings of this statement alone."""
        with self._lock:
            return self._state({**self._settings, **(overlay or {})})

    def _state(self, settings: Mapping[str, str]) -> SessionState:
        return SessionState(
            catalog=self.catalog,
            schema=self.schema,
            user=self.owner.name,
            settings=settings,
            views=dict(self._views),
            session_id=self.id,
            definitions=dict(self._definitions),
        )

    def info(self, default_time_zone: str, time_zone_key: str) -> SessionInfo:
        """The session as its client sees it."""
        with self._lock:
            return SessionInfo(
                handle=self.handle,
                protocol=self.protocol,
                catalog=self.catalog,
                schema=self.schema,
                settings=dict(self._settings),
                time_zone=self._settings.get(time_zone_key, default_time_zone),
            )

    def apply(self, changes: Sequence[SessionChange]) -> None:
        """Apply a finished statement's effects, all at once and in order.

        Raises ServerError for an unknown kind, ResourceError for definitions that would make it too large.
        """
        if not changes:
            return
        with self._lock:
            after = changed(self._state(self._settings), changes)
            if any(change.kind.startswith("put_") for change in changes):
                _check_size(after)
            self.catalog, self.schema = after.catalog, after.schema
            self._settings, self._views = {**self._given, **after.settings}, dict(after.views)
            self._definitions = dict(after.definitions)


def _check_size(state: SessionState) -> None:
    """Each statement takes its session along, and while that is written out for a worker, all other calls wait."""
    if holdings.weight((state.views, state.definitions)) > LARGEST:
        text = (
            f"Temporary views, variables and functions of a session take {LARGEST >> 20} MiB at most: drop some. The session "
            "stays as it was before this statement."
        )
        raise ResourceError("RESOURCE_EXHAUSTED", text)


def normalise_all(settings: Mapping[str, str], normalise: Normalise) -> tuple[dict[str, str], list[str]]:
    """Canonical settings, and the keys that are not known (clients send many).

    Raises UserError for a bad value, and for two of one setting: which of its spellings came last, nobody has said.
    """
    known: dict[str, str] = {}
    unknown = []
    for key, value in settings.items():
        pair = normalise(key, value)
        if pair is None:
            unknown.append(key)
        elif known.setdefault(*pair) != pair[1]:
            text = f"The setting {pair[0]} is given two values."
            raise UserError("INVALID_PARAMETER_VALUE", text)
    return known, unknown


T = TypeVar("T")


def _bytes(principal: Principal) -> bytes:
    return principal.name.encode("utf-8", "surrogatepass")


def _is_of(entry: tuple[Handle, Principal, object], handle: Handle, principal: Principal) -> bool:
    known, owner, _ = entry
    same_secret = hmac.compare_digest(known.secret, handle.secret)
    same_owner = hmac.compare_digest(_bytes(owner), _bytes(principal))
    return same_secret and same_owner


class HandleTable(Generic[T]):
    """Values by handle and owner. An absent handle, a wrong secret and another's handle look the same, also to a clock."""

    def __init__(self, condition: str, message: str) -> None:
        """`message` is the error's text; ``{}`` in it becomes the identifier that was asked for."""
        self._condition = condition
        self._message = message
        self._values: dict[bytes, tuple[Handle, Principal, T]] = {}
        self._gone: OrderedDict[bytes, tuple[Handle, Principal, None]] = OrderedDict()
        self._lock = threading.Lock()  # held while `_gone` is changed
        self._nobody = Principal("")

    def __len__(self) -> int:
        return len(self._values)

    def put(self, handle: Handle, owner: Principal, value: T) -> None:
        """Add a value."""
        self._values[handle.guid] = handle, owner, value

    def find(self, handle: Handle, principal: Principal) -> T | None:
        """The value, None unless identifier, secret and owner are all right."""
        entry = self._values.get(handle.guid, (_NOBODY, self._nobody, None))
        return entry[2] if _is_of(entry, handle, principal) else None

    def was_here(self, handle: Handle, principal: Principal) -> bool:
        """Whether a value with this handle and owner was taken away not long ago."""
        entry = self._gone.get(handle.guid)
        return entry is not None and _is_of(entry, handle, principal)

    def get(self, handle: Handle, principal: Principal) -> T:
        """The value. Raises ProtocolError unless identifier, secret and owner are all right."""
        value = self.find(handle, principal)
        if value is None:
            raise self.missing(handle)
        return value

    def of(self, identifier: bytes) -> T:
        """The value of an identifier that a signed link names; its owner gave it away. Raises ProtocolError."""
        entry = self._values.get(identifier)
        if entry is None:
            raise self.missing(Handle(identifier, b""))
        return entry[2]

    def named(self, identifier: str, principal: Principal) -> Handle:
        """The handle of an owner's value by the text that `text_of` shows. Raises ProtocolError."""
        try:
            guid = uuid.UUID(identifier).bytes
        except ValueError:
            guid = b""
        handle, owner, value = self._values.get(guid, (_NOBODY, self._nobody, None))
        if not hmac.compare_digest(_bytes(owner), _bytes(principal)) or value is None or identifier != text_of(handle):
            raise self.unknown(identifier)
        return handle

    def known(self, identifier: str) -> T | None:
        """The value of the text that `text_of` shows, whoever owns it."""
        try:
            handle, _, value = self._values.get(uuid.UUID(identifier).bytes, (_NOBODY, self._nobody, None))
        except ValueError:
            return None
        return value if text_of(handle) == identifier else None

    def unknown(self, identifier: str) -> ProtocolError:
        """The error of an identifier that is nobody's, or somebody else's."""
        return ProtocolError(self._condition, self._message.format(identifier[:64]))

    def missing(self, handle: Handle) -> ProtocolError:
        """The error of a handle that `find` does not know."""
        return ProtocolError(self._condition, self._message.format(text_of(handle)))

    def pop(self, handle: Handle) -> T | None:
        """Take the value away; None if it is gone already."""
        entry = self._values.pop(handle.guid, None)
        if entry is None:
            return None
        with self._lock:
            self._gone[handle.guid] = entry[0], entry[1], None
            if len(self._gone) > _REMEMBERED:
                self._gone.popitem(last=False)
        return entry[2]

    def values(self) -> list[T]:
        """All values."""
        return [entry[2] for entry in list(self._values.values())]
