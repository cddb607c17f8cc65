"""Topologies from the files that people have. The format is found from the content; importers are pure bytes to Topology."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dualcoll.errors import InputError
from dualcoll.topology.importers.nccl_xml import import_nccl_xml
from dualcoll.topology.importers.nvidia_smi import import_nvidia_smi
from dualcoll.topology.importers.options import ImportOptions
from dualcoll.topology.importers.rocm_smi import import_rocm_smi
from dualcoll.topology.importers.taccl import import_taccl, is_taccl
from dualcoll.topology.importers.teccl import import_teccl, is_teccl
from dualcoll.topology.importers.topo_matrix import decode_text, find_matrices
from dualcoll.topology.model import Topology

__all__ = ["PLANNERS", "ImportOptions", "import_topology", "sniff"]

PLANNERS = ("taccl", "teccl-input")  # JSON files of other planners, which take keys behind their names

_XML_BYTES = 32 * 2**20
_TEXT_BYTES = 4 * 2**20


def _is_nccl_xml(data: bytes) -> bool:
    text = decode_text(data[:_TEXT_BYTES])
    return text.lstrip().startswith("<") and re.search(r"<system[\s/>]", text) is not None


def _is_rocm_smi(data: bytes) -> bool:
    return re.search(r"(?:Link Type|Weight) between two GPUs", decode_text(data[:_TEXT_BYTES])) is not None


def _is_nvidia_smi(data: bytes) -> bool:
    try:
        return bool(find_matrices(decode_text(data[:_TEXT_BYTES]), ""))
    except InputError:
        return True  # a matrix, if a damaged one


@dataclass(frozen=True, slots=True)
class _Importer:
    name: str
    title: str
    most_bytes: int
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, str, ImportOptions], Topology]


_IMPORTERS = (
    _Importer("nccl-xml", "NCCL or RCCL topology XML", _XML_BYTES, _is_nccl_xml, import_nccl_xml),
    _Importer("rocm-smi-topo", "rocm-smi --showtopo", _TEXT_BYTES, _is_rocm_smi, import_rocm_smi),
    _Importer("nvidia-smi-topo", "nvidia-smi topo -m", _TEXT_BYTES, _is_nvidia_smi, import_nvidia_smi),
    _Importer("taccl", "TACCL topologies", _TEXT_BYTES, is_taccl, import_taccl),
    _Importer("teccl-input", "TE-CCL inputs", _TEXT_BYTES, is_teccl, import_teccl),
)


def sniff(data: bytes) -> str | None:
    """The name of the importer that reads this content, or None."""
    return next((importer.name for importer in _IMPORTERS if importer.recognises(data)), None)


def import_topology(data: bytes, where: str, options: ImportOptions) -> Topology:
    """A topology from foreign content.

    Args:
        where: file name, for messages.

    Raises:
        InputError: an unknown format (the known ones are listed), too big, or whatever the importer finds.
    """
    importer = next((importer for importer in _IMPORTERS if importer.recognises(data)), None)
    if importer is None:
        known = ", ".join(importer.title for importer in _IMPORTERS)
        raise InputError(
            "the format is not recognised", where=where, hint=f"dualcoll reads {known} and its own YAML and JSON"
        )
    if len(data) > importer.most_bytes:
        raise InputError(f"{len(data)} bytes are too many", where=where, hint=f"at most {importer.most_bytes} are read")
    if options.behind and importer.name not in PLANNERS:
        raise InputError(f"nothing is read behind the name of {importer.title}", where=f"{where}:{options.behind[:60]}")
    try:
        return importer.read(data, where, options)
    except InputError as error:
        raise error if where in error.where else error.within(where) from None
