"""Native topology files: what they mean, what is refused and where, and the exact round trip."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.errors import InputError
from dualcoll.testing import degrade, random_fabric
from dualcoll.topology.catalog import catalog
from dualcoll.topology.devices import Rates
from dualcoll.topology.file import read_topology, topology_from_dict, topology_to_dict, write_topology
from dualcoll.topology.importers import ImportOptions
from dualcoll.topology.model import Kind, Link, Node, SharedCapacity, Topology, duplex

FIXTURES = Path(__file__).parent.parent / "fixtures"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
STAR = (FIXTURES / "star.yaml").read_text()
HEAD = "format: dualcoll.topology/1\n"


def refusal(path: Path, content: str | bytes) -> str:
    """The message for a file of that content, its folder cut away."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        read_topology(path)
    assert time.perf_counter() - start < 60
    return str(caught.value).replace(f"{path.parent}{os.sep}", "")


def test_what_a_file_means() -> None:
    """Duplex unless one-way, cables counted, ids spanning all their links, boxes and ranks found, defaults noted."""
    topology = read_topology(FIXTURES / "star.yaml")
    assert topology.name == "two GPUs and a switch"
    assert [(n.name, n.kind, n.box, n.rank) for n in topology.nodes] == [
        ("g0", Kind.GPU, "b0", True),
        ("g1", Kind.GPU, "box0", True),
        ("sw", Kind.SWITCH, None, False),
    ]
    up = duplex(Link(1, 2, 50e9, 1.3e-6, "up"))
    assert topology.links == (*duplex(Link(0, 2, 50e9, 1e-6)), *up, *up)
    assert topology.shared == (SharedCapacity((2, 3, 4, 5), 75e9),)
    assert topology.notes == ("4 of 6 directed links give no latency: 350 ns is assumed in a box, 1.3 us outside",)


def test_every_key(tmp_path: Path) -> None:
    """Ranks, ports, one-way links, sources, notes and rows over single directions are read."""
    path = tmp_path / "all.yaml"
    path.write_text(
        HEAD
        + """
nodes:
  - {name: on, kind: gpu, rank: false, box: no, ports: [25GB/s, 200Gb/s]}
  - {name: 007, kind: cpu, rank: TRUE, box: ~}
links:
  - {from: on, to: 007, bandwidth: 1GB/s, oneway: true, source: measured, latency: 0, id: 1e3}
  - {from: 007, to: on, bandwidth: 2GB/s, oneway: true}
shared:
  - {directed: [1, 0], bandwidth: 1500MB/s, source: a bus}
notes: [one, 2]
"""
    )
    topology = read_topology(str(path))
    assert topology.nodes == (
        Node("on", Kind.GPU, False, "no", (25e9, 25e9)),
        Node("007", Kind.CPU, True, "no"),
    )
    assert topology.links == (Link(0, 1, 1e9, 0.0, "1e3", "measured"), Link(1, 0, 2e9, 0.35e-6))
    assert topology.shared == (SharedCapacity((1, 0), 1.5e9, "a bus"),)
    assert topology.notes[:2] == ("one", "2")


@pytest.mark.parametrize("example", ["star", "rails", "mixed"])
def test_examples_can_be_read(example: str) -> None:
    """The example files are right."""
    topology = read_topology(EXAMPLES / f"{example}.yaml")
    assert topology.ranks
    assert topology_from_dict(topology_to_dict(topology)) == topology


