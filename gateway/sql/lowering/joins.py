"""Joins and set operations: blocks beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.sql.lowering.blocks import Block, BlockWriter
from gateway.sql.lowering.engine_text import balanced, quoted
from gateway.sql.lowering.evaluation import is_key
from gateway.sql.typed import nodes as b
from gateway.sql.typed.walk import conjuncts_of, has_columns, inputs_of, read_by
from gateway.sqltypes import BOOLEAN, STRING


def join(writer: BlockWriter, rel: b.Join) -> Block:
    on = [] if rel.condition is None else writer.lowering.asked(conjuncts_of(rel.condition))
    conjuncts = [(c, writer.lowering.join_condition(c)) for c in on]
    # The engine moves what reads one side alone there, and asks it together with that side's own filters.
    with writer.fenced((*writer.fences, *(read_by(c) for _, c in conjuncts if writer.lowering.raises(c)))):
        left = writer.side(rel.left, barrier=_takes_constants(rel, rel.left))
        if rel.lateral:
            writer.envs.append(left.env)
        right = writer.side(rel.right, barrier=_takes_constants(rel, rel.right))
        if rel.lateral:
            writer.envs.pop()
    if not left.source:
        left = writer.close(Block("", {}, items=[]))
    if not right.source:
        right = writer.close(Block("", {}, items=[]))
    env = left.env | right.env
    words = {
        "inner": "JOIN",
        "cross": "CROSS JOIN",
        "left": "LEFT JOIN",
        "right": "RIGHT JOIN",
        "full": "FULL JOIN",
        "semi": "LEFT SEMI JOIN",
        "anti": "LEFT ANTI JOIN",
    }[rel.kind]
    if rel.lateral:
        words += " LATERAL"
    condition = ""
    if conjuncts:
        lowered = writer.lowering.filters([e if is_key(c) else writer.lowering.held(e) for c, e in conjuncts])
        writer.envs.append(env)
        condition = " ON " + balanced([writer.expr(c) for c in lowered], "AND")
        writer.envs.pop()
        if rel.kind == "cross":
            words = words.replace("CROSS JOIN", "JOIN")
    elif rel.kind != "cross":
        if rel.kind == "inner":
            words = words.replace("JOIN", "CROSS JOIN", 1)
        else:
            condition = " ON true"
    right_source = f"({right.source})" if right.joined else right.source
    source = f"{left.source} {words} {right_source}{condition}"
    if rel.kind in ("semi", "anti"):
        env = left.env
    asked = _asked(rel, [read_by(c) for c, e in conjuncts if not is_key(c) and not writer.lowering.raises(e)])
    return Block(source, env, filtered=left.filtered or right.filtered, joined=True, asked=asked)


def _asked(rel: b.Join, conjuncts: Sequence[frozenset[int]]) -> tuple[frozenset[int], ...]:
    """The columns of sides of which some conjuncts, told by what they read, ask alone, so that rows are gone before."""
    if rel.kind not in ("inner", "semi"):
        return ()
    sides = (frozenset([c.id for c in side.columns]) for side in (rel.left, rel.right))
    return tuple(side for side in sides if any(read and read <= side for read in conjuncts))


def _takes_constants(rel: b.Join, side: b.Rel) -> bool:
    """Whether the engine would move a condition without columns below an aggregate of all rows, which gives a row of none too.

    It does so with conditions of ON (DataFusion 55); those of WHERE are gone before.
    """
    if rel.condition is None or rel.kind == "inner":
        return False
    constant = any(not has_columns(c) for c in conjuncts_of(rel.condition))
    return constant and _counts_all(side)


def _counts_all(rel: b.Rel) -> bool:
    if isinstance(rel, b.CteRef):
        return _counts_all(rel.cte.plan)
    return (isinstance(rel, b.Aggregate) and (not rel.keys or rel.sets is not None)) or any(
        map(_counts_all, inputs_of(rel))
    )


def set_op(writer: BlockWriter, rel: b.SetOp) -> Block:
    for side in rel.inputs:
        writer.needed.update(c.id for c in side.columns)
    counted = rel.all and rel.kind != "union"
    texts = []
    filtered = rel.kind != "union"
    for place, side in enumerate(rel.inputs):
        block = writer.block(side)
        filtered = filtered or block.is_filtered
        if rel.kind == "union":
            _nullable_booleans(block, side)
            if place == 0:
                _views_of_texts(block, side)
        names = [(s.id, f"v{c.id}") for s, c in zip(side.columns, rel.columns, strict=True)]
        if counted:
            texts.append(_numbered(writer, block, names))
        else:
            texts.append(
                f"({writer.select(block, names)})" if block.order or block.limited else writer.select(block, names)
            )
    word = {"union": "UNION", "intersect": "INTERSECT", "except": "EXCEPT"}[rel.kind]
    if rel.all and not counted:
        word += " ALL"
    alias = writer.alias("s")
    text = f" {word} ".join(texts)
    return Block(f"({text}) AS {alias}", {c.id: f'{alias}."v{c.id}"' for c in rel.columns}, filtered=filtered)


def _numbered(writer: BlockWriter, block: Block, names: Sequence[tuple[int, str]]) -> str:
    """The rows, each with its number among those that are the same.

    Of what a filter leaves one value, and an expression over others too, the engine wants no order and then misses it
    (DataFusion 55, "does not satisfy order requirements"): it is told apart by values of which it knows nothing.
    """
    block = writer.close(block)
    columns = [block.env[i] for i, _ in names]
    hidden = [f'CASE WHEN random() < 2.0 THEN {t} END AS "k{i}"' for i, t in enumerate(columns)]
    items = ", ".join(f"{t} AS {quoted(n)}" for t, (_, n) in zip(columns, names, strict=True))
    where = " WHERE " + balanced([writer.expr(c) for c in block.where], "AND") if block.where else ""
    alias = writer.alias("s")
    shown = ", ".join(f"{alias}.{quoted(n)}" for _, n in names)
    same = ", ".join(f'{alias}."k{i}"' for i in range(len(columns)))
    rows = f"SELECT {items}, {', '.join(hidden)} FROM {block.source}{where}"
    return f'SELECT {shown}, row_number() OVER (PARTITION BY {same}) AS "n" FROM ({rows}) AS {alias}'


def _views_of_texts(block: Block, side: b.Rel) -> None:
    """Let the first side of a union hold its texts as views, as the others may.

    A correlated subquery keeps the type that the column had before the engine gave all sides one, and what it derives for
    the subquery then compares both kinds (DataFusion 55, "The type of Utf8 AND Utf8View of like physical should be same").
    """
    texts = {c.id for c in side.columns if c.type == STRING}
    if texts:
        items = block.items if block.items is not None else list(block.env.items())
        block.items = [(i, f"arrow_cast({t}, 'Utf8View')" if i in texts else t) for i, t in items]


def _nullable_booleans(block: Block, side: b.Rel) -> None:
    """Let the engine take booleans of a union for nullable.

    It rewrites ``coalesce(x, false)`` and boolean CASEs as ORs that may be NULL to it, and fails where the union said otherwise
    before ("Physical input schema should be the same", DataFusion 55). Remove when it keeps what they were.
    """
    booleans = {c.id for c in side.columns if c.type == BOOLEAN}
    if booleans:
        texts = block.items if block.items is not None else list(block.env.items())
        block.items = [(i, f"nullif({t}, CAST(NULL AS BOOLEAN))" if i in booleans else t) for i, t in texts]
