"""Logs that no writer would write: what is wrong is told with the table's name, and nothing fails unexpectedly."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from gateway.protocol.client import Client, RemoteError
from tests.attacks.attacker import answer, outcome
from tests.live.gateway import Server

Actions = list[Any]


def changed(kind: str, **values: Any) -> Callable[[Actions], Actions]:
    """One action with other values."""
    return lambda actions: [{kind: {**a[kind], **values}} if kind in a else a for a in actions]


def replaced(kind: str, value: Any) -> Callable[[Actions], Actions]:
    """Something else in the place of an action."""
    return lambda actions: [{kind: value} if kind in a else a for a in actions]


def with_vector(inline: str, cardinality: Any = 2) -> Callable[[Actions], Actions]:
    """The file with a deletion vector that the log itself holds."""
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = replaced("protocol", {"minReaderVersion": 3, "minWriterVersion": 7, **features})
    vector = {"storageType": "i", "pathOrInlineDv": inline, "offset": 1, "sizeInBytes": 36, "cardinality": cardinality}
    return lambda actions: changed("add", deletionVector=vector)(protocol(actions))


def schema(type_: str) -> Callable[[Actions], Actions]:
    """A table with one column of a type as JSON."""
    text = f'{{"type":"struct","fields":[{{"name":"id","type":{type_},"nullable":true,"metadata":{{}}}}]}}'
    return changed("metaData", schemaString=text)


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def vector_of(row: int) -> str:
    """The bitmap of one row as text: the protocol's frame around a Roaring array."""
    data = struct.pack("<IQIIIHHIHxx", 1681511377, 1, 0, 12346, 1, 0, 0, 16, row)
    words = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(_Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


ROWS_1_AND_5 = "^Bg9^0rr910000000000iXQKl0rr91000315c8Xg0rro6"
DEEP = '{"type":"array","containsNull":true,"elementType":' * 3000 + '"long"' + "}" * 3000
DAMAGES: dict[str, Callable[[Actions], Actions]] = {
    "a version as text": replaced("protocol", {"minReaderVersion": "x", "minWriterVersion": 2}),
    "a protocol as list": replaced("protocol", [1]),
    "a protocol that is null": replaced("protocol", None),
    "features as number": replaced("protocol", {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": 5}),
    "no protocol": lambda actions: [a for a in actions if "protocol" not in a],
    "no metadata": lambda actions: [a for a in actions if "metaData" not in a],
    "a line that is a number": lambda actions: [*actions, 5],
    "a line that is a list": lambda actions: [*actions, [1]],
    "an empty vector": with_vector(""),
    "a vector of other characters": with_vector("!!!!garbage"),
    "a vector of rows beyond 2^63": with_vector("^Bg9^0rr9100000%nSc0iXQKl0rr91000315c8Xg0rro6"),
    "a schema that is deep": schema(DEEP),
    "a type that is none": schema('"nope"'),
    "a size beyond 64 bits": changed("add", size=2**64),
    "a size that is negative": changed("add", size=-1),
    "a path with NUL": changed("add", path="a\0b"),
    "more rows than there are numbers": changed("add", stats='{"numRecords":9223372036854775807}'),
    "partition values as list": changed("add", partitionValues=[1]),
    "an unknown partition column": changed("metaData", partitionColumns=["nope"]),
}


@pytest.fixture
def log(client: Client, server: Server) -> Iterator[Path]:
    """The first commit of a table of 100 rows."""
    answer(client, "CREATE OR REPLACE TABLE damaged AS SELECT id, CAST(id AS STRING) AS s FROM range(100)")
    folder = server.warehouse / "default" / "damaged" / "_delta_log"
    (path,) = folder.glob("*.json")
    good = path.read_bytes()
    yield path
    for name in folder.iterdir():
        name.unlink()
    path.write_bytes(good)
    answer(client, "DROP TABLE damaged")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_action_is_told_with_its_table(client: Client, log: Path, damage: str) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(a) + "\n" for a in DAMAGES[damage](actions)))
    for text in (
        "SELECT count(*), max(s) FROM damaged",
        "INSERT INTO damaged VALUES (1, 'x')",
        "DESCRIBE DETAIL damaged",
    ):
        told = outcome(client, text)
        if text.startswith("SELECT"):
            assert isinstance(told, RemoteError)
            assert "damaged" in str(told)
        assert not any(word in str(told) for word in ("INTERNAL_ERROR", "WORKER_LOST"))


QUESTIONS = (
    "SELECT count(*) AS n FROM damaged",
    "SELECT sum(id) AS n FROM damaged",
    "SELECT id FROM damaged WHERE id < 9",
)


@pytest.mark.parametrize("cardinality", [0, 1, 3, 2**31, -2])
def test_the_count_of_a_deletion_vector_is_compared(client: Client, log: Path, cardinality: int) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for said in (2, cardinality):
        log.write_text("".join(json.dumps(a) + "\n" for a in with_vector(ROWS_1_AND_5, said)(actions)))
        for text in QUESTIONS:
            told = outcome(client, text)
            if said == 2:
                assert told in ([{"n": 98}], [{"n": 4944}], [{"id": i} for i in (0, 2, 3, 4, 6, 7, 8)])
            else:
                assert isinstance(told, RemoteError)
                assert "CARDINALITY_MISMATCH" in str(told) or "DELTA_LOG_CORRUPT" in str(told), told
                assert "default/damaged" in str(told)


def test_the_count_of_the_newest_vector_counts(client: Client, log: Path) -> None:
    """Of a file whose vector was replaced, in commits and behind a checkpoint of them."""
    first = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(a) + "\n" for a in with_vector(ROWS_1_AND_5)(first)))
    (add,) = [a["add"] for a in first if "add" in a]
    (vector,) = [a["add"]["deletionVector"] for a in with_vector(ROWS_1_AND_5)(first) if "add" in a]
    one = {"storageType": "i", "pathOrInlineDv": vector_of(7), "offset": 1, "sizeInBytes": 34, "cardinality": 1}
    second = [
        {"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 1, "deletionVector": vector}},
        {"add": {**add, "deletionVector": one}},
    ]
    log.with_name(f"{1:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in second))
    assert answer(client, QUESTIONS[0]) == [{"n": 99}]
    assert answer(client, "SELECT count(*) AS n FROM damaged VERSION AS OF 0") == [{"n": 98}]
    DeltaTable(str(log.parent.parent)).create_checkpoint()
    log.unlink()
    assert answer(client, QUESTIONS[1]) == [{"n": 4950 - 7}]


@pytest.mark.parametrize("other", ["vector", "spelling"])
def test_a_file_is_in_a_table_once(client: Client, log: Path, other: str) -> None:
    first = [json.loads(line) for line in log.read_text().splitlines()]
    again = with_vector(ROWS_1_AND_5) if other == "vector" else changed("add", path="%70" + first_path(first)[1:])
    assert first_path(first)[:1] == "p"
    actions = [*with_vector(ROWS_1_AND_5)(first), *[a for a in again(first) if "add" in a]]
    if other == "vector":
        actions += [a for a in first if "add" in a]
    log.write_text("".join(json.dumps(a) + "\n" for a in actions))
    for text in QUESTIONS:
        assert "DELTA_LOG_CORRUPT" in str(outcome(client, text))


@pytest.mark.parametrize("spelt", ["./{}", "x/../{}", "%70"])
@pytest.mark.parametrize("kind", ["add", "remove"])
def test_a_file_has_one_spelling(client: Client, log: Path, kind: str, spelt: str) -> None:
    """Spark takes two spellings for one file: what is listed again is there once, what is removed is gone."""
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    add = next(a["add"] for a in actions if "add" in a)
    path = "%70" + add["path"][1:] if "%" in spelt else spelt.format(add["path"])
    more = {"add": {**add, "path": path}, "remove": {"path": path, "dataChange": True, "deletionTimestamp": 1}}
    commit = log.with_name(f"{1:020d}.json")
    for name in (kind, f"{kind[:-1]}\\u00{ord(kind[-1]):x}"):
        commit.write_text(json.dumps({kind: more[kind]}).replace(f'"{kind}"', f'"{name}"', 1) + "\n")
        for text in QUESTIONS:
            assert "DELTA_LOG_CORRUPT" in str(outcome(client, text))


@pytest.mark.parametrize("name", ["remove", "remov\\u0065", "\\u0072emove"])
@pytest.mark.parametrize("last", ["add", "remove"])
def test_a_commit_does_not_add_and_remove_a_file(client: Client, log: Path, last: str, name: str) -> None:
    """The protocol forbids it: the last one counts for Spark, the add for others."""
    add = next(a["add"] for line in log.read_text().splitlines() if "add" in (a := json.loads(line)))
    actions = [{"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}}, {"add": add}]
    log.with_name(f"{1:020d}.json").write_text(
        "".join(json.dumps(a) + "\n" for a in (actions if last == "add" else actions[::-1])).replace(
            '"remove"', f'"{name}"'
        )
    )
    for text in QUESTIONS:
        assert "DELTA_LOG_CORRUPT" in str(outcome(client, text))


def test_a_checkpoint_has_its_columns_in_one_spelling(client: Client, log: Path) -> None:
    """Spark minds no case: the files of a column `ADD` are those of `add`, of which there would be none."""
    DeltaTable(str(log.parent.parent)).create_checkpoint()
    checkpoint = log.with_name(f"{0:020d}.checkpoint.parquet")
    table = pq.read_table(checkpoint)
    pq.write_table(table.rename_columns([{"add": "ADD"}.get(name, name) for name in table.column_names]), checkpoint)
    for text in QUESTIONS:
        assert "DELTA_LOG_CORRUPT" in str(outcome(client, text))


def first_path(actions: Actions) -> str:
    return next(str(a["add"]["path"]) for a in actions if "add" in a)


def test_a_vector_of_rows_that_the_file_lacks(client: Client, log: Path) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    actions = changed("add", stats='{"numRecords": 5}')(with_vector(ROWS_1_AND_5)(actions))
    log.write_text("".join(json.dumps(a) + "\n" for a in actions))
    for text in QUESTIONS:
        assert "DELTA_LOG_CORRUPT" in str(outcome(client, text))


@pytest.mark.parametrize("name", ["²" * 20 + ".json", "٣" * 20 + ".json", "x.json", "²" * 20 + ".checkpoint.parquet"])
def test_names_that_only_look_like_versions_are_none(client: Client, log: Path, name: str) -> None:
    log.with_name(name).write_text("{}")
    assert answer(client, "SELECT count(*) AS n FROM damaged") == [{"n": 100}]
    answer(client, "INSERT INTO damaged VALUES (100, 'x')")
    assert answer(client, "SELECT count(*) AS n FROM damaged") == [{"n": 101}]


TEXTS = ("comment", "__CHAR_VARCHAR_TYPE_STRING", "CURRENT_DEFAULT", "delta.generationExpression")
NO_TEXTS: tuple[Any, ...] = (5, [], {"a": 1}, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, value) for key in TEXTS for value in NO_TEXTS),
        ("__CHAR_VARCHAR_TYPE_STRING", "char(99999999999)"),
        ("__CHAR_VARCHAR_TYPE_STRING", f"varchar({'9' * 10_000})"),
    ],
)
def test_one_tables_columns_do_not_hide_those_of_others(client: Client, log: Path, key: str, value: Any) -> None:
    """A comment that is a number would be an error in every list of columns."""
    fields = [{"name": "s", "type": "string", "nullable": True, "metadata": {key: value}}]
    text = json.dumps({"type": "struct", "fields": fields})
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(a) + "\n" for a in changed("metaData", schemaString=text)(actions)))
    for statement in ("SELECT * FROM damaged", "DESCRIBE EXTENDED damaged", "SHOW CREATE TABLE damaged"):
        told = outcome(client, statement)
        assert isinstance(told, RemoteError) and "INTERNAL_ERROR" not in str(told), told
    columns = "SELECT count(*) AS n, max(comment), max(column_default) FROM system.information_schema.columns"
    listed = answer(client, columns)
    assert listed[0]["n"] > 0


