"""What is read for whole arrays is what is read one by one."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from gateway.engine.functions import patterns
from gateway.engine.functions.numbers import format_number
from gateway.engine.functions.plain_texts import STAMPS, read_days, read_layouts
from gateway.engine.functions.strings import mime_decoded, url_decode
from gateway.engine.functions.urls import _odd_uri, _uri
from gateway.instants import parse_date, parse_ntz

DATES = ("2024-02-29", "2023-02-29", "0000-01-01", "9999-12-31", "2024-13-01", "2024-00-10", "2024-01-00", "2024/01/02")
TIMES = ("00:00:00", "23:59:59", "24:00:00", "12:60:00", "12:00:60", "1:02:03", "12-00-00")
ENDS = ("", ".1", ".123456", ".1234567", ".", "Z", " ", "é")
STAMPED = [f"{d}{c}{t}{e}" for d, c, t, e in product(DATES, (" ", "T", "t"), TIMES, ENDS)]
FORMS = {
    "yyyy-MM-dd HH:mm:ss": STAMPED,
    "yyyy-MM-dd'T'HH:mm:ss.SSS": [
        f"{d}T{t}{e}" for d, t, e in product(DATES, TIMES, (".123", ".1234", ".12", "", ".12a"))
    ],
    "MM/dd/yyyy": [
        "02/29/2024",
        "02/29/2023",
        "13/01/2024",
        "2/29/2024",
        "02/29/+2024",
        "02/29/12024",
        "",
        "\u06602/29/2024",
    ],
    "yyyyMMdd": ["20240229", "20230229", "2024022", "202402290", "2024-229"],
    "yyMMddHHmmss": ["240229235959", "000101000000", "990101240000", "990101"],
    "dd.LL.yyyy HH:mm": ["29.02.2024 23:59", "30.02.2024 23:59", "29,02.2024 23:59"],
    "ss.SSSSSSSSS": ["07.123456789", "07.12345678x", "60.000000000"],
    "HH": ["07", "24", "7", "07 "],
}


@pytest.mark.parametrize("pattern", FORMS)
def test_patterns(pattern: str) -> None:
    form = patterns.layout_of(pattern)
    assert form is not None
    texts = [*FORMS[pattern], *FORMS[pattern][:1]]
    values, done = read_layouts(pa.array(["", *texts]).slice(1), [form])
    assert done[0]
    assert not done.all()
    for text, value, is_done in zip(texts, values.tolist(), done.tolist(), strict=True):
        read = patterns.read(text, pattern, None)
        assert not is_done or value == read, text


@pytest.mark.parametrize(
    "pattern", ["M/d/yyyy", "yyyy-MM-dd hh:mm a", "dd MMM yyyy", "yyyy-MM-dd'é'", "yyyy yyyy", "[yyyy]", "e"]
)
def test_patterns_without_places(pattern: str) -> None:
    assert patterns.layout_of(pattern) is None


def test_casts() -> None:
    texts = [*STAMPED, *DATES, "", "x"]
    given = pa.array([*texts, None])
    stamps, done = read_layouts(given, STAMPS)
    days, dated = read_days(given)
    for i, text in enumerate(texts):
        assert not done[i] or stamps[i] == parse_ntz(text), text
        assert not dated[i] or days[i] == parse_date(text), text
    assert done[texts.index("2024-02-29")] and done[0] and dated[0]
    assert not done[-1] and not dated[-1]


@pytest.mark.parametrize(
    "text",
    ["http://a.example.com/p/q;x?k=v&l=%41#f", "https://1.2.3.4:80", "http://1.2.3.400/", "a+b://h?", "http://-a.com/x",
     "http://a.com:/", "ftp://x.1", "http://h#"],
)  # fmt: skip
def test_plain_urls_are_taken_apart_as_others(text: str) -> None:
    assert _uri(text) == _odd_uri(text)


def test_ties_are_those_of_what_a_double_prints() -> None:
    assert [format_number(v, 2, False) for v in (2.675, 2.665, 0.125, 1.005, -0.001, -2.5, 1e12 + 0.125)] == [
        "2.68", "2.66", "0.12", "1.00", "-0.00", "-2.50", "1,000,000,000,000.12",
    ]  # fmt: skip


def test_escapes_and_base64() -> None:
    assert url_decode("a+b%2B%C3%A9%zz", True) is None
    assert url_decode("a+b%2B%C3%A9%FFé", False) == "a b+é\ufffdé"
    assert [mime_decoded(t) for t in ("", "QQ==", "QR==", "Q Q==", "QUI", "QUJD")] == [
        b"",
        b"A",
        b"A",
        b"A",
        b"AB",
        b"ABC",
    ]
