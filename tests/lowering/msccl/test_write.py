"""MSCCL programs as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dualcoll.classical.ring import ring_reduce_scatter
from dualcoll.errors import InputError
from dualcoll.lowering.msccl.from_schedule import to_msccl
from dualcoll.lowering.msccl.program import Program
from dualcoll.lowering.msccl.read import is_msccl, parse_msccl, read_msccl
from dualcoll.lowering.msccl.write import msccl_text, write_msccl
from tests.lowering.msccl.programs import VALID


def without_lines(program: Program) -> Program:
    """The program as if it came from no file."""
    gpus = tuple(
        replace(
            gpu,
            line=0,
            blocks=tuple(
                replace(block, line=0, steps=tuple(replace(step, line=0) for step in block.steps))
                for block in gpu.blocks
            ),
        )
        for gpu in program.gpus
    )
    return replace(program, line=0, gpus=gpus)


def test_text() -> None:
    """Every attribute that a loader of either executor asks for is there."""
    program = to_msccl(ring_reduce_scatter(2, 64), name='a "b" <c>', min_bytes=1, max_bytes=4096).program
    assert msccl_text(program).splitlines()[:6] == [
        '<algo name="a &quot;b&quot; &lt;c&gt;" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" '
        'coll="reduce_scatter" inplace="1" outofplace="0" minBytes="1" maxBytes="4096">',
        '  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">',
        '    <tb id="0" send="1" recv="-1" chan="0">',
        '      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0" />',
        "    </tb>",
        '    <tb id="1" send="-1" recv="1" chan="0">',
    ]


@pytest.mark.parametrize("of", VALID.values(), ids=VALID)
def test_what_is_written_is_read(of: Program) -> None:
    """A program comes back as it was, with what it left open said."""
    text = msccl_text(of)
    said = replace(
        of,
        outofplace=not of.inplace if of.outofplace is None else of.outofplace,
        min_bytes=of.min_bytes or 0,
        max_bytes=of.max_bytes or 0,
    )
    assert is_msccl(text.encode())
    assert without_lines(parse_msccl(text.encode(), "a.xml")) == said


def test_file(tmp_path: Path) -> None:
    """A file is written whole, or not at all with the reason."""
    program = to_msccl(ring_reduce_scatter(2, 64)).program
    write_msccl(program, tmp_path / "a.xml")
    assert without_lines(read_msccl(tmp_path / "a.xml")) == program
    with pytest.raises(InputError) as caught:
        write_msccl(program, tmp_path / "no" / "a.xml")
    hint = f"make the folder {tmp_path / 'no'} first"
    assert str(caught.value) == f"{tmp_path / 'no' / 'a.xml'}: it cannot be written: No such file or directory; {hint}"
