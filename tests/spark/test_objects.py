"""Lasting views, SQL functions and tables of other formats over a gateway with a real Spark, before and after a restart.

Needs Java, pyspark and the Delta jars (GATEWAY_SPARK_JARS, else the cache folder); skipped otherwise.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.live.gateway import Server, connect_to, start_server
from tests.live.spark import jars, quick_flags

pytestmark = [pytest.mark.spark]


class Gateway:
    """A gateway with Spark that can be stopped and started again over the same warehouse."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._flags = ("--spark", "local[2]", "--spark-jars", str(jars()), *quick_flags(folder))
        self.server: Server = start_server(folder, *self._flags)

    def restart(self) -> None:
        """Another process."""
        assert self.server.stop() == 0
        self.server = start_server(self._folder, *self._flags)


class Client:
    """A session; `rows` sorts nothing."""

    def __init__(self, gateway: Gateway, schema: str) -> None:
        self.connection = connect_to(gateway.server, schema=schema)
        self.cursor = self.connection.cursor()

    def run(self, *texts: str) -> None:
        """Statements without rows, or whose rows do not matter."""
        for text in texts:
            self.cursor.execute(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        self.cursor.execute(text)
        return [tuple(row) for row in self.cursor.fetchall()]

    def refused(self, text: str) -> str:
        """The text of a statement's error."""
        from databricks.sql.exc import Error

        with pytest.raises(Error) as caught:
            self.cursor.execute(text)
        return str(caught.value)

    def engine(self, query: str) -> str:
        """Which engine a query would run on."""
        return str(self.rows(f"EXPLAIN {query}")[0][0]).partition("\n")[0].removeprefix("Engine: ")


@pytest.fixture(scope="module")
def gateway(spark_here: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The one gateway of this module."""
    one = Gateway(tmp_path_factory.mktemp("objects"))
    yield one
    assert one.server.stop() == 0


@pytest.fixture
def client(gateway: Gateway, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A session in a new schema, named after the test."""
    schema = request.node.name.removeprefix("test_")[:40]
    first = Client(gateway, "default")
    first.run(f"CREATE SCHEMA {schema}")
    first.connection.close()
    one = Client(gateway, schema)
    yield one
    one.connection.close()


def _schema(gateway: Gateway, name: str, *texts: str) -> str:
    """A new schema with what the statements make."""
    first = Client(gateway, "default")
    first.run(f"CREATE SCHEMA {name}", f"USE {name}", *texts)
    first.connection.close()
    return name


@pytest.fixture(scope="module")
def formats(gateway: Gateway) -> str:
    """A schema with tables of other formats."""
    return _schema(
        gateway,
        "formats",
        "CREATE TABLE p (a INT, b CHAR(4), c DECIMAL(9,2) COMMENT 'it''s', d DATE) USING parquet PARTITIONED BY (d) "
        "COMMENT 'tab' TBLPROPERTIES ('k' = 'v')",
        "CREATE TABLE s USING csv OPTIONS (header 'true', sep = ';') AS SELECT 1 AS a, 'x;y' AS b",
        "CREATE TABLE j USING json AS SELECT named_struct('x', 1, 'l', array(1, 2)) AS n",
        "CREATE TABLE o (a INT) USING orc",
        "CREATE TABLE t (v STRING) USING text",
        "INSERT INTO p VALUES (1, 'ab', 1.5, DATE'2024-01-01'), (2, 'cd', 2.5, DATE'2024-01-02')",
        "INSERT INTO s VALUES (2, 'z')",
        "INSERT INTO o VALUES (7)",
        "INSERT INTO t VALUES ('line')",
    )


PARQUET = "SELECT a, b, CAST(c AS STRING) FROM p ORDER BY a"
PARQUET_ROWS = [(1, "ab  ", "1.50"), (2, "cd  ", "2.50")]
PARQUET_COLUMNS = [
    ("a", "int", None),
    ("b", "char(4)", None),
    ("c", "decimal(9,2)", "it's"),
    ("d", "date", None),
    ("# Partition Information", "", ""),
    ("# col_name", "data_type", "comment"),
    ("d", "date", None),
]


def test_tables_of_other_formats(formats: str, gateway: Gateway) -> None:
    client = Client(gateway, formats)
    assert client.rows(PARQUET) == PARQUET_ROWS
    assert client.engine("SELECT a FROM p") == "spark"
    other = Client(gateway, "default")
    assert other.rows(f"SELECT * FROM main.{formats}.s ORDER BY a") == [(1, "x;y"), (2, "z")]
    client.run("INSERT INTO s VALUES (3, 'later')")  # the other session's list of files is as old as its last statement
    assert other.rows(f"SELECT count(*) FROM {formats}.s") == [(3,)]
    assert (gateway.server.warehouse / formats / "p" / "d=2024-01-01").is_dir()
    assert client.rows("DESCRIBE p") == PARQUET_COLUMNS
    assert [(r[1], r[2]) for r in client.rows("SHOW TABLES")] == [(n, False) for n in "jopst"]
    other.connection.close()
    client.connection.close()


def test_what_is_refused_of_other_formats(client: Client, gateway: Gateway) -> None:
    folder = gateway.server.warehouse / "what_is_refused_of_other_formats"
    client.run("CREATE TABLE p (a INT) USING parquet", "CREATE TABLE d (a INT)", "INSERT INTO p VALUES (1)")
    assert "TABLE_OR_VIEW_ALREADY_EXISTS" in client.refused("CREATE TABLE p (a INT) USING csv")
    assert "TABLE_OR_VIEW_ALREADY_EXISTS" in client.refused("CREATE TABLE P (a INT)")
    assert "TABLE_OR_VIEW_ALREADY_EXISTS" in client.refused("CREATE TABLE d (a INT) USING csv")
    client.run("CREATE TABLE IF NOT EXISTS p (b INT) USING csv", "CREATE TABLE IF NOT EXISTS p (b INT)")
    assert "UNSUPPORTED" in client.refused("CREATE OR REPLACE TABLE p (b INT)")
    assert "UNSUPPORTED" in client.refused("CREATE OR REPLACE TABLE p (b INT) USING csv")
    assert "UNSUPPORTED" in client.refused("CREATE TABLE l LIKE p")
    assert "LOCATION" in client.refused("CREATE TABLE x (a INT) USING csv LOCATION '/tmp/elsewhere'")
    assert "option path" in client.refused("CREATE TABLE x USING csv OPTIONS (path '/etc/passwd')")
    assert "option 'path'" in client.refused("CREATE TABLE x USING csv OPTIONS ('path' = '/etc/passwd')").replace(
        "option path", "option 'path'"
    )
    assert "SERDEPROPERTIES" in client.refused("ALTER TABLE p SET SERDEPROPERTIES ('path' = '/etc')")
    assert "XML" in client.refused("CREATE TABLE x (a INT) USING XML").upper()
    assert "UNSUPPORTED" in client.refused("UPDATE p SET a = 2")
    assert "UNSUPPORTED" in client.refused("SELECT * FROM p VERSION AS OF 1")
    assert client.rows("SELECT * FROM p") == [(1,)]
    assert "DIVIDE_BY_ZERO" in client.refused(
        "CREATE TABLE half USING csv AS SELECT 1 / CAST(id AS INT) AS a FROM range(2)"
    )
    assert not (folder / "half").exists()
    (folder / "full").mkdir()
    (folder / "full" / "mine.csv").write_text("1")
    assert "LOCATION_ALREADY_EXISTS" in client.refused("CREATE TABLE full (a INT) USING csv")
    assert (folder / "full" / "mine.csv").exists()
    client.run("DROP TABLE p")
    assert not (folder / "p").exists()
    assert "TABLE_OR_VIEW_NOT_FOUND" in client.refused("SELECT * FROM p")


def test_one_name_over_time(client: Client) -> None:
    for making, dropping, expected in (
        ("CREATE TABLE n USING parquet AS SELECT 1 AS a", "DROP TABLE n", 1),
        ("CREATE VIEW n AS SELECT 2 AS a", "DROP VIEW n", 2),
        ("CREATE TABLE n AS SELECT 3 AS a", "DROP TABLE n", 3),
        ("CREATE TABLE n USING csv AS SELECT 4 AS a", "DROP TABLE n", 4),
        ("CREATE TABLE n USING csv AS SELECT 5 AS a", "DROP TABLE n", 5),
        ("CREATE VIEW n AS SELECT 6 AS a", "DROP VIEW n", 6),
    ):
        client.run(making)
        assert client.rows("SELECT max(try_add(a, 0)) FROM n") == [(expected,)], making
        client.run("SET gateway.engine = spark")
        assert client.rows("SELECT a FROM n") == [(expected,)], making
        client.run("RESET gateway.engine", dropping)
        assert "TABLE_OR_VIEW_NOT_FOUND" in client.refused("SELECT * FROM n")


def test_views_with_a_default_collation(client: Client) -> None:
    client.run(
        "CREATE VIEW plain DEFAULT COLLATION UNICODE AS SELECT 'a'",
        "CREATE VIEW folded DEFAULT COLLATION UTF8_LCASE AS SELECT 'a' AS c",
        "CREATE TEMPORARY VIEW passing DEFAULT COLLATION UTF8_LCASE AS SELECT 'a' AS c",
    )
    assert client.rows("SELECT * FROM plain") == [("a",)]
    for view in ("folded", "passing"):
        assert client.rows(f"SELECT count(*) FROM {view} WHERE c = 'A'") == [(1,)]
    assert "DEFAULT COLLATION UTF8_LCASE" in client.rows("SHOW CREATE TABLE folded")[0][0]
    client.run("ALTER VIEW folded AS SELECT 'a' AS c, 'b' AS d")
    assert client.rows("SELECT collation(d) FROM folded") == [("SYSTEM.BUILTIN.UTF8_LCASE",)]
    for making in ("CREATE VIEW", "CREATE TEMPORARY VIEW"):
        assert "COLLATION_INVALID_NAME" in client.refused(f"{making} odd DEFAULT COLLATION nosuch AS SELECT 1")
    for described in ("folded", "passing"):
        assert "UNSUPPORTED_FEATURE" in client.refused(f"DESCRIBE {described}")


def test_views_that_follow_their_queries(client: Client) -> None:
    client.run(
        "CREATE TABLE seen (a INT, b INT) USING parquet",
        "CREATE VIEW whole WITH SCHEMA EVOLUTION AS SELECT * FROM seen",
        "CREATE VIEW named (x, y) WITH SCHEMA EVOLUTION AS SELECT * FROM seen",
        "CREATE VIEW typed WITH SCHEMA TYPE EVOLUTION AS SELECT * FROM seen",
        "DROP TABLE seen",
        "CREATE TABLE seen (b STRING, c DATE, a DOUBLE) USING parquet",
        "INSERT INTO seen VALUES ('b', DATE '2020-01-01', 1.5)",
    )
    day = datetime.date(2020, 1, 1)
    assert client.rows("SELECT * FROM whole") == [("b", day, 1.5)]
    assert client.rows("SELECT * FROM named") == [(1.5, "b")]
    assert client.rows("SELECT * FROM typed") == [(1.5, "b")]
    shown = {view: [row[:2] for row in client.rows(f"DESCRIBE {view}")] for view in ("whole", "named", "typed")}
    assert shown["whole"] == [("b", "string"), ("c", "date"), ("a", "double")]
    assert shown["named"] == [("x", "double"), ("y", "string")]
    assert shown["typed"] == [("a", "double"), ("b", "string")]
    client.run("DROP TABLE seen", "CREATE TABLE seen (b INT) USING parquet")
    assert client.rows("SELECT * FROM whole") == []
    assert "INCOMPATIBLE_VIEW_SCHEMA_CHANGE" in client.refused("SELECT * FROM named")
    client.run("ALTER VIEW named WITH SCHEMA COMPENSATION", "ALTER VIEW typed WITH SCHEMA EVOLUTION")
    assert "INCOMPATIBLE_VIEW_SCHEMA_CHANGE" in client.refused("SELECT * FROM named")
    assert client.rows("SELECT * FROM typed") == []
    client.run("SET gateway.engine = datafusion")
    assert "WITH SCHEMA EVOLUTION" in client.refused("ALTER VIEW whole AS SELECT 1")


@pytest.fixture(scope="module")
def views(gateway: Gateway) -> str:
    """A schema with views over tables and one another."""
    return _schema(
        gateway,
        "views",
        "CREATE TABLE d AS SELECT 1 AS id, 'a' AS name",
        "CREATE TABLE p USING parquet AS SELECT 1 AS id, 10 AS amount",
        "CREATE VIEW v1 AS SELECT id, name FROM d",
        "CREATE VIEW v2 (id, amount COMMENT 'money') COMMENT 'paid' AS SELECT * FROM p",
        "CREATE VIEW v3 AS SELECT v1.id, name, amount FROM v1 JOIN v2 ON v1.id = v2.id",
        "CREATE VIEW known_to_spark AS SELECT histogram_numeric(amount, 2) AS k, "
        "xpath_string(concat('<a>', max(name), '</a>'), 'a') AS s FROM v3",
    )


def test_views(views: str, gateway: Gateway) -> None:
    client = Client(gateway, views)
    client.run("CREATE TEMPORARY VIEW t AS SELECT * FROM v3")
    assert client.engine("SELECT * FROM v1") == "datafusion"
    assert client.engine("SELECT * FROM v3") == "spark"
    for view in ("v3", "t"):
        assert client.rows(f"SELECT * FROM {view}") == [(1, "a", 10)]
    assert client.rows("SELECT s FROM known_to_spark") == [("a",)]
    assert client.rows("DESCRIBE v2") == [("id", "int", None), ("amount", "int", "money")]
    other = Client(gateway, "default")
    other.run("INSERT INTO views.d VALUES (2, 'b')", "INSERT INTO views.p VALUES (2, 20)")
    assert other.rows("SELECT * FROM views.v3 ORDER BY id") == [(1, "a", 10), (2, "b", 20)]
    assert client.rows("SELECT count(*) FROM v3") == [(2,)]
    assert client.rows("SELECT count(*) FROM t") == [(2,)]
    other.run("DELETE FROM views.d WHERE id = 2")
    other.connection.close()
    client.connection.close()


def test_views_on_both_engines(client: Client) -> None:
    """What is refused, and what becomes of a view whose tables change, on the engine that did not make it, too."""
    client.run("CREATE TABLE t AS SELECT 1 AS id, 'a' AS name", "CREATE VIEW v AS SELECT * FROM t")
    client.run(
        "CREATE VIEW w AS SELECT id, xpath_string(concat('<a>', name, '</a>'), 'a') AS s FROM t",
        "CREATE TEMPORARY VIEW tmp AS SELECT 1 AS a",
    )
    assert (client.engine("SELECT * FROM v"), client.engine("SELECT * FROM w")) == ("datafusion", "spark")
    for engine in ("datafusion", "spark"):
        client.run(f"SET gateway.engine = {engine}")
        client.run("CREATE OR REPLACE TABLE t AS SELECT 'new' AS other, '12' AS id, 'a' AS name")
        assert client.rows("SELECT * FROM v") == [(12, "a")]
        client.run("CREATE OR REPLACE TABLE t AS SELECT 1 AS id")
        assert "INCOMPATIBLE_VIEW_SCHEMA_CHANGE" in client.refused("SELECT * FROM v")
        client.run("CREATE OR REPLACE TABLE t AS SELECT 1 AS id, 'a' AS name")
        assert client.rows("SELECT * FROM v") == [(1, "a")]
        assert "INVALID_TEMP_OBJ_REFERENCE" in client.refused("CREATE VIEW u AS SELECT a FROM tmp")
        assert "TABLE_OR_VIEW_ALREADY_EXISTS" in client.refused("CREATE VIEW v AS SELECT 1 AS a")
        assert "TABLE_OR_VIEW_ALREADY_EXISTS" in client.refused("CREATE TABLE v (a INT)")
        assert "EXPECT_VIEW_NOT_TABLE" in client.refused("CREATE OR REPLACE VIEW t AS SELECT 1 AS a")
        assert "EXPECT_TABLE_NOT_VIEW" in client.refused("INSERT INTO v VALUES (1, 'x')")
        assert "RECURSIVE_VIEW" in client.refused("CREATE OR REPLACE VIEW v AS SELECT * FROM v")
    client.run("SET gateway.engine = auto")
    for text in (
        "UPDATE v SET id = 2",
        "DELETE FROM v",
        "TRUNCATE TABLE v",
        "OPTIMIZE v",
        "ALTER TABLE v ADD COLUMN c INT",
    ):
        assert "EXPECT_TABLE_NOT_VIEW" in client.refused(text)
    assert "INVALID_TEMP_OBJ_REFERENCE" in client.refused(
        "CREATE VIEW u AS SELECT xpath_string(concat('<a>', a, '</a>'), 'a') AS s FROM tmp"
    )
    assert "RECURSIVE_VIEW" in client.refused(
        "CREATE OR REPLACE VIEW w AS SELECT id, xpath_string(concat('<a>', s, '</a>'), 'a') AS s FROM w"
    )
    assert client.rows("SELECT * FROM w") == [(1, "a")]
    client.run("ALTER VIEW w AS SELECT xpath_string(concat('<a>', name, '</a>'), 'a') AS only FROM t")
    assert client.rows("SELECT * FROM w") == [("a",)]
    client.run("CREATE OR REPLACE VIEW v AS SELECT histogram_numeric(id, 2) AS k FROM t", "DROP TABLE t")
    assert "`t`" in client.refused("SELECT * FROM v")
    assert client.rows("SHOW TABLES LIKE 'v'") == [("views_on_both_engines", "v", False)]


def test_the_first_object_of_a_schema_may_be_one_of_spark(client: Client) -> None:
    """As dbt-spark makes them: with ANSI off all runs there, and Spark has not heard of the schema."""
    client.run("SET ansi_mode = false", "CREATE SCHEMA of_views", "CREATE SCHEMA of_functions")
    client.run("CREATE OR REPLACE VIEW of_views.v AS SELECT 1 AS id", "CREATE FUNCTION of_functions.f() RETURN 2")
    assert client.rows("SELECT id, of_functions.f() FROM of_views.v") == [(1, 2)]
    client.run("DROP SCHEMA of_views CASCADE", "DROP SCHEMA of_functions CASCADE", "RESET ansi_mode")


def test_a_view_keeps_its_time_zone(client: Client) -> None:
    client.run("SET TIME ZONE 'America/New_York'", "CREATE VIEW n AS SELECT TIMESTAMP'2024-01-01 12:00:00' AS at")
    client.run("SET TIME ZONE 'UTC'")
    assert client.rows("SELECT date_format(at, 'HH:mm') FROM n") == [("17:00",)]


@pytest.fixture(scope="module")
def functions(gateway: Gateway) -> str:
    """A schema with functions over functions, tables and views."""
    return _schema(
        gateway,
        "functions",
        "CREATE TABLE t AS SELECT 1 AS id, 'a' AS name",
        "CREATE FUNCTION plus(x INT, y INT DEFAULT 1 COMMENT 'more') RETURNS INT COMMENT 'adds' RETURN x + y",
        "CREATE FUNCTION twice(x INT) RETURNS INT RETURN plus(x, x)",
        "CREATE FUNCTION named(n INT) RETURNS TABLE (id INT, name STRING) RETURN SELECT id, name FROM t WHERE id = n",
        "CREATE VIEW v AS SELECT twice(id) AS two FROM t",
        "CREATE VIEW in_full AS SELECT main.functions.plus(id) AS p FROM main.functions.named(1)",
        "CREATE FUNCTION from_view() RETURNS INT RETURN (SELECT max(two) FROM v)",
    )


def test_functions(functions: str, gateway: Gateway) -> None:
    client = Client(gateway, functions)
    client.run("CREATE TEMPORARY VIEW tmp AS SELECT plus(41) AS a")
    query = "SELECT plus(1), twice(3), functions.plus(1, 5), main.functions.twice(id), from_view() FROM t"
    assert client.rows(query) == [(2, 6, 6, 2, 2)]
    assert client.rows("SELECT * FROM named(1)") == [(1, "a")]
    assert client.rows("SELECT * FROM v") == [(2,)]
    client.run(
        "CREATE FUNCTION thrice(x INT) RETURNS INT RETURN twice(x) + x",
        "CREATE TEMP FUNCTION short() RETURNS INT RETURN 1",
    )
    assert client.rows("SELECT thrice(5), short()") == [(15, 1)]
    client.run("DROP FUNCTION thrice", "DROP TEMP FUNCTION short")
    assert client.rows("SELECT * FROM in_full") == [(2,)]
    assert client.rows("SELECT * FROM tmp") == [(42,)]
    assert client.engine("SELECT plus(1)") == "spark"
    names = [("main.functions." + n,) for n in ("from_view", "named", "plus", "twice")]
    assert client.rows("SHOW USER FUNCTIONS") == names
    assert "ROUTINE_ALREADY_EXISTS" in client.refused("CREATE FUNCTION plus(x INT) RETURNS INT RETURN x")
    client.run("CREATE FUNCTION IF NOT EXISTS plus(x INT) RETURNS INT RETURN 0")
    assert client.rows("SELECT plus(1)") == [(2,)]
    assert "INVALID_TEMP_OBJ_REFERENCE" in client.refused(
        "CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(a) FROM tmp)"
    )
    assert "TABLE_OR_VIEW_NOT_FOUND" in client.refused(
        "CREATE FUNCTION f() RETURNS INT RETURN (SELECT max(a) FROM nope)"
    )
    assert "UNRESOLVED_ROUTINE" in client.refused("SELECT f()")
    client.connection.close()


@pytest.mark.heavy
def test_a_view_that_is_replaced_is_always_there(gateway: Gateway, client: Client) -> None:
    """Also one that Spark is told of anew by every statement, since its columns follow its query's."""
    client.run("CREATE TABLE t AS SELECT '<a>a</a>' AS x")
    make = "CREATE OR REPLACE VIEW v WITH SCHEMA EVOLUTION AS SELECT xpath_string(x, 'a') AS s, {} AS n FROM t"
    client.run(make.format(0))
    schema = str(client.rows("SELECT current_schema()")[0][0])

    def read(times: int) -> set[tuple[Any, ...]]:
        one = Client(gateway, schema)
        try:
            return {row for _ in range(times) for row in one.rows("SELECT s FROM v")}
        finally:
            one.connection.close()

    with ThreadPoolExecutor(2) as threads:
        readers = [threads.submit(read, 6) for _ in range(2)]
        for n in range(3):
            client.run(make.format(n))
        assert [reader.result() for reader in readers] == [{("a",)}] * 2


def test_a_kept_view_is_not_pinned(client: Client) -> None:
    """A table that a view's text names twice is read at the newest version, however old the view is."""
    client.run(
        "CREATE TABLE t AS SELECT 1 AS id",
        "CREATE VIEW v AS SELECT xpath_string('<a>a</a>', 'a') AS s, count(*) AS n FROM t a JOIN t b ON a.id = b.id",
        "CREATE TEMPORARY VIEW w AS SELECT xpath_string('<a>a</a>', 'a') AS s, count(*) AS n FROM t a JOIN t b ON a.id = b.id",
    )
    assert client.engine("SELECT s FROM v") == client.engine("SELECT s FROM w") == "spark"
    for count in (1, 2, 3):
        assert client.rows("SELECT n FROM v") == [(count,)]
        assert client.rows("SELECT n FROM w") == [(count,)]
        client.run(f"INSERT INTO t VALUES ({count + 1})")


# ---- after a restart


@pytest.fixture(scope="module")
def restarted(gateway: Gateway, formats: str, views: str, functions: str) -> Gateway:
    """Another process over what was made before."""
    gateway.restart()
    return gateway


@pytest.mark.heavy
def test_tables_of_other_formats_after_a_restart(restarted: Gateway) -> None:
    again = Client(restarted, "formats")
    assert again.rows("DESCRIBE p") == PARQUET_COLUMNS
    assert again.rows(PARQUET) == PARQUET_ROWS
    assert again.rows("SELECT count(*) FROM p WHERE d = DATE'2024-01-02'") == [(1,)]
    assert again.rows("SELECT n.x, n.l[1] FROM j") == [(1, 2)]
    assert again.rows("SELECT * FROM o") == [(7,)]
    assert again.rows("SELECT * FROM t") == [("line",)]
    again.run("INSERT OVERWRITE p VALUES (9, 'zz', 9, DATE'2025-01-01')")
    assert again.rows("SELECT a, d FROM p WHERE a > 0")[0][0] == 9
    assert again.rows("SELECT count(*) FROM p") == [(1,)]
    again.run("TRUNCATE TABLE p")
    assert again.rows("SELECT count(*) FROM p") == [(0,)]
    again.run("ALTER TABLE o ADD COLUMNS (added STRING)", "INSERT INTO o VALUES (8, 'n')")
    assert again.rows("DESCRIBE o") == [("a", "int", None), ("added", "string", None)]
    assert again.rows("SELECT * FROM o ORDER BY a") == [(7, None), (8, "n")]
    again.connection.close()


@pytest.mark.heavy
def test_views_after_a_restart(restarted: Gateway) -> None:
    again = Client(restarted, "views")
    assert again.rows("SELECT * FROM v3 ORDER BY id") == [(1, "a", 10)]
    assert again.rows("SELECT s FROM known_to_spark") == [("a",)]
    assert again.rows("SHOW VIEWS") == [("views", v, False) for v in ("known_to_spark", "v1", "v2", "v3")]
    again.cursor.tables(catalog_name="main", schema_name="views")
    listed = [(row[2], row[3], row[4]) for row in again.cursor.fetchall()]
    assert listed == [
        ("d", "TABLE", ""),
        ("known_to_spark", "VIEW", ""),
        ("p", "TABLE", ""),
        ("v1", "VIEW", ""),
        ("v2", "VIEW", "paid"),
        ("v3", "VIEW", ""),
    ]
    again.cursor.columns(catalog_name="main", schema_name="views", table_name="v3")
    assert [(row[3], row[5]) for row in again.cursor.fetchall()] == [
        ("id", "INT"),
        ("name", "STRING"),
        ("amount", "INT"),
    ]
    again.cursor.columns(catalog_name="main", schema_name="views", table_name="p")
    assert [(row[3], row[5]) for row in again.cursor.fetchall()] == [("id", "INT"), ("amount", "INT")]
    again.connection.close()


@pytest.mark.heavy
def test_functions_after_a_restart(restarted: Gateway) -> None:
    again = Client(restarted, "default")
    assert again.rows("SELECT functions.twice(4), functions.from_view()") == [(8, 2)]
    assert again.rows("SELECT * FROM functions.v") == [(2,)]
    assert "UNRESOLVED_ROUTINE" in again.refused("SELECT twice(4)")
    again.run("USE functions", "CREATE OR REPLACE FUNCTION plus(x INT, y INT) RETURNS INT RETURN x * 100 + y")
    assert again.rows("SELECT twice(3), from_view()") == [(303, 101)]
    described = "\n".join(str(row[0]) for row in again.rows("DESCRIBE FUNCTION plus"))
    assert "main.functions.plus" in described
    again.run("DROP FUNCTION plus", "DROP FUNCTION IF EXISTS plus")
    assert "ROUTINE_NOT_FOUND" in again.refused("DROP FUNCTION plus")
    assert "`plus`" in again.refused("SELECT twice(3)")
    assert again.rows("SELECT * FROM named(1)") == [(1, "a")]
    again.run("USE default", "DROP SCHEMA functions CASCADE", "CREATE SCHEMA functions", "USE functions")
    assert again.rows("SHOW USER FUNCTIONS") == []
    assert "UNRESOLVED_ROUTINE" in again.refused("SELECT twice(3)")
    again.connection.close()
