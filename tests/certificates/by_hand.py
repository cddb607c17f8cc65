"""Plans made by hand, each with its optimal rate and the prices that prove it. Rates are in units of 1 GB/s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

from dualcoll.collectives.workload import Objective
from dualcoll.plans.document import (
    Claims,
    GroupRecord,
    Hop,
    LinkKey,
    PlanDocument,
    Price,
    SolverRecord,
    TreeRecord,
    link_keys,
)
from dualcoll.plans.model import Phase
from dualcoll.plans.shares import split_bytes
from dualcoll.progress import Outcome
from dualcoll.routing.model import Routing, RoutingKind
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


def gpus(count: int) -> list[Node]:
    """GPUs g0, g1, ... in one box."""
    return [Node(f"g{i}", Kind.GPU, box="b0") for i in range(count)]


def priced(*links: LinkKey) -> list[Price]:
    """A price of 1 on each link."""
    return [Price(link, 1.0) for link in links]


def make_tree(rate: float, root: str, reduce: Routes, broadcast: Routes = (), group: str = "all") -> TreeRecord:
    """A tree from its routes alone; its bytes are set by :func:`make_plan`."""
    ends = [(Phase.REDUCE, route) for route in reduce] + [(Phase.BROADCAST, route) for route in broadcast]
    edges = tuple((_name(route[0]), _name(route[-1]), phase) for phase, route in ends)
    return TreeRecord(rate, group, root, None, 0, edges, tuple(tuple(route) for _, route in ends))


def make_send(rate: float, *routes: Sequence[Hop], group: str = "all") -> TreeRecord:
    """A path of sends, one for each route, from the first node of the first to the last of the last."""
    edges = tuple((_name(route[0]), _name(route[-1]), Phase.SEND) for route in routes)
    return TreeRecord(rate, group, edges[0][0], edges[-1][1], 0, edges, tuple(tuple(route) for route in routes))


def make_plan(
    topology: Topology,
    groups: str | Sequence[GroupRecord],
    trees: Sequence[TreeRecord],
    prices: Sequence[Price],
    rate: float,
    cut: str,
    in_network: float | None,
    **more: object,
) -> PlanDocument:
    """A plan whose rate is its bound.

    Args:
        groups: they, or the ranks of an AllReduce of 1000 bytes.
        cut: names of the nodes inside, with the bound that it proves; more: further fields of the document.
    """
    if isinstance(groups, str):
        groups = [GroupRecord("all", "allreduce", tuple(groups.split()), 1000)]
    document = PlanDocument(
        generator="by hand",
        objective=Objective.SLOWEST,
        groups=tuple(groups),
        forwarding=Forwarding.SWITCHES,
        relay=False,
        routing=Routing(),
        topology=topology,
        trees=tuple(trees),
        prices=tuple(prices),
        in_network_cut=None if in_network is None else tuple(cut.split()),
        claims=Claims(rate, rate, 0.0, in_network),
        solver=SolverRecord(Outcome.OPTIMAL, "by hand", 0.0, 0),
    )
    return replace(document, **more)  # type: ignore[arg-type]


def _name(hop: Hop) -> str:
    return hop if isinstance(hop, str) else hop[0]


def _paths(nodes: str) -> list[list[str]]:
    """``"g0 g1 g2"`` as the routes g0 g1, g1 g2."""
    return [[tail, head] for tail, head in pairwise(nodes.split())]


def _over_switch(nodes: str) -> list[list[str]]:
    """``"g0 g1 g2"`` as the routes g0 sw g1, g1 sw g2."""
    return [[tail, "sw", head] for tail, head in pairwise(nodes.split())]


def _shared_out(trees: Sequence[TreeRecord], size: int) -> list[TreeRecord]:
    """The trees of one demand with their bytes."""
    sizes = split_bytes(size, [tree.rate for tree in trees])
    return [replace(tree, size=part) for tree, part in zip(trees, sizes, strict=True)]


def _ring() -> PlanDocument:
    """n/(n-1) of the cable."""
    topology = make_fabric(gpus(4), ["g0 g1", "g1 g2", "g2 g3", "g3 g0"], 3 * GB)
    trees = []
    for i in range(4):
        around = [f"g{(i + j) % 4}" for j in range(4)]
        inward = _paths(" ".join(reversed(around)))
        trees.append(make_tree(GB, around[0], inward, _paths(" ".join(around))))
    prices = priced(*link_keys(topology))
    return make_plan(topology, "g0 g1 g2 g3", _shared_out(trees, 1000), prices, 4 * GB, "g0", 6 * GB)


def _star() -> PlanDocument:
    """Three GPUs around a switch, and g3, which takes no part, wired to two of them: n/(2(n-1)) of the cable."""
    nodes = [*gpus(4), Node("sw", Kind.SWITCH)]
    topology = make_fabric(nodes, ["g0 sw", "g1 sw", "g2 sw", "g0 g3", "g1 g3"], 4 * GB)
    trees = []
    for root in range(3):
        others = [i for i in range(3) if i != root]
        inward = [[f"g{i}", "sw", f"g{root}"] for i in others]
        trees.append(make_tree(GB, f"g{root}", inward, [[f"g{root}", "sw", f"g{i}"] for i in others]))
    prices = priced(*(key for key in link_keys(topology) if "sw" in key))
    return make_plan(topology, "g0 g1 g2", _shared_out(trees, 1000), prices, 3 * GB, "g2", 4 * GB)


def _bus() -> PlanDocument:
    """Two GPUs whose two directions share one capacity."""
    topology = make_fabric(gpus(2), ["g0 g1"], 3 * GB, shared=4 * GB)
    tree = make_tree(2 * GB, "g0", [["g1", "g0"]], [["g0", "g1"]])
    return make_plan(topology, "g0 g1", _shared_out([tree], 1000), [Price(0, 1.0)], 2 * GB, "g0", 3 * GB)


def _one_way_ring() -> PlanDocument:
    """n/(2(n-1)) of the cable."""
    topology = make_fabric(gpus(4), ["g0 g1", "g1 g2", "g2 g3", "g3 g0"], 6 * GB, oneway=True)
    trees = []
    for root in range(4):
        around = [f"g{(root + j) % 4}" for j in range(4)]
        inward = _paths(" ".join([*around[1:], around[0]]))
        trees.append(make_tree(GB, around[0], inward, _paths(" ".join(around))))
    prices = priced(*link_keys(topology))
    return make_plan(topology, "g0 g1 g2 g3", _shared_out(trees, 1000), prices, 4 * GB, "g0", 6 * GB)


def _boxes() -> PlanDocument:
    """Two boxes of one GPU, a PCIe switch and a NIC each, and a network switch between them."""
    nodes = [
        Node(f"{kind}{box}", kind, box=f"b{box}") for box in range(2) for kind in (Kind.GPU, Kind.PCI, Kind.NIC)
    ] + [Node("sw", Kind.SWITCH)]
    cables = ["gpu0 pci0", "pci0 nic0", "nic0 sw", "sw nic1", "nic1 pci1", "pci1 gpu1"]
    topology = make_fabric(nodes, cables, 3 * GB)
    way = ["gpu0", "pci0", "nic0", "sw", "nic1", "pci1", "gpu1"]
    trees = _shared_out([make_tree(3 * GB, "gpu1", [way], [way[::-1]])], 1000)
    return make_plan(topology, "gpu0 gpu1", trees, priced(("gpu0", "pci0")), 3 * GB, "gpu0", 3 * GB)


def _cables() -> PlanDocument:
    """Two GPUs with two cables between them."""
    topology = make_fabric(gpus(2), ["g0 g1", "g0 g1"], 3 * GB)
    trees = [
        make_tree(3 * GB, "g0", [["g1", "g0"]], [["g0", "g1"]]),
        make_tree(3 * GB, "g0", [["g1", ("g0", 1)]], [["g0", ("g1", 1)]]),
    ]
    prices = priced(("g0", "g1"), ("g0", ("g1", 1)))
    return make_plan(topology, "g0 g1", _shared_out(trees, 1000), prices, 6 * GB, "g0", 6 * GB)


def _broadcast() -> PlanDocument:
    """One-way links s -> w -> a, b: whatever reaches a and b has crossed s -> w twice, though no cut says so."""
    topology = make_fabric([*gpus(3), Node("sw", Kind.SWITCH)], ["g0 sw", "sw g1", "sw g2"], 2 * GB, oneway=True)
    group = GroupRecord("all", "broadcast", ("g0", "g1", "g2"), 1000, root="g0")
    tree = make_tree(GB, "g0", [], [["g0", "sw", "g1"], ["g0", "sw", "g2"]])
    return make_plan(topology, [group], _shared_out([tree], 1000), priced(("g0", "sw")), GB, "g0", 2 * GB)


def _reduce() -> PlanDocument:
    """The same backwards."""
    topology = make_fabric([*gpus(3), Node("sw", Kind.SWITCH)], ["sw g0", "g1 sw", "g2 sw"], 2 * GB, oneway=True)
    group = GroupRecord("all", "reduce", ("g0", "g1", "g2"), 1000, root="g0")
    tree = make_tree(GB, "g0", [["g1", "sw", "g0"], ["g2", "sw", "g0"]])
    return make_plan(topology, [group], _shared_out([tree], 1000), priced(("sw", "g0")), GB, "sw g1 g2", 2 * GB)


def _small_star(capacity: float, count: int = 3) -> Topology:
    return make_fabric([*gpus(count), Node("sw", Kind.SWITCH)], [f"g{i} sw" for i in range(count)], capacity)


def _allgather() -> PlanDocument:
    """Shards of 1, 2 and 3 parts around a switch: g0 must take 5 of 6 over its link."""
    topology = _small_star(5 * GB)
    group = GroupRecord("all", "allgather", ("g0", "g1", "g2"), 999, parts=(1, 2, 3))
    trees = []
    for i, size in ((2, 500), (1, 333), (0, 166)):
        around = " ".join(f"g{(i + j) % 3}" for j in range(3))
        trees += _shared_out([make_tree((i + 1) * GB, f"g{i}", [], _over_switch(around))], size)
    # 4 parts leave the last two, and the link to g0 carries no more
    return make_plan(topology, [group], trees, priced(("sw", "g0")), 6 * GB, "sw g1 g2", 6 * GB)


def _reduce_scatter() -> PlanDocument:
    """Three shards around a switch."""
    topology = _small_star(2 * GB)
    group = GroupRecord("all", "reducescatter", ("g0", "g1", "g2"), 999)
    trees = []
    for i in range(3):
        inward = " ".join(f"g{(i + j) % 3}" for j in (1, 2, 0))
        trees += _shared_out([make_tree(GB, f"g{i}", _over_switch(inward))], 333)
    prices = priced(("g0", "sw"), ("g1", "sw"), ("g2", "sw"))
    return make_plan(topology, [group], trees, prices, 3 * GB, "g0", 3 * GB)


def _gather() -> PlanDocument:
    """Two of three shards enter g1."""
    group = GroupRecord("all", "gather", ("g0", "g1", "g2"), 999, root="g1")
    trees = [replace(make_send(GB, (f"g{i}", "sw", "g1")), size=333) for i in (0, 2)]
    return make_plan(_small_star(2 * GB), [group], trees, priced(("sw", "g1")), 3 * GB, "g0 g2 sw", 3 * GB)


def _scatter() -> PlanDocument:
    """Shards of 1 and 3 parts leave g1, which keeps 4."""
    group = GroupRecord("all", "scatter", ("g0", "g1", "g2"), 800, root="g1", parts=(1, 4, 3))
    trees = [replace(make_send(i * GB, ("g1", "sw", f"g{i - 1}")), size=100 * i) for i in (1, 3)]
    return make_plan(_small_star(4 * GB), [group], trees, priced(("g1", "sw")), 8 * GB, "g1", 8 * GB)


def _alltoall() -> PlanDocument:
    """A one-way ring of three, where every second shard must be relayed."""
    topology = make_fabric(gpus(3), ["g0 g1", "g1 g2", "g2 g0"], 3 * GB, oneway=True)
    group = GroupRecord("all", "alltoall", ("g0", "g1", "g2"), 3000)
    trees = []
    for i in range(3):
        u, v, w = (f"g{(i + j) % 3}" for j in range(3))
        trees += [replace(make_send(GB, *hops), size=1000) for hops in ([(u, v)], [(u, v), (v, w)])]
    return make_plan(topology, [group], trees, priced(*link_keys(topology)), 3 * GB, "g0", 4.5 * GB, relay=True)


def _alltoallv() -> PlanDocument:
    """Around a switch g1 has the most to send; the diagonal costs nothing."""
    group = GroupRecord("all", "alltoallv", ("g0", "g1", "g2"), 600, parts=(400, 200, 0, 0, 0, 600, 100, 0, 0))
    amounts = ((6, "g1", "g2"), (2, "g0", "g1"), (1, "g2", "g0"))
    trees = [replace(make_send(n * GB, (u, "sw", v)), size=100 * n) for n, u, v in amounts]
    return make_plan(_small_star(6 * GB), [group], trees, priced(("g1", "sw")), 6 * GB, "g1", 6 * GB)


def _mix() -> PlanDocument:
    """An AllReduce of 1000 bytes and a broadcast of 500 that share the link from g0."""
    groups = [
        GroupRecord("tp", "allreduce", ("g0", "g1"), 1000),
        GroupRecord("dp", "broadcast", ("g0", "g2"), 500, root="g0"),
    ]
    trees = [
        *_shared_out([make_tree(2 * GB, "g1", [["g0", "sw", "g1"]], [["g1", "sw", "g0"]], group="tp")], 1000),
        *_shared_out([make_tree(1 * GB, "g0", [], [["g0", "sw", "g2"]], group="dp")], 500),
    ]
    return make_plan(_small_star(3 * GB), groups, trees, priced(("g0", "sw")), 2 * GB, "g0", 2 * GB)


def _total() -> PlanDocument:
    """The same groups for their total, which one of them gets alone."""
    mix = _mix()
    trees = (replace(mix.trees[0], rate=3 * GB),)
    claims = Claims(3 * GB, 3 * GB, 0.0, None)
    return replace(mix, objective=Objective.TOTAL, trees=trees, claims=claims, in_network_cut=None)


def _two_switches() -> Topology:
    """Two GPUs with one cable each to s0 and two to s1."""
    nodes = [*gpus(2), Node("s0", Kind.SWITCH), Node("s1", Kind.SWITCH)]
    return make_fabric(nodes, [f"{g} {s}" for g in ("g0", "g1") for s in ("s0", "s1", "s1")], GB)


def _network_tree(rate: float) -> list[TreeRecord]:
    tree = make_tree(rate, "g0", [["g1", "g0"]], [["g0", "g1"]])
    return [replace(tree, routes=None, size=1000)]


def _spray() -> PlanDocument:
    """Half of the traffic goes over the one cable to s0."""
    prices = priced(("g0", "s0"))
    routing = Routing(RoutingKind.SPRAY)
    return make_plan(_two_switches(), "g0 g1", _network_tree(2 * GB), prices, 2 * GB, "g0", 3 * GB, routing=routing)


def _spray_cables() -> PlanDocument:
    """A third goes over each of three cables."""
    prices = priced(("g0", "s0"), ("g0", "s1"), ("g0", ("s1", 1)))
    routing = Routing(RoutingKind.SPRAY_CABLES)
    return make_plan(_two_switches(), "g0 g1", _network_tree(3 * GB), prices, 3 * GB, "g0", 3 * GB, routing=routing)


def _spray_hops() -> PlanDocument:
    """Through other GPUs, one of them behind two cables, although GPUs forward nothing."""
    topology = make_fabric(gpus(4), ["g0 g1", "g0 g1", "g0 g2", "g1 g3", "g2 g3"], GB)
    group = GroupRecord("all", "broadcast", ("g0", "g3"), 1000, root="g0")
    tree = replace(make_tree(2 * GB, "g0", [], [["g0", "g3"]]), routes=None, size=1000)
    routing = Routing(RoutingKind.SPRAY_HOPS)
    return make_plan(topology, [group], [tree], priced(("g0", "g2")), 2 * GB, "g0", 3 * GB, routing=routing)


def hashed(seed: int, u: str, v: str, at: str, choices: int) -> int:
    """The choice that docs/model.md §8 makes."""
    digest = sha256(f"{seed}/{u}/{v}/{at}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % choices


def _ecmp() -> PlanDocument:
    """Everything goes over one of three cables."""
    first: Hop = ("s0", "s1", ("s1", 1))[hashed(7, "g0", "g1", "g0", 3)]
    routing = Routing(RoutingKind.ECMP, 7)
    return make_plan(
        _two_switches(), "g0 g1", _network_tree(GB), priced(("g0", first)), GB, "g0", 3 * GB, routing=routing
    )


MAKERS: tuple[Callable[[], PlanDocument], ...] = (
    *(_ring, _star, _bus, _one_way_ring, _boxes, _cables),
    *(_broadcast, _reduce, _allgather, _reduce_scatter, _gather, _scatter, _alltoall, _alltoallv, _mix, _total),
    *(_spray, _spray_cables, _spray_hops, _ecmp),
)
PLANS = {make.__name__[1:]: make() for make in MAKERS}
