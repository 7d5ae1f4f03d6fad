"""Pipelines and jobs of an operator over a warehouse that others write into: locks, ledgers, plans, logs of tables."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from gateway.delta import write
from gateway.errors import ConfigError, GatewayError, ServerError, UserError
from gateway.pipelines import lock, run
from gateway.pipelines.history import History, Run, TableRun
from gateway.pipelines.jobs import generate, ingest, ledger, maintain
from gateway.pipelines.jobs.marks import marks
from gateway.pipelines.jobs.names import registered
from gateway.pipelines.jobs.places import Place, locate
from gateway.pipelines.jobs.sources import find
from gateway.pipelines.starter import write as write_starter
from gateway.pipelines.warehouse import Warehouse, Written, written
from gateway.runner.spark.writes import inserted_rows
from gateway.sqltypes import BIGINT, StructField, struct
from tests.attacks.attacker import add_action, contents, log_action, put_instead

KEY = b"k" * 32
PLANNED = {"batch": 0, "format": "csv", "options": {}, "conflicts": "refuse", "good": 1, "bad": 0}
COLUMN = {"name": "a", "type": "long", "nullable": True, "metadata": {}}
SCHEMA = {"type": "struct", "fields": [COLUMN]}
CLASS = {"type": "udt", "class": None, "pyClass": "os.system", "sqlType": "long"}


def table(folder: Path) -> Path:
    """A table of one row."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    write.create_table(str(folder), struct(StructField("a", BIGINT)))
    write.append(str(folder), [pa.RecordBatch.from_pydict({"a": pa.array([1], pa.int64())})])
    return folder


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the operator."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder of the operator, with a file."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "0").write_text("a\nsecret\n")
    return tmp_path / "private"


def held(warehouse: Path) -> tuple[Any, list[str]]:
    """Takes the lock of the pipeline `shop`, with all that is put in order then; what was left, and what was said."""
    project: Any = SimpleNamespace(name="shop", storage_folder=None)
    said: list[str] = []
    there = Warehouse(warehouse)
    holder = lock.Holder("run-1", "shop", 1.7e9)
    with run._held(project, there, holder, KEY, History(there), said.append) as locks:
        return locks[0].left, said


# ---- locks of pipelines


@pytest.mark.parametrize("key", [None, b"o" * 32], ids=["no seal", "another's seal"])
def test_a_lock_that_others_have_written_ends_and_removes_nothing(
    warehouse: Path, private: Path, bystander: subprocess.Popen[bytes], key: bytes | None
) -> None:
    other = table(private / "t")
    log_action(
        other, 2, remove={"path": next(other.glob("*.parquet")).name, "dataChange": True, "deletionTimestamp": 1}
    )
    before = {"table": "s.t", "folder": str(other), "version": 1, "run": "*", "place": str(private), "checkpoints": []}
    holder = lock.Holder("r", "shop", 1.0, scratch=str(private), before=[before])
    holder.jvm, holder.jvm_start = bystander.pid, lock.process_start(bystander.pid)
    path = run.lock_path(warehouse, "shop")
    path.parent.mkdir()
    path.write_bytes(json.dumps(asdict(holder)).encode() if key is None else lock.sealed(path, holder, key))
    expected = contents(private)
    assert held(warehouse) == (None, [])
    assert bystander.poll() is None
    assert contents(private) == expected


def test_a_seal_is_good_for_one_lock(warehouse: Path, private: Path) -> None:
    path = run.lock_path(warehouse, "shop")
    path.parent.mkdir()
    path.write_bytes(lock.sealed(run.lock_path(warehouse, "other"), lock.Holder("r", "other", 1.0), KEY))
    assert held(warehouse) == (None, [])


@pytest.mark.parametrize("name", ["shop.lock", "storage.lock"])
def test_the_lock_of_a_run_that_goes_on_ends_nothing_as_another_folders(
    tmp_path: Path, bystander: subprocess.Popen[bytes], name: str
) -> None:
    """All storages have locks of one name, and a pipeline may have one in several warehouses."""
    here, there = tmp_path / "one" / ".pipelines" / name, tmp_path / "other" / ".pipelines" / name
    with lock.held(here, running := lock.Holder("r", "shop", 1.0), KEY) as own:
        running.jvm, running.jvm_start = bystander.pid, lock.process_start(bystander.pid)
        own.write(running)
        there.parent.mkdir(parents=True)
        there.write_bytes(here.read_bytes())
        with lock.held(there, lock.Holder("s", "shop", 2.0), KEY) as others:
            assert others.left is None
    assert bystander.poll() is None


