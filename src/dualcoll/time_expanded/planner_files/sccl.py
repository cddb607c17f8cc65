"""SCCL's and msccl-tools' algorithms in JSON: steps of so many rounds, each with sends ``[address, source, destination]``.

Cai et al., "Synthesizing Optimal Collective Algorithms", PPoPP 2021; microsoft/msccl-tools. A link of ``links[dst][src] = n``
carries n chunks a round. Chunks that begin at several ranks under one address are summed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ConfigDict

from dualcoll.certificates.findings import Findings
from dualcoll.collectives.catalogue import COLLECTIVES
from dualcoll.collectives.contract import ALL, Contract
from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.topology.forms import Form, Text, Whole, filled
from dualcoll.topology.source_text import SourceText

__all__ = ["DEFAULT_CHUNK", "read_sccl"]

DEFAULT_CHUNK = 2**20  # bytes; the files have none
MAX_BYTES = 2**28
MAX_RANKS = 4096
MAX_PIECES = 1024
Send = tuple[int, int, int]  # address, source, destination


class _Loose(Form):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ChunkForm(_Loose):
    """Who has a chunk, who is to have it, and where."""

    pre: tuple[Whole, ...]
    post: tuple[Whole, ...]
    addr: Whole


class CollectiveForm(_Loose):
    """What is to be done."""

    name: Text = ""
    runtime_name: Text = ""
    nodes: Whole
    chunks: tuple[ChunkForm, ...]


class TopologyForm(_Loose):
    """Chunks a round on each link, by destination and source, and limits over several links."""

    name: Text = ""
    links: tuple[tuple[Whole, ...], ...]
    switches: tuple[tuple[Any, ...], ...] = ()


class StepForm(_Loose):
    """Sends of one step."""

    rounds: Whole
    sends: tuple[tuple[Whole, Whole, Whole], ...]


class InstanceForm(_Loose):
    """How many chunks each of the collective's is cut into; ``pipeline`` is None where steps do not overlap."""

    chunks: Whole = 1
    pipeline: Any = None


class AlgorithmForm(_Loose):
    """A whole file."""

    name: Text = "SCCL"
    instance: InstanceForm = InstanceForm()
    input_map: dict[str, tuple[Whole, ...]]
    output_map: dict[str, tuple[Whole, ...]]
    steps: tuple[StepForm, ...]
    collective: CollectiveForm
    topology: TopologyForm


@dataclass(frozen=True, slots=True)
class _Limit:
    """Chunks a round from any of some ranks to any of others."""

    sources: frozenset[int]
    ends: frozenset[int]
    chunks: int
    name: str


def read_sccl(path: str | Path, *, chunk: int = DEFAULT_CHUNK) -> Schedule:
    """Read an algorithm as a schedule without routes; its steps become rounds.

    Args:
        path: the file. chunk: bytes of a chunk, of which the file says nothing.

    Raises:
        InputError: it is no such file, or has what a schedule cannot say; with its key.
        CheckFailed: a rank sends what it has not, a link carries more than it can, or somebody lacks something in the end.
    """
    where = str(path)
    source = SourceText.parse(read_bytes(path, MAX_BYTES), where)
    form = filled(AlgorithmForm, source.data, source.place)
    try:
        return _schedule(form, chunk)
    except InputError as error:
        raise error.within(where) from None


