"""Spark's own parser finds tables where the respelling by tokens finds them, and under the names that they are given."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.spark.parsed import changes_something, table_names
from gateway.errors import GatewayError, UnsupportedError
from gateway.runner.spark.sent import sent
from gateway.sql.spark.respell import SPARK_CATALOG, Respelt, database
from tests.unit.sql.spark.test_respell import PAIRS, respelt

pytestmark = pytest.mark.spark

# What stands behind IDENTIFIER, in scripts and in nested queries, too; of what is made, of what is read or written.
NAMES: dict[str, tuple[str, ...]] = {
    "SELECT 1": (),
    "SELECT 'UnresolvedRelation [a, b], []'": (),
    "SELECT * FRM a.b": (),
    "SELECT * FROM a.b VERSION AS OF 3, IDENTIFIER('c.d')": ("a, b", "c, d"),
    "WITH c AS (FROM a.b) SELECT (SELECT 1 FROM d.e) FROM c": ("a, b", "d, e", "c"),
    "CREATE TABLE a.b AS SELECT * FROM c.d": ("a, b", "c, d"),
    "CREATE OR REPLACE TABLE a.b (x INT)": ("a, b",),
    "CREATE TABLE a.b LIKE c.d": ("a, b", "c, d"),
    "INSERT INTO a.b TABLE c.d": ("a, b", "c, d"),
    "MERGE INTO a.b USING c.d ON x IN (SELECT 1 FROM e.f) WHEN MATCHED THEN DELETE": ("e, f", "a, b", "c, d"),
    "RESTORE TABLE a.b TO VERSION AS OF 1": ("a, b",),
    "DESCRIBE HISTORY a.b": ("a, b",),
    "DECLARE session.x INT DEFAULT 1": (),
    "SELECT * FROM delta.`/a/b`": ("delta, /a/b",),
    "BEGIN FOR r AS SELECT * FROM a.b DO SELECT * FROM c.d; END FOR; END": ("a, b", "c, d"),
}


def relations(spark: Any, text: str) -> list[tuple[int, list[str]]]:
    """Place and parts of each name that Spark reads as a relation, in order. Texts within the Basic Multilingual Plane."""
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    return sorted(_relations(plan))


def _relations(plan: Any) -> Iterator[tuple[int, list[str]]]:
    kind = plan.getClass().getSimpleName()
    if kind == "RelationTimeTravel":
        yield from _relations(plan.relation())
    if kind == "UnresolvedRelation" and plan.origin().startIndex().isDefined():  # not what INSERT writes to
        parts = plan.multipartIdentifier()
        yield plan.origin().startIndex().get(), [parts.apply(i) for i in range(parts.size())]
    inner = [plan.children(), plan.innerChildren()]
    for found in (each.apply(i) for each in inner for i in range(each.size())):
        if hasattr(found, "getClass"):
            yield from _relations(found)


def test_what_only_spark_reads_as_a_table_is_refused(spark: Any) -> None:
    """Each pair of texts may be sent; were its names not found by the tokens, it would not."""
    refused = 0
    for at, text, _ in PAIRS:
        spelt = respelt(text, at)
        assert sent(spark, spelt) == spelt.text
        for name in (n for n in table_names(spark, spelt.text) if ", " in n):
            with pytest.raises(UnsupportedError) as raised:
                sent(spark, replace(spelt, mentions=(), paths=()))
            assert raised.value.condition == "UNSUPPORTED_FEATURE" and raised.value.sqlstate == "0A000"
            assert raised.value.span is not None, name
            refused += 1
    assert refused >= 30


def test_names_of_tables_in_statements_of_all_kinds(spark: Any) -> None:
    for text, names in NAMES.items():
        assert table_names(spark, text) == names, text


# Whether Spark would do more than to read; the last one is not its SQL.
DOING: dict[str, bool] = {
    "SELECT 1": False,
    "VALUES (1), (2)": False,
    "TABLE a.b": False,
    "FROM a.b SELECT x": False,
    "FROM a.b |> WHERE x > 1 |> AGGREGATE count(*)": False,
    "WITH c AS (SELECT 1 AS x) SELECT * FROM c UNION ALL (SELECT x FROM a.b)": False,
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT * FROM c": False,
    "SELECT * FROM a.b PIVOT (sum(x) FOR y IN (1, 2)) WHERE EXISTS (SELECT 1 FROM c.d)": False,
    "SELECT * FROM range(3), LATERAL (SELECT explode(array(1)))": False,
    "INSERT INTO a.b VALUES (1)": True,
    "INSERT OVERWRITE a.b SELECT 1": True,
    "WITH c AS (SELECT 1 AS x) INSERT INTO a.b SELECT * FROM c": True,
    "WITH c (SELECT 1 AS x) INSERT INTO a.b SELECT * FROM c": True,
    "FROM a.b INSERT INTO c.d SELECT x INSERT INTO e.f SELECT y": True,
    "FROM a.b INSERT OVERWRITE c.d SELECT x": True,
    "DELETE FROM a.b": True,
    "UPDATE a.b SET x = 1": True,
    "MERGE INTO a.b USING c.d ON true WHEN MATCHED THEN DELETE": True,
    "CREATE TABLE a.b AS SELECT 1": True,
    "CREATE TEMPORARY VIEW v AS SELECT 1": True,
    "CACHE TABLE c AS SELECT 1": True,
    "SET x = 1": True,
    "USE a": True,
    "CALL p()": True,
    "BEGIN SELECT 1; END": True,
    "EXECUTE IMMEDIATE 'SELECT 1'": True,
    "DROP TABLE a.b": True,
    "SELEC 1": False,
}


def test_what_does_more_than_to_read(spark: Any) -> None:
    for text, does in DOING.items():
        assert changes_something(spark, text) is does, text


def same_tables(read: Sequence[tuple[int, list[str]]], spark: Any, sent: Respelt) -> None:
    """Assert that Spark finds the relations `read` in the text that it is sent, by the names that they have there."""
    meant = {mention.span.start: mention for mention in sent.mentions}
    found = relations(spark, sent.text)
    assert [sent.original(place) for place, _ in found] == [place for place, _ in read]
    for (place, parts), (_, told) in zip(read, found, strict=True):
        if place not in meant:
            assert parts[0] in ("delta", "parquet") and told[0] == parts[0]
            continue
        mention = meant[place]
        assert mention.table == parts[-1]
        # A bare name is looked up in the session's own database.
        full = [SPARK_CATALOG, database(mention.catalog, mention.schema), mention.table]
        assert told == (parts if len(parts) == 1 else full if len(told) == 3 else full[1:])


def is_sparks(text: str) -> bool:
    """Whether Spark's parser reads it, too, and counts its characters as Python does."""
    return "@" not in text and text == text.encode("utf-16-le").decode("utf-16-le") and max(text) < "\U00010000"


