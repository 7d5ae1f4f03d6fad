"""Lines of a report on this machine: a verdict, what it is about, and the detail or the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

OK, WARN, FAIL = "ok", "warn", "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    verdict: str
    what: str
    detail: str


def report(findings: Iterable[Finding]) -> bool:
    """Print each finding as it comes; whether none is a FAIL."""
    good = True
    for finding in findings:
        print(f"{finding.verdict:5} {finding.what:12} {finding.detail}", flush=True)
        good = good and finding.verdict != FAIL
    return good
