"""Formulas of algorithms by partners: halving and doubling, Bruck's, all-to-all, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dualcoll.classical.form import ZERO, Form, even, hierarchy
from dualcoll.classical.parts import equal_boxes
from dualcoll.classical.place import Place

__all__ = [
    "all_to_all",
    "binomial_gather",
    "binomial_scatter",
    "bruck_all_gather",
    "bruck_all_to_all",
    "direct_gather",
    "direct_scatter",
    "doubling",
    "halving",
    "halving_doubling",
    "rail",
]


def _core(ranks: int) -> tuple[int, int, int]:
    """The largest power of two, its logarithm, and how many ranks are beyond it."""
    log = ranks.bit_length() - 1
    return 1 << log, log, ranks - (1 << log)


def _neat(place: Place) -> bool:
    """Whether P and G are powers of two and boxes consecutive, so that partners are in one box or all in others."""
    flat = [rank for box in place.boxes for rank in box]
    small = len(place.boxes[0])
    return (
        place.is_even
        and flat == list(range(place.ranks))
        and not place.ranks & (place.ranks - 1)
        and not small & (small - 1)
    )


def halving_doubling(place: Place) -> Form:
    """Of all-reduce; ranks beyond the largest power of two hand in the whole message and get the whole result."""
    N, (core, log, beyond) = Fraction(place.size), _core(place.ranks)
    half = N * (core - 1) / core
    extra = N if beyond else ZERO
    sent, reduced = 2 * half + extra, half + extra
    across = 2 * N * (len(place.boxes) - 1) / len(place.boxes) if _neat(place) else None
    box = None if across is None else across * len(place.boxes[0])
    rounds = 2 * log + (2 if beyond else 0)
    return Form(rounds, sent, sent, sent + reduced, sent, reduced, across, box, serial=2 * half + 2 * extra)


def halving(place: Place) -> Form:
    """Of reduce-scatter; rank 0 hears most."""
    P, N, (core, log, beyond) = place.ranks, Fraction(place.size), _core(place.ranks)
    heard = core - 1 + sum(min(beyond, 1 << k) for k in range(log))
    whole = P if beyond else 0
    sent, received = max(P - 1, whole), heard + whole
    read = P - 1 + received
    shard = N / P
    across, box = _halves(place)
    rounds, serial = log + (2 if beyond else 0), heard + whole + (1 if beyond else 0)
    return Form(
        rounds,
        sent * shard,
        received * shard,
        read * shard,
        received * shard,
        received * shard,
        across,
        box,
        serial * shard,
    )


def doubling(place: Place) -> Form:
    """Of all-gather; rank 0 sends most."""
    P, N, (core, log, beyond) = place.ranks, Fraction(place.size), _core(place.ranks)
    shard = N / P
    sent = core - 1 + sum(min(beyond, 1 << k) for k in range(log)) + (P - 1 if beyond else 0)
    across, box = _halves(place)
    rounds, serial = log + (2 if beyond else 0), sent + (1 if beyond else 0)
    heard = (P - 1) * shard
    return Form(rounds, sent * shard, heard, sent * shard, heard, ZERO, across, box, serial * shard)


def _halves(place: Place) -> tuple[Fraction | None, Fraction | None]:
    across = Fraction(place.size * (len(place.boxes) - 1), len(place.boxes)) if _neat(place) else None
    return across, None if across is None else across * len(place.boxes[0])


def bruck_all_gather(place: Place) -> Form:
    """A round passes on all that a rank has."""
    P, G = place.ranks, len(place.boxes[0])
    sent = Fraction(place.size * (P - 1), P)
    neat = _neat(place)
    box = Fraction(place.size, P) * (Fraction(G * G - 1, 3) + G * (P - G)) if neat else None
    return even((P - 1).bit_length(), sent, across=sent if neat else None, box=box)


def bruck_all_to_all(place: Place) -> Form:
    """A shard moves once for each bit of the distance that it has to go."""
    P, G, N = place.ranks, len(place.boxes[0]), Fraction(place.size)
    sent = N * sum(d.bit_count() for d in range(P)) / P
    box = (G - 1 + G * (len(place.boxes).bit_length() - 1)) * N / 2 if _neat(place) else None
    return even((P - 1).bit_length(), sent, across=None if box is None else sent, box=box)


def all_to_all(rounds: Callable[[int], int]) -> Callable[[Place], Form]:
    """In so many rounds; boxes may be of any size."""

    def formula(place: Place) -> Form:
        P, shard, sizes = place.ranks, Fraction(place.size, place.ranks), [len(box) for box in place.boxes]
        across, box = (P - min(sizes)) * shard, max(g * (P - g) for g in sizes) * shard
        return even(rounds(P), (P - 1) * shard, across=across, box=box)

    return formula


def _direct(place: Place) -> tuple[Fraction, Fraction, list[int]]:
    """What all others have or get, one rank's part, and the sizes of the boxes, the root's first."""
    own = next(len(box) for box in place.boxes if place.root in box)
    sizes = [own, *(len(box) for box in place.boxes if place.root not in box)]
    return Fraction(place.size * (place.ranks - 1), place.ranks), Fraction(place.size, place.ranks), sizes


def direct_gather(place: Place) -> Form:
    """The root hears from everybody."""
    total, shard, sizes = _direct(place)
    box = shard * max(sizes[1:], default=0)
    return Form(1, shard, total, shard, total, across=shard, box=box, serial=total)


def direct_scatter(place: Place) -> Form:
    """The root sends to everybody."""
    total, shard, sizes = _direct(place)
    out = shard * (place.ranks - sizes[0])
    return Form(1, total, shard, total, shard, across=out, box=out, serial=total)


def _binomial(place: Place) -> tuple[int, Fraction, Fraction]:
    """Rounds, what the root has to do with, and the largest part that another rank has."""
    total, shard, _ = _direct(place)
    top = 1 << ((place.ranks - 1).bit_length() - 1)
    return (place.ranks - 1).bit_length(), total, shard * max(place.ranks - top, top // 2)


def binomial_gather(place: Place) -> Form:
    """Of other ranks the one next to the root has most."""
    rounds, total, part = _binomial(place)
    return Form(rounds, part, total, part, total, serial=total)


def binomial_scatter(place: Place) -> Form:
    """The reverse of a gather."""
    rounds, total, part = _binomial(place)
    return Form(rounds, total, part, total, part, serial=total)


def rail(place: Place) -> Form:
    """Q (G - 1) shards move inside the box, then G (Q - 1) along the rail."""
    hierarchy(place)
    equal_boxes(place.boxes)
    Q, G, shard = len(place.boxes), len(place.boxes[0]), Fraction(place.size, place.ranks)
    across = G * (Q - 1) * shard
    return even(2, Q * (G - 1) * shard + across, across=across, box=G * across)
