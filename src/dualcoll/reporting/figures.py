"""Pictures of topologies and plans, as plotly figures of one look."""

from __future__ import annotations

from dualcoll.reporting.convergence import convergence_figure
from dualcoll.reporting.fabric import topology_figure
from dualcoll.reporting.load import link_load_figure, load_bars
from dualcoll.reporting.trees import tree_figure

__all__ = ["convergence_figure", "link_load_figure", "load_bars", "topology_figure", "tree_figure"]