def test_json_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same content as JSON, or from standard input, gives the same topology."""
    expected = read_topology(FIXTURES / "star.yaml")
    path = tmp_path / "star.txt"
    path.write_text(json.dumps(topology_to_dict(expected)), encoding="utf-8-sig")
    assert read_topology(path) == expected

    class Stdin:
        buffer = io.BytesIO(STAR.encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert read_topology("-") == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "50GB/s",
            "50",
            "8: links[0].bandwidth: bandwidth '50' has no unit; "
            'write it with its unit, such as "50GB/s" (bytes) or "400Gb/s" (bits)',
        ),
        (
            "50GB/s",
            "0GB/s",
            "8: links[0].bandwidth: bandwidth '0GB/s' is out of range; a link carries between 1 B/s and 1e18 B/s",
        ),
        (
            "50GB/s",
            ".nan",
            "8: links[0].bandwidth: cannot read bandwidth '.nan'; "
            'write it with its unit, such as "50GB/s" (bytes) or "400Gb/s" (bits)',
        ),
        ("1us", "1", "8: links[0].latency: cannot read time '1'; write it with its unit, such as \"2us\""),
        ("bandwidth: 50GB/s, ", "", "8: links[0]: bandwidth is missing"),
        ("latency", "latensy", "8: links[0].latensy: unknown key 'latensy'; did you mean latency?"),
        (
            "box: b0",
            "colour: red",
            "4: nodes[0].colour: unknown key 'colour'; the keys are name, kind, rank, box, ports",
        ),
        ("links:\n", "lnks:\n", "7: lnks: unknown key 'lnks'; did you mean links?"),
        ("kind: switch", "kind: swich", "6: nodes[2].kind: 'swich' is not known; did you mean switch?"),
        (
            "kind: switch",
            "kind: 3",
            "6: nodes[2].kind: '3' is not known; use one of gpu, switch, nic, cpu, pci, host",
        ),
        ("name: g1", "name: g0", "5: nodes[1].name: node name 'g0' is taken by nodes[0]; names must be unique"),
        ("name: sw", "name: ''", "6: nodes[2].name: '' is not usable as a name; use 1 to 255 printable characters"),
        ("name: sw", "name: ~", "6: nodes[2].name: None is not text"),
        ("box: b0", "rank: maybe", "4: nodes[0].rank: 'maybe' is neither true nor false"),
        ("{name: sw, kind: switch}", "sw", "6: nodes[2]: 'sw' is not a mapping of keys to values"),
        ("to: sw, bandwidth: 50", "to: sw1, bandwidth: 50", "8: links[0].to: there is no node 'sw1'; did you mean sw?"),
        ("from: g0", "from: elsewhere", "8: links[0].from: there is no node 'elsewhere'; name it under nodes"),
        ("from: g0", "from: sw", "8: links[0]: a link from sw to itself; remove it: it carries nothing"),
        ("count: 2", "count: 0", "9: links[1].count: 0 is out of range; use 1 or more"),
        ("count: 2", "count: -2", "9: links[1].count: -2 is out of range; use 1 or more"),
        ("count: 2", "count: 2.5", "9: links[1].count: '2.5' is not a whole number of at most nine digits"),
        ("count: 2", "count: 3000000", "7: links: it would have 6000002 links; at most 4000000 can be handled"),
        ("links: [up]", "links: up", "11: shared[0].links: 'up' is not a list"),
        ("links: [up]", "links: [upp]", "11: shared[0].links[0]: no link has the id 'upp'; did you mean up?"),
        ("links: [up]", "links: [up, up]", "11: shared[0]: it names a link twice, or one that is not there"),
        ("links: [up]", "directed: [9]", "11: shared[0]: it names a link twice, or one that is not there"),
        (
            "links: [up], ",
            "",
            "11: shared[0]: it needs links (ids of links) or directed (positions of directed links), and not both",
        ),
        (
            "latency: 1us",
            "id: up",
            "11: shared[0].links[0]: 2 entries of links have the id 'up'; give each its own id",
        ),
        (
            "topology/1",
            "topology/2",
            "1: format: 'dualcoll.topology/2' is no format of a fabric; "
            "a fabric has dualcoll.topology/1 or dualcoll.cluster/1",
        ),
        ("from: g0", "from: g0, from: g1", "8: key 'from' is given twice"),
        ("nodes:\n", "nodes: [\n", "4: the YAML is broken: did not find expected node content"),
        (
            "name: sw",
            "name: !!python/name:os.system ''",
            "6: tag tag:yaml.org,2002:python/name:os.system is not allowed",
        ),
        ("name: sw", "? [a] : b", "6: a key that is not plain text"),
    ],
)
def test_where_and_what_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A mistake is reported with its file, line, key, value, and what to write instead."""
    assert old in STAR
    assert refusal(tmp_path / "fabric.yaml", STAR.replace(old, new, 1)) == f"fabric.yaml:{message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"  \n", "it is empty"),
        (HEAD.encode() + b"name: \xff", "f.yaml:2: it is not UTF-8 text"),
        (HEAD + "---\nnodes: []", "f.yaml:2: the YAML is broken: but found another document"),
        (HEAD + "nodes: &a [*a]", "f.yaml:2: an alias inside its own anchor"),
        (HEAD + "nodes: *b", "f.yaml:2: the YAML is broken: found undefined alias"),
        (HEAD + "nodes: []", "f.yaml: the topology has no nodes"),
        (HEAD, "f.yaml: nodes is missing"),
        (
            "- " + HEAD,
            "f.yaml:1: format: the format is missing; a fabric has dualcoll.topology/1 or dualcoll.cluster/1",
        ),
        ("nodes: []", "f.yaml: it has no format; begin a topology with `format: dualcoll.topology/1`"),
        ('{"format": "dualcoll.topology/1",\n"nodes": [,]}', "f.yaml:2: the JSON is broken: Expecting value"),
        ('{"format": "dualcoll.topology/1",\n"name": 1, "name": 2}', "f.yaml:2: key 'name' is given twice"),
        ('{"format": "dualcoll.topology/1", "nodes": NaN}', "f.yaml: NaN is not a number that JSON knows"),
        (
            '{"format": "dualcoll.topology/1", "nodes": [{"name": "a", "kind": "gpu"}],\n'
            '"links": [{"from": "a", "to": "a", "bandwidth": 50e9}]}',
            "f.yaml:2: links[0].bandwidth: bandwidth 50000000000.0 has no unit; "
            'write it with its unit, such as "50GB/s" (bytes) or "400Gb/s" (bits)',
        ),
        (
            '{"format": "dualcoll.topology/1", "nodes": [{"name": true, "kind": "gpu"}]}',
            "f.yaml:1: nodes[0].name: True is not text; put it in quotes",
        ),
    ],
)
def test_broken_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    """Broken YAML and JSON are refused with the line, as far as there is one."""
    if message == "it is empty":
        message = f"f.yaml: {message}"
    assert refusal(tmp_path / "f.yaml", content) == message


