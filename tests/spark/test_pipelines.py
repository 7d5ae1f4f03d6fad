"""Pipelines on a real Spark: projects run, run again, killed, interrupted and refused; their tables through a real gateway.

Needs Java, pyspark and the Delta jars (GATEWAY_SPARK_JARS, else the default folder); skipped with a reason without them.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gateway.delta.table import open_snapshot
from gateway.pipelines.lock import process_start
from gateway.pipelines.run import lock_path
from tests.live.gateway import clean_environment, connect_to, start_server
from tests.spark.pipelines import (
    ROOT,
    Ask,
    finish,
    flags,
    gone,
    jvm_of,
    on_one_jvm,
    project,
    rows,
    start,
    summary,
    wait_for,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_here")]


# ---- one JVM for all that does not need one of its own


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of projects, warehouse and state."""
    folder = tmp_path_factory.mktemp("projects")
    (folder / "warehouse").mkdir()
    (folder / "state").mkdir()
    return folder


@pytest.fixture(scope="module")
def ask(place: Path) -> Iterator[Ask]:
    """Runs a command of `gateway pipeline` on the module's JVM: exit code, standard output, standard error."""
    with on_one_jvm(place) as one:
        yield one


# ---- one project, end to end, twice


Shop = tuple[Path, list[tuple[int, str, str]]]


