"""What an executor needs of the library that moves the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["Buffer", "Request", "Transport"]

Buffer = Any  # a one-dimensional tensor or array; slices of it are views
Request = Any  # a send or receive under way


class Transport(Protocol):
    """Non-blocking sends and receives among ranks 0 .. R-1, and arithmetic where the data is.

    Between two ranks, messages are posted at both ends in the same order. Tags count them, modulo 2**15; a transport whose
    messages never overtake one another may disregard them. A transport raises a
    :class:`~dualcoll.errors.DualcollError` where a peer is lost, within its own time-out.

    Attributes:
        rank, size: this rank and R.
        grouped: whether what belongs to one wave is posted, and waited for, together; else messages are posted as early as
            they may be and waited for one at a time.
    """

    grouped: bool

    @property
    def rank(self) -> int:
        """This rank."""

    @property
    def size(self) -> int:
        """R, the number of ranks."""

    def allocate(self, elements: int, like: Buffer) -> Buffer:
        """A buffer of so many elements, of the type and on the device of ``like``; its content does not matter."""

    def isend(self, view: Buffer, peer: int, tag: int) -> Request:
        """Start a send. The view stays as it is until it has been waited for."""

    def irecv(self, view: Buffer, peer: int, tag: int) -> Request:
        """Start a receive into the view, which is not touched until it has been waited for."""

    def wait(self, requests: Sequence[Request]) -> None:
        """Return when all of them are complete: each is given once."""

    def reduce(self, into: Buffer, received: Buffer) -> None:
        """``into += received``, after what was waited for and before what is sent from then on."""

    def copy(self, into: Buffer, view: Buffer) -> None:
        """``into[:] = view``, in the same order."""

    def synchronize(self) -> None:
        """Called once when a run ends: what was started is done, as far as the caller can see."""
