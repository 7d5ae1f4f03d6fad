"""Tables that others wrote, changed by every statement that their features allow: the rows are those that plain rules give.

GATEWAY_TEST_CHANGES: how many changes of each table, `all` of them or a few by chance.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from gateway.errors import GatewayError, ServerError, UnsupportedError, UserError
from gateway.runner import Runner, make_runner
from tests.live.changes import Change, bag, changes
from tests.unit.runner.session import Session

_A_FEW = 2
_MOST_ROWS = 5000
# The log counts rows that its files have not.
_DAMAGED = {"crafted/stats-numrecords-wrong/table"}


@pytest.fixture(scope="module")
def world(tables_of_others: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("changes")
    (folder / "files").mkdir()
    runner = make_runner(
        warehouse=str(folder / "warehouse"),
        samples=str(folder / "samples"),
        allow_paths=(str(folder / "files"),),
        spill=str(folder / "spill"),
        memory_limit=1 << 28,
    )
    runner.warm_up()
    return World(runner, tables_of_others, folder / "files" / "t")


class World:
    """Copies of tables under the name `t`."""

    def __init__(self, runner: Runner, tables: Path, place: Path) -> None:
        self.session, self.tables, self.place = Session(runner), tables, place

    def copy(self, table: str) -> None:
        """A fresh copy of a table."""
        for name in ("t", "made"):
            self.session.run(f"DROP TABLE IF EXISTS {name}")
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.tables / table, self.place, symlinks=True)
        self.session.run(f"CREATE TABLE t LOCATION '{self.place}'")

    def judge(self, table: str, change: Change, before: Counter[str]) -> str:
        """What became of a change: right, refused (with the condition) or wrong (with the reason)."""
        self.copy(table)
        done = 0
        try:
            version = max(row[0] for row in self.session.rows("DESCRIBE HISTORY t"))
            for text in change.statements:
                self.session.run(text.replace("{version}", str(version)))
                done += 1
        except (UserError, UnsupportedError) as error:
            if not done and bag(self.session.rows("SELECT * FROM t")) != before:
                return f"wrong: changed by what was refused: {error}"
            return f"refused: {error.condition}"
        except ServerError as error:  # it is the table that is at fault, or we are
            return f"refused: {error.condition}" if table in _DAMAGED else f"wrong: {error}"
        try:
            found = bag(self.session.rows(f"SELECT * FROM {change.read}"))
        except GatewayError as error:
            return f"wrong: cannot be read any more: {error}"
        if found == change.rows:
            return "right"
        return f"wrong: more {list((found - change.rows).items())[:2]}, less {list((change.rows - found).items())[:2]}"


def test_every_change_of_every_table(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    verdicts: dict[tuple[str, str], str] = {}
    few = os.environ.get("GATEWAY_TEST_CHANGES", str(_A_FEW))
    for entry in json.loads((world.tables / "manifest.json").read_text()):
        table = entry["table"]
        if (entry.get("rows") or 0) > _MOST_ROWS:
            continue
        try:
            world.copy(table)
            asked = world.session.run("SELECT * FROM t")
        except GatewayError:
            continue  # `tests/unit/delta/test_corpus.py` judges these
        todo = list(changes(asked.columns, asked.rows))
        if few != "all":
            todo = random.Random(table).sample(todo, min(int(few), len(todo)))
        for change in todo:
            verdicts[table, change.name] = world.judge(table, change, bag(asked.rows))
    counts = Counter(verdict.partition(":")[0] for verdict in verdicts.values())
    with capsys.disabled():
        print(
            f"\nChanges of tables of others: {counts['right']} right, {counts['refused']} refused, {counts['wrong']} wrong"
        )
    assert {at: verdict for at, verdict in verdicts.items() if verdict.startswith("wrong")} == {}
