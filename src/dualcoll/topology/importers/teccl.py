"""The fabric of a TE-CCL input file (microsoft/TE-CCL, ``teccl/input_data.py``), which names it and carries no links."""

from __future__ import annotations

import json
from dataclasses import replace

from pydantic import ConfigDict

from dualcoll.errors import InputError
from dualcoll.topology.forms import Form, Ratio, Text, Whole, filled
from dualcoll.topology.importers.options import ImportOptions, keys_behind, no_flag
from dualcoll.topology.importers.teccl_fabrics import FabricName, teccl_fabric
from dualcoll.topology.model import Topology
from dualcoll.topology.source_text import SourceText

__all__ = ["FabricForm", "has_keys", "import_teccl", "is_published", "is_teccl", "named_fabric"]

KEYS = ({"TopologyParams", "InstanceParams"}, {"TopologyParams", "GurobiParams"})


class FabricForm(Form):
    """``TopologyParams``; keys besides these are kept, to be named. ``chunk_size`` in GB, ``alpha`` in seconds."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Text = "DGX1"
    chassis: Whole = 1
    chunk_size: Ratio = 1.0
    alpha: tuple[Ratio, Ratio] | None = None
    side_length: Whole | None = None


class InputForm(Form):
    """What of a file says something of the fabric."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    TopologyParams: FabricForm


def has_keys(data: bytes, *sets: set[str]) -> bool:
    """Whether it is a JSON mapping that has all the keys of one of the sets."""
    if not data.lstrip().startswith(b"{"):
        return False
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and any(keys <= found.keys() for keys in sets)


def is_teccl(data: bytes) -> bool:
    """Whether it is a TE-CCL input file, by the keys that only such a file has."""
    return has_keys(data, *KEYS)


def named_fabric(given: FabricForm, *, published: bool = False) -> tuple[FabricName, Topology, list[str]]:
    """The name of a fabric, the fabric, and what to know.

    Args:
        given: of the file.
        published: as TE-CCL's code builds it, faults included; else the fabric that was meant, its faults named all the same.

    Raises:
        InputError: as :func:`teccl_fabric` does; with its key.
    """
    side = 4 if given.side_length is None else given.side_length
    name = FabricName(given.name, given.chassis, given.alpha or (0.0, 0.0), side)
    try:
        built, topology = teccl_fabric(name), teccl_fabric(name, published=published)
    except InputError as error:
        raise error.within("TopologyParams") from None
    notes = [] if published else [f"TE-CCL's code builds another fabric: {fault}" for fault in built.notes]
    if given.alpha is not None and name.name in ("DGX2", "NDv2"):
        notes.append(f"TopologyParams: alpha: {name.name} has latencies of its own, in TE-CCL too")
    if given.side_length is not None and name.name != "Mesh":
        notes.append(f"TopologyParams: side_length: {name.name} has none")
    return name, topology, notes


def is_published(options: ImportOptions) -> bool:
    """Whether the fabric is to be as TE-CCL's code builds it: ``input.json:faults=kept``.

    Raises:
        InputError: something else stands behind the file's name.
    """
    value = keys_behind(options, {"faults": "kept"}).get("faults")
    if value not in (None, "kept"):
        raise InputError(f"faults={value[:60]} is not known", where="behind the file's name", hint="use faults=kept")
    return value is not None


def import_teccl(data: bytes, where: str, options: ImportOptions) -> Topology:
    """The fabric alone; what is carried is for ``dualcoll plan --method time-expanded``.

    Args:
        data: the file. where: its name, for messages. options: ``faults=kept`` behind the name is what there is.

    Raises:
        InputError: it is no such file, or names no fabric that there is.
    """
    source = SourceText.parse(data, where)
    form = filled(InputForm, source.data, source.place)
    _, topology, notes = named_fabric(form.TopologyParams, published=is_published(options))
    notes += no_flag(options, "a TE-CCL input names its fabric")
    return replace(topology, notes=(*topology.notes, *notes))
