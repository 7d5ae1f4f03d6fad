"""NOT NULL of fields of structs: no row without them gets in, whatever writes it, as with Delta and Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import ArrayType, PrimitiveType, StructType

from gateway.delta import log
from gateway.errors import UnsupportedError
from tests.unit.runner.session import Session, refused

TABLE = "CREATE TABLE t (id INT, s STRUCT<a: INT NOT NULL, n: STRUCT<`x y`: INT NOT NULL, z: INT>, b: STRING>)"
MAPPED = " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
WHOLE = "named_struct('a', 1, 'n', named_struct('x y', 2, 'z', NULL), 'b', NULL)"
GONE, INNER = WHOLE.replace("'a', 1", "'a', CAST(NULL AS INT)"), WHOLE.replace("'x y', 2", "'x y', NULL")


@pytest.fixture(params=["", MAPPED], ids=["plain", "mapped"])
def filled(session: Session, request: pytest.FixtureRequest) -> Session:
    """``t`` with one row, under names of its own or those of its fields."""
    text = TABLE if request.param else TABLE.replace("`x y`", "xy")
    session.run(text + request.param)
    session.run(f"INSERT INTO t VALUES (1, {WHOLE.replace('x y', _inner(session))})")
    return session


def _inner(session: Session) -> str:
    return "x y" if "columnMapping" in str(session.run("SHOW TBLPROPERTIES t").rows) else "xy"


def _folder(session: Session) -> str:
    return session.runner.catalogs["main"].table_location("shop", "t")


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        (f"INSERT INTO t VALUES (2, {WHOLE}), (3, {GONE})", "s.a"),
        (f"INSERT INTO t VALUES (2, {INNER})", "s.n.x y"),
        ("INSERT INTO t VALUES (2, NULL)", "s.a"),
        ("INSERT INTO t (id) VALUES (2)", "s.a"),
        ("INSERT INTO t VALUES (2, named_struct('a', 1, 'n', NULL, 'b', ''))", "s.n.x y"),
        (f"INSERT OVERWRITE t SELECT 2, {GONE}", "s.a"),
        (f"INSERT INTO t REPLACE WHERE id = 2 SELECT 2, {GONE}", "s.a"),
        (f"INSERT INTO t BY NAME SELECT {GONE} AS s", "s.a"),
        ("UPDATE t SET s = NULL", "s.a"),
        ("UPDATE t SET s.a = NULL", "s.a"),
        ("UPDATE t SET s.n = NULL WHERE id = 1", "s.n.x y"),
        ("MERGE INTO t USING (SELECT 1 AS id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s.a = NULL", "s.a"),
        ("MERGE INTO t USING (SELECT 2 AS id) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT (id) VALUES (2)", "s.a"),
        (f"MERGE INTO t USING (SELECT 2 AS id, {GONE} AS s) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *", "s.a"),
    ],
)
def test_no_row_without_them_gets_in(filled: Session, statement: str, column: str) -> None:
    inner = _inner(filled)
    folder = Path(_folder(filled))
    before = log.commit_versions(str(folder)), sorted(folder.iterdir())
    error = refused(filled, statement.replace("x y", inner))
    assert (error.condition, error.sqlstate) == ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502")
    assert error.message == f"NOT NULL constraint violated for column: {column.replace('x y', inner)}."
    assert (log.commit_versions(str(folder)), sorted(folder.iterdir())) == before


def test_rows_with_them_do(filled: Session) -> None:
    inner = _inner(filled)
    filled.run("INSERT INTO t SELECT id + 1, s FROM t")
    filled.run("UPDATE t SET s.b = 'u', s.n.z = 5 WHERE id = 1")
    filled.run("UPDATE t SET s.a = id + 10")
    filled.run("MERGE INTO t USING (SELECT id + 1 AS id, s FROM t) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *")
    filled.run("OPTIMIZE t")
    own = filled.run(f"SELECT id, s.a, s.n.`{inner}`, s.n.z, s.b FROM t ORDER BY id").rows
    assert own == [(1, 11, 2, 5, "u"), (2, 12, 2, None, None), (3, 12, 2, None, None)]


def test_it_stays_declared(filled: Session) -> None:
    inner = "`x y`" if _inner(filled) == "x y" else "xy"
    declared = f"STRUCT<a: INT NOT NULL, n: STRUCT<{inner}: INT NOT NULL, z: INT>, b: STRING>"
    told = filled.run("SHOW CREATE TABLE t").rows[0][0]
    assert f"  s {declared})" in told
    filled.run("CREATE TABLE l LIKE t")
    filled.run("CREATE TABLE c SHALLOW CLONE t")
    filled.run(told.replace("main.shop.t", "main.shop.again"))
    for table in ("l", "c", "again"):
        assert declared in filled.run(f"SHOW CREATE TABLE {table}").rows[0][0]
        assert (
            refused(filled, f"INSERT INTO {table} VALUES (2, NULL)").condition == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
        )
    shown = json.loads(filled.run("DESCRIBE TABLE EXTENDED t AS JSON").rows[0][0])["columns"][1]["type"]["fields"]
    assert [f["nullable"] for f in shown] == [False, True, True]
    plain = declared.replace(" NOT NULL", "").replace("`", "").replace(": ", ":").replace(", ", ",").lower()
    assert filled.run("DESCRIBE t").rows[1][1] == plain


def test_a_query_of_them_makes_a_table_without(filled: Session) -> None:
    filled.run("CREATE TABLE q TBLPROPERTIES ('delta.columnMapping.mode' = 'name') AS SELECT * FROM t")
    assert "NOT NULL" not in filled.run("SHOW CREATE TABLE q").rows[0][0]
    filled.run("INSERT INTO q VALUES (2, NULL)")
    assert filled.run("SELECT s.a, s.a IS NULL, s IS NULL FROM q ORDER BY id").rows[1] == (None, True, True)


def test_one_is_dropped(filled: Session) -> None:
    filled.run("ALTER TABLE t ALTER COLUMN s.a DROP NOT NULL")
    filled.run(f"INSERT INTO t VALUES (2, {GONE.replace('x y', _inner(filled))})")
    assert refused(filled, "INSERT INTO t VALUES (2, NULL)").message.startswith("NOT NULL constraint violated")
    with pytest.raises(UnsupportedError, match="SET NOT NULL inside of a column"):
        filled.run("ALTER TABLE t ALTER COLUMN s.a SET NOT NULL")


def test_versions_before_it_was_dropped_are_read(session: Session) -> None:
    session.run("CREATE TABLE t (s STRUCT<a: INT NOT NULL>) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    session.run("INSERT INTO t VALUES (named_struct('a', 1))")
    changes = "SELECT _change_type, s.a FROM table_changes('t', 1)"
    assert session.run(changes).rows == [("insert", 1)]
    session.run("ALTER TABLE t ALTER COLUMN s.a DROP NOT NULL")
    session.run("INSERT INTO t VALUES (NULL)")
    assert session.run(f"{changes} ORDER BY 2").rows == [("insert", None), ("insert", 1)]
    assert session.run("SELECT s.a FROM t VERSION AS OF 1").rows == [(1,)]


def test_renamed_ones_go_by_their_new_names(session: Session) -> None:
    session.run("CREATE TABLE t (`a.b` STRUCT<c: INT NOT NULL>)" + MAPPED)
    session.run("ALTER TABLE t RENAME COLUMN `a.b`.c TO d")
    error = refused(session, "INSERT INTO t VALUES (NULL)")
    assert error.message == "NOT NULL constraint violated for column: `a.b`.d."


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("s ARRAY<STRUCT<a: INT NOT NULL>>", "The element type of the field s contains"),
        ("s MAP<INT, STRUCT<a: INT NOT NULL>>", "The value type of the field s contains"),
        ("s MAP<STRUCT<a: INT NOT NULL>, INT>", "The key type of the field s contains"),
        ("s STRUCT<x: ARRAY<STRUCT<a: INT NOT NULL>>>", "The element type of the field s.x contains"),
    ],
)
def test_not_within_elements_and_values(session: Session, column: str, text: str) -> None:
    error = refused(session, f"CREATE TABLE u (id INT, {column})")
    assert (error.condition, error.sqlstate) == ("DELTA_NESTED_NOT_NULL_CONSTRAINT", "0AKDC")
    assert error.message.startswith(text)
    session.run("CREATE TABLE u (id INT, s STRUCT<a: INT>)")
    for added in (column.replace("s ", "n "), "n STRUCT<a: INT NOT NULL>"):
        assert refused(session, f"ALTER TABLE u ADD COLUMN {added}").condition == "DELTA_OPERATION_NOT_ALLOWED"


def test_tables_of_others_with_it_within_elements_are_read_alone(session: Session) -> None:
    inner = StructType([Field("a", PrimitiveType("integer"), nullable=False)])
    session.run("CREATE TABLE v (id INT)")
    folder = session.runner.catalogs["main"].table_location("shop", "v").replace("/v", "/w")
    DeltaTable.create(folder, Schema([Field("l", ArrayType(inner, contains_null=True), nullable=True)]))
    assert session.run("SELECT * FROM w").rows == []
    with pytest.raises(UnsupportedError, match="NOT NULL inside of arrays or maps of column l"):
        session.run("INSERT INTO w VALUES (NULL)")


def test_files_of_others_in_which_such_a_struct_is_missing(session: Session) -> None:
    """As Spark reads them: the table's schema says NOT NULL, its writer did not look."""
    session.run("CREATE TABLE w (id INT, s STRUCT<a: INT NOT NULL>)")
    folder = session.runner.catalogs["main"].table_location("shop", "w")
    schema = pa.schema([("id", pa.int32()), ("s", pa.struct([pa.field("a", pa.int32())]))])
    write_deltalake(folder, pa.table({"id": [1], "s": [None]}, schema), mode="append", schema_mode="merge")
    assert session.run("SELECT s.a, s.a IS NULL, coalesce(s.a, 7) FROM w").rows == [(None, True, 7)]
