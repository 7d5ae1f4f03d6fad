"""What a row of the function catalogue is, and the generic binding of a call to it.

A `Function` says how a Spark function is typed (`params`, `returns`, `nullable`, or its own `bind`), how it is named, and how
it is lowered to the engine level (`lower`). A function without `lower` binds (so that its errors are Spark's) and is then
refused by name: `UNSUPPORTED_FUNCTION`. The rows live in `gateway.sql.functions`; one dict of them is the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from gateway.errors import GatewayError, Span, UnsupportedError, UserError
from gateway.sql.typed.coerce import Accepts, coerced, implicit_type
from gateway.sql.typed.common_types import least_common_of
from gateway.sql.typed.foldable import UNASKED, is_foldable
from gateway.sql.typed.nodes import Agg, Call, Expr, Lambda, Lit, SortKey, Subquery, Window
from gateway.sql.typed.walk import nodes
from gateway.sqltypes import VOID, DataType, is_orderable

# fmt: off
#: Functions for which Spark puts NULL in the place of an operand of no type, without looking at what that is.
_BLIND = frozenset((
    "array_distinct", "array_join", "bit_and", "bit_count", "bit_or", "bit_xor", "cardinality", "collation", "date_add",
    "date_sub", "dateadd", "exists", "filter", "forall", "format_number", "from_json", "get_json_object", "is_variant_null",
    "json_array_length", "json_object_keys", "map_entries", "map_filter", "map_from_arrays", "map_keys", "map_values",
    "mask", "parse_json", "parse_url", "schema_of_variant", "schema_of_variant_agg", "size", "sort_array", "soundex",
    "str_to_map", "timestamp_micros", "timestamp_millis", "timestamp_seconds", "to_json", "to_unix_timestamp", "transform",
    "transform_keys", "transform_values", "try_parse_json", "try_variant_get", "unix_date", "unix_micros", "unix_millis",
    "unix_seconds", "unix_timestamp", "variant_get", "zip_with",
))
# fmt: on

#: In `Agg.data`: statistics say that no sum of the group's values can overflow.
BOUNDED = "bounded"
#: In `Agg.data` of statistics, sums and extremes: the rows are those of a window, which Spark never puts together from parts.
WINDOWED = "windowed"


@dataclass(slots=True)
class Clock:
    """What is fixed once per statement: the instant (epoch microseconds) and the session's zone (IANA name).

    `asked` tells that the statement's meaning depends on when it runs: on the instant, or on chance.
    """

    instant_us: int
    time_zone: str
    asked: bool = False

    @property
    def now_us(self) -> int:
        """The instant."""
        self.asked = True
        return self.instant_us


@dataclass(frozen=True, slots=True)
class Context:
    """What binding and lowering of functions may know of the session."""

    clock: Clock
    catalog: str = "main"
    schema: str = "default"
    user: str = "anonymous"
    group_by_aliases: bool = True
    group_by_ordinal: bool = True
    order_by_ordinal: bool = True
    precision_loss: bool = True  # decimal arithmetic beyond 38 digits gives up fractional digits

    @property
    def time_zone(self) -> str:
        return self.clock.time_zone


@dataclass(slots=True, eq=False)
class OpenLambda(Expr):
    """A lambda argument before its function has said what its parameters are.

    `close(types)` binds the body with parameters of those (type, nullable) pairs.
    """

    names: tuple[str, ...]
    close: Callable[[Sequence[tuple[DataType, bool]]], Lambda]


@dataclass(slots=True)
class Site:
    """One call in a statement, arguments bound."""

    name: str  # as the user wrote it
    args: tuple[Expr, ...]
    context: Context
    span: Span | None = None
    spans: tuple[Span | None, ...] = ()
    distinct: bool = False
    where: Expr | None = None
    order: tuple[SortKey, ...] = ()
    ignore_nulls: bool = False
    star: bool = False  # f(*), only count(*)
    windowed: bool = False  # followed by OVER

    @property
    def shown(self) -> str:
        """The name for display: lower case as Spark's resolved expressions print it."""
        return self.name.lower()

    def span_of(self, index: int) -> Span | None:
        return self.spans[index] if index < len(self.spans) else self.span

    def mismatch(self, index: int, expected: str) -> UserError:
        """DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE for argument `index` (from 0)."""
        return UserError(
            "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
            f'Cannot resolve "{self.shown}" due to data type mismatch: parameter {index + 1} requires the '
            f'"{expected}" type, however its input has the type "{self.args[index].type.sql}".',
            span=self.span_of(index),
        )

    def diff_types(self) -> UserError:
        """DATATYPE_MISMATCH.DATA_DIFF_TYPES over all arguments."""
        types = " or ".join(f'"{a.type.sql}"' for a in self.args)
        return UserError(
            "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
            f'Cannot resolve "{self.shown}" due to data type mismatch: input should all be the same type, '
            f"but it has {types}.",
            span=self.span,
        )

    def check_orderable(self, t: DataType) -> None:
        """Raise UserError DATATYPE_MISMATCH.INVALID_ORDERING_TYPE for a type whose values the call cannot compare."""
        if not is_orderable(t):
            raise UserError(
                "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
                f'Cannot resolve "{self.shown}" due to data type mismatch: the function does not support ordering on type '
                f'"{t.sql}".',
                span=self.span,
            )

    def check_map_key(self, t: DataType) -> None:
        """Raise UserError DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE for a type that no key has."""
        if not is_orderable(t):
            raise UserError(
                "DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE",
                f'Cannot resolve "{self.shown}" due to data type mismatch: the key of map cannot be/contain "{t.sql}".',
                span=self.span,
            )

    def wrong_count(self, expected: str) -> UserError:
        """WRONG_NUM_ARGS.WITHOUT_SUGGESTION."""
        return UserError(
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            f"The `{self.shown}` requires {expected} parameters but the actual number is {len(self.args)}.",
            span=self.span,
        )

    def constant(self, index: int) -> Any:
        """The value of a literal argument; NON_FOLDABLE_INPUT for what Spark does not fold."""
        arg = self.args[index]
        if isinstance(arg, Lit):
            return arg.value
        raise self.not_constant(index, f"of parameter {index + 1}")

    def not_constant(self, index: int, what: str, of_type: str = "") -> GatewayError:
        """NON_FOLDABLE_INPUT for an argument that Spark does not fold; what it would fold, and we cannot, is refused."""
        if is_foldable(self.args[index]):
            return self._unfolded(index)
        return UserError(
            "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
            f'Cannot resolve "{self.shown}" due to data type mismatch: the input {what} should be a foldable '
            f"expression{of_type}.",
            span=self.span_of(index),
        )

    def not_foldable(self, index: int, parameter: str, of_type: str) -> GatewayError:
        """NON_FOLDABLE_ARGUMENT, which builders of expressions raise, for any argument but a constant of the type."""
        if is_foldable(self.args[index]) and self.args[index].type.sql == of_type:
            return self._unfolded(index)
        return UserError(
            "NON_FOLDABLE_ARGUMENT",
            f"The function `{self.shown}` requires the parameter `{parameter}` to be a foldable expression of the type "
            f'"{of_type}", but the actual argument is a non-foldable.',
            span=self.span_of(index),
        )

    def _unfolded(self, index: int) -> UnsupportedError:
        return UnsupportedError(
            "UNSUPPORTED_FEATURE",
            f"An expression as parameter {index + 1} of `{self.shown}`, which must be constant, is not supported.",
            span=self.span_of(index),
        )


