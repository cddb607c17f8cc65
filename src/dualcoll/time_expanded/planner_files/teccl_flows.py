"""The flows of a TE-CCL result, line by line: which chunk goes from where to where over which switches, and when.

``Chunk 0 from 13 traveled over 13->12 in epoch 4 via switches 17 -> 0``, and ``with volume 0.5`` where chunks are cut.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dualcoll.errors import InputError

__all__ = ["TecclFlow", "read_flows"]

_HOP = (
    r"(?P<tail>[0-9]{1,6})->(?P<head>[0-9]{1,6})"
    r"(?: with volume (?P<volume>[0-9]{1,9}(?:\.[0-9]{1,30})?(?:e-?[0-9]{1,3})?))?"
    r" in epoch (?P<epoch>[0-9]{1,6})(?: via switches (?P<via>[0-9]{1,6}(?: ?-> ?[0-9]{1,6}){0,30}))?"
)
_FLOW = re.compile(rf"Chunk (?P<chunk>[0-9]{{1,6}}) from (?P<source>[0-9]{{1,6}}) traveled over {_HOP}")
_DEMAND = re.compile(
    r"Demand at (?P<end>[0-9]{1,6}) for chunk (?P<chunk>[0-9]{1,6}) from (?P<source>[0-9]{1,6}) met by epoch [0-9]{1,6}"
)


@dataclass(frozen=True, slots=True)
class TecclFlow:
    """One line: chunk ``chunk`` of node ``source`` goes along ``nodes`` from ``epoch`` on. ``volume`` is 0 for a copy."""

    chunk: int
    source: int
    nodes: tuple[int, ...]
    epoch: int
    volume: float = 0.0


def read_flows(
    lines: Sequence[str], paths: Mapping[str, object], flows_key: str, paths_key: str
) -> tuple[list[TecclFlow], list[str], list[str]]:
    """The flows, what of the lists does not go together, and what to know.

    TE-CCL keeps equal lines once, though two parts of a chunk can go the same way at the same time: with volumes, its paths say
    how often each line counts.

    Raises:
        InputError: a line that is not understood; with its key.
    """
    listed = [_flow(line, _FLOW, {}, f"{flows_key}[{i}]") for i, line in enumerate(lines)]
    if not listed:
        raise InputError("it has no flows", where=flows_key)
    if len({flow.volume > 0 for flow in listed}) > 1:
        raise InputError("some flows have volumes and others have none", where=flows_key)
    counts = Counter(flow for key, found in paths.items() for flow in _path(key, found, f"{paths_key}: {key[:60]}"))
    odd = []
    if counts and counts.keys() != set(listed):
        only = min((line for flow, line in zip(listed, lines, strict=True) if flow not in counts), default="")
        what = f"no path has {only!r}" if only else "a hop of a path is no flow"
        odd.append(f"{flows_key} and {paths_key} differ: {what}")
    flows = []
    for flow in dict.fromkeys(listed):
        flows += [flow] * max(1, counts[flow] if flow.volume > 0 else 1)
    lost = len(flows) - len(set(listed))
    notes = [f"lines lost: {lost} more flows are in {paths_key}, as {flows_key} has equal lines once"] if lost else []
    return flows, odd, notes


def _flow(line: str, pattern: re.Pattern[str], given: dict[str, str], where: str) -> TecclFlow:
    found = pattern.fullmatch(line)
    if found is None:
        raise InputError(f"{line[:80]!r} is not understood", where=where)
    part = given | found.groupdict()
    between = [] if part["via"] is None else [int(node) for node in part["via"].split("->")]
    nodes = (int(part["tail"]), *between, int(part["head"]))
    volume = part["volume"]
    return TecclFlow(
        int(part["chunk"]), int(part["source"]), nodes, int(part["epoch"]), 0.0 if volume is None else float(volume)
    )


_HOP_ALONE = re.compile(_HOP)


def _path(key: str, found: object, where: str) -> list[TecclFlow]:
    """The hops of one demand: a list of lines, or of paths that are lists of (epoch, line)."""
    demand = _DEMAND.fullmatch(key)
    if demand is None:
        raise InputError("it is not understood", where=where)
    lines: list[str] = []
    todo = [found]
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            todo += part
        elif isinstance(part, str):
            lines.append(part)
        elif not isinstance(part, int):
            raise InputError("it is no list of hops", where=where)
    return [_flow(line, _HOP_ALONE, demand.groupdict(), where) for line in lines]
