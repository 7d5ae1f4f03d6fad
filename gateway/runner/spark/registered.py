"""What a statement for Spark names, registered there before it runs, with what that names in turn."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.catalog.base import Catalog, TableName
from gateway.catalog.objects import StoredFunction, StoredTable, StoredView
from gateway.config.session import (
    DEFAULT_ZONE,
    TIMEZONE,
    is_honoured,
)
from gateway.delta.containment import Within, check_tree
from gateway.delta.log_paths import check_for_others, logged_expressions
from gateway.delta.schema import parse_schema, struct_of
from gateway.engine.base import Emit, TempView
from gateway.engine.spark.errors import as_gateway_error
from gateway.engine.spark.mirror import Mirror, MirroredObject, MirroredTable
from gateway.errors import CanceledError, GatewayError, UserError, unsupported
from gateway.runner.objects import change_view, check_writable
from gateway.runner.spark.names import spark_name
from gateway.runner.spark.sent import sent
from gateway.runner.spark.settings import SPARK_SETTINGS
from gateway.sql.bind.view_columns import columns_of, columns_of_temporary, no_upcast
from gateway.sql.read.made_view import EVOLUTION, clauses, function_of
from gateway.sql.read.statement import Statement as Read
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.allowed import check_expression
from gateway.sql.spark.made_table import check_definition
from gateway.sql.spark.respell import Head, Respelt, database
from gateway.sql.typed.coerce import can_upcast
from gateway.sql.typed.common_types import nullable_inside, plain
from gateway.sqltypes import StructField, StructType, quote_part, quoted_text, struct

_DEFAULTS = {key: DEFAULT_ZONE if key == TIMEZONE else "true" for key in SPARK_SETTINGS}
# (statement, catalog, schema, head, whether names are spelt out) -> the text that is kept, for Spark
Respell = Callable[[Read, str, str, Head | None, bool], Respelt]


@dataclass(slots=True)
class Registered:
    """What one statement needs, by now registered.

    Attributes:
        files: Spark's names of tables of other formats, whose lists of files a session keeps until told otherwise.
        problems: why something that the statement may mean is not there.
        emit: the statement's, whose cancel ends waiting for a turn.
        through: whether what is named may be written to, though none of it is a target: the tables of a view that is one.
        functions: the lasting functions, by database and name: what changes with each.
        held: keeps the names of tables that are written to, until it is closed.
    """

    files: list[str] = field(default_factory=list)
    problems: list[GatewayError] = field(default_factory=list)
    seen: set[tuple[str, ...]] = field(default_factory=set)
    emit: Emit | None = None
    through: bool = False
    functions: dict[tuple[str, str], object] = field(default_factory=dict)
    held: contextlib.ExitStack | None = None


class Registrar:
    """Registers in `mirror` what texts name in `catalogs`; `respell` and `named` are the runner's.

    Files of tables must lie `within` folders: Spark follows whatever a log or a link says.
    """

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        within: Within,
        mirror: Mirror,
        respell: Respell,
        named: Callable[[str], str],
    ) -> None:
        self._catalogs = catalogs
        self._within = within
        self._mirror = mirror
        self._respell = respell
        self._named = named

    def register(self, respelt: Respelt, done: Registered | None = None) -> Registered:
        """Everything that a text names.

        Raises GatewayError only for names that Spark cannot take, and for a target whose files are not to be followed.
        """
        done = done or Registered()
        tables = []
        written = {tuple(part.lower() for part in m.name) for m in respelt.mentions if m.is_target}
        for mention in respelt.mentions:
            key = ("relation", *(part.lower() for part in mention.name))
            catalog = self._catalogs.get(mention.catalog.lower())
            if key in done.seen or catalog is None or not catalog.has_schema(mention.schema):
                continue
            done.seen.add(key)
            name = TableName(catalog.name, mention.schema, mention.table)
            writes = done.through or key[1:] in written
            if done.through:
                check_writable(catalog, "nothing can be changed", None)
            if writes and done.held is not None and mention.draft is None and not catalog.read_only:
                done.held.enter_context(catalog.written(mention.schema, mention.table))
            folder = catalog.table_folder(mention.schema, mention.table)
            if folder is None and self._other(catalog, name, done, writes):
                continue
            if mention.is_target and folder is None:  # Spark would look for it only when all is written
                self._mirror.database(database(catalog.name, mention.schema), done.emit)
            real = os.path.realpath(folder) if folder is not None else None
            if real is not None:
                with Noted(done, raises=writes) as kept:
                    check_for_others(real, self._within, writes)
                    # Spark evaluates what the log says, whoever wrote that.
                    for text in logged_expressions(real, self._within, writes):
                        check_expression(text)
                real = None if kept.failed else real
            tables.append(MirroredTable(database(catalog.name, mention.schema), mention.table, real))
        self._mirror.tables(tables, done.emit)
        for call in respelt.calls:
            key = ("function", call.catalog.lower(), call.schema.lower(), call.function.lower())
            catalog = self._catalogs.get(call.catalog.lower())
            if key not in done.seen and catalog is not None:
                done.seen.add(key)
                self._function(catalog, TableName(catalog.name, call.schema, call.function), done)
        return done

    def _other(self, catalog: Catalog, name: TableName, done: Registered, writes: bool) -> bool:
        """A table of another format or a view of that name; whether there is one."""
        state = catalog.identity(StoredTable, name.schema, name.table)
        if state is not None:
            with Noted(done, raises=writes) as kept:
                table = catalog.table(name.schema, name.table)
                if isinstance(table, StoredTable):
                    check_definition(table.definition, table.format)
                    check_tree(table.location, () if writes else self._within)
                    if self._put("TABLE", table.name, state, "", {}, self._maker(table), done):
                        done.files.append(spark_name(table.name))
            if kept.failed:  # what it was before is not to be read in its place
                self._mirror.no_relation(database(name.catalog, name.schema), name.table)
            return True
        state = catalog.identity(StoredView, name.schema, name.table)
        if state is None:
            return False
        with Noted(done) as kept:
            view: StoredView | None = catalog.view(name.schema, name.table)
            if view is None:
                return False
            respelt = self._respell(read_statement(view.query), view.catalog, view.schema_name, None, False)
            self.register(respelt, done)
            current = database(view.catalog, view.schema_name)
            self._put("VIEW", view.name, state, current, view.settings, self._view_maker(view, respelt), done)
        if kept.failed:
            self._mirror.no_relation(database(name.catalog, name.schema), name.table)
        return True

    def _function(self, catalog: Catalog, name: TableName, done: Registered) -> None:
        state = catalog.identity(StoredFunction, name.schema, name.table)
        where = database(name.catalog, name.schema)
        if state is None:
            self._mirror.no_function(where, name.table)
            return
        with Noted(done) as kept:
            function: StoredFunction | None = catalog.function(name.schema, name.table)
            if function is None:
                return
            statement = read_statement(f"CREATE FUNCTION {quote_part(name.table)} {function.text}")
            made = function_of(statement)
            if made is None:
                raise unsupported(f"The text of the function `{name}`")
            head = Head(made.start, f"CREATE FUNCTION {spark_name(name)} ")
            # Spark looks up names in a function's body under the caller's current schema.
            respelt = self._respell(statement, function.catalog, function.schema_name, head, True)
            self.register(respelt, done)
            current = database(function.catalog, function.schema_name)

            def make(session: Any, spelt: str) -> bool:
                session.sql(sent(session, respelt))
                return True

            done.functions[where, name.table.lower()] = state
            self._put("FUNCTION", name, state, current, function.settings, make, done)
        if kept.failed:
            self._mirror.no_function(where, name.table)

    def _put(
        self,
        kind: str,
        name: TableName,
        state: object,
        current: str,
        settings: Mapping[str, str],
        make: Callable[[Any, str], bool],
        done: Registered,
    ) -> bool:
        """Whether Spark knows it now; else it is one of the problems why not."""
        spark = {SPARK_SETTINGS[key]: settings.get(key, default) for key, default in _DEFAULTS.items()}
        spark |= {key: value for key, value in settings.items() if key not in SPARK_SETTINGS}
        if strange := [key for key in settings if key not in SPARK_SETTINGS and not is_honoured(key)]:
            raise unsupported(f"The setting {strange[0]} of `{name}`")
        where = database(name.catalog, name.schema)
        with Noted(done, self._named) as kept:
            self._mirror.put(MirroredObject(kind, where, name.table, state, current or where, spark, make), done.emit)
        return not kept.failed

    def _maker(self, table: StoredTable) -> Callable[[Any, str], bool]:
        def make(session: Any, name: str) -> bool:
            location = quoted_text(f"file:{os.path.realpath(table.location)}")
            session.sql(f"CREATE TABLE {name} {table.definition} LOCATION {location}")
            return True

        return make

    def _view_maker(self, view: StoredView, respelt: Respelt) -> Callable[[Any, str], bool]:
        """Registers a view whose columns have the types that are kept: Spark keeps those of the moment.

        Where they differ it is registered as casts, by the query's columns of the moment: anew in every statement.
        """

        def make(session: Any, name: str) -> bool:
            frame = session.sql(sent(session, respelt))
            now = parse_schema(frame.schema.jsonValue())
            if view.mode == EVOLUTION and not view.named:
                self._keep(view, struct_of(now))
                session.sql(f"CREATE OR REPLACE VIEW {name} {clauses(view.collation, '')}AS {respelt.text}")
                return False
            found = columns_of(view, [c.name for c in now])
            kept = view.schema.fields
            if view.mode:  # names and comments stay, types are those of the moment
                places = zip(found, kept, strict=True)
                kept = tuple(replace(f, type=now[at].type, nullable=now[at].nullable) for at, f in places)
                self._keep(view, struct(*kept))
            columns = ", ".join(
                quote_part(f.name) + (f" COMMENT {quoted_text(f.comment)}" if f.comment else "") for f in kept
            )
            text = respelt.text
            alike = len(now) == len(kept) and all(
                at == i and now[at].type == f.type for i, (at, f) in enumerate(zip(found, kept, strict=True))
            )
            if not alike:
                text = _recast(str(view.name), text, [now[at].name for at in found], kept)
            session.sql(f"CREATE OR REPLACE VIEW {name} ({columns}) {clauses(view.collation, '')}AS {text}")
            return alike and not view.mode

        return make

    def _keep(self, view: StoredView, schema: StructType) -> None:
        """A view whose columns follow its query's is kept with those that it has now, as Spark does when it is read."""
        if [(f.name, f.type) for f in schema.fields] != [(f.name, f.type) for f in view.schema.fields]:
            names = view.query_columns if view.named else tuple(f.name for f in schema.fields)
            catalog, now = self._catalogs[view.name.catalog.lower()], replace(view, schema=schema, query_columns=names)
            with contextlib.suppress(UserError):  # somebody has changed or dropped it: what was read is read
                change_view(catalog, view, now)


