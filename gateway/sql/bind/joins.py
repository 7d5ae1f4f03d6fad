"""Joins: with conditions, USING and NATURAL, of LATERAL subqueries and generators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from gateway.errors import Span, UserError, unsupported
from gateway.sql.bind.binder import Expressions
from gateway.sql.bind.char_padding import compared
from gateway.sql.bind.columns import check_no_star
from gateway.sql.bind.names import Names
from gateway.sql.bind.scope import Scope, Source
from gateway.sql.bind.sites import called
from gateway.sql.read.tree import span_of
from gateway.sql.typed.catalogue import Catalogue, is_generator, is_steady
from gateway.sql.typed.nodes import Agg, Call, Col, Expr, Filter, Generate, Ids, Join, Lit, Rel, Window
from gateway.sql.typed.walk import contains
from gateway.sqltypes import BOOLEAN

Node = exp.Expr


class Joins:
    """The part of `resolve.Binder` that joins relations."""

    catalogue: Catalogue
    expressions: Expressions
    ids: Ids
    names: Names

    def relation(self, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        """A relation of FROM; given by the subclass."""
        raise NotImplementedError

    def aliased(
        self, rel: Rel, alias: Node | None, qualifier: tuple[str, ...], mismatch: str = "ASSIGNMENT_ARITY_MISMATCH"
    ) -> Scope:
        """The scope of a relation under its alias; given by the subclass."""
        raise NotImplementedError

    def spread(self, rel: Rel, call: Call, outer: bool, names: Sequence[str] | None) -> Generate:
        """The rows of a generator beside those of `rel`; given by the subclass."""
        raise NotImplementedError

    def join(self, left: Rel, scope: Scope, node: Node, parent: Scope | None) -> tuple[Rel, Scope]:
        """``left JOIN node``."""
        span = span_of(node)
        side, kind = node.args.get("side"), node.args["kind"]
        word = kind.lower() if kind in ("SEMI", "ANTI") else (side or kind).lower()
        lateral = isinstance(node.this, exp.Lateral)
        if lateral:
            made = self._lateral_function(left, scope, node, word, parent)
            if made is not None:
                return made
            right, right_scope = self._lateral_query(left, scope, node, word, parent)
        else:
            right, right_scope = self.relation(node.this, parent)
        on, using = node.args.get("on"), node.args.get("using")
        names = [i.name for i in using] if using else []
        if node.args.get("method") == "NATURAL":
            if word in ("semi", "anti"):
                raise unsupported(f"NATURAL with {word.upper()} JOIN", span)
            names = scope.shared(right_scope)
        if len({n.lower() for n in names}) < len(names):  # Spark shows such a column as often
            raise unsupported("a join that uses a name twice", span)
        left_scope = scope.nullable() if word in ("right", "full") else scope
        new_right = right_scope.nullable() if word in ("left", "full") else right_scope
        both = Scope(
            [*scope.sources, *right_scope.sources],
            parent,
            scope.merged | right_scope.merged,
            scope.hidden | right_scope.hidden,
        )
        condition: Expr | None = None
        merged: dict[str, Expr] = {}
        if names and word not in ("semi", "anti"):
            condition, merged, hidden = self._using(names, scope, right_scope, word, span)
            left_scope, new_right = left_scope.joined_by(names, hidden), new_right.joined_by(names, hidden)
        elif on is not None:
            condition = self.expressions.condition(on, both, "JOIN")
            check_plain(condition, "A join condition", span)
            self._check_steady(condition, lateral, span)
        if word in ("inner", "cross"):
            word = "inner" if condition is not None else "cross"
        if word in ("semi", "anti"):
            result, columns = scope, left.columns
            if names:
                condition, merged, hidden = self._using(names, scope, right_scope, "left", span)
                result = scope.joined_by(names, hidden)
                result.parent, result.merged = parent, merged | scope.merged
        else:
            result = Scope(
                [*left_scope.sources, *new_right.sources],
                parent,
                {**merged, **{n: e for n, e in (left_scope.merged | new_right.merged).items() if n not in merged}},
                left_scope.hidden | new_right.hidden,
            )
            columns = (*left.columns, *right.columns)
            if word in ("left", "right", "full"):
                nullable = {c.id: c for c in result.all_columns()}
                columns = tuple(nullable.get(c.id, c) for c in columns)
        return Join(columns, word, left, right, condition, lateral), result.reading(scope, right_scope, both)

    def _check_steady(self, condition: Expr, lateral: bool, span: Span | None) -> None:
        """No join condition differs from call to call."""
        if not is_steady(condition, self.catalogue):
            raise UserError(
                "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.LATERAL_JOIN_CONDITION_NON_DETERMINISTIC"
                if lateral
                else "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
                "A join condition must be a deterministic expression.",
                span=span,
            )

    def _using(
        self, names: Sequence[str], left: Scope, right: Scope, word: str, span: Span | None
    ) -> tuple[Expr | None, dict[str, Expr], set[int]]:
        conditions: list[Expr] = []
        merged: dict[str, Expr] = {}
        hidden: set[int] = set()
        for name in names:
            sides = []
            for where, scope in (("left", left), ("right", right)):
                found = scope.first(name.lower())
                if found is None:
                    known = ", ".join(f"`{c.name}`" for c in scope.all_columns())
                    raise UserError(
                        "UNRESOLVED_USING_COLUMN_FOR_JOIN",
                        f"USING column `{name}` cannot be resolved on the {where} side of the join. The {where}-side "
                        f"columns: [{known}].",
                        span=span,
                    )
                sides.append(found)
            conditions.append(compared(self.expressions, "=", sides[0], sides[1], span))
            for found, scope in zip(sides, (left, right), strict=True):
                if isinstance(found, Col):
                    hidden |= scope.same(found)
            merged[name.lower()] = self._merged(sides[0], sides[1], word)
        condition = conditions[0] if conditions else None
        for extra in conditions[1:]:
            assert condition is not None
            condition = Call(BOOLEAN, True, "and", (condition, extra))
        return condition, merged, hidden

    def _merged(self, left: Expr, right: Expr, word: str) -> Expr:
        if word == "right":
            return right
        if word == "full":
            name = left.name if isinstance(left, Col) else getattr(left, "shown", None) or ""
            sides = tuple(replace(side, nullable=True) for side in (left, right))
            return MergedColumn.of(called(self.expressions, "coalesce", sides, (), None), name)
        return left

    def _lateral_function(
        self, left: Rel, scope: Scope, node: Node, word: str, parent: Scope | None
    ) -> tuple[Rel, Scope] | None:
        """``LATERAL generator(…)`` beside `left`; None for a subquery."""
        inner, alias = node.this.this, node.this.args.get("alias")
        if not isinstance(inner, exp.Table):
            return None
        on = node.args.get("on")
        if word not in ("inner", "cross", "left"):
            raise unsupported("LATERAL with a join condition", span_of(node))
        if isinstance(inner.this, exp.Anonymous):
            scope.parent = parent
            check_no_star(inner.this)
            call = self.expressions.bind(inner.this, scope)
            if is_generator(call, self.catalogue):
                names = [c.name for c in (alias.args.get("columns") or ())] if alias is not None else []
                made = self.spread(left, call, word == "left", names or None)
                # without a condition Spark's optimizer forgets that the join was an outer one
                made.outer = call.fn.endswith("_outer") or (word == "left" and on is not None)
                qualifier = (alias.this.name.lower(),) if alias is not None and alias.this is not None else ()
                scope.sources.append(Source(qualifier, made.columns[len(left.columns) :]))
                if on is None:
                    return made, scope
                condition = self.expressions.condition(on, scope, "JOIN")
                self._check_steady(condition, True, span_of(node))
                if word != "left":
                    return Filter(made.columns, made, condition), scope
                if isinstance(condition, Lit) and condition.value is True:
                    return made, scope
                raise unsupported("LEFT JOIN LATERAL of a generator with a condition", span_of(node))
        raise unsupported("LATERAL with anything but a subquery or a generator", span_of(node))

    def _lateral_query(self, left: Rel, scope: Scope, node: Node, word: str, parent: Scope | None) -> tuple[Rel, Scope]:
        """``LATERAL (query)``, which may refer to columns of `left`."""
        if word not in ("inner", "cross", "left"):
            raise UserError(
                "INVALID_LATERAL_JOIN_TYPE",
                f"The {word.upper()} OUTER JOIN with LATERAL correlation is not allowed.",
                span=span_of(node),
            )
        scope.parent, scope.before = parent, True
        outside = self.names.outside
        self.names.outside = {c.id: source.shown for source in scope.sources for c in source.columns}
        right, inner = self.expressions.subquery(node.this.this.this, scope)
        self.names.outside, scope.before = outside, False
        known = {c.id for c in left.columns}
        if any(i not in known for i in inner.outer_refs):
            raise unsupported("a column of an enclosing query in a LATERAL subquery", span_of(node))
        self.ids.laterals = True
        return right, self.aliased(right, node.this.args.get("alias"), ())


class MergedColumn:
    """The bare name of a FULL JOIN … USING column: coalesce of both sides, shown under the column's name."""

    @staticmethod
    def of(expr: Expr, name: str) -> Expr:
        if isinstance(expr, Call):
            expr.shown = name
            expr.data = ("merged",)
        return expr


def check_plain(expr: Expr, what: str, span: Span | None) -> None:
    """Raise UserError if `what` holds aggregates or window functions."""
    if contains(expr, Agg) or contains(expr, Window):
        raise UserError(
            "UNSUPPORTED_EXPR_FOR_OPERATOR", f"{what} can't hold aggregates or window functions.", span=span
        )
