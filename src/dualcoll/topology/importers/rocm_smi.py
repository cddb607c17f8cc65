"""``rocm-smi --showtopo`` text: bytes to a topology.

It names the link type of every pair and a weight (15 for one XGMI hop), but not how many links a pair has: only models with one
link per linked pair can be read. "Hops" is not used: it is 1 for any XGMI pair, linked or not.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import PurePath

from dualcoll.errors import InputError
from dualcoll.topology.devices import Wiring
from dualcoll.topology.draft import BOX_LATENCY, Draft
from dualcoll.topology.importers.options import GPU_HINT, CpuLinks, GpuChoice, ImportOptions, Pcie, unused_flags
from dualcoll.topology.importers.pci_tree import Device, add_pci_tree
from dualcoll.topology.importers.topo_matrix import decode_text
from dualcoll.topology.model import Kind, Topology

__all__ = ["import_rocm_smi"]

DIRECT_WEIGHT = "15"  # of one XGMI hop
MAX_GPUS = 256
BOX = "host0"

Table = dict[tuple[int, int], str]


def import_rocm_smi(data: bytes, where: str, options: ImportOptions) -> Topology:
    """Read the tables of link types, weights and NUMA nodes.

    Raises:
        InputError: tables that are incomplete, contradictory or not enough to tell which pairs are linked.
    """
    text = decode_text(data)
    types, count = _table(text, "Link Type", where)
    weights, _ = _table(text, "Weight", where, count) if re.search("Weight between two GPUs", text) else ({}, count)
    choice = GpuChoice.of(options)
    if choice:
        choice.refuse_ids("rocm-smi")
    sockets = CpuLinks.of(options)
    draft = Draft()
    numas = dict(re.findall(r"(?m)^\s*GPU\s*\[?([0-9]{1,4})\]?\s*:\s*\(Topology\) Numa Node: ([0-9]{1,4})\s*$", text))
    devices = [Device(f"GPU{i}", draft.node(f"gpu{i}", Kind.GPU, BOX), numas.get(str(i), "")) for i in range(count)]
    notes = _wire(draft, count, types, weights, choice, options, where)
    notes += add_pci_tree(draft, devices, lambda _i, _j: "", Pcie(options, choice), sockets, BOX)
    notes += unused_flags(
        options,
        {
            "gpu": None if choice and choice.used else "no GPU has XGMI links, and --pcie says the PCIe generation",
            "nic": "rocm-smi does not show NICs",
            "cpu": None if sockets.count else "all devices are on one CPU",
        },
    )
    if count == 1:
        notes.append("one GPU is visible: there is nothing to plan inside the box")
    notes.append("rocm-smi does not show NICs: none are in the topology")
    return draft.topology(PurePath(where).name, tuple(notes))


def _table(text: str, title: str, where: str, expected: int | None = None) -> tuple[Table, int]:
    """The cells off the diagonal of the table under a title, and its number of GPUs."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if re.search(rf"=\s*{title} between two GPUs\s*=", line)]
    if not starts:
        raise InputError(f"it has no table {title!r}", where=where, hint="paste the output of rocm-smi --showtopo")
    header = lines[starts[0] + 1].split() if starts[0] + 1 < len(lines) else []
    count = len(header)
    if header != [f"GPU{i}" for i in range(count)] or not 1 <= count <= MAX_GPUS or expected not in (None, count):
        raise InputError(f"the table {title!r} has no header GPU0, GPU1, ...", where=f"{where}:{starts[0] + 2}")
    table: Table = {}
    for i in range(count):
        number = starts[0] + 2 + i
        cells = lines[number].split() if number < len(lines) else []
        if len(cells) != count + 1 or cells[0] != f"GPU{i}":
            raise InputError(
                f"the row of GPU{i} in the table {title!r} is missing or cut off", where=f"{where}:{number + 1}"
            )
        if cells[i + 1] != "0":
            raise InputError(
                f"{title} of GPU{i} to itself is {cells[i + 1][:20]}, not 0: the table is damaged",
                where=f"{where}:{number + 1}",
            )
        table.update({(i, j): cell for j, cell in enumerate(cells[1:]) if j != i})
    for i, j in combinations(range(count), 2):
        if table[i, j] != table[j, i]:
            raise InputError(
                f"{title} of GPU{i} to GPU{j} is {table[i, j][:20]} but {table[j, i][:20]} the other way: the table is damaged",
                where=f"{where}:{starts[0] + 3 + i}",
            )
    return table, count


def _wire(
    draft: Draft, count: int, types: Table, weights: Table, choice: GpuChoice | None, options: ImportOptions, where: str
) -> list[str]:
    pairs = [pair for pair in combinations(range(count), 2) if types[pair] == "XGMI"]
    odd = next((pair for pair in types if types[pair] not in ("XGMI", "PCIE")), None)
    if odd is not None:
        raise InputError(f"link type {types[odd][:20]!r} of GPU{odd[0]} and GPU{odd[1]} is not known", where=where)
    if not pairs:
        return []
    if choice is None:
        raise InputError(
            "the tables do not say the model of the GPUs, which have XGMI links", where=where, hint=f"give {GPU_HINT}"
        )
    model, choice.used = choice.model, True
    if model.link.name != "XGMI" or model.wiring is not Wiring.SINGLE:
        raise InputError(
            f"rocm-smi does not show how many links a pair has, and on {model.name} pairs differ",
            where=where,
            hint="import what RCCL writes to NCCL_TOPO_DUMP_FILE on that machine, which lists them",
        )
    if not weights:
        raise InputError("without the table of weights, direct and indirect XGMI pairs look alike", where=where)
    direct = [pair for pair in pairs if weights[pair] == DIRECT_WEIGHT]
    for i in range(count):
        links = sum(i in pair for pair in direct)
        if links > model.links:
            raise InputError(f"GPU{i} has {links} XGMI links but one {model.name} has {model.links}", where=where)
    rate = model.link.rate(1, options.rates)
    for i, j in direct:
        draft.cable(i, j, rate.capacity, BOX_LATENCY, f"{rate.source}; one link per pair, from the GPU model")
    return [f"one XGMI link is assumed for each of the {len(direct)} pairs of weight {DIRECT_WEIGHT} ({model.name})"]
