"""What a flow carries: chunks of one source, release, receiver and deadline are one demand; those of one source and release are
one commodity, for what they have in common is all that the network sees (TE-CCL §4.1).

Shape letters: J demands, G commodities, Q wanted copies of chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualcoll.errors import InputError
from dualcoll.time_expanded.problem import Problem

__all__ = ["Demands", "demands_of"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """The demands of a problem, by commodity.

    Attributes:
        problem: whose.
        source, release: int64 (G,), of each commodity.
        commodity, target, deadline, count: int64 (J,), of each demand; ``count`` chunks.
        chunk_ptr, chunk: the chunks of each demand, int64 (J+1,), (Q,).
    """

    problem: Problem
    source: Ints
    release: Ints
    commodity: Ints
    target: Ints
    deadline: Ints
    count: Ints
    chunk_ptr: Ints
    chunk: Ints

    @property
    def total(self) -> int:
        """Q, chunks to deliver, each once for everybody who wants it."""
        return int(self.count.sum())

    def of(self, commodity: int) -> Ints:
        """The demands of one commodity."""
        return np.flatnonzero(self.commodity == commodity)


def demands_of(problem: Problem) -> Demands:
    """The demands of a problem in which no copy can help.

    Raises:
        InputError: somebody copies and a chunk has several receivers, or there is nothing to send.
    """
    network = problem.network
    copy_helps = bool(np.any(network.copies))
    chunks: list[int] = []
    targets: list[int] = []
    for c in range(problem.chunks):
        wanted = problem.wanted(c)
        if copy_helps and len(wanted) > 1:
            raise InputError(
                f"chunk {c} has {len(wanted)} receivers, and a flow makes no copies",
                where=problem.contract.collective,
                hint="use the model with copies, or forbid copying to ranks and switches",
            )
        chunks += [c] * len(wanted)
        targets += wanted
    if not chunks:
        raise InputError("there is nothing to send", where=problem.contract.collective)
    chunk = np.array(chunks, np.int64)
    source = problem.source[problem.contract.data[chunk]].astype(np.int64)
    keys = np.column_stack([source, problem.release[chunk], np.array(targets, np.int64), problem.deadline[chunk]])
    unique, which, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    commodities, commodity = np.unique(unique[:, :2], axis=0, return_inverse=True)
    return Demands(
        problem=problem,
        source=commodities[:, 0],
        release=commodities[:, 1],
        commodity=commodity.reshape(-1).astype(np.int64),
        target=unique[:, 2],
        deadline=unique[:, 3],
        count=count.astype(np.int64),
        chunk_ptr=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
        chunk=chunk[np.argsort(which, kind="stable")],
    )
