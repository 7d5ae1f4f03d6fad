"""A file of settings for Spark means line by line what it means to Java, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.engine.spark.properties import read_properties
from gateway.errors import ConfigError


def read(tmp_path: Path, text: str | bytes) -> dict[str, str]:
    """What is read from a file with this text."""
    path = tmp_path / "spark.conf"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_properties(path)


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("spark.a b", "spark.a", "b"),
        ("spark.a=b", "spark.a", "b"),
        ("spark.a = b", "spark.a", "b"),
        ("spark.a: b", "spark.a", "b"),
        ("  spark.a \t b c  ", "spark.a", "b c"),
        ("spark.a=b=c:d e", "spark.a", "b=c:d e"),
        ("spark.a b=c", "spark.a", "b=c"),
        ("spark.a = = b", "spark.a", "= b"),
        ("spark.a=", "spark.a", ""),
        ("spark.a b # no comment", "spark.a", "b # no comment"),
        ('spark.a "b"', "spark.a", '"b"'),
        ("spark.a über\u2028x", "spark.a", "über\u2028x"),
        ("spark.sql.ansi.enabled TRUE", "spark.sql.ansi.enabled", "TRUE"),
    ],
)
def test_a_line_means_what_it_means_to_java(line: str, key: str, value: str, tmp_path: Path) -> None:
    assert read(tmp_path, line) == {key: value}


def test_comments_blank_lines_and_line_ends(tmp_path: Path) -> None:
    text = "# spark.a 1\n\n   # indented\r\n! spark.b 2\n\t\nspark.c 3\r\nspark.d=4\rspark.e 5"
    assert read(tmp_path, text) == {"spark.c": "3", "spark.d": "4", "spark.e": "5"}
    assert read(tmp_path, "") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spark.a 1\n\nspark.b", "line 3: spark.b has no value"),
        ("# x\nhadoop.a 1", "line 2: 'hadoop.a' is no setting of Spark"),
        ("spark. 1", "line 1: 'spark.' is no setting"),
        ("= 1", "line 1: '' is no setting"),
        ("SPARK.a 1", "line 1: 'SPARK.a' is no setting"),
        ("spark.a 1\nspark.b 2\nspark.a 1", "line 3: spark.a is given twice, first in line 1"),
        ("spark.a 1 \\\n  2", "line 1: a backslash"),
        ("spark.a C:\\tmp", "line 1: a backslash"),
        ("spark.master yarn", "line 1: spark.master is given with --spark"),
        ("spark.sql.ansi.enabled false", "line 1: spark.sql.ansi.enabled must be true"),
        (b"spark.a \xff", "is not UTF-8"),
    ],
)
def test_what_is_refused(text: str | bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert caught.value.setting == "spark-properties"
    assert said in caught.value.message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ConfigError, match=f"cannot read {path}: "):
            read_properties(path)
