"""The nodes that sqlglot lacks for Spark's grammar, and the positions of all nodes.

The parser puts the offsets of the first and last character of every node into its `meta` (keys ``start`` and ``end``, both
inclusive, as sqlglot does for identifiers), so the span of a node needs no walk.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

from sqlglot import exp

from gateway.errors import Span

N = TypeVar("N", bound=exp.Expr)


class TypedLiteral(exp.Expression, exp.Condition):
    """``DATE '2020-01-01'``: `this` is the text (str), `kind` DATE, TIMESTAMP, TIMESTAMP_LTZ, TIMESTAMP_NTZ, X or INTERVAL.

    Kind INTERVAL is ``INTERVAL '1 day 2 hours'`` without a unit behind the text.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}
    _hash_raw_args: ClassVar[bool] = True


class IntervalLiteral(exp.Expression, exp.Condition):
    """``INTERVAL 23 DAYS 4 HOURS``, ``INTERVAL '1-2' YEAR TO MONTH``.

    `parts` is a tuple of (value, unit): value as text with its sign, unit singular and upper case (DAY, HOUR, WEEK …);
    `to` is the end unit of the form ``<value> <unit> TO <to>`` (then there is one part), else None.
    """

    arg_types: ClassVar[dict[str, bool]] = {"parts": True, "to": False}
    _hash_raw_args: ClassVar[bool] = True


class Positive(exp.Unary):
    """Unary plus, which Spark keeps: ``+ '1'`` is the double 1.0."""


class UnsignedRightShift(exp.Expression, exp.Binary):
    """``a >>> b``."""


class Pivot(exp.Expression):
    """``this PIVOT (expressions FOR columns IN (values)) alias``; `columns` are identifiers, values may be Aliases."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": True,
        "columns": True,
        "values": True,
        "alias": False,
    }


class Unpivot(exp.Expression):
    """``this UNPIVOT [INCLUDE NULLS] (values FOR name IN (columns)) alias``.

    `values` and `name` are identifiers, `columns` Tuples of Columns, or Aliases of such.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "values": True,
        "name": True,
        "columns": True,
        "nulls": False,
        "alias": False,
    }


class Distributed(exp.Expression):
    """An item of DISTRIBUTE BY or CLUSTER BY, before those that rows are sorted by."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Clustered(exp.Ordered):
    """An item of CLUSTER BY that rows are sorted by: a number is no place among the columns."""


def mark(node: N, start: int, end: int) -> N:
    """`node` with the offsets of its first and last character."""
    node._meta = {"start": start, "end": end}  # noqa: SLF001 (the property `meta` would build the dict in two steps)
    return node


def identifiers_in(tree: exp.Expr) -> list[exp.Identifier]:
    """All names in a tree, in no order: `find_all`, which keeps one, takes several times as long."""
    found: list[exp.Identifier] = []
    stack = [tree]
    while stack:
        for value in stack.pop().args.values():
            for item in value if isinstance(value, list) else (value,):
                if type(item) is exp.Identifier:
                    found.append(item)
                elif hasattr(item, "args"):
                    stack.append(item)
    return found


def start_of(node: exp.Expr) -> int:
    """Offset of the first character of a node that the parser made."""
    return int(node.meta["start"])


def end_of(node: exp.Expr) -> int:
    """Offset of the last character of a node that the parser made."""
    return int(node.meta["end"])


def span_of(node: exp.Expr) -> Span | None:
    """The piece of the user's text that made `node`; None for a node that the parser did not make."""
    meta = node._meta  # noqa: SLF001 (hot: the property makes a dict where there is none)
    return Span(meta["start"], meta["end"] + 1) if meta and "start" in meta else None


def number_suffix(text: str) -> tuple[str, str]:
    """Digits and suffix of a number literal: ``1L`` -> ("1", "L"), ``-1.5BD`` -> ("-1.5", "BD"), ``1e3`` -> ("1e3", "")."""
    upper = text.upper()
    if upper.endswith("BD"):
        return text[:-2], "BD"
    if upper[-1] in "LSYFD":
        return text[:-1], upper[-1]
    return text, ""
