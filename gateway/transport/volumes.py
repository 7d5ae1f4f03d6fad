"""Files of volumes over HTTP: put, got and removed by links that are all that is needed (`results.file_links`).

A file is put beside its volume first, and into its place once it is whole: whoever reads the place finds all of it or nothing.
Folders are gone to step by step, through no link.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import uuid
from collections.abc import AsyncIterator, Callable
from functools import partial

from gateway.catalog.volumes import DRAFTS
from gateway.delta.containment import held_folder
from gateway.delta.durable import sync_names
from gateway.errors import GatewayError, is_disk_full
from gateway.results import file_links
from gateway.results.file_links import FileLink
from gateway.results.links import BadLinkError
from gateway.transport.asgi import (
    ClientGoneError,
    Header,
    Parts,
    Receive,
    RefusalError,
    Scope,
    drain,
    headers_of,
    let_in,
)
from gateway.transport.bodies import SMALL_BODY
from gateway.transport.lanes import Lane

FILES = file_links.PATH
_SILENT_SECONDS = 60.0
_AT_ONCE = 1 << 20  # bytes that come from the disk
_DRAINED = 64 << 20
_HEADERS: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_OCTETS = b"application/octet-stream"
Found = tuple[int, bytes, tuple[Header, ...], bytes | Parts]


class VolumeDoor:
    """What links to files of volumes lead to.

    Args:
        key: what links are signed with.
        limit: bytes of a file.
        may_come: whether a caller still may: links of others lead nowhere any more.
    """

    def __init__(self, key: bytes, limit: int, may_come: Callable[[str], bool]) -> None:
        self._key = key
        self._limit = limit
        self._may_come = may_come

    async def answer(self, lane: Lane, scope: Scope, receive: Receive) -> Found:
        """Status, media type, headers and body for a request. Raises RefusalError."""
        link = self._link(scope)
        if scope["method"] != link.verb:
            verb = link.verb.encode()
            raise RefusalError(405, "METHOD_NOT_ALLOWED", f"The link is for {link.verb} only.", (b"allow", verb))
        self._check_owner(link)
        let_in(scope, link.owner)
        try:
            match link.verb:
                case "PUT":
                    await self._put(link, lane, scope, receive)
                    return 200, _OCTETS, _HEADERS, b""
                case "GET":
                    return 200, _OCTETS, _HEADERS, await self._contents(link, lane)
                case _:
                    await lane.run(link.owner, partial(_remove, link))
                    return 200, _OCTETS, _HEADERS, b""
        except (NotADirectoryError, IsADirectoryError) as error:
            if link.verb == "PUT":
                text = f"A folder is needed where there is a file, or the other way round, for {link.file}."
                raise RefusalError(409, "RESOURCE_CONFLICT", text) from error
            raise RefusalError(404, "RESOURCE_DOES_NOT_EXIST", f"There is no file {link.file}.") from error
        except FileNotFoundError as error:
            raise RefusalError(404, "RESOURCE_DOES_NOT_EXIST", f"There is no file {link.file}.") from error
        except FileExistsError as error:
            text = f"[FILE_IN_STAGING_PATH_ALREADY_EXISTS] There is a file {link.file}."
            raise RefusalError(409, "RESOURCE_ALREADY_EXISTS", text) from error
        except GatewayError as error:  # a link in the place of a folder, of which it tells where it is
            raise _led_elsewhere(link) from error
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _led_elsewhere(link) from error
            if is_disk_full(error):
                raise RefusalError(507, "RESOURCE_EXHAUSTED", "No space is left on the disk.", close=True) from error
            text = f"The file {link.file} cannot be used: {error.strerror or 'its disk fails'}."
            raise RefusalError(503, "TEMPORARILY_UNAVAILABLE", text, close=True) from error

    def _link(self, scope: Scope) -> FileLink:
        try:
            return file_links.read(scope["path"].removeprefix(FILES), self._key)
        except BadLinkError as error:
            raise RefusalError(403, "PERMISSION_DENIED", str(error), close=True) from error

    async def _put(self, link: FileLink, lane: Lane, scope: Scope, receive: Receive) -> None:
        headers = headers_of(scope)
        if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise RefusalError(415, "UNSUPPORTED_MEDIA_TYPE", "Content-Encoding is not accepted.", close=True)
        if "content-range" in headers:  # RFC 9110, 14.5
            raise RefusalError(
                400, "BAD_REQUEST", "A file is put as a whole: Content-Range is not accepted.", close=True
            )
        declared = headers.get("content-length", "")
        if declared.isascii() and declared.isdecimal() and int(declared[:20]) > self._limit:
            await drain(receive, _DRAINED)
            raise self._too_large()
        draft = await lane.run(link.owner, partial(_Draft, link))
        try:
            await self._written(draft, link, lane, receive)
            await lane.run(link.owner, draft.keep)
        finally:
            await asyncio.shield(lane.run(link.owner, draft.close))

    async def _written(self, draft: _Draft, link: FileLink, lane: Lane, receive: Receive) -> None:
        """The body of a request, in a draft; as long as its owner may come, since it may take hours."""
        size, waiting = 0, bytearray()
        while True:
            try:
                message = await asyncio.wait_for(receive(), _SILENT_SECONDS)
            except TimeoutError as error:
                text = "The file took too long to arrive."
                raise RefusalError(408, "REQUEST_TIMEOUT", text, close=True) from error
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            self._check_owner(link)
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self._limit:
                await drain(receive, _DRAINED)
                raise self._too_large()
            waiting += chunk
            more = message.get("more_body", False)
            if len(waiting) >= SMALL_BODY or (waiting and not more):
                await lane.run(link.owner, partial(draft.write, bytes(waiting)))
                waiting.clear()
            if not more:
                return

    def _check_owner(self, link: FileLink) -> None:
        if not self._may_come(link.owner):
            raise RefusalError(
                403, "PERMISSION_DENIED", "Whom the link was made for has no token any more.", close=True
            )

    async def _contents(self, link: FileLink, lane: Lane) -> bytes | Parts:
        """A file: small ones at once, large ones piece by piece."""
        descriptor = await lane.run(link.owner, partial(_opened, link))
        size = os.fstat(descriptor).st_size
        if size > _AT_ONCE:
            return Parts(size, _AT_ONCE, self._pieces(descriptor, size, link, lane), partial(os.close, descriptor))
        try:
            return await lane.run(link.owner, partial(os.pread, descriptor, size, 0))
        finally:
            os.close(descriptor)

    async def _pieces(self, descriptor: int, size: int, link: FileLink, lane: Lane) -> AsyncIterator[bytes]:
        """All of a file; one that has become shorter, or is nobody's to read any more, ends the connection."""
        at = 0
        while at < size:
            piece = await lane.run(link.owner, partial(os.pread, descriptor, min(_AT_ONCE, size - at), at))
            if not piece or not self._may_come(link.owner):
                raise ClientGoneError
            at += len(piece)
            yield piece

    def _too_large(self) -> RefusalError:
        text = f"The file exceeds the limit of {self._limit} bytes."
        return RefusalError(413, "REQUEST_TOO_LARGE", text, close=True)


