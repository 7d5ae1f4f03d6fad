"""What stands in FROM by itself: tables, constant rows, ranges, common table expressions."""

from __future__ import annotations

from gateway.errors import unsupported
from gateway.sql.lowering.blocks import ArraySource, Block, BlockWriter, ScanUse
from gateway.sql.lowering.constant_rows import batch_of
from gateway.sql.lowering.engine_text import quoted
from gateway.sql.typed import nodes as b
from gateway.sql.typed.catalogue import is_steady
from gateway.sql.typed.walk import all_expressions


def one_row(writer: BlockWriter, rel: b.OneRow) -> Block:
    return Block("", {}, joinable=False)


def scan(writer: BlockWriter, rel: b.Scan) -> Block:
    name = writer.alias("t")
    read = {c.id: source for c, source in zip(rel.columns, rel.sources, strict=True) if c.id in writer.needed}
    writer.scans[name] = ScanUse(rel, tuple(read.values()))
    return named_apart(writer, name, name, read, like_ours=any(map(_is_generated, read.values())))


def values(writer: BlockWriter, rel: b.Values) -> Block:
    alias = writer.alias("w")
    batch = batch_of(rel, writer.lowering.context)
    if batch is not None:
        writer.arrays[alias] = ArraySource(batch)
        return Block(alias, {c.id: f'{alias}."v{c.id}"' for c in rel.columns})
    # VALUES keeps its rows in order, a union of selects would not. Only needed columns: the engine loses count of the
    # variables of lambdas when it drops columns of VALUES itwriter.
    cells = [[writer.lowering.of_rows(True, e) for e in row] for row in rel.rows]
    kept = [
        i
        for i, c in enumerate(rel.columns)
        if c.id in writer.needed or any(writer.lowering.raises(r[i]) for r in cells)
    ] or [0]
    rows = ["(" + ", ".join(writer.expr(row[i]) for i in kept) + ")" for row in cells]
    ids = [rel.columns[i].id for i in kept]
    names = ", ".join(f'"v{i}"' for i in ids)
    source = f"(VALUES {', '.join(rows)}) AS {alias}({names})"
    return Block(source, {i: f'{alias}."v{i}"' for i in ids})


def range_(writer: BlockWriter, rel: b.Range) -> Block:
    alias = writer.alias("g")
    if (rel.stop - rel.start) * rel.step <= 0:
        source = f'(SELECT CAST(0 AS BIGINT) AS "value" WHERE false) AS {alias}'
        return named_apart(writer, source, alias, {rel.columns[0].id: "value"})
    writer.counted += -((rel.start - rel.stop) // rel.step)
    source = f"range({rel.start}, {rel.stop}, {rel.step}) AS {alias}"
    return named_apart(writer, source, alias, {rel.columns[0].id: "value"})


def cte_ref(writer: BlockWriter, rel: b.CteRef) -> Block:
    name = writer.ctes.get(rel.cte.id)
    if name is None:
        name = f"q{rel.cte.id}"
        envs, writer.envs = writer.envs, []
        block = writer.block(rel.cte.plan)
        text = writer.select(block, [(c.id, f"v{c.id}") for c in rel.cte.plan.columns])
        writer.envs = envs
        writer.cte_texts.append(f"{name} AS ({text})")
        writer.ctes[rel.cte.id] = name
        if block.is_filtered or block.limited:
            writer.filtered_ctes.add(rel.cte.id)
    elif not all(is_steady(e, writer.lowering.catalogue) for e in all_expressions(rel.cte.plan)):
        raise unsupported("a common table expression that differs from call to call, used more than once,")
    alias = writer.alias("r")
    names = {}
    for column, source in zip(rel.columns, rel.cte.plan.columns, strict=True):
        names[column.id] = f"v{source.id}"
        writer.column_casts[column.id] = writer.column_casts.get(source.id, 0)
    block = named_apart(writer, f"{name} AS {alias}", alias, names)
    block.filtered = rel.cte.id in writer.filtered_ctes
    return block


def named_apart(writer: BlockWriter, source: str, alias: str, names: dict[int, str], like_ours: bool = False) -> Block:
    """A block over `source`, called `alias`, whose columns have `names`; under new ones where another source has one of
    them, or where they could be those of a subquery.

    The engine's filter push-down tells the columns of a join's two sides apart by name: of two columns `ts` it has
    filtered the wrong one (DataFusion 55, FilterExec above an outer join). Remove when it goes by position.
    """
    env = {i: f"{alias}.{quoted(n)}" for i, n in names.items()}
    if not like_ours and writer.names.isdisjoint(names.values()):
        writer.names.update(names.values())
        return Block(source, env)
    items = ", ".join(f'{text} AS "v{i}"' for i, text in env.items())
    around = writer.alias("s")
    return Block(f"(SELECT {items} FROM {source}) AS {around}", {i: f'{around}."v{i}"' for i in env})


def _is_generated(name: str) -> bool:
    """Whether a column's name could be one of ours."""
    return name[:1] in ("v", "k") and name[1:].isdecimal()