def test_pairs_of_text(spark: Any) -> None:
    counted = 0
    for at, text, _ in PAIRS:
        if is_sparks(text):
            read = relations(spark, text)
            same_tables(read, spark, respelt(text, at))
            counted += len(read)
    assert counted >= 50


@pytest.mark.parametrize(
    ("corpus", "at_least"), [("tpc", 500), pytest.param("spark_golden_dev", 1_000, marks=pytest.mark.heavy)]
)
def test_every_relation_of_a_corpus(spark: Any, shared: Path, corpus: str, at_least: int) -> None:
    """Each name that Spark reads as a relation is given a catalog and a schema, and found again."""
    from pyspark.errors import ParseException

    counted = 0
    for text in sorted(queries(shared / "conformance" / f"{corpus}.jsonl.gz")):
        try:
            read = relations(spark, text)
        except ParseException:
            continue
        full = text
        for place, parts in reversed(read):
            if len(parts) == 1:
                full = f"{full[:place]}samples.tpch.{full[place:]}"
        try:
            sent = respelt(full)
        except GatewayError:  # what must not reach Spark, names of no schema
            continue
        again = relations(spark, full)
        assert [parts[-1] for _, parts in again] == [parts[-1] for _, parts in read]
        same_tables(again, spark, sent)
        counted += len(read)
    assert counted > at_least


def queries(corpus: Path) -> set[str]:
    """The recorded statements that Spark answers with rows."""
    found = set()
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            for statement in json.loads(line)["statements"]:
                text = statement["sql"].strip()
                if "error" not in statement and is_sparks(text) and text[:6].upper() in ("SELECT", "WITH", "FROM"):
                    found.add(text)
    return found
