"""TACCL's topology files (microsoft/taccl, ``taccl/topologies``): costs of links in us for one chunk.

Which links there are its code knows by name. Costs are multiplied by 10 or 100 where chunks are small, and a file does not say
by how much. Its MB is 10^6 bytes and its KB a 1024th of that. Tables of links are [destination][source].
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import ConfigDict

from dualcoll.errors import InputError
from dualcoll.topology.draft import Draft, check_size
from dualcoll.topology.forms import Form, Ratio, Text, Whole, filled
from dualcoll.topology.importers.options import ImportOptions, keys_behind, no_flag
from dualcoll.topology.importers.teccl import has_keys
from dualcoll.topology.importers.teccl_fabrics import DGX1_CABLES
from dualcoll.topology.model import Kind, Link, Topology
from dualcoll.topology.source_text import SourceText
from dualcoll.units import format_size, parse_size

__all__ = ["STRUCTURES", "import_taccl", "is_taccl"]

STRUCTURES = {"DGX2": 16, "NDv2": 8}  # GPUs of a box
MB = 10**6
US = 1e-6
_SIZES = {"KB": MB / 1024, "MB": float(MB), "GB": MB * 1024.0}


KEYS = ({"gpus_per_node", "alpha", "node_betas_list"}, {"gpus_per_node", "alpha", "betas"})
BEHIND = {"boxes": "2", "structure": "|".join(STRUCTURES), "scale": "10", "size": "1MB"}
_WHERE = "behind the file's name"


@dataclass(frozen=True, slots=True)
class _Given:
    """What a file does not say, from behind its name.

    Attributes:
        boxes: how many there are.
        structure: ``DGX2`` or ``NDv2``; by default the one in the file's name, which a file with links does not need.
        scale: by how much the costs are multiplied; 1 by default where they are for 1 MB.
        size: bytes of the chunk that the costs are for; by default what is in the file's name, such as ``_32KB``.
    """

    boxes: int
    structure: str | None
    scale: float | None
    size: float | None

    @classmethod
    def of(cls, options: ImportOptions) -> _Given:
        given = keys_behind(options, BEHIND)
        if "boxes" not in given:
            raise InputError(
                "a file of one box, and not how many there are", hint="say it behind the file's name: topo.json:boxes=2"
            )
        boxes = given["boxes"]
        if not re.fullmatch("[1-9][0-9]{0,5}", boxes):
            raise InputError(f"boxes={boxes[:60]}", where=_WHERE, hint="use 1 or more")
        try:
            scale = float(given["scale"]) if "scale" in given else None
        except ValueError:
            scale = 0.0
        if scale is not None and not 0 < scale < float("inf"):
            raise InputError(f"scale={given['scale'][:60]}", where=_WHERE, hint="such as 10 or 100")
        size = parse_size(given["size"]) if "size" in given else None
        return cls(int(boxes), given.get("structure"), scale, size)


class TacclForm(Form):
    """A whole file."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Text
    gpus_per_node: Whole
    nics_per_node: Whole | None = None
    alpha: Ratio
    node_betas_list: tuple[Ratio, ...] = ()
    node_invbws_list: tuple[Ratio, ...] = ()
    links: tuple[tuple[Whole, ...], ...] = ()
    betas: tuple[tuple[Ratio, ...], ...] = ()
    invbws: tuple[tuple[Ratio, ...], ...] = ()
    remote_alpha: Ratio | None = None
    remote_beta: Ratio | None = None
    remote_invbw: Ratio | None = None


@dataclass(frozen=True, slots=True)
class _Costs:
    """Costs as seconds and bytes/s."""

    size: float
    scale: float

    def seconds(self, cost: float) -> float:
        return cost * US / self.scale

    def rate(self, beta: float, where: str) -> float:
        if beta <= 0:
            raise InputError(f"a beta of {beta!r} is not above 0", where=where)
        return self.size / self.seconds(beta)


def is_taccl(data: bytes) -> bool:
    """Whether it is a TACCL topology, by the keys that only such a file has."""
    return has_keys(data, *KEYS)


def import_taccl(data: bytes, where: str, options: ImportOptions) -> Topology:
    """Read a topology file.

    GPUs of a DGX2 meet at one switch, those of an NDv2 have the cables of a DGX-1. Where there are several boxes, the NICs of a
    box, each with its part of the GPUs, meet at one network switch.

    Args:
        data: the file. where: its name, for messages.
        options: behind the file's name stand ``boxes``, and where needed ``structure``, ``scale`` and ``size``.

    Raises:
        InputError: it is no such file, or something that it does not say was not given; with what says it.
    """
    source = SourceText.parse(data, where)
    form = filled(TacclForm, source.data, source.place)
    given = _Given.of(options)
    notes = [f"without effect: {', '.join(key[:60] for key in form.model_extra)}"] if form.model_extra else []
    costs = _costs(form, given, notes)
    _check_totals(form, notes)
    check_size(given.boxes * (form.gpus_per_node + 1 + (form.nics_per_node or 0)), 0)
    draft = Draft()
    boxes = [_box(draft, form, given, costs, box) for box in range(given.boxes)]
    if given.boxes > 1:
        _network(draft, form, costs, boxes)
    notes += no_flag(options, "a TACCL topology has its own costs")
    return draft.topology(f"TACCL {form.name[:60]} x{given.boxes}", tuple(notes))


