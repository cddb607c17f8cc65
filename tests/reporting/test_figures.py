import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.collectives.workload import Group, Objective, Workload
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.reporting.figures import (
    convergence_figure,
    group_bars,
    link_load_figure,
    load_bars,
    shown_trees,
    topology_figure,
    tree_figure,
)
from dualcoll.reporting.load import utilisation_color
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology, duplex
from dualcoll.units import format_bandwidth
from tests.packing.fabrics import fabric
from tests.reporting.plans import many_paths, mixed, unserved

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
    group = made.workload.groups[0]
    work = Workload((replace(group, name=HOSTILE), replace(group, name="<b>g1", collective="alltoall")))
    both = plan(topology, work)
    figures = (topology_figure(topology), link_load_figure(made), load_bars(made), tree_figure(made, 0))
    for figure in (*figures, group_bars(both), link_load_figure(both), tree_figure(both, *range(len(both.trees)))):
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
    assert len(texts) == len(tree.edges) == 6
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
    assert [button.label for button in buttons] == [f"tree {i}: {format_bandwidth(rail.trees[i].rate)}" for i in (0, 1)]
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


def shades(figure: Any) -> dict[str, int]:
    """How many cables have each colour that is partly transparent."""
    return {t.line.color: drawn_lines(t) for t in traces(figure, "lines") if str(t.line.color).startswith("rgba")}


def test_a_path_shows_who_passes_data_on() -> None:
    """The sends of a path are arrows of their own colour, the sender is marked, and the title names who relays."""
    line = fabric("g0-g1:1, g1-g2:1")
    made = plan(line, "scatter", size="2MiB")
    index = next(t for t, tree in enumerate(made.trees) if len(tree.edges) == 2)
    figure = tree_figure(made, index)
    assert figure.layout.title.text == f"<b>Path {index} of 2: 500 MB/s, 100 % of its demand</b>"
    assert figure.layout.title.subtitle.text == "g0 → g2, passed on by g1, carries 682.7 KiB"
    (arrows,) = traces(figure, "lines+markers")
    assert (arrows.name, sum(size > 0 for size in arrows.marker.size)) == ("send, from rank to rank", 2)
    assert hovers(figure) == ["<b>g0 → g1</b> (send)<br>over g0 → g1", "<b>g1 → g2</b> (send)<br>over g1 → g2"]
    assert sum(shades(figure).values()) == 2
    assert [trace.name for trace in traces(figure, "markers") if trace.name == "sender"] == ["sender"]
    direct = tree_figure(made, 1 - index)
    assert direct.layout.title.subtitle.text == "g0 → g1, sent directly, carries 682.7 KiB"


def test_an_in_tree_has_no_broadcast() -> None:
    """A Reduce is arrows of one phase, over exactly the cables that it uses."""
    figure = tree_figure(plan(fabric("g0-s0:1, g1-s0:1, g2-s0:1, x3-s0:1"), "reduce"), 0)
    assert [trace.name for trace in traces(figure, "lines+markers")] == ["reduce, towards the root"]
    assert sum(shades(figure).values()) == 3


def test_sprayed_links_are_shaded_by_what_they_carry() -> None:
    """Halves of a sprayed edge are lighter than the whole, and hovering over a link tells its part."""
    diamond = fabric("g0-s0:4, s0-s1:2, s0-s2:2, s1-s3:2, s2-s3:2, s3-g1:4")
    figure = tree_figure(plan(diamond, "broadcast", routing="spray"), 0)
    assert list(shades(figure).values()) == [2, 4]
    whole, half = (float(color.rsplit(",", 1)[1].strip(" )")) for color in shades(figure))
    assert half == pytest.approx(whole / 2)
    assert hovers(figure) == [
        "g0 → s0: 100 % of its rate (broadcast)",
        "s0 → s1: 50 % of its rate (broadcast)",
        "s0 → s2: 50 % of its rate (broadcast)",
        "s1 → s3: 50 % of its rate (broadcast)",
        "s2 → s3: 50 % of its rate (broadcast)",
        "s3 → g1: 100 % of its rate (broadcast)",
        "<b>g0 → g1</b> (broadcast)<br>sprayed over 6 links",
    ]
    assert figure.layout.title.subtitle.text.endswith("packets sprayed: darker links carry more of it")


