"""What a column of a Delta table takes, for all pairs of types, as Spark with Delta says (tests/data/store-assignment.csv).

Its columns `update` and `merge` are of UPDATE and MERGE.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.errors import GatewayError
from tests.unit.runner.session import Session, refused

DATA = Path(__file__).parents[3] / "data" / "store-assignment.csv"
# Statement by column of the table.
TEXTS = {
    "position": "INSERT INTO {t} SELECT {value} AS c",
    "list": "INSERT INTO {t} (c) SELECT {value} AS c",
    "name": "INSERT INTO {t} BY NAME SELECT {value} AS c",
}


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
    for row in pairs:
        try:
            session.run(TEXTS[way].format(t=tables[row["target"]], value=row["value"]))
            got = "ok"
        except GatewayError as error:
            got = error.condition
        if got != row[way]:
            differ.append(f"{row['source']} -> {row['target']}: {row[way]} / {got}")
    assert not differ, "\n".join(differ)


_STRUCT, _ARRAY = "id INT, s STRUCT<a: INT, b: STRING>", "id INT, s ARRAY<STRUCT<a: INT, b: STRING>>"
_MAP, _KEY = "id INT, s MAP<STRING, STRUCT<a: INT, b: STRING>>", "id INT, s MAP<STRUCT<a: INT, b: STRING>, INT>"
_DEEP = "id INT, s STRUCT<o: STRUCT<a: INT, b: STRING>, l: ARRAY<STRUCT<a: INT, b: BIGINT>>>"
_GIVEN = "named_struct('b', '5', 'a', 2)"
_BY_NAME, _BY_PLACE = {"a": 2, "b": "5"}, {"a": 5, "b": "2"}


@pytest.mark.parametrize(
    ("columns", "text", "stored"),
    [
        (_STRUCT, f"BY NAME SELECT {_GIVEN} AS s, 7 AS id", _BY_NAME),
        (_STRUCT, f"BY NAME SELECT {_GIVEN} AS s", _BY_NAME),
        (_STRUCT, "BY NAME SELECT CAST(NULL AS STRUCT<b: STRING, a: INT>) AS s, 7 AS id", None),
        # what is cast at all, or spelt in another way, is so by the places of all fields
        (_STRUCT, f"BY NAME SELECT {_GIVEN} AS s, 7L AS id", _BY_PLACE),
        (_STRUCT, f"BY NAME SELECT {_GIVEN} AS s, NULL AS id", _BY_PLACE),
        (_STRUCT, f"BY NAME SELECT {_GIVEN} AS s, 7 AS ID", _BY_PLACE),
        (_STRUCT, "BY NAME SELECT named_struct('b', '5', 'A', 2) AS s, 7 AS id", _BY_PLACE),
        (_STRUCT, "BY NAME SELECT named_struct('b', '5', 'c', 2) AS s, 7 AS id", _BY_PLACE),
        (_STRUCT, "BY NAME SELECT named_struct('b', 5, 'a', 2L) AS s, 7 AS id", _BY_PLACE),
        (_STRUCT, f"SELECT 7 AS id, {_GIVEN} AS s", _BY_NAME),
        (_STRUCT, f"SELECT 7, {_GIVEN} AS s", _BY_PLACE),
        (_STRUCT, f"(id, s) SELECT 7 AS id, {_GIVEN} AS s", _BY_PLACE),
        (_ARRAY, f"BY NAME SELECT array({_GIVEN}, NULL) AS s", [_BY_NAME, None]),
        (_ARRAY, f"BY NAME SELECT array({_GIVEN}) AS s, 7L AS id", [_BY_PLACE]),
        (_ARRAY, f"SELECT 7, array({_GIVEN})", [_BY_PLACE]),
        (_ARRAY, f"(id, s) SELECT 7, array({_GIVEN})", [_BY_NAME]),
        (_ARRAY, "(id, s) SELECT 7, array(named_struct('b', '5', 'a', 2L))", [_BY_PLACE]),
        (_MAP, f"(id, s) SELECT 7, map('k', {_GIVEN})", [("k", _BY_NAME)]),
        (_MAP, f"VALUES (7, map('k', {_GIVEN}))", [("k", _BY_PLACE)]),
        (_KEY, f"BY NAME SELECT map({_GIVEN}, 3) AS s", [(_BY_NAME, 3)]),
        (
            _DEEP,
            "BY NAME SELECT named_struct('l', array(named_struct('b', 1L, 'a', 2)), 'o', named_struct('b', 'x', 'a', 1)) AS s",
            {"o": {"a": 1, "b": "x"}, "l": [{"a": 2, "b": 1}]},
        ),
        (
            _DEEP,
            "(s) SELECT named_struct('o', named_struct('b', '5', 'a', 1), 'l', array(named_struct('b', 1L, 'a', 2)))",
            {"o": {"a": 5, "b": "1"}, "l": [{"a": 1, "b": 2}]},
        ),
    ],
)
def test_fields_of_structs_by_name_and_by_place(session: Session, columns: str, text: str, stored: object) -> None:
    """As Spark with Delta stores them."""
    session.run(f"CREATE TABLE t ({columns})")
    session.run(f"INSERT INTO t {text}")
    assert session.rows("SELECT s FROM t") == [(stored,)]


@pytest.mark.parametrize(
    ("columns", "value", "stored"),
    [
        (_STRUCT, _GIVEN, _BY_NAME),
        (_STRUCT, "named_struct('B', 5, 'A', '2')", _BY_NAME),
        (_STRUCT, "if(id > 9, named_struct('b', '5', 'a', 2), NULL)", None),
        (_STRUCT, "named_struct('A', 2, 'B', '5')", _BY_NAME),
        (_ARRAY, f"array({_GIVEN}, NULL)", [_BY_NAME, None]),
        (_ARRAY, "array(named_struct('b', '5', 'a', 2L))", [_BY_NAME]),
        (_MAP, f"map('k', {_GIVEN}, 'n', NULL)", [("k", _BY_NAME), ("n", None)]),
        (
            _DEEP,
            "named_struct('l', array(named_struct('b', '1', 'a', 2)), 'o', named_struct('b', 7, 'a', '1'))",
            {"o": {"a": 1, "b": "7"}, "l": [{"a": 2, "b": 1}]},
        ),
        (
            _DEEP,
            "named_struct('l', NULL, 'o', if(id > 9, named_struct('b', 'x', 'a', 1), NULL))",
            {"o": None, "l": None},
        ),
    ],
)
def test_fields_that_update_and_merge_find_by_name(session: Session, columns: str, value: str, stored: object) -> None:
    """In whatever order, and whatever is cast, as Delta with Spark does."""
    session.run(f"CREATE TABLE t ({columns})")
    session.run("INSERT INTO t (id) VALUES (1), (2)")
    session.run(f"UPDATE t SET s = {value} WHERE id = 1")
    merged = f"MERGE INTO t USING (SELECT id, {value} AS s FROM (VALUES (2), (3)) AS v(id)) q ON t.id = q.id"
    session.run(f"{merged} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    session.run(
        f"{merged} WHEN MATCHED AND t.id = 3 THEN UPDATE SET s = q.s WHEN NOT MATCHED THEN INSERT (s) VALUES (q.s)"
    )
    assert session.rows("SELECT id, s FROM t ORDER BY id") == [(1, stored), (2, stored), (3, stored)]


@pytest.mark.parametrize(
    ("columns", "value", "condition"),
    [
        (_STRUCT, "named_struct('a', 1, 'b', 'x', 'c', 2)", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        (_STRUCT, "named_struct('b', 'x')", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        (_STRUCT, "struct(1, 'x')", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        (_STRUCT, "named_struct('b', 12, 'a', 'zzz')", "CAST_INVALID_INPUT"),
        (_STRUCT, "named_struct('b', 12, 'a', 99999999999)", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        (_ARRAY, "array(named_struct('b', 'x'))", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        (_DEEP, "named_struct('l', NULL, 'o', named_struct('a', 1))", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
    ],
)  # fmt: skip
def test_structs_that_update_and_merge_refuse(session: Session, columns: str, value: str, condition: str) -> None:
    session.run(f"CREATE TABLE t ({columns})")
    session.run("INSERT INTO t (id) VALUES (1)")
    merge = f"INTO t USING (SELECT 1 AS id, {value} AS s) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET *"
    assert refused(session, f"UPDATE t SET s = {value}").condition == condition
    assert refused(session, f"MERGE {merge}").condition == condition
    if condition.endswith("MISMATCH_EXPRESSION"):  # Delta would bring fields along
        assert refused(session, f"MERGE WITH SCHEMA EVOLUTION {merge}").condition == "UNSUPPORTED_FEATURE"
    assert session.rows("SELECT * FROM t") == [(1, None)]


def test_a_field_that_an_update_gives_twice(session: Session) -> None:
    session.run(f"CREATE TABLE t ({_STRUCT})")
    twice = refused(session, "UPDATE t SET s = named_struct('a', 1, 'a', 2)")
    assert twice.condition == "AMBIGUOUS_REFERENCE_TO_FIELDS"
    more = refused(session, "UPDATE t SET s = named_struct('a', 1, 'a', 2, 'b', 3)")
    assert more.condition == "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"


def test_overwritten_fields_of_structs_by_name(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, p STRING, s STRUCT<a: INT, b: STRING>) PARTITIONED BY (p)")
    session.run(f"INSERT OVERWRITE t PARTITION (p = 'q') SELECT 7 AS id, {_GIVEN} AS s")
    assert session.rows("SELECT * FROM t") == [(7, "q", _BY_NAME)]


@pytest.mark.parametrize(
    ("columns", "value", "condition"),
    [
        (_STRUCT, "named_struct('b', '5', 'c', 2, 'a', 3)", "DELTA_METADATA_MISMATCH"),
        (_STRUCT, "named_struct('b', '5', 'c', 2, 'a', 3L)", "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA"),
        (_STRUCT, "named_struct('b', 'y')", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        (_STRUCT, "named_struct('B', 'y', 'A', 2)", "CAST_INVALID_INPUT"),
        (_ARRAY, "array(named_struct('b', 'x', 'a', 1, 'c', 1))", "DELTA_METADATA_MISMATCH"),
        (_ARRAY, "array(named_struct('b', '5', 'a', 2L, 'c', 1))", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
        (_ARRAY, "array(named_struct('b', '5', 'a', 2L, 'c', 1), NULL)", "DELTA_METADATA_MISMATCH"),
        (_MAP, "map('k', named_struct('b', 'x'))", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        (_DEEP, "named_struct('l', array(named_struct('b', 1)), 'o', named_struct('b', 'x', 'a', 1))",
         "DELTA_COLUMN_STRUCT_TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_structs_that_do_not_fit(session: Session, columns: str, value: str, condition: str) -> None:
    session.run(f"CREATE TABLE t ({columns})")
    with pytest.raises(GatewayError) as caught:
        session.run(f"INSERT INTO t BY NAME SELECT {value} AS s, 7 AS id")
    assert caught.value.condition == condition
