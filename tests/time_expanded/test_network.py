"""The time-expanded network: epochs, delays, what fits, switches."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.time_expanded.network import FAR, Clock, make_network
from dualcoll.time_expanded.problem import Problem
from dualcoll.topology.model import Forwarding, Kind, Link, Node, SharedCapacity, Topology
from tests.time_expanded.fabrics import GB, US, dgx1, dgx2, star

KB25 = 25_000


def line(*capacities: float, latency: float = 0.0) -> Topology:
    """GPUs in a row, one-way links."""
    nodes = tuple(Node(f"g{i}", Kind.GPU) for i in range(len(capacities) + 1))
    return Topology(nodes, tuple(Link(i, i + 1, c, latency) for i, c in enumerate(capacities)))


def test_fastest_epoch() -> None:
    """The fastest link's time of a chunk is an epoch, and links half as fast take two."""
    network = make_network(dgx1(), KB25)
    assert network.epoch == 0.5e-6
    assert sorted(set(network.delay.tolist())) == [1, 2]
    assert {network.starts[row] for row in range(32)} == {((1, 1),), ((2, 1),)}


def test_slowest_epoch() -> None:
    """With the slowest link's epoch, fast links take two starts in each."""
    network = make_network(dgx1(0.7 * US), KB25, clock=Clock("slowest"))
    assert network.epoch == 1e-6
    assert set(network.delay.tolist()) == {2}
    assert {network.starts[row] for row in range(32)} == {((1, 1),), ((1, 2),)}


def test_multiplier_and_seconds() -> None:
    """An epoch can be given, and stretched."""
    assert make_network(dgx1(), KB25, clock=Clock(2e-6)).epoch == 2e-6
    assert make_network(dgx1(), KB25, clock=Clock("fastest", 4)).epoch == 2e-6


def test_latency_in_epochs() -> None:
    """Latency is rounded up to whole epochs, and left out below the threshold."""
    fabric = dgx1(0.7 * US)
    assert make_network(fabric, KB25).delay.min() == 1 + 2
    assert make_network(fabric, 25 * KB25, clock=Clock(ignored_latency=0.1)).delay.min() == 1
    assert make_network(fabric, 25 * KB25, clock=Clock(ignored_latency=0.1)).ignored == 0.7 * US
    assert make_network(fabric, 25 * KB25).delay.min() == 2


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0, 4.0, 1.9, 9.5, 0.4, 1 / 3])
def test_never_delivered_before_sent(ratio: float) -> None:
    """As many starts as the windows allow, one after the other, have all left the link when they are delivered."""
    network = make_network(line(1.0, 1 / ratio), 1, clock=Clock(1.0))
    delay = int(network.delay[1])
    assert delay == math.ceil(ratio - 1e-9)
    starts: list[int] = []
    for k in range(60):
        while all(sum(k - w < s <= k for s in starts) < n for w, n in network.starts[1]):
            starts.append(k)
    free = Fraction(0)
    for k in starts:
        free = max(free, Fraction(k)) + Fraction(ratio)
        assert free <= k + delay + Fraction(1, 10**6)
    assert len(starts) >= {1.0: 60, 1.5: 40, 2.0: 30, 4.0: 15, 1.9: 30, 9.5: 6, 0.4: 120, 1 / 3: 180}[ratio]


@given(st.fractions(Fraction(1, 4), 6, max_denominator=12))
def test_windows_are_exact(ratio: Fraction) -> None:
    """A burst that the windows forbid would be delivered before it is sent: one more start in any window is late."""
    network = make_network(line(1.0, float(1 / ratio)), 1, clock=Clock(1.0))
    for window, starts in network.starts[1]:
        last = Fraction(window - 1) + math.ceil(ratio)
        assert (starts + 1) * ratio > last >= starts * ratio


def test_switch_hops() -> None:
    """A chunk crosses a switch as it comes, or in epochs of each hop."""
    at_once = make_network(dgx2(), 125_000_000, clock=Clock(ignored_latency=0.1))
    assert at_once.distances()[0, 1] == 1
    latent = make_network(dgx2(), 125_000_000, clock=Clock(ignored_latency=0.1, latent_switches=True))
    assert latent.distances()[0, 1] == 2


def test_slow_link_into_a_switch() -> None:
    """Over a switch, the slowest link of the way says when a chunk has come."""
    nodes = (Node("a", Kind.GPU), Node("b", Kind.GPU), Node("w", Kind.SWITCH))
    for rates in ((1.0, 0.25), (0.25, 1.0), (0.5, 0.25), (0.25, 0.25)):
        fabric = Topology(nodes, (Link(0, 2, rates[0]), Link(2, 1, rates[1])))
        network = make_network(fabric, 1, clock=Clock(1.0))
        assert network.distances()[0, 1] == 1 / min(rates)


