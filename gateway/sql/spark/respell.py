"""The user's text for Spark: names of tables and parameter markers replaced by position, everything else untouched.

Spark sees one catalog, ``spark_catalog``, in which each schema of the gateway's catalogs is a database (`database`). The
session's own database is the current one there, so that most names need no change. What is replaced is decided on tokens
alone: the text may hold constructs that the own parser does not know.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import Token

from gateway.catalog.base import Draft
from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.parameters import Given
from gateway.sql.read.statement import Kind, Statement
from gateway.sql.read.tokens import END, QUOTED, is_name, span_of_token
from gateway.sql.spark.allowed import check_allowed
from gateway.sql.spark.literals import spark_given
from gateway.sql.spark.made_table import TABLE_FORMATS
from gateway.sqltypes import quote_part, quoted_text

SPARK_CATALOG = "spark_catalog"
MAIN = "main"
_FOREIGN = "__"  # before and between the names of a database that stands for a schema outside of main

# A name behind one of these words is a table's.
_BEFORE_TABLE = frozenset(
    {"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "OVERWRITE", "USING", "HISTORY", "DETAIL", "OPTIMIZE"}
)
_BEFORE_TABLE |= {"VACUUM", "EXISTS", "DESCRIBE", "DESC", "REORG", "EXTENDED", "FORMATTED", "RESTORE", "PARTITIONS"}
# A name behind one of these words, in a statement that writes, is what it writes to.
_BEFORE_TARGET = frozenset({"INTO", "UPDATE", "OVERWRITE", "OPTIMIZE", "VACUUM", "REORG", "RESTORE"})
_BEFORE_TARGET_TABLE = frozenset(
    {"INTO", "OVERWRITE", "ALTER", "TRUNCATE", "CREATE", "REPLACE", "ANALYZE", "RESTORE", "REORG"}
)
# Functions whose arguments may hold a FROM.
_FROM_INSIDE = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION"})
# Where a FROM clause that a comma belongs to would end.
_CLAUSES = frozenset({"SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SET", "VALUES", "WINDOW", "BY", "|>"})
_PATH_FORMATS = frozenset({"DELTA", "PARQUET", "CSV", "JSON", "TEXT", "ORC", "AVRO", "BINARYFILE", "XML"})
_STAMP_DIGITS = len("yyyyMMddHHmmssSSS")


@dataclass(frozen=True, slots=True)
class Mention:
    """A table that a text names, or seems to: over-counting is harmless."""

    catalog: str
    schema: str
    table: str
    is_target: bool
    span: Span
    last: int  # index of the token that ends its name
    is_relation: bool = False  # it is read
    draft: Draft | None = None  # of a table that is made under another name

    @property
    def name(self) -> tuple[str, str, str]:
        """Catalog, schema and table."""
        return self.catalog, self.schema, self.table

    @property
    def in_spark(self) -> tuple[str, str]:
        """Database and table, as Spark calls them."""
        return database(self.catalog, self.schema), self.draft.name if self.draft is not None else self.table


@dataclass(frozen=True, slots=True)
class Called:
    """A function that a text calls, or seems to: over-counting is harmless."""

    catalog: str
    schema: str
    function: str


@dataclass(frozen=True, slots=True)
class Head:
    """What stands in Spark's text for the user's up to an offset: another way to name what a statement makes."""

    stop: int
    text: str


@dataclass(frozen=True, slots=True)
class Respelt:
    """Text for Spark, the tables and functions in it, and how positions in it map back.

    `starts` and `origins` are parallel: from the offset `starts[i]` of `text` on, offsets are those of the original from
    `origins[i]` on, if `moves[i]`; else all of the piece stands for that one place. `paths` are the formats and real paths,
    joined by a comma and a space, of files that are named by path, which Spark must otherwise not do.
    """

    text: str
    mentions: tuple[Mention, ...]
    starts: tuple[int, ...]
    origins: tuple[int, ...]
    moves: tuple[bool, ...]
    calls: tuple[Called, ...] = ()
    paths: tuple[str, ...] = ()

    def original(self, offset: int) -> int:
        """Offset in the user's text of the one in `text`."""
        i = max(0, bisect_right(self.starts, offset) - 1)
        return self.origins[i] + (offset - self.starts[i] if self.moves[i] else 0)


