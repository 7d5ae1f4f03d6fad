"""Files to load, names of tables and the ledger: everything of a load that needs no Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gateway.errors import ConfigError, ServerError
from gateway.pipelines.jobs.ledger import committed, opened, read_plans
from gateway.pipelines.jobs.places import locate, split_name
from gateway.pipelines.jobs.sources import file_of, find, format_of, stat_file
from gateway.sqltypes import quote_part, quoted_text


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_formats() -> None:
    names = [
        "a.csv",
        "a.CSV.gz",
        "a.tsv",
        "a.json",
        "a.jsonl.bz2",
        "a.ndjson",
        "a.parquet",
        "a.snappy.parquet",
        "a.txt",
        "a.gz",
        "a",
    ]
    assert [format_of(n) for n in names] == ["csv", "csv", "csv", *["json"] * 3, "parquet", "parquet", None, None, None]


def test_folders_are_walked_and_unfinished_files_left_out(tmp_path: Path) -> None:
    for name in ("b.csv", "sub/a.csv", ".hidden.csv", "_temp/c.csv", "d.csv.tmp", "e._COPYING_", "note.txt"):
        write(tmp_path / name)
    write(tmp_path / "empty.csv", "")
    os.symlink(tmp_path / "b.csv", tmp_path / "link.csv")
    found = find([str(tmp_path)], None)
    assert [Path(f.path).name for f in found.files] == ["b.csv", "a.csv"]
    assert [n.split(" ", 1)[1] for n in found.notes] == [
        "files left out, whose endings name no format: note.txt, …",
        "empty files left out for now: empty.csv, …",
    ]
    assert len(find([str(tmp_path)], "json").files) == 3  # whatever the endings


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["missing"], "missing cannot be read: No such file"),
        (["a.csv", "b.json"], r"several formats \(1 csv, 1 json\)"),
        (["c.txt"], "names no format"),
        (["notes"], "names no format"),
        (["hdfs://x/y"], "of this machine"),
    ],
)
def test_sources_that_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.json", "c.txt", "notes/d.txt"):
        write(tmp_path / name)
    with pytest.raises(ConfigError, match=text):
        find(names, None)


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv")
    file = stat_file(str(path))
    file.check_unchanged()
    os.utime(path, ns=(0, 1))
    with pytest.raises(OSError, match="was changed"):
        file.check_unchanged()
    assert file_of("file:///a%20b/c%23,%2520.csv") == Path("/a b/c#,%20.csv")


def test_names_of_tables(tmp_path: Path) -> None:
    write(tmp_path / "Sales" / "Orders" / "_delta_log" / f"{0:020}.json", "{}")
    place = locate(tmp_path, "main.sales.ORDERS")
    assert (place.name, place.exists, place.folder) == ("Sales.Orders", True, tmp_path / "Sales" / "Orders")
    assert not locate(tmp_path, "new.`odd``name.x`").exists
    assert locate(tmp_path, "new.`odd``name.x`").folder == tmp_path / "new" / "odd`name.x"
    assert split_name("`a.b`.c") == ["a.b", "c"]
    for bad in ("t", "a.b.c", "a..b", "`a.b", "a.`../x`", "_a.b", "a._b", ""):
        with pytest.raises(ConfigError):
            locate(tmp_path, bad)
    assert (quote_part("a`b"), quoted_text("it's \\ here")) == ("`a``b`", "'it\\'s \\\\ here'")
    write(tmp_path / "s" / "junk" / "file")
    junk = locate(tmp_path, "s.junk")
    for check in (junk.check_free, junk.check_table):
        with pytest.raises(ConfigError, match="not a Delta table"):
            check()


EMPTY = {"type": "struct", "fields": []}


def test_a_ledger_keeps_plans_until_they_are_done(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    with opened(folder) as ledger:
        of_files = {"format": "csv", "options": {}, "schema": EMPTY, "conflicts": "refuse", "good": 0, "bad": 0}
        first = ledger.plan(0, {**of_files, "files": [["/a", 1, 2]]})
        assert first["done"] is None
        with pytest.raises(ServerError, match="planned already"):
            ledger.plan(0, {})
        with pytest.raises(ServerError, match="Another process"), opened(folder):
            pass
        ledger.finish(0, {"loaded": 3})
        ledger.plan(1, {**of_files, "files": []})
        application = ledger.application
    with opened(folder) as ledger:
        assert [p["done"] for p in ledger.plans()] == [{"loaded": 3, "finished": True}, None]
        assert ledger.application == application
    with opened(folder, forget=True) as ledger:
        assert ledger.plans() == [] and ledger.application != application
    write(folder / "0000000000.plan.json", "{")
    with pytest.raises(ServerError, match="cannot be read"):
        read_plans(folder)
    assert read_plans(tmp_path / "none") == []


def test_a_batch_is_found_by_its_transaction(tmp_path: Path) -> None:
    place = locate(tmp_path, "s.t")
    for version, batch in enumerate((0, 1)):
        actions = [
            {"commitInfo": {"operationMetrics": {"numOutputRows": str(10 + batch)}}},
            {"txn": {"appId": "app", "version": batch}},
        ]
        write(place.folder / "_delta_log" / f"{version:020}.json", "\n".join(map(json.dumps, actions)))
    assert [committed(place, "app", n) for n in (0, 1, 2)] == [(0, 10), (1, 11), None]
    assert committed(place, "other", 0) is None
