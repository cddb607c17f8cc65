"""Many trees go to a file of their own and come back exactly; a file that is not theirs is refused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.certificates import check_plan
from dualcoll.collectives.workload import Group, Workload
from dualcoll.errors import InputError
from dualcoll.files import atomic_write
from dualcoll.plans.conversion import plan_to_document
from dualcoll.plans.document import TreesOnDemand
from dualcoll.plans.file import document_from_dict, plan_to_dict, read_document, read_plan, write_plan
from dualcoll.plans.model import Cut, Plan, Tree
from dualcoll.plans.tree_file import read_trees, tree_file_reference, trees_to_bytes
from dualcoll.routing.model import Routing, RoutingKind
from dualcoll.topology.model import Forwarding, Kind, Link, Node, Topology, duplex
from tests.plans.small import make_mix, make_plan, same

Arrays = dict[str, Any]


@pytest.fixture
def everything_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes two edges too many for the plan file itself."""
    monkeypatch.setattr("dualcoll.plans.conversion.MANY_EDGES", 1)


@pytest.fixture
def plan_file(everything_is_much: None, tmp_path: Path) -> Path:
    """A small plan in two files."""
    write_plan(make_plan(), tmp_path / "plan.json")
    return tmp_path / "plan.json"


def _tree_file(plan_file: Path) -> Path:
    return plan_file.parent / str(json.loads(plan_file.read_text())["trees"]["file"])


def _error(plan_file: Path) -> str:
    with pytest.raises(InputError) as error:
        read_document(plan_file)
    return str(error.value).replace(str(plan_file), "plan.json").replace(_tree_file(plan_file).name, "FILE")


@pytest.mark.usefixtures("everything_is_much")
@pytest.mark.parametrize("make", [make_plan, make_mix])
def test_both_forms_say_the_same(tmp_path: Path, make: Callable[[], Plan]) -> None:
    """A plan in two files is read as the same plan, and its document has the same trees, as one in one file."""
    path = tmp_path / "plan.json"
    write_plan(make(), path)
    assert same(read_plan(path), make())
    trees = read_document(path).trees
    assert isinstance(trees, TreesOnDemand)
    whole = document_from_dict(plan_to_dict(make()), "plan").trees
    assert tuple(trees) == tuple(whole)
    assert (tuple(trees[-1:]), trees[0], len(trees)) == (tuple(whole[-1:]), whole[0], len(whole))


@pytest.mark.usefixtures("everything_is_much")
def test_routes_of_the_network_are_left_out(tmp_path: Path) -> None:
    """Where the network chooses the routes, the file of the trees has none either."""
    plan = replace(make_plan(), routing=Routing(RoutingKind.SPRAY))
    write_plan(plan, tmp_path / "plan.json")
    assert "route_ptr" not in np.load(_tree_file(tmp_path / "plan.json"))
    assert [tree.routes for tree in read_document(tmp_path / "plan.json").trees] == [None]
    assert read_plan(tmp_path / "plan.json").trees[0].route_share is not None


def test_documented_form(plan_file: Path) -> None:
    """The plan file names the other by its hash; that has the arrays of docs/plan-file.md, each edge once."""
    reference = json.loads(plan_file.read_text())["trees"]
    content = (plan_file.parent / reference["file"]).read_bytes()
    assert reference["sha256"] == sha256(content).hexdigest()
    assert reference["file"] == f"plan.json.{reference['sha256'][:16]}.npz"
    arrays = np.load(io.BytesIO(content))
    page = (Path(__file__).parents[2] / "docs" / "plan-file.md").read_text()
    assert all(f"`{name}`" in page for name in arrays)
    found = {name: (str(arrays[name].dtype), arrays[name].tolist()) for name in arrays}
    assert found == {
        "rate": ("float64", [0.1]),
        "bytes": ("int64", [10]),
        "group": ("int32", [0]),
        "root": ("int32", [0]),
        "target": ("int32", [-1]),
        "tree_ptr": ("int64", [0, 2]),
        "tree_edge": ("int32", [0, 1]),
        "edge_tail": ("int32", [1, 0]),
        "edge_head": ("int32", [0, 1]),
        "edge_phase": ("int8", [0, 1]),
        "route_ptr": ("int64", [0, 3, 6]),
        "hop_node": ("int32", [1, 2, 0, 0, 2, 1]),
        "hop_cable": ("int32", [0, 1, 0, 0, 0, 1]),
    }


