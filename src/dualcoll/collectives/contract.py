"""Contracts: what each rank holds before a collective, and what it must hold after (docs/semantics.md §3).

Data is cut into chunks. A rank has one slot per chunk, and a slot's value is a set of contributions (rank numbers). Every
collective is two columns over the chunks: the rank where a chunk begins, and the rank where it must end. Shape letters: R
ranks, C chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualcoll.collectives.catalogue import COLLECTIVES, ROOTED, canonical_name, title
from dualcoll.errors import InputError

__all__ = ["ALL", "NOWHERE", "Contract", "joint_contract", "make_contract", "read_only_column"]

Shorts = NDArray[np.int32]

ALL = (
    -1
)  # as a source: every rank of the group begins with a contribution of its own; as a target: every rank ends with it
NOWHERE = -2  # a slot without a promise: scratch space, or a buffer for input or output alone

# how chunks of each collective begin and end: at all ranks of the group, at the root, or at one rank
_FORMS = {
    "broadcast": ("root", "all"),
    "reduce": ("all", "root"),
    "allreduce": ("all", "all"),
    "reducescatter": ("all", "one"),
    "allgather": ("one", "all"),
    "gather": ("one", "root"),
    "scatter": ("root", "one"),
    "alltoall": ("one", "one"),
    "alltoallv": ("one", "one"),
}
MAX_RANKS = 65_536  # sets of ranks are kept as bits, one set per rank
MAX_CHUNKS = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """Pre- and postcondition on (rank, chunk, set of contributions).

    A chunk with ``source`` q begins at rank q alone, as ``{q}``; one with ``source`` ALL begins at every rank r of its group,
    as ``{r}``. In the end the slots of ``target`` hold the contributions of all sources of the chunk's data.

    Attributes:
        collective: canonical name, or ``mix`` for several groups that differ in it.
        ranks: R, at least 1.
        source, target: int32 (C,), a rank number, ``ALL`` or ``NOWHERE``.
        data: int32 (C,), the chunk whose source this slot's data comes from: itself, unless the slot is one of several for
            the same data (scratch, or an output apart from the input). Default: every chunk is its own.
        root: rank number where the collective has a root.
        groups: rank numbers of each group; default: one of all ranks. group: int32 (C,), the group of each chunk.

    Raises:
        InputError: no ranks, columns of different length or with numbers out of range, or data without a source.
    """

    collective: str
    ranks: int
    source: Shorts
    target: Shorts
    data: Shorts = None  # type: ignore[assignment]
    root: int | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    group: Shorts = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not 1 <= self.ranks <= MAX_RANKS:
            raise InputError(f"a contract over {self.ranks} ranks", hint=f"use 1 to {MAX_RANKS}")
        chunks = len(self.source)
        defaults = {"data": np.arange(chunks), "group": np.zeros(chunks)}
        for name in ("source", "target", "data", "group"):
            given = getattr(self, name)
            column = read_only_column(defaults[name] if given is None else given, np.int32, name)
            object.__setattr__(self, name, column)
        if not self.groups:
            object.__setattr__(self, "groups", (tuple(range(self.ranks)),))
        _check(self)

    @property
    def chunks(self) -> int:
        """C, the number of chunks."""
        return int(self.source.size)

    def origin(self) -> Shorts:
        """The source of each chunk's data, int32 (C,): a rank number or ALL."""
        return self.source[self.data]

    def holders(self, chunk: int) -> tuple[int, ...]:
        """Ranks that hold the chunk at the start."""
        return self._ranks(int(self.source[chunk]), chunk)

    def receivers(self, chunk: int) -> tuple[int, ...]:
        """Ranks that must hold the chunk in the end."""
        return self._ranks(int(self.target[chunk]), chunk)

    def contributors(self, chunk: int) -> tuple[int, ...]:
        """Ranks whose contributions the chunk must hold where it is promised."""
        origin = int(self.data[chunk])
        return self._ranks(int(self.source[origin]), origin)

    def with_scratch(self, data: ArrayLike) -> Contract:
        """The same promises with more slots: one scratch chunk for each of these chunks' data, numbered from C."""
        of = np.asarray(data, dtype=np.int32)
        nowhere = np.full(of.size, NOWHERE)
        return replace(
            self,
            source=np.concatenate([self.source, nowhere]),
            target=np.concatenate([self.target, nowhere]),
            data=np.concatenate([self.data, self.data[of]]),
            group=np.concatenate([self.group, self.group[of]]),
        )

    def _ranks(self, who: int, chunk: int) -> tuple[int, ...]:
        if who == NOWHERE:
            return ()
        return self.groups[self.group[chunk]] if who == ALL else (who,)


