"""Tables that track their rows: Spark reads the numbers that each engine has kept for the other's rows."""

from __future__ import annotations

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_STATEMENTS = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    "UPDATE {t} SET s = 'z' WHERE id = 2",
    "INSERT INTO {t} VALUES (5, 'e')",
    "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'm'), (9, 'n') v(id, s)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET s = s.s WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, s.s)",
    "DELETE FROM {t} WHERE id = 3",
    "OPTIMIZE {t}",
    "UPDATE {t} SET s = concat(s, '+') WHERE id IN (1, 4, 5)",
    "RESTORE TABLE {t} TO VERSION AS OF 4",
)
_ROWS = "SELECT id, s, _metadata.row_id, _metadata.row_commit_version FROM {t} ORDER BY id"


@pytest.mark.parametrize("vectors", [pytest.param("true", marks=pytest.mark.heavy), "false"])
def test_rows_keep_their_numbers_whoever_writes(sql: Sql, vectors: str) -> None:
    for name in ("ours", "theirs", "mixed"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
        sql.embedded(
            f"CREATE TABLE {name} (id INT, s STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
            f"'delta.enableDeletionVectors' = '{vectors}')"
        )
    given: dict[str, dict[int, int]] = {"ours": {}, "theirs": {}, "mixed": {}}
    for at, statement in enumerate(_STATEMENTS):
        sql.embedded(statement.format(t="ours"))
        sql.spark(statement.format(t="theirs"))
        (sql.spark if at % 2 else sql.embedded)(statement.format(t="mixed"))
        expected = [(id_, text, version) for id_, text, _, version in sql.embedded(_ROWS.format(t="theirs"))]
        for name, known in given.items():
            rows = sql.embedded(_ROWS.format(t=name))
            if statement.startswith(("OPTIMIZE", "RESTORE")):  # Spark takes most of the time
                assert sql.spark(_ROWS.format(t=name)) == rows, (name, statement)
            assert [(id_, text, version) for id_, text, _, version in rows] == expected, (name, statement)
            # What a new row gets depends on the place where its writer has put it in a file: it is only new.
            now = {id_: number for id_, _, number, _ in rows}
            most = max(known.values(), default=-1)
            assert len(set(now.values())) == len(now), (name, statement)
            assert all(known.get(id_, most + 1) <= number for id_, number in now.items()), (name, statement)
            assert all(now[id_] == known[id_] for id_ in now.keys() & known.keys()), (name, statement)
            known |= now


def test_rows_that_were_numbered_later_keep_their_numbers(sql: Sql) -> None:
    sql.auto("DROP TABLE IF EXISTS later")
    sql.embedded("CREATE TABLE later (id INT, s STRING) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    sql.embedded("INSERT INTO later VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql.embedded("INSERT INTO later VALUES (4, 'd')")
    sql.embedded("DELETE FROM later WHERE id = 2")
    sql.embedded("ALTER TABLE later SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    ask = "SELECT id, _metadata.row_id FROM later ORDER BY id"
    before = dict(sql.spark(ask))
    assert dict(sql.embedded(ask)) == before
    assert len(set(before.values())) == 3
    sql.spark("UPDATE later SET s = 'x' WHERE id = 1")
    sql.embedded("UPDATE later SET s = 'y' WHERE id = 3")
    sql.embedded("INSERT INTO later VALUES (5, 'e')")
    sql.spark("OPTIMIZE later")
    after = dict(sql.spark(ask))
    assert dict(sql.embedded(ask)) == after
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == 4


def test_identity_columns_count_on_whoever_writes(sql: Sql) -> None:
    sql.auto("DROP TABLE IF EXISTS counted")
    sql.embedded(
        "CREATE TABLE counted (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), s STRING)"
    )
    for at in range(6):
        (sql.spark if at % 2 else sql.embedded)(f"INSERT INTO counted (s) VALUES ('{at}')")
    expected = [(10 + 5 * at, str(at)) for at in range(6)]
    for read in (sql.spark, sql.embedded):
        assert read("SELECT * FROM counted ORDER BY id") == expected


def test_spark_reads_and_clusters_on_what_was_put_in_order(sql: Sql) -> None:
    sql.auto("DROP TABLE IF EXISTS placed")
    sql.embedded("CREATE TABLE placed (id INT, s STRING) CLUSTER BY (id, s)")
    for at, run in enumerate((sql.embedded, sql.spark, sql.embedded)):
        sql.embedded(
            f"INSERT INTO placed SELECT CAST(id AS INT), CAST(id % 7 AS STRING) FROM range({at * 100}, {at * 100 + 100})"
        )
        run("OPTIMIZE placed")
        ((path, metrics),) = sql.spark("OPTIMIZE placed")
        assert path and "numFilesRemoved" in str(metrics)
    for read in (sql.spark, sql.embedded):
        assert read("SELECT count(*), count(DISTINCT id), sum(id) FROM placed") == [(300, 300, 44850)]


@pytest.mark.parametrize("vectors", ["true", pytest.param("false", marks=pytest.mark.heavy)])
def test_spark_numbers_on_from_a_table_that_was_restored_to_before_its_feature_was_dropped(
    sql: Sql, vectors: str
) -> None:
    sql.auto("DROP TABLE IF EXISTS back")
    sql.embedded(
        "CREATE TABLE back (id INT, s STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
        f"'delta.enableDeletionVectors' = '{vectors}')"
    )
    sql.embedded("INSERT INTO back VALUES (1, 'a'), (2, 'b')")
    sql.spark("INSERT INTO back VALUES (3, 'c')")
    before = sql.spark(_ROWS.format(t="back"))
    sql.spark("ALTER TABLE back DROP FEATURE rowTracking")
    sql.spark("INSERT INTO back VALUES (9, 'z')")
    sql.spark("DELETE FROM back WHERE id = 3")
    sql.embedded("RESTORE TABLE back TO VERSION AS OF 2")
    for read in (sql.spark, sql.embedded):
        assert read(_ROWS.format(t="back")) == before
    sql.spark("DELETE FROM back WHERE id = 1")
    sql.embedded("UPDATE back SET s = 'u' WHERE id = 3")
    sql.spark("INSERT INTO back VALUES (4, 'd')")
    rows = sql.spark(_ROWS.format(t="back"))
    assert sql.embedded(_ROWS.format(t="back")) == rows
    kept = {id_: number for id_, _, number, _ in before if id_ != 1}
    numbers = {id_: number for id_, _, number, _ in rows}
    new = numbers.pop(4)
    assert numbers == kept and new > max(number for _, _, number, _ in before)
