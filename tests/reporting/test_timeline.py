"""The rank timeline: as data, as text, and as pictures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualcoll.classical.place import Place
from dualcoll.classical.registry import build, draw
from dualcoll.classical.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from dualcoll.collectives.contract import make_contract
from dualcoll.errors import InputError
from dualcoll.reporting.run_figure import run_figure
from dualcoll.reporting.timeline import Cell, Received, Sent, Timeline, steps_of, timeline
from dualcoll.reporting.timeline_figure import timeline_figure
from dualcoll.reporting.timeline_text import number_list, timeline_text
from dualcoll.schedules.builder import ScheduleBuilder
from dualcoll.schedules.ops import Op
from dualcoll.simulation import Mode, Options, simulate
from dualcoll.topology.catalog import catalog
from tests.classical.samples import CASES, boxes_of

RING = """\
AllReduce of 3 ranks (ring)
send 3 → R1: chunk 3 leaves for rank 1; add 2 ← R3 = {0,3}: chunk 2 from rank 3 is merged in, now that of 0 and 3;
get 2 ← R3: chunk 2 from rank 3 is stored; owns: chunks that are whole there

   | round 0            | round 1
---+--------------------+-----------------
R0 | send 2 → R1        | send 1 → R1
   | add 1 ← R2 = {0,2} | add 0 ← R2 = all
   |                    | owns 0
---+--------------------+-----------------
R1 | send 0 → R2        | send 2 → R2
   | add 2 ← R0 = {0,1} | add 1 ← R0 = all
   |                    | owns 1
---+--------------------+-----------------
R2 | send 1 → R0        | send 0 → R0
   | add 0 ← R1 = {1,2} | add 2 ← R1 = all
   |                    | owns 2

   | round 2     | round 3
---+-------------+------------
R0 | send 0 → R1 | send 2 → R1
   | get 2 ← R2  | get 1 ← R2
   | owns 0,2    | owns 0-2
---+-------------+------------
R1 | send 1 → R2 | send 0 → R2
   | get 0 ← R0  | get 2 ← R0
   | owns 0,1    | owns 0-2
---+-------------+------------
R2 | send 2 → R0 | send 1 → R0
   | get 1 ← R1  | get 0 ← R1
   | owns 1,2    | owns 0-2"""


def last(line: Timeline, rank: int) -> Cell:
    """The rank's cell of the last column."""
    return line.cells[line.ranks.index(rank)][-1]


def test_four_ranks_of_a_ring() -> None:
    """Round by round, each cell has the chunk sent, the chunk merged and whose result that is, and what is owned."""
    line = timeline(ring_reduce_scatter(4, 4000))
    assert line.columns == ("round 0", "round 1", "round 2")
    assert line.cells[1] == (
        Cell((Sent(0, 2),), (Received(3, 0, Op.REDUCE, (0, 1)),), (), (1, 1, 1, 2)),
        Cell((Sent(3, 2),), (Received(2, 0, Op.REDUCE, (0, 1, 3)),), (), (1, 1, 3, 2)),
        Cell((Sent(2, 2),), (Received(1, 0, Op.REDUCE, (0, 1, 2, 3)),), (1,), (1, 4, 3, 2)),
    )
    assert [cell.owned for cell in line.before] == [()] * 4
    assert [last(line, rank).owned for rank in range(4)] == [(0,), (1,), (2,), (3,)]
    gathered = timeline(ring_all_gather(4, 4000))
    assert [cell.owned for cell in gathered.before] == [(0,), (1,), (2,), (3,)]
    assert [last(gathered, rank).owned for rank in range(4)] == [(0, 1, 2, 3)] * 4


def test_text_of_a_ring() -> None:
    """The text of three ranks, in two blocks as the terminal is narrow."""
    assert timeline_text(timeline(ring_all_reduce(3, 300)), width=50) == RING


