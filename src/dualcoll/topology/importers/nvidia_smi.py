"""``nvidia-smi topo -m`` text: bytes to a topology.

The matrix has no bandwidth. NV# gives NVLinks (``nv_links``), the other classes a PCIe tree (``pci_tree``); the GPU model and
the NIC speed come from the user, and the PCIe generation from the user, the model or an assumption that is stated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import PurePath

from dualcoll.errors import InputError
from dualcoll.topology.devices import Wiring
from dualcoll.topology.draft import Draft
from dualcoll.topology.importers.nv_links import Counts, wire_nv_links
from dualcoll.topology.importers.options import (
    GPU_HINT,
    NIC_HINT,
    CpuLinks,
    GpuChoice,
    ImportOptions,
    NicChoice,
    Pcie,
    counted,
    refuse_unknown,
    unused_flags,
)
from dualcoll.topology.importers.pci_tree import Device, add_pci_tree
from dualcoll.topology.importers.topo_matrix import Matrix, decode_text, find_matrices
from dualcoll.topology.importers.wiring import wire_by_model
from dualcoll.topology.model import Kind, Topology

__all__ = ["import_nvidia_smi"]

BOX = "host0"
ASK_FOR_TOPO_M = "paste the output of nvidia-smi topo -m"


def import_nvidia_smi(data: bytes, where: str, options: ImportOptions) -> Topology:
    """Read the matrix wherever it stands in the text.

    Raises:
        InputError: no usable matrix, rows that are missing or disagree, or something missing that a flag must say.
    """
    text = decode_text(data)
    matrix, notes = _chosen(find_matrices(text, where), where)
    gpus, nics = matrix.gpus, matrix.nics
    if not gpus:
        raise InputError("the matrix has no GPU", where=f"{where}:{matrix.line}", hint=ASK_FOR_TOPO_M)
    shown = _pairs(matrix, where)
    gpu, nic, sockets = GpuChoice.of(options), NicChoice.of(options), CpuLinks.of(options)
    hides = _hides_nvlink(text, shown)
    _require_flags(matrix, shown, hides, gpu, nic, where)
    legend = dict(re.findall(r"(?m)^\W*(NIC[0-9]+)\s*:\s*([\w.:-]{1,60})\s*$", text))
    if gpu:
        gpu.refuse_ids("the matrix")
    if nic:
        refuse_unknown(
            nic.by_id, [id_ for name in nics for id_ in (name, legend.get(name, name))], "NIC is called", "--nic"
        )
    draft = Draft()
    devices = [_device(matrix, name, draft.node(name.lower(), Kind.GPU, BOX)) for name in gpus]
    left_out = []
    for name in nics:
        speed = nic.speed(name, legend.get(name, name)) if nic else None
        if speed is None:
            left_out.append(name)
            continue
        label = legend.get(name, name)
        label = name if any(node.name == label for node in draft.nodes) else label
        devices.append(_device(matrix, name, draft.node(label, Kind.NIC, BOX, (speed,))))
    if left_out:
        notes.append(f"--nic does not name {', '.join(left_out)}: left out")
    notes += _wire(draft, gpus, shown, hides, gpu, options, where)
    names = [device.name for device in devices]
    pcie = Pcie(options, gpu)
    notes += add_pci_tree(draft, devices, lambda i, j: shown.get((names[i], names[j]), ""), pcie, sockets, BOX)
    notes += unused_flags(
        options,
        {
            "gpu": None if gpu and gpu.used else "the matrix shows no NVLink, and --pcie says the PCIe generation",
            "nic": None if nic and nic.used else "the matrix has no NIC",
            "cpu": None if sockets.count else "all devices are on one CPU",
        },
    )
    if len(gpus) == 1:
        notes.append("one GPU is visible (a job or container may hide others): there is nothing to plan inside the box")
    absent = [name for name in nics if name not in matrix.rows]
    if absent:
        notes.append(f"rows {', '.join(absent)} are missing; the rows of the GPUs have what is needed")
    return draft.topology(PurePath(where).name, tuple(notes))


def _chosen(matrices: Sequence[Matrix], where: str) -> tuple[Matrix, list[str]]:
    """The one matrix with link classes, and a note on peer access if a ``-p2p`` matrix stands beside it."""
    classes = [matrix for matrix in matrices if not matrix.is_peer_access]
    if not classes:
        line = f"{where}:{matrices[0].line}" if matrices else where
        what = "a peer-access matrix (topo -p2p) has no link classes" if matrices else "it has no topology matrix"
        raise InputError(what, where=line, hint=ASK_FOR_TOPO_M)
    first = classes[0]
    for other in classes[1:]:
        if (other.columns, other.cells) != (first.columns, first.cells):
            raise InputError(
                f"a second matrix that differs from that in line {first.line}",
                where=f"{where}:{other.line}",
                hint="keep the one of the machine that you mean",
            )
    notes = []
    for matrix in (matrix for matrix in matrices if matrix.is_peer_access):
        denied = sorted(set(matrix.cells.values()) - {"OK", "X"})
        if denied:
            notes.append(
                f"the topo -p2p matrix says {', '.join(denied)}: GPUs without peer access exchange data through host memory"
            )
    return first, notes


def _pairs(matrix: Matrix, where: str) -> dict[tuple[str, str], str]:
    """Class of every pair, both ways round.

    Raises:
        InputError: a pair with a GPU in it is not shown by either row.
    """
    shown: dict[tuple[str, str], str] = {}
    unknown: list[tuple[str, str]] = []
    gpus = set(matrix.gpus)
    for first, second in combinations(matrix.columns, 2):
        cell = matrix.between(first, second, where)
        if cell:
            shown[first, second] = shown[second, first] = cell
        elif first in gpus or second in gpus:
            unknown.append((first, second))
    if unknown:
        among = [pair for pair in unknown if gpus.issuperset(pair)]
        lost = [name for name in matrix.gpus if any(name in pair for pair in unknown)]
        total = len(gpus) * (len(gpus) - 1) // 2
        pairs = f"{len(among)} of {total} GPU pairs" if among else f"{len(unknown)} GPU-NIC pairs"
        raise InputError(
            f"rows of {len(lost)} of {len(gpus)} GPUs are missing or cut off ({', '.join(lost[:32])}), so the classes of "
            f"{pairs} are unknown",
            where=f"{where}:{matrix.line}",
            hint="paste the whole output of nvidia-smi topo -m",
        )
    return shown


def _hides_nvlink(text: str, shown: dict[tuple[str, str], str]) -> bool:
    """Whether it is the output of ``topo -mp``: said so by the command, or by a legend that does not know NV#."""
    if any(cell.startswith("NV") for cell in shown.values()):
        return False
    legend = re.search(r"(?m)^\W*PIX\s+=", text) and not re.search(r"(?m)^\W*NV#\s+=", text)
    return bool(legend) or bool(re.search(r"\btopo\s+(-mp|--matrix_pci)\b", text))


