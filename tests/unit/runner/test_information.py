"""The information schema: rows with Databricks' columns, found without opening what filters leave out, never written to."""

from __future__ import annotations

import pytest

from gateway.catalog.information_columns import RELATIONS
from gateway.catalog.local import LocalCatalog
from tests.unit.runner.session import Session, refused


@pytest.fixture
def filled(session: Session) -> Session:
    session.run(
        "CREATE TABLE Orders (id INT NOT NULL, Amount DECIMAL(10,2) COMMENT 'in all', day DATE) "
        "PARTITIONED BY (day) COMMENT 'what is sold'"
    )
    session.run("CREATE VIEW names (n COMMENT 'a name') COMMENT 'one' AS SELECT 'x' AS n")
    return session


def test_tables_and_views_are_told_in_lower_case(filled: Session) -> None:
    rows = filled.rows(
        "SELECT table_catalog, table_name, table_type, data_source_format, comment, created IS NOT NULL, "
        "last_altered >= created FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY table_name"
    )
    assert rows == [
        ("main", "names", "VIEW", "UNKNOWN_DATA_SOURCE_FORMAT", "one", False, None),
        ("main", "orders", "MANAGED", "DELTA", "what is sold", True, True),
    ]


def test_columns_have_types_places_and_partitions(filled: Session) -> None:
    rows = filled.rows(
        "SELECT column_name, ordinal_position, is_nullable, full_data_type, data_type, numeric_precision, numeric_scale, "
        "datetime_precision, partition_index, comment FROM main.information_schema.columns "
        "WHERE table_schema = 'shop' ORDER BY table_name, ordinal_position"
    )
    assert rows == [
        ("n", 1, "NO", "string", "STRING", None, None, None, None, "a name"),
        ("id", 1, "NO", "int", "INT", 32, 0, None, None, None),
        ("Amount", 2, "YES", "decimal(10,2)", "DECIMAL", 10, 2, None, None, "in all"),
        ("day", 3, "YES", "date", "DATE", None, None, 0, 1, None),
    ]


def test_system_tells_of_all_catalogs(filled: Session) -> None:
    assert filled.rows("SELECT catalog_name FROM system.information_schema.catalogs ORDER BY 1") == [
        ("main",),
        ("samples",),
        ("system",),
    ]
    assert filled.rows("SELECT catalog_name FROM information_schema.catalogs") == [("main",)]
    found = filled.rows(
        "SELECT table_name FROM system.information_schema.tables WHERE table_catalog = 'samples' AND table_schema = 'tpch'"
    )
    assert ("lineitem",) in found
    assert filled.rows("SELECT comment FROM information_schema.schemata WHERE schema_name = 'shop'") == [("things",)]


def test_it_tells_of_itself(session: Session) -> None:
    told = session.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'information_schema'")
    assert {name for (name,) in told} == set(RELATIONS)
    for name, schema in RELATIONS.items():
        assert session.run(f"SELECT * FROM information_schema.{name}").columns == [
            (f.name, f.type.simple, f.nullable) for f in schema.fields
        ]


