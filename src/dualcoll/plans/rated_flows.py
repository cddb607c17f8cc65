"""Any AllReduce as flows with rates (docs/normal-form.md; section 3 of the DualColl paper)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dualcoll.errors import InputError
from dualcoll.plans.fields import within
from dualcoll.plans.flow_routes import fault_of_route
from dualcoll.plans.flows import Shard, check_results, useful
from dualcoll.topology.model import Topology
from dualcoll.units import MAX_SIZE

__all__ = ["RatedFlows", "link_loads", "rate_of"]

LEAST, MOST = 1e-300, 1e300  # of rates and weights, so that halves stay exact


@dataclass(frozen=True, slots=True)
class RatedFlows:
    """A legal AllReduce that fits its fabric.

    Attributes:
        topology: the fabric. ranks: node indices of those who take part, in rank order. size: bytes of the message.
        shards: what it is cut into.

    Raises:
        InputError: a rank does not end with every contribution exactly once, a flow counts one twice, flows wait for each
            other, a route is none, a link or shared capacity carries more than it can, or a number is not usable.
    """

    topology: Topology
    ranks: tuple[int, ...]
    size: int
    shards: tuple[Shard, ...]

    def __post_init__(self) -> None:
        if len(self.ranks) < 2 or len(set(self.ranks)) < len(self.ranks):
            raise InputError("an AllReduce takes two or more different ranks", where="ranks")
        if not set(self.ranks) <= set(range(len(self.topology.nodes))):
            raise InputError("one of them is no node of the topology", where="ranks")
        if not 1 <= self.size <= MAX_SIZE:
            raise InputError(f"{str(self.size)[:40]} is not in 1 .. 2**63 - 1", where="size")
        if not self.shards:
            raise InputError("there are none", where="shards")
        taken: set[str] = set()
        for i, shard in enumerate(self.shards):
            if shard.name in taken:
                raise InputError(f"shard name {shard.name!r} is used twice", where=f"shards[{i}]")
            taken.add(shard.name)
            within(f"shards[{i}]", self._check, shard)
        _check_loads(self)

    @property
    def members(self) -> dict[int, str]:
        """Names of the ranks by node index, in rank order."""
        return {rank: self.topology.nodes[rank].name for rank in self.ranks}

    def _check(self, shard: Shard) -> None:
        members = self.members
        _check_amount(shard.weight, "weight")
        for k, flow in enumerate(shard.flows):
            where = f"flows[{k}]"
            _check_amount(flow.rate, f"{where}.rate")
            for end in (flow.tail, flow.head):
                if end not in members:
                    raise InputError(
                        f"flow {flow.id!r} has node {end} as its end, which does not take part", where=where
                    )
            problem = fault_of_route(self.topology, (flow.tail, flow.head), flow.links, flow.share)
            if problem:
                raise InputError(f"flow {flow.id!r}: {problem}", where=where)
        check_results(shard, members)


def link_loads(flows: RatedFlows) -> list[Fraction]:
    """What all flows put on each link (E,), bytes/s, exactly."""
    loads = [Fraction(0)] * len(flows.topology.links)
    for shard in flows.shards:
        for flow in shard.flows:
            rate = Fraction(flow.rate)
            for e, share in zip(flow.links, flow.share or (1.0,) * len(flow.links), strict=True):
                loads[e] += rate * Fraction(share)
    return loads


def rate_of(flows: RatedFlows) -> Fraction:
    """Bytes/s of the message: its size over the time that the slowest shard takes.

    A shard takes as long as the slowest flow that some rank's result depends on (Lemma 3.2).
    """
    whole = sum(Fraction(shard.weight) for shard in flows.shards)
    rates = []
    for shard in flows.shards:
        needed = useful(shard)
        slowest = min(flow.rate for flow in shard.flows if flow.id in needed)
        rates.append(Fraction(slowest) * whole / Fraction(shard.weight))
    return min(rates)


def _check_amount(number: float, where: str) -> None:
    if not LEAST <= number <= MOST:
        raise InputError(f"{number!r} is not in {LEAST} .. {MOST}", where=where)


def _check_loads(flows: RatedFlows) -> None:
    loads = link_loads(flows)
    for e, load in enumerate(loads):
        capacity = flows.topology.links[e].capacity
        if load > Fraction(capacity):
            raise _overloaded(f"link {flows.topology.describe_link(e)}", load, capacity)
    for i, row in enumerate(flows.topology.shared):
        load = sum((loads[e] for e in row.links), Fraction(0))
        if load > Fraction(row.capacity):
            raise _overloaded(f"shared capacity {i}", load, row.capacity)


def _overloaded(what: str, load: Fraction, capacity: float) -> InputError:
    excess = float(load - Fraction(capacity))
    problem = f"the flows load it with {excess:.6g} bytes/s more than its {capacity:.6g} bytes/s"
    return InputError(problem, where=what, hint="lower the rates of its flows")