@pytest.mark.parametrize("kind", ["link", "dangling", "hard link", "pipe", "folder"])
def test_a_lock_is_a_file_of_its_own(warehouse: Path, private: Path, kind: str) -> None:
    path, expected = run.lock_path(warehouse, "shop"), contents(private)
    path.parent.mkdir()
    if kind == "hard link":
        os.link(private / "0", path)
    else:
        put_instead(path, kind, private / "0" if kind == "link" else private)
    uses: list[Callable[[Path], Any]] = [held, lambda _: lock.reader(path)]
    for use in uses:
        try:
            use(warehouse)
        except UserError as error:
            assert error.condition == "PATH_NOT_ALLOWED"
        else:
            assert kind == "dangling" and use is not held
    assert contents(private) == expected


def test_the_folder_of_locks_is_no_link(warehouse: Path, private: Path) -> None:
    (private / "shop.lock").write_text("mine")
    expected = contents(private)
    os.symlink(private, warehouse / ".pipelines")
    with pytest.raises(UserError, match="link"):
        held(warehouse)
    assert contents(private) == expected


@pytest.mark.parametrize(
    "said", [{"started": "x"}, {"started": 1e300}, {"run": "\x1b[2J"}, {"pid": ["x"]}, {"run": None}, {"nothing": 1}]
)
def test_holders_that_are_none_are_not_shown(warehouse: Path, said: dict[str, Any]) -> None:
    path = run.lock_path(warehouse, "shop")
    with lock.held(path, lock.Holder("run-1", "shop", 1.0), KEY):
        path.write_text(json.dumps({**asdict(lock.Holder("r", "shop", 1.0)), **said}))
        assert lock.reader(path) is None
        with pytest.raises(UserError, match="run by another process"), lock.held(path, lock.Holder("r", "s", 1.0), KEY):
            pytest.fail("two hold it")


def test_keys_of_seals_are_their_owners_alone(tmp_path: Path) -> None:
    key = lock.key_of(tmp_path)
    assert lock.key_of(tmp_path) == key and lock.key_of(tmp_path / "other") != key
    (path,) = (tmp_path / "pipelines").iterdir()
    assert path.stat().st_mode & 0o77 == 0


# ---- ledgers of loads


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_ledger_is_behind_no_link(warehouse: Path, private: Path, depth: int) -> None:
    place = locate(warehouse, "s.t")
    folder = ledger.ledger_folder(warehouse, place)
    at = [folder.parents[1], folder.parents[0], folder][depth - 1]
    at.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(private, at)
    (private / Path(*folder.parts[len(at.parts) :])).mkdir(parents=True, exist_ok=True)
    expected = contents(private)
    for forget in (False, True):
        with pytest.raises(UserError, match="link"), ledger.opened(folder, forget=forget):
            pytest.fail("it was opened")
    with pytest.raises(UserError, match="link"):
        ledger.read_plans(folder)
    assert contents(private) == expected


