"""Results of thousands of columns, asked for by many at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.base import Planned
from gateway.protocol import codec, convert, pages
from gateway.protocol.handler import ThriftHandler
from gateway.protocol.writer import Encoded
from gateway.sqltypes import INT, StructField, struct
from gateway.thrift_gen.TCLIService import ttypes
from tests.unit.at_once import AtOnce
from tests.unit.service.test_service import ME, House


@pytest.mark.parametrize(("columns", "at_once"), [(5_000, 1), (10, 8)])
def test_shapes_are_written_out_for_few_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int, at_once: int
) -> None:
    """No other thread gets on while objects are made of them."""
    house = House(tmp_path)
    operation = house.execute(house.open())
    schema = struct(*(StructField(f"c{i}", INT) for i in range(columns)))
    house.run(operation).sink.event(Planned("SELECT", "datafusion", "", schema))
    house.run(operation).finish()
    handler = ThriftHandler(house.service)
    inside = AtOnce(0.1)

    def slowly(metadata: Any) -> Encoded:
        with inside.counted():
            return Encoded(codec.encode_struct(ttypes.TGetResultSetMetadataResp(status=convert.success())))

    monkeypatch.setattr(pages, "metadata", slowly)
    asked = ttypes.TGetResultSetMetadataReq(convert.operation_handle(house.status(operation)))
    body = codec.encode_call("GetResultSetMetadata", 1, asked)
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda _: handler.handle(body, ME.name, ""), range(8)))
    assert inside.most["all"] == at_once
