from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.kernels.shared_rates import FLOW, ROW, UNIT, USE, join, part, settle
from dualcoll.kernels.water_filling import fill


class Network:
    """Random flows over rows, some of which share a rate, that come and go."""

    def __init__(self, seed: int, flows: int, rows: int, units: int) -> None:
        self.rng = np.random.default_rng(seed)
        count = self.rng.integers(1, 4, flows)
        ends = np.cumsum(count)
        self.flows, self.uses = np.zeros(flows, FLOW), np.zeros(int(ends[-1]), USE)
        self.units, self.rows = np.zeros(units, UNIT), np.zeros(rows, ROW)
        self.flows["unit"] = np.arange(flows) if units == flows else self.rng.integers(units, size=flows)
        self.flows["first_use"], self.flows["last_use"], self.flows["left"] = ends - count, ends, 1e9
        self.uses["unit"] = np.repeat(self.flows["unit"], count)
        self.uses["row"] = self.rng.integers(rows, size=self.uses.size)
        self.uses["load"] = self.rng.choice([0.25, 0.5, 1.0, 3.0], self.uses.size)
        for table in (self.units, self.rows):
            table["first"] = table["mark"] = -1
        self.picked, self.touched = np.zeros(units + 1, np.int32), np.zeros(rows + 1, np.int32)
        self.present: set[int] = set()

    def change(self, flow: int) -> None:
        step = part if flow in self.present else join
        step(self.flows, self.uses, self.units, self.rows, flow, self.picked, self.touched)
        self.present ^= {flow}

    def settle(self) -> dict[int, float]:
        """Rates of the units present."""
        settle(self.flows, self.uses, self.units, self.rows, self.picked, self.touched, 0.0)
        self.rows["mark"], self.touched[0] = -1, 0
        return {
            int(self.flows[flow]["unit"]): float(self.units[self.flows[flow]["unit"]]["rate"]) for flow in self.present
        }

    def from_scratch(self) -> dict[int, float]:
        """The same from one filling of all."""
        flows = sorted(self.present)
        use = np.concatenate([np.arange(*self.flows[["first_use", "last_use"]][flow].tolist()) for flow in flows])
        use = use[np.argsort(self.uses["row"][use], kind="stable")]
        names, user = np.unique(self.uses["unit"][use], return_inverse=True)
        ptr = np.searchsorted(self.uses["row"][use], np.arange(self.rows.size + 1))
        rate, *_ = fill(ptr, user, self.uses["load"][use], np.ones(self.rows.size), names.size)
        return dict(zip(names.tolist(), rate.tolist(), strict=True))


@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 30]), st.sampled_from([2, 12]), st.booleans())
@settings(max_examples=60)
def test_rates_after_changes_are_those_of_filling_all(seed: int, flows: int, rows: int, alone: bool) -> None:
    """However flows come and go, singly and several at once, alone or with one rate together."""
    network = Network(seed, flows, rows, flows if alone else max(1, flows // 4))
    for _ in range(30):
        for flow in network.rng.choice(flows, int(network.rng.integers(1, 4)), replace=False).tolist():
            network.change(flow)
        found = network.settle()
        if network.present:
            assert found == pytest.approx(network.from_scratch(), rel=1e-7)


def test_only_what_a_change_moves_is_filled_anew() -> None:
    """Two rows apart: a flow that joins one leaves the rate on the other alone, to the last digit and without touching it."""
    network = Network(0, 3, 2, 3)
    network.uses = np.zeros(3, USE)
    network.uses["unit"], network.uses["row"], network.uses["load"] = [0, 1, 2], [0, 1, 0], [1 / 3, 1 / 7, 1 / 3]
    network.flows["first_use"], network.flows["last_use"] = [0, 1, 2], [1, 2, 3]
    network.change(0)
    network.change(1)
    before = network.settle()
    network.change(2)
    settle(network.flows, network.uses, network.units, network.rows, network.picked, network.touched, 5.0)
    assert network.touched[: 1 + network.touched[0]].tolist() == [1, 0]
    assert network.units["rate"].tolist() == [pytest.approx(1.5), before[1], pytest.approx(1.5)]
    assert network.flows["since"].tolist() == [5, 0, 5]
