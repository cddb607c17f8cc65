"""GPU links that a file does not list, from how boxes of the GPU's model are wired."""

from __future__ import annotations

from collections.abc import Sequence

from dualcoll.errors import InputError
from dualcoll.topology.devices import GpuModel, Rates, Wiring
from dualcoll.topology.draft import BOX_LATENCY, Draft
from dualcoll.topology.model import Kind

__all__ = ["wire_by_model"]

# NVLinks of each pair of GPUs in a DGX-1 with V100, GPUs in NCCL's usual order
_CUBE_MESH = {
    (0, 1): 1,
    (0, 2): 1,
    (0, 3): 2,
    (0, 4): 2,
    (1, 2): 2,
    (1, 3): 1,
    (1, 5): 2,
    (2, 3): 2,
    (2, 6): 1,
    (3, 7): 1,
    (4, 5): 1,
    (4, 6): 1,
    (4, 7): 2,
    (5, 6): 2,
    (5, 7): 1,
    (6, 7): 2,
}


def wire_by_model(draft: Draft, gpus: Sequence[int], model: GpuModel, rates: Rates, box: str, where: str) -> list[str]:
    """Cable the GPUs of one box as boxes of their model are; notes that say what was assumed.

    Args:
        gpus: node indices, in the box's own order.

    Raises:
        InputError: boxes of this model and size are not all wired alike.
    """
    count, link = len(gpus), model.link
    if model.wiring is Wiring.NONE or count == 1:
        return []
    if model.wiring is Wiring.BRIDGE:
        return [
            f"{model.name}s may be joined by {link.name} bridges, which this input does not show: none are assumed, "
            "and everything between GPUs goes over PCIe"
        ]
    if model.wiring is Wiring.SWITCH or (model.wiring is Wiring.CUBE_MESH and count == 16):
        switch = draft.node(_free(draft, "nvswitch"), Kind.SWITCH, box)
        rate = link.rate(model.links, rates)
        for gpu in gpus:
            draft.cable(gpu, switch, rate.capacity, BOX_LATENCY, f"{rate.source}; from the GPU model")
        return [
            f"the NVLinks are not in the input: all {count} {model.name} are assumed on one NVSwitch, "
            f"with {model.links} links each"
        ]
    if model.wiring is Wiring.CUBE_MESH and count == 8:
        pairs, how = _CUBE_MESH, "a hybrid cube mesh (DGX-1) in GPU order"
    elif model.wiring is Wiring.SINGLE and count == model.links + 1:
        pairs = {(i, j): 1 for j in range(count) for i in range(j)}
        how = "a full mesh of single links"
    else:
        raise InputError(
            f"how the {link.plural} of {count} {model.name} run is not known",
            where=where,
            hint="import what NCCL or RCCL writes to NCCL_TOPO_DUMP_FILE on that machine, which lists them",
        )
    for (i, j), lanes in pairs.items():
        rate = link.rate(lanes, rates)
        draft.cable(gpus[i], gpus[j], rate.capacity, BOX_LATENCY, f"{rate.source}; from the GPU model")
    return [f"the {link.plural} are not in the input: {how} is assumed for the {count} {model.name}"]


def _free(draft: Draft, name: str) -> str:
    taken = {node.name for node in draft.nodes}
    return next(text for text in (name, *(f"{name}{i}" for i in range(len(taken) + 1))) if text not in taken)
