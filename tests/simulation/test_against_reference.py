from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualcoll.errors import CheckFailed, InputError
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


@given(st.data(), st.booleans().flatmap(lambda copies: schedules(copies=copies)))
@settings(max_examples=200)
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


@given(schedules(copies=True), st.sampled_from([1, 2, 3]))
@settings(max_examples=50)
def test_in_order_on_channels_with_little_room(schedule: Schedule, depth: int) -> None:
    """Either every send ends when the slow simulator says, or some never do and the schedule is refused."""
    chosen = Options(in_order=True, depth=depth)
    assume(runs(schedule, chosen))
    expected = [send.end for send in reference(schedule, chosen)]
    if None in expected:
        stuck = sum(end is None for end in expected)
        with pytest.raises(
            InputError, match=f"in_order: {stuck} of {len(expected)} sends never get their turn: channels of"
        ):
            simulate(schedule, chosen)
    else:
        assert simulate(schedule, chosen).end.tolist() == expected


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
