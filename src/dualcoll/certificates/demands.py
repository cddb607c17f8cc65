"""What a plan has to carry, by its groups, and how to say it in words (docs/model.md §3)."""

from __future__ import annotations

from dualcoll.certificates.findings import Findings, shown
from dualcoll.collectives.workload import Demand, Group, Pattern, Workload
from dualcoll.plans.document import GroupRecord, PlanDocument, TreeRecord
from dualcoll.topology.model import Topology

__all__ = ["Demands", "read_workload"]


def read_workload(document: PlanDocument, fabric: Topology, findings: Findings) -> Workload | None:
    """The groups on the fabric; None, with findings, if they are not what their collectives take."""
    groups = [_group(record, f"groups[{i}]", fabric, findings) for i, record in enumerate(document.groups)]
    if findings:
        return None
    workload = Workload(tuple(group for group in groups if group is not None), document.objective)
    busy = {demand.group for demand in workload.demands()}
    for i in sorted(set(range(len(groups))) - busy):
        findings.add(f"groups[{i}]: none of its ranks has anything for another")
    return None if findings else workload


def _group(record: GroupRecord, where: str, fabric: Topology, findings: Findings) -> Group | None:
    known: dict[str, int] = {}
    for i, name in enumerate(record.ranks):
        if name in known:
            findings.add(f"{where}.ranks[{i}]: {shown(name)} is named twice")
        elif name not in fabric.index:
            findings.add(f"{where}.ranks[{i}]: the fabric has no node {shown(name)}")
        else:
            known[name] = fabric.index[name]
    if len(record.ranks) < 2:
        findings.add(f"{where}: a collective takes two or more ranks, not {len(record.ranks)}")
    if record.root is not None and record.root not in record.ranks:
        findings.add(f"{where}: its root {shown(record.root)} is not one of its ranks")
    if findings:
        return None
    if record.collective == "alltoallv":
        n = len(record.ranks)
        rows = [record.parts[i * n : (i + 1) * n] for i in range(n)]
        most = max(map(sum, [*rows, *zip(*rows, strict=True)]))
        if record.size != most:
            findings.add(f"{where}: its size {record.size} is not {most}, the most that a rank sends or receives")
    root = None if record.root is None else known[record.root]
    return Group(record.name, record.collective, tuple(known.values()), record.size, root, record.parts)


class Demands:
    """The demands of a workload, by number."""

    def __init__(self, workload: Workload, fabric: Topology) -> None:
        self.workload = workload
        self.all = workload.demands()
        self._fabric = fabric
        self._number = {
            (workload.groups[demand.group].name, self._name(demand.root), self._name(demand.target)): j
            for j, demand in enumerate(self.all)
        }
        self._any_root = {group.name for group in workload.groups if group.collective == "allreduce"}

    def number(self, tree: TreeRecord) -> int | None:
        """The demand that the tree carries; None if there is no such."""
        root = None if tree.group in self._any_root else tree.root
        return self._number.get((tree.group, root, tree.target))

    def group(self, demand: Demand) -> Group:
        """Its group."""
        return self.workload.groups[demand.group]

    def words(self, number: int) -> str:
        """Text such as ``"the broadcast from g3"`` or ``"the data of g0 for g5 in group moe"``."""
        demand = self.all[number]
        root, target = self._name(demand.root), self._name(demand.target)
        what = {
            Pattern.ALLREDUCE: "the AllReduce",
            Pattern.BROADCAST: f"the broadcast from {root}",
            Pattern.REDUCE: f"the reduction to {root}",
            Pattern.SEND: f"the data of {root} for {target}",
        }[demand.pattern]
        groups = self.workload.groups
        return what if len(groups) == 1 else f"{what} in group {shown(groups[demand.group].name)}"

    def _name(self, node: int | None) -> str | None:
        return None if node is None else self._fabric.nodes[node].name