@pytest.mark.parametrize("name", [f"{1:020d}.json", f"{0:020d}.crc", "_last_checkpoint"])
def test_a_file_of_a_terabyte_is_told_and_hides_no_other_table(client: Client, log: Path, name: str) -> None:
    """It holds nothing, and takes no room: the reader of logs would take all memory for it."""
    (log.parent / name).touch()
    os.truncate(log.parent / name, 1 << 40)
    for statement in ("SELECT * FROM damaged", "DESCRIBE damaged", "INSERT INTO damaged VALUES (1, 'a')"):
        told = str(outcome(client, statement))
        assert "[DELTA_LOG_CORRUPT]" in told and name in told, told
    answer(client, "CREATE OR REPLACE TABLE beside_damaged AS SELECT 1 AS beside")
    columns = "SELECT table_name AS t FROM information_schema.columns WHERE column_name = 'beside'"
    assert answer(client, columns) == [{"t": "beside_damaged"}]
    answer(client, "DROP TABLE beside_damaged")


@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize("vector", [True, False])
def test_bytes_that_are_no_text_are_told(client: Client, log: Path, annotated: bool, vector: bool) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (path,) = log.parent.parent.glob("*.parquet")
    values = pa.array([b"\xff\xfe"] * 100)
    texts = pa.Array.from_buffers(pa.string(), 100, values.buffers()) if annotated else values
    pq.write_table(pa.table({"id": pa.array(range(100)), "s": texts}), path)
    if vector:
        actions = with_vector(ROWS_1_AND_5)(actions)
    actions = changed("add", size=path.stat().st_size, stats='{"numRecords": 100}')(actions)
    log.write_text("".join(json.dumps(a) + "\n" for a in actions))
    for text in ("SELECT max(s) FROM damaged", "SELECT upper(s), length(s) FROM damaged", "SELECT * FROM damaged"):
        told = outcome(client, text)
        assert isinstance(told, RemoteError)
        assert "FAILED_READ_FILE" in str(told) and path.name in str(told), told
    assert answer(client, "SELECT count(id) AS n FROM damaged") == [{"n": 98 if vector else 100}]