def _schedule(form: AlgorithmForm, chunk: int) -> Schedule:
    ranks = form.collective.nodes
    if not 2 <= ranks <= MAX_RANKS:
        raise InputError(f"{ranks} ranks", where="collective: nodes", hint=f"2 to {MAX_RANKS} can be read")
    links = form.topology.links
    if len(links) != ranks or any(len(row) != ranks for row in links):
        raise InputError(f"it is no table of {ranks} by {ranks} numbers", where="topology: links")
    limits = [_limit(i, given, ranks) for i, given in enumerate(form.topology.switches)]
    if form.instance.pipeline is not None:
        raise InputError(
            "its steps overlap", where="instance: pipeline", hint="only algorithms without one can be read"
        )
    addresses, contract = _contract(form.collective, form.instance.chunks)
    _check_maps(form, addresses, contract)
    builder = ScheduleBuilder(contract, chunk, name=form.name)
    findings = Findings()
    held: dict[tuple[int, int], frozenset[int]] = {
        (rank, c): frozenset([rank]) for c in range(contract.chunks) for rank in contract.holders(c)
    }
    for number, step in enumerate(form.steps):
        sends = [_known(send, addresses, ranks, number, i) for i, send in enumerate(step.sends)]
        _check_capacity(sends, step.rounds, links, limits, number, findings)
        ops = _ops(sends, held, number, findings)
        beside: Counter[tuple[int, int]] = Counter()  # all sends of a step go at once: none waits in another's channel
        for i in _in_order(sends, number):
            c, src, dst = sends[i]
            builder.send(src, dst, c, ops[i], channel=beside[src, dst], round=number)
            beside[src, dst] += 1
    for c in range(contract.chunks):
        whole = frozenset(contract.contributors(c))
        for rank in contract.receivers(c):
            if held.get((rank, c), frozenset()) != whole:
                findings.add(f"rank {rank} lacks {_named(addresses, c)} in the end")
    if findings:
        raise findings.error()
    return builder.build()


def _check_maps(form: AlgorithmForm, addresses: list[int], contract: Contract) -> None:
    """The addresses where ranks begin and end are those of the collective."""
    for key, given, ranks_of in (
        ("input_map", form.input_map, contract.holders),
        ("output_map", form.output_map, contract.receivers),
    ):
        meant: dict[str, set[int]] = defaultdict(set)
        for c, address in enumerate(addresses):
            for rank in ranks_of(c):
                meant[str(rank)].add(address)
        for name in sorted({*meant, *(rank for rank, found in given.items() if found)}):
            if set(given.get(name, ())) != meant[name]:
                raise InputError(f"rank {name[:20]} has other addresses than in the collective", where=key)


def _contract(form: CollectiveForm, pieces: int) -> tuple[list[int], Contract]:
    """Addresses in the order of chunk numbers, and the contract over them. A chunk cut in n has n addresses in its place."""
    if not 1 <= pieces <= MAX_PIECES:
        raise InputError(f"{pieces} chunks", where="instance: chunks", hint=f"1 to {MAX_PIECES} can be read")
    at: dict[int, list[ChunkForm]] = defaultdict(list)
    for chunk in form.chunks:
        for piece in range(pieces):
            at[chunk.addr * pieces + piece].append(chunk)
    everybody = tuple(range(form.nodes))
    addresses = sorted(at)
    source, target, group = [], [], []
    groups: dict[tuple[int, ...], int] = {everybody: 0}
    for address in addresses:
        pres = tuple(sorted(rank for chunk in at[address] for rank in chunk.pre))
        posts = {tuple(sorted(chunk.post)) for chunk in at[address]}
        where = f"collective: chunks: address {address}"
        if any(len(chunk.pre) != 1 for chunk in at[address]) or len(set(pres)) != len(pres):
            raise InputError("a chunk does not begin at one rank alone", where=where)
        if len(posts) != 1 or not set(pres) | {rank for post in posts for rank in post} <= set(everybody):
            raise InputError("its chunks end at different ranks, or at none that there are", where=where)
        post = posts.pop()
        if not post:
            raise InputError("nobody is to have it", where=where)
        alone = len(pres) == 1
        if not alone and len(post) > 1 and post != pres:
            raise InputError("a sum of some ranks for others", where=where)
        members = post if alone else pres
        source.append(pres[0] if alone else ALL)
        target.append(post[0] if len(post) == 1 else ALL)
        group.append(groups.setdefault(members if len(post) > 1 or not alone else everybody, len(groups)))
    name = form.runtime_name.replace("_", "")
    try:
        contract = Contract(
            name if name in COLLECTIVES else "mix",
            form.nodes,
            np.array(source),
            np.array(target),
            groups=tuple(groups),
            group=np.array(group),
        )
    except InputError as error:
        raise error.within("collective") from None
    return addresses, contract


