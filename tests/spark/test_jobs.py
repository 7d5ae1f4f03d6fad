"""Built-in jobs on a real local Spark with Delta; what they write is read back through the gateway's own engine.

Needs Java, pyspark and the Delta jars (GATEWAY_SPARK_JARS, else the cache folder); skipped otherwise.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from gateway.catalog.local import LocalCatalog
from gateway.cli.embedded import running_gateway
from gateway.config import load_config
from gateway.pipelines.jobs import ingest, tpch
from gateway.pipelines.jobs.report import Report
from gateway.pipelines.jobs.verify import verify
from gateway.protocol.client import Client
from tests.live.gateway import clean_environment
from tests.live.spark import jars
from tests.spark.jobs import Run, jobs_on

pytestmark = [
    pytest.mark.spark,
    # pyspark speaks of pandas, which it only imports
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark.*"),
]


@pytest.fixture
def run(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `gateway job …` on the shared Spark with a warehouse of its own: exit code, its JSON, standard error."""
    return jobs_on(spark, tmp_path, monkeypatch, capsys)


def rows(folder: Path) -> pa.Table:
    """The rows of a Delta table, read without Spark."""
    return DeltaTable(str(folder)).to_pyarrow_table()


# ---- generate and verify


def test_all_types_are_equal_on_both_engines_and_the_same_again(run: Run, tmp_path: Path) -> None:
    code, report, err = run("generate", "all-types", "--scale", "0.2")
    assert code == 0, err
    assert report["summary"][0]["rows"] == 205
    code, report, err = run("verify", "generated.all_types")
    assert code == 0, (report, err)
    assert report["notes"] == ["same"]
    assert len(report["summary"]) == 2 + 24
    for words in (["--into", "s.again"], ["--into", "s.other", "--seed", "7"]):
        assert run("generate", "all-types", "--scale", "0.2", *words)[0] == 0
    one, again, other = (rows(tmp_path / "wh" / t).sort_by("id") for t in ("generated/all_types", "s/again", "s/other"))
    # Text, because NaN is not equal to itself.
    assert str(again.to_pylist()) == str(one.to_pylist())
    assert all(
        str(other[c].to_pylist()) != str(one[c].to_pylist()) for c in one.column_names if c not in ("id", "c_void")
    )
    code, _, err = run("generate", "all-types")
    assert (code, "exists already" in err) == (2, True)


def test_events_are_skewed_late_and_twice_and_the_same_again(run: Run, tmp_path: Path) -> None:
    for name in ("s.one", "s.again"):
        assert run("generate", "events", "--scale", "0.005", "--into", name)[0] == 0
    one, again = (rows(tmp_path / "wh/s" / name) for name in ("one", "again"))
    order = [("event_id", "ascending"), ("arrived_at", "ascending")]
    assert one.num_rows == 5000 and one.sort_by(order).to_pylist() == again.sort_by(order).to_pylist()
    users = Counter(one["user_id"].to_pylist())
    assert users[1] > 10 * users.most_common()[20][1]
    assert 20 < 5000 - len(set(one["event_id"].to_pylist())) < 100
    late = [b - a for a, b in zip(one["happened_at"].to_pylist(), one["arrived_at"].to_pylist(), strict=True)]
    assert 20 < sum(d > timedelta(hours=1) for d in late) < 100 and min(late) >= timedelta(0)


@pytest.mark.heavy
def test_tpch_without_the_official_generator(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpch, "find_generator", lambda: None)
    code, report, err = run("generate", "tpch", "--scale", "0.001")
    assert code == 0 and "pip install tpchgen-cli" in report["notes"][0], err
    assert {line["table"]: line["rows"] for line in report["summary"]}["tpch.nation"] == 25
    code, _, err = run("generate", "tpch", "--scale", "2", "--into", "big")
    assert code == 2 and "pip install tpchgen-cli" in err


# ---- ingest


