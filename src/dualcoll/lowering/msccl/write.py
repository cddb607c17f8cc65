"""MSCCL programs as XML text, with every attribute that some loader of either executor asks for."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from dualcoll.files import atomic_write
from dualcoll.lowering.msccl.program import Program, Step

__all__ = ["msccl_text", "write_msccl"]


def msccl_text(program: Program) -> str:
    """The program as XML: one line for each step.

    What a program does not say is written as loaders take it: ``outofplace`` as what ``inplace`` is not, and no limits of size.
    """
    out = not program.inplace if program.outofplace is None else program.outofplace
    root = ElementTree.Element(
        "algo",
        {
            "name": program.name,
            "proto": program.proto,
            "nchannels": str(program.nchannels),
            "nchunksperloop": str(program.nchunksperloop),
            "ngpus": str(program.ngpus),
            "coll": program.coll,
            "inplace": str(int(program.inplace)),
            "outofplace": str(int(out)),
            "minBytes": str(program.min_bytes or 0),
            "maxBytes": str(program.max_bytes or 0),
            **dict(program.other),
        },
    )
    for g, gpu in enumerate(program.gpus):
        chunks = {f"{name}_chunks": str(getattr(gpu, f"{name}_chunks")) for name in "ios"}
        gpu_element = ElementTree.SubElement(root, "gpu", {"id": str(g), **chunks})
        for t, block in enumerate(gpu.blocks):
            peers = {"send": str(block.send), "recv": str(block.recv), "chan": str(block.chan)}
            block_element = ElementTree.SubElement(gpu_element, "tb", {"id": str(t), **peers})
            for s, step in enumerate(block.steps):
                ElementTree.SubElement(block_element, "step", _attributes(s, step))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def write_msccl(program: Program, path: str | Path) -> None:
    """Write the file, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    atomic_write(path, msccl_text(program))


def _attributes(s: int, step: Step) -> dict[str, str]:
    return {
        "s": str(s),
        "type": str(step.type),
        "srcbuf": str(step.srcbuf),
        "srcoff": str(step.srcoff),
        "dstbuf": str(step.dstbuf),
        "dstoff": str(step.dstoff),
        "cnt": str(step.cnt),
        "depid": str(step.depid),
        "deps": str(step.deps),
        "hasdep": str(int(step.hasdep)),
    }