class _Draft:
    """A file that is being put: in a folder beside the volumes until it is whole. All its calls block."""

    def __init__(self, link: FileLink) -> None:
        self._link = link
        self._name = uuid.uuid4().hex
        volumes = os.path.dirname(link.volume)
        self._folder = os.path.join(volumes, DRAFTS)
        with held_folder(link.volume, volumes), held_folder(self._folder, volumes, []) as held:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = open(os.open(self._name, flags, 0o666, dir_fd=held), "wb", buffering=0)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        """Further bytes."""
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def keep(self) -> None:
        """Into its place. Raises FileExistsError."""
        os.fsync(self._file.fileno())
        folder, name = _split(self._link)
        with held_folder(self._folder, self._folder) as drafts, held_folder(folder, self._link.volume, []) as held:
            if self._link.replaces:
                os.replace(self._name, name, src_dir_fd=drafts, dst_dir_fd=held)
            else:
                os.link(self._name, name, src_dir_fd=drafts, dst_dir_fd=held)
            sync_names(held)

    def close(self) -> None:
        """Let go of it, wherever it is."""
        self._file.close()
        with contextlib.suppress(OSError, GatewayError), held_folder(self._folder, self._folder) as drafts:
            os.unlink(self._name, dir_fd=drafts)


def _led_elsewhere(link: FileLink) -> RefusalError:
    text = f"[PATH_NOT_ALLOWED] There is a link in the place of {link.file}, or of a folder above: it is not followed."
    return RefusalError(403, "PERMISSION_DENIED", text)


def _split(link: FileLink) -> tuple[str, str]:
    """The folder and the name of a file."""
    below, _, name = link.file.rpartition("/")
    return os.path.join(link.volume, below) if below else link.volume, name


def _remove(link: FileLink) -> None:
    """Remove a file; one that is not there is gone."""
    folder, name = _split(link)
    with contextlib.suppress(FileNotFoundError), held_folder(folder, link.volume) as held:
        os.unlink(name, dir_fd=held)


def _opened(link: FileLink) -> int:
    """A descriptor of a file. Raises OSError."""
    folder, name = _split(link)
    with held_folder(folder, link.volume) as held:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=held)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(link.file)
    return descriptor
