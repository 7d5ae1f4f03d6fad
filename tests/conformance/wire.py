"""The corpora over the wire with Spark behind the gateway, against plain PySpark: ``python -m tests.conformance.wire``.

Of the statements that plain PySpark of the same version answers as the corpora do, how many does the gateway answer so, through
databricks-sql-connector? The verdicts of both are kept in .bench/. Takes half an hour on two cores.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from gateway.engine.spark import setup
from tests.conformance import corpora
from tests.conformance.shared import ROOT
from tests.live.gateway import start_server

_RIGHT = ("pass", "pass_error", "name")
_NAMES = ("spark_function_examples", "spark_golden_dev")
_ASKED = 0.98
_DETAIL = 300  # characters that are recorded of what differs
# Scripts whose handlers catch what UPDATE and DELETE raise on tables that are not Delta's; the gateway's tables are.
_OTHER_TABLES = "scripting/randomly_generated_scripts.sql"


def _run(script: Path, name: str, out: Path, *flags: str) -> None:
    command = [
        sys.executable,
        str(script),
        "run",
        "--corpus",
        str(script.parent / f"{name}.jsonl.gz"),
        "--out",
        str(out),
    ]
    subprocess.run([*command, "--timeout", "60", "--quiet", *flags], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def _verdicts(path: Path) -> dict[str, tuple[str, str]]:
    """Verdict and text of each scored query by its id."""
    found = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            record = json.loads(line)
            if record["score"] and record["kind"] != "command":
                found[record["id"]] = (_verdict(record), record["sql"])
    return found


def _verdict(record: dict[str, str]) -> str:
    """The verdict, but for VOID alone, also inside other types, of which clients are told STRING, and the catalog's name."""
    pairs = [detail.partition("!=") for detail in record["detail"].split("; ")]
    if record["verdict"] == "type":
        told = all(re.sub(r"\bvoid\b", "string", wanted) == found for wanted, _, found in pairs)
    else:
        cut = len(record["detail"]) >= _DETAIL
        told = all(
            wanted.replace("spark_catalog.", "main.") == found
            or (cut and found is pairs[-1][2] and wanted.replace("spark_catalog.", "main.").startswith(found))
            for wanted, _, found in pairs
        )
    return "pass" if record["verdict"] in ("type", "name") and told else record["verdict"]


def _plain(script: Path, name: str) -> dict[str, tuple[str, str]]:
    cache = ROOT / ".bench" / f"plain-pyspark-{setup.PYSPARK}-{name}.gz"
    if not cache.exists():
        cache.parent.mkdir(exist_ok=True)
        draft = cache.with_suffix(".draft")
        _run(script, name, draft, "--adapter", "spark")
        draft.replace(cache)
    return _verdicts(cache)


def _counts(statement: str, verdict: str) -> bool:
    return verdict in _RIGHT and not statement.startswith(_OTHER_TABLES)


def _is_wrong(statement: str, ours: str, plain: str) -> bool:
    """Spark's own names may have changed between the version that was recorded and ours."""
    return ours in corpora.WRONG and ours != plain and not corpora.excused(statement, ours)


def main() -> int:
    """0 if enough is answered and nothing is wrong that plain PySpark gets right."""
    script = corpora.runner_script()
    if sys.argv[1:]:
        print(f"no arguments are known, not {sys.argv[1]}")
        return 2
    if script is None:
        print("the corpora are not here (set GATEWAY_SHARED)")
        return 2
    jars = os.environ.get("GATEWAY_SPARK_JARS") or str(setup.default_folder())
    good = True
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--spark", "local[*]", "--spark-jars", jars, "--allow-path", str(script.parent))
        server = start_server(Path(folder), *flags)
        try:
            for name in _NAMES:
                plain = {i: verdict for i, (verdict, _) in _plain(script, name).items() if _counts(i, verdict)}
                out = ROOT / ".bench" / f"wire-{name}.gz"
                # One job: the files of a corpus share one schema.
                _run(script, name, out, "--adapter", "gateway", "--url", server.thrift_url, "-j", "1")
                ours = _verdicts(out)
                counts = Counter(ours[i][0] for i in plain)
                right = sum(counts[v] for v in _RIGHT)
                wrong = [i for i in sorted(plain) if _is_wrong(i, ours[i][0], plain[i])]
                others = ", ".join(f"{n} {v}" for v, n in counts.most_common() if v not in _RIGHT)
                print(f"{name}: {right} of {len(plain)} ({right / len(plain):.1%}); {others}; wrong {len(wrong)}")
                for i in wrong:
                    print(f"  {i} {ours[i][0]}: {' '.join(ours[i][1].split())[:150]}")
                good = good and right >= _ASKED * len(plain) and not wrong
        finally:
            server.stop()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
