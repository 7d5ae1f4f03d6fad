"""A table as deltalake opens it, also where the hint at its log's newest checkpoint leads nowhere."""

from __future__ import annotations

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gateway.delta import log


def opened(root: str, version: int | None = None) -> DeltaTable:
    """The table at its newest version or at `version`. Raises what deltalake raises.

    Where the hint names a checkpoint that is not there, it is opened as of a version before, of which the hint does not count,
    and brought forward by its commits.
    """
    try:
        return DeltaTable(root, version=version)
    except DeltaError:
        lost, versions = log.lost_checkpoint(root), log.commit_versions(root)
        if lost is None or lost < 1 or not versions:
            raise
    table = DeltaTable(root, version=min(lost - 1, versions[-1]))
    if version is None:
        table.update_incremental()
    else:
        table.load_as_version(version)
    return table
