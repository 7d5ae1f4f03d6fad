"""PUT, GET, REMOVE and LIST: files of volumes.

The first three touch no file: they answer with a link, by which the client itself puts, gets or removes its one file
(`results.file_links`), as Databricks' drivers do where a result is told to be an operation on files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from gateway.catalog import volumes
from gateway.catalog.base import Catalog
from gateway.delta.containment import held_folder, is_text, is_under, not_allowed
from gateway.engine.base import Emit, Statement
from gateway.errors import ServerError, Span, UserError, full_disk_told, unsupported
from gateway.results import file_links
from gateway.runner import objects
from gateway.runner.answer import Answer, rows_of
from gateway.runner.environment import Environment, Queries
from gateway.sql.read import command_nodes as c
from gateway.sqltypes import BIGINT, STRING, StructField, map_of, struct

# `headers` as a map: @databricks/sql hands them on as they are, the others take a map's text too.
_LINK = (
    StructField("operation", STRING, False),
    StructField("presignedUrl", STRING, False),
    StructField("headers", map_of(STRING, STRING), False),
)
# REMOVE has no file of the client's: @databricks/sql asks of every `localFile` that there is whether it may use that.
_TOLD, _TOLD_LOCAL = struct(*_LINK), struct(*_LINK, StructField("localFile", STRING, False))
_LISTED = struct(
    StructField("path", STRING),
    StructField("name", STRING),
    StructField("size", BIGINT),
    StructField("modification_time", BIGINT),
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A path of a volume that there is: the volume's real folder and the allowed one that it is in."""

    path: volumes.VolumePath
    catalog: Catalog
    folder: str
    root: str


def put_file(command: c.PutFile, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """PUT."""
    _check_local("PUT", command.local, command.span)
    place = _file("PUT", command.path, env, command.span)
    objects.check_writable(place.catalog, "no file can be put into a volume", command.span)
    at = volumes.place_in(place.folder, place.path.file)
    if os.path.isdir(at) or _is_below_a_file(at, place.folder):
        raise _no_path("PUT", command.path, command.span)
    if not command.overwrite and os.path.lexists(at):
        text = f"File in staging path {command.path} already exists but OVERWRITE is not set."
        raise UserError("FILE_IN_STAGING_PATH_ALREADY_EXISTS", text, span=command.span)
    try:
        with (
            full_disk_told(f"Cannot make the folder of the volume {place.path.volume}", place.root),
            held_folder(place.folder, place.root, []),
        ):
            return _told("PUT", "PUT", place, job, command.span, command.local, replaces=command.overwrite)
    except NotADirectoryError as error:
        raise _damaged(place) from error


def get_file(command: c.GetFile, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """GET; of a file that is not there the link tells."""
    _check_local("GET", command.local, command.span)
    place = _file("GET", command.path, env, command.span)
    volumes.place_in(place.folder, place.path.file)
    return _told("GET", "GET", place, job, command.span, command.local)


def remove_file(command: c.RemoveFile, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """REMOVE."""
    place = _file("REMOVE", command.path, env, command.span)
    objects.check_writable(place.catalog, "no file can be removed from a volume", command.span)
    volumes.place_in(place.folder, place.path.file)
    return _told("REMOVE", "DELETE", place, job, command.span)


def list_files(command: c.ListFiles, job: Statement, env: Environment, runner: Queries, emit: Emit) -> Answer:
    """LIST: the files and folders of a folder, or a file."""
    place = _place("LIST", command.path, env, command.span)
    at = volumes.place_in(place.folder, place.path.file)
    shown = str(place.path).rstrip("/")
    if os.path.isdir(at):
        with os.scandir(at) as entries:
            found = [(f"{shown}/{e.name}", e.name, e) for e in entries if not e.is_symlink() and is_text(e.name)]
        rows = [_row(path, name, e.stat(follow_symlinks=False), e.is_dir()) for path, name, e in sorted(found)]
    elif os.path.isfile(at):
        if not place.path.file:
            raise _damaged(place)
        rows = [_row(shown, os.path.basename(shown), os.stat(at), False)]
    elif place.path.file:
        raise UserError("PATH_NOT_FOUND", f"Path does not exist: {command.path}.", span=command.span)
    else:
        rows = []  # nothing was put there yet
    rows = rows[: command.limit]
    return rows_of("LIST", _LISTED, list(zip(*rows, strict=True)) or [[], [], [], []])


def _row(path: str, name: str, found: os.stat_result, is_folder: bool) -> tuple[str, str, int, int]:
    mark = "/" if is_folder else ""
    return path + mark, name + mark, 0 if is_folder else found.st_size, found.st_mtime_ns // 1_000_000


def _told(
    operation: str,
    verb: str,
    place: _Place,
    job: Statement,
    span: Span,
    local: str | None = None,
    *,
    replaces: bool = False,
) -> Answer:
    """The row that drivers act upon."""
    if job.files is None:
        raise unsupported(f"{operation} for a client that cannot follow links over HTTP", span)
    url = file_links.url(job.files, verb, place.folder, place.path.file, job.session.user, replaces=replaces)
    if local is None:
        return rows_of(operation, _TOLD, [[operation], [url], [[]]])
    return rows_of(operation, _TOLD_LOCAL, [[operation], [url], [[]], [local]])


def _check_local(operation: str, local: str, span: Span) -> None:
    if not local.strip():
        text = f"Empty local file in staging {operation} query."
        raise UserError("EMPTY_LOCAL_FILE_IN_STAGING_ACCESS_QUERY", text, span=span)


def _file(operation: str, path: str, env: Environment, span: Span) -> _Place:
    """The place of one file of a volume."""
    place = _place(operation, path, env, span)
    if not place.path.file or place.path.file.endswith("/"):
        raise _no_path(operation, path, span)
    return place


def _place(operation: str, path: str, env: Environment, span: Span) -> _Place:
    """What a path of a volume leads to. Raises for other paths, and for what is not there."""
    found = volumes.parsed(path)
    if found is None:
        raise _no_path(operation, path, span)
    catalog = env.tables.catalogs.get(found.catalog.lower())
    if catalog is None:
        text = f"NOT_FOUND: Catalog '{found.catalog}' does not exist."
        raise UserError("NO_SUCH_CATALOG_EXCEPTION", text, span=span)
    env.tables.schema_of((found.catalog, found.schema), span)
    try:
        folder = catalog.volume_folder(found.schema, found.volume)
    except UserError as error:  # it tells where the folder is
        raise not_allowed(f"The path {path}").at(span) from error
    if folder is None:
        raise volumes.no_volume(found).at(span)
    return _Place(found, catalog, folder, next(root for root in env.tables.paths.roots if is_under(folder, root)))


def _is_below_a_file(at: str, folder: str) -> bool:
    """Whether something that is no folder stands on the way to a place in the folder of a volume."""
    above = os.path.dirname(at)
    while len(above) > len(folder) and not os.path.lexists(above):
        above = os.path.dirname(above)
    return len(above) > len(folder) and not os.path.isdir(above)


def _damaged(place: _Place) -> ServerError:
    text = f"There is no folder in the place of that of the volume {place.path.volume}."
    return ServerError("CATALOG_FILE_CORRUPT", text)


def _no_path(operation: str, path: str, span: Span) -> UserError:
    text = f"Invalid staging path in staging {operation} query: {path}."
    return UserError("INVALID_STAGING_PATH_IN_STAGING_ACCESS_QUERY", text, span=span)
