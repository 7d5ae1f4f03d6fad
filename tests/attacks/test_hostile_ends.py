"""`gateway query` on a gateway that goes on for ever, says nothing, or has one value larger than all others: it has an end."""

from __future__ import annotations

import io
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from gateway.cli import main, output
from gateway.cli import query as query_command
from gateway.cli.shell import Shell, View, run_prompt
from gateway.cli.shell.completion import Names
from gateway.protocol import client as client_module
from gateway.protocol.client import Client, RemoteError
from gateway.thrift_gen.TCLIService import ttypes
from tests.attacks.hostile import OK, Screen, encoded, hostile, of_rows, query, saying, told

ONE = pa.table({"a": [1]})


def quiet() -> View:
    return View(timing=False, progress=False, pager=False)


def counted(answers: dict[str, Any], asked: list[str]) -> Callable[[str, bytes], bytes]:
    """The answers; the names of the calls are noted."""
    bodies = encoded(answers)

    def answer(method: str, body: bytes) -> bytes:
        asked.append(method)
        return told(bodies[method])

    return answer


def endless(rows: pa.Table, batches: int = 1) -> dict[str, Any]:
    """Answers whose every page says that there are more, with the rows so many times."""
    answers = of_rows(rows)
    answers["FetchResults"].hasMoreRows = True
    answers["FetchResults"].results.arrowBatches *= batches
    return answers


def empty() -> pa.Table:
    return pa.Table.from_batches([pa.record_batch({"a": pa.array([], pa.int64())})])


@pytest.mark.parametrize("batches", [0, 1, 50])
@pytest.mark.parametrize("form", [[], ["--format", "csv"], ["--chart"]])
def test_pages_without_rows(batches: int, form: list[str]) -> None:
    asked: list[str] = []
    with hostile(counted(endless(empty(), batches), asked)) as url:
        code, shown = query(url, *form)
    assert code == 1 and "says that there are more rows, and sends none (100 times)" in shown
    assert asked.count("FetchResults") == 101


def test_pages_without_rows_before_those_with_rows() -> None:
    none, some = encoded(endless(empty())), encoded(of_rows(ONE))
    left = [90]

    def answer(method: str, body: bytes) -> bytes:
        left[0] -= method == "FetchResults"
        return told((none if left[0] > 0 else some)[method])

    with hostile(answer) as url:
        assert query(url) == (0, "a\n-\n1\n")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_MOST_SHOWN", 1 << 23)


@pytest.mark.usefixtures("narrow")
def test_rows_that_are_shown_have_a_size() -> None:
    asked: list[str] = []
    with hostile(counted(endless(pa.table({"a": ["f" * 1_000_000]})), asked)) as url:
        code, shown = query(url, "--format", "vertical", "--quiet")
    assert code == 0 and "(8 rows shown, there are more; --max-rows 0 shows all)" in shown
    assert asked.count("FetchResults") == 9


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["f" * 1_000_000] * 20, 8),
        (["f" * 20_000_000, "g"], 1),
        ([[None] * 500_000] * 20, 2),
        ([[True] * 500_000] * 20, 2),
        (pa.array([[("f" * 1_000_000, 1)]] * 20, pa.map_(pa.string(), pa.int8())), 8),
        ([{"f": "f" * 1_000_000}] * 20, 8),
    ],
    ids=["texts", "one", "nulls", "bits", "maps", "structs"],
)
def test_rows_that_are_shown_have_a_size_within_one_page_too(values: Any, shown: int) -> None:
    rows = pa.table({"a": values})
    batches, more = output.first_rows(rows.to_batches(), 1000)
    assert (sum(batch.num_rows for batch in batches), more) == (shown, True)
    batches, more = output.first_rows(rows.to_batches(), 0)
    assert (sum(batch.num_rows for batch in batches), more) == (rows.num_rows, False)


def test_names_without_end_are_not_taken() -> None:
    asked: list[str] = []
    with hostile(counted(endless(pa.table({"a": ["n" * 6_000_000]})), asked)) as url:
        result = Client(url).open().execute("SHOW FUNCTIONS")
        with pytest.raises(RemoteError, match="more rows than can be taken"):
            result.rows_of_texts(1)
    assert asked.count("FetchResults") == 6


