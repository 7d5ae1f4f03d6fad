"""From the Spark level to the engine level: every call by its catalogue row, every cast by its pair, laziness kept.

Spark evaluates AND, OR and CASE left to right and only when needed; DataFusion evaluates all conjuncts of a filter and
simplifies boolean CASEs to AND. Where a later operand can fail for a row (`raises`), the connective is therefore written as
an integer CASE compared with 1, which DataFusion keeps lazy. In the same way an operand that can fail is evaluated only where
no operand before it (`evaluation`) is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from gateway.errors import ResourceError, UnsupportedError, unsupported
from gateway.sql.functions.casts import fold_cast, lower_cast
from gateway.sql.functions.fold import fold
from gateway.sql.functions.lowerings import lazy_case, not_null, one_zero
from gateway.sql.functions.statistics import MERGED, tested, windowed
from gateway.sql.lowering.bounds import Bounds
from gateway.sql.lowering.captures import captures, held, is_beside_others, is_of_columns
from gateway.sql.lowering.conditions import MOST_GUARDED, ONE, ZERO, Conditions
from gateway.sql.lowering.evaluation import (
    DECIDING,
    NULL_TESTS,
    TRIED,
    absorbed,
    agreed,
    as_planned,
    certain,
    filtered_first,
    has_known_null,
    is_key,
    is_nothing,
    is_null_by,
    is_random,
    is_shallow,
    is_strict,
    is_told,
    is_written_null,
    null_by,
    one_by_one,
    operands,
    truth,
    unread_constants,
    written_item,
)
from gateway.sql.lowering.frames import ranged
from gateway.sql.typed.assignment import is_void_map
from gateway.sql.typed.catalogue import BOUNDED, WINDOWED, Catalogue, Context, Function, is_steady
from gateway.sql.typed.nodes import (
    Agg,
    Call,
    Case,
    Cast,
    Col,
    EngineCast,
    Expr,
    Fn,
    Lambda,
    Lit,
    Op,
    Rel,
    SortKey,
    Subquery,
    Udf,
    Window,
    udf,
)
from gateway.sql.typed.walk import has_columns, nodes, rebuilt_engine
from gateway.sqltypes import (
    BOOLEAN,
    INT,
    VOID,
    DataType,
    DecimalType,
    MapType,
    decimal,
    is_nested,
    is_numeric,
)

_SUMS = ("sum", "try_sum", "avg")
_OTHERWISE_OVER = (*MERGED, *_SUMS, "min", "max")
_TWICE = frozenset({"between", "nullif", "nullifzero", "decode"})  # look at their first operand more than once
# Made of each other in long chains: a CASE around each of them would double the time that the engine plans them for.
_CHAINED = frozenset({"+", "-", "*"})
_COMPARED = 100  # operands of which each is held against the others
_MOST_PARTS = 300_000  # of an expression: what writes an operand twice doubles it with each that stands in another


def _sum_type(agg: Agg) -> DataType:
    """The type in which an aggregate adds up."""
    if agg.fn == "avg" and agg.args and isinstance(agg.args[0].type, DecimalType):
        precision, scale = agg.args[0].type.precision, agg.args[0].type.scale
        return decimal(min(38, precision + 10), scale)
    return agg.type


@dataclass(slots=True)
class Lowering(Conditions):
    """The state of one statement's lowering."""

    catalogue: Catalogue
    context: Context
    bounds: Bounds | None = None
    local: frozenset[int] = frozenset()  # columns of rows that Spark computes while it plans
    root: Rel | None = None  # the whole query
    may_raise: bool = False  # whether something that was lowered can fail for some row
    row_by_row: bool = False  # whether Spark computes what is lowered while it plans, before it simplifies anything
    _lowered: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)  # what `may_fail` has lowered, by id

    def lower(self, expr: Expr) -> Expr:
        """The engine-level form of `expr`. Raises ResourceError for what would be too large, written out."""
        known = self._lowered.get(id(expr)) if not self.row_by_row else None
        lowered = self._lower(expr) if known is None else known[1]
        if not isinstance(lowered, (Col, Lit)):
            raises, parts = self.tell(lowered)
            if parts > _MOST_PARTS:
                message = f"An expression has more than {_MOST_PARTS} parts once its functions are written out for the engine."
                raise ResourceError("STATEMENT_TOO_COMPLEX", message, span=getattr(expr, "span", None))
            self.may_raise = self.may_raise or raises
        return lowered

    def may_fail(self, expr: Expr) -> bool:
        """Whether evaluating a bound expression, outside of rows that Spark computes while it plans, can fail for some row.

        False for what cannot be lowered, which is told later.
        """
        known = self.may_raise
        try:
            lowered = self.lower(expr)
        except UnsupportedError:
            return False
        finally:
            self.may_raise = known
        self._lowered[id(expr)] = expr, lowered
        return self.raises(lowered)

    def of_rows(self, row_by_row: bool, expr: Expr) -> Expr:
        """`lower` of what Spark computes row by row while it plans, or not."""
        self.row_by_row = row_by_row
        try:
            return self.lower(expr)
        finally:
            self.row_by_row = False

    def _lower(self, expr: Expr) -> Expr:
        if isinstance(expr, (Col, Lit)):
            return expr
        same = agreed(expr) if not self.row_by_row else None
        if same is not None and has_columns(expr):
            return self.lower(same)
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, Cast):
            if is_void_map(expr.arg) and isinstance(expr.type, MapType):
                return self.lower(replace(expr.arg, type=expr.type))
            arg = self.lower(expr.arg)
            folded = fold_cast(arg, expr.type, self.context) if isinstance(arg, Lit) and not expr.is_try else None
            return folded or lower_cast(expr, arg, self.context)
        if isinstance(expr, Case):
            return self._case(expr)
        if isinstance(expr, Agg):
            return self._agg(expr)
        if isinstance(expr, Window):
            return Window(
                expr.type,
                expr.nullable,
                self._agg(expr.fn, over=True) if isinstance(expr.fn, Agg) else self.lower(expr.fn),
                tuple(one_zero(self.lower(p)) for p in expr.partition),
                *ranged(expr, self.sort_keys(expr.order), self.lower, self.raises),
            )
        if isinstance(expr, Subquery):
            return replace(expr, args=tuple(self.lower(a) for a in expr.args))
        if isinstance(expr, Lambda):
            body = self.lower(expr.body)
            beside = self.root is not None and captures(expr.body) and is_beside_others(self.root)
            if beside or any(self.raises(part) and is_of_columns(part) for part in nodes(body)):
                body = held(body)
            return Lambda(expr.type, expr.nullable, expr.params, body)
        return expr

    def sort_keys(self, keys: Sequence[SortKey]) -> tuple[SortKey, ...]:
        """Lowered ORDER BY items; float keys are normalised so that -0.0 sorts with 0.0.

        Inside of arrays and structs NULL is the least value, wherever NULLs themselves stand: those have their own key then.
        """
        lowered = []
        for sort in keys:
            expr = one_zero(self.lower(sort.expr))
            nulls_first = sort.nulls_first
            if is_nested(expr.type) and sort.descending == nulls_first:
                if expr.nullable:
                    lowered.append(SortKey(not_null(expr), not nulls_first, True))
                nulls_first = not sort.descending
            lowered.append(SortKey(expr, sort.descending, nulls_first))
        return tuple(lowered)

    def _call(self, call: Call) -> Expr:
        if call.fn in _TWICE and not is_steady(call.args[0], self.catalogue):
            raise unsupported(f"`{call.fn}` of what differs from call to call", call.span)
        if call.fn in ("and", "or", "between"):
            if call.fn == "between":
                return self.connective("and", [self.lower(a) for a in call.args])
            args = tuple(self.lower(a) for a in call.args)
            if any(map(self.raises, args)) and has_columns(call) and not self.row_by_row:
                terms = self.asked(call.args, call.fn)
                if len(terms) == 1:
                    return self.lower(terms[0])
            if any(map(self.raises, args)) and (self._is_settled(call) or self._is_decided_before(call, args)):
                return Lit(BOOLEAN, False, call.fn == "or")
            whole = self.connective(call.fn, self._constants_first(call, args))
            if self.raises(args[0]) and self._is_in_turn(call, args):
                return udf("last", BOOLEAN, args[0], whole, nullable=whole.nullable, raises=True)
            return whole
        row = self.catalogue.get(call.fn)
        if row is None or row.lower is None:
            raise UnsupportedError(
                "UNSUPPORTED_FUNCTION", f"The function `{call.shown or call.fn}` is not supported.", span=call.span
            )
        item = None if self.row_by_row else written_item(call)
        if item is not None:
            result = self.lower(item)
            known = [e for e in map(self.lower, unread_constants(call, item)) if self.raises(e)]
            known = [e for e in known if not any(map(is_told, nodes(e)))]  # these are no constants to Spark
            return udf("last", call.type, *known, result, nullable=result.nullable, raises=True) if known else result
        args = tuple(
            self.lower(a) for a in (as_planned(call) if self.row_by_row or not has_columns(call) else call.args)
        )
        if call.fn in DECIDING and self.raises(args[1]) and not self.raises(args[0]):
            each = one_by_one(call)
            if each is not None:
                return self.lower(each)
        if args and all(isinstance(a, Lit) for a in args):
            folded = fold(replace(call, args=args), self.context)
            if folded is not None:
                return folded
        if any(map(self.raises, args)):
            return self._failing(row, call, args)
        result = self._applied(row, call, args)  # or refused
        return Lit(call.type, True, None) if any(map(_is_null, args)) and is_strict(call) else result

    def _failing(self, row: Function, call: Call, args: tuple[Expr, ...]) -> Expr:
        """The call of lowered arguments of which some may raise."""
        if self._has_null(call, args):
            return self._null(call, args)
        told = certain(call) if call.fn in NULL_TESTS and not self.row_by_row else None
        if told is not None:  # Spark does not look
            return Lit(BOOLEAN, False, told)
        if call.fn in NULL_TESTS:  # the engine would not either, at what it knows never to be NULL
            args = (udf("last", args[0].type, *args, raises=True),)
        if call.fn == "in":
            return self._in(row, call, args)
        if call.fn in ("try_divide", "try_mod") and self.raises(args[0]) and is_numeric(args[1].type):
            zero = EngineCast(args[1].type, False, ZERO)  # spares what is divided as NULL does
            args = (lazy_case(args[0].type, (Op(BOOLEAN, True, "<>", (args[1], zero)), args[0])), args[1])
        if call.fn in _CHAINED and self.raises(args[1]) and all(map(has_columns, call.args)):
            columns = null_by(call.args[0])
            if columns is not None:
                return self._applied(row, call, (args[0], self._beside(columns.values(), args[1])))
        outside, args = self._ungated(call, args)
        result = self._applied(row, call, args)
        if call.fn == "typeof":
            return result
        # The engine would compute that field alone.
        if call.fn == "_field" and (self.row_by_row or (self.raises(args[0]) and not has_columns(call))):
            result = udf("last", call.type, args[0], result, nullable=result.nullable, raises=True)
        raising = [k for k, a in enumerate(args) if self.raises(a)]
        if (
            (self.row_by_row or not has_columns(call))
            and (is_strict(call) or is_null_by(call, 0))
            and has_known_null(args, self.row_by_row)
        ):
            # the engine knows a constant that is NULL, and drops what is beside it
            first = [a for a in args if self.raises(a)][:1]
            result = udf("last", call.type, *first, result, nullable=result.nullable, raises=True)
        return self.gated(call.type, outside, *self._spared(call, args, raising, self._kept(args, result)))

    def asked(self, terms: Sequence[Expr], symbol: str = "and") -> list[Expr]:
        """The operands of an AND or OR, of which Spark's optimizer leaves out what says no more than others."""
        if not 2 <= len(terms) <= _COMPARED or not all(is_steady(t, self.catalogue) for t in terms):
            return list(terms)
        return absorbed(terms, symbol)

    def _is_in_turn(self, call: Call, args: Sequence[Expr]) -> bool:
        """Whether Spark evaluates AND or OR from left to right; the engine may know the last operand, and ask no other."""
        return self.row_by_row or not (has_columns(call) or any(map(is_told, nodes(args[0]))))

    def _is_decided_before(self, call: Call, args: Sequence[Expr]) -> bool:
        """Whether an operand that is TRUE in OR, FALSE in AND is before all that may raise: the engine looks at those, too."""
        first = next(i for i, a in enumerate(args) if self.raises(a))
        return any(truth(a, self.context) is (call.fn == "or") for a in call.args[:first])

    def _constants_first(self, call: Call, args: Sequence[Expr]) -> list[Expr]:
        """Operands of AND or OR: Spark knows the constant ones before it evaluates any, and may need no other."""
        if not any(map(self.raises, args)) or not has_columns(call):
            return list(args)
        known = [
            not has_columns(a) and not self.raises(b) and is_steady(a, self.catalogue)
            for a, b in zip(call.args, args, strict=True)
        ]
        return [a for a, k in zip(args, known, strict=True) if k] + [
            a for a, k in zip(args, known, strict=True) if not k
        ]

    def _applied(self, row: Function, call: Call, args: tuple[Expr, ...]) -> Expr:
        """The call of lowered arguments, all of which may be evaluated at any time."""
        if call.fn in ("+", "-", "*") and self.bounds is not None and self.bounds.exact(call):
            return Op(call.type, call.nullable, call.fn, args)  # no row can overflow
        assert row.lower is not None
        try:
            return row.lower(call, args, self.context)
        except UnsupportedError as error:
            raise error.at(call.span) from None

    @staticmethod
    def _kept(args: Sequence[Expr], result: Expr) -> Expr:
        """`result`, with what raises among the untyped arguments evaluated even where it was lowered without them."""
        void = [a for a in args if a.type == VOID and isinstance(a, (Udf, Case))]
        if not void:
            return result
        there = {id(e) for e in nodes(result)}
        lost = [a for a in void if id(a) not in there]
        return udf("last", result.type, *lost, result, nullable=result.nullable, raises=True) if lost else result

    def _typed(self, arg: Expr) -> Expr:
        """A VOID argument that raises as one of a type, which no lowering takes for a plain NULL."""
        return udf("typed_null", INT, arg, raises=True) if arg.type == VOID and self.raises(arg) else arg

    def _in(self, row: Function, call: Call, args: tuple[Expr, ...]) -> Expr:
        """``x IN (a, b, …)``: Spark stops at the first match, and does not begin where x is NULL."""
        runs: list[list[Expr]] = []
        for item in args[1:]:
            if not runs or self.raises(item):
                runs.append([])
            runs[-1].append(item)
        found = self.connective("or", [self._applied(row, call, (args[0], *run)) for run in runs])
        known = self._known(call.args[0], args[0]) if any(map(self.raises, args[1:])) else []
        return lazy_case(BOOLEAN, (self.connective("and", known), found)) if known else found

    def _spared(
        self, call: Call, args: tuple[Expr, ...], raising: Sequence[int], result: Expr
    ) -> tuple[list[Expr], Expr]:
        """Conditions and `result`, which is computed only where they hold, as no operand before the last raising one is NULL:
        Spark would not evaluate that one."""
        in_turn = self.row_by_row or not has_columns(call)
        order = operands(call, raising, in_turn)
        last = max((k for k in range(1, len(order)) if order[k] in raising), default=0)
        guards: list[Expr] = []
        for i, place in enumerate(order[:last]):
            if _is_null(args[place]) and any(k in raising for k in order[:i]):  # the engine drops those
                return [], self._null(call, args)
            # What fails does so also where only an operand behind it is NULL.
            first = place in raising and any(args[k].nullable for k in order[i + 1 : last])
            operand = args[place]
            if in_turn and operand.nullable and not (has_columns(operand) or isinstance(operand, Lit)):
                # The engine would know it, and drop what raises before.
                operand = udf("last", operand.type, operand, raises=self.raises(operand), volatile=True)
            known = self._known(call.args[place], operand, computed=first)
            if known is None:
                return [], result
            guards += known
        return guards, result

    def _ungated(self, call: Call, args: tuple[Expr, ...]) -> tuple[Sequence[Expr], tuple[Expr, ...]]:
        """The conditions of `gated` taken from the operand that alone may raise, where NULL makes the call NULL: one such CASE
        in another takes the engine (DataFusion 55) twice as long."""
        raising = [i for i, a in enumerate(args) if self.raises(a)]
        gate = self.gate(args[raising[0]]) if len(raising) == 1 and is_strict(call) else None
        if gate is None:
            return (), args
        guards, value = gate
        return guards, (*args[: raising[0]], value, *args[raising[0] + 1 :])

    def _beside(self, columns: Iterable[Expr], arg: Expr) -> Expr:
        """An operand, computed only where none of the columns before it is NULL."""
        guards = [not_null(c) for c in columns]
        return lazy_case(arg.type, (self.connective("and", guards), arg)) if guards else arg

    def _has_null(self, call: Call, args: Sequence[Expr]) -> bool:
        """Whether a NULL is written among the operands of a call that it makes NULL."""
        folds = not self.row_by_row and is_strict(call) and has_columns(call)  # constants, before what is beside them
        nulls = [i for i, a in enumerate(args) if _is_null(a) or (folds and is_nothing(call.args[i], self.context))]
        if call.fn == "in":
            return self.row_by_row and len(nulls) == len(args) - (0 not in nulls)
        return bool(nulls) and (is_strict(call) or is_null_by(call, nulls[0]))

    def _null(self, call: Call, args: tuple[Expr, ...]) -> Expr:
        """NULL, after what Spark evaluates of the operands before one that is NULL; nothing where it is simplified before."""
        result: Expr = Lit(call.type, True, None)
        # A NULL that is written is seen before anything is computed, one that is computed only in its turn.
        seen = has_columns(call) or any(map(is_written_null, call.args))
        if (not self.row_by_row and is_strict(call) and seen) or (call.fn in TRIED and call.data[1]):
            return result
        raising = [k for k, a in enumerate(args) if self.raises(a)]
        order = operands(call, raising, self.row_by_row or not has_columns(call))
        if not order:
            return udf("last", call.type, *(self._typed(args[k]) for k in raising), result, raises=True)
        for place in reversed(order[: next(i for i, k in enumerate(order) if _is_null(args[k]))]):
            known = self._known(call.args[place], args[place]) if self.raises(result) else []
            if known:
                result = lazy_case(call.type, (self.connective("and", known), result))
            if place in raising:
                result = udf("last", call.type, self._typed(args[place]), result, raises=True)
        return result

    def _known(self, expr: Expr, lowered: Expr, computed: bool = False) -> list[Expr] | None:
        """Conditions that hold where `expr` is not NULL, and fail where it does if it is to be `computed`; None where they
        would be too long, or another value each time."""
        if isinstance(lowered, Lit):
            return [Lit(BOOLEAN, False, False)] if lowered.value is None else []
        columns = null_by(expr)
        parts = nodes(lowered)
        twice = len(parts) <= MOST_GUARDED and not any(isinstance(p, Subquery) or is_random(p) for p in parts)
        if twice and (columns is None or (self.raises(lowered) and (computed or not is_shallow(expr)))):
            return [not_null(lowered)]  # its own error comes first
        return None if columns is None else [not_null(c) for c in columns.values()]

    def join_condition(self, expr: Expr) -> Expr:
        """A lowered conjunct between relations; an equality keeps its form, by which the engine finds the keys of a join."""
        if isinstance(expr, Call) and is_key(expr):
            row = self.catalogue[expr.fn]
            return self._applied(row, expr, tuple(self.lower(a) for a in expr.args))
        return self.lower(expr)

    def held(self, expr: Expr) -> Expr:
        """`expr` with what raises in it marked as changing from call to call: the engine then computes it where it stands."""
        if not self.raises(expr):
            return expr
        changed = rebuilt_engine(expr, self.held)
        if isinstance(changed, Udf):
            return replace(changed, volatile=True)
        if isinstance(changed, (Fn, Op, EngineCast)) and changed.raises:
            return udf("last", expr.type, changed, nullable=expr.nullable, raises=True, volatile=True)
        return changed

    def _agg(self, agg: Agg, over: bool = False) -> Expr:
        early = agg.fn == "count_if" and any(isinstance(p, Col) and p.id in self.local for p in nodes(agg))
        args = tuple(self.of_rows(True, a) if early else self.lower(a) for a in agg.args)  # below the aggregate
        args = tested(agg, args) if not over else args
        if not is_nested(agg.type):
            args = tuple(map(self._typed, args))
        args = windowed(args) if over else args
        if agg.type == VOID:
            if not any(map(self.raises, args)):
                return Lit(VOID, True, None)
            return udf("typed_null", VOID, self._agg(replace(agg, type=INT), over), raises=True)
        row = self.catalogue.get(agg.fn)
        if row is None or row.lower is None:
            raise UnsupportedError(
                "UNSUPPORTED_FUNCTION", f"The aggregate `{agg.shown or agg.fn}` is not supported.", span=agg.span
            )
        where = self.lower(agg.where) if agg.where is not None else None
        if where is not None and not over:
            first = filtered_first(agg)
            spared = (lazy_case(a.type, (where, a)) if self.raises(a) else a for a in args[:first])
            args = (*spared, *args[first:])
        bounded = agg.fn in _SUMS and self.bounds is not None and self.bounds.sum_fits(agg, _sum_type(agg))
        lowered = replace(
            agg,
            args=args,
            data=(
                *agg.data,
                *((BOUNDED,) if bounded else ()),
                *((WINDOWED,) if over and agg.fn in _OTHERWISE_OVER else ()),
            ),
            where=where,
            order=self.sort_keys(agg.order),
        )
        try:
            return row.lower(lowered, args, self.context)
        except UnsupportedError as error:
            raise error.at(agg.span) from None

    def _case(self, case: Case) -> Expr:
        whens = tuple((self.lower(c), self.lower(v)) for c, v in case.whens)
        otherwise = self.lower(case.otherwise) if case.otherwise is not None else None
        if case.type == BOOLEAN and any(
            self.raises(v) for v in (*(v for _, v in whens), *([otherwise] if otherwise else []))
        ):
            integer = Case(
                INT,
                True,
                tuple((c, EngineCast(INT, True, v)) for c, v in whens),
                EngineCast(INT, True, otherwise) if otherwise is not None else None,
            )
            return Op(BOOLEAN, True, "=", (integer, ONE))
        return Case(case.type, case.nullable, whens, otherwise)

    def _is_settled(self, call: Call) -> bool:
        """Whether Spark knows the AND or OR without its operands; it computes written rows before it looks for that."""
        known = any(certain(a) is (call.fn == "or") for a in call.args)
        return known and has_columns(call) and not any(isinstance(p, Col) and p.id in self.local for p in nodes(call))


def _is_null(e: Expr) -> bool:
    return isinstance(e, Lit) and e.value is None