FULL_STATISTICS = json.dumps(
    {
        "numRecords": 100,
        "nullCount": {"id": 0, "s": 0},
        "minValues": {"id": 0, "s": "0"},
        "maxValues": {"id": 99, "s": "99"},
    }
)
NUMBERS = list(range(100))
# What a file may hold in the place of ``id BIGINT, s STRING``, and whether all of it is what the table says.
STORED: dict[str, tuple[pa.Array, pa.Array, bool]] = {
    "narrower": (pa.array(NUMBERS, pa.int32()), pa.array(map(str, NUMBERS)), True),
    "large": (pa.array(NUMBERS), pa.array(map(str, NUMBERS), pa.large_string()), True),
    "dictionary": (pa.array(NUMBERS), pa.array(map(str, NUMBERS)).dictionary_encode(), True),
    "bytes that are text": (pa.array(NUMBERS), pa.array([str(n).encode() for n in NUMBERS]), True),
    "bytes that are none": (pa.array(NUMBERS), pa.array([b"\xff\xfe%d" % n for n in NUMBERS]), False),
    "fixed bytes": (pa.array(NUMBERS), pa.array([b"\xff\xff"] * 100, pa.binary(2)), False),
    "numbers as text": (pa.array(NUMBERS), pa.array(NUMBERS), False),
    "text as numbers": (pa.array(map(str, NUMBERS)), pa.array(map(str, NUMBERS)), False),
    "doubles": (pa.array([n + 0.5 for n in NUMBERS]), pa.array(map(str, NUMBERS)), False),
    "unsigned": (pa.array(NUMBERS, pa.uint64()), pa.array(map(str, NUMBERS)), False),
    "decimals": (pa.array(NUMBERS).cast(pa.decimal128(38, 2)), pa.array(map(str, NUMBERS)), False),
    "dates": (pa.array(NUMBERS, pa.int32()).cast(pa.date32()), pa.array(map(str, NUMBERS)), False),
    "lists": (pa.array([[n] for n in NUMBERS]), pa.array(map(str, NUMBERS)), False),
    "flags": (pa.array([n > 5 for n in NUMBERS]), pa.array(map(str, NUMBERS)), False),
}


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("stored", STORED)
def test_statistics_do_not_stand_for_the_types_of_a_file(client: Client, log: Path, stored: str, vector: bool) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (path,) = log.parent.parent.glob("*.parquet")
    ids, texts, right = STORED[stored]
    pq.write_table(pa.table({"id": ids, "s": texts}), path)
    if vector:
        actions = with_vector(ROWS_1_AND_5)(actions)
    actions = changed("add", size=path.stat().st_size, stats=FULL_STATISTICS)(actions)
    log.write_text("".join(json.dumps(a) + "\n" for a in actions))
    live = [n for n in NUMBERS if not vector or n not in (1, 5)]
    for text, rows in (
        ("SELECT id, s FROM damaged ORDER BY id", [{"id": n, "s": str(n)} for n in live]),
        ("SELECT id, s FROM damaged WHERE s = '7'", [{"id": 7, "s": "7"}]),
        ("SELECT id, upper(s) AS s FROM damaged WHERE id = 8", [{"id": 8, "s": "8"}]),
        ("SELECT sum(id) AS id, max(s) AS s FROM damaged", [{"id": sum(live), "s": "99"}]),
    ):
        told = outcome(client, text)
        if right:
            assert told == rows
        else:
            assert isinstance(told, RemoteError)
            assert any(word in str(told) for word in ("UNSUPPORTED_DATATYPE", "FAILED_READ_FILE")), told


