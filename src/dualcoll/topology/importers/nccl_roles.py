"""Which PCI entries of an NCCL topology file are GPUs and NICs.

A full dump says so by ``<gpu>`` and ``<nic>``; a cloud skeleton only by the PCI class; a list of bus ids not at all, and then
``--gpu`` and ``--nic`` must name them.
"""

from __future__ import annotations

from collections.abc import Iterable

from dualcoll.errors import InputError
from dualcoll.topology.importers.nccl_records import Gpu, Nic, Pci, System
from dualcoll.topology.importers.options import GPU_HINT, NIC_HINT, GpuChoice, NicChoice, counted, refuse_unknown

__all__ = ["assign_roles"]

GPU_CLASSES = ("0x0302", "0x0300", "0x0380", "0x1200")
NIC_CLASSES = ("0x0207", "0x0200")
NAMING = 'name them: --gpu "MODEL=busid,busid" and --nic "SPEED=busid,busid"'


def assign_roles(system: System, gpu: GpuChoice | None, nic: NicChoice | None) -> tuple[bool, list[str]]:
    """Put GPUs and NICs that the file does not spell out into their PCI entries.

    Returns:
        Whether the file is a skeleton (its NVLinks have to come from the model), and notes.

    Raises:
        InputError: what the file does not say and the flags do not either, naming the flags.
    """
    pcis = [pci for _, pci in system.pcis()]
    if any(pci.gpus for pci in pcis):
        if gpu:
            refuse_unknown(gpu.ids, [pci.busid for pci in pcis if pci.gpus], "GPU has busid", "--gpu")
        return False, _complete(pcis, nic)
    gpus = _named(pcis, gpu.ids, "--gpu") if gpu and gpu.ids else _of_class(pcis, GPU_CLASSES)
    nics = _of_class(pcis, NIC_CLASSES)
    if nic and nic.by_id:
        named = _named(pcis, nic.by_id, "--nic")
        nics = (
            named if nic.default is None else [*nics, *(pci for pci in named if not pci.kind.startswith(NIC_CLASSES))]
        )
    nics = [pci for pci in nics if not pci.nics]
    if not gpus:
        raise InputError(
            f"no PCI device has the class of a GPU, so which are the GPUs is not said ({_listed(pcis)})",
            where=system.where,
            hint=NAMING,
        )
    _require_flags(system, gpus, nics, gpu, nic)
    if nic and not nics and not any(pci.nics for pci in pcis):
        raise InputError("--nic is given but no PCI device has the class of a NIC", where=system.where, hint=NAMING)
    assert gpu is not None
    for pci in gpus:
        if pci in nics:
            raise InputError(f"busid {pci.busid} is named as a GPU and as a NIC", where=system.place(pci.line))
        pci.gpus = [Gpu(None, gpu.model.arch, False, [], pci.line)]
    for pci in nics:
        pci.nics = [Nic([], pci.line)]
    return True, []


def _complete(pcis: list[Pci], nic: NicChoice | None) -> list[str]:
    """A full dump: add NICs that only have a class if their speed is given; notes on what is left out."""
    notes = []
    hidden = [pci for pci in _of_class(pcis, ("0x0302", "0x0380", "0x1200")) if not pci.gpus]
    if hidden:
        notes.append(f"GPU class without <gpu>, so not visible to who wrote the file, left out: {_listed(hidden)}")
    bare = [pci for pci in _of_class(pcis, NIC_CLASSES) if not pci.nics]
    taken = [pci for pci in bare if nic is not None and nic.speed(pci.busid) is not None]
    for pci in taken:
        pci.nics = [Nic([], pci.line)]
    if len(taken) < len(bare):
        left = [pci for pci in bare if not pci.nics]
        notes.append(f"NIC class without <nic>, left out (--nic SPEED takes them in): {_listed(left)}")
    return notes


def _require_flags(
    system: System, gpus: list[Pci], nics: list[Pci], gpu: GpuChoice | None, nic: NicChoice | None
) -> None:
    lacking, flags = [], []
    if gpu is None:
        lacking.append(f"the model of its {_counted(gpus, 'GPU', GPU_CLASSES)}")
        flags.append(GPU_HINT)
    if nics and nic is None:
        lacking.append(f"the speed of its {_counted(nics, 'NIC', NIC_CLASSES)}")
        flags.append(NIC_HINT)
    if lacking:
        raise InputError(
            f"the file does not say {' nor '.join(lacking)}", where=system.where, hint=f"give {' and '.join(flags)}"
        )


def _counted(pcis: list[Pci], what: str, classes: tuple[str, ...]) -> str:
    """Text such as ``8 GPUs (class 0x0302)``."""
    found = ", ".join(start for start in classes if any(pci.kind.startswith(start) for pci in pcis))
    return f"{counted(len(pcis), what)}{f' (class {found})' if found else ''}"


def _of_class(pcis: Iterable[Pci], classes: tuple[str, ...]) -> list[Pci]:
    return [pci for pci in pcis if pci.kind.startswith(classes)]


def _named(pcis: list[Pci], ids: Iterable[str], flag: str) -> list[Pci]:
    refuse_unknown(ids, [pci.busid for pci in pcis], "PCI device has busid", flag)
    named = set(ids)
    return [pci for pci in pcis if pci.busid in named]


def _listed(pcis: list[Pci], most: int = 12) -> str:
    text = ", ".join(pci.busid[:60] for pci in pcis[:most])
    return f"{text} and {len(pcis) - most} more" if len(pcis) > most else text
