"""VARIANT: the bytes that Spark makes of JSON, the JSON that it makes of bytes, and bytes that are none."""

from __future__ import annotations

import random
import struct
import time
from decimal import Decimal

import pytest

from gateway.instants import known_zone
from gateway.variant_building import MalformedError, OddError, of_json, of_scalar
from gateway.variants import MARK, as_json, document_of, part_of, scalar_of, unwrapped, wrapped

_UTC = known_zone("UTC")
# JSON, then metadata and value as Spark 4.2 has written them to files.
_OF_SPARK = {
    '{"b":1,"a":[true,null,1.5,"x\u00e9\\n"],"c":{"z":1e3}}': (
        "010400010203046261637a",
        "0203010002020016240c010304000102080d040020010f0000001178c3a90a02010300091c0000000000408f40",
    ),
    "null": ("010000", "00"),
    '"str"': ("010000", "0d737472"),
    "12345678901234567890": ("010000", "2800d20a1feb8ca954ab0000000000000000"),
    "-0": ("010000", "0c00"),
    "1.50": ("010000", "200296000000"),
    "[]": ("010000", "030000"),
    "{}": ("010000", "020000"),
    "3000000000": ("010000", "18005ed0b200000000"),
    "-129": ("010000", "107fff"),
    "0.1e2": ("010000", "1c0000000000002440"),
    "1E400": ("010000", "1c000000000000f07f"),
    "123456789012345678901234567890123456789012": ("010000", "1c5ff5df0ae9ac7648"),
    "-0.0": ("010000", "200100000000"),
    " 7 ": ("010000", "0c07"),
    "0.00": ("010000", "200200000000"),
    "1 2": ("010000", "0c01"),
    '"a"b': ("010000", "0561"),
}
_SHOWN = {
    '{"b":1,"a":[true,null,1.5,"x\u00e9\\n"],"c":{"z":1e3}}': '{"a":[true,null,1.5,"x\u00e9\\n"],"b":1,"c":{"z":1000.0}}',
    "1.50": "1.5",
    "-0.0": "0",
    "0.1e2": "10.0",
    "1E400": '"Infinity"',
    "123456789012345678901234567890123456789012": "1.2345678901234568E41",
    "[1.5E3,1E+2,1e-400,4.9e-324]": "[1500.0,100.0,0.0,4.9E-324]",
    '["\\u0041\\ud83d\\ude00\\n\\/"]': '["A\U0001f600\\n/"]',
    "[9223372036854775807,9223372036854775808,-9223372036854775809]": (
        "[9223372036854775807,9223372036854775808,-9223372036854775809]"
    ),
    '{"z":{"y":{"x":[]}},"A":true,"a":false,"":null,"\u00e9":1}': (
        '{"":null,"A":true,"a":false,"z":{"y":{"x":[]}},"\u00e9":1}'
    ),
}
# A value of Spark's of other types than those of JSON.
_TYPED = (
    "010800010203040508090c64746e66626465636c6e616e",
    "020804000503060207011c002317290e2b05342c0c4d000030b02b58c0ed0d06003440d34dc0ed0d0600380000c03f3c0200000001022003dc0500000c"
    "051c000000000000f87f",
)


@pytest.mark.parametrize("text", _OF_SPARK)
def test_bytes_are_those_of_spark(text: str) -> None:
    metadata, value = map(bytes.fromhex, _OF_SPARK[text])
    assert of_json(text) == (metadata, value)
    assert unwrapped(wrapped(metadata, value)) == (metadata, value)
    assert wrapped(metadata, value).startswith(MARK)


@pytest.mark.parametrize("text", _SHOWN)
def test_json_is_that_of_spark(text: str) -> None:
    assert as_json(*of_json(text), _UTC) == _SHOWN[text]


def test_other_types_are_shown_as_spark_shows_them() -> None:
    shown = (
        '{"b":"AQI=","d":"2024-01-02","dec":1.5,"f":1.5,"l":5,"n":"2024-01-02 03:04:05","nan":"NaN",'
        '"t":"2024-01-02 03:04:05.678+00:00"}'
    )
    metadata, value = map(bytes.fromhex, _TYPED)
    assert as_json(metadata, value, _UTC) == shown
    there = as_json(metadata, value, known_zone("America/New_York"))
    assert there.endswith('"t":"2024-01-01 22:04:05.678-05:00"}')


def test_large_values_have_wider_numbers() -> None:
    fields = "{" + ",".join(f'"k{i}":{i}' for i in range(300)) + "}"
    elements = "[" + ",".join(f"[{i}]" for i in range(70_000)) + "]"
    texts = (fields, elements, '["' + "\u00e9" * 40 + '","' + "x" * 70_000 + '"]')
    for text in texts:
        shown = as_json(*of_json(text), _UTC)
        assert sorted(shown) == sorted(text) and len(shown) == len(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a":1,"a":2}',
            '{"a":',
            "01",
            "NaN",
            "",
            "{'a':1}",
            "1]",
            "1.",
            "1e",
            "-",
            "truex",
            "true1",
            '"a\tb"',
            "[1,]",
        ),
        *("[0.1,00.5]", "nul", "[NaN]", "Infinity", "{1:2}", "\ufeff1", '"\\x"'),
    ],
)
def test_what_is_no_json_to_spark_is_none(text: str) -> None:
    with pytest.raises(MalformedError):
        of_json(text)


@pytest.mark.parametrize("text", ["[" * 900 + "]" * 900, "[" * 100_000, "1" * 1001, '{"\U0001f600":1}'])
def test_what_was_not_asked_is_refused(text: str) -> None:
    with pytest.raises((OddError, MalformedError)):
        of_json(text)


