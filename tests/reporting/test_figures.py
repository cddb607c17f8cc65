import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.reporting.figures import (
    convergence_figure,
    link_load_figure,
    load_bars,
    topology_figure,
    tree_figure,
)
from dualcoll.reporting.load import utilisation_color
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology, duplex

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def rail() -> Plan:
    """Two boxes of two GPUs on two rails."""
    return plan(catalog("rail:2x2"))


def pair(*links: Link, shared: tuple[SharedCapacity, ...] = (), names: tuple[str, str] = ("g0", "g1")) -> Topology:
    """Two GPUs and the links between them."""
    return Topology(tuple(Node(name, Kind.GPU) for name in names), links, shared, "pair")


def traces(figure: Any, mode: str) -> list[Any]:
    return [trace for trace in figure.data if trace.mode == mode]


def hovers(figure: Any) -> list[str]:
    """What the cables say, once each."""
    return [text for trace in figure.data if trace.name == "cables" for text in dict.fromkeys(trace.text)]


def drawn_lines(trace: Any) -> int:
    """How many separate lines a trace holds."""
    return sum(x is None for x in trace.x) + 1


def test_the_legend_counts_cables_by_kind_and_capacity() -> None:
    """Every kind of cable has one entry with its number and capacity, and that many lines."""
    figure = topology_figure(catalog("dgx-h100:boxes=2"))
    lines = {trace.name: drawn_lines(trace) for trace in traces(figure, "lines")}
    assert lines == {
        "16 × GPU – box switch, 450 GB/s": 16,
        "16 × GPU – leaf, 50 GB/s": 16,
        "32 × leaf – spine, 25 GB/s": 32,
    }
    assert figure.layout.title.text == "<b>dgx-h100:boxes=2</b>"
    assert figure.layout.title.subtitle.text == "16 GPUs, 14 switches, 128 directed links; 16 ranks"


def test_wider_lines_carry_more() -> None:
    """A cable of more capacity is never drawn thinner."""
    figure = topology_figure(catalog("mi250"))
    widths = {trace.name.split(", ")[1]: trace.line.width for trace in traces(figure, "lines")}
    assert widths["200 GB/s"] > widths["100 GB/s"] > widths["50 GB/s"]


def test_a_slow_cable_stands_out() -> None:
    """A cable slower than most of its kind has its own colour and legend entry."""
    topology = catalog("ring:8")
    links = tuple(replace(link, capacity=1e9) if {link.tail, link.head} == {2, 3} else link for link in topology.links)
    figure = topology_figure(replace(topology, links=links))
    slow = next(trace for trace in traces(figure, "lines") if trace.line.color == "#d55e00")
    assert (slow.name, drawn_lines(slow)) == ("1 × slower than most of its kind", 1)


def test_hovering_over_a_cable_tells_capacity_latency_and_source() -> None:
    """Parallel cables are counted, directions that differ are told apart, and sources are named."""
    links = [*duplex(Link(0, 1, 25e9, 1e-6, source="data sheet")), Link(0, 1, 25e9, 1e-6, source="measured")]
    assert hovers(topology_figure(pair(*links))) == [
        "<b>g0 – g1</b><br>→ 50 GB/s over 2 cables, 1 us<br>← 25 GB/s, 1 us<br><i>data sheet</i><br><i>measured</i>"
    ]
    assert hovers(topology_figure(pair(*links[:2]))) == [
        "<b>g0 – g1</b><br>25 GB/s, 1 us each way<br><i>data sheet</i>"
    ]


def test_hostile_names_are_text() -> None:
    """Markup in names, boxes and sources is shown, not interpreted."""
    link = Link(0, 1, 25e9, source=HOSTILE)
    topology = replace(pair(*duplex(link), names=(HOSTILE, "<b>g1")), name=HOSTILE)
    made = plan(topology)
    for figure in (topology_figure(topology), link_load_figure(made), tree_figure(made, 0), load_bars(made)):
        assert "<script" not in str(figure.to_dict())
        assert "<b>g1" not in str(figure.to_dict())


def test_link_load_tells_both_directions_and_the_bottleneck() -> None:
    """Each direction's load is given, the worse one decides the colour, and priced links have a halo."""
    topology = pair(Link(0, 1, 50e9), Link(1, 0, 100e9))
    made = plan(topology)
    figure = link_load_figure(made)
    assert hovers(figure) == [
        "<b>g0 – g1</b><br>g0 → g1: 100 % (50 GB/s of 50 GB/s)<br>g1 → g0: 50 % (50 GB/s of 100 GB/s)"
        "<br><b>limits the plan</b>"
    ]
    halo, line = traces(figure, "lines")
    assert halo.name == "bottleneck (priced by the bound)"
    assert halo.line.width > line.line.width
    assert line.line.color == utilisation_color(1.0)
    assert figure.layout.title.text == "<b>AllReduce of 2 ranks: 50 GB/s, at most 50 GB/s (gap below 1e-9)</b>"


