"""The benchmark registry, each instance at its small size."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import measure
from benchmarks.instances import INSTANCES, Instance


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_each_instance_meets_its_gap_when_small(instance: Instance) -> None:
    """A benchmark must measure something that works."""
    record = measure(instance, small=True)
    assert record["gap"] <= (instance.gap if record["outcome"] != "limited" else 0.1)
    assert 0 < record["value"] <= record["bound"]
    assert record["ranks"] >= 2
    assert record["depth"] >= 1


def test_names_are_unique() -> None:
    """Rows of the table are told apart by name."""
    names = [instance.name for instance in INSTANCES]
    assert len(names) == len(set(names))
