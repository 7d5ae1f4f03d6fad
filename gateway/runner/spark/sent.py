"""Texts on their way to Spark: its own parser must find tables where the respelling found them."""

from __future__ import annotations

import re
from typing import Any

from gateway.engine.spark.parsed import table_names
from gateway.errors import Span, unsupported
from gateway.sql.spark.respell import SPARK_CATALOG, Respelt

_SPACE = r"(?:\s|/[*].*?[*]/)*"


def sent(spark: Any, respelt: Respelt) -> str:
    """The text for Spark.

    Raises UnsupportedError for a name that Spark reads as a table's where the respelling saw none: Spark would look for it
    in a database, or read a file, that the name does not mean here.
    """
    meant = {path.lower() for path in respelt.paths}
    for mention in respelt.mentions:
        short = ", ".join(mention.in_spark).lower()
        meant |= {short, f"{SPARK_CATALOG}, {short}"}
    for name in table_names(spark, respelt.text):
        parts = name.split(", ")
        one_part = f"`{name}`" in respelt.text and not respelt.paths  # with a comma and a space in it
        if len(parts) > 1 and name.lower() not in meant and not one_part:
            shown = ".".join(parts)
            raise unsupported(f"The name {shown}, which Spark reads as a table's,", _place(respelt, parts))
    return respelt.text


def _place(respelt: Respelt, parts: list[str]) -> Span | None:
    """Where a name stands in the user's text, if it can be found."""
    pattern = f"{_SPACE}[.]{_SPACE}".join(f"`?{re.escape(part)}`?" for part in parts)
    found = re.search(pattern, respelt.text, re.IGNORECASE | re.DOTALL)
    return Span(respelt.original(found.start()), respelt.original(found.end())) if found is not None else None


__all__ = ["sent"]
