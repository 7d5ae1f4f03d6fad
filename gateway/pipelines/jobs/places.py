"""Table names of jobs, ``[main.]schema.table``, and the folders of a warehouse that they stand for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.catalog.local import LocalCatalog
from gateway.catalog.writers import writing
from gateway.delta.containment import Within
from gateway.delta.log import has_log
from gateway.errors import ConfigError, GatewayError
from gateway.pipelines.followed import check_followed
from gateway.sqltypes import quote_part

CATALOG = "main"


@dataclass(frozen=True, slots=True)
class Place:
    """A table's name as the catalog spells it, and its folder, which need not exist; where its files may lie."""

    schema: str
    table: str
    folder: Path
    within: Within = ()

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def exists(self) -> bool:
        """Whether the folder holds a Delta table."""
        return has_log(str(self.folder))

    @property
    def sql(self) -> str:
        """The table by its path, as Spark's SQL names it."""
        return f"delta.{quote_part(str(self.folder))}"

    def beside(self, suffix: str) -> Place:
        """The table of the same schema with a longer name."""
        return replace(self, table=self.table + suffix, folder=self.folder.with_name(self.folder.name + suffix))

    def check_followed(self) -> None:
        """Raise GatewayError for a table whose log or links lead Spark elsewhere, or have it run code."""
        check_followed(self.folder, self.within or (os.path.realpath(self.folder.parent),), writes=True)

    def check_table(self) -> None:
        """Raise ConfigError unless there is a Delta table."""
        if self.exists:
            return
        what = "is not a Delta table: it has no _delta_log" if self.folder.is_dir() else "does not exist"
        raise ConfigError("table", f"{self.name}: {self.folder} {what}")

    def check_free(self) -> None:
        """Raise ConfigError if the folder holds something that is not a Delta table."""
        if self.folder.exists() and not self.exists and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise ConfigError("table", f"{self.name}: {self.folder} holds something that is not a Delta table")


def split_name(text: str) -> list[str]:
    """The parts of a dotted name, back quotes removed. Raises ConfigError."""
    parts, part, inside, index = [], "", False, 0
    while index < len(text):
        char = text[index]
        if char == "`" and inside and text[index + 1 : index + 2] == "`":
            part += char
            index += 1
        elif char == "`":
            inside = not inside
        elif char == "." and not inside:
            parts.append(part)
            part = ""
        else:
            part += char
        index += 1
    parts.append(part)
    if inside or not all(parts):
        raise ConfigError("table", f"'{text}' is not a table's name: [main.]schema.table")
    return parts


@contextlib.contextmanager
def kept(warehouse: Path, *places: Place) -> Iterator[None]:
    """A block in which nobody drops or renames tables that a job writes to. Raises UserError WRITE_CONFLICT."""
    with contextlib.ExitStack() as stack:
        for place in places:
            stack.enter_context(writing(os.path.realpath(warehouse), place.schema, place.table))
        yield


def locate(warehouse: Path, name: str, allowed: Sequence[Path] = ()) -> Place:
    """The place of ``[main.]schema.table`` below `warehouse`; nothing is made. Raises ConfigError.

    Files of its log may lie in `allowed` folders, too.
    """
    parts = split_name(name)
    if len(parts) == 3 and parts[0].lower() == CATALOG:
        parts = parts[1:]
    if len(parts) != 2:
        raise ConfigError("table", f"'{name}' is not a table's name: [main.]schema.table")
    schema, table = parts
    catalog = LocalCatalog(CATALOG, str(warehouse), read_only=True, others=tuple(map(str, allowed)))
    try:
        if catalog.has_schema(schema):
            folder = Path(catalog.table_location(schema, table))
        else:
            # The catalog's own rule about names, asked of a schema that is not there yet.
            LocalCatalog.check_name("schema", schema)
            LocalCatalog.check_name("table", table)
            folder = Path(catalog.root, schema, table)
    except GatewayError as error:
        raise ConfigError("table", error.message) from error
    return Place(folder.parent.name, folder.name, Path(os.path.abspath(folder)), catalog.within)
