"""Data files of older writers whose dates and times an engine would take for others: read as Spark reads them, or refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import add_action, answer, log_action, outcome
from tests.live.gateway import Server

OLD = {b"org.apache.spark.version": b"2.4.8"}
TOLD = {b"org.apache.spark.version": b"3.5.0", b"org.apache.spark.legacyDateTime": b""}
TOLD_96 = {b"org.apache.spark.version": b"3.5.0", b"org.apache.spark.legacyINT96": b""}
NEW = {b"org.apache.spark.version": b"3.5.0"}
NOBODY = {b"org.apache.spark.legacyDateTime": b""}
DAYS = (-719164, -354286, -141714, -141428, -141427, 0, 18000, None)
# What Spark 4.2 reads.
BY_OLD = ["0001-01-01", "0999-12-26", "1581-12-22", "1582-10-04", "1582-10-15", "1970-01-01", "2019-04-14", None]
BY_NEW = ["0000-12-30", "0999-12-31", "1582-01-01", "1582-10-14", "1582-10-15", "1970-01-01", "2019-04-14", None]
Make = Callable[..., Path]


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    """Makes the table `moments` of one file."""
    folder = server.warehouse / "default" / "moments"

    def made(fields: dict[str, Any], rows: pa.Table, told: dict[bytes, bytes], **options: Any) -> Path:
        (folder / "_delta_log").mkdir(parents=True)
        pq.write_table(rows.replace_schema_metadata(told), folder / "a.parquet", **options)
        listed = [{"name": name, "type": of, "nullable": True, "metadata": {}} for name, of in fields.items()]
        metadata = {
            "id": "00000000-0000-0000-0000-000000000002",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": listed}),
            "partitionColumns": [],
            "configuration": {},
        }
        add = add_action("a.parquet", (folder / "a.parquet").stat().st_size)
        log_action(folder, 0, protocol={"minReaderVersion": 1, "minWriterVersion": 2}, metaData=metadata, add=add)
        return folder

    yield made
    shutil.rmtree(folder)


def dates(values: Any) -> pa.Array:
    return pa.array(values, pa.int32()).cast(pa.date32())


def texts(client: Client, of: str) -> list[Any]:
    return [row["v"] for row in answer(client, f"SELECT CAST({of} AS STRING) AS v FROM moments ORDER BY i")]


@pytest.mark.parametrize("statistics", [True, False], ids=["bounds", "no bounds"])
@pytest.mark.parametrize(
    ("told", "expected"),
    [(OLD, BY_OLD), (TOLD, BY_OLD), (NEW, BY_NEW), (TOLD_96, BY_NEW), (NOBODY, BY_NEW), ({}, BY_NEW)],
    ids=["Spark 2", "told to", "Spark 3", "instants alone", "no version", "nobody"],
)
def test_dates_by_the_calendar_of_their_writer(
    make: Make, client: Client, told: dict[bytes, bytes], expected: list[str | None], statistics: bool
) -> None:
    many = 3000
    rows = {"i": pa.array(range(len(DAYS) * many)), "d": dates(DAYS * many)}
    make({"i": "long", "d": "date"}, pa.table(rows), told, write_statistics=statistics, row_group_size=5000)
    assert texts(client, "d") == expected * many
    least, greatest = min(filter(None, expected)), max(filter(None, expected))
    found = answer(
        client, "SELECT CAST(min(d) AS STRING) AS a, CAST(max(d) AS STRING) AS b, count(d) AS n FROM moments"
    )
    assert found == [{"a": least, "b": greatest, "n": 7 * many}]
    for sought in filter(None, expected):
        assert answer(client, f"SELECT count(*) AS n FROM moments WHERE d = DATE'{sought}'") == [{"n": many}]
    before = sum(d is not None and d < "1582-01-01" for d in expected)
    assert answer(client, "SELECT count(*) AS n FROM moments WHERE d < DATE'1582-01-01'") == [{"n": before * many}]


def test_dates_inside_of_others(make: Make, client: Client) -> None:
    of_list, of_map = pa.list_(pa.date32()), pa.map_(pa.string(), pa.date32())
    nested = pa.struct([("d", pa.date32()), ("l", of_list), ("m", of_map)])
    values = [{"d": d, "l": [d, None], "m": [("k", d)]} for d in dates([0, -141714]).to_pylist()]
    rows = pa.table({"i": pa.array([0, 1, 2]), "s": pa.array([*values, None], nested)})
    list_of = {"type": "array", "elementType": "date", "containsNull": True}
    map_of = {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}
    listed = [
        {"name": n, "type": of, "nullable": True, "metadata": {}}
        for n, of in [("d", "date"), ("l", list_of), ("m", map_of)]
    ]
    make({"i": "long", "s": {"type": "struct", "fields": listed}}, rows, OLD)
    one = "{1581-12-22, [1581-12-22, null], {k -> 1581-12-22}}"
    assert texts(client, "s") == [one.replace("1581-12-22", "1970-01-01"), one, None]
    assert texts(client, "s.d") == ["1970-01-01", "1581-12-22", None]


def test_what_is_written_anew_is_by_todays_calendar(make: Make, client: Client) -> None:
    """Also where the file stays and only rows of it go."""
    make({"i": "long", "d": "date"}, pa.table({"i": pa.array(range(8)), "d": dates(DAYS)}), OLD)
    answer(client, "DELETE FROM moments WHERE d = DATE'0999-12-26'")
    answer(client, "UPDATE moments SET d = date_add(d, 1) WHERE d = DATE'1581-12-22'")
    answer(client, "OPTIMIZE moments")
    assert texts(client, "d") == [BY_OLD[0], "1581-12-23", *BY_OLD[3:]]


@pytest.mark.parametrize(
    ("told", "wide"),
    [(OLD, False), (OLD, True), (TOLD, False), (TOLD_96, True)],
    ids=["2", "2 in 96", "told", "told in 96"],
)
def test_instants_before_1900_by_the_old_calendar_are_refused(
    make: Make, client: Client, told: dict[bytes, bytes], wide: bool
) -> None:
    """What they are is a matter of zones and their history, which Spark knows."""
    instants = pa.array([-62135596800000000, 0, None, 1600000000000001], pa.timestamp("us", "UTC"))
    table = make({"i": "long", "t": "timestamp"}, pa.table({"i": pa.array(range(4)), "t": instants}), told,
                 use_deprecated_int96_timestamps=wide)  # fmt: skip
    for text in ("SELECT t FROM moments", "SELECT min(t) FROM moments", "SELECT count(*) FROM moments WHERE t < now()"):
        error = outcome(client, text)
        assert isinstance(error, RemoteError) and "[UNSUPPORTED_FEATURE]" in str(error) and "calendar" in str(error)
    assert answer(client, "SELECT count(*) AS n, sum(i) AS s FROM moments") == [{"n": 4, "s": 6}]
    shutil.rmtree(table)
    make({"i": "long", "t": "timestamp"}, pa.table({"i": pa.array(range(3)), "t": instants[1:]}), told,
         use_deprecated_int96_timestamps=wide)  # fmt: skip
    assert texts(client, "t") == ["1970-01-01 00:00:00", None, "2020-09-13 12:26:40.000001"]


@pytest.mark.parametrize("wide", [True, False], ids=["INT96", "INT64"])
def test_nanoseconds_are_cut_off_downwards(make: Make, client: Client, wide: bool) -> None:
    """Before 1970, too: an instant is in the microsecond that it is in, whichever reader comes."""
    instants = pa.array([-1, -1000, -1500, 1500, -2208988800000000001], pa.timestamp("ns", "UTC"))
    make({"i": "long", "t": "timestamp"}, pa.table({"i": pa.array(range(5)), "t": instants}), {},
         use_deprecated_int96_timestamps=wide)  # fmt: skip
    found = answer(client, "SELECT unix_micros(t) AS v FROM moments ORDER BY i")
    assert [row["v"] for row in found] == [-1, -1, -2, 1, -2208988800000001]
    assert answer(client, "SELECT count(*) AS n FROM moments WHERE t < TIMESTAMP'1970-01-01 00:00:00'") == [{"n": 4}]
    assert answer(client, "SELECT unix_micros(min(t)) AS v FROM moments") == [{"v": -2208988800000001}]


@pytest.mark.parametrize(
    ("unit", "wide"), [("ms", False), ("ms", True), ("s", True)], ids=["INT64", "INT96", "seconds"]
)
def test_milliseconds_are_compared_with_finer_instants(make: Make, client: Client, unit: str, wide: bool) -> None:
    """The instant that a column is compared with is not cut off to what its file can hold, in WHERE and elsewhere."""
    instants = pa.array([-1, 1_700_000_000], pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))
    folder = make({"i": "long", "t": "timestamp"}, pa.table({"i": pa.array(range(2)), "t": instants}), {},
                  use_deprecated_int96_timestamps=wide)  # fmt: skip
    if wide:  # a schema of Arrow is kept beside the rows, which says in which unit they once were
        assert pq.ParquetFile(folder / "a.parquet").schema.column(1).physical_type == "INT96"
    finer = "TIMESTAMP_MICROS(1700000000000400)" if unit == "ms" else "TIMESTAMP_MILLIS(1700000000400)"
    for where, expected in (("=", []), ("<=>", []), (">=", []), ("<", [0, 1]), ("<>", [0, 1])):
        assert answer(client, f"SELECT i FROM moments WHERE t {where} {finer} ORDER BY i") == [
            {"i": i} for i in expected
        ]
        told = answer(client, f"SELECT i, t {where} {finer} AS v FROM moments ORDER BY i")
        assert [row["i"] for row in told if row["v"]] == expected
    assert answer(client, f"SELECT i FROM moments WHERE t IN ({finer}, {finer} + INTERVAL 1 HOUR)") == []
    answer(client, f"DELETE FROM moments WHERE t >= {finer}")
    assert answer(client, "SELECT count(*) AS n FROM moments") == [{"n": 2}]


def test_days_of_instants_that_begin_before_1970(client: Client) -> None:
    """The engine reckons that a condition on the last day leaves more of them than there are, and stops at that."""
    micros = "CASE WHEN id = 0 THEN -1 ELSE 1704067200000001 + id * 3600000000 END"
    answer(client, f"CREATE OR REPLACE TABLE hours AS SELECT id, timestamp_micros({micros}) AS ts FROM range(2000)")
    try:
        for day, expected in ((22, 1944), (23, 1968), (24, 1992), (25, 2000)):
            asked = f"SELECT count(id) AS n FROM hours WHERE CAST(ts AS DATE) < DATE'2024-03-{day}'"
            assert answer(client, asked) == [{"n": expected}], day
    finally:
        answer(client, "DROP TABLE hours")