def bomb(levels: int) -> str:
    rows = "".join(f"  - &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, levels))
    return f"{HEAD}nodes:\n  - &a0 [x]\n{rows}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bomb(30), "f.yaml: its aliases expand to millions of values; write them out"),
        (HEAD + "nodes: " + "[" * 100_000, "f.yaml:2: the YAML is broken: exceeded maximum nesting depth"),
        ('{"format": "dualcoll.topology/1", "nodes": ' + "[" * 100_000, "f.yaml: it is nested too deep"),
        ('{"format": "dualcoll.topology/1", "nodes": ' + "9" * 10_000 + "}", "f.yaml: a number has too many digits"),
        (
            '{"format": "dualcoll.topology/1", "nodes": [' + "0," * 100_000 + "0]}",
            "f.yaml:1: nodes[0]: 0 is not a mapping of keys to values",
        ),
        (HEAD + "#" * 9 * 2**20, "f.yaml: it is larger than 8 MiB; write big fabrics as JSON, which reads faster"),
        (b"format: dualcoll." + b"\0" * 65 * 2**20, "f.yaml: it is larger than 64 MiB"),
    ],
    ids=["alias bomb", "deep YAML", "deep JSON", "long number", "long list", "big YAML", "big file"],
)
def test_hostile_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    """Content made to exhaust memory, stack or patience is refused at once."""
    assert refusal(tmp_path / "f.yaml", content) == message


def test_deep_blocks(tmp_path: Path) -> None:
    """Nesting by indentation is bounded as well."""
    content = HEAD + "nodes:\n" + "".join(f"{' ' * i}-\n" for i in range(1500))
    assert refusal(tmp_path / "f.yaml", content) == "f.yaml:1002: the YAML is broken: exceeded maximum nesting depth"


def test_neither_file_nor_name(tmp_path: Path) -> None:
    """What is no file and no catalogue name is refused with what comes close."""

    def message(source: str) -> str:
        with pytest.raises(InputError) as caught:
            read_topology(source)
        return str(caught.value).replace(str(tmp_path), "DIR")

    (tmp_path / "fabric.yaml").write_text(STAR)
    assert message(f"{tmp_path}/fabrik.yaml") == (
        "'DIR/fabrik.yaml' is neither a file nor a name of the catalogue; did you mean fabric.yaml?"
    )
    assert message("dgx-h10:boxes=2") == (
        "'dgx-h10:boxes=2' is neither a file nor a name of the catalogue; did you mean dgx-h100?"
    )
    assert message("\0").endswith("is neither a file nor a name of the catalogue; `dualcoll topo list` shows the names")
    assert message(str(tmp_path)) == "DIR: it is a folder, not a file"
    assert message("ring:1") == "ring:1: n: 1 is out of range; use 2 to 1000000"


