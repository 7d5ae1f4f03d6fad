"""Names of tables that Spark's own parser finds in a text."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"'Unresolved(?:Relation|Table|TableOrView|View) \[(.*?)\](?:, |$)", re.MULTILINE)
# What a statement makes; other commands have variables and functions in this place.
_MADE = re.compile(r"\A'(?:Create|Replace)Table.*\n[: +\-]*'UnresolvedIdentifier \[(.*?)\], ")


def table_names(spark: Any, text: str) -> tuple[str, ...]:
    """Each name in `text` that stands for a relation, its parts joined by a comma and a space; takes 1 to 3 ms.

    () for a text that is not Spark's SQL, and for a Connect server, whose parser nobody can ask.
    """
    from pyspark.errors import ParseException

    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        return ()
    # The parser follows the settings of the thread's session, which is the one that it used last.
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(session)  # noqa: SLF001
    try:
        tree = session.sessionState().sqlParser().parsePlan(text).treeString()
    except ParseException:
        return ()
    return (*_MADE.findall(tree), *_NAME.findall(tree))
