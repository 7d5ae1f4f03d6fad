"""What Spark needs beside this package: pyspark, Java and two Delta jars; found, checked and brought.

The jars come from Maven Central through the user's own Maven and its settings, never while serving, and are checked by their
SHA-256. `configure_spark_with_delta_pip` is not used: it asks for jars that do not exist and resolves them at every start.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlparse

from gateway.errors import ConfigError

PYSPARK = "4.2.0"
JAVA_VERSIONS = (17, 21)
_MAVEN_SECONDS = 600
INSTALL = "gateway spark install"
# What pyspark's client of Spark Connect imports: the packages of its extra `connect`.
_CONNECT_PACKAGES = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard", "pandas", "pyarrow")
_CONNECT_PORT = 15002


@dataclass(frozen=True, slots=True)
class Jar:
    """A pinned artifact of Maven Central."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"


# These two are enough: the rest of their closure is in pyspark, in the versions that Spark was built with.
JARS = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is missing or wrong, and what to do about it."""

    what: str
    detail: str


def default_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where jars are kept unless a setting says otherwise."""
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "delta-sql-gateway" / "spark"


def missing_jars(folder: Path) -> list[Jar]:
    """The jars that `install` would bring: those that are not in `folder`, or not as pinned."""
    return [jar for jar in JARS if jar_problem(folder, jar) is not None]


