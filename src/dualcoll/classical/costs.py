"""What each algorithm takes, in closed form.

Of N bytes over P ranks, in Q boxes of G ranks where boxes matter. :mod:`~dualcoll.classical.counts` counts the same from a
schedule; the two agree where all parts that the data is cut into have whole bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dualcoll.classical import exchange_formulas, formulas
from dualcoll.classical.counts import Costs
from dualcoll.classical.form import ZERO, Form
from dualcoll.classical.place import Place
from dualcoll.collectives.catalogue import title
from dualcoll.errors import InputError

__all__ = ["alpha_beta_time", "closed_form"]


def closed_form(name: str, collective: str, place: Place) -> Costs:
    """Formulas for what :func:`~dualcoll.classical.registry.draw` makes.

    Args:
        name: of an algorithm. collective: canonical name. place: the ranks.

    Returns:
        What the busiest rank and box have; ``across`` and ``box`` are None where no formula is known.

    Raises:
        InputError: the collective has no such algorithm with a formula, or the ranks do not suit it.
    """
    form = _form(name, collective, place)
    across, box = form.across, form.box
    if len(place.boxes) == 1:
        across = box = ZERO
    elif not place.is_hierarchy:
        across = box = form.sent
    return Costs(form.rounds, form.sent, form.received, across, box, form.read, form.written, form.reduced)


def alpha_beta_time(name: str, collective: str, place: Place, alpha: float, beta: float) -> float:
    """Seconds where every rank has one port of one speed, and all ranks keep step.

    A round takes ``alpha`` and the most bytes that a rank sends or hears in it times ``beta``. Where pieces follow one another
    this is what every round takes in the middle, so that filling and draining count a little too much. Where a piece may leave
    while the one before is on its way, as in the simulation, ``alpha`` counts less often than here.

    Args:
        name, collective, place: as for :func:`closed_form`; of pieces the best number is taken where the place gives none.
        alpha: seconds of a message. beta: seconds of a byte.

    Raises:
        InputError: the collective has no such algorithm with a formula.
    """
    form = _form(name, collective, place)
    if form.serial is not None:
        return form.rounds * alpha + float(form.serial) * beta
    bytes_through, hops = float(max(form.sent, form.received)), form.rounds - form.pieces
    pieces = [form.pieces]
    if place.pieces is None and alpha > 0:
        best = math.sqrt(hops * beta * bytes_through / alpha)
        pieces = [max(1, math.floor(best)), math.ceil(best) or 1]
    elif place.pieces is None:
        return beta * bytes_through
    return min((hops + count) * (alpha + beta * bytes_through / count) for count in pieces)


def _form(name: str, collective: str, place: Place) -> Form:
    formula = _FORMULAS.get((name, collective))
    if formula is None:
        known = sorted(known for known, served in _FORMULAS if served == collective)
        hint = f"use one of {', '.join(known)}" if known else ""
        raise InputError(f"{title(collective)} has no formula for algorithm {name!r}", hint=hint)
    if place.ranks == 1 and name not in _HIERARCHIES:
        return Form(0, ZERO, ZERO, ZERO, ZERO, serial=ZERO)
    try:
        return formula(place)
    except InputError as error:
        raise error.within(f"algorithm {name}") from None


_HIERARCHIES = ("rail", "balanced", "leader", "torus")
_FORMULAS: dict[tuple[str, str], Callable[[Place], Form]] = {
    ("ring", "allreduce"): formulas.ring(2, 1),
    ("ring", "reducescatter"): formulas.ring(1, 1),
    ("ring", "allgather"): formulas.ring(1, 0),
    ("ring-both-ways", "allreduce"): formulas.ring(2, 1, both=True),
    ("ring-both-ways", "reducescatter"): formulas.ring(1, 1, both=True),
    ("ring-both-ways", "allgather"): formulas.ring(1, 0, both=True),
    ("chain", "broadcast"): formulas.chain,
    ("chain", "reduce"): formulas.chain_reduce,
    ("tree", "allreduce"): formulas.tree,
    ("tree", "broadcast"): formulas.tree_broadcast,
    ("tree", "reduce"): formulas.tree_reduce,
    ("double-tree", "allreduce"): formulas.double_tree,
    ("halving-doubling", "allreduce"): exchange_formulas.halving_doubling,
    ("halving-doubling", "reducescatter"): exchange_formulas.halving,
    ("halving-doubling", "allgather"): exchange_formulas.doubling,
    ("bruck", "allgather"): exchange_formulas.bruck_all_gather,
    ("bruck", "alltoall"): exchange_formulas.bruck_all_to_all,
    ("direct", "alltoall"): exchange_formulas.all_to_all(lambda ranks: 1),
    ("direct", "gather"): exchange_formulas.direct_gather,
    ("direct", "scatter"): exchange_formulas.direct_scatter,
    ("pairwise", "alltoall"): exchange_formulas.all_to_all(lambda ranks: ranks - 1),
    ("binomial", "gather"): exchange_formulas.binomial_gather,
    ("binomial", "scatter"): exchange_formulas.binomial_scatter,
    ("rail", "alltoall"): exchange_formulas.rail,
    ("balanced", "allreduce"): formulas.balanced,
    ("leader", "allreduce"): formulas.leader,
    ("torus", "allreduce"): formulas.torus,
}
