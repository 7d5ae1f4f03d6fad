"""Changes of a Delta table's rows: INSERT, UPDATE, DELETE, MERGE, of which the rows that are left are asked."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.fuzz.expressions import Expressions
from tests.fuzz.relations import DOMAIN, SIGNED_ZERO, STRANGE, Table
from tests.fuzz.scope import Column, Scope
from tests.fuzz.tree import Tree, expr, listed, optional
from tests.fuzz.values import literal

_PROPERTIES = (
    "",
    "",
    " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    " TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
)
_KEYS = ("int", "bigint", "string", "date")  # what rows of a MERGE are matched by
_OTHER_ROWS = "s"  # the alias of those that a MERGE brings


def properties(random: Random) -> str:
    """What a new table is told of how it keeps its rows."""
    return random.choice(_PROPERTIES)


def value(random: Random, type_: str) -> str:
    """A constant for a column: one of few, an edge of the type, NULL."""
    chance = random.random()
    if chance < 0.15:
        return f"CAST(NULL AS {type_.upper()})"
    if type_ == "double" and chance < 0.35:
        return random.choice((*STRANGE, SIGNED_ZERO))
    if chance < 0.5:
        return literal(random, type_, edge=0.7, nothing=0.0)
    return random.choice(DOMAIN[type_])


class Changes:
    """Makes statements that change the rows of a table."""

    def __init__(self, random: Random, table: Table) -> None:
        self.random = random
        self.table = table
        self.used: set[str] = set()

    def one(self) -> Tree:
        """One statement."""
        return self.random.choice((self.insert, self.update, self.update, self.delete, self.merge, self.merge))()

    def insert(self) -> Tree:
        """Rows at the end, by place or by name, or in the place of all others."""
        random, columns = self.random, list(self.table.columns)
        word = random.choice(("INTO", "INTO", "INTO", "OVERWRITE"))
        shape = random.random()
        if shape < 0.3:
            columns = random.sample(columns, random.randint(1, len(columns)))
            return Tree((f"INSERT {word} {self.table.text} ({', '.join(n for n, _ in columns)}) ", self._rows(columns)))
        if shape < 0.6:
            random.shuffle(columns)
            named = "SELECT * FROM (", self._rows(columns), f") AS r({', '.join(n for n, _ in columns)})"
            return Tree((f"INSERT {word} {self.table.text} BY NAME ", *named))
        if shape < 0.8:
            maker = self._maker(self._own())
            items = listed(tuple(self._assigned(maker, t) for _, t in columns), ", ", len(columns))
            where = optional(" WHERE ", maker.predicate(1)) if random.random() < 0.6 else Tree(())
            return Tree((f"INSERT {word} {self.table.text} SELECT ", items, f" FROM {self.table.text}", where))
        return Tree((f"INSERT {word} {self.table.text} ", self._rows(columns)))

    def update(self) -> Tree:
        """Some columns of some rows."""
        random, own = self.random, self._own()
        maker = self._maker(own)
        changed = random.sample(list(self.table.columns), random.randint(1, len(self.table.columns)))
        sets = tuple(Tree((f"{n} = ", self._assigned(maker, t))) for n, t in changed)
        return Tree((f"UPDATE {self.table.text} SET ", listed(sets), self._where(maker)))

    def delete(self) -> Tree:
        """Some rows."""
        return Tree((f"DELETE FROM {self.table.text}", self._where(self._maker(self._own()))))

    def merge(self) -> Tree:
        """Rows of another relation beside those that they match."""
        random, columns = self.random, self.table.columns
        keys = [n for n, t in columns if t in _KEYS] or [columns[0][0]]
        key = random.choice(keys)
        rows = self._rows(columns, apart=[n for n, _ in columns].index(key))
        source = Tree(("(SELECT * FROM ", rows, f" AS r({', '.join(n for n, _ in columns)})) AS {_OTHER_ROWS}"))
        target = self._own("t.")
        both = [*target, *self._own(f"{_OTHER_ROWS}.")]
        on = Tree((f"t.{key} {random.choice(('=', '=', '=', '<=>'))} {_OTHER_ROWS}.{key}",))
        if random.random() < 0.3:
            on = Tree((on, " AND ", self._maker(both).predicate(1)))
        matched = random.choice((0, 1, 1, 2))
        clauses = [self._matched(both, last=i == matched - 1) for i in range(matched)]
        clauses += [self._unmatched() for _ in range(random.choice((0, 1, 1)))]
        clauses += [self._left(target) for _ in range(random.choice((0, 0, 1)))]
        clauses = clauses or [self._matched(both)]
        head = f"MERGE INTO {self.table.text} AS t USING "
        return Tree((head, source, " ON ", on, listed(tuple(clauses), "")))

    def _matched(self, both: Sequence[Column], last: bool = True) -> Tree:
        """Only the last clause may do without a condition."""
        maker = self._maker(both)
        condition = self._and(maker) if last else Tree((" AND ", maker.predicate(1)))
        head = Tree((" WHEN MATCHED", condition, " THEN "))
        if self.random.random() < 0.3:
            return Tree((head, "DELETE"))
        return Tree((head, "UPDATE SET *" if self.random.random() < 0.3 else self._sets(maker)))

    def _left(self, target: Sequence[Column]) -> Tree:
        maker = self._maker(target)
        head = Tree((" WHEN NOT MATCHED BY SOURCE", self._and(maker), " THEN "))
        return Tree((head, "DELETE" if self.random.random() < 0.4 else self._sets(maker)))

    def _unmatched(self) -> Tree:
        random, maker = self.random, self._maker(self._own(f"{_OTHER_ROWS}."))
        head = Tree((" WHEN NOT MATCHED", self._and(maker), " THEN INSERT "))
        if random.random() < 0.4:
            return Tree((head, "*"))
        columns = random.sample(list(self.table.columns), random.randint(1, len(self.table.columns)))
        values = listed(tuple(self._assigned(maker, t) for _, t in columns), ", ", len(columns))
        return Tree((head, f"({', '.join(n for n, _ in columns)}) VALUES (", values, ")"))

    def _sets(self, maker: Expressions) -> Tree:
        columns = self.random.sample(list(self.table.columns), self.random.randint(1, len(self.table.columns)))
        return Tree(("UPDATE SET ", listed(tuple(Tree((f"{n} = ", self._assigned(maker, t))) for n, t in columns))))

    def _and(self, maker: Expressions) -> Tree:
        return optional(" AND ", maker.predicate(1)) if self.random.random() < 0.5 else Tree(())

    def _where(self, maker: Expressions) -> Tree:
        random = self.random
        if random.random() < 0.1:
            return Tree(())
        if random.random() < 0.15:
            name, type_ = random.choice(self.table.columns)
            rows = tuple(Tree((f"({value(random, type_)})",)) for _ in range(random.randint(1, 3)))
            word = random.choice(("IN", "IN", "NOT IN"))
            return optional(f" WHERE {name} {word} (SELECT x FROM VALUES ", listed(rows), " AS u(x))")
        return optional(" WHERE ", maker.predicate(2))

    def _assigned(self, maker: Expressions, type_: str) -> Tree:
        made = maker.of(type_, self.random.choice((0, 1, 1)))
        return expr(type_, "CAST(", made, f" AS {type_.upper()})")

    def _rows(self, columns: Sequence[tuple[str, str]], apart: int | None = None) -> Tree:
        """VALUES; with `apart`, those of that column mostly differ from each other."""
        random, lines, seen = self.random, [], set[str]()
        for _ in range(random.randint(1, 4)):
            cells = [value(random, t) for _, t in columns]
            if apart is not None and cells[apart] in seen and random.random() < 0.9:
                continue
            seen.add(cells[apart] if apart is not None else "")
            lines.append(Tree(("(", listed(tuple(cells), ", ", len(cells)), ")")))
        return Tree(("VALUES ", listed(tuple(lines))))

    def _own(self, before: str = "") -> list[Column]:
        return [Column(before + n, t) for n, t in self.table.columns]

    def _maker(self, columns: Sequence[Column]) -> Expressions:
        maker = Expressions(self.random, Scope(list(columns), 0), edge=0.05)
        maker.tame, maker.used = True, self.used
        return maker
