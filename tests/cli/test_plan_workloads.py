"""What is carried and how it travels, as a user says it to `dualcoll plan` and `dualcoll bound`."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from dualcoll import _api
from dualcoll.topology.file import write_topology
from tests.cli.conftest import Run
from tests.packing.fabrics import fabric

VERBS = ("plan", "bound")
LIMIT = 1e-6  # relative


def _record(run: Run, *arguments: object) -> Any:
    done = run(*arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def _line(text: str, label: str) -> str:
    """The text behind a label."""
    return next(line.removeprefix(label).strip() for line in text.splitlines() if line.startswith(label))


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A star of three whose third rank sends 10 GB/s and receives 2 GB/s."""
    file = tmp_path / "slow.yaml"
    write_topology(fabric("g0-s0:10, g1-s0:10, g2-s0:10/2"), file)
    return file


@pytest.mark.parametrize("verb", VERBS)
def test_root_decides_what_limits(run: Run, slow: Path, verb: str) -> None:
    """A scatter from the slow rank is as fast as the others receive; from another, the slow rank's shard limits it."""
    assert _record(run, verb, slow, "scatter")["bound_algbw_GBps"] == pytest.approx(6, rel=LIMIT)
    record = _record(run, verb, slow, "scatter", "--root", "g2")
    assert record["bound_algbw_GBps"] == pytest.approx(15, rel=LIMIT)
    assert record["workload"] == "Scatter of 3 ranks from g2"
    assert _record(run, verb, slow, "scatter", "--root", "2")["workload"] == record["workload"]


@pytest.mark.parametrize("verb", VERBS)
def test_weights_are_the_sizes_of_shards(run: Run, slow: Path, verb: str) -> None:
    """What the slow rank must receive decides: all, if it has nothing itself; next to nothing, if nearly all is its own."""
    nothing = _record(run, verb, slow, "allgather", "--weights", "1,1,0")
    assert nothing["bound_algbw_GBps"] == pytest.approx(2, rel=LIMIT)
    assert nothing["demands"] == 2
    assert nothing["workload"] == "AllGather of 3 ranks, shards of unequal size"
    half = _record(run, verb, slow, "allgather", "--weights", "1,1,2")
    assert half["bound_algbw_GBps"] == pytest.approx(4, rel=LIMIT)


def test_an_algorithm_of_equal_shards_is_no_match_for_unequal_ones(run: Run) -> None:
    """What stands beside a plan carries the same message over the same routes, and so does not beat the bound."""
    assert len(_record(run, "plan", "star:4", "allgather")["alternatives"]) == 1
    assert _record(run, "plan", "star:4", "allgather", "--weights", "1,1,2,0")["alternatives"] == []
    assert _record(run, "plan", "torus:3x3", "allgather", "--routing", "ecmp")["alternatives"] == []


@pytest.mark.parametrize("verb", VERBS)
def test_demand_is_carried_and_described(run: Run, tmp_path: Path, verb: str) -> None:
    """The busiest rank sends 3 MiB over 1 GB/s; the plan also says how much moves and who is hot."""
    file = tmp_path / "demand.csv"
    file.write_text(",g0,g1,g2\ng0,4MiB,2MiB,1MiB\ng1,1MiB,0,0\ng2,0,0,0\n")
    fabric = "star:3,bandwidth=1GB/s"
    record = _record(run, verb, fabric, "alltoallv", "--demand", file)
    assert record["size_bytes"] / record["bound_algbw_GBps"] == pytest.approx(3 * 2**20, rel=LIMIT)
    assert record["demands"] == 3
    out = run(verb, fabric, "all-to-all-v", "--demand", file).out
    if verb == "plan":
        assert record["demand"] == [
            "4 MiB between ranks, 4 MiB stay where they are",
            "most is received by g1 (2 MiB, 1.5 times the mean), most is sent by g0 (3 MiB, 2.25 times the mean)",
        ]
        assert _line(out, "demand") == record["demand"][0]


