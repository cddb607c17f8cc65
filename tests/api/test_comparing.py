"""Every method at every size."""

from __future__ import annotations

from typing import Any

import pytest

from dualcoll._api import compare, plan, usual_choice
from dualcoll._api.comparing import sizes_of
from dualcoll.errors import InputError
from dualcoll.progress import Gap
from dualcoll.topology.catalog import catalog


def test_different_methods_win_at_different_sizes() -> None:
    """On two boxes: few rounds win at 1 KiB, something near the bound at 1 GiB, and no result beats the bound."""
    found = compare(catalog("dgx-h100:boxes=2,network=rail"), sizes=["1K", "1G"], stop=Gap(0.01))
    assert found.sizes == (1024, 2**30)
    assert found.winner(1024).method != "trees"
    assert found.fraction(found.winner(2**30)) >= 0.9
    assert found.crossovers() == ((2**30, found.winner(1024).method, found.winner(2**30).method),)
    assert all(found.fraction(result) <= 1 + 1e-9 for result in found.results)
    assert {"ring", "double-tree", "balanced", "leader"} <= {result.method for result in found.results}


@pytest.mark.parametrize(
    "collective", ["broadcast", "reduce", "gather", "scatter", "alltoall", "reducescatter", "allgather"]
)
def test_every_collective_is_compared(collective: str) -> None:
    """No simulated time is below what the bound and latency allow."""
    found = compare(catalog("dgx-1v"), collective, sizes="64K:128K", stop=Gap(0.01))
    assert found.sizes == (65536, 131072)
    others = {result.method for result in found.results} - {"trees"}
    assert others or found.skipped
    assert all(found.fraction(result) <= 1 + 1e-9 for result in found.results)


def test_methods_that_do_not_apply_say_why() -> None:
    """Hierarchies need several boxes."""
    found = compare(catalog("dgx-1v"), sizes=[1024], stop=Gap(0.01))
    assert {"balanced", "leader"} <= {method for method, _ in found.skipped}


def test_the_usual_choice_is_a_ring_or_a_tree() -> None:
    """And slower than the bound."""
    made = plan(catalog("dgx-1v"), size="64M", stop=Gap(0.01))
    usual = usual_choice(made)
    assert usual is not None
    assert usual.method in ("ring", "tree", "double-tree")
    assert usual.size / usual.seconds <= made.bound


def test_sizes_double_or_are_listed() -> None:
    """Both ends of a range are in it if they are powers of two apart."""
    assert sizes_of("1K:8K") == [1024, 2048, 4096, 8192]
    assert sizes_of("3M,1K") == [1024, 3 * 2**20]
    assert sizes_of(["2K", 7]) == [7, 2048]
    unusable: tuple[str | list[int | str], ...] = ("8K:1K", "x", "", [])
    for wrong in unusable:
        with pytest.raises(InputError):
            sizes_of(wrong)


@pytest.mark.parametrize("asked", [{"weights": (1, 1, 2, 0)}, {"routing": "ecmp"}, {"groups": "groups of 2"}])
def test_no_usual_choice_for_another_message_or_other_routes(asked: dict[str, Any]) -> None:
    """The usual algorithms have equal shards, one group and chosen routes; elsewhere they could beat the bound."""
    assert usual_choice(plan(catalog("star:4"), "allgather", size="1M")) is not None
    assert usual_choice(plan(catalog("star:4"), "allgather", size="1M", **asked)) is None