def write(path: Path, text: str) -> Path:
    """A file in a folder that is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_files_are_loaded_once_and_bad_records_are_kept(run: Run, tmp_path: Path) -> None:
    inbox = tmp_path / "in box"
    write(inbox / "a #1,%20.csv", 'id,name,amount\n1,a,1.5\n2,"b,\n",2\n')
    write(inbox / "_hidden.csv", "no\n")
    write(inbox / "new.csv", "")
    first = ("ingest", str(inbox), "s.t", "--option", "multiLine=true")
    code, report, err = run(*first)
    assert code == 0, err
    assert report["summary"] == [{"table": "s.t", "files": 1, "loaded": 2, "quarantined": 0}]
    assert "1 empty files" in report["notes"][0]
    # Another order of columns, one missing, bad values, too many fields.
    write(inbox / "deep [1]*" / "b.csv", "name,id\nc,3\nd,x\ne,4\nf,5,6\n")
    write(inbox / "new.csv", "id,amount\n7,oops\n8,8e0\n9,\n")
    code, report, err = run("ingest", str(inbox), "main.s.t")
    assert code == 0, err
    assert report["summary"] == [{"table": "s.t", "files": 2, "loaded": 4, "quarantined": 3}]
    code, report, _ = run("ingest", str(inbox), "s.t")
    assert (code, report["summary"][0]["loaded"], report["notes"]) == (0, 0, ["no new files, 0 rows loaded"])
    found = rows(tmp_path / "wh/s/t").sort_by("id")
    assert found.to_pydict() == {
        "id": [1, 2, 3, 4, 8, 9],
        "name": ["a", "b,\n", "c", "e", None, None],
        "amount": [1.5, 2.0, None, None, 8.0, None],
    }
    bad = rows(tmp_path / "wh/s/t_quarantine").sort_by("raw")
    assert bad["raw"].to_pylist() == ["7,oops", "d,x", "f,5,6"]
    assert bad["reason"].to_pylist() == ["column amount: oops is not DOUBLE", "column id: x is not INT", "not 2 fields"]
    assert bad["file"].to_pylist()[0].endswith("new.csv")


def test_json_columns_are_added_on_request_and_bad_lines_kept(run: Run, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    write(inbox / "1.json", '{"id": 1, "x": {"a": 1}}\n{broken\n{"id": 2}\n')
    assert run("ingest", str(inbox), "s.t")[1]["summary"][0] == {
        "table": "s.t",
        "files": 1,
        "loaded": 2,
        "quarantined": 1,
    }
    write(
        inbox / "2.jsonl",
        '{"id": 3, "x": {"a": 2, "b": "z"}, "y": [1]}\n{"id": "four", "y": [1]}\n{"id": 5.5}\n{"id":6}\n',
    )
    code, _, err = run("ingest", str(inbox), "s.t")
    assert (code, "no column 'x.b', 'y'" in err) == (2, True)
    code, report, err = run("ingest", str(inbox), "s.t", "--evolve", "--dry-run")
    assert (code, report["notes"][-1]) == (0, "would add columns x.b, y"), err
    code, report, err = run("ingest", str(inbox), "s.t", "--evolve")
    assert code == 0, err
    assert report["summary"] == [{"table": "s.t", "files": 1, "loaded": 2, "quarantined": 2}]
    found = rows(tmp_path / "wh/s/t").sort_by("id").to_pylist()
    assert found == [
        {"id": 1, "x": {"a": 1, "b": None}, "y": None},
        {"id": 2, "x": None, "y": None},
        {"id": 3, "x": {"a": 2, "b": "z"}, "y": [1]},
        {"id": 6, "x": None, "y": None},
    ]
    bad = rows(tmp_path / "wh/s/t_quarantine").sort_by("raw").select(["raw", "reason"]).to_pylist()
    assert bad == [
        {"raw": '{"id": "four", "y": [1]}', "reason": "column id: four is not BIGINT"},
        {"raw": '{"id": 5.5}', "reason": "column id: 5.5 is not BIGINT"},
        {"raw": "{broken", "reason": "malformed record"},
    ]
    code, report, _ = run("verify", "select id, x, y from s.t")
    assert (code, report["notes"]) == (0, ["same"])


def test_parquet_and_types_that_do_not_fit(run: Run, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "s": [{"a": 1}, None]}), inbox / "1.parquet")
    assert run("ingest", str(inbox), "s.t")[1]["summary"][0]["loaded"] == 2
    wide = pa.table({"ID": pa.array([3, 2**40, 5], pa.int64()), "s": [{"a": 3}, {"a": 4}, None]})
    pq.write_table(wide, inbox / "2.parquet")
    code, report, err = run("ingest", str(inbox), "s.t")
    assert (code, report["summary"][0]["loaded"], report["summary"][0]["quarantined"]) == (0, 2, 1), err
    assert sorted(rows(tmp_path / "wh/s/t")["id"].to_pylist()) == [1, 2, 3, 5]
    bad = rows(tmp_path / "wh/s/t_quarantine").to_pylist()[0]
    assert json.loads(bad["raw"]) == {"ID": 2**40, "s": {"a": 4}}
    assert bad["reason"] == f"column ID: {2**40} is not INT"
    # A change of type is refused by name; nothing is written; on request its records go to quarantine.
    pq.write_table(pa.table({"id": ["x", "y", "7"]}), inbox / "3.parquet")
    code, _, err = run("ingest", str(inbox), "s.t")
    assert code == 2 and "column id: x is not INT" in err and "3.parquet" in err
    assert len(rows(tmp_path / "wh/s/t")) == 4
    code, report, err = run("ingest", str(inbox), "s.t", "--type-conflicts", "quarantine")
    assert (code, report["summary"][0]["loaded"], report["summary"][0]["quarantined"]) == (0, 1, 2), err
    pq.write_table(pa.table({"s": [[1]]}), inbox / "4.parquet")
    code, _, err = run("ingest", str(inbox), "s.t")
    assert code == 2 and "column s of" in err and "STRUCT<`a`: BIGINT>" in err
    (inbox / "4.parquet").write_bytes(b"PAR1 nothing PAR1")
    code, _, err = run("ingest", str(inbox), "s.t")
    assert code == 2 and "4.parquet cannot be read as Parquet" in err


@pytest.mark.heavy
def test_a_killed_load_is_finished_and_nothing_is_there_twice(run: Run, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    good = "".join(f"{i},name {i}\n" for i in range(20_000))
    write(inbox / "1.csv", f"id,name\n{good}bad,x\n")
    words = ["ingest", str(inbox), "s.t", "--schema", "id INT, name STRING"]
    flags = ["--warehouse", str(tmp_path / "wh"), "--state", str(tmp_path / "state"), "--spark-jars", str(jars())]
    command = [sys.executable, "-m", "gateway", "job", *words, "--spark", "local[1]", "--quiet", *flags]
    environment = {**clean_environment(), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment) as process:
        # Killed between the commits: the good records are in the table, the bad ones are being written.
        until(lambda: (tmp_path / "wh/s/t/_delta_log" / f"{0:020}.json").exists(), process)
        process.kill()
    write(inbox / "2.csv", "id,name\n-1,late\n")
    code, report, err = run(*words)
    assert code == 0, err
    assert "was interrupted" in err
    assert report["summary"] == [{"table": "s.t", "files": 2, "loaded": 20_001, "quarantined": 1}]
    assert sorted(rows(tmp_path / "wh/s/t")["id"].to_pylist()) == list(range(-1, 20_000))
    assert rows(tmp_path / "wh/s/t_quarantine")["raw"].to_pylist() == ["bad,x"]
    # What does not fit the table is told although there is nothing to load.
    for schema, text in (
        ("id STRING, name STRING", "'id' is int in s.t, not string"),
        ("more INT", "no column 'more'"),
    ):
        code, _, err = run("ingest", str(inbox), "s.t", "--schema", schema)
        assert code == 2 and text in err
    assert run("ingest", str(inbox), "s.t", "--schema", "ID SMALLINT")[0] == 0


def test_a_load_that_starts_anew_and_is_killed_is_finished_too(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the commit and all that is noted of it: the table is the new ledger's by then."""
    source = write(tmp_path / "in.csv", "id\n1\n2\n")
    assert run("ingest", str(source), "s.t")[0] == 0
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(ingest, "_written", killed)
        run("ingest", str(source), "s.t", "--forget")
    assert len(rows(tmp_path / "wh/s/t")) == 4
    code, _, err = run("ingest", str(source), "s.t")
    assert code == 0, err
    assert len(rows(tmp_path / "wh/s/t")) == 4


