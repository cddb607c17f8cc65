"""The native cluster format, ``dualcoll.cluster/1``: boxes and the network that they plug into (docs/topology-file.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import FailFast

from dualcoll.errors import InputError
from dualcoll.topology.catalog import box as catalogue_box
from dualcoll.topology.compose import Box, check_boxes, compose
from dualcoll.topology.devices import Rates
from dualcoll.topology.forms import Form, Latency, Place, Ratio, Text, Whole, filled, one_of
from dualcoll.topology.importers import ImportOptions
from dualcoll.topology.model import Topology
from dualcoll.topology.networks import Network, NetworkKind

__all__ = ["FORMAT", "cluster_from_data"]

FORMAT = "dualcoll.cluster/1"

ReadBox = Callable[[str, ImportOptions], Topology]


class BoxForm(Form):
    """One entry of ``boxes``: ``use`` names a box of the catalogue, ``file`` a file; the other keys are what it lacks."""

    count: Whole = 1
    use: Text | None = None
    file: Text | None = None
    gpu: Text | None = None
    nic: Text | None = None
    pcie: Text | None = None
    cpu: Text | None = None
    rates: Annotated[Rates, one_of(Rates)] = Rates.NOMINAL
    rails: tuple[Whole, ...] | None = None


class NetworkForm(Form):
    """``network``: see :class:`~dualcoll.topology.networks.Network`."""

    kind: Annotated[NetworkKind, one_of(NetworkKind)] = NetworkKind.RAIL
    spines: Whole | None = None
    oversubscription: Ratio | None = None
    boxes_per_leaf: Whole | None = None
    k: Whole | None = None
    a: Whole | None = None
    p: Whole | None = None
    h: Whole | None = None
    latency: Latency | None = None


class ClusterForm(Form):
    """A whole file."""

    format: Text
    name: Text = ""
    boxes: Annotated[tuple[BoxForm, ...], FailFast()]
    network: NetworkForm = NetworkForm()


def cluster_from_data(data: object, place: Place, read_box: ReadBox) -> Topology:
    """The fabric that a cluster file describes. Boxes are called b0, b1, … in file order.

    Args:
        data: the file's content.
        place: says where a key stands.
        read_box: reads the topology file of a box, named as in the cluster file.

    Raises:
        InputError: whatever is wrong, with its place.
    """
    form = filled(ClusterForm, data, place)
    network = _network(form.network, place)
    kinds: list[tuple[int, Box]] = []
    for i, entry in enumerate(form.boxes):
        if not 1 <= entry.count <= 1_000_000:
            raise InputError(f"{entry.count} is out of range", where=place(("boxes", i, "count")), hint="use 1 or more")
        if min(entry.rails or (), default=0) < 0:
            raise InputError(f"rails {list(entry.rails or ())} have one below 0", where=place(("boxes", i, "rails")))
        kinds.append((entry.count, _box(entry, i, place, read_box)))
    try:
        check_boxes(kinds)
        boxes = [box for count, box in kinds for _ in range(count)]
        return compose([replace(box, name=f"b{i}") for i, box in enumerate(boxes)], network, form.name)
    except InputError as error:
        raise error.within(place(())) from None


def _network(form: NetworkForm, place: Place) -> Network:
    given: dict[str, Any] = {key: getattr(form, key) for key in NetworkForm.model_fields}
    try:
        return Network(**{key: value for key, value in given.items() if value is not None})
    except InputError as error:
        raise error.within(place(("network",))) from None


def _box(entry: BoxForm, position: int, place: Place, read_box: ReadBox) -> Box:
    """The box of an entry, yet without its name."""
    where = place(("boxes", position))
    if (entry.use is None) == (entry.file is None):
        raise InputError("it needs either use (a box of the catalogue) or file", where=where)
    try:
        if entry.file is not None:
            options = ImportOptions(gpu=entry.gpu, nic=entry.nic, pcie=entry.pcie, cpu=entry.cpu, rates=entry.rates)
            return Box("", read_box(entry.file, options), entry.rails, f"network port of {entry.file}")
        for key in ("gpu", "pcie", "cpu"):
            if getattr(entry, key) is not None:
                raise InputError(f"{key} is for a file, not for a box of the catalogue")
        given = {"nic": entry.nic, "rates": None if entry.rates is Rates.NOMINAL else entry.rates}
        box = catalogue_box(entry.use or "", **{key: value for key, value in given.items() if value is not None})
        return replace(box, rails=entry.rails)
    except InputError as error:
        raise error.within(where) from None