@pytest.mark.parametrize("verb", VERBS)
def test_groups_run_at_the_same_time(run: Run, tmp_path: Path, verb: str) -> None:
    """The same two groups in three spellings; a plan prints the rate of each."""
    file = tmp_path / "pairs.txt"
    file.write_text("near: 0 1\nfar: 2 3\n")
    texts = {"groups of 2": "group[1]", "0-1;2-3": "group[1]", str(file): "group[far]"}
    for groups, name in texts.items():
        record = _record(run, verb, "star:4,bandwidth=1GB/s", "allreduce", "--groups", groups)
        assert record["workload"] == "2 groups of 2 ranks, AllReduce each"
        assert [(one["name"], one["ranks"]) for one in record["groups"]][1] == (name, 2)
        assert record["bound_algbw_GBps"] == pytest.approx(1, rel=LIMIT)
        out = run(verb, "star:4,bandwidth=1GB/s", "allreduce", "--groups", groups).out
        assert (f"{name}: AllReduce of 2 ranks, 1 GiB at 1 GB/s, 1.074 s" in out) == (verb == "plan")


@pytest.mark.parametrize("verb", VERBS)
def test_objective_is_the_slowest_or_the_total(run: Run, slow: Path, verb: str) -> None:
    """Two pairs that share the slow rank: together they get all that it can receive, either way."""
    arguments = (verb, slow, "allreduce", "--groups", "0,2;1,2")
    even, most = (_record(run, *arguments, "--objective", which) for which in ("slowest", "total"))
    assert (even["objective"], most["objective"]) == ("slowest", "total")
    assert even["bound_algbw_GBps"] == pytest.approx(1, rel=LIMIT)
    assert most["bound_algbw_GBps"] == pytest.approx(2, rel=LIMIT)
    assert most["in_network_bound_GBps"] is None


@pytest.mark.parametrize("verb", VERBS)
def test_mix_takes_the_place_of_a_collective(run: Run, tmp_path: Path, verb: str) -> None:
    """Each entry has its own collective, size and ranks."""
    file = tmp_path / "mix.yaml"
    file.write_text(
        "- {name: sum, collective: allreduce, size: 1GB, ranks: 0-1}\n"
        "- {name: out, collective: broadcast, size: 2GB, ranks: 2-3}\n"
    )
    record = _record(run, verb, "star:4,bandwidth=1GB/s", "--mix", file)
    assert record["collective"] == "mix"
    assert record["workload"] == "mix of 2 collectives on 4 ranks"
    assert [(one["name"], one["collective"], one["size_bytes"]) for one in record["groups"]] == [
        ("sum", "allreduce", 10**9),
        ("out", "broadcast", 2 * 10**9),
    ]
    assert record["time_s"] == pytest.approx(2.0, abs=1e-3)
    total = _record(run, verb, "star:4,bandwidth=1GB/s", "--mix", file, "--objective", "total")
    assert total["bound_algbw_GBps"] == pytest.approx(2, rel=LIMIT)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("routing", ["single", "spray", "spray-cables", "spray-hops", "ecmp"])
def test_routing_is_used_and_said(run: Run, verb: str, routing: str) -> None:
    """No routing of the network's beats the plan's own paths; only ecmp has a seed."""
    record = _record(run, verb, "torus:3x3", "alltoall", "--routing", routing, "--seed", "5")
    assert record["routing"] == routing
    assert record["routing_seed"] == (5 if routing == "ecmp" else None)
    best = _record(run, "bound", "torus:3x3", "alltoall")["bound_algbw_GBps"]
    assert 0 < record["algbw_GBps"] <= best * (1 + LIMIT)
    text = _line(run(verb, "torus:3x3", "alltoall", "--routing", routing, "--seed", "5").out, "routing")
    assert text.startswith("the plan chooses" if routing == "single" else "the network ")
    assert text.endswith("(seed 5)") == (routing == "ecmp")


