"""Texts for Spark as pairs: names of tables and functions, heads, places and options of new tables; positions go back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.catalog.base import Draft
from gateway.errors import UnsupportedError, UserError
from gateway.sql.read.made_view import EVOLUTION, TYPE_EVOLUTION, clauses, function_of, view_of
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.made_table import table_format
from gateway.sql.spark.respell import Head, Naming, Respelt, respell

_SCHEMAS = {("main", "default"), ("main", "shop"), ("samples", "tpch")}


def naming(pins: bool = True) -> Naming:
    """Names under ``main.default``; each table has the version 3."""
    return Naming(
        "main",
        "default",
        lambda catalog, schema: (catalog.lower(), schema.lower()) in _SCHEMAS,
        lambda path: path,
        lambda catalog, schema, table: Draft(f"/wh/{schema}/{table}"),
        lambda catalog, schema, table: 3,
        pins=pins,
    )


def existing(is_function: bool, catalog: str, schema: str, name: str) -> bool:
    """The functions f and g, the tables t and u of ``main.default``."""
    return (catalog, schema) == ("main", "default") and name.lower() in (("f", "g") if is_function else ("t", "u"))


def respelt(text: str, head: Head | None = None, pins: bool = True) -> Respelt:
    """The text for Spark."""
    return respell(read_statement(text), naming(pins), {}, head)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT f(1), abs(2)", "SELECT f(1), abs(2)"),
        ("SELECT shop.f(1)", "SELECT `shop`.f(1)"),
        ("SELECT main.shop.f (1)", "SELECT `shop`.f (1)"),
        ("SELECT samples.tpch.f(x) FROM t", "SELECT `__samples__tpch`.f(x) FROM t"),
        ("SELECT * FROM main.shop.f(1)", "SELECT * FROM `shop`.f(1)"),
        ("SELECT nope.f(1)", "SELECT nope.f(1)"),
        ("CREATE TABLE t (a INT) USING csv", "CREATE TABLE t (a INT) USING csv LOCATION 'file:/wh/default/t'"),
        (
            "CREATE TABLE shop.t USING PARQUET AS SELECT 1 AS a",
            "CREATE TABLE shop.t USING PARQUET LOCATION 'file:/wh/shop/t' AS SELECT 1 AS a",
        ),
        (
            "CREATE TABLE t (a INT) USING csv OPTIONS (header 'true', 'sep' = ';', quoteAll true) COMMENT 'x'",
            "CREATE TABLE t (a INT) USING csv LOCATION 'file:/wh/default/t' OPTIONS (header 'true', 'sep' = ';', "
            "quoteAll true) COMMENT 'x'",
        ),
        ("CREATE TABLE t (a INT)", "CREATE TABLE t (a INT) USING delta LOCATION 'file:/wh/default/t'"),
    ],
)
def test_pairs(text: str, expected: str) -> None:
    assert respelt(text).text == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE TABLE t (a INT) USING xml", "format xml"),
        ("CREATE TABLE t (a INT) USING jdbc OPTIONS (url 'x')", "format jdbc"),
        ("CREATE TABLE t USING csv OPTIONS (path '/etc')", "option path"),
        ("CREATE TABLE t USING csv OPTIONS ('path' = '/etc')", "option path"),
        ("CREATE TABLE t USING csv OPTIONS (`path` '/etc')", "option path"),
        ("REPLACE TABLE t (a INT) USING delta OPTIONS (path '/etc')", "option path"),
        ("REPLACE TABLE t (a INT) USING jdbc OPTIONS (url 'x')", "format jdbc"),
        ("CREATE TABLE t USING csv OPTIONS (header 'true', PATH='/etc')", "option PATH"),
        ("CREATE TABLE t USING avro", "format avro"),
        ("CREATE TABLE t USING csv OPTIONS (a.path = 'x')", "option a.path"),
        ("CREATE TABLE t (a INT) USING csv LOCATION '/tmp'", "LOCATION"),
        ("ALTER TABLE t SET SERDEPROPERTIES ('path' = '/etc')", "SERDEPROPERTIES"),
        ("ALTER TABLE t SET LOCATION '/etc'", "LOCATION"),
    ],
)
def test_places_and_sources_are_refused(text: str, words: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        respelt(text)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (a INT) USING Csv", "CSV"),
        ("CREATE TABLE IF NOT EXISTS a.t PARTITIONED BY (x) USING orc AS SELECT 1", "ORC"),
        ("CREATE TABLE t (a INT) USING delta", None),
        ("CREATE TABLE t (a INT)", None),
        ("CREATE TABLE t AS SELECT * FROM a JOIN b USING (csv)", None),
        ("CREATE VIEW v AS SELECT 1", None),
        ("SELECT 1", None),
    ],
)
def test_formats(text: str, expected: str | None) -> None:
    assert table_format(read_statement(text)) == expected


def test_calls_are_found() -> None:
    found = respelt("SELECT f(1), shop.g (2), main.shop.H(a.b(3)) FROM i(1)").calls
    assert [(c.schema, c.function) for c in found if c.function != "b"] == [
        ("default", "f"),
        ("shop", "g"),
        ("shop", "H"),
        ("default", "i"),
    ]
    described = respelt("DESCRIBE FUNCTION EXTENDED main.shop.f")
    assert described.text == "DESCRIBE FUNCTION EXTENDED spark_catalog.`shop`.f"
    assert ("shop", "f") in [(c.schema, c.function) for c in described.calls]


def test_a_text_that_is_kept_names_no_version() -> None:
    text = "SELECT * FROM t a JOIN t b ON a.id = b.id"
    assert respelt(text).text.count("VERSION AS OF 3") == 2
    assert respelt(text, pins=False).text == text


def test_a_head_takes_the_place_of_the_beginning() -> None:
    text = "CREATE VIEW shop.v (a, t) AS SELECT id, main.shop.t.x FROM main.shop.t"
    view = view_of(read_statement(text))
    assert view is not None
    made = respelt(text, Head(view.start, "CREATE OR REPLACE VIEW x AS "))
    assert made.text == ("CREATE OR REPLACE VIEW x AS SELECT id, spark_catalog.`shop`.t.x FROM spark_catalog.`shop`.t")
    assert {m.name for m in made.mentions} >= {("main", "shop", "t")}
    assert not any(m.table == "v" for m in made.mentions)
    at = made.text.index("FROM")
    assert text[made.original(at) :].startswith("FROM main.shop.t")


def test_views_by_their_tokens() -> None:
    text = (
        "CREATE VIEW IF NOT EXISTS a.`b c`.v (x COMMENT 'the x', y) COMMENT 'both' "
        "TBLPROPERTIES ('k' = 'v', a.b = 1, c TRUE) WITH SCHEMA COMPENSATION AS SELECT 1, 2 ;"
    )
    view = view_of(read_statement(text))
    assert view is not None
    assert (view.name, view.temporary, view.if_not_exists, view.replaces) == (("a", "b c", "v"), False, True, False)
    assert view.columns == (("x", "the x"), ("y", None))
    assert (view.comment, view.query, text[view.start :][:6]) == ("both", "SELECT 1, 2", "SELECT")
    assert view.properties == (("k", "v"), ("a.b", "1"), ("c", "true"))
    altered = view_of(read_statement("ALTER VIEW a.v AS SELECT 3"))
    assert altered is not None
    assert (altered.name, altered.alters, altered.replaces, altered.query) == (("a", "v"), True, True, "SELECT 3")
    temporary = view_of(read_statement("CREATE OR REPLACE TEMP VIEW v AS SELECT 1"))
    assert temporary is not None
    assert (temporary.temporary, temporary.replaces) == (True, True)
    for mode in (TYPE_EVOLUTION, EVOLUTION):
        evolving = view_of(read_statement(f"CREATE VIEW v WITH SCHEMA {mode} DEFAULT COLLATION `unicode` AS SELECT 1"))
        assert evolving is not None
        assert (evolving.collation, evolving.mode, evolving.query) == ("unicode", mode, "SELECT 1")
    assert clauses("unicode", EVOLUTION) == "DEFAULT COLLATION `unicode` WITH SCHEMA EVOLUTION "
    assert clauses("", "") == ""
    assert clauses("a` AS SELECT 1 --", "") == "DEFAULT COLLATION `a`` AS SELECT 1 --` "
    for twice in ("COMMENT 'a' COMMENT 'b'", "DEFAULT COLLATION a DEFAULT COLLATION b", "WITH SCHEMA EVOLUTION " * 2):
        with pytest.raises(UserError, match="Found duplicate clauses"):
            view_of(read_statement(f"CREATE VIEW v {twice} AS SELECT 1"))
    assert view_of(read_statement("SELECT 1")) is None
    for refused in (
        "ALTER VIEW v RENAME TO w",
        "CREATE VIEW v WITH SCHEMA BINDING AS SELECT 1",
        "CREATE VIEW v DEFAULT COLLATION AS SELECT 1",
        "CREATE TEMPORARY VIEW v WITH SCHEMA EVOLUTION AS SELECT 1",
        "CREATE TEMPORARY VIEW v (a COMMENT 'x') AS SELECT 1",
        "CREATE VIEW v USING csv",
    ):
        with pytest.raises(UnsupportedError):
            view_of(read_statement(refused))


def test_functions_by_their_tokens() -> None:
    function = function_of(read_statement("CREATE OR REPLACE FUNCTION a.f(x INT) RETURNS INT RETURN x + 1;"))
    assert function is not None
    assert (function.name, function.replaces, function.if_not_exists) == (("a", "f"), True, False)
    assert function.text == "(x INT) RETURNS INT RETURN x + 1"
    second = function_of(read_statement("CREATE FUNCTION IF NOT EXISTS f() RETURNS TABLE (a INT) RETURN SELECT 1"))
    assert second is not None
    assert (second.name, second.if_not_exists) == (("f",), True)
    assert function_of(read_statement("CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1")) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT f(1) + abs(g (2))", "SELECT `default`.f(1) + abs(`default`.g (2))"),
        ("SELECT t.id FROM t JOIN U ON t.id = u.id", "SELECT t.id FROM {}.t JOIN {}.U ON t.id = u.id"),
        ("SELECT * FROM f(1), nope", "SELECT * FROM `default`.f(1), nope"),
        ("WITH t AS (SELECT 1) SELECT * FROM t, u", "WITH t AS (SELECT 1) SELECT * FROM t, {}.u"),
        ("SELECT * FROM main.shop.t", "SELECT * FROM spark_catalog.`shop`.t"),
    ],
)
def test_names_are_spelt_out(text: str, expected: str) -> None:
    made = respell(read_statement(text), replace(naming(pins=False), spells_out=existing), {})
    assert made.text == expected.format(*["spark_catalog.`default`"] * 2)


def test_the_target_is_behind_if_exists() -> None:
    for text in ("CREATE TABLE IF NOT EXISTS t (a INT)", "CREATE TABLE IF NOT EXISTS t (a INT) USING csv"):
        assert [m.table for m in respelt(text).mentions if m.is_target] == ["t"]
