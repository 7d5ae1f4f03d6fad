"""What a project defines: tables, views, sinks and the flows between them, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STREAMING_TABLE, MATERIALIZED_VIEW = "streaming table", "materialized view"
TEMPORARY_VIEW, VIEW, SINK = "temporary view", "view", "sink"
STORED = (STREAMING_TABLE, MATERIALIZED_VIEW)


@dataclass(frozen=True, slots=True)
class Dataset:
    """An output. `id` is the name that Spark's events use, `schema` and `name` the table's parts (schema "" if none).

    `columns` is Spark's JSON of the columns that the definition asks for, None until they are known; `partitions` and
    `clusters` name those that the rows are grouped by.
    """

    id: str
    kind: str
    schema: str
    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    comment: str | None = None
    columns: str | None = None
    partitions: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()

    @property
    def is_table(self) -> bool:
        return self.kind in STORED

    @property
    def label(self) -> str:
        """`schema.name` as it is known below `main`: Spark puts tables into folders of lower case."""
        return f"{self.schema}.{self.name}".lower() if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Flow:
    """A query that writes to the dataset `target`.

    `inputs` are ids of datasets of the project, `streams` those of them that are read as streams; `external` names what else
    it reads: tables, or files and their format.
    """

    name: str
    target: str
    inputs: tuple[str, ...] = ()
    external: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    once: bool = False


@dataclass(frozen=True, slots=True)
class Definitions:
    """All datasets by id and all flows by name."""

    datasets: Mapping[str, Dataset]
    flows: Mapping[str, Flow]

    def tables(self) -> list[Dataset]:
        return [d for d in self.datasets.values() if d.is_table]

    def target(self, flow: str) -> Dataset | None:
        """The dataset that the flow of that name writes to; None if it is not known."""
        known = self.flows.get(flow)
        return self.datasets.get(known.target if known else flow)

    def streamed(self, target: str) -> set[str]:
        """Ids of the tables that flows into `target` read as streams, by themselves or through views."""
        found: set[str] = set()
        waiting = [target]
        while waiting:
            here = waiting.pop()
            for flow in self.flows.values():
                new = set(flow.streams) - found if flow.target == here else set()
                found |= new
                waiting.extend(id_ for id_ in new if id_ in self.datasets and not self.datasets[id_].is_table)
        return {id_ for id_ in found if id_ in self.datasets and self.datasets[id_].is_table}

    def lineage(self) -> list[tuple[str, str, list[str]]]:
        """Of each dataset its label, its kind, and what it reads: labels, and the names of what is not defined here."""
        reads: dict[str, dict[str, None]] = {id_: {} for id_ in self.datasets}
        for flow in self.flows.values():
            if flow.target in reads:
                starts = (self.datasets[i].label if i in self.datasets else i for i in (*flow.inputs, *flow.external))
                reads[flow.target] |= dict.fromkeys(start.removeprefix("spark_catalog.") for start in starts)
        return [(dataset.label, dataset.kind, list(reads[dataset.id])) for dataset in self.ordered()]

    def ordered(self) -> list[Dataset]:
        """Datasets, sources first; those that do not depend on each other by name."""
        needs: dict[str, set[str]] = {id_: set() for id_ in self.datasets}
        for flow in self.flows.values():
            if flow.target in needs:
                needs[flow.target].update(i for i in flow.inputs if i in needs and i != flow.target)
        out: list[Dataset] = []
        while needs:
            ready = sorted(id_ for id_, of in needs.items() if not of) or sorted(needs)
            out.extend(self.datasets[id_] for id_ in ready)
            for id_ in ready:
                del needs[id_]
            for of in needs.values():
                of.difference_update(ready)
        return out
