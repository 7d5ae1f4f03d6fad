"""Reports: chains of common table expressions, each made of those before it, as people and their tools write them.

Rows are filtered, joined with others of the same chain or with themselves, grouped by parts of dates and texts, numbered and
chosen, collected and spread out again, put together and told apart: few rows of few values, so that each step keeps some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.fuzz.machine import Judgement, Machine
from tests.fuzz.relations import DOMAIN
from tests.fuzz.tree import Case, Tree, case, expr, listed, optional, query
from tests.fuzz.values import ZONES

_NUMBERS = ("int", "bigint", "decimal(5,2)")
_KEYS = ("int", "string", "date", "bigint", "boolean")
_BASE = ("int", "int", "string", "string", "date", "bigint", "decimal(5,2)", "boolean", "timestamp")
#: What a type is grouped by or shown as, and the type of that; `{}` is the column.
_PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "int": (("{} % 2", "int"), ("CASE WHEN {} > 1 THEN 'many' ELSE 'few' END", "string"), ("coalesce({}, 0)", "int")),
    "bigint": (("{} % 3", "bigint"), ("{} > 1", "boolean")),
    "string": (
        ("upper({})", "string"), ("length({})", "int"), ("substring({}, 1, 1)", "string"), ("coalesce({}, '?')", "string"),
        ("{} LIKE 'a%'", "boolean"), ("concat({}, '-', {})", "string"), ("nullif({}, 'a')", "string"),
    ),
    "date": (
        ("year({})", "int"), ("month({})", "int"), ("CAST(date_trunc('MONTH', {}) AS DATE)", "date"), ("last_day({})", "date"),
        ("date_format({}, 'yyyy-MM')", "string"), ("date_add({}, 1)", "date"), ("extract(QUARTER FROM {})", "int"),
        ("{} + INTERVAL 1 MONTH", "date"), ("trunc({}, 'YEAR')", "date"),
    ),
    "timestamp": (
        ("CAST({} AS DATE)", "date"), ("hour({})", "int"), ("date_trunc('DAY', {})", "timestamp"),
        ("date_trunc('HOUR', {})", "timestamp"), ("{} - INTERVAL 2 HOURS", "timestamp"),
    ),
    "decimal(5,2)": (("round({}, 0) > 1", "boolean"), ("{} IS NULL", "boolean")),
    "boolean": (("NOT {}", "boolean"), ("if({}, 1, 0)", "int"), ("coalesce({}, false)", "boolean")),
}  # fmt: skip
#: Aggregates by the type that they take, and the type of their result ("" for the same).
_TOTALS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("count({})", _BASE, "bigint"),
    ("count(DISTINCT {})", _BASE, "bigint"),
    ("sum({})", ("int", "bigint"), "bigint"),
    ("sum(CASE WHEN {} > 0 THEN 1 ELSE 0 END)", _NUMBERS, "bigint"),
    ("min({})", _BASE, ""),
    ("max({})", _BASE, ""),
    ("count_if({} IS NULL)", _BASE, "bigint"),
    ("count(*) FILTER (WHERE {} IS NOT NULL)", _BASE, "bigint"),
    ("bool_or({})", ("boolean",), "boolean"),
    ("max_by({}, {})", _KEYS, ""),
    ("array_join(sort_array(collect_set({})), ',')", ("string",), "string"),
    ("listagg({}, '+') WITHIN GROUP (ORDER BY {})", ("string",), "string"),
    ("size(collect_list({}))", _BASE, "int"),
    ("element_at(sort_array(collect_list({})), 1)", ("int", "string"), ""),
)
_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


@dataclass(frozen=True, slots=True)
class Step:
    """One relation of the chain: its name, its columns' names and types."""

    name: str
    columns: tuple[tuple[str, str], ...]

    def of(self, *types: str) -> list[tuple[str, str]]:
        """The columns of these types."""
        return [c for c in self.columns if c[1] in types]


