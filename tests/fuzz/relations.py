"""What stands in FROM: VALUES, ranges, tables, derived tables, PIVOT and UNPIVOT, joins of all kinds, LATERAL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.fuzz.expressions import Expressions
from tests.fuzz.scope import Column, Scope, values_relation
from tests.fuzz.tree import Tree, expr, optional, relation

#: Few values of each type, so that rows meet in joins and fall into groups.
DOMAIN: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "2", "3", "-1"),
    "bigint": ("0L", "1L", "2L", "10L"),
    "string": ("'a'", "'b'", "'B'", "''", "'1'"),
    "double": ("0D", "1D", "1.5D", "-2.25D"),
    "decimal(5,2)": ("CAST(0.00 AS DECIMAL(5,2))", "CAST(1.50 AS DECIMAL(5,2))", "CAST(2.00 AS DECIMAL(5,2))"),
    "boolean": ("true", "false"),
    "date": ("DATE'2024-02-29'", "DATE'2024-03-01'", "DATE'1999-12-31'"),
    "timestamp": (
        "TIMESTAMP'2024-02-29 13:00:00'",
        "TIMESTAMP'2024-03-10 02:30:00'",
        "TIMESTAMP'1999-12-31 23:59:59.5'",
    ),
    "array<int>": ("array(1, 2)", "array(3)", "CAST(array() AS ARRAY<INT>)", "array(1, NULL)"),
    "struct<a:int,b:string>": ("named_struct('a', 1, 'b', 'x')", "named_struct('a', 2, 'b', CAST(NULL AS STRING))"),
}
STRANGE = ("CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)")
SIGNED_ZERO = "CAST('-0.0' AS DOUBLE)"
_NAMES = {
    "int": ("k", "i", "n"),
    "bigint": ("k", "m", "big"),
    "string": ("s", "name", "k"),
    "double": ("d", "x", "Rate"),
    "decimal(5,2)": ("p", "price"),
    "boolean": ("f", "flag"),
    "date": ("dt", "day"),
    "timestamp": ("ts", "At"),
    "array<int>": ("xs", "items"),
    "struct<a:int,b:string>": ("st", "rec"),
}
_COMMON = ("int", "int", "string", "int", "bigint", "double", "decimal(5,2)", "date", "boolean", "timestamp", "string")
_RARE = ("array<int>", "struct<a:int,b:string>")
_JOINS = (
    "JOIN",
    "INNER JOIN",
    "LEFT JOIN",
    "LEFT OUTER JOIN",
    "RIGHT JOIN",
    "FULL OUTER JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    "CROSS JOIN",
)


@dataclass(slots=True)
class Relation:
    """Text and the columns that it brings into scope; `bare` are columns that have no qualifier."""

    tree: Tree
    columns: list[Column] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Table:
    """A table or a view that is there: how it is written, its columns' names and types."""

    text: str
    columns: tuple[tuple[str, str], ...]


#: Makes a query with so much depth left that sees columns of queries around it: its text and its columns' names.
Subquery = Callable[[int, Sequence[Column]], tuple[Tree, list[Column]]]


