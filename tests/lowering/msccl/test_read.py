"""The reader of MSCCL XML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.lowering.msccl.program import Buffer, Gpu, Program, Step, StepType, ThreadBlock
from dualcoll.lowering.msccl.read import is_msccl, parse_msccl, read_msccl
from tests.lowering.msccl.programs import VALID, ring, xml

RING = xml(ring())

peers = st.integers(-1, 3)
steps = st.builds(
    Step,
    st.sampled_from(StepType),
    st.sampled_from(Buffer),
    st.integers(-1, 9),
    st.sampled_from(Buffer),
    st.integers(-1, 9),
    st.integers(0, 99),
    st.integers(-1, 9),
    st.integers(-1, 9),
    st.booleans(),
)
blocks = st.builds(ThreadBlock, peers, peers, st.integers(0, 40), st.lists(steps, max_size=3).map(tuple))
chunks = st.integers(0, 9)
programs = st.builds(
    Program,
    name=st.just("a &amp; b"),
    coll=st.sampled_from(["allreduce", "reduce_scatter", "reducescatter", "custom"]),
    proto=st.sampled_from(["Simple", "LL", "LL128"]),
    nchannels=st.integers(1, 40),
    nchunksperloop=st.integers(1, 99),
    gpus=st.lists(
        st.builds(Gpu, chunks, chunks, chunks, st.lists(blocks, max_size=3).map(tuple)), min_size=1, max_size=3
    ).map(tuple),
    inplace=st.booleans(),
    outofplace=st.none() | st.booleans(),
    min_bytes=st.none() | st.integers(0, 2**40),
    max_bytes=st.none() | st.integers(0, 2**40),
    other=st.just((("redop", "nop"), ("nthreads", "256"))),
)


def without_lines(of: Program) -> Program:
    """The program as if it came from no file."""
    return replace(
        of,
        line=0,
        gpus=tuple(
            replace(
                gpu,
                line=0,
                blocks=tuple(
                    replace(block, line=0, steps=tuple(replace(step, line=0) for step in block.steps))
                    for block in gpu.blocks
                ),
            )
            for gpu in of.gpus
        ),
    )


@settings(max_examples=60)
@given(programs)
def test_what_is_written_is_read(of: Program) -> None:
    """Every attribute comes back, sensible or not: what a program means is not the reader's business."""
    read = parse_msccl(xml(of).encode(), "f")
    assert without_lines(read) == replace(of, name="a & b")


def test_steps_know_their_line(tmp_path: Path) -> None:
    """Elements carry the line where they stand; one after a comment too."""
    path = tmp_path / "ring.xml"
    path.write_text(f"<!-- one -->\n{RING}")
    read = read_msccl(path)
    assert (read.line, read.gpus[1].line, read.gpus[1].blocks[0].line, read.gpus[1].blocks[0].steps[2].line) == (
        2,
        10,
        11,
        14,
    )
    assert [place for *place, _ in read.steps()][:4] == [[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 0]]


def test_order_of_ids_and_skipped_elements() -> None:
    """GPUs and blocks may stand in any order, and executors skip ``<copy>`` and attributes that they do not know."""
    text = (
        RING.replace('<gpu id="0"', '<gpu id="9"').replace('<gpu id="2"', '<gpu id="0" numa="1"').replace('"9"', '"2"')
    )
    text = text.replace('<tb id="0"', '<copy i_off="0" o_off="0"/><tb id="0"', 1)
    assert without_lines(parse_msccl(text.encode(), "f")).gpus == tuple(reversed(ring().gpus))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<algo", "<system", "f:23: the XML is broken: mismatched tag"),
        ("algo", "system", "f:1: the root element is <system>, not <algo>"),
        (' proto="Simple"', "", "f:1: <algo> has no proto"),
        ("Simple", "simple", "f:1: proto 'simple' is not known; use one of Simple, LL, LL128"),
        ('ngpus="3"', 'ngpus="4"', "f:1: ngpus is 4, and there are 3 <gpu> elements"),
        ('nchannels="1"', 'nchannels="0"', "f:1: nchannels '0' is not a whole number of 1 .. 2147483647"),
        ('inplace="1"', 'inplace="yes"', "f:1: inplace 'yes' is not a whole number of 0 .. 1"),
        ('o_chunks="3"', 'o_chunks="32769"', "f:2: o_chunks '32769' is not a whole number of 0 .. 32768"),
        ('<gpu id="2"', '<gpu id="1"', "f:16: <gpu> 1 is there already, in line 9"),
        ('<gpu id="1"', '<gpu id="7"', "f:9: <gpu> 7 is there and 1 is not; ids count from 0"),
        ('<tb id="0"', '<tb id="1"', "f:3: <tb> 1 is there and 0 is not; ids count from 0"),
        ('<step s="1"', '<step s="2"', "f:5: step 2 stands where step 1 should be"),
        (' hasdep="0"', "", "f:4: <step> has no hasdep"),
        (' srcoff="0"', ' srcoff=""', "f:4: srcoff '' is not a whole number of -1 .. 2147483647"),
        ('srcbuf="o"', 'srcbuf="x"', "f:4: srcbuf 'x' is not known; use one of i, o, s"),
        (
            'type="rcs"',
            'type="rsc"',
            "f:5: type 'rsc' is not known; use one of s, r, rcs, rrs, rrc, rrcs, cpy, re, ra, nop",
        ),
        ("<step", "<stop/><step", "f:4: <stop> is not known in <tb>; only <step> stands there"),
        ("<tb", "<block/><tb", "f:3: <block> is not known in <gpu>"),
        ("<gpu", "<tb/><gpu", "f:2: <tb> is not known in <algo>"),
        (
            "<algo",
            "<!DOCTYPE a><algo",
            "f:1: the XML has a document type or entities; neither is needed: remove the <!DOCTYPE ...> part",
        ),
    ],
)
def test_files_that_are_refused(old: str, new: str, message: str) -> None:
    """What is wrong is named with its line and value."""
    count = -1 if old == "algo" else 1
    with pytest.raises(InputError) as caught:
        parse_msccl(RING.replace(old, new, count).encode(), "f")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("data", "known"),
    [
        (RING.encode(), True),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- <system> -->\n <algo>', True),
        (b"<algorithm>", False),
        (b'<system version="1">', False),
        (b"<!-- <algo> -->", False),
        (b'{"format": "dualcoll.plan/1"}', False),
        (b"<!-- -->" * 100_000, False),
        (b"", False),
    ],
)
def test_is_msccl(data: bytes, known: bool) -> None:
    """The root element tells, comments before it do not."""
    assert is_msccl(data) is known


def test_all_samples_are_read() -> None:
    """What the other tests take for programs are files too."""
    for of in VALID.values():
        assert without_lines(parse_msccl(xml(of).encode(), "f")) == of
