"""Groups that share links, and different collectives at once, each claim proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualcoll._api import check, plan
from dualcoll.collectives.mix import read_mix
from dualcoll.collectives.request import make_groups
from dualcoll.collectives.workload import Objective, Workload
from dualcoll.plans.model import Plan
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Topology
from tests.cli.conftest import Run
from tests.packing.fabrics import GB, fabric

TRAINING = Path(__file__).parents[2] / "examples" / "mix-32-gpus.yaml"
BOXES = "dgx-h100:boxes=4,network=rail"

# two leaves, 3 GB/s between them
LEAVES = fabric("g0-s0:4, g1-s0:4, s0-s1:3, g2-s1:4, g3-s1:4")


def _proved(topology: Topology, work: Workload | str, **asked: object) -> Plan:
    made = plan(topology, work, **asked)  # type: ignore[arg-type]
    check(made)
    assert made.gap < 1e-6
    return made


@pytest.mark.parametrize(
    ("collective", "groups", "each", "total"),
    [
        ("allgather", "0,2;0-2", 18 / 7, 6),
        ("allgather", "0-3;0,1", 16 / 5, 8),
        ("allreduce", "0-3;0,1", 11 / 6, 4),
    ],
)
def test_two_groups_that_share_links(collective: str, groups: str, each: float, total: float) -> None:
    """If the slowest counts both are as fast; if the total counts there is more in all, and less for one of them."""
    even = _proved(LEAVES, collective, groups=groups, objective="slowest")
    most = _proved(LEAVES, collective, groups=groups, objective="total")
    assert [rate / GB for rate in even.group_rates()] == pytest.approx([each, each], rel=1e-6)
    assert even.value == pytest.approx(each * GB, rel=1e-6)
    assert most.value == pytest.approx(total * GB, rel=1e-6)
    assert sum(most.group_rates()) == pytest.approx(most.value, rel=1e-9)
    assert sum(most.group_rates()) > 1.05 * sum(even.group_rates())
    assert min(most.group_rates()) < even.value
    assert even.in_network is not None
    assert most.in_network is None


def test_training_at_once_is_faster_than_in_turns() -> None:
    """Gradients, layers and experts on 32 GPUs: 1.37 times faster at once than any plans one after another.

    The bounds of the three alone, added up, prove it. The prices say why: inside the boxes links limit nothing but the
    layers, and at once they are filled while the links between the boxes, which limit the plan of all three, never rest.
    """
    topology = catalog(BOXES)
    together = read_mix(TRAINING, topology)
    made = _proved(topology, together)
    at_once = together.size / made.value
    least_in_turns = 0.0
    for entry in ("data", "tensor", "expert"):
        alone = Workload(tuple(g for g in together.groups if g.name.partition("[")[0] == entry))
        single = _proved(topology, alone)
        least_in_turns += alone.size / single.bound
        assert ("box switch" in _limit(single)) == (entry == "tensor")
    assert least_in_turns >= 1.2 * at_once
    assert least_in_turns / at_once == pytest.approx(1.37333, rel=1e-4)
    assert _limit(made) == "the 8 GPU -> leaf links of each of the 4 boxes (50 GB/s), 100 % used"
    assert together.size / made.bound >= at_once * (1 - 1e-6)


def _limit(made: Plan) -> str:
    return "; ".join(limit.text for limit in made.bottleneck)


def test_the_example_is_planned_from_the_command_line(run: Run, tmp_path: Path) -> None:
    """Thirteen groups, each with its rate; the saved plan checks."""
    file = tmp_path / "plan.json"
    done = run("plan", BOXES, "--mix", TRAINING, "-o", file)
    assert done.code == 0
    assert "of 3 collectives on 32 ranks" in done.out
    assert "data[0]: AllReduce of 4 ranks, 512 MiB at 26.6667 GB/s" in done.out
    assert run("check", file).code == 0


def test_the_total_of_a_mix_is_no_less_than_where_the_slowest_counts() -> None:
    """Gradients and layers on 16 GPUs: the sum of all rates, proved for both."""
    topology = catalog("dgx-h100:boxes=2,network=rail")
    groups = (
        *make_groups(topology, "allreduce", size="64MiB", groups="groups of stride 8", name="data"),
        *make_groups(topology, "allgather", size="512MiB", groups="groups of 8", name="tensor"),
    )
    even = _proved(topology, Workload(groups))
    most = _proved(topology, Workload(groups, Objective.TOTAL))
    assert most.value >= sum(even.group_rates()) * (1 - 1e-9)
