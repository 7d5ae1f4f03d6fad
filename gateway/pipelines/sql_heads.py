"""What a project defines as far as Python's registration and the heads of SQL statements tell it.

Only for servers of others, whose graph cannot be read: names, kinds, targets, formats and properties; no inputs, no types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gateway.pipelines.definitions import (
    MATERIALIZED_VIEW,
    STREAMING_TABLE,
    TEMPORARY_VIEW,
    VIEW,
    Dataset,
    Definitions,
    Flow,
)
from gateway.pipelines.project import Project, ProjectError
from gateway.pipelines.registry import Registered
from gateway.sql.read.tokens import QUOTED, STRING, scan

_KINDS = (
    (("STREAMING", "TABLE"), STREAMING_TABLE),
    (("MATERIALIZED", "VIEW"), MATERIALIZED_VIEW),
    (("TEMPORARY", "VIEW"), TEMPORARY_VIEW),
    (("TEMP", "VIEW"), TEMPORARY_VIEW),
    (("VIEW",), VIEW),
)
_STORED = (STREAMING_TABLE, MATERIALIZED_VIEW, VIEW)


def definitions(project: Project, catalog: str, registered: Registered) -> Definitions:
    """All definitions of `project` with the names that Spark's events use; `catalog` is the server's current one."""
    datasets = list(registered.datasets)
    flows = list(registered.flows)
    for file in project.files:
        if file.suffix == ".sql":
            found, more = read(file.read_text(encoding="utf-8"), file, project.database)
            datasets.extend(found)
            flows.extend(more)
    ids = {d.id: _qualified(d.id, catalog, project.database) if d.kind in _STORED else d.id for d in datasets}
    named: dict[str, Flow] = {}
    for flow in flows:
        target = ids.get(flow.target, flow.target)
        name = target if flow.name == flow.target else _qualified(flow.name, catalog, project.database)
        named[name] = Flow(name, target)
    return Definitions({ids[d.id]: replace(d, id=ids[d.id]) for d in datasets}, named)


def read(text: str, file: Path, database: str) -> tuple[list[Dataset], list[Flow]]:
    """Datasets and flows of the statements in `text`, their names as they are spelt. Raises ProjectError for a bad token."""
    tokens, words, error = scan(text)
    if error is not None:
        raise ProjectError(str(file), error.message)
    datasets: list[Dataset] = []
    flows: list[Flow] = []
    texts = [token.text for token in tokens]
    for start, stop in _statements(words):
        head = _Head(texts[start:stop], words[start:stop])
        if not head.take("CREATE"):
            continue
        head.take("OR", "REPLACE") or head.take("OR", "REFRESH")
        if head.take("FLOW"):
            name = head.name()
            if head.skip_to("INTO"):
                head.take("ONCE")
                flows.append(Flow(name, head.name()))
            continue
        kind = next((kind for words_, kind in _KINDS if head.take(*words_)), None)
        if kind is None:
            continue
        head.take("IF", "NOT", "EXISTS")
        dataset = _dataset(head, kind, database)
        datasets.append(dataset)
        if head.skip_to("AS"):
            flows.append(Flow(dataset.id, dataset.id))
    return datasets, flows


def _statements(words: list[str]) -> Iterator[tuple[int, int]]:
    start = 0
    for i, word in enumerate(words):
        if word in (";", ""):
            yield start, i
            start = i + 1


def _dataset(head: _Head, kind: str, database: str) -> Dataset:
    id_ = head.name()
    *prefix, name = id_.split(".")
    mark = head.index
    format_ = head.texts[head.index] if head.skip_to("USING") else None
    head.index = mark
    properties = dict(head.pairs()) if head.skip_to("TBLPROPERTIES") else {}
    head.index = mark
    schema = (prefix[-1] if prefix else database) if kind in _STORED else ""
    return Dataset(id_, kind, schema, name, properties, format_)


class _Head:
    """A place in a statement's words."""

    def __init__(self, texts: list[str], words: list[str]) -> None:
        self.texts, self.words = [*texts, ""], [*words, ""]
        self.index = 0

    def take(self, *words: str) -> bool:
        """Go past `words` if they come next."""
        if tuple(self.words[self.index : self.index + len(words)]) != words:
            return False
        self.index += len(words)
        return True

    def name(self) -> str:
        """A name with its dots, without backquotes."""
        parts = [self.texts[self.index]]
        self.index += 1
        while self.words[self.index] == ".":
            parts.append(self.texts[self.index + 1])
            self.index += 2
        return ".".join(parts)

    def skip_to(self, word: str) -> bool:
        """Go past the next `word` outside of brackets and before AS; False, and nowhere, if there is none."""
        depth = 0
        for i in range(self.index, len(self.words)):
            depth += {"(": 1, ")": -1}.get(self.words[i], 0)
            if depth == 0 and self.words[i] == word:
                self.index = i + 1
                return True
            if depth == 0 and self.words[i] == "AS" and word != "INTO":
                return False
        return False

    def pairs(self) -> Iterator[tuple[str, str]]:
        """``(key = value, …)``: keys are strings or dotted names."""
        self.take("(")
        while self.words[self.index] not in (")", ""):
            key = self.name()
            self.take("=")
            value = self.texts[self.index]
            yield key, value if self.words[self.index] in (STRING, QUOTED) else value.lower()
            self.index += 1
            self.take(",")


def _qualified(name: str, catalog: str, database: str) -> str:
    parts = name.replace("`", "").split(".")
    return ".".join([*(catalog, database)[: max(0, 3 - len(parts))], *parts])
