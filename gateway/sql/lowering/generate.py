"""The bound tree as DataFusion SQL (dialect DuckDB): text made of ids, typed literals and quoted names, never of user text.

A `Block` is one SELECT under construction; a relation is merged into its input's block where SQL's clause order allows it,
else the block is closed into a subquery. Column ids become ``"v17"`` and are unique, so nothing needs a qualifier; inside a
block a column is spelled as the block's `env` says (``"t1"."l_tax"``, ``sum("v4")``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from gateway.errors import UnsupportedError
from gateway.sql.lowering import aggregates, clauses, joins, sources, unnest, windows
from gateway.sql.lowering.blocks import BlockWriter, Generated, Rule
from gateway.sql.lowering.expressions import Lowering
from gateway.sql.typed import nodes as b
from gateway.sql.typed.nodes import Expr, Rel


class Generator(BlockWriter):
    """Writes one statement."""

    def __init__(self, lowering: Lowering, needed: set[int]) -> None:
        super().__init__(RULES, lowering, needed)

    def statement(self, rel: Rel) -> Generated:
        """The text for `rel`, output columns named c0..cn in its order."""
        self.root = rel
        block = self.block(rel)
        names = [(c.id, f"c{i}") for i, c in enumerate(rel.columns)]
        text = self.select(block, names, outermost=True)
        if self.cte_texts:
            text = "WITH " + ", ".join(self.cte_texts) + " " + text
        return Generated(text, self.scans, self.arrays, self.udfs, counted=self.counted)

    def first(self, constants: Sequence[tuple[Expr, bool]], unread: bool) -> str:
        """What raises among `constants`, which Spark computes before it reads a row; `unread`: not all has been lowered."""
        spared = any(isinstance(e, b.Cast) and e.implicit for e, _ in constants)  # by try_add and its kin
        if not self.lowering.may_raise and not unread and not spared:
            return ""
        lowered = []
        for constant, of_row in constants:
            with contextlib.suppress(UnsupportedError):  # nobody has read it, or the statement would have been refused
                lowered.append(self.lowering.of_rows(of_row, constant))
        texts = dict.fromkeys(self.expr(e) for e in lowered if self.lowering.raises(e))
        return "SELECT " + ", ".join(f"{t} AS c{i}" for i, t in enumerate(texts)) if texts else ""


#: The function that writes a relation as a block, by its class.
RULES: dict[type, Rule] = {
    b.OneRow: sources.one_row,
    b.Scan: sources.scan,
    b.Values: sources.values,
    b.Range: sources.range_,
    b.CteRef: sources.cte_ref,
    b.Project: clauses.project,
    b.Filter: clauses.filtered,
    b.Join: joins.join,
    b.Aggregate: aggregates.aggregate,
    b.WindowRel: windows.window,
    b.Sort: clauses.sort,
    b.Limit: clauses.limit,
    b.Distinct: clauses.distinct,
    b.SetOp: joins.set_op,
    b.Generate: unnest.generate,
}