@pytest.fixture(scope="module")
def shop(ask: Ask, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """examples/shop run, given new files, and run again by another process: the warehouse's parent and what was said.

    The second run has a Spark of its own, which knows nothing of the first one's.
    """
    folder = tmp_path_factory.mktemp("my shop")  # a space, as users have it
    made = folder / "project"
    shutil.copytree(ROOT / "examples" / "shop", made, copy_function=shutil.copyfile)
    spec = made / "spark-pipeline.yml"
    storage = f"file://{folder}/storage"
    spec.write_text(spec.read_text().replace("file:///tmp/delta-sql-gateway/shop", storage))
    assert storage in spec.read_text()
    (folder / "warehouse").mkdir()
    settings = flags(folder / "warehouse", folder / "state")
    said = [ask("run", made, *settings, settings=False)]
    for file in (made / "next").rglob("*.*"):
        shutil.copyfile(file, made / "raw" / file.relative_to(made / "next"))
    (folder / "state" / "pipelines" / "spark-left").mkdir(parents=True)  # by a command that was killed
    said.append(finish(start("run", str(made), *settings)))
    return folder, said


def test_first_run_takes_everything_in(shop: Shop) -> None:
    code, out, errors = shop[1][0]
    assert code == 0, errors
    cells = summary(out)
    # state, rows in, rows out, version
    assert cells["shop.bronze_orders"][-4:] == ["COMPLETED", "6", "6", "2"]
    assert cells["shop.silver_orders"][-4:] == ["COMPLETED", "6", "4", "1"]
    assert cells["shop.quarantine_orders"][-4:] == ["COMPLETED", "6", "2", "1"]
    assert cells["shop.gold_revenue_by_country"][-3:] == ["COMPLETED", "3", "1"]
    # failing, of rows, failing added
    assert cells["shop.silver_orders.small"][-3:] == ["1", "4", "1"]
    assert cells["shop.silver_orders.recent"][-3:] == ["4", "4", "4"]
    assert cells["shop.silver_orders.has_id"][-3:] == ["0", "4", "0"]
    assert "warning: shop.silver_orders: 1 of 4 rows fail small (quantity <= 10), 1 of them added by this run" in errors
    assert "recent" not in errors  # only counted
    # Spark encodes the space in the storage's path.
    checkpoints = shop[0].with_name(shop[0].name.replace(" ", "%20")) / "storage" / "_checkpoints"
    assert f"the checkpoints lie in {checkpoints}\n" in errors
    assert (checkpoints / "spark_catalog" / "shop" / "bronze_orders" / "web_orders" / "0").is_dir()
    said = [line.split("  ", 1)[1] for line in errors.splitlines() if "  " in line]
    assert said[:2] == ["waiting for Spark", "Spark reads shop"]
    said = [line for line in said if "shop.silver_orders" in line]
    assert said[:3] == [f"shop.silver_orders {state}" for state in ("STARTING", "RUNNING", "COMPLETED")]


def test_second_run_takes_in_only_what_is_new(shop: Shop) -> None:
    code, out, errors = shop[1][1]
    assert code == 0, errors
    assert not list((shop[0] / "state" / "pipelines").glob("spark-*"))
    cells = summary(out)
    assert cells["shop.bronze_orders"][-4:-1] == ["COMPLETED", "4", "4"]
    assert cells["shop.bronze_customers"][-4:-1] == ["COMPLETED", "1", "1"]
    assert cells["shop.silver_orders"][-4:-1] == ["COMPLETED", "4", "3"]
    assert cells["shop.quarantine_orders"][-4:-1] == ["COMPLETED", "4", "1"]
    assert cells["shop.silver_orders.small"][-3:] == ["2", "7", "1"]
    assert cells["shop.silver_orders.recent"][-3:] == ["4", "7", "0"]
    warehouse = shop[0] / "warehouse"
    assert rows(warehouse / "shop" / "bronze_orders") == 10
    assert rows(warehouse / "shop" / "quarantine_orders") == 3
    assert sorted(p.name for p in (warehouse / "shop").iterdir()) == [
        *("bronze_customers", "bronze_orders", "gold_daily", "gold_revenue_by_country"),
        *("quarantine_orders", "silver_orders"),
    ]


def test_clients_of_the_gateway_see_the_tables_and_the_history(shop: Shop) -> None:
    running = start_server(shop[0], "--memory-limit", "1GiB")
    try:
        with connect_to(running) as connection, connection.cursor() as cursor:

            def ask(sql: str) -> list[tuple[Any, ...]]:
                cursor.execute(sql)
                return [tuple(row) for row in cursor.fetchall()]

            assert ask("SELECT country, orders, revenue FROM main.shop.gold_revenue_by_country ORDER BY country") == [
                ("DE", 3, Decimal("140.00")),
                ("NL", 3, Decimal("56.00")),
                ("unknown", 1, Decimal("8.00")),
            ]
            assert ask("SELECT sum(orders), sum(revenue) FROM main.shop.gold_daily") == [(7, Decimal("204.00"))]
            assert ask("SELECT order_id FROM main.shop.silver_orders ORDER BY 1") == [
                (n,) for n in (1, 2, 5, 6, 7, 8, 10)
            ]
            assert ask("SELECT order_id FROM main.shop.quarantine_orders ORDER BY 1") == [(3,), (4,), (9,)]
            assert ask("SELECT pipeline, state, message FROM main.pipelines.runs WHERE ended > started") == [
                ("shop", "COMPLETED", None),
                ("shop", "COMPLETED", None),
            ]
            last = "run_id = (SELECT max(run_id) FROM main.pipelines.runs)"
            assert ask(
                f"SELECT rows_in, rows_out FROM main.pipelines.tables WHERE {last} AND table_name = 'shop.silver_orders'"
            ) == [(4, 3)]
            assert ask(
                "SELECT failing_rows, checked_rows, failing_rows_added FROM main.pipelines.expectations "
                f"WHERE {last} AND name = 'small'"
            ) == [(2, 7, 1)]
    finally:
        assert running.stop() == 0


@pytest.mark.heavy
def test_plain_spark_runs_the_same_project(ask: Ask, place: Path) -> None:
    """Spark's own `spark-pipelines` and the gateway take turns on examples/shop; each goes on where the other has stopped."""
    made = place / "shop"
    shutil.copytree(ROOT / "examples" / "shop", made, copy_function=shutil.copyfile)
    spec = made / "spark-pipeline.yml"
    # A database of its own: the JVM knows where the other project's is.
    text = spec.read_text().replace("file:///tmp/delta-sql-gateway/shop", f"file://{place}/shop-storage")
    spec.write_text(text.replace("database: shop", "database: taken_in_turns"))
    tables = place / "warehouse" / "taken_in_turns"

    def counts() -> list[int | None]:
        return [rows(tables / name) for name in ("bronze_orders", "silver_orders", "quarantine_orders")]

    def plain() -> str:
        code, out, errors = ask("plain", made, "taken_in_turns", str(tables), settings=False)
        assert code == 0, out + errors
        return out + errors

    assert "Run is COMPLETED" in plain()
    first = counts()
    for file in (made / "next").rglob("*.*"):
        shutil.copyfile(file, made / "raw" / file.relative_to(made / "next"))
    code, _, errors = ask("run", made)
    assert code == 0, errors
    second = counts()
    plain()
    assert (first, second, counts()) == ([6, 4, 2], [10, 7, 3], [10, 7, 3])


def test_status_needs_no_spark(shop: Shop) -> None:
    environment = {**clean_environment(), "PATH": "/nonexistent", "JAVA_HOME": ""}
    place = ["--warehouse", str(shop[0] / "warehouse"), "--state", str(shop[0] / "state")]
    code, out, errors = finish(start("status", str(shop[0] / "project"), *place, environment=environment))
    assert code == 0, errors
    assert [line.split()[1] for line in out.splitlines()[2:4]] == ["COMPLETED", "COMPLETED"]
    assert summary(out)["shop.silver_orders"][-4:-1] == ["COMPLETED", "4", "3"]


def test_run_without_java_says_so(tmp_path: Path) -> None:
    made = project(tmp_path, "nojava", g_sql="CREATE MATERIALIZED VIEW g AS SELECT 1 AS x")
    environment = {**clean_environment(), "PATH": "/nonexistent", "JAVA_HOME": ""}
    code, _, errors = finish(start("run", str(made), *flags(tmp_path / "w", tmp_path / "s"), environment=environment))
    assert code == 2 and "Java is not found: install Java 17 or 21" in errors
    assert not lock_path(tmp_path / "w", "nojava").exists()


def test_unreachable_server_is_told_at_once(tmp_path: Path) -> None:
    made = project(tmp_path, "away", g_sql="CREATE MATERIALIZED VIEW g AS SELECT 1 AS x")
    begin = time.monotonic()
    place = ["--warehouse", str(tmp_path / "w"), "--state", str(tmp_path / "s"), "--spark", "sc://127.0.0.1:9"]
    code, _, errors = finish(start("run", str(made), *place))
    assert code == 2 and "127.0.0.1:9 does not answer" in errors
    assert time.monotonic() - begin < 60


# ---- killed, interrupted, twice at once


SLOW = """
import time
from pathlib import Path
from pyspark import pipelines as dp
from pyspark.sql.functions import udf

@udf("bigint")
def slowly(x):
    time.sleep(SECONDS)
    return x

@dp.table
def bronze():
    return spark.readStream.schema("id BIGINT").csv("RAW")

@dp.table
def silver():
    return spark.readStream.table("bronze").select(slowly("id").alias("id"))

@dp.materialized_view
def gold():
    return spark.read.table("silver")
"""


def slow(made: Path, raw: Path, seconds: float) -> None:
    (made / "t" / "a.py").write_text(SLOW.replace("SECONDS", str(seconds)).replace("RAW", f"file://{raw}"))


@pytest.mark.heavy
def test_runs_that_are_killed_die_or_are_interrupted_are_completed_by_the_next(ask: Ask, place: Path) -> None:
    """Four ends of a run between two tables; the view gold, which Spark empties at each start, has its rows after each."""
    raw, warehouse, state = place / "slow-raw", place / "warehouse", place / "state"
    raw.mkdir()
    (raw / "1.csv").write_text("1\n2\n3\n")
    made = project(place, "slow")
    lock = lock_path(warehouse, "slow")
    settings = flags(warehouse, state)

    def counts() -> list[int | None]:
        return [rows(warehouse / "slow" / name) for name in ("bronze", "silver", "gold")]

    slow(made, raw, 0)
    code, _, errors = ask("run", made)
    assert code == 0, errors
    (raw / "2.csv").write_text("4\n5\n")
    slow(made, raw, 3600)

    killed = start("run", str(made), *settings)
    wait_for(killed, "slow.bronze COMPLETED")
    jvm = jvm_of(lock)
    code, _, errors = ask("run", made)
    assert code == 1 and "PIPELINE_RUNNING" in errors and f"process {killed.pid} on " in errors
    killed.kill()
    killed.communicate()
    assert lock.exists()
    assert counts() == [5, 3, 0]

    dying = start("run", str(made), *settings)
    said = wait_for(dying, "slow.silver RUNNING")
    assert "slow.gold has its rows of before the run again (version 1)" in said
    assert process_start(jvm[0]) != jvm[1]  # ended before the lock was taken over
    assert counts() == [5, 3, 0]
    os.kill(jvm_of(lock)[0], signal.SIGKILL)
    code, out, errors = finish(dying)
    assert code == 4 and "Spark has ended with exit code -9 in the middle of the run" in errors
    assert summary(out)["slow.bronze"][3] == "COMPLETED"
    assert counts() == [5, 3, 3]

    interrupted = start("run", str(made), *settings)
    wait_for(interrupted, "slow.silver RUNNING")
    jvm = jvm_of(lock)
    interrupted.send_signal(signal.SIGINT)
    wait_for(interrupted, "interrupted: Spark is being ended")
    interrupted.send_signal(signal.SIGINT)  # by somebody in a hurry
    code, _, errors = finish(interrupted)
    assert code == 130 and "Traceback" not in errors
    assert not lock.exists() and gone(jvm, 20)
    assert counts() == [5, 3, 3]
    assert not list((state / "pipelines").glob("spark-*"))

    slow(made, raw, 0)
    code, out, errors = ask("run", made)
    assert code == 0, errors
    cells = summary(out)
    assert cells["slow.bronze"][-4:-1] == ["COMPLETED", "0", "0"]
    assert cells["slow.silver"][-4:-1] == ["COMPLETED", "2", "2"]
    assert counts() == [5, 5, 5]
    code, out, _ = ask("status", made, "--warehouse", str(warehouse), "--state", str(state), settings=False)
    states = [line.split()[1] for line in out.splitlines()[2:7]]
    assert states == ["COMPLETED", "CANCELED", "FAILED", "CRASHED", "COMPLETED"]


# ---- bad projects and bad data


BRONZE = """
from pyspark import pipelines as dp
@dp.table
def bronze():
    return spark.readStream.schema("id BIGINT").csv("RAW")
"""


@pytest.mark.parametrize(
    ("name", "files", "told"),
    [
        (
            "cycle",
            {"a_sql": "CREATE MATERIALIZED VIEW a AS SELECT * FROM b; CREATE MATERIALIZED VIEW b AS SELECT * FROM a"},
            ["Circular dependencies are not supported"],
        ),
        (
            "missing",
            {
                "a_sql": "CREATE MATERIALIZED VIEW a AS SELECT * FROM nowhere; CREATE MATERIALIZED VIEW b AS SELECT * FROM a"
            },
            ["missing.a", "TABLE_OR_VIEW_NOT_FOUND", "nowhere"],
        ),
        ("syntax", {"a_sql": "CREATE MATERIALIZED VIEW a AS SELEC 1"}, ["t/a.sql", "PARSE_SYNTAX_ERROR"]),
        ("python", {"a_py": "x = 1\ny = 1 / 0\n"}, ["t/a.py:2", "ZeroDivisionError"]),
        ("pysyntax", {"a_py": "x = 1\ny = (\n"}, ["t/a.py:2", "SyntaxError"]),
        (
            "predicate",
            {"a_sql": "CREATE MATERIALIZED VIEW a TBLPROPERTIES ('gateway.expect.pos' = 'y > 0') AS SELECT 1 AS x"},
            ["predicate.a: gateway.expect.pos = y > 0", "UNRESOLVED_COLUMN"],
        ),
        (
            "action",
            {"a_sql": "CREATE MATERIALIZED VIEW a TBLPROPERTIES ('gateway.expect.p.action' = 'x') AS SELECT 1 AS x"},
            ["action.a: gateway.expect.p.action is 'x'"],
        ),
        (
            "format",
            {"a_sql": "CREATE MATERIALIZED VIEW a USING parquet AS SELECT 1 AS x"},
            ["format.a: the format parquet cannot be seen"],
        ),
    ],
)
def test_bad_project_is_refused_by_validate_and_run(
    ask: Ask, place: Path, name: str, files: dict[str, str], told: list[str]
) -> None:
    made = project(place, name, **files)
    for verb in ("validate", "run"):
        code, _, errors = ask(verb, made)
        assert code == 2, errors
        for text in told:
            assert text in errors
        assert not (place / "warehouse" / name).exists()
    assert not lock_path(place / "warehouse", name).exists()


def test_what_init_writes_is_valid_and_runs(ask: Ask, place: Path) -> None:
    made = place / "starter"
    code, out, errors = ask("init", made, settings=False)
    assert code == 0 and str(made / "spark-pipeline.yml") in out
    code, out, errors = ask("validate", made)
    assert code == 0 and "warning" not in errors
    assert "starter.silver_orders: expects positive_amount: amount > 0 (warn)" in out
    assert not (place / "warehouse" / "starter" / "bronze_orders").exists()
    code, out, errors = ask("run", made)
    assert code == 0, errors
    assert rows(place / "warehouse" / "starter" / "gold_revenue") == 2
    assert summary(out)["starter.silver_orders.positive_amount"][-3:] == ["1", "3", "1"]


def test_graph_tells_what_spark_has_analysed(ask: Ask, place: Path) -> None:
    raw = place / "graph-raw"
    raw.mkdir()
    sql = """
    CREATE TEMPORARY VIEW v AS SELECT id FROM STREAM(bronze) WHERE id IN (SELECT order_id FROM starter.silver_orders);
    CREATE STREAMING TABLE silver;
    CREATE FLOW fill AS INSERT INTO silver BY NAME SELECT * FROM STREAM(v);
    CREATE MATERIALIZED VIEW gold AS WITH bronze AS (SELECT 1 AS id) SELECT b.id FROM bronze b JOIN silver s ON b.id = s.id;
    """
    (raw / "one.json").write_text('{"id": 1}')
    batch = f"CREATE MATERIALIZED VIEW other AS SELECT b.id FROM json.`{raw}/one.json` b JOIN gold g ON b.id = g.id;"
    if not (place / "starter").exists():
        ask("init", place / "starter", settings=False)
        assert ask("run", place / "starter")[0] == 0
    made = project(place, "graph", a_py=BRONZE.replace("RAW", f"file://{raw}"), b_sql=sql + batch)
    code, out, errors = ask("graph", made)
    assert code == 0, errors
    blocks = [line.split("  ")[0].strip() if not line.startswith(" ") else line.strip() for line in out.splitlines()]
    assert blocks == [
        f"csv {raw}",
        f"json.{raw}/one.json",
        "starter.silver_orders",
        "graph.bronze",
        f"<- csv {raw}",
        "v",
        "<- graph.bronze",
        "<- starter.silver_orders",
        "graph.silver",
        "<- v  (flow fill)",
        "graph.gold",
        "<- graph.silver",
        "graph.other",
        "<- graph.gold",
        f"<- json.{raw}/one.json",
    ]
    code, _, errors = ask("graph", made, "-o", str(place / "graph.svg"))
    assert code == 0 and (place / "graph.svg").read_text().startswith("<svg ")


@pytest.mark.heavy
def test_type_that_changes_upstream_asks_for_a_full_refresh(ask: Ask, place: Path) -> None:
    raw, warehouse = place / "change-raw", place / "warehouse" / "change"
    raw.mkdir()
    (raw / "1.csv").write_text("1\n2\n")
    gold = "CREATE MATERIALIZED VIEW gold AS SELECT max(id) AS top, count(*) AS n FROM bronze"
    bronze = BRONZE.replace("RAW", f"file://{raw}")
    made = project(place, "change", a_py=bronze, g_sql=gold)
    spec = made / "spark-pipeline.yml"
    # Checkpoints under an encoded path, where Spark by itself would go on with the old ones.
    spec.write_text(spec.read_text().replace("change-storage", "change storage"))
    assert ask("run", made)[0] == 0

    def states() -> list[tuple[str, int | None]]:
        snapshots = (open_snapshot(str(warehouse / name)) for name in ("bronze", "gold"))
        return [(s.columns[0].type.sql, s.num_rows) for s in snapshots]

    assert states() == [("BIGINT", 2), ("BIGINT", 1)]
    (made / "t" / "a.py").write_text(bronze.replace("BIGINT", "STRING"))
    code, _, errors = ask("run", made)
    assert code == 4
    assert "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE" in errors and "--full-refresh change.bronze" in errors
    assert states() == [("BIGINT", 2), ("BIGINT", 1)]  # as before the run
    (raw / "2.csv").write_text("x\n")
    (made / "t" / "a.py").write_text(
        bronze.replace("BIGINT", "STRING").replace('")\n', '").selectExpr("CAST(raise_error(id) AS STRING) AS id")\n')
    )
    code, out, errors = ask("run", made, "--full-refresh", "bronze")
    assert code == 4 and "USER_RAISED_EXCEPTION" in errors
    assert "change.bronze has its rows of before the run again" in errors
    assert states() == [("BIGINT", 2), ("BIGINT", 1)]
    (made / "t" / "a.py").write_text(bronze.replace("BIGINT", "STRING"))
    code, out, errors = ask("run", made, "--full-refresh", "bronze")
    assert code == 0, errors
    assert summary(out)["change.bronze"][-4:-1] == ["COMPLETED", "3", "3"]
    assert summary(out)["change.gold"][3] == "COMPLETED"
    assert states() == [("STRING", 3), ("STRING", 1)]
    (raw / "3.csv").write_text("y\n")
    code, out, errors = ask("run", made)
    assert code == 0, errors
    assert summary(out)["change.bronze"][-4:-1] == ["COMPLETED", "1", "1"]


def test_unknown_table_to_refresh_is_refused_by_name(ask: Ask, place: Path) -> None:
    made = project(place, "refresh", g_sql="CREATE MATERIALIZED VIEW gold AS SELECT 1 AS x")
    code, _, errors = ask("run", made, "--full-refresh", "golf")
    assert code == 2 and "the pipeline has no table golf; did you mean gold?" in errors


def test_function_that_raises_fails_the_run_and_its_followers_are_skipped(ask: Ask, place: Path) -> None:
    raw = place / "raise-raw"
    raw.mkdir()
    (raw / "1.csv").write_text("1\n")
    bad = SLOW.replace("time.sleep(SECONDS)", "raise ValueError('no such luck')").replace("RAW", f"file://{raw}")
    made = project(place, "raising", a_py=bad)
    code, out, errors = ask("run", made)
    assert code == 4
    line = next(n for n, text in enumerate(bad.splitlines(), 1) if "no such luck" in text)
    why = f"[PYTHON_EXCEPTION] ValueError: no such luck ({made}/t/a.py, line {line})"
    assert f"raising.silver FAILED: {why}\n" in errors and f"the run failed: raising.silver: {why}\n" in errors
    states = {key: cells[3] for key, cells in summary(out).items() if key.startswith("raising.")}
    assert states == {"raising.bronze": "COMPLETED", "raising.silver": "FAILED", "raising.gold": "SKIPPED"}
    assert rows(place / "warehouse" / "raising" / "silver") == 0


def test_expectation_that_fails_gives_3_and_leaves_the_rows(ask: Ask, place: Path) -> None:
    sql = """
    CREATE MATERIALIZED VIEW g TBLPROPERTIES (
      'gateway.expect.small' = 'x < 8 -- or so', 'gateway.expect.small.action' = 'fail',
      'gateway.expect.odd' = 'assert_true(x < 3) IS NULL'
    ) AS SELECT CASE WHEN id > 7 THEN NULL ELSE id END AS x FROM range(10)
    """
    made = project(place, "unmet", g_sql=sql)
    code, out, errors = ask("run", made)
    assert code == 3
    # NULL fails as well
    assert "unmet.g: 2 of 10 rows fail small (x < 8 -- or so)" in errors and "written all the same" in errors
    assert "odd (assert_true(x < 3) IS NULL) could not be counted: [USER_RAISED_EXCEPTION]" in errors
    assert rows(place / "warehouse" / "unmet" / "g") == 10
    # The last cell is empty: a view's rows are replaced, never added.
    assert summary(out)["unmet.g.small"][-3:] == ["fail", "2", "10"]


@pytest.mark.heavy
def test_delta_in_definitions_survives_a_second_run(ask: Ask, place: Path) -> None:
    raw = place / "delta-raw"
    raw.mkdir()
    (raw / "1.csv").write_text("1\n")
    python = BRONZE.replace("RAW", f"file://{raw}").replace("@dp.table", '@dp.table(format="delta")')
    sql = """
    CREATE STREAMING TABLE silver USING DELTA PARTITIONED BY (odd) AS SELECT id, id % 2 = 1 AS odd FROM STREAM(bronze);
    CREATE MATERIALIZED VIEW gold USING DELTA AS SELECT count(*) AS n FROM silver;
    """
    made = project(place, "usingdelta", a_py=python, g_sql=sql)
    for total in (1, 2):
        (raw / f"{total}.csv").write_text(f"{total}\n")
        code, _, errors = ask("run", made)
        assert code == 0, errors
        assert rows(place / "warehouse" / "usingdelta" / "silver") == total
    assert "usingdelta.silver: the format delta in the definition makes a second run fail on plain Spark" in errors
    code, _, errors = ask("run", made, "--full-refresh", "bronze")
    assert code == 2 and "usingdelta.silver: its stream reads usingdelta.bronze" in errors


def test_tables_without_a_schema_lie_in_default(ask: Ask, place: Path) -> None:
    made = project(place, "bare", g_sql="CREATE MATERIALIZED VIEW bare_view AS SELECT 1 AS x")
    spec = made / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("database: bare\n", ""))
    code, out, errors = ask("run", made)
    assert code == 0, errors
    assert summary(out)["default.bare_view"][3] == "COMPLETED"
    assert rows(place / "warehouse" / "default" / "bare_view") == 1