@pytest.mark.parametrize("name", ["lock", "ledger.json", ".ledger.json.{pid}", "0000000000.plan.json", "x"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_files_of_a_ledger_are_no_links(warehouse: Path, private: Path, name: str, kind: str) -> None:
    folder = ledger.ledger_folder(warehouse, locate(warehouse, "s.t"))
    folder.mkdir(parents=True)
    put_instead(folder / name.format(pid=os.getpid()), kind, private if name == "x" else private / "0")
    expected = contents(private)
    for forget in (False, True):
        try:
            with ledger.opened(folder, forget=forget) as opened:
                opened.plan(len(opened.plans()), {"files": []})
        except ServerError as error:
            assert error.condition == "CATALOG_FILE_CORRUPT"
        assert contents(private) == expected


def test_a_ledger_that_is_being_forgotten_is_not_half_of_one(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before any of its files is removed: with its id and fewer plans, a number would be used twice."""
    unlink = os.unlink
    for left in range(12):
        folder = ledger.ledger_folder(warehouse, locate(warehouse, f"s.t{left}"))
        with ledger.opened(folder) as before:
            for number in range(5):
                before.plan(number, {**PLANNED, "schema": SCHEMA, "files": []})
        count = iter(range(left))

        def killed(name: str, *, dir_fd: int | None = None, count: Iterator[int] = count) -> None:
            if next(count, None) is None:
                raise KeyboardInterrupt
            unlink(name, dir_fd=dir_fd)

        with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
            patched.setattr(os, "unlink", killed)
            with ledger.opened(folder, forget=True):
                pass
        with ledger.opened(folder) as after:
            assert after.id != before.id or len(after.plans()) == 5


HOSTILE: dict[str, dict[str, Any]] = {
    "a class": {"schema": {"type": "struct", "fields": [{**COLUMN, "type": CLASS}]}},
    "a class of elements": {
        "schema": {
            "type": "struct",
            "fields": [{**COLUMN, "type": {"type": "array", "elementType": CLASS, "containsNull": True}}],
        }
    },
    "a class as schema": {"schema": CLASS},
    "a condition": {"type": "STRING) OR java_method('java.lang.System', 'load', '/x'"},
    "a class as format": {"format": "org.example.Source"},
    "no files": {"files": "/etc/passwd"},
    "odd files": {"files": [["/etc/passwd", "1", None]]},
    "a value of another kind": {"options": {"header": ["x"]}},
    "a count of another kind": {"good": "1"},
    "an unknown key": {"code": "x"},
    "another number": {"batch": 7},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_plans_have_the_forms_of_plans(warehouse: Path, name: str) -> None:
    folder = ledger.ledger_folder(warehouse, locate(warehouse, "s.t"))
    folder.mkdir(parents=True)
    plan = {**PLANNED, "schema": SCHEMA, "files": [["/x", 1, 1]]}
    (folder / "0000000000.plan.json").write_text(json.dumps(plan))
    assert ledger.read_plans(folder) == [{**plan, "done": None}]
    (folder / "0000000000.plan.json").write_text(json.dumps({**plan, **HOSTILE[name]}))
    with pytest.raises(ServerError) as caught:
        ledger.read_plans(folder)
    assert caught.value.condition == "CATALOG_FILE_CORRUPT"


OF_FILES = {**PLANNED, "schema": SCHEMA, "files": [["/x", 1, 1]]}
OF_WHOLE = {"batch": 0, "replaces": True, "source": "s", "table": "t", "cursors": []}
MARKED = {"source": "s", "table": "t", "column": "c", "type": "INT", "low": None, "high": "1"}
OF_ROWS = {**MARKED, "batch": 0, "schema": SCHEMA, "good": 1, "bad": 0}
WHOLE_END = {"finished": True, "loaded": 1, "marks": []}


@pytest.mark.parametrize("plan", [OF_FILES, OF_WHOLE, OF_ROWS], ids=["files", "whole", "rows"])
def test_plans_have_all_that_is_of_their_kind(warehouse: Path, plan: dict[str, Any]) -> None:
    folder = ledger.ledger_folder(warehouse, locate(warehouse, "s.t"))
    folder.mkdir(parents=True)
    path, end = folder / "0000000000.plan.json", folder / "0000000000.done.json"

    def read(of: dict[str, Any], done: dict[str, Any]) -> str:
        path.write_text(json.dumps(of))
        end.write_text(json.dumps(done))
        try:
            found = ledger.read_plans(folder)
        except ServerError as error:
            return error.condition
        marks(found)
        return ""

    assert [read(plan, done) for done in ({}, {"abandoned": True}, WHOLE_END)] == ["", "", ""]
    for key in plan.keys() - {"replaces"}:
        assert read({k: v for k, v in plan.items() if k != key}, {}) == "CATALOG_FILE_CORRUPT", key
    for key in ("loaded", "marks") if plan is OF_WHOLE else ("loaded",):
        assert read(plan, {k: v for k, v in WHOLE_END.items() if k != key}) == "CATALOG_FILE_CORRUPT", key


COUNTS: tuple[Any, ...] = ("x", "9" * 400, None, [], -1)


@pytest.mark.parametrize("info", [{"operationMetrics": {"numOutputRows": odd}} for odd in COUNTS] + [[], "x", None])
def test_numbers_that_a_log_says_of_itself_are_none(warehouse: Path, info: Any) -> None:
    """What has counted the rows of a batch may be anything; that the batch is there holds."""
    folder = table(warehouse / "s" / "t")
    actions = [{"commitInfo": info}, {"txn": {"appId": "app", "version": 3}}, {"txn": []}, {"remove": []}]
    (folder / "_delta_log" / f"{2:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))
    assert ledger.committed(locate(warehouse, "s.t"), "app", 3) == ledger.Commit(2, 0)
    assert written(folder, 1, 2) == Written(0, False)
    assert inserted_rows(str(folder), "id") == 0


def test_a_plan_loads_files_of_the_sources_alone(warehouse: Path, private: Path, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "1.csv").write_text("a\n1\n")
    os.symlink(private, inbox / "link")
    folder = ledger.ledger_folder(warehouse, locate(warehouse, "s.t"))
    spark: Any = None  # nothing is asked of it
    for path in (private / "0", inbox / "link" / "0", inbox / ".." / "private" / "0"):
        found = path.stat()
        with ledger.opened(folder, forget=True) as opened:
            files = [[str(path), found.st_size, found.st_mtime_ns]]
            opened.plan(0, {**PLANNED, "schema": SCHEMA, "files": files})
        with pytest.raises(ConfigError, match="of another source"):
            ingest.ingest_files(
                spark, find([str(inbox)], None), locate(warehouse, "s.t"), warehouse, ingest.Wishes(), print
            )


# ---- tables that Spark follows


def hostile(warehouse: Path, private: Path, kind: str) -> Place:
    """A table whose log has a file elsewhere, a link in its folder, or an expression that is code."""
    folder = table(warehouse / "s" / "t")
    match kind:
        case "file":
            log_action(folder, 2, add=add_action(str(private / "0"), 9))
        case "link":
            os.symlink(private, folder / "p=1")
        case "code":
            (first,) = (folder / "_delta_log").glob("*0.json")
            text = "java_method('java.lang.System', 'load', '/x') IS NULL"
            lines = [json.loads(line) for line in first.read_text().splitlines()]
            metadata = next(line["metaData"] for line in lines if "metaData" in line)
            metadata["configuration"] = {**metadata.get("configuration", {}), "delta.constraints.x": text}
            log_action(folder, 2, metaData=metadata)
    return locate(warehouse, "s.t")


@pytest.mark.parametrize("kind", ["file", "link", "code"])
def test_spark_follows_no_table_elsewhere(warehouse: Path, private: Path, kind: str) -> None:
    place = hostile(warehouse, private, kind)
    catalogs: Any = {"main": Warehouse(warehouse)._catalog}
    session = _NoSpark()
    for refused in (
        lambda: maintain.check(maintain.Task("compact"), [place], None),
        lambda: generate.check("events", [place], 1.0, None, True),
        lambda: ingest.check_place(place, warehouse),
        lambda: registered(session, "SELECT * FROM s.t", catalogs, "s").__enter__(),
    ):
        with pytest.raises(GatewayError):
            refused()
    assert not any("CREATE TABLE" in text for text in session.asked)
    os.rename(place.folder, place.folder.with_name("x_quarantine"))
    with pytest.raises(GatewayError):
        ingest.check_place(locate(warehouse, "s.x"), warehouse)


@pytest.mark.parametrize("kind", ["file", "link", "code"])
def test_a_pipeline_leaves_out_tables_elsewhere(warehouse: Path, private: Path, kind: str) -> None:
    place = hostile(warehouse, private, kind)
    table(warehouse / "s" / "u")
    session, there = _NoSpark(f"file:{warehouse}/s"), Warehouse(warehouse)
    (told,) = there.register(session, "s", {"s", "t", "u"}, set())
    assert told.startswith("s.t cannot be read: ")
    assert [text.split()[5] for text in session.asked if text.startswith("CREATE TABLE")] == ["`s`.`u`"]
    with pytest.raises(GatewayError):
        there.check_followed(place.schema, place.table.upper(), writes=True)


# ---- the history, which every holder of a token may write into


def status(warehouse: Path) -> subprocess.CompletedProcess[bytes]:
    """What an operator is shown of the pipeline `shop`."""
    folder = warehouse.parent / "shop"
    write_starter(folder)
    command = [sys.executable, "-m", "gateway", "pipeline", "status", str(folder), "--warehouse", str(warehouse)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def test_a_history_shows_nothing_that_a_terminal_obeys(warehouse: Path) -> None:
    evil = "\x1b]0;x\x07\x1b[2J\u202eshop"
    past = History(Warehouse(warehouse))
    past.add(Run(f"r{evil}", "shop", None, None, evil, evil, tables=[TableRun(evil, evil, evil, error=evil)]))  # type: ignore[arg-type]
    done = status(warehouse)
    assert done.returncode == 0 and b"shop" in done.stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout.decode() + done.stderr.decode())


def test_a_history_of_other_columns_is_told(warehouse: Path) -> None:
    table(warehouse / "pipelines" / "runs")
    done = status(warehouse)
    assert b"CATALOG_FILE_CORRUPT" in done.stderr and b"Traceback" not in done.stderr


class _NoSpark:
    """Notes what it is asked; every database is at one place."""

    def __init__(self, place: str = "") -> None:
        self.asked: list[str] = []
        self.catalog = SimpleNamespace(currentDatabase=lambda: "default", setCurrentDatabase=lambda name: None)
        self._place = place

    def sql(self, text: str) -> Any:
        self.asked.append(text)
        return SimpleNamespace(collect=lambda: [("Location", self._place)])