def test_no_circle_without_delay() -> None:
    """Switches that pass chunks on at once are layered, so that no chunk can come from itself."""
    nodes = (*(Node(f"g{i}", Kind.GPU) for i in range(4)), *(Node(f"w{i}", Kind.SWITCH) for i in range(3)))
    cables = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6), (4, 5)]
    fabric = Topology(nodes, tuple(Link(a, b, 1.0) for t, h in cables for a, b in ((t, h), (h, t))))
    network = make_network(fabric, 1)
    height = np.zeros(network.vertices, int)
    for _ in range(network.vertices):
        for tail, head, delay in zip(network.tail, network.head, network.delay, strict=True):
            if delay == 0:
                height[head] = max(height[head], height[tail] + 1)
    assert height.max() < network.vertices
    assert network.distances()[0, 2] == 1


def test_shared_capacities() -> None:
    """An arc is slow where a capacity that it shares is, and both rows limit it."""
    fabric = Topology(line(2.0, 2.0).nodes, line(2.0, 2.0).links, (SharedCapacity((0, 1), 1.0),))
    network = make_network(fabric, 1)
    assert network.epoch == 1.0
    assert network.rows_of(0).tolist() == [0, 2]
    assert network.starts[2] == ((1, 1),)


def test_holders_that_are_no_ranks() -> None:
    """A GPU that takes no part holds chunks where GPUs forward, and is not there where they do not."""
    fabric = line(1.0, 1.0)
    everybody = make_network(fabric, 1, nodes=(0, 2), forwarding=Forwarding.ALL)
    assert everybody.holds.all()
    assert everybody.distances()[0, 1] == 2
    with pytest.raises(InputError) as raised:
        make_network(fabric, 1, nodes=(0, 2))
    assert str(raised.value) == "no link leads from a rank to a rank"


def test_transposed_twice() -> None:
    """Time run backwards twice is time run forwards."""
    network = make_network(dgx2(), 10**6)
    back = network.transposed().transposed()
    assert np.array_equal(back.tail, network.tail)
    assert np.array_equal(back.delay, network.delay)


def test_reductions_take_time() -> None:
    """What is reduced is late by the time of reducing it, and a rank reduces one chunk after the other."""
    network = make_network(dgx1(), KB25, clock=Clock(reduction_speed=25 * GB)).transposed()
    assert sorted(set(network.delay.tolist())) == [3, 4]
    assert network.row_name(int(network.rows_of(0)[1])) == "reductions at " + network.name(int(network.tail[0]))
    assert network.starts[-1] == ((2, 1),)


def test_counted_variables() -> None:
    """The paper's example: one chunk, four links, five nodes, ten epochs."""
    fabric = star()
    one_way = Topology(fabric.nodes, tuple(link for link in fabric.links if link.tail < link.head))
    contract = make_contract("broadcast", 5)
    count = Problem(make_network(one_way, 10**6), contract).count(10)
    assert (count.flows, count.buffers) == (40, 50)


def test_unreachable() -> None:
    """A rank that cannot be reached is named."""
    fabric = line(1.0, 1.0)
    network = make_network(fabric, 1)
    assert network.distances()[2, 0] == FAR
    with pytest.raises(InputError) as raised:
        Problem(network, make_contract("allgather", 3))
    hint = "GPUs and hosts that are no ranks forward nothing (see --forward): check the links"
    assert str(raised.value) == f"rank g0 cannot be reached from g1; {hint}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epoch": "quick"}, "epoch: 'quick' is not known; use fastest, slowest or seconds"),
        ({"epoch": -1.0}, "epoch: -1.0 is not a finite number > 0"),
        ({"multiplier": float("inf")}, "multiplier: inf is not a finite number > 0"),
        ({"ignored_latency": 1.5}, "ignored_latency: 1.5 is not in [0, 1)"),
        ({"buffer": -1}, "buffer: -1 is below 0"),
    ],
)
def test_clock_errors(fields: dict[str, object], message: str) -> None:
    """What cannot be is said."""
    with pytest.raises(InputError) as raised:
        Clock(**fields)  # type: ignore[arg-type]
    assert str(raised.value) == message


def test_chunk_of_no_bytes() -> None:
    """A chunk has bytes."""
    with pytest.raises(InputError, match="a chunk of 0 bytes"):
        make_network(dgx1(), 0)
