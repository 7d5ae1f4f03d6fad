"""Rows made of arrays and maps: the generators of LATERAL VIEW and of select lists."""

from __future__ import annotations

from gateway.errors import UnsupportedError
from gateway.sql.lowering.blocks import Block, BlockWriter
from gateway.sql.lowering.engine_text import balanced, quoted, text_literal
from gateway.sql.lowering.inputs import apart
from gateway.sql.typed import nodes as b


def generate(writer: BlockWriter, rel: b.Generate) -> Block:
    block = _opened(writer, rel.input)
    row = writer.lowering.catalogue.get(rel.generator.fn)
    if row is None or row.lower is None:
        raise UnsupportedError(
            "UNSUPPORTED_FUNCTION",
            f"The generator `{rel.generator.shown or rel.generator.fn}` is not supported.",
            span=rel.generator.span,
        )
    args = tuple(writer.lowering.lower(a) for a in rel.generator.args)
    block, (array,) = apart(writer, block, [row.lower(rel.generator, args, writer.lowering.context)])
    kept = [c.id for c in rel.input.columns if c.id in block.env and c.id in writer.needed]
    writer.envs.append(block.env)
    lowered = writer.expr(array)
    writer.envs.pop()
    name = writer.alias("u")
    if rel.outer:
        lowered = f"CASE WHEN cardinality({lowered}) > 0 THEN {lowered} ELSE make_array(NULL) END"
    items = [f'{block.env[i]} AS "v{i}"' for i in kept] + [f"unnest({lowered}) AS {quoted(name)}"]
    if rel.position is not None:  # lists of one length are taken apart side by side
        items.append(f'unnest(range(0, CAST(cardinality({lowered}) AS BIGINT))) AS "v{rel.position.id}"')
    where = writer.lowering.filters(block.where)
    writer.envs.append(block.env)
    text = "SELECT " + ", ".join(items) + (f" FROM {block.source}" if block.source else "")
    if where:
        text += " WHERE " + balanced([writer.expr(c) for c in where], "AND")
    writer.envs.pop()
    alias = writer.alias("s")
    env = {i: f'{alias}."v{i}"' for i in kept}
    fields = rel.generator.type.fields  # type: ignore[attr-defined]
    for column, f in zip(rel.made, fields, strict=True):
        env[column.id] = f"{alias}.{quoted(name)}[{text_literal(f.name)}]"
    if rel.position is not None:
        env[rel.position.id] = f'{alias}."v{rel.position.id}"'
    return Block(f"({text}) AS {alias}", env, filtered=block.is_filtered)


def _opened(writer: BlockWriter, rel: b.Rel) -> Block:
    """The block of `rel`, closed where raising conditions above must not be asked before its own."""
    with writer.fenced(()):
        block = writer.opened(rel)
    return writer.close(block, barrier=True) if block.is_filtered and writer.is_fenced(rel) else block
