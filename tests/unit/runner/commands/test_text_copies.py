"""COPY INTO of CSV and JSON: Spark's rows of them, and nothing of what Spark could read otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.runner.session import Session, refused
from tests.unit.runner.written import count_versions


@pytest.fixture
def folder(session: Session, tmp_path: Path) -> Path:
    """A folder that statements may read."""
    allowed = session.runner.environment(session.state).tables.paths.roots[-1]
    made = Path(allowed) / tmp_path.name
    made.mkdir(parents=True)
    return made


_ASK = "SELECT * EXCEPT (other) FROM t"


def _copied(session: Session, folder: Path, format_: str, text: str, rest: str = "", query: str = "") -> list[Any]:
    """The rows of a table of one other column that is given a file's."""
    (folder / "f").write_text(text, newline="")
    source = f"({query} FROM '{folder}')" if query else f"'{folder}'"
    session.run("CREATE OR REPLACE TABLE t (other INT)")
    session.run(f"COPY INTO t FROM {source} FILEFORMAT = {format_} {rest} COPY_OPTIONS ('mergeSchema' = 'true')")
    return session.rows(f"{_ASK} ORDER BY ALL NULLS LAST")


_A = '\ufeffid,name,d,b\n1,"a,b",1.5,true\n\n2,"",,TRUE\n+4,\\z,.5,false\n'


@pytest.mark.parametrize(
    ("text", "options", "types", "rows"),
    [
        (_A, "'header' = 'true', 'inferSchema' = 'true'", "int string double boolean",
         [(1, "a,b", 1.5, True), (2, None, None, True), (4, "\\z", 0.5, False)]),
        (_A.replace("\n", "\r\n"), "'header' = 'true'", "string string string string",
         [("+4", "\\z", ".5", "false"), ("1", "a,b", "1.5", "true"), ("2", None, None, "TRUE")]),
        ('id;v;w\nNA;"NA";NA\n2;"";\n3;x;"a;b"\n', "'header' = 'true', 'sep' = ';', 'nullValue' = 'NA'",
         "string string string", [("2", "", None), ("3", "x", "a;b"), (None, None, None)]),
        ('id,v\n1,"a""b"\n2,"c"\n', "'header' = 'true', 'escape' = '\"'", "string string", [("1", 'a"b'), ("2", "c")]),
        ("v\n1\n2147483648\n\n-5\n", "'header' = 'true', 'inferSchema' = 'true'", "bigint", [(-5,), (1,), (2147483648,)]),
        ("v,w,x,y,z\n007,+1.5,1e400,tRue,1\n-0,-0.0,.5,FALSE,\n5,5.,1E5,false,2.0\n",
         "'header' = 'true', 'inferSchema' = 'true'", "int double double boolean double",
         [(0, -0.0, 0.5, False, None), (5, 5.0, 100000.0, False, 2.0), (7, 1.5, float("inf"), True, 1.0)]),
        (f"v,w,x\n1.e-1,1e5,1e{'9' * 5000}\n2.,1e0,1.\n", "'header' = 'true', 'inferSchema' = 'true'",
         "double double double", [(0.1, 100000.0, float("inf")), (2.0, 1.0, 1.0)]),
        ("a\tb\n", "'delimiter' = '\\\\t'", "string string", [("a", "b")]),
        ("x\nword\n2020-01-01\n", "'header' = 'true', 'inferSchema' = 'true'", "string", [("2020-01-01",), ("word",)]),
    ],
)  # fmt: skip
def test_csv_is_read_as_spark_reads_it(
    session: Session, folder: Path, text: str, options: str, types: str, rows: list[Any]
) -> None:
    assert _copied(session, folder, "CSV", text, f"FORMAT_OPTIONS ({options})") == rows
    fields = session.run(_ASK).planned.schema.fields
    assert " ".join(f.type.simple for f in fields) == types


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ('{"b":1,"a":"x","n":{"z":1.5,"y":[1,2]}}\n\n{"a":null,"b":2.5,"c":true,"e":[]}\n',
         "a:string b:double c:boolean e:array<string> n:struct<y:array<bigint>,z:double>",
         [("x", 1.0, None, None, {"y": [1, 2], "z": 1.5}), (None, 2.5, True, [], None)]),
        ('{"a":1,"b":[1,2.5],"c":"x"}\n{"a":2.5,"b":[],"c":null}\n{"a":null,"d":{"k":null},"e":[null],"g":"2020-01-01"}\n',
         "a:double b:array<double> c:string d:struct<k:string> e:array<string> g:string",
         [(1.0, [1.0, 2.5], "x", None, None, None), (2.5, [], None, None, None, None),
          (None, None, None, {"k": None}, [None], "2020-01-01")]),
    ],
)  # fmt: skip
def test_json_is_read_as_spark_reads_it(session: Session, folder: Path, text: str, names: str, rows: list[Any]) -> None:
    assert _copied(session, folder, "JSON", text) == rows
    fields = session.run(_ASK).planned.schema.fields
    assert " ".join(f"{f.name}:{f.type.simple}" for f in fields) == names


