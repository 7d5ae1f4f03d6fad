"""Text for Spark: pairs of what the user wrote and what Spark is sent."""

from collections.abc import Sequence

import pytest

from gateway.catalog.base import Draft
from gateway.errors import GatewayError, UnsupportedError, UserError
from gateway.runner.context import context_of
from gateway.sql.bind.parameters import bound_parameters
from gateway.sql.read.statement import read_statement
from gateway.sql.spark.respell import Naming, Respelt, database, names_back, respell
from gateway.worker_jobs import Parameter, SessionState

SCHEMAS = {"main": {"default", "sales", "über"}, "samples": {"nyctaxi", "tpch"}}
MAIN, SAMPLES = ("main", "default"), ("samples", "nyctaxi")


def has_schema(catalog: str, schema: str) -> bool:
    return schema.lower() in SCHEMAS.get(catalog.lower(), set())


def resolved(path: str) -> str:
    if not path.startswith("/allowed"):
        raise UserError("PATH_NOT_ALLOWED", f"The path {path} is not under a folder that this server may use.")
    return "/real" + path


def version(catalog: str, schema: str, table: str) -> int | None:
    return 7 if table == "moves" else None


def location(catalog: str, schema: str, table: str) -> Draft:
    return Draft("/wh/.drafts/d", "made_d") if table == "new" else Draft(f"/wh/{schema}/{table}")


def respelt(text: str, at: tuple[str, str] = MAIN, parameters: Sequence[Parameter] = ()) -> Respelt:
    statement = read_statement(text)
    naming = Naming(*at, has_schema, resolved, location, version)
    literals = bound_parameters(statement.markers, parameters, context_of(SessionState(*at, "somebody", {})))
    return respell(statement, naming, literals)


