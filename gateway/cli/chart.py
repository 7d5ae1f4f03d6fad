"""Rows of a result as a picture made of characters."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from gateway.cli.output import cell_texts, is_number
from gateway.errors import ConfigError
from gateway.observability import printable

KINDS = ("auto", "bar", "line", "scatter")
MOST_BARS = 40
_LABEL = 24
_TICKS = 5
_FARTHEST = 1e300  # from zero that a point of a curve may be: the distance of two is a number
_NUMBER = 16  # characters that a number and the gaps beside it take

Series = Mapping[str, Sequence[float | None]]  # by name, a value a row


def chart(schema: pa.Schema, batches: Sequence[pa.RecordBatch], kind: str = "auto") -> str:
    """A chart of the columns that are numbers, over the first that is none (or over the first, if all are).

    `auto` takes bars over texts and lines over numbers and times. Raises ConfigError for rows that no chart shows.
    """
    if kind not in KINDS:
        raise ConfigError("chart", f"takes {', '.join(KINDS)}, not {kind}")
    numbers = [i for i, field in enumerate(schema) if is_number(field.type)]
    others = [i for i, field in enumerate(schema) if not is_number(field.type)]
    if not others and len(numbers) > 1:
        others, numbers = numbers[:1], numbers[1:]
    rows = sum(batch.num_rows for batch in batches)
    if not numbers or not rows:
        raise ConfigError("chart", "there is no number to draw" if rows else "there are no rows to draw")
    across = others[0] if others else None
    labels = cell_texts(schema, batches)[across] if across is not None else [str(n) for n in range(1, rows + 1)]
    places = _places(batches, across, schema)
    if kind == "auto":
        kind = "bar" if places is None else "line"
    series = {printable(schema.names[i]): _heights(batches, i) for i in numbers}
    title = ", ".join(series) + (f" by {printable(schema.names[across])}" if across is not None else "")
    if kind == "bar":
        return f"{title}\n{_bars(labels, series)}"
    return f"{title}\n{_curves(labels, places or [float(n) for n in range(rows)], series, kind)}"


def _bars(labels: Sequence[str], series: Series) -> str:
    """A line a value: label, bar, number."""
    shorts = [_short(label) for label in labels[:MOST_BARS]]
    wide = max(map(len, shorts))
    names = [""] if len(series) == 1 else [f" {name[:_LABEL]}" for name in series]
    named = max(map(len, names))
    finite = [value for values in series.values() for value in values[:MOST_BARS] if value is not None]
    most = max(map(abs, finite), default=0.0) or 1.0  # shares of it have no sum that is infinite, or no quotient
    low, high = min(0.0, *finite, 0.0) / most, max(0.0, *finite, 0.0) / most
    room = max(10, shutil.get_terminal_size((100, 30)).columns - wide - named - _NUMBER)
    scale = room / ((high - low) or 1.0)
    zero = round(-low * scale)
    lines = []
    for row, label in enumerate(shorts):
        for place, (name, values) in enumerate(zip(names, series.values(), strict=True)):
            value = values[row]
            length = 0 if value is None else round(abs(value) / most * scale)
            start = zero - length if value is not None and value < 0 else zero
            text = "" if value is None else f" {value:.6g}"
            lines.append(
                f"{(label if not place else '').ljust(wide)}{name.ljust(named)} {' ' * start}{'█' * length}{text}"
            )
    if len(labels) > MOST_BARS:
        lines.append(f"({MOST_BARS} of {len(labels)} rows drawn)")
    return "".join(line.rstrip() + "\n" for line in lines)


def _curves(labels: Sequence[str], places: Sequence[float], series: Series, kind: str) -> str:
    """Lines or points over an axis."""
    for values in (places, *series.values()):
        _check_reach(values)
    plot = _plotext()
    width, height = shutil.get_terminal_size((100, 30))
    plot.clear_figure()
    plot.theme("clear")
    plot.plot_size(width, max(10, min(height - 4, 25)))
    draw = plot.scatter if kind == "scatter" else plot.plot
    for name, values in series.items():
        points = [(x, y) for x, y in zip(places, values, strict=True) if y is not None]
        if points:
            draw([x for x, _ in points], [y for _, y in points], label=_short(name) if len(series) > 1 else None)
    step = max(1, (len(places) - 1) // (_TICKS - 1))
    plot.xticks(places[::step], list(map(_short, labels[::step])))
    text: str = plot.uncolorize(plot.build())
    return text.rstrip() + "\n"


def _check_reach(values: Iterable[float | None]) -> None:
    """Raises ConfigError for numbers that are too far from each other, or too large, for an axis."""
    if any(value is not None and abs(value) > _FARTHEST for value in values):
        raise ConfigError("chart", f"numbers beyond {_FARTHEST:g} have no place on an axis; bars show them")


def _short(label: str) -> str:
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"


def _plotext() -> Any:
    try:
        import plotext
    except ImportError:
        raise ConfigError("chart", "charts need the package plotext: pip install '.[prompt]'") from None
    return plotext


def _heights(batches: Sequence[pa.RecordBatch], index: int) -> list[float | None]:
    return [_number(value) for batch in batches for value in batch.column(index).to_pylist()]


def _number(value: Any) -> float | None:
    """What can be drawn of a number: no NULL, NaN or infinity."""
    if value is None:
        return None
    number = float(value)
    return number if number - number == 0 else None


def _places(batches: Sequence[pa.RecordBatch], index: int | None, schema: pa.Schema) -> list[float] | None:
    """Where on the axis the rows are, if their values are numbers or times that can be put there."""
    if index is None:
        return [float(n) for n in range(sum(batch.num_rows for batch in batches))]
    type_ = schema.field(index).type
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        unit = pa.timestamp("us") if pa.types.is_timestamp(type_) else pa.int32()
        values: list[Any] = [v for b in batches for v in b.column(index).cast(unit).cast(pa.int64()).to_pylist()]
    elif is_number(type_):
        values = [v for b in batches for v in b.column(index).to_pylist()]
    else:
        return None
    places = [_number(value) for value in values]
    return None if any(place is None for place in places) else [place for place in places if place is not None]
