"""Neighbours of statements that somebody wrote: literals, types, operators and clauses changed, pieces swapped between them."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from gateway.sql.functions import CATALOGUE, SPARK_ONLY
from tests.conformance.shared import ROOT, shared_folder
from tests.fuzz import brackets
from tests.fuzz.compare import OURS
from tests.fuzz.machine import Judgement, Machine
from tests.fuzz.signatures import UNSTEADY, learnt
from tests.fuzz.tree import Case, Tree, case
from tests.fuzz.values import ATOMIC, EDGES, EVERYDAY, TYPES, ZONES

_PROBES = ROOT / "tests" / "data" / "query-probes.jsonl"
_LONGEST = 1500
_ATTEMPTS = 3
_APART = 10_000_000
# What has ties, or tells of anything but the values.
_SKIPPED = UNSTEADY | {
    "limit", "offset", "tablesample", "first", "last", "any_value", "first_value", "last_value", "nth_value", "collect_list",
    "collect_set", "array_agg", "listagg", "string_agg", "row_number", "ntile", "lag", "lead", "mode", "max_by", "min_by",
    "approx_percentile", "percentile_approx", "approx_top_k", "sample", "set", "udf", "unbounded", "rows", "collate",
}  # fmt: skip
_OPERATORS = (("+", "-", "*"), ("=", "<>", "<", "<=", ">", ">=", "<=>"), ("AND", "OR"), ("/", "%"))
_TYPE_NAMES = frozenset(
    {
        "INT",
        "BIGINT",
        "STRING",
        "DOUBLE",
        "FLOAT",
        "DATE",
        "TIMESTAMP",
        "BOOLEAN",
        "SMALLINT",
        "TINYINT",
        "BINARY",
        "DECIMAL",
    }
)


@dataclass(frozen=True, slots=True)
class Written:
    """A statement that somebody wrote, and the views that it needs."""

    before: tuple[str, ...]
    sql: str


@functools.cache
def written() -> tuple[Written, ...]:
    """The statements of the project's probes, and of the corpora beside the checkout where they are."""
    found = [Written((), str(json.loads(line)["sql"])) for line in _PROBES.read_text(encoding="utf-8").splitlines()]
    shared = shared_folder()
    for path in sorted((shared / "conformance").glob("spark_*.jsonl.gz")) if shared is not None else ():
        found += _corpus(path)
    return tuple(w for w in found if len(w.sql) < _LONGEST and not _words(w.sql) & (_SKIPPED | SPARK_ONLY))


def _corpus(path: Path) -> Iterator[Written]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            views: dict[str, str] = {}
            for statement in entry.get("statements", ()):
                sql = statement["sql"]
                words = [t for t in brackets.tokens(sql) if not brackets.is_blank(t)]
                upper = [w.upper() for w in words]
                if statement["kind"] == "command" and "VIEW" in upper[:5] and {"TEMPORARY", "TEMP"} & set(upper[:5]):
                    views[words[upper.index("VIEW") + 1].lower()] = sql
                elif statement["kind"] == "query" and statement.get("score") and "types" in statement:
                    used = _words(sql)
                    before = tuple(text for name, text in views.items() if name in used)
                    if before or "VALUES" in upper or "FROM" not in upper:
                        yield Written(before, sql)


def _words(sql: str) -> set[str]:
    return {t.lower() for t in brackets.tokens(sql)}


Mutation = Callable[[Random, Tree], Tree]


def _places(tree: Tree, kind: str) -> list[tuple[tuple[int, ...], Tree]]:
    return [(path, piece) for path, piece in tree.walk() if piece.kind == kind and str(piece).strip()]


