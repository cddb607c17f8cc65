"""Arguments and options that several verbs share, and how they become a topology."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualcoll.errors import InputError

if TYPE_CHECKING:
    from dualcoll.topology.importers import ImportOptions
    from dualcoll.topology.model import Topology

__all__ = [
    "Cpu",
    "Gpu",
    "Html",
    "Json",
    "Nic",
    "Out",
    "Pcie",
    "RatesName",
    "TopologySpec",
    "import_options",
    "load",
    "writable",
]

TopologySpec = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY",
        help="A file (native YAML or JSON, NCCL or RCCL topology XML, `nvidia-smi topo -m` text, TE-CCL input, TACCL "
        "topology such as `topo.json:boxes=2`), `-` for standard input, or a catalogue name such as `dgx-h100:boxes=4`.",
        show_default=False,
    ),
]
Gpu = Annotated[
    str | None, typer.Option("--gpu", metavar="MODEL", help="GPU model, where the file does not say: A100, H100, …")
]
Nic = Annotated[
    str | None, typer.Option("--nic", metavar="RATE", help="NIC speed, where the file does not say: 400Gb/s")
]
Pcie = Annotated[
    str | None, typer.Option("--pcie", metavar="GEN", help="PCIe generation, where the file does not say: gen5, gen4x8")
]
Cpu = Annotated[
    str | None,
    typer.Option("--cpu", metavar="RATE", help="Rate between CPU sockets, where the file does not say: 40GB/s"),
]
RatesName = Annotated[
    str, typer.Option("--rates", metavar="KIND", help="nominal link rates, or nccl for NCCL's effective ones.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Out = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Save the plan as JSON.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Draw it as one self-contained page.")]


def import_options(gpu: str | None, nic: str | None, pcie: str | None, cpu: str | None, rates: str) -> ImportOptions:
    """What the user says where a file does not.

    Raises:
        InputError: rates that are neither nominal nor nccl.
    """
    from dualcoll.topology.devices import Rates
    from dualcoll.topology.importers import ImportOptions

    if rates not in tuple(Rates):
        raise InputError(f"{rates!r} is not known", where="--rates", hint=f"use one of {', '.join(Rates)}")
    return ImportOptions(gpu=gpu, nic=nic, pcie=pcie, cpu=cpu, rates=Rates(rates))


def load(spec: str, gpu: str | None, nic: str | None, pcie: str | None, cpu: str | None, rates: str) -> Topology:
    """The topology that the arguments describe."""
    from dualcoll.topology.file import read_topology

    return read_topology(spec, import_options(gpu, nic, pcie, cpu, rates))


def writable(path: Path | None, flag: str, *others: object) -> None:
    """Refuse an output that could not be written, before the work begins.

    Args:
        path: where to write, or None. flag: for messages.
        others: inputs and other outputs, which it must not be.

    Raises:
        InputError: its folder does not exist, it is a folder, it is ``-``, or it is one of the others.
    """
    if path is None:
        return
    if str(path) == "-":
        raise InputError(
            "`-` is not a file", where=flag, hint="name a file, or use --json for the result on standard output"
        )
    for other in filter(None, others):
        if os.path.realpath(str(other)) == os.path.realpath(path):
            raise InputError(f"{path} is also an input or another output", where=flag, hint="name another file")
    if not path.absolute().parent.is_dir():
        raise InputError(f"folder {path.absolute().parent} does not exist", where=flag)
    if path.is_dir():
        raise InputError(f"{path} is a folder", where=flag, hint="name a file")
