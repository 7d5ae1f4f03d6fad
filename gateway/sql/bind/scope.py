"""What names mean at one place of a statement: relations in scope, merged USING columns, enclosing queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Protocol, TypeVar, cast

from gateway.errors import Span, UnsupportedError, UserError, unsupported
from gateway.sql.typed.coerce import coerced, implicit_type
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Call, Col, Expr, LambdaVar, Lit
from gateway.sqltypes import (
    STRING,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
    array,
    quote_if_needed,
    quote_part,
)

E = TypeVar("E", bound=Expr)
#: What rows of tables have beside their columns: told if it is asked for, and never a part of ``*``.
METADATA = "_metadata"
#: Functions that are called without parentheses, by the names that they go by.
BARE = frozenset(
    {"current_date", "current_timestamp", "current_user", "user", "session_user", "current_time", "current_path"}
)


class SelectList(Protocol):
    """What a clause above a select list sees of it: its items, and below them the columns of FROM."""

    aggregates: int  # calls of aggregate functions that are written in the expression
    depth: int  # how many of them are around the name that is looked for

    def find(self, scope: Scope, parts: Sequence[str], span: Span | None) -> Expr | None:
        """What a name stands for, enclosing queries left out."""

    def missing(self, parts: Sequence[str], span: Span | None) -> UserError:
        """UNRESOLVED_COLUMN with the nearest items."""


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """What `_metadata` of a relation means: a column that is a struct, and which fields of it are refused."""

    column: Col
    refused: Mapping[str, UnsupportedError]

    def found(self, name: str, fields: Sequence[str], span: Span | None) -> Expr:
        """It, as it is spelt, or a field of it by further names. Raises FIELD_NOT_FOUND, UnsupportedError."""
        for error in self.refused.values() if not fields else filter(None, [self.refused.get(fields[0].lower())]):
            raise error.at(span)
        return fields_of(_spelled(self.column, name), fields, span)


@dataclass(slots=True)
class Source:
    """One relation in FROM: its qualifier (lower-cased name parts, the alias alone if there is one) and columns.

    `repeated` has the earlier one that a column is once more (``SELECT a, a``), by their ids: the name means that one.
    """

    qualifier: tuple[str, ...]
    columns: tuple[Col, ...]
    repeated: Mapping[int, int] = field(default_factory=dict)
    shown: str | None = None  # its name as Spark shows it before a column's, None if that is not known
    metadata: FileMetadata | None = None  # where a statement asks for it
    _places: Mapping[str, Sequence[int]] | None = None

    def named(self, name: str) -> Sequence[Col]:
        """The columns of a lower-cased name."""
        if self._places is None:
            self._places = _places(tuple([c.name for c in self.columns]))
        found = self._places.get(name)
        return () if found is None else [c for c in [self.columns[i] for i in found] if c.id not in self.repeated]


@lru_cache(maxsize=1024)
def _places(names: tuple[str, ...]) -> Mapping[str, Sequence[int]]:
    """Where each lower-cased name is; the columns of a table are the same in all statements."""
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        found.setdefault(name.lower(), []).append(at)
    return found


@dataclass(slots=True)
class Scope:
    """Relations side by side, and the enclosing query's scope.

    `merged` holds the columns of JOIN … USING: name -> (what the bare name means, ids of the columns that it hides).
    `outer_refs` collects references to enclosing queries, for correlated subqueries.
    """

    sources: list[Source] = field(default_factory=list)
    parent: Scope | None = None
    merged: dict[str, Expr] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    outer_refs: dict[int, Col] = field(default_factory=dict)
    lateral: dict[str, Expr] = field(default_factory=dict)  # earlier select items by alias
    ambiguous_lateral: set[str] = field(default_factory=set)
    unsteady_lateral: set[str] = field(default_factory=set)  # of items that differ from call to call
    overrides: dict[str, Expr] = field(default_factory=dict)  # output aliases that win (QUALIFY)
    fallbacks: dict[str, Expr] = field(default_factory=dict)  # output aliases that lose (GROUP BY)
    lambdas: dict[str, Expr] = field(default_factory=dict)
    having: bool = False  # HAVING is being bound: a subquery's WHERE may hold aggregates over these columns
    outputs: SelectList | None = None  # ORDER BY or HAVING is being bound: what it sees of the select list
    before: bool = False  # a LATERAL subquery is being bound beside these relations: it may name them as a whole
    listing: bool = False  # the select list is being bound: so may a subquery there

    def columns(self) -> list[Expr]:
        """What ``*`` stands for: merged columns first and once, then the rest in order."""
        result: list[Expr] = list(self.merged.values())
        for source in self.sources:
            result += [c for c in source.columns if c.id not in self.hidden]
        return result

    def first(self, name: str) -> Expr | None:
        """The first column of ``*`` that has a lower-cased name; None if there is none."""
        if name in self.merged:
            return self.merged[name]
        columns = (c for source in self.sources for c in source.named(name))
        return next((c for c in columns if c.id not in self.hidden), None)

    def same(self, column: Col) -> set[int]:
        """The ids of a column, and of those that are this one once more."""
        repeated = {c.id for s in self.sources for c in s.columns if s.repeated.get(c.id) == column.id}
        return repeated | {column.id}

    def shared(self, right: Scope) -> list[str]:
        """The names that NATURAL joins by; one that both sides have twice is there twice."""
        present = Counter(name.lower() for name in right._shown_names())
        found = []
        for name in self._shown_names():
            if present[name.lower()]:
                present[name.lower()] -= 1
                found.append(name)
        return found

    def _shown_names(self) -> list[str]:
        """The names of what ``*`` stands for; of a FULL JOIN the merged column is no column of either side."""
        merged = [e.name if isinstance(e, Col) else name for name, e in self.merged.items()]
        return merged + [c.name for s in self.sources for c in s.columns if c.id not in self.hidden]

    def all_columns(self) -> list[Col]:
        """Every column of every relation."""
        return [c for source in self.sources for c in source.columns]

    def qualified(self, parts: Sequence[str]) -> list[Col] | None:
        """Columns of the relations that ``a.b.*`` names, which may be several; None if there is none."""
        named = self.of(parts).sources
        return [c for source in named for c in source.columns] if named else None

    def of(self, parts: Sequence[str]) -> Scope:
        """The relations that ``a.b.*`` names by themselves: what EXCEPT behind it means."""
        wanted = tuple(p.lower() for p in parts)
        return Scope([s for s in self.sources if s.qualifier[-len(wanted) :] == wanted])

    def star_around(self, parts: Sequence[str], span: Span | None) -> list[Expr] | None:
        """What ``a.b.*`` names of the relations around a subquery, where it may; None if it is nothing."""
        around = self.parent
        if around is None or not (around.before or around.listing):
            return None
        columns: Sequence[Expr] | None = around.qualified(parts)
        if columns is None:
            base = around.resolve(parts, span, enclosed=True)
            columns = all_fields(base, span) if base is not None and isinstance(base.type, StructType) else None
        return [self._record(c) for c in columns] if columns is not None else None

    def nullable(self) -> Scope:
        """The scope with every column nullable (the outer side of a join)."""
        sources = [
            Source(s.qualifier, tuple(map(_nullable, s.columns)), s.repeated, s.shown, _nullable_metadata(s))
            for s in self.sources
        ]
        merged = {n: _nullable(e) for n, e in self.merged.items()}
        return Scope(sources, self.parent, merged, set(self.hidden))

    def joined_by(self, names: Sequence[str], hidden: Set[int]) -> Scope:
        """The scope behind JOIN … USING `names`: ``t.*`` has first what joins before hide, then what this one hides, once."""
        order = {name.lower(): place for place, name in enumerate(names)}
        merged = {e.id for e in self.merged.values() if isinstance(e, Col)}

        def place(column: Col) -> int:
            if column.id in hidden:
                return order[column.name.lower()]
            return -1 if column.id in self.hidden and column.id not in merged else len(order)

        def kept(source: Source) -> tuple[Col, ...]:
            once = [c for c in source.columns if c.id not in hidden or c.id not in source.repeated]
            return tuple(sorted(once, key=place))

        sources = [Source(s.qualifier, kept(s), s.repeated, s.shown) for s in self.sources]
        return replace(self, sources=sources, hidden=self.hidden | hidden)

    def resolve(self, parts: Sequence[str], span: Span | None, *, enclosed: bool = False) -> Expr | None:
        """The column, field or alias that dotted names stand for; None if nothing does.

        Order as in Spark: columns here, functions without parentheses (which are no columns: None), aliases of earlier select
        items, then those of the enclosing query. If this is one, they are columns alone: no subquery sees aliases around it.
        """
        name = parts[0].lower()
        nearest = self.lambdas.get(name) or self.overrides.get(name)
        if nearest is not None:
            return fields_of(nearest, parts[1:], span)
        found = self.local(parts, span) if self.outputs is None else self.outputs.find(self, parts, span)
        if found is not None or (len(parts) == 1 and name in BARE):
            return found
        for aliases in (self.lateral if not enclosed else {}, self.fallbacks if len(parts) == 1 else {}):
            if name in aliases:
                if name in self.ambiguous_lateral:
                    raise UserError(
                        "AMBIGUOUS_LATERAL_COLUMN_ALIAS",
                        f"Lateral column alias `{parts[0]}` is ambiguous and has several matches.",
                        span=span,
                    )
                if aliases is self.lateral and name in self.unsteady_lateral:
                    raise unsupported(f"`{parts[0]}`, an alias of what differs from call to call,", span)
                return fields_of(aliases[name], parts[1:], span)
        if self.parent is not None and not enclosed:  # as Spark, which looks no further out than the next query
            outer = self.parent.resolve(parts, span, enclosed=True)
            if outer is not None:
                return self._record(outer)
        return None

    def reading(self, *inner: Scope) -> Scope:
        """This scope, of a query that reads of enclosing queries what `inner` scopes, of parts of its FROM, read of them."""
        for scope in inner:
            self.outer_refs.update(scope.outer_refs)
        return self

    def _record(self, expr: Expr) -> Expr:
        if isinstance(expr, Col):
            self.outer_refs.setdefault(expr.id, expr)
            return replace(expr, outer=True)
        if isinstance(expr, Call):
            return replace(expr, args=tuple(self._record(a) for a in expr.args))
        return expr

    def local(self, parts: Sequence[str], span: Span | None) -> Expr | None:
        """The column of these relations, or a field of it, that dotted names stand for; raises AMBIGUOUS_REFERENCE."""
        for depth in range(min(3, len(parts) - 1), -1, -1):
            qualifier = tuple([p.lower() for p in parts[:depth]]) if depth else ()
            matches = self._matches(qualifier, parts[depth])
            merged = self.merged.get(parts[0].lower()) if depth == 0 and self.merged else None
            if len(matches) + (merged is not None) > 1:
                shared: list[tuple[tuple[str, ...], str]] = [((), parts[0])] if merged is not None else []
                raise ambiguous(parts[: depth + 1], [*shared, *((q, c.name) for q, c in matches)], span)
            if matches:
                column = matches[0][1]
                return fields_of(_spelled(column, parts[depth]), parts[depth + 1 :], span)
            if merged is not None:
                return fields_of(_spelled(merged, parts[0]), parts[1:], span)
        return self._file_metadata(parts, span)

    def _file_metadata(self, parts: Sequence[str], span: Span | None) -> Expr | None:
        if METADATA in self.lateral:
            raise unsupported(f"{METADATA} beside an alias of that name", span)
        for depth in range(min(3, len(parts) - 1), -1, -1):
            if parts[depth].lower() != METADATA:
                continue
            qualifier = tuple([p.lower() for p in parts[:depth]])
            named = [s for s in self.sources if not depth or s.qualifier[-depth:] == qualifier]
            found = [(s.qualifier, s.metadata) for s in named if s.metadata is not None]
            if len(found) > 1:
                raise ambiguous(parts, [(q, METADATA) for q, _ in found], span)
            if found:
                return found[0][1].found(parts[depth], parts[depth + 1 :], span)
        return None

    def _matches(self, qualifier: tuple[str, ...], name: str) -> list[tuple[tuple[str, ...], Col]]:
        wanted = name.lower()
        found: list[tuple[tuple[str, ...], Col]] = []
        for source in self.sources:
            if qualifier and source.qualifier[-len(qualifier) :] != qualifier:
                continue
            if columns := source.named(wanted):
                found += [(source.qualifier, c) for c in columns if qualifier or c.id not in self.hidden]
        return found[:1] if len(found) > 1 and len({c.id for _, c in found}) == 1 else found

    def missing(self, parts: Sequence[str], span: Span | None) -> UserError:
        """UNRESOLVED_COLUMN with the nearest names in scope."""
        if self.outputs is not None:
            return self.outputs.missing(parts, span)
        return unresolved(parts, list(dict.fromkeys(c.name for c in self.all_columns())), span)


def unresolved(parts: Sequence[str], names: Sequence[str], span: Span | None) -> UserError:
    """UNRESOLVED_COLUMN with the nearest of the known `names`."""
    shown = ".".join(quote_part(p) for p in parts)
    if not names:
        return UserError(
            "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
            f"A column, variable, or function parameter with name {shown} cannot be resolved.",
            span=span,
        )
    near = get_close_matches(parts[-1].lower(), [n.lower() for n in names], n=5, cutoff=0.0)
    by_lower = {n.lower(): n for n in reversed(names)}
    suggestions = ", ".join(quote_part(by_lower[n]) for n in near)
    return UserError(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        f"A column, variable, or function parameter with name {shown} cannot be resolved. "
        f"Did you mean one of the following? [{suggestions}].",
        span=span,
    )


def ambiguous(parts: Sequence[str], found: Sequence[tuple[tuple[str, ...], str]], span: Span | None) -> UserError:
    """AMBIGUOUS_REFERENCE between columns with their qualifiers."""
    names = ", ".join(f"`{'`.`'.join((*qualifier, name))}`" for qualifier, name in found[:5])
    shown = ".".join(f"`{p}`" for p in parts)
    return UserError("AMBIGUOUS_REFERENCE", f"Reference {shown} is ambiguous, could be: [{names}].", span=span)


def _spelled(expr: Expr, name: str) -> Expr:
    """The column under the spelling that the user wrote."""
    if isinstance(expr, Col) and expr.name != name:
        return Col(expr.type, expr.nullable, expr.id, name, expr.outer)  # far faster than `replace`
    if isinstance(expr, Call) and expr.data == ("merged",):
        return replace(expr, shown=name)
    return expr


def _nullable(expr: E) -> E:
    if isinstance(expr, Col) and not expr.nullable:
        return cast(E, Col(expr.type, True, expr.id, expr.name, expr.outer))
    return expr


def _nullable_metadata(source: Source) -> FileMetadata | None:
    found = source.metadata
    return None if found is None else FileMetadata(_nullable(found.column), found.refused)


def fields_of(expr: Expr, names: Sequence[str], span: Span | None) -> Expr:
    """``expr.a.b``: struct fields and map keys, case-insensitive for fields."""
    for name in names:
        expr = field_of(expr, name, span)
    return expr


def field_of(expr: Expr, name: str, span: Span | None) -> Expr:
    """One field of a struct, one key of a map; NULL of what has no type."""
    t = plain(expr.type)
    if isinstance(t, StructType):
        return _field(expr, _field_in(t, name, span), name, span)
    if isinstance(t, MapType) and implicit_type(STRING, (t.key,)) is not None:
        return Call(t.value, True, "_map_item", (expr, coerced(Lit(STRING, False, name), t.key)), None, (), span)
    if isinstance(t, ArrayType) and isinstance(t.element, StructType):
        index, f = _field_in(t.element, name, span)
        fields = array(f.type, t.contains_null or f.nullable)
        return Call(fields, expr.nullable, "_array_field", (expr,), name, (index,), span)
    if t == VOID and not isinstance(expr, LambdaVar):
        return Lit(VOID, True, None)
    if isinstance(t, ArrayType):
        message = f'The index of an array must be of an integral type, but it is the text "{name}".'
        raise UserError("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", message, span=span)
    raise UserError(
        "INVALID_EXTRACT_BASE_FIELD_TYPE",
        f'Can\'t extract a value from a value of type "{t.sql}". Need a complex type [STRUCT, ARRAY, MAP].',
        span=span,
    )


def all_fields(expr: Expr, span: Span | None) -> list[Expr]:
    """Each field of a struct, also where names differ by case only, so that none could be named."""
    t = plain(expr.type)
    assert isinstance(t, StructType)
    return [_field(expr, (index, f), f.name, span) for index, f in enumerate(t.fields)]


def _field(expr: Expr, found: tuple[int, StructField], shown: str, span: Span | None) -> Expr:
    index, f = found
    return Call(f.type, expr.nullable or f.nullable, "_field", (expr,), shown, (index,), span)


def _field_in(t: StructType, name: str, span: Span | None) -> tuple[int, StructField]:
    indexes = [i for i, f in enumerate(t.fields) if f.name.lower() == name.lower()]
    if not indexes:
        known = ", ".join(quote_part(f.name) for f in t.fields)
        raise UserError("FIELD_NOT_FOUND", f"No such struct field {quote_part(name)} in {known}.", span=span)
    if len(indexes) > 1:
        raise UserError(
            "AMBIGUOUS_REFERENCE_TO_FIELDS",
            f"Ambiguous reference to the field {quote_part(name)}. It appears {len(indexes)} times in the schema.",
            span=span,
        )
    return indexes[0], t.fields[indexes[0]]


__all__ = ["Scope", "Source", "all_fields", "field_of", "fields_of", "quote_if_needed", "quote_part"]
