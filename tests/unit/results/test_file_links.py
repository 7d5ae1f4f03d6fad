"""A link to a file of a volume opens this file for one verb, until it expires, and no other text opens anything."""

import base64
import os
import string
import time
from dataclasses import replace

import pytest

from gateway.results import file_links
from gateway.results.file_links import FileLink
from gateway.results.links import BadLinkError
from gateway.worker_jobs import FileDoor

KEY = bytes(range(32))
LINK = FileLink("PUT", "/warehouse/default/_volumes/v", "a/é b.txt", "me", True, (1 << 53) - 1)


def test_a_link_says_what_it_was_signed_for() -> None:
    door = FileDoor(KEY, 60, "https://warehouse.example")
    url = file_links.url(door, "GET", LINK.volume, LINK.file, "me")
    assert url.startswith("https://warehouse.example/sql/1.0/files/")
    found = file_links.read(url.rpartition("/")[2], KEY)
    assert replace(found, expires_ms=0) == replace(LINK, verb="GET", replaces=False, expires_ms=0)
    assert 59_000 < found.expires_ms - time.time() * 1000 <= 60_000


@pytest.mark.parametrize("character", ["a", "я", "名", "😀", '"', "\\"])
def test_the_longest_path_has_a_link(character: str) -> None:
    size = len(character.encode())
    file = "/".join([character * (250 // size)] * 16)
    assert 4000 - 16 * size < len(file.encode()) < 4096
    link = replace(LINK, file=file, volume=LINK.volume + "x" * 1000, owner="я" * 512)
    assert file_links.read(file_links.signed(link, KEY), KEY) == link
    odd = replace(link, volume=os.fsdecode(b"/\xff"))
    assert file_links.read(file_links.signed(odd, KEY), KEY) == odd


def test_a_link_tells_no_place_of_the_server() -> None:
    text = file_links.signed(LINK, KEY)
    sealed = base64.urlsafe_b64decode(text)
    assert b"warehouse" not in sealed
    assert b"volume" not in sealed
    others = file_links.signed(replace(LINK, owner="you"), KEY)
    same = sum(a == b for a, b in zip(sealed[32:], base64.urlsafe_b64decode(others)[32:], strict=False))
    assert same < 20  # of more than a hundred: nothing is to be learnt from two of them


def test_a_link_expires() -> None:
    text = file_links.signed(replace(LINK, expires_ms=int(time.time() * 1000) - 1), KEY)
    with pytest.raises(BadLinkError, match="expired"):
        file_links.read(text, KEY)


def test_no_changed_character_is_accepted() -> None:
    text = file_links.signed(LINK, KEY)
    assert file_links.read(text, KEY) == LINK
    for at in range(len(text)):
        for other in string.ascii_letters[::7] + "-_+/=.\0é":
            if other != text[at]:
                with pytest.raises(BadLinkError):
                    file_links.read(text[:at] + other + text[at + 1 :], KEY)


@pytest.mark.parametrize("text", ["", ".", "..", "a", "a.b", "A" * 100_000, base64.b64encode(b"{}").decode() + "."])
def test_no_other_text_is_accepted(text: str) -> None:
    with pytest.raises(BadLinkError):
        file_links.read(text, KEY)


def test_links_of_another_server_are_not_accepted() -> None:
    with pytest.raises(BadLinkError):
        file_links.read(file_links.signed(LINK, bytes(32)), KEY)
