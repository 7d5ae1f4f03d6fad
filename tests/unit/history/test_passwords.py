"""No password of a database is told, wherever libpq has it from, and words that are none are."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.values import DatabaseUrl
from gateway.history.passwords import masked

pytest.importorskip("psycopg")
SECRET = "geheim-4711"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without files."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PGPASSWORD", "PGSSLPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ann:{SECRET}@h/d",
        f"postgresql://h/d?password={SECRET}",
        "postgresql://h/d?password=geheim%2D4711&sslmode=require",
        f"postgresql://h/d?sslmode=require&sslpassword={SECRET}",
        f"postgresql://h/d?options=-cx.y%3D{SECRET}&options={SECRET}",
    ],
)
def test_what_the_address_holds_is_not_told(address: str) -> None:
    assert masked(f"no password '{SECRET}'", DatabaseUrl(address)) == "no password '***'"


def test_words_are_told() -> None:
    url = DatabaseUrl("postgresql://ann:pw@h/d?sslmode=require&host=db.example&connect_timeout=5")
    told = "SSL was required by db.example within 5 s, not pw"
    assert masked(told, url) == told.replace("pw", "***")
    assert masked("require", DatabaseUrl("postgresql://ann:require@h/d?sslmode=require")) == "***"


def test_what_the_environment_holds_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert masked(f"{SECRET}!", DatabaseUrl("postgresql://ann@h/d")) == "***!"


@pytest.mark.parametrize("where", [".pgpass", "of the environment", "of the address"])
def test_what_a_passfile_holds_is_not_told(home: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / where.replace(" ", "-")
    path.write_text(f"# h:1:d:ann:other\nh\\:1:5432:*:ann:{SECRET}\n*:*:*:*:a\\:b\\\\c\n")
    if where == "of the environment":
        monkeypatch.setenv("PGPASSFILE", str(path))
    url = DatabaseUrl("postgresql://ann@h/d" + (f"?passfile={path}" if where == "of the address" else ""))
    assert masked(f"{SECRET} a:b\\c a:b", url) == "*** *** a:b"


@pytest.mark.parametrize("name", ["PGSERVICEFILE", "PGSYSCONFDIR", None])
def test_what_a_file_of_services_holds_is_not_told(
    home: Path, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / (".pg_service.conf" if name is None else "pg_service.conf")
    path.write_text(f"[kept]\nhost=h\npassword={SECRET}\n")
    if name is not None:
        monkeypatch.setenv(name, str(path if name == "PGSERVICEFILE" else home))
    assert masked(f"h {SECRET}", DatabaseUrl("postgresql://ann@h/d?service=kept")) == "h ***"