def test_no_relay_is_kept_and_its_cost_printed_beside(run: Run, tmp_path: Path) -> None:
    """In a triangle with one slow side: 15 GB/s with the third rank's help, 3 GB/s without."""
    file, saved = tmp_path / "triangle.yaml", tmp_path / "plan.json"
    write_topology(fabric("g0-g1:1, g0-g2:9, g1-g2:9"), file)
    free = _record(run, "plan", file, "alltoall", "--gap", "0")
    assert (free["relay"], free["depth"]) == (True, 2)
    assert free["algbw_GBps"] == pytest.approx(15, rel=LIMIT)
    assert [round(one["algbw_GBps"], 3) for one in free["alternatives"] if "--no-relay" in one["text"]] == [3]
    done = run("plan", file, "alltoall", "--gap", "0", "--no-relay", "-o", saved, "--json")
    direct = json.loads(done.out)
    assert (direct["relay"], direct["depth"]) == (False, 1)
    assert direct["algbw_GBps"] == pytest.approx(3, rel=LIMIT)
    assert not any("relay" in one["text"] for one in direct["alternatives"])
    assert _record(run, "bound", file, "alltoall", "--no-relay")["bound_algbw_GBps"] == pytest.approx(3, rel=LIMIT)
    assert _line(run("bound", file, "alltoall", "--no-relay").out, "relay") == "no rank passes on what another sends"
    assert run("check", saved).code == 0


