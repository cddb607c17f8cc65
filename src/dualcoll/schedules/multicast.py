"""Sends that switches make of one: a tree of links that carry one chunk once (docs/semantics.md §9.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.certificates.findings import Findings
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.ops import Op
from dualcoll.schedules.order import describe_send

__all__ = ["check_multicasts", "divides", "first_alike"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Bools = NDArray[np.bool_]


def first_alike(group: Ints, *keys: Ints) -> Ints:
    """The first entry with the same group and the same keys as each, int64 (n,); itself for an entry of group ``NONE``."""
    first = np.arange(group.size)
    some = np.flatnonzero(group != NONE)
    order = some[np.lexsort([key[some] for key in (*keys, group)])]  # stable: the first of equals comes first
    fresh = np.ones(order.size, bool)
    fresh[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in (*keys, group)], axis=0)
    first[order] = order[np.maximum.accumulate(np.where(fresh, np.arange(order.size), 0))]
    return first


def divides(schedule: Schedule, sends: Ints) -> Bools:
    """Whether each of the sends, (s,), puts only a part of its bytes on some link."""
    routes = schedule.routes
    divided = np.zeros(len(routes) + 1, bool)  # the last: no route
    if routes.share is not None:
        divided[np.repeat(np.arange(len(routes)), np.diff(routes.ptr))[routes.share != 1]] = True
    return divided[schedule.route[sends]]


def check_multicasts(schedule: Schedule, order: Shorts | None, findings: Findings) -> None:
    """Add a finding for every send that does not belong to the others of its number.

    Args:
        schedule: the sends. order: int32 (S,), one in which they can run, or None if there is none.
        findings: where to.
    """
    members = np.flatnonzero(schedule.multicast != NONE)
    if members.size == 0:
        return
    members = members[np.argsort(schedule.multicast[members], kind="stable")]
    group = schedule.multicast[members].astype(np.int64)
    first = members[first_alike(group)]
    whole = _check_members(schedule, members, first, findings)
    whole_group = np.isin(group, group[~whole], invert=True)
    if schedule.topology is not None:
        _check_trees(schedule, members[whole_group], group[whole_group], findings)
    if order is not None:
        _check_unwritten(schedule, members[whole_group], first[whole_group], order, findings)


def _check_members(schedule: Schedule, members: Ints, first: Ints, findings: Findings) -> Bools:
    """Which members, (m,), are like the first of theirs, but for where they go."""
    whole = np.ones(members.size, bool)
    alone = (schedule.op[members] != Op.COPY) | (schedule.src[members] == schedule.dst[members])
    other = (schedule.src[members] != schedule.src[first]) | (schedule.chunk[members] != schedule.chunk[first])
    problems = [(alone, "is of copies between ranks alone"), (other, "is of chunk {chunk} at rank {rank}")]
    if schedule.topology is not None:
        problems.append((schedule.route[members] == NONE, "needs a route"))
    if schedule.routes.share is not None:
        divided = np.zeros(len(schedule.routes) + 1, bool)  # the last: no route
        divided[
            np.repeat(np.arange(len(schedule.routes)), np.diff(schedule.routes.ptr))[schedule.routes.share != 1]
        ] = True
        problems.append((divided[schedule.route[members]], "does not divide its bytes"))
    _, ends, times = np.unique(first * schedule.ranks + schedule.dst[members], return_inverse=True, return_counts=True)
    problems.append((times[ends] > 1, "goes twice to its destination"))
    for wrong, problem in problems:
        for i in np.flatnonzero(wrong & whole).tolist():
            head = int(first[i])
            rank = schedule.rank_name(int(schedule.src[head]))
            text = f"multicast {schedule.multicast[head]} {problem.format(chunk=schedule.chunk[head], rank=rank)}"
            findings.add(f"{describe_send(schedule, int(members[i]))}: {text} (§9)")
        whole &= ~wrong
    return whole


def _check_trees(schedule: Schedule, members: Ints, group: Ints, findings: Findings) -> None:
    """All routes of a multicast begin at its source: they form a tree if no two links lead to one node."""
    assert schedule.topology is not None
    routes = schedule.routes
    begin, count = routes.ptr[schedule.route[members]], np.diff(routes.ptr)[schedule.route[members]]
    entry = np.arange(int(count.sum())) + np.repeat(begin - (np.cumsum(count) - count), count)
    link = routes.links[entry].astype(np.int64)
    owner, group = np.repeat(members, count), np.repeat(group, count)
    once = np.flatnonzero(first_alike(group, link) == np.arange(link.size))
    head = np.array([one.head for one in schedule.topology.links], np.int64)[link]
    meeting = first_alike(group[once], head[once])
    ways = np.bincount(meeting, minlength=once.size)
    for i in np.flatnonzero(ways > 1).tolist():
        send, name = int(owner[once[i]]), schedule.topology.nodes[int(head[once[i]])].name
        text = f"multicast {group[once[i]]} comes to {name} on {ways[i]} links"
        findings.add(f"{describe_send(schedule, send)}: {text} (§9)")


def _check_unwritten(schedule: Schedule, members: Ints, first: Ints, order: Shorts, findings: Findings) -> None:
    """What one member reads is what the others read: nothing writes the slot between them. Unless there is a race, which has a
    finding of its own, what is between them in one order is so in every other.
    """
    when = np.empty(schedule.sends, np.int64)
    when[order] = np.arange(schedule.sends)
    slots, slot = np.unique(
        schedule.src[members].astype(np.int64) * schedule.chunks + schedule.chunk[members], return_inverse=True
    )
    written = schedule.dst.astype(np.int64) * schedule.chunks + schedule.into
    writes = np.flatnonzero(np.isin(written, slots))
    moments = np.searchsorted(slots, written[writes]) * schedule.sends + when[writes]
    writes, moments = writes[np.argsort(moments)], np.sort(moments)
    read = slot * schedule.sends + when[members]
    _, of = np.unique(first, return_inverse=True)
    low, high = np.full(of.max(initial=-1) + 1, read.max(initial=0)), np.zeros(of.max(initial=-1) + 1, np.int64)
    np.minimum.at(low, of, read)
    np.maximum.at(high, of, read)
    heads = np.unique(first)
    at = np.searchsorted(moments, low)
    between = np.append(moments, np.iinfo(np.int64).max)[at] < high
    for i in np.flatnonzero(between).tolist():
        text = f"it writes what multicast {schedule.multicast[heads[i]]} reads, between two of its copies"
        findings.add(f"{describe_send(schedule, int(writes[at[i]]))}: {text} (§9)")
