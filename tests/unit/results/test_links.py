"""A link opens what it was signed for, until it expires, and no other text opens anything."""

import base64
import string

import pytest

from gateway.results.links import BadLinkError, Link, LinkSigner

OPERATION = bytes(range(16))
CHARACTERS = string.ascii_letters + string.digits + "-_+/=. \0é"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def signer(clock: Clock) -> LinkSigner:
    return LinkSigner(60, clock)


def test_a_link_says_what_it_was_signed_for(signer: LinkSigner, clock: Clock) -> None:
    text, expires_ms = signer.sign(OPERATION, 5_000_000_000, 17)
    assert expires_ms == 1_800_000_060_000
    assert signer.read(text) == Link(OPERATION, 5_000_000_000, 17, expires_ms)
    clock.now += 59.9
    signer.read(text)


def test_a_link_expires(signer: LinkSigner, clock: Clock) -> None:
    text, _ = signer.sign(OPERATION, 0, 1)
    clock.now += 60
    with pytest.raises(BadLinkError, match="expired") as caught:
        signer.read(text)
    assert caught.value.expired


def test_no_changed_character_is_accepted(signer: LinkSigner) -> None:
    text, _ = signer.sign(bytes([0xFB, 0xEF, 0xBE, 0xFF] * 4), 3, 9)  # of many - and _, which have two spellings
    assert "-" in text and "_" in text
    for index, right in enumerate(text):
        for other in CHARACTERS:
            if other != right:
                with pytest.raises(BadLinkError, match="not valid"):
                    signer.read(text[:index] + other + text[index + 1 :])


def test_no_other_text_is_accepted(signer: LinkSigner) -> None:
    text, _ = signer.sign(OPERATION, 3, 9)
    padded = base64.b64encode(base64.urlsafe_b64decode(text) + b"\0").decode()
    for wrong in ("", "x", text[:-1], text + "A", text + "=", f" {text}", text.swapcase(), padded, "A" * len(text)):
        with pytest.raises(BadLinkError, match="not valid"):
            signer.read(wrong)


def test_links_of_another_server_are_not_accepted(signer: LinkSigner, clock: Clock) -> None:
    text, _ = LinkSigner(60, clock).sign(OPERATION, 0, 1)
    with pytest.raises(BadLinkError, match="not valid"):
        signer.read(text)
