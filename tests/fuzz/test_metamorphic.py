"""A seeded slice of what must hold between answers of the embedded engine alone."""

from pathlib import Path

from tests.fuzz.metamorphic import RELATIONS, run


def test_answers_agree_with_each_other(tmp_path: Path) -> None:
    checks = run(tmp_path, seed=20, statements=160, seconds=60.0)
    assert not checks.found, "\n".join(map(str, checks.found))
    assert set(RELATIONS) <= set(checks.counts)
    said = sum(n for name, n in checks.counts.items() if name in RELATIONS)
    assert said > 0.8 * checks.counts.total()
