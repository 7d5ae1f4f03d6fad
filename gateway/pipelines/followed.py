"""What Spark may follow: tables of the warehouse are looked at before it reads or writes them.

It opens whatever files a log names and evaluates whatever expressions it holds, and who may write a table may not read all that
the process may, nor run code in it.
"""

from __future__ import annotations

import os

from gateway.delta import log
from gateway.delta.containment import Within
from gateway.delta.log_paths import check_for_others, logged_expressions
from gateway.sql.spark.allowed import check_expression


def check_followed(folder: str | os.PathLike[str], within: Within, *, writes: bool) -> None:
    """Raise GatewayError unless the Delta table in a folder, if there is one, stays `within` folders and runs no code.

    Where Spark `writes`, no link is followed at all.
    """
    real = os.path.realpath(folder)
    if not log.has_log(real):
        return
    check_for_others(real, within, writes)
    for text in logged_expressions(real, within, writes=True):
        check_expression(text)
