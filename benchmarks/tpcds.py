"""TPC-DS at scale 1 over Delta: 99 queries, how many are answered, how many as by the floor, and the geometric mean.

The statements are those of the shared corpus (`../shared` or GATEWAY_SHARED); without it this benchmark is left out. Four of
the queries are two statements each.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Collection

from benchmarks import tables, tpch
from benchmarks.answers import alike
from benchmarks.measure import Row, show
from benchmarks.suite import Effort, Results, beside_floor, is_right, measure, report, systems

WORK = "TPC-DS SF1"
EFFORT = Effort(rounds=2, limit=60.0)

#: In Spark NULLs come first and integers have quotients that are none: so the floor is told, to be asked the same.
FLOOR_NULLS = "SET datafusion.sql_parser.default_null_ordering = 'nulls_min'"
_INTEGERS = re.compile(r"\b(inv_after|household_demographics\.hd_dep_count|ss_qty|[scw]r_item_qty) /")


def for_floor(text: str) -> str:
    """A text in DataFusion's words."""
    return _INTEGERS.sub(r"\1 * 1.0 /", tpch.for_floor(text))


def _query(name: str) -> str:
    """The query of which a statement is all or a part: `q14` of `q14a`."""
    return name.rstrip("ab")


def _whole(texts: Collection[str], fit: Collection[str]) -> int:
    """How many queries have all their statements in `fit`."""
    queries = {_query(name) for name in texts}
    return len(queries - {_query(name) for name in texts if name not in fit})


def _counts(texts: Collection[str], results: Results) -> Row:
    """Queries answered, and of those that the floor answers the ones that are answered as by it."""
    floor = _whole(texts, results["floor"])
    shown = {"floor": f"{floor} answered"}
    met = True
    for key in [key for key in results if key != "floor"]:
        answered = _whole(texts, results[key])
        right = _whole(texts, {name for name in texts if is_right(results, key, name, alike)})
        shown[key] = f"{answered} answered, {right} of {floor} right"
        met = met and (key != "ours" or (answered == _whole(texts, texts) and right == floor))
    return Row(f"{WORK}, {_whole(texts, texts)} queries", shown, "all answered and right", met)


def run() -> list[Row]:
    """A row per statement, the counts, the geometric mean of what all have answered, and what is slowest beside the floor."""
    texts = tpch.statements("tpcds")
    if texts is None:
        return [Row(WORK, {"ours": "left out: the corpus is not here"})]
    folders = tables.tpcds()
    with systems() as found:
        found["floor"].query(FLOOR_NULLS)
        results = measure(found, folders, texts, EFFORT, for_floor)
    by_all = [name for name in texts if all(name in given for given in results.values())]
    means = {
        key: show(statistics.geometric_mean([given[name].seconds for name in by_all])) for key, given in results.items()
    }
    slowest = beside_floor(results)[:5]
    return [
        *report(WORK, texts, results, [], alike),
        _counts(texts, results),
        Row(f"{WORK}, geomean of {len(by_all)} statements", means),
        Row(f"{WORK}, slowest beside the floor", {"ours": ", ".join(f"{name} {ratio:.2f}" for name, ratio in slowest)}),
    ]
