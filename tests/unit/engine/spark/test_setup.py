"""What Spark needs: looked for with its own version of Java and Maven (small scripts), brought, and started for real."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.config import SETTINGS
from gateway.engine.spark import setup
from gateway.errors import ConfigError

JARS = tuple(
    setup.Jar("org.example", name, "1.0", hashlib.sha256(f"content of {name}".encode()).hexdigest())
    for name in ("one", "two_2.13")
)
# As `mvn dependency:copy`: a file named after the artifact; each call leaves a line in the log.
MAVEN = """\
for argument in "$@"; do
    case $argument in
        -Dartifact=*) artifact=${argument#*=} ;;
        -DoutputDirectory=*) folder=${argument#*=} ;;
    esac
done
echo "$artifact" >> "$MAVEN_LOG"
rest=${artifact#*:}
printf '%s' "content of ${rest%%:*}" > "$folder/${rest%%:*}-${rest#*:}.jar"
"""


def script(path: Path, body: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def java(path: Path, version: str) -> Path:
    """A Java that only tells its version, on standard error as the real one does."""
    return script(path, f"echo 'openjdk version \"{version}\" 2025-04-15' >&2; echo 'OpenJDK Runtime' >&2")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the PATH, empty; no JAVA_HOME, no settings."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for variable in ("JAVA_HOME", *(s.variable for s in SETTINGS)):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MAVEN_LOG", str(tmp_path / "maven.log"))
    monkeypatch.setattr(setup, "JARS", JARS)
    return folder


def installed(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    """Let pyspark be installed in this version, or not at all."""
    real = metadata.version

    def fake(name: str) -> str:
        if name != "pyspark":
            return real(name)
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", fake)


def maven_calls(programs: Path) -> list[str]:
    """The artifacts that the fake Maven was asked for."""
    log = programs.parent / "maven.log"
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_401"', 8),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('Picked up JAVA_TOOL_OPTIONS: -Dname="a b"\nopenjdk version "17.0.15" 2025-04-15', 17),
    ],
)
def test_java_version(printed: str, version: int, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(printed + "\n")
    assert setup.java_version(str(script(tmp_path / "java", f"cat {text} >&2"))) == version


@pytest.mark.parametrize("body", ["echo no java here >&2", "exit 1", "echo 'openjdk version \"x\"' >&2"])
def test_a_java_that_tells_no_version_is_a_problem(body: str, programs: Path) -> None:
    found = script(programs / "java", body)
    problem = setup.java_problem()
    assert problem is not None
    assert f"{found} does not tell its version" in problem.detail and "install Java 17 or 21" in problem.detail


def test_supported_and_other_versions_of_java(programs: Path) -> None:
    for version, good in (("17.0.15", True), ("21.0.1", True), ("1.8.0_401", False), ("11.0.2", False), ("25", False)):
        java(programs / "java", version)
        problem = setup.java_problem()
        assert (problem is None) == good, version
        assert problem is None or "needs Java 17 or 21" in problem.detail


def test_no_java(programs: Path) -> None:
    problem = setup.java_problem()
    assert problem is not None and problem.detail.startswith("Java is not found: install Java 17 or 21")


def test_java_home_without_java_is_named(programs: Path, tmp_path: Path) -> None:
    problem = setup.java_problem({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(programs)})
    assert problem is not None
    assert f"JAVA_HOME is {tmp_path / 'gone'}, where there is no bin/java" in problem.detail


def test_java_home_wins_over_the_path(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(programs / "java", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    problem = setup.java_problem()  # as Spark's scripts do, the PATH is not tried then
    assert problem is not None and "where there is no bin/java" in problem.detail
    home = java(tmp_path / "jdk" / "bin" / "java", "11.0.2")
    assert setup.find_java() == str(home)
    problem = setup.java_problem()
    assert problem is not None and f"{home} is Java 11" in problem.detail


def test_pyspark_is_missing_or_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, None)
    problem = setup.pyspark_problem()
    assert problem is not None and "pip install '.[spark]'" in problem.detail
    installed(monkeypatch, "4.1.1")
    problem = setup.pyspark_problem()
    assert problem is not None and "pyspark 4.1.1 is installed" in problem.detail
    assert "pip install 'pyspark==4.2.0'" in problem.detail
    installed(monkeypatch, setup.PYSPARK)
    assert setup.pyspark_problem() is None


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("sc://host", ("host", 15002)),
        ("sc://host:7", ("host", 7)),
        ("sc://host:7/;use_ssl=true;token=a", ("host", 7)),
        ("sc://[::1]:7/", ("::1", 7)),
    ],
)
def test_connect_address(url: str, address: tuple[str, int]) -> None:
    assert setup.connect_address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "sc://",
        "sc://:7",
        "sc://host:x",
        "sc://host:70000",
        "sc://host/path",
        "sc://[::1",
        "sc://host/path/;token=secret",
    ],
)
def test_no_connect_address(url: str) -> None:
    with pytest.raises(ConfigError, match="is not sc://HOST:PORT") as caught:
        setup.connect_address(url)
    assert "secret" not in caught.value.message


def test_install_brings_the_jars_once(programs: Path, tmp_path: Path) -> None:
    script(programs / "mvn", MAVEN)
    folder = tmp_path / "new" / "jars"
    paths = setup.install(folder)
    assert [p.read_text() for p in paths] == ["content of one", "content of two_2.13"]
    assert sorted(folder.iterdir()) == sorted(paths)  # no scratch is left
    assert maven_calls(programs) == ["org.example:one:1.0", "org.example:two_2.13:1.0"]
    assert setup.install(folder) == paths
    assert len(maven_calls(programs)) == 2


def test_install_replaces_only_a_wrong_jar(programs: Path, tmp_path: Path) -> None:
    script(programs / "mvn", MAVEN)
    _, two = setup.install(tmp_path)
    two.write_text("something else")
    with pytest.raises(ConfigError, match=r"two_2\.13-1\.0\.jar is not org\.example:two_2\.13:1\.0: its SHA-256 is"):
        setup.check(tmp_path)
    assert [j.name for j in setup.missing_jars(tmp_path)] == ["two_2.13"]
    setup.install(tmp_path)
    assert setup.missing_jars(tmp_path) == []
    assert len(maven_calls(programs)) == 3


def test_the_remedy_names_the_folder_unless_it_is_the_default(programs: Path, tmp_path: Path) -> None:
    problem = setup.jar_problem(tmp_path / "my jars", JARS[0])
    assert problem is not None and problem.detail.endswith(f"`gateway spark install --spark-jars '{tmp_path}/my jars'`")
    problem = setup.jar_problem(setup.default_folder(), JARS[0])
    assert problem is not None and problem.detail.endswith("`gateway spark install`")


@pytest.mark.parametrize(
    ("maven", "said"),
    [
        ("none", "two_2.13-1.0.jar (org.example:two_2.13:1.0 of Maven Central) into {folder}"),
        ("none", "Maven (mvn) is not found: install it, or put one-1.0.jar (org.example:one:1.0 of Maven Central) and"),
        (
            "echo '[INFO] x'; echo '[ERROR] no such artifact'; exit 1",
            "could not bring org.example:one:1.0: [ERROR] no such",
        ),
        ("exit 3", "no reason given"),
        ("exit 0", "Maven ended well, but did not bring org.example:one:1.0"),
        (MAVEN.replace("content of", "nothing of"), "Maven brought another file as org.example:one:1.0"),
    ],
)
def test_install_says_why_it_failed_and_leaves_nothing(maven: str, said: str, programs: Path, tmp_path: Path) -> None:
    if maven != "none":
        script(programs / "mvn", maven)
    folder = tmp_path / "jars"
    folder.mkdir()
    with pytest.raises(ConfigError) as caught:
        setup.install(folder)
    assert said.replace("{folder}", str(folder)) in caught.value.message
    assert caught.value.setting == "spark-jars"
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made(programs: Path) -> None:
    script(programs / "mvn", MAVEN)
    with pytest.raises(ConfigError, match="/proc/no/such cannot be written"):
        setup.install(Path("/proc/no/such"))


def test_check_names_everything_that_is_missing(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, None)
    with pytest.raises(ConfigError) as caught:
        setup.check(tmp_path)
    for part in ("pyspark", "Java", "one-1.0.jar", "two_2.13-1.0.jar"):
        assert part in caught.value.message
    installed(monkeypatch, setup.PYSPARK)
    java(programs / "java", "17.0.15")
    script(programs / "mvn", MAVEN)
    paths = setup.install(tmp_path)
    assert setup.check(tmp_path) == paths


def test_command_install_then_check(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(monkeypatch, setup.PYSPARK)
    java(programs / "java", "17.0.15")
    script(programs / "mvn", MAVEN)
    flags = ["--spark-jars", str(tmp_path / "jars")]
    assert main(["spark", "check", *flags]) == 2
    out = capsys.readouterr().out
    assert f"FAIL  spark jar    {tmp_path}/jars/one-1.0.jar cannot be read" in out and "cannot start" in out
    assert maven_calls(programs) == []
    assert main(["spark", "install", *flags]) == 0
    out = capsys.readouterr().out
    assert out.index("may take a minute") < out.index(f"{tmp_path}/jars/one-1.0.jar (brought)")
    assert f"17 at {programs}/java" in out and out.endswith("Spark can start.\n")
    assert main(["spark", "install", *flags]) == 0
    out = capsys.readouterr().out
    assert out.count("(already there)") == 2 and "Maven" not in out
    assert main(["spark", "check", *flags]) == 0
    assert len(maven_calls(programs)) == 2


def test_command_install_says_what_is_still_missing(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(monkeypatch, None)
    assert main(["spark", "install"]) == 2
    out = capsys.readouterr().out
    for line in (
        "FAIL  pyspark      pyspark is not",
        "FAIL  java         Java is not",
        "FAIL  spark jar    spark-jars: Maven",
    ):
        assert line in out
    script(programs / "mvn", MAVEN)  # the jars can be had now, into the default folder; the rest is still missing
    assert main(["spark", "install"]) == 2
    assert (
        f"ok    spark jar    {tmp_path}/cache/delta-sql-gateway/spark/one-1.0.jar (brought)" in capsys.readouterr().out
    )


@pytest.mark.spark
@pytest.mark.heavy
def test_spark_starts_with_what_is_installed_and_knows_delta(tmp_path: Path) -> None:
    """In a process of its own: a classic session stays in the process that made it."""
    found = list(setup.problems(setup.default_folder()))
    if found:
        pytest.skip("; ".join(p.detail for p in found))
    program = f"""\
from pathlib import Path
from gateway.engine.spark import session, setup

scratch = Path({str(tmp_path)!r})
jars = setup.check(setup.default_folder())
spark = session.start("local[1]", session.settings(jars, scratch, memory=1 << 30))
spark.sql("CREATE TABLE t (id BIGINT) USING delta TBLPROPERTIES (delta.enableDeletionVectors = true)")
spark.sql("INSERT INTO t SELECT id FROM range(10)")
spark.sql("DELETE FROM t WHERE id % 2 = 0")
print(spark.sql("SELECT sum(id) AS total FROM t").toArrow().to_pylist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["[{'total': 25}]"]
    assert (tmp_path / "warehouse" / "t" / "_delta_log").is_dir()
