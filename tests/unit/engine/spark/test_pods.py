"""What pods tell of why they do not run."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.engine.spark.pods import told

PULL = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}}
CRASHED = {"state": {"terminated": {"reason": "Error", "exitCode": 1}}}
FULL = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ([], "there are no pods"),
        ([{}], "pod p0 is None"),
        ([{"phase": "Pending"}, {"phase": "Running"}], "pod p0 is Pending"),
        (
            [{"phase": "Pending"}, {"phase": "Pending", "containerStatuses": [PULL]}],
            "pod p1 is Pending: ImagePullBackOff: Back-off pulling image",
        ),
        (
            [{"phase": "Pending", "containerStatuses": None, "conditions": [FULL]}],
            "pod p0 is Pending: Unschedulable: 0/3 nodes are available",
        ),
        ([{"phase": "Failed", "containerStatuses": [CRASHED], "conditions": None}], "pod p0 is Failed: Error"),
    ],
)
def test_the_first_pod_with_a_reason_is_told(statuses: list[dict[str, Any]], text: str) -> None:
    assert told([{"metadata": {"name": f"p{i}"}, "status": status} for i, status in enumerate(statuses)]) == text