@pytest.mark.parametrize(("name", "collective"), CASES)
def test_everybody_owns_what_is_promised(name: str, collective: str) -> None:
    """In the last column of any algorithm's timeline each rank owns what the contract promises it."""
    place = Place(boxes_of([3, 3]), 600, 1, pieces=2, matrix=np.full((6, 6), 3))
    schedule = draw(
        name,
        collective,
        place if collective in ("broadcast", "reduce", "gather", "scatter") else replace(place, root=0),
    )
    line = timeline(schedule, columns=1000)
    for chunk in range(schedule.chunks):
        for rank in schedule.contract.receivers(chunk):
            assert chunk in last(line, rank).owned


@settings(max_examples=30)
@given(st.integers(2, 9), st.integers(0, 7), st.integers(1, 5))
def test_a_window_is_cut_out_of_the_whole(ranks: int, first: int, columns: int) -> None:
    """Some ranks and columns show what the whole timeline shows there."""
    schedule = ring_all_reduce(ranks, 1000)
    first = min(first, schedule.rounds - 1)
    whole = timeline(schedule, columns=100)
    part = timeline(schedule, ranks=[ranks - 1], first=first, columns=columns)
    assert part.columns == whole.columns[first : first + columns]
    assert part.cells == (whole.cells[-1][first : first + columns],)
    assert part.all_columns == len(whole.columns)
    wanted = whole.cells[-1][first - 1] if first else whole.before[-1]
    assert part.before == (replace(wanted, sent=(), received=()),)


def test_steps_where_there_are_no_rounds() -> None:
    """A send without a round is one step after the last that it depends on, and not before the one ahead on its channel."""
    builder = ScheduleBuilder(make_contract("broadcast", 3, pieces=2), 8)
    builder.send(0, 1, 0)
    builder.send(1, 2, 0)
    builder.send(0, 1, 1)
    builder.send(1, 2, 1)
    builder.send(1, 2, 1, channel=1, after=[3])
    schedule = builder.build()
    assert steps_of(schedule).tolist() == [0, 1, 0, 1, 2]
    assert timeline(schedule).columns == ("step 0", "step 1", "step 2")


def test_spans_of_time() -> None:
    """With a run the columns are equal spans of it: sends stand where they start, deliveries where they end."""
    topology = catalog("star:n=3,bandwidth=50GB/s,latency=1us")
    schedule = build("pairwise", "alltoall", topology, topology.ranks, 3 * 50_000)
    trace = simulate(schedule)
    line = timeline(schedule, trace, columns=4)
    assert line.all_columns == 4
    assert line.columns[0].startswith("0 s to ")
    sent = [one for row in line.cells for cell in row for one in cell.sent]
    received = [one for row in line.cells for cell in row for one in cell.received]
    assert len(sent) == len(received) == schedule.sends
    for k in range(4):
        begin, end = trace.finish * k / 4, trace.finish * (k + 1) / 4
        starts = int(np.sum((trace.start >= begin * (1 - 1e-12)) & (trace.start < end * (1 - 1e-12))))
        assert sum(len(row[k].sent) for row in line.cells) == starts
    assert [last(line, rank).owned for rank in range(3)] == [(0, 1, 2, 3, 6), (1, 3, 4, 5, 7), (2, 5, 6, 7, 8)]


def test_nothing_to_show() -> None:
    """A schedule of one rank has a timeline without columns, and texts and pictures of it."""
    line = timeline(ring_all_gather(1, 100))
    assert line.columns == ()
    assert timeline_text(line).splitlines()[-1] == "R0 | owns 0"
    assert len(timeline_figure(line).layout.annotations) == 2


def test_large_schedules_are_cut() -> None:
    """Of many ranks and rounds the first are shown, and the text says of how many."""
    line = timeline(ring_all_reduce(40, 4000))
    assert (len(line.ranks), len(line.columns), line.all_columns) == (32, 32, 78)
    assert (
        timeline_text(line).splitlines()[0] == "AllReduce of 40 ranks (ring); 32 of 40 ranks and 32 of 78 rounds shown"
    )