def test_names_of_the_catalogue() -> None:
    """A catalogue spec is read where a file is."""
    assert read_topology("dgx-h100:boxes=2") == catalog("dgx-h100", boxes=2)


def test_a_file_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is called like a catalogue entry is the file; a folder is not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mi250").mkdir()
    assert read_topology("mi250") == catalog("mi250")
    (tmp_path / "dgx-h100").write_text(STAR)
    assert read_topology("dgx-h100").name == "two GPUs and a switch"


def test_options_for_imports_only() -> None:
    """GPU model, NIC speed and the like are refused where they would change nothing."""
    with pytest.raises(InputError) as caught:
        read_topology(FIXTURES / "star.yaml", ImportOptions(nic="200Gb/s"))
    assert (
        caught.value.problem == "GPU, NIC, PCIe, CPU and rates from outside are for imported files; this one is native"
    )
    with pytest.raises(InputError) as caught:
        read_topology("dgx-h100", ImportOptions(gpu="A100"))
    assert str(caught.value) == (
        "dgx-h100: GPU, NIC, PCIe and CPU from outside are for imported files; "
        "options of a catalogue name go behind its colon, such as dgx-h100:nic=25GB/s"
    )
    assert read_topology("dgx-h100", ImportOptions(rates=Rates.NCCL)) == catalog("dgx-h100", rates="nccl")


def test_foreign_files_are_imported() -> None:
    """A file of another format goes to its importer, with the options."""
    topology = read_topology(FIXTURES / "two-gpus-one-nic.xml", ImportOptions(rates=Rates.NCCL))
    assert len(topology.ranks) == 2
    assert (
        "--pcie Gen4 changed nothing: the file says the speed of every PCIe link itself"
        in read_topology(FIXTURES / "two-gpus-one-nic.xml", ImportOptions(pcie="Gen4")).notes
    )


def test_no_name_at_all() -> None:
    """An empty text is not the current folder."""
    for text in ("", "  "):
        with pytest.raises(InputError) as caught:
            read_topology(text)
        assert str(caught.value) == (
            "no topology was given; name a file, - for standard input, or a name of the catalogue"
        )


def test_names_ignore_case() -> None:
    """A name of the catalogue may be written as vendors do."""
    assert read_topology("DGX-H100:boxes=2") == catalog("Dgx-H100", boxes=2) == catalog("dgx-h100:boxes=2")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("name", ["fabric.yaml", "fabric.txt"])
