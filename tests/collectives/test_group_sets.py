from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualcoll.collectives.group_sets import read_groups
from dualcoll.errors import InputError
from dualcoll.topology.model import Topology
from tests.packing.fabrics import fabric


def star(ranks: int) -> Topology:
    """This many ranks on one switch; node 0 is g0, node 1 the switch."""
    return fabric(", ".join(f"g{i}-s0:1" for i in range(ranks)))


TOPOLOGY = star(8)


def names(source: str | Path | list[str | list[int | str]], topology: Topology = TOPOLOGY) -> dict[str, list[str]]:
    return {name: [topology.nodes[i].name for i in nodes] for name, nodes in read_groups(topology, source)}


def refusal(source: str | Path | list[str | list[int | str]]) -> str:
    with pytest.raises(InputError) as caught:
        read_groups(TOPOLOGY, source)
    return str(caught.value)


@pytest.mark.parametrize("text", ["4 groups of stride 4", "groups of stride 4", " 4  Groups of STRIDE 4 ranks "])
def test_strided_groups(text: str) -> None:
    """Group i is ranks i, i + stride, …; the count may be left out."""
    assert names(text) == {"0": ["g0", "g4"], "1": ["g1", "g5"], "2": ["g2", "g6"], "3": ["g3", "g7"]}


@pytest.mark.parametrize("text", ["2 groups of 4", "groups of 4", "groups of 4 ranks"])
def test_consecutive_groups(text: str) -> None:
    """Group i is the i-th run of ranks."""
    assert names(text) == {"0": ["g0", "g1", "g2", "g3"], "1": ["g4", "g5", "g6", "g7"]}


@given(st.integers(2, 24), st.integers(1, 24), st.booleans())
def test_a_pattern_deals_out_every_rank_once_or_is_refused(ranks: int, step: int, strided: bool) -> None:
    """Into groups of one size."""
    topology = star(ranks)
    text = f"groups of stride {step}" if strided else f"groups of {step}"
    size = ranks // step if strided else step
    if ranks % step or size < 2:
        with pytest.raises(InputError):
            read_groups(topology, text)
        return
    found = [nodes for _, nodes in read_groups(topology, text)]
    assert {len(nodes) for nodes in found} == {size}
    assert sorted(node for nodes in found for node in nodes) == list(topology.ranks)


def test_lists_in_text_and_in_code() -> None:
    """Numbers, ranges and names; groups may share ranks."""
    assert names("0-1; 2,g7;1-2") == {"0": ["g0", "g1"], "1": ["g2", "g7"], "2": ["g1", "g2"]}
    assert names(["0-1", [2, "g7"]]) == {"0": ["g0", "g1"], "1": ["g2", "g7"]}


def test_a_file_of_lines(tmp_path: Path) -> None:
    """One group to a line, its name before a colon if it has one; comments and blank lines are nothing."""
    path = tmp_path / "groups.txt"
    path.write_text("# two of them\nleft: 0 1,2 # near\n\n5-6,g7\n")
    wanted = {"left": ["g0", "g1", "g2"], "1": ["g5", "g6", "g7"]}
    assert names(path) == names(str(path)) == wanted


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("groups.yaml", "- 0-2\n- [5, 6, g7]\n"),
        ("groups.json", '[[0, 1, "g2"], "5-7"]'),
        ("groups", '[[0, 1, "g2"], "5-7"]'),
    ],
)
def test_a_file_of_lists(tmp_path: Path, file: str, text: str) -> None:
    """YAML or JSON, by suffix or by how it begins."""
    path = tmp_path / file
    path.write_text(text)
    assert names(path) == {"0": ["g0", "g1", "g2"], "1": ["g5", "g6", "g7"]}


def test_a_file_of_named_groups(tmp_path: Path) -> None:
    """A mapping of names to ranks."""
    path = tmp_path / "groups.json"
    path.write_text('{"left": [0, 1], "right": "6-7"}')
    assert names(path) == {"left": ["g0", "g1"], "right": ["g6", "g7"]}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "groups of stride 3",
            "groups: 8 ranks do not divide into groups of stride 3; strides that do are 1, 2, 4",
        ),
        ("groups of 0", "groups: 8 ranks do not divide into groups of 0; sizes that do are 2, 4"),
        (
            "8 groups of stride 4",
            'groups: 8 ranks make 4 groups of stride 4, not 8; write "groups of stride 4", or list the ranks of each group',
        ),
        ("groups of stride 8", "groups: a group of 1 rank, g0; two or more take part"),
        ("0-3;4", "groups[1]: a group of 1 rank, g4; two or more take part"),
        ("0-3;4-9", "groups[1]: 4-9 is not within ranks 0 to 7"),
        ("0,1,1", "groups[0]: rank g1 is named twice"),
        ("0,1;s0,g2", "groups[1]: s0 is a switch and no rank; give the node `rank: true`"),
        (
            "eight groups",
            "groups: 'eight groups' is neither a file, a pattern nor ranks; write \"8 groups of stride 8\", "
            '"groups of 8" or "0-7;8-15", or name a file with one group to a line',
        ),
        (
            [],
            'groups: there are no groups; write "8 groups of stride 8", "groups of 8" or "0-7;8-15", or name a file with '
            "one group to a line",
        ),
    ],
)
def test_unusable_groups_are_refused(source: str | list[str | list[int | str]], message: str) -> None:
    """With the group, what is wrong and what to try."""
    assert refusal(source) == message


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("g.txt", "0 1\n\n2 banana\n", "g.txt:3: 'banana' is not a rank; ranks are 0 to 7, or node names"),
        ("g.txt", "0 1\na: 2\n", "g.txt:2: a group of 1 rank, g2; two or more take part"),
        ("g.txt", "a: 0 1\na: 2 3\n", "groups: 2 groups are called a; names must be unique"),
        ("g.yaml", "- 0-1\n- {a: 1}\n", "g.yaml:2: [1]: \"{'a': '1'}\" are not the ranks of a group; HINT"),
        ("g.yaml", "a: 0-1\nb: 9\n", "g.yaml:2: b: 9 is not within ranks 0 to 7"),
        ("g.yaml", "0-1", "g.yaml: it is neither a list of groups nor a mapping of names to groups"),
        ("g.yaml", "'': 0-1", "g.yaml:1: : '' is not usable as a name; use 1 to 255 printable characters"),
        ("g.txt", "\x00\udcff", "g.txt:1: it is not UTF-8 text"),
        ("g.txt", " \n", "g.txt: it is empty"),
    ],
)
def test_unusable_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, message: str
) -> None:
    """With the file, and the line where there is one."""
    monkeypatch.chdir(tmp_path)
    Path(file).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refusal(file) == message.replace("HINT", 'write "0-7,12" or a list of numbers and names')


def test_a_prime_number_of_ranks_has_no_pattern() -> None:
    """Only a list can divide it."""
    with pytest.raises(InputError) as caught:
        read_groups(star(3), "groups of 2")
    assert str(caught.value) == "groups: 3 ranks do not divide into groups of 2; list the ranks of each group"
