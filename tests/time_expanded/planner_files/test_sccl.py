"""Algorithms of SCCL: steps of sends without routes, and what an algorithm may not do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dualcoll.errors import CheckFailed, InputError
from dualcoll.execution.in_process import execute
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.validate import validate
from dualcoll.time_expanded.planner_files import read_sccl
from tests.time_expanded.planner_files.results import Change, Data, saved

RING = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # by destination, then source: 0 -> 1 -> 2 -> 0


def algorithm() -> Data:
    """An allgather of three ranks on a one-way ring: two steps."""
    return {
        "name": "ring",
        "instance": {"steps": 2, "chunks": 1, "pipeline": None},
        "input_map": {str(rank): [rank] for rank in range(3)},
        "output_map": {str(rank): [0, 1, 2] for rank in range(3)},
        "steps": [
            {"rounds": 1, "sends": [[0, 0, 1], [1, 1, 2], [2, 2, 0]]},
            {"rounds": 1, "sends": [[0, 1, 2], [1, 2, 0], [2, 0, 1]]},
        ],
        "collective": {
            "name": "Allgather(n=3)",
            "runtime_name": "allgather",
            "nodes": 3,
            "chunks": [{"pre": [rank], "post": [0, 1, 2], "addr": rank} for rank in range(3)],
        },
        "topology": {"name": "Ring", "links": RING, "switches": []},
    }


def summed() -> Data:
    """A reduce to rank 0 over the ring: three chunks that begin under one address."""
    return algorithm() | {
        "input_map": {str(rank): [0] for rank in range(3)},
        "output_map": {"0": [0]},
        "steps": [{"rounds": 1, "sends": [[0, 1, 2]]}, {"rounds": 1, "sends": [[0, 2, 0]]}],
        "collective": {"nodes": 3, "chunks": [{"pre": [rank], "post": [0], "addr": 0} for rank in range(3)]},
    }


def read(folder: Path, data: object) -> Schedule:
    return read_sccl(saved(folder, data))


@pytest.mark.parametrize(("data", "sends"), [(algorithm(), 6), (summed(), 2)], ids=("copied", "summed"))
def test_algorithms(tmp_path: Path, data: Data, sends: int) -> None:
    """Steps become rounds, the contract holds, and data arrive."""
    made = read(tmp_path, data)
    validate(made)
    execute(made)
    assert (made.contract.ranks, len(made.src), made.rounds) == (3, sends, 2)


def test_chunks_in_pieces(tmp_path: Path) -> None:
    """A chunk that is cut in two has two addresses, and links carry both in two rounds."""
    data = algorithm()
    data["instance"]["chunks"] = 2
    for key in ("input_map", "output_map"):
        data[key] = {rank: [2 * a + i for a in found for i in (0, 1)] for rank, found in data[key].items()}
    data["steps"] = [
        {"rounds": 2, "sends": [[2 * a + i, src, dst] for a, src, dst in step["sends"] for i in (0, 1)]}
        for step in data["steps"]
    ]
    assert read(tmp_path, data).contract.chunks == 6


def links(value: object) -> Change:
    def do(data: Data) -> None:
        data["topology"]["links"] = value

    return do


def sends(step: int, *more: list[int]) -> Change:
    def do(data: Data) -> None:
        data["steps"][step]["sends"] += more

    return do


def put(*path: Any) -> Change:
    """``put(key, key, value)``."""

    def do(data: Data) -> None:
        at: Any = data
        for key in path[:-2]:
            at = at[key]
        at[path[-2]] = path[-1]

    return do


WRONG: list[tuple[Change, str]] = [
    (sends(0, [0, 1, 2]), "step 0: 2 sends on 1 -> 2, where 1 fit"),
    (sends(0, [0, 1, 2]), "step 0: rank 1 sends chunk 0 to 2 and has it not"),
    (links([[0, 1, 0], [0, 0, 1], [1, 0, 0]]), "step 0: 1 sends on 0 -> 1, where 0 fit"),
    (put("steps", 1, "sends", [[0, 1, 2], [1, 2, 0]]), "rank 1 lacks chunk 2 in the end"),
    (put("topology", "switches", [[[0, 1], [1, 2], 1, "hub"]]), "step 0: 2 sends over switch hub, where 1 fit"),
]


@pytest.mark.parametrize(("fault", "words"), WRONG, ids=lambda row: "")
def test_wrong_algorithms(tmp_path: Path, fault: Change, words: str) -> None:
    """What is sent too early, too much, or never is a finding with its step."""
    data = algorithm()
    fault(data)
    with pytest.raises(CheckFailed) as failed:
        read(tmp_path, data)
    assert words in "\n".join(failed.value.findings)


BAD: list[tuple[Change, str]] = [
    (put("collective", "nodes", 1), "collective: nodes: 1 ranks"),
    (links([[0, 1]]), "topology: links: it is no table of 3 by 3 numbers"),
    (put("instance", "pipeline", 2), "instance: pipeline: its steps overlap"),
    (put("instance", "chunks", 0), "instance: chunks: 0 chunks"),
    (put("input_map", "0", [1]), "input_map: rank 0 has other addresses"),
    (sends(0, [7, 0, 1]), "steps[0]: sends[3]: there is no address 7"),
    (sends(0, [0, 0, 9]), "0 -> 9 is no way"),
    (sends(0, [0, 0]), "steps[0]"),
    (put("topology", "switches", [[[0], 1]]), "topology: switches[0]"),
    (put("topology", "switches", [[[5], [1], 1]]), "it names a rank"),
    (put("collective", "chunks", 0, "pre", [0, 1]), "a chunk does not begin at one rank alone"),
    (put("collective", "chunks", 0, "post", []), "nobody is to have it"),
    (put("collective", "chunks", 0, "post", [9]), "or at none that there are"),
]


@pytest.mark.parametrize(("fault", "words"), BAD, ids=lambda row: "")
def test_unreadable(tmp_path: Path, fault: Change, words: str) -> None:
    """What is no algorithm is refused with its key."""
    data = algorithm()
    fault(data)
    with pytest.raises(InputError) as refused:
        read(tmp_path, data)
    assert words in str(refused.value)


def test_exchange_in_place(tmp_path: Path) -> None:
    """Sums that two ranks exchange in one step would overwrite each other."""
    data = summed()
    data["topology"]["links"] = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    data["steps"] = [{"rounds": 1, "sends": [[0, 1, 2], [0, 2, 1]]}]
    with pytest.raises(InputError, match="exchange chunk 0 in place"):
        read(tmp_path, data)
