"""ALTER TABLE … DROP FEATURE: what a table no longer asks of its writers, as Delta with Spark lets it go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.catalog.bound import DeltaBoundTable
from gateway.delta.downgrade import DROPPED, OF_WRITERS
from gateway.delta.expressions import CONSTRAINT
from gateway.delta.features import BY_NAME
from gateway.delta.log import IN_COMMIT, IN_COMMIT_SINCE
from gateway.delta.metadata import Alteration
from gateway.errors import UserError, unsupported
from gateway.runner.commands.columns import as_text
from gateway.sql.read import command_nodes as c

_CHECKS, _TIMES = "checkConstraints", "inCommitTimestamp"
# Those of Delta that a table can lose elsewhere.
_ELSEWHERE = frozenset(
    {
        *("typeWidening-preview", "checkpointProtection", "coordinatedCommits-preview"),
        *("icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "variantShredding", "variantShredding-preview"),
        *("catalogManaged", "collations", "collations-preview", "materializePartitionColumns"),
    }
)


_DEPENDENT = {"domainMetadata": ("clustering", "rowTracking")}


def feature_of(change: c.DropFeature, table: DeltaBoundTable) -> str:
    """The feature that is to be dropped. Raises what keeps it where it is."""
    names = {row.lower(): row for row in BY_NAME}
    name = names.get(change.name.lower())
    if name is None:
        text = f"Cannot drop {change.name} because it is not supported by this Delta version."
        raise UserError("DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", text, span=change.span)
    if name in _ELSEWHERE:
        raise unsupported(f"ALTER TABLE … DROP FEATURE {name}", change.span)
    protocol = table.snapshot.protocol
    if name not in (_CHECKS, _TIMES) and name not in DROPPED:
        text = f"Cannot drop {name} because dropping this feature is not supported."
        raise UserError("DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", text, span=change.span)
    if not protocol.has(name):
        text = f"Cannot drop {name} from this table because it is not currently present in the table's protocol."
        raise UserError("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", text, span=change.span)
    others = [other for other in _DEPENDENT.get(name, ()) if protocol.has(other)]
    if others:
        text = f"Cannot drop table feature `{name}` because some other features ({', '.join(others)}) depend on it."
        raise UserError("DELTA_FEATURE_DROP_DEPENDENT_FEATURE", text, span=change.span)
    if change.truncate and name in DROPPED and name not in OF_WRITERS:
        raise unsupported(f"ALTER TABLE … DROP FEATURE {name} TRUNCATE HISTORY", change.span)
    if change.truncate:
        text = "The particular feature does not require history truncation."
        raise UserError("DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED", text, span=change.span)
    return name


def alterations(name: str, change: c.DropFeature, table: DeltaBoundTable) -> Iterator[Alteration]:
    """The commits that DROP FEATURE is, one after the other, of a feature that asks for no files. Raises what keeps it."""
    if name == _CHECKS:
        left = [key[len(CONSTRAINT) :] for key in table.properties if key.startswith(CONSTRAINT)]
        if left:
            shown = ", ".join(f"`{one}`" for one in left)
            text = f"Cannot drop the CHECK constraints table feature. The following constraints must be dropped first: {shown}."
            raise UserError("DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", text, span=change.span)
    elif table.properties.get(IN_COMMIT, "").lower() == "true":
        yield Alteration("UNSET TBLPROPERTIES", {"properties": as_text([IN_COMMIT]), "ifExists": True}, _untimed)
    parameters = {"featureName": name, "truncateHistory": False}
    yield Alteration("DROP FEATURE", parameters, lambda _: None, without=frozenset({name}))


def _untimed(action: dict[str, Any]) -> None:
    kept = {k: v for k, v in action.get("configuration", {}).items() if not k.startswith(IN_COMMIT_SINCE)}
    action["configuration"] = {**kept, IN_COMMIT: "false"}
