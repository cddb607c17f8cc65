import pytest

from dualcoll.plans.model import Plan
from dualcoll.reporting.sharing import sharing_record, sharing_text
from dualcoll.sharing import share
from tests.sharing.plans import broadcast, fabric, made_plan


def two_trees(rates: tuple[float, ...]) -> Plan:
    """Trees from one GPU to another that share a link of 150 GB/s."""
    topology = fabric(2, [(0, 1, 150e9)])
    return made_plan(topology, [broadcast(topology, rate, [0]) for rate in rates])


def test_the_example_of_the_text() -> None:
    """Rates of 100 and 50 by three copies of 50 (docs/sharing.md): the optimum, the guarantee, both deliveries, each tree."""
    assert sharing_text(share(two_trees((100e9, 50e9)))) == [
        ("sharing", "explicit rates: 150 GB/s algbw"),
        (
            "",
            "3 copies of 2 trees (y = 1), each at X* = 50 GB/s or more: y k X* = 100 GB/s guaranteed for all trees together",
        ),
        ("", "max-min, all flows of a tree at one rate, delivers 150 GB/s algbw, 100 % of the explicit"),
        ("", "max-min, every flow for itself, delivers 150 GB/s algbw, 100 % of the explicit"),
        ("", "tree 0: 100 GB/s wanted, 2 copies, 100 GB/s at one rate, 100 GB/s flow by flow"),
        ("", "tree 1: 50 GB/s wanted, 1 copy, 50 GB/s at one rate, 50 GB/s flow by flow"),
    ]


def test_a_record_has_every_tree() -> None:
    """The text stops after eight trees and says so; the record has all."""
    shared = share(two_trees((15e9,) * 10), copies=2)
    assert [text for _, text in sharing_text(shared)][-1] == "and 2 more trees (--json has all)"
    assert sum(text.startswith("tree ") for _, text in sharing_text(shared)) == 8
    rates = [15.0] * 10
    everything = {
        "total_GBps": pytest.approx(150),
        "value_GBps": pytest.approx(150),
        "rates_GBps": pytest.approx(rates),
    }
    assert sharing_record(shared) == {
        "scale": 2,
        "trees": 10,
        "copy_rate_GBps": 7.5,
        "guaranteed_GBps": 150.0,
        "copies": [2] * 10,
        "limit_row": [0] * 10,
        "delivered": dict.fromkeys(("explicit", "floor", "coupled", "by_flow"), everything),
    }
