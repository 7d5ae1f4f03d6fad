"""What binding of all expressions of one statement shares: the way to the rule of a node, and the place that it stands at."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from sqlglot import exp

from gateway.errors import Span, UnsupportedError, UserError, unsupported
from gateway.sql.bind.casts import cast_to
from gateway.sql.bind.correlations import check_correlation
from gateway.sql.bind.parameters import Given
from gateway.sql.bind.scope import Scope
from gateway.sql.read.tree import span_of
from gateway.sql.typed.catalogue import Catalogue, Context, is_generator
from gateway.sql.typed.common_types import plain
from gateway.sql.typed.nodes import Call, Col, Expr, Ids, Rel
from gateway.sqltypes import BOOLEAN, DataType

Node = exp.Expr

_NOT_BOOLEAN: dict[str, tuple[str, str]] = {
    "WHERE": ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "The condition of a filter"),
    "JOIN": ("JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "The join condition"),
    "FILTER": ("INVALID_AGGREGATE_FILTER.NOT_BOOLEAN", "The FILTER expression in an aggregate function"),
    "CASE": ("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", "A condition of CASE"),
}

#: What Spark tells as it builds the functions of a statement, and what it only looks for once it has built all of them.
_EARLY = (
    "FIELD_NOT_FOUND", "INVALID_ESCAPE_CHAR", "INVALID_EXTRACT_FIELD", "INVALID_OPTIONS.", "INVALID_SCHEMA.",
    "INVALID_SQL_SYNTAX.", "INVALID_WITHIN_GROUP_EXPRESSION.", "NON_FOLDABLE_ARGUMENT", "UNEXPECTED_INPUT_TYPE",
    "UNRESOLVED_ROUTINE", "UNSUPPORTED_DATATYPE", "UNSUPPORTED_GENERATOR.", "WRONG_NUM_ARGS.",
    "_LEGACY_ERROR_TEMP_1104",
)  # fmt: skip
_LATE = ("DATATYPE_MISMATCH.", "UNRESOLVED_COLUMN.")
_BUILT = (
    exp.Anonymous,
    exp.Extract,
    exp.Dot,
    exp.WithinGroup,
    exp.Filter,
    exp.IgnoreNulls,
    exp.RespectNulls,
    exp.Window,
)
_AROUND = _BUILT[3:]  # a call that says nothing without what is around it
_LOOKED_AT = 64  # calls of an expression


class Queries(Protocol):
    """What binding of expressions needs of the binding of queries."""

    def query(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]: ...

    def retyped(self, plan: Rel, types: Sequence[DataType]) -> Rel: ...


def not_scalar(name: str, span: Span | None) -> UserError:
    """NOT_A_SCALAR_FUNCTION for a function that stands in FROM alone."""
    message = f"`{name.lower()}` appears as a scalar expression here, but the function was defined as a table function."
    return UserError("NOT_A_SCALAR_FUNCTION", message, span=span)


def outside_select(clause: str, span: Span | None) -> UserError:
    """UNSUPPORTED_GENERATOR.OUTSIDE_SELECT for a generator in a clause that takes none."""
    message = f"The generator is not supported: outside the SELECT clause, found: {clause}."
    return UserError("UNSUPPORTED_GENERATOR.OUTSIDE_SELECT", message, span=span)


def no_routine(name: str, span: Span | None) -> UserError:
    """ROUTINE_NOT_FOUND, behind LATERAL VIEW."""
    return UserError("ROUTINE_NOT_FOUND", f"The routine `{name}` cannot be found.", span=span)


class Expressions:
    """Binds expressions of one statement; `rules` has a function per node class (`expressions.RULES`)."""

    def __init__(
        self,
        rules: Mapping[type, Rule],
        catalogue: Catalogue,
        context: Context,
        ids: Ids,
        queries: Queries,
        parameters: dict[int | str, Given],
    ) -> None:
        self.rules = rules
        self.catalogue = catalogue
        self.context = context
        self.ids = ids
        self.queries = queries
        self.parameters = parameters
        self.windows: dict[str, exp.Window] = {}  # of the WINDOW clause around this place; names keep their case
        self.random = False  # whether a function that is not deterministic was called
        self._depth = 0  # of the expression that is being bound
        self._clause = ""  # the clause that takes no generators

    def bind(self, node: Node, scope: Scope) -> Expr:
        """The bound form of `node`; raises Spark's analysis errors with their positions."""
        rule = self.rules.get(type(node))
        if rule is None:
            raise unsupported(type(node).__name__, span_of(node))
        self._depth += 1
        try:
            bound = rule(self, node, scope)
            if isinstance(bound, Call) and (self._depth > 1 or self._clause) and is_generator(bound, self.catalogue):
                raise self._misplaced(node)
            if not isinstance(bound, Col):  # only columns know of CHAR and VARCHAR
                bound.type = plain(bound.type)
            return bound
        except (UserError, UnsupportedError) as error:
            first = self.earlier((node,), scope, error) if self._depth == 1 else error
            raise first.at(span_of(node)) from None
        finally:
            self._depth -= 1

    def earlier(
        self, trees: Iterable[Node], scope: Scope, error: UserError | UnsupportedError
    ) -> UserError | UnsupportedError:
        """What Spark tells in the place of `error`: that a function cannot be built comes before types and names of columns."""
        if not error.condition.startswith(_LATE):
            return error
        for call in itertools.islice((c for tree in trees for c in _built(tree)), _LOOKED_AT):
            try:
                self._depth += 1
                self.bind(call, scope)
            except UserError as other:
                if other.condition.startswith(_EARLY):
                    return other
            except UnsupportedError:
                continue
            finally:
                self._depth -= 1
        return error

    def _misplaced(self, node: Node) -> UserError:
        """A generator below another expression, or in a clause that takes none."""
        row = self.catalogue.get(node.name.lower())
        if row is not None and row.from_only:
            return not_scalar(node.name, span_of(node))
        if self._clause:
            return outside_select(self._clause, span_of(node))
        message = f"The generator is not supported: nested in the expression {node.name.lower()}."
        return UserError("UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS", message, span=span_of(node))

    def condition(self, node: Node, scope: Scope, clause: str = "WHERE") -> Expr:
        """A bound condition: BOOLEAN without any cast; only HAVING and QUALIFY cast what is not (Spark's parser does)."""
        known = "WHERE" if clause == "QUALIFY" else clause
        saved, self._clause = self._clause, known if known in ("WHERE", "JOIN", "HAVING") else self._clause
        try:
            bound, span = self.bind(node, scope), span_of(node)
        finally:
            self._clause = saved
        if bound.type == BOOLEAN:
            return bound
        if clause in ("HAVING", "QUALIFY"):
            return cast_to(bound, BOOLEAN, False, span)
        condition, message = _NOT_BOOLEAN[clause]
        raise UserError(condition, f'{message} must be of type BOOLEAN, but is of type "{bound.type.sql}".', span=span)

    def subquery(self, node: Node, scope: Scope) -> tuple[Rel, Scope]:
        """The query of a subquery as a value, which knows no window of the queries around it."""
        self.ids.subqueries = True
        saved = self.windows, self._depth, self._clause
        self.windows, self._depth, self._clause = {}, 0, ""
        try:
            rel, inner = self.queries.query(node, scope)
        finally:
            self.windows, self._depth, self._clause = saved
        if inner.outer_refs:
            if scope.parent is not None and any(c.id in inner.outer_refs for c in scope.parent.all_columns()):
                raise unsupported("a column of a query that is not the next one around", span_of(node))
            check_correlation(rel, inner.outer_refs, span_of(node))
        return rel, inner


def _built(tree: Node) -> Iterator[Node]:
    """The calls of an expression as Spark builds them, those of lambdas with what they stand in; none around a subquery,
    which would be bound once more for each query around it."""
    found, open_ = [], [tree]
    while open_:
        node = open_.pop()
        if not isinstance(node, (exp.Query, exp.Lambda)):
            found.append(node)
            open_ += node.iter_expressions()
    for node in reversed(found):
        wrapped = isinstance(node.parent, _AROUND) and node.parent.this is node
        if isinstance(node, _BUILT) and not wrapped and node.find(exp.Query) is None:
            yield node


Rule = Callable[[Expressions, Any, Scope], Expr]
