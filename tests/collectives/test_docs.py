from __future__ import annotations

import re
from pathlib import Path

import pytest

from dualcoll.collectives.catalogue import COLLECTIVES
from dualcoll.collectives.demand_file import read_demand
from dualcoll.collectives.description import describe
from dualcoll.collectives.group_sets import read_groups
from dualcoll.collectives.mix import read_mix
from tests.packing.fabrics import fabric

TEXT = (Path(__file__).parents[2] / "docs/collectives.md").read_text()


@pytest.fixture
def blocks(tmp_path: Path) -> list[Path]:
    """The examples, each in a file with the suffix of its language."""
    found = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)
    paths = [tmp_path / f"{i}.{language}" for i, (language, _) in enumerate(found)]
    for path, (_, content) in zip(paths, found, strict=True):
        path.write_text(content)
    return paths


def test_the_examples_are_read_as_they_are_explained(blocks: list[Path]) -> None:
    """In the order of the page: groups twice, matrices twice, expert routing, a mix."""
    lines, mapping, plain, named, routing, mix = blocks
    six = fabric(", ".join(f"g{i}-s0:1" for i in range(6)))
    four = fabric(", ".join(f"g{i}-s0:1" for i in range(4)))
    assert read_groups(six, lines) == read_groups(six, mapping)
    assert [name for name, _ in read_groups(six, lines)] == ["left", "right"]
    assert read_demand(plain).cells.tolist() == [[0, 2**20, 0], [2**19, 0, 2**20], [0, 2**22, 0]]
    assert read_demand(named).names == ("gpu0", "gpu1")
    tokens = read_demand(routing).tokens
    assert tokens is not None
    assert (tokens.routed, tokens.rerouted, tokens.token_bytes) == (443, 261, 7168 * 2)
    assert describe(read_mix(mix, four), four) == "mix of 3 collectives on 4 ranks"


def test_every_collective_is_on_the_page() -> None:
    """In the table, by its canonical name."""
    assert all(f"\n| `{name}` |" in TEXT for name in COLLECTIVES)
