"""What a comparison of methods says: who wins at which size, and how much of the bound is left."""

from __future__ import annotations

from dataclasses import dataclass

from dualcoll.collectives.catalogue import busbw

__all__ = ["Comparison", "Result"]


@dataclass(frozen=True, slots=True)
class Result:
    """One method at one size: seconds, simulated."""

    method: str
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Simulated times of many methods.

    Attributes:
        collective: canonical name. ranks: how many.
        bound: bytes/s, proved: no schedule without computing in the network is faster, latency apart.
        latency: seconds that any schedule takes.
        results: by size, the fastest first.
        skipped: methods that do not apply, with the reason.
    """

    collective: str
    ranks: int
    bound: float
    latency: float
    results: tuple[Result, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes compared, ascending."""
        return tuple(sorted({result.size for result in self.results}))

    def at(self, size: int) -> tuple[Result, ...]:
        """All methods at a size, the fastest first."""
        return tuple(sorted((r for r in self.results if r.size == size), key=lambda r: (r.seconds, r.method)))

    def winner(self, size: int) -> Result:
        """The fastest at a size."""
        return self.at(size)[0]

    def crossovers(self) -> tuple[tuple[int, str, str], ...]:
        """Where the winner changes: (first size of the new one, old, new)."""
        found = []
        for before, after in zip(self.sizes, self.sizes[1:], strict=False):
            old, new = self.winner(before).method, self.winner(after).method
            if old != new:
                found.append((after, old, new))
        return tuple(found)

    def least_seconds(self, size: int) -> float:
        """No schedule without computing in the network is faster: by the rate, or by latency."""
        return max(size / self.bound, self.latency)

    def fraction(self, result: Result) -> float:
        """The least possible time over the method's."""
        return self.least_seconds(result.size) / result.seconds

    def algbw(self, result: Result) -> float:
        """Bytes/s."""
        return result.size / result.seconds

    def busbw(self, result: Result) -> float:
        """Bytes/s, as nccl-tests defines it."""
        return busbw(self.collective, self.ranks, self.algbw(result))