@dataclass(frozen=True, slots=True)
class Naming:
    """Where names are looked up.

    Attributes:
        catalog, schema: the session's.
        has_schema: whether a catalog has a schema; False also for a catalog that does not exist.
        path: the real path of one that a statement names; raises PATH_NOT_ALLOWED.
        location: where a new table is made; raises UserError for a catalog that is read-only.
        version: the newest version of a table, None if there is no such table.
        views: lower-cased names of temporary views, which hide tables.
        spells_out: whether a function (True) or a relation of that full name is to be named in full where a text does not:
            what runs under another current schema than it was made under.
        pins: whether tables that a query names twice are read at one version, which a text that is kept must not say.
        nanoseconds: whether Spark keeps them in timestamps of the session.
        tells_user: whether Spark knows the user of the session.
    """

    catalog: str
    schema: str
    has_schema: Callable[[str, str], bool]
    path: Callable[[str], str]
    location: Callable[[str, str, str], Draft]
    version: Callable[[str, str, str], int | None]
    views: frozenset[str] = frozenset()
    pins: bool = True
    spells_out: Callable[[bool, str, str, str], bool] | None = None
    nanoseconds: bool = False
    tells_user: bool = True


def database(catalog: str, schema: str) -> str:
    """Spark's database for a schema."""
    if catalog.lower() == MAIN:
        return schema.lower()
    return f"{_FOREIGN}{catalog.lower()}{_FOREIGN}{schema.lower()}"


def names_back(text: str, catalogs: Sequence[str]) -> str:
    """An error's text with the gateway's names for Spark's."""
    for catalog in catalogs:
        if catalog.lower() == MAIN:
            continue
        foreign = f"{_FOREIGN}{catalog}{_FOREIGN}"
        for inner in ("`", ""):
            for outer in ("`", ""):
                own = f"{outer}{SPARK_CATALOG}{outer}.{inner}{foreign}"
                text = text.replace(own, f"{outer}{catalog}{outer}.{inner}")
            text = text.replace(f"{inner}{foreign}", f"{inner}{catalog}{inner}.{inner}")
    for quote in ("`", ""):
        text = text.replace(f"{quote}{SPARK_CATALOG}{quote}.", f"{quote}{MAIN}{quote}.")
    return text


def respell(
    statement: Statement, naming: Naming, parameters: Mapping[int | str, Given], head: Head | None = None
) -> Respelt:
    """The statement for Spark, its beginning replaced by `head`.

    Raises:
        UnsupportedError: for what must not reach Spark (code, foreign sources), by name and position.
        UserError: PATH_NOT_ALLOWED; UNBOUND_SQL_PARAMETER; TABLE_OR_VIEW_NOT_FOUND for names that are no schema's here.
    """
    check_allowed(statement, naming.nanoseconds, naming.tells_user)
    edits: list[tuple[Span, str]] = []
    for marker in statement.markers:
        key: int | str = marker.span.start if marker.name is None else marker.name.lower()
        given = parameters.get(key)
        if given is None:
            shown = "?" if marker.name is None else f":{marker.name}"
            raise UserError("UNBOUND_SQL_PARAMETER", f"Found the unbound parameter: {shown}.", span=marker.span)
        edits.append((marker.span, spark_given(given)))
    mentions: list[Mention] = []
    paths = []
    calls = []
    names = _chains(statement)
    for first, last in called_names(statement):
        call, prefix = called(statement, first, last, naming)
        calls.append(call)
        if (first, last) in names and (prefix is not None or _names_table(statement, first)):
            continue
        if prefix is None and naming.spells_out is not None and last == first:
            start = statement.tokens[first].start
            prefix = Span(start, start) if naming.spells_out(True, call.catalog, call.schema, call.function) else None
        if prefix is not None:
            # With two parts: CREATE VIEW in Spark refuses a function of three.
            edits.append((prefix, f"{quote_part(database(call.catalog, call.schema))}."))
    for first, last in names:
        if head is not None and statement.tokens[first].start < head.stop:
            continue
        if _is_path(statement, first, last, naming):
            span, path = _path_of(statement, first, last, naming)
            edits.append((span, quote_part(path)))
            paths.append(f"{_text(statement.tokens[first])}, {path}")
            continue
        mentions.append(_mention(statement, first, last, naming, edits))
        edits += _at_version(statement, last + 1)
        if mentions[-1].is_target and _makes_table(statement, first):
            draft = naming.location(*mentions[-1].name)
            edits.append(_located(statement, last, f"file:{draft.folder}"))
            if draft.name:
                mentions[-1] = replace(mentions[-1], draft=draft)
                edits.append((span_of_token(statement.tokens[last]), quote_part(draft.name)))
    if statement.kind is Kind.QUERY and naming.pins:
        edits += _pins(statement, naming, mentions)
    if head is not None:
        edits = [e for e in edits if e[0].start >= head.stop]
        edits.append((Span(statement.span.start, head.stop), head.text))
    return _edited(statement, edits, tuple(mentions), tuple(calls), tuple(paths))


