"""Counts of right answers, refusals and wrong answers over all recorded corpora: ``python -m tests.conformance.report``.

Prints a table and writes it to docs/conformance.md. What is not here is skipped with its reason.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import GatewayError, UnsupportedError
from tests.conformance import corpora
from tests.conformance.session import Session, open_runner
from tests.conformance.shared import ROOT
from tests.unit.sql import test_hazards
from tests.unit.sql.bind import test_column_names
from tests.unit.sql.functions import probe_runner
from tests.unit.sql.typed import test_coercion

DOC = ROOT / "docs" / "conformance.md"


@dataclass(frozen=True, slots=True)
class Line:
    """One corpus: statements that are right, refused by name, wrong (beyond `free`), and failed otherwise.

    `failed` have an error where Spark answers; the rest follows from what was refused before.
    """

    title: str
    total: int
    right: int
    refused: int
    wrong: int
    free: int = 0
    missing: str = ""
    failed: int = 0

    @property
    def other(self) -> int:
        """Failures that follow: a table that could not be made, a setting that was refused."""
        return self.total - self.right - self.refused - self.wrong - self.free - self.failed


def recorded(corpus: corpora.Corpus, folder: Path) -> Line:
    """A corpus beside the checkout."""
    script = corpora.runner_script()
    if script is None:
        return Line(corpus.title, 0, 0, 0, 0, missing="the corpora are not here (set GATEWAY_SHARED)")
    data = None
    if corpus.name == "tpc":
        data = folder / "tpc"
        problem = corpora.make_tables(data)
        if problem:
            return Line(corpus.title, 0, 0, 0, 0, missing=f"its tables could not be made: {problem}")
    verdicts = corpora.run(corpus, folder, data)
    counts = verdicts.counts
    for statement in verdicts.unexcused():
        print(statement, file=sys.stderr)
    unexcused = len(verdicts.unexcused())
    for record in verdicts.failed:
        print(f"{record['id']} fails where Spark answers: {record['detail']}: {record['sql']}", file=sys.stderr)
    excused = len(verdicts.wrong) - unexcused
    return Line(
        corpus.title,
        verdicts.total,
        verdicts.passed,
        counts["refused"],
        unexcused,
        excused,
        failed=len(verdicts.failed),
    )


def hazards(folder: Path) -> Line:
    """tests/data/hazards.csv."""
    session = Session(open_runner(folder / "hazards", [test_hazards.DATA]), "America/Los_Angeles")
    session.load(test_hazards.VIEWS)
    probes = test_hazards.probes()
    counts = Counter(test_hazards.judged(session, p)[0] for p in probes if p["id"] not in test_hazards.FREE)
    right = counts["same"] + counts["condition"]
    wrong = sum(counts[v] for v in ("wrong", "answered", "type", "name", "nullable"))
    free = len(test_hazards.FREE)
    failed = 862 - right - counts["refused"] - wrong - free
    title = "statements that engines answer otherwise"
    return Line(title, 862, right, counts["refused"], wrong, free, failed=failed)


def coercion(_: Path) -> Line:
    """tests/data/coercion.csv."""
    right = wrong = 0
    for row in test_coercion.rows():
        for context in test_coercion.TEXTS:
            if test_coercion.answer(context, row["left"], row["right"]) == row[context]:
                right += 1
            else:
                wrong += 1
    return Line("types of operators over all pairs of types", right + wrong, right, 0, wrong)


def column_names(_: Path) -> Line:
    """tests/data/column-names.csv."""
    counts: Counter[str] = Counter()
    for sql, want in test_column_names.STATEMENTS.values():
        try:
            counts["right" if test_column_names.answer(sql) == want else "wrong"] += 1
        except UnsupportedError:
            counts["refused"] += 1
    return Line(
        "names, types, nullability of columns", counts.total(), counts["right"], counts["refused"], counts["wrong"]
    )


# Function probes with several right answers: part of the statement -> reason.
_FREE_PROBES = {
    "SELECT unix_timestamp()": "the time of the recording",
    "max_by(a0, a1) FROM VALUES ('A', 5, 5)": "max_by of equal keys may be any of them",
}


def functions(folder: Path) -> Line:
    """tests/data/function-probes.jsonl.gz."""
    probes = probe_runner.Probes(folder / "probes")
    counts: Counter[str] = Counter()
    for function, statement in probe_runner.probes():
        if any(part in statement["sql"] for part in _FREE_PROBES):
            counts["free"] += 1
            continue
        try:
            counts[probe_runner.judge(function, statement, probes.run(statement["sql"])).kind] += 1
        except GatewayError:
            counts["error"] += 1
    right = counts["same"] + counts["condition"]
    wrong = counts["wrong"] + counts["false_ok"] + counts["name"]
    failed = counts.total() - right - counts["refused"] - wrong - counts["free"]
    return Line(
        "arguments of functions", counts.total(), right, counts["refused"], wrong, counts["free"], failed=failed
    )


def lines(folder: Path) -> Iterator[Line]:
    """All corpora, one after the other."""
    for corpus in corpora.CORPORA:
        yield recorded(corpus, folder)
    parts: tuple[Callable[[Path], Line], ...] = (hazards, functions, coercion, column_names)
    for part in parts:
        yield part(folder)


def table(rows: list[Line]) -> str:
    """The counts as a Markdown table."""
    text = [
        "| corpus | statements | right | refused by name | wrong | error where Spark answers "
        "| not defined | behind a refusal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.missing:
            text.append(f"| {row.title} | skipped: {row.missing} | | | | | | |")
            continue
        share = f"{row.right} ({100 * row.right / row.total:.1f} %)"
        text.append(
            f"| {row.title} | {row.total} | {share} | {row.refused} | {row.wrong} | {row.failed} | {row.free} | {row.other} |"
        )
    return "\n".join(text)


HEAD = """# Conformance

Answers of Apache Spark (ANSI mode), recorded once, compared with the gateway's: rows, types, and an error where Spark raises
one. Made by `make conformance`, from probes in `tests/data` and from corpora that are not part of the project:
`GATEWAY_SHARED` is their folder, else `../shared` beside the checkout; of those that are not there the table says so.

"""

FOOT = """

*right*: the same rows and types, or an error where Spark raises one. *refused by name*: SQLSTATE 0A000 with the construct.
*wrong*: other rows or types, or an answer where Spark raises; a test keeps it at 0. *error where Spark answers*: an error that
is no refusal; a test keeps it below a limit. *not defined*: the statement has several
right answers (order of ties, mode of equally frequent values), or depends on a setting that was refused before it; each is
listed with its reason in `tests/conformance` and `tests/unit/sql/test_hazards.py`. *behind a
refusal*: mostly statements over tables of formats that the gateway does not create; some that a refused setting would give
another meaning.

Sources: Spark's own SQL tests and function examples (Apache-2.0), TPC-H and TPC-DS queries over generated tables (no published
TPC result), and probes in `tests/data`.
"""


def main() -> int:
    """Print the table; write the document. Exit status 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-write", action="store_true", help="print only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gateway-conformance-") as folder:
        rows = list(lines(Path(folder)))
    text = table(rows)
    print(text)
    if not arguments.no_write:
        DOC.write_text(HEAD + text + FOOT, encoding="utf-8")
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