def test_bytes_that_are_none_end_with_an_error() -> None:
    dice = random.Random(7)
    good = [tuple(map(bytes.fromhex, pair)) for pair in (*_OF_SPARK.values(), _TYPED)]
    wrong = 0
    for _ in range(3000):
        metadata, value = map(bytearray, dice.choice(good))
        data = dice.choice((metadata, value))
        for _ in range(dice.randint(1, 3)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            broken = bytes(metadata), bytes(value[: dice.randint(0, len(value))])
            as_json(*broken, _UTC)
            part_of(*broken, ())
        except (MalformedError, OddError):
            wrong += 1
    assert wrong > 1000
    for text in ("", "x", MARK, f"{MARK}!", f"{MARK}AAA="):
        with pytest.raises(MalformedError):
            as_json(*unwrapped(text), _UTC)


def test_parts_that_stand_for_one_another_have_an_end() -> None:
    value = b"\x00"
    for _ in range(60):  # each an array whose elements all are the one below
        value = b"\x0f" + bytes([8]) + struct.pack("<9I", *[0] * 9) + value
    for look in (lambda: as_json(b"\x01\x00\x00", value, _UTC), lambda: part_of(b"\x01\x00\x00", value, ())):
        with pytest.raises(OddError):
            look()
    deep = b"\x00"
    for _ in range(500):
        deep = b"\x0f\x01" + struct.pack("<2I", 0, len(deep)) + deep
    with pytest.raises(OddError):
        as_json(b"\x01\x00\x00", deep, _UTC)


@pytest.mark.parametrize(
    ("text", "steps", "shown"),
    [
        ('{"a":{"b":[1,{"c":"x"}]}}', ("a", "b", 1, "c"), '"x"'),
        ('{"a":{"b":[1,{"c":"x"}]}}', ("a", "b"), '[1,{"c":"x"}]'),
        ('{"a":{"b":[1,{"c":"x"}]}}', (), '{"a":{"b":[1,{"c":"x"}]}}'),
        ('{"A":1}', ("a",), None),
        ('{"a":1}', ("a", "b", "c"), None),
        ("[5]", (0,), "5"),
        ("[5]", (1,), None),
        ("[5]", ("a",), None),
        ('{"0":1}', (0,), None),
        ('{"a":null}', ("a",), "null"),
    ],
)
def test_parts_are_values_of_their_own(text: str, steps: tuple[str | int, ...], shown: str | None) -> None:
    found = part_of(*of_json(text), steps)
    assert (None if found is None else as_json(*found, _UTC)) == shown
    if found is not None and shown is not None:
        assert found == of_json(shown)  # with the names of its own fields alone, as Spark makes it


def test_scalars_are_told_with_their_types_and_made_anew() -> None:
    told = {
        '"s"': ("STRING", "s"),
        f'"{"é" * 40}"': ("STRING", "é" * 40),
        "null": ("VOID", None),
        "1.5": ("DECIMAL", Decimal("1.5")),
        "300": ("BIGINT", 300),
        "1e3": ("DOUBLE", 1000.0),
        "true": ("BOOLEAN", True),
        '{"a":[1]}': ("OBJECT", None),
        "[1]": ("ARRAY", None),
    }
    for text, expected in told.items():
        assert scalar_of(of_json(text)[1]) == expected
        if expected[1] is not None:
            assert of_scalar(*expected) == of_json(text)
    metadata, value = map(bytes.fromhex, _TYPED)
    part = part_of(metadata, value, ("d",))
    assert part is not None and scalar_of(part[1])[0] == "DATE"
    assert of_scalar(*scalar_of(part[1])) == part
    for broken in (b"", b"\x0c", b"\x40\x05\x00\x00\x00a", b"\x20\x00\xff\xff\xff\x7f"):
        with pytest.raises(MalformedError):
            scalar_of(broken)


def test_few_bytes_that_stand_for_many_values_are_refused_at_once() -> None:
    value = b"\x00"
    for _ in range(9):  # ten elements each, all of them the same one
        starts = b"".join(start.to_bytes(4, "little") for start in [0] * 10 + [len(value)])
        value = b"\x0f\x0a" + starts + value
    began = time.process_time()
    with pytest.raises(OddError, match="stand for one another"):
        as_json(b"\x01\x00\x00", value, _UTC)
    with pytest.raises(OddError, match="stand for one another"):
        part_of(b"\x01\x00\x00", value, (0,))
    with pytest.raises(OddError, match="stand for one another"):
        document_of(b"\x01\x00\x00", value)
    assert time.process_time() - began < 10  # for a thousand million values


@pytest.mark.parametrize(
    ("kind", "size", "digits"),
    [(8, 4, 9), (9, 8, 18), (10, 16, 38)],
)
def test_decimals_have_the_digits_of_their_kind(kind: int, size: int, digits: int) -> None:
    def shown(scale: int, unscaled: int) -> str:
        value = bytes([kind << 2, scale]) + unscaled.to_bytes(size, "little", signed=True)
        return as_json(b"\x01\x00\x00", value, _UTC)

    assert shown(digits, 1) == "0." + "1".rjust(digits, "0")
    assert shown(0, 1 - 10**digits) == "-" + "9" * digits
    for scale, unscaled in ((digits + 1, 1), (255, 1), (0, 10**digits), (0, -(10**digits))):
        with pytest.raises(MalformedError):
            shown(scale, unscaled)
