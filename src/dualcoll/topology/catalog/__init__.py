"""Fabrics by name: abstract boxes and regular shapes.

A spec is ``name``, ``name:size`` or ``name:option=value,…``: ``dgx-h100:boxes=4,network=rail``, ``torus:8x8``,
``fat-tree:k=8``. Boxes are abstract (GPU-switch and GPU-network links, no PCIe stage).
"""

from __future__ import annotations

from difflib import get_close_matches

from dualcoll.errors import InputError
from dualcoll.topology.catalog.boxes import BOXES, NETWORK_OPTIONS, single_box
from dualcoll.topology.catalog.options import Entry, Option
from dualcoll.topology.catalog.shapes import SHAPES
from dualcoll.topology.compose import Box
from dualcoll.topology.model import Topology

__all__ = ["Entry", "Option", "box", "catalog", "entries"]

_ENTRIES = {entry.name: entry for entry in (*BOXES, *SHAPES)}


def catalog(spec: str, **options: object) -> Topology:
    """The fabric of that name, in any case: ``catalog("dgx-h100", boxes=4)`` or ``catalog("dgx-h100:boxes=4")``.

    Bandwidths and times are given with their units, ``bandwidth="25GB/s"``.

    Raises:
        InputError: an unknown name or option, a value out of range, or a fabric too big to handle.
    """
    name, _, rest = spec.partition(":")
    entry = _ENTRIES.get(name.strip().lower())
    if entry is None:
        close = get_close_matches(name[:60].strip().lower(), _ENTRIES, n=2)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise InputError(f"the catalogue has no {name[:60]!r}", hint=f"{hint}`dualcoll topo list` shows all names")
    try:
        given = _merged(entry, rest, options)
        text = ",".join(f"{key}={value}" if key != entry.size else str(value) for key, value in given.items())
        return entry.build(f"{entry.name}:{text}" if text else entry.name, entry.parse(given))
    except InputError as error:
        raise error.within(spec[:100]) from None


def entries() -> tuple[Entry, ...]:
    """Everything the catalogue has, boxes first."""
    return tuple(_ENTRIES.values())


def box(spec: str, **options: object) -> Box:
    """One box of the catalogue with its network ports free, to be composed.

    Raises:
        InputError: a name that is no box, an option about the network, or as :func:`catalog`.
    """
    name, _, rest = spec.partition(":")
    entry = next((entry for entry in BOXES if entry.name == name.strip().lower()), None)
    if entry is None:
        names = ", ".join(entry.name for entry in BOXES)
        raise InputError(f"the catalogue has no box {name[:60]!r}", hint=f"its boxes are {names}")
    try:
        given = _merged(entry, rest, options)
        for key in ("boxes", *(option.name for option in NETWORK_OPTIONS)):
            if key in given:
                raise InputError(f"{key} is no option of a single box", hint="say count beside it, and network below")
        return single_box(entry.name, entry.parse(given))
    except InputError as error:
        raise error.within(spec[:100]) from None


def _merged(entry: Entry, text: str, options: dict[str, object]) -> dict[str, object]:
    given = entry.split(text)
    for key, value in options.items():
        if key in given:
            raise InputError(f"option {key} is given twice")
        given[key] = value
    return given
