"""A folder of Delta tables as a catalog: ``root/<schema>/<table>/_delta_log`` is a table, seen at once, whoever wrote it.

Nothing is registered: names are folders. What Delta cannot hold lies in small JSON files: comments of schemas in one in the
root, views, functions and tables of other formats in one each (`catalog.objects`). A Delta table hides a view and a table of
another format of its name, which only another writer could have put there. Names match case-insensitively and keep the
folder's spelling; hidden folders and links that lead out of the root are not seen.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gateway.catalog import drafts, facts, objects, removal, spelling, volumes, writers
from gateway.catalog.base import AsOf, Draft, TableName
from gateway.catalog.bound import DeltaBoundTable, bind
from gateway.catalog.objects import (
    AnyStored,
    Stored,
    StoredFunction,
    StoredKeys,
    StoredLocation,
    StoredStatistics,
    StoredTable,
    StoredView,
    StoredVolume,
)
from gateway.delta import table as delta_table
from gateway.delta.containment import is_text, is_under, not_allowed, real_path
from gateway.delta.log import has_log
from gateway.delta.outline import Outline, kept_of, outline_of
from gateway.delta.watch import unmoved
from gateway.errors import GatewayError, ResourceError, ServerError, UnsupportedError, UserError, storage_told
from gateway.worker_jobs import Witness

DEFAULT_SCHEMA = "default"
_log = logging.getLogger(__name__)


class LocalCatalog:
    """The catalog `name` over the folder `root` (made if missing, unless `read_only`).

    `others` are further folders that statements may use: files of a table may lie there. Below `places` external tables lie.
    """

    def __init__(
        self, name: str, root: str, read_only: bool = False, others: Sequence[str] = (), places: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.read_only = read_only
        if not read_only:
            os.makedirs(root, exist_ok=True)
        self.root = os.path.realpath(root)
        self.within = (self.root, *(os.path.realpath(other) for other in others))
        self.places = tuple(os.path.realpath(place) for place in places)
        self._links: set[str] = set()
        self._warned: set[str] = set()
        if not read_only:
            removal.sweep(self.root, self._folders(self.root))

    # ---- reading

    def schemas(self) -> list[str]:
        """Names of all schemas that can be listed, sorted; `default` is always there."""
        names = set(self._folders(self.root))
        if not self.read_only and not any(n.lower() == DEFAULT_SCHEMA for n in names):
            names.add(DEFAULT_SCHEMA)
        return sorted(n for n in names if not has_log(os.path.join(self.root, n)) and self._can_be_listed(n))

    def _can_be_listed(self, schema: str) -> bool:
        closed = objects.closed(os.path.join(self.root, schema))
        if closed is not None:
            self._warn(f"The folder {closed} cannot be listed: permission denied.")
        return closed is None

    def tables(self, schema: str) -> list[str]:
        """Names of the Delta tables of a schema, sorted; empty if there is no such schema."""
        return sorted(self.outlines(schema))

    def outlines(self, schema: str) -> dict[str, Outline | None]:
        """The Delta tables of a schema, each with its outline if one is kept that holds; empty if there is no such schema."""
        folder = self._schema_folder(schema)
        if folder is None:
            return {}
        found: dict[str, Outline | None] = {}
        for name in self._folders(folder):
            root = f"{folder}/{name}"
            kept = kept_of(root)
            if kept is not None or has_log(root):
                found[name] = kept
        lower = {n.lower() for n in found}
        places = ((s.name.table, s.location) for s in self._all(StoredLocation, schema))
        external = (n for n, at in places if objects.may_lie(real_path(at), self.places, self.root) and has_log(at))
        return found | {n: None for n in external if n.lower() not in lower}

    def other_tables(self, schema: str) -> list[str]:
        """Names of the tables of other formats of a schema, sorted; empty if there is no such schema."""
        folder = self._schema_folder(schema)
        stored = {v.name.table.lower() for v in self._all(StoredTable, schema)}
        if folder is None or not stored:
            return []
        return sorted(n for n in self._folders(folder) if n.lower() in stored and not has_log(os.path.join(folder, n)))

    def views(self, schema: str) -> list[str]:
        """Names of the views of a schema, sorted; empty if there is no such schema."""
        names = (v.name.table for v in self._all(StoredView, schema))
        return sorted(n for n in names if self.table_folder(schema, n) is None)

    def functions(self, schema: str) -> list[str]:
        """Lower-case names of the functions of a schema, sorted; empty if there is no such schema."""
        return sorted(f.name.table.lower() for f in self._all(StoredFunction, schema))

    def volumes(self, schema: str) -> list[str]:
        """Names of the volumes of a schema, sorted; empty if there is no such schema."""
        return sorted(v.name.table for v in self._all(StoredVolume, schema))

    def volume_folder(self, schema: str, volume: str) -> str | None:
        """The real folder of a volume's files, which may not be there yet; None if there is no such volume."""
        found = self._stored(StoredVolume, schema, volume)
        at = None if found is None else os.path.join(self.root, found.name.schema, volumes.FOLDER, found.folder)
        return None if at is None else self._resolved(at)

    def has_schema(self, schema: str) -> bool:
        if not self.read_only and schema.lower() == DEFAULT_SCHEMA:
            return True
        return self._schema_folder(schema) is not None

    def table(
        self, schema: str, table: str, as_of: AsOf | None = None, *, to_add: bool = False
    ) -> DeltaBoundTable | StoredTable | None:
        """The table at its newest version or as of `as_of`; None if there is none of that name."""
        root = self._own_folder(schema, table)
        if root is None:
            external = self._external(schema, table)
            if external is not None:
                bound = bind(external.name, external.location, as_of, self.within, to_add=to_add)
                return replace(bound, external=True)
            return self._stored(StoredTable, schema, table)
        folder, spelling = os.path.split(root)
        name = TableName(self.name, os.path.basename(folder), spelling)
        try:
            return bind(name, self._real(root), as_of, self.within, to_add=to_add)
        except UserError as error:
            if error.condition != "PATH_NOT_FOUND":
                raise
            raise delta_table.moved(root) from error  # it was there a moment ago

    def outline(self, schema: str, table: str) -> Outline | None:
        """Columns and comment of a table, as far as they can be told without opening it."""
        known = kept_of(f"{self.root}/{schema}/{table}")  # kept of real folders only; its commit is where it was
        if known is not None:
            return known
        root = self.table_folder(schema, table)
        return None if root is None else outline_of(self._real(root), self.within)

    def view(self, schema: str, view: str) -> StoredView | None:
        """The view of that name; None also where a table has the name."""
        found = self._stored(StoredView, schema, view)
        return found if found is None or self.table_folder(schema, view) is None else None

    def function(self, schema: str, function: str) -> StoredFunction | None:
        """The function of that name."""
        return self._stored(StoredFunction, schema, function)

    def keys(self, schema: str, table: str) -> StoredKeys | None:
        """What is kept of a table's keys; who asks looks whether it is of the table that is there."""
        return self._stored(StoredKeys, schema, table)

    def all_keys(self, schema: str) -> list[StoredKeys]:
        """The same of all tables of a schema."""
        return list(self._all(StoredKeys, schema))

    def statistics(self, schema: str, table: str) -> StoredStatistics | None:
        """What ANALYZE found; who asks looks whether it is of the table that is there."""
        return self._stored(StoredStatistics, schema, table)

    def identity(self, kind: type, schema: str, name: str) -> Witness | None:
        """Changes with a stored object; None if there is none."""
        folder = self._schema_folder(schema)
        return None if folder is None or not spelling.is_of_object(name) else objects.identity(folder, kind, name)

    def way(self, schema: str, table: str, folder: str | None) -> list[Witness | None]:
        """See `base.Catalog`. Where a name is that of its folder, whatever comes in that one's place has a log of its own."""
        if folder == os.path.join(self.root, schema, table):
            return []
        parent = self._schema_folder(schema)
        if parent is None or parent in self._links:
            return [None]
        above = [parent] if parent == os.path.join(self.root, schema) else [parent, self.root]
        seen = [unmoved(path) for path in above]  # before the name is looked up
        own = self._child(parent, table)
        there = folder if folder is not None and is_under(folder, self.root) else None
        return [*seen] if own == there and own not in self._links else [None]

    def _stored(self, kind: type[Stored], schema: str, name: str) -> Stored | None:
        folder = self._schema_folder(schema)
        if folder is None or not spelling.is_of_object(name):
            return None
        found = objects.read(folder, kind, name, TableName(self.name, os.path.basename(folder), name))
        if isinstance(found, StoredTable):
            return replace(found, location=self._place(folder, os.path.basename(found.location)))
        return found

    def _all(self, kind: type[Stored], schema: str) -> Iterator[Stored]:
        """The stored objects of a schema; a damaged one is left out with a line in the log, and told when it is named."""
        folder = self._schema_folder(schema)
        for name in objects.names(folder, kind) if folder is not None else ():
            try:
                stored = self._stored(kind, schema, name)
            except GatewayError as error:
                self._warn(error.message)
                continue
            if stored is not None:
                yield stored

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("left out of lists: %s", text)

    def schema_comment(self, schema: str) -> str | None:
        """The comment that the schema was created with."""
        entry = facts.read(self.root).get("schemas", {}).get(schema.lower(), {})
        comment: str | None = entry.get("comment")
        return comment

    def table_location(self, schema: str, table: str) -> str:
        """Where a new managed table is written (absolute, not created, in a schema that is there)."""
        self.check_name("table", table)
        if self._own_folder(schema, table) is None and (external := self._external(schema, table)) is not None:
            return external.location
        if schema.lower() == DEFAULT_SCHEMA and not self.read_only:  # which is always there
            os.makedirs(self._place_of_schema(schema), exist_ok=True)
        return self._place(self._place_of_schema(schema), table)

    def schema_location(self, schema: str) -> str:
        """The folder of a schema (absolute; that of `default` may not be there yet)."""
        return self._place_of_schema(schema)

    # ---- changing

    def create_schema(self, schema: str, comment: str | None) -> None:
        """Make a schema; raises UserError SCHEMA_ALREADY_EXISTS."""
        self._check_writable()
        self.check_name("schema", schema)
        if self.has_schema(schema):
            raise UserError("SCHEMA_ALREADY_EXISTS", f"Cannot create schema `{schema}` because it already exists.")
        folder = self._place(self.root, schema)
        with storage_told(f"Cannot create the schema {schema}", self.root), contextlib.ExitStack() as undo:
            with contextlib.nullcontext() if comment is None else facts.changing(self.root) as known:
                try:
                    os.makedirs(folder)
                except FileExistsError as error:  # made meanwhile
                    raise _taken(folder) from error
                undo.callback(removal.remove_empty, folder, [], self.root)
                if known is not None:
                    known.setdefault("schemas", {})[schema.lower()] = {"comment": comment}
            undo.pop_all()

    def comment_schema(self, schema: str, comment: str | None) -> None:
        """Keep what a schema is for, or nothing; raises UserError SCHEMA_NOT_FOUND."""
        self._check_writable()
        with (
            storage_told(f"Cannot keep the comment of the schema {schema}", self.root),
            facts.changing(self.root) as known,
        ):
            if self._schema_folder(schema) is None and schema.lower() != DEFAULT_SCHEMA:
                raise self._no_schema(schema)
            entry = known.setdefault("schemas", {}).pop(schema.lower(), {})
            entry.pop("comment", None)
            if comment is not None:
                entry["comment"] = comment
            if entry:
                known["schemas"][schema.lower()] = entry

    def rename_table(self, schema: str, table: str, new_schema: str, new_table: str) -> None:
        """Move a table's folder. Raises TABLE_OR_VIEW_NOT_FOUND, LOCATION_ALREADY_EXISTS; UnsupportedError for a link."""
        self._check_writable()
        self.check_name("table", new_table)
        with writers.taking(self.root, schema, table), self.claimed(new_schema, new_table):
            self._rename_table(schema, table, new_schema, new_table)

    def _rename_table(self, schema: str, table: str, new_schema: str, new_table: str) -> None:
        root = self._own_folder(schema, table)
        # Before anything is moved: one may be damaged.
        kept = self.keys(schema, table), self.statistics(schema, table)
        external = self._external(schema, table) if root is None else None
        if external is not None:
            if self._own_folder(new_schema, new_table) is not None:
                raise _taken(os.path.join(self._place_of_schema(new_schema), new_table))
            with self._renamed_objects(kept, new_schema, new_table):
                self.put(replace(external, name=TableName(self.name, new_schema, new_table)), False)
                self.drop(StoredLocation, schema, table)
            return
        if root is None:
            raise self._no_table(schema, table)
        if os.path.islink(root):
            raise UnsupportedError("UNSUPPORTED_FEATURE", f"Renaming the table `{schema}`.`{table}`, which is a link.")
        target = os.path.join(self._place_of_schema(new_schema), new_table)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target):
            raise _taken(target)
        with self._renamed_objects(kept, new_schema, new_table):
            removal.move(root, target, self.root)
            delta_table.forget(os.path.realpath(os.path.dirname(root)) + "/" + os.path.basename(root))
            delta_table.forget(target)

    @contextlib.contextmanager
    def _renamed_objects(
        self, kept: Iterable[StoredKeys | StoredStatistics | None], new_schema: str, new_table: str
    ) -> Iterator[None]:
        """Around the renaming of a table: what is kept of it has the new name before, and loses the old one behind it.

        On a full disk nothing is renamed then; of a process that is killed both may be left, each with the id of its table.
        """
        there = [one for one in kept if one is not None]
        new = TableName(self.name, new_schema, new_table)
        for one in there:
            self.put(replace(one, name=new), True)
        yield
        for one in there:
            self.drop(type(one), one.name.schema, one.name.table)

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """See `base.Catalog`."""
        return facts.alone(self.root)

    @contextlib.contextmanager
    def claimed(self, schema: str, table: str) -> Iterator[None]:
        """See `base.Catalog`."""
        with self.alone():
            if any(self.identity(kind, schema, table) for kind in (StoredView, StoredLocation, StoredTable)):
                text = f"The table or view `{self.name}`.`{schema}`.`{table}` already exists."
                raise UserError("TABLE_OR_VIEW_ALREADY_EXISTS", text)
            yield

    def written(self, schema: str, table: str) -> contextlib.AbstractContextManager[None]:
        """See `base.Catalog`."""
        return writers.writing(self.root, schema, table)

    def draft(self) -> Draft:
        """See `base.Catalog`."""
        return drafts.new(self.root)

    def _objects_of(self, schema: str, table: str) -> list[tuple[type, Witness]]:
        """What belongs to a table, and what shows that it still is that."""
        found = ((kind, self.identity(kind, schema, table)) for kind in objects.OF_TABLES)
        return [(kind, witness) for kind, witness in found if witness is not None]

    def _drop_objects(self, schema: str, table: str, owned: Sequence[tuple[type, Witness]]) -> None:
        """What belonged to a table that is gone: where it stays, it says nothing of another one of the name."""
        with (
            contextlib.suppress(ServerError, ResourceError, UserError),
            self.alone() if owned else contextlib.nullcontext(),
        ):
            for kind, witness in owned:
                if witness.holds():
                    self.drop(kind, schema, table)

    def drop_schema(self, schema: str, cascade: bool) -> None:
        """Remove a schema, with its tables if `cascade`; raises UserError SCHEMA_NOT_FOUND or SCHEMA_NOT_EMPTY."""
        self._check_writable()
        if schema.lower() == DEFAULT_SCHEMA:
            raise UserError("UNSUPPORTED_FEATURE", "The schema `default` cannot be dropped.")
        # The comment goes with its schema, not with another of that name.
        with writers.taking(self.root, schema), facts.changing(self.root) as known:
            folder = self._schema_folder(schema)
            if folder is None:
                raise self._no_schema(schema)
            left = self._leftovers(folder)
            roots = [os.path.realpath(os.path.join(folder, n)) for n in self._folders(folder)]
            is_empty = not roots and not objects.has_any(folder)
            if cascade or (is_empty and os.path.islink(folder)):
                trash = removal.set_aside(folder, self.root)
            elif is_empty and removal.remove_empty(folder, left, self.root):
                trash = None
            else:
                text = f"Cannot drop a schema `{schema}` because it contains objects. Use DROP SCHEMA ... CASCADE."
                raise UserError("SCHEMA_NOT_EMPTY", text)
            known.get("schemas", {}).pop(schema.lower(), None)
        if trash is not None:
            removal.discard(trash, self.root)
        for root in roots:
            delta_table.forget(root)

    def drop_table(self, schema: str, table: str) -> None:
        """Remove a table and its files, of an external one its name; raises UserError TABLE_OR_VIEW_NOT_FOUND."""
        self._check_writable()
        with writers.taking(self.root, schema, table):
            owned = self._objects_of(schema, table)
            trash = self._taken_away(schema, table)
        if trash is not None:
            removal.discard(trash, self.root)
        self._drop_objects(schema, table, owned)

    def _taken_away(self, schema: str, table: str) -> str | None:
        """What is to be discarded of a table whose name is free from now on; None of one that lies elsewhere."""
        root = self._own_folder(schema, table)
        if self.drop(StoredLocation, schema, table) and root is None:
            return None
        if root is None:
            if self.drop(StoredTable, schema, table):
                folder = self._schema_folder(schema)
                files = None if folder is None else self._child(folder, table)  # its own, whatever its object says
                return None if files is None or has_log(files) else removal.set_aside(files, self.root)
            raise self._no_table(schema, table)
        real = os.path.realpath(root)
        trash = removal.set_aside(root, self.root)
        delta_table.forget(real)
        return trash

    def put(self, stored: AnyStored, replacing: bool) -> bool:
        """Keep an object in its schema; False if there is one of its name and kind that is not to be replaced."""
        self._check_writable()
        self.check_name(objects.KINDS[type(stored)], stored.name.table)
        return objects.write(self._place_of_schema(stored.name.schema), stored, replacing)

    def drop(self, kind: type, schema: str, name: str) -> bool:
        """Remove a stored object, and the files of a volume, not those of a table; whether there was one."""
        self._check_writable()
        folder = self._schema_folder(schema)
        files = None
        with contextlib.suppress(ServerError):  # a damaged object says nothing of files, and goes all the same
            files = self.volume_folder(schema, name) if kind is StoredVolume else None
        there = (
            folder is not None and spelling.is_of_object(name) and objects.remove(self._resolved(folder), kind, name)
        )
        if there and files is not None and os.path.isdir(files):
            removal.remove(files, self.root)
        return there

    # ---- folders

    def _folders(self, parent: str) -> list[str]:
        """Names of visible folders; links count if they stay under the root."""
        try:
            with os.scandir(parent) as entries:
                return [e.name for e in entries if self._visible(e)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _visible(self, entry: os.DirEntry[str]) -> bool:
        if entry.name.startswith((".", "_")) or not is_text(entry.name):
            return False
        if entry.is_symlink():  # of which some end nowhere, or may be followed by nobody
            return os.path.isdir(entry.path) and is_under(real_path(entry.path), self.root)
        return entry.is_dir()

    def _child(self, parent: str, name: str) -> str | None:
        """The folder `name` in `parent`, matched exactly or else case-insensitively."""
        if not spelling.is_of_entry(name):
            return None
        exact = os.path.join(parent, name)
        try:
            mode = os.lstat(exact).st_mode
        except (OSError, ValueError):
            mode = 0
        if stat.S_ISDIR(mode):
            return self._found(exact, False)  # what is no link lies where its parent lies
        if stat.S_ISLNK(mode) and os.path.isdir(exact):
            return self._found(exact, True) if is_under(real_path(exact), self.root) else None
        folded = name.casefold()
        same = [n for n in self._folders(parent) if n.casefold() == folded]
        if len(same) > 1:
            names = ", ".join(sorted(same))
            raise UserError("AMBIGUOUS_REFERENCE", f"The name `{name}` fits several folders: {names}.")
        if not same:
            return None
        found = os.path.join(parent, same[0])
        return self._found(found, os.path.islink(found))

    def _found(self, path: str, linked: bool) -> str:
        """`path`, noting whether it is a link: to ask again would cost more than all else that finding a table does."""
        (self._links.add if linked else self._links.discard)(path)
        return path

    def _real(self, root: str) -> str:
        """Where the folder of a table that has just been found lies."""
        linked = not self._links.isdisjoint((root, os.path.dirname(root)))
        return self._resolved(root) if linked else root

    def _resolved(self, path: str) -> str:
        """The real path of a folder that was found in this catalog. Raises PATH_NOT_ALLOWED if by now it lies elsewhere."""
        real = real_path(path)
        if not is_under(real, self.root):
            raise not_allowed(f"The folder {path}, in whose place there is a link by now,")
        return real

    def _schema_folder(self, schema: str) -> str | None:
        return self._child(self.root, schema)

    def _place(self, parent: str, name: str) -> str:
        """The real path of the folder `name` in `parent`, or where it is to be made.

        A name that differs in case only is the same one. Raises LOCATION_ALREADY_EXISTS for what is no folder of this catalog:
        what is written there would go through a link to elsewhere.
        """
        found = self._child(parent, name)
        if found is not None:
            return self._resolved(found)
        path = os.path.join(parent, name)
        if os.path.lexists(path):
            raise _taken(path)
        return path

    def _place_of_schema(self, schema: str) -> str:
        """The real path of a schema's folder; that of `default` may still have to be made."""
        if self._schema_folder(schema) is None and schema.lower() != DEFAULT_SCHEMA:
            raise self._no_schema(schema)
        return self._place(self.root, DEFAULT_SCHEMA if schema.lower() == DEFAULT_SCHEMA else schema)

    def table_folder(self, schema: str, table: str) -> str | None:
        """The folder of an existing table, None if there is none of that name."""
        own = self._own_folder(schema, table)
        if own is not None:
            return own
        external = self._external(schema, table)
        return None if external is None else external.location

    def located(self, schema: str, table: str) -> str | None:
        """The folder of an external table, be there a table by now or not; None where none was given."""
        found = self._stored(StoredLocation, schema, table) if self.places else None
        return None if found is None else found.location

    def check_location(self, folder: str) -> None:
        """Raise UserError PATH_NOT_ALLOWED unless an external table may lie in a folder (real)."""
        if not objects.may_lie(folder, self.places, self.root):
            text = f"An external table cannot lie in {folder}: it has to be below a folder that --allow-path names."
            raise UserError("PATH_NOT_ALLOWED", text)

    def _external(self, schema: str, table: str) -> StoredLocation | None:
        """An external table that is there. Raises PATH_NOT_ALLOWED if its folder is none, or a link by now."""
        found = self._stored(StoredLocation, schema, table) if self.places else None
        if found is None:
            return None
        self.check_location(os.path.realpath(found.location))
        if os.path.realpath(found.location) != found.location:
            raise not_allowed(f"The folder {found.location}, in whose place there is a link by now,")
        return found if has_log(found.location) else None

    def _own_folder(self, schema: str, table: str) -> str | None:
        """The folder of a table in its schema's."""
        folder = self._schema_folder(schema)
        root = None if folder is None else self._child(folder, table)
        return root if root is not None and has_log(root) else None

    def _leftovers(self, folder: str) -> list[str]:
        """Paths of what lies in a schema beside its tables, and beside its objects if it is found to have none."""
        inner = os.path.join(folder, objects.FOLDER)
        with os.scandir(folder) as entries:
            left = [entry.path for entry in entries if not self._visible(entry)]
        if inner not in left or not stat.S_ISDIR(os.lstat(inner).st_mode):
            return left
        return [path for path in left if path != inner] + [os.path.join(inner, name) for name in os.listdir(inner)]

    # ---- checks and facts

    def _check_writable(self) -> None:
        if self.read_only:
            raise UserError("UNSUPPORTED_FEATURE", f"The catalog `{self.name}` is read-only.")

    def _no_table(self, schema: str, table: str) -> UserError:
        name = f"`{self.name}`.`{schema}`.`{table}`"
        return UserError("TABLE_OR_VIEW_NOT_FOUND", f"The table or view {name} cannot be found.")

    def _no_schema(self, schema: str) -> UserError:
        return UserError("SCHEMA_NOT_FOUND", f"The schema `{self.name}`.`{schema}` cannot be found.")

    @staticmethod
    def check_name(kind: str, name: str) -> None:
        """See `spelling.check`."""
        spelling.check(kind, name)


def _taken(path: str) -> UserError:
    return UserError(
        "LOCATION_ALREADY_EXISTS", f"{path} exists and is no folder of this catalog: nothing can be made there."
    )