def padded(data: bytes, size: int) -> bytes:
    """A Parquet file made longer by bytes that nothing points to, before its footer."""
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:at] + bytes(size - len(data)) + data[at:]


def test_a_file_that_takes_the_place_of_another_is_looked_at(client: Client, log: Path) -> None:
    """With the same name and size, and the table's log as it was."""
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (path,) = log.parent.parent.glob("*.parquet")
    path.write_bytes(padded(path.read_bytes(), 10_000))
    actions = changed("add", size=10_000, stats=FULL_STATISTICS)(actions)
    log.write_text("".join(json.dumps(a) + "\n" for a in actions))
    assert answer(client, "SELECT max(s) AS s FROM damaged") == [{"s": "99"}]
    other = path.with_name("other")
    pq.write_table(pa.table({"id": NUMBERS, "s": pa.array([b"\xff\xfe"] * 100)}), other)
    other.write_bytes(padded(other.read_bytes(), 10_000))
    other.replace(path)
    # Another text: the answer to the first one may be kept.
    told = outcome(client, "SELECT max(s) AS t FROM damaged")
    assert isinstance(told, RemoteError) and "FAILED_READ_FILE" in str(told), told


def test_a_file_with_other_types_is_told(client: Client, log: Path) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text(
        "".join(
            json.dumps(a) + "\n" for a in schema('{"type":"array","elementType":"long","containsNull":true}')(actions)
        )
    )
    told = outcome(client, "SELECT size(id) FROM damaged")
    assert isinstance(told, RemoteError)
    assert any(word in str(told) for word in ("UNSUPPORTED_DATATYPE", "FAILED_READ_FILE"))


