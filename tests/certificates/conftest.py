"""The plans made by hand, as fixtures."""

from __future__ import annotations

import pytest

from dualcoll.plans.document import PlanDocument
from tests.certificates.by_hand import PLANS


@pytest.fixture(scope="session", params=PLANS)
def plan(request: pytest.FixtureRequest) -> PlanDocument:
    """Each of the plans in turn."""
    return PLANS[request.param]


@pytest.fixture(scope="session")
def plans() -> dict[str, PlanDocument]:
    """All of them by name."""
    return PLANS