def test_the_same_plan_makes_the_same_file(plan_file: Path) -> None:
    """The name follows from the content, so writing again leaves two files, not three."""
    before = _tree_file(plan_file).read_bytes()
    write_plan(make_plan(), plan_file)
    assert _tree_file(plan_file).read_bytes() == before
    assert len(list(plan_file.parent.iterdir())) == 2


def test_a_copy_outlives_the_next_plan(plan_file: Path) -> None:
    """Writing another plan under the same name leaves the trees of the one before to its copies."""
    copy = plan_file.with_name("copy.json")
    copy.write_bytes(plan_file.read_bytes())
    write_plan(make_plan(rate=0.2), plan_file)
    assert same(read_plan(copy), make_plan())
    assert same(read_plan(plan_file), make_plan(rate=0.2))


def test_links_are_followed(everything_is_much: None, tmp_path: Path) -> None:
    """Through a link both files are written to, and found in, the folder where the plan file really is."""
    (tmp_path / "real").mkdir()
    (tmp_path / "plan.json").symlink_to(tmp_path / "real" / "target.json")
    write_plan(make_plan(), tmp_path / "plan.json")
    assert same(read_plan(tmp_path / "plan.json"), make_plan())
    assert len(list((tmp_path / "real").iterdir())) == 2


@pytest.mark.usefixtures("everything_is_much")
def test_a_device_takes_all_in_one(tmp_path: Path) -> None:
    """Beside a device there can be no file, so everything is written to it."""
    (tmp_path / "plan.json").symlink_to("/dev/null")
    write_plan(make_plan(), tmp_path / "plan.json")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert not list(Path("/dev").glob("null.*"))