def test_other_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    """A native file in another encoding is told so, whatever it is called."""
    text = STAR if encoding.startswith("utf") else STAR.replace("format", "f\u00f6rmat")
    (tmp_path / name).write_bytes(text.encode(encoding))
    with pytest.raises(InputError) as caught:
        read_topology(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: it is not UTF-8 text; save it as UTF-8"


def texts(least: int = 0) -> st.SearchStrategy[str]:
    return st.text(min_size=least, max_size=6)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Any topology that a file may hold: odd names and numbers, parallel, paired and lone links, rows over any of them."""
    names = draw(st.lists(texts(1).filter(str.isprintable), min_size=2, max_size=4, unique=True))
    rates = st.one_of(st.floats(1.0, 1e18), st.integers(1, 10**6).map(lambda n: n * 1e6))
    nodes: list[Node] = []
    for name in names:
        kind = draw(st.sampled_from(Kind))
        # a node without a box, other than a switch, would get one derived, which may be ambiguous
        box = draw(st.none() | texts()) if kind is Kind.SWITCH else draw(texts())
        ports = tuple(draw(st.lists(rates, max_size=2)))
        nodes.append(Node(name, kind, draw(st.sampled_from([None, True, False])), box, ports))
    links: list[Link] = []
    for _ in range(draw(st.integers(0, 5))):
        tail, head = draw(st.permutations(range(len(names))))[:2]
        seconds = draw(st.one_of(st.floats(0, 86400), st.sampled_from([0.0, 1.3e-6, 0.35e-6])))
        link = Link(tail, head, draw(rates), seconds, draw(st.sampled_from(["", "x", "y"]) | texts()), draw(texts()))
        links += (duplex(link) if draw(st.booleans()) else [link]) * draw(st.integers(1, 2))
    rows = st.lists(st.sampled_from(range(len(links))), min_size=1, unique=True) if links else st.nothing()
    shared = [
        SharedCapacity(tuple(row), draw(rates), draw(texts()))
        for row in draw(st.lists(rows, max_size=2) if links else st.just([]))
    ]
    return Topology(
        tuple(nodes), tuple(links), tuple(shared), draw(texts()), tuple(draw(st.lists(texts(), max_size=2)))
    )


@given(topologies(), st.sampled_from([".json", ".yaml"]))
def test_written_topologies_read_back_equal(topology: Topology, suffix: str) -> None:
    """Writing and reading changes nothing: no bit of a number, no order, no name, note or source."""
    assert topology_from_dict(topology_to_dict(topology)) == topology
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        write_topology(topology, path)
        assert read_topology(path) == topology


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_random_fabrics_read_back_equal(seed: int, symmetric: bool, conditional: bool) -> None:
    """The fabrics of the other tests survive the file format too."""
    topology = degrade(random_fabric(seed, symmetric=symmetric, conditional=conditional, shared=True), seed, 0.5)
    assert topology_from_dict(topology_to_dict(topology)) == topology


def test_written_files_are_pleasant() -> None:
    """Round numbers, one entry for a cable or several alike, and nothing that is the default."""
    assert topology_to_dict(read_topology(FIXTURES / "star.yaml")) == {
        "format": "dualcoll.topology/1",
        "name": "two GPUs and a switch",
        "notes": ["4 of 6 directed links give no latency: 350 ns is assumed in a box, 1.3 us outside"],
        "nodes": [
            {"name": "g0", "kind": "gpu", "box": "b0"},
            {"name": "g1", "kind": "gpu", "box": "box0"},
            {"name": "sw", "kind": "switch"},
        ],
        "links": [
            {"from": "g0", "to": "sw", "bandwidth": "50GB/s", "latency": "1us"},
            {"from": "g1", "to": "sw", "bandwidth": "50GB/s", "latency": "1.3us", "count": 2, "id": "up"},
        ],
        "shared": [{"links": ["up"], "bandwidth": "75GB/s"}],
    }


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """An unknown suffix and numbers that no file may hold are refused."""
    star = read_topology(FIXTURES / "star.yaml")
    with pytest.raises(InputError) as caught:
        write_topology(star, tmp_path / "star.txt")
    assert caught.value.problem == "suffix '.txt' says no format"
    slow = Topology(star.nodes, (Link(0, 2, 0.5),))
    with pytest.raises(InputError) as caught:
        write_topology(slow, tmp_path / "star.yaml")
    assert str(caught.value) == (
        "link g0 -> sw: bandwidth '0.5B/s' is out of range; a link carries between 1 B/s and 1e18 B/s"
    )


def test_errors_of_plain_data() -> None:
    """Data that comes from inside another file is placed by the name given for it."""
    with pytest.raises(InputError) as caught:
        topology_from_dict({"format": "dualcoll.topology/1", "nodes": [{"name": "a"}]}, "plan.json: topology")
    assert str(caught.value) == "plan.json: topology: nodes[0]: kind is missing"
    with pytest.raises(InputError) as caught:
        topology_from_dict([], "plan.json: topology")
    assert str(caught.value) == "plan.json: topology: it is not a mapping of keys to values"


@given(
    st.binary(max_size=200),
    st.sampled_from([HEAD.encode(), b'{"format": "dualcoll.topology/1", ', STAR.encode()[:150]]),
)
def test_any_bytes_are_read_or_refused(tail: bytes, head: bytes) -> None:
    """No content behind a native head makes the reader fail otherwise than by saying so."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.yaml"
        path.write_bytes(head + tail)
        with pytest.raises(InputError):
            read_topology(path)


@given(st.data())
def test_a_damaged_file_is_read_or_refused(data: st.DataObject) -> None:
    """Cutting or repeating a piece of a good file gives a topology or an error, never a crash."""
    start, end = sorted((data.draw(st.integers(0, len(STAR))), data.draw(st.integers(0, len(STAR)))))
    content = STAR[:start] + STAR[start:end] * data.draw(st.sampled_from([0, 2])) + STAR[end:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.yaml"
        path.write_text(content)
        try:
            assert read_topology(path).nodes
        except InputError as error:
            assert error.problem  # noqa: PT017 - either outcome is right


def test_big_fabrics_are_quick(tmp_path: Path) -> None:
    """A fabric of 4,096 GPUs is written and read in seconds."""
    topology = degrade(catalog("dgx-h100", boxes=512), 0)
    start = time.perf_counter()
    write_topology(topology, tmp_path / "big.json")
    assert read_topology(tmp_path / "big.json") == topology
    assert time.perf_counter() - start < 60
