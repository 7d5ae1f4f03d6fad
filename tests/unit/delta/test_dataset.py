"""Files as our own reader reads them: row groups that hold no live row are passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.delta import dataset
from gateway.delta.dataset import POSITION, DataFile, Places, read_file
from gateway.delta.schema import Column, parse_schema
from gateway.errors import ServerError, UnsupportedError
from gateway.sqltypes import BIGINT

ROWS, GROUP = 1050, 100
ID = Column("id", "id", None, BIGINT, nullable=True)
NUMBER = Column("n", POSITION, None, BIGINT, nullable=False)
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
MASKS = {
    "one row": [730],
    "of all groups": range(5, ROWS, 100),
    "groups beside each other": [*range(95, 305), 1049],
    "none": [],
    "all": range(ROWS),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found: Path = tmp_path_factory.mktemp("groups") / "a.parquet"
    pq.write_table(pa.table({"id": [i * 3 for i in range(ROWS)]}), found, row_group_size=GROUP)
    return str(found)


@pytest.mark.parametrize("length", [ROWS, 800])
@pytest.mark.parametrize("name", MASKS)
def test_live_rows_and_their_numbers(path: str, name: str, length: int) -> None:
    """Rows behind the end of a mask are alive."""
    mask = np.zeros(length, np.bool_)
    mask[[i for i in MASKS[name] if i < length]] = True
    expected = [*np.flatnonzero(mask).tolist(), *range(length, ROWS)]
    file = DataFile(path, Path(path).stat().st_size, {}, mask)
    for columns in ((ID, NUMBER), (NUMBER,)):
        schema = pa.schema([SCHEMA.field(c.name) for c in columns])
        found = pa.Table.from_batches(read_file(file, columns, schema, (str(Path(path).parent),)), schema)
        assert found.column("n").to_pylist() == expected
        assert len(columns) == 1 or found.column("id").to_pylist() == [i * 3 for i in expected]


def test_files_in_a_row_are_looked_at_each_where_they_differ(tmp_path: Path) -> None:
    more = Column("m", "m", None, BIGINT, nullable=True)
    schema = pa.schema([("id", pa.int64()), ("m", pa.int64())])
    tables = [
        (pa.table({"id": [1], "m": [2]}), {}),
        (pa.table({"id": [3], "m": [4]}), {}),
        (pa.table({"x": ["-"], "m": [6], "id": [5]}), {}),
        (pa.table({"id": [7]}), {}),
        (pa.table({"id": [9], "m": [0]}), {"m": pa.scalar(10, pa.int64())}),
        (pa.table({"id": [11], "m": [12]}), {}),
    ]
    found, places = [], Places((ID, more))
    for number, (table, constants) in enumerate(tables):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path)
        file = DataFile(str(path), path.stat().st_size, constants, None)
        for batch in read_file(file, (ID, more), schema, (str(tmp_path),), places):
            found += batch.to_pylist()
    assert [(row["id"], row["m"]) for row in found] == [(1, 2), (3, 4), (5, 6), (7, None), (9, 10), (11, 12)]


def _struct(**fields: Any) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [{"name": n, "type": f, "nullable": True, "metadata": {}} for n, f in fields.items()],
    }


def test_files_may_hold_views(tmp_path: Path) -> None:
    """As the metadata of some writers says: in lists and maps too, before other columns, beside dead rows."""
    spec: dict[str, tuple[pa.DataType, pa.DataType, list[Any]]] = {
        "texts": (pa.list_(pa.string_view()), pa.list_(pa.string()), [["a", None], [], None]),
        "two": (pa.list_(pa.string_view(), 2), pa.list_(pa.string()), [["a", None], ["b", "c"], ["d", "e"]]),
        "map": (
            pa.map_(pa.string_view(), pa.binary_view()),
            pa.map_(pa.string(), pa.binary()),
            [[("k", b"v")], [], []],
        ),
        "text": (pa.string_view(), pa.string(), ["a", "longer than views hold", None]),
        "bytes": (pa.binary_view(), pa.binary(), [b"a", b"\xff", None]),
        "id": (pa.int64(), pa.int64(), [1, 2, 3]),
    }
    path, schema = tmp_path / "a.parquet", pa.schema([(name, plain) for name, (_, plain, _) in spec.items()])
    pq.write_table(pa.table({name: pa.array(values, held) for name, (held, _, values) in spec.items()}), path)
    texts = {"type": "array", "elementType": "string", "containsNull": True}
    pieces = {"type": "map", "keyType": "string", "valueType": "binary", "valueContainsNull": True}
    columns = parse_schema(_struct(texts=texts, two=texts, map=pieces, text="string", bytes="binary", id="long"))
    for live in (None, np.array([True, False, True]), np.array([False, True, False])):
        file = DataFile(str(path), path.stat().st_size, {}, live)
        found = pa.Table.from_batches(read_file(file, columns, schema, (str(tmp_path),)), schema)
        kept = range(3) if live is None else np.flatnonzero(live)
        assert found.to_pydict() == {name: [values[i] for i in kept] for name, (_, _, values) in spec.items()}


def test_what_lies_behind_lists_that_are_views_is_found(tmp_path: Path) -> None:
    """These are refused by name."""
    pairs = pa.array([[{"x": 1, "y": 2}], None], pa.list_view(pa.struct([("x", pa.int64()), ("y", pa.int64())])))
    path, schema = tmp_path / "a.parquet", pa.schema([("id", pa.int64())])
    pq.write_table(pa.table({"pairs": pairs, "id": [3, 4]}), path)
    file = DataFile(str(path), path.stat().st_size, {}, None)
    assert [b.to_pylist() for b in read_file(file, (ID,), schema, (str(tmp_path),))] == [[{"id": 3}, {"id": 4}]]
    lists = {"type": "array", "elementType": _struct(x="long", y="long"), "containsNull": True}
    columns = parse_schema(_struct(pairs=lists))
    with pytest.raises(UnsupportedError, match=r"UNSUPPORTED_DATATYPE.*pairs"):
        list(read_file(file, columns, pa.schema([("pairs", columns[0].type.arrow())]), (str(tmp_path),)))


def test_views_that_are_no_text_are_not_handed_on(tmp_path: Path) -> None:
    path, schema = tmp_path / "a.parquet", pa.schema([("s", pa.string())])
    wrong = pa.array([b"a", b"\xff\xfe and more than a view holds"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"s": wrong.cast(pa.string_view())}), path)
    file = DataFile(str(path), path.stat().st_size, {}, None)
    with pytest.raises(ServerError, match=r"FAILED_READ_FILE.*UTF8"):
        list(read_file(file, parse_schema(_struct(s="string")), schema, (str(tmp_path),)))


def test_only_groups_with_live_rows_are_read(path: str) -> None:
    mask = np.zeros(ROWS, np.bool_)
    mask[[250, 251, 399, 900]] = True
    with pq.ParquetFile(path) as opened:
        assert list(dataset._row_groups(opened, mask)) == [(200, 200, [2, 3]), (900, 100, [9])]


@pytest.mark.parametrize(
    ("live", "rows", "is_sparse"),
    [(None, None, False), ([3], 50, False), ([3], 1000, True), (range(0, 1000, 10), 1000, False), (range(200), 1000, True),
     (range(400), 1000, False)],
)  # fmt: skip
def test_few_places(monkeypatch: pytest.MonkeyPatch, live: list[int] | None, rows: int | None, is_sparse: bool) -> None:
    monkeypatch.setattr(dataset, "_PLACE", 100)
    mask = None
    if live is not None:
        mask = np.zeros(rows or 0, np.bool_)
        mask[list(live)] = True
    assert DataFile("x", 1, {}, mask, rows).is_sparse is is_sparse
    if mask is not None:  # with rows behind its end, which are alive
        assert not DataFile("x", 1, {}, mask[:20], rows).is_sparse


def test_a_file_that_is_gone_is_told_as_that(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.parquet")
    file = DataFile(path, 10, {}, None)
    with pytest.raises(ServerError) as caught:
        list(read_file(file, (ID,), pa.schema([("id", pa.int64())]), (str(tmp_path),)))
    assert (caught.value.condition, caught.value.retryable) == ("DELTA_FILE_NOT_FOUND", True)
    assert caught.value.message == f"The file {path} is missing."
