"""What lambdas take from outside of them.

The engine moves parts of a condition of a join to the side whose columns they read, a lambda without its function too, and
then fails; and it computes what occurs twice below, for rows of which no lambda asks it, too. A column behind a call that it
must not move keeps its lambda, and what is in it, where they are.
"""

from __future__ import annotations

from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Col, Expr, Rel, udf
from gateway.sql.typed.walk import all_expressions, all_relations, nodes, rebuilt_engine


def is_beside_others(rel: Rel) -> bool:
    """Whether a query joins relations, as the engine joins subqueries too."""
    if any(isinstance(below, b.Join) for below in all_relations(rel)):
        return True
    return any(isinstance(n, b.Subquery) for e in all_expressions(rel) for n in nodes(e))


def captures(body: Expr) -> bool:
    """Whether the body of a lambda reads columns."""
    return any(isinstance(n, Col) for n in nodes(body))


def is_of_columns(part: Expr) -> bool:
    """Whether a part of a lambda's body is computed of columns alone, so that the engine may do so elsewhere."""
    return captures(part) and not any(isinstance(n, b.LambdaVar) for n in nodes(part))


def held(body: Expr) -> Expr:
    """The engine-level body of a lambda, its columns behind calls that stay where they are."""
    if isinstance(body, Col):
        return udf("last", body.type, body, nullable=body.nullable, volatile=True)
    if isinstance(body, b.Lambda):
        return b.Lambda(body.type, body.nullable, body.params, held(body.body))
    return rebuilt_engine(body, held)