# Where the session is; the user's text; Spark's (None: the same).
PAIRS: list[tuple[tuple[str, str], str, str | None]] = [
    # names of one, two and three parts
    (MAIN, "SELECT * FROM t", None),
    (MAIN, "SELECT * FROM sales.t", None),
    (MAIN, "SELECT * FROM main.sales.t", "SELECT * FROM spark_catalog.`sales`.t"),
    (MAIN, "SELECT * FROM Main.SALES.T", "SELECT * FROM spark_catalog.`sales`.T"),
    (MAIN, "SELECT * FROM samples.nyctaxi.trips", "SELECT * FROM spark_catalog.`__samples__nyctaxi`.trips"),
    (MAIN, "SELECT * FROM `main`.`sales`.`a t`", "SELECT * FROM spark_catalog.`sales`.`a t`"),
    (MAIN, "SELECT * FROM main. sales /* c */ .t", "SELECT * FROM spark_catalog.`sales` /* c */ .t"),
    (MAIN, "TABLE main.sales.t", "TABLE spark_catalog.`sales`.t"),
    (MAIN, "FROM main.sales.t SELECT *", "FROM spark_catalog.`sales`.t SELECT *"),
    (SAMPLES, "SELECT * FROM trips", None),
    (SAMPLES, "SELECT * FROM tpch.x", "SELECT * FROM spark_catalog.`__samples__tpch`.x"),
    (SAMPLES, "SELECT * FROM main.default.t", "SELECT * FROM spark_catalog.`default`.t"),
    (
        SAMPLES,
        "SELECT * FROM a JOIN b ON a.x = b.x, tpch.c",
        "SELECT * FROM a JOIN b ON a.x = b.x, spark_catalog.`__samples__tpch`.c",
    ),
    (
        SAMPLES,
        "SELECT * FROM (tpch.a) JOIN ((tpch.b) JOIN tpch.c)",
        "SELECT * FROM (spark_catalog.`__samples__tpch`.a) JOIN ((spark_catalog.`__samples__tpch`.b) JOIN "
        "spark_catalog.`__samples__tpch`.c)",
    ),
    (
        MAIN,
        "SELECT * FROM a, main.sales.b, (SELECT 1) c, main.sales.d",
        "SELECT * FROM a, spark_catalog.`sales`.b, (SELECT 1) c, spark_catalog.`sales`.d",
    ),
    # qualifiers of columns
    (MAIN, "SELECT main.sales.t.a FROM main.sales.t", "SELECT spark_catalog.`sales`.t.a FROM spark_catalog.`sales`.t"),
    (MAIN, "SELECT sales.t.a, t.a FROM sales.t", None),
    (
        SAMPLES,
        "SELECT tpch.x.a, x.a.b FROM tpch.x",
        "SELECT spark_catalog.`__samples__tpch`.x.a, x.a.b FROM spark_catalog.`__samples__tpch`.x",
    ),
    # names that only look like schemas
    (MAIN, "SELECT sales.id FROM t AS sales JOIN sales.u ON sales.id = u.id", None),
    (SAMPLES, "SELECT tpch.a FROM (SELECT 1 AS a) AS tpch", None),
    (SAMPLES, "WITH tpch AS (SELECT 1 AS a) SELECT tpch.a FROM tpch", None),
    (MAIN, "SELECT sales.a.b FROM (SELECT named_struct('a', named_struct('b', 1)) AS a) AS sales", None),
    # FROM that opens no clause
    (SAMPLES, "SELECT extract(YEAR FROM t.d), trim(BOTH ' ' FROM t.s), substring(t.s FROM 2) FROM trips AS t", None),
    (SAMPLES, "SELECT t.a IS DISTINCT FROM t.b, t.a IS NOT DISTINCT FROM t.b FROM trips AS t", None),
    (SAMPLES, "SELECT * FROM trips AS t |> EXTEND t.a AS x, t.b AS y |> AGGREGATE sum(t.a), max(t.b)", None),
    (SAMPLES, "SELECT * FROM trips AS t WHERE t.a IN (t.b, t.c) ORDER BY t.a DESC, t.b", None),
    # what is no name at all
    (
        MAIN,
        "SELECT 'main.sales.t', \"main.sales.t\", r'\\', 'it''s' /* main.sales.t */ -- main.sales.t\nFROM main.sales.t",
        "SELECT 'main.sales.t', \"main.sales.t\", r'\\', 'it''s' /* main.sales.t */ -- main.sales.t\n"
        "FROM spark_catalog.`sales`.t",
    ),
    (MAIN, "SELECT /*+ BROADCAST(main.sales.t) */ 1.0e3, 1.d, t.1a FROM t", None),
    (MAIN, "SELECT * FROM range(3), t", None),
    # time travel
    (MAIN, "SELECT * FROM main.sales.t@v12 x", "SELECT * FROM spark_catalog.`sales`.t VERSION AS OF 12 x"),
    (
        MAIN,
        "SELECT * FROM t@20240131235959999",
        "SELECT * FROM t TIMESTAMP AS OF '2024-01-31 23:59:59.999'",
    ),
    (
        MAIN,
        "SELECT * FROM main.sales.t VERSION AS OF 3 AS x",
        "SELECT * FROM spark_catalog.`sales`.t VERSION AS OF 3 AS x",
    ),
    # one version for all mentions of a table
    (
        MAIN,
        "SELECT * FROM moves a JOIN main.default.moves b ON extract(YEAR FROM a.d) = b.y, t",
        "SELECT * FROM moves VERSION AS OF 7 a JOIN spark_catalog.`default`.moves VERSION AS OF 7 b "
        "ON extract(YEAR FROM a.d) = b.y, t",
    ),
    (MAIN, "SELECT moves.a FROM moves WHERE moves.a IN (SELECT a FROM moves VERSION AS OF 3)", None),
    (MAIN, "WITH moves AS (SELECT 1 AS a) SELECT * FROM moves JOIN moves AS m", None),
    (MAIN, "INSERT INTO moves SELECT * FROM moves", None),
    # paths
    (MAIN, "SELECT * FROM delta.`/allowed/t`", "SELECT * FROM delta.`/real/allowed/t`"),
    (MAIN, "SELECT * FROM (parquet.`/allowed/t`)", "SELECT * FROM (parquet.`/real/allowed/t`)"),
    (MAIN, "SELECT json.`a b` FROM t AS json", None),
    # writes
    (
        MAIN,
        "INSERT INTO main.sales.t (a, b) SELECT * FROM samples.tpch.x",
        "INSERT INTO spark_catalog.`sales`.t (a, b) SELECT * FROM spark_catalog.`__samples__tpch`.x",
    ),
    (
        MAIN,
        "MERGE INTO main.sales.t USING samples.tpch.x s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.a = s.a",
        "MERGE INTO spark_catalog.`sales`.t USING spark_catalog.`__samples__tpch`.x s ON t.id = s.id WHEN MATCHED THEN "
        "UPDATE SET t.a = s.a",
    ),
    (MAIN, "DELETE FROM main.sales.t WHERE t.a = 1", "DELETE FROM spark_catalog.`sales`.t WHERE t.a = 1"),
    (MAIN, "RESTORE main.sales.t TO VERSION AS OF 1", "RESTORE spark_catalog.`sales`.t TO VERSION AS OF 1"),
    # new tables
    (
        MAIN,
        "CREATE TABLE main.sales.n AS SELECT 1 AS a",
        "CREATE TABLE spark_catalog.`sales`.n USING delta LOCATION 'file:/wh/sales/n' AS SELECT 1 AS a",
    ),
    (
        MAIN,
        "CREATE TABLE IF NOT EXISTS n (a INT, b DECIMAL(3, 1)) PARTITIONED BY (b)",
        "CREATE TABLE IF NOT EXISTS n (a INT, b DECIMAL(3, 1)) USING delta LOCATION 'file:/wh/default/n' PARTITIONED BY (b)",
    ),
    (
        MAIN,
        "CREATE OR REPLACE TABLE n USING delta CLUSTER BY (a) AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE n USING delta LOCATION 'file:/wh/default/n' CLUSTER BY (a) AS SELECT 1 AS a",
    ),
    (
        MAIN,
        "CREATE OR REPLACE TABLE main.sales.new (a INT) USING csv",
        "CREATE OR REPLACE TABLE spark_catalog.`sales`.`made_d` (a INT) USING csv LOCATION 'file:/wh/.drafts/d'",
    ),
    (
        SAMPLES,
        "CREATE TABLE IF NOT EXISTS tpch.`new` AS SELECT * FROM new",
        "CREATE TABLE IF NOT EXISTS spark_catalog.`__samples__tpch`.`made_d` USING delta LOCATION 'file:/wh/.drafts/d' "
        "AS SELECT * FROM new",
    ),
    (MAIN, "CREATE TABLE n LIKE sales.t", "CREATE TABLE n LIKE sales.t LOCATION 'file:/wh/default/n'"),
    (
        MAIN,
        "CREATE TABLE n SHALLOW CLONE main.sales.t ;",
        "CREATE TABLE n SHALLOW CLONE spark_catalog.`sales`.t LOCATION 'file:/wh/default/n'",
    ),
    (
        MAIN,
        "BEGIN DECLARE x INT = 1; SET x = 2; INSERT INTO main.sales.t VALUES (x); END",
        "BEGIN DECLARE x INT = 1; SET x = 2; INSERT INTO spark_catalog.`sales`.t VALUES (x); END",
    ),
    # other scripts
    (MAIN, "SELECT 'é😀', 名.ü FROM main.über.名", "SELECT 'é😀', 名.ü FROM spark_catalog.`über`.名"),
]