def test_a_statement_that_runs_for_ever_is_not_asked_for_all_the_time() -> None:
    asked: list[float] = []
    running, done = encoded(of_rows(ONE)), encoded(of_rows(ONE))
    state = ttypes.TGetOperationStatusResp(OK, ttypes.TOperationState.RUNNING_STATE)
    running |= encoded({"GetOperationStatus": state})

    def answer(method: str, body: bytes) -> bytes:
        if method == "GetOperationStatus":
            asked.append(time.monotonic())
        return told((running if asked and time.monotonic() - asked[0] < 0.6 else done)[method])

    with hostile(answer) as url:
        assert query(url, "--quiet") == (0, "a\n-\n1\n")
    assert 4 < len(asked) < 12


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"x" * 5_000_000: [1] * 1000, "b": [1] * 1000}),
        pa.table({"a": ["y" * 5_000_000] + ["z"] * 999, "b": [1] * 1000}),
    ],
    ids=["name", "value"],
)
@pytest.mark.parametrize("form", ["table", "vertical"])
def test_one_large_value_does_not_make_all_large(rows: pa.Table, form: str) -> None:
    with hostile(saying(of_rows(rows))) as url:
        code, shown = query(url, "--format", form)
    assert code == 0 and len(shown) < 10_000_000
    assert "y" * 5_000_000 in shown or rows.schema.names[0] != "a", "values are not cut"


def test_hosts_that_no_host_can_be() -> None:
    for url in ("http://a..b", "http://.example", f"http://{'a' * 70}.example", "http://h/\u20ac"):
        code, shown = query(url)
        assert code == 2 and shown.startswith("gateway: url: no host has the name") and shown.count("\n") == 1


@pytest.mark.parametrize(
    "url", ["http://user:PW@h", "http://user:PW/x@h", "ftp://user:PW@h", "http://user:PW@[h", "user:PW@h"]
)
def test_the_password_of_a_url_is_neither_sent_nor_shown(url: str) -> None:
    code, shown = query(url)
    assert code == 2 and "PW" not in shown and "--token" in shown


def test_rows_behind_links_are_not_lost() -> None:
    answers = of_rows(ONE)
    link = ttypes.TSparkArrowResultLink("http://127.0.0.1:1/x", 2**62, 0, 1, 1)
    answers["FetchResults"].results = ttypes.TRowSet(0, [], resultLinks=[link])
    with hostile(saying(answers)) as url:
        assert query(url) == (1, "The rows are behind links, which were not asked for.\n")


def test_a_state_that_is_none() -> None:
    answers = of_rows(ONE)
    answers["GetOperationStatus"].operationState = None
    with hostile(saying(answers)) as url:
        assert query(url) == (1, "The answer has no state.\n")


@pytest.mark.parametrize(("text", "most"), [("L" * 1_000_000, 1 << 16), ("L\n" * 500_000, 2000)])
def test_a_long_error_is_cut(text: str, most: int) -> None:
    answers = of_rows(ONE)
    answers["ExecuteStatement"].status = ttypes.TStatus(statusCode=3, errorMessage=text)
    with hostile(saying(answers)) as url:
        code, shown = query(url)
    assert code == 1 and shown.startswith("L") and shown.endswith("…\n") and len(shown) < most + 10


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_FAREWELL", 0.2)


def silent(*methods: str) -> Callable[[str, bytes], Iterator[bytes]]:
    """Answers but to some calls."""
    bodies = encoded(of_rows(ONE))

    def answer(method: str, body: bytes) -> Iterator[bytes]:
        if method in methods:
            time.sleep(3)
            raise ConnectionError
        yield told(bodies[method])

    return answer


@pytest.mark.usefixtures("hurry")
def test_after_ctrl_c_nobody_waits_for_a_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(query_command, "write_rows", interrupted)
    with hostile(silent("CancelOperation", "CloseOperation", "CloseSession")) as url:
        start = time.monotonic()
        assert query(url) == (130, "The session was not closed: timed out\n")
        client = Client(url).open()
        client.execute("SELECT 1").cancel()
        with pytest.raises(OSError, match="timed out"), client:
            raise KeyboardInterrupt
        assert time.monotonic() - start < 2.5


@pytest.mark.usefixtures("hurry")
def test_after_ctrl_c_the_prompt_can_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    screen = Screen()
    with hostile(silent("CancelOperation", "CloseSession")) as url, redirect_stderr(screen):
        shell = Shell(lambda: Client(url).open(), quiet(), screen)
        monkeypatch.setattr(Shell, "_show", interrupted)
        start = time.monotonic()
        shell.run("SELECT 1;")
        shell.run("\\q")
        shell.close()
        assert time.monotonic() - start < 2.5
    assert "Canceled.\n" in screen.getvalue() and screen.getvalue().endswith("The session was not closed: timed out\n")


