"""A table as it was at an earlier version, as its next version."""

from __future__ import annotations

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gateway.delta.table import forget
from gateway.delta.write import check_own
from gateway.errors import ServerError


def restore(path: str, version: int) -> None:
    """Give the table in `path` the rows and columns of `version`; nothing is changed if it raises.

    Raises ServerError WRITE_FAILED and UserError PATH_NOT_ALLOWED.
    """
    check_own(path)
    try:
        DeltaTable(path).restore(version)
    except (DeltaError, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0][:300]
        raise ServerError(
            "WRITE_FAILED", f"Cannot restore the Delta table {path} to version {version}: {reason}"
        ) from error
    forget(path)
