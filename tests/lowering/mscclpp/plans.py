"""Small execution plans for tests, as the JSON data of their files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dualcoll.lowering.mscclpp import Plan, inspect, plan_from_bytes

Data = dict[str, Any]


def op(name: str, src: str = "", dst: str = "", *, on: tuple[int, ...] = (), kind: str = "memory", **more: Any) -> Data:
    """An op; operands such as ``i0`` (chunk 0 of the input), ``s0:2`` (two chunks), ``0@1`` (chunk 1 of remote buffer 0)."""
    entry: Data = {"name": name, **more}
    for key, text in (("src_buff", src), ("dst_buff", dst)):
        if text:
            entry[key] = [_operand(one) for one in text.split()]
    if on:
        entry["channel_ids"] = list(on)
    if on or any(
        "buffer_id" in one or "switch_channel_id" in one
        for one in [*entry.get("src_buff", ()), *entry.get("dst_buff", ())]
    ):
        entry["channel_type"] = kind
    return entry


def _operand(text: str) -> Data:
    text, _, size = text.partition(":")
    where, at, index = text.partition("@")
    if where.startswith("w"):
        return {"switch_channel_id": int(where[1:]), "index": int(index), "size": int(size or 1)}
    if at:
        return {"buffer_id": int(where), "index": int(index), "size": int(size or 1)}
    return {"type": text[0], "index": int(text[1:]), "size": int(size or 1)}


def plan(gpus: list[Data], collective: str = "allreduce", **more: Any) -> Data:
    """A plan in place, for protocol Simple."""
    whole = {"name": "test", "collective": collective, "protocol": "Simple", "inplace": True, "gpus": gpus, **more}
    return json.loads(json.dumps(whole))  # type: ignore[no-any-return]  # nothing is in two places


def gpu(
    number: int, blocks: list[list[Data]], chunks: tuple[int, int, int] = (2, 2, 0), peer: int = 1, **more: Any
) -> Data:
    """One of two GPUs, whose thread blocks have a channel each to the other and may reach its buffer ``more["reach"]``."""
    kind, reach = more.pop("kind", "memory"), more.pop("reach", "i")
    entry = {
        "id": number,
        **dict(zip(("input_chunks", "output_chunks", "scratch_chunks"), chunks, strict=True)),
        "threadblocks": [
            {
                "id": i,
                "ops": ops,
                "channels": [{"channel_type": kind, "channel_ids": [i]}],
                "remote_buffer_refs": [{"access_channel_type": kind, "remote_buffer_ids": [0]}],
            }
            for i, ops in enumerate(blocks)
        ],
        "channels": [{"channel_type": kind, "connected_to": [peer] * len(blocks)}],
        "remote_buffers": [{"rank": peer, "type": reach, "access_channel_types": [kind]}],
        "semaphores": [],
    }
    return entry | more


NOP = op("nop")
SIGNAL, WAIT = op("signal", on=(0,)), op("wait", on=(0,))


def reads() -> Data:
    """Each GPU adds its half of what it reads from the other and writes the sum to both."""

    def ops(half: int) -> list[Data]:
        add = op("rres", f"i{half} 0@{half}", f"i{half} 0@{half}", reduce_op="sum")
        return [SIGNAL, WAIT, NOP, add, NOP, SIGNAL, WAIT]

    return plan([gpu(0, [ops(0)], peer=1), gpu(1, [ops(1)], peer=0)])


def puts(kind: str = "memory") -> Data:
    """Each GPU puts all into the other's scratch space, which adds it."""
    put = (
        [op("put", "i0:2", "0@0:2"), NOP, SIGNAL]
        if kind == "memory"
        else [op("pws", "i0:2", "0@0:2", on=(0,), kind=kind)]
    )
    signal, wait = op("signal", on=(0,), kind=kind), op("wait", on=(0,), kind=kind)
    done = [signal, wait] if kind == "port" else []
    ops = [
        signal,
        wait,
        NOP,
        *put,
        wait,
        NOP,
        *done,
        *([NOP] if done else []),
        op("re", "i0:2 s0:2", "i0:2", reduce_op="sum"),
    ]
    chunks = (2, 2, 2)
    return plan([gpu(g, [ops], chunks, 1 - g, reach="s", kind=kind) for g in (0, 1)])