def killed(*args: object) -> int:
    raise KeyboardInterrupt


def test_what_a_constraint_refuses_is_loaded_once_it_is_right(run: Run, spark: Any, tmp_path: Path) -> None:
    table, quarantine = tmp_path / "wh/s/t", tmp_path / "wh/s/t_quarantine"
    columns = "id INT, word VARCHAR(3), twice INT GENERATED ALWAYS AS (id * 2)"
    spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta")
    source = write(tmp_path / "in.csv", "id,word\n1,long word\n2,b\nx,c\n")
    for _ in range(2):
        code, _, err = run("ingest", str(source), "s.t")
        assert (code, "exceeds char/varchar type length" in err) == (2, True), err
    assert len(rows(table)) == 0 and not quarantine.exists()
    write(source, "id,word\n1,a\n2,b\nx,c\n")
    code, report, err = run("ingest", str(source), "s.t")
    assert (code, report["summary"][0]["loaded"], report["summary"][0]["quarantined"]) == (0, 2, 1), err
    assert rows(table).sort_by("id").to_pydict() == {"id": [1, 2], "word": ["a", "b"], "twice": [2, 4]}
    # A line that Spark would read only the start of.
    code, _, err = run("ingest", str(write(tmp_path / "in.json", '{"id": 1} \n{"id": 3}{"id": 4}\n')), "s.u")
    assert code == 2 and 'more than one JSON object: {"id": 3}{"id": 4}' in err
    # Names of the quarantine and the ledger that are something else.
    spark.range(1).write.format("delta").save(str(tmp_path / "wh/s/v_quarantine"))
    code, _, err = run("ingest", str(source), "s.v")
    assert code == 2 and "s.v_quarantine is needed for bad records" in err
    shutil.rmtree(tmp_path / "wh/.ingest/s/t")
    code, _, err = run("ingest", str(source), "s.t")
    assert code == 2 and "was loaded with another ledger" in err
    shutil.rmtree(table)


