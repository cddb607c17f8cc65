"""NCCL graph files: rings and chains written, read, loaded as NCCL does, and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dualcoll._api.planning import plan
from dualcoll.classical.registry import build
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.lowering.nccl import (
    Graph,
    Shape,
    check_graph,
    graph_of_plan,
    graph_of_schedule,
    read_graph,
    write_graph,
)
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ir import Schedule
from dualcoll.schedules.ops import Op
from dualcoll.topology.catalog import catalog
from dualcoll.topology.model import Kind, Link, Node, Topology

CORPUS = Path("/work/shared/corpus/nccl_graph_xml")


def chain(reduce: list[tuple[int, int]], copy: list[tuple[int, int]]) -> Schedule:
    """An AllReduce of three ranks along these pairs."""
    builder = ScheduleBuilder(make_contract("allreduce", 3), 1024)
    for src, dst in reduce:
        builder.send(src, dst, 0, Op.REDUCE)
    for src, dst in copy:
        builder.send(src, dst, 0)
    return builder.build()


@pytest.mark.parametrize(
    ("collective", "method"),
    [("allreduce", "ring"), ("allgather", "ring"), ("broadcast", "chain"), ("reduce", "chain")],
)
@pytest.mark.parametrize(("box", "channels", "speed"), [("dgx-1v", 6, 25e9), ("dgx-a100", 1, 300e9)])
def test_rings(box: str, channels: int, speed: float, collective: str, method: str, tmp_path: Path) -> None:
    """Classical rings become a graph that reads back the same, NCCL would load, and that the box can carry."""
    topology = catalog(box)
    graph = graph_of_schedule(build(method, collective, topology, topology.ranks, 2**20))
    assert (graph.shape, len(graph.channels), graph.speed, graph.path) == (Shape.RING, channels, speed, "NVL")
    write_graph(graph, tmp_path / "g.xml")
    assert read_graph(tmp_path / "g.xml") == (graph,)
    assert check_graph((tmp_path / "g.xml").read_bytes(), 8, "g", topology) == ()


def test_chain_and_text(tmp_path: Path) -> None:
    """An AllReduce along a chain is a tree graph from the root on, with devices in hexadecimal."""
    graph = graph_of_schedule(chain([(1, 0), (0, 2)], [(2, 0), (0, 1)]), speed=12e9, path="PHB")
    assert graph == Graph(Shape.CHAIN, ((2, 0, 1),), 12e9, "PHB")
    write_graph(graph, tmp_path / "g.xml")
    text = (tmp_path / "g.xml").read_text()
    assert text.splitlines()[1:4] == [
        '  <graph id="1" pattern="3" crossnic="0" nchannels="1" speedintra="12" speedinter="12" latencyinter="0" '
        'typeintra="PHB" typeinter="PIX" samechannels="1">',
        "    <channel>",
        '      <gpu dev="0x2"/>',
    ]


def test_plan() -> None:
    """A broadcast plan of two chains around a ring becomes a channel for each; a plan of real trees is refused."""
    topology = catalog("ring:4")
    graph = graph_of_plan(plan(topology, "broadcast", size="1M"))
    assert sorted(graph.channels) == [(0, 1, 2, 3), (0, 3, 2, 1)]
    with pytest.raises(InputError, match="neither a ring nor a chain of all 4 ranks; use MSCCL XML"):
        graph_of_plan(plan(topology, "allreduce", size="1M"))


@pytest.mark.parametrize("collective", ["allgather", "reducescatter"])
def test_plan_of_turned_chains(collective: str) -> None:
    """On a one-way ring a plan has one chain for each rank, which together are the ring; without one of them they are not."""
    nodes = tuple(Node(f"g{i}", Kind.GPU, box="b") for i in range(4))
    topology = Topology(nodes, tuple(Link(i, (i + 1) % 4, 10e9) for i in range(4)))
    made = plan(topology, collective, size="1M", forward="all")
    assert graph_of_plan(made) == Graph(Shape.RING, ((0, 1, 2, 3),), 10e9)
    with pytest.raises(InputError, match="do not carry the same from every rank"):
        graph_of_plan(replace(made, trees=made.trees[1:]))


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        (chain([(1, 0), (0, 2)], [(2, 0), (2, 1)]), "neither a ring nor a chain"),
        (chain([(0, 1), (2, 1)], [(1, 0), (1, 2)]), "neither a ring nor a chain"),
        (chain([(0, 1), (1, 2)], [(2, 1), (1, 0)]), "not known; give it, or routes"),
    ],
)
def test_refusals(schedule: Schedule, problem: str) -> None:
    """What is no chain from an end, and a speed that nobody knows, are refused."""
    with pytest.raises(InputError, match=problem):
        graph_of_schedule(schedule)


def test_several_boxes_refused() -> None:
    """A ring through two boxes has no graph."""
    topology = catalog("dgx-a100", boxes=2)
    with pytest.raises(InputError, match="the ranks are in 2 boxes"):
        graph_of_schedule(build("ring", "allreduce", topology, topology.ranks, 2**20))


GOOD = (
    '<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="6" speedinter="6" '
    'typeintra="SYS" typeinter="PIX" samechannels="1"><channel><gpu dev="0"/><gpu dev="1"/></channel></graph></graphs>'
)


@pytest.mark.parametrize(
    ("old", "new", "read", "checked"),
    [
        (' crossnic="0"', "", "no crossnic", "no crossnic: NCCL stops"),
        ('nchannels="1"', 'nchannels="2"', "nchannels '2' for 1", "nchannels 2, but 1 channels"),
        ('dev="1"', 'dev="0"', "not every GPU once", "not each of the 2 GPUs once"),
        ('"SYS"', '"FAR"', "path 'FAR' is not known", "NCCL takes LOC for it"),
        ('<graphs version="1"', '<graphs version="2"', "no NCCL graph file of version 1", "NCCL loads 1 only"),
        ('dev="1"', 'dev="10"', "is ambiguous", "not each of the 2 GPUs once"),
    ],
)
def test_faults(old: str, new: str, read: str, checked: str, tmp_path: Path) -> None:
    """Reader and validator find each fault on their own."""
    path = tmp_path / "g.xml"
    assert check_graph(GOOD.encode(), 2, "g") == ()
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError, match=read):
        read_graph(path)
    assert checked in check_graph(path.read_bytes(), 2, "g")[0]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("<graph id", "<graph\n id", "all attributes stand on one line"),
        ("</channel>", "</chanel>", "closes <channel>"),
        ("</graphs>", "", "is not closed"),
        ("<graphs", '<?xml version="1.0"?><graphs', "NCCL would refuse"),
    ],
)
def test_parser(old: str, new: str, problem: str) -> None:
    """What NCCL's own parser trips over is refused with a line, even where it is good XML."""
    data = GOOD.replace(old, new).encode()
    with pytest.raises(InputError, match=problem) as caught:
        check_graph(data, 2, "g")
    assert caught.value.where.startswith("g:")


@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus")
def test_corpus() -> None:
    """Real graph files load as NCCL loads them."""
    assert check_graph((CORPUS / "azhpc-images__ncv4-graph.xml").read_bytes(), 4, "f") == ()
    assert len(read_graph(CORPUS / "azhpc-images__ncv4-graph.xml")) >= 1
    with pytest.raises(InputError):
        check_graph((CORPUS / "rtx6kpro_amd_turin_fix_snippet.xml").read_bytes(), 4, "f")