@pytest.mark.parametrize("known", [False, True])
def test_both_files_or_none(plan_file: Path, monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    """If the plan file cannot be written, neither is the other; one that was there stays."""
    before = {path: path.read_bytes() for path in plan_file.parent.iterdir()}

    def fail(path: Path, content: str | bytes) -> None:
        if isinstance(content, str):
            raise InputError("it cannot be written: no space", where=str(path))
        atomic_write(path, content)

    monkeypatch.setattr("dualcoll.plans.file.atomic_write", fail)
    with pytest.raises(InputError, match=r"it cannot be written: no space$"):
        write_plan(make_plan(rate=0.1 if known else 0.2), plan_file)
    assert {path: path.read_bytes() for path in plan_file.parent.iterdir()} == before


@pytest.mark.usefixtures("everything_is_much")
def test_folder_that_is_missing(tmp_path: Path) -> None:
    """The message names the folder, as for a plan in one file."""
    path = tmp_path / "plans" / "plan.json"
    with pytest.raises(InputError, match=rf"it cannot be written: .*; make the folder {path.parent} first$"):
        write_plan(make_plan(), path)


def test_missing_file(plan_file: Path) -> None:
    """A plan file that was copied alone says what it lacks."""
    _tree_file(plan_file).unlink()
    assert _error(plan_file) == (
        "plan.json: trees: FILE: it cannot be read: No such file or directory; it belongs beside the plan file"
    )


def test_altered_and_foreign_files(plan_file: Path) -> None:
    """One changed byte, or the trees of another plan under this one's name, are not taken for the plan's."""
    refused = "plan.json: trees: FILE: it is not the file that was written with the plan: its SHA-256 differs"
    file = _tree_file(plan_file)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert _error(plan_file) == refused
    other = plan_file.with_name("other.json")
    write_plan(make_plan(rate=0.3), other)
    file.write_bytes(_tree_file(other).read_bytes())
    assert _error(plan_file) == refused


@pytest.mark.parametrize("name", ["../plan.npz", "/etc/passwd", "", ".", "a\x1b.npz"])
def test_only_files_beside_the_plan(plan_file: Path, name: str) -> None:
    """A plan file cannot make the reader look elsewhere."""
    data = json.loads(plan_file.read_text())
    data["trees"]["file"] = name
    plan_file.write_text(json.dumps(data))
    with pytest.raises(InputError) as error:
        read_document(plan_file)
    assert str(error.value) == f"{plan_file}: trees: file: {name!r} is not the name of a file beside the plan"


def _forge(plan_file: Path, content: bytes) -> None:
    """Put other content in the place of the trees' file, with the hash that fits."""
    data = json.loads(plan_file.read_text())
    (plan_file.parent / data["trees"]["file"]).write_bytes(content)
    data["trees"]["sha256"] = sha256(content).hexdigest()
    plan_file.write_text(json.dumps(data))


def _packed(arrays: Arrays) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _to(name: str, *values: float) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.update({name: np.array(values, arrays[name].dtype)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_to("rate", np.nan), "rate: a rate is not a finite number >= 0"),
        (_to("rate", -1.0), "rate: a rate is not a finite number >= 0"),
        (_to("bytes", -1), "bytes: [-1] is not in 0 .. 9223372036854775807"),
        (_to("bytes"), "bytes: it has not one number for each tree"),
        (_to("group", 1), "group: [1] is not in 0 .. 0"),
        (_to("root", 3), "root: [3] is not in 0 .. 2"),
        (_to("target", -2), "target: [-2] is not in -1 .. 2"),
        (_to("tree_ptr", 0, 3), "tree_ptr: it does not divide 2 into 1"),
        (_to("tree_ptr", 0, 1, 2), "tree_ptr: it does not divide 2 into 1"),
        (_to("tree_edge", 0, 2), "tree_edge: [2] is not in 0 .. 1"),
        (_to("edge_tail", 1), "edge_head: it has not one number for each edge"),
        (_to("edge_head", 0, 3), "edge_head: [3] is not in 0 .. 2"),
        (_to("edge_phase", 0, 3), "edge_phase: [3] is not in 0 .. 2"),
        (_to("route_ptr", 0, 4, 3), "route_ptr: it does not divide 6 into 2"),
        (_to("hop_node", 0, 0, 0, 0, 0, -1), "hop_node: [-1] is not in 0 .. 2"),
        (_to("hop_cable", 0), "hop_cable: it has not one number for each hop"),
        (_to("hop_cable", 0, 0, 0, 0, 0, -1), "hop_cable: [-1] is not in 0 .. 2147483647"),
        (lambda arrays: arrays.update(rate=np.zeros((1, 1))), "rate: it is not a whole list of float64"),
        (lambda arrays: arrays.update(rate=np.zeros(1, int)), "rate: it is not a whole list of float64"),
        (lambda arrays: arrays.update(root=np.array([None])), "root: it is not a whole list of int32"),
        (lambda arrays: arrays.pop("rate") and None, "member 'rate.npy' is missing"),
        (lambda arrays: arrays.update({"\x01": arrays["rate"]}), "member '\\x01.npy' is not known"),
    ],
)  # fmt: skip
def test_wrong_arrays(plan_file: Path, change: Callable[[Arrays], None], message: str) -> None:
    """A file of other trees, though its hash fits, is refused before any tree is made of it."""
    arrays: Arrays = dict(np.load(_tree_file(plan_file)))
    change(arrays)
    _forge(plan_file, _packed(arrays))
    assert _error(plan_file) == f"plan.json: trees: FILE: {message}"


