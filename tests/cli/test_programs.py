"""Programs that stand alone: timed on a fabric, and ranked with the algorithms that are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An AllReduce of two GPUs: one adds and sends the sum back."""

    def step(number: int, kind: str) -> str:
        return (
            f'<step s="{number}" type="{kind}" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" '
            'depid="-1" deps="-1" hasdep="0"/>'
        )

    def gpu(number: int, kinds: tuple[str, str]) -> str:
        steps = "".join(step(s, kind) for s, kind in enumerate(kinds))
        block = f'<tb id="0" send="{1 - number}" recv="{1 - number}" chan="0">{steps}</tb>'
        return f'<gpu id="{number}" i_chunks="1" o_chunks="0" s_chunks="0">{block}</gpu>'

    path = tmp_path / "pair.xml"
    path.write_text(
        '<algo name="pair" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1" '
        f'outofplace="0" minBytes="2048" maxBytes="0">{gpu(0, ("s", "r"))}{gpu(1, ("rrc", "s"))}</algo>\n'
    )
    return path


def test_a_program_is_timed_on_a_fabric(run: Run, program: Path) -> None:
    """Twice the message over one link after the other, and nothing without a fabric."""
    done = run("simulate", program, "--topology", "ring:2", "--size", "64M", "--json")
    assert done.code == 0
    assert json.loads(done.out)["time_s"] > 0
    without = run("simulate", program)
    assert without.code == 2
    assert "add --topology" in without.err


def test_a_program_is_ranked(run: Run, program: Path) -> None:
    """It stands among the others where it is for such messages, and is left out below."""
    record = json.loads(run("compare", "ring:2", "allreduce", "--sizes", "1K,1M", "--with", program, "--json").out)
    mine = [row for row in record["results"] if row["method"] == "pair.xml"]
    assert [row["size_bytes"] for row in mine] == [2**20]
    assert 0 < mine[0]["of_bound"] <= 1
    assert any("pair.xml" in skipped["method"] for skipped in record["skipped"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["ring:2", "allgather"], "and AllGather is compared"),
        (["ring:4", "allreduce"], "4 ranks of the fabric for a schedule over 2"),
    ],
)
def test_what_does_not_fit_is_refused(run: Run, program: Path, arguments: list[str], reason: str) -> None:
    """Another collective, and other ranks."""
    done = run("compare", *arguments, "--sizes", "1M", "--with", program)
    assert done.code == 2
    assert reason in done.err
