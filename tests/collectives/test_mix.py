from __future__ import annotations

from pathlib import Path

import pytest

from dualcoll.collectives.mix import read_mix
from dualcoll.collectives.workload import Group, Objective
from dualcoll.errors import InputError
from tests.packing.fabrics import fabric

TOPOLOGY = fabric("s0-g0:1, s0-g1:1, s0-g2:1, s0-g3:1")  # rank i is node i + 1


def test_a_pattern_becomes_several_groups(tmp_path: Path) -> None:
    """Named after their entry; files are looked for beside the mix."""
    (tmp_path / "pairs.txt").write_text("left: 0 1\n2 3\n")
    (tmp_path / "moe.csv").write_text(",g3,g0\ng3,0,7\ng0,5,0\n")
    path = tmp_path / "mix.yaml"
    path.write_text("""
- {name: dp, collective: all-reduce, size: 1K, groups: 2 groups of stride 2}
- {name: tp, collective: allgather, size: 4, groups: [0-1, [2, g3]], weights: [1, 3]}
- {name: pp, collective: broadcast, size: 9B, groups: pairs.txt}
- {name: all, collective: reduce, size: 5, root: g2}
- {name: ep, collective: alltoallv, demand: moe.csv}
- {name: two, collective: gather, size: 6, ranks: [3, g1], root: 1}
""")
    assert read_mix(path, TOPOLOGY).groups == (
        Group("dp[0]", "allreduce", (1, 3), 1024),
        Group("dp[1]", "allreduce", (2, 4), 1024),
        Group("tp[0]", "allgather", (1, 2), 4, None, (1, 3)),
        Group("tp[1]", "allgather", (3, 4), 4, None, (1, 3)),
        Group("pp[left]", "broadcast", (1, 2), 9, 1),
        Group("pp[1]", "broadcast", (3, 4), 9, 3),
        Group("all", "reduce", (1, 2, 3, 4), 5, 3),
        Group("ep", "alltoallv", (4, 1), 7, None, (0, 7, 5, 0)),
        Group("two", "gather", (4, 2), 6, 2),
    )


def test_json_and_the_objective(tmp_path: Path) -> None:
    """A total counts every group."""
    path = tmp_path / "mix.json"
    path.write_text(
        '[{"name": "a", "collective": "allreduce", "size": 8}, {"name": "b", "collective": "alltoall", "size": "1K"}]'
    )
    work = read_mix(path, TOPOLOGY, "total")
    assert [group.size for group in work.groups] == [8, 1024]
    assert work.objective is Objective.TOTAL


ENTRY = "name: dp, collective: allreduce, size: 1K"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: dp",
            ": it is not a list of collectives; each entry has name, collective and size, and ranks or groups",
        ),
        ("[]", ": it is not a list of collectives; each entry has name, collective and size, and ranks or groups"),
        ("- dp", ":1: [0]: it is not a mapping of keys to values"),
        ("- {collective: allreduce}", ":1: [0]: name is missing"),
        ("- {name: dp, collective: allreduce}", ":1: [0]: size is missing; give bytes, such as 64MiB"),
        (f"- {{{ENTRY}, rank: 3}}", ":1: [0].rank: unknown key 'rank'; did you mean ranks?"),
        (f"- {{{ENTRY}}}\n- {{{ENTRY}}}", ":2: [1].name: 'dp' is taken; names are unique, without brackets"),
        (
            f"- {{{ENTRY.replace('dp', 'dp[0]')}}}".replace("dp[0]", "'dp[0]'"),
            ":1: [0].name: 'dp[0]' has a bracket; names are unique, without brackets",
        ),
        (f"- {{{ENTRY}, ranks: 0-7}}", ":1: [0].ranks: 0-7 is not within ranks 0 to 3"),
        (
            f"- {{{ENTRY}, ranks: {{a: b}}}}",
            ":1: [0].ranks: \"{'a': 'b'}\" are not ranks; write \"0-7,12\" or a list of numbers and names",
        ),
        (
            f"- {{{ENTRY},\n   groups: {{a: b}}}}",
            ":2: [0].groups: \"{'a': 'b'}\" are not groups; write a pattern or a list",
        ),
        (f"- {{{ENTRY}, groups: [0-1, 2]}}", ":1: [0]: groups[1]: a group of 1 rank, g2; two or more take part"),
        (
            f"- {{{ENTRY}, groups: 0-1;2-3,\n   ranks: 0-1}}",
            ":1: [0].groups: ranks and groups exclude each other; name the ranks of each group",
        ),
        (
            f"- {{{ENTRY},\n   root: g1}}",
            ":2: [0].root: AllReduce has no root; leave it out; Broadcast, Reduce, Gather, Scatter have one",
        ),
        (
            "- {name: a, collective: allgather, size: 1, weights: [1]}",
            ":1: [0].weights: 1 weights for 4 ranks; give one for each rank",
        ),
        (
            "- {name: a, collective: allreduce, size: 1 parsec}",
            ':1: [0]: cannot read size \'1 parsec\'; write bytes, such as "64M", "1GiB" or "500MB"',
        ),
        (
            "- {name: a, collective: alltoallv, size: 1, demand: m.txt}",
            ":1: [0].size: the demand matrix says the size; leave it out",
        ),
        (
            "- {name: a, collective: alltoallv, size: 1}",
            ":1: [0].demand: AllToAllv needs a demand matrix; give a file of bytes from each rank to each, or use AllToAll for "
            "equal parts",
        ),
        (
            "- {name: a, collective: alltoallv, demand: m.txt}",
            ":1: [0]: m.txt:2: '-1' is negative; bytes are 0 or more",
        ),
        (
            "- {name: a, collective: alltoallv, demand: none.txt}",
            ":1: [0]: none.txt: it cannot be read: No such file or directory",
        ),
        (
            f"- {{{ENTRY}, groups: g.txt}}",
            ":1: [0]: g.txt:1: 7 is not within ranks 0 to 3",
        ),
    ],
)
def test_what_is_no_mix_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    """With the line of the mix, and that of the file that it names."""
    monkeypatch.chdir(tmp_path)
    Path("m.txt").write_text("0 1\n-1 0\n")
    Path("g.txt").write_text("0 7\n")
    Path("mix.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_mix("mix.yaml", TOPOLOGY)
    assert str(caught.value) == f"mix.yaml{message}"


def test_a_total_of_one_group_is_refused(tmp_path: Path) -> None:
    """As on the command line."""
    path = tmp_path / "mix.yaml"
    path.write_text(f"- {{{ENTRY}}}")
    with pytest.raises(InputError) as caught:
        read_mix(path, TOPOLOGY, "total")
    assert str(caught.value) == "objective: a total needs several groups; give groups or a mix"
