"""Sets of ranks that run a collective at the same time: by pattern, list or file (docs/collectives.md, "Groups")."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from dualcoll.collectives.groups import participants_of
from dualcoll.errors import InputError
from dualcoll.files import read_bytes
from dualcoll.topology.model import Topology
from dualcoll.topology.source_text import SourceText

__all__ = ["is_pattern", "read_groups"]

Ranks = str | Sequence[int | str]
Named = tuple[str, tuple[int, ...]]

_PATTERN = re.compile(r"(?:(\d{1,9})\s+)?groups?\s+of\s+(?:(stride)\s+)?(\d{1,9})(?:\s+ranks?)?", re.IGNORECASE)
_LINE = re.compile(r"(?:([^\s,:][^,:]*):\s+)?(.*)")
_ADVICE = 'write "8 groups of stride 8", "groups of 8" or "0-7;8-15", or name a file with one group to a line'


def read_groups(topology: Topology, source: str | Path | Sequence[Ranks]) -> tuple[Named, ...]:
    """Name and node indices of each group, in the order given; the name of one without is its number.

    Args:
        topology: its ranks are numbered in node order, from 0.
        source: a pattern such as ``"8 groups of stride 8"`` (ranks 0, 8, 16, …; 1, 9, …) or ``"groups of 8"`` (ranks 0 to 7,
            8 to 15, …); a list such as ``"0-7;8-15"``; a file; or the ranks of each group. A rank may be in several groups.

    Raises:
        InputError: a pattern that does not divide the ranks, ranks that :func:`participants_of` refuses, a group of fewer than
            two, or a file that cannot be used.
    """
    if isinstance(source, str) and is_pattern(source):
        found = _by_pattern(topology, source)
    elif isinstance(source, Path) or (isinstance(source, str) and _is_file(source)):
        found = _from_file(topology, Path(source))
    elif isinstance(source, str):
        found = _from_text(topology, source)
    else:
        found = [(str(i), f"groups[{i}]", participants_of(topology, r, f"groups[{i}]")) for i, r in enumerate(source)]
    if not found:
        raise InputError("there are no groups", where="groups", hint=_ADVICE)
    for _, where, nodes in found:
        if len(nodes) < 2:
            names = "".join(f", {topology.nodes[node].name}" for node in nodes)
            raise InputError(f"a group of {len(nodes)} rank{names}", where=where, hint="two or more take part")
    name, times = Counter(name for name, _, _ in found).most_common(1)[0]
    if times > 1:
        raise InputError(f"{times} groups are called {name}", where="groups", hint="names must be unique")
    return tuple((name, nodes) for name, _, nodes in found)


def is_pattern(text: str) -> bool:
    """Whether the text is such as ``"8 groups of stride 8"`` or ``"groups of 4"``."""
    return _PATTERN.fullmatch(text.strip()) is not None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


Found = list[tuple[str, str, tuple[int, ...]]]  # name, place, nodes


def _by_pattern(topology: Topology, text: str) -> Found:
    match = _PATTERN.fullmatch(text.strip())
    assert match is not None
    ranks, strided, step = topology.ranks, match[2] is not None, int(match[3])
    what = f"{len(ranks)} ranks"
    of = f"of stride {step}" if strided else f"of {step}"
    if step == 0 or len(ranks) % step:
        fits = [d for d in range(1 if strided else 2, len(ranks)) if len(ranks) % d == 0]
        what_fits = f"{'strides' if strided else 'sizes'} that do are {', '.join(map(str, fits[-8:]))}"
        hint = what_fits if fits else "list the ranks of each group"
        raise InputError(f"{what} do not divide into groups {of}", where="groups", hint=hint)
    count = step if strided else len(ranks) // step
    if match[1] is not None and int(match[1]) != count:
        hint = f'write "groups {of}", or list the ranks of each group'
        raise InputError(f"{what} make {count} groups {of}, not {int(match[1])}", where="groups", hint=hint)
    sets = [ranks[i::step] if strided else ranks[i * step : (i + 1) * step] for i in range(count)]
    return [(str(i), "groups", nodes) for i, nodes in enumerate(sets)]


def _from_text(topology: Topology, text: str) -> Found:
    tokens = [token.strip() for token in re.split("[;,]", text)]
    if not any(token in topology.index or re.fullmatch(r"\d+(-\d+)?", token) for token in tokens):
        raise InputError(f"{text[:60]!r} is neither a file, a pattern nor ranks", where="groups", hint=_ADVICE)
    sets = [part for part in text.split(";") if part.strip()]
    return [(str(i), f"groups[{i}]", participants_of(topology, part, f"groups[{i}]")) for i, part in enumerate(sets)]


def _from_file(topology: Topology, path: Path) -> Found:
    data = read_bytes(path)
    if path.suffix.lower() in (".yaml", ".yml", ".json") or data.lstrip()[:1] in (b"[", b"{"):
        return _from_data(topology, SourceText.parse(data, str(path)))
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("it is not UTF-8 text", where=f"{path}:{line}") from None
    return list(_from_lines(topology, lines, str(path)))


def _from_lines(topology: Topology, lines: list[str], path: str) -> Iterable[tuple[str, str, tuple[int, ...]]]:
    number = 0
    for i, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line.partition("#")[0].strip())
        assert match is not None
        if match[2]:
            where = f"{path}:{i}"
            tokens = [token for token in re.split(r"[\s,]+", match[2]) if token]
            yield match[1] or str(number), where, participants_of(topology, tokens, where)
            number += 1


def _from_data(topology: Topology, text: SourceText) -> Found:
    entries: Iterable[tuple[str | int, object]]
    if isinstance(text.data, dict):
        entries = text.data.items()
    elif isinstance(text.data, list):
        entries = enumerate(text.data)
    else:
        raise InputError("it is neither a list of groups nor a mapping of names to groups", where=text.where)
    found: Found = []
    for key, ranks in entries:
        where = text.place((key,))
        if not isinstance(ranks, str | list) or not all(isinstance(rank, str | int) for rank in ranks):
            hint = 'write "0-7,12" or a list of numbers and names'
            raise InputError(f"{str(ranks)[:60]!r} are not the ranks of a group", where=where, hint=hint)
        if not str(key) or not str(key).isprintable() or len(str(key)) > 255:
            raise InputError(
                f"{str(key)[:60]!r} is not usable as a name", where=where, hint="use 1 to 255 printable characters"
            )
        found.append((str(key), where, participants_of(topology, ranks, where)))
    return found