def text_as_made(view: TempView, made: Sequence[StructField], text: str, names: Sequence[str], now: StructType) -> str:
    """The text of a temporary view that answers the columns `made` that the view was made with.

    `text` answers `now`, under `names` in Spark. Raises UserError for a column that is gone, or that has another type by now of
    which values may be lost.
    """
    types = [nullable_inside(plain(f.type)) for f in now.fields]
    wanted = [nullable_inside(plain(f.type)) for f in made]
    if [f.name for f in now.fields] == [f.name for f in made] and types == wanted:
        return text
    found = columns_of_temporary(view, [f.name for f in now.fields])
    for at, want in zip(found, wanted, strict=True):
        if not can_upcast(types[at], want):
            raise no_upcast(now.fields[at].name, types[at], want)
    kept = [replace(f, type=plain(f.type)) for f in made]
    return _recast(view.name, text, [names[at] for at in found], kept)


def _recast(view: str, text: str, names: Sequence[str], fields: Sequence[StructField]) -> str:
    """A query over `text` that casts its columns of these names to the types and names of `fields`."""
    if len({name.lower() for name in names}) != len(names):
        raise unsupported(f"The view `{view}`, whose query has changed and names columns alike,")
    casts = (f"CAST({quote_part(name)} AS {f.type.sql})" for name, f in zip(names, fields, strict=True))
    pairs = (f"{cast} AS {quote_part(f.name)}" for cast, f in zip(casts, fields, strict=True))
    return f"SELECT {', '.join(pairs)} FROM ({text})"


class Noted:
    """Keeps an error as one of `done.problems`, unless it `raises` it; `failed` tells whether there was one."""

    def __init__(self, done: Registered, named: Callable[[str], str] = str, raises: bool = False) -> None:
        self._done = done
        self._named = named
        self._raises = raises
        self.failed = False

    def __enter__(self) -> Noted:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or self._raises:
            return False
        found = error
        if not isinstance(error, GatewayError):
            found = as_gateway_error(error, "", lambda offset: offset, self._named)
            found.span = None
        assert isinstance(found, GatewayError)
        if found.retryable or isinstance(found, CanceledError):  # Spark is lost: no fault of what is registered
            return False
        self._done.problems.append(found)
        self.failed = True
        return True
