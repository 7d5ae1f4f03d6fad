"""``WITH … INSERT | DELETE | UPDATE | MERGE``: each query of the change may read what is defined before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from gateway.errors import UserError, unsupported
from gateway.sql.read.command_nodes import Assignment, Delete, Insert, Merge, ReplaceOn, Update
from gateway.sql.read.tree import span_of

Change = Insert | ReplaceOn | Delete | Update | Merge


def with_ctes(change: Change, ctes: exp.With) -> Change:
    """The change, whose queries begin with `ctes`: trees are changed in place.

    Raises UserError DUPLICATED_CTE_NAMES, and UnsupportedError for a change of what is defined there and for a query that
    defines one of its names anew. What no query asks for is never looked at, as in Spark.
    """
    names: set[str] = set()
    for cte in ctes.expressions:
        alias = cte.args["alias"]
        if alias.this.name.lower() in names:  # also where no query asks for it
            text = f"CTE definition can't have duplicate names: `{alias.this.name}`."
            raise UserError("DUPLICATED_CTE_NAMES", text, span=span_of(alias))
        names.add(alias.this.name.lower())
    if len(change.table.parts) == 1 and change.table.parts[0].lower() in names:
        raise unsupported("a change of what WITH defines", change.table.span)
    if isinstance(change, (Merge, ReplaceOn)) and _is_one(change.source, names):
        change = replace(change, source=_query_of(change.source))
    for tree in _trees(change):
        for query in _queries(tree):
            _begin(query, ctes, names)
    return change


def _is_one(source: exp.Expr, names: set[str]) -> bool:
    """Whether the source of a change is what is defined under one of `names`."""
    return isinstance(source, exp.Table) and len(source.parts) == 1 and source.name.lower() in names


def _query_of(source: exp.Expr) -> exp.Subquery:
    """``(SELECT * FROM name) AS alias``, which may define what it reads."""
    alias = source.args.get("alias") or exp.TableAlias(this=exp.to_identifier(source.name, quoted=True))
    source.set("alias", None)
    query = exp.Select(expressions=[exp.Star()]).from_(source, copy=False)
    found = exp.Subquery(this=query, alias=alias)
    found.meta.update(source.meta)
    query.meta.update(source.meta)
    return found


def _trees(change: Change) -> Iterator[exp.Expr]:
    """What may hold queries."""
    if isinstance(change, Insert):
        yield change.query.tree
        return
    if isinstance(change, (Merge, ReplaceOn)):
        yield change.source
    if change.condition is not None:
        yield change.condition
    if isinstance(change, Update):
        yield from _values(change.assignments)
    if isinstance(change, Merge):
        for clause in change.clauses:
            if clause.condition is not None:
                yield clause.condition
            yield from _values(clause.assignments or ())


def _values(assignments: tuple[Assignment, ...]) -> Iterator[exp.Expr]:
    yield from (one.value for one in assignments if one.value is not None)


def _queries(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost queries of a tree."""
    todo = [tree]
    while todo:
        node = todo.pop()
        while isinstance(node, exp.Subquery):
            node = node.this
        if isinstance(node, exp.Query) and "with_" in node.arg_types:
            yield node
        else:
            todo.extend(node.iter_expressions())


def _begin(query: exp.Expr, ctes: exp.With, names: set[str]) -> None:
    own = query.args.get("with_")
    given = ctes.copy()
    if own is not None:
        twice = [cte for cte in own.expressions if cte.args["alias"].this.name.lower() in names]
        if twice:
            raise unsupported("a name that WITH before the change defines, too,", span_of(twice[0].args["alias"]))
        given.set("expressions", [*given.expressions, *own.expressions])
    query.set("with_", given)