def called_names(statement: Statement) -> list[tuple[int, int]]:
    """Token indices, both inclusive, of each dotted name that may be a function's: before a bracket, or behind FUNCTION."""
    words = statement.words
    found = []
    for first, word in enumerate(words):
        if not is_name(word) or (first and words[first - 1] == "."):
            continue
        last = first
        while words[last + 1] == "." and is_name(words[last + 2]):
            last += 2
        if words[last + 1] == "(" or (first and "FUNCTION" in words[max(0, first - 2) : first]):
            found.append((first, last))
    return found


def called(statement: Statement, first: int, last: int, naming: Naming) -> tuple[Called, Span | None]:
    """The function that a name means, and the piece of the text in front of its last part that names a schema."""
    tokens = statement.tokens
    parts = [_text(t) for t in tokens[first : last + 1 : 2]]
    if len(parts) == 3 and naming.has_schema(parts[0], parts[1]):
        return Called(*parts), Span(tokens[first].start, tokens[last].start)
    if len(parts) == 2 and naming.has_schema(naming.catalog, parts[0]):
        return Called(naming.catalog, *parts), Span(tokens[first].start, tokens[last].start)
    return Called(naming.catalog, naming.schema, parts[-1]), None


def _chains(statement: Statement) -> list[tuple[int, int]]:
    """Token indices, both inclusive, of each dotted name that is no function."""
    words, tokens = statement.words, statement.tokens
    found = []
    i = 0
    while words[i] != END:
        if not is_name(words[i]) or (i and words[i - 1] == "."):
            i += 1
            continue
        last = i
        while words[last + 1] == "." and is_name(words[last + 2]):
            last += 2
        glued = words[last + 1] == "(" and tokens[last].end + 1 == tokens[last + 1].start
        if not (glued and not _names_table(statement, i)):
            found.append((i, last))
        i = last + 1
    return found


def _is_path(statement: Statement, first: int, last: int, naming: Naming) -> bool:
    """Whether a dotted name is a format and a path. A column of a table called like a format may hold no slash."""
    tokens = statement.tokens
    if last != first + 2 or _text(tokens[first]).upper() not in _PATH_FORMATS:
        return False
    if naming.has_schema(naming.catalog, _text(tokens[first])):
        return False
    table = _is_target(statement, first) or _names_table(statement, first)
    return table or (statement.words[last] == QUOTED and "/" in _text(tokens[last]))


def _path_of(statement: Statement, first: int, last: int, naming: Naming) -> tuple[Span, str]:
    span = span_of_token(statement.tokens[last])
    if _is_target(statement, first):
        raise unsupported("writing to a path", span)
    try:
        return span, naming.path(_text(statement.tokens[last]))
    except UserError as error:
        raise error.at(span) from None


def _mention(statement: Statement, first: int, last: int, naming: Naming, edits: list[tuple[Span, str]]) -> Mention:
    """The table that a dotted name stands for, or would if it is one; adds the edit that it needs."""
    tokens = statement.tokens
    parts = [_text(t) for t in tokens[first : last + 1 : 2]]
    target = _is_target(statement, first)
    is_table = target or _names_table(statement, first)
    catalog, schema, used = naming.catalog, naming.schema, 0
    if len(parts) >= 3 and naming.has_schema(parts[0], parts[1]):
        catalog, schema, used = parts[0], parts[1], 2
    elif len(parts) >= 2 and naming.has_schema(naming.catalog, parts[0]):
        schema, used = parts[0], 1
    end = min(last, first + 2 * used)
    span = Span(tokens[first].start, tokens[end].end + 1)
    if is_table and used != len(parts) - 1:
        # Spark would look in its own databases, where another catalog's schema may have that name.
        shown = ".".join(quote_part(part) for part in parts)
        raise UserError(
            "TABLE_OR_VIEW_NOT_FOUND",
            f"The table or view {shown} cannot be found. Verify the spelling and correctness of the schema and catalog.",
            span=Span(tokens[first].start, tokens[last].end + 1),
        )
    foreign = catalog.lower() != MAIN
    if used == 2 or (used == 1 and foreign and (is_table or len(parts) > 2)):
        stop = tokens[first + 2 * (used - 1)].end + 1
        spelt = quote_part(database(catalog, schema))
        is_call = statement.words[last + 1] == "(" and not target
        edits.append((Span(tokens[first].start, stop), spelt if is_call else f"{SPARK_CATALOG}.{spelt}"))
    elif is_table and not used and naming.spells_out is not None:
        name = parts[used]
        own = name.lower() not in _defined_tables(statement) and naming.spells_out(False, catalog, schema, name)
        called_too = statement.words[last + 1] == "(" and naming.spells_out(True, catalog, schema, name)
        if own or called_too:
            prefix = "" if called_too else f"{SPARK_CATALOG}."
            edits.append((Span(span.start, span.start), f"{prefix}{quote_part(database(catalog, schema))}."))
    relation = is_table and not target and end == last
    return Mention(catalog, schema, parts[used], target, span, end, relation)


