"""Names of unaliased expressions: Spark's pretty-printed resolved expression (tests/data/column-names.csv)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import ClassVar

from gateway.errors import unsupported
from gateway.sql.bind import literals
from gateway.sql.functions.collections import BRACKETS, STARRED
from gateway.sql.functions.variants import EXTRACTIONS, name_of
from gateway.sql.typed.catalogue import Catalogue
from gateway.sql.typed.nodes import (
    Agg,
    Bound,
    Call,
    Case,
    Cast,
    Col,
    Expr,
    Frame,
    Lambda,
    LambdaVar,
    Lit,
    SortKey,
    Subquery,
    Window,
)
from gateway.sqltypes import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructType,
    is_decimal,
    is_integral,
    is_interval,
    is_nested,
    is_numeric,
)

_INFIX = frozenset({"+", "-", "*", "/", "%", "=", "<", ">", "<=", ">=", "<=>", "&", "|", "^", "div", "<<", ">>", ">>>"})
_QUANTIFIED = frozenset({"likeany", "likeall", "notlikeany", "notlikeall"})
# Calls that are shown by their arguments alone.
_FORMS = {
    "and": "({0} AND {1})",
    "or": "({0} OR {1})",
    "is null": "({0} IS NULL)",
    "is not null": "({0} IS NOT NULL)",
    "~": "~{0}",
    "ilike": "ilike({0}, {1})",
}
# What plans print in another way than names.
_PLANNED = {
    "if": "if ({0}) {1} else {2}", "not": "NOT {0}", "is null": "isnull({0})", "isnull": "isnull({0})",
    "is not null": "isnotnull({0})", "isnotnull": "isnotnull({0})", "startswith": "StartsWith({0}, {1})",
    "endswith": "EndsWith({0}, {1})", "contains": "Contains({0}, {1})", "rlike": "RLIKE({0}, {1})",
    "element_at": "element_at({0}, {1}, None, true)",
}  # fmt: skip
# What plans print of a call behind its arguments.
_BEHIND = {
    **dict.fromkeys(("hour", "minute", "second", "date_format", "date_trunc", "from_unixtime"), ", Some({zone})"),
    **dict.fromkeys(("months_between", "current_date"), ", Some({zone})"),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), ", Some({zone}), true"),
    **dict.fromkeys(("make_date", "next_day", "parse_url", "parse_json"), ", true"),
    "try_parse_json": ", false",
}  # fmt: skip
_MADE = {"make_timestamp": "Timestamp", "make_timestamp_ltz": "Timestamp", "make_timestamp_ntz": "TimestampNTZ"}
# Whose arguments plans print as names do (InheritAnalysisRules).
_NAMED = frozenset((
    "between", "btrim", "date_part", "datepart", "decode", "extract", "nullif", "nullifzero", "nvl", "nvl2", "to_date",
    "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_add", "try_divide", "try_element_at", "try_mod",
    "try_multiply", "try_subtract", "try_to_date", "try_to_timestamp", "zeroifnull",
))  # fmt: skip
_ESCAPE = "\\"


class Names:
    """Prints bound expressions."""

    def __init__(self, catalogue: Catalogue, time_zone: str) -> None:
        self.catalogue = catalogue
        self.time_zone = time_zone
        self.outside: dict[int, str | None] = {}  # of columns that a LATERAL subquery may name: their relations' names
        self._in_plan = False  # whether it is printed as in plans: Spark does so below a field of an array's structs

    def of(self, expr: Expr) -> str:
        """The name of a select item: `text`, but the column's name for a cast of a plain column."""
        if isinstance(expr, Col):
            return expr.name
        if isinstance(expr, Cast) and _is_named(expr.arg) and (not expr.implicit or isinstance(expr.arg, Call)):
            return self.of(expr.arg)
        if isinstance(expr, Call) and expr.fn == "_null_item":
            return self._item(expr)
        if isinstance(expr, Call) and expr.fn in EXTRACTIONS:
            return name_of(expr) or self.text(expr)
        if isinstance(expr, Call) and expr.fn == "_array_field" and _is_path(expr):
            return str(expr.shown)
        return self.text(expr)

    def text(self, e: Expr) -> str:
        """The expression as Spark prints it inside a name."""
        if isinstance(e, Col):
            return self._outer(e) if e.outer and e.id in self.outside else e.name
        if isinstance(e, Lit):
            shown = literals.shown(e, self.time_zone)
            return _bare(shown, e.type) if self._in_plan and e.value is not None else shown
        if isinstance(e, Call):
            if self._in_plan and (e.fn in _NAMED or e.shown == "equal_null"):
                return self._within(e, False)
            return self._call(e)
        if isinstance(e, Cast):
            return self._cast(e)
        if isinstance(e, Case):
            parts = [f"WHEN {self.text(c)} THEN {self.text(v)}" for c, v in e.whens]
            if e.otherwise is not None:
                parts.append(f"ELSE {self.text(e.otherwise)}")
            return f"CASE {' '.join(parts)} END"
        if isinstance(e, Agg):
            return self._agg(e)
        if isinstance(e, Window):
            return self._window(e)
        if isinstance(e, Subquery):
            return self._subquery(e)
        if isinstance(e, Lambda):
            variables = ", ".join(self.text(p) for p in e.params)
            return f"lambdafunction({self.text(e.body)}, {variables})"
        if isinstance(e, LambdaVar):
            return "namedlambdavariable()"
        raise TypeError(type(e).__name__)

    def _cast(self, e: Cast) -> str:
        if self._in_plan and not e.implicit:
            return f"{'try_cast' if e.is_try else 'cast'}({self.text(e.arg)} as {e.type.simple})"
        if e.implicit and self._in_plan and not (is_decimal(e.type) and is_decimal(e.arg.type)):
            return self._within(e.arg, False)  # Spark's cast shows it as SQL; it compares decimals without one
        if e.implicit or is_nested(e.type):
            return self.text(e.arg)
        return f"{'TRY_CAST' if e.is_try else 'CAST'}({self.text(e.arg)} AS {_type(e.type)})"

    def _call(self, e: Call) -> str:
        fn = e.fn
        if _is_merged(e):
            return str(e.shown)
        if fn == "_field":
            return self._field(e)
        if fn == "_array_field":
            return f"{self._within(e.args[0], True)}.{e.shown}"
        args = [self.text(a) for a in e.args]
        if fn == "_char_pad":  # written by Spark after it has given names
            return args[0]
        if self._in_plan:
            known = _in_plan(e, args, self.time_zone)
            if known is not None:
                return known
        if e.shown in ("+", "-", "*", "/"):
            return self._operator(e, args)
        row = self.catalogue.get(fn)
        if row is not None and row.shown is not None:
            return row.shown(e, args) if callable(row.shown) else f"{row.shown}({', '.join(args)})"
        if fn in _INFIX and len(args) == 2 and (e.shown is None or e.shown == fn):
            return _against_decimal(e, args) or f"({args[0]} {fn} {args[1]})"
        if e.shown in _QUANTIFIED:
            return self._quantified(e)
        if fn in _FORMS:
            return _FORMS[fn].format(*args)
        shown = self._SHOWN.get(fn)
        return shown(self, e, args) if shown is not None else _plainly(e, args)

    def _quantified(self, e: Call) -> str:
        """LIKE ANY and LIKE ALL: named by the value that all patterns are compared with."""
        first = e.args[0]
        while isinstance(first, Call) and first.fn not in ("like", "ilike"):
            first = first.args[0]
        value = self.text(call_arg(first, 0))
        small = isinstance(first, Call) and first.fn == "ilike"
        return f"{e.shown}(lower({value}))" if small else f"{e.shown}({value})"

    def _negation(self, e: Call, args: list[str]) -> str:
        return f"(NOT {args[0]})" if e.shown is None else _plainly(e, args)

    def _members(self, e: Call, args: list[str]) -> str:
        if e.shown != "struct":
            aliased = [isinstance(label, Lit) and label.text is not None for label in e.args[::2]]  # in a row
            values = [f"{v} AS {n}" if is_ else v for n, v, is_ in zip(args[::2], args[1::2], aliased, strict=True)]
            return _plainly(e, [part for pair in zip(args[::2], values, strict=True) for part in pair])
        return f"struct({', '.join(map(self._member, e.args[::2], args[1::2]))})"

    def _range(self, e: Call, args: list[str]) -> str:
        low, high = e.args
        bounds = f"{self.text(call_arg(low, 1))}, {self.text(call_arg(high, 1))}"
        return f"between({self.text(call_arg(low, 0))}, {bounds})"

    def _element(self, e: Call, args: list[str]) -> str:
        return self._item(e)

    def _null_element(self, e: Call, args: list[str]) -> str:
        return f"NULL AS `{self._item(e)}`"  # Spark puts the constant in its place as soon as it is resolved

    def _list(self, e: Call, args: list[str]) -> str:
        return f"({args[0]} IN ({', '.join(args[1:])}))"

    def _like(self, e: Call, args: list[str]) -> str:
        escape = f" ESCAPE '{args[2]}'" if len(args) > 2 and args[2] != "\\" else ""
        return f"{args[0]} LIKE {args[1]}{escape}"

    _SHOWN: ClassVar[Mapping[str, Callable[[Names, Call, list[str]], str]]] = {
        "not": _negation,
        "named_struct": _members,
        "between": _range,
        "in": _list,
        "like": _like,
        "_array_item": _element,
        "_map_item": _element,
        "_null_item": _null_element,
    }

    def _outer(self, e: Col) -> str:
        relation = self.outside[e.id]
        if relation is None:
            raise unsupported(f"An unnamed column over `{e.name}`, whose relation has no alias,")
        return f"outer({relation}.{e.name})"

    def _field(self, e: Call) -> str:
        base = e.args[0]
        if isinstance(base, Col) and base.id in self.outside:
            return f"{self._outer(base)}.{e.shown} AS {e.shown}"
        if STARRED not in e.data:
            return f"{self._within(base, False)}.{e.shown}"
        before = replace(base, data=(STARRED,)) if isinstance(base, Call) and base.fn == "_field" else base
        return f"{self._within(before, False)}.{e.shown} AS {e.shown}"

    def _within(self, e: Expr, in_plan: bool) -> str:
        before, self._in_plan = self._in_plan, in_plan
        text = self.text(e)
        self._in_plan = before
        return text

    def _member(self, label: Expr, value: str) -> str:
        """One argument of struct(), with the alias that was given to it."""
        assert isinstance(label, Lit)
        if label.text is None:
            return f"{label.value}, {value}" if self._in_plan else value
        return f"{value} AS {label.text}"

    def _item(self, e: Call) -> str:
        return f"{self.text(e.args[0])}[{self.text(e.args[1])}]"

    def _operator(self, e: Call, args: list[str]) -> str:
        """Unary signs and date arithmetic, whose node is a function."""
        symbol = e.shown or ""
        if len(args) == 1:
            return f"({symbol} {args[0]})"
        second = e.args[1]
        if symbol == "-" and isinstance(second, Call) and second.fn == "_interval_neg" and second.shown == "-":
            args = [args[0], self.text(second.args[0])]
        if is_interval(second.type) and not is_interval(e.type):
            return f"{args[0]} {symbol} {args[1]}"
        return f"({args[0]} {symbol} {args[1]})"

    def _agg(self, e: Agg) -> str:
        args = [self.text(a) for a in e.args]
        row = self.catalogue.get(e.fn)
        if row is not None and callable(row.shown):
            text = row.shown(e, args)
        else:
            name = row.shown if row is not None and isinstance(row.shown, str) else (e.shown or e.fn)
            text = f"{name}({'DISTINCT ' if e.distinct else ''}{', '.join(args)})"
        if e.order:
            text += f" WITHIN GROUP (ORDER BY {', '.join(self.sort_key(k) for k in e.order)})"
        if e.where is not None:
            text += f" FILTER (WHERE {self.text(e.where)})"
        return text

    def sort_key(self, k: SortKey) -> str:
        direction = "DESC" if k.descending else "ASC"
        return f"{self.text(k.expr)} {direction} NULLS {'FIRST' if k.nulls_first else 'LAST'}"

    def _window(self, e: Window) -> str:
        parts = []
        if e.partition:
            parts.append("PARTITION BY " + ", ".join(self.text(p) for p in e.partition))
        if e.order:
            parts.append("ORDER BY " + ", ".join(self.sort_key(k) for k in e.order))
        parts.append(self.frame(e.frame, e.fn, e.order))
        return f"{self.text(e.fn)} OVER ({' '.join(parts)})"

    def frame(self, frame: Frame, fn: Expr, order: Sequence[SortKey] = ()) -> str:
        """The frame with its bounds; offset functions show theirs as Spark resolves it."""
        if isinstance(fn, Call) and fn.fn in ("lag", "lead") and len(fn.args) > 1:
            offset = self.text(fn.args[1])
            if fn.fn == "lag" and offset != "0":
                offset = offset.removeprefix("-") if offset.startswith("-") else f"-{offset}"
            return f"ROWS BETWEEN {offset} FOLLOWING AND {offset} FOLLOWING"
        compared = order[0].expr.type if frame.unit == "RANGE" and order and is_numeric(order[0].expr.type) else None
        return f"{frame.unit} BETWEEN {self._bound(frame.start, compared)} AND {self._bound(frame.end, compared)}"

    def _bound(self, bound: Bound, compared: DataType | None) -> str:
        if bound.kind == "unbounded":
            return f"UNBOUNDED {'PRECEDING' if bound.preceding else 'FOLLOWING'}"
        if bound.kind == "current":
            return "CURRENT ROW"
        assert bound.offset is not None
        if bound.preceding and compared not in (None, bound.offset.type):
            return f"(- {self.text(bound.offset)}) FOLLOWING"  # Spark casts the negated offset, and then knows no PRECEDING
        return f"{self.text(bound.offset)} {'PRECEDING' if bound.preceding else 'FOLLOWING'}"

    def _label(self, value: Expr, at: int) -> str:
        """What one of several values before IN (subquery) is called: columns, numbers, texts and what is cast by their text."""
        bare = _uncast(value)
        told = bare is not value or (isinstance(bare, Lit) and (is_numeric(bare.type) or bare.type in (STRING, VOID)))
        if not told and not _is_path(bare):
            return f"_{at}"
        return self.text(bare).replace("\\", "\\\\").replace("'", "\\'")

    def _subquery(self, e: Subquery) -> str:
        outer = ", ".join(c.name for c in e.outer)
        if e.kind == "scalar":
            return f"scalarsubquery({outer})"
        if e.kind == "exists":
            return f"exists({outer})"
        left = ", ".join(self.text(a) for a in e.args)
        if len(e.args) > 1:
            members = (f"'{self._label(a, at)}', {self.text(a)}" for at, a in enumerate(e.args))
            left = f"named_struct({', '.join(members)})"
        return f"({left} IN (listquery({outer})))"


