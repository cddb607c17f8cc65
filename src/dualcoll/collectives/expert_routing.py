"""Demand of expert-parallel layers: tokens routed to experts, capacity, overflow and padding (docs/collectives.md).

Everything is decided by counts alone, so the same counts always give the same matrix: a full expert keeps tokens of all ranks
in proportion, and what does not fit goes, token after token, to the least loaded expert.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualcoll.collectives.demand_matrix import MAX_RANK_BYTES, DemandMatrix, TokenCounts
from dualcoll.errors import InputError

__all__ = ["ExpertRouting", "Overflow", "Placement", "expert_demand", "place_tokens"]

Ints = NDArray[np.int64]
MAX_TOKENS = 10**9  # from one rank to one expert


class Overflow(StrEnum):
    """What happens to tokens that their expert has no room for."""

    DROP = "drop"
    REROUTE = "reroute"


@dataclass(frozen=True, slots=True, eq=False)
class ExpertRouting:
    """Tokens on their way to experts.

    Attributes:
        tokens: int64 (R, X), tokens that each rank routes to each expert.
        hosts: int64 (X,), the row of the rank that holds each expert.
        token_bytes: bytes of one token.
        block: tokens from one rank to one expert are padded to a multiple of this.
        capacity_factor: an expert takes at most this many times the mean, rounded up; None for no limit.
        overflow: what happens to the rest.
        names: of the ranks, (R,), or empty.

    Raises:
        InputError: a number out of range, or columns of the wrong length.
    """

    tokens: Ints
    hosts: Ints
    token_bytes: int
    block: int = 1
    capacity_factor: Fraction | None = None
    overflow: Overflow = Overflow.DROP
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tokens", "hosts"):
            column = np.array(getattr(self, name), dtype=np.int64)
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        if self.tokens.ndim != 2 or not self.tokens.size or self.hosts.shape != self.tokens.shape[1:]:
            raise InputError(f"tokens {self.tokens.shape} and experts {self.hosts.shape} do not fit together")
        if self.tokens.min() < 0 or self.tokens.max() >= MAX_TOKENS:
            raise InputError("a number of tokens is not within 0 to 999999999")
        if self.hosts.min() < 0 or self.hosts.max() >= len(self.tokens):
            raise InputError(f"an expert is not on one of ranks 0 to {len(self.tokens) - 1}")
        if self.token_bytes < 1 or self.block < 1:
            raise InputError(f"tokens of {self.token_bytes} bytes in blocks of {self.block} are not usable")
        if self.capacity_factor is not None and self.capacity_factor <= 0:
            raise InputError(f"capacity factor {float(self.capacity_factor):g} is not above 0")

    @property
    def capacity(self) -> int | None:
        """Tokens that each expert takes at most."""
        if self.capacity_factor is None:
            return None
        return math.ceil(self.capacity_factor * int(self.tokens.sum()) / len(self.hosts))


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where the tokens go.

    Attributes:
        tokens: int64 (R, X), tokens that each rank sends to each expert.
        rerouted, dropped: int64 (R,), tokens of each rank that go to another expert than asked for, or nowhere.
    """

    tokens: Ints
    rerouted: Ints
    dropped: Ints


def place_tokens(routing: ExpertRouting) -> Placement:
    """Apply capacity and overflow. O(R X log R)."""
    placed = routing.tokens.copy()
    capacity = routing.capacity
    if capacity is not None:
        for expert in np.flatnonzero(placed.sum(axis=0) > capacity):
            placed[:, expert] = _apportion(capacity, placed[:, expert].tolist())
    excess = (routing.tokens - placed).sum(axis=1)
    moved = np.zeros_like(excess)
    if capacity is not None and routing.overflow is Overflow.REROUTE:
        left = _filled(placed.sum(axis=0).tolist(), capacity, int(excess.sum()))
        moved[:] = _apportion(sum(left), excess.tolist())
        for rank in np.flatnonzero(moved):
            shares = _apportion(int(moved[rank]), left)
            placed[rank] += shares
            left = [room - share for room, share in zip(left, shares, strict=True)]
    return Placement(placed, moved, excess - moved)


def expert_demand(routing: ExpertRouting, where: str = "demand") -> DemandMatrix:
    """Bytes, with padding, from each rank to each: what the dispatch carries. The combine carries its transpose.

    Raises:
        InputError: a rank with absurdly many bytes, or no token that leaves its rank.
    """
    placement = place_tokens(routing)
    padded = -(-placement.tokens // routing.block) * routing.block
    ranks = len(padded)
    to_ranks = np.zeros((ranks, ranks), np.int64)
    for expert, host in enumerate(routing.hosts.tolist()):
        to_ranks[:, host] += padded[:, expert]
    if to_ranks.max() > MAX_RANK_BYTES // routing.token_bytes:
        problem = f"{to_ranks.max()} tokens of {routing.token_bytes} bytes from one rank to another"
        raise InputError(problem, where=where, hint="at most 2**62 bytes can be handled")
    asked = routing.tokens.sum(axis=0)
    counts = TokenCounts(
        routed=int(asked.sum()),
        dropped=int(placement.dropped.sum()),
        rerouted=int(placement.rerouted.sum()),
        padded=int(padded.sum()),
        token_bytes=routing.token_bytes,
        experts=len(asked),
        capacity=routing.capacity,
        hot_expert=int(asked.argmax()),
        hot_tokens=int(asked.max()),
    )
    return DemandMatrix(to_ranks * routing.token_bytes, routing.names, where, counts)


def _apportion(total: int, weights: list[int]) -> list[int]:
    """Whole shares in proportion to the weights that sum to the total; what rounding leaves goes to the largest remainders,
    the first of equal ones before. No share exceeds its weight if the total does not exceed their sum.
    """
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares


def _filled(loads: list[int], capacity: int, extra: int) -> list[int]:
    """What each expert gets if the extra tokens go, one after the other, to the least loaded expert that has room, the first
    of equally loaded ones before: all rise to one level, and the first of those on it get one more.
    """
    extra = min(extra, sum(capacity - load for load in loads))
    low, high = 0, capacity  # the highest level that the extra tokens reach
    while low < high:
        level = (low + high + 1) // 2
        if sum(max(0, level - load) for load in loads) <= extra:
            low = level
        else:
            high = level - 1
    gains = [max(0, low - load) for load in loads]
    spare = extra - sum(gains)
    for i in [i for i, load in enumerate(loads) if load <= low][:spare]:
        gains[i] += 1
    return gains
