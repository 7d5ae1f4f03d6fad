"""The data files of a snapshot, as its log lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gateway.delta.zoneless import in_zone
from gateway.instants import Zone


@dataclass(frozen=True)
class Files:
    """The live data files of a snapshot, one row each.

    `paths` are absolute paths on disk, `logged` the same as spelt in the log (a remove must repeat it), `sizes` bytes as
    logged; `num_records` counts rows before deletion vectors (NULL: unknown). `null_count`, `minimum`, `maximum` are struct
    arrays keyed by physical names, None without any statistics. `partitions` holds typed values by logical column name.
    `zoneless` tells which instants among them are by the clock of a session's time zone, here by UTC's: see `delta.zoneless`.
    `deleted` maps the row of a file with a deletion vector to a mask that is True for live rows (rows past its end are live).
    """

    paths: list[str]
    logged: list[str]
    sizes: npt.NDArray[np.int64]
    num_records: pa.Int64Array
    null_count: pa.StructArray | None
    minimum: pa.StructArray | None
    maximum: pa.StructArray | None
    partitions: Mapping[str, pa.Array]
    deleted: Mapping[int, npt.NDArray[np.bool_]]
    mended: bool  # whether deltalake has misread some of it
    zoneless: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.paths)

    def only(self, rows: Sequence[int]) -> Files:
        """Some of the files."""
        at = pa.array(rows, pa.int64())

        def taken(statistics: pa.StructArray | None) -> pa.StructArray | None:
            return None if statistics is None else statistics.take(at)

        return Files(
            paths=[self.paths[i] for i in rows],
            logged=[self.logged[i] for i in rows],
            sizes=self.sizes[np.asarray(rows, dtype=np.int64)],
            num_records=self.num_records.take(at),
            null_count=taken(self.null_count),
            minimum=taken(self.minimum),
            maximum=taken(self.maximum),
            partitions={name: values.take(at) for name, values in self.partitions.items()},
            deleted={new: self.deleted[old] for new, old in enumerate(rows) if old in self.deleted},
            mended=self.mended,
            zoneless={name: mask[np.asarray(rows, dtype=np.int64)] for name, mask in self.zoneless.items()},
        )

    def in_zone(self, zone: Zone) -> Files:
        """The same with the instants that `zoneless` tells of by the clock of a time zone; itself if none is another one."""
        moved = {name: in_zone(self.partitions[name], mask, zone) for name, mask in self.zoneless.items()}
        if all(values.equals(self.partitions[name]) for name, values in moved.items()):
            return self
        return replace(self, partitions={**self.partitions, **moved})

    @cached_property
    def live_rows(self) -> npt.NDArray[np.int64]:
        """Rows of each file that are not deleted; -1 where the log does not tell."""
        rows = np.asarray(self.num_records.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64).copy()
        for file, mask in self.deleted.items():
            rows[file] -= np.count_nonzero(~mask) if rows[file] >= 0 else 0
        return rows


class LateFiles(Files):
    """Files that are read once something of them is asked for: whatever `read` raises is raised then."""

    @classmethod
    def by(cls, read: Callable[[], Files]) -> LateFiles:
        """Those that `read` gives."""
        late = object.__new__(cls)
        late.__dict__["_read"] = read
        return late

    def __getattr__(self, name: str) -> Any:
        """What `Files` has and this one has not yet."""
        if name not in Files.__dataclass_fields__:
            raise AttributeError(name)
        self.__dict__.update(self.__dict__["_read"]().__dict__)
        return self.__dict__[name]