def _plainly(e: Call, args: list[str]) -> str:
    return f"{e.shown or e.fn}({', '.join(args)})"


# How Spark rounds the decimal constant that an integer is compared with: the integer on the left, on the right.
_ROUNDED = {
    ">": (ROUND_FLOOR, ROUND_CEILING),
    ">=": (ROUND_CEILING, ROUND_FLOOR),
    "<": (ROUND_CEILING, ROUND_FLOOR),
    "<=": (ROUND_FLOOR, ROUND_CEILING),
}


def _against_decimal(e: Call, args: list[str]) -> str | None:
    """The comparison of an integer with a decimal constant, as Spark makes it one of integers; None for all others."""
    if e.fn not in _ROUNDED:
        return None
    for place in (0, 1):
        number, constant = _uncast(e.args[place]), _uncast(e.args[1 - place])
        if not isinstance(constant, Lit) or not isinstance(constant.value, Decimal):
            continue
        if is_integral(number.type) and _is_wider(e.args[1 - place].type, constant.type):
            shown = str(int(constant.value.to_integral_value(_ROUNDED[e.fn][place])))
            left, right = (args[0], shown) if place == 0 else (shown, args[1])
            return f"({left} {e.fn} {right})"
    return None


def _is_wider(wider: DataType, t: DataType) -> bool:
    """Whether decimals of one type are those of another: no constant is so in `int(1.5)`, `decimal(1.5)` and `double(1.5)`."""
    return isinstance(wider, DecimalType) and isinstance(t, DecimalType) and wider.scale >= t.scale