Returns = DataType | Callable[[tuple[Expr, ...]], DataType]
Nullable = str | Callable[[tuple[Expr, ...]], bool]
Lower = Callable[[Any, tuple[Expr, ...], Context], Expr]


@dataclass(frozen=True, slots=True)
class Param:
    """What one parameter accepts: types or classes of `coerce.CLASSES`, tried in order.

    `like` 'common' marks the parameters that are cast to their least common type after acceptance.
    """

    accepts: tuple[Accepts, ...]
    common: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the catalogue.

    Attributes:
        name: Spark's name, lower case; the key of `bound.Call.fn`.
        params: fixed parameters; `rest` repeats after them; `optional` of the fixed ones may be left out, and are then
            filled in from `defaults` (the last ones; shown in the name as Spark does) unless `defaults` is empty.
        returns: a type, or a function of the coerced arguments.
        nullable: "any" (any argument), "always", "never", "all" (only if all are), or a function of the arguments.
        kind: scalar | aggregate | window | generator | table.
        bind: replaces all of the above where the generic binding doesn't fit; gets the Site, returns Call / Agg / any Expr.
        lower: ``(call, lowered_args, context) -> engine-level Expr``; for aggregates `call` is an Agg whose where and
            order are lowered already. None: known to Spark, not to us.
        shown: display name where it isn't the name as written ("POWER"); a function gets the Call and its arguments' names.
        from_only: generator that stands in FROM and behind LATERAL alone.
        ordered: aggregate whose result depends on input order (first, collect_list).
    """

    name: str
    params: tuple[Param, ...] = ()
    rest: Param | None = None
    optional: int = 0
    defaults: tuple[Lit, ...] = ()
    returns: Returns | None = None
    nullable: Nullable = "any"
    kind: str = "scalar"
    bind: Callable[[Function, Site], Expr] | None = None
    lower: Lower | None = None
    shown: str | Callable[[Any, list[str]], str] | None = None
    ordered: bool = False
    from_only: bool = False
    deterministic: bool = True
    aliases: tuple[str, ...] = field(default=())


def param(*accepts: Accepts, common: bool = False) -> Param:
    """A `Param`."""
    return Param(accepts, common)


def nullable_of(function: Function, args: tuple[Expr, ...]) -> bool:
    """Nullability of a call by the row's rule."""
    rule = function.nullable
    if callable(rule):
        return rule(args)
    if rule == "any":
        return any(a.nullable for a in args)
    if rule == "all":
        return all(a.nullable for a in args)
    return rule == "always"