def install(folder: Path) -> list[Path]:
    """Bring the jars into `folder` with the user's Maven, unless right ones are there. Raises ConfigError."""
    missing = missing_jars(folder)
    if missing:
        maven = shutil.which("mvn")
        if maven is None:
            wanted = " and ".join(f"{jar.file} ({jar.coordinates} of Maven Central)" for jar in missing)
            raise ConfigError("spark-jars", f"Maven (mvn) is not found: install it, or put {wanted} into {folder}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix=".install-") as scratch:
                for jar in missing:
                    os.replace(_bring(maven, jar, Path(scratch)), folder / jar.file)
        except OSError as error:
            raise ConfigError("spark-jars", f"{folder} cannot be written: {error.strerror}") from error
    return [folder / jar.file for jar in JARS]


def problems(folder: Path) -> Iterator[Problem]:
    """All that keeps a local Spark from starting, with the remedy."""
    for problem in (pyspark_problem(), java_problem()):
        if problem is not None:
            yield problem
    yield from _jar_problems(folder)


def check(folder: Path) -> list[Path]:
    """The jars of a local Spark that can start. Raises ConfigError naming everything that is missing."""
    found = list(problems(folder))
    if found:
        raise ConfigError("spark", "; ".join(p.detail for p in found))
    return [folder / jar.file for jar in JARS]


def pyspark_problem() -> Problem | None:
    """Whether pyspark is there in the version that the Delta jars were built for; nothing is imported."""
    try:
        found = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        told = f"pyspark is not installed: pip install '.[spark]' in the project's folder (pyspark=={PYSPARK})"
        return Problem("pyspark", told)
    if found != PYSPARK:
        return Problem(
            "pyspark", f"pyspark {found} is installed, the Delta jars need {PYSPARK}: pip install 'pyspark=={PYSPARK}'"
        )
    return None


def connect_problem() -> Problem | None:
    """Whether pyspark's client of Spark Connect has all that it imports; nothing is imported, no server is asked."""
    problem = pyspark_problem()
    if problem is not None:
        return problem
    missing = [name for name in _CONNECT_PACKAGES if not _is_installed(name)]
    if missing:
        return Problem(
            "pyspark", f"Spark Connect needs {', '.join(missing)}: pip install '.[spark]' in the project's folder"
        )
    return None


def connect_address(url: str) -> tuple[str, int]:
    """Host and port of ``sc://HOST[:PORT][/;key=value…]``. Raises ConfigError without the address, which may hold a token."""
    try:
        parts = urlparse("http" + url.removeprefix("sc"))  # as pyspark takes it apart
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError("spark", f"the address is not sc://HOST:PORT: {error}") from None
    if not host or parts.path not in ("", "/"):
        raise ConfigError("spark", "the address is not sc://HOST:PORT")
    return host, _CONNECT_PORT if port is None else port


def java_problem(environment: Mapping[str, str] | None = None) -> Problem | None:
    """Whether the Java that Spark would start is there and of a version that it supports."""
    wanted = " or ".join(map(str, JAVA_VERSIONS))
    java = find_java(environment)
    if java is None:
        home = (os.environ if environment is None else environment).get("JAVA_HOME")
        if home:
            return Problem(
                "java", f"JAVA_HOME is {home}, where there is no bin/java: unset it, or set it to a Java {wanted}"
            )
        return Problem("java", f"Java is not found: install Java {wanted}, or set JAVA_HOME")
    try:
        version = java_version(java)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Problem("java", f"{java} does not tell its version ({error}): install Java {wanted}, or set JAVA_HOME")
    if version not in JAVA_VERSIONS:
        return Problem("java", f"{java} is Java {version}: Spark {PYSPARK} needs Java {wanted}; set JAVA_HOME to one")
    return None


def find_java(environment: Mapping[str, str] | None = None) -> str | None:
    """The executable that Spark's scripts start: JAVA_HOME's, else the one on the PATH."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    if home:
        return shutil.which("java", path=os.path.join(home, "bin"))
    return shutil.which("java", path=environment.get("PATH"))


def java_version(java: str) -> int:
    """The feature version: 17 for ``openjdk version "17.0.15"``, 8 for ``"1.8.0_401"``.

    Raises OSError or SubprocessError if it does not run, ValueError if it tells no version.
    """
    done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    # Not simply the first quotes: lines like `Picked up JAVA_TOOL_OPTIONS: …` come before the version.
    _, found, rest = (done.stderr + done.stdout).partition(' version "')
    if not found:
        raise ValueError("no version in its output")
    numbers = rest.split('"')[0].split("-")[0].split(".")
    return int(numbers[1] if numbers[0] == "1" else numbers[0])


def jar_problem(folder: Path, jar: Jar) -> Problem | None:
    """Whether `jar` is in `folder` as pinned."""
    path = folder / jar.file
    command = INSTALL if folder == default_folder() else f"{INSTALL} --spark-jars {shlex.quote(str(folder))}"
    try:
        found = _sha256(path)
    except OSError as error:
        return Problem("jar", f"{path} cannot be read ({error.strerror}): run `{command}`")
    if found != jar.sha256:
        return Problem("jar", f"{path} is not {jar.coordinates}: its SHA-256 is {found}; run `{command}` to replace it")
    return None


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _jar_problems(folder: Path) -> Iterator[Problem]:
    for jar in JARS:
        problem = jar_problem(folder, jar)
        if problem is not None:
            yield problem


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bring(maven: str, jar: Jar, folder: Path) -> Path:
    """Where Maven put `jar` in `folder`, checked. Raises ConfigError."""
    command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={jar.coordinates}", f"-DoutputDirectory={folder}"]
    try:
        # In the empty folder, so that no pom.xml of the current one takes part.
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_MAVEN_SECONDS,
            check=False,
        )
    except OSError as error:
        raise ConfigError("spark-jars", f"{maven} does not run: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise ConfigError("spark-jars", f"Maven did not bring {jar.coordinates} in {_MAVEN_SECONDS} seconds") from None
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line] or ["no reason given"]
        raise ConfigError("spark-jars", f"Maven could not bring {jar.coordinates}: {lines[0][:500]}")
    path = folder / jar.file
    try:
        found = _sha256(path)
    except OSError:
        raise ConfigError("spark-jars", f"Maven ended well, but did not bring {jar.coordinates}") from None
    if found != jar.sha256:
        raise ConfigError(
            "spark-jars",
            f"Maven brought another file as {jar.coordinates}: its SHA-256 is {found}, not {jar.sha256};"
            " remove it from Maven's local repository, or look at the mirror that Maven uses",
        )
    return path