def _names_table(statement: Statement, index: int) -> bool:
    """Whether the name that starts at token `index` stands where a table is named."""
    words = statement.words
    before = words[index - 1] if index else END
    if before == "FROM":
        return _is_clause(words, index - 1)
    if before in _BEFORE_TABLE:
        return True
    if before == "(":  # FROM (a JOIN b …), JOIN (a)
        outer = words[index - 2] if index > 1 else END
        return outer in ("FROM", "JOIN", ",", "(") and _names_table(statement, index - 1)
    if before != ",":
        return False
    at = _opening(words, index - 1, _CLAUSES)
    return words[at] == "FROM" and _is_clause(words, at)


def _is_clause(words: Sequence[str], index: int) -> bool:
    """Whether the FROM at `index` opens a clause: it may also stand in a function's arguments or in a comparison."""
    if index and words[index - 1] == "DISTINCT" and index > 1 and words[index - 2] in ("IS", "NOT"):
        return False
    at = _opening(words, index, frozenset({"SELECT", "DELETE"}))
    return words[at] != "(" or at == 0 or words[at - 1] not in _FROM_INSIDE


def _opening(words: Sequence[str], index: int, stops: frozenset[str]) -> int:
    """Index of the nearest FROM, word of `stops` or open bracket before `index` outside of closed brackets; 0 if none."""
    depth = 0
    for at in range(index - 1, -1, -1):
        word = words[at]
        if word == ")":
            depth += 1
        elif word == "(":
            if not depth:
                return at
            depth -= 1
        elif not depth and (word == "FROM" or word in stops):
            return at
    return 0


def _is_target(statement: Statement, index: int) -> bool:
    if statement.kind is Kind.QUERY or not index:
        return False
    words = statement.words
    before = words[index - 1]
    outer = words[index - 2] if index > 1 else END
    if before in _BEFORE_TARGET:
        return not (before == "RESTORE" and words[index] == "TABLE")
    if before == "TABLE":
        return outer in _BEFORE_TARGET_TABLE and words[index : index + 2] not in (["IF", "NOT"], ["IF", "EXISTS"])
    return (before == "FROM" and outer == "DELETE") or (before == "EXISTS" and outer in ("IF", "NOT"))


def _pins(statement: Statement, naming: Naming, mentions: list[Mention]) -> list[tuple[Span, str]]:
    """``VERSION AS OF`` behind each of several mentions of a table, so that all of them read the same version."""
    hidden = naming.views | _common_tables(statement)
    read: dict[tuple[str, ...], list[Mention]] = {}
    for mention in mentions:
        bare = mention.last == 0 or statement.words[mention.last - 1] != "."
        if mention.is_relation and not (bare and mention.table.lower() in hidden):
            read.setdefault(tuple(part.lower() for part in mention.name), []).append(mention)
    edits = []
    for several in read.values():
        free = [m for m in several if not _travels(statement, m.last + 1)]
        version = naming.version(*free[0].name) if len(free) > 1 else None
        if version is not None:
            edits += [(Span(m.span.stop, m.span.stop), f" VERSION AS OF {version}") for m in free]
    return edits