def _bare(shown: str, t: DataType) -> str:
    """A constant as plans show it, without the word of its type."""
    if t == BINARY:
        return f"0x{shown[2:-1]}"
    return shown.split("'")[1] if t in (DATE, TIMESTAMP, TIMESTAMP_NTZ) else shown


def _in_plan(e: Call, args: Sequence[str], zone: str) -> str | None:
    """What plans show in another way than names do; None for all others."""
    form = _PLANNED.get(e.fn)
    if form is not None and e.shown in (None, e.fn, "regexp", "regexp_like"):
        return form.format(*args)
    if e.fn == "in":
        return f"{args[0]} IN ({','.join(args[1:])})"
    if e.fn in _BEHIND:
        behind = _BEHIND[e.fn].format(zone=zone)
        return f"{e.shown or e.fn}({', '.join(args)}{behind if args else behind[2:]})"
    if e.fn == "arrays_zip" and isinstance(e.type, ArrayType) and isinstance(e.type.element, StructType):
        return f"arrays_zip({', '.join([*args, *(f.name for f in e.type.element.fields)])})"
    if e.fn == "ilike":
        return f"ilike({args[0]}, {args[1]}, {args[2] if len(args) > 2 else _ESCAPE})"
    if e.fn in ("trim", "ltrim", "rtrim"):
        return f"{e.fn}({args[-1]}, {f'Some({args[0]})' if len(args) > 1 else None})"
    if e.fn == "to_binary":
        return f"to_binary({args[0]}, {f'Some({args[1]})' if len(args) > 1 else None}, false)"
    if e.fn in _MADE and len(args) > 5:
        of = f"Some({args[6]})" if len(args) > 6 else None
        return f"{e.fn}({', '.join(args[:6])}, {of}, Some({zone}), true, {_MADE[e.fn]}Type)"
    return f"-{args[0]}" if e.shown == "-" and len(args) == 1 else None


def _is_named(expr: Expr) -> bool:
    """Whether it has a name as soon as it is resolved, which a cast of it takes over."""
    if isinstance(expr, Call) and expr.fn in EXTRACTIONS:
        return name_of(expr) is not None
    return isinstance(expr, Col) or (isinstance(expr, Call) and (expr.fn == "_null_item" or _is_merged(expr)))


def _is_merged(call: Call) -> bool:
    """Whether it is the column that USING makes of those of both sides of a full join."""
    return call.data == ("merged",) and call.shown is not None


def _is_path(e: Expr) -> bool:
    """Whether this is a column's field, written with dots."""
    while isinstance(e, Call) and e.fn in ("_field", "_array_field") and BRACKETS not in e.data:
        e = e.args[0]
    return isinstance(e, Col)


def _uncast(e: Expr) -> Expr:
    while isinstance(e, Cast) and e.implicit:
        e = e.arg
    return e


def call_arg(e: Expr, index: int) -> Expr:
    """An argument of a call that is known to be one."""
    assert isinstance(e, Call)
    return e.args[index]


def _type(t: DataType) -> str:
    return t.sql
