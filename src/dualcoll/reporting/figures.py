"""Pictures of topologies and plans, as plotly figures of one look."""

from __future__ import annotations

from dualcoll.reporting.convergence import convergence_figure
from dualcoll.reporting.fabric import topology_figure
from dualcoll.reporting.groups import group_bars
from dualcoll.reporting.load import link_load_figure, load_bars
from dualcoll.reporting.trees import shown_trees, tree_figure

__all__ = [
    "convergence_figure",
    "group_bars",
    "link_load_figure",
    "load_bars",
    "shown_trees",
    "topology_figure",
    "tree_figure",
]
