"""Whatever is done to a plan's data, the answer is a proof, a finding or an input error."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.certificates import check_plan
from dualcoll.collectives.catalogue import COLLECTIVES
from dualcoll.errors import CheckFailed, InputError
from dualcoll.plans.conversion import document_to_plan
from dualcoll.plans.document import PlanDocument
from dualcoll.plans.file import document_from_dict, plan_to_dict
from dualcoll.routing.model import RoutingKind

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.floats(min_value=0, allow_infinity=False),
    st.sampled_from(
        [*("g0", "g1", "sw", "reduce", "broadcast", "all", "", "\ud800", "50GB/s"), *COLLECTIVES, *RoutingKind, "total"]
    ),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just(["g0", "g1"]),
    st.just([["g0", 1]]),
)


@settings(max_examples=300)
@given(st.data())
def test_no_traceback(plans: dict[str, PlanDocument], data: st.DataObject) -> None:
    """One to three random changes anywhere in a valid plan never surface as anything but one of the three answers."""
    forged = plan_to_dict(document_to_plan(plans[data.draw(st.sampled_from(sorted(plans)))]))
    for _ in range(data.draw(st.integers(1, 3))):
        _change(forged, data)
    try:
        document = document_from_dict(forged, "plan.json")
        proof = check_plan(document)
    except InputError as error:
        said = [str(error)]
    except CheckFailed as failed:
        said = list(failed.findings)
    else:
        said = []
        assert proof.rate >= document.claims.rate
        assert proof.bound <= document.claims.bound
        assert proof.utilisation <= 1
    assert all(sentence.isprintable() for sentence in said)


def _change(forged: dict[str, Any], data: st.DataObject) -> None:
    """Replace, remove or repeat one value at a random place."""
    place: Any = forged
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        deeper = isinstance(place[key], dict | list) and data.draw(st.integers(0, 9)) > 0
        if not deeper:
            break
        place = place[key]
    action = data.draw(st.sampled_from(["replace", "remove", "repeat", "swap"]))
    if action == "remove":
        del place[key]
    elif action == "repeat" and isinstance(place, list):
        place.append(copy.deepcopy(place[key]))
    elif action == "swap" and isinstance(place, list):
        other = data.draw(st.sampled_from(keys))
        place[key], place[other] = place[other], place[key]
    elif isinstance(place[key], int | float) and data.draw(st.booleans()):
        place[key] *= data.draw(st.sampled_from([0.5, 1 + 2**-52, 2, 1e300, -1]))
    else:
        place[key] = copy.deepcopy(data.draw(JUNK))
