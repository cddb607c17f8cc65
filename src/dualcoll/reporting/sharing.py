"""What fair sharing makes of a plan, as a record for machines and as lines for people."""

from __future__ import annotations

from typing import Any

from dualcoll.sharing import Delivery, Sharing
from dualcoll.units import format_bandwidth, format_fraction

__all__ = ["sharing_record", "sharing_text"]

GB = 1e9
SHOWN = 8  # trees
SAME = 1e-9  # relative


def sharing_record(sharing: Sharing) -> dict[str, Any]:
    """What ``plan --sharing max-min --json`` adds: bandwidths in GB/s, lists with one entry a tree."""
    kinds = ("explicit", "floor", "coupled", "by_flow")
    return {
        "scale": sharing.scale,
        "trees": sharing.trees,
        "copy_rate_GBps": sharing.copy_rate / GB,
        "guaranteed_GBps": sharing.guaranteed / GB,
        "copies": sharing.copies.tolist(),
        "limit_row": sharing.limit.tolist(),
        "delivered": {kind: _delivered(getattr(sharing, kind)) for kind in kinds},
    }


def sharing_text(sharing: Sharing) -> list[tuple[str, str]]:
    """Lines under one label: the optimum with explicit rates, what copies guarantee, what max-min delivers, the first trees."""
    copies, best = int(sharing.copies.sum()), sharing.explicit
    lines = [
        f"explicit rates: {_rate(best)}",
        f"{copies} copies of {sharing.trees} trees (y = {sharing.scale}), each at X* = "
        f"{format_bandwidth(sharing.copy_rate)} or more: y k X* = {format_bandwidth(sharing.guaranteed)} guaranteed "
        "for all trees together",
        f"max-min, all flows of a tree at one rate, delivers {_rate(sharing.coupled, best)}",
        f"max-min, every flow for itself, delivers {_rate(sharing.by_flow, best)}",
    ]
    lines += [
        f"tree {t}: {format_bandwidth(float(best.rates[t]))} wanted, {sharing.copies[t]} "
        f"{'copy' if sharing.copies[t] == 1 else 'copies'}, {format_bandwidth(float(sharing.coupled.rates[t]))} "
        f"at one rate, {format_bandwidth(float(sharing.by_flow.rates[t]))} flow by flow"
        for t in range(min(SHOWN, sharing.copies.size))
    ]
    if sharing.copies.size > SHOWN:
        lines.append(f"and {sharing.copies.size - SHOWN} more trees (--json has all)")
    return [("sharing" if i == 0 else "", line) for i, line in enumerate(lines)]


def _delivered(one: Delivery) -> dict[str, Any]:
    return {"total_GBps": one.total / GB, "value_GBps": one.value / GB, "rates_GBps": (one.rates / GB).tolist()}


def _rate(one: Delivery, best: Delivery | None = None) -> str:
    """The value; the sum of the trees' rates where it is another number; what part of the best it is."""
    text = f"{format_bandwidth(one.value)} algbw"
    if abs(one.total - one.value) > SAME * one.total:
        text += f" (trees sum to {format_bandwidth(one.total)})"
    if best is None or best.value <= 0:
        return text
    return f"{text}, {format_fraction(one.value / best.value)} of the explicit"
