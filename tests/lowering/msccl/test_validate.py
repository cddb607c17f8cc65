"""The validator of MSCCL programs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from dualcoll.errors import CheckFailed, DualcollError, InputError
from dualcoll.lowering.msccl.program import Buffer, Program, StepType
from dualcoll.lowering.msccl.validate import validate
from tests.lowering.msccl.interleaving import Interleaving
from tests.lowering.msccl.mutants import mutants
from tests.lowering.msccl.programs import allpairs, altered, do, doubling, pair, program, relay, ring, tb

BROADCAST = program(
    "broadcast",
    2,
    ((2, 2, 0), [tb(1, -1, do("s", "i0", "o0", 2), do("cpy", "i0", "o0", 2))]),
    ((2, 2, 0), [tb(-1, 0, do("r", "i0", "o0", 2))]),
)
SCATTERED = program(
    "reduce_scatter",
    2,
    ((2, 0, 0), [tb(1, 1, do("s", "i1", "i1"), do("rrc", "i0", "i0"))]),
    ((2, 1, 0), [tb(0, 0, do("s", "i0", "i0"), do("rrc", "i1", "o0"))]),
    inplace=True,
)


def findings(of: Program, **more: Any) -> tuple[str, ...]:
    """What is wrong, each in full; nothing if it is valid."""
    try:
        validate(of, **more)
    except CheckFailed as failure:
        return failure.findings
    return ()


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (ring(), "valid allgather, 3 ranks, 1 channel, in place, Simple"),
        (allpairs(), "valid allreduce, 3 ranks, 1 channel, in place, Simple"),
        (doubling(), "valid allreduce, 4 ranks, 1 channel, in place, Simple"),
        (relay(), "valid reduce, 4 ranks, 1 channel, out of place, Simple"),
        (pair(proto="LL", nchannels=4), "valid alltoall, 2 ranks, 4 channels (1 used), out of place, LL"),
        (
            replace(BROADCAST, min_bytes=8, max_bytes=64),
            "valid broadcast, 2 ranks, 1 channel, out of place, Simple, 8 B - 64 B",
        ),
        (
            replace(SCATTERED, min_bytes=8, max_bytes=0),
            "valid reducescatter, 2 ranks, 1 channel, in place, Simple, 8 B and more",
        ),
    ],
)
def test_valid_programs(of: Program, text: str) -> None:
    """One program of every collective with a contract, and how its verdict reads."""
    assert validate(of).text == text


def test_notes() -> None:
    """What loaders refuse, what the format leaves open, and what was not checked is said with the verdict."""
    lacks = "it lacks outofplace, minBytes, maxBytes, without which RCCL and msccl-executor-nccl refuse to load it"
    assert validate(replace(ring(), outofplace=None)).notes == (lacks,)
    full: dict[str, Any] = {"min_bytes": 0, "max_bytes": 0}
    assert validate(replace(BROADCAST, **full)).notes == (
        "the root is taken to be rank 0: the format has no place for it",
    )
    assert validate(replace(SCATTERED, **full)).notes == ("RCCL and msccl-executor-nccl spell its coll reducescatter",)
    custom = validate(replace(ring(), coll="custom", **full))
    assert custom.notes == ("a custom collective promises nothing that could be checked: only how it runs was",)
    added = replace(allpairs(), **full)
    added = altered(added, (0, 2, 2), hasdep=False)
    blocks = added.gpus[0].blocks
    last = replace(blocks[2], steps=(*blocks[2].steps, do("ra", "i0", "i0", hasdep=1)))
    added = replace(added, gpus=(replace(added.gpus[0], blocks=(*blocks[:2], last)), *added.gpus[1:]))
    added = altered(altered(added, (0, 0, 2), deps=3), (0, 1, 2), deps=3)
    assert validate(added).notes == ("its ra steps add tensors of the caller, which is no part of the collective",)


def test_depth() -> None:
    """A ring needs room for two messages, as most rings that are in use; the cycle is named."""
    assert findings(ring(), depth=2) == findings(ring(), depth=None) == ()
    assert findings(ring(), depth=1) == (
        "deadlock where connections hold 1 message: gpu 0, tb 0, step 1 (rcs) needs room on channel 0 from gpu 0 to gpu 1, "
        "made by gpu 1, tb 0, step 1 (rcs), which needs room on channel 0 from gpu 1 to gpu 2, made by gpu 2, tb 0, step 1 "
        "(rcs), which needs room on channel 0 from gpu 2 to gpu 0, made by gpu 0, tb 0, step 1 (rcs)",
    )
    assert findings(ring(9), depth=1)[0].endswith("which waits through 3 more steps for itself")


def test_receiving_before_sending() -> None:
    """Two blocks that both receive before they send wait for each other at step 0, whatever the depth."""
    swapped = pair()
    gpus = tuple(
        replace(gpu, blocks=(gpu.blocks[0], replace(gpu.blocks[1], steps=gpu.blocks[1].steps[::-1])))
        for gpu in swapped.gpus
    )
    assert findings(replace(swapped, gpus=gpus), depth=None) == (
        "deadlock: gpu 0, tb 1, step 0 (r) needs the message of gpu 1, tb 1, step 1 (s), which comes after gpu 1, tb 1, step 0 "
        "(r), which needs the message of gpu 0, tb 1, step 1 (s), which comes after gpu 0, tb 1, step 0 (r)",
    )


def test_waiting_in_a_circle() -> None:
    """Semaphores of one GPU can be a deadlock too, and so can one that names a later step of its own block."""
    circle = altered(allpairs(), (0, 0, 1), depid=2, deps=2)
    assert findings(circle) == (
        "deadlock: gpu 0, tb 0, step 1 (r) waits for gpu 0, tb 2, step 2 (re), which comes after gpu 0, tb 2, step 1 (re), "
        "which waits for gpu 0, tb 0, step 1 (r)",
    )
    own = altered(allpairs(), (0, 0, 0), depid=0, deps=1)
    assert findings(own) == (
        "deadlock: gpu 0, tb 0, step 0 (s) waits for gpu 0, tb 0, step 1 (r), which comes after gpu 0, tb 0, step 0 (s)",
    )


@pytest.mark.parametrize(
    ("of", "place", "fields", "expected"),
    [
        (
            pair(),
            (0, 1, 0),
            {"srcoff": 2},
            ("gpu 0, tb 1, step 0 (s): it reads chunk 2 of buffer i, which has 2",),
        ),
        (
            relay(),
            (0, 0, 0),
            {"dstoff": 1},
            ("gpu 0, tb 0, step 0 (rrc): it writes chunk 1 .. 2 of buffer o, which has 2",),
        ),
        (pair(), (0, 0, 0), {"cnt": 0}, ("gpu 0, tb 0, step 0 (cpy): cnt is 0",)),
        (
            pair(),
            (0, 0, 0),
            {"type": StepType.RECV_COPY_SEND},
            (
                "gpu 0, tb 0, step 0 (rcs): it sends, and its block has no send peer",
                "gpu 0, tb 0, step 0 (rcs): it receives, and its block has no recv peer",
            ),
        ),
        (
            relay(),
            (3, 0, 0),
            {"cnt": 1},
            (
                "gpu 3, tb 0, step 0 (s): its message has cnt 1 and is taken by gpu 2, tb 0, step 0 (rrcs), which has cnt 2",
            ),
        ),
        (
            relay(),
            (3, 0, 0),
            {"type": StepType.COPY, "dstoff": 0},
            (
                "gpu 3 to gpu 2, channel 0: 0 messages are sent and 1 received; nobody sends the message of "
                "gpu 2, tb 0, step 0 (rrcs)",
            ),
        ),
        (
            relay(),
            (2, 0, 0),
            {"type": StepType.COPY},
            (
                "gpu 2 to gpu 1, channel 0: 0 messages are sent and 1 received; nobody sends the message of "
                "gpu 1, tb 0, step 0 (rrs)",
                "gpu 3 to gpu 2, channel 0: 1 messages are sent and 0 received; nobody takes the message of "
                "gpu 3, tb 0, step 0 (s)",
            ),
        ),
        (
            allpairs(),
            (0, 0, 2),
            {"depid": 3},
            ("gpu 0, tb 0, step 2 (s): it waits for tb 3 (depid), and there are tb 0 .. 2",),
        ),
        (
            allpairs(),
            (0, 0, 2),
            {"deps": 3},
            ("gpu 0, tb 0, step 2 (s): it waits for step 3 of tb 2 (deps), which has 3",),
        ),
        (
            allpairs(),
            (0, 0, 1),
            {"hasdep": False},
            (
                "gpu 0, tb 2, step 0 (nop): it waits for step 1 of tb 0, whose hasdep is 0, so that it never signals: "
                "the GPU hangs",
            ),
        ),
        (
            allpairs(),
            (0, 2, 1),
            {"depid": -1, "deps": -1},
            (
                "gpu 0, tb 2, step 0 (nop): a chain of nops must end at a step with a dependency of its own; "
                "loaders refuse the file",
                "gpu 0, tb 2, step 2 (re): it reads what gpu 0, tb 1, step 1 (r) writes, and nothing orders them: a data race",
            ),
        ),
        (
            allpairs(),
            (0, 2, 0),
            {"depid": -1, "deps": -1},
            (
                "gpu 0, tb 2, step 0 (nop): a nop without a dependency, which executors drop, so that they count later steps "
                "wrong",
                "gpu 0, tb 2, step 1 (re): it reads what gpu 0, tb 0, step 1 (r) writes, and nothing orders them: a data race",
            ),
        ),
        (
            allpairs(),
            (0, 0, 2),
            {"deps": 0},
            (
                "gpu 0, tb 0, step 2 (s): it waits for step 0 of tb 2, a nop, which never signals: the GPU hangs",
                "gpu 0, tb 2, step 1 (re): it writes what gpu 0, tb 0, step 2 (s) reads, and nothing orders them: a data race",
            ),
        ),
        (
            allpairs(),
            (0, 2, 2),
            {"srcoff": 0},
            (
                "3 of 9 output chunks are not what AllReduce promises",
                "gpu 0, output chunk 0: it lacks chunk 0 of gpu 2's input; last written by gpu 0, tb 2, step 2 (re)",
                "gpu 1, output chunk 0: it lacks chunk 0 of gpu 2's input; last written by gpu 1, tb 0, step 3 (r)",
                "gpu 2, output chunk 0: it lacks chunk 0 of gpu 2's input; last written by gpu 2, tb 0, step 3 (r)",
            ),
        ),
        (
            relay(),
            (0, 0, 0),
            {"srcbuf": Buffer.OUTPUT},
            (
                "gpu 0, tb 0, step 0 (rrc): it reads chunk 0 of buffer o, which holds nothing yet",
                "2 of 2 output chunks are not what Reduce promises",
                "gpu 0, output chunk 0: it lacks chunk 0 of gpu 0's input; last written by gpu 0, tb 0, step 0 (rrc)",
                "gpu 0, output chunk 1: it lacks chunk 1 of gpu 0's input; last written by gpu 0, tb 0, step 0 (rrc)",
            ),
        ),
        (
            pair(),
            (0, 0, 0),
            {"srcoff": 1},
            (
                "1 of 4 output chunks are not what AllToAll promises",
                "gpu 0, output chunk 0: it lacks chunk 0 of gpu 0's input; last written by gpu 0, tb 0, step 0 (cpy)",
            ),
        ),
    ],
)
def test_one_thing_wrong(
    of: Program, place: tuple[int, int, int], fields: dict[str, Any], expected: tuple[str, ...]
) -> None:
    """Every finding names GPU, thread block and step."""
    assert findings(altered(of, place, **fields)) == expected


def test_wrong_contents() -> None:
    """A chunk that holds nothing, one that holds too much, and one that counts a contribution twice."""
    nothing = replace(pair(), gpus=tuple(replace(gpu, blocks=gpu.blocks[1:]) for gpu in pair().gpus))
    assert findings(nothing) == (
        "2 of 4 output chunks are not what AllToAll promises",
        "gpu 0, output chunk 0: it holds nothing; no step writes it",
        "gpu 1, output chunk 1: it holds nothing; no step writes it",
    )
    steps = (do("cpy", "i0", "o0"), do("re", "i1", "o0"))
    gpus = (replace(pair().gpus[0], blocks=(tb(-1, -1, *steps), pair().gpus[0].blocks[1])), pair().gpus[1])
    assert findings(replace(pair(), gpus=gpus))[1] == (
        "gpu 0, output chunk 0: it also holds chunk 1 of gpu 0's input; last written by gpu 0, tb 0, step 1 (re)"
    )
    twice = (do("cpy", "i0", "o0"), do("re", "i0", "o0"))
    gpus = (replace(pair().gpus[0], blocks=(tb(-1, -1, *twice), pair().gpus[0].blocks[1])), pair().gpus[1])
    assert findings(replace(pair(), gpus=gpus))[1] == (
        "gpu 0, output chunk 0: it counts twice chunk 0 of gpu 0's input; last written by gpu 0, tb 0, step 1 (re)"
    )


def test_peers_and_channels() -> None:
    """A block has other GPUs that exist as peers, on a channel that is set up, and no other block has the same."""
    blocks = [tb(0, 3), tb(1, -1, chan=1), tb(1, -1, chan=1)]
    assert findings(program("allreduce", 1, ((1, 1, 0), blocks), ((1, 1, 0), []))) == (
        "gpu 0, tb 0: its send peer is its own GPU",
        "gpu 0, tb 0: its recv peer 3 is no GPU of 0 .. 1",
        "gpu 0, tb 1: channel 1 is not among the 1 that nchannels sets up",
        "gpu 0, tb 2: channel 1 is not among the 1 that nchannels sets up",
        "gpu 0, tb 2: it has send peer 1 on channel 1, and so has tb 1; one block holds each end",
    )


def test_sizes() -> None:
    """Buffers have as many chunks as the collective gives them, and a call that is never made is no use."""
    assert findings(replace(ring(), nchunksperloop=4)) == (
        "nchunksperloop is 4, which is no multiple of the 3 GPUs, as allgather needs",
    )
    assert findings(replace(pair(), nchunksperloop=4))[:2] == (
        "gpu 0: i_chunks is 2; with nchunksperloop 4, alltoall has 4",
        "gpu 0: o_chunks is 2; with nchunksperloop 4, alltoall has 4",
    )
    unused = replace(pair(), outofplace=False, min_bytes=9, max_bytes=8)
    assert findings(unused) == (
        "inplace and outofplace are both 0: no call would ever use it",
        "minBytes 9 is more than maxBytes 8: no call would ever use it",
    )


def test_both_kinds_of_call() -> None:
    """A file for calls with one buffer and with two must be right in both; findings of one say which."""
    steps = [[do("cpy", f"i{g}", f"o{g}")] for g in range(2)]
    blocks = [
        [tb(-1, -1, *steps[g]), tb(1 - g, -1, do("s", f"i{1 - g}")), tb(-1, 1 - g, do("r", dst=f"o{1 - g}"))]
        for g in range(2)
    ]
    apart = program("alltoall", 2, *(((2, 2, 0), blocks[g]) for g in range(2)), inplace=True, outofplace=True)
    assert findings(replace(apart, inplace=False)) == ()
    assert findings(apart) == (
        "in place: gpu 1, tb 2, step 0 (r): it writes what gpu 1, tb 1, step 0 (s) reads, and nothing orders them: a data race",
        "in place: gpu 0, tb 2, step 0 (r): it writes what gpu 0, tb 1, step 0 (s) reads, and nothing orders them: a data race",
    )
    copying = program(
        "allreduce",
        1,
        ((1, 1, 0), [tb(1, 1, do("s", "i0", "o0"), do("rrc", "i0", "o0"))]),
        ((1, 1, 0), [tb(0, 0, do("s", "i0", "o0"), do("rrc", "i0", "o0"))]),
        inplace=True,
        outofplace=True,
    )
    assert validate(copying).text == "valid allreduce, 2 ranks, 1 channel, out of place and in place, Simple"


def test_overlap() -> None:
    """A step that reads some of the chunks that it writes has no defined result."""
    shifted = program("custom", 3, ((3, 3, 0), [tb(-1, -1, do("cpy", "i0", "i1", 2))]))
    assert findings(shifted) == ("gpu 0, tb 0, step 0 (cpy): the chunks that it reads and writes overlap",)


def test_reductions_race() -> None:
    """Two blocks that add to one chunk at once lose a sum, though the order does not matter."""
    unordered = altered(doubling(), (0, 1, 0), depid=-1, deps=-1)
    assert findings(unordered)[0] == (
        "gpu 0, tb 0, step 1 (rrc): it writes what gpu 0, tb 1, step 0 (s) reads, and nothing orders them: a data race"
    )


def test_targets() -> None:
    """Each limit of an executor, and what it wants in the file."""
    long = program("custom", 1, ((1, 1, 0), [tb(-1, -1, *(do("cpy", "i0", "o0") for _ in range(65)))]))
    assert findings(long, target="msccl") == ()
    assert findings(long, target="rccl") == (
        "RCCL refuses a file without minBytes, maxBytes",
        "RCCL knows no coll 'custom'; it knows allreduce, allgather, reduce, broadcast, alltoall, alltoallv, reducescatter, "
        "gather, scatter",
        "gpu 0, tb 0 has 65 steps; RCCL takes up to 64",
    )
    wide = [tb(1, -1, chan=c) for c in range(33)] + [tb(-1, -1) for _ in range(184)]
    many = program(
        "custom", 80, ((80, 80, 0), [*wide, tb(-1, -1, do("cpy", "i0", "o0", 72))]), ((0, 0, 0), []), nchannels=33
    )
    assert findings(many, target="msccl") == (
        "nchannels is 33; microsoft/msccl has up to 32",
        "gpu 0 has 218 thread blocks; microsoft/msccl runs up to 216",
        "gpu 0, tb 217, step 0 (cpy): cnt 72; microsoft/msccl takes up to 71",
    )
    star = [tb(q, -1) for q in range(1, 34)]
    crowded = program("custom", 1, ((1, 1, 0), star), *(((0, 0, 0), []) for _ in range(33)))
    assert findings(crowded, target="msccl") == (
        "gpu 0 has 33 blocks with a send peer on channel 0; microsoft/msccl takes up to 32",
    )
    added = program("custom", 1, ((1, 1, 0), [tb(-1, -1, do("ra", "i0", "i0"))]), min_bytes=0, max_bytes=0)
    assert (
        findings(replace(added, coll="allreduce"), target="rccl")[0]
        == "gpu 0, tb 0, step 0 (ra): RCCL knows no such step"
    )


@pytest.mark.parametrize(
    ("of", "more", "message"),
    [
        (ring(), {"depth": 0}, "depth: a connection of depth 0 carries nothing; use 1 or more"),
        (ring(), {"target": "nccl"}, "target 'nccl' is not known; use one of msccl, rccl"),
        (
            replace(ring(), coll="gather"),
            {},
            "what coll 'gather' promises is not known; known are allreduce, allgather, reducescatter, alltoall, broadcast, "
            "reduce, custom",
        ),
        (
            replace(ring(), nchunksperloop=2**24),
            {},
            "3 GPUs with 16777216 chunks each are too many to execute; up to 16777216 chunks of all GPUs are",
        ),
    ],
)
def test_what_cannot_be_checked(of: Program, more: dict[str, Any], message: str) -> None:
    """Options and files that the validator has no answer for."""
    with pytest.raises(InputError) as caught:
        validate(of, **more)
    assert str(caught.value) == message


@settings(max_examples=300, deadline=None)
@given(mutants(), st.integers(1, 2), st.randoms(use_true_random=False))
def test_what_is_valid_runs_in_any_order(of: Program, depth: int, rng: random.Random) -> None:
    """However the blocks of a program take turns, one that is called valid ends, and ends with what it promises."""
    try:
        validate(of, depth=depth)
    except DualcollError:
        event("refused")
        assume(False)
    event("valid")
    for _ in range(4):
        run = Interleaving(of, of.inplace, depth, rng)
        assert run.finishes()
        assert run.keeps_promise()


@settings(max_examples=200, deadline=None)
@given(mutants(), st.randoms(use_true_random=False))
def test_what_runs_wrong_is_refused(of: Program, rng: random.Random) -> None:
    """A program that hangs, or ends with something else than promised, in one order of its blocks is not called valid."""
    assume(not any(message.endswith("cnt is 0") for message in findings(of)))
    try:
        run = Interleaving(of, of.inplace, 2, rng)
        right = run.finishes() and run.keeps_promise()
    except ValueError:  # messages of unlike size meet
        right = False
    assume(not right)
    with pytest.raises(CheckFailed):
        validate(of)