@pytest.mark.parametrize(
    ("format_", "text", "options"),
    [
        ("CSV", "a,b\n1\n", ""),
        ("CSV", "a,b\n1,2,3\n", ""),
        ("CSV", 'a"b,c\n', ""),
        ("CSV", '"a\\"b",c\n', ""),
        ("CSV", '"a""b",c\n', ""),
        ("CSV", '"a\nb",c\n', ""),
        ("CSV", "a\n  \nb\n", ""),
        ("CSV", "a\rb\n", ""),
        ("CSV", "a,a\n1,2\n", "'header' = 'true'"),
        ("CSV", "a,\n1,2\n", "'header' = 'true'"),
        ("CSV", "a\n2020-01-01\n", "'header' = 'true', 'inferSchema' = 'true'"),
        ("CSV", "a\n12345678901234567890\n", "'header' = 'true', 'inferSchema' = 'true'"),
        ("CSV", "a\nNaN\n", "'header' = 'true', 'inferSchema' = 'true'"),
        ("CSV", "a\n1d\n", "'header' = 'true', 'inferSchema' = 'true'"),
        ("CSV", "a\n1.\n2\n", "'header' = 'true', 'inferSchema' = 'true'"),
        ("CSV", "a\n1.5e1\n-2.25E+02\n3e-0\n", "'header' = 'true', 'inferSchema' = 'true'"),
        ("CSV", "a,_Corrupt_record\n1,2\n", "'header' = 'true'"),
        ("CSV", "a\n", "'dateFormat' = 'yyyy'"),
        ("CSV", "a\n", "'multiLine' = 'true'"),
        ("CSV", "a\n", "'unheard' = 'x'"),
        ("CSV", "a\n", "'sep' = '||'"),
        ("JSON", '{"a":1\n', ""),
        ("JSON", '{"a":1}{"a":2}\n', ""),
        ("JSON", "[1]\n", ""),
        ("JSON", '{"a":1,"A":2}\n', ""),
        ("JSON", '{"a":1}\n{"A":2}\n', ""),
        ("JSON", '{"a":1}\n{"a":"x"}\n', ""),
        ("JSON", '{"a":NaN}\n', ""),
        ("JSON", '{"a":{}}\n', ""),
        ("JSON", '{"a":1,"_corrupt_record":"x"}\n', ""),
        ("JSON", '{"a":"\\ud800"}\n', ""),
        ("JSON", '{"a":99999999999999999999}\n', ""),
        ("JSON", '{"a":1}\n', "'multiLine' = 'true'"),
        ("JSON", '{"a":1}\n', "'dateFormat' = 'yyyy'"),
        ("AVRO", "", ""),
    ],
)  # fmt: skip
def test_what_is_not_proved_is_refused_and_nothing_written(
    session: Session, folder: Path, format_: str, text: str, options: str
) -> None:
    session.run("CREATE TABLE t (other INT)")
    (folder / "f").write_text(text, newline="")
    given = f"FORMAT_OPTIONS ({options})" if options else ""
    error = refused(
        session, f"COPY INTO t FROM '{folder}' FILEFORMAT = {format_} {given} COPY_OPTIONS ('mergeSchema' = 'true')"
    )
    assert error.condition == "UNSUPPORTED_FEATURE"
    assert count_versions(session) == 1


def test_each_file_is_loaded_once_by_a_query_too(session: Session, folder: Path) -> None:
    (folder / "a.csv").write_text("1,x\n2,y\n")
    session.run("CREATE TABLE t (id INT, name STRING)")
    text = f"COPY INTO t FROM (SELECT CAST(_c0 AS INT) AS id, upper(_c1) AS name FROM '{folder}') FILEFORMAT = CSV"
    assert session.rows(text) == [(2, 2, 0)]
    (folder / "b.csv").write_text("3,z\n")
    assert session.rows(text) == [(1, 1, 0)]
    assert session.rows(text) == [(0, 0, 0)]
    assert session.rows("SELECT * FROM t ORDER BY id") == [(1, "X"), (2, "Y"), (3, "Z")]
    (folder / "c.csv").write_text("4,w\nx,v\n")
    assert refused(session, text).condition == "CAST_INVALID_INPUT"
    assert session.rows("SELECT count(*) FROM t") == [(3,)]


def test_columns_of_a_file_that_the_table_lacks_are_told(session: Session, folder: Path) -> None:
    (folder / "a.csv").write_text("1,x\n")
    session.run("CREATE TABLE t (id STRING)")
    error = refused(session, f"COPY INTO t FROM '{folder}' FILEFORMAT = CSV")
    assert error.condition == "COPY_INTO_SCHEMA_MISMATCH_WITH_TARGET_TABLE"


@pytest.mark.parametrize(
    ("format_", "line"), [("CSV", "{0},{1}\n"), ("JSON", '{{"a":{0},"b":"{1}"}}\n')], ids=["CSV", "JSON"]
)
def test_files_may_be_large(session: Session, folder: Path, format_: str, line: str) -> None:
    text = "".join(line.format(i, "x" * 300) for i in range(40_000))
    (folder / "f").write_text(text)
    session.run("CREATE TABLE t (other INT)")
    copied = session.run(f"COPY INTO t FROM '{folder}' FILEFORMAT = {format_} COPY_OPTIONS ('mergeSchema' = 'true')")
    assert copied.rows == [(40_000, 40_000, 0)]
    assert session.rows("SELECT count(*) FROM t WHERE other IS NULL") == [(40_000,)]