class Reports:
    """Makes one report."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.steps: list[Step] = []
        self.heads: list[Tree] = []
        self._names = 0

    def top(self) -> Tree:
        """The whole statement."""
        random = self.random
        for _ in range(random.choice((1, 1, 2))):
            self._written()
        makers: tuple[Callable[[], tuple[Tree, list[tuple[str, str]]]], ...] = (
            self.filtered, self.computed, self.joined, self.joined, self.beside_itself, self.grouped, self.grouped,
            self.numbered, self.windowed, self.distinct, self.united, self.asked, self.asked, self.spread, self.shared,
        )  # fmt: skip
        for _ in range(random.choice((2, 3, 3, 4, 5))):
            tree, columns = random.choice(makers)()
            self._add(tree, columns)
        last = self.steps[-1]
        shape = random.random()
        if shape < 0.25:
            shown: str | Tree = "count(*)"
        elif shape < 0.5:
            kept = random.sample(last.columns, random.randint(1, len(last.columns)))
            shown = listed(tuple(n for n, _ in kept))
        else:
            shown = "*"
        return query(Tree(("WITH ", listed(tuple(self.heads)), " ")), "SELECT ", shown, f" FROM {last.name}")

    def _add(self, tree: Tree, columns: list[tuple[str, str]]) -> None:
        name = f"s{len(self.steps)}"
        self.heads.append(Tree((name, " AS (", tree, ")")))
        self.steps.append(Step(name, tuple(columns)))

    def _new(self) -> str:
        self._names += 1
        return f"c{self._names}"

    def _step(self) -> Step:
        """One of the chain, mostly the last."""
        return self.steps[-1] if self.random.random() < 0.6 else self.random.choice(self.steps)

    def _written(self) -> None:
        random = self.random
        columns = [(self._new(), random.choice(_BASE)) for _ in range(random.randint(2, 4))]
        nothing = random.choice((0.0, 0.2))

        def cell(type_: str) -> str:
            return f"CAST(NULL AS {type_.upper()})" if random.random() < nothing else random.choice(DOMAIN[type_])

        lines = tuple(
            Tree(("(", listed(tuple(cell(t) for _, t in columns), ", ", len(columns)), ")"))
            for _ in range(random.randint(2, 6))
        )
        names = ", ".join(n for n, _ in columns)
        self._add(query("SELECT * FROM VALUES ", listed(lines), f" AS v({names})"), columns)

    def _part(self, column: tuple[str, str]) -> tuple[str, str]:
        """A column, or what it is grouped by."""
        name, type_ = column
        if self.random.random() < 0.5 or type_ not in _PARTS:
            return name, type_
        text, made = self.random.choice(_PARTS[type_])
        return text.replace("{}", name), made

    def _test(self, step: Step, before: str = "") -> Tree:
        """A condition on a row."""
        random = self.random
        name, type_ = random.choice(step.columns)
        name = before + name
        shape = random.random()
        if shape < 0.15 or type_ not in DOMAIN:
            return expr("boolean", f"{name} IS {random.choice(('', 'NOT '))}NULL")
        if shape < 0.3:
            some = ", ".join(random.choice(DOMAIN[type_]) for _ in range(2))
            return expr("boolean", f"{name} {random.choice(('', 'NOT '))}IN ({some})")
        if shape < 0.4:
            bounds = sorted(random.choice(DOMAIN[type_]) for _ in range(2))
            return expr("boolean", f"{name} BETWEEN {bounds[0]} AND {bounds[1]}")
        word = random.choice(("=", "<>", "<", ">=", "<=>"))
        return expr("boolean", f"{name} {word} {random.choice(DOMAIN[type_])}")

    def _where(self, step: Step, chance: float = 0.3, before: str = "") -> Tree:
        return optional(" WHERE ", self._test(step, before)) if self.random.random() < chance else Tree(())

    def filtered(self) -> tuple[Tree, list[tuple[str, str]]]:
        """The rows that one or two conditions leave."""
        step = self._step()
        word = self.random.choice((" AND ", " OR "))
        tests = tuple(self._test(step) for _ in range(self.random.choice((1, 2))))
        return query(f"SELECT * FROM {step.name} WHERE ", listed(tests, word)), list(step.columns)

    def computed(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Some columns and what is computed of others, of names that stand before, too."""
        random, step = self.random, self._step()
        items, columns = [], []
        for column in random.sample(step.columns, random.randint(1, len(step.columns))):
            text, type_ = self._part(column)
            name = self._new()
            items.append(f"{text} AS {name}")
            columns.append((name, type_))
        if random.random() < 0.3:
            text, type_ = self._part(random.choice(columns))
            columns.append((self._new(), type_))
            items.append(f"{text} AS {columns[-1][0]}")
            return query("SELECT ", listed(tuple(items), ", ", len(items)), f" FROM {step.name}"), columns
        return query(
            "SELECT ", listed(tuple(items), ", ", len(items)), f" FROM {step.name}", self._where(step)
        ), columns

    def joined(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Two of the chain by columns of one type."""
        return self._join(self._step(), self.random.choice(self.steps))

    def beside_itself(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Rows beside others of the same."""
        step = self._step()
        return self._join(step, step)

    def _join(self, left: Step, right: Step) -> tuple[Tree, list[tuple[str, str]]]:
        random = self.random
        pairs = [(a, b) for a in left.columns for b in right.columns if a[1] == b[1]]
        kind = random.choice(_JOINS) if pairs else "CROSS JOIN"
        half = "SEMI" in kind or "ANTI" in kind
        on = Tree(())
        if pairs:
            tests = []
            for (a, type_), (b, _) in random.sample(pairs, min(len(pairs), random.choice((1, 1, 2)))):
                text = f"({random.choice(_PARTS[type_])[0]})" if type_ in _PARTS and random.random() < 0.2 else "{}"
                word = random.choice((" = ", " = ", " = ", " = ", " <=> ", " < ", " >= ", " <> "))
                tests.append(expr("boolean", text.replace("{}", f"l.{a}") + word + text.replace("{}", f"r.{b}")))
            if random.random() < 0.2:
                tests.append(self._test(right, "r."))
            on = Tree((" ON ", listed(tuple(tests), " AND ")))
        some = [("l", *c) for c in left.columns] + ([] if half else [("r", *c) for c in right.columns])
        kept = random.sample(some, random.randint(1, min(len(some), 5)))
        columns = [(self._new(), t) for _, _, t in kept]
        items = tuple(f"{side}.{n} AS {new}" for (side, n, _), (new, _) in zip(kept, columns, strict=True))
        source = (f" FROM {left.name} AS l {kind} {right.name} AS r", on)
        return query("SELECT ", listed(items, ", ", len(items)), *source, self._where(left, 0.2, "l.")), columns

    def _total(self, step: Step) -> tuple[str, str]:
        if self.random.random() < 0.25:
            return "count(*)", "bigint"
        name, type_ = self.random.choice(step.columns)
        fitting = [(text, made or type_) for text, takes, made in _TOTALS if type_ in takes]
        text, made = self.random.choice(fitting or [("count({})", "bigint")])
        return text.replace("{}", name), made

    def grouped(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Totals by columns or parts of them."""
        random, step = self.random, self._step()
        keys = [
            self._part(c) for c in random.sample(step.columns, random.choice((1, 1, 2)) if len(step.columns) > 1 else 1)
        ]
        totals = [self._total(step) for _ in range(random.choice((0, 1, 1, 2)))]
        columns = [(self._new(), t) for _, t in (*keys, *totals)]
        items = tuple(f"{text} AS {c}" for (text, _), (c, _) in zip((*keys, *totals), columns, strict=True))
        texts = [k for k, _ in keys]
        shape = random.randrange(6)
        by = (
            "ALL" if shape == 0
            else ", ".join(str(i + 1) for i in range(len(keys))) if shape == 1
            else ", ".join(c for c, _ in columns[: len(keys)]) if shape == 2
            else f"ROLLUP ({', '.join(texts)})" if shape == 3 and random.random() < 0.3
            else ", ".join(texts)
        )  # fmt: skip
        having = (
            optional(f" HAVING count(*) {random.choice(('> 1', '= 1', '< 3'))}") if random.random() < 0.2 else Tree(())
        )
        source = (f" FROM {step.name}", self._where(step))
        return query("SELECT ", listed(items, ", ", len(items)), *source, f" GROUP BY {by}", having), columns

    def _total_order(self, step: Step, before: str = "") -> str:
        """By all columns, so that ties are rows that are the same."""
        names = [before + n for n, _ in step.columns]
        self.random.shuffle(names)
        return ", ".join(n + self.random.choice(("", "", " DESC", " NULLS LAST", " DESC NULLS FIRST")) for n in names)

    def numbered(self) -> tuple[Tree, list[tuple[str, str]]]:
        """The first rows of each group, by number."""
        random, step = self.random, self._step()
        by = random.choice(step.columns)[0]
        over = f"row_number() OVER (PARTITION BY {by} ORDER BY {self._total_order(step)})"
        bound = random.choice((" = 1", " = 1", " <= 2", " > 1"))
        if random.random() < 0.5:
            return query(f"SELECT * FROM {step.name} QUALIFY {over}{bound}"), list(step.columns)
        names = ", ".join(n for n, _ in step.columns)
        inner = query(f"SELECT *, {over} AS rn FROM {step.name}", self._where(step))
        return query(f"SELECT {names} FROM (", inner, f") WHERE rn{bound}"), list(step.columns)

    def windowed(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Columns beside totals of those around them, and of the whole."""
        random, step = self.random, self._step()
        name, type_ = random.choice(step.columns)
        by = random.choice(("", f"PARTITION BY {random.choice(step.columns)[0]} "))
        order = f"ORDER BY {self._total_order(step)}"
        choices = [
            (f"count(*) OVER ({by})", "bigint"),
            (f"max({name}) OVER ({by})", type_),
            (f"lag({name}) OVER ({by}{order})", type_),
            (f"lead({name}, 1) OVER ({by}{order})", type_),
            (f"rank() OVER ({by}ORDER BY {name})", "int"),
            (f"count({name}) OVER ({by}{order} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "bigint"),
            (f"first_value({name}) OVER ({by}{order})", type_),
            (f"dense_rank() OVER (ORDER BY {name} DESC)", "int"),
        ]
        if type_ in ("int", "bigint"):
            choices += [(f"sum({name}) OVER ({by}{order})", "bigint"), (f"sum({name}) OVER ({by})", "bigint")]
        found = random.sample(choices, random.choice((1, 1, 2)))
        kept = random.sample(step.columns, random.randint(1, len(step.columns)))
        columns = [*kept, *((self._new(), t) for _, t in found)]
        items = [n for n, _ in kept]
        items += [f"{text} AS {c}" for (text, _), (c, _) in zip(found, columns[len(kept) :], strict=True)]
        return query(
            "SELECT ", listed(tuple(items), ", ", len(items)), f" FROM {step.name}", self._where(step)
        ), columns

    def distinct(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Some columns, told apart."""
        step = self._step()
        kept = self.random.sample(step.columns, self.random.randint(1, min(3, len(step.columns))))
        return query(f"SELECT DISTINCT {', '.join(n for n, _ in kept)} FROM {step.name}", self._where(step)), kept

    def united(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Rows of two of the chain by a set operation."""
        random, left, right = self.random, self._step(), self.random.choice(self.steps)
        both = [(a, b) for a in left.columns for b in right.columns if a[1] == b[1]]
        if not both:
            return self.distinct()
        pairs = random.sample(both, min(len(both), random.choice((1, 2))))
        columns = [(self._new(), a[1]) for a, _ in pairs]
        shown = ", ".join(f"{a[0]} AS {c}" for (a, _), (c, _) in zip(pairs, columns, strict=True))
        other = ", ".join(b[0] for _, b in pairs)
        word = random.choice(("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL"))
        first = query(f"SELECT {shown} FROM {left.name}", self._where(left))
        return query(first, f" {word} ", query(f"SELECT {other} FROM {right.name}", self._where(right))), columns

    def asked(self) -> tuple[Tree, list[tuple[str, str]]]:
        """A subquery about another of the chain: a value for each row, or whether there is a row."""
        random, outer, inner = self.random, self._step(), self.random.choice(self.steps)
        pairs = [(a, b) for a in outer.columns for b in inner.columns if a[1] == b[1]]
        own = f"o.{random.choice(outer.columns)[0]}"
        link = Tree(())
        if pairs:
            (a, _), (b, _) = random.choice(pairs)
            link = Tree((f" WHERE i.{b} {random.choice(('=', '=', '=', '<=>', '<', '<>'))} o.{a}",))
            if random.random() < 0.3:
                link = Tree((link, optional(" AND ", self._test(inner, "i."))))
        if random.random() < 0.5:
            total, type_ = self._total(inner)
            columns = [*outer.columns, (self._new(), type_)]
            value = query(f"(SELECT {total} FROM {inner.name} AS i", link, ")")
            return query("SELECT o.*, ", value, f" AS {columns[-1][0]} FROM {outer.name} AS o"), columns
        word = random.choice(("EXISTS", "NOT EXISTS", "IN", "NOT IN"))
        if "IN" in word and pairs:
            (a, _), (b, _) = random.choice(pairs)
            test = Tree((f"o.{a} {word} (SELECT i.{b} FROM {inner.name} AS i", self._where(inner, 0.4, "i."), ")"))
        else:
            test = Tree((f"{'NOT ' * ('NOT' in word)}EXISTS (SELECT 1 FROM {inner.name} AS i", link, ")"))
        more = optional(random.choice((" OR ", " AND ")), f"{own} IS NULL") if random.random() < 0.3 else Tree(())
        return query(f"SELECT * FROM {outer.name} AS o WHERE ", test, more), list(outer.columns)

    def spread(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Rows of arrays, or of columns: LATERAL VIEW, explode in FROM, stack."""
        random, step = self.random, self._step()
        name, type_ = random.choice(step.columns)
        shape = random.randrange(3)
        new, kept = self._new(), random.sample(step.columns, random.randint(1, len(step.columns)))
        shown = ", ".join(n for n, _ in kept)
        if shape == 0:
            by = random.choice(step.columns)
            inner = query(f"SELECT {by[0]}, sort_array(collect_set({name})) AS xs FROM {step.name} GROUP BY {by[0]}")
            word = random.choice(("", "OUTER "))
            return (
                query(f"SELECT {by[0]}, {new} FROM (", inner, f") LATERAL VIEW {word}explode(xs) e AS {new}"),
                [by, (new, type_)],
            )
        if shape == 1:
            array = random.choice(("array(1, 2)", "sequence(1, 2)", "array(1, NULL, 1)"))
            text = f"SELECT {shown}, {new} FROM {step.name}, LATERAL explode({array}) AS e({new})"
            return query(text, self._where(step)), [*kept, (new, "int")]
        same = [n for n, t in step.columns if t == type_]
        pairs = ", ".join(f"'{n}', {n}" for n in same)
        label = self._new()
        return (
            query(
                f"SELECT {shown}, stack({len(same)}, {pairs}) AS ({label}, {new}) FROM {step.name}", self._where(step)
            ),
            [*kept, (label, "string"), (new, type_)],
        )

    def shared(self) -> tuple[Tree, list[tuple[str, str]]]:
        """Columns and totals of groups, joined back to the rows."""
        random, step = self.random, self._step()
        key = random.choice(step.columns)[0]
        total, type_ = self._total(step)
        new = self._new()
        inner = query(f"SELECT {key} AS gk, {total} AS gv FROM {step.name}", self._where(step), " GROUP BY 1")
        kind = random.choice(("JOIN", "LEFT JOIN"))
        source = (
            f" FROM {step.name} AS l {kind} (",
            inner,
            f") AS g ON l.{key} {random.choice(('=', '=', '<=>'))} g.gk",
        )
        kept = random.sample(step.columns, random.randint(1, len(step.columns)))
        if random.random() < 0.3:
            return query(f"SELECT {', '.join('l.' + n for n, _ in kept)}", *source), kept
        return query(f"SELECT {', '.join('l.' + n for n, _ in kept)}, gv AS {new}", *source), [*kept, (new, type_)]


def make(seed: int, number: int) -> Case:
    """The report of that number."""
    random = Random(f"{seed} reports {number}")
    zone = random.choice(ZONES) if random.random() < 0.2 else "UTC"
    return case("reports", Reports(random).top(), zone=zone, seed=f"{seed}/{number}")


def step(machine: Machine, seed: int, number: int) -> Judgement:
    """Ask about the report of that number."""
    return machine.asked(make(seed, number))
