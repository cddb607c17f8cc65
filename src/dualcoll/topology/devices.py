"""GPU models, PCIe generations and CPU interconnects: what they carry, nominally and as NCCL or RCCL counts it.

Every rate is bytes/s per direction and comes with the text of its origin, for :attr:`Link.source`. NCCL's figures are those
of its ``topo.h`` (2.30), RCCL's those of its own; the nominal ones are the vendors'.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from dualcoll.errors import InputError

__all__ = [
    "GPU_MODELS",
    "CpuKind",
    "FabricLink",
    "GpuModel",
    "Rate",
    "Rates",
    "Wiring",
    "cpu_rate",
    "fabric_link",
    "gpu_model",
    "local_rate",
    "pcie_rate",
    "unknown_cpu_rate",
]


class Rates(StrEnum):
    """Whose figures a link gets: the vendor's, or what NCCL and RCCL count on."""

    NOMINAL = "nominal"
    NCCL = "nccl"


class Wiring(StrEnum):
    """How the GPU links of a box of one model run."""

    SWITCH = "switch"
    CUBE_MESH = "hybrid cube mesh"
    SINGLE = "one link per linked pair"
    UNKNOWN = "differs from box to box"
    BRIDGE = "optional bridges"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Rate:
    """A capacity in bytes/s per direction, and where it comes from."""

    capacity: float
    source: str