def _retoken(choose: Callable[[Random, str, str], str | None]) -> Mutation:
    """A change of one token, for which `choose` gives another, or None if it is none that it changes."""

    def mutate(random: Random, tree: Tree) -> Tree:
        pieces = brackets.tokens(str(tree))
        at = list(range(len(pieces)))
        random.shuffle(at)
        for i in at:
            before = next((p for p in reversed(pieces[:i]) if not p.isspace()), "")
            other = choose(random, pieces[i], before)
            if other is not None and other != pieces[i]:
                return brackets.tree("".join([*pieces[:i], other, *pieces[i + 1 :]]))
        return tree

    return mutate


def _literal(random: Random, token: str, before: str) -> str | None:
    if before.upper() in ("TIMESTAMP", "DATE", "INTERVAL", "X", "TIMESTAMP_NTZ", "BY", "AS"):
        return None
    if token[:1].isdigit():
        kind = random.choice(("int", "int", "int", "bigint", "double", "decimal(5,2)", "void"))
    elif token[:1] == "'":
        kind = random.choice(("string", "string", "string", "void", "int", "date"))
    elif token.upper() == "NULL" and before.upper() not in ("IS", "NOT"):
        kind = random.choice(ATOMIC)
    elif token.upper() in ("TRUE", "FALSE"):
        return random.choice(("true", "false", "NULL"))
    else:
        return None
    return random.choice((*EVERYDAY[kind], *EDGES.get(kind, ())))


def _operator(random: Random, token: str, before: str) -> str | None:
    for group in _OPERATORS:
        if token.upper() in group:
            return random.choice(group)
    return None


def _type(random: Random, token: str, before: str) -> str | None:
    if token.upper() in _TYPE_NAMES and before.upper() in ("AS", ":", "::"):
        return random.choice(TYPES).upper()
    return None


def _function(random: Random, token: str, before: str) -> str | None:
    if token.lower() not in learnt().calls or before.upper() == "AS":
        return None
    kind, counts = CATALOGUE[token.lower()].kind, {len(s.arguments) for s in learnt().calls[token.lower()]}
    others = [
        n
        for n, calls in learnt().calls.items()
        if CATALOGUE[n].kind == kind and n not in _SKIPPED and counts & {len(s.arguments) for s in calls}
    ]
    return random.choice(others)


def _wrap(random: Random, tree: Tree) -> Tree:
    """An expression inside of another one."""
    places = [(path, piece) for path, piece in _places(tree, "expr") if _is_value(str(piece))]
    if not places:
        return tree
    path, piece = random.choice(places)
    form = random.choice(_FORMS)
    return tree.put(path, Tree((form.replace("{}", f" {str(piece).strip()} "),), "expr"))


_FORMS = (
    " ({})",
    " coalesce({}, {})",
    " CAST({} AS STRING)",
    " (SELECT {})",
    " CASE WHEN true THEN {} END",
    " nullif({}, NULL)",
    " array({})[0]",
    " named_struct('a', {}).a",
    " transform(array({}), x -> x)[0]",
    " NULL",
    " ({}) IS NULL",
    " if({} IS NULL, NULL, {})",
    " - ({})",
    " try_cast({} AS INT)",
    " max({})",
    " count(DISTINCT {})",
    " sum({}) OVER ()",
)
_NO_VALUE = frozenset(
    {"AS", "ASC", "DESC", "JOIN", "FROM", "SELECT", "OVER", "VALUES", "INTERVAL", "NULLS", "ON", "*", "->", ";"}
)


def _is_value(text: str) -> bool:
    words = [t.upper() for d, t in brackets.levels(brackets.tokens(text)) if d == 0 and not t.isspace()]
    return bool(words) and not _NO_VALUE & set(words) and not words[0].startswith(("TABLE", "LATERAL", "("))


def _swap(random: Random, tree: Tree) -> Tree:
    """An expression of another statement, without columns, or of this one, in the place of one."""
    places = [(path, piece) for path, piece in _places(tree, "expr") if _is_value(str(piece))]
    if not places:
        return tree
    path, _ = random.choice(places)
    pool = [str(p) for _, p in places] if random.random() < 0.5 else constants()
    return tree.put(path, Tree((f" {random.choice(pool).strip()} ",), "expr"))


