"""What a plan's trees get where nobody sets their rates: copies of them share the network by max-min.

DualColl, sections 5.4 to 5.6; docs/sharing.md says what is modelled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.workload import Objective
from dualcoll.errors import InputError
from dualcoll.plans.model import Plan
from dualcoll.sharing.duplication import Duplication, duplicate, scale_for
from dualcoll.sharing.max_min import Loads, max_min
from dualcoll.topology.arrays import FabricArrays, fabric_arrays
from dualcoll.topology.model import Topology
from dualcoll.units import format_bandwidth, format_fraction

__all__ = ["Delivery", "Sharing", "flow_loads", "share"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

OVERLOAD = 1e-9  # relative; loads are summed in floating point
MOST_COPIES = 2**53  # a double counts no further


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the trees carry.

    Attributes:
        rates: float64 (T,), bytes/s of each tree, all of its copies together.
        total: their sum, bytes/s.
        value: the plan's objective at these rates, bytes/s; the same as ``total`` for a single demand.
    """

    rates: Floats
    total: float
    value: float


@dataclass(frozen=True, slots=True)
class Sharing:
    """A plan without rate control.

    Attributes:
        scale, trees, copy_rate: y, k (trees with a rate) and X* in bytes/s.
        copies: int64 (T,), of each tree.
        limit: int64 (T,), the capacity row (links, then shared capacities) that holds the tree's copies in the tree-coupled
            model; -1 for a tree without copies.
        explicit: the rates that the plan gives, Σ a in total.
        floor: every copy at ``copy_rate``, which max-min never falls below in either model.
        coupled: tree-coupled max-min: all flows of a copy keep one rate.
        by_flow: flow-level max-min: every flow takes what it can get, and a copy is as fast as its slowest flow.
    """

    scale: int
    trees: int
    copy_rate: float
    copies: Ints
    limit: Ints
    explicit: Delivery
    floor: Delivery
    coupled: Delivery
    by_flow: Delivery

    @property
    def guaranteed(self) -> float:
        """``y k X*``, bytes/s: what all trees carry together at least (Theorem 5.6)."""
        return self.scale * self.trees * self.copy_rate


def share(plan: Plan, *, copies: int | None = None, accuracy: float | None = None) -> Sharing:
    """Run copies of a plan's trees against each other in a network that shares by max-min.

    Args:
        plan: its trees' rates are to be imitated.
        copies: the scale y: at least so many copies for each tree, on average over the trees of every demand. 1 by default.
        accuracy: μ, instead of ``copies``: the least scale at which every demand keeps ``1 / (1 + μ)`` of its rate.

    Raises:
        InputError: both given or one out of range, a plan that carries nothing or more than the fabric can, or copies
            without number.
    """
    duplication = _duplication(plan, copies, accuracy)
    if sum(duplication.copies) > MOST_COPIES:
        raise InputError("that takes more than 2**53 copies", hint="ask for fewer copies a tree, or for less accuracy")
    fabric = fabric_arrays(plan.topology)
    flows, tree_of = flow_loads(plan, fabric)
    trees = flows.merged(tree_of, len(plan.trees))
    explicit = np.array([tree.rate for tree in plan.trees])
    _check_feasible(plan.topology, trees.total(explicit), fabric.capacity)
    count = np.array(duplication.copies, np.int64)
    coupled = max_min(trees.scaled(count), fabric.capacity)
    by_flow = np.full(len(plan.trees), np.inf)
    np.minimum.at(by_flow, tree_of, max_min(flows.scaled(count[tree_of]), fabric.capacity).rate)
    return Sharing(
        scale=duplication.scale,
        trees=duplication.trees,
        copy_rate=float(duplication.rate),
        copies=count,
        limit=coupled.limit(),
        explicit=_delivery(plan, explicit),
        floor=_delivery(plan, _together(count, np.full(count.size, float(duplication.rate)))),
        coupled=_delivery(plan, _together(count, coupled.rate)),
        by_flow=_delivery(plan, _together(count, by_flow)),
    )


def flow_loads(plan: Plan, fabric: FabricArrays) -> tuple[Loads, Ints]:
    """What every flow (a logical edge of a tree) puts on every capacity row, and the tree of each flow, int64 (F,)."""
    tree_of = np.repeat(np.arange(len(plan.trees)), [tree.edges.shape[0] for tree in plan.trees])
    none = np.empty(0, np.int64)
    hops = np.concatenate([none, *(np.diff(tree.route_ptr) for tree in plan.trees)])
    link = np.concatenate([none, *(tree.route_links for tree in plan.trees)])
    shares = (np.ones(t.route_links.size) if t.route_share is None else t.route_share for t in plan.trees)
    part = np.concatenate([np.empty(0), *shares])
    loads = Loads.of(link, np.repeat(np.arange(tree_of.size), hops), part, fabric.links, tree_of.size)
    return _with_shared(loads, fabric), tree_of


def _with_shared(loads: Loads, fabric: FabricArrays) -> Loads:
    """The loads of the links, then those of the shared capacities over them."""
    spans = [np.arange(loads.ptr[e], loads.ptr[e + 1]) for e in fabric.shared_link]
    entry = np.concatenate([np.empty(0, np.int64), *spans])
    of_span = fabric.links + np.repeat(np.arange(fabric.shared_ptr.size - 1), np.diff(fabric.shared_ptr))
    return Loads.of(
        np.concatenate([loads.row_of(), np.repeat(of_span, [span.size for span in spans])]),
        np.concatenate([loads.user, loads.user[entry]]),
        np.concatenate([loads.load, loads.load[entry]]),
        fabric.capacity.size,
        loads.users,
    )


def _duplication(plan: Plan, copies: int | None, accuracy: float | None) -> Duplication:
    """Copies of the plan's trees, in fractions."""
    if copies is not None and accuracy is not None:
        raise InputError("both the copies and the accuracy are given", hint="give one of them")
    used = [tree for tree in plan.trees if tree.rate > 0]
    scale = 1 if copies is None else copies
    if accuracy is not None:
        scale = scale_for(accuracy, max(len(used), 1), len({tree.demand for tree in used}))
    return duplicate([tree.rate for tree in plan.trees], scale, [tree.demand for tree in plan.trees])


def _check_feasible(topology: Topology, loads: Floats, capacity: Floats) -> None:
    over = np.flatnonzero(loads > capacity * (1 + OVERLOAD))
    if over.size:
        row = int(over[0])
        links = len(topology.links)
        where = f"link {topology.describe_link(row)}" if row < links else f"shared capacity {row - links}"
        load, room = float(loads[row]), float(capacity[row])
        raise InputError(
            f"the trees load it with {format_bandwidth(load)} of {format_bandwidth(room)}, "
            f"{format_fraction(load / room - 1)} too much",
            where=where,
            hint="only a plan that the fabric can carry can be imitated; check it first",
        )


def _together(copies: Ints, rate: Floats) -> Floats:
    """Rates of trees from the rate of each of their copies."""
    return np.where(copies > 0, rate, 0.0) * copies


def _delivery(plan: Plan, rates: Floats) -> Delivery:
    trees = tuple(replace(tree, rate=rate) for tree, rate in zip(plan.trees, rates.tolist(), strict=True))
    groups = replace(plan, trees=trees).group_rates()
    if plan.workload.objective is Objective.TOTAL:
        value = sum(groups)
    else:
        sizes = [group.size for group in plan.workload.groups]
        value = min(rate * plan.size / size for rate, size in zip(groups, sizes, strict=True))
    return Delivery(rates, float(rates.sum()), value)