INFOS: tuple[dict[str, Any], ...] = (
    {"readVersion": True},
    {"readVersion": 2**70},
    {"job": {"jobId": 5, "jobName": [1], "evil": 1}},
    {"job": [1]},
    {"notebook": {"notebookId": {"a": 1}}},
    {"operation": {"a": 1}, "userName": [1, 2], "engineInfo": True},
    {"operation": "a\0b\n\r\x1b[31m"},
    {"operationParameters": [1]},
    {"operationParameters": {"a": None, "": {"b": [1, None]}}},
    {"operationMetrics": {str(i): "v" for i in range(50_000)}},
    {"isBlindAppend": "x", "timestamp": 2**80},
    {"inCommitTimestamp": [1]},
)


@pytest.mark.parametrize("info", INFOS)
def test_what_a_commit_says_of_itself_is_told_as_far_as_it_has_its_types(
    client: Client, log: Path, info: dict[str, Any]
) -> None:
    log.with_name(f"{1:020d}.json").write_text(json.dumps({"commitInfo": {"operation": "WRITE", **info}}) + "\n")
    newest, first = answer(client, "DESCRIBE HISTORY damaged")
    assert (newest["version"], first["version"]) == (1, 0)
    if isinstance(info.get("operation"), str):
        assert newest["operation"] == info["operation"]
    elif "operation" in info:
        assert (newest["operation"], newest["userName"], newest["engineInfo"]) == ('{"a":1}', "[1,2]", "true")
    assert newest["readVersion"] is None and newest["isBlindAppend"] is None
    assert answer(client, "SELECT count(*) AS n FROM damaged") == [{"n": 100}]


