"""Spark's own parser finds tables where the respelling by tokens finds them, and under the names that they are given."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.sql.respell import SPARK_CATALOG, Respelt, database
from tests.unit.sql.test_respell import PAIRS, respelt

pytestmark = pytest.mark.spark


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
