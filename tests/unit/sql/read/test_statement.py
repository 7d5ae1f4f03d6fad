"""Texts are split into tokens, markers and statements as by Spark's lexer, within limits, each with its kind."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from gateway.errors import GatewayError, ResourceError, UnsupportedError, UserError
from gateway.sql.read.cursor import Limits
from gateway.sql.read.statement import Kind, read_statement, statement_spans, verb_of
from gateway.sql.read.tokens import scan


def pieces(text: str) -> list[str]:
    """The statements of a text, as they stand in it."""
    return [text[span.start : span.stop] for span in statement_spans(text)]


@pytest.mark.parametrize(
    ("text", "kind", "keywords"),
    [
        ("select 1", Kind.QUERY, ("SELECT",)),
        ('-- c\n/* {"app": "dbt"} */ ((select 1)) ;;', Kind.QUERY, ()),
        ("WITH a AS (SELECT 1) SELECT * FROM a", Kind.QUERY, ("WITH", "A", "AS")),
        ("WITH a (x) AS (SELECT 1), b AS (SELECT 2) INSERT INTO t SELECT 1", Kind.DML, ("WITH", "A")),
        ("FROM t SELECT a", Kind.QUERY, ("FROM", "T", "SELECT")),
        ("FROM t INSERT INTO u SELECT a", Kind.DML, ("FROM", "T", "INSERT")),
        ("WITH s AS (SELECT 1) FROM s INSERT INTO a SELECT * INSERT INTO b SELECT *", Kind.DML, ("WITH", "S", "AS")),
        ("WITH s AS (SELECT 1) FROM s SELECT *", Kind.QUERY, ("WITH", "S", "AS")),
        ("FROM (SELECT insert FROM t) SELECT a", Kind.QUERY, ("FROM",)),
        ("VALUES 1", Kind.QUERY, ("VALUES",)),
        ("TABLE t", Kind.QUERY, ("TABLE", "T")),
        ("insert into t values (1)", Kind.DML, ("INSERT", "INTO", "T")),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE", Kind.DML, ("MERGE", "INTO", "T")),
        ("create or replace temporary view v as select 1", Kind.DDL, ("CREATE", "OR", "REPLACE")),
        ("OPTIMIZE t", Kind.DDL, ("OPTIMIZE", "T")),
        ("SHOW TABLES", Kind.METADATA, ("SHOW", "TABLES")),
        ("desc t", Kind.METADATA, ("DESC", "T")),
        ("SET a=it's", Kind.SESSION, ("SET", "A")),
        ("EXECUTE IMMEDIATE 'SELECT 1'", Kind.SESSION, ("EXECUTE", "IMMEDIATE")),
        ("BEGIN SELECT 1; SELECT 2; END", Kind.SCRIPT, ("BEGIN", "SELECT")),
        ("BEGIN TRANSACTION", Kind.SESSION, ("BEGIN", "TRANSACTION")),
        ("GRANT SELECT ON t TO u", Kind.RIGHTS, ("GRANT", "SELECT", "ON")),
    ],
)
def test_kind_comes_from_the_first_words(text: str, kind: Kind, keywords: tuple[str, ...]) -> None:
    statement = read_statement(text)
    assert statement.kind is kind
    assert statement.keywords == keywords


@pytest.mark.parametrize(
    ("text", "condition", "start"),
    [
        ("", "PARSE_EMPTY_STATEMENT", None),
        (" -- nothing\n", "PARSE_EMPTY_STATEMENT", None),
        (" ;; ", "PARSE_EMPTY_STATEMENT", 0),
        ("SELECT 1; SELECT 2", "PARSE_SYNTAX_ERROR", 10),
        ("; SELECT 2", "PARSE_SYNTAX_ERROR", 0),
        ("FROBNICATE t", "PARSE_SYNTAX_ERROR", 0),
        ("(INSERT INTO t VALUES (1))", "PARSE_SYNTAX_ERROR", 1),
        ("SELECT 'abc", "PARSE_SYNTAX_ERROR", 7),
        ("SELECT `abc", "PARSE_SYNTAX_ERROR", 7),
        ("SELECT 'abc\\'", "PARSE_SYNTAX_ERROR", 7),
        ("SELECT 1 /* a /* b */", "UNCLOSED_BRACKETED_COMMENT", 9),
        ("SELECT a\x00b", "PARSE_SYNTAX_ERROR", 7),
        ("SELECT €", "PARSE_SYNTAX_ERROR", 7),
        ("SELECT 1 /*+ hint */", "PARSE_SYNTAX_ERROR", 9),
        ("SET a=b; SELECT 1", "PARSE_SYNTAX_ERROR", 9),
    ],
)
def test_what_is_no_statement_is_refused_with_its_place(text: str, condition: str, start: int | None) -> None:
    with pytest.raises(UserError) as caught:
        read_statement(text)
    assert caught.value.condition == condition
    assert (caught.value.span.start if caught.value.span else None) == start


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("RESTORE main.s.t TO VERSION AS OF 1", "RESTORE"),
        ("OPTIMIZE t", "OPTIMIZE"),
        ("CREATE OR REPLACE TABLE t (a INT)", "CREATE_TABLE"),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", "CREATE_VIEW"),
        ("DECLARE VARIABLE v INT", "DECLARE_VARIABLE"),
        ("DESCRIBE HISTORY t", "DESCRIBE_HISTORY"),
    ],
)
def test_verb(text: str, verb: str) -> None:
    assert verb_of(read_statement(text)) == verb


def test_message_has_line_and_column() -> None:
    with pytest.raises(UserError) as caught:
        read_statement("SELECT 1;\n  DROP TABLE t")
    assert "Syntax error at or near 'DROP'" in caught.value.message
    assert "(line 2, pos 2)" in caught.value.text("SELECT 1;\n  DROP TABLE t")
    assert caught.value.sqlstate == "42601"


def test_limits_give_figures() -> None:
    with pytest.raises(ResourceError, match="101 characters, the limit is 100") as caught:
        read_statement("x" * 101, Limits(text=100))
    assert caught.value.condition == "STATEMENT_TOO_LARGE"
    with pytest.raises(ResourceError, match="more than 3 tokens"):
        read_statement("SELECT 1 + 2", Limits(tokens=3))
    with pytest.raises(ResourceError, match="deeper than 500 levels") as caught:
        read_statement("SELECT " + "(" * 10_000 + "1" + ")" * 10_000)
    assert caught.value.condition == "STATEMENT_TOO_COMPLEX"
    assert caught.value.span is not None and caught.value.span.start == 7 + 500
    read_statement("SELECT " + "(" * 500 + "1" + ")" * 500)


def test_a_text_in_dollar_quotes_is_one_token() -> None:
    body = "$py$ x = 'it''s' # don't; $$ $py$"
    text = f"CREATE FUNCTION f() AS {body}; SELECT 2"
    assert pieces(text) == [f"CREATE FUNCTION f() AS {body}", "SELECT 2"]
    for unclosed in ("SELECT $$ a", "SELECT $a$ b$", "SELECT $1$ 2 $1$", "SELECT a $"):
        assert "$" in scan(unclosed)[1], unclosed


def test_split_keeps_scripts_whole_and_offsets_true() -> None:
    text = "SELECT ';'; -- a;b\nSELECT 2;; BEGIN SELECT 3; END;"
    found = pieces(text)
    assert found == ["SELECT ';'", "SELECT 2", "BEGIN SELECT 3; END"]
    assert [read_statement(piece).kind for piece in found] == [Kind.QUERY, Kind.QUERY, Kind.SCRIPT]


def test_markers_in_order() -> None:
    statement = read_statement("SELECT ?, :a, a:b, x[:`c d`] FROM t WHERE d > :d AND e = ?")
    assert [m.name for m in statement.markers] == [None, "a", "c d", "d", None]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("'it''s'", ["it's"]),
        ('"a""b"', ['a"b']),
        ("'a''b\"\"c'", ['a\'b""c']),
        (r"'a\'b\n\\ \z \% \_'", ["a'b\n\\ z \\% \\_"]),
        (r"'\u0041\U0001F600\101'", ["A\U0001f600A"]),
        (r"r'\n' R" + '"\\"', ["\\n", "\\"]),
        ("`a``b`", ["a`b"]),
        ("1L 1.5BD .5 5. 1e3 1E-3d 1.e5 -2S", ["1L", "1.5BD", ".5", "5.", "1e3", "1E-3d", "1.e5", "-", "2S"]),
        ("1a 1e5x t.1a", ["1a", "1e5x", "t", ".", "1a"]),
        ("a>>b a<=>b", ["a", ">", ">", "b", "a", "<=>", "b"]),
        ("0x1F", ["0x1F"]),
        ("group /* x */ by", ["group", "by"]),
        ("a -- b \\\n c\nd", ["a", "d"]),
    ],
)
def test_tokens_follow_sparks_lexer(text: str, values: list[str]) -> None:
    tokens, words, error = scan(text)
    assert error is None
    assert [t.text for t in tokens[:-1]] == values
    assert words[-1] == ""


def _statements(shared: Path, name: str) -> list[dict[str, object]]:
    with gzip.open(shared / "conformance" / name, "rt") as lines:
        return [s for line in lines for s in json.loads(line).get("statements", [])]


@pytest.mark.parametrize("name", ["tpc.jsonl.gz", "spark_function_examples.jsonl.gz", "spark_golden_dev.jsonl.gz"])
def test_every_corpus_statement_has_the_right_kind(shared: Path, name: str) -> None:
    wrong: Counter[str] = Counter()
    for case in _statements(shared, name):
        if case["kind"] == "unparsed":
            continue
        text = str(case["sql"])
        try:
            kind = read_statement(text).kind
        except GatewayError as error:
            wrong[f"{error.condition}: {text[:80]}"] += 1
            continue
        if case["kind"] == "query" and kind not in (Kind.QUERY, Kind.METADATA):
            wrong[f"{kind}: {text[:80]}"] += 1
        if case["kind"] == "script" and kind is not Kind.SCRIPT:
            wrong[f"{kind}: {text[:80]}"] += 1
        if case["kind"] == "command" and kind is Kind.SCRIPT:
            wrong[f"{kind}: {text[:80]}"] += 1
    assert not wrong, wrong


def test_a_script_ends_with_its_own_end() -> None:
    script = (
        "BEGIN IF x THEN SELECT 1; END IF; CASE WHEN a THEN SELECT 1; END CASE; SELECT CASE WHEN b THEN 2 END; "
        "WHILE c DO SELECT 1; END WHILE; BEGIN SELECT 2; END; END"
    )
    text = f"{script}; SELECT 5; BEGIN SELECT 6; END"
    assert pieces(text) == [script, "SELECT 5", "BEGIN SELECT 6; END"]
    assert [read_statement(piece).kind for piece in pieces(text)] == [Kind.SCRIPT, Kind.QUERY, Kind.SCRIPT]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT 1 -- x\r, f", ["SELECT", "0", ",", "F"]),
        ("SELECT 1 -- x\\\r, f", ["SELECT", "0", ",", "F"]),
        ("SELECT 1 -- x\\\n, f\r, g", ["SELECT", "0", ",", "G"]),
        ("SELECT 1 -- x\u2028, f", ["SELECT", "0"]),
        (f"SELECT 1 -- {'x' * 1000}\r\n, f", ["SELECT", "0", ",", "F"]),
        ("SELECT 1 /* /*+ */ , f /* */ -- */", ["SELECT", "0", ",", "F"]),
        ("SELECT 1 /*/*+*/ , f", ["SELECT", "0", ",", "F"]),
        ("SELECT 1 /* /*/ , f /* */ */ */", ["SELECT", "0"]),
        ("SELECT 1 /**/ , f", ["SELECT", "0", ",", "F"]),
        ("SELECT /*+ BROADCAST(`a`, b) */ f", ["SELECT", "F"]),
    ],
)
def test_comments_end_where_they_end_for_spark(text: str, words: list[str]) -> None:
    assert scan(text)[1] == [*words, ""]


@pytest.mark.parametrize("hint", ['a("/*")', "a('*/ , ')", "a(`/*`)", "a(`*/ , `)", "a -- */", "a $$*/ , $$"])
def test_hints_that_may_end_elsewhere_for_spark_are_refused(hint: str) -> None:
    with pytest.raises(UnsupportedError, match="a hint with texts or comments"):
        scan(f"SELECT /*+ {hint} */ f -- */ 1")


@pytest.mark.parametrize("piece", ["--\r", "/* ", "-- \\\n"])
def test_many_comments_are_read_once(piece: str) -> None:
    begun = time.process_time()
    scan(f"SELECT 1 -- {'x' * 1_000_000}\r{piece * 300_000}{'*/' * 300_000}")
    assert time.process_time() - begun < 30  # hours, if each were looked for to the end
