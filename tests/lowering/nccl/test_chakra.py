"""Chakra traces: written, read, run to their end, and refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dualcoll.classical.registry import build
from dualcoll.errors import InputError
from dualcoll.lowering.nccl import TraceNode, check_chakra, read_chakra, trace_of_schedule, write_chakra
from dualcoll.lowering.nccl.chakra import NodeKind, Trace
from dualcoll.topology.catalog import catalog

CORPUS = Path("/work/shared/corpus/astra_sim_custom_collective/astra-sim__custom_allreduce.0.et")
SEND = TraceNode(0, NodeKind.SEND, (), 1, 0, 8)
RECEIVE = TraceNode(0, NodeKind.RECEIVE, (), 0, 0, 8)


@pytest.mark.parametrize(
    ("method", "collective"),
    [
        ("ring", "allreduce"),
        ("double-tree", "allreduce"),
        ("direct", "alltoall"),
        ("chain", "reduce"),
        ("bruck", "allgather"),
    ],
)
def test_round_trip(method: str, collective: str, tmp_path: Path) -> None:
    """A trace reads back the same, runs to its end, and sends what the schedule sends."""
    topology = catalog("dgx-a100")
    schedule = build(method, collective, topology, topology.ranks, 2**16)
    trace = trace_of_schedule(schedule)
    assert len(write_chakra(trace, tmp_path / "all")) == 8
    assert read_chakra(tmp_path / "all") == trace
    sent = sum(node.size for nodes in trace for node in nodes if node.kind is NodeKind.SEND)
    assert sent == schedule.send_size[schedule.src != schedule.dst].sum()


def test_first_bytes(tmp_path: Path) -> None:
    """The bytes of a node are those of the protobuf definition, written out by hand."""
    write_chakra(((SEND,), (RECEIVE,)), tmp_path / "t")
    data = (tmp_path / "t.0.et").read_bytes()
    head = b"\x12\x1d\x0a\x06schema\xea\x01\x121.0.2-chakra.0.0.4"
    assert data.startswith(bytes([len(head)]) + head)
    rest = data[len(head) + 1 :]
    assert rest[0] == len(rest) - 1
    assert rest[1:].startswith(b"\x12\x06SEND_0\x18\x05\x52\x0d\x0a\x09comm_type\x48\x05")
    assert rest.endswith(b"\x52\x0c\x0a\x08comm_dst\x38\x01\x52\x0c\x0a\x08comm_tag\x38\x00")


@pytest.mark.parametrize(
    ("trace", "finding"),
    [
        (((SEND,), ()), "rank 1 has no nodes"),
        (((SEND,), (replace(RECEIVE, size=9),)), "[8] bytes sent, [9] received"),
        (((SEND,), (replace(RECEIVE, after=(5,)),)), "follows none that exists"),
        (((SEND, SEND), (RECEIVE, replace(RECEIVE, id=1))), "uses an id twice"),
        (((replace(SEND, peer=7),), (RECEIVE,)), "8 bytes with rank 7"),
        (
            (
                (replace(SEND, after=(1,)), replace(RECEIVE, id=1, peer=1)),
                (replace(SEND, peer=0, after=(1,)), replace(RECEIVE, id=1)),
            ),
            "4 nodes wait for each other",
        ),
    ],
)
def test_faults(trace: Trace, finding: str, tmp_path: Path) -> None:
    """Each fault is found, and not written."""
    assert any(finding in text for text in check_chakra(trace))
    with pytest.raises(InputError):
        write_chakra(trace, tmp_path / "t")


def test_bad_files(tmp_path: Path) -> None:
    """A file cut off, and one that is something else, are refused."""
    write_chakra(((SEND,), (RECEIVE,)), tmp_path / "t")
    whole = (tmp_path / "t.0.et").read_bytes()
    for data in (whole[:-1], b"\xff" * 30, b"<xml/>"):
        (tmp_path / "t.0.et").write_bytes(data)
        with pytest.raises(InputError, match="no Chakra trace"):
            read_chakra(tmp_path / "t")
    with pytest.raises(InputError, match="cannot be read"):
        read_chakra(tmp_path / "none")


def test_empty_sends_refused() -> None:
    """A message with fewer bytes than chunks is refused."""
    topology = catalog("dgx-a100")
    with pytest.raises(InputError, match="it has no bytes"):
        trace_of_schedule(build("ring", "allreduce", topology, topology.ranks, 1))


@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus")
def test_corpus(tmp_path: Path) -> None:
    """A trace of ASTRA-sim's own is read."""
    shutil.copy(CORPUS, tmp_path / "t.0.et")
    nodes = read_chakra(tmp_path / "t")[0]
    assert nodes[:2] == (
        TraceNode(0, NodeKind.SEND, (), 1, 0, 131072),
        TraceNode(1, NodeKind.RECEIVE, (0,), 7, 0, 131072),
    )
