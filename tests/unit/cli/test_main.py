"""The command line: exit codes, settings, outputs."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import socket
import stat
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import metadata, util
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.measure import Row
from benchmarks.systems import sail_process
from gateway import __version__
from gateway.auth.authenticators import read_tokens
from gateway.cli import main
from gateway.cli.doctor import examine
from gateway.cli.embedded import embedded_config
from gateway.cli.findings import FAIL
from gateway.cli.main import make_parser
from gateway.cli.output import Shown, choose_format, write_rows
from gateway.cli.serve import remark_root
from gateway.cli.settings import settings_flags
from gateway.config import PINS, SETTINGS, load_config
from gateway.errors import ConfigError

TABLE = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "name": pa.array(["a", None, 'say "x",\nb']),
        "price": pa.array([Decimal("1.50"), Decimal("-20.00"), None], pa.decimal128(10, 2)),
        "ratio": pa.array([0.5, float("nan"), float("-inf")]),
        "day": pa.array([date(2024, 2, 29), None, date(1, 1, 1)]),
        "at": pa.array([datetime(2024, 2, 29, 12, 0, 0, 500000, UTC), None, None], pa.timestamp("us", "UTC")),
        "raw": pa.array([b"\x00\xff", None, b""]),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        "struct": pa.array(
            [{"x": 1, "y": "z"}, None, {"x": None, "y": ""}], pa.struct([("x", pa.int32()), ("y", pa.string())])
        ),
    }
)


def written(format: str, path: Path, max_rows: int = 0) -> str:
    """What `write_rows` puts into a file."""
    write_rows(TABLE.schema, TABLE.to_batches(max_chunksize=2), format, str(path), max_rows)
    return path.read_text()


def test_csv(tmp_path: Path) -> None:
    rows = list(csv.reader(io.StringIO(written("csv", tmp_path / "t.csv"))))
    assert rows[0] == TABLE.column_names
    assert rows[1] == [
        "1",
        "a",
        "1.50",
        "0.5",
        "2024-02-29",
        "2024-02-29 12:00:00.5",
        "00FF",
        "[1,null]",
        '{"k":1}',
        '{"x":1,"y":"z"}',
    ]
    assert rows[3][:5] == ["", 'say "x",\nb', "", "-Infinity", "0001-01-01"]


def test_json(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in written("json", tmp_path / "t.json").splitlines()]
    assert rows[0] == {
        "id": 1,
        "name": "a",
        "price": "1.50",
        "ratio": 0.5,
        "day": "2024-02-29",
        "at": "2024-02-29T12:00:00.500000+00:00",
        "raw": "AP8=",
        "list": [1, None],
        "map": {"k": 1},
        "struct": {"x": 1, "y": "z"},
    }
    assert rows[1]["ratio"] == "NaN" and rows[2]["struct"] == {"x": None, "y": ""}


def test_json_of_times_beyond_pythons_calendar(tmp_path: Path) -> None:
    days = pa.array([3_000_000, 0, None], pa.int32()).cast(pa.date32())
    micros = pa.array([300_000_000_000_000_000, 0, None], pa.int64()).cast(pa.timestamp("us", "UTC"))
    nested = pa.StructArray.from_arrays([days, pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), micros)], ["d", "l"])
    batch = pa.record_batch({"d": days, "t": micros, "n": nested})
    write_rows(batch.schema, [batch], "json", str(tmp_path / "x.json"), 0)
    first, second, third = (json.loads(line) for line in (tmp_path / "x.json").read_text().splitlines())
    far = {"d": "+10183-09-21", "t": "+11476-08-15 05:20:00"}
    assert first == {**far, "n": {"d": far["d"], "l": [far["t"]]}}
    assert (second["d"], second["t"]) == ("1970-01-01", "1970-01-01T00:00:00+00:00")
    assert third == {"d": None, "t": None, "n": {"d": None, "l": [None]}}


def test_a_terminal_is_not_obeyed(tmp_path: Path) -> None:
    batch = pa.record_batch({"a\x1b]0;x\x07": ["\x1b[31mred\u202e", "two\nlines"]})
    screen = io.StringIO()
    for form in ("table", "csv", "json"):
        shown = Shown(screen)
        shown.write("")
        write_rows(batch.schema, [batch], form, str(tmp_path / "x"), 0)
        shown.write((tmp_path / "x").read_text())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", screen.getvalue())
    assert "\\x1b[31mred\\u202e" in screen.getvalue()
    write_rows(batch.schema, [batch], "table", str(tmp_path / "table"), 0)
    assert "\x1b" not in (tmp_path / "table").read_text()


def test_parquet(tmp_path: Path) -> None:
    write_rows(TABLE.schema, TABLE.to_batches(), "parquet", str(tmp_path / "t.parquet"), 0)
    got = pq.read_table(tmp_path / "t.parquet")
    assert got.drop_columns("ratio").equals(TABLE.drop_columns("ratio"))
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]


def test_table_layout(tmp_path: Path) -> None:
    lines = written("table", tmp_path / "t.txt").splitlines()
    assert lines[0].startswith("  id  name")
    assert lines[2].startswith("   1  a ") and lines[4].startswith('NULL  say "x",\\nb')
    assert len(lines) == 5


def test_table_says_when_there_are_more_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "t.txt")
    assert write_rows(TABLE.schema, TABLE.to_batches(max_chunksize=2), "table", path, 2) == (2, True)
    assert write_rows(TABLE.schema, TABLE.to_batches(max_chunksize=2), "table", path, 3) == (3, False)
    assert write_rows(TABLE.schema, [], "table", path, 3) == (0, False)


def test_a_failed_output_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        write_rows(TABLE.schema, TABLE.to_batches(), "csv", str(tmp_path / "missing" / "t.csv"), 0)

    def failing() -> object:
        yield TABLE.to_batches()[0]
        raise RuntimeError("the server went away")

    with pytest.raises(RuntimeError):
        write_rows(TABLE.schema, failing(), "csv", str(tmp_path / "t.csv"), 0)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_format_follows_the_ending() -> None:
    assert choose_format(None, "x.CSV") == "csv"
    assert choose_format(None, None) == "table"
    assert choose_format("json", "x.csv") == "json"
    for asked, output in ((None, "x.xyz"), ("parquet", None)):
        with pytest.raises(ConfigError):
            choose_format(asked, output)


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["serve"], "warehouse"),
        (["serve", "--warehouse", "/w", "--port", "x"], "port"),
        (["serve", "--warehouse", "/w", "--host", "0.0.0.0"], "auth"),
        (["serve", "--warehouse", "/proc/no/such"], "warehouse"),
        (["serve", "--warehouse", "{tmp}/w", "--state", "/proc/no/such", "--port", "0"], "state"),
        (["serve", "--warehouse", "{tmp}/w", "--state", "{tmp}/s", "--allow-path", "{tmp}/missing"], "allow-path"),
        (
            ["serve", "--warehouse", "{tmp}/w", "--state", "{tmp}/s", "--auth", "token", "--token-file", "{tmp}/no"],
            "token",
        ),
        (["serve", "--config", "/no/such/file.toml"], "config"),
        (["query", "SELECT 1", "--url", "ftp://127.0.0.1:1"], "url"),
        (["query", "SELECT 1", "--format", "parquet"], "format"),
        (["query", "SELECT 1", "--file", "x.sql"], "file"),
        (["query", "-o", "x.csv"], "output"),
        (["query", "--chart"], "chart"),
        (["query", "SELECT 1", "--chart", "--format", "csv"], "chart"),
        (["query", "SELECT 1", "--max-rows", "-1", "--url", "http://127.0.0.1:1"], "max-rows"),
        (["token", "a:b", "--token-file", "{tmp}/t"], "user"),
    ],
)
def test_bad_settings_exit_with_2_and_name_the_setting(
    argv: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (s.variable for s in SETTINGS):
        monkeypatch.delenv(variable, raising=False)
    assert main([part.replace("{tmp}", str(tmp_path)) for part in argv]) == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [[], ["serve", "--nonsense"], ["serve", "--wareh", "/w"], ["explode"], ["query", "SELECT 1", "2"], ["spark"]],
)
def test_bad_usage_exits_with_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: gateway" in capsys.readouterr().err


def test_port_in_use_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        flags = ["--warehouse", str(tmp_path / "w"), "--state", str(tmp_path / "s"), "--port", port]
        assert main(["serve", *flags]) == 2
        assert "port" in capsys.readouterr().err
        config = load_config({"warehouse": str(tmp_path), "state": str(tmp_path), "port": port}, {})
        assert [f.what for f in examine(config) if f.verdict == FAIL] == ["port"]


def test_no_server_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert main(["query", "SELECT 1", "--url", f"http://127.0.0.1:{port}"]) == 1
    assert "refused" in capsys.readouterr().err.lower()


def test_doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--warehouse", str(tmp_path / "w"), "--state", str(tmp_path / "s"), "--port", "0"]
    assert main(["doctor", *flags]) == 0
    report = capsys.readouterr().out
    assert "datafusion 55.0.0" in report and "FAIL" not in report
    assert main(["doctor", *flags, "--allow-path", str(tmp_path / "missing")]) == 1
    assert "FAIL  allow-path" in capsys.readouterr().out
    assert not (tmp_path / "w").exists()


@pytest.fixture
def no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Flags of a doctor that finds neither Java nor jars, whatever this machine has."""
    (tmp_path / "empty").mkdir()
    for variable in ("JAVA_HOME", *(s.variable for s in SETTINGS)):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return ["doctor", "--warehouse", str(tmp_path / "w"), "--state", str(tmp_path / "s"), "--port", "0"]