def coerce_args(function: Function, site: Site) -> tuple[Expr, ...]:
    """The arguments under the implicit casts that the row's parameters ask for; defaults filled in.

    Raises WRONG_NUM_ARGS and DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE / DATA_DIFF_TYPES as Spark does.
    """
    fixed, given = len(function.params), len(site.args)
    least = fixed - function.optional
    if given < least or (given > fixed and function.rest is None):
        if function.rest is not None:
            expected = f"> {least - 1}"
        elif function.optional:
            expected = f"[{', '.join(str(n) for n in range(least, fixed + 1))}]"
        else:
            expected = str(fixed)
        raise site.wrong_count(expected)
    missing = fixed - given
    args = list(site.args)
    if missing > 0 and function.defaults:
        args += function.defaults[len(function.defaults) - missing :]
    rows: list[Param] = [
        function.params[i] if i < fixed else function.rest  # type: ignore[misc]
        for i in range(len(args))
    ]
    for i, (arg, row) in enumerate(zip(args, rows, strict=True)):
        if isinstance(arg, OpenLambda):
            continue
        target = implicit_type(arg.type, row.accepts)
        if target is None:
            raise site.mismatch(i, " or ".join(_shown(a) for a in row.accepts))
        args[i] = coerced(arg, target) if target != VOID else arg
    together = [i for i, row in enumerate(rows) if row.common]
    if together:
        common = least_common_of(args[i].type for i in together)
        if common is None:
            raise site.diff_types()
        for i in together:
            args[i] = coerced(args[i], common)
    return tuple(args)


def _shown(spec: Accepts) -> str:
    if spec == "text":
        return "STRING"
    return spec.upper() if isinstance(spec, str) else spec.sql


def null_of(arg: Expr) -> Expr:
    """NULL for an operand of no type; what is asked of other rows for it stays below, so that they are asked."""
    if arg.type != VOID or isinstance(arg, (Lit, OpenLambda)):
        return arg
    if any(isinstance(part, (Agg, Window, Subquery)) for part in nodes(arg)):
        return Call(VOID, True, UNASKED, (arg,))
    return Lit(VOID, True, None)


def bind_call(function: Function, site: Site) -> Expr:
    """The generic binding: coerce, then type. Aggregates become Agg, everything else Call."""
    if function.name in _BLIND:
        site = replace(site, args=tuple(map(null_of, site.args)))
    if function.bind is not None:
        return function.bind(function, site)
    args = coerce_args(function, site)
    returns = function.returns
    if returns is None:
        raise UnsupportedError("UNSUPPORTED_FUNCTION", f"The function `{site.shown}` is not supported.", span=site.span)
    type_ = returns(args) if callable(returns) else returns
    return make(function, site, args, type_, nullable_of(function, args))


def make(
    function: Function,
    site: Site,
    args: tuple[Expr, ...],
    type_: DataType,
    nullable: bool,
    data: tuple[Any, ...] = (),
) -> Expr:
    """The Call or Agg node of `site` with finished arguments."""
    if function.kind == "aggregate":
        return Agg(
            type_,
            nullable,
            function.name,
            args,
            site.distinct,
            site.where,
            site.order,
            site.ignore_nulls,
            site.shown,
            data,
            site.span,
        )
    return Call(type_, nullable, function.name, args, site.shown, data, site.span)


Catalogue = Mapping[str, Function]


def is_generator(expr: Expr, catalogue: Catalogue) -> TypeGuard[Call]:
    """Whether `expr` calls a function that makes rows."""
    if not isinstance(expr, Call):
        return False
    row = catalogue.get(expr.fn)
    return row is not None and row.kind == "generator"


def is_steady(expr: Expr, catalogue: Catalogue) -> bool:
    """Whether `expr` has the same value each time that it is computed for a row; subqueries' plans are not looked at."""
    for part in nodes(expr):
        row = catalogue.get(part.fn) if isinstance(part, Call) else None
        if row is not None and not row.deterministic:
            return False
    return True


def catalogue(*groups: Sequence[Function]) -> dict[str, Function]:
    """Rows by name and alias; the same name twice is an error of ours."""
    rows: dict[str, Function] = {}
    for group in groups:
        for function in group:
            for name in (function.name, *function.aliases):
                if name in rows:
                    raise ValueError(f"function {name} is defined twice")
                rows[name] = function
    return rows
