"""Up to where a source is loaded: after loads by a cursor, of all rows, of several sources, of one that has changed."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.pipelines.jobs.jdbc import Database
from gateway.pipelines.jobs.marks import ADD, CONTINUE, marks, start

SHOP = Database("jdbc:x://h/shop", table="orders")
OTHER = Database("jdbc:x://h/shop", query="SELECT * FROM orders")


def loaded(source: Database, column: str, high: str, **more: Any) -> dict[str, Any]:
    """A batch by a cursor."""
    what = {"source": source.key(column), "whole": source.key(), "column": column, "high": high, "table": source.name}
    return {**what, "done": {"loaded": 1}, **more}


def replaced(source: Database, rows: int, **highs: str) -> dict[str, Any]:
    """A load of all rows."""
    done = {"loaded": rows, "marks": [(source.key(c), c, high) for c, high in highs.items()]}
    return {"source": source.key(), "table": source.name, "replaces": True, "done": done}


def above(plans: list[dict[str, Any]], source: Database, column: str = "id", other: str | None = None) -> str | None:
    """The value above which rows are new."""
    mark = start(marks(plans), source.key(column), source.key(), column, "s.t", other)
    return mark.high if mark is not None else None


def test_a_source_is_gone_on_with() -> None:
    assert above([], SHOP) is None
    assert above([{"files": [], "done": {"loaded": 1}}], SHOP) is None
    plans = [loaded(SHOP, "id", "1"), loaded(SHOP, "id", "2"), loaded(SHOP, "id", "3", done={"abandoned": True})]
    assert above(plans, SHOP) == "2"
    old = [{k: v for k, v in plan.items() if k != "whole"} for plan in plans]  # as earlier versions wrote them
    assert above(old, SHOP) == "2"
    with pytest.raises(ConfigError, match=r"s.t has rows of orders that were loaded by --cursor id, not by at"):
        above(plans, SHOP, "at", ADD)


def test_a_load_of_all_rows_is_gone_on_from() -> None:
    plans = [loaded(SHOP, "id", "1"), replaced(SHOP, 3, id="3", at="c")]
    assert (above(plans, SHOP), above(plans, SHOP, "at")) == ("3", "c")
    plans.append(loaded(SHOP, "at", "d"))
    with pytest.raises(ConfigError, match="by --cursor at, not by id"):  # 3 is not the highest any more
        above(plans, SHOP)
    with pytest.raises(ConfigError, match="as a whole, not by id"):
        above([replaced(SHOP, 3)], SHOP)
    assert above([loaded(SHOP, "id", "1"), replaced(SHOP, 0)], SHOP) is None
    assert above([loaded(SHOP, "id", "1"), {**replaced(SHOP, 1), "done": None}], SHOP) == "1"


def test_another_source_is_refused_until_it_is_said_what_it_is() -> None:
    plans = [loaded(SHOP, "id", "1")]
    with pytest.raises(ConfigError, match=r"continue loads those with id above 1; --other-source add .*; --replace"):
        above(plans, OTHER)
    with pytest.raises(ConfigError) as error:
        above(plans, OTHER, "at")
    assert "continue" not in error.value.message
    with pytest.raises(ConfigError, match="not by at"):
        above(plans, OTHER, "at", CONTINUE)
    assert (above(plans, OTHER, "ID", CONTINUE), above(plans, OTHER, "at", ADD)) == ("1", None)
    # The one that is gone on with takes the other's place; one that is added stands beside it.
    after = [*plans, loaded(OTHER, "id", "2", continues=True)]
    assert above(after, OTHER) == "2"
    with pytest.raises(ConfigError, match="another URL, table or query"):
        above(after, SHOP)
    both = [*plans, loaded(OTHER, "id", "5")]
    assert (above(both, SHOP), above(both, OTHER)) == ("1", "5")
    with pytest.raises(ConfigError, match="more than one source"):
        above(both, Database("jdbc:x://h/shop", table="third"), "id", CONTINUE)


def test_sources_are_told_apart_by_where_their_rows_are() -> None:
    def key(url: str, query: str = "SELECT 1") -> str:
        return Database(url, query=query).key("id")

    assert key("jdbc:x://h/a?user=me") == key("jdbc:x://h/a?user=you;ssl=true") == key("jdbc:x://h/a", "\tSELECT  1\n")
    assert key("jdbc:sqlserver://h;databaseName=a") != key("jdbc:sqlserver://h;encrypt=true;databaseName=b")
    assert key("jdbc:x://h/a") != key("jdbc:x://h/b") and key("jdbc:x://h/a") != key("jdbc:x://h/a", "SELECT 2")
