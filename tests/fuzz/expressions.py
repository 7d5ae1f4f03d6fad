"""Typed expressions: calls of every function, operators, casts, conditionals, lambdas, over columns and literals."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from gateway.sql.functions import CATALOGUE
from tests.fuzz.scope import Column, Scope
from tests.fuzz.signatures import Argument, Signature, castable, learnt
from tests.fuzz.tree import Tree, expr, listed, optional
from tests.fuzz.values import ATOMIC, TYPES, literal

_INTEGRAL = ("tinyint", "smallint", "int", "bigint")
_NUMERIC = (*_INTEGRAL, "float", "double", "decimal(5,2)", "decimal(38,18)", "decimal(38,0)")
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
#: Functions that never raise, whatever values they are given.
TAME = frozenset(
    {
        "upper", "lower", "length", "concat", "coalesce", "nvl", "nvl2", "ifnull", "nullif", "greatest", "least", "trim",
        "ltrim", "rtrim", "reverse", "initcap", "year", "month", "day", "quarter", "dayofweek", "dayofyear", "weekofyear",
        "last_day", "datediff", "hour", "minute", "isnull", "isnotnull", "isnan", "sign", "signum", "sqrt", "ascii", "md5",
        "sha1", "crc32", "typeof", "hash", "xxhash64", "startswith", "endswith", "contains", "instr", "replace", "concat_ws",
        "translate", "equal_null", "unix_date", "nanvl", "weekday", "monthname", "dayname", "floor", "ceil", "substring",
        "left", "right", "lpad", "rpad", "levenshtein", "bit_length", "char_length", "octet_length", "try_add", "try_divide",
    }
)  # fmt: skip
TEXTUAL = frozenset(
    {
        "upper", "lower", "length", "concat", "trim", "ltrim", "rtrim", "reverse", "initcap", "ascii", "md5", "sha1", "crc32",
        "startswith", "endswith", "contains", "instr", "replace", "concat_ws", "translate", "substring", "left", "right",
        "lpad", "rpad", "levenshtein", "bit_length", "char_length", "octet_length",
    }
)  # fmt: skip
ANYTHING = frozenset(
    {
        "coalesce",
        "nvl",
        "nvl2",
        "ifnull",
        "nullif",
        "greatest",
        "least",
        "isnull",
        "isnotnull",
        "typeof",
        "hash",
        "equal_null",
    }
)
_CAST = 0.95  # of casts that are no casts are made ones
_ALIEN = 0.99  # below this chance an argument has the type that is wanted
_SHOUTED = 0.03  # of references are written in capitals, which are the same name
_WINDOWS = {"percent_rank": "double", "cume_dist": "double"} | dict.fromkeys(
    ("rank", "dense_rank", "row_number", "ntile"), "int"
)
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_CASTS = (*TYPES, "decimal(10,0)", "decimal(3,1)", "string", "string")


class Expressions:
    """Makes expressions; `used` collects the names of functions and operators."""

    def __init__(self, random: Random, scope: Scope, edge: float = 0.15) -> None:
        self.random = random
        self.scope = scope
        self.edge = edge
        self.used: set[str] = set()
        self.plain = False  # whether only columns and literals may be arguments
        self.tame = False  # whether nothing may raise: then it does not matter which rows an engine looks at, and when

    def of(self, type_: str, depth: int) -> Tree:
        """An expression of a type, or one that is cast to it where it matters little."""
        random = self.random
        if depth <= 0 or type_ == "void" or random.random() < 0.25:
            return self.leaf(type_)
        makers: list[Callable[[str, int], Tree | None]] = [
            self._call,
            self._call,
            self._call,
            self._conditional,
            self._cast,
        ]
        if type_ == "boolean":
            makers += [self._predicate, self._predicate, self._predicate]
        if type_ in _NUMERIC:
            makers += [self._arithmetic, self._arithmetic]
        made = random.choice(makers)(type_, depth)
        return made if made is not None else self.leaf(type_)

    def leaf(self, type_: str) -> Tree:
        """A column or a literal."""
        column = self.scope.column(self.random, type_) if self.random.random() < 0.65 else None
        if column is None:
            return expr(type_, self.literal(type_))
        return expr(type_, column.text.upper() if self.random.random() < _SHOUTED else column.text)

    def literal(self, type_: str) -> str:
        """A constant."""
        return literal(self.random, type_, self.edge)

    def call(self, name: str, depth: int) -> Tree:
        """A call of a function in one of its recorded ways."""
        return self._from(self.random.choice(learnt().calls[name]), depth)

    def _call(self, type_: str, depth: int) -> Tree | None:
        known = [s for s in learnt().by_type.get(type_, ()) if CATALOGUE[s.name].kind == "scalar"]
        if self.tame:
            known = [s for s in known if s.name in TAME and self._is_tame(s)]
        if not known:
            return None
        name = self.random.choice(sorted({s.name for s in known}))
        return self._from(self.random.choice([s for s in known if s.name == name]), depth)

    def _is_tame(self, signature: Signature) -> bool:
        """Whether its arguments are of types in scope, and no text is read as something else."""
        types = {a.type for a in signature.arguments}
        if "string" in types and signature.name not in TEXTUAL and types != {"string"}:
            return False
        return types <= set(self._tame_types()) and (types != {"string"} or signature.name in TEXTUAL | ANYTHING)

    def _tame_types(self) -> list[str]:
        """Types in scope that may be compared and computed with."""
        return sorted({c.type for c in self.scope.columns} & set(ATOMIC)) or ["int", "string"]

    def _some_type(self) -> str:
        return self.random.choice(self._tame_types() if self.tame else ATOMIC)

    def _from(self, signature: Signature, depth: int) -> Tree:
        self.used.add(signature.name)
        made = [self._argument(signature, i, depth - 1) for i in range(len(signature.arguments))]
        return expr(signature.type, signature.name, "(", listed(tuple(made), ", ", len(made)), ")")

    def _argument(self, signature: Signature, at: int, depth: int) -> Tree:
        random, argument = self.random, signature.arguments[at]
        chance = random.random()
        if argument.type == "":
            return Tree((argument.text,))
        if argument.column:
            return self._leaf_or_more(argument.type, depth)
        aggregate = CATALOGUE[signature.name].kind == "aggregate"
        if (
            at > 0 and (argument.type == "string" or aggregate) and chance < 0.75
        ):  # patterns, formats, units, percentages
            return expr(argument.type, self._recorded(signature, at))
        if at > 0 and chance < 0.35:
            return expr(argument.type, argument.text)
        if at == 0 and chance < (0.5 if argument.type == "string" else 0.2):
            return expr(argument.type, self._recorded(signature, at))
        if chance > _ALIEN and not self.tame:
            return self._leaf_or_more(random.choice(ATOMIC), depth)
        return self._leaf_or_more(argument.type, depth)

    def _leaf_or_more(self, type_: str, depth: int) -> Tree:
        return self.leaf(type_) if self.plain else self.of(type_, depth)

    def _recorded(self, signature: Signature, at: int) -> str:
        """The text of an argument that is as good as the recorded one at its place."""
        wanted = signature.arguments[at]

        def fits(a: Argument) -> bool:
            return a.type == wanted.type and not a.column

        others = [s.arguments[at].text for s in learnt().calls[signature.name] if len(s.arguments) > at]
        good = [s for s in learnt().calls[signature.name] if len(s.arguments) > at and fits(s.arguments[at])]
        return self.random.choice(good).arguments[at].text if good and others else wanted.text

    def _pair(self, depth: int) -> tuple[Tree, Tree]:
        """Two sides of a comparison: mostly of one type, else of types that meet."""
        random = self.random
        left = self._some_type()
        chance = random.random()
        if left in _NUMERIC and chance < 0.4:
            right = random.choice(_NUMERIC)
        elif left in ("date", "timestamp", "timestamp_ntz") and chance < 0.3:
            right = random.choice(("date", "timestamp", "timestamp_ntz"))
        else:
            right = left if chance < 0.95 or self.tame else random.choice(ATOMIC)
        return self._leaf_or_more(left, depth - 1), self._leaf_or_more(right, depth - 1)

    def predicate(self, depth: int) -> Tree:
        """A condition."""
        return self._predicate("boolean", depth)

    def _predicate(self, type_: str, depth: int) -> Tree:
        random = self.random
        shape = random.randrange(9)
        if shape < 3:
            left, right = self._pair(depth)
            word = random.choice(_COMPARISONS)
            self._use({"<>": "!=", "!=": "!="}.get(word, word))
            return expr("boolean", "(", left, f" {word} ", right, ")")
        if shape == 3:
            word = random.choice(("AND", "OR"))
            self._use(word.lower())
            return expr("boolean", "(", self.of("boolean", depth - 1), f" {word} ", self.of("boolean", depth - 1), ")")
        if shape == 4:
            self._use("not")
            return expr("boolean", "(NOT ", self.of("boolean", depth - 1), ")")
        kind = self._some_type()
        value = self._leaf_or_more(kind, depth - 1)
        if shape == 5:
            word = random.choice(("IS NULL", "IS NOT NULL"))
            self._use(word.lower())
            return expr("boolean", "(", value, f" {word})")
        if shape == 6:
            self._use("in")
            members = tuple(self.leaf(kind) for _ in range(random.randint(1, 3)))
            return expr("boolean", "(", value, random.choice((" IN (", " NOT IN (")), listed(members), "))")
        if shape == 7:
            self._use("between")
            word = random.choice((" BETWEEN ", " NOT BETWEEN "))
            return expr("boolean", "(", value, word, self.leaf(kind), " AND ", self.leaf(kind), ")")
        word = random.choice(("LIKE", "NOT LIKE", "ILIKE", "RLIKE"))
        self._use(word.lower().removeprefix("not "))
        pattern = random.choice(("'%a%'", "'a_'", "'%'", "''", "'S%'", "'_'", "'b|a'"))
        return expr("boolean", "(", self._leaf_or_more("string", depth - 1), f" {word} ", expr("string", pattern), ")")

    def _arithmetic(self, type_: str, depth: int) -> Tree:
        random = self.random
        if random.random() < 0.15:
            self._use("-")
            return expr(type_, "(- ", self._leaf_or_more(type_, depth - 1), ")")
        if self.tame:
            word = random.choice(("+", "-", "*"))
            self._use(word)
            return expr(type_, "(", self.leaf(type_), f" {word} ", self.leaf(type_), ")")
        if type_ in _INTEGRAL and random.random() < 0.1:
            self._use("~")
            return expr(type_, "(~ ", self._leaf_or_more(type_, depth - 1), ")")
        if type_ in ("int", "bigint") and random.random() < 0.2:
            word = random.choice(("<<", ">>", ">>>"))
            self._use(word)
            return expr(type_, "(", self._leaf_or_more(type_, depth - 1), f" {word} ", self.leaf("int"), ")")
        words = ("+", "-", "*", "%", "&", "|", "^", "div") if type_ in _INTEGRAL else ("+", "-", "*", "/", "%")
        word = random.choice(words)
        self._use(word)
        other = type_ if random.random() < 0.7 else random.choice(_INTEGRAL if type_ in _INTEGRAL else _NUMERIC)
        return expr(
            type_, "(", self._leaf_or_more(type_, depth - 1), f" {word} ", self._leaf_or_more(other, depth - 1), ")"
        )

    def _cast(self, type_: str, depth: int) -> Tree | None:
        if self.tame:
            return self.cast(self._some_type(), "string", depth) if type_ == "string" else None
        return self.cast(self.random.choice(ATOMIC), type_, depth)

    def cast(self, source: str, target: str, depth: int) -> Tree:
        """A cast of one type to another, in one of its forms; seldom one that no cast takes."""
        if not castable(source, target) and self.random.random() < _CAST:
            source = self.random.choice([t for t in ATOMIC if castable(t, target)] or [target])
        value = self._leaf_or_more(source, depth - 1)
        shape = self.random.random()
        if shape < 0.35 or target.startswith("interval"):
            return expr(target, "CAST(", value, f" AS {target.upper()})")
        return expr(target, "try_cast(", value, f" AS {target.upper()})")

    def any_cast(self, depth: int) -> Tree:
        """A cast over any pair of types."""
        return self.cast(self.random.choice((*TYPES, "void")), self.random.choice(_CASTS), depth)

    def _conditional(self, type_: str, depth: int) -> Tree:
        random = self.random
        shape = random.randrange(5)
        first, second = self._leaf_or_more(type_, depth - 1), self._leaf_or_more(type_, depth - 1)
        if shape == 0:
            self._use("if")
            return expr(type_, "if(", self.of("boolean", depth - 1), ", ", first, ", ", second, ")")
        if shape == 1:
            self._use("coalesce")
            return expr(type_, "coalesce(", listed((first, second)), ")")
        if shape == 2:
            kind = self._some_type()
            whens = tuple(Tree((" WHEN ", self.leaf(kind), " THEN ", r)) for r in (first, second))
            return expr(type_, "CASE ", self.leaf(kind), listed(whens, ""), " END")
        whens = tuple(Tree((" WHEN ", self.of("boolean", depth - 1), " THEN ", r)) for r in (first,))
        return expr(type_, "CASE", listed(whens, ""), optional(" ELSE ", second), " END")

    def any(self, depth: int) -> Tree:
        """An expression of any form: a cast, a conditional, a predicate, arithmetic, an access, a lambda."""
        random = self.random
        shape = random.randrange(9)
        if shape == 8:
            return self.counted(depth)
        if shape < 2:
            return self.any_cast(depth)
        if shape == 2:
            return self._conditional(random.choice(TYPES), depth)
        if shape == 3:
            return self.predicate(depth)
        if shape == 4:
            return self._arithmetic(random.choice(_NUMERIC), depth)
        if shape == 5:
            return self.access(depth)
        if shape == 6:
            return self.shifted(depth)
        return self.lambda_(depth)

    def access(self, depth: int) -> Tree:
        """A piece of a nested value."""
        shape = self.random.randrange(4)
        if shape == 0:
            return expr(
                "int", self._leaf_or_more("array<int>", depth - 1), "[", self._leaf_or_more("int", depth - 1), "]"
            )
        if shape == 1:
            return expr("int", self._leaf_or_more("map<string,int>", depth - 1), "[", self.leaf("string"), "]")
        if shape == 2:
            return expr("string", self._leaf_or_more("struct<a:int,b:string>", depth - 1), ".b")
        return expr("array<int>", self._leaf_or_more("array<struct<a:int,b:string>>", depth - 1), ".a")

    def shifted(self, depth: int) -> Tree:
        """A date or an instant and an interval, or two of them."""
        random = self.random
        times = ("date", "timestamp", "timestamp_ntz")
        word = random.choice("+-")
        self._use(word)
        left = random.choice(times)
        if word == "-" and random.random() < 0.4:
            right = random.choice(times)
            return expr("interval day to second", "(", self.leaf(left), " - ", self.leaf(right), ")")
        other = random.choice(("interval year to month", "interval day to second", "interval day to second"))
        type_ = "timestamp" if left == "date" and other == "interval day to second" else left
        return expr(type_, "(", self._leaf_or_more(left, depth - 1), f" {word} ", self.leaf(other), ")")

    def counted(self, depth: int) -> Tree:
        """A date or an instant so many units later, or how many units lie between two."""
        random = self.random
        unit, time = random.choice(_UNITS), random.choice(("date", "timestamp", "timestamp_ntz"))
        name = random.choice(("timestampadd", "dateadd", "timestampdiff", "datediff", "timediff"))
        self._use(name)
        if name.endswith("add"):
            return expr(time, f"{name}({unit}, ", self._leaf_or_more("int", depth - 1), ", ", self.leaf(time), ")")
        return expr("bigint", f"{name}({unit}, ", self.leaf(time), ", ", self._leaf_or_more(time, depth - 1), ")")

    def ranked(self) -> Tree:
        """An aggregate that is told an order."""
        name = self.random.choice(("percentile_cont", "percentile_disc"))
        self._use(name)
        way = self.random.choice(("", " DESC"))
        value = self._leaf_or_more(self.random.choice(("int", "double", "decimal(5,2)")), 1)
        return expr(
            "double",
            f"{name}({self.random.choice(('0', '0.25', '0.5', '1'))}) WITHIN GROUP (ORDER BY ",
            value,
            f"{way})",
        )

    def windowed(self, name: str) -> Tree:
        """A window function over rows in the order of their values: those that it does not tell apart are the same."""
        self._use(name)
        random = self.random
        type_ = random.choice(("int", "string", "double", "date"))
        value, count = self.leaf(type_), random.choice(("1", "2", "3"))
        step = optional(f", {count}", optional(", ", expr(type_, self.literal(type_))))
        inside = {
            "ntile": Tree((count,)),
            "nth_value": Tree((value, f", {count}")),
            "lag": Tree((value, step)),
            "lead": Tree((value, step)),
        }
        keys = listed((value, self.leaf(random.choice(("int", "string", "date")))))
        way = random.choice(("", " DESC", " NULLS LAST"))
        given = inside.get(name, Tree(()))
        return expr(_WINDOWS.get(name, type_), f"{name}(", given, ") OVER (ORDER BY ", keys, f"{way})")

    def lambda_(self, depth: int) -> Tree:
        """A higher-order function whose body is an expression over its parameters and the columns."""
        random = self.random
        element = random.choice(("int", "string", "double"))
        items = self._leaf_or_more(f"array<{element}>", depth - 1)
        outer = self.scope
        name = random.choice(("transform", "filter", "exists", "forall", "aggregate", "array_sort"))
        self._use(name)
        made = {"array_sort": "int", **dict.fromkeys(("transform", "aggregate"), random.choice(ATOMIC))}
        result = made.get(name, "boolean")
        start = (", ", self.of(result, 0)) if name == "aggregate" else ()
        bound = [Column("a", result)] if start else [Column("y", element)] if name == "array_sort" else []
        bound.append(Column("x", element))
        if name == "transform" and random.random() < 0.3:
            bound.append(Column("i", "int"))
        self.scope = Scope([*bound, *bound, *outer.columns])
        body = self.of(result, max(depth - 1, 1))
        self.scope = outer
        heads = f"({', '.join(column.text for column in bound)})" if len(bound) > 1 else "x"
        types = {
            "transform": f"array<{result}>",
            "aggregate": result,
            **dict.fromkeys(("filter", "array_sort"), items.type),
        }
        return expr(types.get(name, "boolean"), f"{name}(", items, *start, f", {heads} -> ", body, ")")

    def _use(self, name: str) -> None:
        if name in CATALOGUE:
            self.used.add(name)
