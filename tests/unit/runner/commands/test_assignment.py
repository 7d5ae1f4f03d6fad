"""What a column of a Delta table takes, for all pairs of types, as Spark with Delta says (tests/data/store-assignment.csv).

Its columns `update` and `merge` are of statements that only Spark runs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.errors import GatewayError, UnsupportedError
from tests.unit.runner.session import Session

DATA = Path(__file__).parents[3] / "data" / "store-assignment.csv"
# Statement by column of the table.
TEXTS = {
    "position": "INSERT INTO {t} SELECT {value} AS c",
    "list": "INSERT INTO {t} (c) SELECT {value} AS c",
    "name": "INSERT INTO {t} BY NAME SELECT {value} AS c",
}
# Told as the mismatch that it is: Spark renames the first field to one that is there twice then.
RENAMED = ("STRUCT<b: INT, a: INT>", "STRUCT<a: STRING>")


def rows() -> Iterator[dict[str, str]]:
    with DATA.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if "VARIANT" not in (row["source"], row["target"]):  # no type of the embedded engine
                yield row


@pytest.mark.parametrize("way", list(TEXTS))
def test_all_pairs_of_types(session: Session, way: str) -> None:
    pairs = list(rows())
    assert len(pairs) == 28 * 28
    tables = {target: f"t{i}" for i, target in enumerate(dict.fromkeys(row["target"] for row in pairs))}
    for target, name in tables.items():
        session.run(f"CREATE TABLE {name} (c {target})")
    differ = []
    refused = 0
    for row in pairs:
        try:
            session.run(TEXTS[way].format(t=tables[row["target"]], value=row["value"]))
            got = "ok"
        except UnsupportedError:
            refused += 1
            continue
        except GatewayError as error:
            got = error.condition
        if got != row[way] and (row["source"], row["target"]) != RENAMED:
            differ.append(f"{row['source']} -> {row['target']}: {row[way]} / {got}")
    assert not differ, "\n".join(differ)
    assert refused == (5 if way == "name" else 0)  # structs whose fields are in another order