@pytest.mark.parametrize(("at", "text", "expected"), PAIRS)
def test_names(at: tuple[str, str], text: str, expected: str | None) -> None:
    assert respelt(text, at).text == (text if expected is None else expected)


TARGETS = {
    "INSERT INTO main.sales.t TABLE samples.tpch.x": {"sales.t"},
    "INSERT OVERWRITE TABLE t SELECT * FROM u": {"default.t"},
    "INSERT INTO TABLE sales.t VALUES (1)": {"sales.t"},
    "FROM u INSERT INTO t SELECT *": {"default.t"},
    "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c": {"default.t"},
    "UPDATE samples.tpch.x SET a = 1": {"tpch.x"},
    "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u)": {"default.t"},
    "MERGE INTO t USING u ON 1 = 1 WHEN MATCHED THEN DELETE": {"default.t"},
    "TRUNCATE TABLE t": {"default.t"},
    "OPTIMIZE sales.t ZORDER BY (a)": {"sales.t"},
    "VACUUM t RETAIN 0 HOURS": {"default.t"},
    "RESTORE t TO VERSION AS OF 1": {"default.t"},
    "RESTORE TABLE t TO VERSION AS OF 1": {"default.t"},
    "ALTER TABLE t ADD COLUMN a INT": {"default.t"},
    "REORG TABLE t APPLY (PURGE)": {"default.t"},
    "CREATE TABLE IF NOT EXISTS t (a INT)": {"default.t"},
    "CREATE TABLE t SHALLOW CLONE u": {"default.t"},
}