@dataclass(frozen=True, slots=True)
class FabricLink:
    """One NVLink or XGMI link.

    Attributes:
        name: NVLink or XGMI.
        nominal, counted: GB/s per direction, as the vendor says and as NCCL or RCCL counts.
    """

    name: str
    nominal: float
    counted: float

    @property
    def plural(self) -> str:
        """Several of them."""
        return "NVLinks" if self.name == "NVLink" else "XGMI links"

    def rate(self, count: float, rates: Rates) -> Rate:
        """What ``count`` links carry together; half links are half a pair's share of one device."""
        library = "NCCL" if self.name == "NVLink" else "RCCL"
        nominal, counted = count * self.nominal, count * self.counted
        links = f"{count:g} {self.name if count == 1 else self.plural}"
        if rates is Rates.NCCL:
            text = f"{links} x {self.counted:g} GB/s as {library} counts (nominal {nominal:g} GB/s)"
            return Rate(counted * 1e9, text)
        return Rate(nominal * 1e9, f"{links} x {self.nominal:g} GB/s nominal ({library} counts {counted:g} GB/s)")


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU as its users name it.

    Attributes:
        name: as in the table.
        arch: ``sm90``, ``gfx942``.
        links: NVLinks or XGMI links of one GPU (of one GCD).
        wiring: how they run in a box of this model.
        pcie: PCIe generation.
    """

    name: str
    arch: str
    links: int
    wiring: Wiring
    pcie: int

    @property
    def link(self) -> FabricLink:
        """Its link type."""
        return fabric_link(self.arch)


def _models(wiring: Wiring, *rows: tuple[str, str, int, int]) -> list[GpuModel]:
    return [GpuModel(name, arch, links, wiring, pcie) for name, arch, links, pcie in rows]


GPU_MODELS = (
    _models(Wiring.CUBE_MESH, ("V100", "sm70", 6, 3))
    + _models(
        Wiring.SWITCH,
        ("A100", "sm80", 12, 4),
        ("A800", "sm80", 8, 4),
        ("H100", "sm90", 18, 5),
        ("H800", "sm90", 8, 5),
        ("H20", "sm90", 18, 5),
        ("H200", "sm90", 18, 5),
        ("GH200", "sm90", 18, 5),
        ("B100", "sm100", 18, 5),
        ("B200", "sm100", 18, 5),
        ("B300", "sm103", 18, 6),
        ("GB200", "sm100", 18, 5),
        ("GB300", "sm103", 18, 6),
    )
    + _models(
        Wiring.BRIDGE,
        ("A100 PCIe", "sm80", 12, 4),
        ("A30", "sm80", 4, 4),
        ("A40", "sm86", 4, 4),
        ("RTX A6000", "sm86", 4, 4),
        ("RTX 3090", "sm86", 4, 4),
        ("H100 PCIe", "sm90", 18, 5),
        ("H100 NVL", "sm90", 18, 5),
        ("H200 NVL", "sm90", 18, 5),
        ("MI210", "gfx90a", 3, 4),
    )
    + _models(
        Wiring.NONE,
        ("V100 PCIe", "sm70", 0, 3),
        ("V100S", "sm70", 0, 3),
        ("T4", "sm75", 0, 3),
        ("A10", "sm86", 0, 4),
        ("A10G", "sm86", 0, 4),
        ("L4", "sm89", 0, 4),
        ("L40", "sm89", 0, 4),
        ("L40S", "sm89", 0, 4),
        ("RTX 4090", "sm89", 0, 4),
        ("RTX 6000 Ada", "sm89", 0, 4),
        ("RTX 5090", "sm120", 0, 5),
        ("RTX PRO 6000", "sm120", 0, 5),
        ("GB10", "sm121", 0, 5),
    )
    + _models(
        Wiring.SINGLE,
        ("MI50", "gfx906", 2, 4),
        ("MI60", "gfx906", 2, 4),
        ("MI100", "gfx908", 3, 4),
        ("MI300X", "gfx942", 7, 5),
        ("MI325X", "gfx942", 7, 5),
        ("MI350X", "gfx950", 7, 5),
        ("MI355X", "gfx950", 7, 5),
    )
    + _models(
        Wiring.UNKNOWN,
        ("P100", "sm60", 4, 3),
        ("MI250", "gfx90a", 8, 4),
        ("MI250X", "gfx90a", 8, 4),
        ("MI300A", "gfx942", 8, 5),
    )
)

_NOISE = {"nvidia", "amd", "tesla", "geforce", "quadro", "instinct", "radeon", "generation"}


def gpu_model(text: str) -> GpuModel:
    """The model that a text names: ``"a100"``, ``"NVIDIA H100 80GB HBM3"``, ``"Tesla V100-SXM2-32GB"``.

    Raises:
        InputError: no model of the table is in the text.
    """
    words = [word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in _NOISE]
    glued = "".join(words)
    best: tuple[int, GpuModel] | None = None
    for model in GPU_MODELS:
        parts = model.name.lower().split()
        fits = set(parts) <= set(words) or "".join(parts) == glued
        if fits and (best is None or len(parts) > best[0]):
            best = len(parts), model
    if best is None:
        names = ", ".join(model.name for model in GPU_MODELS)
        raise InputError(f"GPU model {text[:60]!r} is not known", hint=f"the known ones are {names}")
    return best[1]


_NVLINKS = (  # least compute capability, GB/s nominal, GB/s as NCCL counts
    (100, 50.0, 40.1),
    (90, 25.0, 20.6),
    (87, 25.0, 20.0),
    (86, 14.0625, 12.0),
    (70, 25.0, 20.0),
    (60, 20.0, 18.0),
)
_XGMI = (  # start of the name, GB/s nominal, GB/s as RCCL counts; RCCL's old files say 910 for gfx90a and 940 for gfx94x
    ("gfx95", 76.8, 48.0),
    ("gfx94", 64.0, 48.0),
    ("940", 64.0, 48.0),
    ("gfx90a", 50.0, 36.0),
    ("910", 50.0, 36.0),
)


def fabric_link(arch: str) -> FabricLink:
    """The link type of an architecture: ``"sm90"``, or ``"gfx942"``, ``"910"``, ``"908"`` for AMD."""
    if arch.startswith("sm") and arch[2:].isdigit():
        for least, nominal, counted in _NVLINKS:
            if int(arch[2:]) >= least:
                return FabricLink("NVLink", nominal, counted)
        return FabricLink("NVLink", 20.0, 20.0)
    for start, nominal, counted in _XGMI:
        if arch.startswith(start):
            return FabricLink("XGMI", nominal, counted)
    return FabricLink("XGMI", 46.0, 24.0)


PCIE_X16 = {  # generation: GB/s nominal, GB/s as NCCL counts
    1: (4.0, 3.0),
    2: (8.0, 6.0),
    3: (15.75, 12.0),
    4: (31.5, 24.0),
    5: (63.0, 48.0),
    6: (121.0, 96.0),
}


def pcie_rate(generation: int, width: int, rates: Rates, origin: str = "") -> Rate:
    """What a PCIe link carries each way.

    Args:
        generation: 1 to 6.
        width: lanes.
        origin: where the generation comes from, put after the figures; empty if the input says it.
    """
    nominal, counted = (figure * width / 16 for figure in PCIE_X16[generation])
    if rates is Rates.NCCL:
        capacity, text = counted, f"{counted:g} GB/s as NCCL counts (nominal {nominal:g} GB/s)"
    else:
        capacity, text = nominal, f"{nominal:g} GB/s nominal (NCCL counts {counted:g} GB/s)"
    return Rate(capacity * 1e9, f"PCIe Gen{generation} x{width}, {text}{f'; {origin}' if origin else ''}")


def local_rate(gigabytes: float, what: str) -> Rate:
    """A rate inside one chip, for which NCCL's figure is the only one there is."""
    return Rate(gigabytes * 1e9, f"{what}, {gigabytes:g} GB/s as NCCL counts (no nominal figure is known)")


