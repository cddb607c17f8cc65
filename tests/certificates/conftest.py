"""Plans made by hand, each with its optimal rate and the prices that prove it.

Their rates, in units of 1 GB/s: n/(n-1) of the cable on a ring, n/(2(n-1)) on a star or a one-way ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from dualcoll.plans.document import Claims, Hop, LinkKey, PlanDocument, Price, SolverRecord, TreeRecord, link_keys
from dualcoll.plans.model import Phase
from dualcoll.plans.shares import split_bytes
from dualcoll.progress import Outcome
from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology, duplex

GB = 1e9

Routes = Sequence[Sequence[Hop]]


def make_fabric(
    nodes: Sequence[Node], cables: Sequence[str], capacity: float, *, oneway: bool = False, shared: float = 0.0
) -> Topology:
    """Cables such as ``"g0 g1"``; a positive ``shared`` is one capacity over all of them, both directions together."""
    index = {node.name: i for i, node in enumerate(nodes)}
    links: list[Link] = []
    for cable in cables:
        tail, head = cable.split()
        link = Link(index[tail], index[head], capacity, latency=1e-6)
        links += [link] if oneway else duplex(link)
    rows = (SharedCapacity(tuple(range(len(links))), shared),) if shared else ()
    return Topology(tuple(nodes), tuple(links), rows)


def make_tree(rate: float, root: str, reduce: Routes, broadcast: Routes) -> TreeRecord:
    """A tree from its routes alone; its bytes are set by :func:`make_plan`."""
    ends = [(Phase.REDUCE, route) for route in reduce] + [(Phase.BROADCAST, route) for route in broadcast]
    edges = tuple((_name(route[0]), _name(route[-1]), phase) for phase, route in ends)
    return TreeRecord(rate, root, 0, edges, tuple(tuple(route) for _, route in ends))


def make_plan(
    topology: Topology, ranks: str, trees: Sequence[TreeRecord], prices: Sequence[Price], bound: float, cut: str
) -> PlanDocument:
    """A plan of 1000 bytes that claims the sum of its rates, the bound, no gap, and what leaves the cut."""
    rates = [tree.rate for tree in trees]
    side = {topology.index[name] for name in cut.split()}
    leaving = sum(link.capacity for link in topology.links if link.tail in side and link.head not in side)
    sizes = split_bytes(1000, rates)
    return PlanDocument(
        generator="by hand",
        collective="allreduce",
        ranks=tuple(ranks.split()),
        size=1000,
        forwarding=Forwarding.SWITCHES,
        topology=topology,
        trees=tuple(
            TreeRecord(tree.rate, tree.root, size, tree.edges, tree.routes)
            for tree, size in zip(trees, sizes, strict=True)
        ),
        prices=tuple(prices),
        in_network_cut=tuple(cut.split()),
        claims=Claims(sum(rates), bound, 0.0, leaving),
        solver=SolverRecord(Outcome.OPTIMAL, "by hand", 0.0, 0),
    )


def gpus(count: int) -> list[Node]:
    """GPUs g0, g1, ... in one box."""
    return [Node(f"g{i}", Kind.GPU, box="b0") for i in range(count)]


def priced(*links: LinkKey) -> list[Price]:
    """A price of 1 on each link."""
    return [Price(link, 1.0) for link in links]


def _name(hop: Hop) -> str:
    return hop if isinstance(hop, str) else hop[0]


def _paths(nodes: str) -> list[list[str]]:
    """``"g0 g1 g2"`` as the routes g0 g1, g1 g2."""
    return [[tail, head] for tail, head in pairwise(nodes.split())]


def _ring() -> PlanDocument:
    topology = make_fabric(gpus(4), ["g0 g1", "g1 g2", "g2 g3", "g3 g0"], 3 * GB)
    trees = []
    for i in range(4):
        around = [f"g{(i + j) % 4}" for j in range(4)]
        inward = _paths(" ".join(reversed(around)))
        trees.append(make_tree(GB, around[0], inward, _paths(" ".join(around))))
    return make_plan(topology, "g0 g1 g2 g3", trees, priced(*link_keys(topology)), 4 * GB, "g0")


def _star() -> PlanDocument:
    """Three GPUs around a switch, and g3, which takes no part, wired to two of them."""
    nodes = [*gpus(4), Node("sw", Kind.SWITCH)]
    topology = make_fabric(nodes, ["g0 sw", "g1 sw", "g2 sw", "g0 g3", "g1 g3"], 4 * GB)
    trees = []
    for root in range(3):
        others = [i for i in range(3) if i != root]
        trees.append(
            make_tree(
                GB,
                f"g{root}",
                [[f"g{i}", "sw", f"g{root}"] for i in others],
                [[f"g{root}", "sw", f"g{i}"] for i in others],
            )
        )
    prices = priced(*(key for key in link_keys(topology) if "sw" in key))
    return make_plan(topology, "g0 g1 g2", trees, prices, 3 * GB, "g2")


def _bus() -> PlanDocument:
    """Two GPUs whose two directions share one capacity."""
    topology = make_fabric(gpus(2), ["g0 g1"], 3 * GB, shared=4 * GB)
    tree = make_tree(2 * GB, "g0", [["g1", "g0"]], [["g0", "g1"]])
    return make_plan(topology, "g0 g1", [tree], [Price(0, 1.0)], 2 * GB, "g0")


def _one_way_ring() -> PlanDocument:
    topology = make_fabric(gpus(4), ["g0 g1", "g1 g2", "g2 g3", "g3 g0"], 6 * GB, oneway=True)
    trees = []
    for root in range(4):
        around = [f"g{(root + j) % 4}" for j in range(4)]
        inward = _paths(" ".join([*around[1:], around[0]]))
        trees.append(make_tree(GB, around[0], inward, _paths(" ".join(around))))
    return make_plan(topology, "g0 g1 g2 g3", trees, priced(*link_keys(topology)), 4 * GB, "g0")


def _boxes() -> PlanDocument:
    """Two boxes of one GPU, a PCIe switch and a NIC each, and a network switch between them."""
    nodes = [
        Node(f"{kind}{box}", kind, box=f"b{box}") for box in range(2) for kind in (Kind.GPU, Kind.PCI, Kind.NIC)
    ] + [Node("sw", Kind.SWITCH)]
    cables = ["gpu0 pci0", "pci0 nic0", "nic0 sw", "sw nic1", "nic1 pci1", "pci1 gpu1"]
    topology = make_fabric(nodes, cables, 3 * GB)
    way = ["gpu0", "pci0", "nic0", "sw", "nic1", "pci1", "gpu1"]
    tree = make_tree(3 * GB, "gpu1", [way], [way[::-1]])
    return make_plan(topology, "gpu0 gpu1", [tree], priced(("gpu0", "pci0")), 3 * GB, "gpu0")


def _cables() -> PlanDocument:
    """Two GPUs with two cables between them."""
    topology = make_fabric(gpus(2), ["g0 g1", "g0 g1"], 3 * GB)
    trees = [
        make_tree(3 * GB, "g0", [["g1", "g0"]], [["g0", "g1"]]),
        make_tree(3 * GB, "g0", [["g1", ("g0", 1)]], [["g0", ("g1", 1)]]),
    ]
    return make_plan(topology, "g0 g1", trees, priced(("g0", "g1"), ("g0", ("g1", 1))), 6 * GB, "g0")


PLANS = {plan.__name__[1:]: plan() for plan in (_ring, _star, _bus, _one_way_ring, _boxes, _cables)}


@pytest.fixture(scope="session", params=PLANS)
def plan(request: pytest.FixtureRequest) -> PlanDocument:
    """Each of the plans in turn."""
    return PLANS[request.param]


@pytest.fixture(scope="session")
def plans() -> dict[str, PlanDocument]:
    """All of them by name."""
    return PLANS
