"""Queries that stay compiled: the same text in the same session need not be read, bound and planned again.

One is kept by all that its statement could see of its session (`Statement.key`), and while the tables and views that it names
are as they were (`Witness`). What depends on the clock or on chance, and what reads anything else, is not kept; nor is what
would hold much memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from gateway.engine.base import Statement, Witness
from gateway.planner import Plan
from gateway.sql.read.statement import Statement as Read

_MOST = 64
_MOST_CHARACTERS = 16 << 10  # of a text and its parameters
_MOST_FILES = 1000  # of its tables, whose snapshots stay with it


@dataclass(frozen=True, slots=True)
class Kept:
    """A query as it was read and planned, what shows that its `names` are as they were (None: nothing), and which it `read`."""

    statement: Read
    decision: Plan
    names: tuple[Witness, ...] | None
    read: list[tuple[str, str, str]]


class KeptQueries:
    """Those that were asked last."""

    def __init__(self) -> None:
        self._queries: OrderedDict[Hashable, Kept] = OrderedDict()

    def find(self, job: Statement) -> Kept | None:
        """The query of a statement, if all that it names is as it was."""
        key = job.key if self._queries else None
        found = None if key is None else self._queries.get(key)
        if found is None:
            return None
        if not all(witness.holds() for witness in found.names or ()):
            del self._queries[key]
            return None
        self._queries.move_to_end(key)
        return found

    def keep(self, job: Statement, query: Kept) -> None:
        """Keep a query that has run to its end, if something shows whether it still holds."""
        key = job.key
        files = sum(scan.files_total for scan in query.decision.scans)
        if key is None or query.names is None or job.size > _MOST_CHARACTERS or files > _MOST_FILES:
            return
        self._queries[key] = query
        if len(self._queries) > _MOST:
            self._queries.popitem(last=False)