def test_ctrl_c_beside_the_plan_keeps_it(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The search is over and what others would do is being simulated: the plan is saved and printed."""

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_api, "usual_choice", stopped)
    file = tmp_path / "plan.json"
    done = run("plan", "star:3", "alltoall", "-o", file, "--json")
    assert done.code == 0
    assert json.loads(done.out)["alternatives"] == []
    assert run("check", file).code == 0


@pytest.mark.parametrize(
    ("flags", "copies"), [((), "y = 1"), (("--copies", "4"), "y = 4"), (("--accuracy", "10%"), "y = 5")]
)
def test_sharing_says_what_copies_deliver(run: Run, flags: tuple[str, ...], copies: str) -> None:
    """Two equal trees on a star imitate their rates exactly, whatever the number of copies."""
    arguments = ("plan", "star:4", "allreduce", "--sharing", "max-min", *flags)
    out = run(*arguments).out
    assert _line(out, "sharing") == "explicit rates: 33.3333 GB/s algbw"
    assert f"({copies})" in out
    record = _record(run, *arguments)["sharing"]
    assert f"y = {record['scale']}" == copies
    assert record["delivered"].keys() == {"explicit", "floor", "coupled", "by_flow"}
    assert record["delivered"]["coupled"]["value_GBps"] == pytest.approx(100 / 3, rel=LIMIT)
    assert "sharing" not in _record(run, "plan", "star:4", "allreduce")


BAD = [
    (
        ["allreduce", "--root", "0"],
        "root: AllReduce has no root; leave it out; Broadcast, Reduce, Gather, Scatter have one",
    ),
    (["gather", "--root", "g9"], "root: 'g9' is not a rank; ranks are 0 to 3, or node names"),
    (
        ["gather", "--root", "g3", "--ranks", "0-2"],
        "root: g3 is not among the ranks that take part; name one that does",
    ),
    (["allgather", "--weights", "1,x"], "--weights: '1,x' is not a list of whole numbers; such as 1,1,2,2"),
    (["allgather", "--weights", "1,2"], "weights: 2 weights for 4 ranks; give one for each rank"),
    (["allgather", "--weights", "0,0,0,0"], "weights: nothing to send: all weights are 0; make one of them positive"),
    (
        ["alltoall", "--weights", "1,1,1,1"],
        "weights: AllToAll has no shards to weigh; AllGather, ReduceScatter, Gather, Scatter have; leave it out",
    ),
    (
        ["alltoallv"],
        "demand: AllToAllv needs a demand matrix; give a file of bytes from each rank to each, or use AllToAll for equal parts",
    ),
    (["alltoallv", "--demand", "/no/such.csv"], "/no/such.csv: it cannot be read: No such file or directory"),
    (["allreduce", "--groups", "groups of 3"], "groups: 4 ranks do not divide into groups of 3; sizes that do are 2"),
    (["allreduce", "--groups", "0-1;9"], "groups[1]: 9 is not within ranks 0 to 3"),
    (
        ["allreduce", "--groups", "groups of 2", "--ranks", "0-1"],
        "groups: ranks and groups exclude each other; name the ranks of each group",
    ),
    (["allreduce", "--objective", "total"], "objective: a total needs several groups; give groups or a mix"),
    (["allreduce", "--objective", "best"], "objective: 'best' is not known; use one of slowest, total"),
    ([], "COLLECTIVE: no collective is given; name one, such as allreduce, or use --mix"),
    (["--mix", "/no/such.yaml"], "/no/such.yaml: it cannot be read: No such file or directory"),
    (["allreduce", "--mix", "mix.yaml"], "--mix and COLLECTIVE exclude each other; say it all in the mix file"),
    (
        ["--mix", "mix.yaml", "--groups", "groups of 2"],
        "--mix and --groups exclude each other; say it all in the mix file",
    ),
    (
        ["allreduce", "--routing", "luck"],
        "routing 'luck' is not known; use one of single, spray, spray-cables, spray-hops, ecmp",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
@pytest.mark.parametrize("verb", VERBS)
def test_what_cannot_be_carried_is_exit_code_2(run: Run, verb: str, arguments: list[str], message: str) -> None:
    """One line that names the option, the value and what to try; nothing on stdout."""
    assert run(verb, "star:4", *arguments) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize("verb", VERBS)
def test_ranks_that_need_others_between_them_need_relaying(run: Run, verb: str) -> None:
    """Across a ring of GPUs that forward nothing there is no direct way."""
    assert run(verb, "ring:4", "alltoall").code == 0
    done = run(verb, "ring:4", "alltoall", "--no-relay")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        "error: ring:4: g0 has no route of its own to g2; let ranks relay (leave out --no-relay)"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sharing", "fair"], "--sharing: 'fair' is not known; use max-min"),
        (["--copies", "4"], "--copies: it says how trees share without rate control; add --sharing max-min"),
        (["--accuracy", "4%"], "--accuracy: it says how trees share without rate control; add --sharing max-min"),
        (
            ["--sharing", "max-min", "--copies", "4", "--accuracy", "4%"],
            "--accuracy: the number of copies follows from it; leave out --copies",
        ),
        (
            ["--sharing", "max-min", "--accuracy", "0"],
            "--accuracy: no number of copies is sure to be exact; 10% keeps 1/1.1 of each rate",
        ),
        (
            ["--sharing", "max-min", "--accuracy", "close"],
            '--accuracy: cannot use \'close\' as a fraction; write "1%" or "0.01"; it is in [0, 1)',
        ),
    ],
)
def test_unusable_sharing_is_exit_code_2(run: Run, flags: list[str], message: str) -> None:
    """Refused before anything is planned, here for a fabric that does not exist."""
    assert run("plan", "nowhere.yaml", "allreduce", *flags) == (2, "", f"error: {message}\n")


def test_sharing_options_that_are_no_numbers_are_usage_errors(run: Run) -> None:
    """Copies are counted from 1; a bound is shared by nobody."""
    for arguments in (
        ("plan", "star:4", "allreduce", "--sharing", "max-min", "--copies", "0"),
        ("bound", "star:4", "allreduce", "--sharing", "max-min"),
    ):
        done = run(*arguments)
        assert (done.code, done.out) == (2, "")
        assert "Traceback" not in done.err


def test_a_demand_is_read_once(run: Run, tmp_path: Path) -> None:
    """From a pipe it comes only once."""
    pipe, path = tmp_path / "pipe", tmp_path / "plan.json"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("0 10\n20 0\n",))
    writer.start()
    done = run("plan", "ring:2", "alltoallv", "--demand", pipe, "-o", path)
    writer.join()
    assert done.code == 0
    assert "most is received by" in done.out
    assert path.exists()


def test_a_mix_has_its_sizes(run: Run) -> None:
    """A size beside it would be ignored, so it is refused."""
    done = run("bound", "dgx-h100:boxes=4,network=rail", "--mix", "examples/mix-32-gpus.yaml", "--size", "1M")
    assert done.code == 2
    assert "--mix and --size exclude each other; say it all in the mix file" in done.err
