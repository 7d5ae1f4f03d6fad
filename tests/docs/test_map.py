"""The maps agree with the disk, with the imports and with the layers that import-linter checks; links lead somewhere."""

import re
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest

from docs.make_map import PAGE, page

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gateway"


def _modules() -> set[str]:
    folders = {p.parent.name + "/" for p in PACKAGE.glob("*/__init__.py")}
    return folders | {p.name for p in PACKAGE.glob("*.py") if not p.name.startswith("__")}


def test_every_package_is_on_the_map() -> None:
    rows = [cells[0].strip().strip("`") for cells in _table("| package | what it is for")]
    assert len(rows) == len(set(rows))
    missing = _modules() - set(rows)
    assert not missing, f"gateway/README.md lacks {sorted(missing)}"
    gone = set(rows) - _modules()
    assert not gone, f"gateway/README.md names {sorted(gone)}, which do not exist"


def _table(head: str) -> list[list[str]]:
    """The rows of the table that begins with `head`: their cells."""
    lines = (PACKAGE / "README.md").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(head)) + 2
    return [line.split("|")[1:-1] for line in takewhile(lambda line: line.startswith("|"), lines[start:])]


@pytest.mark.parametrize(("package", "contract"), [("sql", "Phases of sql"), ("runner", "Rooms of runner")])
def test_every_room_is_on_the_map_in_the_order_of_the_layers(package: str, contract: str) -> None:
    rows = _table(f"| room of `{package}/`")
    rooms = [re.findall(r"\*\*(\w+)\*\*", cells[0]) for cells in rows]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["name"] == contract)
    assert [name for names in rooms for name in names] == [
        part.strip(" ()") for layer in layers for part in layer.split("|")
    ]
    for names, cells in zip(rooms, rows, strict=True):
        named = set(re.findall(r"`(\w+)`", cells[2]))
        known = {m.stem for name in names for m in (PACKAGE / package / name).glob("*.py")}
        assert named <= known, f"the map names {sorted(named - known)} in {names}"
        missing = known - named - {"__init__"}
        assert not missing, f"the map lacks {sorted(missing)} in {names}"


def test_every_module_of_the_other_packages_is_on_the_map() -> None:
    rows = {cells[0].strip(" `/"): set(re.findall(r"`(\w+)`", cells[1])) for cells in _table("| package | its modules")}
    for folder in sorted({p.parent for p in PACKAGE.rglob("*.py")}):
        package = str(folder.relative_to(PACKAGE))
        if package.split("/")[0] not in (".", "runner", "sql", "thrift_gen"):
            missing = {p.stem for p in folder.glob("*.py") if not p.stem.startswith("__")} - rows.pop(package, set())
            assert not missing, f"the map lacks {sorted(missing)} in {package}"
    assert not rows, f"the map tells of {sorted(rows)}, which do not exist"


def test_layers_of_the_map_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [" | ".join(p.strip(" ()") for p in layer.split("|")) for layer in contracts[0]["layers"]]
    text = " ".join((PACKAGE / "README.md").read_text().split())
    assert " > ".join(layers) in text


def test_the_pictures_are_those_of_the_imports() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make map"


def test_links_in_the_documents_lead_somewhere() -> None:
    for document in (ROOT / "README.md", PACKAGE / "README.md", *(ROOT / "docs").glob("*.md")):
        for part in document.read_text().split("](")[1:]:
            target = part.split(")")[0].split("#")[0]
            if target and not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_places_in_the_rules_are_there() -> None:
    homes = (PACKAGE, PACKAGE / "sql", PACKAGE / "runner", ROOT)
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`(\w+(?:/\w+)+)(?:\.\w+)?`", text))
    assert len(named) > 20
    gone = sorted(n for n in named if not any((h / n).is_dir() or [*h.glob(f"{n}.*")] for h in homes))
    assert not gone, f"docs/architecture.md names {gone}"
