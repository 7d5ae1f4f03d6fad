"""A process that is confined opens nothing elsewhere, by whatever reader, through whatever link; the rest goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gateway.engine import confinement

pytestmark = pytest.mark.skipif(not confinement.version(), reason="the kernel confines nobody")

_PROLOGUE = """
import json, os, sys, tempfile, threading
sys.path.append("")  # as `launch` adds a folder
from gateway.engine.confinement import Folders, confine
inside, drafts, outside = sys.argv[1:]
"""
_READERS = """
confined = confine(Folders((inside,), drafts))
import datafusion, deltalake, pyarrow.parquet as pq
readers = {
    "open": lambda root: open(f"{inside}/{root}/_delta_log/00000000000000000000.json").readline() and 1,
    "list": lambda root: len(os.listdir(f"{inside}/{root}/_delta_log")),
    "pyarrow": lambda root: pq.read_table(NAMES[root]).num_rows,
    "datafusion": lambda root: datafusion.SessionContext().read_parquet(NAMES[root]).count(),
    "deltalake": lambda root: len(deltalake.DeltaTable(f"{inside}/{root}").file_uris()),
}
NAMES = json.loads(os.environ["NAMES"])
found = {}
for name, read in readers.items():
    for root in ("t", "link"):
        def told():
            try:
                found[f"{name} {root}"] = read(root)
            except Exception as error:
                found[f"{name} {root}"] = "Permission denied" in str(error)
        for _ in range(2):  # in this thread and in one of its own
            told()
            thread = threading.Thread(target=told); thread.start(); thread.join()
print(json.dumps(found))
"""
_OTHERS = """
confined = confine(Folders((inside,), drafts))
os.mkdir(f"{inside}/a"); os.mkdir(f"{inside}/b")
open(f"{inside}/a/x", "w").close()
os.rename(f"{inside}/a/x", f"{inside}/b/x")
os.link(f"{inside}/b/x", f"{inside}/a/y")
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("x"); file.flush(); assert open(file.name).read() == "x"
import zoneinfo, encodings.idna, xml.dom.minidom, ssl; ssl.create_default_context()
os.dup(os.open("/proc/self/status", os.O_RDONLY))
before = confined.fits()
os.rename(inside, inside + ".old"); gone = confined.fits()
os.mkdir(inside); other = confined.fits()
print(json.dumps([before, gone, other]))
"""


def _run(script: str, *paths: Path, **environment: str) -> object:
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PROLOGUE + script, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    places = inside, drafts, outside = tmp_path / "in", tmp_path / "drafts", tmp_path / "out"
    drafts.mkdir()
    for place in (inside, outside):
        write_deltalake(str(place / "t"), pa.table({"a": [1]}))
    os.symlink(outside / "t", inside / "link")
    return places


def test_no_reader_opens_anything_elsewhere(places: tuple[Path, Path, Path]) -> None:
    inside = places[0]
    names = {root: str(next((inside / root).glob("*.parquet"))) for root in ("t", "link")}
    found = _run(_READERS, *places, NAMES=json.dumps(names))
    assert found == {f"{name} {root}": 1 if root == "t" else True for name in _NAMES for root in ("t", "link")}


_NAMES = ("open", "list", "pyarrow", "datafusion", "deltalake")


def test_all_else_goes_on_until_a_folder_is_another(places: tuple[Path, Path, Path]) -> None:
    assert _run(_OTHERS, *places) == [True, True, False]


def test_a_folder_that_comes_later_is_another(tmp_path: Path) -> None:
    script = """
confined = confine(Folders((inside,), drafts))
before = confined.fits()
os.mkdir(inside)
print(json.dumps([before, confined.fits()]))
"""
    assert _run(script, tmp_path / "in", tmp_path, tmp_path) == [True, False]
