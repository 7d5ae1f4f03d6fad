"""What Delta cannot hold: views, functions, volumes, keys, places, other formats; each one small JSON file of a schema.

A file ``<schema>/_objects/<name>.<kind>.json`` is written to a draft and moved into place, so that processes neither read
halves nor lose each other's objects. File names are lower case; the spelling of a name is inside.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, TypeVar, get_type_hints

from gateway.catalog.base import TableName
from gateway.delta.containment import held_folder, is_text, is_under, opened, remove_tree
from gateway.delta.durable import sync_names
from gateway.delta.log import read_json
from gateway.delta.schema import CHAR_VARCHAR, holds_char, parse_schema, struct_of
from gateway.errors import GatewayError, ResourceError, ServerError, UnsupportedError, storage_told
from gateway.sqltypes import (
    STRING,
    ArrayType,
    CharType,
    DataType,
    MapType,
    StructField,
    StructType,
    array,
    map_of,
    struct,
)
from gateway.worker_jobs import Witness, mark_of

FOLDER = "_objects"
DRAFT = ".draft-"
LARGEST = 64 << 20  # bytes of a file: more than a text of 16 MiB takes, whatever its characters
_FORMAT = 1  # of the files


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view: its query's text and what it was made under.

    Attributes:
        schema: the view's columns, with the types that they had when it was made.
        query_columns: the names of the query's columns then, which the view's columns are found by.
        catalog, schema_name: current names when it was made.
        settings: settings of the session that the query's meaning depends on.
        needs_spark: whether only the second engine knew its query.
        collation: of its text's own strings, "" for the usual one.
        collated: whether a column has another collation than the usual one, of which `schema` says nothing.
        mode: how its columns follow those of its query (`sql.made_view`), "" if they keep the types that they were made with.
    """

    name: TableName
    query: str
    schema: StructType
    query_columns: tuple[str, ...]
    catalog: str
    schema_name: str
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    needs_spark: bool = False
    named: bool = False  # its columns were given a list of names
    collation: str = ""
    mode: str = ""
    collated: bool = False


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A SQL function: `text` is what stands behind its name in the statement that made it."""

    name: TableName
    text: str
    catalog: str
    schema_name: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredVolume:
    """A volume; its files are in a folder of their own (`catalog.volumes`).

    `made` tells it from others that had its name before: what was asked for one of them, a link to a file, leads to none of
    its files. "" for a volume from before there was such a mark.
    """

    name: TableName
    comment: str | None = None
    made: str = ""

    @property
    def folder(self) -> str:
        """The name of the folder of its files."""
        name = self.name.table.lower()
        return f"{name}.{self.made}" if self.made else name


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of another format than Delta: a `BoundTable` that only the second engine reads.

    `definition` is Spark's CREATE TABLE statement behind the table's name, without its place; `collated` as in `StoredView`.
    """

    name: TableName
    location: str
    format: str
    schema: StructType
    partition_columns: tuple[str, ...]
    definition: str
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    collated: bool = False

    @property
    def version(self) -> int | None:
        return None

    @property
    def num_rows(self) -> int | None:
        return None

    def scan(self, columns: Sequence[str], predicates: Sequence[Any], *, floats_compared: bool = True) -> Any:
        """Raises UnsupportedError."""
        raise self.refused()

    def refused(self) -> UnsupportedError:
        """What the embedded engine says."""
        return UnsupportedError(
            "UNSUPPORTED_FEATURE", f"The table `{self.name}` has the format {self.format}, which is not read here."
        )


@dataclass(frozen=True, slots=True)
class StoredLocation:
    """A Delta table that lies in a folder of its own, which goes with nothing that is dropped here."""

    name: TableName
    location: str


