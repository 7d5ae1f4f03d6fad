"""Graphs of datasets as text and as pictures: every dataset and arrow once, whatever their order and loops."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from gateway.pipelines import graph
from gateway.pipelines.definitions import (
    MATERIALIZED_VIEW,
    STREAMING_TABLE,
    TEMPORARY_VIEW,
    Dataset,
    Definitions,
    Flow,
)

SVG = "{http://www.w3.org/2000/svg}"
BRONZE, SILVER, GOLD = "c.shop.bronze", "c.shop.Silver", "c.mart.g<o>ld"
SHOP = Definitions(
    {
        GOLD: Dataset(GOLD, MATERIALIZED_VIEW, "mart", "g<o>ld"),
        SILVER: Dataset(SILVER, STREAMING_TABLE, "shop", "Silver"),
        BRONZE: Dataset(BRONZE, STREAMING_TABLE, "shop", "bronze"),
        "good": Dataset("good", TEMPORARY_VIEW, "", "good"),
    },
    {
        BRONZE: Flow(BRONZE, BRONZE, (), ("csv /raw",)),
        "good": Flow("good", "good", (BRONZE,)),
        SILVER: Flow(SILVER, SILVER, ("good",)),
        "c.shop.old": Flow("c.shop.old", SILVER, (), ("spark_catalog.shop.old",)),
        GOLD: Flow(GOLD, GOLD, (SILVER, BRONZE)),
    },
)


def test_text() -> None:
    assert graph.text(graph.make(SHOP)) == (
        "csv /raw     external source\n"
        "shop.old     external source\n"
        "shop.bronze  streaming table\n"
        "  <- csv /raw\n"
        "good         temporary view\n"
        "  <- shop.bronze\n"
        "shop.silver  streaming table\n"
        "  <- good\n"
        "  <- shop.old  (flow old)\n"
        "mart.g<o>ld  materialized view\n"
        "  <- shop.silver\n"
        "  <- shop.bronze\n"
    )


def test_layers_grow_from_left_to_right_and_loops_end() -> None:
    found = graph.make(SHOP)
    assert graph.layers(found) == {
        "csv /raw": 0,
        "spark_catalog.shop.old": 0,
        BRONZE: 1,
        "good": 2,
        SILVER: 3,
        GOLD: 4,
    }
    nodes = [graph.Node("a", "a", STREAMING_TABLE)]
    assert graph.layers(graph.Graph(nodes, [graph.Edge("a", "a")])) == {"a": 0}


def test_picture_is_xml_with_a_box_each_and_an_arrow_each() -> None:
    found = graph.make(SHOP)
    picture = ET.fromstring(graph.svg(found, "sh<o>p"))
    boxes = {g.get("id"): g for g in picture.findall(f"{SVG}g")}
    assert set(boxes) == {n.id for n in found.nodes}
    assert [t.text for t in boxes[GOLD].findall(f"{SVG}text")] == ["mart.g<o>ld", MATERIALIZED_VIEW]
    assert len(picture.findall(f"{SVG}path")) == len(found.edges) == 6
    places = {}
    for id_, box in boxes.items():
        rect = box.find(f"{SVG}rect")
        assert rect is not None
        places[id_] = [float(rect.get(a, "")) for a in ("x", "y", "width", "height")]
    for edge in found.edges:
        assert places[edge.start][0] + places[edge.start][2] < places[edge.end][0]
    width, height = float(picture.get("width", "")), float(picture.get("height", ""))
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in places.values())
    columns = [(x, y, y + h) for x, y, _, h in places.values()]
    assert not any(a[0] == b[0] and a is not b and a[1] < b[2] and b[1] < a[2] for a in columns for b in columns)


def test_nothing_defined_is_an_empty_picture() -> None:
    empty = graph.make(Definitions({}, {}))
    assert ET.fromstring(graph.svg(empty, "none")).get("width") == "40"


def test_streams_are_followed_through_views() -> None:
    flows = [
        Flow("good", "good", (BRONZE,), streams=(BRONZE,)),
        Flow(SILVER, SILVER, ("good", GOLD), streams=("good",)),
        Flow(GOLD, GOLD, (SILVER,)),
        Flow("again", GOLD, (SILVER,), streams=(SILVER,)),
    ]
    found = Definitions(SHOP.datasets, {flow.name: flow for flow in flows})
    assert found.streamed(SILVER) == {BRONZE}
    assert found.streamed(GOLD) == {SILVER}
    assert found.streamed(BRONZE) == set()
