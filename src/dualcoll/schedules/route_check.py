"""Whether sends have routes that their fabric has and that its forwarding policy allows (docs/semantics.md §9)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualcoll.certificates.findings import Findings
from dualcoll.certificates.policy import Policy, Position
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.order import describe_send
from dualcoll.topology.model import Topology

__all__ = ["check_routes"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEAK = 1e-9  # parts are doubles: so much of a send may be missing at a node


def check_routes(schedule: Schedule, findings: Findings) -> None:
    """Add a finding for each (route, source, destination) that is used and is wrong, named by the first send that uses it."""
    if schedule.topology is None:
        return
    moved = schedule.src != schedule.dst
    for send in np.flatnonzero(~moved & (schedule.route != NONE)).tolist():
        findings.add(f"{describe_send(schedule, send)}: it has a route, yet never leaves its rank (§9)")
    for send in np.flatnonzero(moved & (schedule.route == NONE)).tolist():
        findings.add(f"{describe_send(schedule, send)}: it has no route (§9)")
    sends = _different(schedule, np.flatnonzero(moved & (schedule.route != NONE)))
    if sends.size == 0:
        return
    uses = _Uses(schedule, schedule.topology, sends)
    problems = uses.problems()
    for i in sorted(problems):
        findings.add(f"{describe_send(schedule, int(sends[i]))}: {problems[i]} (§9)")


def _different(schedule: Schedule, sends: Ints) -> Ints:
    """The first send of each (route, source, destination)."""
    keys = [column[sends] for column in (schedule.dst, schedule.src, schedule.route)]
    order = np.lexsort(keys)
    fresh = np.ones(order.size, bool)
    fresh[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    return np.sort(sends[order[fresh]])


class _Uses:
    """Uses U of routes as flat columns of their links: ``owner`` int64 (H,) says whose link each is."""

    def __init__(self, schedule: Schedule, topology: Topology, sends: Ints) -> None:
        self.topology, self.forwarding, routes = topology, schedule.forwarding, schedule.routes
        nodes = np.array(schedule.nodes)
        self.src, self.dst = nodes[schedule.src[sends]], nodes[schedule.dst[sends]]
        begin, end = routes.ptr[schedule.route[sends]], routes.ptr[schedule.route[sends] + 1]
        self.owner = np.repeat(np.arange(sends.size), end - begin)
        self.start = np.concatenate([[0], np.cumsum(end - begin)])
        entry = np.arange(self.owner.size) - self.start[self.owner] + begin[self.owner]
        self.link = routes.links[entry].astype(np.int64)
        self.share = np.ones(entry.size) if routes.share is None else routes.share[entry]
        self.tail = np.array([link.tail for link in topology.links], np.int64)[self.link]
        self.head = np.array([link.head for link in topology.links], np.int64)[self.link]
        # the same number for the same node of the same use; the source of use u is number u
        spots = np.concatenate([np.arange(sends.size), self.owner, self.owner]) * len(topology.nodes)
        spots += np.concatenate([self.src, self.tail, self.head])
        _, spot = np.unique(spots, return_inverse=True)
        self.at_src, self.at_tail, self.at_head = np.split(spot, [sends.size, sends.size + self.owner.size])
        self.spots = int(spot.max()) + 1

    def problems(self) -> dict[int, str]:
        """What is wrong, in words, by number of the use."""
        found: dict[int, str] = {}
        for wrong, problem in (
            (np.diff(self.start) == 0, "its route has no links"),
            (self._any(self.head == self.src[self.owner]), "its route comes back to its source"),
            (self._any(self.tail == self.dst[self.owner]), "its route goes on from its destination"),
        ):
            found |= {i: problem for i in np.flatnonzero(wrong).tolist() if i not in found}
        for i in np.flatnonzero(~self._whole()).tolist():
            if i not in found:
                found[i] = self._broken(i)
        for i in np.flatnonzero(self._circles()).tolist():
            found.setdefault(i, "its route runs in a circle")
        if self.forwarding is not None:
            policy = Policy(self.topology, self.forwarding)
            for i in np.flatnonzero(self._forbidden(policy)).tolist():
                if i not in found:
                    found[i] = f"its route {self._objection(i, policy)}"
        return found

    def _any(self, entries: Bools) -> Bools:
        """Uses that have one of these links."""
        using = np.zeros(self.src.size, bool)
        using[self.owner[entries]] = True
        return using

    def _whole(self) -> Bools:
        """Uses whose links lead all bytes from source to destination: as one path in order, if nothing is divided."""
        balance = np.bincount(self.at_tail, self.share, self.spots) - np.bincount(self.at_head, self.share, self.spots)
        balance[self.at_src] -= 1
        off = np.abs(balance) > LEAK
        ends = self.head == self.dst[self.owner]
        arrived = np.bincount(self.owner[ends], self.share[ends], self.src.size)
        leaks = self._any(off[self.at_tail]) | self._any(off[self.at_head] & ~ends)
        path = ~self._any(self.share != 1)
        apart = np.zeros(self.owner.size, bool)
        apart[1:] = (self.owner[1:] == self.owner[:-1]) & (self.tail[1:] != self.head[:-1])
        whole: Bools = ~leaks & ~off[self.at_src] & (np.abs(arrived - 1) <= LEAK) & ~(path & self._any(apart))
        return whole

    def _broken(self, use: int) -> str:
        """Why the links of a use do not lead from its source to its destination."""
        hops = slice(self.start[use], self.start[use + 1])
        names = [node.name for node in self.topology.nodes]
        if np.any(self.share[hops] != 1):
            return "its route does not carry all bytes from its source to its destination"
        stops = [int(self.src[use]), *self.head[hops].tolist()]
        starts = [*self.tail[hops].tolist(), int(self.dst[use])]
        before, tail = next(pair for pair in zip(stops, starts, strict=True) if pair[0] != pair[1])
        return f"its route is no path: it is at {names[before]} and goes on at {names[tail]}"

    def _circles(self) -> Bools:
        """Uses with links that are on no way that begins at the source, or on one that never ends."""
        entering = np.bincount(self.at_head, minlength=self.spots)
        reached = np.zeros(self.spots, bool)
        reached[self.at_src] = True
        passed = np.zeros(self.owner.size, bool)
        while True:
            go = reached[self.at_tail] & (entering[self.at_tail] == 0) & ~passed
            if not go.any():
                return self._any(~passed)
            passed |= go
            entering -= np.bincount(self.at_head[go], minlength=self.spots)
            reached[self.at_head[go]] = True

    def _forbidden(self, policy: Policy) -> Bools:
        """Uses that the policy objects to: positions that a route can be in at a spot are bits of a number."""
        used, link = np.unique(self.link, return_inverse=True)
        after = np.zeros((used.size, len(Position)), np.int64)  # bit of the position after each link, 0 for no way on
        for i, e in enumerate(used.tolist()):
            step = self.topology.links[e]
            for position in Position:
                following = policy.step(position, step.tail, step.head)
                after[i, position] = 0 if following is None else 1 << following
        open_nodes = np.array([policy.forwards(node) for node in range(len(self.topology.nodes))])
        shut = (self.tail != self.src[self.owner]) & ~open_nodes[self.tail]
        at = np.zeros(self.spots, np.int64)
        at[self.at_src] = [1 << policy.start(node) for node in self.src.tolist()]
        stopped = np.zeros(self.owner.size, bool)
        while True:
            before = at.copy()
            for position in Position:
                taken = (at[self.at_tail] >> position & 1).astype(bool)
                stopped |= taken & (after[link, position] == 0)
                np.bitwise_or.at(at, self.at_head[taken], after[link[taken], position])
            if np.array_equal(at, before):
                return self._any(shut | stopped)

    def _objection(self, use: int, policy: Policy) -> str:
        """The policy's words about a way along the links of a use that it forbids."""
        hops = slice(self.start[use], self.start[use + 1])
        onward: dict[int, list[int]] = {}
        for tail, head in zip(self.tail[hops].tolist(), self.head[hops].tolist(), strict=True):
            onward.setdefault(tail, []).append(head)
        source = int(self.src[use])
        ways = [[source]]
        seen = {(source, policy.start(source))}
        for way in ways:  # grows while it is walked
            for head in onward.get(way[-1], ()):
                longer = [*way, head]
                objection = policy.objection(longer)
                if objection is not None:
                    return objection
                state = head, self._position(policy, longer)
                if state not in seen:
                    seen.add(state)
                    ways.append(longer)
        raise AssertionError("a forbidden use has a way that the policy objects to")

    def _position(self, policy: Policy, way: list[int]) -> Position:
        position: Position | None = policy.start(way[0])
        for node, following in pairwise(way):
            assert position is not None
            position = policy.step(position, node, following)
        assert position is not None
        return position
