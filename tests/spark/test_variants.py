"""VARIANT: either engine reads and changes what the other has written, and shows the same JSON; shredded files are refused."""

from __future__ import annotations

import pytest

from tests.live.spark import Sql

pytestmark = pytest.mark.spark

_TEXTS = (
    '{"b":1,"a":[true,null,1.5,"x"],"c":{"z":1e3}}',
    "null",
    "12345678901234567890",
    "-0.0",
    "[1E400,0.10,123456789012345678901234567890123456789012]",
    '"a\u00e9"',
    "{}",
)
_VALUES = ", ".join(f"({i}, parse_json('{text}'))" for i, text in enumerate(_TEXTS))
_TYPED = (
    "to_variant_object(named_struct('d', DATE'2024-01-02', 't', TIMESTAMP'2024-01-02 03:04:05.678', 'f', 1.5F, 'b', X'0102', "
    "'n', TIMESTAMP_NTZ'2024-01-02 03:04:05', 'e', 1.50BD))"
)
_CHANGES = (
    "UPDATE {t} SET v = parse_json('[1]') WHERE id = 1",
    "DELETE FROM {t} WHERE id = 2",
    "MERGE INTO {t} USING (SELECT 3 AS id, parse_json('3') AS v UNION ALL SELECT 90, parse_json('90')) s ON {t}.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO {t} (id) VALUES (91)",
    "ALTER TABLE {t} ADD COLUMNS (w VARIANT)",
    "INSERT INTO {t} SELECT 92, v, v FROM {t} WHERE id = 0",
    "OPTIMIZE {t}",
)


# Each takes a minute: plain tables, which others are, too, with the heavy tests.
PROPERTIES = pytest.mark.parametrize(
    "properties",
    [
        pytest.param("", marks=pytest.mark.heavy),
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')",
    ],
)


@PROPERTIES
def test_either_engine_goes_on_where_the_other_was(sql: Sql, properties: str) -> None:
    for name in ("ours", "theirs"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded(f"CREATE TABLE ours (id INT, v VARIANT) {properties}")
    sql.spark(f"CREATE TABLE theirs (id INT, v VARIANT) USING delta {properties}")
    sql.embedded(f"INSERT INTO ours VALUES {_VALUES}")
    sql.spark(f"INSERT INTO theirs VALUES {_VALUES}")
    for name in ("ours", "theirs"):
        sql.spark(f"INSERT INTO {name} SELECT 50, {_TYPED}")
    for turn, text in enumerate(_CHANGES):
        runs = (sql.embedded, sql.spark) if turn % 2 else (sql.spark, sql.embedded)
        for name, run in zip(("ours", "theirs"), runs, strict=True):
            run(text.format(t=name))
        found = [
            read(f"SELECT * FROM {name} ORDER BY id")
            for name in ("ours", "theirs")
            for read in (sql.spark, sql.embedded)
        ]
        asked = (
            "SELECT id, variant_get(v, '$.a'), variant_get(v, '$.c.z', 'string'), variant_get(v, '$.a[3]', 'string'), "
        )
        asked += "CAST(v AS STRING), is_variant_null(v) FROM {} WHERE id <> 50 ORDER BY id"
        assert sql.spark(asked.format("ours")) == sql.embedded(asked.format("ours"))
        assert found[0] == found[1] == found[2] == found[3], text
        assert len(found[0]) > 5
    shown = [
        [(*row[12:14], sorted(row[14])) for row in sql.spark(f"DESCRIBE DETAIL {name}")] for name in ("ours", "theirs")
    ]
    assert shown[0] == shown[1]


_INSIDE = (
    "INSERT INTO {t} VALUES (1, array(parse_json('1'), NULL, parse_json('null')), "
    "named_struct('v', parse_json('{{\"x\":[1.50]}}'), 'n', 1), map('k', parse_json('\"a\"'), 'l', NULL)), "
    "(2, NULL, NULL, NULL), (3, array(), named_struct('v', NULL, 'n', 3), map('z', CAST(DATE'2024-01-02' AS VARIANT)))"
)
_CHANGES_INSIDE = (
    "UPDATE {t} SET a = array_append(a, s.v:x), s.v = parse_json('9') WHERE id = 1",
    "DELETE FROM {t} WHERE a IS NULL",
    "MERGE INTO {t} USING (SELECT 3 AS id, array(parse_json('3')) AS a, named_struct('v', parse_json('{{}}'), 'n', 0) AS s, "
    "map('u', parse_json('true')) AS m) q ON {t}.id = q.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO {t} SELECT id + 10, a, s, m FROM {t} WHERE id = 1",
    "ALTER TABLE {t} ADD COLUMNS (s.w VARIANT, z ARRAY<VARIANT>)",
    "INSERT INTO {t} SELECT 20, a, named_struct('v', s.v, 'n', 1, 'w', m['k']), m, a FROM {t} WHERE id = 1",
    "OPTIMIZE {t}",
    "UPDATE {t} SET z = transform(map_values(m), v -> v) WHERE id < 10",
)


@PROPERTIES
def test_either_engine_goes_on_with_values_inside_of_others(sql: Sql, properties: str) -> None:
    columns = "id INT, a ARRAY<VARIANT>, s STRUCT<v: VARIANT, n: INT>, m MAP<STRING, VARIANT>"
    for name in ("ours", "theirs"):
        sql.auto(f"DROP TABLE IF EXISTS {name}")
    sql.embedded(f"CREATE TABLE ours ({columns}) {properties}")
    sql.spark(f"CREATE TABLE theirs ({columns}) USING delta {properties}")
    sql.embedded(_INSIDE.format(t="ours"))
    sql.spark(_INSIDE.format(t="theirs"))
    for turn, text in enumerate(_CHANGES_INSIDE):
        runs = (sql.embedded, sql.spark) if turn % 2 else (sql.spark, sql.embedded)
        for name, run in zip(("ours", "theirs"), runs, strict=True):
            run(text.format(t=name))
        asked = "SELECT *, s.v:x[0]::STRING, m['k']::STRING, size(a), string(a), string(m) FROM {} ORDER BY id"
        found = {
            str(read(asked.format(name))) for name in ("ours", "theirs") for read in (sql.spark, sql.embedded)
        }  # arrays come as NumPy's
        assert len(found) == 1 and "'[1, null, null" in found.pop(), text
    assert [len(read("SELECT * FROM ours VERSION AS OF 1")) for read in (sql.spark, sql.embedded)] == [3, 3]


def test_shredded_values_are_refused_by_name(sql: Sql) -> None:
    sql.auto("DROP TABLE IF EXISTS shredded")
    sql.spark(
        "CREATE TABLE shredded (id INT, v VARIANT) USING delta TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
    )
    sql.spark("INSERT INTO shredded SELECT id, parse_json('{\"a\":' || id || '}') FROM range(100)")
    for text in (
        "SELECT v FROM shredded",
        "INSERT INTO shredded VALUES (1, NULL)",
        "DELETE FROM shredded WHERE id = 1",
    ):
        with pytest.raises(Exception, match="variantShredding"):
            sql.embedded(text)
    assert sql.embedded("SELECT count(id) FROM shredded") == [(100,)]
    assert sql.auto("SELECT v FROM shredded WHERE id = 7") == [('{"a":7}',)]
