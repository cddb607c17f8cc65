from __future__ import annotations

import pytest

from dualcoll.collectives.catalogue import busbw, canonical_name
from dualcoll.errors import InputError


@pytest.mark.parametrize(
    "text", ["allreduce", "all-reduce", "AllReduce", "ALL_REDUCE", "all reduce", " all_reduce_perf ", "allReduce"]
)
def test_any_spelling_is_one_name(text: str) -> None:
    """Case, hyphens, underscores, spaces and the name of the nccl-tests program."""
    assert canonical_name(text) == "allreduce"


@pytest.mark.parametrize("text", ["allgather", "reduce", "", "allreduces"])
def test_other_names_are_refused(text: str) -> None:
    """With the name as given and what is known."""
    with pytest.raises(InputError) as caught:
        canonical_name(text)
    assert str(caught.value) == f"collective {text!r} is not known; use one of allreduce"


@pytest.mark.parametrize(("ranks", "factor"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_bus_bandwidth_is_that_of_nccl_tests(ranks: int, factor: float) -> None:
    """AllReduce: 2 (n-1) / n of the algorithm bandwidth."""
    assert busbw("allreduce", ranks, 100.0) == pytest.approx(100.0 * factor)
