"""The content of an MSCCL XML file: what every thread block of every GPU does, step by step.

Names are those of the format's attributes. Offsets and counts are in chunks of one size, ``nchunksperloop`` of which make the
message. Nothing is checked here: the reader checks the form, the validator the meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["NO_PEER", "Buffer", "Gpu", "Program", "Step", "StepType", "ThreadBlock"]

NO_PEER = -1  # of a block that does not send, or does not receive; as depid and deps: waits for nothing


class Buffer(StrEnum):
    """Where a step reads or writes."""

    INPUT = "i"
    OUTPUT = "o"
    SCRATCH = "s"


class StepType(StrEnum):
    """What a step does; ``receives``, ``sends``, ``reads``, ``writes`` and ``reduces`` say it in parts.

    A step that receives takes one message, adds the chunks at ``srcoff`` if it reduces, stores the result at ``dstoff`` if it
    writes, and sends it on if it sends.
    """

    SEND = "s"
    RECV = "r"
    RECV_COPY_SEND = "rcs"
    RECV_REDUCE_SEND = "rrs"
    RECV_REDUCE_COPY = "rrc"
    RECV_REDUCE_COPY_SEND = "rrcs"
    COPY = "cpy"
    REDUCE = "re"  # adds the chunks at srcoff to those at dstoff
    RESIDUAL_ADD = "ra"  # adds two tensors of the caller, known to the executor alone, to the chunks at dstoff
    NOP = "nop"  # carries a dependency of the next step that is no nop

    @property
    def receives(self) -> bool:
        """Whether it takes a message of the block's ``recv`` peer."""
        return self in _RECEIVES

    @property
    def sends(self) -> bool:
        """Whether it sends a message to the block's ``send`` peer."""
        return self in _SENDS

    @property
    def reads(self) -> bool:
        """Whether ``srcbuf`` and ``srcoff`` mean something."""
        return self in _READS

    @property
    def writes(self) -> bool:
        """Whether ``dstbuf`` and ``dstoff`` mean something."""
        return self in _WRITES

    @property
    def reduces(self) -> bool:
        """Whether it adds."""
        return self in _REDUCES


_T = StepType
_RECEIVES = {_T.RECV, _T.RECV_COPY_SEND, _T.RECV_REDUCE_SEND, _T.RECV_REDUCE_COPY, _T.RECV_REDUCE_COPY_SEND}
_SENDS = {_T.SEND, _T.RECV_COPY_SEND, _T.RECV_REDUCE_SEND, _T.RECV_REDUCE_COPY_SEND}
_READS = {_T.SEND, _T.RECV_REDUCE_SEND, _T.RECV_REDUCE_COPY, _T.RECV_REDUCE_COPY_SEND, _T.COPY, _T.REDUCE}
_WRITES = {
    _T.RECV,
    _T.RECV_COPY_SEND,
    _T.RECV_REDUCE_COPY,
    _T.RECV_REDUCE_COPY_SEND,
    _T.COPY,
    _T.REDUCE,
    _T.RESIDUAL_ADD,
}
_REDUCES = {_T.RECV_REDUCE_SEND, _T.RECV_REDUCE_COPY, _T.RECV_REDUCE_COPY_SEND, _T.REDUCE, _T.RESIDUAL_ADD}


@dataclass(frozen=True, slots=True)
class Step:
    """One ``<step>``; its number ``s`` is its place in the block.

    Attributes:
        type: what it does.
        srcbuf, srcoff, dstbuf, dstoff: the first of the ``cnt`` chunks read and written. Sends carry the receiver's place as
            dst and receives the sender's as src, for people.
        cnt: number of chunks; 0 for a nop.
        depid, deps: thread block of the same GPU and its step to wait for; -1 and -1 for none.
        hasdep: whether another block waits for this step.
        line: of the file, from 1; 0 if there is none.
    """

    type: StepType
    srcbuf: Buffer = Buffer.INPUT
    srcoff: int = -1
    dstbuf: Buffer = Buffer.OUTPUT
    dstoff: int = -1
    cnt: int = 0
    depid: int = -1
    deps: int = -1
    hasdep: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """One ``<tb>``; its id is its place in the GPU.

    Attributes:
        send, recv: GPU to send to and to receive from; ``NO_PEER`` for none.
        chan: channel of both connections.
        steps: in the order in which they run.
        line: of the file, from 1; 0 if there is none.
    """

    send: int
    recv: int
    chan: int
    steps: tuple[Step, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class Gpu:
    """One ``<gpu>``; its id is its place in the program.

    Attributes:
        i_chunks, o_chunks, s_chunks: chunks of the input, output and scratch buffer.
        blocks: its thread blocks.
        line: of the file, from 1; 0 if there is none.
    """

    i_chunks: int
    o_chunks: int
    s_chunks: int
    blocks: tuple[ThreadBlock, ...]
    line: int = 0

    def chunks(self, buffer: Buffer) -> int:
        """Chunks of a buffer."""
        return {Buffer.INPUT: self.i_chunks, Buffer.OUTPUT: self.o_chunks, Buffer.SCRATCH: self.s_chunks}[buffer]


@dataclass(frozen=True, slots=True)
class Program:
    """One ``<algo>``.

    Attributes:
        name: of the algorithm.
        coll: the collective as the file spells it, such as ``reduce_scatter`` or ``reducescatter``.
        proto: ``Simple``, ``LL`` or ``LL128``.
        nchannels: channels that the executor sets up. nchunksperloop: chunks of the whole message.
        gpus: in the order of their ids, one per rank.
        inplace, outofplace: whether it may run with one buffer for input and output, and with two. ``outofplace`` None: the
            file does not say; then it runs in the one way that ``inplace`` names.
        min_bytes, max_bytes: message sizes it is meant for, as the attributes ``minBytes`` and ``maxBytes``; None: the file
            does not say. ``max_bytes`` 0 is no limit.
        other: further attributes, such as ``redop`` or ``nthreads``, as they stand.
        line: of the file, from 1; 0 if there is none.
    """

    name: str
    coll: str
    proto: str
    nchannels: int
    nchunksperloop: int
    gpus: tuple[Gpu, ...]
    inplace: bool
    outofplace: bool | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    other: tuple[tuple[str, str], ...] = ()
    line: int = 0

    @property
    def ngpus(self) -> int:
        """R, the number of GPUs."""
        return len(self.gpus)

    @property
    def collective(self) -> str:
        """The collective's canonical name; ``custom`` for what is none."""
        return self.coll.replace("_", "")

    def steps(self) -> Iterator[tuple[int, int, int, Step]]:
        """(GPU, thread block, number, step) of every step, in file order."""
        for g, gpu in enumerate(self.gpus):
            for t, block in enumerate(gpu.blocks):
                for s, step in enumerate(block.steps):
                    yield g, t, s, step
