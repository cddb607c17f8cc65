"""Which links the sends of a schedule take, and who meets whom there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.reporting.timeline import steps_of
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.multicast import first_alike
from dualcoll.topology.arrays import fabric_arrays
from dualcoll.topology.model import Kind, Topology
from dualcoll.units import format_bandwidth, format_size, format_time

__all__ = ["LinkUse", "RouteMap", "route_map", "route_map_text"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Edge = tuple[int, int]  # source and destination rank

TOP = 8  # lines of each kind
EDGES = 4  # named in a sentence


@dataclass(frozen=True, slots=True)
class LinkUse:
    """A link, or a capacity that links share, and the logical edges whose sends use it.

    Attributes:
        row: its capacity row: a link, or E plus the number of a shared capacity. alike: rows that the same edges use in the
            same rounds, this one included; it is the one that they keep busy longest.
        edges: (source, destination) of each logical edge, ascending.
        rounds: in how many it is used. shared: in how many by several edges. at_once: the most edges in one.
        carried: bytes. seconds: that they take at its full speed.
    """

    row: int
    alike: tuple[int, ...]
    edges: tuple[Edge, ...]
    rounds: int
    shared: int
    at_once: int
    carried: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RouteMap:
    """Logical edges on physical links.

    Attributes:
        schedule: whose they are. word: what the columns of its timeline are, rounds or steps.
        paths: the links of each logical edge in travelling order, or all that carry a part, as texts.
        uses: every link in use, links alike as one; those that are busy longest first.
    """

    schedule: Schedule
    word: str
    paths: dict[Edge, str]
    uses: tuple[LinkUse, ...]


def route_map(schedule: Schedule) -> RouteMap:
    """Lay the logical edges of a schedule on the links that they take.

    Sends meet on a link when they are in one round of the schedule, or, if not every send has a round, in one step.

    Raises:
        InputError: the schedule stands on no fabric.
        CheckFailed: it has no rounds and cannot run.
    """
    topology = schedule.topology
    if topology is None:
        raise InputError("the schedule stands on no fabric", hint="lay it on a topology first")
    step = steps_of(schedule)
    sends = np.flatnonzero((schedule.route != NONE) & (schedule.src != schedule.dst))
    ends, edge = np.unique(
        schedule.src[sends].astype(np.int64) * schedule.ranks + schedule.dst[sends], return_inverse=True
    )
    entry, row, part = _entries(schedule, topology, sends)
    capacity = fabric_arrays(topology).capacity
    carried = np.bincount(row, schedule.send_size[sends[entry]] * part, capacity.size)
    rounds, shared, at_once = _meetings(row, step[sends[entry]], edge[entry], capacity.size)
    pairs = np.unique(row * ends.size + edge[entry])
    edges_of = np.split(pairs % max(ends.size, 1), np.searchsorted(pairs, np.arange(1, capacity.size) * ends.size))
    alike: dict[tuple[bytes, int, int, int], list[int]] = {}
    for r in np.flatnonzero(rounds).tolist():
        alike.setdefault((edges_of[r].tobytes(), int(rounds[r]), int(shared[r]), int(at_once[r])), []).append(r)
    uses = []
    for rows in alike.values():
        worst = max(rows, key=lambda r: (carried[r] / capacity[r], -r))
        found = tuple(divmod(int(ends[e]), schedule.ranks) for e in edges_of[worst])
        numbers = int(rounds[worst]), int(shared[worst]), int(at_once[worst])
        seconds = float(carried[worst] / capacity[worst])
        uses.append(LinkUse(worst, tuple(rows), found, *numbers, float(carried[worst]), seconds))
    word = "round" if np.all(schedule.round != NONE) else "step"
    uses.sort(key=lambda use: (-use.seconds, use.row))
    return RouteMap(schedule, word, _paths(schedule, topology, sends), tuple(uses))


def _entries(schedule: Schedule, topology: Topology, sends: Ints) -> tuple[Ints, Ints, Floats]:
    """Place among the sends, capacity row, and part of its bytes of each use, (n,) each: nothing if switches copy it later."""
    routes = schedule.routes
    begin, count = routes.ptr[schedule.route[sends]], np.diff(routes.ptr)[schedule.route[sends]]
    place = np.repeat(np.arange(sends.size), count)
    entry = np.arange(place.size) + np.repeat(begin - (np.cumsum(count) - count), count)
    link = routes.links[entry].astype(np.int64)
    part = np.ones(entry.size) if routes.share is None else routes.share[entry]
    own = first_alike(schedule.multicast[sends[place]].astype(np.int64), link) == np.arange(link.size)
    part = np.where(own, part, 0.0)
    fabric = fabric_arrays(topology)
    over = np.repeat(np.arange(len(topology.shared)), np.diff(fabric.shared_ptr)) + fabric.links
    order = np.argsort(fabric.shared_link, kind="stable")
    sorted_links = fabric.shared_link[order]
    first, last = (np.searchsorted(sorted_links, link, side) for side in ("left", "right"))
    under = np.repeat(np.arange(link.size), last - first)
    nth = np.arange(under.size) + np.repeat(first - (np.cumsum(last - first) - (last - first)), last - first)
    rows = np.concatenate([link, over[order[nth]]])
    return np.concatenate([place, place[under]]), rows, np.concatenate([part, part[under]])


def _meetings(row: Ints, step: Ints, edge: Ints, rows: int) -> tuple[Ints, Ints, Ints]:
    """Of each row, (M,): steps in which it is used, those in which by several edges, and the most edges in one."""
    steps, most = int(step.max(initial=0)) + 1, int(edge.max(initial=0)) + 1
    met, edges = np.unique(np.unique((row * steps + step) * most + edge) // most, return_counts=True)
    at_once = np.zeros(rows, np.int64)
    np.maximum.at(at_once, met // steps, edges)
    return np.bincount(met // steps, minlength=rows), np.bincount(met[edges > 1] // steps, minlength=rows), at_once


def _paths(schedule: Schedule, topology: Topology, sends: Ints) -> dict[Edge, str]:
    """The first route of each logical edge in words."""
    edge = schedule.src[sends].astype(np.int64) * schedule.ranks + schedule.dst[sends]
    numbers, firsts = np.unique(edge, return_index=True)
    found = {}
    for number, first in zip(numbers.tolist(), firsts.tolist(), strict=True):
        route = int(schedule.route[sends[first]])
        links, shares = schedule.routes.of(route).tolist(), schedule.routes.shares(route)
        if np.all(shares == 1):
            nodes = [topology.links[links[0]].tail, *(topology.links[e].head for e in links)]
            text = " -> ".join(topology.nodes[node].name for node in nodes)
        else:
            text = f"spread over {len(links)} links"
        found[divmod(number, schedule.ranks)] = text
    return found


def route_map_text(found: RouteMap, most: int = TOP) -> list[tuple[str, str]]:
    """The map for people, as (label, text) lines; a label that is empty continues the one above.

    Args:
        found: the map. most: lines of each kind.
    """
    names = _names(found.schedule)
    meeting = [use for use in found.uses if use.shared]
    lines = _listed("routes", [f"{a}→{b}: {path}" for (a, b), path in found.paths.items()], most)
    if meeting:
        lines += _listed("contention", [_meeting(found, use, names) for use in meeting], most)
    elif found.uses:
        lines.append(("contention", f"none: no link carries two edges in one {found.word}"))
    lines += _listed("heaviest", [_weight(found, use, names) for use in found.uses], most)
    return lines or [("routes", "none: nothing is sent")]


def _listed(label: str, texts: Sequence[str], most: int) -> list[tuple[str, str]]:
    shown = list(texts[:most])
    if len(texts) > most:
        shown.append(f"and {len(texts) - most} more")
    return [(label if i == 0 else "", text) for i, text in enumerate(shown)]


def _meeting(found: RouteMap, use: LinkUse, names: Sequence[str]) -> str:
    times = f"all {use.rounds}" if use.shared == use.rounds else f"{use.shared} of {use.rounds}"
    word = found.word if use.rounds == 1 else f"{found.word}s"
    when = f"its one {word}" if use.rounds == 1 else f"{times} {word}"
    crowd = "" if use.at_once == len(use.edges) else f", at most {use.at_once} at once"
    more = len(use.alike) - 1
    alike = f" and {more} link{'s' if more > 1 else ''} more" if more else ""
    return f"{_edges(use.edges)} share {names[use.row]}{alike} in {when}{crowd}: {_amount(use)}"


def _weight(found: RouteMap, use: LinkUse, names: Sequence[str]) -> str:
    more = len(use.alike) - 1
    alike = f", as {more} link{'s' if more > 1 else ''} more" if more else ""
    return f"{names[use.row]}: {_amount(use)}, {_edges(use.edges)}{alike}"


def _edges(edges: Sequence[Edge]) -> str:
    texts = [f"{a}→{b}" for a, b in edges]
    if len(texts) > EDGES:
        texts = [*texts[: EDGES - 1], f"{len(texts) - EDGES + 1} more"]
    word = "edge" if len(texts) == 1 else "edges"
    return f"{word} {', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else f"{word} {texts[0]}"


def _amount(use: LinkUse) -> str:
    return f"{format_size(round(use.carried))}, {format_time(use.seconds)}"


def _names(schedule: Schedule) -> list[str]:
    """Each capacity row with its speed; a NIC goes before its link."""
    topology = schedule.topology
    assert topology is not None
    names, texts = [], topology.describe_links()
    for link, text in zip(topology.links, texts, strict=True):
        ends = [topology.nodes[end] for end in (link.tail, link.head)]
        nic = next((node.name for node in ends if node.kind is Kind.NIC), None)
        speed = format_bandwidth(link.capacity)
        names.append(f"{text} ({speed})" if nic is None else f"NIC {nic} ({text}, {speed})")
    for shared in topology.shared:
        links = [texts[e] for e in shared.links[:EDGES]]
        rest = len(shared.links) - len(links)
        of = " and ".join(
            [", ".join(links), f"{rest} more"] if rest else [", ".join(links[:-1]), links[-1]] if links[1:] else links
        )
        names.append(f"one capacity of {format_bandwidth(shared.capacity)} ({of})")
    return names