class Relations:
    """Makes relations. `tables` are those that may be named."""

    def __init__(self, random: Random, subquery: Subquery, tables: Sequence[Table], strange: float = 0.05) -> None:
        self.random = random
        self.subquery = subquery
        self.tables = list(tables)
        self.strange = strange
        self.signed = random.random() < 0.1
        self._aliases = 0

    def alias(self) -> str:
        """An alias that no other relation of the statement has."""
        self._aliases += 1
        return f"t{self._aliases - 1}"

    def one(self, depth: int, outer: Sequence[Column] = ()) -> Relation:
        """A relation without a join."""
        random = self.random
        chance = random.random()
        if outer and random.random() < 0.15:
            return self._derived(1, outer)
        if depth > 0 and chance < 0.25:
            return self._derived(depth, ())
        if self.tables and chance < 0.55:
            return self._named(random.choice(self.tables))
        if chance < 0.6:
            alias = self.alias()
            return Relation(relation(f"range({_range(random)}) AS {alias}"), [Column(f"{alias}.id", "bigint")])
        if chance > 0.97:
            made = self._pivoted() if random.random() < 0.6 else self._unpivoted()
            return made if random.random() < 0.3 else self._apart(made)
        return self._values()

    def joined(self, depth: int, outer: Sequence[Column] = ()) -> Relation:
        """One to three relations."""
        made = self.one(depth, outer)
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 1, 2))):
            made = self._join(made, depth)
            names = [_bare(c).lower() for c in made.columns]
            # A bare name that two relations have says nothing.
            made.columns = [c for c, n in zip(made.columns, names, strict=True) if "." in c.text or names.count(n) == 1]
        if self.random.random() < 0.08:
            made = self._view(made)
        return made

    def _values(self) -> Relation:
        random = self.random
        alias, rows = self.alias(), random.randint(1, 5)
        columns: list[Column] = []
        taken: set[str] = set()
        for _ in range(random.randint(1, 4)):
            type_ = random.choice(_COMMON if random.random() < 0.9 else _RARE)
            name = random.choice(_NAMES[type_])
            if name.lower() not in taken:
                taken.add(name.lower())
                columns.append(Column(name, type_, self._cells(type_, rows)))
        return Relation(
            relation(values_relation(columns, rows, alias)), [Column(f"{alias}.{c.text}", c.type) for c in columns]
        )

    def _cells(self, type_: str, rows: int) -> list[str]:
        random = self.random
        domain = list(DOMAIN[type_])
        if type_ == "double":
            domain += STRANGE if random.random() < self.strange * 4 else ()
            domain += (SIGNED_ZERO,) if self.signed else ()
        nothing = random.choice((0.0, 0.0, 0.3))
        return [
            f"CAST(NULL AS {type_.upper()})" if random.random() < nothing else random.choice(domain)
            for _ in range(rows)
        ]

    def _apart(self, made: Relation) -> Relation:
        """In brackets: PIVOT and UNPIVOT without take in all relations before them."""
        alias = self.alias()
        columns = [Column(f"{alias}.{_bare(c)}", c.type) for c in made.columns]
        return Relation(relation("(SELECT * FROM ", made.tree, f") AS {alias}"), columns)

    def _pivoted(self) -> Relation:
        """PIVOT of constant rows by a column that no aggregate reads."""
        random, base = self.random, self._values()
        keys = [c for c in base.columns if c.type in ("int", "string", "bigint", "date", "boolean")]
        if len(base.columns) < 2 or not keys:
            return base
        by = random.choice(keys)
        kept = [c for c in base.columns if c is not by]
        read = random.choice(kept)
        kept.remove(read)
        shown = _bare(read)
        found = [(f"count({shown})", "bigint"), ("count(*)", "bigint"), (f"max({shown})", read.type)]
        found += [(f"sum({shown})", "bigint")] if read.type in ("int", "bigint") else []
        aggregates = random.sample(found, random.choice((1, 1, 2)))
        values = random.sample(DOMAIN[by.type], 2)
        alias, several = self.alias(), len(aggregates) > 1
        calls = [f"{text} AS g{i}" if several else text for i, (text, _) in enumerate(aggregates)]
        columns = [Column(f"{alias}.{_bare(c)}", c.type) for c in kept]
        for i in range(len(values)):
            columns += [Column(f"{alias}.p{i}{f'_g{k}' if several else ''}", t) for k, (_, t) in enumerate(aggregates)]
        named = ", ".join(f"{v} AS p{i}" for i, v in enumerate(values))
        text = f" PIVOT ({', '.join(calls)} FOR {_bare(by)} IN ({named})) AS {alias}"
        return Relation(relation(base.tree, text), columns)

    def _unpivoted(self) -> Relation:
        """UNPIVOT of columns of one type."""
        random, rows = self.random, self.random.randint(1, 4)
        type_, inner, alias = random.choice(_COMMON), self.alias(), self.alias()
        columns = [Column(f"u{i}", type_, self._cells(type_, rows)) for i in range(random.choice((2, 2, 3)))]
        columns.append(Column("k", "int", self._cells("int", rows)))
        *read, kept = columns
        nulls = random.choice(("", "INCLUDE NULLS ", "EXCLUDE NULLS "))
        names = ", ".join(f"{c.text}{random.choice(('', f' AS n{c.text}'))}" for c in read)
        text = f" UNPIVOT {nulls}(val FOR nm IN ({names})) AS {alias}"
        made = [Column(f"{alias}.{kept.text}", "int"), Column(f"{alias}.nm", "string"), Column(f"{alias}.val", type_)]
        return Relation(relation(values_relation(columns, rows, inner), text), made)

    def _named(self, table: Table) -> Relation:
        alias = self.alias()
        word = self.random.choice((" AS ", " "))
        return Relation(relation(f"{table.text}{word}{alias}"), [Column(f"{alias}.{n}", t) for n, t in table.columns])

    def _derived(self, depth: int, outer: Sequence[Column], word: str = "") -> Relation:
        tree, columns = self.subquery(depth - 1, outer)
        alias = self.alias()
        renamed = self.random.random() < 0.2
        names = [f"z{i}" if renamed else c.text for i, c in enumerate(columns)]
        told = f"({', '.join(names)})" if renamed else ""
        text = relation(f"{word}(", tree, f") AS {alias}{told}")
        return Relation(text, [Column(f"{alias}.{n}", c.type) for n, c in zip(names, columns, strict=True)])

    def _join(self, left: Relation, depth: int) -> Relation:
        random = self.random
        chance = random.random()
        if depth > 0 and chance < 0.05:
            right = self._derived(depth, left.columns, "LATERAL ")
            word = random.choice((" JOIN ", " LEFT JOIN ", ", ", " CROSS JOIN "))
            on = " ON true" if "LEFT" in word or (word == " JOIN " and random.random() < 0.5) else ""
            return Relation(relation(left.tree, word, right.tree, on), [*left.columns, *right.columns])
        right = self.one(depth)
        if chance < 0.2:
            return Relation(relation(left.tree, ", ", right.tree), [*left.columns, *right.columns])
        kind = random.choice(_JOINS)
        common = self._common(left, right)
        if common and kind != "CROSS JOIN" and random.random() < 0.4:
            return self._using(left, right, kind, common)
        half = "SEMI" in kind or "ANTI" in kind
        both = [*left.columns, *right.columns]
        text: list[str | Tree] = [left.tree, f" {kind} ", right.tree]
        if kind != "CROSS JOIN" or random.random() < 0.1:
            text += [" ON ", self._condition(left.columns, right.columns)]
        return Relation(relation(*text), left.columns if half else both)

    def _common(self, left: Relation, right: Relation) -> list[str]:
        """Names that both sides have once, of types that compare without raising."""
        mine, theirs = ([_bare(c).lower() for c in r.columns] for r in (left, right))
        kinds = [{_bare(c).lower(): _family(c.type) for c in r.columns} for r in (left, right)]
        same = [n for n in dict.fromkeys(mine) if mine.count(n) == 1 and theirs.count(n) == 1]
        return [n for n in same if kinds[0][n] == kinds[1][n] and n.isidentifier()]

    def _using(self, left: Relation, right: Relation, kind: str, common: list[str]) -> Relation:
        random = self.random
        natural = random.random() < 0.35
        both = {_bare(c).lower() for c in left.columns} & {_bare(c).lower() for c in right.columns}
        if natural and set(common) == both and "SEMI" not in kind and "ANTI" not in kind:
            text, shared = relation(left.tree, f" NATURAL {kind} ", right.tree), common
        else:
            shared = random.sample(common, random.randint(1, len(common)))
            text = relation(left.tree, f" {kind} ", right.tree, f" USING ({', '.join(shared)})")
        half = "SEMI" in kind or "ANTI" in kind
        rest = [c for c in left.columns if _bare(c).lower() not in shared]
        rest += [] if half else [c for c in right.columns if _bare(c).lower() not in shared]
        merged = [Column(c.text if half else _bare(c), c.type) for c in left.columns if _bare(c).lower() in shared]
        again = {_bare(c).lower() for c in rest}
        merged = [c for c in merged if half or c.text.lower() not in again]
        if not half and random.random() < 0.3:  # the sides' own columns, hidden behind the common one
            merged += [c for c in (*left.columns, *right.columns) if _bare(c).lower() in shared and "." in c.text]
        return Relation(text, [*merged, *rest])

    def _condition(self, left: Sequence[Column], right: Sequence[Column]) -> Tree:
        random = self.random
        pairs = [(a, b) for a in left for b in right if _family(a.type) == _family(b.type) and _sortable(a.type)]
        if not pairs or random.random() < 0.08:
            return expr("boolean", random.choice(("true", "1 = 1", "false")))
        a, b = random.choice(pairs)
        word = random.choice((" = ", " = ", " = ", " <=> ", " < ", " <> ", " >= "))
        first = expr("boolean", expr(a.type, a.text), word, expr(b.type, b.text))
        if random.random() < 0.35:
            maker = Expressions(random, Scope([*left, *right]), edge=0.0)
            maker.tame = True
            second = maker.predicate(1)
            return expr("boolean", "(", first, random.choice((" AND ", " OR ")), second, ")")
        return first

    def _view(self, made: Relation) -> Relation:
        """LATERAL VIEW over an array column, or a constant one."""
        random = self.random
        arrays = [c for c in made.columns if c.type == "array<int>"]
        source = arrays[0].text if arrays else "array(1, 2)"
        alias, outer = self.alias(), random.choice(("", "OUTER "))
        if random.random() < 0.3:
            text = f" LATERAL VIEW {outer}posexplode({source}) {alias} AS pos, col"
            return Relation(
                relation(made.tree, optional(text)),
                [*made.columns, Column(f"{alias}.pos", "int"), Column(f"{alias}.col", "int")],
            )
        text = f" LATERAL VIEW {outer}explode({source}) {alias} AS e"
        return Relation(relation(made.tree, text), [*made.columns, Column(f"{alias}.e", "int")])


def _range(random: Random) -> str:
    return random.choice((str(random.randint(0, 4)), f"1, {random.randint(1, 4)}", "0, 5, 2", "3, 0, -1"))


def _bare(column: Column) -> str:
    return column.text.rpartition(".")[2]


def _family(type_: str) -> str:
    """Types of one family compare without a cast that may raise."""
    return "number" if type_ in ("int", "bigint", "double", "decimal(5,2)") else type_


def _sortable(type_: str) -> bool:
    return not type_.startswith("map")
