"""The graph of a project as text and as a picture (SVG): layers from left to right, sources first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from gateway.config import Config
from gateway.pipelines.definitions import (
    MATERIALIZED_VIEW,
    SINK,
    STREAMING_TABLE,
    TEMPORARY_VIEW,
    VIEW,
    Definitions,
)
from gateway.pipelines.prepare import prepare
from gateway.pipelines.project import Project, ProjectError
from gateway.pipelines.run import log_path
from gateway.pipelines.server import serve
from gateway.pipelines.warehouse import Warehouse

SOURCE = "external source"
_FILLS = {
    STREAMING_TABLE: "#dbeafe",
    MATERIALIZED_VIEW: "#dcfce7",
    TEMPORARY_VIEW: "#f3f4f6",
    VIEW: "#f3f4f6",
    SINK: "#fee2e2",
    SOURCE: "#fef9c3",
}
_CHAR, _LINE = 7.2, 16  # width of a character of the 12 px monospace font and height of a line, px
_PAD, _GAP_X, _GAP_Y, _MARGIN = 12, 70, 22, 20


@dataclass(frozen=True, slots=True)
class Node:
    """A box: its name and what it is."""

    id: str
    label: str
    kind: str


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from what is read to what is written; `flow` is named where it is not that of its target."""

    start: str
    end: str
    flow: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Boxes in order, sources first, and arrows between them."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]


def read(project: Project, config: Config, master: str) -> Graph:
    """The graph as Spark has analysed it, in a JVM of our own. Raises ProjectError, ConfigError."""
    with serve(config, master, Warehouse(config.warehouse).root, log_path(config.state, project.name)) as server:
        if server.jvm is None:
            raise ProjectError(
                "spark",
                "Spark Connect does not give out a graph: leave --spark out, then it is analysed on this machine",
            )
        return make(prepare(project, server, Warehouse(config.warehouse, config.allow_path)).definitions)


def make(definitions: Definitions) -> Graph:
    """Boxes and arrows of `definitions`; what is not defined there is an external source."""
    nodes = [Node(d.id, d.label, d.kind) for d in definitions.ordered()]
    known = {node.id for node in nodes}
    sources: dict[str, Node] = {}
    edges: list[Edge] = []
    for flow in sorted(definitions.flows.values(), key=lambda f: (f.target, f.name)):
        name = "" if flow.name == flow.target else flow.name.rpartition(".")[2]
        for start in (*flow.inputs, *flow.external):
            if start not in known:
                label = start.removeprefix("spark_catalog.")
                sources.setdefault(start, Node(start, label, SOURCE))
            edges.append(Edge(start, flow.target, name))
    return Graph([*sorted(sources.values(), key=lambda n: n.id), *nodes], edges)


def text(graph: Graph) -> str:
    """One block a node: its name and kind, and what it reads."""
    labels = {node.id: node.label for node in graph.nodes}
    width = max((len(node.label) for node in graph.nodes), default=0)
    lines = []
    for node in graph.nodes:
        lines.append(f"{node.label.ljust(width)}  {node.kind}")
        for edge in graph.edges:
            if edge.end == node.id:
                flow = f"  (flow {edge.flow})" if edge.flow else ""
                lines.append(f"  <- {labels[edge.start]}{flow}")
    return "\n".join(lines) + "\n"


def layers(graph: Graph) -> Mapping[str, int]:
    """The column of each node: one to the right of everything that it reads; loops to itself do not count."""
    depth = {node.id: 0 for node in graph.nodes}
    for _ in graph.nodes:  # a graph of n nodes is at most n deep
        for edge in graph.edges:
            if edge.start != edge.end:
                depth[edge.end] = max(depth[edge.end], depth[edge.start] + 1)
    return depth


def svg(graph: Graph, title: str) -> str:
    """The graph as an SVG file."""
    columns = _columns(graph)
    boxes: dict[str, tuple[float, float, float, float]] = {}
    x = float(_MARGIN)
    tallest = max((len(column) for column in columns), default=0)
    height = 2 * _LINE + 2 * _PAD - _LINE // 2
    total = tallest * (height + _GAP_Y) - _GAP_Y
    for column in columns:
        width = max(_width(node) for node in column)
        top = _MARGIN + (total - (len(column) * (height + _GAP_Y) - _GAP_Y)) / 2
        for i, node in enumerate(column):
            boxes[node.id] = (x, top + i * (height + _GAP_Y), width, height)
        x += width + _GAP_X
    size = (max(x - _GAP_X + _MARGIN, 2.0 * _MARGIN), total + 2.0 * _MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]:.0f}" height="{size[1]:.0f}" '
        f'viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" font-family="monospace" font-size="12">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#6b7280"/></marker></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    parts.extend(_arrow(boxes[e.start], boxes[e.end], e.flow) for e in graph.edges)
    parts.extend(_box(boxes[node.id], node) for node in graph.nodes)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _columns(graph: Graph) -> list[list[Node]]:
    """Nodes by layer; within a layer near the mean place of what they read, so that arrows cross less."""
    depth = layers(graph)
    columns: list[list[Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in graph.nodes:
        columns[depth[node.id]].append(node)
    place: dict[str, float] = {}
    for column in columns:
        means = {}
        for index, node in enumerate(column):
            read = [place[e.start] for e in graph.edges if e.end == node.id and e.start in place]
            means[node.id] = sum(read) / len(read) if read else float(index)
        column.sort(key=lambda n: (means[n.id], n.label))
        place.update({node.id: float(i) for i, node in enumerate(column)})
    return columns


def _width(node: Node) -> float:
    return max(len(node.label), len(node.kind)) * _CHAR + 2 * _PAD


def _box(box: tuple[float, float, float, float], node: Node) -> str:
    x, y, width, height = box
    dashes = ' stroke-dasharray="4 3"' if node.kind in (SOURCE, TEMPORARY_VIEW) else ""
    return (
        f"<g id={quoteattr(node.id)}>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6" '
        f'fill="{_FILLS[node.kind]}" stroke="#6b7280"{dashes}/>'
        f'<text x="{x + _PAD:.1f}" y="{y + _PAD + 8:.1f}" font-weight="bold">{escape(node.label)}</text>'
        f'<text x="{x + _PAD:.1f}" y="{y + _PAD + 8 + _LINE:.1f}" fill="#6b7280">{escape(node.kind)}</text></g>'
    )


def _arrow(start: tuple[float, float, float, float], end: tuple[float, float, float, float], flow: str) -> str:
    x1, y1 = start[0] + start[2], start[1] + start[3] / 2
    x2, y2 = end[0], end[1] + end[3] / 2
    bend = max(_GAP_X / 2, (x2 - x1) / 2)
    line = (
        f'<path d="M{x1:.1f} {y1:.1f} C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}" '
        'fill="none" stroke="#6b7280" marker-end="url(#arrow)"/>'
    )
    if not flow:
        return line
    return (
        line + f'<text x="{(x1 + x2) / 2:.1f}" y="{(y1 + y2) / 2 - 4:.1f}" fill="#6b7280" '
        f'text-anchor="middle" font-size="10">{escape(flow)}</text>'
    )
