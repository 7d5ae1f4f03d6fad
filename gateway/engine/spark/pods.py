"""What Kubernetes tells of executor pods that do not run: their images, volumes, or room on its nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.engine.spark.java import java_class

_MASTER = "k8s://"


def why_none_runs(context: Any) -> str:
    """For the master of a SparkContext, "" if it is no Kubernetes or tells nothing."""
    if not context.master.startswith(_MASTER):
        return ""
    client = context._jsc.sc().schedulerBackend().kubernetesClient()  # noqa: SLF001 (no public door)
    found = client.pods().withLabel("spark-app-selector", context.applicationId).list()
    text = java_class(context, "io.fabric8.kubernetes.client.utils.Serialization").asJson(found)
    return told(json.loads(text)["items"])


def told(pods: Iterable[Mapping[str, Any]]) -> str:
    """The first pod for which there is a reason, with all that is told of it."""
    phases = []
    for pod in pods:
        status = pod.get("status", {})
        states = [c.get("state", {}) for c in status.get("containerStatuses") or []]
        reasons = [state.get("waiting") or state.get("terminated") or {} for state in states]
        reasons += [c for c in status.get("conditions") or [] if c["type"] == "PodScheduled" and c["status"] == "False"]
        texts = [": ".join(r[key] for key in ("reason", "message") if r.get(key)) for r in reasons]
        where = f"pod {pod['metadata']['name']} is {status.get('phase')}"
        phases.append(f"{where}: {'; '.join(filter(None, texts))}" if any(texts) else where)
    return next((phase for phase in phases if ": " in phase), phases[0] if phases else "there are no pods")