def test_what_is_no_archive(plan_file: Path) -> None:
    """Other bytes, cut archives, and members that are no arrays or claim to be longer than they are, never come to more."""
    whole = _tree_file(plan_file).read_bytes()
    for content in (b"trees", whole[:-30], whole[:100] + b"\0" * 40 + whole[140:]):
        _forge(plan_file, content)
        assert _error(plan_file) == "plan.json: trees: FILE: it is no .npz file, or broken"
    for member, problem in ((b"text", "it is no array"), (_header(2**50), "it is not a whole list of float64")):
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(stream, "w") as new:
            for name in old.namelist():
                new.writestr(name, member if name == "rate.npy" else old.read(name))
        _forge(plan_file, stream.getvalue())
        assert _error(plan_file) == f"plan.json: trees: FILE: rate: {problem}"


def _header(count: int) -> bytes:
    """The head of an array of that many numbers, without the numbers."""
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def test_what_unpacks_to_too_much(plan_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size after unpacking is looked at before unpacking."""
    monkeypatch.setattr("dualcoll.plans.tree_file.MAX_BYTES", 2**20)
    arrays: Arrays = dict(np.load(_tree_file(plan_file)))
    arrays["hop_node"] = np.zeros(2**20, np.int32)
    _forge(plan_file, _packed(arrays))
    assert _error(plan_file) == "plan.json: trees: FILE: it unpacks to more than 1 MiB"


@settings(max_examples=200)
@given(st.data())
def test_no_bytes_are_a_traceback(data: st.DataObject) -> None:
    """Whatever the file's bytes are changed to, trees can be made of it, or the change is an input error."""
    document = plan_to_document(make_plan())
    content = bytearray(trees_to_bytes(document))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with TemporaryDirectory() as folder:
        reference = tree_file_reference("plan.json", bytes(content))
        (Path(folder) / reference["file"]).write_bytes(content)
        try:
            read = read_trees(reference, Path(folder), document.topology, document.groups, document.routing)
        except InputError as error:
            said = str(error)
        else:
            said = f"{len(tuple(read))} trees"
    assert said.isprintable()


@pytest.mark.usefixtures("everything_is_much")
def test_routes_that_do_not_pair_up(tmp_path: Path) -> None:
    """A tree with fewer routes than edges cannot be written there."""
    tree = make_plan().trees[0]
    plan = replace(make_plan(), trees=(replace(tree, route_ptr=tree.route_ptr[:2]),))
    with pytest.raises(InputError, match=r"^trees\[0\]: 1 routes for 2 edges$"):
        write_plan(plan, tmp_path / "plan.json")


def test_a_hundred_thousand_edges_are_proved_from_the_file(tmp_path: Path) -> None:
    """An AllGather of 330 GPUs around a switch goes to two files and is proved optimal as it is read."""
    n = 330
    nodes = (*(Node(f"g{i}", Kind.GPU, box="b") for i in range(n)), Node("sw", Kind.SWITCH))
    topology = Topology(nodes, tuple(half for i in range(n) for half in duplex(Link(i, n, (n - 1) * 1e6))))
    trees = []
    for root in range(n):
        around = (root + np.arange(n)) % n
        edges = np.column_stack([around[:-1], around[1:]])
        links = np.column_stack([2 * edges[:, 0], 2 * edges[:, 1] + 1]).ravel()
        ptr = 2 * np.arange(n)
        trees.append(Tree(1e6, root, root, 1000, edges, np.ones(n - 1, np.int8), ptr, links))
    plan = Plan(
        topology=topology,
        workload=Workload((Group("all", "allgather", tuple(range(n)), 1000 * n),)),
        forwarding=Forwarding.SWITCHES,
        relay=False,
        routing=Routing(),
        trees=tuple(trees),
        link_prices=np.ones(2 * n),
        shared_prices=np.zeros(0),
        value=1e6 * n,
        bound=1e6 * n,
        in_network=Cut(1e6 * n * (n - 1), (0,)),
        outcome=make_plan().outcome,
    )
    write_plan(plan, tmp_path / "plan.json")
    assert _tree_file(tmp_path / "plan.json").stat().st_size < 2**20
    proof = check_plan(read_document(tmp_path / "plan.json"))
    assert proof.rate == proof.bound == n * 10**6
    assert check_plan(plan_to_document(plan)) == proof
