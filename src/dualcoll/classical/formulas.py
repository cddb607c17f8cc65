"""Formulas of rings, chains, trees and hierarchies: N bytes, P ranks, Q boxes of G ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from dualcoll.classical.form import Form, even, hierarchy
from dualcoll.classical.parts import equal_boxes
from dualcoll.classical.place import Place, box_orders, chain_pieces, grid_rows, ring_orders, tree_pieces
from dualcoll.classical.tree import binary_depth

__all__ = [
    "balanced",
    "chain",
    "chain_reduce",
    "double_tree",
    "leader",
    "ring",
    "torus",
    "tree",
    "tree_broadcast",
    "tree_reduce",
]


def ring(phases: int, reducing: int, *, both: bool = False) -> Callable[[Place], Form]:
    """So many phases, of which so many reduce."""

    def formula(place: Place) -> Form:
        P = place.ranks
        phase = Fraction(place.size * (P - 1), P)
        sent = phases * phase
        if not place.is_even:  # one ring in rank order: the last rank of a box sends on, the first back
            across = sent / 2 if both and min(map(len, place.boxes)) > 1 else sent
        else:
            across = sent / len(place.boxes[0])
        return even(phases * (P - 1), sent, reducing * phase, across=across, box=sent)

    return formula


def chain(place: Place) -> Form:
    """Of broadcast, around each ring."""
    N, orders = Fraction(place.size), ring_orders(place)
    pieces = chain_pieces(place, len(orders))
    across = N / len(orders)
    return Form(place.ranks - 2 + pieces, N, N, N, N, across=across, box=N, pieces=pieces)


def chain_reduce(place: Place) -> Form:
    """The same backwards."""
    N, form = Fraction(place.size), chain(place)
    read = N * (2 - _least_last(ring_orders(place), place.root))
    return Form(form.rounds, N, N, read, N, N, form.across, form.box, pieces=form.pieces)


def _least_last(orders: Sequence[Sequence[int]], first: int) -> Fraction:
    """Of chains around these rings the part that a rank other than the first is the last of, of the rank with the least."""
    last = Counter(order[list(order).index(first) - 1] for order in orders)
    return Fraction(min(last[rank] for rank in orders[0] if rank != first), len(orders))


def tree(place: Place) -> Form:
    """Of all-reduce; from four ranks on some rank has a parent and two children."""
    P, N = place.ranks, Fraction(place.size)
    depth = binary_depth(P)
    pieces = tree_pieces(place, 1, depth)
    edges, children = min(P - 1, 3), 2 if P > 3 else 1  # of the busiest rank
    rounds = 2 * depth + pieces - 1
    return Form(rounds, N * edges, N * edges, N * (edges + children), N * edges, N * children, pieces=pieces)


def tree_broadcast(place: Place) -> Form:
    """From four ranks on some rank has two children."""
    P, N = place.ranks, Fraction(place.size)
    pieces = tree_pieces(place, 1, binary_depth(P))
    sent = N * (2 if P > 3 else 1)
    return Form(binary_depth(P) + pieces - 1, sent, N, sent, N, pieces=pieces)


def tree_reduce(place: Place) -> Form:
    """The reverse of a broadcast."""
    P, N = place.ranks, Fraction(place.size)
    pieces = tree_pieces(place, 1, binary_depth(P))
    heard = N * (2 if P > 3 else 1)
    return Form(binary_depth(P) + pieces - 1, N, heard, N * min(P - 1, 3), heard, heard, pieces=pieces)


def double_tree(place: Place) -> Form:
    """Trees of Q boxes with chains of G ranks, two for each of the G; of P ranks alone where boxes do not matter."""
    if len(place.boxes) == 1 and place.cycles:
        return _chain_trees(place)
    boxed = place.is_hierarchy and place.is_even
    G = len(place.boxes[0]) if boxed else 1
    Q = place.ranks // G
    depth = G - 1 + binary_depth(Q - Q % 2)
    pieces = tree_pieces(place, 2 * G, depth)
    part = Fraction(place.size, 2 * G)
    links, children = min(Q, 4), min(Q - 1, 2)  # of the busiest rank in the two trees of boxes
    sent, reduced = part * (links + 4 * (G - 1)), part * (children + 2 * (G - 1))
    across, box = (part * links, part * links * G) if boxed else (None, None)
    return Form(
        2 * depth + pieces - 1, sent, sent, sent + reduced, sent, reduced, across=across, box=box, pieces=pieces
    )


def _chain_trees(place: Place) -> Form:
    N, orders, depth = Fraction(place.size), box_orders(place), place.ranks - 1
    pieces = tree_pieces(place, len(orders), depth)
    last = _least_last(orders, orders[0][0])
    sent = N * (2 - last)
    read = max(N * (3 - 2 * last), 2 * N)
    return Form(2 * depth + pieces - 1, sent, sent, read, sent, N, pieces=pieces)


def balanced(place: Place) -> Form:
    """Inside the box 2 (G - 1) / G N bytes per rank, to other boxes 2 (Q - 1) / Q N / G."""
    hierarchy(place)
    equal_boxes(place.boxes)
    Q, G, N = len(place.boxes), len(place.boxes[0]), Fraction(place.size)
    across = 2 * (Q - 1) * N / (Q * G)
    sent = 2 * (G - 1) * N / G + across
    return even(2 * (G - 1) + 2 * (Q - 1), sent, sent / 2, across=across, box=across * G)


def leader(place: Place) -> Form:
    """A leader has its G - 1 fellows' messages in and out, and a ring of Q leaders."""
    hierarchy(place)
    Q, G, N = len(place.boxes), max(map(len, place.boxes)), Fraction(place.size)
    local, ring = (G - 1) * N, 2 * (Q - 1) * N / Q
    sent, reduced = local + ring, local + ring / 2
    return Form(2 * Q, sent, sent, sent + reduced, sent, reduced, ring, ring, serial=2 * local + ring)


def torus(place: Place) -> Form:
    """Half of the message crosses boxes whole, the other half in shards."""
    A, B = equal_boxes(grid_rows(place)).shape
    N = Fraction(place.size)
    across = (A - 1) * N / A * (1 + Fraction(1, B))
    sent = 2 * (A * B - 1) * N / (A * B)
    return even(2 * (A - 1) + 2 * (B - 1), sent, sent / 2, across=across, box=across * B)
