"""What each rank sends to each other, in bytes: the message of an AllToAllv."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError

__all__ = ["MAX_RANK_BYTES", "DemandMatrix", "TokenCounts"]

MAX_RANK_BYTES = 2**62  # bytes that one rank may send or receive


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """What became of the tokens that were routed to experts.

    Attributes:
        routed: as asked for, each once for every expert that it goes to. dropped: of them, not sent at all. rerouted: of them,
            sent to another expert than asked for. padded: sent, with padding.
        token_bytes: bytes of one token.
        experts: how many there are. capacity: tokens that each takes at most, if there is a limit.
        hot_expert: number of the expert that most tokens were routed to; hot_tokens: how many.
    """

    routed: int
    dropped: int
    rerouted: int
    padded: int
    token_bytes: int
    experts: int
    capacity: int | None
    hot_expert: int
    hot_tokens: int

    @property
    def sent(self) -> int:
        """Tokens that reach an expert, those on the expert's own rank among them."""
        return self.routed - self.dropped


@dataclass(frozen=True, slots=True, eq=False)
class DemandMatrix:
    """Bytes from each rank to each.

    Attributes:
        cells: int64 (n, n), read-only; ``cells[i, j]`` bytes go from the i-th rank to the j-th, the diagonal stays where it is.
        names: names or numbers of the ranks, (n,); empty if they are meant by position.
        where: where the matrix was read, for messages.
        tokens: what became of the tokens, where expert routing made the matrix.

    Raises:
        InputError: not square, fewer than two ranks, a negative cell, a rank with absurdly many bytes, names that are not one
            for each rank, or nothing to send.
    """

    cells: NDArray[np.int64]
    names: tuple[str, ...] = ()
    where: str = "demand"
    tokens: TokenCounts | None = None

    def __post_init__(self) -> None:
        cells = np.array(self.cells, dtype=np.int64)
        cells.setflags(write=False)
        object.__setattr__(self, "cells", cells)
        try:
            _check(cells, self.names)
        except InputError as error:
            raise error.within(self.where) from None

    @property
    def sent(self) -> NDArray[np.int64]:
        """Bytes that each rank sends to others, (n,)."""
        return np.asarray(self.cells.sum(axis=1) - self.cells.diagonal())

    @property
    def received(self) -> NDArray[np.int64]:
        """Bytes that each rank receives from others, (n,)."""
        return np.asarray(self.cells.sum(axis=0) - self.cells.diagonal())

    @property
    def size(self) -> int:
        """The most bytes that any rank sends or receives, its own part included, as nccl-tests counts them."""
        return int(max(self.cells.sum(axis=0).max(), self.cells.sum(axis=1).max()))


def _check(cells: NDArray[np.int64], names: tuple[str, ...]) -> None:
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1]:
        shape = " by ".join(map(str, cells.shape))
        raise InputError(f"a matrix of {shape} is not square", hint="give one row and one column for each rank")
    n = len(cells)
    if n < 2:
        raise InputError(f"a matrix of {n} by {n} moves nothing", hint="give one row and one column for each rank")
    if (cells < 0).any():
        i, j = np.argwhere(cells < 0)[0]
        raise InputError(f"row {i + 1} holds {cells[i, j]} bytes", hint="bytes are 0 or more")
    for sums, what in (
        (cells.sum(axis=1, dtype=np.float64), "sends"),
        (cells.sum(axis=0, dtype=np.float64), "receives"),
    ):
        if sums.max() > MAX_RANK_BYTES:
            problem = f"rank {sums.argmax()} {what} {sums.max():.3g} bytes"
            raise InputError(problem, hint="at most 2**62 can be handled; are the cells bytes?")
    if names and len(names) != n:
        raise InputError(f"{len(names)} names for {n} ranks")
    if names and len(set(names)) < n:
        raise InputError(f"rank {Counter(names).most_common(1)[0][0][:60]} is named twice")
    if np.count_nonzero(cells) == np.count_nonzero(cells.diagonal()):
        problem = "nothing to send: no rank has bytes for another"
        raise InputError(problem, hint="give a rank bytes for another, or leave the collective out")
