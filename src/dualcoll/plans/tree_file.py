"""Many trees in a file of their own: numpy's .npz, described in docs/plan-file.md.

Trees share most of their routed edges. Each different one is stored once, and a tree is a list of 4-byte numbers. The plan
file names this file by its SHA-256, so that one can never be read with another's.
"""

from __future__ import annotations

import io
import zipfile
from array import array
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.plans.document import GroupRecord, Hop, PlanDocument, TreeRecord, TreesOnDemand
from dualcoll.plans.fields import shown, text, the_object
from dualcoll.plans.model import Phase
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.model import Topology
from dualcoll.units import MAX_SIZE

__all__ = ["read_trees", "tree_file_reference", "trees_to_bytes"]

MAX_BYTES = 2**30  # of the file, and of what it unpacks to

TREES = {"rate": "<f8", "bytes": "<i8", "group": "<i4", "root": "<i4", "target": "<i4"}
EDGES = {"edge_tail": "<i4", "edge_head": "<i4", "edge_phase": "<i1"}
ROUTES = {"route_ptr": "<i8", "hop_node": "<i4", "hop_cable": "<i4"}
ALWAYS = TREES | {"tree_ptr": "<i8", "tree_edge": "<i4"} | EDGES

Arrays = dict[str, NDArray[Any]]


def tree_file_reference(plan_file: str, content: bytes) -> dict[str, str]:
    """What the plan file of that name says in place of the trees: the other file's name and hash, which its content fixes."""
    digest = sha256(content).hexdigest()
    return {"file": f"{plan_file[:200]}.{digest[:16]}.npz", "sha256": digest}


def trees_to_bytes(document: PlanDocument) -> bytes:
    """The content of the file.

    Raises:
        InputError: as :func:`~dualcoll.plans.conversion.plan_to_document`, or a tree with more or fewer routes than edges.
    """
    node = document.topology.index
    group = {record.name: g for g, record in enumerate(document.groups)}
    known: dict[tuple[tuple[str, str, Phase], tuple[Hop, ...]], int] = {}
    lists: dict[str, list[Any]] = {name: [] for name in TREES}
    tree_ptr, tree_edge = array("q", [0]), array("i")
    for i, tree in enumerate(document.trees):
        target = -1 if tree.target is None else node[tree.target]
        for name, value in zip(TREES, (tree.rate, tree.size, group[tree.group], node[tree.root], target), strict=True):
            lists[name].append(value)
        routes = ((),) * len(tree.edges) if tree.routes is None else tree.routes
        if len(routes) != len(tree.edges):
            raise InputError(f"{len(routes)} routes for {len(tree.edges)} edges", where=f"trees[{i}]")
        tree_edge.extend(known.setdefault(routed, len(known)) for routed in zip(tree.edges, routes, strict=True))
        tree_ptr.append(len(tree_edge))
    members: dict[str, Any] = lists | {"tree_ptr": tree_ptr, "tree_edge": tree_edge}
    members["edge_tail"] = [node[tail] for (tail, _, _), _ in known]
    members["edge_head"] = [node[head] for (_, head, _), _ in known]
    members["edge_phase"] = [phase for (_, _, phase), _ in known]
    if document.routing.kind is RoutingKind.SINGLE:
        hops = [(hop, 0) if isinstance(hop, str) else hop for _, route in known for hop in route]
        members["route_ptr"] = np.cumsum([0, *(len(route) for _, route in known)])
        members["hop_node"] = [node[name] for name, _ in hops]
        members["hop_cable"] = [cable for _, cable in hops]
    stream = io.BytesIO()
    types = ALWAYS | ROUTES
    np.savez_compressed(stream, **{name: np.array(values, types[name]) for name, values in members.items()})  # type: ignore[arg-type]
    return stream.getvalue()


def read_trees(
    reference: object, folder: Path | None, topology: Topology, groups: tuple[GroupRecord, ...], routing: Routing
) -> TreesOnDemand:
    """The trees that a plan file keeps elsewhere.

    Args:
        reference: what :func:`tree_file_reference` made.
        folder: where the plan file is.

    Raises:
        InputError: the file is missing, is another one or was changed, or it holds no trees of this plan.
    """
    entry = the_object(reference, "", ("file", "sha256"))
    name, digest = text(entry["file"], "file"), text(entry["sha256"], "sha256")
    if folder is None:
        raise InputError(f"they are in the file {name[:60]!r}", hint="read the plan from its own file")
    if not name or not name.isprintable() or Path(name).name != name:
        raise InputError(f"{name[:60]!r} is not the name of a file beside the plan", where="file")
    try:
        content = read_bytes(folder / name, MAX_BYTES)
    except InputError as error:
        raise InputError(error.problem, where=name, hint="it belongs beside the plan file") from None
    if sha256(content).hexdigest() != digest:
        raise InputError("it is not the file that was written with the plan: its SHA-256 differs", where=name)
    types = ALWAYS | (ROUTES if routing.kind is RoutingKind.SINGLE else {})
    try:
        arrays = _unpacked(content, types)
        _check(arrays, len(topology.nodes), len(groups))
    except InputError as error:
        raise error.within(name) from None
    return _on_demand(arrays, topology, groups)


