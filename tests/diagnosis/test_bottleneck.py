from __future__ import annotations

import numpy as np
import pytest

from dualcoll._api import plan
from dualcoll.diagnosis.bottleneck import role, utilisation
from dualcoll.diagnosis.timing import timing
from dualcoll.testing import degrade
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Node, Topology
from tests.packing.exact import FABRIC_KINDS, random_case
from tests.packing.fabrics import fabric

BACK_TO_BACK = fabric(
    "g0-p0:10, g1-p0:10, p0-n0:8, n0-n1:5, g2-p1:10, g3-p1:10, p1-n1:8", boxes="a: g0 g1 p0 n0; b: g2 g3 p1 n1"
)


@pytest.mark.parametrize(
    ("topology", "texts"),
    [
        (catalog("dgx-h100"), ["the 8 GPU - box switch links of box b0 (450 GB/s each way), 100 % used"]),
        (
            catalog("dgx-h100:boxes=4"),
            [
                "the 8 GPU - box switch links of each of the 4 boxes (450 GB/s each way), 100 % used",
                "the 8 GPU - leaf links of each of the 4 boxes (50 GB/s each way), 100 % used",
            ],
        ),
        (
            catalog("dgx-h100:boxes=4,network=leaf-spine,oversubscription=2"),
            ["the 16 leaf - spine links (50 GB/s each way), 100 % used"],
        ),
        (catalog("dgx-1v"), ["the 16 GPU - GPU links of box b0 (25 GB/s to 50 GB/s each way), 100 % used"]),
        (catalog("fat-tree:k=4"), ["the GPU - edge link of each of the 16 boxes (50 GB/s each way), 100 % used"]),
        (fabric("g0-s0:10, g1-s0:10, g2-s0:1"), ["s0 - g2 (1 GB/s each way), 100 % used"]),
        (fabric("g0-s0:10/2, g1-s0:10, g2-s0:10"), ["s0 -> g0 (2 GB/s), 100 % used"]),
        (fabric("h0>h1:1, h1>h2:1, h2>h0:1"), ["the 3 host -> host links of box box0 (1 GB/s), 100 % used"]),
        (fabric("g0-s0:4, g0-s0:3, g1-s0:20"), ["g0 - s0 (3 GB/s to 4 GB/s each way), 100 % used"]),
        (
            fabric("g0-s0:10, g1-s0:10, g2-s0:10", shared="0 1: 12"),
            ["the capacity shared by g0 - s0, s0 - g1 (12 GB/s), 100 % used"],
        ),
        (
            fabric(", ".join(f"g{i}>s0:10, s0>g{i}:10" for i in range(6)), shared="0 2 4 6 8 10: 5"),
            ["the capacity shared by g0 -> s0, g1 -> s0, g2 -> s0, g3 -> s0 and 2 more (5 GB/s), 100 % used"],
        ),
        (BACK_TO_BACK, ["n0 - n1 (5 GB/s each way), 100 % used"]),
        (
            degrade(catalog("dgx-h100:boxes=4"), 1, symmetric=False),
            ["the 8 leaf -> GPU links of each of the 4 boxes (31.1436 GB/s to 50 GB/s), 100 % used"],
        ),
    ],
)
def test_the_limit_is_said_in_words(topology: Topology, texts: list[str]) -> None:
    """Links are grouped by what they join and where they stand; few are named, one-way limits have a direction."""
    assert [group.text for group in plan(topology).bottleneck] == texts


@pytest.mark.parametrize(
    ("topology", "collective", "texts"),
    [
        (catalog("dgx-h100:boxes=4"), "alltoall", [(1.0, "the 8 GPU -> leaf links of each of the 4 boxes (50 GB/s)")]),
        (catalog("dgx-h100:boxes=2"), "broadcast", [(1.0, "the 8 GPU -> leaf links of box b0 (50 GB/s)")]),
        (
            catalog("dgx-h100:boxes=2"),
            "gather",
            [(0.9, "b0.nvswitch -> b0.g0 (450 GB/s)"), (0.1, "leaf0 -> b0.g0 (50 GB/s)")],
        ),
        (fabric("g0-s0:10, g1-s0:10, g2-s0:10/2"), "allgather", [(1.0, "s0 -> g2 (2 GB/s)")]),
        (fabric("g0-s0:10/3, g1-s0:10, g2-s0:10"), "reduce", [(1.0, "s0 -> g0 (3 GB/s)")]),
    ],
)
def test_limits_of_other_collectives(topology: Topology, collective: str, texts: list[tuple[float, str]]) -> None:
    """One way only: the last stretch into a root, the first one out of it, what leaves a box."""
    found = [(round(group.price_share, 4), group.text) for group in plan(topology, collective).bottleneck]
    assert found == [(share, f"{text}, 100 % used") for share, text in texts]


