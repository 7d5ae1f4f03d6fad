"""Statements made to break the server: each gets an answer or a clear error, within seconds, and the next one works."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.attacker import answer, begin, cpu_seconds, outcome, resident_mib, until, workers
from tests.live.gateway import Server

S = "SELECT count(*) AS n FROM range(10) t(a) WHERE "


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.thrift_url).open() as one:
        yield one
        assert answer(one, "SELECT 41 + 1 AS x") == [{"x": 42}]


def nested(before: str, middle: str, after: str, count: int) -> str:
    return f"SELECT {before * count}{middle}{after * count} AS s FROM range(3) t(a)"


CHAIN = [f"c{i} AS (SELECT a + 1 AS a FROM c{i - 1})" for i in range(1, 300)]
ANSWERED: dict[str, tuple[str, object]] = {
    "8,000 AND": (S + " AND ".join(f"a > {-i}" for i in range(8000)), 9),
    "8,000 OR": (S + " OR ".join(f"a = {i}" for i in range(8000)), 10),
    "100,000 IN": (S + f"a IN ({','.join(map(str, range(100_000)))})", 10),
    "400 parentheses": ("SELECT " + "(" * 400 + "1" + ")" * 400, 1),
    "5,000 WHEN": (
        f"SELECT CASE {' '.join(f'WHEN a = {i} THEN {i}' for i in range(5000))} END FROM VALUES (7) t(a)",
        7,
    ),
    "300 CTEs in a row": (f"WITH c0 AS (SELECT 1 AS a), {', '.join(CHAIN)} SELECT a FROM c299", 300),
    "1,000 CTEs": (f"WITH {', '.join(f'c{i} AS (SELECT {i} AS a)' for i in range(1000))} SELECT a FROM c999", 999),
    "60 INT additions": ("SELECT " + "+".join(["a"] * 60) + " FROM VALUES (1) t(a)", 60),
    "300 UNION": ("SELECT count(*) FROM (" + " UNION ".join(f"SELECT {i} AS a" for i in range(300)) + ")", 300),
    "nested subqueries": ("SELECT count(*) FROM " + "(SELECT * FROM " * 200 + "range(3)" + ")" * 200, 3),
    "900,000 characters": (f"SELECT length('{'x' * 900_000}')", 900_000),
    "JSON of 50,000 levels": (
        "SELECT get_json_object(repeat('{\"a\":', 50000) || '1' || repeat('}', 50000), '$.a')",
        None,
    ),
    "NUL": ("SELECT length('a\0b')", 3),
    "LIKE backtracking": (f"SELECT repeat('a', 100000) LIKE '{'%a' * 1000}b'", False),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_large_statements_are_answered(client: Client, name: str) -> None:
    text, expected = ANSWERED[name]
    assert list(answer(client, text)[0].values()) == [expected]


def test_5000_columns(client: Client) -> None:
    row = answer(client, "SELECT " + ",".join(f"a + {i} AS c{i}" for i in range(5000)) + " FROM VALUES (1L) t(a)")[0]
    assert len(row) == 5000
    assert row["c4999"] == 5000


DIGITS = "9" * 100_000
REFUSED = {
    "10,000 parentheses": ("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, "STATEMENT_TOO_COMPLEX", "54001"),
    "100,000 open parentheses": ("SELECT " + "(" * 100_000, "STATEMENT_TOO_COMPLEX", "54001"),
    "100,000 +": ("SELECT " + "+".join(["1"] * 100_000), "STATEMENT_TOO_COMPLEX", "54001"),
    "5,000 UNION ALL": (" UNION ALL ".join(["SELECT 1"] * 5000), "STATEMENT_TOO_COMPLEX", "54001"),
    "5,000 NOT": ("SELECT " + "NOT " * 5000 + "true", "STATEMENT_TOO_COMPLEX", "54001"),
    "450 functions": (nested("upper(", "'a'", ")", 450), "STATEMENT_TOO_COMPLEX", "54001"),
    "450 CASE": (nested("CASE WHEN a = 1 THEN 1 ELSE ", "0", " END", 450), "STATEMENT_TOO_COMPLEX", "54001"),
    "100 arrays": (nested("array(", "1", ")", 100), "STATEMENT_TOO_COMPLEX", "54001"),
    "100 nested types": (f"SELECT cast(null AS {'array<' * 100}int{'>' * 100})", "STATEMENT_TOO_COMPLEX", "54001"),
    "17 MiB": (f"SELECT '{'x' * 17_000_000}'", "STATEMENT_TOO_LARGE", "54000"),
    "1,200,000 tokens": (f"SELECT {'1,' * 600_000}1", "STATEMENT_TOO_LARGE", "54000"),
    "1,200,000 open parentheses": (f"SELECT {'(' * 1_200_000}", "STATEMENT_TOO_LARGE", "54000"),
    "16,000,000 digits": (f"SELECT {'9' * 16_000_000}", "STATEMENT_TOO_COMPLEX", "54001"),
    "100,000 digits": (f"SELECT {DIGITS}", "STATEMENT_TOO_COMPLEX", "54001"),
    "100,000 digits of a limit": (f"SELECT 1 LIMIT {DIGITS}", "STATEMENT_TOO_COMPLEX", "54001"),
    "100,000 digits of a type": (f"SELECT cast(1 AS decimal({DIGITS}))", "STATEMENT_TOO_COMPLEX", "54001"),
    "cast of 100,000 digits": (f"SELECT cast('{DIGITS}' AS int)", "CAST_INVALID_INPUT", "22018"),
    "CUBE of 20": (
        f"SELECT 1 FROM range(1) GROUP BY CUBE({','.join(f'id+{i}' for i in range(20))})",
        "CUBE of more than 12 groups",
        "0A000",
    ),
    "PIVOT of 10,000": (
        f"SELECT * FROM range(9) PIVOT (sum(1) FOR id IN ({','.join(map(str, range(10_000)))}))",
        "UNSUPPORTED_FEATURE",
        "0A000",
    ),
    "stack of 2^31 rows": ("SELECT stack(2147483647, 1)", "STATEMENT_TOO_COMPLEX", "54001"),
    "10^9 elements": ("SELECT size(sequence(1, 1000000000))", "RESOURCE_EXHAUSTED", "53200"),
    "regex size": ("SELECT 'a' RLIKE 'a{1000}{1000}{1000}'", "INVALID_PARAMETER_VALUE", "22023"),
    "LIKE of 20,000 %": (f"SELECT s LIKE '{'%a' * 20_000}b' FROM VALUES ('a') t(s)", "STATEMENT_TOO_COMPLEX", "54001"),
    "constant LIKE of 20,000 %": (f"SELECT 'a' LIKE '{'%a' * 20_000}b'", "STATEMENT_TOO_COMPLEX", "54001"),
    "LIKE of 200,000 characters": (
        f"SELECT s LIKE '{'_' * 200_000}' FROM VALUES ('a') t(s)",
        "STATEMENT_TOO_COMPLEX",
        "54001",
    ),
    "syntax": ("SELECT 1\nFROM range(1)\nWHERE )", "PARSE_SYNTAX_ERROR", "42601"),
    "NUL in the text": ("SELECT \0 1", "PARSE_SYNTAX_ERROR", "42601"),
    "no statement": (" ; ", "PARSE_EMPTY_STATEMENT", "42617"),
    "missing table": ("SELECT * FROM samples.tpch.nations", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
    "missing column": ("SELECT n_nam FROM samples.tpch.nation", "UNRESOLVED_COLUMN", "42703"),
    "division": ("SELECT 1 / id FROM range(2)", "DIVIDE_BY_ZERO", "22012"),
    "cast": ("SELECT cast('abc' AS int)", "CAST_INVALID_INPUT", "22018"),
    "INT overflow": ("SELECT 2147483647 + a FROM VALUES (1) t(a)", "ARITHMETIC_OVERFLOW", "22003"),
    "BIGINT overflow": ("SELECT 9223372036854775807 + id FROM range(2)", "ARITHMETIC_OVERFLOW", "22003"),
    "sum overflow": ("SELECT sum(9223372036854775807) FROM range(2)", "ARITHMETIC_OVERFLOW", "22003"),
}


@pytest.mark.parametrize("comment", ["-- x\r", "-- x\\\r\n", "/* /*+ */", "/*/*+*/", "-- \\\n x\r"])
def test_comments_hide_no_more_than_they_hide_from_spark(client: Client, comment: str) -> None:
    assert answer(client, f"SELECT 1 AS a {comment}, 2 AS b") == [{"a": 1, "b": 2}]


def test_regular_expressions_that_no_automaton_holds_are_read_as_java_reads_them(client: Client) -> None:
    text = "SELECT s RLIKE '{0}b' AS x, regexp_count(s, '{0}b') AS n FROM VALUES ('aab') t(s)"
    assert answer(client, text.format("a.*" * 20_000)) == [{"x": False, "n": 0}]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_a_clear_error(client: Client, name: str) -> None:
    text, condition, sqlstate = REFUSED[name]
    with pytest.raises(RemoteError) as caught:
        answer(client, text)
    assert condition in str(caught.value)[:200]
    assert caught.value.sqlstate == sqlstate
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize(
    ("query", "is_checked"),
    [
        ("SELECT sum(cast(2147483647 AS INT)) FROM range(5000000000)", True),
        ("SELECT sum(cast(id AS INT)) FROM (SELECT explode(sequence(1, 9)) AS id)", True),
        ("SELECT sum(cast(1 AS INT)) FROM range(5000000000)", False),
        ("SELECT sum(cast(id AS INT)) FROM range(1000)", False),
    ],
)
def test_sums_of_small_integers_are_checked_where_rows_are_many(client: Client, query: str, is_checked: bool) -> None:
    plan = answer(client, f"EXPLAIN {query}")[0]["plan"]
    assert ("integer_total" in plan) is is_checked


@pytest.mark.heavy
def test_sums_of_small_integers_do_not_wrap_around(client: Client) -> None:
    rows = "FROM (SELECT cast(2147483647 AS INT) AS a FROM range(4400000000))"
    error = outcome(client, f"SELECT sum(a) AS s {rows}")
    assert isinstance(error, RemoteError) and "ARITHMETIC_OVERFLOW" in str(error)
    assert answer(client, f"SELECT try_sum(a) AS s {rows}") == [{"s": None}]


@pytest.mark.heavy
def test_16_mib_of_a_seed(client: Client, server: Server) -> None:
    """As dbt sends them: a comment, an INSERT, many rows of texts; within seconds, and within the bounds of a worker."""
    row = ",\n  (%d, '{}', %d.25)".format("one of the texts that a seed of many rows has in its file, " * 3)
    rows = (16 << 20) // len(row % (10_000, 10_000)) - 100
    values = "".join(row % (i, i) for i in range(rows))[1:]
    client.execute("CREATE TABLE main.default.seed_16 (id INT, t STRING, d DOUBLE)").close()
    start = time.monotonic()
    text = (
        f'/* {{"app": "dbt", "node_id": "seed.shop.texts"}} */\n\n  insert into main.default.seed_16 values{values};\n'
    )
    assert 15 << 20 < len(text) < 16 << 20
    assert answer(client, text)[0]["num_inserted_rows"] == rows
    assert time.monotonic() - start < 300  # 5 s on a quiet machine
    assert max(map(resident_mib, [server.process.pid, *workers(server)])) < 2048
    counted = answer(client, "SELECT count(*) AS n, sum(d - id) AS d, max(length(t)) AS t FROM main.default.seed_16")
    assert counted == [
        {"n": rows, "d": rows * 0.25, "t": len("one of the texts that a seed of many rows has in its file, ") * 3}
    ]
    client.execute("DROP TABLE main.default.seed_16").close()


def test_the_position_is_right_in_a_long_line(client: Client) -> None:
    with pytest.raises(RemoteError, match=r"\(line 1, pos 5007\)"):
        answer(client, "SELECT " + "1," * 2500 + "nope FROM range(1)")


def test_the_nearest_names_are_told(client: Client) -> None:
    with pytest.raises(RemoteError, match="nation"):
        answer(client, "SELECT * FROM samples.tpch.nations")
    with pytest.raises(RemoteError, match="n_name"):
        answer(client, "SELECT n_nam FROM samples.tpch.nation")


def test_a_statement_timeout_names_itself_and_frees_the_slot(client: Client) -> None:
    started = time.monotonic()
    with pytest.raises(RemoteError, match="QUERY_EXECUTION_TIMEOUT_EXCEEDED") as caught:
        answer(
            client,
            "SELECT count(*) FROM range(4000000) a CROSS JOIN range(4000000) b WHERE a.id * b.id % 7 = 1",
            timeout_seconds=1,
        )
    assert caught.value.sqlstate == "57KD0"
    assert time.monotonic() - started < 30
    assert answer(client, "SELECT 1 AS x") == [{"x": 1}]


def test_a_view_cannot_be_made_of_itself(client: Client) -> None:
    answer(client, "CREATE OR REPLACE TEMPORARY VIEW attacked AS SELECT 1 AS x")
    second = outcome(client, "CREATE OR REPLACE TEMPORARY VIEW attacked AS SELECT x + 1 AS x FROM attacked")
    assert isinstance(second, RemoteError)
    assert outcome(client, "SELECT x FROM attacked") == [{"x": 1}]
    answer(client, "DROP VIEW attacked")


@pytest.mark.parametrize(
    "damage",
    ["half", "empty", "footer length", "all but the ends", "flipped", "missing", "folder"],
)
def test_a_damaged_data_file_is_named(client: Client, server: Server, damage: str) -> None:
    answer(client, "CREATE OR REPLACE TABLE attacked AS SELECT id, repeat('ab', 50) AS s FROM range(50000)")
    (path,) = (server.warehouse / "default" / "attacked").glob("*.parquet")
    good = path.read_bytes()
    spoil(path, good, damage)
    try:
        with pytest.raises(RemoteError) as caught:
            answer(client, "SELECT sum(id), max(s) FROM attacked")
        assert any(word in str(caught.value) for word in ("DELTA_FILE_NOT_FOUND", "FAILED_READ_FILE"))
        assert path.name in str(caught.value)
        assert "WORKER_LOST" not in str(caught.value)
    finally:
        if path.is_dir():
            path.rmdir()
        path.write_bytes(good)
    assert answer(client, "SELECT sum(id) AS x FROM attacked") == [{"x": 1249975000}]
    answer(client, "DROP TABLE attacked")


def spoil(path: Path, good: bytes, damage: str) -> None:
    """Damage the file; those of equal length pass the check of sizes."""
    if damage in ("missing", "folder"):
        path.unlink()
        if damage == "folder":
            path.mkdir()
        return
    flipped = bytearray(good)
    for i in range(50, len(good) - 2000, 97):
        flipped[i] ^= 0xFF
    path.write_bytes(
        {
            "half": good[: len(good) // 2],
            "empty": b"",
            "footer length": good[:-8] + b"\xff\xff\xff\x7fPAR1",
            "all but the ends": good[:4] + b"\x5a" * (len(good) - 12) + good[-8:],
            "flipped": bytes(flipped),
        }[damage]
    )


@pytest.mark.parametrize(
    "value",
    [
        "repeat('x', CAST(1000000000 + id AS INT))",
        "lpad('x', CAST(1000000000 + id AS INT), 'y')",
        # of a size that looks small in 32 bits
        "concat_ws(repeat('x', 1000000), array_repeat('a', CAST(100000 + id AS INT)))",
        "array_join(array_repeat('a', 42950), repeat('x', CAST(100000 + id AS INT)))",
    ],
)
def test_values_too_large_for_a_batch_are_told_as_such(client: Client, value: str) -> None:
    with pytest.raises(RemoteError, match="RESOURCE_EXHAUSTED") as caught:
        answer(client, f"SELECT sum(length({value})) FROM range(3)")
    assert caught.value.sqlstate == "53200"


@pytest.mark.parametrize("moved", ["+ INTERVAL '106751991' DAY", "- INTERVAL '106751991' DAY"])
def test_constants_moved_past_the_calendar_overflow(client: Client, moved: str) -> None:
    with pytest.raises(RemoteError, match="DATETIME_OVERFLOW"):
        answer(client, f"SELECT TIMESTAMP'{'9999' if moved[0] == '+' else '0001'}-12-31 00:00:00' {moved} AS t")


@pytest.mark.parametrize("log", [b"garbage", b"", b"\0" * 100, b'{"add": {"path": "../../../etc/passwd"'])
def test_a_damaged_log_is_named(client: Client, server: Server, log: bytes) -> None:
    answer(client, "CREATE OR REPLACE TABLE attacked_log AS SELECT 1 AS id")
    (path,) = (server.warehouse / "default" / "attacked_log" / "_delta_log").glob("*.json")
    good = path.read_bytes()
    path.write_bytes(log)
    try:
        with pytest.raises(RemoteError, match="DELTA_LOG_CORRUPT"):
            answer(client, "SELECT * FROM attacked_log")
    finally:
        path.write_bytes(good)
    assert answer(client, "SELECT * FROM attacked_log") == [{"id": 1}]
    answer(client, "DROP TABLE attacked_log")


SLOW_TO_PLAN = {
    "LATERAL VIEW by the hundred": "SELECT * FROM range(1)"
    + "".join(f" LATERAL VIEW explode(array(1)) e{i} AS x{i}" for i in range(500)),
    "wide PIVOT": "SELECT * FROM (SELECT id, id % 9 AS k FROM range(9)) PIVOT (sum(id) FOR k IN "
    f"({', '.join(map(str, range(4000)))}))",
}


@pytest.mark.parametrize("how", ["Cancel", "Close"])
@pytest.mark.parametrize("name", SLOW_TO_PLAN)
def test_a_statement_that_is_being_planned_for_long_ends_when_it_is_told_to(
    server: Server, client: Client, name: str, how: str
) -> None:
    operation = begin(client, SLOW_TO_PLAN[name])
    with Client(server.thrift_url).open() as other:
        running = "SELECT count(*) AS n FROM system.runtime.operations WHERE state = 'RUNNING' AND engine IS NULL"
        others = f"{running} AND statement_text NOT LIKE '%operations%'"
        until(lambda: answer(other, others) != [{"n": 0}], "the statement is being planned")
        busy = workers(server)
        request = getattr(ttypes, f"T{how}OperationReq")(operationHandle=operation)
        client.call(f"{how}Operation", request)
        assert answer(other, "SELECT 1 AS x") == [{"x": 1}]
        end = time.monotonic() + 10
        while _computing(busy):
            assert time.monotonic() < end


def _computing(processes: list[int]) -> bool:
    """Whether one of them uses more than a fifth of a core."""
    before = {pid: cpu_seconds(pid) for pid in processes}
    time.sleep(0.5)
    after = {pid: cpu_seconds(pid) for pid in processes}
    return any((after[pid] or 0) - (seconds or 0) > 0.1 for pid, seconds in before.items())