def _costs(form: TacclForm, given: _Given, notes: list[str]) -> _Costs:
    named = re.search(r"_([0-9]{1,6})(KB|MB|GB)$", form.name)
    size = given.size
    if size is None:
        if named is None:
            raise InputError(
                f"name {form.name[:60]!r} does not say which chunk the costs are for",
                where="name",
                hint="say it behind the file's name: size=1MB",
            )
        size = int(named[1]) * _SIZES[named[2]]
    if not size > 0:
        raise InputError("costs for no bytes", where=_WHERE if given.size is not None else "name")
    scale = given.scale
    if scale is None:
        if size != MB:
            raise InputError(
                f"its costs are for {format_size(round(size))}, multiplied by a number that it does not say",
                where="alpha",
                hint="say it behind the file's name, scale=10 or scale=100: alpha over the latency in us",
            )
        scale = 1.0
        notes.append("costs are taken as us for 1 MB, not multiplied; scale=10 behind the file's name says otherwise")
    return _Costs(size, scale)


def _check_totals(form: TacclForm, notes: list[str]) -> None:
    """Name totals that are not latency and time: betas are what is used."""
    totals = [
        (form.alpha, beta, total) for beta, total in zip(form.node_betas_list, form.node_invbws_list, strict=False)
    ]
    if None not in (form.remote_alpha, form.remote_beta, form.remote_invbw):
        totals.append((form.remote_alpha or 0.0, form.remote_beta or 0.0, form.remote_invbw or 0.0))
    for alpha, beta, total in totals:
        if abs(alpha + beta - total) > 1e-9 * total:
            notes.append(f"invbw {total:g} is not alpha + beta = {alpha + beta:g}: alpha and beta are used")


def _box(draft: Draft, form: TacclForm, given: _Given, costs: _Costs, box: int) -> list[int]:
    """One box; its GPUs."""
    latency = costs.seconds(form.alpha)
    if form.gpus_per_node < 1:
        raise InputError(f"{form.gpus_per_node} GPUs", where="gpus_per_node")
    gpus = [draft.node(str(box * form.gpus_per_node + i), Kind.GPU, f"box{box}") for i in range(form.gpus_per_node)]
    if form.links:
        _tabled(draft, form, costs, gpus)
        return gpus
    structure = _structure(form, given)
    rates = [costs.rate(beta, "node_betas_list") for beta in form.node_betas_list]
    if form.gpus_per_node != STRUCTURES[structure]:
        raise InputError(
            f"a {structure} has {STRUCTURES[structure]} GPUs, not {form.gpus_per_node}", where="gpus_per_node"
        )
    kinds = 2 if structure == "NDv2" else 1
    if len(rates) != kinds:
        raise InputError(f"{len(rates)} betas, where a {structure} has {kinds}", where="node_betas_list")
    if structure == "NDv2":
        for (a, b), parts in DGX1_CABLES:
            draft.cable(gpus[a], gpus[b], rates[0 if parts == 2 else 1], latency, "TACCL")
    else:
        switch = draft.node(f"switch{box}", Kind.SWITCH, f"box{box}")
        for gpu in gpus:
            draft.cable(gpu, switch, rates[0], latency / 2, "TACCL")
    return gpus


def _structure(form: TacclForm, given: _Given) -> str:
    named = next((known for known in STRUCTURES if form.name.lower().startswith(known.lower())), None)
    structure = named if given.structure is None else given.structure
    known = ", ".join(STRUCTURES)
    if structure is None:
        raise InputError(
            f"it has no links, and name {form.name[:60]!r} names no structure",
            where="name",
            hint=f"say it behind the file's name: structure=NDv2 ({known})",
        )
    if structure not in STRUCTURES:
        raise InputError(f"{structure[:60]!r} is not known", where=_WHERE, hint=f"use one of {known}")
    return structure


def _tabled(draft: Draft, form: TacclForm, costs: _Costs, gpus: list[int]) -> None:
    """Links from the file's own tables: ``links[dst][src]`` cables, each of ``betas[dst][src]``."""
    for name, table in (("links", form.links), ("betas", form.betas)):
        if len(table) != len(gpus) or any(len(row) != len(gpus) for row in table):
            raise InputError(f"it is no table of {len(gpus)} by {len(gpus)} numbers", where=name)
    latency = costs.seconds(form.alpha)
    for dst, row in enumerate(form.links):
        for src, cables in enumerate(row):
            if cables > 0:
                rate = cables * costs.rate(form.betas[dst][src], f"betas[{dst}][{src}]")
                draft.links.append(Link(gpus[src], gpus[dst], rate, latency, source="TACCL"))


def _network(draft: Draft, form: TacclForm, costs: _Costs, boxes: list[list[int]]) -> None:
    nics = form.nics_per_node or 0
    if form.remote_alpha is None or form.remote_beta is None or nics < 1:
        raise InputError("several boxes, and nothing of what joins them", where="remote_beta", hint="use boxes=1")
    if form.gpus_per_node % nics:
        raise InputError(f"{nics} NICs for {form.gpus_per_node} GPUs", where="nics_per_node")
    rate, latency = costs.rate(form.remote_beta, "remote_beta"), costs.seconds(form.remote_alpha)
    network = draft.node("network", Kind.SWITCH)
    each = form.gpus_per_node // nics
    for box, gpus in enumerate(boxes):
        for i in range(nics):
            nic = draft.node(f"nic{box * nics + i}", Kind.NIC, f"box{box}")
            draft.cable(nic, network, rate, latency / 2, "TACCL")
            for gpu in gpus[i * each : (i + 1) * each]:
                draft.cable(gpu, nic, rate, 0.0, "TACCL")
