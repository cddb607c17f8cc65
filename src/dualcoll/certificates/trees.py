"""Do the trees have the form that their demands need? (docs/model.md §3)"""

from __future__ import annotations

from dualcoll.certificates.demands import Demands
from dualcoll.certificates.findings import Findings, shown
from dualcoll.collectives.workload import Pattern
from dualcoll.plans.document import TreeRecord
from dualcoll.plans.model import Phase
from dualcoll.topology.model import Topology

__all__ = ["Structure"]

_PHASES = {
    Pattern.ALLREDUCE: (Phase.REDUCE, Phase.BROADCAST),
    Pattern.BROADCAST: (Phase.BROADCAST,),
    Pattern.REDUCE: (Phase.REDUCE,),
    Pattern.SEND: (Phase.SEND,),
}


class Structure:
    """Holds trees against the patterns of their demands."""

    def __init__(self, demands: Demands, fabric: Topology, findings: Findings, *, relay: bool) -> None:
        self._demands = demands
        self._findings = findings
        self._relay = relay
        groups = demands.workload.groups
        self._in_order = [tuple(sorted(fabric.nodes[rank].name for rank in group.ranks)) for group in groups]
        self._members = [frozenset(names) for names in self._in_order]

    def check(self, tree: TreeRecord, where: str, number: int) -> None:
        """Add a finding for whatever keeps the tree from carrying demand ``number``."""
        demand = self._demands.all[number]
        members = self._members[demand.group]
        phases = _PHASES[demand.pattern]
        if tree.root not in members:
            self._findings.add(f"{where}: its root {shown(tree.root)} does not take part")
            return
        for j, (tail, head, phase) in enumerate(tree.edges):
            for end in sorted({tail, head} - members):
                self._findings.add(f"{where}.edges[{j}]: {shown(end)} does not take part")
            if phase not in phases:
                kind = phase.name.lower()
                self._findings.add(f"{where}.edges[{j}]: a {kind} edge has no place in {self._demands.words(number)}")
        if demand.pattern is Pattern.SEND:
            self._check_path(tree, where)
        else:
            for phase in phases:
                self._check_phase(tree, phase, where, demand.group)

    def _check_phase(self, tree: TreeRecord, phase: Phase, where: str, group: int) -> None:
        """A path of the phase's edges must lead between the root and everybody else, and no edge is left over."""
        kind, toward, consequence = {
            Phase.REDUCE: ("reduce", "leaves", "so its data never reaches the root"),
            Phase.BROADCAST: ("broadcast", "enters", "so nothing reaches it from the root"),
        }[phase]
        root = shown(tree.root)
        step: dict[str, str] = {}
        for tail, head, of in tree.edges:
            if of is phase:
                child, parent = (tail, head) if phase is Phase.REDUCE else (head, tail)
                if child == tree.root:
                    self._findings.add(f"{where}: a {kind} edge {toward} the root {root}")
                elif child in step:
                    self._findings.add(f"{where}: more than one {kind} edge {toward} {shown(child)}")
                else:
                    step[child] = parent
        joined = {tree.root}
        for name in self._in_order[group]:
            trail: dict[str, None] = {}
            end = name
            while end not in joined and end not in trail and end in step:
                trail[end] = None
                end = step[end]
            joined.update(trail)
            if end in trail:
                self._findings.add(f"{where}: the {kind} edges at {shown(end)} run in a circle, {consequence} {root}")
            elif end not in joined and end in self._members[group]:
                joined.add(end)
                self._findings.add(f"{where}: no {kind} edge {toward} {shown(end)}, {consequence} {root}")

    def _check_path(self, tree: TreeRecord, where: str) -> None:
        """The edges must make one path from the root to the target, over nobody else unless ranks relay."""
        assert tree.target is not None
        step: dict[str, str] = {}
        for tail, head, phase in tree.edges:
            if phase is Phase.SEND and tail in step:
                self._findings.add(f"{where}: more than one send edge leaves {shown(tail)}")
            elif phase is Phase.SEND:
                step[tail] = head
        root, target = shown(tree.root), shown(tree.target)
        end = tree.root
        while end != tree.target and end in step:
            end = step.pop(end)
            if end != tree.target and not self._relay:
                self._findings.add(
                    f"{where}: its path passes through {shown(end)}, but the plan says that no rank relays"
                )
        if end != tree.target:
            self._findings.add(f"{where}: its path from {root} stops at {shown(end)}, so nothing reaches {target}")
        for tail, head in step.items():
            self._findings.add(
                f"{where}: its edge from {shown(tail)} to {shown(head)} is not on the path from {root} to {target}"
            )