def test_part_of_the_boxes_is_counted() -> None:
    """Three hosts of four take part: a plain count with the number of boxes."""
    (group,) = plan(fabric("h0-s0:2, h1-s0:2, h2-s0:2, h3-s0:2"), ranks="0-2").bottleneck
    assert group.text == "the 3 host - s links in 3 boxes (2 GB/s each way), 100 % used"


@pytest.mark.parametrize("kind", FABRIC_KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_price_shares_sum_to_one_and_priced_links_are_full(seed: int, kind: str) -> None:
    """Complementary slackness, as people read it: what limits the plan is used to the full."""
    made = plan(random_case(kind, seed))
    shares = [group.price_share for group in made.bottleneck]
    assert sum(shares) == pytest.approx(1.0, abs=1e-4)
    assert shares == sorted(shares, reverse=True)
    for group in made.bottleneck:
        low, high = group.utilisation
        assert 0 <= low <= high <= 1
        if group.price_share > 1e-3:
            assert high == pytest.approx(1.0, abs=1e-5)


def test_utilisation_counts_every_row() -> None:
    """Links, then shared capacities: load over capacity."""
    made = plan(fabric("g0-s0:10, g1-s0:40", shared="0: 16; 1: 64"))
    assert utilisation(made).tolist() == pytest.approx([0.8, 0.8, 0.2, 0.2, 1.0, 0.25])


@pytest.mark.parametrize("routing", ["spray", "spray-cables", "ecmp"])
def test_utilisation_counts_shares(routing: str) -> None:
    """Tree by tree, hop by hop: two cables share what is sprayed, and no hash sends less than all over one."""
    made = plan(fabric("g0-s0:4, g0-s0:4, g1-s0:8, g2-s0:8, g2-s0:2"), "allgather", routing=routing)
    loads = np.zeros(len(made.topology.links))
    for tree in made.trees:
        shares = np.ones(tree.route_links.size) if tree.route_share is None else tree.route_share
        for e, share in zip(tree.route_links.tolist(), shares.tolist(), strict=True):
            loads[e] += tree.rate * share
    capacity = np.array([link.capacity for link in made.topology.links])
    np.testing.assert_allclose(utilisation(made), loads / capacity, rtol=1e-12)
    assert utilisation(made).max() == pytest.approx(1.0, abs=1e-5)


def test_many_paths_are_counted_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums do not depend on how many trees are looked at together."""
    made = plan(catalog("torus:3x3"), "alltoall")
    whole, times = utilisation(made), timing(made)
    monkeypatch.setattr("dualcoll.diagnosis.batches.MANY_HOPS", 7)
    np.testing.assert_allclose(utilisation(made), whole, rtol=1e-12)
    assert timing(made) == times


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Node("leaf12", Kind.SWITCH), "leaf"),
        (Node("pod3.core-switch_7", Kind.SWITCH), "core-switch"),
        (Node("10.0.0.7", Kind.SWITCH), "switch"),
        (Node("nvswitch", Kind.SWITCH, box="b0"), "box switch"),
        (Node("mlx5_0", Kind.NIC), "NIC"),
        (Node("a", Kind.CPU), "CPU"),
        (Node("a", Kind.PCI), "PCIe"),
        (Node("a", Kind.HOST), "host"),
        (Node("a", Kind.GPU), "GPU"),
    ],
)
def test_roles_in_a_word(node: Node, text: str) -> None:
    """Network switches go by their names without numbers; all else by kind."""
    assert role(Topology((node,), ()), 0) == text


def test_a_plan_carries_its_bottlenecks() -> None:
    """The indices are those of the fabric's links, both directions of the cable here."""
    topology = fabric("g0-s0:10, g1-s0:1")
    (group,) = plan(topology).bottleneck
    assert group.links == (2, 3)
    assert group.price_share == pytest.approx(1.0, abs=1e-6)
