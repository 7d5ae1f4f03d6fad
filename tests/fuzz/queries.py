"""Whole queries: SELECT with all its clauses, set operations, CTEs, subqueries in every place, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from gateway.worker_jobs import Parameter
from tests.fuzz.expressions import Expressions
from tests.fuzz.grouping import Grouping, random_order
from tests.fuzz.machine import Judgement, Machine
from tests.fuzz.relations import DOMAIN, Relations, Table
from tests.fuzz.scope import Column, Scope
from tests.fuzz.tree import Case, Tree, case, expr, listed, optional, query
from tests.fuzz.values import ZONES

_ITEMS = ("int", "string", "boolean", "double", "bigint", "int", "string")
_SET_WORDS = ("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "MINUS")
_PARAMETERS = {
    "int": ("INT", ("1", "2", "-1")),
    "string": ("STRING", ("a", "b", "")),
    "date": ("DATE", ("2024-02-29",)),
}


class Queries:
    """Makes one statement's queries."""

    def __init__(
        self, random: Random, tables: Sequence[Table] = (), wild: bool = False, parameters: bool = True
    ) -> None:
        self.random = random
        self.relations = Relations(random, self.nested, tables)
        self.wild = wild
        self.used: set[str] = set()
        self.parameters: list[Parameter] = []
        self._style = random.choice(("named", "positional")) if parameters and random.random() < 0.12 else ""
        self._names = 0
        self._unnamed = False  # whether the next SELECT may leave names to the engine

    def top(self) -> tuple[Tree, tuple[int, ...]]:
        """A statement, and the positions of its columns by which it is sorted."""
        random = self.random
        before = len(self.relations.tables)
        heads = [self._cte(before) for _ in range(random.choice((0, 0, 0, 0, 1, 2)))]
        ordered = random.random() < 0.4
        self._unnamed = not ordered and random.random() < 0.6
        tree, columns = self._set_or_select(random.choice((1, 1, 2)), ())
        order, positions = self._order(columns) if ordered else (Tree(()), ())
        whole = Tree((tree, order))
        if heads:
            whole = Tree((optional("WITH ", listed(tuple(heads)), " "), whole))
        return query(whole), positions

    def _cte(self, before: int) -> Tree:
        random = self.random
        tree, columns = self._set_or_select(1, ())
        name = random.choice(("q", "r", "k", f"q{before}", f"Q{before + 1}"))
        # One that has the name of a CTE or a table before it hides that.
        kept = [t for t in self.relations.tables if t.text.lower() != name.lower()]
        renamed = random.random() < 0.3
        names = [f"w{i}" if renamed else c.text for i, c in enumerate(columns)]
        taken = any(len(t.text) <= 3 and t.text.lower() == name.lower() for t in self.relations.tables)
        if taken:
            name += "x"
        table = Table(name, tuple((n, c.type) for n, c in zip(names, columns, strict=True)))
        self.relations.tables = [*kept, table, table]
        return Tree((name, f"({', '.join(names)})" if renamed else "", " AS (", tree, ")"))

    def nested(self, depth: int, outer: Sequence[Column]) -> tuple[Tree, list[Column]]:
        """A query inside of another: all its columns have names of their own."""
        tree, columns = self._set_or_select(depth, outer)
        if self.random.random() < 0.12:
            order, _ = self._order(columns, always=True)
            return query(tree, order), columns
        return tree, columns

    def _set_or_select(self, depth: int, outer: Sequence[Column]) -> tuple[Tree, list[Column]]:
        random = self.random
        if random.random() > 0.15 or outer:
            return self.select(depth, outer)
        count = random.randint(1, 3)
        types = [random.choice(_ITEMS) for _ in range(count)]
        left, columns = self.select(depth - 1, outer, types)
        for _ in range(random.choice((1, 1, 2))):
            right = self.select(depth - 1, outer, types)[0] if random.random() < 0.85 else self._rows(types)
            left = query(left, f" {random.choice(_SET_WORDS)} ", right)
        return left, columns

    def _rows(self, types: Sequence[str]) -> Tree:
        """VALUES as a query."""
        rows = (", ".join(self.random.choice(DOMAIN[t]) for t in types) for _ in range(self.random.randint(1, 3)))
        return query("VALUES ", listed(tuple(f"({row})" for row in rows)))

    def _order(self, columns: Sequence[Column], always: bool = False) -> tuple[Tree, tuple[int, ...]]:
        """By all columns, so that LIMIT says which rows; by ordinals, names, or ALL."""
        random = self.random
        places = [i for i, c in enumerate(columns) if not c.type.startswith("map")]
        shape = random.random()
        if shape < 0.15 and len(places) == len(columns):
            text = " ORDER BY ALL" + random.choice(("", " DESC", " NULLS LAST"))
        else:
            random.shuffle(places)
            named = shape < 0.4 and len({c.text.lower() for c in columns}) == len(columns)
            keys = [columns[p].text if named else str(p + 1) for p in places]
            text = " ORDER BY " + ", ".join(k + random_order(random) for k in keys)
        if len(places) == len(columns) and not self.relations.signed and (always or random.random() < 0.4):
            limit = random.choice(
                (" LIMIT 1", " LIMIT 2", " LIMIT 3", " LIMIT 0", " LIMIT 10", " LIMIT 2 OFFSET 1", " OFFSET 1")
            )
            return Tree((text, optional(limit))), tuple(places)
        return optional(text), tuple(places)

    def select(self, depth: int, outer: Sequence[Column], types: Sequence[str] = ()) -> tuple[Tree, list[Column]]:
        """One SELECT; with `types`, its items have these."""
        random = self.random
        unnamed, self._unnamed = self._unnamed, False
        source = self.relations.joined(depth, outer)
        scope = Scope([*source.columns], 0)
        maker = self._maker(scope)
        where = self._where(maker, source.columns, outer, depth)
        if not types and random.random() < 0.35:
            return self._grouped(maker, source.tree, where, unnamed)
        items: list[Tree] = []
        columns: list[Column] = []
        if not types and random.random() < 0.07:
            return self._starred(source.tree, where, source.columns)
        if unnamed and random.random() < 0.15:
            star = random.choice(("*", source.columns[0].text.rpartition(".")[0] + ".*")).removeprefix(".")
            return query("SELECT ", star, " FROM ", source.tree, where), []
        wanted = list(types) or [self._type(scope) for _ in range(random.randint(1, 4))]
        for type_ in wanted:
            made = self._item(maker, type_, outer, depth) if not types else maker.of(type_, 1)
            made = made if not types else expr(type_, "CAST(", made, f" AS {type_.upper()})")
            self._add(made, items, columns, unnamed)
        distinct = "DISTINCT " if random.random() < 0.1 else ""
        behind = (
            self._windowed(maker, items, columns) if not types and not outer and random.random() < 0.08 else Tree(())
        )
        shown = listed(tuple(items), ", ", len(types) or 1)
        return query(f"SELECT {distinct}", shown, " FROM ", source.tree, where, behind), columns

    def _windowed(self, maker: Expressions, items: list[Tree], columns: list[Column]) -> Tree:
        """QUALIFY, and windows that are named and referred to."""
        random, grouping = self.random, Grouping(self.random, maker)
        named, qualify = Tree(()), Tree(())
        shape = random.random()
        if shape < 0.6:
            call, type_, inside = grouping.referred()
            made = expr(type_, call, random.choice((" OVER win", " OVER (win)")))
            self._add(made, items, columns)
            named = Tree((" WINDOW win AS (", inside, ")"))
        if shape > 0.4:
            tested = columns[-1] if named.parts and random.random() < 0.5 else None
            test = grouping.window() if tested is None else expr(tested.type, tested.text)
            word = random.choice((" > 1", " <= 1", " <> 2")) if test.type in ("int", "bigint") else " IS NOT NULL"
            also = random.random() < 0.2 and tested is None
            more = Tree((random.choice((" AND ", " OR ")), maker.predicate(1))) if also else Tree(())
            qualify = optional(" QUALIFY ", expr("boolean", test, word), more)
        return Tree((named, qualify))

    def _maker(self, scope: Scope) -> Expressions:
        maker = Expressions(self.random, scope, edge=0.1 if self.wild else 0.0)
        maker.tame = not self.wild
        maker.used = self.used
        return maker

    def _type(self, scope: Scope) -> str:
        types = [c.type for c in scope.columns]
        return self.random.choice(types if self.random.random() < 0.6 else _ITEMS)

    def _starred(self, source: Tree, where: Tree, columns: Sequence[Column]) -> tuple[Tree, list[Column]]:
        """Columns under names of their own, so that a query around this one can name them."""
        names = listed(tuple(f"{c.text} AS {self._name()}" for c in columns))
        made = [Column(str(n).rpartition(" ")[2], c.type) for n, c in zip(names.parts, columns, strict=True)]
        inner = query("SELECT ", names, " FROM ", source, where)
        return query("SELECT * FROM (", inner, f") AS {self.relations.alias()}"), made

    def _name(self) -> str:
        self._names += 1
        return f"{self.random.choice(('c', 'C', 'v'))}{self._names}"

    def _add(self, made: Tree, items: list[Tree], columns: list[Column], unnamed: bool = False) -> None:
        name = self._name()
        if unnamed and self.random.random() < 0.6:
            items.append(made)
            columns.append(Column(name, made.type))
            return
        items.append(Tree((made, f"{self.random.choice((' AS ', ' '))}{name}")))
        columns.append(Column(name, made.type))

    def _item(self, maker: Expressions, type_: str, outer: Sequence[Column], depth: int) -> Tree:
        random = self.random
        chance = random.random()
        if chance < 0.12:
            return Grouping(random, maker).window()
        if chance < 0.2 and depth > 0:
            return self._scalar(maker.scope.columns, depth)
        if chance < 0.25 and depth > 0:
            whens = Tree((" WHEN ", self._test(maker.scope.columns, depth), " THEN ", maker.of(type_, 1)))
            return expr(type_, "CASE", whens, optional(" ELSE ", maker.of(type_, 1)), " END")
        if chance < 0.3 and outer:
            column = random.choice(list(outer))
            return expr(column.type, column.text)
        if chance < 0.36:
            return self._parameter(type_) or maker.of(type_, 2)
        return maker.of(type_, random.choice((0, 1, 1, 2)))

    def _where(self, maker: Expressions, inner: Sequence[Column], outer: Sequence[Column], depth: int) -> Tree:
        random = self.random
        tests: list[Tree] = []
        if outer and random.random() < 0.9:
            tests.append(self._correlation(inner, outer))
        if random.random() < 0.45:
            tests.append(maker.predicate(2))
        if depth > 0 and random.random() < 0.2:
            tests.append(self._test(inner, depth))
        if not tests:
            return Tree(())
        word = random.choice((" AND ", " AND ", " OR ")) if not outer else " AND "
        return optional(" WHERE ", expr("boolean", listed(tuple(tests), word)))

    def _correlation(self, inner: Sequence[Column], outer: Sequence[Column]) -> Tree:
        random = self.random
        numbers = ("int", "bigint", "double", "decimal(5,2)")
        pairs = [(i, o) for i in inner for o in outer if i.type == o.type or (i.type in numbers and o.type in numbers)]
        pairs = [(i, o) for i, o in pairs if not i.type.startswith(("map", "array", "struct"))]
        if not pairs:
            return expr("boolean", "true")
        i, o = random.choice(pairs)
        word = random.choice((" = ", " = ", " = ", " = ", " <=> ", " < ", " <> "))
        return expr("boolean", expr(i.type, i.text), word, expr(o.type, o.text))

    def _scalar(self, outer: Sequence[Column], depth: int) -> Tree:
        """A subquery of one row: an aggregate, or the first row."""
        random = self.random
        correlated = random.random() < 0.6
        source = self.relations.one(depth - 1, list(outer) if correlated else ())
        maker = self._maker(Scope(list(source.columns), 0))
        where = self._where(maker, source.columns, list(outer) if correlated else (), 0)
        if correlated or random.random() < 0.7:
            made = Grouping(random, maker).aggregate(0)
            return expr(made.type, query("(SELECT ", made, " FROM ", source.tree, where, ")"))
        made = maker.of("int", 1)
        if self.relations.signed:
            return expr("int", query("(SELECT max(", made, ") FROM ", source.tree, where, ")"))
        return expr("int", query("(SELECT ", made, " FROM ", source.tree, where, " ORDER BY 1 LIMIT 1)"))

    def _test(self, outer: Sequence[Column], depth: int) -> Tree:
        """A condition with a subquery."""
        random = self.random
        correlated = random.random() < 0.6
        source = self.relations.one(depth - 1, list(outer) if correlated else ())
        maker = self._maker(Scope(list(source.columns), 0))
        where = self._where(maker, source.columns, list(outer) if correlated else (), 0)
        if random.random() < 0.5:
            word = random.choice(("EXISTS", "NOT EXISTS"))
            return expr(
                "boolean", f"{word} ", query("(SELECT ", random.choice(("1", "*")), " FROM ", source.tree, where, ")")
            )
        atoms = [c for c in outer if not c.type.startswith(("map", "array", "struct"))]
        column = random.choice(atoms) if atoms else Column("1", "int")
        word = random.choice((" IN ", " NOT IN "))
        same = [c for c in source.columns if c.type == column.type]
        value = expr(column.type, random.choice(same).text) if same else maker.leaf(column.type)
        inside = query("(SELECT ", value, " FROM ", source.tree, where, ")")
        if random.random() < 0.15 and same:
            inside = query("(SELECT ", value, ", 1 FROM ", source.tree, where, ")")
            return expr("boolean", f"({column.text}, 1){word}", inside)
        return expr("boolean", expr(column.type, column.text), word, inside)

    def _parameter(self, type_: str) -> Tree | None:
        if type_ not in _PARAMETERS or not self._style:
            return None
        kind, texts = _PARAMETERS[type_]
        value = self.random.choice((*texts, None))
        kind = kind if value is not None else "VOID"
        name = f"p{len(self.parameters)}" if self._style == "named" else None
        self.parameters.append(Parameter(name, kind, value))
        return expr(type_, f":{name}" if name else "?")

    def _grouped(self, maker: Expressions, source: Tree, where: Tree, unnamed: bool) -> tuple[Tree, list[Column]]:
        random = self.random
        grouping = Grouping(random, maker)
        aggregates = [grouping.aggregate() for _ in range(random.randint(1, 2))]
        items: list[Tree] = []
        columns: list[Column] = []
        if random.random() < 0.2:  # of all rows
            for made in aggregates:
                self._add(made, items, columns, unnamed)
            return query("SELECT ", listed(tuple(items)), " FROM ", source, where, self._having(grouping)), columns
        keys = grouping.keys()
        for key in keys:
            self._add(key, items, columns)
        clause, sets = grouping.clause(keys, [c.text for c in columns])
        if sets and random.random() < 0.5:
            self._add(expr("tinyint", f"grouping({keys[0]})"), items, columns)
            if random.random() < 0.5:
                self._add(expr("bigint", "grouping_id()"), items, columns)
        for made in aggregates:
            self._add(made, items, columns, unnamed)
        if random.random() < 0.1 and not sets:
            self._add(expr("int", f"rank() OVER (ORDER BY {aggregates[0]})"), items, columns)
        having = self._having(grouping)
        shown = listed(tuple(items), ", ", len(keys))
        qualify = Tree(())
        if random.random() < 0.05 and not sets:
            by = columns[0].text if random.random() < 0.9 else str(aggregates[0])
            rank = expr("int", f"{random.choice(('rank', 'dense_rank'))}() OVER (ORDER BY {by} DESC)")
            qualify = optional(" QUALIFY ", expr("boolean", rank, random.choice((" = 1", " > 1", " <= 2"))))
        return query("SELECT ", shown, " FROM ", source, where, clause, having, qualify), columns

    def _having(self, grouping: Grouping) -> Tree:
        random = self.random
        if random.random() > 0.25:
            return Tree(())
        made = grouping.aggregate(0)
        if made.type in ("bigint", "int", "double"):
            return optional(
                " HAVING ",
                expr("boolean", made, random.choice((" > ", " <> ", " <= ")), random.choice(("0", "1", "2"))),
            )
        return optional(" HAVING ", expr("boolean", made, random.choice((" IS NULL", " IS NOT NULL"))))


def make(seed: int, number: int, tables: Sequence[Table] = ()) -> Case:
    """The statement of that number."""
    random = Random(f"{seed} queries {number}")
    maker = Queries(random, tables, wild=random.random() < 0.1)
    tree, ordered = maker.top()
    named = maker.parameters and maker.parameters[0].name is not None
    # Positional ones count in the order of the text, which is not the order in which they were made.
    if maker.parameters and not named and len(maker.parameters) > 1:
        maker.parameters = [maker.parameters[0]] * len(maker.parameters)
        ordered = ()
    return case(
        "queries",
        tree,
        zone=random.choice(ZONES) if random.random() < 0.3 else "UTC",
        ordered=ordered,
        functions=frozenset(maker.used),
        parameters=tuple(maker.parameters),
        seed=f"{seed}/{number}",
    )


def step(machine: Machine, seed: int, number: int) -> Judgement:
    """Ask about the statement of that number."""
    return machine.asked(make(seed, number))
