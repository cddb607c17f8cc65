"""Contracts of workloads: every demand cut into pieces, and what ranks keep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.contract import ALL, Contract
from dualcoll.collectives.workload import Demand, Pattern, Workload, kept_parts

__all__ = ["cut_contract"]


def cut_contract(workload: Workload, parts: Sequence[tuple[int, int]]) -> tuple[Contract, NDArray[np.int64]]:
    """The contract of a workload whose demands are cut into pieces.

    Args:
        workload: its ranks, in order of appearance, are ranks 0 .. R-1 of the contract.
        parts: (demand, pieces); chunks are numbered part by part. Behind them stand the chunks that ranks keep.

    Returns:
        The contract, and the bytes of each chunk that stays where it is, int64.
    """
    number = {node: i for i, node in enumerate(workload.ranks)}
    demands = workload.demands()
    kept = [(g, number[rank], size) for g, group in enumerate(workload.groups) for rank, size in kept_parts(group)]
    ends = [(*_ends(demands[demand], number), demands[demand].group, pieces) for demand, pieces in parts]
    ends += [(rank, rank, group, 1) for group, rank, _ in kept]
    source, target, group, pieces = np.array(ends, np.int64).reshape(-1, 4).T
    root = workload.groups[0].root if len(workload.groups) == 1 else None
    contract = Contract(
        workload.collective,
        len(number),
        np.repeat(source, pieces).astype(np.int32),
        np.repeat(target, pieces).astype(np.int32),
        root=None if root is None else number[root],
        groups=tuple(tuple(number[rank] for rank in member.ranks) for member in workload.groups),
        group=np.repeat(group, pieces).astype(np.int32),
    )
    return contract, np.array([size for *_, size in kept], np.int64)


def _ends(demand: Demand, number: dict[int, int]) -> tuple[int, int]:
    root = ALL if demand.root is None else number[demand.root]
    if demand.pattern is Pattern.SEND:
        assert demand.target is not None
        return root, number[demand.target]
    return (ALL, root) if demand.pattern is Pattern.REDUCE else (root, ALL)