def _require_flags(
    matrix: Matrix,
    shown: dict[tuple[str, str], str],
    hides: bool,
    gpu: GpuChoice | None,
    nic: NicChoice | None,
    where: str,
) -> None:
    lacking, flags = [], []
    if gpu is None and any(cell.startswith("NV") for cell in shown.values()):
        lacking.append("the model of its GPUs (they have NVLinks)")
        flags.append(GPU_HINT)
    elif gpu is None and hides and len(matrix.gpus) > 1:
        lacking.append("whether its GPUs have NVLinks (topo -mp hides them)")
        flags.append(f"the output of topo -m, or {GPU_HINT}")
    if nic is None and matrix.nics:
        lacking.append(f"the speed of its {counted(len(matrix.nics), 'NIC')}")
        flags.append(NIC_HINT)
    if lacking:
        raise InputError(
            f"the matrix does not say {' nor '.join(lacking)}",
            where=f"{where}:{matrix.line}",
            hint=f"give {' and '.join(flags)}",
        )


def _device(matrix: Matrix, name: str, node: int) -> Device:
    return Device(name, node, matrix.numa.get(name, ""), matrix.cpus.get(name, ""))


def _wire(
    draft: Draft,
    gpus: Sequence[str],
    shown: dict[tuple[str, str], str],
    hides: bool,
    gpu: GpuChoice | None,
    options: ImportOptions,
    where: str,
) -> list[str]:
    """The NVLinks: as shown, or from the model where -mp hides them."""
    counts: Counts = {
        (i, j): int(cell[2:])
        for i, first in enumerate(gpus)
        for j, second in enumerate(gpus)
        if (cell := shown.get((first, second), "")).startswith("NV") and int(cell[2:])
    }
    if gpu is None or len(gpus) == 1:
        return []
    gpu.used = bool(counts) or hides
    if counts:
        return wire_nv_links(
            draft, list(zip(gpus, range(len(gpus)), strict=True)), counts, gpu.model, options.rates, where
        )
    if hides:
        hidden = wire_by_model(draft, range(len(gpus)), gpu.model, options.rates, BOX, where)
        return ["topo -mp hides NVLink: prefer the output of topo -m", *hidden]
    if gpu.model.links and gpu.model.wiring is not Wiring.BRIDGE:
        gpu.used = True
        return [
            f"the matrix shows no NVLink although {gpu.model.name} has {gpu.model.links}: taken as it is, PCIe only"
        ]
    return []
