"""Aggregates, the forms of GROUP BY, and windows."""

from __future__ import annotations

from random import Random

from tests.fuzz.expressions import Expressions
from tests.fuzz.scope import Column
from tests.fuzz.tree import Tree, expr, listed, optional
from tests.fuzz.values import ATOMIC

#: Name, types of the argument, and the type of the result ("" for the argument's).
AGGREGATES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("count", ATOMIC, "bigint"),
    ("sum", ("int", "bigint"), "bigint"),
    ("sum", ("double",), "double"),
    ("sum", ("decimal(5,2)",), "decimal(15,2)"),
    ("avg", ("int", "bigint", "double"), "double"),
    ("avg", ("decimal(5,2)",), "decimal(9,6)"),
    ("min", ATOMIC, ""),
    ("max", ATOMIC, ""),
    ("bool_and", ("boolean",), "boolean"),
    ("bool_or", ("boolean",), "boolean"),
    ("count_if", ("boolean",), "bigint"),
    ("stddev", ("int", "double"), "double"),
    ("var_pop", ("int", "double"), "double"),
    ("median", ("int", "double"), "double"),
    ("bit_or", ("int",), "int"),
    ("bit_xor", ("bigint",), "bigint"),
    ("try_sum", ("int", "bigint"), "bigint"),
    ("skewness", ("int",), "double"),
    ("approx_count_distinct", ("int", "string"), "bigint"),
)
_DISTINCT = frozenset({"count", "sum", "avg", "min", "max"})
_RANKS = (("rank", "int"), ("dense_rank", "int"), ("percent_rank", "double"), ("cume_dist", "double"))
_NUMBERED = (("row_number()", "int"), ("ntile(2)", "int"), ("ntile(3)", "int"))
_BOUNDS = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING")


