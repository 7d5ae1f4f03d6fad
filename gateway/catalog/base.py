"""What a catalog answers: names, and tables pinned to one version."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.sqltypes import StructType
from gateway.worker_jobs import Witness


@dataclass(frozen=True, slots=True)
class TableName:
    """A resolved three-part name with the spelling of the catalog."""

    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"

    @property
    def qualifier(self) -> tuple[str, ...]:
        """What columns may be qualified with, in lower case; of a path its format and itself."""
        return tuple(part.lower() for part in (self.catalog, self.schema, self.table) if part)


@dataclass(frozen=True, slots=True)
class Draft:
    """A table while it is made: its folder, and a name that no other one has; "" of one that is made in its own place."""

    folder: str
    name: str = ""

    @property
    def root(self) -> str:
        """The warehouse."""
        return os.path.dirname(os.path.dirname(self.folder))


@dataclass(frozen=True, slots=True)
class AsOf:
    """Time travel: exactly one is set; `timestamp_us` is epoch microseconds UTC."""

    version: int | None = None
    timestamp_us: int | None = None


class BoundTable(Protocol):
    """A table at one version: everything that binding and planning need; immutable."""

    @property
    def name(self) -> TableName: ...

    @property
    def schema(self) -> StructType:
        """Logical columns in table order, partition columns included."""

    @property
    def partition_columns(self) -> tuple[str, ...]: ...

    @property
    def version(self) -> int | None:
        """Delta version, None for plain files."""

    @property
    def num_rows(self) -> int | None:
        """Exact live row count from statistics, if every file has one."""

    @property
    def location(self) -> str:
        """The table's folder, or the file."""

    @property
    def comment(self) -> str | None: ...

    @property
    def properties(self) -> dict[str, str]: ...

    def scan(self, columns: Sequence[str], predicates: Sequence[Any], *, floats_compared: bool = True) -> Any:
        """A `delta.scan.ScanPlan` (an `engine.base.Source`) for `columns`; `predicates` as in `delta.predicates`.

        `floats_compared`: see `delta.scan.plan_scan`.
        """


class Catalog(Protocol):
    """One catalog. Names are matched case-insensitively; what does not exist is None or an empty list, not an error."""

    name: str
    read_only: bool

    def schemas(self) -> list[str]: ...

    def tables(self, schema: str) -> list[str]:
        """Delta tables."""

    def other_tables(self, schema: str) -> list[str]:
        """Tables of other formats."""

    def has_schema(self, schema: str) -> bool: ...

    def views(self, schema: str) -> list[str]: ...

    def functions(self, schema: str) -> list[str]: ...

    def volumes(self, schema: str) -> list[str]: ...

    def volume_folder(self, schema: str, volume: str) -> str | None:
        """The real folder of a volume's files, which may not be there yet; None if there is no such volume."""

    def table(self, schema: str, table: str, as_of: AsOf | None = None, *, to_add: bool = False) -> BoundTable | None:
        """A table at its newest version or as of `as_of`; `to_add` for a statement that adds rows, which may read no files."""

    def outlines(self, schema: str) -> Mapping[str, Any]:
        """`tables`, each with its `delta.outline.Outline` if that is known without looking further, else None."""

    def outline(self, schema: str, table: str) -> Any:
        """The `delta.outline.Outline` of a table; None if it has to be opened."""

    def view(self, schema: str, view: str) -> Any:
        """The `objects.StoredView` of that name; None also where a table has the name."""

    def function(self, schema: str, function: str) -> Any:
        """The `objects.StoredFunction` of that name, or None."""

    def keys(self, schema: str, table: str) -> Any:
        """The `objects.StoredKeys` of that name, be its table there or not."""

    def statistics(self, schema: str, table: str) -> Any:
        """The `objects.StoredStatistics` of that name, be its table there or not."""

    def all_keys(self, schema: str) -> Sequence[Any]:
        """The `objects.StoredKeys` of a schema."""

    def identity(self, kind: type, schema: str, name: str) -> Witness | None:
        """Changes with a stored object of a class of `objects`; None if there is none."""

    def way(self, schema: str, table: str, folder: str | None) -> list[Witness | None]:
        """What shows that a name still leads to a table's folder (real), or to none of the catalog's; None if nothing can."""

    def alone(self) -> AbstractContextManager[None]:
        """A block before and behind all other changes of what is read to be changed: keys. Raises UserError WRITE_CONFLICT."""

    def claimed(self, schema: str, table: str) -> AbstractContextManager[None]:
        """A block in which a Delta table comes to its name, `alone`. Raises TABLE_OR_VIEW_ALREADY_EXISTS if another has it."""

    def written(self, schema: str, table: str) -> AbstractContextManager[None]:
        """A block in which another engine writes to a table, which keeps its name. Raises UserError WRITE_CONFLICT."""

    def draft(self) -> Draft:
        """Where another engine makes a table that then comes to its name."""

    def put(self, stored: Any, replacing: bool) -> bool:
        """Keep an object of a class of `objects`; False if there is one of its name that is not to be replaced."""

    def drop(self, kind: type, schema: str, name: str) -> bool:
        """Remove a view or function (a class of `objects`); whether there was one."""

    def table_folder(self, schema: str, table: str) -> str | None:
        """The folder of an existing Delta table."""

    def schema_location(self, schema: str) -> str:
        """The folder of a schema, an absolute path; that of `default` may not be there yet."""

    def create_schema(self, schema: str, comment: str | None) -> None: ...

    def comment_schema(self, schema: str, comment: str | None) -> None: ...

    def check_name(self, kind: str, name: str) -> None:
        """Raise UserError INVALID_IDENTIFIER unless a schema, table, view or function may have `name`."""

    def rename_table(self, schema: str, table: str, new_schema: str, new_table: str) -> None:
        """Another name for a Delta table, which nothing has so far."""

    def drop_schema(self, schema: str, cascade: bool) -> None: ...

    def drop_table(self, schema: str, table: str) -> None: ...

    def located(self, schema: str, table: str) -> str | None:
        """The folder of an external Delta table, be there a table by now or not; None where none was given."""

    def check_location(self, folder: str) -> None:
        """Raise UserError PATH_NOT_ALLOWED unless an external table may lie in a folder (real)."""

    def table_location(self, schema: str, table: str) -> str:
        """Where a new managed table of that name is written (an absolute path, not created)."""