def until(done: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait for `done` while the process runs."""
    end = time.monotonic() + 150
    while not done():
        assert process.poll() is None and time.monotonic() < end, f"exit {process.poll()}"
        time.sleep(0.01)


@pytest.mark.heavy
def test_rows_of_a_database(run: Run, spark: Any, tmp_path: Path) -> None:
    url = f"jdbc:derby:{tmp_path}/derby;create=true"
    connection = spark._jvm.java.sql.DriverManager.getConnection(url)

    def execute(*statements: str) -> None:
        for text in statements:
            connection.createStatement().execute(text)

    def ids() -> list[int]:
        return sorted(rows(tmp_path / "wh/s/orders")["ID"].to_pylist())

    execute(
        "CREATE TABLE orders (id INT, price DECIMAL(10,2), moment TIMESTAMP)",
        # Derby keeps nanoseconds, Spark microseconds: the highest row must be loaded, and once.
        "INSERT INTO orders VALUES (1, 1.50, '2024-01-01 00:00:00.000000001'), (2, NULL, '2024-01-02 00:00:00.123456789')",
    )
    new = ("ingest", "s.orders", "--jdbc", url, "--table", "ORDERS", "--cursor", "moment")
    code, report, err = run(*new)
    assert (code, report["summary"][0]["loaded"]) == (0, 2), err
    assert report["notes"][0] == "MOMENT is loaded up to 2024-01-02 00:00:00.123456"
    assert run(*new)[1]["summary"][0]["loaded"] == 0
    execute("INSERT INTO orders VALUES (3, 2.25, '2024-01-02 00:00:00.123457')")
    assert run(*new)[1]["summary"][0]["loaded"] == 1
    found = rows(tmp_path / "wh/s/orders").sort_by("ID")
    assert found["ID"].to_pylist() == [1, 2, 3]
    assert found["PRICE"].to_pylist() == [Decimal("1.50"), None, Decimal("2.25")]
    assert found.schema.field("MOMENT").type == pa.timestamp("us")
    # Batches that were interrupted, whose rows have changed since they were counted: one of each is gone, one is bad now.
    execute(
        "DROP TABLE orders",
        "CREATE TABLE orders (id BIGINT, price DECIMAL(10,2), moment TIMESTAMP)",
        "INSERT INTO orders VALUES (3, 1, '2024-01-02 00:00:00.123457'), (5, 1, '2024-02-01 00:00:00')",
        "INSERT INTO orders VALUES (5000000000, 1, '2024-02-02 00:00:00')",
    )
    ledger = tmp_path / "wh/.ingest/s/orders"
    (ledger / f"{1:010}.done.json").unlink()
    plan = json.loads((ledger / f"{1:010}.plan.json").read_text())
    after = {"batch": 2, "low": plan["high"], "high": "2024-02-03 00:00:00"}
    for planned in ({**plan, "good": 2}, {**plan, **after, "good": 3}):
        write(ledger / f"{planned['batch']:010}.plan.json", json.dumps(planned))
    code, report, err = run(*new)
    assert code == 0 and "batch 2: rows have changed since they were counted: 3 then, 1 loaded" in err, err
    assert (report["summary"][0]["loaded"], report["summary"][0]["quarantined"]) == (2, 1)
    assert run(*new)[1]["summary"][0]["loaded"] == 0
    assert ids() == [1, 2, 3, 5]
    assert rows(tmp_path / "wh/s/orders_quarantine")["reason"].to_pylist() == ["column ID: 5000000000 is not INT"]
    execute("DELETE FROM orders WHERE id > 4")
    execute("INSERT INTO orders VALUES (4, 1, NULL)")
    code, _, err = run(*new)
    assert code == 2 and "column MOMENT is NULL in some rows" in err
    code, _, err = run("ingest", "s.orders", "--jdbc", url, "--table", "ORDERS")
    assert code == 2 and "--replace" in err
    query = ("ingest", "s.orders", "--jdbc", url, "--query", "SELECT id, price, moment FROM orders WHERE id > 2")
    code, _, err = run(*query, "--replace")
    assert code == 2 and "DELTA_FAILED_TO_MERGE_FIELDS" in err  # of BIGINT and INT
    log = sorted((tmp_path / "wh/s/orders/_delta_log").iterdir())
    code, report, err = run(*query, "--replace", "--evolve", "--dry-run")
    assert (code, report["notes"]) == (0, ["would load into s.orders", "all rows, in one commit"]), err
    assert log == sorted((tmp_path / "wh/s/orders/_delta_log").iterdir())
    code, report, err = run(*query, "--replace", "--evolve")
    assert (code, report["summary"][0]["loaded"]) == (0, 2), err
    assert ids() == [3, 4]
    # An incremental load goes on from there, if it is that of the same rows, and only if it is.
    execute("DELETE FROM orders WHERE id = 4", "INSERT INTO orders VALUES (6, 1, '2024-03-01 00:00:00')")
    code, _, err = run(*new)
    assert (
        code == 2 and "(query) than this one: --other-source continue loads those with MOMENT above 2024-01-02" in err
    )
    spaced = (*query[:-1], query[-1].replace(" ", "  "), "--cursor", "moment")
    log = sorted((tmp_path / "wh/s/orders/_delta_log").iterdir())
    code, report, err = run(*spaced, "--dry-run")
    assert report["notes"] == [
        "would load into s.orders",
        "would load the rows with MOMENT above 2024-01-02 00:00:00.123457",
    ]
    assert log == sorted((tmp_path / "wh/s/orders/_delta_log").iterdir())
    assert run(*spaced)[1]["summary"][0]["loaded"] == 1
    assert run(*new, "--other-source", "continue")[1]["summary"][0]["loaded"] == 0
    execute("INSERT INTO orders VALUES (7, 1, '2024-03-02 00:00:00')")
    assert run(*new)[1]["summary"][0]["loaded"] == 1
    assert ids() == [3, 4, 6, 7]
    # All rows anew, also those of a batch that was interrupted: none of them is loaded again.
    execute("INSERT INTO orders VALUES (8, 1, '2024-03-03 00:00:00')")
    max(ledger.glob("*.done.json")).unlink()
    assert run(*new[:6], "--replace")[1]["summary"][0]["loaded"] == 4
    assert run(*new)[1]["summary"][0]["loaded"] == 0
    assert ids() == [3, 6, 7, 8]
    for words, text in (
        (["--table", "NOPE"], "NOPE"),
        (["--table", "ORDERS", "--cursor", "x"], "has no column 'x'"),
        (["--table", "ORDERS", "--query", "x"], "one of --query and --table"),
    ):
        code, _, err = run("ingest", "s.other", "--jdbc", url, *words)
        assert code in (2, 4) and text in err, err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["missing", "s.t"], "missing cannot be read: No such file"),
        (["in", "s.t"], "no files in"),
        (["in/a.xyz", "s.t"], "names no format"),
        (["s.t"], "source: is missing"),
        (["in/b.csv", "t"], "is not a table's name"),
        (["in/b.csv", "s.nolog"], "holds something that is not a Delta table"),
        (["in/b.csv", "s.t", "--option", "x"], "is not KEY=VALUE"),
        (["in/b.csv", "s.t", "--option", "mode=FAILFAST"], "mode is set by the job itself"),
        (["in/b.csv", "s.t", "--schema", "a b c"], "is not a list of columns"),
        (["in/b.csv", "s.t", "--schema", "a INT"], "has a column 'b', which the schema lacks"),
        (["in/c.csv", "s.t"], "has the column 'A' twice"),
        (["s3a://bucket/x", "s.t"], "only files and folders of this machine"),
    ],
)
def test_bad_input_of_ingest(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in/.hidden", "wh/s/nolog/file"):
        write(tmp_path / name, "x")
    if words[0] != "in":
        write(tmp_path / "in/a.xyz", "x")
        write(tmp_path / "in/b.csv", "a,b\n1,2\n")
        write(tmp_path / "in/c.csv", "a,A\n1,2\n")
    code, report, err = run("ingest", *words)
    if words[0] == "in":
        assert code == 0 and text in report["notes"][0] and "0 rows loaded" in report["notes"][0]
    else:
        assert code == 2 and text in err


# ---- maintain


def test_tables_are_looked_after(run: Run, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "wh/s/t"
    for part in range(3):
        frame = spark.range(part * 10, part * 10 + 10, 1, 1).selectExpr("CAST(id AS INT) AS id", "id % 2 AS p")
        frame.write.format("delta").mode("append").partitionBy("p").save(str(folder))

    def did(*words: str) -> tuple[dict[str, Any], list[str]]:
        code, report, err = run("maintain", *words)
        assert code == 0, err
        return report["summary"][0], report["notes"]

    def would(*words: str, table: str = "s.t") -> list[str]:
        """What a dry run says; the table's log stays as it is."""
        log = tmp_path / "wh" / table.replace(".", "/") / "_delta_log"
        before = sorted(log.iterdir())
        line, notes = did(*words, "--dry-run")
        assert sorted(log.iterdir()) == before and line["version"] == line["version after"]
        return [note.replace(f"delta.`{log.parent}`", table) for note in notes]

    assert would("compact", "s.t", "--where", "p = 1") == ["would run: OPTIMIZE s.t WHERE p = 1"]
    line, _ = did("compact", "s.t", "--where", "p = 1")
    assert (line["version after"], line["files"], line["files after"]) == (3, 6, 4)
    assert would("cluster", "s.t", "--by", "id, p") == ["would run: OPTIMIZE s.t ZORDER BY (`id`, `p`)"]
    line, _ = did("cluster", "s.t", "--by", "id")
    assert line["files after"] == 2
    for words, text in (
        (["compact", "s.t", "--where", "id = 1"], "partition"),
        (["compact", "s.t", "--where", "nope = 1"], "nope"),
        (["compact", "s.t", "--where", "p ="], "Cannot recognize the predicate"),
        (["cluster", "s.t", "--by", "nope"], "nope"),
        (["compact", "s.missing"], "does not exist"),
        (["vacuum", "s.t", "--retain", "1"], "--force"),
        (["widen-types", "s.t", "id", "STRING"], "column id of s.t is INT, which cannot become STRING"),
        (["widen-types", "s.t", "nope", "BIGINT"], "has no column 'nope'"),
        (["widen-types", "s.t", "id", "BIG INT"], "is not a list of columns"),
    ):
        code, _, err = run("maintain", *words)
        assert code == 2 and text in err, (words, err)
    assert "typeWidening" not in (folder / "_delta_log" / f"{4:020}.json").read_text()
    # Nothing is old enough; by force everything that is not in the newest version goes, after a look.
    line, notes = did("vacuum", "s.t")
    assert (line["on disk"], notes) == (line["on disk after"], ["removed 0 files and folders of s.t"])
    dead = len(list(folder.glob("p=*/*.parquet"))) - line["files"]
    look = did("vacuum", "s.t", "--retain", "0", "--force", "--dry-run")[1]
    assert look == [f"would remove {dead} files and folders of s.t"] and dead >= 6
    line, _ = did("vacuum", "s.t", "--retain", "0", "--force")
    assert line["on disk after"] == line["bytes after"] < line["on disk"]
    spark.sql(
        f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 30 days')"
    )
    code, _, err = run("maintain", "vacuum", "s.t")
    assert code == 2 and "interval 30 days" in err
    plan = tmp_path / "wh/.ingest/s/t/0000000000.plan.json"
    write(plan, '{"batch": 0, "replaces": true, "source": "s", "table": "t", "cursors": []}')
    code, _, err = run("maintain", "vacuum", "s.t", "--force")
    assert code == 2 and "was interrupted" in err
    plan.unlink()
    write(folder / "sub/_delta_log/00000000000000000000.json", "{}")
    code, _, err = run("maintain", "vacuum", "s.t")
    assert code == 2 and "holds another Delta table" in err
    shutil.rmtree(folder / "sub")

    assert would("checkpoint", "s.t") == ["would checkpoint s.t"]
    line, _ = did("checkpoint", "s.t")
    assert (folder / "_delta_log" / f"{line['version']:020}.checkpoint.parquet").exists()
    assert would("widen-types", "s.t", "id", "BIGINT")[1:] == [
        "would run: ALTER TABLE s.t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "would run: ALTER TABLE s.t ALTER COLUMN `id` TYPE BIGINT",
    ]
    line, notes = did("widen-types", "s.t", "id", "BIGINT")
    assert "no longer writes s.t without Spark" in notes[0]
    mapping = "would run: ALTER TABLE s.t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    assert would("map-columns", "s.t")[-1] == mapping
    line, notes = did("map-columns", "s.t")
    code, report, err = run("verify", "select sum(id) as id, count(*) as n from s.t")
    assert (code, report["notes"]) == (0, ["same"]), err

    # Clustered for good: what is there is rewritten, and later OPTIMIZEs keep to it.
    liquid = tmp_path / "wh/s/l"
    for part in range(2):
        spark.range(part, 1000, 2, 1).selectExpr("id", "id % 7 AS k").write.format("delta").mode("append").save(
            str(liquid)
        )
    assert would("cluster", "s.l", "--by", "k,id", "--liquid", table="s.l") == [
        "warning: with clustering, domainMetadata the gateway no longer writes s.l without Spark; there is no way back",
        "would run: ALTER TABLE s.l CLUSTER BY (`k`, `id`)",
        "would run: OPTIMIZE s.l FULL",
    ]
    line, notes = did("cluster", "s.l", "--by", "k,id", "--liquid")
    assert (line["files"], line["files after"], len(notes)) == (2, 1, 1)
    assert spark.sql(f"DESCRIBE DETAIL delta.`{liquid}`").collect()[0]["clusteringColumns"] == ["k", "id"]
    assert sorted(rows(liquid)["id"].to_pylist()) == list(range(1000))


# ---- verify


def test_a_planted_difference_is_found(spark: Any, tmp_path: Path) -> None:
    # Spark reads the tables of one warehouse, the gateway those of another.
    lines = "(1, 1.0D, array(0.1D)), (2, CAST('NaN' AS DOUBLE), NULL), (3, CAST('-0.0' AS DOUBLE), array())"
    changed = lines.replace("0.1D", "0.1D + 1e-13D").replace("'-0.0'", "'0.0'")
    for warehouse, values in (("a", lines), ("b", changed), ("c", changed.replace("(1, 1.0D", "(1, 1.5D"))):
        frame = spark.sql(f"SELECT * FROM VALUES {values} AS t(id, d, l)").coalesce(1)
        frame.write.format("delta").save(str(tmp_path / warehouse / "s" / "t"))
    catalogs = {"main": LocalCatalog("main", str(tmp_path / "a"), read_only=True)}

    def compared(warehouse: str, tolerance: float) -> Report:
        folders = {"warehouse": str(tmp_path / warehouse), "state": str(tmp_path / "state")}
        config = load_config({**folders, "memory-limit": "512MiB", "slots": "1", "port": "0"}, {})
        with running_gateway(config) as url:
            scratch = tmp_path / "scratch"
            client = Client(url)
            return verify(
                spark, client, "SELECT * FROM s.t", catalogs, scratch, print, tolerance=tolerance, most_rows=5
            )

    (tmp_path / "scratch/.verify-left").mkdir(parents=True)  # by a process that was killed
    exact, near, other = compared("b", 0.0), compared("b", 1e-9), compared("c", 1e-9)
    assert exact.differs and "1 row only in spark" in exact.notes
    assert exact.tables["only in datafusion"].to_pylist() == [{"id": 1, "d": 1.0, "l": [0.1 + 1e-13]}]
    assert not near.differs and near.notes[0].startswith("1 rows are equal within the tolerance 1e-09")
    assert other.differs and other.tables["only in spark"].to_pylist() == [{"id": 1, "d": 1.0, "l": [0.1]}]
    assert not list((tmp_path / "scratch").iterdir())
