"""Which rows a FetchResults asks for: its orientation and `startRowOffset`, as one table.

Hive's protocol knows no offset; with Databricks' it is optional, and drivers differ in what they put there:

- none: databricks-sql-connector, databricks-sql-go, @databricks/sql, databricks-jdbc 3 and ADBC C# (for rows in line),
  hive-jdbc, PyHive, impyla, gohive. Of these Go also goes back, with FETCH_PRIOR, and @databricks/sql begins with FETCH_FIRST.
- 0 with FETCH_NEXT, on every page: databricks-jdbc 2 (HS2Client sends a field that only its CloudFetch moves).
- the number of a row with FETCH_NEXT: databricks-jdbc 3.2 and ADBC C# when they ask for links to files (CloudFetch), and
  whoever asks for a page again whose answer was lost.

So 0 with FETCH_NEXT means "go on" - until the client has named another row with it, which shows that it counts them.
What no driver sends and what contradicts itself is refused: a guess would lose or repeat rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from gateway.errors import ProtocolError
from gateway.service.api import Orientation
from gateway.thrift_gen.TCLIService import ttypes


class Offset(Enum):
    """What `startRowOffset` holds."""

    ABSENT = auto()
    ZERO = auto()
    POSITIVE = auto()
    NEGATIVE = auto()


ORIENTATIONS: Mapping[int | None, Orientation] = {
    None: Orientation.NEXT,
    ttypes.TFetchOrientation.FETCH_NEXT: Orientation.NEXT,
    ttypes.TFetchOrientation.FETCH_PRIOR: Orientation.PRIOR,
    ttypes.TFetchOrientation.FETCH_RELATIVE: Orientation.RELATIVE,
    ttypes.TFetchOrientation.FETCH_ABSOLUTE: Orientation.ABSOLUTE,
    ttypes.TFetchOrientation.FETCH_FIRST: Orientation.FIRST,
    ttypes.TFetchOrientation.FETCH_LAST: Orientation.LAST,
}

_NO_ROW = frozenset({Offset.ABSENT, Offset.ZERO})
# Which offsets make sense with an orientation; `Operation.fetch` says what they then mean.
OFFSETS: Mapping[Orientation, frozenset[Offset]] = {
    Orientation.NEXT: frozenset({Offset.ABSENT, Offset.ZERO, Offset.POSITIVE}),
    Orientation.PRIOR: _NO_ROW,
    Orientation.FIRST: _NO_ROW,
    Orientation.LAST: _NO_ROW,
    Orientation.RELATIVE: frozenset({Offset.ZERO, Offset.POSITIVE, Offset.NEGATIVE}),
    Orientation.ABSOLUTE: frozenset({Offset.ZERO, Offset.POSITIVE}),
}


def kind_of(offset: int | None) -> Offset:
    """What a `startRowOffset` is."""
    if offset is None:
        return Offset.ABSENT
    if offset == 0:
        return Offset.ZERO
    return Offset.POSITIVE if offset > 0 else Offset.NEGATIVE


def asked(orientation: int | None, offset: int | None) -> Orientation:
    """The orientation of a FetchResults. Raises ProtocolError for an unknown one and for an offset that does not go with it."""
    known = ORIENTATIONS.get(orientation)
    if known is None:
        raise ProtocolError("INVALID_FETCH_ORIENTATION", f"Unknown fetch orientation {orientation}.")
    if kind_of(offset) not in OFFSETS[known]:
        what = "no startRowOffset" if offset is None else f"startRowOffset {offset}"
        raise ProtocolError("INVALID_FETCH_ORIENTATION", f"FETCH_{known} with {what} names no rows.")
    return known
