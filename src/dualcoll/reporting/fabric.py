"""Pictures of a topology."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Sequence

import plotly.graph_objects as go

from dualcoll.reporting.drawing import Cable, Stroke, add_strokes, cables, canvas, escaped, line_widths, paths
from dualcoll.reporting.layout import layout
from dualcoll.reporting.markers import add_nodes
from dualcoll.topology.model import Kind, Topology
from dualcoll.units import format_bandwidth, format_time

__all__ = ["topology_figure"]

# Okabe-Ito hues, shaded where one category has several kinds of link
_NETWORK = ("#0072b2", "#56b4e9", "#004a75", "#7fa8c9")
_SCALE_UP = ("#009e73", "#5fc7a8", "#00664a", "#93d8c3")
_HOST = ("#8a95a1", "#b3bcc5", "#5f6a76", "#a79f93")
SLOW = "#d55e00"
DISTINCT = 3  # capacities of one kind that the legend lists one by one


def topology_figure(topology: Topology) -> go.Figure:
    """The fabric: a line for all cables between two nodes, wider for more capacity, coloured by what they join.

    Cables slower than most of their kind stand out. Hovering tells capacity, latency and where the capacity comes from.
    """
    place = layout(topology)
    drawn = cables(topology, place)
    widths = line_widths(topology, place, drawn)
    ways = paths(topology, place, [(cable.a, cable.b) for cable in drawn])
    strokes = [
        Stroke(
            ways[i],
            color,
            widths[i],
            escaped(name),
            _about_cable(topology, drawn[i]),
        )
        for name, color, members in _looks(topology, drawn)
        for i in members
    ]
    count = len(topology.ranks)
    figure = canvas(place, escaped(topology.name or "Fabric"), _counts(topology) + f"; {count} ranks")
    add_strokes(figure, strokes)
    add_nodes(figure, topology, place)
    return figure


def _looks(topology: Topology, drawn: Sequence[Cable]) -> list[tuple[str, str, list[int]]]:
    """Legend entry, colour and cables (positions in ``drawn``) of each kind of cable, the slow ones last.

    Network cables are blue, those between GPUs or to a box switch green, PCIe and the like grey. A kind of a few capacities has
    an entry for each. A quarter of a kind or less that is slower than its median is slow.
    """
    kinds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, cable in enumerate(drawn):
        kinds[cable.roles(topology)].append(i)
    palettes: tuple[tuple[str, ...], ...] = (_NETWORK, _SCALE_UP, _HOST)
    shades = {palette: itertools.cycle(palette) for palette in palettes}
    looks: list[tuple[str, str, list[int]]] = []
    slow: list[int] = []
    for (one, other), members in kinds.items():
        rate = {i: drawn[i].capacity(topology) for i in members}
        usual = statistics.median_high(rate.values())
        lagging = [i for i in members if rate[i] < 0.999 * usual]
        if 4 * len(lagging) <= len(members):
            slow += lagging
            members = [i for i in members if rate[i] >= 0.999 * usual]
        texts: dict[str, list[int]] = defaultdict(list)
        for i in members:
            texts[format_bandwidth(rate[i])].append(i)
        if len(texts) > DISTINCT:
            low, high = min(members, key=rate.__getitem__), max(members, key=rate.__getitem__)
            texts = {f"{format_bandwidth(rate[low])} to {format_bandwidth(rate[high])}": members}
        palette = _palette(topology, drawn[members[0]])
        for text, alike in sorted(texts.items(), key=lambda item: -rate[item[1][0]]):
            looks.append((f"{len(alike)} × {one} – {other}, {text}", next(shades[palette]), alike))
    if slow:
        looks.append((f"{len(slow)} × slower than most of its kind", SLOW, slow))
    return looks


def _palette(topology: Topology, cable: Cable) -> tuple[str, ...]:
    ends = topology.nodes[cable.a], topology.nodes[cable.b]
    if ends[0].box is None or ends[0].box != ends[1].box:
        return _NETWORK
    return _SCALE_UP if all(node.kind in (Kind.GPU, Kind.HOST, Kind.SWITCH) for node in ends) else _HOST


def _counts(topology: Topology) -> str:
    words = {Kind.GPU: "GPU", Kind.NIC: "NIC", Kind.CPU: "CPU", Kind.HOST: "host"}
    counts = [(sum(node.kind is kind for node in topology.nodes), word) for kind, word in words.items()]
    parts = [f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count]
    switches = sum(node.kind in (Kind.SWITCH, Kind.PCI) for node in topology.nodes)
    if switches:
        parts.append(f"{switches} switch{'es' * (switches != 1)}")
    return ", ".join([*parts, f"{len(topology.links)} directed links"])


def _about_cable(topology: Topology, cable: Cable) -> str:
    lines = [f"<b>{escaped(topology.nodes[cable.a].name)} – {escaped(topology.nodes[cable.b].name)}</b>"]
    there, back = (_side_text(topology, side) for side in (cable.there, cable.back))
    if there == back:
        lines.append(f"{there} each way")
    else:
        lines += [f"{arrow} {text}" for arrow, text in (("→", there), ("←", back)) if text]
    sources = dict.fromkeys(topology.links[e].source for e in cable.links)
    lines += [f"<i>{escaped(source, 90)}</i>" for source in list(sources)[:3]]
    return "<br>".join(lines)


def _side_text(topology: Topology, links: tuple[int, ...]) -> str:
    if not links:
        return ""
    capacities = [topology.links[e].capacity for e in links]
    total = format_bandwidth(sum(capacities))
    text = total if len(links) == 1 else f"{total} over {len(links)} cables"
    return f"{text}, {format_time(min(topology.links[e].latency for e in links))}"