def test_lost_table_or_checkpoint_is_not_continued(ask: Ask, place: Path) -> None:
    raw = place / "lost-raw"
    raw.mkdir()
    (raw / "1.csv").write_text("1\n2\n")
    made = project(place, "lost", a_py=BRONZE.replace("RAW", f"file://{raw}"))
    assert ask("run", made)[0] == 0
    storage = place / "lost-storage" / "_checkpoints"
    storage.rename(place / "kept")
    code, _, errors = ask("run", made)
    assert code == 2 and "lost.bronze: the table has rows, but no checkpoint" in errors
    (place / "kept").rename(storage)
    assert ask("run", made)[0] == 0
    assert rows(place / "warehouse" / "lost" / "bronze") == 2
    shutil.rmtree(place / "warehouse" / "lost" / "bronze")
    code, _, errors = ask("run", made)
    assert code == 2 and "lost.bronze: not in this warehouse" in errors and "--full-refresh lost.bronze" in errors


@pytest.mark.heavy
def test_rows_in_are_those_of_all_micro_batches(ask: Ask, place: Path) -> None:
    raw = place / "many-raw"
    raw.mkdir()
    files = 105  # Spark itself remembers 100 batches
    for number in range(files):
        (raw / f"{number}.csv").write_text("1\n2\n")
    python = BRONZE.replace(".csv(", '.option("maxFilesPerTrigger", 1).csv(').replace("RAW", f"file://{raw}")
    code, out, errors = ask("run", project(place, "many", a_py=python))
    assert code == 0, errors
    cells = summary(out)["many.bronze"]
    assert cells[-3:-1] == [str(2 * files)] * 2, (out, errors)


@pytest.mark.heavy
def test_server_of_others(ask: Ask, place: Path) -> None:
    """The same through Connect only: nothing of the server but its Connect port is used."""
    raw = place / "remote-raw"
    raw.mkdir()
    (raw / "1.csv").write_text("1\n2\n")
    sql = """
    CREATE STREAMING TABLE mart.silver TBLPROPERTIES ('gateway.expect.two' = 'id = 2') AS SELECT * FROM STREAM(bronze);
    CREATE MATERIALIZED VIEW gold AS SELECT count(*) AS n FROM mart.silver;
    """
    made = project(place, "remote", a_py=BRONZE.replace("RAW", f"file://{raw}"), g_sql=sql)
    for total in (2, 3):
        code, out, errors = ask("run", made, "--spark", "sc://localhost:1")
        assert code == 0, errors
        assert rows(place / "warehouse" / "mart" / "silver") == total
        assert summary(out)["mart.silver.two"][-3:] == [str(total - 1), str(total), "1"]
        (raw / f"{total}.csv").write_text(f"{total + 1}\n")
    code, _, errors = ask("graph", made, "--spark", "sc://localhost:1")
    assert code == 2 and "leave --spark out" in errors