def test_links_of_a_full_shared_capacity_are_drawn_full() -> None:
    """A link is as full as the fullest capacity that it counts against."""
    topology = pair(*duplex(Link(0, 1, 50e9)), shared=(SharedCapacity((0, 1), 50e9),))
    figure = link_load_figure(plan(topology))
    assert hovers(figure) == [
        "<b>g0 – g1</b><br>g0 → g1: 50 % (25 GB/s of 50 GB/s)<br>g1 → g0: 50 % (25 GB/s of 50 GB/s)"
        "<br>capacity shared with other links: 100 %<br><b>limits the plan</b>"
    ]
    assert traces(figure, "lines")[-1].line.color == utilisation_color(1.0)


def test_fuller_links_are_darker() -> None:
    """Lightness falls with every step of utilisation, so that the order survives without hue."""

    def lightness(used: float) -> float:
        red, green, blue = (int(part) for part in re.findall(r"\d+", utilisation_color(used)))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    steps = [lightness(i / 20) for i in range(21)]
    assert all(brighter > darker for brighter, darker in pairwise(steps))
    assert utilisation_color(1.0 + 1e-9) == utilisation_color(1.0)


def test_load_bars_put_the_fullest_kind_on_top(rail: Plan) -> None:
    """Bars are the mean of each kind, ascending upwards, with whiskers to the extremes."""
    (bars,) = load_bars(rail).data
    assert list(bars.x) == sorted(bars.x)
    assert len(bars.y) == 3
    assert bars.x[-1] == pytest.approx(100, rel=1e-6)


def test_a_tree_has_an_arrow_for_each_logical_edge(rail: Plan) -> None:
    """Reduce and broadcast have as many arrows as edges, and hovering tells the route."""
    figure = tree_figure(rail, 0)
    tree = rail.trees[0]
    arrows = traces(figure, "lines+markers")
    assert [trace.name for trace in arrows] == ["reduce, towards the root", "broadcast, from the root"]
    for phase, trace in enumerate(arrows):
        assert sum(size > 0 for size in trace.marker.size) == int((tree.phase == phase).sum()) == 3
    texts = hovers(figure)
    assert len(texts) == len(tree.edges)
    names = [node.name for node in rail.topology.nodes]
    tail, head = tree.edges[0]
    assert texts[0].startswith(f"<b>{names[tail]} → {names[head]}</b> (reduce)<br>over {names[tail]} → ")
    assert texts[0].endswith(f"→ {names[head]}")
    root = next(trace for trace in figure.data if trace.name == "root")
    assert f"root {names[tree.root]}, at most" in figure.layout.title.subtitle.text
    assert len(root.x) == 1


def test_a_menu_shows_one_tree_at_a_time(rail: Plan) -> None:
    """Each entry of the menu shows its tree's traces and title, and hides the others'."""
    assert len(rail.trees) >= 2
    figure = tree_figure(rail, 0, 1)
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == ["tree 0", "tree 1"]
    shown = np.array([button.args[0]["visible"] for button in buttons])
    roots = [i for i, trace in enumerate(figure.data) if trace.name == "root"]
    assert shown[:, roots].tolist() == [[True, False], [False, True]]
    assert [trace.visible for trace in figure.data if trace.name == "root"] == [True, False]
    assert buttons[1].args[1]["title.text"].startswith("<b>Tree 1 of")


def test_a_tree_that_does_not_exist_is_refused(rail: Plan) -> None:
    """The error names the trees that there are."""
    with pytest.raises(InputError) as caught:
        tree_figure(rail, 99)
    assert str(caught.value) == f"tree 99 does not exist; the plan has trees 0 to {len(rail.trees) - 1}"


def test_convergence_shows_value_bound_and_gap(rail: Plan) -> None:
    """The three curves are the solver's reports, in GB/s and as a fraction."""
    figure = convergence_figure(rail)
    bound, value, gap = figure.data
    assert bound.y[-1] == pytest.approx(rail.history[-1].bound / 1e9)
    assert value.y[-1] == pytest.approx(rail.history[-1].value / 1e9)
    assert all(low <= high * (1 + 1e-9) for low, high in zip(value.y, bound.y, strict=True))
    assert figure.layout.yaxis2.type == "log"
    assert all(y > 0 for y in gap.y)


def test_a_plan_without_history_still_has_a_figure(rail: Plan) -> None:
    """A plan read from a file has no reports: the figure is empty, not an error."""
    assert not convergence_figure(replace(rail, history=())).data[0].x