def packets() -> Data:
    """An all-gather of packets."""
    gpus = []
    for g in (0, 1):
        blocks = [[op("ppkt", f"o{g}", f"0@{g}")], [op("upkt", f"s{1 - g}", f"o{1 - g}")]]
        gpus.append(gpu(g, blocks, (1, 2, 2), 1 - g, reach="s"))
    return plan(gpus, "allgather", protocol="LL", use_double_scratch_buffer=True)


def handed_on() -> Data:
    """One thread block waits for the other GPU and lets the second read; in the end they meet at a barrier."""
    meet = op("barrier", barrier_id=0, num_threadblocks=2)
    first = [SIGNAL, WAIT, NOP, op("sem_release", semaphore_ids=[0]), meet, SIGNAL, WAIT]
    gpus = []
    for g in (0, 1):
        second = [op("sem_acquire", semaphore_ids=[0]), NOP, op("get", f"0@{1 - g}", f"o{1 - g}"), meet]
        gpus.append(gpu(g, [first, second], (1, 2, 0), 1 - g, reach="o", semaphores=[{"init_value": 0}]))
    return plan(gpus, "allgather")


def switched() -> Data:
    """Each GPU adds and multiplies its half through the switch."""
    gpus = []
    for g in (0, 1):
        one = gpu(
            g, [[SIGNAL, WAIT, NOP, op("glres", f"w0@{g}", f"w0@{g}", kind="switch"), NOP, SIGNAL, WAIT]], peer=1 - g
        )
        one["channels"].append(
            {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 2, "ranks": [0, 1]}]}
        )
        one["threadblocks"][0]["channels"].append({"channel_type": "switch", "channel_ids": [0]})
        gpus.append(one)
    return plan(gpus)


def circle(slots: int = 2) -> Data:
    """A pipeline that copies in and out of a scratch buffer of so many steps, two thread blocks sharing it by semaphores."""
    unit = 2**26 // slots
    inwards = [
        op("sem_acquire", semaphore_ids=[0]),
        NOP,
        op("copy", "i0", "s0"),
        NOP,
        op("sem_release", semaphore_ids=[1]),
    ]
    out = [op("sem_acquire", semaphore_ids=[1]), NOP, op("copy", "s0", "i0"), NOP, op("sem_release", semaphore_ids=[0])]
    steps = {"unit_size": unit, "num_chunks": 1}
    blocks = [[op("pipeline", iter_context=steps, ops=ops)] for ops in (inwards, out)]
    one = gpu(
        0, blocks, (1, 1, 1), channels=[], remote_buffers=[], semaphores=[{"init_value": slots}, {"init_value": 0}]
    )
    for block in one["threadblocks"]:
        block["channels"] = block["remote_buffer_refs"] = []
    return plan([one], reuse_resources=True)


SOUND = {
    "reads": reads,
    "puts": puts,
    "puts through ports": lambda: puts("port"),
    "packets": packets,
    "handed on": handed_on,
    "switched": switched,
    "circle": circle,
}


def read(data: Data) -> Plan:
    return plan_from_bytes(json.dumps(data).encode(), "plan.json")


def faults(data: Data) -> tuple[str, ...]:
    return inspect(read(data)).faults


def ops_of(data: Data) -> Iterator[tuple[int, int, list[Data]]]:
    """GPU, thread block and ops."""
    for g, one in enumerate(data["gpus"]):
        for b, block in enumerate(one["threadblocks"]):
            yield g, b, block["ops"]
