from __future__ import annotations

import pytest

from dualcoll.collectives.catalogue import COLLECTIVES, busbw, canonical_name, title
from dualcoll.errors import InputError


@pytest.mark.parametrize(
    "text", ["allreduce", "all-reduce", "AllReduce", "ALL_REDUCE", "all reduce", " all_reduce_perf ", "allReduce"]
)
def test_any_spelling_is_one_name(text: str) -> None:
    """Case, hyphens, underscores, spaces and the name of the nccl-tests program."""
    assert canonical_name(text) == "allreduce"


@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_collective_is_known_by_its_title_and_program(name: str) -> None:
    """What is shown to people can be typed, and so can the name of the program that measures it."""
    assert canonical_name(title(name)) == canonical_name(f"{name}_perf") == name


@pytest.mark.parametrize("text", ["allreduces", "", "sendrecv"])
def test_other_names_are_refused(text: str) -> None:
    """With the name as given and what is known."""
    with pytest.raises(InputError) as caught:
        canonical_name(text)
    assert str(caught.value) == (
        f"collective {text!r} is not known; use one of allreduce, broadcast, reduce, allgather, reducescatter, gather, "
        "scatter, alltoall, alltoallv"
    )


@pytest.mark.parametrize(
    ("collective", "factor"),
    [
        ("allreduce", 1.5),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("allgather", 0.75),
        ("reducescatter", 0.75),
        ("gather", 0.75),
        ("scatter", 0.75),
        ("alltoall", 0.75),
        ("alltoallv", 0.75),
    ],
)
def test_bus_bandwidth_is_that_of_nccl_tests(collective: str, factor: float) -> None:
    """The factor for 4 ranks."""
    assert busbw(collective, 4, 100.0) == pytest.approx(100.0 * factor)
