"""How logical edges travel: the routing models, by name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Routing", "RoutingKind"]


class RoutingKind(StrEnum):
    """Who decides which links a logical edge uses (docs/model.md §8)."""

    SINGLE = "single"  # the plan: one path per logical edge of each tree
    SPRAY = "spray"  # the network: equal shares over the next hops on shortest allowed paths
    SPRAY_CABLES = "spray-cables"  # the same, equal shares over parallel cables instead of over neighbours
    SPRAY_HOPS = (
        "spray-hops"  # the paper's plain variant: shortest paths by hops alone, through whatever forwards or not
    )
    ECMP = "ecmp"  # the network: one shortest allowed path per logical edge, by a hash


@dataclass(frozen=True, slots=True)
class Routing:
    """A routing model; the seed is that of the hash of ``ecmp``."""

    kind: RoutingKind = RoutingKind.SINGLE
    seed: int = 0
