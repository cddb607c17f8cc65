"""A comparison of methods as a record, as CSV and as lines for people."""

from __future__ import annotations

import csv
import io
from typing import Any

from dualcoll.collectives.catalogue import title
from dualcoll.diagnosis.comparison import Comparison
from dualcoll.units import format_bandwidth, format_size, format_time

__all__ = ["comparison_csv", "comparison_record", "comparison_text"]

GB = 1e9
SHOWN = 4  # methods a size


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """What ``compare --json`` prints: bandwidths in GB/s, times in seconds."""
    return {
        "collective": comparison.collective,
        "ranks": comparison.ranks,
        "bound_algbw_GBps": comparison.bound / GB,
        "latency_bound_s": comparison.latency,
        "results": _rows(comparison),
        "winners": [{"size_bytes": size, "method": comparison.winner(size).method} for size in comparison.sizes],
        "crossovers": [{"size_bytes": size, "from": old, "to": new} for size, old, new in comparison.crossovers()],
        "skipped": [{"method": method, "reason": reason} for method, reason in comparison.skipped],
    }


def comparison_csv(comparison: Comparison) -> str:
    """One line for each method and size."""
    rows = _rows(comparison)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def comparison_text(comparison: Comparison) -> list[tuple[str, str]]:
    """The fastest methods of each size, where the winner changes, and what was left out."""
    lines = [
        (
            "compare",
            f"{title(comparison.collective)} of {comparison.ranks} ranks, simulated; bound "
            f"{format_bandwidth(comparison.bound)} algbw, {format_time(comparison.latency)} latency",
        )
    ]
    for size in comparison.sizes:
        best = [
            f"{result.method} {format_time(result.seconds)} ({100 * comparison.fraction(result):.0f} %)"
            for result in comparison.at(size)[:SHOWN]
        ]
        lines.append((format_size(size), ", ".join(best)))
    changes = [f"from {format_size(size)} on {new} instead of {old}" for size, old, new in comparison.crossovers()]
    lines += [("crossover" if i == 0 else "", text) for i, text in enumerate(changes)]
    left = [f"{method}: {reason}" for method, reason in comparison.skipped]
    return lines + [("left out" if i == 0 else "", text) for i, text in enumerate(left)]


def _rows(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "size_bytes": result.size,
            "method": result.method,
            "time_s": result.seconds,
            "algbw_GBps": comparison.algbw(result) / GB,
            "busbw_GBps": comparison.busbw(result) / GB,
            "of_bound": comparison.fraction(result),
        }
        for size in comparison.sizes
        for result in comparison.at(size)
    ]