@pytest.mark.usefixtures("narrow")
def test_rows_become_texts_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    made = output.texts

    def noted(column: pa.Array) -> list[str | None]:
        sizes.append(len(column))
        return made(column)

    monkeypatch.setattr(output, "texts", noted)
    rows = pa.table({"a": ["f" * 1_000_000] * 20})
    assert output.write_batches(rows.schema, rows.to_batches(), "csv", io.StringIO()) == 20
    assert sizes == [8, 8, 4]


@pytest.mark.parametrize("ending", ["csv", "parquet", "txt"])
def test_a_lost_connection_is_not_told_of_the_file(ending: str, tmp_path: Path) -> None:
    bodies = encoded(of_rows(ONE))

    def answer(method: str, body: bytes) -> Iterator[bytes]:
        if method == "FetchResults":
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nabc"
            raise ConnectionError
        yield told(bodies[method])

    with hostile(answer) as url:
        code, shown = query(url, "-o", str(tmp_path / f"x.{ending}"))
        assert (code, shown) == (1, f"gateway: {url}: the server closed the connection within an answer\n")
    assert list(tmp_path.iterdir()) == []


def test_rows_that_the_terminal_has_no_characters_for() -> None:
    screen, errors = io.TextIOWrapper(io.BytesIO(), encoding="ascii"), Screen()
    with hostile(saying(of_rows(pa.table({"a": ["\u00e9"]})))) as url, redirect_stdout(screen), redirect_stderr(errors):
        assert main(["query", "--url", url, "SELECT 1"]) == 1
        shell = Shell(lambda: Client(url).open(), quiet(), screen)
        shell.run("SELECT 1;")
        shell.close()
    assert errors.getvalue().count("The rows hold characters that ascii has not: set PYTHONIOENCODING=utf-8") == 2
    assert "The statement is not UTF-8" not in errors.getvalue()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_that_is_replaced_keeps_who_may_read_it(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("old")
    file.chmod(mode)
    with hostile(saying(of_rows(ONE))) as url:
        assert query(url, "-o", str(file))[0] == 0
    assert stat.S_IMODE(file.stat().st_mode) == mode and file.read_text() == "a\n1\n"


def test_what_a_terminal_obeys_is_not_completed() -> None:
    names = Names(lambda: Client("http://127.0.0.1:1"))
    odd = ("zz\u202e", "zz\u2066q", "zz\x9b31m", "zz\nDROP", "z" * 100_000)
    names.tables = frozenset({("m", "d", name) for name in (*odd, "zz good")} | {("m", "d\u202e", "zz")})
    names.columns = dict.fromkeys(names.tables, (*odd, "zz col"))
    assert [text for text, _ in names.offered("SELECT * FROM `zz", "m.d")] == ["`zz good`"]
    assert [text for text, _ in names.offered("SELECT * FROM m.", "m.d")] == ["m.d"]
    assert [text for text, _ in names.offered("SELECT zz, zz", "m.d")] == ["`zz col`"]


def test_a_long_place_is_cut(tmp_path: Path) -> None:
    screen = Screen()
    place = of_rows(pa.table({"c": ["p" * 2_000_000], "s": ["d"]}))
    with hostile(saying(place)) as url, create_pipe_input() as keys, redirect_stderr(screen):
        keys.send_text("\\q\r")
        start = time.monotonic()
        assert (
            run_prompt(lambda: Client(url).open(), quiet(), tmp_path / "history", input=keys, output=DummyOutput()) == 0
        )
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("numbers", [[5e-324], [1.7e308, -1.7e308], [1e308, -1e308]])
def test_numbers_without_a_place_on_a_screen(numbers: list[float]) -> None:
    screen = Screen()
    rows = pa.table({"x": numbers, "n": numbers})
    with hostile(saying(of_rows(rows))) as url:
        for kind in ("bar", "line", "scatter", "auto"):
            assert query(url, "--chart-kind", kind)[0] in (0, 2)
        with redirect_stderr(screen):
            shell = Shell(lambda: Client(url).open(), quiet(), screen)
            shell.run("SELECT 1;")
            shell.run("\\chart line")
            shell.close()
