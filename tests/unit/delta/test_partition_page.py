"""The page on partition values: what it says is written is what is written, and read back here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.session import Session, open_runner
from tests.live.partition_values import PAGE, VALUES, logged, name_of, write


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(open_runner(tmp_path_factory.mktemp("partitions")), "UTC")


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_written_as_the_page_says(session: Session, kind: str) -> None:
    refused = write(session.execute, kind)
    root = str(Path(session.runner.catalogs["main"].table_location("default", name_of(kind))))
    found = logged(root)
    lines = {int(text.split("|")[1]): text for text in PAGE.read_text().splitlines() if text[2:3].isdigit()}
    first, values = VALUES[kind]
    for row, value in enumerate(values, first):
        assert value in lines[row].replace("\\|", "|")
        if row in refused:
            assert f"refused: {refused[row]}" in lines[row]
            continue
        folder, text = found[row]
        shown = "`null`" if text is None else f'`"{text}"`'
        assert f"`{folder}`" in lines[row].replace("\\|", "|") and shown in lines[row].replace("\\|", "|")
    typed, pairs = kind.removesuffix(" (NUL)"), [(r, v) for r, v in enumerate(values, first) if r not in refused]
    empty = f"nullif(v.q, CAST('' AS {typed}))" if typed in ("STRING", "BINARY") else "v.q"
    given = " UNION ALL ".join(f"SELECT {row} AS j, CAST({value} AS {typed}) AS q" for row, value in pairs)
    if pairs:
        read = f"SELECT count(*) FROM {name_of(kind)} t JOIN ({given}) v ON t.i = v.j AND t.p <=> {empty}"
        assert session.execute(read).rows() == [[len(pairs)]]