def test_sprayed_load_counts_parts() -> None:
    """What a sprayed tree puts on a link is its part of the rate."""
    diamond = fabric("g0-s0:4, s0-s1:4, s0-s2:4, s1-s3:4, s2-s3:4, s3-g1:4")
    texts = hovers(link_load_figure(plan(diamond, "broadcast", routing="spray")))
    assert sorted(text.split("<br>")[1] for text in texts) == [
        "g0 → s0: 100 % (4 GB/s of 4 GB/s)",
        "s0 → s1: 50 % (2 GB/s of 4 GB/s)",
        "s0 → s2: 50 % (2 GB/s of 4 GB/s)",
        "s1 → s3: 50 % (2 GB/s of 4 GB/s)",
        "s2 → s3: 50 % (2 GB/s of 4 GB/s)",
        "s3 → g1: 100 % (4 GB/s of 4 GB/s)",
    ]


def test_ranks_have_the_colour_of_their_group() -> None:
    """Every group is in the legend with its colour; idle ranks are grey; a rank of two groups says so."""
    figure = link_load_figure(mixed())
    (gpus,) = (trace for trace in traces(figure, "markers+text") if trace.name == "GPU")
    legend = {trace.name: trace.marker.color for trace in traces(figure, "markers") if trace.name in ("pair", "trio")}
    first, second = legend["pair"], legend["trio"]
    assert first != second
    assert list(gpus.marker.color) == [first, first, second, second, "#dfe4e9"]
    assert [text.split("<br>")[-1] for text in gpus.customdata[:3]] == ["group pair", "groups pair, trio", "group trio"]
    assert not gpus.showlegend


def test_bars_of_groups_tell_rate_and_time() -> None:
    """A group at no rate has an empty bar; the title says what counts."""
    figure = group_bars(mixed())
    (bars,) = figure.data
    assert list(figure.layout.yaxis.ticktext) == ["pair  ", "trio  "]
    assert bars.x == pytest.approx([10 / 3, 10], rel=1e-6)
    assert list(bars.text) == ["3.33333 GB/s, done after 314.6 us", "10 GB/s, done after 314.6 us"]
    assert figure.layout.title.text == "<b>All groups are done after 314.6 us</b>"
    total = group_bars(unserved())
    assert list(total.data[0].text) == ["10 GB/s, done after 104.9 us", "0 B/s, never done"]
    assert total.layout.title.text == "<b>10 GB/s in total; 1 of 2 groups get nothing</b>"


def test_of_many_groups_those_that_take_longest_have_bars() -> None:
    """Forty of fifty, in order of the groups, whatever their names are cut down to."""
    pairs = fabric(", ".join(f"g{2 * i}-g{2 * i + 1}:{50 - i}" for i in range(50)))
    groups = [Group("x" * 80 + str(i), "allreduce", (2 * i, 2 * i + 1), 1000) for i in range(50)]
    figure = group_bars(plan(pairs, Workload(tuple(groups), Objective.TOTAL)))
    assert figure.data[0].x == pytest.approx([50 - i for i in range(10, 50)], rel=1e-6)
    assert len(figure.layout.yaxis.ticktext) == 40
    assert figure.layout.title.subtitle.text == "rate of each group: the 40 of 50 that take longest"


def test_shown_trees_begin_with_one_of_every_group() -> None:
    """Of a mix every group comes before any group's second demand, and the menu tells what each tree carries."""
    made = mixed()
    shown = shown_trees(made)
    assert sorted(shown) == list(range(len(made.trees)))
    menu = tree_figure(made, *shown).layout.updatemenus[0].buttons
    assert [button.label.split(": ", 1)[1] for button in menu] == [
        "pair: AllReduce",
        *(f"trio: g{u} → g{v}" for u in (1, 2, 3) for v in (1, 2, 3) if u != v),
    ]


def test_of_many_paths_the_fastest_of_some_demands_are_shown() -> None:
    """Two paths a demand: of 24 shown none is the slower one, and all are of different demands."""
    made = many_paths(13)
    shown = shown_trees(made)
    assert len(shown) == 24
    assert len({made.trees[t].demand for t in shown}) == 24
    assert {made.trees[t].rate for t in shown} == {2.0}


def test_large_trees_are_fewer() -> None:
    """Of trees of a thousand edges only a few have room, but one always has."""
    made = many_paths(13)
    edges = np.repeat(made.trees[0].edges, 1400, axis=0)
    large = replace(made, trees=tuple(replace(tree, edges=edges) for tree in made.trees))
    assert len(shown_trees(large)) == 4
    huge = replace(made, trees=tuple(replace(tree, edges=np.repeat(edges, 9, axis=0)) for tree in made.trees))
    assert len(shown_trees(huge)) == 1
