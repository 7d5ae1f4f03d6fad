"""A query's table names made known to Spark: each schema that it names becomes a database of its own, its tables external ones.

Spark's Delta catalog knows no second catalog, so ``main.s.t`` cannot be said there. The names are respelt in the text, by the
position of their tokens: ``[main.|samples.]s.t`` where a table of that name is in the catalog, and nothing else.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.catalog.local import LocalCatalog
from gateway.pipelines.followed import check_followed
from gateway.pipelines.jobs.places import CATALOG
from gateway.sql.read.tokens import QUOTED, scan
from gateway.sqltypes import quote_part, quoted_text

Catalogs = Mapping[str, LocalCatalog]


def _is_name(word: str) -> bool:
    return word == QUOTED or (word != "" and (word[0].isalpha() or word[0] == "_"))


def respelt(text: str, catalogs: Catalogs, schema: str, prefix: str) -> tuple[str, dict[tuple[str, str], set[str]]]:
    """The text with Spark's names, and the tables that it names by catalog and schema.

    Args:
        text: one statement; what cannot be scanned is left as it is, for Spark to refuse.
        catalogs: by lower-case name.
        schema: the current schema of `main`, for names of one part.
        prefix: what names of databases start with.
    """
    tokens, words, error = scan(text)
    if error is not None:
        return text, {}
    known = {(c, s.lower()): s for c, catalog in catalogs.items() for s in catalog.schemas()}
    tables: dict[tuple[str, str], set[str]] = {}
    pieces, done, index = [], 0, 0
    while index < len(tokens):
        names = _dotted(tokens, words, index)
        found = _table(names, known, catalogs)
        if found is None:
            current = _current(names, catalogs, schema)
            if current is not None:
                tables.setdefault((CATALOG, schema.lower()), set()).add(current)
            index += max(1, 2 * len(names) - 1)
            continue
        catalog, name, table, parts = found
        tables.setdefault((catalog, name), set()).add(table)
        last = tokens[index + 2 * (parts - 2)]  # the token of the schema
        pieces += [text[done : tokens[index].start], f"spark_catalog.{quote_part(database(prefix, catalog, name))}"]
        done = last.end + 1
        index += 2 * len(names) - 1
    return "".join(pieces) + text[done:], tables


def database(prefix: str, catalog: str, schema: str) -> str:
    """The database that stands for a schema."""
    return f"{prefix}_{catalog}_{schema}".lower()


def _dotted(tokens: Any, words: list[str], index: int) -> list[str]:
    """The parts of the name that starts at `index`; empty if there is none."""
    names: list[str] = []
    while _is_name(words[index]):
        names.append(tokens[index].text)
        if words[index + 1] != "." or not _is_name(words[index + 2]):
            break
        index += 2
    return names


def _table(
    names: list[str], known: Mapping[tuple[str, str], str], catalogs: Catalogs
) -> tuple[str, str, str, int] | None:
    """Catalog, schema (lower case), table and number of parts of the table that `names` start with."""
    lower = [n.lower() for n in names]
    for parts in (3, 2):
        if len(names) < parts:
            continue
        catalog = lower[0] if parts == 3 else CATALOG
        schema, table = lower[parts - 2], lower[parts - 1]
        if (catalog, schema) in known:
            for spelling in catalogs[catalog].tables(known[catalog, schema]):
                if spelling.lower() == table:
                    return catalog, schema, spelling, parts
    return None


def _current(names: list[str], catalogs: Catalogs, schema: str) -> str | None:
    if not names:
        return None
    same = (t for t in catalogs[CATALOG].tables(schema) if t.lower() == names[0].lower())
    return next(same, None)


@contextmanager
def registered(spark: Any, text: str, catalogs: Catalogs, schema: str) -> Iterator[str]:
    """The text that Spark understands, while its tables are registered in databases of their own."""
    prefix = f"gateway_{uuid.uuid4().hex[:12]}"
    changed, tables = respelt(text, catalogs, schema, prefix)
    tables.setdefault((CATALOG, schema.lower()), set())
    before = spark.catalog.currentDatabase()
    made: list[str] = []
    try:
        for (catalog, name), members in tables.items():
            made.append(database(prefix, catalog, name))
            spark.sql(f"CREATE DATABASE {quote_part(made[-1])}")
            spelling = next((s for s in catalogs[catalog].schemas() if s.lower() == name), name)
            for table in sorted(members):
                folder = Path(catalogs[catalog].table_location(spelling, table)).resolve()
                check_followed(folder, catalogs[catalog].within, writes=False)
                name_there = f"{quote_part(made[-1])}.{quote_part(table)}"
                spark.sql(f"CREATE TABLE {name_there} USING delta LOCATION {quoted_text(str(folder))}")
        spark.catalog.setCurrentDatabase(database(prefix, CATALOG, schema))
        yield changed
    finally:
        spark.catalog.setCurrentDatabase(before)
        for name in made:
            spark.sql(f"DROP DATABASE IF EXISTS {quote_part(name)} CASCADE")
