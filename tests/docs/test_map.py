"""The map in gateway/README.md agrees with the disk and with the layers that import-linter checks."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gateway"


def _modules() -> set[str]:
    folders = {p.parent.name + "/" for p in PACKAGE.glob("*/__init__.py")}
    return folders | {p.name for p in PACKAGE.glob("*.py") if not p.name.startswith("__")}


def test_every_package_is_on_the_map() -> None:
    lines = (PACKAGE / "README.md").read_text().splitlines()
    rows = [line.split("|")[1].strip().strip("`") for line in lines if line.startswith("| `")]
    assert len(rows) == len(set(rows))
    missing = _modules() - set(rows)
    assert not missing, f"gateway/README.md lacks {sorted(missing)}"
    gone = set(rows) - _modules()
    assert not gone, f"gateway/README.md names {sorted(gone)}, which do not exist"


def test_every_room_of_sql_is_on_the_map_in_the_order_of_the_layers() -> None:
    lines = (PACKAGE / "README.md").read_text().splitlines()
    rooms = [line.split("**")[1] for line in lines if line.startswith("| **")]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["name"] == "Phases of sql")
    assert ["compile", *rooms] == [part.strip(" ()") for layer in layers for part in layer.split("|")]
    for line in (x for x in lines if x.startswith("| **")):
        room = PACKAGE / "sql" / line.split("**")[1]
        named = set(re.findall(r"`(\w+)`", line))
        assert named <= {m.stem for m in room.glob("*.py")}, f"the map names {named} in {room.name}"


def test_layers_of_the_map_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [" | ".join(p.strip(" ()") for p in layer.split("|")) for layer in contracts[0]["layers"]]
    text = " ".join((PACKAGE / "README.md").read_text().split())
    assert " > ".join(layers) in text


def test_links_in_the_documents_lead_somewhere() -> None:
    for name in ("README.md", "gateway/README.md"):
        for part in (ROOT / name).read_text().split("](")[1:]:
            target = part.split(")")[0]
            if not target.startswith("http"):
                assert (ROOT / target).exists(), f"{name} links to {target}"
