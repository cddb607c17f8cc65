"""Who serves for whom, and in which order, where switches copy or links serve in order (docs/simulation.md §3).

Shape letters: S sends, T routes, G stages of all routes, H places of all stages, K rows, N services.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.schedules.ir import NONE, Schedule
from dualcoll.schedules.multicast import divides, first_alike
from dualcoll.schedules.order import describe_send

__all__ = ["leaders", "links_of_places", "turns_of_rows"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


def links_of_places(place_ptr: Ints, row_of: Shorts, links: int) -> Ints:
    """A link at each place, int64 (H,): its own, or the (first) one in the stage after it where shared capacities serve.

    Args:
        place_ptr: int64 (G+1,). row_of: int32 (H,), capacity row of each place, shared ones after the ``links`` links.
    """
    first = row_of[place_ptr[:-1]].astype(np.int64)
    after = np.append(first[1:], NONE)
    link = np.where(first < links, first, after)
    of_place = np.repeat(link, np.diff(place_ptr))
    return np.where(row_of < links, row_of, of_place)


def leaders(schedule: Schedule, service_ptr: Ints, row: Ints, link: Ints) -> Ints:
    """The service whose turn each service has, int64 (N,): of copies over one link that switches make the first, else its own.

    Args:
        schedule: the sends. service_ptr: int64 (S+1,), services of each.
        row, link: int64 (N,), row of each service and link at its place.

    Raises:
        InputError: a send that switches copy divides its bytes.
    """
    copies = np.flatnonzero(schedule.multicast != NONE)
    wrong = copies[divides(schedule, copies)]
    if wrong.size:
        raise InputError(
            "switches do not copy what divides its bytes (§9)", where=describe_send(schedule, int(wrong[0]))
        )
    group = np.repeat(schedule.multicast, np.diff(service_ptr)).astype(np.int64)
    return first_alike(group, row, link)


def turns_of_rows(leader: Ints, row: Ints, rows: int) -> tuple[Ints, Shorts]:
    """The services that lead on each row in order, CSR: int64 (K+1,), int32."""
    turns = np.flatnonzero(leader == np.arange(leader.size))
    order = np.argsort(row[turns], kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row[turns], minlength=rows))])
    return ptr.astype(np.int64), turns[order].astype(np.int32)