@dataclass(frozen=True, slots=True)
class Key:
    """A primary key, or with a `parent` a foreign key.

    Attributes:
        rely: whether who reads may rely on it.
        parent: catalog, schema and table of the primary key that it refers to, with `parent_id` and `parent_columns`.
    """

    name: str
    columns: tuple[str, ...]
    rely: bool = False
    parent: tuple[str, ...] = ()
    parent_id: str = ""
    parent_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The keys of a Delta table, which its log says nothing of: information, for the table with this id alone.

    `next_keys` are those of the table `next_id`, which is to take its place, or has.
    """

    name: TableName
    table_id: str = ""
    keys: tuple[Key, ...] = ()
    next_id: str = ""
    next_keys: tuple[Key, ...] = ()

    def of(self, table_id: str) -> StoredKeys | None:
        """What it says of the table with an id."""
        if self.next_id and self.next_id == table_id:
            return StoredKeys(self.name, table_id, self.next_keys)
        return self if self.table_id == table_id else None

    @property
    def primary(self) -> Key | None:
        return next((key for key in self.keys if not key.parent), None)

    @property
    def foreign(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if key.parent)


@dataclass(frozen=True, slots=True)
class StoredStatistics:
    """What ANALYZE found in the Delta table with this id.

    Attributes:
        facts: `bytes`, and where rows were counted `rows`, as decimal numbers.
        columns: of each column that was looked at, by its name, a JSON object of texts, as DESCRIBE tells them.
    """

    name: TableName
    table_id: str
    facts: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)


AnyStored = StoredView | StoredFunction | StoredTable | StoredVolume | StoredKeys | StoredLocation | StoredStatistics
Stored = TypeVar(
    "Stored", StoredView, StoredFunction, StoredTable, StoredVolume, StoredKeys, StoredLocation, StoredStatistics
)
KINDS: dict[type, str] = {
    StoredView: "view",
    StoredFunction: "function",
    StoredTable: "table",
    StoredVolume: "volume",
    StoredKeys: "keys",
    StoredLocation: "location",
    StoredStatistics: "statistics",
}
#: What is nothing without a table of its name.
OF_TABLES = (StoredKeys, StoredStatistics)
_MADE = re.compile(r"[0-9a-f]{10}")


def new_volume(name: TableName, comment: str | None = None) -> StoredVolume:
    """A volume that there was none like."""
    return StoredVolume(name, comment, secrets.token_hex(5))


def may_lie(folder: str, places: Iterable[str], root: str) -> bool:
    """Whether an external table may lie in a folder: below one of `places`, apart from the tables of the catalog at `root`."""
    below = any(is_under(folder, place) and folder != place for place in places)
    return below and not is_under(folder, root) and not is_under(root, folder)


def closed(folder: str) -> str | None:
    """The folder of a schema, or of its objects, that this process may not list: told when the schema is named."""
    for path in (folder, os.path.join(folder, FOLDER)):
        if not os.access(path, os.R_OK | os.X_OK) and os.path.lexists(path) and not os.path.islink(path):
            return path
    return None


def names(folder: str, kind: type) -> list[str]:
    """Lower-case names of a schema's objects of a kind."""
    ending = f".{KINDS[kind]}.json"
    place = os.path.join(folder, FOLDER)
    try:
        entries = [] if os.path.islink(place) else os.listdir(place)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(
        e.removesuffix(ending) for e in entries if e.endswith(ending) and not e.startswith(".") and is_text(e)
    )


def read(folder: str, kind: type[Stored], name: str, full: TableName) -> Stored | None:
    """The object `name` of the schema's `folder`; `full` has the catalog's and the schema's spelling."""
    path = _path(folder, kind, name)
    _check_own(folder)
    found = load(path)
    if found is None:
        return None
    if found.pop("format_version", None) != _FORMAT:
        raise damaged(path, "it was written by another version of the gateway")
    checked = _checked(kind, found, path)
    if checked["name"].lower() != name.lower():
        raise damaged(path, f"it holds the name {checked['name']!r}")
    checked["name"] = TableName(full.catalog, full.schema, checked["name"])
    if kind is StoredTable:
        if checked["location"].casefold() != name.casefold():
            raise damaged(path, f"its folder is to be {checked['location']!r}, which is not its name")
        checked["location"] = os.path.join(folder, checked["location"])
    if kind is StoredVolume and not _MADE.fullmatch(checked.get("made", "0" * 10)):
        raise damaged(path, "made is not what it should be")
    made: Stored = kind(**checked)
    return made


