"""What Spark's own parser finds in a text: names of tables, and whether it is a query."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"'Unresolved(?:Relation|Table|TableOrView|View) \[(.*?)\](?:, |$)", re.MULTILINE)
# What a statement makes; other commands have variables and functions in this place.
_MADE = re.compile(r"\A'(?:Create|Replace)Table.*\n[: +\-]*'UnresolvedIdentifier \[(.*?)\], ")


# What is no query: commands, and statements that become such.
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_DOING = tuple(f"{_LOGICAL}.{name}" for name in ("Command", "ParsedStatement", "UnaryParsedStatement"))


def table_names(spark: Any, text: str) -> tuple[str, ...]:
    """Each name in `text` that stands for a relation, its parts joined by a comma and a space; takes 1 to 3 ms.

    () for a text that is not Spark's SQL, and for a Connect server, whose parser nobody can ask.
    """
    plan = _plan(spark, text)
    if plan is None:
        return ()
    tree = plan.treeString()
    return (*_MADE.findall(tree), *_NAME.findall(tree))


def changes_something(spark: Any, text: str) -> bool:
    """Whether Spark would do more with `text` than to read, once it is asked for a frame of it.

    False for a text that is not Spark's SQL, and for a Connect server, as `table_names`.
    """
    from py4j.java_gateway import is_instance_of

    plan = _plan(spark, text)
    if plan is None:
        return False
    if _plan(spark, text, "parseQuery") is None:  # its grammar of queries alone, which may leave an end unread
        return True
    gateway, plans = spark.sparkContext._gateway, [plan]  # noqa: SLF001
    while plans:
        plan = plans.pop()
        if any(is_instance_of(gateway, plan, name) for name in _DOING):
            return True
        children = plan.children()
        plans += [children.apply(i) for i in range(children.size())]
    return False


def _plan(spark: Any, text: str, rule: str = "parsePlan") -> Any:
    """What the parser makes of a text; None for what it does not read, and where it cannot be asked."""
    from pyspark.errors import ParseException

    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        return None
    # The parser follows the settings of the thread's session, which is the one that it used last.
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(session)  # noqa: SLF001
    try:
        return getattr(session.sessionState().sqlParser(), rule)(text)
    except ParseException:
        return None