@pytest.mark.parametrize(
    "condition",
    [
        "table_name = 'orders'",
        "'orders' = table_name AND table_schema = 'shop'",
        "table_name IN ('orders', 'no_such')",
        "(table_schema = 'shop' AND table_name = 'orders') OR (table_schema = 'none' AND table_name = 'a')",
        "table_catalog = 'main' AND (table_name = 'orders' OR (table_name = 'no_such' OR table_name = 'neither'))",
    ],
)
def test_filters_leave_tables_closed(filled: Session, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.run("CREATE TABLE other (a INT)")
    opened: list[str] = []
    table = LocalCatalog.table

    def counted(self: LocalCatalog, schema: str, name: str, as_of: None = None) -> object:
        opened.append(name)
        return table(self, schema, name, as_of)

    monkeypatch.setattr(LocalCatalog, "table", counted)
    query = (
        "WITH c AS (SELECT table_name, column_name FROM information_schema.columns WHERE {}) SELECT * FROM c ORDER BY 2"
    )
    assert filled.rows(query.format(condition)) == [("orders", "Amount"), ("orders", "day"), ("orders", "id")]
    assert opened == ["Orders"]
    assert filled.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'") != []
    assert opened == ["Orders"]  # names alone need no table


def test_a_side_that_pins_nothing_leaves_all(filled: Session) -> None:
    rows = filled.rows(
        "SELECT table_name FROM information_schema.tables WHERE table_name = 'orders' OR table_type = 'VIEW' AND "
        "table_schema = 'shop' ORDER BY 1"
    )
    assert rows == [("names",), ("orders",)]


def test_only_patterns_that_mean_it_list_it(session: Session) -> None:
    assert ("information_schema",) not in session.rows("SHOW SCHEMAS")
    assert session.rows("SHOW SCHEMAS LIKE 'information_*'") == [("information_schema",)]
    assert session.ask("schemas", schema="%").rows == session.ask("schemas").rows
    assert ("information_schema", "main") in session.ask("schemas", schema="information\\_schema").rows
    tables = session.ask("tables", schema="information_schema", table="col%", catalog="main").rows
    assert [(r[1], r[2], r[3]) for r in tables] == [
        ("information_schema", "column_masks", "VIEW"),
        ("information_schema", "column_tags", "VIEW"),
        ("information_schema", "columns", "VIEW"),
    ]
    columns = session.ask("columns", catalog="main", schema="information_schema", table="row_filters").rows
    assert [r[3] for r in columns] == [f.name for f in RELATIONS["row_filters"].fields]
    assert ("information_schema", "tables", False) in session.rows("SHOW TABLES IN main.information_schema")
    session.run("USE information_schema")
    assert session.rows("SELECT catalog_name FROM catalogs") == [("main",)]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("INSERT INTO information_schema.tables VALUES (1)", "PERMISSION_DENIED"),
        ("DELETE FROM system.information_schema.columns", "PERMISSION_DENIED"),
        ("TRUNCATE TABLE information_schema.views", "PERMISSION_DENIED"),
        ("CREATE TABLE information_schema.mine (a INT)", "SCHEMA_NOT_FOUND"),
        ("CREATE VIEW information_schema.mine AS SELECT 1 AS a", "SCHEMA_NOT_FOUND"),
        ("CREATE SCHEMA information_schema", "SCHEMA_ALREADY_EXISTS"),
        ("DROP TABLE information_schema.tables", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM information_schema.tabels", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM nowhere.information_schema.tables", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM information_schema.tables VERSION AS OF 1", "UNSUPPORTED_FEATURE"),
    ],
)
def test_it_is_only_read(session: Session, text: str, condition: str) -> None:
    assert refused(session, text).condition == condition


def test_a_table_that_cannot_be_opened_is_listed_alone(filled: Session) -> None:
    folder = filled.runner.catalogs["main"].table_folder("shop", "orders")
    with open(f"{folder}/_delta_log/00000000000000000000.json", "w") as log:
        log.write("no JSON")
    listed = "SELECT table_name, comment FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY 1"
    assert filled.rows(listed) == [("names", "one"), ("orders", None)]
    assert filled.rows("SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'shop'") == [
        ("names",)
    ]
    alone = "SELECT * FROM information_schema.columns WHERE table_schema = 'shop' AND table_name = 'orders'"
    assert refused(filled, alone).condition == "DELTA_LOG_CORRUPT"


def test_system_tells_of_the_history_and_of_what_runs(filled: Session) -> None:
    tables = filled.rows(
        "SELECT table_schema, table_name, table_type FROM system.information_schema.tables "
        "WHERE table_catalog = 'system' AND table_schema <> 'information_schema' ORDER BY 1, 2"
    )
    assert tables == [
        ("access", "audit", "VIEW"),
        ("query", "history", "VIEW"),
        *(("runtime", name, "VIEW") for name in ("operations", "sessions", "settings", "statements")),
    ]
    assert filled.rows(
        "SELECT schema_name FROM system.information_schema.schemata WHERE catalog_name = 'system' ORDER BY 1"
    ) == [("access",), ("information_schema",), ("query",), ("runtime",)]
    assert filled.rows(
        "SELECT column_name, full_data_type FROM system.information_schema.columns "
        "WHERE table_schema = 'query' AND table_name = 'history' AND ordinal_position IN (1, 21)"
    ) == [("account_id", "string"), ("start_time", "timestamp")]
    assert filled.rows("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'query'") == [(0,)]
    assert filled.rows(
        "SELECT count(*) FROM system.information_schema.views WHERE table_schema IN ('access', 'query')"
    ) == [(2,)]