@pytest.mark.parametrize(("text", "targets"), TARGETS.items())
def test_what_a_statement_writes_to(text: str, targets: set[str]) -> None:
    words = {"SET", "TABLE", "IF"}  # counted too many, which does no harm
    found = {f"{m.schema}.{m.table}" for m in respelt(text).mentions if m.is_target and m.table not in words}
    assert found == targets


def test_tables_are_mentioned_and_paths_are_told() -> None:
    found = respelt("SELECT main.sales.t.a FROM main.sales.t JOIN tpch ON true JOIN samples.tpch.x USING (a)")
    names = {m.name for m in found.mentions}
    assert {("main", "sales", "t"), ("main", "default", "tpch"), ("samples", "tpch", "x")} <= names
    assert not found.paths and respelt("SELECT * FROM delta.`/allowed/t`").paths == ("delta, /real/allowed/t",)


REFUSED = [
    "SELECT TRANSFORM(a) USING 'cat' AS (b) FROM t",
    "FROM t MAP a USING 'cat'",
    "SELECT TRANSFORM(a) USING ? FROM t",
    "SELECT reflect('java.lang.System', 'exit', 1)",
    "SELECT `Reflect` ('java.lang.System', 'exit', 1)",
    "SELECT system.builtin.java_method('java.lang.System', 'exit', 1)",
    "SELECT try_reflect('a', 'b')",
    "SELECT current_user(), current_schema",
    "SELECT * FROM t WITH (path = '/etc/passwd')",
    "SELECT * FROM t AS a JOIN sales.t WITH ('header' = 'true', `PATH` '/etc/passwd')",
    "SELECT * FROM t WITH ('header' 'true' 'x', 'paths' = '[]')",
    "SELECT * FROM t WITH ('header' = ?, 'pa' 'th' = ?)",
    "SELECT * FROM t WITH (? = '/etc/passwd')",
    "INSERT INTO t WITH ('p\\u0061th' = '/x') VALUES (1)",
    "BEGIN SELECT * FROM t WITH (path '/x'); END",
    "SELECT from_xml('<a/>', 'b INT', map('rowValidationXSDPath', '/x'))",
    "SELECT `from_xml`('<a/>', 'b INT', map('mode', 'FAILFAST', 'ROWVALIDATIONXSDPATH', '/x'))",
    "SELECT from_xml('<a/>', 'b INT', options => (builtin.`map`('rowValidation' || 'XSDPath', '/x')))",
    "SELECT from_xml('<a/>', 'b INT', map('rowValidation' 'XSDPath', '/x'))",
    "SELECT from_xml('<a/>', 'b INT', map('rowV\\u0061lidationXSDPath', '/x'))",
    "SELECT from_xml('<a/>', 'b INT', map(r'rowValidationXSDPath', '/x'))",
    "SELECT from_xml('<a/>', 'b INT', map(?, '/x'))",
    "SELECT schema_of_xml('<a/>', map(lower('rowValidationXSDPath'), '/x'))",
    "SELECT from_avro(a, '{}', map('avroSchemaUrl', 'file:/x')) FROM t",
    "SELECT from_protobuf(a, 'A', '/x') FROM t",
    "SELECT approx_count_distinct(a, 1e-7) FROM t",
    "SELECT approx_count_distinct(a, 0.05 * 0.000001) FROM t",
    "SELECT `approx_count_distinct`(a[b, 1], ?) FROM t",
    "SELECT approx_count_distinct(coalesce(a, b), relativeSD => 1e-7) FROM t",
    "SELECT count_min_sketch(a, 1e-10, 0.9, 1) FROM t",
    "SELECT count_min_sketch(a, 0.1, 0.9999999, 1) FROM t",
    "SELECT `count_min_sketch`(a, 0.1 * 0.0000001, 0.9, 1) FROM t",
    "SELECT * FROM range(0, 10, 1, 2147483647)",
    "SELECT * FROM `range`(0, array(1, 2)[0], 1, 1000 * 1000)",
    "WITH x AS (SELECT /*+ COALESCE(5), REPARTITION(1000000000) */ a FROM t) SELECT a FROM x",
    "SELECT /*+ REPARTITION(1) */ /*+ REPARTITION(1000000000) */ a FROM t",
    "SELECT /*+ BROADCAST(t) */ /* a */ /*+ COALESCE(2) *//*+ REBALANCE(1000000000, a) */ a FROM t",
    "SELECT\n/*+REBALANCE(\n500000,a)*/ a FROM t",
    "SELECT * FROM read_files('/x')",
    "SELECT * FROM IDENTIFIER('t')",
    "SELECT * FROM IDENTIFIER(:t)",
    "CREATE TABLE n (a INT) LOCATION '/x'",
    "CREATE TABLE n (a INT) LOCATION ?",
    "CREATE TABLE n (a INT) USING `jdbc`",
    "CREATE TABLE n (a INT) USING org.apache.spark.sql.jdbc",
    "CREATE TABLE delta.`/allowed/n` AS SELECT 1",
    "INSERT INTO delta.`/allowed/t` VALUES (1)",
    "UPDATE delta.`/allowed/t` SET a = 1",
    "MERGE INTO delta.`/allowed/t` t USING s ON true WHEN MATCHED THEN DELETE",
    "OPTIMIZE delta.`/allowed/t`",
    "OPTIMIZE '/allowed/t'",
    "VACUUM '/allowed/t'",
    "VACUUM ?",
    "DESCRIBE DETAIL '/etc'",
    'DESCRIBE HISTORY "/etc"',
    "INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT 1",
    "INSERT OVERWRITE LOCAL DIRECTORY USING csv OPTIONS (path '/tmp/x') SELECT 1",
    "ALTER TABLE t SET LOCATION '/x'",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.Runtime'",
    "CREATE OR REPLACE TEMPORARY FUNCTION f AS 'x.Y' USING JAR '/x.jar'",
    "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON AS $$ return x $$",
    "CREATE FUNCTION f(x STRING) RETURNS STRING LANGUAGE PYTHON AS $py$ x = 'it''s'; y = \"$$\" # don't $py$",
    "BEGIN EXECUTE IMMEDIATE 'SELECT 1'; END",
    "BEGIN l: LOOP ITERATE l; END LOOP; END",
    "BEGIN a: LOOP b: LOOP LEAVE b; END LOOP b; END LOOP a; END",
    "BEGIN a: LOOP b: BEGIN ITERATE a; END b; END LOOP; SELECT 1; END",
    "BEGIN USE sales; END",
    "BEGIN SET spark.sql.ansi.enabled = false; END",
    "BEGIN SET `spark.sql.ansi.enabled` = false; END",
    "BEGIN SET TIME ZONE 'UTC'; END",
    "BEGIN ADD JAR /x.jar; END",
    "BEGIN IF true THEN LOAD DATA INPATH '/x' INTO TABLE t; END IF; END",
    "BEGIN CONVERT TO DELTA parquet.`/x`; END",
    "BEGIN CREATE TABLE n (a INT) USING csv; END",
    "BEGIN REPLACE TABLE n AS SELECT 1; END",
    "BEGIN LIST JARS; END",
    "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION ADD JAR /x.jar; SELECT 1/0; END",
    "BEGIN DECLARE CONTINUE HANDLER FOR DIVIDE_BY_ZERO, SQLSTATE VALUE '22012' DROP TABLE t; SELECT 1/0; END",
    "BEGIN DECLARE EXIT HANDLER FOR SQLSTATE '22012', NOT FOUND, `a`.b USE sales; SELECT 1/0; END",
    "BEGIN BEGIN DECLARE EXIT HANDLER FOR NOT FOUND CREATE TABLE n (a INT) USING csv; SELECT 1/0; END; END",
]
# A condition may have the name of a refused command.
HANDLED = [
    "BEGIN DECLARE x INT; DECLARE EXIT HANDLER FOR SQLSTATE '22012' SET x = 1; SELECT 1/0; END",
    "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 1; END; SELECT 1/0; END",
    "BEGIN DECLARE CONTINUE HANDLER FOR use, add.drop INSERT INTO t VALUES (1); SELECT 1/0; END",
]


