"""NVLinks from the NV# cells of ``nvidia-smi topo -m``.

NV# counts links, but not whether they run to the other GPU or into a switch. A GPU has 4, 6, 12 or 18 of them: where the NV# of
its row sum to no more than that, they are direct; where they sum to more and every GPU of the group shows NV# to every other,
they are the links into an NVSwitch, and a GPU's capacity is the largest NV# of its row (a GPU with failed links shows a smaller
one in its whole row and column).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from dualcoll.errors import InputError
from dualcoll.topology.devices import GpuModel, Rates
from dualcoll.topology.draft import BOX_LATENCY, Draft
from dualcoll.topology.model import Kind

__all__ = ["wire_nv_links"]

Counts = dict[tuple[int, int], int]  # links of each pair of positions, both ways round; pairs without NVLink are absent


def wire_nv_links(
    draft: Draft, gpus: Sequence[tuple[str, int]], counts: Counts, model: GpuModel, rates: Rates, where: str
) -> list[str]:
    """Add the NVLinks; notes on GPUs that have fewer than others.

    Args:
        gpus: name in messages and node index of each GPU.

    Raises:
        InputError: more links than the model has, or counts that are neither direct links nor a switch.
    """
    box = draft.nodes[gpus[0][1]].box
    totals: dict[int, int] = {}
    switches = 0
    for (i, j), count in counts.items():
        if count > model.links:
            raise InputError(
                f"{gpus[i][0]} shows NV{count} to {gpus[j][0]} but one {model.name} has {model.links} NVLinks",
                where=where,
                hint="check --gpu",
            )
    for members in _components(len(gpus), counts):
        sums = {i: sum(counts.get((i, j), 0) for j in members) for i in members}
        if max(sums.values()) <= model.links:
            totals.update(sums)
            for i, j in combinations(members, 2):
                if (i, j) in counts:
                    rate = model.link.rate(counts[i, j], rates)
                    draft.cable(gpus[i][1], gpus[j][1], rate.capacity, BOX_LATENCY, rate.source)
            continue
        _check_switch(members, gpus, sums, counts, model, where)
        switch = draft.node(f"nvswitch{switches or ''}", Kind.SWITCH, box)
        switches += 1
        for i in members:
            totals[i] = max(counts.get((i, j), 0) for j in members)
            rate = model.link.rate(totals[i], rates)
            draft.cable(gpus[i][1], switch, rate.capacity, BOX_LATENCY, rate.source)
    return _unequal(gpus, totals)


def _components(n: int, counts: Counts) -> list[list[int]]:
    """Groups of positions joined by NVLinks, single ones included."""
    seen: set[int] = set()
    groups = []
    for start in range(n):
        if start in seen:
            continue
        group, todo = {start}, [start]
        while todo:
            i = todo.pop()
            fresh = {j for j in range(n) if (i, j) in counts} - group
            group |= fresh
            todo += fresh
        seen |= group
        groups.append(sorted(group))
    return groups


def _check_switch(
    members: Sequence[int],
    gpus: Sequence[tuple[str, int]],
    sums: dict[int, int],
    counts: Counts,
    model: GpuModel,
    where: str,
) -> None:
    for i, j in combinations(members, 2):
        if (i, j) not in counts:
            most = max(members, key=lambda k: sums[k])
            raise InputError(
                f"the NV# of {gpus[most][0]} sum to {sums[most]}, more than the {model.links} NVLinks of one {model.name}, "
                f"which takes an NVSwitch, but {gpus[i][0]} and {gpus[j][0]} are not joined by NVLink",
                where=where,
                hint="check --gpu, and that the matrix is complete",
            )


def _unequal(gpus: Sequence[tuple[str, int]], totals: dict[int, int]) -> list[str]:
    most = max(totals.values())
    notes = []
    for count in sorted(set(totals.values()) - {most}):
        names = ", ".join(gpus[i][0] for i in sorted(totals) if totals[i] == count)
        have = f"{count} NVLinks" if count else "no NVLink"
        notes.append(f"{names}: {have} where the best GPU has {most}; check for failed links")
    return notes
