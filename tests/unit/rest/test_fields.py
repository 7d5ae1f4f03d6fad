"""Bodies of requests are taken as they are meant, or refused with the field's name."""

from __future__ import annotations

import json
import time

import pytest

from gateway.rest import fields
from gateway.rest.fields import RestError

CHECKS = {
    "name": fields.text,
    "limit": fields.count,
    "wait": fields.wait,
    "kind": fields.one_of("A", "B"),
    "settings": fields.texts,
    "names": fields.each(fields.text),
}


def test_absent_fields_and_nulls_are_none() -> None:
    nothing = dict.fromkeys(CHECKS)
    assert fields.read(b"", CHECKS) == fields.read(b" {} ", CHECKS) == fields.read(b'{"name": null}', CHECKS) == nothing


def test_values_are_taken() -> None:
    body = '{"name":"é","limit":9,"wait":"50s","kind":"B","settings":{"a":"x","b":1,"c":true},"names":["x","y"]}'
    assert fields.read(body.encode(), CHECKS) == {
        "name": "é",
        "limit": 9,
        "wait": 50.0,
        "kind": "B",
        "settings": {"a": "x", "b": "1", "c": "true"},
        "names": ["x", "y"],
    }
    assert fields.read(b'{"wait": "0s"}', CHECKS)["wait"] == 0.0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("[]", "the body is not an object"),
        ("1", "the body is not an object"),
        ('{"nam": 1}', "the body has unknown fields: nam"),
        ('{"name": 1}', "name is not a string"),
        ('{"limit": 0}', "limit is not a positive number"),
        ('{"limit": true}', "limit is not a positive number"),
        ('{"limit": 1e3}', "limit is not a positive number"),
        ('{"limit": 9223372036854775808}', "limit is not a positive number"),
        ('{"wait": "3s"}', "wait must be 0s or between 5s and 50s"),
        ('{"wait": "51s"}', "wait must be 0s or between 5s and 50s"),
        ('{"wait": 10}', "wait must be 0s or between 5s and 50s"),
        ('{"wait": "\uff11\uff10s"}', "wait must be 0s or between 5s and 50s"),
        ('{"kind": "C"}', "kind is not one of A, B"),
        ('{"kind": ["A"]}', "kind is not one of A, B"),
        ('{"settings": {"a": {}}}', "settings is not an object of strings"),
        ('{"names": "x"}', "names is not a list"),
        ('{"names": [1]}', "names is not a string"),
        ('{"name": "\\ud800"}', "name holds half a character (a lone surrogate)"),
        ('{"settings": {"\\udc2e": 1}}', "settings holds half a character (a lone surrogate)"),
    ],
)
def test_what_is_wrong_is_named(body: str, message: str) -> None:
    with pytest.raises(RestError) as caught:
        fields.read(body.encode(), CHECKS)
    assert (caught.value.status, caught.value.code, caught.value.message) == (400, "INVALID_PARAMETER_VALUE", message)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b'{"name": NaN',
        b"[" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        b"\0",
        '{"name": "x"}'.encode("utf-16"),
        b'{"name": "x", "name": "y"}',
        b'{"settings": {"a": 1, "a": 2}}',
        b'{"limit": ' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_no_json_is_malformed(body: bytes) -> None:
    with pytest.raises(RestError) as caught:
        fields.read(body, CHECKS)
    assert caught.value.code == "MALFORMED_REQUEST"


def test_a_statement_may_hold_many_brackets() -> None:
    text = '()[]{,\\"' * 200_000
    assert fields.read(json.dumps({"name": text}).encode(), CHECKS)["name"] == text


@pytest.mark.parametrize(
    "body",
    [
        b'{"names": [' + b"1," * 8_000_000 + b"1]}",
        b'{"names": [' + b'"",' * 5_000_000 + b"1]}",
        b'{"settings": {' + b",".join(b'"%x": 1' % i for i in range(1_000_000)) + b"}}",
        b'{"name": "' + b'\\"x' * 5_000_000,
        b'"a' * 8_000_000,
        b"[" + b"1" * 16_000_000,
        b'{"name": "' + b"\\n" * 16_000_000 + b'"}',
    ],
    ids=["numbers", "texts", "keys", "no end", "quotes", "digits", "escapes"],
)
def test_what_would_take_long_is_refused_before_it_is_parsed(body: bytes) -> None:
    began = time.process_time()
    with pytest.raises(RestError) as caught:
        fields.read(body, CHECKS)
    assert caught.value.code == "MALFORMED_REQUEST"
    assert time.process_time() - began < 2