def test_many_sends_in_a_cell() -> None:
    """Sends to one rank are one line, and of many lines the last says how many more there are."""
    text = timeline_text(timeline(draw("direct", "alltoall", Place(boxes_of([9]), 81))), width=200)
    assert "send 1 → R1" in text
    assert "and 11 more" in text


def test_lists_of_numbers() -> None:
    """Runs of three or more are written with their ends; long lists are cut."""
    assert number_list([4, 2, 1, 9, 3]) == "1-4,9"
    assert number_list([0, 1, 5]) == "0,1,5"
    assert number_list(range(0, 40, 2)) == "0,2,4,6,8 and 15 more"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": [0, 4]}, "ranks: rank 4 is not within 0 to 3"),
        ({"first": 6}, "first: column 6 is not within 0 to 5"),
        ({"columns": 0}, "columns: 0 columns; use 1 or more"),
    ],
)
def test_what_there_is_not(arguments: dict[str, object], message: str) -> None:
    """Ranks and columns that do not exist are refused."""
    with pytest.raises(InputError) as caught:
        timeline(ring_all_reduce(4, 400), **arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_the_picture_of_a_ring() -> None:
    """Each slot of each rank and column is a square with its chunk's number; edges tell what is new, green what is whole."""
    figure = timeline_figure(timeline(ring_all_reduce(4, 4000)))
    squares = [trace for trace in figure.data if trace.text is not None]
    assert sum(len(trace.x) for trace in squares) == 4 * 7 * 4
    edges = {
        color: sum(len(trace.x) for trace in squares if trace.marker.line.color == color)
        for color in ("#d55e00", "#0072b2")
    }
    assert edges == {"#d55e00": 12, "#0072b2": 12}
    whole = sum(len(trace.x) for trace in squares if trace.marker.color == "#009e73")
    assert whole == 4 * (1 + 2 + 3 + 4)
    assert [trace.name for trace in figure.data if trace.showlegend] == [
        "own contribution",
        "partial result",
        "whole",
        "just stored",
        "just merged into",
    ]
    assert figure.layout.title.text == "<b>AllReduce of 4 ranks (ring)</b>"
    assert figure.layout.title.subtitle.text == "4 chunks of 1000 B"


def test_the_picture_of_many_chunks() -> None:
    """Of more than 16 chunks a bar tells how many are whole."""
    figure = timeline_figure(timeline(ring_all_gather(20, 2000), columns=3))
    assert [trace.name for trace in figure.data if trace.showlegend] == ["chunks that are whole, of 4"]
    assert figure.layout.title.subtitle.text == "20 chunks of 100 B; 20 of 20 ranks, 3 of 19 rounds"


@pytest.mark.parametrize("mode", Mode)
def test_the_picture_of_a_run(mode: Mode) -> None:
    """Each send is a bar where it leaves and one where it comes in, within the time of the run; of some ranks, theirs alone."""
    topology = catalog("star:n=4")
    schedule = build("ring", "allreduce", topology, topology.ranks, 2**20)
    trace = simulate(schedule, Options(mode=mode))
    figure = run_figure(schedule, trace)
    times = [x for bars in figure.data for x in bars.x if x is not None]
    assert len(times) == 2 * 2 * schedule.sends
    assert min(times) >= 0
    assert max(times) == pytest.approx(1e6 * trace.finish)
    some = run_figure(schedule, trace, ranks=[2])
    assert sum(x is None for bars in some.data for x in bars.x) == 2 * 6
    assert list(some.layout.yaxis.ticktext) == ["g2"]


def test_names_are_text() -> None:
    """Markup in names of nodes appears as text in the pictures."""
    topology = catalog("star:n=3")
    hostile = replace(topology, nodes=tuple(replace(node, name=f"<b>{node.name}") for node in topology.nodes))
    schedule = build("ring", "allgather", hostile, hostile.ranks, 300)
    figures = (timeline_figure(timeline(schedule)), run_figure(schedule, simulate(schedule)))
    assert all("<b><b>" not in figure.to_json() and "&lt;b&gt;" in figure.to_json() for figure in figures)
