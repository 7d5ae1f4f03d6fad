"""The recorded corpora beside the checkout: runs them through the gateway's worker and reads the verdicts.

The runner and the corpora are not part of the project; they are looked for below GATEWAY_SHARED, else in ../shared.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.shared import ROOT, shared_folder

#: Verdicts that must not happen; each exception below names its reason.
WRONG = ("wrong", "order", "type", "name")

_TIES = "the order of ties is not defined"
_SETTING = "the setting that the statement depends on was refused before it"
_REFUSED = "the statement before it, EXECUTE IMMEDIATE, was refused"
_CRASH = "Spark fails with an internal error"
_SHOWN = "recorded with another display of intervals; Spark 4.2.0 itself shows what the gateway shows"
_JSON = "recorded as the text of VARIANT; clients get its JSON, in which texts have quotes"
_VOID = "clients are told VOID as STRING, as Databricks does"
_IN_ARRAYS = "clients are given intervals in arrays as text; their type is in the column's metadata"
EXCEPTED: dict[str, str] = {
    "group-analytics.sql#104": _CRASH,
    "having.sql#15": _TIES,
    "order-by.sql#4": _TIES,
    "subquery/in-subquery/in-set-operations.sql#3": _TIES,
    "subquery/in-subquery/in-set-operations.sql#4": _TIES,
    "subquery/in-subquery/in-set-operations.sql#9": _TIES,
    "subquery/in-subquery/in-set-operations.sql#11": _TIES,
    "tpcds/q77.sql": _TIES,  # the subtotal of a channel, and its rows without an id
    "typeCoercion/native/elt.sql#3": _SETTING,
    **dict.fromkeys(
        (f"subquery/exists-subquery/exists-count-bug.sql#{number}" for number in (11, 12, 13, 14, 16)), _SETTING
    ),
    # With Spark behind the gateway, over the wire.
    **dict.fromkeys(("variant_get#4", "try_variant_get#4", "variant_explode#0", "variant_explode_outer#0"), _JSON),
    "assert_true#0": _VOID,
    "selectExcept.sql#33": _VOID,
    **dict.fromkeys((f"execute-immediate.sql#{number}" for number in (19, 29, 32, 34, 37, 39, 44)), _REFUSED),
    **dict.fromkeys(("query_regex_column.sql#24", "query_regex_column.sql#26"), _SETTING),
    **dict.fromkeys(("group-by.sql#74", "group-by.sql#75"), _IN_ARRAYS),
    **dict.fromkeys(("percentile#3", "approx_percentile#3", "percentile_approx#3"), _IN_ARRAYS),
    **{f"postgreSQL/interval.sql#{number}": _SHOWN for number in (*range(12), 14, 17)},
}


@dataclass(frozen=True, slots=True)
class Corpus:
    """One corpus: its file, what it is, and the folder of its tables if that is not beside it."""

    name: str
    title: str


CORPORA = (
    Corpus("spark_function_examples", "documented examples of Spark's functions"),
    Corpus("spark_golden_dev", "Spark's golden SQL tests (half of them)"),
    Corpus("tpc", "TPC-H and TPC-DS, scale 0.01"),
)


# Settings that are refused, by file; the errors behind them are of what the settings mean.
_BEHIND_SETTINGS = {
    **dict.fromkeys(("like", "ilike", "rlike", "regexp", "regexp_like"), "spark.sql.parser.escapedStringLiterals"),
    "order-by-ordinal.sql": "spark.sql.orderByOrdinal = false",
    "query_regex_column.sql": "spark.sql.parser.quotedRegexColumnNames",
}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The scored queries of one run by verdict, and the records of those that are wrong or fail where Spark answers.

    `failed` leaves out what fails behind a statement that was refused.
    """

    counts: Counter[str]
    wrong: tuple[dict[str, Any], ...]
    failed: tuple[dict[str, Any], ...] = ()

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def passed(self) -> int:
        """Spark's rows, types and names, or an error where Spark raises one."""
        return self.counts["pass"] + self.counts["pass_error"]

    def unexcused(self) -> list[str]:
        """Wrong answers that no exception names."""
        return [
            f"{r['id']} {r['verdict']} {r['detail']}: {r['sql']}"
            for r in self.wrong
            if not excused(r["id"], r["verdict"])
        ]


def excused(statement: str, verdict: str) -> bool:
    """Whether an exception names the statement; ties excuse nothing but another order."""
    return statement in EXCEPTED and (EXCEPTED[statement] is not _TIES or verdict == "order")


def runner_script() -> Path | None:
    """The corpora's runner; None if it is not here."""
    folder = shared_folder()
    script = folder / "conformance" / "conformance.py" if folder is not None else None
    return script if script is not None and script.is_file() else None


def make_tables(folder: Path) -> str:
    """Make the tables of the corpus ``tpc`` below `folder`; what went wrong, "" if nothing did."""
    script = runner_script()
    assert script is not None
    command = [sys.executable, str(script.parent / "make_tpc_data.py"), "--out", str(folder / "data")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return made.stderr[-300:] if made.returncode else ""


def run(corpus: Corpus, out: Path, data: Path | None = None, jobs: int = 2) -> Verdicts:
    """Run a corpus; `data` is the folder that holds ``data/`` with its tables."""
    script = runner_script()
    assert script is not None
    result = out / f"{corpus.name}.results.gz"
    command = [sys.executable, str(script), "run", "--adapter", "callable", "--callable"]
    command += ["tests.conformance.adapter:Engine", "--corpus", str(script.parent / f"{corpus.name}.jsonl.gz")]
    command += ["--out", str(result), "-j", str(jobs), "--timeout", "60", "--quiet"]
    if data is not None:
        command += ["--data", str(data)]
    environment = os.environ | {"GATEWAY_CONFORMANCE_STATE": str(out), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode or "COULD NOT BE OPENED" in done.stdout:
        raise RuntimeError(f"{corpus.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return read(result)


def read(result: Path) -> Verdicts:
    """The verdicts of the scored queries in a result file."""
    counts: Counter[str] = Counter()
    wrong = []
    failed = []
    with gzip.open(result, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            record = json.loads(line)
            if not record["score"] or record["kind"] == "command":
                continue
            counts[record["verdict"]] += 1
            if record["verdict"] in WRONG:
                wrong.append(record)
            if record["verdict"] == "error" and not (record["blocked"] and _file(record["id"]) in _BEHIND_SETTINGS):
                failed.append(record)
    return Verdicts(counts, tuple(wrong), tuple(failed))


def _file(statement: str) -> str:
    return statement.partition("#")[0]