@pytest.mark.parametrize("moment", ["x", [1], 2**62, -(2**62), 1.5, True, None])
def test_moments_that_are_none_are_told(client: Client, log: Path, moment: Any) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    actions = changed("metaData", configuration={"delta.enableInCommitTimestamps": "true"}, createdTime=2**62)(actions)
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    actions = changed("commitInfo", inCommitTimestamp=moment)(replaced("protocol", features)(actions))
    actions.sort(key=lambda action: "commitInfo" not in action)
    log.write_text("".join(json.dumps(a) + "\n" for a in actions))
    for text in (
        "DESCRIBE HISTORY damaged",
        "DESCRIBE DETAIL damaged",
        "SELECT * FROM damaged TIMESTAMP AS OF '2020-01-01'",
    ):
        assert "DELTA_LOG_CORRUPT" in str(outcome(client, text))
    assert answer(client, "SELECT count(*) AS n FROM damaged") == [{"n": 100}]


def test_times_and_sizes_beyond_their_types(client: Client, log: Path) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(a) + "\n" for a in changed("metaData", createdTime=2**62)(actions)))
    assert answer(client, "DESCRIBE DETAIL damaged")[0]["createdAt"] is None
    (add,) = (a["add"] for a in actions if "add" in a)
    more = [{"add": {**add, "path": f"{i}.parquet", "size": 2**62}} for i in range(3)]
    log.with_name(f"{1:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in more))
    assert "DELTA_LOG_CORRUPT" in str(outcome(client, "DESCRIBE DETAIL damaged"))


@pytest.mark.parametrize("stats", ["[", "x", '{"numRecords":100,"maxValues":{"id":' + "9" * 5000 + "}}", "[" * 100_000])
def test_statistics_that_cannot_be_read_are_told_anew(client: Client, log: Path, stats: str) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (good,) = (a["add"]["stats"] for a in actions if "add" in a)
    log.write_text("".join(json.dumps(a) + "\n" for a in changed("add", stats=stats)(actions)))
    answer(client, "ANALYZE TABLE damaged COMPUTE DELTA STATISTICS")
    newest = log.with_name(f"{1:020d}.json").read_text().splitlines()
    assert [json.loads(a["add"]["stats"]) for a in map(json.loads, newest) if "add" in a] == [json.loads(good)]


LEFT = {
    "DELETE FROM damaged WHERE id < 3": 97,
    "DELETE FROM damaged WHERE id = (SELECT 50)": 99,
    "UPDATE damaged SET s = 'x' WHERE id = 50": 100,
    "MERGE INTO damaged d USING (SELECT 50 AS id) n ON d.id = n.id WHEN MATCHED THEN DELETE": 99,
    "INSERT INTO damaged REPLACE WHERE id < 3 SELECT 1, 'x'": 98,
}


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("count", [3, 1000, -5, 2**63])
@pytest.mark.parametrize("change", LEFT)
def test_a_wrong_count_of_rows_takes_no_other_rows_along(
    client: Client, log: Path, change: str, count: int, vectors: str
) -> None:
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (stats,) = (json.loads(a["add"]["stats"]) for a in actions if "add" in a)
    wrong = changed("add", stats=json.dumps({**stats, "numRecords": count}))
    kept = changed("metaData", configuration={"delta.enableDeletionVectors": vectors})
    log.write_text("".join(json.dumps(a) + "\n" for a in kept(wrong(actions))))
    told = outcome(client, change)
    (rows,) = answer(client, "SELECT count(id) AS n FROM damaged")
    if not isinstance(told, RemoteError):  # the rows that stay were written by what was read
        assert rows["n"] == LEFT[change]
        return
    assert f"counts {count} rows" in str(told) and rows["n"] == 100
    answer(client, "ANALYZE TABLE damaged COMPUTE DELTA STATISTICS")
    answer(client, change)
    assert answer(client, "SELECT count(id) AS n FROM damaged") == [{"n": LEFT[change]}]


@pytest.mark.parametrize("configuration", [None, [], "x"])
def test_properties_that_are_none_by_now_are_told(client: Client, log: Path, configuration: Any) -> None:
    answer(client, "INSERT INTO damaged VALUES (1, 'x')")
    assert answer(client, "SELECT count(*) AS n FROM damaged") == [{"n": 101}]
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(a) + "\n" for a in changed("metaData", configuration=configuration)(actions)))
    for text in ("ALTER TABLE damaged ADD COLUMN more INT", "CREATE TABLE copied SHALLOW CLONE damaged"):
        assert "[DELTA_LOG_CORRUPT]" in str(outcome(client, text))


