"""A bucket for results that answers what no bucket should: the gateway stays, and serves the files itself."""

from __future__ import annotations

import time
from pathlib import Path

from tests.clients.test_bucket import PLACE, led_on
from tests.clients.test_links import ROWS, all_links, execute, get, rows_of
from tests.fuzz.clients.wire import Wire, query
from tests.live import bucket as buckets
from tests.live.gateway import clean_environment, start_server


def test_an_answer_that_says_it_is_large_is_not_given_room(tmp_path: Path) -> None:
    """Whoever believed its length would ask for a terabyte, and end with it."""
    with buckets.serving() as bucket:
        environment = clean_environment() | bucket.environment()
        server = start_server(tmp_path, "--result-bucket", PLACE, environment=environment)
        with Wire(server.thrift_url) as wire:
            links = all_links(wire, execute(wire, query(ROWS)))
            bucket.says = [b"HTTP/1.1 400 Bad\r\nContent-Length: 1099511627776\r\n\r\n" + b"<Code>Odd</Code>" * 300]
            assert led_on(links[0].fileLink) == (200, "")
            assert [i for link in links for i in rows_of(get(link.fileLink)[2])] == list(range(ROWS))
        assert server.stop() == 0
        assert 'PUT is answered with 400 Odd"' in server.log.read_text()


def test_a_bucket_that_says_nothing_keeps_no_file_and_no_end(tmp_path: Path) -> None:
    with buckets.serving() as bucket:
        environment = clean_environment() | bucket.environment()
        server = start_server(tmp_path, "--result-bucket", PLACE, environment=environment)
        with Wire(server.thrift_url) as wire:
            link = all_links(wire, execute(wire, query(ROWS)))[0].fileLink
            bucket.says, begun = [], time.monotonic()
            assert rows_of(get(link)[2])[0] == 0
            assert time.monotonic() - begun < 25, "drivers give up after a minute"
            begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 25