@functools.cache
def constants() -> tuple[str, ...]:
    """Items of written statements that need no FROM."""
    found: dict[str, None] = {}
    for each in written():
        if each.sql.upper().startswith("SELECT ") and not each.before and not {"from", "as"} & _words(each.sql):
            for item in brackets.items(each.sql[7:])[0]:
                if len(item) < 120 and _is_value(item):
                    found[item] = None
    return tuple(found)


def _drop(random: Random, tree: Tree) -> Tree:
    places = [path for path, _ in _places(tree, "optional")]
    return tree.put(random.choice(places), Tree((), "optional")) if places else tree


def _fewer(random: Random, tree: Tree) -> Tree:
    places = [(path, piece) for path, piece in _places(tree, "list") if len(piece.parts) > 1]
    if not places:
        return tree
    path, piece = random.choice(places)
    at = random.randrange(len(piece.parts))
    parts = (*piece.parts[:at], *piece.parts[at + 1 :]) if random.random() < 0.5 else (*piece.parts, piece.parts[at])
    return tree.put(path, Tree(parts, "list", separator=piece.separator))


_AROUND = (
    "SELECT * FROM ({}) AS q",
    "WITH q AS ({}) SELECT * FROM q",
    "SELECT count(*) FROM ({}) AS q",
    "({}) UNION ALL ({})",
    "({}) INTERSECT ({})",
    "({}) EXCEPT ({})",
    "SELECT DISTINCT * FROM ({}) AS q",
    "SELECT * FROM ({}) AS q ORDER BY ALL",
    "SELECT * FROM VALUES (1), (NULL) AS o(n) WHERE EXISTS ({})",
    "SELECT * FROM ({}) AS q NATURAL JOIN ({}) AS r",
    "SELECT q.*, r.* FROM ({}) AS q LEFT JOIN ({}) AS r ON true",
    "SELECT * FROM VALUES (1), (2) AS o(n) CROSS JOIN ({}) AS q",
    "SELECT * FROM ({}) AS q WHERE false",
    "SELECT * FROM (SELECT * FROM ({}) AS q) AS r GROUP BY ALL",
)


def _around(random: Random, tree: Tree) -> Tree:
    text = str(tree).strip()
    return brackets.tree(random.choice(_AROUND).replace("{}", text))


_MUTATIONS: tuple[Mutation, ...] = (
    *(_retoken(_literal),) * 4,
    _retoken(_operator),
    _retoken(_type),
    *(_retoken(_function),) * 2,
    *(_wrap,) * 3,
    *(_swap,) * 2,
    _drop,
    _fewer,
    *(_around,) * 2,
)


def make(seed: int, number: int) -> Case:
    """The neighbour of that number."""
    random = Random(f"{seed} neighbours {number}")
    start = random.choice(written())
    tree = brackets.tree(start.sql)
    for _ in range(random.choice((1, 1, 2, 3))):
        tree = random.choice(_MUTATIONS)(random, tree)
    zone = random.choice(ZONES) if random.random() < 0.3 else "UTC"
    functions = frozenset(_words(str(tree)) & set(CATALOGUE))
    return case("neighbours", *start.before, tree, zone=zone, functions=functions, seed=f"{seed}/{number}")


def step(machine: Machine, seed: int, number: int) -> Judgement:
    """Ask about a neighbour of that number: the first that is answered here, since changes at random often make no sense."""
    for more in range(_ATTEMPTS + 1):
        one = make(seed, number + more * _APART)
        if not _words(one.statements[-1]) & _SKIPPED:
            ours = machine.embedded.ask(one)
            if ours.kind == "answer" or more == _ATTEMPTS or ours.condition.startswith(OURS):
                return functools.partial(machine.judge, one, ours)
    return _nothing


def _nothing() -> None:
    """Nothing was asked."""
