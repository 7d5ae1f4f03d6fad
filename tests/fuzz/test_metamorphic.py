"""A seeded slice of what must hold between answers of the embedded engine alone."""

from pathlib import Path
from random import Random

from tests.fuzz.metamorphic import OF_OTHERS, RELATIONS, opened, run
from tests.fuzz.tempting import copies


def test_answers_agree_with_each_other(tmp_path: Path) -> None:
    checks = run(tmp_path, seed=20, statements=160, seconds=60.0)
    assert not checks.found, "\n".join(map(str, checks.found))
    assert set(RELATIONS) - {OF_OTHERS} <= set(checks.counts)
    said = sum(n for name, n in checks.counts.items() if name in RELATIONS)
    assert said > 0.7 * checks.counts.total()


def test_copies_are_stored_otherwise(tmp_path: Path) -> None:
    checks = opened(tmp_path, seed=1, others=False)
    logs = {p.parent.parent.name: p.read_text() for p in (tmp_path / "warehouse").rglob("_delta_log/*0.json")}
    for name, how in copies(1).items():
        assert ("physicalName" in logs[name]) == how.mapped
        assert ("deletionVector" in logs[name]) == how.deleting
        assert logs[name].count('"add"') == (len(checks.rows("SELECT * FROM m1")) if how.apart else 6)
        rows, copied = (checks.rows(f"SELECT * FROM {table}") for table in ("m1", name))
        assert checks.same(("", rows), ("", copied)) is None


def test_tables_of_others(shared: Path, tmp_path: Path) -> None:
    checks = opened(tmp_path, seed=1, others=True)
    assert len(checks.others) > 20
    found = [RELATIONS[OF_OTHERS](checks, Random(n)) for n in range(40)]
    assert not any(found), "\n".join(map(str, filter(None, found)))