OPTIONS = [
    "SELECT * FROM t WITH (header = true, 'sep' ';', mergeSchema false)",
    "INSERT INTO t WITH ('mergeSchema' = 'true') VALUES (1)",
    "SELECT from_xml('<a/>', 'b INT', map('mode', 'FAILFAST', 'timestampFormat', 'dd/MM/yyyy')), map('p' || 'q', 'r')",
    "SELECT schema_of_xml('<a/>', map()), from_xml('<a/>', 'b INT')",
]


COUNTS = [
    "SELECT count_min_sketch(a, 0.01, 0.99, 1), approx_count_distinct(a, 0.05), approx_count_distinct(a) FROM t",
    "SELECT * FROM range(10) CROSS JOIN range(0, 10000000000) CROSS JOIN range(0, 10, 1, 200)",
    "SELECT /*+ REPARTITION(200, a), BROADCAST(t_20240101, 20240101t, `99999999`) */ a /* 99999999 */ FROM t",
    "SELECT /* 99999999 */ /*+ REPARTITION(200) */ /* 99999999 */ /*+ BROADCAST(t) */ a FROM t",
    "SELECT /* 99999999 */ a, range FROM t WHERE range > 99999999 AND a IN (range, 1, 2, 99999999)",
]


LOOPS = [
    "BEGIN DECLARE x = 1; l: LOOP SET x = x + 1; IF x > 9 THEN LEAVE l; END IF; END LOOP; END",
    "BEGIN l: LOOP SELECT 1; LEAVE l; END LOOP l; END",
    "BEGIN a: LOOP b: LOOP VALUES (1); LEAVE b; END LOOP b; LEAVE a; END LOOP a; END",
    "BEGIN DECLARE x = 1; WHILE x < 3 DO SET x = x + 1; END WHILE; END",
]