@pytest.mark.parametrize(
    "feature", ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "coordinatedCommits"]
)
def test_commits_that_others_coordinate_are_not_missed(client: Client, log: Path, feature: str) -> None:
    """The newest lie in a folder of their own, and the log does not tell which of them count."""
    answer(client, "INSERT INTO damaged VALUES (100, 'x')")
    readers = [feature] if feature.startswith("catalog") else []
    spec = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7, "writerFeatures": [feature]}
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    actions = replaced("protocol", spec | ({"readerFeatures": readers} if readers else {}))(actions)
    log.write_text("".join(json.dumps(a) + "\n" for a in actions))
    folder = log.parent / ("_staged_commits" if readers else "_commits")
    folder.mkdir()
    name = f"{1:020d}.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    (log.parent / f"{1:020d}.json").rename(folder / name)
    try:
        for text in (*QUESTIONS, "INSERT INTO damaged VALUES (1, 'x')", "DESCRIBE HISTORY damaged", "VACUUM damaged"):
            told = str(outcome(client, text))
            assert "UNSUPPORTED_TABLE_FEATURE" in told and feature in told, told
    finally:
        (folder / name).unlink()
        folder.rmdir()


ON_LINES: dict[str, Callable[[Actions], str]] = {
    "one line": lambda actions: " ".join(map(json.dumps, actions)),
    "no spaces": lambda actions: "".join(map(json.dumps, actions)),
    "many lines": lambda actions: "\n".join(json.dumps(action, indent=1) for action in actions),
}


@pytest.mark.parametrize("spelt", ON_LINES)
@pytest.mark.parametrize("odd", ["removed", "fractions", "escaped"])
def test_what_is_read_in_several_ways_is_told_however_it_lies_on_lines(
    client: Client, log: Path, odd: str, spelt: str
) -> None:
    """The reader of logs minds no lines, so what is looked for in them must be found, or be told to be no commit."""
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    match odd:
        case "removed":
            actions.append({"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}})
        case "fractions":
            actions = changed("add", stats='{"numRecords":1.5}')(actions)
        case "escaped":
            actions = changed("metaData", description="\U00020bb7")(actions)
    log.write_text(ON_LINES[spelt](actions) + "\n")
    told = str(outcome(client, "SELECT count(*) AS n FROM damaged"))
    assert told.startswith(("[DELTA_LOG_CORRUPT]", "[UNSUPPORTED_TABLE_FEATURE]")) and "damaged" in told
