"""The expressions of `misplaced` in each place of what changes a table's rows, or says what it may hold."""

from __future__ import annotations

from random import Random

from tests.fuzz.grids import Grid, combined
from tests.fuzz.misplaced import PIECES, PLACE
from tests.fuzz.sessions import CLEAN, TABLE
from tests.fuzz.tree import Case, case

_MADE = (
    *CLEAN,
    "CREATE OR REPLACE TEMPORARY VIEW u AS SELECT * FROM VALUES (1, 10), (3, 20) AS w(a, z)",
    f"CREATE TABLE {TABLE} USING delta AS SELECT * FROM VALUES "
    "(1, 'x', array(1, 2), map('k', 1), named_struct('f', 1), true, DATE'2020-01-01', 1.5D), "
    "(2, 'y', array(3), map('k', 2), named_struct('f', 2), false, DATE'2021-01-01', 2.5D) AS v(a, b, l, m, s, c, d, e)",
)
_MERGE = f"MERGE INTO {TABLE} AS t USING u ON t.a = u.a "
_PLACES = (
    f"UPDATE {TABLE} AS t SET a = {{x}}", f"UPDATE {TABLE} AS t SET b = {{x}} WHERE a = 1",
    f"UPDATE {TABLE} AS t SET e = {{x}}, b = 'z'", f"UPDATE {TABLE} AS t SET s.f = {{x}}",
    f"UPDATE {TABLE} AS t SET e = 0 WHERE {{x}}", f"UPDATE {TABLE} AS t SET e = 0 WHERE {{x}} IS NOT NULL",
    f"DELETE FROM {TABLE} AS t WHERE {{x}}", f"DELETE FROM {TABLE} AS t WHERE {{x}} = 1",
    f"INSERT INTO {TABLE} (a) SELECT {{x}} FROM {TABLE} AS t", f"INSERT INTO {TABLE} (b, a) SELECT 'n', {{x}}",
    f"INSERT INTO {TABLE} (a) VALUES ({{x}})", f"INSERT INTO {TABLE} (b) VALUES ('b'), ({{x}})",
    f"INSERT OVERWRITE {TABLE} (a) SELECT {{x}} FROM {TABLE} AS t GROUP BY ALL",
    f"INSERT INTO {TABLE} REPLACE WHERE {{x}} SELECT * FROM {TABLE} WHERE a = 1",
    f"MERGE INTO {TABLE} AS t USING u ON {{x}} WHEN MATCHED THEN DELETE",
    f"MERGE INTO {TABLE} AS t USING (SELECT a, {{x}} AS r FROM {TABLE} AS t) AS n ON t.a = n.a "
    "WHEN MATCHED THEN UPDATE SET b = n.r",
    f"MERGE INTO {TABLE} AS t USING u ON t.a = u.a AND {{x}} IS NOT NULL WHEN MATCHED THEN DELETE",
    f"{_MERGE}WHEN MATCHED AND {{x}} THEN DELETE", f"{_MERGE}WHEN MATCHED THEN UPDATE SET a = {{x}}",
    f"{_MERGE}WHEN NOT MATCHED THEN INSERT (a) VALUES ({{x}})",
    f"{_MERGE}WHEN NOT MATCHED AND {{x}} THEN INSERT (a) VALUES (0)",
    f"{_MERGE}WHEN NOT MATCHED BY SOURCE AND {{x}} THEN DELETE",
    f"{_MERGE}WHEN NOT MATCHED BY SOURCE THEN UPDATE SET e = {{x}}",
    f"ALTER TABLE {TABLE} ADD CONSTRAINT k CHECK ({{x}})", f"ALTER TABLE {TABLE} ADD CONSTRAINT k CHECK ({{x}} IS NOT NULL)",
    f"CREATE OR REPLACE TABLE {TABLE} (q STRING GENERATED ALWAYS AS ({{x}}), a INT, b STRING, c BOOLEAN) USING delta",
    f"CREATE OR REPLACE TABLE {TABLE} (a INT, q INT DEFAULT {{x}}) USING delta "
    "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    f"CREATE OR REPLACE TABLE {TABLE} USING delta AS SELECT {{x}} AS r FROM {TABLE} AS t",
    f"CREATE OR REPLACE TABLE {TABLE} USING delta AS SELECT {{x}} FROM {TABLE} AS t",
)  # fmt: skip


def _asked(piece: str, place: str, random: Random) -> Case:
    changed = place.replace(PLACE, piece)
    return case("changes", *_MADE, changed, f"SELECT * FROM {TABLE}", labels=frozenset({piece, place}))


#: Names of files are never alike.
GRID = Grid("changes", combined(_asked, [piece for piece in PIECES if "_metadata" not in piece], _PLACES), size=8)