class Grouping:
    """Aggregates and windows over the scope of `maker`."""

    def __init__(self, random: Random, maker: Expressions) -> None:
        self.random = random
        self.maker = maker

    def aggregate(self, depth: int = 1) -> Tree:
        """A call of an aggregate."""
        random, maker = self.random, self.maker
        types = {c.type for c in maker.scope.columns}
        if random.random() < 0.15:
            maker.used.add("count")
            return expr("bigint", "count(*)", self._filter())
        if random.random() < 0.08:
            kinds = sorted(types & {"int", "string"}) or ["int"]
            kind = random.choice(kinds)
            maker.used.add("collect_list")
            name = random.choice(("collect_list", "collect_set"))
            return expr(f"array<{kind}>", f"sort_array({name}(", maker.of(kind, depth - 1), ")", self._filter(), ")")
        fitting = [a for a in AGGREGATES if types & set(a[1])] or list(AGGREGATES[:3])
        name, takes, result = random.choice(fitting)
        kind = random.choice(sorted(set(takes) & types) or ["int"])
        maker.used.add(name)
        distinct = "DISTINCT " if name in _DISTINCT and random.random() < 0.25 else ""
        return expr(result or kind, f"{name}({distinct}", maker.of(kind, depth), ")", self._filter())

    def _filter(self) -> Tree:
        if self.random.random() > 0.15:
            return Tree(())
        return optional(" FILTER (WHERE ", self.maker.predicate(1), ")")

    def keys(self) -> list[Tree]:
        """One to three grouping expressions."""
        random, maker = self.random, self.maker
        columns = [c for c in maker.scope.columns if not c.type.startswith("map")]
        count = min(random.choice((1, 1, 2, 2, 3)), len(columns))
        made = [expr(c.type, c.text) for c in random.sample(columns, count)]
        if random.random() < 0.25:
            made[-1] = maker.of(random.choice(("int", "string", "boolean")), 1)
        return made

    def clause(self, keys: list[Tree], aliases: list[str]) -> tuple[str | Tree, bool]:
        """GROUP BY in one of its forms, and whether it has grouping sets. `aliases` are the first items' names."""
        random = self.random
        texts = tuple(keys)
        shape = random.randrange(9)
        if shape < 2:
            return Tree((" GROUP BY ", listed(texts, ", ", len(texts)))), False
        if shape == 2:
            return f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}", False
        if shape == 3:
            return f" GROUP BY {', '.join(aliases)}", False
        if shape == 4:
            return " GROUP BY ALL", False
        plain = [k for k in texts if "." in str(k) and " " not in str(k)]
        if len(plain) < len(texts):
            return Tree((" GROUP BY ", listed(texts, ", ", len(texts)))), False
        inside = ", ".join(map(str, texts))
        if shape == 5:
            return random.choice((f" GROUP BY ROLLUP({inside})", f" GROUP BY {inside} WITH ROLLUP")), True
        if shape == 6:
            return random.choice((f" GROUP BY CUBE({inside})", f" GROUP BY {inside} WITH CUBE")), True
        sets = [f"({inside})", "()", f"({texts[0]})", str(texts[-1])]
        chosen = random.sample(sets, random.randint(1, 3))
        if not all(any(str(k) in s for s in chosen) for k in texts):
            chosen.append(f"({inside})")
        return f" GROUP BY GROUPING SETS ({', '.join(chosen)})", True

    def window(self) -> Tree:
        """A window function whose result does not depend on the order of ties."""
        random, maker = self.random, self.maker
        columns = [c for c in maker.scope.columns if not c.type.startswith(("map", "array", "struct"))]
        if not columns:
            return maker.leaf("int")
        part = random.sample(columns, min(random.choice((0, 1, 1, 2)), len(columns)))
        partition = optional(f"PARTITION BY {', '.join(c.text for c in part)} ") if part else Tree(())
        shape = random.randrange(6)
        if shape == 0:
            name, type_ = random.choice(_RANKS)
            maker.used.add(name)
            return expr(type_, f"{name}() OVER (", partition, self._order(random.sample(columns, 1)), ")")
        if shape == 1:
            text, type_ = random.choice(_NUMBERED)
            maker.used.add(text.partition("(")[0])
            return expr(type_, f"{text} OVER (", partition, self._total(), ")")
        if shape == 2:
            name = random.choice(("lag", "lead"))
            maker.used.add(name)
            column = random.choice(columns)
            more = random.choice(("", ", 1", ", 2", ", 0"))
            more += f", {maker.literal(column.type)}" if more and random.random() < 0.3 else ""
            return expr(column.type, f"{name}({column.text}{more}) OVER (", partition, self._total(), ")")
        if shape == 3:
            column = random.choice(columns)
            name = random.choice(
                (f"first_value({column.text})", f"last_value({column.text})", f"nth_value({column.text}, 2)")
            )
            maker.used.add(name.partition("(")[0])
            nulls = random.choice(("", "", " IGNORE NULLS"))
            return expr(column.type, f"{name}{nulls} OVER (", partition, self._total(), optional(self._frame()), ")")
        inner = self.aggregate(0)
        while "DISTINCT" in str(inner) or "sort_array" in str(inner) or "median" in str(inner):
            inner = self.aggregate(0)
        if shape == 4:
            return expr(inner.type, inner, " OVER (", partition, self._total(), optional(self._frame()), ")")
        keys = [c for c in columns if c.type in ("int", "bigint", "double")]
        if not keys or random.random() < 0.3:
            return expr(inner.type, inner, " OVER (", partition, ")")
        return expr(inner.type, inner, " OVER (", partition, self._order(keys[:1]), optional(self._frame("RANGE")), ")")

    def referred(self) -> tuple[str | Tree, str, Tree]:
        """A window function, its type, and what stands inside of the window that it refers to by name."""
        random = self.random
        columns = [c for c in self.maker.scope.columns if not c.type.startswith(("map", "array", "struct"))]
        part = random.sample(columns, min(random.choice((0, 1)), len(columns)))
        inside = [optional(f"PARTITION BY {', '.join(c.text for c in part)} ") if part else Tree(())]
        if not columns:
            return "count(*)", "bigint", Tree(tuple(inside))
        name, type_ = random.choice((*_RANKS, ("count(*)", "bigint"), ("row_number()", "int")))
        inside.append(Tree((self._total(),)))
        self.maker.used.add(name.partition("(")[0])
        return name if "(" in name else f"{name}()", type_, Tree(tuple(inside))

    def _order(self, columns: list[Column]) -> str:
        words = [random_order(self.random) for _ in columns]
        return "ORDER BY " + ", ".join(f"{c.text}{w}" for c, w in zip(columns, words, strict=True))

    def _total(self) -> str:
        """By all columns of the scope, so that ties are rows that are the same."""
        columns = [c for c in self.maker.scope.columns if not c.type.startswith("map")]
        self.random.shuffle(columns)
        return self._order(columns)

    def _frame(self, unit: str = "ROWS") -> str:
        first = self.random.randrange(len(_BOUNDS) - 1)
        last = self.random.randrange(max(first, 1), len(_BOUNDS))
        if self.random.random() < 0.2 and first < 4:
            return f" {unit} {_BOUNDS[first]}"
        return f" {unit} BETWEEN {_BOUNDS[first]} AND {_BOUNDS[last]}"


def random_order(random: Random) -> str:
    """The words behind a sort key."""
    return random.choice(("", "", " ASC", " DESC", " NULLS LAST", " DESC NULLS FIRST", " ASC NULLS FIRST"))
