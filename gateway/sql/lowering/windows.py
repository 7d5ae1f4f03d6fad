"""Window functions over the rows of a block."""

from __future__ import annotations

from gateway.sql.lowering.blocks import Block, BlockWriter
from gateway.sql.lowering.inputs import Below, apart, with_window_inputs
from gateway.sql.lowering.last_known import with_last_known
from gateway.sql.lowering.moving import Moving
from gateway.sql.lowering.planned_rows import is_local
from gateway.sql.typed import nodes as b


def window(writer: BlockWriter, rel: b.WindowRel) -> Block:
    block = writer.opened(rel.input)
    width, written = len(rel.columns) - len(rel.windows), is_local(rel.input)
    windows = [
        (c, writer.lowering.of_rows(written, w))
        for c, w in zip(rel.columns[width:], rel.windows, strict=True)
        if c.id in writer.needed
    ]
    block, found = apart(writer, block, [w for _, w in windows])
    below, moving = Below(writer, block), Moving(writer)
    found = [moving.taken(w) for w in found]
    windows = [(c, with_window_inputs(w, below.column)) for (c, _), w in zip(windows, found, strict=True)]
    moving.inputs(below.column)
    block, windows = with_last_known(writer, moving.block(below.block(sorted_=True)), windows)
    writer.envs.append(block.env)
    items = [(c.id, block.env[c.id]) for c in rel.columns[:width] if c.id in writer.needed]
    items += [(c.id, writer.expr(w)) for c, w in windows]
    writer.envs.pop()
    block.items = items
    return writer.close(block)