def test_doctor_on_spark_is_optional_until_it_is_asked_for(
    no_spark: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(no_spark) == 0
    report = capsys.readouterr().out
    assert "warn  java         Java is not found" in report and "FAIL" not in report
    assert report.count("run `gateway spark install` (optional, for --spark)") == 2
    for master in ("local[2]", "spark://host:7077", "yarn"):
        assert main([*no_spark, "--spark", master]) == 1
        report = capsys.readouterr().out
        assert "FAIL  java         Java is not found" in report and "optional" not in report
        assert report.count("FAIL  spark jar") == 2
    assert main([*no_spark, "--spark", "local", "--spark-jars", str(tmp_path / "jars")]) == 1
    assert f"{tmp_path}/jars/delta-storage-4.4.0.jar cannot be read" in capsys.readouterr().out


def test_doctor_counts_sparks_heap(no_spark: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([*no_spark, "--spark-memory", "900GiB"])
    assert "warn  memory" not in capsys.readouterr().out
    main([*no_spark, "--spark", "local", "--spark-memory", "900GiB"])
    assert re.search("warn  memory .* Spark's heap 900GiB", capsys.readouterr().out)


def test_doctor_on_a_connect_server(
    no_spark: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = {"pyspark": "4.2.0", "grpcio": "1", "grpcio-status": "1", "googleapis-common-protos": "1"}
    installed |= {"zstandard": "1", "pandas": "3", "pyarrow": "26"}
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: installed.get(name) or real(name))
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert main([*no_spark, "--spark", f"sc://127.0.0.1:{port}/;token=secret"]) == 0  # neither Java nor jars needed
        report = capsys.readouterr().out
    assert f"ok    spark        127.0.0.1:{port} accepts connections" in report and "java" not in report
    assert "ok    pyspark      4.2.0 with Spark Connect" in report
    assert main([*no_spark, "--spark", f"sc://127.0.0.1:{port}"]) == 1
    assert f"FAIL  spark        127.0.0.1:{port} does not answer: Connection refused" in capsys.readouterr().out


def test_doctor_on_a_connect_client_that_is_not_whole(
    no_spark: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(name: str) -> str:
        if name in ("grpcio-status", "zstandard"):
            raise metadata.PackageNotFoundError(name)
        return "4.2.0" if name == "pyspark" else real(name) if name in PINS else "1"

    real = metadata.version
    monkeypatch.setattr(metadata, "version", version)
    assert main([*no_spark, "--spark", "sc://127.0.0.1:1"]) == 1
    assert "FAIL  pyspark      Spark Connect needs grpcio-status, zstandard: pip" in capsys.readouterr().out
    monkeypatch.setattr(metadata, "version", lambda name: "4.1.0" if name == "pyspark" else real(name))
    assert main([*no_spark, "--spark", "sc://127.0.0.1:1"]) == 1
    assert "FAIL  pyspark      pyspark 4.1.0 is installed" in capsys.readouterr().out


def test_doctor_on_a_file_of_spark_settings(
    no_spark: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spark.conf"
    flags = [*no_spark, "--spark", "local", "--spark-properties", str(path)]
    for text, verdict in (
        (None, f"FAIL  properties   spark-properties: cannot read {path}: No such file"),
        ("spark.a 1\nx 2\n", f"FAIL  properties   spark-properties: {path}, line 2: 'x' is no setting"),
        ("spark.a 1\n# x\nspark.b=2\n", f"ok    properties   {path}: 2 settings of Spark"),
    ):
        if text is not None:
            path.write_text(text)
        assert main(flags) == 1  # Java is missing, too
        assert verdict in capsys.readouterr().out


@pytest.mark.parametrize(("user", "lines"), [(0, 1), (1000, 0)])
def test_running_as_root_is_remarked(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], user: int, lines: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    remark_root()
    assert capfd.readouterr().err.count("running as root") == lines


def test_a_token_is_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tokens.txt"
    assert main(["token", "alice", "--token-file", str(path)]) == 0
    path.write_text(path.read_text().rstrip("\n"))  # as editors leave it
    assert main(["token", "bob", "--token-file", str(path)]) == 0
    tokens = capsys.readouterr().out.split()
    known = read_tokens(path)
    assert [known.authenticate({"authorization": f"Bearer {t}"}).name for t in tokens] == ["alice", "bob"]
    assert path.read_text().count("\n") == 2
    joined = path.read_text().replace("\n", "", 1)
    path.write_text("# people\n" + joined)
    with pytest.raises(ConfigError, match="line 2 of"):
        read_tokens(path)


def test_a_token_that_no_header_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "SELECT 1", "--url", "http://127.0.0.1:1", "--token", "tökén"]) == 2
    told = capsys.readouterr().err
    assert "token: holds characters" in told
    assert "tökén" not in told


def test_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tokens.txt"
    tokens = []
    for user in ("alice", "bob"):
        assert main(["token", user, "--token-file", str(path)]) == 0
        tokens.append(capsys.readouterr().out.strip())
    assert not any(token in path.read_text() for token in tokens)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    known = read_tokens(path)
    assert [known.authenticate({"authorization": f"Bearer {t}"}).name for t in tokens] == ["alice", "bob"]


def test_every_setting_is_a_flag_of_serve(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # else long words are broken at hyphens
    with pytest.raises(SystemExit):
        make_parser().parse_args(["serve", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for setting in SETTINGS:
        assert f"--{setting.name} " in text
        assert " ".join(setting.help.split()) in text


def test_demo_passes_spark_on_to_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (s.variable for s in SETTINGS):
        monkeypatch.delenv(variable, raising=False)
    argv = ["demo", "--state", str(tmp_path), "--spark", "local[2]", "--spark-jars", str(tmp_path / "j"), "--port", "0"]
    arguments = make_parser().parse_args([*argv, "--spark-memory", "1GiB"])
    config = embedded_config(settings_flags(arguments), arguments.config)
    assert (config.spark, config.spark_jars, config.spark_memory) == ("local[2]", tmp_path / "j", 1 << 30)


def test_bench_without_the_source_checkout_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert main(["bench"]) == 2
    assert "source checkout" in capsys.readouterr().err


def test_bench_of_an_unknown_name_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "startup", "nonsense"]) == 2
    output = capsys.readouterr()
    assert "nonsense" in output.err and "roundtrip" in output.err and output.out == ""


@pytest.mark.parametrize(("met", "code"), [([True, None], 0), ([None], 0), ([True, False], 1)])
def test_bench_tells_by_its_code_whether_every_figure_is_met(
    met: list[bool | None], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [Row(f"figure {i}", {"ours": str(i)}, "<= 1", ok) for i, ok in enumerate(met)]
    module = ModuleType("benchmarks.roundtrip")
    module.__dict__["run"] = lambda: rows
    monkeypatch.setitem(sys.modules, "benchmarks.roundtrip", module)
    assert main(["bench", "roundtrip"]) == code
    assert "figure 0" in capsys.readouterr().out


def test_bench_leaves_out_what_the_extra_would_compare_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    with sail_process() as sail:
        assert sail is None


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.strip() == f"gateway {__version__}"


@pytest.mark.parametrize("words", [["maintain", "compact", "s.t"], ["verify", "s.t"]])
def test_a_job_makes_no_warehouse_of_a_mistyped_folder(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "warehuose"
    assert main(["job", *words, "--warehouse", str(missing), "--state", str(tmp_path / "state")]) == 2
    assert f"warehouse: {missing} does not exist" in capsys.readouterr().err and not missing.exists()
