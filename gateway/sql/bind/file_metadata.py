"""`_metadata`: what each row of a table has beside its columns, if it is asked for by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from sqlglot import exp

from gateway.catalog.bound import DeltaBoundTable
from gateway.delta import file_metadata as m
from gateway.errors import UnsupportedError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.scope import METADATA, FileMetadata, Scope
from gateway.sql.bind.sites import called
from gateway.sql.functions.operators import bind_binary
from gateway.sql.read.tree import identifiers_in
from gateway.sql.typed.nodes import Col, Expr, Ids, Lit, Project, Rel, Scan
from gateway.sqltypes import STRING

#: The fields of it that a statement names; None: it is named as a whole, or not at all.
Asked = frozenset[str] | None
_BLOCKS = ("file_block_start", "file_block_length")


class Binding(Protocol):
    """What is needed of the binder of relations."""

    expressions: Expressions
    ids: Ids
    asked: tuple[exp.Expr | None, bool, Asked]

    def scan(self, table: Any, alias: str) -> Scan:
        """A fresh scan of all columns of a table."""


def described(binding: Binding, node: exp.Expr, rel: Rel, scope: Scope) -> Rel:
    """A table's scan with what `_metadata` tells, which its scope is told of, if the statement asks for it anywhere."""
    if not isinstance(rel, Scan) or not isinstance(rel.table, DeltaBoundTable):
        return rel
    is_asked, fields = _asked(binding, node)
    if not is_asked or any(f.name.lower() == METADATA for f in rel.table.schema.fields):
        return rel
    told = m.described(rel.table.snapshot)
    wide = binding.scan(replace(rel.table, snapshot=told.snapshot), rel.alias)
    count = len(rel.columns)
    hidden = dict(zip(wide.sources[count:], wide.columns[count:], strict=True))
    wide.columns = (*rel.columns, *wide.columns[count:])
    read: dict[str, Expr] = {field: hidden[name] for field, name in told.columns.items()}
    if told.tracked:  # a row that was written anew has its own, any other one its place's
        own, version = read[m.ROW_ID], read[m.VERSION]
        counted = bind_binary("+", read[m.BASE], read[m.ROW_INDEX], None, binding.expressions.context.precision_loss)
        read[m.ROW_ID] = _call(binding, "coalesce", own, counted)
        read[m.VERSION] = _call(binding, "coalesce", version, read[m.DEFAULT])
    parts: list[Expr] = []
    for field in (*m.OF_FILES, m.ROW_INDEX, m.ROW_ID, m.BASE, m.DEFAULT, m.VERSION):
        if field in read:
            needed = fields is None or field in fields  # else a place of its type is enough, and nothing is read
            parts += [Lit(STRING, False, field), read[field] if needed else _empty(read[field])]
    struct = _call(binding, "named_struct", *parts)
    column = Col(struct.type, False, binding.ids.take(), METADATA)
    scope.sources[0].metadata = FileMetadata(column, _refusals(told))
    return Project((*rel.columns, column), wide, (*rel.columns, struct))


def _asked(binding: Binding, node: exp.Expr) -> tuple[bool, Asked]:
    """Whether a statement names it anywhere, and which fields of it."""
    root = node.root()
    if binding.asked[0] is not root:
        named = [found for found in identifiers_in(root) if found.name.lower() == METADATA]
        fields = [_field_behind(found) for found in named]
        binding.asked = (root, bool(named), None if None in fields else frozenset(str(field) for field in fields))
    return binding.asked[1:]


def _field_behind(found: exp.Identifier) -> str | None:
    """The name behind a dot behind this one; None for none."""
    column = found.parent
    names = column.parts if isinstance(column, exp.Column) else ()
    at = next((i for i, part in enumerate(names) if part is found), len(names))
    return names[at + 1].name.lower() if at + 1 < len(names) else None


def _call(binding: Binding, name: str, *args: Expr) -> Expr:
    return called(binding.expressions, name, args, (None,) * len(args), None)


def _empty(of: Expr) -> Expr:
    return Lit(of.type, False, "" if of.type == STRING else 0)


def _refusals(told: m.Described) -> dict[str, UnsupportedError]:
    """What of it is not told here, as how Spark cuts large files depends on its cores."""
    if told.blocks:
        return {}
    return {name: unsupported(f"{METADATA}.{name} of a table with large files") for name in _BLOCKS}
