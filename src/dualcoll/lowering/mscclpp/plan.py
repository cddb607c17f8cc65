"""An MSCCL++ execution plan as plain data, with the executor's limits.

The meaning of every field is that of MSCCL++'s executor (microsoft/mscclpp, ``src/core/executor``): lists of channels and of
remote buffers are flattened by type, as it flattens them. The device plan's limits are those of ``execution_common.hpp``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "ALIGNMENT",
    "MAX_BARRIERS",
    "MAX_CHANNELS",
    "MAX_OPERANDS",
    "MAX_OPS",
    "MAX_OP_CHANNELS",
    "MAX_SEMAPHORES",
    "MAX_SIZE",
    "SCRATCH_BYTES",
    "Gpu",
    "Operand",
    "Operation",
    "Plan",
    "RemoteBuffer",
    "SwitchChannel",
    "ThreadBlock",
]

MAX_OPS = 64  # of a thread block, the inner ones of pipelines included
MAX_CHANNELS = 16  # of a thread block, of one type; as many remote buffers
MAX_OP_CHANNELS = 8
MAX_OPERANDS = 10  # sources or destinations of an op
MAX_BARRIERS = 16
MAX_SEMAPHORES = 16  # of an op
ALIGNMENT = 16  # bytes; reductions move 16 bytes at a time
MAX_SIZE = 2**64 - 1
SCRATCH_BYTES = 2**26  # of the scratch buffer that plans share with ``reuse_resources``


@dataclass(frozen=True, slots=True)
class Operand:
    """Consecutive chunks that an op reads or writes.

    Attributes:
        index, size: first chunk and number of chunks, in units of the executing GPU's chunk.
        buffer: ``i``, ``o`` or ``s`` of the executing GPU; empty if the operand is another.
        remote: place among the thread block's remote buffers of the op's channel type; -1 if the operand is another.
        switch: place among the thread block's switch channels; -1 if the operand is another.
    """

    index: int
    size: int
    buffer: str = ""
    remote: int = -1
    switch: int = -1


@dataclass(frozen=True, slots=True)
class Operation:
    """One op of a thread block.

    Attributes:
        name: as in :data:`~dualcoll.lowering.mscclpp.ops.OPS`.
        src, dst: operands. channel_type: ``memory``, ``port``, ``switch`` or empty.
        channels: places among the thread block's channels of that type. reduce_op: ``sum``, ``min``, ``max`` or empty.
        part, parts: which of how many equal parts of its operands the op handles (thread block groups).
        barrier, blocks: number of the barrier, and how many thread blocks meet there.
        semaphores: places among the GPU's semaphores.
        unit_size, unit_chunks, ops: of a pipeline: bytes of a step, chunks of an operand, and the ops that repeat.
    """

    name: str
    src: tuple[Operand, ...] = ()
    dst: tuple[Operand, ...] = ()
    channel_type: str = ""
    channels: tuple[int, ...] = ()
    reduce_op: str = ""
    part: int = 0
    parts: int = 1
    barrier: int = 0
    blocks: int = 0
    semaphores: tuple[int, ...] = ()
    unit_size: int = 0
    unit_chunks: int = 0
    ops: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """Ops in order, and what their numbers mean: for each type, places among the GPU's channels and remote buffers."""

    ops: tuple[Operation, ...]
    memory: tuple[int, ...] = ()
    port: tuple[int, ...] = ()
    switch: tuple[int, ...] = ()
    memory_buffers: tuple[int, ...] = ()
    port_buffers: tuple[int, ...] = ()
    id: int = 0

    def channels(self, channel_type: str) -> tuple[int, ...]:
        """Places among the GPU's channels of that type."""
        return {"memory": self.memory, "port": self.port, "switch": self.switch}.get(channel_type, ())

    def buffers(self, channel_type: str) -> tuple[int, ...]:
        """Places among the GPU's remote buffers that are reached through channels of that type."""
        return {"memory": self.memory_buffers, "port": self.port_buffers}.get(channel_type, ())


@dataclass(frozen=True, slots=True)
class RemoteBuffer:
    """A buffer (``i``, ``o``, ``s``) of another GPU, and the types of the channels through which it is reached."""

    rank: int
    buffer: str
    access: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SwitchChannel:
    """A multicast address of one buffer at several GPUs: a load adds, a store writes everywhere (NVLS)."""

    buffer: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One rank.

    Attributes:
        input_chunks, output_chunks, scratch_chunks: sizes of its buffers.
        memory, port: the peer of each channel. The k-th channel from a to b and the k-th from b to a of one type are the two
            ends of one.
        switches: its switch channels. remote_buffers: what its thread blocks name. semaphores: initial values.
    """

    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    blocks: tuple[ThreadBlock, ...]
    memory: tuple[int, ...] = ()
    port: tuple[int, ...] = ()
    switches: tuple[SwitchChannel, ...] = ()
    remote_buffers: tuple[RemoteBuffer, ...] = ()
    semaphores: tuple[int, ...] = ()
    id: int = 0

    def peers(self, channel_type: str) -> tuple[int, ...]:
        """The peer of each channel of that type."""
        return {"memory": self.memory, "port": self.port}.get(channel_type, ())

    def chunks(self, buffer: str) -> int:
        """Chunks of a buffer."""
        return {"i": self.input_chunks, "o": self.output_chunks, "s": self.scratch_chunks}[buffer]


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan.

    Attributes:
        collective: as the file names it. protocol: ``Simple`` or ``LL``, whose scratch buffer holds packets.
        in_place: whether input and output overlap, as the collective has it.
        reuse_resources: whether the scratch buffer is one of fixed size, through which pipelines go in circles.
        double_scratch: whether successive launches take turns with two halves of the scratch buffer.
        notes: what the reader ignored or read in an older spelling.
    """

    name: str
    collective: str
    protocol: str
    in_place: bool
    gpus: tuple[Gpu, ...]
    reuse_resources: bool = False
    threads: int = 1024
    double_scratch: bool = False
    alignment: int = ALIGNMENT
    min_size: int = 0
    max_size: int = MAX_SIZE
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """R, the number of GPUs."""
        return len(self.gpus)

    def operations(self) -> Iterator[Operation]:
        """All ops, those inside pipelines after their pipeline."""
        for gpu in self.gpus:
            for block in gpu.blocks:
                for op in block.ops:
                    yield op
                    yield from op.ops