def make_contract(collective: str, ranks: int, *, pieces: int = 1, root: int | None = None) -> Contract:
    """The contract of one collective over all ranks.

    Chunks are numbered shard by shard, ``pieces`` to a shard: of the message (broadcast, reduce, allreduce) ``p``; of rank q's
    shard (allgather, reducescatter, gather, scatter) ``q * pieces + p``; from rank q to rank t (alltoall, alltoallv)
    ``(q * ranks + t) * pieces + p``. What a rank keeps has its chunks too; they need no sends.

    Args:
        collective: any spelling that :func:`canonical_name` knows.
        ranks: R.
        pieces: chunks per shard, at least 1.
        root: of broadcast, reduce, gather and scatter, which default to rank 0.

    Raises:
        InputError: an unknown collective, a root that is no rank or not wanted, or too many chunks.
    """
    name = canonical_name(collective)
    if root is not None and name not in ROOTED:
        raise InputError(f"{title(name)} has no root, yet root {root} was given")
    root = (0 if root is None else root) if name in ROOTED else None
    if not 1 <= ranks <= MAX_RANKS:
        raise InputError(f"a contract over {ranks} ranks", hint=f"use 1 to {MAX_RANKS}")
    shards = {"broadcast": 1, "reduce": 1, "allreduce": 1, "alltoall": ranks**2, "alltoallv": ranks**2}.get(name, ranks)
    if not 1 <= pieces <= MAX_CHUNKS // shards:
        raise InputError(f"{pieces} pieces for each of {shards} shards", hint=f"use 1 to {MAX_CHUNKS // shards}")
    shard = np.repeat(np.arange(shards, dtype=np.int32), pieces)
    alone = dict.fromkeys(("begin", "end"), shard)
    if shards == ranks**2:
        alone = {"begin": shard // ranks, "end": shard % ranks}
    ends = {"all": ALL, "root": root}
    source, target = (
        alone[place] if form == "one" else np.full(shard.size, ends[form], np.int32)
        for place, form in zip(("begin", "end"), _FORMS[name], strict=True)
    )
    return Contract(name, ranks, source, target, root=root)


def joint_contract(ranks: int, parts: Sequence[tuple[Contract, Sequence[int]]]) -> Contract:
    """Several groups that run at once: each part is a contract of one group and the rank number of each of its ranks.

    Chunks are numbered part by part.

    Raises:
        InputError: a part has not as many rank numbers as ranks, or a number is no rank.
    """
    columns: dict[str, list[NDArray[np.int64]]] = {"source": [], "target": [], "data": [], "group": []}
    members: list[tuple[int, ...]] = []
    before = 0
    for part, numbers in parts:
        if len(numbers) != part.ranks:
            raise InputError(f"{len(numbers)} rank numbers for a contract over {part.ranks} ranks")
        to_joint = np.array([*numbers, NOWHERE, ALL], dtype=np.int64)  # NOWHERE and ALL index from the end
        columns["source"].append(to_joint[part.source])
        columns["target"].append(to_joint[part.target])
        columns["data"].append(part.data.astype(np.int64) + before)
        columns["group"].append(part.group.astype(np.int64) + len(members))
        members += [tuple(int(numbers[rank]) for rank in group) for group in part.groups]
        before += part.chunks
    names = {part.collective for part, _ in parts}
    return Contract(
        names.pop() if len(names) == 1 else "mix",
        ranks,
        **{name: np.concatenate(found) for name, found in columns.items()},  # type: ignore[arg-type]
        root=None if len(parts) != 1 or parts[0][0].root is None else int(parts[0][1][parts[0][0].root]),
        groups=tuple(members),
    )


def read_only_column(given: ArrayLike, dtype: type[np.generic], where: str) -> NDArray[Any]:
    """A copy of one column of numbers, of that type, that cannot be changed.

    Raises:
        InputError: it is not one column, or a number does not fit.
    """
    wide = np.asarray(given)
    with np.errstate(invalid="ignore"):  # numbers that do not fit are told below
        column = wide.astype(dtype) if wide.dtype.kind in "biuf" else np.zeros(0)
    if column.ndim != 1:
        raise InputError(f"it has shape {column.shape}, not one column", where=where)
    if wide.dtype != column.dtype and not np.array_equal(wide, column):
        raise InputError(f"a number does not fit {np.dtype(dtype).name}", where=where)
    column.setflags(write=False)
    return column


def _check(contract: Contract) -> None:
    if contract.collective not in (*COLLECTIVES, "mix"):
        raise InputError(
            f"collective {contract.collective!r} is not known", hint=f"use one of {', '.join(COLLECTIVES)}, mix"
        )
    if contract.root is not None and not 0 <= contract.root < contract.ranks:
        raise InputError(f"root {contract.root} is not within ranks 0 to {contract.ranks - 1}")
    for i, members in enumerate(contract.groups):
        if not members or len(set(members)) != len(members) or not all(0 <= rank < contract.ranks for rank in members):
            raise InputError(f"group {i} is not one or more different ranks of 0 to {contract.ranks - 1}")
    bounds = {
        "source": (NOWHERE, contract.ranks),
        "target": (NOWHERE, contract.ranks),
        "data": (0, contract.chunks),
        "group": (0, len(contract.groups)),
    }
    for name, (low, high) in bounds.items():
        column = getattr(contract, name)
        if column.shape != contract.source.shape or column.ndim != 1:
            raise InputError(f"{name} has shape {column.shape} for {contract.chunks} chunks")
        wrong = np.flatnonzero((column < low) | (column >= high))
        if wrong.size:
            raise InputError(f"{name} {column[wrong[0]]} is not in {low} .. {high - 1}", where=f"chunk {wrong[0]}")
    itself = contract.data == np.arange(contract.chunks)
    wrong = np.flatnonzero(~itself[contract.data] | ((contract.source == NOWHERE) == itself))
    if wrong.size:
        hint = "a chunk either has a source and is its own data, or has none and names a chunk that has one"
        raise InputError("its data has not exactly one source", where=f"chunk {wrong[0]}", hint=hint)
    _check_form(contract)


def _check_form(contract: Contract) -> None:
    """The columns are those of the collective that the contract names, and promise all of its data."""
    promised = contract.target != NOWHERE
    kept = np.zeros(contract.chunks, bool)
    kept[contract.data[promised]] = True
    wrong = np.flatnonzero(~kept[contract.data])
    if wrong.size:
        raise InputError("its data is promised to nobody", where=f"chunk {wrong[0]}")
    if contract.collective == "mix":
        return
    for form, place, column in zip(
        _FORMS[contract.collective], ("begin", "end"), (contract.origin(), contract.target), strict=True
    ):
        wanted = column == ALL if form == "all" else column >= 0
        if form == "root" and contract.root is not None:
            wanted = column == contract.root
        wrong = np.flatnonzero(promised & ~wanted)
        if wrong.size:
            where = {"all": "at all ranks", "root": "at the root", "one": "at one rank"}[form]
            name = title(contract.collective)
            raise InputError(f"its data does not {place} {where}, as that of {name} does", where=f"chunk {wrong[0]}")