@dataclass(frozen=True, slots=True)
class CpuKind:
    """A processor as NCCL's files name it; empty where they do not. ``family`` and ``model`` are -1 if unknown."""

    arch: str = ""
    vendor: str = ""
    family: int = -1
    model: int = -1

    @property
    def is_intel(self) -> bool:
        """Whether its host bridges are Intel's."""
        return self.arch == "x86_64" and self.vendor == "GenuineIntel"


ASSUMED_CPU_RATE = 16.0  # GB/s between processors that the input does not name


def cpu_rate(first: CpuKind, second: CpuKind) -> Rate | None:
    """What two processors of one host carry to each other, each way: NCCL's figure, the only one there is.

    None if the input names neither of them.
    """
    name, figure = min((_cpu_figure(first), _cpu_figure(second)), key=lambda pair: pair[1])
    return local_rate(figure, f"between {name} processors") if name else None


def unknown_cpu_rate(rates: Rates) -> Rate:
    """What is assumed between processors that the input does not name: nominally 16 GB/s, NCCL counts on 5000 GB/s."""
    if rates is Rates.NCCL:
        return Rate(5000e9, "between unknown processors, 5000 GB/s as NCCL counts: it does not know them either")
    text = f"between unknown processors, {ASSUMED_CPU_RATE:g} GB/s assumed (what NCCL counts for AMD EPYC)"
    return Rate(ASSUMED_CPU_RATE * 1e9, text)


def _cpu_figure(cpu: CpuKind) -> tuple[str, float]:
    """A name for the processor, empty if unknown, and NCCL's GB/s."""
    if cpu.arch == "arm64":
        return "ARM", 6.0
    if cpu.arch == "ppc64":
        return "POWER9", 32.0
    if cpu.arch == "x86_64" and cpu.vendor == "AuthenticAMD":
        return "AMD", 16.0
    if cpu.arch == "x86_64" and cpu.vendor in ("CentaurHauls", "  Shanghai  "):
        return "Zhaoxin", 9.0 if (cpu.family, cpu.model) == (7, 0x5B) else 6.0
    if cpu.is_intel:
        for least, figure in ((0xCF, 40.0), (0x8F, 22.0), (0x55, 10.0)):
            if cpu.family == 6 and cpu.model >= least:
                return "Intel", figure
        return "Intel", 6.0
    return "", 5000.0