@pytest.mark.parametrize("text", [*COUNTS, *OPTIONS, *LOOPS, *HANDLED])
def test_what_may_reach_spark(text: str) -> None:
    respelt(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_must_not_reach_spark(text: str) -> None:
    parameter = Parameter(None, "STRING", "cat")
    with pytest.raises(UnsupportedError) as raised:
        respelt(text, parameters=[parameter])
    assert raised.value.span is not None


@pytest.mark.parametrize(
    "path",
    [
        "text.`/etc/passwd`",
        "(text.`/etc/passwd`)",
        "t JOIN (csv.`/etc/passwd`)",
        "t, (text.`file:/etc/passwd`)",
        "text.passwd",
        "delta.`/etc`",
    ],
)
def test_paths_outside_of_the_allowed_roots(path: str) -> None:
    with pytest.raises(UserError) as raised:
        respelt(f"SELECT * FROM {path}")
    assert raised.value.condition == "PATH_NOT_ALLOWED" and raised.value.span is not None


NOWHERE = [
    (MAIN, "nope.t"),
    (MAIN, "samples.nope.t"),
    (MAIN, "nope.sales.t"),
    (MAIN, "__samples__nyctaxi.trips"),
    (MAIN, "spark_catalog.default.t"),
    (MAIN, "main.sales.t.u"),
    (MAIN, "image.`/etc`"),
    (MAIN, "`org.apache.spark.sql.execution.datasources.text`.`/etc/passwd`"),
    (SAMPLES, "default.t"),
    (SAMPLES, "(default.t)"),
    (SAMPLES, "trips JOIN x ON true, default.t"),
]


@pytest.mark.parametrize(("at", "name"), NOWHERE)
def test_schemas_that_are_not_there_are_not_looked_up_among_sparks(at: tuple[str, str], name: str) -> None:
    with pytest.raises(UserError) as raised:
        respelt(f"SELECT * FROM {name}", at)
    assert raised.value.condition == "TABLE_OR_VIEW_NOT_FOUND" and raised.value.span is not None
    if "(" not in name and "JOIN" not in name:
        with pytest.raises(GatewayError):
            respelt(f"INSERT INTO {name} VALUES (1)", at)


def test_twelve_positional_parameters_keep_their_order() -> None:
    text = "SELECT " + ", ".join("?" * 12) + " -- ?\n, '?'"
    parameters = [Parameter(None, "INT", str(i)) for i in range(12)]
    expected = "SELECT " + ", ".join(map(str, range(12))) + " -- ?\n, '?'"
    assert respelt(text, parameters=parameters).text == expected


def test_twelve_named_parameters_in_any_case_and_more_than_once() -> None:
    names = [f"p{i}" for i in range(12)]
    text = "SELECT " + ", ".join(f":{n.upper()}" for n in reversed(names)) + ", :p3, a:p3 FROM main.sales.t"
    parameters = [Parameter(n, "STRING", n) for n in names]
    expected = ", ".join(f"'{n}'" for n in reversed(names))
    assert respelt(text, parameters=parameters).text == f"SELECT {expected}, 'p3', a:p3 FROM spark_catalog.`sales`.t"


def test_a_parameter_without_a_value_is_an_error_at_its_place() -> None:
    with pytest.raises(UserError) as raised:
        respelt("SELECT 1, :nope")
    assert raised.value.condition == "UNBOUND_SQL_PARAMETER" and raised.value.span is not None
    assert raised.value.span.start == 10


def test_positions_map_back_over_edits_and_any_script() -> None:
    text = "-- é😀\nSELECT :p, 名, nope\n  FROM main.sales.t, samples.tpch.x WHERE zz"
    found = respelt(text, parameters=[Parameter("p", "STRING", "a longer text")])
    for word in ("SELECT", "名", "nope", "FROM", "WHERE", "zz"):
        assert found.original(found.text.index(word)) == text.index(word), word
    start = found.text.index("spark_catalog")
    for inside in range(start, start + len("spark_catalog.`sales`")):  # all of a replaced name stands for its start
        assert found.original(inside) == text.index("main.sales")
    assert found.original(len(found.text)) == len(text)


def test_text_before_the_statement_is_left_out_but_counted() -> None:
    text = "/* c */ ; ;"
    with pytest.raises(UserError):
        respelt(text)
    text = "  /* c */ SELECT nope ; "
    found = respelt(text)
    assert found.text == "SELECT nope" and found.original(7) == text.index("nope")


def test_databases() -> None:
    assert database("main", "Sales") == "sales"
    assert database("Samples", "NYCTaxi") == "__samples__nyctaxi"


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("`spark_catalog`.`sales`.`t`", "`main`.`sales`.`t`"),
        ("spark_catalog.sales.t", "main.sales.t"),
        ("`spark_catalog`.`__samples__nyctaxi`.`trips`", "`samples`.`nyctaxi`.`trips`"),
        ("spark_catalog.__samples__nyctaxi.trips", "samples.nyctaxi.trips"),
        ("`__samples__nyctaxi`.`trips`", "`samples`.`nyctaxi`.`trips`"),
        ("__samples__nyctaxi.trips", "samples.nyctaxi.trips"),
        ("spark_catalog.`__samples__nyctaxi`.trips", "samples.`nyctaxi`.trips"),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_names_back(told: str, meant: str) -> None:
    assert names_back(told, ["main", "samples"]) == meant
