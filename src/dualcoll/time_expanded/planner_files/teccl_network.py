"""TE-CCL's timing on the time-expanded network (microsoft/TE-CCL, ``teccl/solvers``), which is not ours everywhere.

A chunk that starts on a link in epoch k can leave its end from k + ⌈α/τ⌉ + ⌈t/τ⌉ on, as here. But the hop from a switch to a
GPU takes its latency alone there, even where that link is slower than the one into the switch. Where chunks are cut (alltoall),
every hop takes its latency and one epoch, and an epoch carries what fits in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualcoll.time_expanded.network import Clock, Network, make_network
from dualcoll.topology.model import Topology

__all__ = ["teccl_network", "true_network", "way_finder"]

Shorts = NDArray[np.int32]

SLACK = 1e-9  # relative: a ratio of floats this close to a whole number is that number


def teccl_network(topology: Topology, chunk: float, clock: Clock) -> Network:
    """A network that counts as TE-CCL does.

    Args:
        topology: the fabric. chunk: bytes; TE-CCL's need not be whole.
        clock: how time is cut. With ``copy``, TE-CCL's model of whole chunks, else that of flows.
    """
    network = true_network(topology, chunk, replace(clock, latent_switches=True))
    latency = network.delay - _sending(network)
    if not clock.copy:
        return replace(network, delay=latency + np.int32(1))
    if clock.latent_switches:
        return network
    at_once = ~network.holds[network.tail] & network.holds[network.head]
    return replace(network, delay=np.where(at_once, latency, network.delay).astype(np.int32))


def true_network(topology: Topology, chunk: float, clock: Clock) -> Network:
    """The same chunks and epochs by the rules of docs/time-expanded.md.

    Where a chunk is not of whole bytes, the network has links that are faster or slower by what rounding changes.
    """
    whole = max(1, round(chunk))
    if abs(whole - chunk) <= SLACK * chunk:
        return make_network(topology, whole, clock=clock)
    links = tuple(replace(link, capacity=link.capacity * whole / chunk) for link in topology.links)
    return replace(make_network(replace(topology, links=links), whole, clock=clock), topology=topology)


def way_finder(network: Network) -> Callable[[tuple[int, ...]], list[int]]:
    """A function from node indices along a way, the first a rank or the only vertex of a switch, to its arcs; empty if there
    is no such way.
    """
    out = {
        (int(tail), int(network.node[head])): arc
        for arc, (tail, head) in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True))
    }
    first = {int(node): vertex for vertex, node in reversed(list(enumerate(network.node.tolist())))}

    def way(nodes: tuple[int, ...]) -> list[int]:
        vertex, arcs = first.get(nodes[0], -1), []
        for node in nodes[1:]:
            arc = out.get((vertex, node))
            if arc is None:
                return []
            arcs.append(arc)
            vertex = int(network.head[arc])
        return arcs

    return way


def _sending(network: Network) -> Shorts:
    """Epochs that sending a chunk takes on each arc, int32 (A,)."""
    rate = np.array([network.rate[network.rows_of(a)].min() for a in range(network.arcs)])
    return np.ceil((1 / rate) * (1 - SLACK)).astype(np.int32)
