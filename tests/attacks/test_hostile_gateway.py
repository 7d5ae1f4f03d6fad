"""`gateway query` on a gateway that answers what it likes: rows or one line of an error, nothing that a terminal obeys."""

from __future__ import annotations

import io
import random
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest

from gateway.cli.shell import Shell, View
from gateway.cli.shell.completion import Names
from gateway.protocol.client import Client, HttpConnection, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.hostile import EVIL, FORMS, OK, RAW, Screen, encoded, hostile, of_rows, query, saying, told
from tests.live.processes import eventually

END = 2**63 - 1


def deep() -> pa.Array:
    found = pa.array([1])
    for _ in range(60):
        found = pa.ListArray.from_arrays([0, 1], found)
    return found


ODD: dict[str, Callable[[], pa.Array]] = {
    "dictionary": lambda: pa.array([EVIL]).dictionary_encode(),
    "struct": lambda: pa.array([{EVIL: 1}]),
    "struct of odd": lambda: pa.StructArray.from_arrays([pa.array([1.5], pa.float16())], [EVIL]),
    "union": lambda: pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([EVIL])], [EVIL]
    ),
    "duration": lambda: pa.array([END], pa.duration("s")),
    "months": lambda: pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    "seconds": lambda: pa.array([END, -END], pa.timestamp("s")),
    "microseconds": lambda: pa.array([END, -END], pa.timestamp("us", "UTC")),
    "zone": lambda: pa.array([0], pa.timestamp("us", EVIL)),
    "zone elsewhere": lambda: pa.array([0], pa.timestamp("us", "../../../../dev/zero")),
    "days": lambda: pa.array([2**31 - 1, -(2**31)], pa.date32()),
    "times": lambda: pa.array([END]).view(pa.time64("us")),
    "nulls": lambda: pa.nulls(20_000),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays([20_000], [EVIL]),
    "map": lambda: pa.array([[(EVIL, 1), (EVIL, 2)]], pa.map_(pa.string(), pa.int8())),
    "decimals": lambda: pa.array([10**70], pa.decimal256(76, 0)),
    "lists": deep,
}


@pytest.mark.parametrize("kind", ODD)
def test_values_and_names_of_all_kinds(kind: str, tmp_path: Path) -> None:
    with hostile(saying(of_rows(pa.table({EVIL: ODD[kind]()})))) as url:
        for form in (*FORMS, ["-o", str(tmp_path / "x.parquet")], ["-o", str(tmp_path / "x.csv")]):
            assert query(url, *form)[0] in (0, 1, 2)


@pytest.mark.parametrize(
    "method", ["OpenSession", "ExecuteStatement", "GetOperationStatus", "FetchResults", "CloseSession"]
)
def test_errors_are_shown_without_what_a_terminal_obeys(method: str) -> None:
    answers = of_rows(pa.table({"a": [1]}))
    answers[method].status = ttypes.TStatus(statusCode=3, errorMessage=EVIL, displayMessage=EVIL, sqlState=EVIL)
    with hostile(saying(answers)) as url:
        code, shown = query(url)
    assert code == (0 if method == "CloseSession" else 1) and "\\x1b]0;evil" in shown


