"""What a worker process does with a job: compile, plan, run; commands; the questions of metadata calls."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.history.search import History
from gateway.runner.handler import Runner


def make_runner(
    *,
    warehouse: str,
    samples: str,
    allow_paths: Sequence[str] = (),
    spill: str,
    memory_limit: int,
    spark: bool = False,
    spark_above: int = 0,
    history: History | None = None,
) -> Runner:
    """The handler of a worker process.

    Args:
        warehouse: folder of the catalog ``main``.
        samples: folder of the read-only catalog ``samples``, made if missing.
        allow_paths: folders that statements may name besides the warehouse.
        spill: folder for what does not fit in memory.
        memory_limit: bytes of the engine's pool.
        spark: whether Spark takes what is handed over.
        spark_above: bytes to read from which on a query is handed over; 0: never for its size.
        history: what `system.query.history` reads.
    """
    return Runner(warehouse, samples, tuple(allow_paths), spill, memory_limit, spark, spark_above, history)


__all__ = ["Runner", "make_runner"]
