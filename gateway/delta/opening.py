"""A table as deltalake opens it, also where the hint at its log's newest checkpoint leads nowhere."""

from __future__ import annotations

import re

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from gateway.delta import log
from gateway.delta.features import Protocol
from gateway.delta.partitions import is_cast
from gateway.delta.schema import parse_schema

_UNPARSED = re.compile(r"Failed to parse value '(.*)' as '([^']*)'", re.DOTALL)
_OF_STATISTICS = re.compile(r"decoding field '(?:minValues|maxValues)': .*expected boolean got ", re.DOTALL)


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


def unread_by_it(message: str, protocol: Protocol | None) -> str | None:
    """What deltalake's error tells of a log that it does not read and Spark does; None for damage."""
    if _OF_STATISTICS.search(message):
        return "BOOLEAN statistics that are none"
    found = _UNPARSED.search(message)
    if found is None:
        return None
    if protocol is not None and protocol.has("typeWidening"):
        return "partition values of a narrower type"  # which the protocol lets be such a text
    (column,) = parse_schema({"fields": [{"name": "", "type": found[2], "nullable": True, "metadata": {}}]})
    return "partition values in another spelling than Spark's" if is_cast(found[1], column.type) else None
