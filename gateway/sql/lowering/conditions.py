"""What lowered expressions are computed under: AND and OR, filters, and CASE around what may fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.sql.functions.lowerings import lazy_case
from gateway.sql.lowering.cycles import without_cycle
from gateway.sql.lowering.evaluation import is_told
from gateway.sql.typed.keys import key
from gateway.sql.typed.nodes import Case, EngineCast, Expr, Lit, Op, Subquery
from gateway.sql.typed.walk import children, nodes
from gateway.sqltypes import BOOLEAN, INT, DataType

_COMPARISONS = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
ONE = Lit(INT, False, 1)
ZERO = Lit(INT, False, 0)
MOST_GUARDED = 60  # nodes of what is written once more, as a guard


@dataclass(slots=True)
class Conditions:
    """Conditions of one statement's lowered expressions."""

    _told: dict[int, tuple[bool, int]] = field(init=False, default_factory=dict)  # whether it raises, and its parts
    _keep: list[Expr] = field(init=False, default_factory=list)  # so that ids in `_told` stay unique
    #: What `connective` made, with its symbol and operands, by id.
    _connected: dict[int, tuple[Expr, str, Sequence[Expr]]] = field(init=False, default_factory=dict)
    #: What `gated` made, with its conditions and value, by id.
    _gates: dict[int, tuple[Expr, Sequence[Expr], Expr]] = field(init=False, default_factory=dict)

    def raises(self, expr: Expr) -> bool:
        """Whether evaluating the engine-level `expr` can fail for some row."""
        return self.tell(expr)[0]

    def tell(self, expr: Expr) -> tuple[bool, int]:
        """Whether it can fail, and of how many parts it is, written out."""
        known = self._told.get(id(expr))
        if known is None:
            below = list(map(self.tell, children(expr)))
            raises = bool(getattr(expr, "raises", False)) or any(r for r, _ in below)
            self._told[id(expr)] = known = raises, 1 + sum(parts for _, parts in below)
            self._keep.append(expr)
        return known

    def connective(self, symbol: str, args: Sequence[Expr]) -> Expr:
        """AND / OR of lowered operands, lazy where a later one raises: each is asked for where none before it decides."""
        terms = [term for a in args for term in self._terms_of(symbol, a)]
        starts = [0, *(i for i in range(1, len(terms)) if self.raises(terms[i]))]
        if len(starts) == 1 < len(terms) and self.raises(terms[0]):
            starts.append(1)
        if len(starts) == 1:
            return _plainly(symbol, terms)
        parts = [_plainly(symbol, terms[i:k]) for i, k in zip(starts, [*starts[1:], len(terms)], strict=True)]
        decided = [(Op(BOOLEAN, p.nullable, "NOT", (p,)), ZERO) if symbol == "and" else (p, ONE) for p in parts[:-1]]
        # In one CASE: of one in another DataFusion's simplifier (55) makes ever more.
        all_told = Case(INT, True, tuple(decided), EngineCast(INT, True, _plainly(symbol, parts)))
        made = Op(BOOLEAN, True, "=", (all_told, ONE))
        self._connected[id(made)] = made, symbol, terms
        return made

    def _terms_of(self, symbol: str, expr: Expr) -> Sequence[Expr]:
        """The operands of what `connective` made with the same symbol; of anything else, itself."""
        _, made_with, terms = self._connected.get(id(expr), (expr, symbol, (expr,)))
        return terms if made_with == symbol else (expr,)

    def filters(self, conjuncts: Sequence[Expr]) -> list[Expr]:
        """Lowered conjuncts of one filter chain, in order: those that can't fail stay bare (the reader prunes with them), a
        raising one is evaluated only where all bare and earlier ones hold."""
        told = next((i for i, c in enumerate(conjuncts) if self.raises(c) and any(map(is_told, nodes(c)))), None)
        if told is not None:  # raise_error comes in its turn, whatever the conjuncts after it
            before, rest = self.filters(conjuncts[:told]), self.connective("and", list(conjuncts[told:]))
            return [*before, _where_all(before, rest)] if before else [rest]
        bare: list[Expr] = []
        raising: list[Expr] = []
        for conjunct in conjuncts:
            if _is_unknown(conjunct):  # the engine would move NULL below an aggregate, whose row stays then
                conjunct = Lit(BOOLEAN, False, False)
            (raising if self.raises(conjunct) else bare).append(without_cycle(conjunct))
        if not raising:
            return bare
        if not bare and len(raising) == 1:
            return raising
        guards = [_plainly("and", bare), *raising[:-1]] if bare else raising[:-1]
        return [*bare, _where_all(guards, raising[-1])]

    def where(self, conjuncts: Sequence[Expr], expr: Expr) -> Expr:
        """`expr`, which is asked for only where the conjuncts hold, as one that raises nowhere else."""
        if not self.raises(expr):
            return expr
        simple = [c for c in conjuncts if not any(isinstance(e, Subquery) for e in nodes(c))]
        if not simple or sum(len(nodes(c)) for c in simple) > MOST_GUARDED:
            return expr
        return lazy_case(expr.type, (self.connective("and", self.filters(simple)), expr))

    def gated(self, type_: DataType, outside: Sequence[Expr], guards: Sequence[Expr], value: Expr) -> Expr:
        """`value`, computed only where all conditions hold; NULL elsewhere."""
        every = {key(g.args[0]) if isinstance(g, Op) else id(g): g for g in (*outside, *guards)}
        if not every:
            return value
        made = lazy_case(type_, (self.connective("and", list(every.values())), value))
        self._gates[id(made)] = made, tuple(every.values()), value
        return made

    def gate(self, made: Expr) -> tuple[Sequence[Expr], Expr] | None:
        """The conditions and the value of what `gated` made."""
        known = self._gates.get(id(made))
        return known and known[1:]


def _where_all(guards: Sequence[Expr], condition: Expr) -> Expr:
    """A condition of a filter that is asked for only where all guards hold, of which each is where those before it do."""
    unless = tuple((Op(BOOLEAN, False, "IS NOT TRUE", (g,)), ZERO) for g in guards)
    return Op(BOOLEAN, True, "=", (Case(INT, True, unless, EngineCast(INT, True, condition)), ONE))


def _plainly(symbol: str, args: Sequence[Expr]) -> Expr:
    return args[0] if len(args) == 1 else Op(BOOLEAN, any(a.nullable for a in args), symbol.upper(), tuple(args))


def _is_unknown(e: Expr) -> bool:
    """Whether a lowered condition is NULL for every row."""
    if isinstance(e, Op) and e.symbol in ("AND", "OR", "NOT"):
        return all(map(_is_unknown, e.args))
    args = e.args if isinstance(e, Op) and e.symbol in _COMPARISONS else (e,)
    return any(isinstance(a, Lit) and a.value is None for a in args)
