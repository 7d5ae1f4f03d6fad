"""``python -m tests.fuzz.table FILE …``: the counts of runs, as `--resume` keeps them, into the table of docs/fuzzing.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.shared import ROOT
from tests.fuzz.tally import ENOUGH, VERDICTS, Tally, hittable, seldom

_SHOWN = 12
_DOCUMENT = ROOT / "docs" / "fuzzing.md"
_BEGIN, _END = "<!-- counts -->", "<!-- end of counts -->"
_KINDS = ("expressions", "queries", "reports", "neighbours", "sessions", "mistyped", "misplaced", "wrapped", "changes")
_WORDS = {"same": "the same answer", "both raise": "both raise", "excused": "excepted", "difference": "differed"}


def table(tallies: Sequence[Tally]) -> str:
    """The counts of runs, a row for each kind of statement."""
    total = sum(tallies[1:], tallies[0])
    verdicts = sorted(VERDICTS, key=lambda v: v == "difference")
    head = ["kind", "tried", *(_WORDS.get(v, v) for v in verdicts)]
    rows = [[kind, *_numbers(total, kind, verdicts)] for kind in _KINDS if kind in total.verdicts]
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    few = seldom(total.hits)
    seeds = ", ".join(str(t.seed) for t in tallies)
    kinds = ", ".join(f"{n} {kind}" for kind, n in total.differences.most_common()) or "none"
    often = f"{len(hittable()) - len(few)} of {len(hittable())} functions were called {ENOUGH} times or more"
    rarest = sorted(few, key=lambda n: total.hits[n])[:_SHOWN]
    fewer = f", least often: {', '.join(f'`{n}` {total.hits[n]}' for n in rarest)}" if few else ""
    lines += ["", f"Seeds {seeds}. Differences: {kinds}. {often}{fewer}."]
    return "\n".join(lines)


def _numbers(total: Tally, kind: str, verdicts: Sequence[str]) -> list[str]:
    found = total.verdicts[kind]
    return [f"{found.total():,}", *(f"{found[v]:,}" for v in verdicts)]


def write(document: Path, text: str) -> None:
    """Put the table between its two marks."""
    before, begin, rest = document.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    assert begin and end, f"no marks in {document}"
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """The command; 2 if there is no file to read."""
    paths = [Path(a) for a in arguments]
    absent = [str(p) for p in paths if not p.is_file()]
    if absent or not paths:
        print(f"No counts of a run: {', '.join(absent) or 'name a file that --resume has kept'}", file=sys.stderr)
        return 2
    write(_DOCUMENT, table([Tally.load(p) for p in paths]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