HEADS = {
    "no length": b"HTTP/1.1 200 OK\r\n\r\n",
    "no number": b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    "below zero": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    "huge": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
    "no status": b"HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "odd status": b"HTTP/1.1 \x1b[2J x\r\nContent-Length: 0\r\n\r\n",
    "no colon": b"HTTP/1.1 200 OK\r\nnothing\r\nContent-Length: 0\r\n\r\n",
    "no end": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500_000,
    "refused": b"HTTP/1.1 500 x\r\nContent-Length: %d\r\n\r\n%b" % (len(EVIL.encode()), EVIL.encode()),
}


@pytest.mark.parametrize("kind", HEADS)
def test_answers_that_are_none(kind: str) -> None:
    with hostile(lambda method, body: HEADS[kind]) as url:
        code, shown = query(url)
    assert code == 1 and 1 <= shown.count("\n") <= 4


BAD = "abc\xff\xfeh".encode("latin-1")
UNTEXTS: dict[str, Callable[[], pa.Table]] = {
    "name": lambda: pa.table({"abcdeh": [1]}),
    "field": lambda: pa.table({"a": [{"abcdeh": 1}]}),
    "field in a list of maps": lambda: pa.table(
        {"a": pa.array([], pa.list_(pa.map_(pa.int8(), pa.struct({"abcdeh": pa.int8()}))))}
    ),
    "zone": lambda: pa.table({"a": pa.array([0], pa.timestamp("us", "abcdeh"))}),
}


@pytest.mark.parametrize("kind", UNTEXTS)
def test_names_that_are_no_texts(kind: str, tmp_path: Path) -> None:
    answers = of_rows(UNTEXTS[kind]())
    schema = answers["GetResultSetMetadata"].arrowSchema
    answers["GetResultSetMetadata"].arrowSchema = schema.replace(b"abcdeh", BAD)
    assert BAD in answers["GetResultSetMetadata"].arrowSchema
    screen = Screen()
    with hostile(saying(answers)) as url:
        for form in (*FORMS, ["-o", str(tmp_path / "x.parquet")]):
            code, shown = query(url, *form)
            assert code == 1 and shown.startswith("The answer cannot be read") and shown.count("\n") == 1
        with redirect_stderr(screen):
            shell = Shell(lambda: Client(url).open(), View(timing=False, progress=False, pager=False), screen)
            shell.run("SELECT 1;")
            shell.close()
    assert list(tmp_path.iterdir()) == [] and shell.failed


@pytest.mark.parametrize("method", of_rows(pa.table({"a": [1]})))
def test_answers_to_other_calls_than_were_made(method: str) -> None:
    bodies = encoded(of_rows(pa.table({"a": [1]})))
    other = "CloseSession" if method != "CloseSession" else "CloseOperation"
    with hostile(lambda asked, body: told(bodies[other if asked == method else asked])) as url:
        code, shown = query(url)
    if method == "CancelOperation":  # nobody cancels
        assert (code, shown) == (0, "a\n-\n1\n")
        return
    assert code == (0 if method == "CloseSession" else 1)
    assert f"(ValueError: to {other} where {method} was asked)" in shown


def test_a_wrong_answer_does_not_end_the_search_for_names(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    bodies = encoded(of_rows(pa.table({"a": [1]})))
    asked: list[str] = []

    def answer(method: str, body: bytes) -> bytes:
        asked.append(method)
        return told(bodies["CloseSession"])

    with hostile(answer) as url:
        names = Names(lambda: Client(url).open())
        names.start()
        eventually(lambda: asked, 20)
        names.changed()
        eventually(lambda: len(asked) > 1, 20)
        names.close()
    assert ended == []


def packed(rows: pa.RecordBatch, codec_name: str) -> bytes:
    """The batch as a message whose buffers Arrow itself has compressed."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=codec_name)) as writer:
        writer.write_batch(rows)
    messages = list(pa.ipc.MessageReader.open_stream(sink.getvalue()))
    found: bytes = messages[-1].serialize().to_pybytes()
    return found


@pytest.mark.parametrize("codec_name", ["zstd", "lz4"])
def test_rows_that_arrow_itself_would_unpack(codec_name: str) -> None:
    rows = pa.table({"a": ["x" * 100_000]})
    answers = of_rows(rows)
    message = packed(rows.to_batches()[0], codec_name)
    assert len(message) < 2000
    answers["FetchResults"].results.arrowBatches[0].batch = message
    with hostile(saying(answers)) as url:
        assert query(url) == (1, "The answer cannot be read (ValueError: rows that are packed once more).\n")


MANY = 1 << 24
AMPLE: dict[str, Callable[[], pa.Array]] = {
    "list of nulls": lambda: pa.ListArray.from_arrays(pa.array([0, MANY], pa.int32()), pa.nulls(MANY)),
    "fixed list of nulls": lambda: pa.FixedSizeListArray.from_arrays(pa.nulls(2**31 - 1), 2**31 - 1),
    "list of no bytes": lambda: pa.ListArray.from_arrays(
        pa.array([0, MANY], pa.int32()), pa.Array.from_buffers(pa.binary(0), MANY, [None, pa.py_buffer(b"")])
    ),
    "list of empty structs": lambda: pa.ListArray.from_arrays(
        pa.array([0, MANY], pa.int32()), pa.Array.from_buffers(pa.struct([]), MANY, [None])
    ),
    "views": lambda: pa.array(["x" * 100], pa.string_view()),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays([20_000], ["x"]),
    "lists of bits": lambda: pa.ListArray.from_arrays(
        pa.array([0, 5 * MANY], pa.int32()),
        pa.Array.from_buffers(pa.bool_(), 5 * MANY, [None, pa.py_buffer(bytes(MANY))]),
    ),
}


@pytest.mark.parametrize("kind", AMPLE)
def test_few_bytes_of_many_values(kind: str) -> None:
    with hostile(saying(of_rows(pa.table({"a": AMPLE[kind]()}), lz4.frame.compress))) as url:
        for form in (["--format", "table"], ["--format", "json"]):
            code, shown = query(url, *form)
            assert code == 1 and shown.startswith("The answer cannot be read (ValueError: ") and shown.count("\n") == 1


def test_columns_that_share_their_bytes() -> None:
    """Many columns of one buffer would be a large table of a small answer."""
    answers = of_rows(pa.table({name: [name * 200] for name in "abcd"}))
    batch = answers["FetchResults"].results.arrowBatches[0]
    texts = [struct.pack("<qq", place, 200) for place in range(2000)]  # offset and length of a column's texts
    (first, *others) = [place for place in texts if place in batch.batch]
    shared = struct.pack("<qq", struct.unpack("<qq", first)[0], 600)
    for place in (first, *others):
        batch.batch = batch.batch.replace(place, shared)
    assert len(others) == 3 and len(pa.ipc.read_message(batch.batch).body) < 4 * 600
    with hostile(saying(answers)) as url:
        assert query(url) == (1, "The answer cannot be read (ValueError: columns that overlap).\n")


def test_rows_with_more_bytes_than_their_columns() -> None:
    answers = of_rows(pa.table({"a": [1]}))
    answers["FetchResults"].results.arrowBatches[0].batch += bytes(5000)
    with hostile(saying(answers)) as url:
        assert query(url) == (1, "The answer cannot be read (ValueError: more than the rows).\n")


def test_other_rows_than_are_told() -> None:
    answers = of_rows(pa.table({"a": [1]}))
    answers["FetchResults"].results.arrowBatches[0].rowCount = 2
    with hostile(saying(answers)) as url:
        assert "1 rows where 2 were told" in query(url)[1]


def test_empty_structs_without_end() -> None:
    count = 2_000_000
    bodies = encoded(of_rows(pa.table({"a": [1]})))
    rows = ttypes.TRowSet(0, [], arrowBatches=[ttypes.TSparkArrowBatch(None, None)])
    page = encoded({"FetchResults": ttypes.TFetchResultsResp(OK, False, rows)})["FetchResults"]
    head = struct.Struct(">bI")
    before, after = page.rsplit(head.pack(12, 1), 1)
    bodies["FetchResults"] = before + head.pack(12, count) + bytes(count) + after[1:]
    with hostile(lambda method, body: told(bodies[method])) as url:
        assert query(url) == (1, "The answer cannot be read (MalformedError: too many elements).\n")


@pytest.mark.parametrize("status", [b"200 OK", b"401 x"])
def test_room_is_made_for_what_comes(status: bytes) -> None:
    """Not for what is declared: 2 GiB here."""
    with hostile(lambda method, body: b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\nabc" % (status, 1 << 31)) as url:
        server = HttpConnection(url, timeout=0.2)
        tracemalloc.start()
        with pytest.raises(TimeoutError):
            server.post(b"")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


def test_of_a_long_refusal_the_first_words_are_read() -> None:
    with hostile(lambda method, body: b"HTTP/1.1 500 x\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 99_999_999) as url:
        code, shown = query(url)
    assert code == 1 and shown == f"HTTP 500: {'x' * 500}\n"


def test_large_answers_are_whole() -> None:
    text = random.Random(3).randbytes(3_000_000).hex()
    with hostile(saying(of_rows(pa.table({"a": [text]})))) as url:
        assert query(url, "--format", "csv") == (0, f"a\n{text}\n")


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"])
def test_answers_that_trickle_have_an_end(head: bytes) -> None:
    def answer(method: str, body: bytes) -> Iterator[bytes]:
        yield head
        for _ in range(100):
            time.sleep(0.05)
            yield b"a"

    with hostile(answer) as url:
        server = HttpConnection(url, timeout=0.4)
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="too slowly"):
            server.post(b"")
        assert time.monotonic() - start < 3


def test_rows_that_unpack_to_more_than_there_may_be() -> None:
    def bomb(data: bytes) -> bytes:
        return lz4.frame.compress(bytes(1 << 20)) if len(data) < 1000 else data

    with hostile(saying(of_rows(pa.table({"a": [1]}), bomb))) as url:
        assert query(url)[0] == 1
    more = pa.table({"a": pa.nulls(1_000_001)})
    with hostile(saying(of_rows(more))) as url:
        assert "more rows than were asked for" in query(url, "--format", "csv")[1]


def mutant(rng: random.Random, body: bytes) -> bytes:
    """A few bytes of it are others, more, or fewer."""
    found = bytearray(body)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(found) or 1)
        match rng.randrange(5):
            case 0:
                found[at : at + 1] = rng.randbytes(1)
            case 1:
                del found[at : at + rng.randrange(1, 9)]
            case 2:
                found[at:at] = rng.randbytes(rng.randrange(9))
            case 3:
                found[at : at + 4] = rng.choice([b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4), b"\0\x10\0\0"])
            case _:
                found[at : at + 1] = b"\x1b"
    return bytes(found)


def test_mutants_of_answers() -> None:
    """Arrow would read, and fall over, what lies outside of rows that name places beyond their bytes."""
    rows = pa.table(
        {
            "s": [f"v{i}" for i in range(50)],
            "a": [[i] * (i % 3) for i in range(50)],
            "m": pa.array([[(f"k{i}", i)] for i in range(50)], pa.map_(pa.string(), pa.int64())),
            "t": pa.array(range(50), pa.timestamp("us", "UTC")),
            "st": [{"x": i, "y": str(i)} for i in range(50)],
        }
    )
    rng = random.Random(5)
    bodies = encoded(of_rows(rows))
    asked = [0]

    def answer(method: str, body: bytes) -> bytes:
        changed = asked[0] % 3 == 0 or method in ("FetchResults", "GetResultSetMetadata")
        asked[0] += 1
        return told(mutant(rng, bodies[method]) if changed else bodies[method])

    with hostile(answer) as url:
        for turn in range(150):
            assert query(url, *FORMS[turn % len(FORMS)])[0] in (0, 1, 2)


@pytest.mark.parametrize("columns", [{"a": [1]}, {"a": [EVIL], "b": [EVIL]}, {}, {"a": ["x"], "b": [None]}])
def test_the_prompt_stays_whatever_it_is_told(columns: dict[str, Any]) -> None:
    screen = Screen()
    with hostile(saying(of_rows(pa.table(columns)))) as url, redirect_stderr(screen):
        shell = Shell(lambda: Client(url).open(), View(timing=False, progress=False, pager=False), screen)
        shell.run("SELECT 1;")
        shell.run("USE x;")
        shell.close()
        assert not RAW & set(shell.place + screen.getvalue())


def test_names_to_complete_are_names() -> None:
    """What Tab inserts is quoted, or a word."""
    tables = pa.table({"c": ["main", "x"], "s": ["default", "y"], "t": [f"ab{EVIL}", "abc; DROP TABLE t;"]})
    functions = pa.table({"f": ["abs", "abs\n; DROP TABLE t;", f"ab{EVIL}", "abs()"]})
    answers = {b"SHOW": encoded(of_rows(functions)), b"SELECT": encoded(of_rows(tables))}
    asked = [b"SELECT"]

    def answer(method: str, body: bytes) -> bytes:
        if method == "ExecuteStatement":
            asked[0] = b"SHOW" if b"SHOW" in body else b"SELECT"
        return told(answers[asked[0]][method])

    with hostile(answer) as url:
        with Client(url).open() as client, pytest.raises(RemoteError, match="other columns"):
            client.execute("SELECT 1").rows_of_texts(2)
        names = Names(lambda: Client(url).open())
        names.start()
        eventually(lambda: names.functions, 20)
        names.close()
    assert names.functions == ("abs",) and len(names.tables) == 2
    offered = [text for text, _ in names.offered("SELECT * FROM `abc", "x.y")]
    assert offered == ["`abc; DROP TABLE t;`"]
