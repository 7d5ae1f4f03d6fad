"""Catalogs over folders: names, links, schemas, dropping; paths under allowed roots; the samples."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import socket
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway import sqltypes as t
from gateway.catalog import drafts, facts, removal
from gateway.catalog.base import AsOf, Catalog, Draft, TableName
from gateway.catalog.bound import PathTable, bind
from gateway.catalog.local import LocalCatalog
from gateway.catalog.objects import StoredKeys, StoredTable, StoredView
from gateway.catalog.paths import AllowedRoots
from gateway.catalog.samples import open_samples
from gateway.delta.files import open_files
from gateway.delta.scan import NATIVE
from gateway.delta.write import append, create_table
from gateway.errors import ServerError, UserError
from gateway.runner.spark.tables import truncate

ONE = t.struct(t.StructField("id", t.BIGINT))


@pytest.fixture
def catalog(tmp_path: Path) -> LocalCatalog:
    local = LocalCatalog("main", str(tmp_path / "warehouse"))
    local.create_schema("Sales", "about money")
    create_table(local.table_location("sales", "Orders"), ONE, batches=[pa.RecordBatch.from_pydict({"id": [1, 2]})])
    return local


def test_names(catalog: LocalCatalog) -> None:
    also: Catalog = catalog
    assert also.schemas() == ["Sales", "default"]
    assert (catalog.tables("SALES"), catalog.tables("default"), catalog.tables("nothing")) == (["Orders"], [], [])
    assert catalog.has_schema("sAlEs")
    assert catalog.has_schema("DEFAULT")
    assert not catalog.has_schema("nothing")
    assert catalog.schema_comment("sales") == "about money"
    bound = catalog.table("sales", "orders")
    assert bound is not None
    assert str(bound.name) == "main.Sales.Orders"
    assert (bound.version, bound.num_rows, bound.schema) == (0, 2, ONE)
    assert catalog.table("sales", "nothing") is None
    assert catalog.table("nothing", "orders") is None


def test_tables_of_others_are_seen_at_once(catalog: LocalCatalog) -> None:
    create_table(os.path.join(catalog.root, "default", "made_by_hand"), ONE)
    assert catalog.tables("default") == ["made_by_hand"]
    append(os.path.join(catalog.root, "Sales", "Orders"), [pa.RecordBatch.from_pydict({"id": [3]})])
    newest, old = catalog.table("sales", "orders"), catalog.table("sales", "orders", AsOf(version=0))
    assert newest is not None
    assert old is not None
    assert (newest.num_rows, old.num_rows) == (3, 2)


def test_tables_are_listed_with_the_outlines_that_hold(catalog: LocalCatalog) -> None:
    assert catalog.outlines("sales") == {"Orders": None}
    kept = catalog.outline("Sales", "Orders")
    assert kept is not None and catalog.outlines("sales") == {"Orders": kept}
    append(catalog.table_location("sales", "Orders"), [pa.RecordBatch.from_pydict({"id": [3]})])
    assert catalog.outlines("sales") == {"Orders": None}


def test_two_spellings_of_one_name(catalog: LocalCatalog) -> None:
    create_table(os.path.join(catalog.root, "Sales", "ORDERS"), ONE)
    exact = catalog.table("sales", "Orders")
    assert exact is not None
    assert exact.num_rows == 2
    with pytest.raises(UserError, match="several folders"):
        catalog.table("sales", "oRDERS")


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "_log", "a/b", "../warehouse", "a\0b"])
def test_names_that_are_no_folders(catalog: LocalCatalog, name: str) -> None:
    assert catalog.table("sales", name) is None
    assert catalog.table(name, "orders") is None
    with pytest.raises(UserError):
        catalog.create_schema(name, None)
    with pytest.raises(UserError):
        catalog.table_location("sales", name)


def test_links_must_stay_inside(catalog: LocalCatalog, tmp_path: Path) -> None:
    create_table(str(tmp_path / "outside"), ONE)
    os.symlink(tmp_path / "outside", os.path.join(catalog.root, "Sales", "escape"))
    os.symlink(os.path.join(catalog.root, "Sales", "Orders"), os.path.join(catalog.root, "Sales", "alias"))
    assert catalog.tables("sales") == ["Orders", "alias"]
    assert catalog.table("sales", "escape") is None
    assert catalog.table("sales", "alias") is not None
    catalog.drop_table("sales", "alias")
    assert catalog.tables("sales") == ["Orders"]


def test_what_is_removed_lies_in_the_folder_that_was_found(catalog: LocalCatalog, tmp_path: Path) -> None:
    """A schema's folder is exchanged for a link between the look and the removal."""
    table = catalog.table_folder("sales", "orders")
    assert table is not None
    create_table(str(tmp_path / "outside" / "Orders"), ONE)
    os.rename(os.path.join(catalog.root, "Sales"), tmp_path / "away")
    os.symlink(tmp_path / "outside", os.path.join(catalog.root, "Sales"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError) as caught:
        removal.remove(table, catalog.root)
    assert caught.value.condition == "PATH_NOT_ALLOWED"
    draft = Draft(os.path.join(catalog.root, "Sales", "Orders"), "made")
    with pytest.raises(UserError):
        drafts.discard(draft)
    with pytest.raises(UserError):
        drafts.settle(draft, os.path.join(catalog.root, "Sales", "Other"))
    stored = StoredTable(TableName("main", "Sales", "Orders"), table, "csv", ONE, (), "(id BIGINT) USING csv")
    with pytest.raises(UserError):
        truncate(stored, None)
    with pytest.raises(UserError):
        create_table(table, ONE, replace=True)
    with pytest.raises(UserError):
        append(table, [pa.RecordBatch.from_pydict({"id": [1]})])
    assert sorted(tmp_path.rglob("*")) == before


def test_drop(catalog: LocalCatalog) -> None:
    with pytest.raises(UserError) as caught:
        catalog.drop_schema("sales", cascade=False)
    assert caught.value.condition == "SCHEMA_NOT_EMPTY"
    catalog.drop_table("SALES", "ORDERS")
    assert catalog.table("sales", "orders") is None
    with pytest.raises(UserError) as caught:
        catalog.drop_table("sales", "orders")
    assert caught.value.condition == "TABLE_OR_VIEW_NOT_FOUND"
    create_table(catalog.table_location("sales", "Orders"), t.struct(t.StructField("other", t.INT)))
    again = catalog.table("sales", "orders")
    assert again is not None
    assert again.schema.fields[0].name == "other"
    catalog.drop_schema("sales", cascade=True)
    assert catalog.schemas() == ["default"]
    assert sorted(os.listdir(catalog.root)) == [".dropped", ".gateway.json", ".writers"]
    assert os.listdir(f"{catalog.root}/.dropped") == []
    with pytest.raises(UserError) as caught:
        catalog.drop_schema("sales", cascade=True)
    assert caught.value.condition == "SCHEMA_NOT_FOUND"


@pytest.mark.parametrize("act", ["view", "schema", "comment"])
def test_what_a_disk_refuses_is_told(catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for name in ("link", "replace", "makedirs"):
        monkeypatch.setattr(os, name, failing)
    with pytest.raises(ServerError) as caught:
        if act == "view":
            catalog.put(StoredView(TableName("main", "sales", "v"), "SELECT 1", ONE, ("id",), "main", "sales"), False)
        elif act == "schema":
            catalog.create_schema("other", None)
        else:
            catalog.comment_schema("sales", "nothing")
    assert caught.value.condition == "WRITE_FAILED" and "Input/output error" in caught.value.message
    assert sorted(catalog.schemas()) == ["Sales", "default"] and catalog.schema_comment("sales") == "about money"


@pytest.mark.parametrize("refused", [errno.EIO, errno.EDQUOT])
def test_a_table_that_has_gone_is_dropped_whatever_stays_of_it(
    catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    catalog.put(StoredKeys(TableName("main", "sales", "Orders"), "another"), False)
    unlink = os.unlink

    def failing(path: str, **where: Any) -> None:
        if path.endswith(".keys.json"):
            raise OSError(refused, os.strerror(refused))
        unlink(path, **where)

    monkeypatch.setattr(os, "unlink", failing)
    catalog.drop_table("sales", "orders")
    assert catalog.table("sales", "orders") is None and catalog.tables("sales") == []


def test_a_schema_in_which_somebody_makes_tables_is_not_dropped_with_them(catalog: LocalCatalog) -> None:
    made = 0

    def drop() -> None:
        while made < 20:
            with contextlib.suppress(UserError, ServerError):
                catalog.drop_schema("shop", cascade=False)

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        while made < 20:
            with contextlib.suppress(UserError, ServerError):
                if not catalog.has_schema("shop"):
                    catalog.create_schema("shop", None)
                path = catalog.table_location("shop", "t")
                create_table(path, ONE)
                made += 1
                assert catalog.table_folder("shop", "t") == path
                catalog.drop_table("shop", "t")
    finally:
        made = 20
        thread.join()
    assert not list(Path(catalog.root).glob(".dropped/*"))


def test_leftovers_are_unseen_and_swept(catalog: LocalCatalog) -> None:
    """What a process killed while creating or dropping a table leaves behind."""
    fresh, stale = (os.path.join(catalog.root, "Sales", f".creating-{n}") for n in ("fresh", "stale"))
    create_table(fresh, ONE)
    create_table(stale, ONE)
    os.utime(stale, (1, 1))
    assert catalog.tables("sales") == ["Orders"]
    LocalCatalog("main", catalog.root)
    assert (os.path.isdir(fresh), os.path.isdir(stale)) == (True, False)


def test_replace_finds_the_table_in_any_case(catalog: LocalCatalog) -> None:
    create_table(catalog.table_location("SALES", "oRDERS"), ONE, replace=True)
    assert catalog.tables("sales") == ["Orders"]
    bound = catalog.table("sales", "orders")
    assert bound is not None
    assert (bound.version, bound.num_rows) == (1, 0)


def test_create_schema_twice(catalog: LocalCatalog) -> None:
    for name in ("SALES", "default"):
        with pytest.raises(UserError) as caught:
            catalog.create_schema(name, None)
        assert caught.value.condition == "SCHEMA_ALREADY_EXISTS"


def test_read_only(catalog: LocalCatalog) -> None:
    sealed = LocalCatalog("sealed", catalog.root, read_only=True)
    assert sealed.tables("sales") == ["Orders"]
    with pytest.raises(UserError, match="read-only"):
        sealed.create_schema("x", None)
    with pytest.raises(UserError, match="read-only"):
        sealed.drop_table("sales", "orders")


def test_paths_stay_under_their_roots(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    create_table(str(inside / "t"), ONE)
    create_table(str(outside / "t"), ONE)
    pq.write_table(pa.table({"a": [1]}), inside / "a.parquet")
    os.symlink(outside, inside / "link")
    roots = AllowedRoots([str(inside)])
    bound = bind(TableName("", "delta", "t"), roots.resolve(str(inside / "t")), None)
    assert bound.version == 0
    files = PathTable(TableName("", "parquet", "a"), open_files(roots.resolve(f"file://{inside}/a.parquet")))
    assert (files.version, files.num_rows, files.scan(["a"], []).reader) == (None, 1, NATIVE)
    bad = [
        str(outside / "t"),
        str(inside / "link/t"),
        str(inside / "../out/t"),
        "relative/t",
        "s3://b/t",
        f"{inside}x",
        "/",
    ]
    for path in bad:
        with pytest.raises(UserError) as caught:
            roots.resolve(path)
        assert (caught.value.condition, caught.value.sqlstate) == ("PATH_NOT_ALLOWED", "42501")
    with pytest.raises(UserError) as caught:
        roots.resolve(str(inside / "nothing"))
    assert caught.value.condition == "PATH_NOT_FOUND"
    assert roots.resolve(str(inside / "new"), must_exist=False) == str(inside / "new")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> LocalCatalog:
    state = str(tmp_path_factory.mktemp("state"))
    threads = [threading.Thread(target=open_samples, args=(state,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(os.listdir(state)) == 1  # concurrent starts leave one folder and no drafts
    return open_samples(state)


def test_samples(samples: LocalCatalog) -> None:
    assert samples.schemas() == ["delta_types", "nyctaxi", "tpch"]
    tables = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]
    assert samples.tables("tpch") == tables
    ctx = datafusion.SessionContext(datafusion.SessionConfig({"datafusion.execution.collect_statistics": "false"}))
    for schema in samples.schemas():
        for name in samples.tables(schema):
            bound = samples.table(schema, name)
            assert bound is not None
            plan = bound.scan([f.name for f in bound.schema.fields], [])
            assert plan.reader == NATIVE
            plan.register(ctx, name)
            assert ctx.sql(f"select * from {name}").to_arrow_table().num_rows == bound.num_rows
    sql = """select count(*) as n, sum(cast(cast(o_totalprice as decimal(38, 6)) <> total as int)) as bad from orders join (
        select l_orderkey, sum(round(l_extendedprice * (1 + l_tax) * (1 - l_discount), 2)) :: decimal(38, 6) as total
        from lineitem group by 1) on o_orderkey = l_orderkey"""
    checked = ctx.sql(sql).to_arrow_table().to_pylist()[0]
    assert checked == {"n": 15_000, "bad": 0}
    orphans = """select count(*) as n from lineitem
        left join partsupp on l_partkey = ps_partkey and l_suppkey = ps_suppkey where ps_partkey is null"""
    assert ctx.sql(orphans).to_arrow_table().to_pylist() == [{"n": 0}]


def test_samples_are_made_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("the samples ask the network")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    with pytest.raises(AssertionError, match="network"):
        urllib.request.urlopen("http://127.0.0.1:1/")
    made = open_samples(str(tmp_path))
    assert made.schemas() == ["delta_types", "nyctaxi", "tpch"]
    counts = {}
    for name in ("region", "nation", "lineitem"):
        bound = made.table("tpch", name)
        assert bound is not None
        counts[name] = bound.num_rows
    assert (counts["region"], counts["nation"]) == (5, 25)
    assert counts["lineitem"] and counts["lineitem"] > 50_000


def test_all_types_has_every_type(samples: LocalCatalog) -> None:
    bound = samples.table("delta_types", "all_types")
    assert bound is not None
    names = {f.type.name for f in bound.schema.fields}
    not_in_tables = {"VOID", "INTERVAL YEAR TO MONTH", "INTERVAL DAY TO SECOND", "INTERVAL", "VARIANT"}
    assert names == {row.name for row in t.TYPES} - not_in_tables


def test_comments_of_schemas_that_are_made_at_the_same_time_are_all_kept(catalog: LocalCatalog) -> None:
    def make(number: int) -> None:
        own = LocalCatalog("main", catalog.root)
        own.create_schema(f"s{number}", "new")
        own.comment_schema(f"s{number}", f"of {number}")
        own.create_schema(f"gone{number}", "soon")
        own.drop_schema(f"gone{number}", cascade=False)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(make, range(32)))
    assert [catalog.schema_comment(f"s{n}") for n in range(32)] == [f"of {n}" for n in range(32)]
    assert catalog.schema_comment("sales") == "about money"
    assert catalog.schema_comment("gone7") is None


def test_a_schema_that_is_made_while_another_of_its_name_is_removed_keeps_its_comment(
    catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    discard = removal.discard

    def slow(trash: str, root: str) -> None:
        LocalCatalog("main", catalog.root).create_schema("sales", "another one")
        discard(trash, root)

    monkeypatch.setattr(removal, "discard", slow)
    catalog.drop_schema("sales", cascade=True)
    assert catalog.schema_comment("sales") == "another one"
    assert catalog.tables("sales") == []


def test_a_lock_that_others_hold_is_not_waited_for_without_end(
    catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "_PATIENCE", 0.05)
    held = os.open(catalog.root, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UserError) as caught:
            catalog.create_schema("late", "x")
        assert (caught.value.condition, caught.value.retryable) == ("WRITE_CONFLICT", True)
        assert not catalog.has_schema("late")
    finally:
        os.close(held)


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_folders_that_cannot_be_listed_keep_no_catalog_from_opening(
    catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    folder = os.stat(os.path.join(catalog.root, "Sales")).st_ino
    scandir = os.scandir

    def refusing(path: int | str) -> object:
        if os.stat(path).st_ino == folder:
            raise error(13, "not now", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert LocalCatalog("main", catalog.root).schemas() == ["Sales", "default"]


@pytest.mark.parametrize("closed", ["Sales", "Sales/_objects"])
def test_a_schema_that_nobody_may_list_hides_no_others(
    catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch, closed: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told where it is named; lists over all schemas go on without it."""
    folder = os.path.join(catalog.root, closed)
    os.makedirs(folder, exist_ok=True)
    scandir, listdir, access = os.scandir, os.listdir, os.access

    def refusing(ask: Any) -> Any:
        def asked(path: Any, *more: Any) -> Any:
            if path == folder:
                raise PermissionError(13, "Permission denied", path)
            return ask(path, *more)

        return asked

    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and access(path, mode))
    monkeypatch.setattr(os, "scandir", refusing(scandir))
    monkeypatch.setattr(os, "listdir", refusing(listdir))
    assert catalog.schemas() == ["default"]
    assert f"{folder} cannot be listed" in caplog.text
    with pytest.raises(PermissionError):
        catalog.tables("Sales")


def test_nothing_elsewhere_is_swept_through_a_link_put_there_meanwhile(catalog: LocalCatalog, tmp_path: Path) -> None:
    drafts = Path(catalog.root) / "Sales" / "_volumes" / ".drafts"
    drafts.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old").touch()
    os.utime(outside / "old", (0, 0))
    over = threading.Event()

    def exchange() -> None:
        aside = drafts.with_name("aside")
        while not over.is_set():
            os.rename(drafts, aside)
            os.symlink(outside, drafts)
            os.unlink(drafts)
            os.rename(aside, drafts)

    with ThreadPoolExecutor(1) as threads:
        exchanging = threads.submit(exchange)
        try:
            for _ in range(3000):
                removal.sweep(catalog.root, ["Sales"])
        finally:
            over.set()
        exchanging.result()
    assert (outside / "old").exists()


def deepened(folder: Path, depth: int, outside: Path) -> None:
    """Make folders in each other below one, each with a file and a link to elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=at))
        os.symlink(outside, "link", dir_fd=at)
        os.mkdir("below", dir_fd=at)
        below = os.open("below", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 500), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("left", [".dropped/.dropped-1", "Sales/.creating-1"])
def test_folders_in_each_other_without_end_keep_no_catalog_from_opening(
    catalog: LocalCatalog, tmp_path: Path, few_descriptors: None, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    monkeypatch.setattr(removal, "_SWEEP_SECONDS", 600.0)
    (outside := tmp_path / "outside").mkdir()
    (outside / "theirs").touch()
    deepened(folder := Path(catalog.root) / left, 1100, outside)
    os.utime(folder, (0, 0))
    assert LocalCatalog("main", catalog.root).schemas() == ["Sales", "default"]
    assert not folder.exists()
    assert (outside / "theirs").exists()


def test_folders_in_each_other_without_end_are_dropped(
    catalog: LocalCatalog, tmp_path: Path, few_descriptors: None
) -> None:
    (outside := tmp_path / "outside").mkdir()
    (outside / "theirs").touch()
    for name in ("Orders", "Others"):
        deepened(Path(catalog.root) / "Sales" / name / "part", 1100, outside)
    catalog.drop_table("sales", "orders")
    catalog.drop_schema("sales", True)
    assert sorted(os.listdir(catalog.root)) == [".dropped", ".gateway.json", ".writers"]
    assert os.listdir(f"{catalog.root}/.dropped") == []
    assert (outside / "theirs").exists()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_dropped_goes_through_no_folder_elsewhere(catalog: LocalCatalog, tmp_path: Path, kind: str) -> None:
    (outside := tmp_path / "outside").mkdir()
    trash = Path(catalog.root) / ".dropped"
    trash.symlink_to(outside) if kind == "link" else trash.touch()
    with pytest.raises((UserError, ServerError)) as caught:
        catalog.drop_table("sales", "orders")
    assert caught.value.condition == ("PATH_NOT_ALLOWED" if kind == "link" else "WRITE_FAILED")
    assert not list(outside.iterdir())
    assert catalog.table_folder("sales", "orders") is not None


def test_what_takes_long_to_sweep_keeps_no_catalog_from_opening(
    catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(catalog.root) / ".dropped" / ".dropped-1"
    for name in range(300):
        (folder / str(name) / "below").mkdir(parents=True)
        (folder / f"{name}.parquet").touch()
    os.utime(folder, (0, 0))
    monkeypatch.setattr(removal, "_SWEEP_SECONDS", 0.005)
    LocalCatalog("main", catalog.root)
    assert folder.exists()
    for _ in range(1000):  # each comes further
        LocalCatalog("main", catalog.root)
        if not folder.exists():
            break
    assert LocalCatalog("main", catalog.root).schemas() == ["Sales", "default"]
    assert not folder.exists()


def test_a_schema_that_is_not_empty_after_all_loses_no_file(catalog: LocalCatalog) -> None:
    folder = Path(catalog.root) / "volumes"
    for made in (folder / "_volumes" / "v" / "theirs", folder / "_objects" / "v.volume.json"):
        made.parent.mkdir(parents=True)
        made.touch()
    assert not removal.remove_empty(str(folder), [str(folder / "_volumes")], catalog.root)
    assert (folder / "_volumes" / "v" / "theirs").exists()