def _limit(number: int, given: tuple[Any, ...], ranks: int) -> _Limit:
    """A switch: sources, ends, chunks a round, and perhaps a name."""
    where = f"topology: switches[{number}]"
    if len(given) not in (3, 4) or type(given[2]) is not int or not all(isinstance(part, list) for part in given[:2]):
        raise InputError("it is not sources, destinations, chunks a round and a name", where=where)
    if not all(type(rank) is int and 0 <= rank < ranks for part in given[:2] for rank in part):
        raise InputError(f"it names a rank that is not in 0 to {ranks - 1}", where=where)
    name = str(given[3])[:60] if len(given) == 4 else str(number)
    return _Limit(frozenset(given[0]), frozenset(given[1]), given[2], name)


def _known(send: Send, addresses: list[int], ranks: int, step: int, number: int) -> Send:
    """The send with the chunk's number for its address."""
    address, src, dst = send
    where = f"steps[{step}]: sends[{number}]"
    if address not in addresses:
        raise InputError(f"there is no address {address}", where=where)
    if not (0 <= src < ranks and 0 <= dst < ranks) or src == dst:
        raise InputError(f"{src} -> {dst} is no way from a rank to another of {ranks}", where=where)
    return addresses.index(address), src, dst


def _check_capacity(
    sends: list[Send],
    rounds: int,
    links: tuple[tuple[int, ...], ...],
    limits: list[_Limit],
    step: int,
    findings: Findings,
) -> None:
    used = Counter((src, dst) for _, src, dst in sends)
    for (src, dst), count in sorted(used.items()):
        most = links[dst][src] * rounds
        if count > most:
            findings.add(f"step {step}: {count} sends on {src} -> {dst}, where {most} fit")
    for limit in limits:
        count = sum(n for (src, dst), n in used.items() if src in limit.sources and dst in limit.ends)
        if count > limit.chunks * rounds:
            findings.add(f"step {step}: {count} sends over switch {limit.name}, where {limit.chunks * rounds} fit")


def _ops(sends: list[Send], held: dict[tuple[int, int], frozenset[int]], step: int, findings: Findings) -> list[Op]:
    """What each send does, from what everybody holds when the step begins; and what they hold when it ends."""
    before = dict(held)
    ops: list[Op] = []
    for c, src, dst in sends:
        sent = before.get((src, c), frozenset())
        there = held.get((dst, c), frozenset())
        if not sent:
            findings.add(f"step {step}: rank {src} sends chunk {c} to {dst} and has it not")
        elif there & sent and not there <= sent:
            findings.add(f"step {step}: rank {src} sends to {dst} a sum for chunk {c} of which a part is there already")
        held[dst, c] = there | sent
        ops.append(Op.REDUCE if there and not there & sent else Op.COPY)
    return ops


def _in_order(sends: list[Send], step: int) -> list[int]:
    """The sends in an order in which nothing is overwritten before it is sent: all of a step go at once."""
    reads: dict[tuple[int, int], set[int]] = defaultdict(set)
    for i, (c, src, _) in enumerate(sends):
        reads[src, c].add(i)
    order: list[int] = []
    left = dict.fromkeys(range(len(sends)))
    while left:
        free = [i for i in left if not reads[sends[i][2], sends[i][0]] - {i}]
        if not free:
            c, src, dst = sends[next(iter(left))]
            raise InputError(f"ranks {src} and {dst} exchange chunk {c} in place", where=f"steps[{step}]")
        for i in free:
            del left[i]
            reads[sends[i][1], sends[i][0]].discard(i)
        order += free
    return order


def _named(addresses: list[int], chunk: int) -> str:
    return f"chunk {chunk}" if addresses[chunk] == chunk else f"chunk {chunk} (address {addresses[chunk]})"