def _at_version(statement: Statement, index: int) -> list[tuple[Span, str]]:
    """``@v12`` and ``@20240131235959999`` behind a table, which only Databricks knows, in Spark's words."""
    words, tokens = statement.words, statement.tokens
    if words[index] != "@":
        return []
    text = _text(tokens[index + 1])
    span = Span(tokens[index].start, tokens[index + 1].end + 1)
    if text[:1] in ("v", "V") and text[1:].isdecimal():
        return [(span, f" VERSION AS OF {text[1:]}")]
    if len(text) == _STAMP_DIGITS and text.isdecimal():
        day, clock = f"{text[:4]}-{text[4:6]}-{text[6:8]}", f"{text[8:10]}:{text[10:12]}:{text[12:14]}.{text[14:]}"
        return [(span, f" TIMESTAMP AS OF '{day} {clock}'")]
    return []


def _travels(statement: Statement, index: int) -> bool:
    """Whether a version or a time stands at a token."""
    words = statement.words
    return words[index] in ("VERSION", "TIMESTAMP", "FOR", "@", "SYSTEM_VERSION", "SYSTEM_TIME")


def _common_tables(statement: Statement) -> set[str]:
    """Names that may be those of common table expressions: what stands before AS and a bracket."""
    words, tokens = statement.words, statement.tokens
    if "WITH" not in words:
        return set()
    found = set()
    for i, word in enumerate(words[:-1]):
        if word in ("WITH", "RECURSIVE", ",") and is_name(words[i + 1]):
            found.add(tokens[i + 1].text.lower())
    return found


def _defined_tables(statement: Statement) -> set[str]:
    """Names that a WITH defines: ``name [(columns)] AS (``."""
    words, tokens = statement.words, statement.tokens
    found = set()
    for i, word in enumerate(words[:-1]):
        if word not in ("WITH", "RECURSIVE", ",") or not is_name(words[i + 1]):
            continue
        at = i + 2
        if words[at] == "(" and ")" in words[at:]:
            at = words.index(")", at) + 1
        if words[at : at + 2] == ["AS", "("]:
            found.add(str(tokens[i + 1].text).lower())
    return found


def _makes_table(statement: Statement, index: int) -> bool:
    """Whether the name at token `index` is that of a table which the statement makes."""
    words = statement.words
    if words[0] not in ("CREATE", "REPLACE") or words[index : index + 2] == ["IF", "NOT"]:
        return False
    return words[1:index] in (
        ["TABLE"],
        ["OR", "REPLACE", "TABLE"],
        ["TABLE", "IF", "NOT", "EXISTS"],
    )


def _located(statement: Statement, last: int, location: str) -> tuple[Span, str]:
    """The clauses that make the new table one of Delta in its folder, and where they go."""
    words, tokens = statement.words, statement.tokens
    clause = f" LOCATION {quoted_text(location)}"
    at = last + 1
    if words[at] in ("LIKE", "SHALLOW", "DEEP", "CLONE"):
        return Span(statement.span.stop, statement.span.stop), clause
    if words[at] == "(":
        depth = 0
        while words[at] != END:
            depth += (words[at] == "(") - (words[at] == ")")
            at += 1
            if not depth:
                break
    if words[at] == "USING" and words[at + 1] in ("DELTA", *TABLE_FORMATS):
        at += 2
    else:
        clause = f" USING delta{clause}"
    stop = tokens[at - 1].end + 1
    return Span(stop, stop), clause


def _text(token: Token) -> str:
    return str(token.text)


def _edited(
    statement: Statement,
    edits: list[tuple[Span, str]],
    mentions: tuple[Mention, ...],
    calls: tuple[Called, ...],
    paths: tuple[str, ...],
) -> Respelt:
    pieces: list[str] = []
    starts: list[int] = []
    origins: list[int] = []
    moves: list[bool] = []
    size = 0

    def add(text: str, origin: int, moving: bool) -> None:
        nonlocal size
        if text:
            pieces.append(text)
            starts.append(size)
            origins.append(origin)
            moves.append(moving)
            size += len(text)

    at, whole = statement.span.start, statement.span.stop
    for span, text in sorted(edits, key=lambda e: e[0].start):
        add(statement.text[at : span.start], at, True)
        add(text, span.start, False)
        at = span.stop
    add(statement.text[at:whole], at, True)
    return Respelt("".join(pieces), mentions, tuple(starts), tuple(origins), tuple(moves), calls, paths)


__all__ = [
    "Called",
    "Head",
    "Mention",
    "Naming",
    "Respelt",
    "called",
    "called_names",
    "database",
    "names_back",
    "respell",
]
