"""INSERT OVERWRITE, INSERT … REPLACE WHERE, INSERT … PARTITION and TRUNCATE: what goes, what comes, in one commit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions, folder_of, newest_info, rows_here_and_there


@pytest.fixture
def parted(session: Session) -> Session:
    """``t`` with three partitions."""
    session.run("CREATE TABLE t (id INT, p STRING, q INT) PARTITIONED BY (p, q)")
    session.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'a', 2), (4, NULL, 2)")
    return session


_ALL = [(1, "a", 1), (2, "b", 2), (3, "a", 2), (4, None, 2)]


@pytest.mark.parametrize(
    ("statement", "rows", "predicate"),
    [
        ("INSERT OVERWRITE t VALUES (9, 'c', 3)", [(9, "c", 3)], None),
        ("INSERT OVERWRITE TABLE t (id, p) VALUES (9, 'c')", [(9, "c", None)], None),
        ("INSERT OVERWRITE t BY NAME SELECT 3 AS q, 'c' AS p, 9 AS id", [(9, "c", 3)], None),
        ("INSERT OVERWRITE t SELECT id + 10, p, q FROM t WHERE id < 3", [(11, "a", 1), (12, "b", 2)], None),
        ("INSERT OVERWRITE t SELECT * FROM t WHERE false", [], None),
        (
            "INSERT OVERWRITE t PARTITION (p = 'a', q = 2) VALUES (9)",
            [(1, "a", 1), (2, "b", 2), (4, None, 2), (9, "a", 2)],
            "((p <=> a) AND (q <=> 2))",
        ),
        (
            "INSERT OVERWRITE t PARTITION (p = 'a', q) VALUES (9, 7)",
            [(2, "b", 2), (4, None, 2), (9, "a", 7)],
            "(p <=> a)",
        ),
        (
            "INSERT OVERWRITE t PARTITION (p = NULL, q = 2) SELECT 9",
            [(1, "a", 1), (2, "b", 2), (3, "a", 2), (9, None, 2)],
            "((p <=> NULL) AND (q <=> 2))",
        ),
        (
            "INSERT INTO t BY NAME REPLACE WHERE p = 'a' SELECT 5 AS q, 'a' AS p, 9 AS id",
            [(2, "b", 2), (4, None, 2), (9, "a", 5)],
            "(p = a)",
        ),
        (
            "INSERT INTO t REPLACE WHERE p = 'a' VALUES (9, 'a', 5)",
            [(2, "b", 2), (4, None, 2), (9, "a", 5)],
            "(p = a)",
        ),
        ("INSERT INTO t REPLACE WHERE id > 2 SELECT 5, 'a', 1", [(1, "a", 1), (2, "b", 2), (5, "a", 1)], "(id > 2)"),
    ],
)
def test_rows_take_the_place_of_others(
    parted: Session, statement: str, rows: list[tuple[Any, ...]], predicate: str | None
) -> None:
    before = count_versions(parted)
    (counts,) = parted.rows(statement)
    assert sorted(rows_here_and_there(parted), key=repr) == sorted(rows, key=repr)
    new = len([row for row in rows if row not in _ALL])
    assert counts == (new, new)
    assert count_versions(parted) == before + 1
    info = newest_info(parted)
    wanted = {"mode": "Overwrite", "partitionBy": "[]"} | ({} if predicate is None else {"predicate": predicate})
    assert (info["operation"], info["operationParameters"], info["isBlindAppend"]) == ("WRITE", wanted, False)
    assert info["operationMetrics"]["numOutputRows"] == str(new)


def test_rows_that_share_a_file_with_replaced_ones_stay(session: Session) -> None:
    session.run("CREATE TABLE t (id INT, s STRING)")
    session.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    session.run("INSERT INTO t REPLACE WHERE s = 'b' VALUES (7, 'b')")
    assert rows_here_and_there(session) == [(1, "a"), (3, None), (7, "b")]
    metrics = newest_info(session)["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"], metrics["numOutputRows"]) == ("1", "2", "3")


def test_partitions_are_filled_by_constants(parted: Session) -> None:
    parted.run("INSERT INTO t PARTITION (p = 'z', q = '5') SELECT 100")
    parted.run("INSERT INTO t PARTITION (p = 'z') (id, q) SELECT 101, 6")
    assert parted.rows("SELECT * FROM t WHERE p = 'z' ORDER BY id") == [(100, "z", 5), (101, "z", 6)]


def test_truncate_leaves_no_row(parted: Session) -> None:
    result = parted.run("TRUNCATE TABLE t")
    assert result.rows == []
    assert not result.planned.is_query
    assert rows_here_and_there(parted) == []
    info = newest_info(parted)
    assert (info["operation"], info["operationParameters"]) == ("TRUNCATE", {})
    assert info["operationMetrics"]["numRemovedFiles"] == "4"
    assert parted.rows("SELECT count(*) FROM t VERSION AS OF 1") == [(4,)]
    before = count_versions(parted)
    parted.run("TRUNCATE TABLE t")
    assert count_versions(parted) == before


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("INSERT INTO t REPLACE WHERE p = 'a' VALUES (9, 'a', 5), (9, 'b', 5)", "DELTA_REPLACE_WHERE_MISMATCH"),
        ("INSERT INTO t REPLACE WHERE p = 'a' VALUES (9, NULL, 5)", "DELTA_REPLACE_WHERE_MISMATCH"),
        ("INSERT INTO t REPLACE WHERE nope = 1 VALUES (9, 'a', 5)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT INTO t REPLACE USING (id) VALUES (9, 'a', 5)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("INSERT OVERWRITE t VALUES (1)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("INSERT OVERWRITE t PARTITION (id = 1) VALUES ('a', 1)", "UNSUPPORTED_FEATURE"),
        ("INSERT OVERWRITE t PARTITION (q = 'x', p) VALUES (1, 'a')", "CAST_INVALID_INPUT"),
        ("INSERT OVERWRITE t PARTITION (p = 'a', q) IF NOT EXISTS VALUES (1, 2)", "UNSUPPORTED_FEATURE"),
        ("INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1", "UNSUPPORTED_FEATURE"),
        ("INSERT OVERWRITE t SELECT 1 / (id - id), p, q FROM t", "DIVIDE_BY_ZERO"),
        ("TRUNCATE TABLE t PARTITION (p = 'a')", "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED"),
        ("TRUNCATE TABLE nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("TRUNCATE t", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_is_wrong_leaves_the_table_as_it_was(parted: Session, statement: str, condition: str) -> None:
    before = count_versions(parted), sorted(folder_of(parted).rglob("*"))
    assert refused(parted, statement).condition == condition
    assert (count_versions(parted), sorted(folder_of(parted).rglob("*"))) == before
    assert sorted(rows_here_and_there(parted), key=repr) == sorted(_ALL, key=repr)


def test_append_only_tables_keep_their_rows(session: Session) -> None:
    session.run("CREATE TABLE t (id INT) TBLPROPERTIES ('delta.appendOnly' = 'true')")
    for statement in ("TRUNCATE TABLE t", "INSERT OVERWRITE t VALUES (1)"):
        assert refused(session, statement).condition == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("INSERT OVERWRITE t VALUES (9, 'a', 1), (8, NULL, 2)", [(2, "b", 2), (3, "a", 2), (8, None, 2), (9, "a", 1)]),
        ("INSERT OVERWRITE t VALUES (9, '', 2)", [(1, "a", 1), (2, "b", 2), (3, "a", 2), (9, None, 2)]),
        ("INSERT OVERWRITE t VALUES (9, 'new', 2)", [*_ALL, (9, "new", 2)]),
        (
            "INSERT OVERWRITE t PARTITION (p = 'a', q) SELECT 9, 2",
            [(1, "a", 1), (2, "b", 2), (4, None, 2), (9, "a", 2)],
        ),
        (
            "INSERT OVERWRITE t PARTITION (p = 'b', q = 2) SELECT 9",
            [(1, "a", 1), (3, "a", 2), (4, None, 2), (9, "b", 2)],
        ),
        (
            "INSERT OVERWRITE t SELECT id + 10, p, q FROM t WHERE p = 'b'",
            [(1, "a", 1), (3, "a", 2), (4, None, 2), (12, "b", 2)],
        ),
    ],
)
def test_only_partitions_that_get_rows_are_replaced(
    parted: Session, statement: str, rows: list[tuple[Any, ...]]
) -> None:
    parted.run("SET spark.sql.sources.partitionOverwriteMode = DYNAMIC")
    before = count_versions(parted)
    parted.run(statement)
    assert sorted(rows_here_and_there(parted), key=repr) == sorted(rows, key=repr)
    assert count_versions(parted) == before + 1
    info = newest_info(parted)
    told = {"mode": "Overwrite", "partitionBy": "[]", "isDynamicPartitionOverwrite": True}
    assert (info["operation"], info["operationParameters"]) == ("WRITE", told)


@pytest.mark.parametrize(
    ("where", "left"),
    [("t", "id, p, q"), ("t PARTITION (p = 'a', q)", "id, q"), ("t PARTITION (p = 'a', q = 1)", "id")],
)
def test_no_rows_replace_nothing(parted: Session, where: str, left: str) -> None:
    parted.run("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    before = count_versions(parted)
    assert parted.rows(f"INSERT OVERWRITE {where} SELECT {left} FROM t WHERE false") == [(0, 0)]
    assert (count_versions(parted), parted.rows("SELECT count(*) FROM t")) == (before, [(4,)])


def test_tables_without_partitions_are_replaced_as_a_whole(session: Session) -> None:
    session.run("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    session.run("CREATE TABLE t (id INT)")
    session.run("INSERT INTO t VALUES (1)")
    session.run("INSERT OVERWRITE t VALUES (2)")
    assert rows_here_and_there(session) == [(2,)]


@pytest.mark.parametrize(
    ("column", "stored", "given", "left"),
    [
        ("STRING", "('1'), ('01'), ('1.0'), ('x')", "1", ["01", "1", "1.0", "x"]),
        ("STRING", "('7'), ('007')", "007", ["007", "7"]),
        ("STRING", "('2020-01-01'), ('2020-1-1')", "DATE'2020-01-01'", ["2020-01-01", "2020-1-1"]),
        ("STRING", "('true'), ('TRUE'), ('x')", "true", ["TRUE", "true", "x"]),
        ("CHAR(3)", "('1'), ('01')", "1", ["01 ", "1  "]),
        ("BOOLEAN", "(true), (false)", "'TRUE'", [False, True]),
        ("BOOLEAN", "(true), (false)", "1", [False, True]),
        ("DECIMAL(5,2)", "(4.50), (4.51)", "'4.5'", [Decimal("4.50"), Decimal("4.51")]),
        ("DECIMAL(5,2)", "(-4.50), (4.50)", "-4.5", [Decimal("-4.50"), Decimal("4.50")]),
        ("DOUBLE", "(4.5), (4)", "'4.50'", [4.0, 4.5]),
        ("FLOAT", "(1.1), (4)", "1.1", [1.100000023841858, 4.0]),
        ("FLOAT", "(1.1), (4)", "'1.10'", [1.100000023841858, 4.0]),
        ("BINARY", "('abc'), ('d')", "'abc'", [b"abc", b"d"]),
        ("INT", "(1), (2)", "' 01 '", [1, 2]),
    ],
)
def test_a_partition_is_the_one_that_its_rows_are_stored_in(
    session: Session, column: str, stored: str, given: str, left: list[Any]
) -> None:
    """Others whose texts mean the same number or day stay, as with Delta on Spark; each value is one of its text."""
    session.run(f"CREATE TABLE t (id INT, p {column}) PARTITIONED BY (p)")
    session.run(f"INSERT INTO t SELECT 0, p FROM VALUES {stored} AS v(p)")
    assert session.rows(f"INSERT OVERWRITE t PARTITION (p = {given}) VALUES (9)") == [(1, 1)]
    assert session.rows("SELECT p FROM t ORDER BY p") == [(p,) for p in left]
    assert session.rows("SELECT count(*) FROM t WHERE id = 9") == [(1,)]
    session.run(f"INSERT INTO t PARTITION (p = {given}) VALUES (9)")
    assert session.rows("SELECT count(*), count(DISTINCT p) FROM t WHERE id = 9") == [(2, 1)]


@pytest.mark.parametrize(
    ("column", "given", "condition"),
    [
        ("BOOLEAN", "'maybe'", "CAST_INVALID_INPUT"),
        ("DATE", "'nope'", "CAST_INVALID_INPUT"),
        ("INT", "'4.7'", "CAST_INVALID_INPUT"),
        ("INT", "4.7", "CAST_INVALID_INPUT"),
        ("SMALLINT", "40000", "CAST_INVALID_INPUT"),
        ("TIMESTAMP", "1", "CAST_INVALID_INPUT"),
        ("DECIMAL(5,2)", "12345.678", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
        ("STRING", "x", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),
    ],
)
def test_what_is_no_partition(session: Session, column: str, given: str, condition: str) -> None:
    session.run(f"CREATE TABLE t (id INT, p {column}) PARTITIONED BY (p)")
    assert refused(session, f"INSERT INTO t PARTITION (p = {given}) VALUES (9)").condition == condition
    assert session.rows("SELECT * FROM t") == []
