"""The keys of MSCCL++ execution plan files."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from dualcoll.lowering.mscclpp.ops import OPS
from dualcoll.lowering.mscclpp.plan import ALIGNMENT, MAX_SIZE
from dualcoll.topology.forms import Flag, Form, Text

__all__ = ["BlockForm", "GpuForm", "OpForm", "OperandForm", "PlanForm"]


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
        text = repr(value)
        problem = f"{text if len(text) <= 60 else text[:57] + '...'} is not a whole number of 0 to 2**64 - 1"
        raise PydanticCustomError("input", "unusable", {"problem": problem, "hint": ""})
    return value


def _op_name(value: object) -> str:
    if not isinstance(value, str) or value not in OPS:
        close = get_close_matches(str(value)[:60], OPS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the ops are {', '.join(OPS)}"
        problem = f"{str(value)[:60]!r} is not an op of MSCCL++"
        raise PydanticCustomError("input", "unusable", {"problem": problem, "hint": hint})
    return value


def _word(*words: str) -> BeforeValidator:
    def read(value: object) -> object:
        if value not in words:
            problem, hint = f"{str(value)[:60]!r} is not known", f"use one of {', '.join(words)}"
            raise PydanticCustomError("input", "unusable", {"problem": problem, "hint": hint})
        return value

    return BeforeValidator(read)


_Count = Annotated[int, BeforeValidator(_count)]
_Counts = tuple[_Count, ...]
_Buffer = Annotated[str, _word("i", "o", "s")]
_Type = Annotated[str, _word("memory", "port", "switch", "none")]
_Reduction = Annotated[str, _word("sum", "min", "max")]


class Loose(Form):
    """A mapping that may hold keys that the executor does not read."""

    model_config = ConfigDict(extra="allow", frozen=True)


class OperandForm(Loose):
    """Chunks that an op reads or writes."""

    index: _Count
    size: _Count
    type: _Buffer | None = None
    buffer_id: _Count | None = None
    switch_channel_id: _Count | None = None


class GroupForm(Loose):
    """Which part of its operands an op handles."""

    tb_id: _Count
    tbg_size: _Count


class StepForm(Loose):
    """Steps of a pipeline."""

    unit_size: _Count
    num_chunks: _Count


class OpForm(Loose):
    """An op."""

    name: Annotated[str, BeforeValidator(_op_name)]
    src_buff: tuple[OperandForm, ...] = ()
    dst_buff: tuple[OperandForm, ...] = ()
    channel_type: _Type = ""
    channel_ids: _Counts = ()
    reduce_op: _Reduction = ""
    tbg_info: GroupForm | None = None
    barrier_id: _Count = 0
    num_threadblocks: _Count = 0
    semaphore_ids: _Counts = ()
    iter_context: StepForm | None = None
    ops: tuple[OpForm, ...] = ()


class BlockChannelsForm(Loose):
    """Channels of a thread block."""

    channel_type: _Type
    channel_ids: _Counts
    buff: _Buffer | None = None


class BufferRefsForm(Loose):
    """Remote buffers of a thread block."""

    access_channel_type: _Type
    remote_buffer_ids: _Counts


class BlockForm(Loose):
    """A thread block."""

    id: _Count
    ops: tuple[OpForm, ...]
    channels: tuple[BlockChannelsForm, ...] = ()
    remote_buffer_refs: tuple[BufferRefsForm, ...] = ()


class RankGroupForm(Loose):
    """GPUs of a switch channel."""

    size: _Count
    ranks: _Counts


class ChannelForm(Loose):
    """Channels of a GPU."""

    channel_type: _Type
    connected_to: _Counts = ()
    buffer_type: _Buffer | None = None
    buff: _Buffer | None = None
    rank_groups: tuple[RankGroupForm, ...] = ()


class RemoteBufferForm(Loose):
    """A remote buffer of a GPU."""

    rank: _Count
    type: _Buffer
    access_channel_types: tuple[_Type, ...]


class SemaphoreForm(Loose):
    """A semaphore of a GPU."""

    init_value: _Count


class GpuForm(Loose):
    """A GPU."""

    id: _Count
    input_chunks: _Count
    output_chunks: _Count
    scratch_chunks: _Count
    threadblocks: tuple[BlockForm, ...]
    channels: tuple[ChannelForm, ...] = ()
    remote_buffers: tuple[RemoteBufferForm, ...] = ()
    semaphores: tuple[SemaphoreForm, ...] = ()


class PlanForm(Loose):
    """A whole plan."""

    name: Text
    collective: Text
    protocol: Annotated[str, _word("Simple", "LL")]
    inplace: Flag
    gpus: tuple[GpuForm, ...]
    reuse_resources: Flag = False
    num_threads_per_block: _Count = 1024
    use_double_scratch_buffer: Flag = False
    buffer_alignment: _Count = ALIGNMENT
    min_message_size: _Count = 0
    max_message_size: _Count = MAX_SIZE