def _unpacked(content: bytes, types: dict[str, str]) -> Arrays:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            sizes = {member.filename: member.file_size for member in archive.infolist()}
            members = {f"{name}.npy": name for name in types}
            for member in sorted(sizes.keys() ^ members.keys()):
                raise InputError(f"member {shown(member)} is {'not known' if member in sizes else 'missing'}")
            if sum(sizes.values()) > MAX_BYTES:
                raise InputError(f"it unpacks to more than {MAX_BYTES // 2**20} MiB")
            return {name: _array(archive.read(member), name, types[name]) for member, name in members.items()}
    except InputError:
        raise
    except Exception:  # what zipfile raises on broken input is not documented
        raise InputError("it is no .npz file, or broken") from None


def _array(content: bytes, name: str, dtype: str) -> NDArray[Any]:
    """One member, of one dimension and the type that it must have."""
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError
        shape, _, found = np.lib.format.read_array_header_1_0(stream)
    except ValueError:
        raise InputError("it is no array", where=name) from None
    if len(shape) != 1 or found != np.dtype(dtype) or shape[0] * found.itemsize != len(content) - stream.tell():
        raise InputError(f"it is not a whole list of {np.dtype(dtype).name}", where=name)
    return np.frombuffer(content, dtype, offset=stream.tell())


def _check(arrays: Arrays, nodes: int, groups: int) -> None:
    """Every number must be usable: no tree may fail when it is made later."""
    trees, edges = arrays["rate"].size, arrays["edge_tail"].size
    for name in TREES:
        _need(arrays[name].size == trees, name, "it has not one number for each tree")
    for name in EDGES:
        _need(arrays[name].size == edges, name, "it has not one number for each edge")
    _need(
        bool((np.isfinite(arrays["rate"]) & (arrays["rate"] >= 0)).all()), "rate", "a rate is not a finite number >= 0"
    )
    _need_range(arrays, "bytes", 0, MAX_SIZE)
    _need_range(arrays, "group", 0, groups - 1)
    _need_range(arrays, "root", 0, nodes - 1)
    _need_range(arrays, "target", -1, nodes - 1)
    _need_range(arrays, "edge_tail", 0, nodes - 1)
    _need_range(arrays, "edge_head", 0, nodes - 1)
    _need_range(arrays, "edge_phase", 0, len(Phase) - 1)
    _need_range(arrays, "tree_edge", 0, edges - 1)
    _need_ptr(arrays, "tree_ptr", trees, arrays["tree_edge"].size)
    if "route_ptr" in arrays:
        _need(arrays["hop_cable"].size == arrays["hop_node"].size, "hop_cable", "it has not one number for each hop")
        _need_range(arrays, "hop_node", 0, nodes - 1)
        _need_range(arrays, "hop_cable", 0, 2**31 - 1)
        _need_ptr(arrays, "route_ptr", edges, arrays["hop_node"].size)


def _need(usable: bool, name: str, problem: str) -> None:
    if not usable:
        raise InputError(problem, where=name)


def _need_range(arrays: Arrays, name: str, least: int, most: int) -> None:
    values = arrays[name]
    outside = values[(values < least) | (values > most)]
    _need(not outside.size, name, f"{outside[:1].tolist()} is not in {least} .. {most}")


def _need_ptr(arrays: Arrays, name: str, count: int, end: int) -> None:
    ptr = arrays[name]
    usable = ptr.size == count + 1 and ptr[0] == 0 and ptr[-1] == end and bool((np.diff(ptr) >= 0).all())
    _need(usable, name, f"it does not divide {end} into {count}")


def _on_demand(arrays: Arrays, topology: Topology, groups: tuple[GroupRecord, ...]) -> TreesOnDemand:
    names = [node.name for node in topology.nodes]
    ends = zip(arrays["edge_tail"].tolist(), arrays["edge_head"].tolist(), arrays["edge_phase"].tolist(), strict=True)
    phases = list(Phase)
    edges = [(names[tail], names[head], phases[phase]) for tail, head, phase in ends]
    routes: list[tuple[Hop, ...]] | None = None
    if "route_ptr" in arrays:
        cables = zip(arrays["hop_node"].tolist(), arrays["hop_cable"].tolist(), strict=True)
        hops: list[Hop] = [(names[node], cable) if cable else names[node] for node, cable in cables]
        routes = [tuple(hops[start:end]) for start, end in pairwise(arrays["route_ptr"].tolist())]
    ptr, edge = arrays["tree_ptr"].tolist(), arrays["tree_edge"]

    def make(i: int) -> TreeRecord:
        mine = edge[ptr[i] : ptr[i + 1]].tolist()
        target = int(arrays["target"][i])
        return TreeRecord(
            rate=float(arrays["rate"][i]),
            group=groups[arrays["group"][i]].name,
            root=names[arrays["root"][i]],
            target=None if target < 0 else names[target],
            size=int(arrays["bytes"][i]),
            edges=tuple(edges[e] for e in mine),
            routes=None if routes is None else tuple(routes[e] for e in mine),
        )

    return TreesOnDemand(len(ptr) - 1, make)