def load(path: str) -> dict[str, Any] | None:
    """A JSON object in a file of the catalog's own; None if there is none. Never waits, follows no link."""
    try:
        descriptor = opened(path, ())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, GatewayError) as error:
        raise damaged(path, "it is no plain file that can be read") from error
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise damaged(path, f"it is larger than {LARGEST >> 20} MiB")
    try:
        found = read_json(data.decode())
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is no JSON") from error
    if not isinstance(found, dict):
        raise damaged(path, "it is no JSON object")
    return found


def spelt(record: Mapping[str, Any], what: str) -> str:
    """The text of a file of the catalog's own. Raises ResourceError for one that would not be read again."""
    text = json.dumps(record, indent=1, sort_keys=True)
    if len(text) > LARGEST:
        raise ResourceError("STATEMENT_TOO_LARGE", f"{what} would take more than {LARGEST >> 20} MiB.")
    return text


def damaged(path: str, why: str) -> ServerError:
    """The error for a file of the catalog's own that cannot be trusted."""
    return ServerError("CATALOG_FILE_CORRUPT", f"The file {path} is damaged: {why}.")


def _checked(kind: type, found: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The values of an object's fields, each of the type that its class says, none missing and none unknown."""
    known = {f.name: f for f in fields(kind)}
    for key in found.keys() - known.keys():
        raise damaged(path, f"it holds the unknown key {key!r}")
    hints = get_type_hints(kind)
    out = {}
    for key, f in known.items():
        if key in found:
            out[key] = _value(hints[key], found[key], f"{key} of {path}", path)
        elif f.default is MISSING and f.default_factory is MISSING:
            raise damaged(path, f"it holds no {key}")
    return out


def _value(hint: Any, value: Any, what: str, path: str) -> Any:
    if hint is StructType:
        try:
            return struct_of(parse_schema(value))
        except (GatewayError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged(path, "its schema cannot be read") from error
    test, make = _FORMS[hint]
    if not test(value):
        raise damaged(path, f"{what.partition(' ')[0]} is not what it should be")
    return make(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text(k) and _is_text(v) for k, v in value.items())


def _is_key(value: Any) -> bool:
    hints = get_type_hints(Key)
    if not isinstance(value, dict) or not {"name", "columns"} <= value.keys() <= hints.keys():
        return False
    return all(_FORMS[hints[key]][0](of) for key, of in value.items()) and len(value.get("parent", ())) in (0, 3)


def _key(value: dict[str, Any]) -> Key:
    found: dict[str, Any] = {name: tuple(of) if isinstance(of, list) else of for name, of in value.items()}
    return Key(**found)


# How a field of a type is stored, and what is made of it.
_FORMS: dict[Any, tuple[Callable[[Any], bool], Callable[[Any], Any]]] = {
    TableName: (_is_text, str),
    str: (_is_text, str),
    str | None: (_is_text, str),  # None is not stored
    bool: (lambda v: isinstance(v, bool), bool),
    tuple[str, ...]: (lambda v: isinstance(v, list) and all(map(_is_text, v)), tuple),
    Mapping[str, str]: (_is_map, dict),
    dict[str, str]: (_is_map, dict),
    tuple[Key, ...]: (
        lambda v: isinstance(v, list) and all(map(_is_key, v)),
        lambda v: tuple(map(_key, v)),
    ),
}


def _check_own(folder: str) -> None:
    """Objects lie in the schema's own folder: a link in its place would have them read and written elsewhere."""
    place = os.path.join(folder, FOLDER)
    if os.path.islink(place):
        raise damaged(place, "it is a link")


def write(folder: str, stored: AnyStored, replacing: bool) -> bool:
    """Store an object; False, and nothing done, if there is one of that name and kind and `replacing` is False."""
    kind = type(stored)
    _check_own(folder)
    record = {key: value for key, value in _plain(stored).items() if value not in (None, {}, False, "")}
    record |= {"format_version": _FORMAT, "name": stored.name.table}
    text = spelt(record, f"The {KINDS[kind]} {stored.name.table}")
    name = os.path.basename(_path(folder, kind, stored.name.table))
    draft = f"{DRAFT}{uuid.uuid4().hex}"
    with storage_told(f"Cannot store the {KINDS[kind]} {stored.name.table}", folder):
        os.makedirs(folder, exist_ok=True)
        with held_folder(os.path.join(folder, FOLDER), folder, []) as held:
            try:
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=held)
                with open(descriptor, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                if replacing:
                    os.replace(draft, name, src_dir_fd=held, dst_dir_fd=held)
                else:
                    os.link(draft, name, src_dir_fd=held, dst_dir_fd=held)
            except FileExistsError:
                return False
            except IsADirectoryError as error:
                raise damaged(os.path.join(folder, FOLDER, name), "it is a folder") from error
            except FileNotFoundError as error:
                told = f"The schema of {stored.name.table} was dropped at the same time. Send the statement again."
                raise ServerError("WRITE_FAILED", told, retryable=True) from error
            finally:
                with contextlib.suppress(OSError):  # it is in its place, or is swept later
                    os.unlink(draft, dir_fd=held)
            sync_names(held)
    return True


def _plain(stored: Any) -> dict[str, Any]:
    if isinstance(stored, (StoredFunction, StoredVolume, StoredKeys, StoredLocation, StoredStatistics)):
        found = asdict(stored)
        return found if found.get("next_keys") else {key: value for key, value in found.items() if key != "next_keys"}
    plain = {key: getattr(stored, key) for key in stored.__dataclass_fields__}
    plain["schema"] = _json(stored.schema)
    if isinstance(stored, StoredTable):
        plain["location"] = os.path.basename(stored.location)
    return plain


def _json(schema: StructType) -> Any:
    """Spark's JSON, in which CHAR and VARCHAR are strings with the type beside them."""
    found = struct(*(StructField(f.name, _without_char(f.type), f.nullable, f.comment) for f in schema.fields)).json()
    for spec, f in zip(found["fields"], schema.fields, strict=True):
        if holds_char(f.type):
            spec["metadata"][CHAR_VARCHAR] = f.type.simple
    return found


def _without_char(data_type: DataType) -> DataType:
    match data_type:
        case CharType():
            return STRING
        case StructType():
            return struct(*(replace(f, type=_without_char(f.type)) for f in data_type.fields))
        case ArrayType():
            return array(_without_char(data_type.element), data_type.contains_null)
        case MapType():
            key, value = _without_char(data_type.key), _without_char(data_type.value)
            return map_of(key, value, data_type.value_contains_null)
    return data_type


def remove(folder: str, kind: type, name: str) -> bool:
    """Remove an object; whether there was one."""
    _check_own(folder)
    place, file = os.path.split(_path(folder, kind, name))
    with storage_told(f"Cannot remove the {KINDS[kind]} {name}", folder):
        try:
            with held_folder(place, folder) as held:
                try:
                    os.unlink(file, dir_fd=held)
                except IsADirectoryError:  # put there by somebody else: the name could not be used again
                    remove_tree(file, held)
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def has_any(folder: str) -> bool:
    """Whether a schema has objects of any kind but those that are nothing without their tables."""
    return any(names(folder, kind) for kind in KINDS if kind not in OF_TABLES)


def sweep(drafts: str, root: str, beginning: str, oldest: float) -> None:
    """Remove files of a folder below `root` from before `oldest` (seconds since the epoch) that killed processes left.

    Raises OSError, and UserError for a link in its place.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), held_folder(drafts, root) as held:
        with os.scandir(held) as entries:
            plain = (e for e in entries if e.name.startswith(beginning) and e.is_file(follow_symlinks=False))
            stale = [e.name for e in plain if e.stat(follow_symlinks=False).st_mtime < oldest]
        for name in stale:
            with contextlib.suppress(FileNotFoundError):  # another process may be sweeping too
                os.unlink(name, dir_fd=held)


def identity(folder: str, kind: type, name: str) -> Witness | None:
    """Changes with the object; None if there is none."""
    path = _path(folder, kind, name)
    try:
        return Witness(path, mark_of(os.lstat(path)))
    except OSError:
        return None


def _path(folder: str, kind: type, name: str) -> str:
    return os.path.join(folder, FOLDER, f"{name.lower()}.{KINDS[kind]}.json")
