"""Pictures of a plan's trees and paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import plotly.graph_objects as go

from dualcoll.diagnosis.timing import tree_depth
from dualcoll.errors import InputError
from dualcoll.plans.model import Phase, Plan, Tree
from dualcoll.reporting.arrows import add_tree, scene_of
from dualcoll.reporting.drawing import Stroke, add_strokes, canvas, escaped
from dualcoll.reporting.groups import group_fills
from dualcoll.reporting.layout import Layout
from dualcoll.reporting.markers import add_nodes
from dualcoll.reporting.words import demand_text
from dualcoll.units import format_bandwidth, format_fraction, format_size

__all__ = ["shown_trees", "tree_figure"]

FABRIC = "#d9dee4"
LABEL = 34  # letters of an entry of the menu
MOST_TREES = 24  # of a plan that a page shows,
MOST_LINES = 6000  # with so many arrows and sprayed links, about a kilobyte each


def shown_trees(plan: Plan) -> tuple[int, ...]:
    """The trees that a page has room for, by demand: the fastest of each demand, one of every group first."""
    in_group: dict[int, list[int]] = defaultdict(list)
    for j, demand in enumerate(plan.workload.demands()):
        in_group[demand.group].append(j)
    turn = {j: place for members in in_group.values() for place, j in enumerate(members)}
    of_demand: dict[int, list[int]] = defaultdict(list)
    for t in sorted(range(len(plan.trees)), key=lambda t: -plan.trees[t].rate):
        of_demand[plan.trees[t].demand].append(t)
    order = sorted((place, turn[j], j, t) for j, members in of_demand.items() for place, t in enumerate(members))
    chosen: list[tuple[int, int, int]] = []
    room = MOST_LINES
    for place, _, j, t in order[:MOST_TREES]:
        tree = plan.trees[t]
        room -= len(tree.edges)
        if tree.route_share is not None:
            room -= min(tree.route_links.size, len(plan.topology.links))
        if chosen and room < 0:
            break
        chosen.append((j, place, t))
    return tuple(t for _, _, t in sorted(chosen))


def tree_figure(plan: Plan, index: int = 0, *more: int) -> go.Figure:
    """One tree or path: its logical edges as arrows over the fabric, phases apart, the root marked, its links shaded.

    Between nodes of one row broadcast arrows pass below and all others above. Hovering over an arrow tells its route, or
    over a sprayed link what part of the rate it carries. With more than one index a menu selects the tree.

    Raises:
        InputError: the plan has no such tree.
    """
    indices = (index, *more)
    for i in indices:
        if not 0 <= i < len(plan.trees):
            raise InputError(f"tree {i} does not exist", hint=f"the plan has trees 0 to {len(plan.trees) - 1}")
    scene = scene_of(plan.topology)
    figure = canvas(scene.place, "", "")
    add_strokes(figure, [Stroke(way, FABRIC, 1.0) for way in scene.ways])
    first: list[int] = [len(figure.data)]
    for i in indices:
        add_tree(figure, scene, plan.trees[i], visible=i == index)
        first.append(len(figure.data))
    add_nodes(figure, plan.topology, scene.place, group_fills(plan))
    titles = _titles(plan, indices)
    figure.update_layout(title_text=titles[0][0], title_subtitle_text=titles[0][1])
    _make_room(figure, scene.place)
    if more:
        _add_menu(figure, _labels(plan, indices), titles, first)
    return figure


def _make_room(figure: go.Figure, place: Layout) -> None:
    """Let the picture grow by what arrows need above and below the fabric."""
    reached = [y for trace in figure.data if trace.mode == "lines+markers" for y in trace.y if y is not None]
    low, high = min([0.0, *(y - 8 for y in reached)]), max([place.height, *(y + 8 for y in reached)])
    figure.update_yaxes(range=[low, high])
    figure.update_layout(height=round(figure.layout.height + high - low - place.height))


def _titles(plan: Plan, indices: Sequence[int]) -> list[tuple[str, str]]:
    """Title and subtitle of each tree."""
    demands = plan.workload.demands()
    carried: dict[int, float] = defaultdict(float)
    for tree in plan.trees:
        carried[tree.demand] += tree.rate
    titles = []
    for i in indices:
        tree = plan.trees[i]
        part = format_fraction(tree.rate / carried[tree.demand]) if tree.rate > 0 else "nothing"
        what = "its demand" if len(demands) > 1 else "the rate"
        title = f"<b>{_noun(tree)} {i} of {len(plan.trees)}: {format_bandwidth(tree.rate)}, {part} of {what}</b>"
        facts = [escaped(demand_text(plan, demands[tree.demand]))] if len(demands) > 1 else []
        facts += [*_shape(plan, tree), f"carries {format_size(tree.size)}"]
        if tree.route_share is not None:
            facts.append("packets sprayed: darker links carry more of it")
        titles.append((title, ", ".join(facts)))
    return titles


def _shape(plan: Plan, tree: Tree) -> list[str]:
    names = plan.topology.nodes
    if tree.phase[0] == Phase.SEND:
        between = [escaped(names[int(node)].name) for node in tree.edges[1:, 0]]
        return [f"passed on by {', '.join(between)}"] if between else ["sent directly"]
    depth = tree_depth(tree, len(names))
    return [f"root {escaped(names[tree.root].name)}", f"at most {depth} edge{'s' * (depth != 1)} deep"]


def _noun(tree: Tree) -> str:
    return "Path" if tree.phase[0] == Phase.SEND else "Tree"


def _labels(plan: Plan, indices: Sequence[int]) -> list[str]:
    """Entries of the menu: what is carried, or how fast where all trees carry the same."""
    demands = plan.workload.demands()
    labels = []
    for i in indices:
        tree = plan.trees[i]
        text = demand_text(plan, demands[tree.demand]) if len(demands) > 1 else format_bandwidth(tree.rate)
        labels.append(escaped(f"{_noun(tree).lower()} {i}: {text}", LABEL))
    return labels


def _add_menu(figure: go.Figure, labels: list[str], titles: list[tuple[str, str]], first: list[int]) -> None:
    """A drop-down list that shows one tree's traces and its title."""
    buttons = []
    for k, (label, (title, subtitle)) in enumerate(zip(labels, titles, strict=True)):
        shown = [not first[0] <= t < first[-1] or first[k] <= t < first[k + 1] for t in range(len(figure.data))]
        buttons.append(
            {
                "label": label,
                "method": "update",
                "args": [{"visible": shown}, {"title.text": title, "title.subtitle.text": subtitle}],
            }
        )
    figure.update_layout(
        updatemenus=[
            {
                "buttons": buttons,
                "x": 1.0,
                "xanchor": "right",
                "y": 1.0,
                "yanchor": "bottom",
                "pad": {"b": 14},
                "bgcolor": "#ffffff",
            }
        ]
    )
