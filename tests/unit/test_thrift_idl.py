"""The IDL against the published field facts, and the generated package against the IDL."""

import re
import shutil
from pathlib import Path

import pytest

from gateway.protocol.codec import METHODS
from gateway.thrift_gen.TCLIService import TCLIService, ttypes
from thrift_idl.generate import IDL, TARGET, generate

_STRUCT = re.compile(r"(?:struct|union) (\w+) \{(.*?)\}", re.DOTALL)
_FIELD = re.compile(
    r"(0x[0-9A-F]+|\d+):\s*(?:required |optional )?((?:list|map|set)<[^{;]*?>|\w+)\s+(\w+)\s*(?:=[^;\n]*)?(?=;|\s|$)"
)

# Calls of Hive 3 and 4 that Databricks does not have.
HIVES = {"TGetQueryIdReq", "TGetQueryIdResp", "TSetClientInfoReq", "TSetClientInfoResp"}


def fields_of(text: str) -> dict[tuple[str, int], tuple[str, str]]:
    """(struct, field id) -> (type, name) of an IDL."""
    text = re.sub(r"//[^\n]*", "", text)
    return {
        (struct, int(number, 0)): (type_.replace("byte", "i8").replace(" ", ""), name)
        for struct, body in _STRUCT.findall(text)
        for number, type_, name in _FIELD.findall(body)
    }


def test_generating_again_changes_nothing(tmp_path: Path) -> None:
    if shutil.which("thrift") is None:
        pytest.skip("the thrift compiler is not installed")
    generated = generate(tmp_path)
    assert {p.name for p in generated} == {p.name for p in (TARGET / "TCLIService").glob("*.py")}
    for path in generated:
        assert path.read_text() == (TARGET / "TCLIService" / path.name).read_text(), path.name


def test_idl_has_every_known_field(shared: Path) -> None:
    facts = (shared / "reference" / "tcliservice-fields.md").read_text()
    listing = re.search(r"```thrift\n(.*?)```", facts, re.DOTALL)
    assert listing is not None
    known = fields_of(listing[1])
    assert len(known) > 300
    assert {k: v for k, v in fields_of(IDL.read_text()).items() if k[0] not in HIVES} == known


def test_generated_classes_have_the_fields_of_the_idl() -> None:
    seen = 0
    for (struct, number), (_type, name) in fields_of(IDL.read_text()).items():
        entry = getattr(ttypes, struct).thrift_spec[number]
        assert (entry[0], entry[2]) == (number, name), struct
        seen += 1
    assert seen > 300


def test_methods_are_those_of_the_service() -> None:
    declared = {name for name in vars(TCLIService.Iface) if not name.startswith("_")}
    assert declared == set(METHODS)
    assert len(METHODS) == 23


def test_package_does_not_collide_with_other_clients() -> None:
    assert ttypes.__name__ == "gateway.thrift_gen.TCLIService.ttypes"
