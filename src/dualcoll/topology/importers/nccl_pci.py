"""The PCIe part of an NCCL topology file: ``link_speed`` times ``link_width``, as it is and as NCCL reads it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from dualcoll.topology.devices import Rate, Rates, pcie_rate
from dualcoll.topology.importers.nccl_records import Pci
from dualcoll.topology.importers.options import Pcie, counted

__all__ = ["LinkSpeeds"]

_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
# NCCL takes the first of these that the text begins with, and Gen3 if there is none
_NCCL_READS = {
    "2.5 GT/s": 1,
    "5 GT/s": 2,
    "8 GT/s": 3,
    "16 GT/s": 4,
    "32 GT/s": 5,
    "5.0 GT/s PCIe": 2,
    "8.0 GT/s PCIe": 3,
    "16.0 GT/s PCIe": 4,
    "32.0 GT/s PCIe": 5,
    "64.0 GT/s PCIe": 6,
}
_NCCL_DEFAULT = 3


def generation_of(text: str) -> int | None:
    """The PCIe generation of a ``link_speed`` however it is spelled; None where it says nothing ("Unknown")."""
    match = re.match(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*GT/s", text)
    return _GENERATIONS.get(float(match[1])) if match else None


def nccl_generation_of(text: str) -> int:
    """The generation that NCCL's own prefix match makes of it."""
    return next((gen for start, gen in _NCCL_READS.items() if text.startswith(start)), _NCCL_DEFAULT)


@dataclass(slots=True)
class LinkSpeeds:
    """Rates of PCIe links, and what there is to say about how the file gives them."""

    pcie: Pcie
    misread: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    idle: list[str] = field(default_factory=list)
    no_width: int = 0

    def rate(self, pci: Pci, gpu: str) -> Rate:
        """The rate of the link above a PCI entry; ``gpu`` is the name of the GPU that it is, else empty."""
        text = pci.link_speed
        generation = generation_of(text)
        if generation is None:
            if text and text.lower() != "unknown":
                self.unknown[text[:60]] += 1
        elif nccl_generation_of(text) != generation:
            self.misread[text[:60]] += 1
        if generation == 1 and gpu:
            self.idle.append(gpu)
            if self.pcie.given() is not None:
                generation = None
        if pci.width == 0 and (generation is not None or self.pcie.given() is None):
            self.no_width += 1
        return self.pcie.rate(generation, pci.width or None)

    def notes(self) -> list[str]:
        """In words: speeds that NCCL misreads, that nobody can read, that an idle GPU shows, and that were assumed."""
        notes = []
        for text, count in self.misread.items():
            right, read = generation_of(text) or _NCCL_DEFAULT, nccl_generation_of(text)
            figure = pcie_rate(read, 16, Rates.NCCL).capacity / 1e9
            notes.append(
                f"link_speed {text!r} ({counted(count, 'link')}) is PCIe Gen{right} and is taken as such, but NCCL itself "
                f"reads it as Gen{read} and counts {figure:g} GB/s for x16"
            )
        for text, count in self.unknown.items():
            notes.append(f"link_speed {text!r} ({counted(count, 'link')}) is no PCIe rate and is taken as unknown")
        if self.no_width:
            notes.append(f"link_width '0' ({counted(self.no_width, 'link')}) says nothing: x16 is taken, as NCCL does")
        if self.idle:
            what = "replaced by --pcie" if self.pcie.given() is not None else "kept; give --pcie to replace it"
            notes.append(
                f"the PCIe link of {', '.join(self.idle[:8])} reads Gen1, as that of an idle GPU does: the value is {what}"
            )
        return notes + self.pcie.notes()
