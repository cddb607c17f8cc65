from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualcoll.errors import CheckFailed
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.order import running_order
from dualcoll.simulation import Options, simulate
from tests.simulation.reference import reference
from tests.simulation.samples import options, schedules

MOMENTS = ("start", "left", "arrived", "reduced", "end")


def runs(schedule: Schedule, chosen: Options) -> bool:
    try:
        running_order(schedule, chosen.depth)
    except CheckFailed:
        return False
    return True


@given(st.data(), schedules())
@settings(max_examples=150)
def test_alpha_beta_is_what_the_document_says(data: st.DataObject, schedule: Schedule) -> None:
    """Every moment of every send is that of a slow simulator in fractions, to the last digit."""
    chosen = data.draw(options("alpha-beta"))
    assume(runs(schedule, chosen))
    trace = simulate(schedule, chosen)
    for send in reference(schedule, chosen):
        for name in MOMENTS:
            exact = getattr(send, name)
            found = getattr(trace, name)[send.number]
            assert (exact is None and np.isnan(found)) or float(exact) == found, (send.number, name)


@given(st.data(), schedules())
@settings(max_examples=150)
def test_fluid_is_what_the_document_says(data: st.DataObject, schedule: Schedule) -> None:
    """Every moment of every send is that of a slow simulator in fractions, whose rates are filled from scratch each time."""
    chosen = data.draw(options("fluid"))
    assume(runs(schedule, chosen))
    trace = simulate(schedule, chosen)
    for send in reference(schedule, chosen):
        for name in MOMENTS:
            exact = getattr(send, name)
            found = getattr(trace, name)[send.number]
            assert (exact is None and np.isnan(found)) or float(exact) == pytest.approx(found, rel=1e-9), (
                send.number,
                name,
            )
