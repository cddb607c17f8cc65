"""Small programs, and how to write them down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dualcoll.lowering.msccl.program import Buffer, Gpu, Program, Step, StepType, ThreadBlock

__all__ = [
    "VALID",
    "allpairs",
    "altered",
    "do",
    "doubling",
    "pair",
    "program",
    "relay",
    "ring",
    "tb",
    "xml",
]


def do(
    type: str, src: str = "i-1", dst: str = "o-1", cnt: int = 1, after: tuple[int, int] = (-1, -1), hasdep: int = 0
) -> Step:
    """A step, with places such as ``i0`` for the first chunk of the input."""
    (srcbuf, srcoff), (dstbuf, dstoff) = ((Buffer(text[0]), int(text[1:])) for text in (src, dst))
    return Step(StepType(type), srcbuf, srcoff, dstbuf, dstoff, 0 if type == "nop" else cnt, *after, bool(hasdep))


def tb(send: int, recv: int, *steps: Step, chan: int = 0) -> ThreadBlock:
    """A thread block."""
    return ThreadBlock(send, recv, chan, steps)


def program(coll: str, chunks: int, *gpus: tuple[tuple[int, int, int], list[ThreadBlock]], **more: Any) -> Program:
    """A program of one channel, out of place unless told otherwise."""
    made = tuple(Gpu(*counts, tuple(blocks)) for counts, blocks in gpus)
    named: dict[str, Any] = {
        "proto": "Simple",
        "nchannels": 1,
        "inplace": False,
        "outofplace": not more.get("inplace", False),
    } | more
    return Program(name="sample", coll=coll, nchunksperloop=chunks, gpus=made, **named)


def altered(of: Program, place: tuple[int, int, int], **fields: Any) -> Program:
    """The program with one step changed."""
    g, t, s = place
    gpu = of.gpus[g]
    block = gpu.blocks[t]
    steps = (*block.steps[:s], replace(block.steps[s], **fields), *block.steps[s + 1 :])
    blocks = (*gpu.blocks[:t], replace(block, steps=steps), *gpu.blocks[t + 1 :])
    return replace(of, gpus=(*of.gpus[:g], replace(gpu, blocks=blocks), *of.gpus[g + 1 :]))


def ring(ranks: int = 3, cnt: int = 1) -> Program:
    """AllGather around a ring, in place."""
    gpus = []
    for g in range(ranks):
        own, *others = (f"o{(g - i) % ranks * cnt}" for i in range(ranks))
        steps = [
            do("s", own, own, cnt),
            *(do("rcs", at, at, cnt) for at in others[:-1]),
            do("r", others[-1], others[-1], cnt),
        ]
        gpus.append(((0, ranks * cnt, 0), [tb((g + 1) % ranks, (g - 1) % ranks, *steps)]))
    return program("allgather", ranks * cnt, *gpus, inplace=True)


def allpairs() -> Program:
    """AllReduce of 3 GPUs in place: chunk g is summed at GPU g, from scratch, and sent to everybody."""
    gpus = []
    for g in range(3):
        peers = [q for q in range(3) if q != g]
        blocks = []
        for k, q in enumerate(peers):
            back = f"s{[p for p in range(3) if p != q].index(g)}"
            blocks.append(
                tb(
                    q,
                    q,
                    do("s", f"i{q}", back),
                    do("r", f"i{g}", f"s{k}", hasdep=1),
                    do("s", f"i{g}", f"i{g}", after=(2, 2)),
                    do("r", f"i{q}", f"i{q}"),
                )
            )
        sums = [do("nop", after=(0, 1)), do("re", "s0", f"i{g}", after=(1, 1)), do("re", "s1", f"i{g}", hasdep=1)]
        gpus.append(((3, 0, 2), [*blocks, tb(-1, -1, *sums)]))
    return program("allreduce", 3, *gpus, inplace=True)


def doubling(ranks: int = 4) -> Program:
    """AllReduce by recursive doubling in place: in each round two GPUs add the other's chunk to the one they have just sent."""
    gpus = []
    for g in range(ranks):
        blocks = []
        for k in range(ranks.bit_length() - 1):
            wait = (k - 1, 1) if k else (-1, -1)
            blocks.append(tb(g ^ 1 << k, g ^ 1 << k, do("s", "i0", "i0", after=wait), do("rrc", "i0", "i0", hasdep=1)))
        last = blocks[-1]
        blocks[-1] = replace(last, steps=(*last.steps[:-1], replace(last.steps[-1], hasdep=False)))
        gpus.append(((1, 0, 0), blocks))
    return program("allreduce", 1, *gpus, inplace=True)


def relay() -> Program:
    """Reduction over a chain of 4 GPUs out of place to GPU 0, with every way to add a message to what is there."""
    return program(
        "reduce",
        2,
        ((2, 2, 0), [tb(-1, 1, do("rrc", "i0", "o0", 2))]),
        ((2, 0, 0), [tb(0, 2, do("rrs", "i0", "o-1", 2))]),
        ((2, 0, 2), [tb(1, 3, do("rrcs", "i0", "s0", 2))]),
        ((2, 0, 0), [tb(2, -1, do("s", "i0", "i0", 2))]),
    )


def pair(coll: str = "alltoall", **more: Any) -> Program:
    """AllToAll of 2 GPUs."""
    gpus = [
        (
            (2, 2, 0),
            [
                tb(-1, -1, do("cpy", f"i{g}", f"o{g}")),
                tb(1 - g, 1 - g, do("s", f"i{1 - g}", f"o{g}"), do("r", f"i{g}", f"o{1 - g}")),
            ],
        )
        for g in range(2)
    ]
    return program(coll, 2, *gpus, **more)


VALID = {"ring": ring(), "allpairs": allpairs(), "doubling": doubling(), "relay": relay(), "pair": pair()}


def xml(of: Program) -> str:
    """The program as a file."""
    sizes = {"outofplace": of.outofplace, "minBytes": of.min_bytes, "maxBytes": of.max_bytes}
    given = "".join(f' {name}="{int(value)}"' for name, value in sizes.items() if value is not None)
    given += "".join(f' {name}="{value}"' for name, value in of.other)
    lines = [
        f'<algo name="{of.name}" proto="{of.proto}" nchannels="{of.nchannels}" nchunksperloop="{of.nchunksperloop}" '
        f'ngpus="{of.ngpus}" coll="{of.coll}" inplace="{int(of.inplace)}"{given}>'
    ]
    for g, gpu in enumerate(of.gpus):
        lines.append(f'<gpu id="{g}" i_chunks="{gpu.i_chunks}" o_chunks="{gpu.o_chunks}" s_chunks="{gpu.s_chunks}">')
        for t, block in enumerate(gpu.blocks):
            lines.append(f'<tb id="{t}" send="{block.send}" recv="{block.recv}" chan="{block.chan}">')
            for s, step in enumerate(block.steps):
                where = f'srcbuf="{step.srcbuf}" srcoff="{step.srcoff}" dstbuf="{step.dstbuf}" dstoff="{step.dstoff}"'
                waits = f'depid="{step.depid}" deps="{step.deps}" hasdep="{int(step.hasdep)}"'
                lines.append(f'<step s="{s}" type="{step.type}" {where} cnt="{step.cnt}" {waits}/>')
            lines.append("</tb>")
        lines.append("</gpu>")
    return "\n".join([*lines, "</algo>\n"])
