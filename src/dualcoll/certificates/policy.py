"""Who may forward, as an automaton over the nodes of a route (docs/model.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise

from dualcoll.topology.model import Forwarding, Topology, Transit, transit

__all__ = ["Policy", "Position"]


class Position(IntEnum):
    """Where on its way a route is."""

    LEAVING = 0  # every node so far is in the box of its first node
    BETWEEN = 1  # outside; only unconditional forwarders carry it on
    ENTERING = 2  # it has reached a NIC, CPU or PCIe node, and may not leave that node's box any more


class Policy:
    """The forwarding policy of one fabric, or none at all where every node forwards anything."""

    def __init__(self, topology: Topology, forwarding: Forwarding, *, everyone_forwards: bool = False) -> None:
        self._nodes = topology.nodes
        self._box = [node.box for node in topology.nodes]
        self._transit = [
            Transit.ANY if everyone_forwards else transit(node.kind, forwarding) for node in topology.nodes
        ]

    def start(self, first: int) -> Position:
        """The position of a route that has only its first node."""
        return Position.BETWEEN if self._box[first] is None else Position.LEAVING

    def forwards(self, node: int) -> bool:
        """Whether the node may be in the interior of any route."""
        return self._transit[node] is not Transit.NONE

    def step(self, position: Position, node: int, following: int) -> Position | None:
        """The position after the step from ``node`` to ``following``; None where no route may take it."""
        same_box = self._box[following] == self._box[node]
        if position is Position.ENTERING:
            return position if same_box else None
        if position is Position.LEAVING and same_box:
            return position
        return Position.ENTERING if self._transit[following] is Transit.OWN_BOX else Position.BETWEEN

    def objection(self, route: Sequence[int]) -> str | None:
        """Why the policy forbids this node sequence, in words; None where it does not."""
        position = self.start(route[0])
        entry = route[0]
        for node, following in pairwise(route):
            after = self.step(position, node, following)
            if after is None:
                box = self._nodes[node].box
                return f"leaves box {box}, which it entered through {self._name(entry)}, for {self._name(following)}"
            if after is not position and after is Position.ENTERING:
                entry = following
            if following != route[-1] and not self.forwards(following):
                return f"passes through {self._name(following)}, which may not forward"
            position = after
        return None

    def _name(self, node: int) -> str:
        return f"{self._nodes[node].kind} {self._nodes[node].name}"
