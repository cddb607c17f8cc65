"""What fair sharing makes of a plan, as a record for machines and as lines for people."""

from __future__ import annotations

from typing import Any

from dualcoll.sharing import Sharing
from dualcoll.units import format_bandwidth

__all__ = ["sharing_record", "sharing_text"]

GB = 1e9
SHOWN = 8  # trees


def sharing_record(sharing: Sharing) -> dict[str, Any]:
    """What ``plan --sharing max-min --json`` adds: bandwidths in GB/s, one entry a tree."""
    kinds = {
        "explicit": sharing.explicit,
        "floor": sharing.floor,
        "coupled": sharing.coupled,
        "by_flow": sharing.by_flow,
    }
    return {
        "scale": sharing.scale,
        "trees": sharing.trees,
        "copy_rate_GBps": float(sharing.copy_rate) / GB,
        "guaranteed_GBps": float(sharing.guaranteed) / GB,
        "copies": [int(count) for count in sharing.copies],
        "delivered": {
            name: {
                "total_GBps": float(one.total) / GB,
                "value_GBps": float(one.value) / GB,
                "rates_GBps": [float(rate) / GB for rate in one.rates],
            }
            for name, one in kinds.items()
        },
    }


def sharing_text(sharing: Sharing) -> list[tuple[str, str]]:
    """Lines under one label: the optimum with rates, what copies guarantee, what max-min delivers, the first trees."""
    copies = sum(int(count) for count in sharing.copies)
    lines = [
        f"rates set by hand: {format_bandwidth(float(sharing.explicit.value))} algbw, trees sum to "
        f"{format_bandwidth(float(sharing.explicit.total))}",
        f"{copies} copies of {sharing.trees} trees (y = {sharing.scale}), each at least "
        f"{format_bandwidth(float(sharing.copy_rate))}: {format_bandwidth(float(sharing.guaranteed))} guaranteed",
        f"max-min with trees coupled delivers {format_bandwidth(float(sharing.coupled.value))} algbw, trees sum to "
        f"{format_bandwidth(float(sharing.coupled.total))}",
        f"max-min flow by flow delivers {format_bandwidth(float(sharing.by_flow.value))} algbw, trees sum to "
        f"{format_bandwidth(float(sharing.by_flow.total))}",
    ]
    shown = range(min(SHOWN, len(sharing.copies)))
    lines += [
        f"tree {t}: {format_bandwidth(float(sharing.explicit.rates[t]))} wanted, {int(sharing.copies[t])} copies, "
        f"{format_bandwidth(float(sharing.coupled.rates[t]))} delivered"
        for t in shown
    ]
    if len(sharing.copies) > SHOWN:
        lines.append(f"and {len(sharing.copies) - SHOWN} more trees (--json has all)")
    return [("sharing" if i == 0 else "", line) for i, line in enumerate(lines)]
